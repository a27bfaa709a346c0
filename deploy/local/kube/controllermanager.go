package kube

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// controllerManagerGrace is how long the controller manager may take to end.
const controllerManagerGrace = time.Second

// StartControllerManager runs the controllers that delete what has no owner any
// more, empty namespaces that are being deleted, and give each namespace its
// default ServiceAccount. It must not be called while they are running.
//
// The garbage collector looks for new kinds only every 30 seconds, so definitions
// should be there before.
func (c *Cluster) StartControllerManager(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("cannot start kube-controller-manager: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.manager != nil {
		return errors.New("cannot start kube-controller-manager: it is running already")
	}
	p, err := launch(c.binary, c.Dir, "kube-controller-manager",
		"--kubeconfig="+c.Kubeconfig,
		"--bind-address="+loopback,
		"--secure-port=0",
		"--leader-elect=false",
		"--controllers=garbage-collector-controller,namespace-controller,serviceaccount-controller",
		"--service-account-private-key-file="+c.pki.path(saKeyFile),
		"--root-ca-file="+c.pki.path(caCertFile),
		"--profiling=false",
	)
	if err != nil {
		return err
	}
	c.manager = p
	c.observe(p)
	return nil
}
