package api_test

import (
	"os"
	"testing"

	kubetest "github.com/slipway-dev/slipway/test/kube"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Main(m)) }

func start(t *testing.T) server {
	t.Helper()
	return server{env: kubetest.Start(t, kubetest.Options{Objects: definitions(t)})}
}
