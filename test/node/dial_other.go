//go:build !linux

package node

import (
	"context"
	"errors"
	"net"
)

// Dial is there on Linux only.
func (n *Node) Dial(context.Context, string, string) (net.Conn, error) {
	return nil, errors.New("cannot enter the node's network: this is not Linux")
}
