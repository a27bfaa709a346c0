package clustercheck

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"

	"github.com/slipway-dev/slipway"
	clustercheck "github.com/slipway-dev/slipway/functions/cluster-check"
	"github.com/slipway-dev/slipway/functions/cluster-check/kinds"
	machinevm "github.com/slipway-dev/slipway/functions/machine-vm"
	"github.com/slipway-dev/slipway/shared/event"
	"github.com/slipway-dev/slipway/test/suite"
)

// root: the whole set as one function, as `kn func deploy` at the root makes it. A
// KubevirtConfig wakes machine-vm as well as cluster-check.
func (s *scene) root() {
	admin, err := s.management.Env.Cluster.AdminKubeconfig()
	if err != nil {
		s.t.Fatal(err)
	}
	path := filepath.Join(s.t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, admin, 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.t.Setenv("KUBECONFIG", path)
	s.t.Setenv("HEALTH_LISTEN_ADDRESS", "127.0.0.1:0")
	s.kubevirt(s.remote, "True")
	s.config(east, s.good)
	whole := slipway.New()
	if err := whole.Start(s.t.Context(), nil); err != nil {
		s.t.Fatal(err)
	}
	defer func() {
		if err := whole.Stop(context.WithoutCancel(s.t.Context())); err != nil {
			s.t.Error(err)
		}
	}()
	send := func(ce cloudevents.Event) int {
		_, err := whole.Handle(s.t.Context(), ce)
		var result *cehttp.Result
		if !errors.As(err, &result) {
			return 0
		}
		return result.StatusCode
	}
	for name, c := range map[string]struct {
		event cloudevents.Event
		want  int
	}{
		"a KubevirtConfig":         {s.event(east), http.StatusNoContent},
		"a cluster that came":      {suite.Cluster(event.TypeConnected, east), http.StatusNoContent},
		"a resync of one":          {event.Next(event.Resync{Function: clustercheck.Name}, "r", time.Now()), http.StatusNoContent},
		"a resync of another":      {event.Next(event.Resync{Function: machinevm.Name}, "r", time.Now()), http.StatusNoContent},
		"a resync of nobody":       {event.Next(event.Resync{Function: "nobody"}, "r", time.Now()), http.StatusBadRequest},
		"a kind that wakes nobody": {suite.Changed("update", "example.com/v1", "Thing", "default", "a"), http.StatusBadRequest},
	} {
		if got := send(c.event); got != c.want {
			s.t.Errorf("%s is answered %d, want %d", name, got, c.want)
		}
	}
	if got := told(s.management.Must(kinds.KubevirtConfigs, east)); got != well {
		s.t.Errorf("the KubevirtConfig is %s", got)
	}
	if ready, err := whole.Ready(s.t.Context()); !ready || err != nil {
		s.t.Errorf("ready: %v, %v", ready, err)
	}
	var names []string
	for _, spec := range whole.Specs() {
		names = append(names, spec.Name)
	}
	if all := strings.Join(names, " "); !strings.Contains(all, clustercheck.Name) || !strings.Contains(all, machinevm.Name) {
		s.t.Errorf("hosted are %s", all)
	}
}
