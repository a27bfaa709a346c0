package kube

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// Decode returns the objects of a stream of YAML or JSON documents. Lists are taken
// apart, empty documents left out.
func Decode(r io.Reader) ([]*unstructured.Unstructured, error) {
	var objs []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(r, 4096)
	for n := 1; ; n++ {
		obj := &unstructured.Unstructured{}
		err := decoder.Decode(&obj.Object)
		if errors.Is(err, io.EOF) {
			return objs, nil
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read document %d: %w", n, err)
		}
		if len(obj.Object) == 0 {
			continue
		}
		if obj.GetAPIVersion() == "" || obj.GetKind() == "" {
			return nil, fmt.Errorf("cannot read document %d: it has no apiVersion or no kind", n)
		}
		if !obj.IsList() {
			objs = append(objs, obj)
			continue
		}
		list, err := obj.ToList()
		if err != nil {
			return nil, fmt.Errorf("cannot read the list in document %d: %w", n, err)
		}
		for i := range list.Items {
			objs = append(objs, &list.Items[i])
		}
	}
}

// ReadFiles returns the objects of manifest files, and of the files named *.yaml
// directly in folders, except kustomizations: those are no objects.
func ReadFiles(paths ...string) ([]*unstructured.Unstructured, error) {
	var objs []*unstructured.Unstructured
	for _, path := range paths {
		files, err := manifests(path)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			read, err := readFile(file)
			if err != nil {
				return nil, err
			}
			objs = append(objs, read...)
		}
	}
	return objs, nil
}

func manifests(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read manifests: %w", err)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	files, err := fs.Glob(os.DirFS(path), "*.yaml")
	if err != nil {
		return nil, fmt.Errorf("cannot read manifests in %q: %w", path, err)
	}
	files = slices.DeleteFunc(files, func(name string) bool { return name == "kustomization.yaml" })
	for i, name := range files {
		files[i] = filepath.Join(path, name)
	}
	return files, nil
}

func readFile(path string) ([]*unstructured.Unstructured, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read manifests: %w", err)
	}
	defer f.Close()
	objs, err := Decode(f)
	if err != nil {
		return nil, fmt.Errorf("cannot read manifests of %q: %w", path, err)
	}
	return objs, nil
}
