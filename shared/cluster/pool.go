package cluster

import (
	"container/list"
	"crypto/sha256"
	"sync"
)

// poolSize is how many remote connections one process keeps. A rotated
// kubeconfig makes another; the oldest unused one goes.
const poolSize = 64

// clients are the remote connections of the process, by the content of their
// kubeconfig: whoever has the same credentials may share a connection, and
// nobody else can.
var clients = &pool{size: poolSize}

type pool struct {
	size int

	mu     sync.Mutex
	byKey  map[poolKey]*list.Element
	recent list.List
}

// poolKey tells connections apart.
type poolKey struct {
	kubeconfig [sha256.Size]byte
	userAgent  string
	bounds     bounds
}

type pooled struct {
	key    poolKey
	client *Client
}

// client is the connection for a kubeconfig. Reconciles that still use one
// that was dropped keep it; only its idle connections are closed.
func (p *pool) client(kubeconfig []byte, userAgent string, bounds bounds) (*Client, error) {
	key := poolKey{kubeconfig: sha256.Sum256(kubeconfig), userAgent: userAgent, bounds: bounds}
	if client := p.find(key); client != nil {
		return client, nil
	}
	config, err := Parse(kubeconfig)
	if err != nil {
		return nil, err
	}
	client, err := newRemote(userAgent, bounds, config)
	if err != nil {
		return nil, err
	}
	return p.add(key, client), nil
}

func (p *pool) find(key poolKey) *Client {
	p.mu.Lock()
	defer p.mu.Unlock()
	element := p.byKey[key]
	if element == nil {
		return nil
	}
	p.recent.MoveToFront(element)
	have, _ := element.Value.(pooled)
	return have.client
}

// add keeps a client, unless another was faster.
func (p *pool) add(key poolKey, client *Client) *Client {
	p.mu.Lock()
	defer p.mu.Unlock()
	if element := p.byKey[key]; element != nil {
		client.close()
		have, _ := element.Value.(pooled)
		return have.client
	}
	if p.byKey == nil {
		p.byKey = map[poolKey]*list.Element{}
	}
	p.byKey[key] = p.recent.PushFront(pooled{key: key, client: client})
	for p.recent.Len() > p.size {
		oldest, _ := p.recent.Remove(p.recent.Back()).(pooled)
		delete(p.byKey, oldest.key)
		oldest.client.close()
	}
	return client
}
