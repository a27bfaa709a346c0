package decode

import (
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/json"
)

// Client is a dynamic client that decodes with this package.
func Client(config *rest.Config, client *http.Client) (dynamic.Interface, error) {
	return accepting("application/json", config, client)
}

// Metadata is the same for lists of which nothing but the metadata is asked for. Their
// items are PartialObjectMetadata.
func Metadata(config *rest.Config, client *http.Client) (dynamic.Interface, error) {
	return accepting("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", config, client)
}

func accepting(contentType string, config *rest.Config, client *http.Client) (dynamic.Interface, error) {
	config = dynamic.ConfigFor(config)
	config.AcceptContentTypes = contentType
	config.GroupVersion = nil
	config.APIPath = "/unused" // each request has a path of its own
	config.NegotiatedSerializer = serializer{config.NegotiatedSerializer}
	restClient, err := rest.UnversionedRESTClientForConfigAndClient(config, client)
	if err != nil {
		return nil, err
	}
	return dynamic.New(restClient), nil
}

// serializer is client-go's with another decoder.
type serializer struct{ runtime.NegotiatedSerializer }

// DecoderToVersion implements runtime.NegotiatedSerializer.
func (s serializer) DecoderToVersion(d runtime.Decoder, gv runtime.GroupVersioner) runtime.Decoder {
	return decoder{s.NegotiatedSerializer.DecoderToVersion(d, gv)}
}

// decoder decodes what it knows, and leaves the rest to another.
type decoder struct{ other runtime.Decoder }

// Decode implements runtime.Decoder.
func (d decoder) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	known := false
	switch obj := into.(type) {
	case *unstructured.Unstructured:
		known = object(data, obj)
	case *unstructured.UnstructuredList:
		known = list(data, obj)
	}
	if !known {
		return d.other.Decode(data, defaults, into)
	}
	gvk := into.GetObjectKind().GroupVersionKind()
	return into, &gvk, nil
}

// parse reads a JSON object in one pass, with the library that client-go reads it with;
// false if it is none.
func parse(text []byte) (map[string]any, bool) {
	var fields map[string]any
	err := json.UnmarshalCaseSensitivePreserveInts(text, &fields)
	return fields, err == nil && fields != nil
}

// object reads one object; false leaves it untouched.
func object(data []byte, into *unstructured.Unstructured) bool {
	fields, ok := parse(data)
	if !ok || !kindOf(fields) {
		return false
	}
	into.Object = fields
	return true
}

// list reads a list; false leaves it untouched.
func list(data []byte, into *unstructured.UnstructuredList) bool {
	fields, ok := parse(data)
	if !ok || !kindOf(fields) {
		return false
	}
	items, ok := fields["items"].([]any)
	if !ok {
		return false
	}
	apiVersion, _ := fields["apiVersion"].(string)
	kind, _ := fields["kind"].(string)
	objects := make([]unstructured.Unstructured, len(items))
	for i, item := range items {
		content, ok := item.(map[string]any)
		if !ok {
			return false
		}
		objects[i].Object = content
		// Items of built-in kinds do not say what they are.
		if objects[i].GetKind() == "" && objects[i].GetAPIVersion() == "" {
			content["kind"], content["apiVersion"] = strings.TrimSuffix(kind, "List"), apiVersion
		}
	}
	delete(fields, "items")
	into.Object, into.Items = fields, objects
	return true
}

// kindOf tells whether fields are those of an object with a kind. A Status is an answer
// of another sort.
func kindOf(fields map[string]any) bool {
	kind, _ := fields["kind"].(string)
	apiVersion, _ := fields["apiVersion"].(string)
	return kind != "" && kind != "Status" && apiVersion != ""
}
