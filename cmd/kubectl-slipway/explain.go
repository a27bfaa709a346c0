package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/reconcile"
	"github.com/slipway-dev/slipway/shared/record"
)

const (
	// maxOwners bounds the chain of owners, lastReconciles and lastEvents what is shown
	// of the past, shownFields how many fields of one manager without -o wide.
	maxOwners      = 10
	lastReconciles = 5
	lastEvents     = 8
	shownFields    = 6
)

// explanation is why an object is as it is.
type explanation struct {
	Kind       string          `json:"kind"`
	Namespace  string          `json:"namespace,omitempty"`
	Name       string          `json:"name"`
	Age        string          `json:"age"`
	Deleting   string          `json:"deleting,omitempty"`
	Mode       string          `json:"mode,omitempty"`
	Generation string          `json:"generation,omitempty"`
	Functions  []involved      `json:"functions"`
	Owners     []string        `json:"owners,omitempty"`
	Finalizers []string        `json:"finalizers,omitempty"`
	Conditions []condition     `json:"conditions,omitempty"`
	Awaited    []string        `json:"awaited,omitempty"`
	Fields     []fieldOwner    `json:"fields,omitempty"`
	Events     []happened      `json:"events,omitempty"`
	Reconciles []record.Header `json:"reconciles,omitempty"`
	Reasons    []string        `json:"reasons,omitempty"`
	// Missing says what could not be looked at.
	Missing []string `json:"missing,omitempty"`
}

// involved is a function that has to do with an object.
type involved struct {
	Name string `json:"name"`
	Role string `json:"role"`
}

type condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	Since   string `json:"since,omitempty"`
}

type fieldOwner struct {
	Manager     string   `json:"manager"`
	Operation   string   `json:"operation"`
	Subresource string   `json:"subresource,omitempty"`
	Ago         string   `json:"ago,omitempty"`
	Fields      []string `json:"fields"`
}

type happened struct {
	Type   string `json:"type"`
	Reason string `json:"reason"`
	Note   string `json:"note"`
	By     string `json:"by,omitempty"`
	Ago    string `json:"ago,omitempty"`
	at     time.Time
}

func explainCommand(o *options) *cobra.Command {
	var from string
	cmd := &cobra.Command{
		Use:   "explain KIND/NAME",
		Short: "Tell why an object is as it is: owners, reconciles, conditions, fields, what is awaited",
		Long: `Tells of one object who made it and who writes which of its fields, what the functions that
have to do with it came to last, what its conditions say and what is awaited. Values of fields
are not shown.`,
		Example: `  kubectl slipway explain machine/web -n team-a
  # the virtual machine that was made for it, with every field's owner
  kubectl slipway explain vm/vm-web -n team-a -o wide`,
		Args: cobra.ExactArgs(1), ValidArgsFunction: completeKinds,
		RunE: func(cmd *cobra.Command, args []string) error {
			live, err := o.live()
			if err != nil {
				return err
			}
			obj, err := live.find(cmd.Context(), args[0], o.objectNamespace())
			if err != nil {
				return err
			}
			e := explain(obj, time.Now())
			e.owners(cmd.Context(), live, obj)
			e.happened(cmd.Context(), live, obj, time.Now())
			o.past(cmd.Context(), from, &e, obj)
			return o.print(e, func(w io.Writer) { e.show(w, o.output == "wide") })
		},
	}
	historyFlag(cmd, &from)
	return cmd
}

func ago(at, now time.Time) string {
	if at.IsZero() {
		return ""
	}
	return duration.HumanDuration(now.Sub(at))
}

// explain tells what the object says by itself.
func explain(obj *unstructured.Unstructured, now time.Time) explanation {
	e := explanation{
		Kind: obj.GetKind(), Namespace: obj.GetNamespace(), Name: obj.GetName(), Age: ago(obj.GetCreationTimestamp().Time, now),
		Mode: obj.GetAnnotations()[reconcile.AnnotationMode], Finalizers: obj.GetFinalizers(), Functions: functionsOf(obj),
	}
	if at := obj.GetDeletionTimestamp(); at != nil {
		e.Deleting = "for " + ago(at.Time, now)
		e.Awaited = append(e.Awaited, "the finalizers "+strings.Join(obj.GetFinalizers(), ", "))
	}
	if observed, ok, _ := unstructured.NestedInt64(obj.Object, "status", "observedGeneration"); ok {
		e.Generation = fmt.Sprintf("%d, of which %d is observed", obj.GetGeneration(), observed)
		if observed < obj.GetGeneration() {
			e.Awaited = append(e.Awaited, "the reconcile of its last change")
		}
	}
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	for _, item := range conditions {
		fields, _ := item.(map[string]any)
		text := func(name string) string { value, _ := fields[name].(string); return value }
		c := condition{Type: text("type"), Status: text("status"), Reason: text("reason"), Message: text("message")}
		if at, err := time.Parse(time.RFC3339, text("lastTransitionTime")); err == nil {
			c.Since = ago(at, now)
		}
		e.Conditions = append(e.Conditions, c)
		if c.Status != "True" {
			e.Awaited = append(e.Awaited, strings.TrimSuffix(fmt.Sprintf("%s: %s %s", c.Type, c.Reason, c.Message), " "))
		}
	}
	for _, entry := range obj.GetManagedFields() {
		owner := fieldOwner{Manager: entry.Manager, Operation: string(entry.Operation), Subresource: entry.Subresource}
		if entry.Time != nil {
			owner.Ago = ago(entry.Time.Time, now)
		}
		set := &fieldpath.Set{}
		if entry.FieldsV1 == nil || set.FromJSON(entry.FieldsV1.GetRawReader()) != nil {
			continue
		}
		set.Leaves().Iterate(func(p fieldpath.Path) { owner.Fields = append(owner.Fields, p.String()) })
		slices.Sort(owner.Fields)
		e.Fields = append(e.Fields, owner)
	}
	return e
}

// functionsOf are the functions that reconcile an object, or that it wakes.
func functionsOf(obj *unstructured.Unstructured) []involved {
	list := []involved{}
	for _, spec := range slipway.Specs() {
		role := ""
		for _, watch := range spec.Watches {
			if watch.Resource.Is(obj.GetAPIVersion(), obj.GetKind()) {
				role = "is woken by it"
			}
		}
		if spec.Reconciles.Is(obj.GetAPIVersion(), obj.GetKind()) {
			role = "reconciles it"
		}
		if role != "" {
			list = append(list, involved{Name: spec.Name, Role: role})
		}
	}
	return list
}

// owners follows the owner references up.
func (e *explanation) owners(ctx context.Context, live *liveCluster, obj *unstructured.Unstructured) {
	for range maxOwners {
		refs := obj.GetOwnerReferences()
		if len(refs) == 0 {
			return
		}
		ref := refs[0]
		if i := slices.IndexFunc(refs, func(r metav1.OwnerReference) bool { return r.Controller != nil && *r.Controller }); i >= 0 {
			ref = refs[i]
		}
		line := ref.Kind + " " + ref.Name
		gv, err := schema.ParseGroupVersion(ref.APIVersion)
		if err != nil {
			e.Owners = append(e.Owners, line+" (of an API version that cannot be read)")
			return
		}
		client, _, err := live.in(gv.WithKind(ref.Kind), obj.GetNamespace())
		var owner *unstructured.Unstructured
		if err == nil {
			owner, err = client.Get(ctx, ref.Name, metav1.GetOptions{})
		}
		switch {
		case apierrors.IsNotFound(err):
			line += " (gone)"
		case err != nil:
			line += " (cannot be read)"
		case owner.GetUID() != ref.UID:
			line += " (gone: another one has its name)"
		}
		e.Owners = append(e.Owners, line)
		if err != nil || owner.GetUID() != ref.UID {
			return
		}
		obj = owner
	}
}

// happened are the Kubernetes Events of the object.
func (e *explanation) happened(ctx context.Context, live *liveCluster, obj *unstructured.Unstructured, now time.Time) {
	namespace := obj.GetNamespace()
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	list, err := live.client.Resource(kind.Events.GVR()).Namespace(namespace).List(ctx, metav1.ListOptions{
		FieldSelector: "regarding.name=" + obj.GetName() + ",regarding.kind=" + obj.GetKind(), Limit: 500,
	})
	if err != nil {
		e.Missing = append(e.Missing, "Kubernetes Events: "+err.Error())
		return
	}
	for i := range list.Items {
		item := &list.Items[i]
		if uid, _, _ := unstructured.NestedString(item.Object, "regarding", "uid"); uid != string(obj.GetUID()) {
			continue
		}
		text := func(path ...string) string {
			value, _, _ := unstructured.NestedString(item.Object, path...)
			return value
		}
		at, err := time.Parse(time.RFC3339, text("eventTime"))
		if err != nil {
			at = item.GetCreationTimestamp().Time
		}
		e.Events = append(e.Events, happened{Type: text("type"), Reason: text("reason"), Note: text("note"), By: text("reportingController"), Ago: ago(at, now), at: at})
	}
	slices.SortFunc(e.Events, func(a, b happened) int { return a.at.Compare(b.at) })
	if len(e.Events) > lastEvents {
		e.Events = e.Events[len(e.Events)-lastEvents:]
	}
}

// past are the last reconciles of the object, and the reasons of the last one.
func (o *options) past(ctx context.Context, from string, e *explanation, obj *unstructured.Unstructured) {
	h, err := o.history(from)
	if err == nil {
		e.Reconciles, err = h.headers(ctx, record.Filter{Kind: obj.GetKind(), Namespace: obj.GetNamespace(), Name: obj.GetName(), Limit: lastReconciles})
	}
	if err != nil {
		e.Missing = append(e.Missing, "recorded reconciles: "+err.Error())
		return
	}
	if len(e.Reconciles) == 0 {
		return
	}
	last, err := h.recording(ctx, e.Reconciles[len(e.Reconciles)-1].ID, false)
	if err != nil {
		e.Missing = append(e.Missing, "the last reconcile: "+err.Error())
		return
	}
	if len(last.Decisions) > 0 {
		e.Reasons = last.Decisions[len(last.Decisions)-1].Reasons
	}
	if last.Conclusion != nil && last.Conclusion.Class == "waiting" {
		e.Awaited = append(e.Awaited, strings.TrimSpace(last.Conclusion.Reason+" "+last.Conclusion.Message))
	}
}

func (e explanation) show(w io.Writer, wide bool) {
	fmt.Fprintf(w, "%s %s, %s old\n", e.Kind, reconcile.Key{Namespace: e.Namespace, Name: e.Name}, e.Age)
	for _, line := range []struct{ head, text string }{
		{"Deleting", e.Deleting},
		{"Mode", e.Mode},
		{"Generation", e.Generation},
		{"Owners", strings.Join(e.Owners, " <- ")},
		{"Finalizers", strings.Join(e.Finalizers, ", ")},
	} {
		if line.text != "" {
			fmt.Fprintf(w, "%-12s %s\n", line.head, line.text)
		}
	}
	for _, f := range e.Functions {
		fmt.Fprintf(w, "%-12s %s %s\n", "Function", f.Name, f.Role)
	}
	var conditions, reconciles, events [][]string
	for _, c := range e.Conditions {
		conditions = append(conditions, []string{c.Type, c.Status, c.Reason, c.Since, c.Message})
	}
	for _, h := range e.Reconciles {
		reconciles = append(reconciles, []string{
			h.Time.Local().Format("15:04:05.000"), h.Function, h.Result.Class + within(h.Result.Reason), fmt.Sprintf("%d writes", h.WriteCount), "woken by " + h.Trigger, h.ID,
		})
	}
	for _, h := range e.Events {
		events = append(events, []string{h.Ago, h.Type, h.Reason, h.By, h.Note})
	}
	rows(w, "Conditions", conditions)
	lines(w, "What is awaited", e.Awaited)
	lines(w, "Why, by the last reconcile", e.Reasons)
	rows(w, "Last reconciles", reconciles)
	rows(w, "Events", events)
	if len(e.Fields) > 0 {
		fmt.Fprintf(w, "\nWho owns which field\n")
	}
	for _, owner := range e.Fields {
		e.showFields(w, owner, wide)
	}
	lines(w, "What could not be looked at", e.Missing)
}

// lines prints a list under a heading, if there is anything in it.
func lines(w io.Writer, head string, list []string) {
	if len(list) > 0 {
		fmt.Fprintf(w, "\n%s\n", head)
	}
	for _, text := range list {
		fmt.Fprintf(w, "  %s\n", text)
	}
}

// rows prints a table under a heading, if there is anything in it.
func rows(w io.Writer, head string, list [][]string) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s\n", head)
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for _, row := range list {
		fmt.Fprintf(table, "  %s\n", strings.Join(row, "\t"))
	}
	_ = table.Flush()
}

func (explanation) showFields(w io.Writer, owner fieldOwner, wide bool) {
	by := owner.Operation
	if owner.Subresource != "" {
		by += " of " + owner.Subresource
	}
	fmt.Fprintf(w, "  %s (%s, %s ago)\n", owner.Manager, by, owner.Ago)
	fields, more := owner.Fields, 0
	if !wide && len(fields) > shownFields {
		fields, more = fields[:shownFields], len(fields)-shownFields
	}
	for _, field := range fields {
		fmt.Fprintf(w, "    %s\n", field)
	}
	if more > 0 {
		fmt.Fprintf(w, "    and %d more (-o wide)\n", more)
	}
}
