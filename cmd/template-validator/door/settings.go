package door

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/render"
)

// Settings are the whole environment.
type Settings struct {
	namespace, service, secret, configuration string
	listen, health                            string
	public                                    []string
	configMapNamespace, configMapName         string
	rules                                     render.Rules
}

// ParseSettings reads the environment. A value that cannot be used is an error that says
// which.
func ParseSettings(lookup func(string) (string, bool)) (Settings, error) {
	get := func(name, fallback string) string {
		value, _ := lookup(name)
		return cmp.Or(value, fallback)
	}
	s := Settings{
		namespace: get("SYSTEM_NAMESPACE", ""), service: get("WEBHOOK_SERVICE", "template-validator"),
		secret: get("WEBHOOK_SECRET", "template-validator-certs"), configuration: get("WEBHOOK_CONFIGURATION", "template-validator.slipway.dev"),
		listen: get("LISTEN_ADDRESS", "[::]:8443"), health: get("HEALTH_ADDRESS", "[::]:8081"), rules: render.DefaultRules(),
	}
	for name, value := range map[string]string{
		"SYSTEM_NAMESPACE": s.namespace, "WEBHOOK_SERVICE": s.service, "WEBHOOK_SECRET": s.secret, "WEBHOOK_CONFIGURATION": s.configuration,
	} {
		if len(validation.IsDNS1123Subdomain(value)) > 0 {
			return s, fmt.Errorf("cannot use environment variable %s=%q: it has to be an object's name", name, value)
		}
	}
	common, err := dockyards.ParseSettings(func(name string) (string, bool) {
		if name != "CONFIG_MAP" && name != "DOCKYARDS_NAMESPACE" {
			return "", false
		}
		return lookup(name)
	})
	if err != nil {
		return s, err
	}
	s.configMapNamespace, s.configMapName = common.ConfigMapNamespace, common.ConfigMapName
	for item := range strings.SplitSeq(get("RENDERER_PUBLIC_NAMESPACES", "dockyards-public"), ",") {
		if item = strings.TrimSpace(item); item != "" {
			s.public = append(s.public, item)
		}
	}
	if s.rules.Allowed, err = render.ParseAllowed(get("RENDERER_ALLOWED_KINDS", render.FormatAllowed(render.DefaultAllowed()))); err != nil {
		return s, fmt.Errorf("cannot use environment variable RENDERER_ALLOWED_KINDS: %w", err)
	}
	local := get("RENDERER_ALLOW_LOCAL_APPLY", "false")
	if s.rules.LocalApply, err = strconv.ParseBool(local); err != nil {
		return s, fmt.Errorf("cannot use environment variable RENDERER_ALLOW_LOCAL_APPLY=%q: allowed is true or false", local)
	}
	return s, nil
}
