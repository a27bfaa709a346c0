package cluster

import (
	"fmt"
	"maps"
	"sync"
	"time"
)

// Set is the clusters that a function can reach, by name.
type Set struct {
	// RemoteTimeout bounds a request to a remote cluster; 0 is Timeout.
	RemoteTimeout time.Duration
	// RemoteAnswer bounds the size of one answer of a remote cluster, in bytes; 0
	// is no bound.
	RemoteAnswer int64

	mu      sync.RWMutex
	clients map[string]*Client
}

// NewSet makes a set of the management cluster alone; of none if that is nil.
func NewSet(management *Client) *Set {
	s := &Set{clients: map[string]*Client{}}
	s.Manage(management)
	return s
}

// Manage gives the set its management cluster.
func (s *Set) Manage(management *Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if management != nil {
		s.clients[Management] = management
	}
}

// View is a set of its own that starts with what the set has now. Each
// reconcile connects in a view: one that read the old kubeconfig of a cluster
// and one that read the new never use each other's connection.
func (s *Set) View() *Set {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return &Set{RemoteTimeout: s.RemoteTimeout, RemoteAnswer: s.RemoteAnswer, clients: maps.Clone(s.clients)}
}

// Client returns the connection to a cluster.
func (s *Set) Client(name string) (*Client, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	client, ok := s.clients[name]
	if !ok {
		return nil, fmt.Errorf("cannot find a connection to cluster %q: it was not gathered", name)
	}
	return client, nil
}
