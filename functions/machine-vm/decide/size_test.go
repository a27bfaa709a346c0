package decide

import (
	"fmt"
	"testing"

	"github.com/slipway-dev/slipway/functions/machine-vm/kinds"
)

const classes = `{apiVersion: vitistack.io/v1alpha1, kind: MachineClass, metadata: {name: %s}, spec: {enabled: %t, default: false, category: Standard, machineProviders: [], cpu: {cores: %d, threads: %d, sockets: %d}, memory: {quantity: %s}}}`

func TestSize(t *testing.T) {
	class := func(name string, enabled bool, cores, threads, sockets int, memory string) string {
		return fmt.Sprintf(classes, name, enabled, cores, threads, sockets, memory)
	}
	for name, c := range map[string]struct {
		reason  string
		spec    string
		objects []string
		want    string
		ready   string
	}{
		"SZ-1 small": {
			reason: "the template gives all four numbers", spec: `template: small`, want: "1 1 1 2Gi",
		},
		"SZ-1 medium": {reason: "the template gives all four numbers", spec: `template: medium`, want: "2 1 1 4Gi"},
		"SZ-1 large":  {reason: "the template gives all four numbers", spec: `template: large`, want: "4 1 1 8Gi"},
		"SZ-2 resources over template": {
			reason: "field by field", spec: `template: medium, resources: {cpu: {cores: 4}, memory: {size: 8Gi}}`, want: "4 1 1 8Gi",
		},
		"SZ-2 resources over cpu and memory": {
			reason: "the first spelling wins where both are given",
			spec:   `resources: {cpu: {cores: 3}}, cpu: {cores: 7, threadsPerCore: 2, sockets: 5}, memory: 1073741824`, want: "3 2 5 1Gi",
		},
		"SZ-2 class over instance type over template": {
			reason: "each fills what the one before leaves open",
			spec:   `machineClass: a, instanceType: b, template: large`,
			objects: []string{
				class("a", true, 0, 3, 0, "3Gi"), class("b", true, 6, 9, 0, "9Gi"),
			},
			want: "6 3 1 3Gi",
		},
		"SZ-3 unknown template": {
			reason: "a name must resolve", spec: `template: huge`, ready: "False TemplateNotFound",
		},
		"SZ-3 unknown template under an override": {
			reason: "also where a higher source makes it needless",
			spec:   `template: huge, resources: {cpu: {cores: 1, threads: 1, sockets: 1}, memory: {size: 1Gi}}`, ready: "False TemplateNotFound",
		},
		"SZ-3 unknown class": {reason: "a template does not stand in for a class", spec: `machineClass: small`, ready: "False TemplateNotFound"},
		"SZ-3 disabled class": {
			reason: "counts as not found", spec: `machineClass: a`,
			objects: []string{class("a", false, 1, 1, 1, "1Gi")}, ready: "False TemplateNotFound",
		},
		"SZ-3 instance type is a template": {
			reason: "when there is no class of the name", spec: `instanceType: medium`, want: "2 1 1 4Gi",
		},
		"SZ-3 instance type is a class": {
			reason: "a class goes before a template of the name", spec: `instanceType: small`,
			objects: []string{class("small", true, 5, 0, 0, "5Gi")}, want: "5 1 1 5Gi",
		},
		"SZ-3 instance type is a disabled class": {
			reason: "it does not fall through to the template", spec: `instanceType: small`,
			objects: []string{class("small", false, 5, 0, 0, "5Gi")}, ready: "False TemplateNotFound",
		},
		"SZ-3 foreign instance type": {reason: "upstream's samples have it", spec: `instanceType: t3.medium`, ready: "False TemplateNotFound"},
		"SZ-5 nothing named":         {reason: "the default", spec: ``, want: "2 1 1 2Gi"},
		"SZ-6 bytes are rounded down to mebibytes": {
			reason: "1 MiB and a half", spec: `memory: 1572864`, want: "2 1 1 1Mi",
		},
		"SZ-7 no memory":         {reason: "no guest can run", spec: `resources: {memory: {size: 0}}`, ready: "False InvalidSpec"},
		"SZ-7 one byte":          {reason: "no guest can run", spec: `resources: {memory: {size: 1}}`, ready: "False InvalidSpec"},
		"SZ-7 less than a Mi":    {reason: "rounded down to nothing", spec: `memory: 100`, ready: "False InvalidSpec"},
		"SZ-7 negative":          {reason: "no guest can run", spec: `resources: {memory: {size: "-1Gi"}}`, ready: "False InvalidSpec"},
		"SZ-7 too many cores":    {reason: "beyond what the API has room for", spec: `machineClass: a`, objects: []string{class("a", true, 5000000000, 1, 1, "1Gi")}, ready: "False InvalidSpec"},
		"an unreadable quantity": {reason: "the schema's pattern lets it pass", spec: `resources: {memory: {size: "1e1.5"}}`, ready: "False InvalidSpec"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.objects...)
			w.machine(c.spec)
			w.reconcile("web")
			if c.ready != "" {
				sees(t, "Ready ("+c.reason+")", w.ready("web"), c.ready)
				if len(w.all(kinds.VirtualMachines, "")) > 0 {
					t.Errorf("a virtual machine was made from a wrong spec (%s)", c.reason)
				}
				return
			}
			domain := at(w.must(kinds.VirtualMachines, "vm-web").Object, "spec", "template", "spec", "domain").(map[string]any)
			got := fmt.Sprint(at(domain, "cpu", "cores"), " ", at(domain, "cpu", "threads"), " ", at(domain, "cpu", "sockets"), " ", at(domain, "memory", "guest"))
			sees(t, "the size ("+c.reason+")", got, c.want)
		})
	}
}
