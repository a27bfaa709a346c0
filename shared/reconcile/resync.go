package reconcile

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/shared/caller"
	"github.com/slipway-dev/slipway/shared/event"
	"github.com/slipway-dev/slipway/shared/plan"
	"github.com/slipway-dev/slipway/shared/read"
	"github.com/slipway-dev/slipway/shared/vault"
)

const (
	// pageLimit is how many objects one page of a resync reconciles.
	pageLimit = 50
	// chainLimit is how many pages one chain of replies may have: a broker
	// drops a reply after 255 hops. Past it, the page is sent to the broker as
	// a new event.
	chainLimit = 200
)

// page is one page of the reconciled objects.
type page struct {
	items []unstructured.Unstructured
	// token asks the API server for the next page; empty at the end.
	token string
}

// resync reconciles one page and answers with the event for the next one, so
// that no request has to hold everything. At the end of the chain, orphans
// are removed.
func (h *Host) resync(ctx context.Context, r event.Resync, log *slog.Logger) (*cloudevents.Event, error) {
	if r.Function != h.spec.Name {
		err := fmt.Errorf("%w: the resync is for function %q, this is %q", errInvalid, r.Function, h.spec.Name)
		log.Warn("event refused", "error", err.Error())
		return nil, invalid(err)
	}
	p, err := h.page(ctx, r)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		log.Debug("nothing to resync", "kind", h.spec.Reconciles.Kind, "detail", "the kind is not served")
		return nil, answer(plan.Done, "")
	}
	if err != nil {
		f := read.Fault(err, "", "list "+h.spec.Reconciles.String(), vault.New())
		log.Warn("cannot resync", "error", f.Error())
		return nil, answer(plan.Retry, f.Error())
	}
	keys := make([]Key, 0, len(p.items))
	for i := range p.items {
		keys = append(keys, Key{Namespace: p.items[i].GetNamespace(), Name: p.items[i].GetName()})
	}
	done, class, message := h.all(ctx, keys, log)
	level := slog.LevelDebug
	if class == plan.Retry {
		level = slog.LevelWarn
	}
	log.Log(ctx, level, "resync", "page", r.Page, "objects", done, "more", p.token != "" || done < len(keys), "outcome", class, "detail", message)
	if p.token == "" && done == len(keys) {
		worst, problem := h.collect(ctx, log)
		h.count(ctx, log)
		if class = worse(class, worst); class == plan.Retry && message == "" {
			message = problem
		}
		return nil, answer(class, message)
	}
	// One object that must be retried does not hold up the pages behind it:
	// the next resync comes to it again.
	next := event.Resync{Function: r.Function, After: keys[done-1].String(), Continue: p.token, Page: r.Page + 1}
	if done < len(keys) {
		next.Continue = "" // the token leads behind what was not reached
	}
	id := fmt.Sprintf("resync-%s-%d-%d", h.spec.Name, h.now().UnixNano(), next.Page)
	return h.send(ctx, event.Next(next, id, h.now()), next.Page, log)
}

// send answers with the next page's event, or posts it to the broker when the
// chain of replies would get too long.
func (h *Host) send(ctx context.Context, next cloudevents.Event, pages int, log *slog.Logger) (*cloudevents.Event, error) {
	if pages%chainLimit != 0 {
		return &next, nil
	}
	if h.broker == "" {
		log.Warn("resync ends early", "error", "the chain of pages is longer than a broker's replies may be: set K_SINK to the broker's URL")
		return nil, answer(plan.Done, "")
	}
	options := []cehttp.Option{cehttp.WithTarget(h.broker)}
	authorization, err := caller.Authorization(os.Getenv)
	if err != nil {
		log.Error("cannot go on with the resync", "error", err.Error())
		return nil, answer(plan.Retry, "cannot read the token for the broker")
	}
	if authorization != "" {
		options = append(options, cehttp.WithHeader("Authorization", authorization))
	}
	client, err := cloudevents.NewClientHTTP(options...)
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		err = client.Send(ctx, next)
	}
	if cloudevents.IsUndelivered(err) || cloudevents.IsNACK(err) {
		log.Warn("cannot go on with the resync", "error", err.Error())
		return nil, answer(plan.Retry, "cannot send the next page of the resync to the broker")
	}
	return nil, answer(plan.Done, "")
}

// page lists the next objects. When the API server's token has expired, the
// list begins anew and is wound forward to the last name.
func (h *Host) page(ctx context.Context, r event.Resync) (page, error) {
	client, err := h.management()
	if err != nil {
		return page{}, err
	}
	objects, err := client.Interface(ctx, h.spec.Reconciles.Metadata(), "")
	if err != nil {
		return page{}, err
	}
	token := r.Continue
	for {
		list, err := objects.List(ctx, metav1.ListOptions{Limit: pageLimit, Continue: token})
		if (apierrors.IsResourceExpired(err) || apierrors.IsGone(err)) && token != "" {
			token = ""
			continue
		}
		if err != nil {
			return page{}, err
		}
		items := list.Items
		if token != r.Continue || token == "" {
			items = after(items, r.After)
		}
		if token = list.GetContinue(); len(items) > 0 || token == "" {
			return page{items: items, token: token}, nil
		}
	}
}

// after drops the objects up to and including a namespace/name, in the order
// of the API server's lists.
func after(items []unstructured.Unstructured, last string) []unstructured.Unstructured {
	for len(items) > 0 && last != "" {
		key := Key{Namespace: items[0].GetNamespace(), Name: items[0].GetName()}
		if strings.Compare(key.String(), last) > 0 {
			break
		}
		items = items[1:]
	}
	return items
}

// objectField is the log field of a kind: "machine" for Machine.
func objectField(kindName string) string { return strings.ToLower(kindName) }
