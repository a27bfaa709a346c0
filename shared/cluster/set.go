package cluster

import (
	"fmt"
	"sync"
)

// Set is the clusters that a function can reach, by name.
type Set struct {
	mu      sync.RWMutex
	clients map[string]*Client
}

// NewSet makes a set of the management cluster alone.
func NewSet(management *Client) *Set {
	return &Set{clients: map[string]*Client{Management: management}}
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
