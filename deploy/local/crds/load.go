package crds

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// cache holds what was read in this process, by source. Reading takes a quarter of
// a second for the largest sources, and a suite loads them once per API server.
var cache = struct {
	sync.Mutex
	definitions map[string][]*unstructured.Unstructured
}{definitions: map[string][]*unstructured.Unstructured{}}

// Load returns the CustomResourceDefinitions of the named sources, sorted by name.
// The result is the caller's own: it may be changed.
func Load(ctx context.Context, names ...string) ([]*unstructured.Unstructured, error) {
	cache.Lock()
	defer cache.Unlock()
	if err := fill(ctx, names); err != nil {
		return nil, err
	}
	var all []*unstructured.Unstructured
	loaded := map[string]bool{}
	for _, name := range names {
		if loaded[name] {
			continue
		}
		loaded[name] = true
		for _, definition := range cache.definitions[name] {
			all = append(all, definition.DeepCopy())
		}
	}
	sort.Slice(all, func(i, j int) bool { return all[i].GetName() < all[j].GetName() })
	return all, nil
}

// fill reads the named sources into the cache, those that are not there yet, with
// one call of the go command for all of them.
func fill(ctx context.Context, names []string) error {
	var missing []string
	var modules []string
	for _, name := range names {
		source, ok := sources[name]
		if !ok {
			return fmt.Errorf("cannot load definitions of %q: no such source, there are %s", name, strings.Join(Names(), ", "))
		}
		if cache.definitions[name] != nil {
			continue
		}
		missing = append(missing, name)
		modules = append(modules, source.Module+"@"+source.Version)
	}
	if len(missing) == 0 {
		return nil
	}
	dirs, err := download(ctx, modules)
	if err != nil {
		return err
	}
	for _, name := range missing {
		source := sources[name]
		definitions, err := source.read(dirs[source.Module+"@"+source.Version])
		if err != nil {
			return fmt.Errorf("cannot load definitions of %q: %w", name, err)
		}
		cache.definitions[name] = definitions
	}
	return nil
}

// read reads all files of a source from the folder of its module.
func (s Source) read(dir string) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, pattern := range s.Files {
		files, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(pattern)))
		if err != nil {
			return nil, err
		}
		if len(files) == 0 {
			return nil, fmt.Errorf("module %s@%s has no file %q", s.Module, s.Version, pattern)
		}
		for _, file := range files {
			definitions, err := s.readFile(file)
			if err != nil {
				return nil, fmt.Errorf("module %s@%s, file %q: %w", s.Module, s.Version, filepath.Base(file), err)
			}
			all = append(all, definitions...)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("module %s@%s has no definitions in %s", s.Module, s.Version, strings.Join(s.Files, ", "))
	}
	for _, definition := range all {
		s.adapt(definition)
	}
	return all, nil
}

func (s Source) readFile(file string) ([]*unstructured.Unstructured, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return s.extract(content)
}

// adapt makes the changes that the package's documentation lists.
func (s Source) adapt(definition *unstructured.Unstructured) {
	unstructured.RemoveNestedField(definition.Object, "status")
	unstructured.RemoveNestedField(definition.Object, "metadata", "creationTimestamp")
	strategy, _, _ := unstructured.NestedString(definition.Object, "spec", "conversion", "strategy")
	if strategy == "Webhook" {
		unstructured.RemoveNestedField(definition.Object, "spec", "conversion")
	}
	if len(s.Labels) == 0 {
		return
	}
	labels := definition.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	for key, value := range s.Labels {
		labels[key] = value
	}
	definition.SetLabels(labels)
}
