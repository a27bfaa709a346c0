package kind

// The resources of Kubernetes itself that several functions use.
var (
	Namespaces = Resource{Versions: []string{"v1"}, Kind: "Namespace", Plural: "namespaces"}
	Secrets    = Resource{
		Versions: []string{"v1"}, Kind: "Secret", Plural: "secrets", Namespaced: true,
		Sealed: []string{"data.*", "stringData.*"},
	}
	ConfigMaps             = Resource{Versions: []string{"v1"}, Kind: "ConfigMap", Plural: "configmaps", Namespaced: true}
	PersistentVolumeClaims = Resource{Versions: []string{"v1"}, Kind: "PersistentVolumeClaim", Plural: "persistentvolumeclaims", Namespaced: true}
	Events                 = Resource{Group: "events.k8s.io", Versions: []string{"v1"}, Kind: "Event", Plural: "events", Namespaced: true}
	StorageClasses         = Resource{Group: "storage.k8s.io", Versions: []string{"v1"}, Kind: "StorageClass", Plural: "storageclasses"}
	CRDs                   = Resource{
		Group: "apiextensions.k8s.io", Versions: []string{"v1"},
		Kind: "CustomResourceDefinition", Plural: "customresourcedefinitions",
	}
)
