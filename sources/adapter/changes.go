package adapter

import (
	"encoding/json"
	"hash/fnv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// changes drops the events of objects in which nothing has changed that is looked at:
// the heartbeats of Nodes, which come for ever. It remembers a number for each object.
type changes struct {
	paths [][]string
	mu    sync.Mutex
	last  map[types.UID]uint64
}

var unescape = strings.NewReplacer("~1", "/", "~0", "~")

// changesOf looks at the fields that JSON pointers name.
func changesOf(pointers []string) *changes {
	c := &changes{last: map[types.UID]uint64{}}
	for _, pointer := range pointers {
		path := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
		for i := range path {
			path[i] = unescape.Replace(path[i])
		}
		c.paths = append(c.paths, path)
	}
	return c
}

// filter lets through what comes, what goes, what is seen for the first time, and what
// differs from how it was seen last.
func (c *changes) filter(event watch.Event) (watch.Event, bool) {
	object, ok := event.Object.(*unstructured.Unstructured)
	if !ok || event.Type == watch.Bookmark || event.Type == watch.Error {
		return event, true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if event.Type == watch.Deleted {
		delete(c.last, object.GetUID())
		return event, true
	}
	now := c.sum(object)
	last, seen := c.last[object.GetUID()]
	c.last[object.GetUID()] = now
	return event, event.Type != watch.Modified || !seen || last != now
}

// sum stands for what an object has in the fields that are looked at.
func (c *changes) sum(object *unstructured.Unstructured) uint64 {
	sum := fnv.New64a()
	encoder := json.NewEncoder(sum)
	for _, path := range c.paths {
		// What is not there, or lies below no map, is null. What an API server sent
		// always encodes, with its keys sorted.
		value, _, _ := unstructured.NestedFieldNoCopy(object.Object, path...)
		_ = encoder.Encode(value)
	}
	return sum.Sum64()
}
