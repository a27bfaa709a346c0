package function

import (
	"context"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/slipway-dev/slipway/deploy/local/eventing/names"
)

// inherited are the variables of this process that functions get too. All others
// would be something that a container does not have.
var inherited = []string{"PATH", "HOME", "TMPDIR", "TZ", "LANG", "SSL_CERT_FILE", "SSL_CERT_DIR"}

// Environ makes the environment of a function's process, but for its addresses.
type Environ struct {
	// Client reads config maps.
	Client kubernetes.Interface
	// Credentials make kubeconfigs.
	Credentials *Credentials
	// Self is the address of this process, where functions reach the broker and
	// one another, since they cannot resolve the cluster's names.
	Self string
	// Broker is the broker that functions send to unless their own K_SINK names
	// another.
	Broker string
}

// Of is the environment of the function's process.
func (e *Environ) Of(ctx context.Context, spec Spec) ([]string, error) {
	var environ []string
	for _, name := range inherited {
		if value, set := os.LookupEnv(name); set {
			environ = append(environ, name+"="+value)
		}
	}
	kubeconfig, err := e.Credentials.Ensure(ctx, spec.Namespace, spec.ServiceAccount)
	if err != nil {
		return nil, err
	}
	environ = append(environ,
		"KUBECONFIG="+kubeconfig,
		"K_SERVICE="+spec.Name,
		"K_CONFIGURATION="+spec.Name,
		fmt.Sprintf("K_REVISION=%s-%05d", spec.Name, spec.Generation),
		fmt.Sprintf("K_SINK=http://%s/%s/%s", e.Self, spec.Namespace, e.Broker),
	)
	for _, variable := range spec.Env {
		value, set, err := e.value(ctx, spec, variable)
		if err != nil {
			return nil, fmt.Errorf("cannot set environment variable %q: %w", variable.Name, err)
		}
		if set {
			environ = append(environ, variable.Name+"="+names.Loopback(value, e.Self))
		}
	}
	return environ, nil
}

// value is the value of one variable, if it has one here.
func (e *Environ) value(ctx context.Context, spec Spec, variable corev1.EnvVar) (string, bool, error) {
	from := variable.ValueFrom
	switch {
	case from == nil:
		return variable.Value, true, nil
	case from.FieldRef != nil:
		return spec.Namespace, from.FieldRef.FieldPath == "metadata.namespace", nil
	case from.ConfigMapKeyRef != nil:
		return e.fromConfigMap(ctx, spec.Namespace, from.ConfigMapKeyRef)
	default:
		return "", false, nil
	}
}

func (e *Environ) fromConfigMap(ctx context.Context, namespace string, ref *corev1.ConfigMapKeySelector) (string, bool, error) {
	optional := ref.Optional != nil && *ref.Optional
	object, err := e.Client.CoreV1().ConfigMaps(namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) && optional {
		return "", false, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("cannot read config map %q: %w", ref.Name, err)
	}
	value, set := object.Data[ref.Key]
	if !set && !optional {
		return "", false, fmt.Errorf("config map %q has no key %q", ref.Name, ref.Key)
	}
	return value, set, nil
}
