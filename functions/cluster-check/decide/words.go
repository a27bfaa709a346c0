package decide

import (
	"fmt"

	"github.com/slipway-dev/slipway/shared/fault"
)

// messageMax bounds what a status says of one thing.
const messageMax = 256

// lacking says which right is missing, or what else a server refused.
func lacking(f *fault.Fault) string {
	if f.Code != fault.Forbidden {
		return fmt.Sprintf("the API server refuses to %s: %s", f.Call, f.Message)
	}
	who := "your account"
	if f.Cluster != Management {
		who = "the account in the kubeconfig"
	}
	return fmt.Sprintf("missing right: %s may not %s", who, f.Call)
}
