package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/slipway-dev/slipway/shared/reconcile"
)

// chart is the same installation as a Helm chart: the objects are those of the
// manifests, and what differs from one installation to the other is a value. It is
// made on demand (make chart) and not kept.
func chart(root, version string, specs []reconcile.Spec) (map[string][]byte, error) {
	files := map[string][]byte{
		"Chart.yaml": []byte(text(object{
			"apiVersion": "v2", "name": "slipway", "type": "application", "version": strings.TrimPrefix(version, "v"), "appVersion": version,
			"description": "KubeVirt platforms run by stateless functions on Knative", "kubeVersion": ">=1.34.0-0",
		})),
		"values.yaml":            []byte(chartValues(specs)),
		"templates/_helpers.tpl": []byte(chartHelpers),
		"templates/NOTES.txt":    []byte(chartNotes),
	}
	for _, group := range []string{"dockyards", "vitistack"} {
		paths, err := filepath.Glob(filepath.Join(root, "api", group, "crds", "*.yaml"))
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			if filepath.Base(path) == "kustomization.yaml" {
				continue
			}
			if files["crds/"+filepath.Base(path)], err = os.ReadFile(path); err != nil {
				return nil, err
			}
		}
	}
	// The namespace is Helm's own business (--create-namespace).
	for _, name := range []string{"event-archive", "network"} {
		raw, err := os.ReadFile(filepath.Join(root, "deploy", "common", name+".yaml"))
		if err != nil {
			return nil, err
		}
		files["templates/"+name+".yaml"] = []byte(strings.Replace(string(raw),
			"image: "+images+"cmd/event-archive", `image: {{ include "slipway.image" (list . "cmd/event-archive") }}`, 1))
	}
	for name, objects := range map[string][]object{
		"broker":           {broker()},
		"source-account":   append(sourceAccount(specs), adapterAccount(specs)...),
		"apiserversources": apiServerSources(specs),
		"adapter":          adapter(specs),
		"triggers":         triggers(specs),
		"resync":           resyncs(specs),
	} {
		if err := addTemplate(files, name, objects); err != nil {
			return nil, err
		}
	}
	for _, spec := range specs {
		if err := addTemplate(files, "function-"+spec.Name, function(spec)); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// addTemplate writes objects with what is a value taken out.
func addTemplate(files map[string][]byte, name string, objects []object) error {
	for _, obj := range objects {
		parameterize(obj)
	}
	if err := add(files, "templates/"+name+".yaml", objects); err != nil {
		return err
	}
	out := string(files["templates/"+name+".yaml"])
	for _, slot := range slots {
		out = slot.fill(out)
	}
	files["templates/"+name+".yaml"] = []byte(out)
	return nil
}

// slot is a line of YAML that stands for a template.
type slot struct{ mark, template string }

// fill replaces each line with the slot's mark. The rest of the line is the argument
// of its template, and its depth the template's.
func (s slot) fill(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		head, argument, ok := strings.Cut(strings.TrimSuffix(line, "\n"), s.mark+": ")
		if !ok || strings.TrimSpace(head) != "" && strings.TrimSpace(head) != "-" {
			out.WriteString(line)
			continue
		}
		filled := strings.ReplaceAll(s.template, "ARGUMENT", argument)
		filled = strings.ReplaceAll(filled, "DEEPER", fmt.Sprint(len(head)+2))
		filled = strings.ReplaceAll(filled, "DEPTH", fmt.Sprint(len(head)))
		out.WriteString(head + filled + "\n")
	}
	return out.String()
}

var slots = []slot{
	{"slipwayImage", `image: {{ include "slipway.image" (list . "ARGUMENT") }}
{{ include "slipway.indent" DEPTH }}imagePullPolicy: {{ .Values.image.pullPolicy }}`},
	{"slipwayResources", `resources: {{- include "slipway.setting" (list . "ARGUMENT" "resources") | nindent DEEPER }}`},
	{"slipwayPlacement", `{{- include "slipway.placement" (list . "ARGUMENT") | nindent DEPTH }}`},
	{"slipwayScale", `{{- include "slipway.scale" (list . "ARGUMENT") | nindent DEPTH }}`},
}

// parameterize puts slots where values go.
func parameterize(obj object) {
	name, _ := obj["metadata"].(object)["name"].(string)
	switch obj["kind"] {
	case "Service", "Deployment":
	default:
		return
	}
	template := obj["spec"].(object)["template"].(object)
	pod := template["spec"].(object)
	container := pod["containers"].([]any)[0].(object)
	image, _ := container["image"].(string)
	delete(container, "image")
	container["slipwayImage"] = strings.TrimPrefix(image, images)
	delete(container, "resources")
	container["slipwayResources"] = name
	pod["slipwayPlacement"] = name
	if obj["kind"] == "Service" {
		metadata := template["metadata"].(object)
		metadata["annotations"] = object{"slipwayScale": name}
	}
}

// chartValues are the values with what each means.
func chartValues(specs []reconcile.Spec) string {
	var out strings.Builder
	usual := reconcile.Spec{}
	out.WriteString(strings.NewReplacer("CPU", cpu, "REQUEST", usual.MemoryRequest(), "LIMIT", usual.MemoryLimit()).Replace(chartDefaults))
	for _, spec := range specs {
		// What it needs otherwise than most must not be lost to the value for all.
		if spec.MemoryLimit() == usual.MemoryLimit() && spec.MemoryRequest() == usual.MemoryRequest() {
			fmt.Fprintf(&out, "  %s: {}\n", spec.Name)
			continue
		}
		fmt.Fprintf(&out, "  %s:\n    resources:\n      requests: {cpu: %s, memory: %s}\n      limits: {memory: %s}\n",
			spec.Name, cpu, spec.MemoryRequest(), spec.MemoryLimit())
	}
	fmt.Fprintf(&out, "  %s:\n    resources:\n      requests: {cpu: 20m, memory: 64Mi}\n      limits: {memory: 256Mi}\n", adapterName)
	return out.String()
}

const chartDefaults = `# Where the images are: <repository>/<path of the command>:<tag>.
image:
  repository: ghcr.io/slipway-dev/slipway
  # Empty is the chart's appVersion.
  tag: ""
  pullPolicy: IfNotPresent

# How many copies of a function rest when there is nothing to do: 0 scales to zero, 1
# keeps one always on.
replicaCount: 0
# How many copies of a function there are at most.
maxReplicas: 5

# At rest a function takes about 25 MiB, under load about 45.
resources:
  requests: {cpu: CPU, memory: REQUEST}
  limits: {memory: LIMIT}

# Where functions run. Knative Serving refuses these three unless its features
# kubernetes.podspec-nodeselector, -tolerations and -affinity are enabled.
nodeSelector: {}
tolerations: []
affinity: {}

# What differs for one of them: replicaCount, maxReplicas, resources, nodeSelector,
# tolerations, affinity.
functions:
`

// chartHelpers look a setting up: the function's own, else that of all.
const chartHelpers = `{{- define "slipway.image" -}}
{{- $root := index . 0 -}}
{{ $root.Values.image.repository }}/{{ index . 1 }}:{{ $root.Values.image.tag | default $root.Chart.AppVersion }}
{{- end -}}

{{- define "slipway.indent" -}}{{ repeat (int .) " " }}{{- end -}}

{{- define "slipway.setting" -}}
{{- $root := index . 0 -}}
{{- $own := index $root.Values.functions (index . 1) | default dict -}}
{{- $key := index . 2 -}}
{{- toYaml (hasKey $own $key | ternary (index $own $key) (index $root.Values $key)) -}}
{{- end -}}

{{- define "slipway.placement" -}}
{{- $root := index . 0 -}}
{{- $own := index $root.Values.functions (index . 1) | default dict -}}
{{- range $key := list "nodeSelector" "tolerations" "affinity" }}
{{- with (hasKey $own $key | ternary (index $own $key) (index $root.Values $key)) }}
{{ $key }}: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "slipway.scale" -}}
{{- $root := index . 0 -}}
{{- $own := index $root.Values.functions (index . 1) | default dict -}}
autoscaling.knative.dev/min-scale: {{ hasKey $own "replicaCount" | ternary $own.replicaCount $root.Values.replicaCount | toString | quote }}
autoscaling.knative.dev/max-scale: {{ hasKey $own "maxReplicas" | ternary $own.maxReplicas $root.Values.maxReplicas | toString | quote }}
{{- end -}}
`

const chartNotes = `Slipway is installed in {{ .Release.Namespace }}.

  kubectl -n {{ .Release.Namespace }} get ksvc,triggers,apiserversources,pingsources

Definitions in crds/ were installed if they were not there; Helm neither upgrades nor
removes them.
`
