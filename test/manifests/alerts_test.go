package manifests

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/shared/plan"
	"github.com/slipway-dev/slipway/shared/telemetry"
)

// TestAlertsAskForMetricsThatThereAre: an alert on a name that nobody exports never
// fires.
func TestAlertsAskForMetricsThatThereAre(t *testing.T) {
	p := start(t)
	metrics, err := telemetry.New(t.Context(), "machine-vm")
	if err != nil {
		t.Fatal(err)
	}
	metrics.Reconciled(t.Context(), string(plan.Retry), "Reason", time.Second, 1)
	metrics.Wrote("applied", "machines")
	metrics.Received(t.Context(), "dev.slipway.resync", http.StatusBadRequest)
	answer := httptest.NewRecorder()
	metrics.Handler().ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	exported := answer.Body.String()

	name := regexp.MustCompile(`slipway_[a-z_]+`)
	label := regexp.MustCompile(`\{([a-z]+)(=~|!=|=)"([^"]*)"`)
	found := 0
	for _, obj := range p.render("deploy/overlays/monitored") {
		if obj.GetKind() != "PrometheusRule" {
			continue
		}
		groups, _, _ := unstructured.NestedSlice(obj.Object, "spec", "groups")
		for _, group := range groups {
			rules, _, _ := unstructured.NestedSlice(group.(map[string]any), "rules")
			for _, rule := range rules {
				expr := rule.(map[string]any)["expr"].(string)
				for _, metric := range name.FindAllString(expr, -1) {
					found++
					if !strings.Contains(exported, "\n"+metric+"{") {
						t.Errorf("nobody exports %s", metric)
					}
				}
				for _, match := range label.FindAllStringSubmatch(expr, -1) {
					if !strings.Contains(exported, match[1]+`="`) {
						t.Errorf("%s: no metric has the label %s", expr, match[1])
					}
					if match[2] == "=" && !strings.Contains(exported, match[1]+`="`+match[3]+`"`) {
						t.Errorf("%s: the label %s is never %q", expr, match[1], match[3])
					}
				}
			}
		}
	}
	if found == 0 {
		t.Error("there are no alerts")
	}
}
