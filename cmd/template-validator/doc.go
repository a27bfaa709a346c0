// Command template-validator is the validating webhook for Workloads and
// WorkloadTemplates: what cannot render is refused at the door. It is optional: the
// function workload-renderer makes the same checks.
//
// It is a Deployment that stays up, since an admission call cannot wait for a cold
// start. Its certificate, and the caBundle by which the API server knows it, come from
// knative.dev/pkg: the Secret is filled and renewed, the ValidatingWebhookConfiguration
// follows.
//
// Settings:
//
//	SYSTEM_NAMESPACE            its own namespace (required)
//	LISTEN_ADDRESS              where it listens ([::]:8443)
//	HEALTH_ADDRESS              where /readyz and /healthz are ([::]:8081)
//	WEBHOOK_SERVICE             name of its Service (template-validator)
//	WEBHOOK_SECRET              name of its Secret (template-validator-certs)
//	WEBHOOK_CONFIGURATION       name of its ValidatingWebhookConfiguration
//	                            (template-validator.slipway.dev)
//	RENDERER_…                  as for workload-renderer: _PUBLIC_NAMESPACES,
//	                            _ALLOWED_KINDS, _ALLOW_LOCAL_APPLY
package main
