package main

const demoDefinitions = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.demo.slipway.dev}
spec:
  group: demo.slipway.dev
  scope: Namespaced
  names: {kind: Widget, plural: widgets, singular: widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// oddDefinition has a plural that an ApiServerSource would guess wrong, and
// serves its second version only.
const oddDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: odd-gateways.late.slipway.dev}
spec:
  group: late.slipway.dev
  scope: Namespaced
  names: {kind: OddGateway, plural: odd-gateways, singular: odd-gateway, listKind: OddGatewayList}
  versions:
  - name: v2
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

const adapterConfig = `
sink: http://broker-ingress.knative-eventing.svc.cluster.local/demo/default
resources:
- {group: late.slipway.dev, versions: [v1, v2], resource: odd-gateways, kind: OddGateway}
`

const manifests = `
apiVersion: v1
kind: Namespace
metadata: {name: demo}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: source, namespace: demo}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: echo, namespace: demo}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: demo}
data: {greeting: hello}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: source}
rules:
- {apiGroups: [demo.slipway.dev], resources: [widgets], verbs: [get, list, watch]}
- {apiGroups: [late.slipway.dev], resources: [odd-gateways], verbs: [list, watch]}
- {apiGroups: [apiextensions.k8s.io], resources: [customresourcedefinitions], verbs: [list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: source}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: source}
subjects: [{kind: ServiceAccount, name: source, namespace: demo}]
---
apiVersion: serving.knative.dev/v1
kind: Service
metadata: {name: echo, namespace: demo}
spec:
  template:
    spec:
      containerConcurrency: 4
      serviceAccountName: echo
      containers:
      - image: ko://example.com/functions/echo/cmd
        env:
        - {name: EVENTING_TEST_ROLE, value: echo}
        - {name: OBEDIENT, value: "true"}
        - name: GREETING
          valueFrom: {configMapKeyRef: {name: settings, key: greeting}}
---
apiVersion: serving.knative.dev/v1
kind: Service
metadata: {name: archive, namespace: demo}
spec:
  template:
    spec:
      serviceAccountName: echo
      containers:
      - image: registry.example.com:5000/echo:v1
        env: [{name: EVENTING_TEST_ROLE, value: echo}]
---
apiVersion: serving.knative.dev/v1
kind: Service
metadata: {name: missing, namespace: demo}
spec:
  template: {spec: {containers: [{image: ko://example.com/functions/missing/cmd}]}}
---
apiVersion: serving.knative.dev/v1
kind: Service
metadata: {name: disabled, namespace: demo, annotations: {slipway.dev/disabled: "true"}}
spec:
  template: {spec: {containers: [{image: ko://example.com/functions/echo/cmd}]}}
---
apiVersion: eventing.knative.dev/v1
kind: Broker
metadata: {name: default, namespace: demo}
spec:
  delivery:
    retry: 2
    backoffPolicy: exponential
    backoffDelay: PT0.1S
    timeout: PT5S
    deadLetterSink: {ref: {apiVersion: serving.knative.dev/v1, kind: Service, name: archive}}
---
apiVersion: eventing.knative.dev/v1
kind: Trigger
metadata: {name: widgets, namespace: demo}
spec:
  broker: default
  filters:
  - prefix: {type: dev.knative.apiserver.ref.}
  subscriber: {ref: {apiVersion: serving.knative.dev/v1, kind: Service, name: echo}}
---
apiVersion: eventing.knative.dev/v1
kind: Trigger
metadata: {name: rest, namespace: demo}
spec:
  broker: default
  filters:
  - any:
    - exact: {type: dev.knative.sources.ping}
    - prefix: {type: test.}
  subscriber: {ref: {apiVersion: serving.knative.dev/v1, kind: Service, name: echo}}
---
apiVersion: sources.knative.dev/v1
kind: ApiServerSource
metadata: {name: widgets, namespace: demo}
spec:
  serviceAccountName: source
  namespaceSelector: {}
  resources: [{apiVersion: demo.slipway.dev/v1, kind: Widget}]
  sink: {ref: {apiVersion: eventing.knative.dev/v1, kind: Broker, name: default}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: adapter, namespace: demo}
spec:
  selector: {matchLabels: {app: adapter}}
  template:
    metadata: {labels: {app: adapter}}
    spec:
      serviceAccountName: source
      containers: [{name: source-adapter, image: ko://example.com/sources/adapter/cmd}]
---
apiVersion: sources.knative.dev/v1
kind: PingSource
metadata: {name: resync, namespace: demo}
spec:
  schedule: "*/1 * * * * *"
  ceOverrides: {extensions: {function: echo}}
  sink: {ref: {apiVersion: eventing.knative.dev/v1, kind: Broker, name: default}}
`
