package worker

import (
	"container/list"
	"encoding/json"

	"github.com/slipway-dev/slipway/shared/render"
)

// cache keeps results by the hash of their request; the least recently used goes
// first. Nothing depends on it for correctness.
type cache struct {
	max, size int
	entries   map[string]*list.Element
	order     list.List
}

type cached struct {
	hash   string
	size   int
	result render.Result
}

func (c *cache) get(hash string) (render.Result, bool) {
	element := c.entries[hash]
	if element == nil {
		return render.Result{}, false
	}
	c.order.MoveToFront(element)
	entry, _ := element.Value.(cached)
	return entry.result, true
}

func (c *cache) put(hash string, result render.Result) {
	raw, err := json.Marshal(result)
	if err != nil || len(raw) > c.max || c.entries[hash] != nil {
		return
	}
	if c.entries == nil {
		c.entries = map[string]*list.Element{}
	}
	c.entries[hash] = c.order.PushFront(cached{hash: hash, size: len(raw), result: clone(result)})
	c.size += len(raw)
	for c.size > c.max {
		oldest := c.order.Back()
		entry, _ := c.order.Remove(oldest).(cached)
		delete(c.entries, entry.hash)
		c.size -= entry.size
	}
}
