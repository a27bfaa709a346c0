// Package commands runs kubectl-slipway's commands on a real API server, as a person
// with a kubeconfig.
package commands

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/deploy/local/build"
	"github.com/slipway-dev/slipway/deploy/local/crds"
	machinevm "github.com/slipway-dev/slipway/functions/machine-vm"
	"github.com/slipway-dev/slipway/functions/machine-vm/kinds"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/reconcile"
	"github.com/slipway-dev/slipway/shared/record"
	"github.com/slipway-dev/slipway/test/suite"
)

var suit = suite.New(suite.Options{
	Specs: []reconcile.Spec{machinevm.DefaultSpec()}, CRDs: []string{crds.KubeVirt, crds.CDI, crds.Multus},
	Files: []string{"api/vitistack/crds"}, StorageClasses: true, Partial: true,
	Kinds: []kind.Resource{kinds.Machines, kinds.VirtualMachines, kinds.VirtualMachineInstances, kind.PersistentVolumeClaims, kind.Secrets, kinds.NetworkConfigurations},
})

func TestMain(m *testing.M) { os.Exit(suit.Main(m)) }

// canary is in the Machine's cloud-init.
const canary = "canary-5d0c77e1-password"

const machine = `{apiVersion: vitistack.io/v1alpha1, kind: Machine, metadata: {name: web}, spec: {template: large,
  cloudInit: {userData: "#cloud-config\npassword: ` + canary + `\n"}}}`

// said is what the command printed, and its exit code.
type said struct {
	text string
	code int
}

type person struct {
	t          *testing.T
	w          *suite.World
	kubeconfig string
}

func (p person) slipway(args ...string) said {
	p.t.Helper()
	root, err := build.Root(".")
	if err != nil {
		p.t.Fatal(err)
	}
	if err := build.Binaries(p.t.Context(), build.Options{Root: root, Out: os.Stderr}, "kubectl-slipway"); err != nil {
		p.t.Fatal(err)
	}
	cmd := exec.CommandContext(p.t.Context(), filepath.Join(root, filepath.FromSlash(build.DefaultBin), "kubectl-slipway"), append(args, "-n", p.w.NS)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+p.kubeconfig)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		p.t.Fatal(err)
	}
	if strings.Contains(out.String(), canary) {
		p.t.Errorf("%v shows a secret:\n%s", args, &out)
	}
	return said{text: out.String(), code: cmd.ProcessState.ExitCode()}
}

// wants checks an exit code and what was said.
func (p person) wants(got said, code int, texts ...string) {
	p.t.Helper()
	for _, text := range texts {
		if !strings.Contains(got.text, text) {
			p.t.Errorf("it does not say %q:\n%s", text, got.text)
		}
	}
	if got.code != code {
		p.t.Errorf("the exit code is %d, want %d:\n%s", got.code, code, got.text)
	}
}

func TestWhatWouldBeDoneIsShownAndNotDone(t *testing.T) {
	w := suit.World(t)
	admin, err := w.Env.Cluster.AdminKubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	p := person{t: t, w: w, kubeconfig: filepath.Join(dir, "kubeconfig")}
	for path, content := range map[string]string{p.kubeconfig: string(admin), filepath.Join(dir, "machine.yaml"): machine} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before := strings.Join(w.Names(), " ")
	p.wants(p.slipway("plan", "-f", filepath.Join(dir, "machine.yaml"), "--function", "machine-vm"), 2, "create virtualmachines.kubevirt.io", "would be written", "Nothing was written")
	if after := strings.Join(w.Names(), " "); after != before {
		t.Errorf("a plan has written:\n%s\n%s", before, after)
	}

	kept := &record.Directory{Path: filepath.Join(dir, "recordings"), Function: machinevm.Name}
	recorder := record.New(record.Policy{All: true, Sample: 1, MaxBytes: record.MaxSize}, slog.New(slog.DiscardHandler), kept)
	settings, err := machinevm.ParseSettings(func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	f := suite.Run(w, machinevm.Declare(settings), suite.WithOptions(func(o *reconcile.Options) { o.Recorder = recorder }))
	w.Create(machine)
	f.Insist(w.Event(kinds.Machines, "web"))
	f.Insist(w.Event(kinds.Machines, "web"))
	recorder.Close(t.Context())
	if strings.Contains(f.Log.String(), canary) {
		t.Error("the log holds a secret")
	}
	headers, err := record.Headers(dir, record.Filter{})
	if err != nil || len(headers) != 2 || headers[0].WriteCount == 0 {
		t.Fatalf("%+v, %v", headers, err)
	}
	for _, h := range headers {
		path, err := record.Find(dir, h.ID)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil || bytes.Contains(text, []byte(canary)) {
			t.Errorf("the recording holds a secret, or cannot be read: %v", err)
		}
		p.wants(p.slipway("replay", path), 0, "byte for byte")
	}
	versions := w.Versions()
	p.wants(p.slipway("plan", "machine/web", "--function", "machine-vm"), 0, "Nothing was written")
	p.wants(p.slipway("replay", headers[0].ID, "--from", dir, "--live"), 0, "This is what the live cluster asks for now (mode plan)")
	w.Remove(kinds.VirtualMachines, "vm-web")
	p.wants(p.slipway("plan", "machine/web", "--function", "machine-vm"), 2, "create virtualmachines.kubevirt.io")
	p.wants(p.slipway("replay", headers[0].ID, "--from", dir, "--live"), 2, "would be written")
	for name, version := range w.Versions() {
		if versions[name] != version {
			t.Errorf("%s was written", name)
		}
	}
	p.wants(p.slipway("explain", "machine/web", "--from", dir), 0, "machine-vm reconciles it", "Who owns which field", "slipway-machine-vm", "Last reconciles", headers[1].ID)
	p.wants(p.slipway("events", "machine/web", "--from", dir, "-o", "wide"), 0, headers[0].ID, "created virtualmachines.kubevirt.io")
	p.wants(p.slipway("replay", headers[0].ID, "--from", dir, "--live", "--mode", "apply"), 2, "create virtualmachines.kubevirt.io")
	w.Must(kinds.VirtualMachines, "vm-web")
	p.wants(p.slipway("plan", "machine/nowhere"), 1, `cannot find Machine "nowhere"`)
	p.wants(p.slipway("explain", "nonsense/x"), 1, `cannot find kind "nonsense"`)
}
