package machinevm

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-dev/slipway/functions/machine-vm/kinds"
	"github.com/slipway-dev/slipway/shared/kind"
	kubetest "github.com/slipway-dev/slipway/test/kube"
	"github.com/slipway-dev/slipway/test/suite"
)

// canary stands for everything that is secret.
const canary = "canary-7f3a-never-log-me"

// talkative is a server whose refusals quote what they were sent: as a whole, value
// by value, and decoded.
func talkative(verb, resource string, code int) suite.Tap {
	return func(c suite.Call) (*http.Response, error) {
		if c.Verb != verb || c.Resource != resource {
			return nil, nil
		}
		body, err := io.ReadAll(c.HTTP.Body)
		if err != nil {
			return nil, err
		}
		var sent any
		if err := json.Unmarshal(body, &sent); err != nil {
			return nil, err
		}
		message := fmt.Sprintf("admission refuses %s, that is %q:", body, body)
		suite.EachString(sent, func(value string) string {
			message += fmt.Sprintf(" %s, %q;", value, value)
			if decoded, err := base64.StdEncoding.DecodeString(value); err == nil {
				message += fmt.Sprintf(" %s, %q;", decoded, decoded)
			}
			return value
		})
		return kubetest.Answer(c.HTTP, code, metav1.StatusReasonInvalid, message), nil
	}
}

// TestNoSecretLeavesItsPlace runs Machines whose cloud-init holds a canary through
// creation, change, refusal and deletion.
func TestNoSecretLeavesItsPlace(t *testing.T) {
	encoded := base64.StdEncoding.EncodeToString([]byte("#cloud-config\npassword: " + canary + "\n"))
	type secret struct{ name, spec string }
	secrets := []secret{
		{"FromASecret", `{template: small, cloudInit: {secretRef: {name: source}}}`},
		{"Inline", `{template: small, cloudInit: {userData: "#cloud-config\npassword: ` + canary + `\n", networkData: "x: ` + canary + `"}}`},
		{"Base64", `{template: small, cloudInit: {userDataBase64: "` + encoded + `"}}`},
		{"BrokenBase64", `{template: small, cloudInit: {userDataBase64: "` + canary + `%%"}}`},
		{"Long", `{template: small, cloudInit: {userData: "` + strings.Repeat(canary+" ", 200) + `"}}`},
		{"Unused", `{template: small, userData: "` + canary + `"}`},
	}
	taps := map[string]suite.Tap{
		"Accepted":       nil,
		"RefusedMachine": talkative("create", kinds.VirtualMachines.Plural, http.StatusUnprocessableEntity),
		"RefusedSecret":  talkative("create", kind.Secrets.Plural, http.StatusUnprocessableEntity),
		"FailingSecret":  talkative("create", kind.Secrets.Plural, http.StatusInternalServerError),
		"RefusedChange":  talkative("patch", kinds.VirtualMachines.Plural, http.StatusUnprocessableEntity),
		"RefusedRecord":  talkative("create", kinds.NetworkConfigurations.Plural, http.StatusUnprocessableEntity),
	}
	suite.Each(t, secrets, func(s secret) string { return s.name }, func(t *testing.T, s secret) {
		for title, tap := range taps {
			t.Run(title, func(t *testing.T) {
				w := newWorld(t)
				w.Create(`{apiVersion: v1, kind: Secret, metadata: {name: source}, stringData: {userdata: "#cloud-config\npassword: ` + canary + `\n"}}`)
				w.machine(subject, s.spec)
				f := w.copyOf(suite.WithTap(tap))
				f.Send(w.machineEvent(subject))
				w.Patch(kinds.Machines, subject, `{spec: {resources: {cpu: {cores: 2}}}}`)
				f.Send(w.machineEvent(subject))
				w.hides(f)
				w.Remove(kinds.Machines, subject)
				f.Send(w.machineEvent(subject))
				w.hides(f)
			})
		}
	})
}

var events = schema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: "events"}

// hides looks for the canary where it must not be: in the log, in Events, in any
// status or annotation, and in every object but those that have to hold it.
func (w *world) hides(f *suite.Copy) {
	w.t.Helper()
	forms := []string{canary, base64.StdEncoding.EncodeToString([]byte(canary))[:20], base64.StdEncoding.EncodeToString([]byte("#cloud-config\npassword: " + canary + "\n"))}
	leaks := func(where, text string) {
		w.t.Helper()
		for _, form := range forms {
			if at := strings.Index(text, form); at >= 0 {
				w.t.Errorf("the secret is in %s: …%s…", where, text[max(0, at-200):min(len(text), at+60)])
				return
			}
		}
	}
	leaks("the log", f.Log.String())
	list, err := w.Client.Resource(events).Namespace(w.NS).List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	for i := range list.Items {
		leaks("an Event", suite.Bytes(w.t, &list.Items[i]))
	}
	holders := []string{"Secret", kinds.Machines.Kind, kinds.VirtualMachines.Kind}
	for key, obj := range w.Objects() {
		if !slices.Contains(holders, obj.GetKind()) {
			leaks(key, suite.Bytes(w.t, obj))
			continue
		}
		leaks("the metadata of "+key, suite.Bytes(w.t, obj, "metadata"))
		leaks("the status of "+key, suite.Bytes(w.t, obj, "status"))
	}
}

// TestSecretDataNeverStandsInTheVirtualMachine shows that data from a Secret goes
// into a Secret.
func TestSecretDataNeverStandsInTheVirtualMachine(t *testing.T) {
	w := newWorld(t)
	w.Create(`{apiVersion: v1, kind: Secret, metadata: {name: source}, stringData: {userdata: "` + canary + `"}}`)
	w.machine(subject, `{template: small, cloudInit: {secretRef: {name: source}}}`)
	f := w.copyOf()
	f.Insist(w.machineEvent(subject))
	vm := suite.Bytes(t, w.Must(kinds.VirtualMachines, "vm-web"))
	if strings.Contains(vm, canary) || strings.Contains(vm, base64.StdEncoding.EncodeToString([]byte(canary))) {
		t.Error("the virtual machine shows what came from a Secret")
	}
	held := func() string {
		t.Helper()
		raw, err := base64.StdEncoding.DecodeString(suite.Text(w.Must(kind.Secrets, "web-cloudinit"), "data", "userdata"))
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	if got := held(); got != canary {
		t.Errorf("the Secret beside the virtual machine holds %q", got)
	}
	// It follows its source.
	w.Patch(kind.Secrets, "source", `{stringData: {userdata: "next-`+canary+`"}}`)
	f.Insist(w.Event(kind.Secrets, "source"))
	if got := held(); got != "next-"+canary {
		t.Errorf("the source has changed, and the Secret beside the virtual machine holds %q", got)
	}
	w.hides(f)
}
