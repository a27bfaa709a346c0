package stack

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestThePrinterTellsEachThingInOneLine(t *testing.T) {
	input := strings.Join([]string{
		`{"kind":"ready","ingress":"http://127.0.0.1:1"}`,
		`{"kind":"event","type":"dev.knative.apiserver.ref.add","objectKind":"Machine","namespace":"default","name":"web","trigger":"machine-vm","status":204,"durationMs":35.2,"attempt":1}`,
		`{"kind":"event","type":"dev.slipway.resync","trigger":"machine-vm","status":503,"durationMs":1,"attempt":2}`,
		`{"kind":"deadletter","type":"dev.slipway.resync","trigger":"machine-vm","status":400,"reason":"cannot read","delivered":true}`,
		`{"kind":"deadletter","type":"dev.slipway.resync","trigger":"machine-vm","status":400,"reason":"cannot read"}`,
		`{"kind":"function","name":"machine-vm","state":"ready","durationMs":25,"pid":7}`,
		`{"kind":"function","name":"machine-vm","state":"crashed","error":"exit status 2"}`,
		`{"kind":"log","function":"machine-vm","line":{"level":"info","message":"created virtualmachines.kubevirt.io default/vm-web","reason":"it is missing"}}`,
		`{"kind":"log","function":"machine-vm","line":{"level":"debug","message":"reconciled","controller":"Machine","machine":"web","namespace":"default","outcome":"done","reason":"Running","writes":0,"reads":9,"durationMs":12.5}}`,
		`{"kind":"log","function":"machine-vm","line":{"level":"debug","message":"event","kind":"Machine"}}`,
		`{"kind":"log","function":"machine-vm","line":{"level":"warn","message":"cannot reconcile","error":"no route"}}`,
		`{"kind":"log","function":"machine-vm","line":"panic: oh"}`,
		`no JSON at all`,
	}, "\n")
	out, readied := &bytes.Buffer{}, 0
	p := &Printer{Out: out, Now: func() time.Time { return time.Unix(0, 0).UTC() }}
	p.Copy(strings.NewReader(input), func([]byte) { readied++ })
	var got []string
	for line := range strings.Lines(out.String()) {
		got = append(got, strings.Join(strings.Fields(line)[1:], " "))
	}
	want := []string{
		"event machine-vm add Machine default/web -> 204 in 35 ms",
		"event machine-vm resync -> 503 in 1 ms (attempt 2)",
		"DEAD machine-vm resync is kept in the archive: 400 cannot read",
		"DEAD machine-vm resync is lost: the archive did not take it: 400 cannot read",
		"process machine-vm ready 25 ms after its start (pid 7)",
		"process machine-vm crashed: exit status 2",
		"write machine-vm created virtualmachines.kubevirt.io default/vm-web (it is missing)",
		"reconcile machine-vm default/web done (Running): 0 writes, 9 reads, 12.5 ms",
		"warn machine-vm cannot reconcile: no route",
		"log machine-vm panic: oh",
		"log eventing no JSON at all",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if readied != 1 {
		t.Errorf("ready was told %d times", readied)
	}
}
