package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// run runs a command line and returns what it printed.
func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	out := &bytes.Buffer{}
	cmd := newCommand(out)
	cmd.SetArgs(args)
	cmd.SetErr(io.Discard)
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

// broker plays the ingress and keeps the headers of what it was sent.
func broker(t *testing.T, status int) (string, *[]http.Header) {
	t.Helper()
	var got []http.Header
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Clone())
		w.WriteHeader(status)
	}))
	t.Cleanup(server.Close)
	return server.URL, &got
}

func TestResyncSendsOneEventForEachNamedFunction(t *testing.T) {
	url, got := broker(t, http.StatusAccepted)
	out, err := run(t, "resync", "machine-vm", "--broker", url)
	if err != nil || !strings.Contains(out, "resync of machine-vm asked for") {
		t.Fatalf("%v: %s", err, out)
	}
	if len(*got) != 1 {
		t.Fatalf("%d events were sent", len(*got))
	}
	sent := map[string]string{}
	for _, name := range []string{"Ce-Specversion", "Ce-Type", "Ce-Function", "Ce-Source"} {
		sent[name] = (*got)[0].Get(name)
	}
	want := map[string]string{
		"Ce-Specversion": "1.0", "Ce-Type": "dev.slipway.resync", "Ce-Function": "machine-vm",
		"Ce-Source": "/slipway/functions/machine-vm",
	}
	if diff := cmp.Diff(want, sent); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestResyncOfNoneNamedIsOfAll(t *testing.T) {
	url, got := broker(t, http.StatusAccepted)
	if out, err := run(t, "resync", "--broker", url, "-o", "json"); err != nil || !json.Valid([]byte(out)) {
		t.Fatalf("want JSON, got %v: %s", err, out)
	}
	if len(*got) != len(functionNames()) {
		t.Errorf("%d events for %d functions", len(*got), len(functionNames()))
	}
}

func TestErrorsNameTheValueAndTheWayOut(t *testing.T) {
	refusing, _ := broker(t, http.StatusTooManyRequests)
	cases := map[string]struct {
		reason string
		args   []string
		want   string
	}{
		"UnknownFunction": {"a typo must not ask nobody for nothing", []string{"resync", "machine-vn", "--broker", refusing}, `function "machine-vn": there are baseline-applier, cluster-anchor, `},
		"BrokerRefuses":   {"what the broker said is passed on", []string{"resync", "--broker", refusing}, "429"},
		"NoBroker":        {"a broker that is not there is named", []string{"resync", "--broker", "http://127.0.0.1:1"}, "cannot reach the broker"},
		"UnknownFormat":   {"the formats are named", []string{"functions", "-o", "xml"}, `"xml": use -o json or -o yaml`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := run(t, tc.args...); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: want an error with %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
}

func TestFunctionsAreListedInEveryFormat(t *testing.T) {
	table, err := run(t, "functions")
	if err != nil || !strings.Contains(table, "machine-vm") || !strings.Contains(table, "machines.vitistack.io") {
		t.Errorf("%v: %s", err, table)
	}
	text, err := run(t, "functions", "-o", "json")
	var rows []functionRow
	if err != nil || json.Unmarshal([]byte(text), &rows) != nil || len(rows) != len(functionNames()) {
		t.Errorf("%v: %s", err, text)
	}
	if text, err = run(t, "functions", "-o", "yaml"); err != nil || !strings.Contains(text, "name: machine-vm") {
		t.Errorf("%v: %s", err, text)
	}
}

func TestKubectlAsksForCompletionsUnderAnotherName(t *testing.T) {
	out, err := run(t, arguments([]string{"/usr/bin/kubectl_complete-slipway", "events", "--function", ""})...)
	if err != nil || !strings.Contains(out, "machine-vm") {
		t.Errorf("%v: %s", err, out)
	}
	if got := arguments([]string{"/usr/bin/kubectl-slipway", "events"}); len(got) != 1 || got[0] != "events" {
		t.Errorf("the arguments are %v", got)
	}
}

func TestFunctionNamesAreCompleted(t *testing.T) {
	out, err := run(t, "__complete", "resync", "")
	if err != nil || !strings.Contains(out, "machine-vm") {
		t.Errorf("%v: %s", err, out)
	}
}
