package decide

import (
	"fmt"
	"math"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/vitistack/v1alpha1"
	"github.com/slipway-dev/slipway/shared/plan"
)

// template is a built-in size with its root disk.
type template struct {
	name     string
	cores    int64
	memory   string
	rootDisk string
}

// templates are the built-in sizes, smallest first.
var templates = []template{
	{name: "small", cores: 1, memory: "2Gi", rootDisk: "20Gi"},
	{name: "medium", cores: 2, memory: "4Gi", rootDisk: "40Gi"},
	{name: "large", cores: 4, memory: "8Gi", rootDisk: "80Gi"},
}

// Sizes of a Machine that names none, and the storage class word of the
// templates' root disks.
const (
	defaultCores  = 2
	defaultMemory = "2Gi"
	defaultClass  = "default"
)

// count is one number of processors and whether the Machine stated it.
type count struct {
	value  int64
	stated bool
}

// size is what a Machine's guest gets.
type size struct {
	cores, threads, sockets count
	memory                  resource.Quantity
	memoryStated            bool
	// template is the built-in template that a name resolved to; nil if none.
	template *template
}

// level is one source of sizes, unset where zero.
type level struct {
	cores, threads, sockets int64
	memory                  *resource.Quantity
}

// resolveSize finds the size, field by field from the first source that has
// one. Every name that is given must resolve.
func (v *view) resolveSize() {
	spec := v.machine.Spec
	levels := []level{
		{int64(spec.Resources.CPU.Cores), int64(spec.Resources.CPU.Threads), int64(spec.Resources.CPU.Sockets), spec.Resources.Memory.Size},
		{int64(spec.CPU.Cores), int64(spec.CPU.ThreadsPerCore), int64(spec.CPU.Sockets), wholeMebibytes(spec.Memory)},
	}
	if spec.MachineClass != "" {
		levels = append(levels, v.classLevel("spec.machineClass", spec.MachineClass))
	}
	if spec.InstanceType != "" {
		levels = append(levels, v.instanceTypeLevel(spec.InstanceType))
	}
	if spec.Template != "" {
		found := templateNamed(spec.Template)
		if found == nil {
			v.problem(templateNotFound("spec.template", spec.Template, "there is no such template: use "+templateNames()))
		}
		levels = append(levels, v.templateLevel(found))
	}
	v.size.cores = pick(levels, defaultCores, func(l level) int64 { return l.cores })
	v.size.threads = pick(levels, 1, func(l level) int64 { return l.threads })
	v.size.sockets = pick(levels, 1, func(l level) int64 { return l.sockets })
	v.size.memory = resource.MustParse(defaultMemory)
	for _, l := range levels {
		if l.memory != nil {
			v.size.memory, v.size.memoryStated = *l.memory, true
			break
		}
	}
	v.checkSize()
}

func pick(levels []level, fallback int64, field func(level) int64) count {
	for _, l := range levels {
		if n := field(l); n != 0 {
			return count{value: n, stated: true}
		}
	}
	return count{value: fallback}
}

// checkSize refuses what KubeVirt would accept and no guest could run with.
func (v *view) checkSize() {
	least := resource.MustParse("1Mi")
	if v.size.memory.Cmp(least) < 0 {
		v.problem(invalid(PartSize, fmt.Sprintf("the guest memory is %s: give at least 1Mi in spec.resources.memory.size", v.size.memory.String())))
	}
	for _, c := range []struct {
		field string
		value int64
	}{{"cores", v.size.cores.value}, {"threads", v.size.threads.value}, {"sockets", v.size.sockets.value}} {
		if c.value < 1 || c.value > math.MaxInt32 {
			v.problem(invalid(PartSize, fmt.Sprintf("the number of %s is %d: give at least 1 in spec.resources.cpu.%s", c.field, c.value, c.field)))
		}
	}
}

// wholeMebibytes is an amount of bytes, rounded down; nil for none.
func wholeMebibytes(bytes int64) *resource.Quantity {
	if bytes == 0 {
		return nil
	}
	const mebi = 1 << 20
	return resource.NewQuantity(bytes/mebi*mebi, resource.BinarySI)
}

func templateNamed(name string) *template {
	for i := range templates {
		if templates[i].name == name {
			return &templates[i]
		}
	}
	return nil
}

func templateNames() string {
	names := make([]string, 0, len(templates))
	for _, t := range templates {
		names = append(names, t.name)
	}
	return strings.Join(names, ", ")
}

// templateLevel is a template as a source. The first template that resolves
// also gives the root disk.
func (v *view) templateLevel(t *template) level {
	if t == nil {
		return level{}
	}
	if v.size.template == nil {
		v.size.template = t
	}
	memory := resource.MustParse(t.memory)
	return level{cores: t.cores, threads: 1, sockets: 1, memory: &memory}
}

// classLevel is a MachineClass as a source.
func (v *view) classLevel(field, name string) level {
	class := find(v.in.Classes, name)
	if class == nil {
		v.problem(templateNotFound(field, name, "there is no such MachineClass"))
		return level{}
	}
	return v.fromClass(field, class)
}

// instanceTypeLevel is a MachineClass, or else the template, of a name.
func (v *view) instanceTypeLevel(name string) level {
	const field = "spec.instanceType"
	if class := find(v.in.Classes, name); class != nil {
		return v.fromClass(field, class)
	}
	found := templateNamed(name)
	if found == nil {
		v.problem(templateNotFound(field, name, "there is no such MachineClass or template: use one of the templates "+templateNames()))
	}
	return v.templateLevel(found)
}

func (v *view) fromClass(field string, obj *unstructured.Unstructured) level {
	class, err := plan.Typed[v1alpha1.MachineClass](obj)
	if err != nil {
		v.problem(templateNotFound(field, obj.GetName(), "the MachineClass cannot be read: "+err.Error()))
		return level{}
	}
	if !class.Spec.Enabled {
		v.problem(templateNotFound(field, obj.GetName(), "the MachineClass is disabled"))
		return level{}
	}
	cpu := class.Spec.CPU
	return level{
		cores: bounded(cpu.Cores), threads: bounded(cpu.Threads), sockets: bounded(cpu.Sockets),
		memory: &class.Spec.Memory.Quantity,
	}
}

func bounded(n uint) int64 { return int64(min(uint64(n), math.MaxInt64)) } //nolint:gosec // bounded by min

func templateNotFound(field, value, why string) Problem {
	return Problem{
		Part: PartSize, Reason: v1alpha1.ReasonTemplateNotFound,
		Message: fmt.Sprintf("%s %q cannot be found: %s", field, value, why),
	}
}
