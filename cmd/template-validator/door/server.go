package door

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"go.uber.org/zap"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	kubeclient "knative.dev/pkg/client/injection/kube/client"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/controller"
	secretinformer "knative.dev/pkg/injection/clients/namespacedkube/informers/core/v1/secret"
	secretfactory "knative.dev/pkg/injection/clients/namespacedkube/informers/factory"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/webhook"
	"knative.dev/pkg/webhook/certificates"
	certresources "knative.dev/pkg/webhook/certificates/resources"

	"github.com/slipway-dev/slipway/api/dockyards/v1alpha3"
	"github.com/slipway-dev/slipway/cmd/template-validator/admit"
	"github.com/slipway-dev/slipway/functions/workload-renderer/kinds"
	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/render/worker"
)

// Server is the webhook with what keeps its certificate.
type Server struct {
	webhook          *webhook.Webhook
	controllers      []*controller.Impl
	informers        []informers.SharedInformerFactory
	certificate      func() (*tls.Certificate, error)
	listener, health net.Listener
}

// New makes everything and opens the listeners. Its informers see one Secret and
// one ValidatingWebhookConfiguration, by name: it needs no right to any other.
func New(ctx context.Context, s Settings, config *rest.Config, pool *worker.Pool) (*Server, error) {
	log, err := zap.NewProduction(zap.IncreaseLevel(zap.WarnLevel))
	if err != nil {
		return nil, fmt.Errorf("cannot make a logger: %w", err)
	}
	ctx = logging.WithLogger(ctx, log.Sugar())
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cannot make a client: %w", err)
	}
	reader, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cannot make a client: %w", err)
	}
	own := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(s.namespace), informers.WithTweakListOptions(named(s.secret)))
	whole := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTweakListOptions(named(s.configuration)))
	secrets := own.Core().V1().Secrets()
	ctx = webhook.WithOptions(ctx, webhook.Options{ServiceName: s.service, SecretName: s.secret, DisableNamespaceOwnership: true})
	ctx = context.WithValue(ctx, kubeclient.Key{}, kubernetes.Interface(client))
	ctx = context.WithValue(ctx, secretfactory.Key{}, own)
	ctx = context.WithValue(ctx, secretinformer.Key{}, secrets)

	v := admit.Validator{
		Render: pool.Render, Rules: s.rules, Limits: admit.Limits(), PublicNamespaces: s.public,
		Template: read(reader, kinds.WorkloadTemplates), Cluster: read(reader, dockyards.Clusters),
		Public: func(ctx context.Context) (string, error) {
			config, err := read(reader, kind.ConfigMaps)(ctx, s.configMapNamespace, s.configMapName)
			if err != nil {
				return "", err
			}
			namespace, _ := dockyards.ReadConfig(config).Value(v1alpha3.ConfigKeyPublicNamespace)
			return namespace, nil
		},
	}
	b := &bundle{
		namespace: s.namespace, secret: s.secret, configuration: s.configuration, client: client,
		secrets: secrets.Lister(), configurations: whole.Admissionregistration().V1().ValidatingWebhookConfigurations().Lister(),
	}
	out := &Server{
		informers:   []informers.SharedInformerFactory{own, whole},
		controllers: []*controller.Impl{certificates.NewController(ctx, configmap.NewStaticWatcher()), b.controller(ctx, secrets.Informer(), whole)},
		certificate: func() (*tls.Certificate, error) {
			secret, err := secrets.Lister().Secrets(s.namespace).Get(s.secret)
			if err != nil {
				return nil, fmt.Errorf("cannot read the certificate: %w", err)
			}
			pair, err := tls.X509KeyPair(secret.Data[certresources.ServerCert], secret.Data[certresources.ServerKey])
			return &pair, err
		},
	}
	out.webhook, err = webhook.New(ctx, []any{
		door{path: "/validate-dockyards-io-v1alpha3-workload", admit: v.Workload},
		door{path: "/validate-dockyards-io-v1alpha3-workloadtemplate", admit: v.WorkloadTemplate},
	})
	if err != nil {
		return nil, fmt.Errorf("cannot make the webhook: %w", err)
	}
	if out.listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", s.listen); err != nil {
		return nil, fmt.Errorf("cannot listen: %w", err)
	}
	if out.health, err = (&net.ListenConfig{}).Listen(ctx, "tcp", s.health); err != nil {
		return nil, fmt.Errorf("cannot listen: %w", err)
	}
	return out, nil
}

func named(name string) func(*metav1.ListOptions) {
	return func(options *metav1.ListOptions) {
		options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	}
}

// read reads objects of a resource; nil for one that does not exist.
func read(client dynamic.Interface, res kind.Resource) func(context.Context, string, string) (*unstructured.Unstructured, error) {
	return func(ctx context.Context, namespace, name string) (*unstructured.Unstructured, error) {
		obj, err := client.Resource(res.GVR()).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return obj, err
	}
}

// door is one path of the webhook.
type door struct {
	path  string
	admit func(context.Context, *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse
}

var _ webhook.AdmissionController = door{}

// Path implements webhook.AdmissionController.
func (d door) Path() string { return d.path }

// Admit implements webhook.AdmissionController.
func (d door) Admit(ctx context.Context, request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	return d.admit(ctx, request)
}

// Address is where the API server calls.
func (s *Server) Address() net.Addr { return s.listener.Addr() }

// Serve works until the context ends.
func (s *Server) Serve(ctx context.Context) error {
	for _, factory := range s.informers {
		factory.Start(ctx.Done())
	}
	for _, factory := range s.informers {
		for what, synced := range factory.WaitForCacheSync(ctx.Done()) {
			if !synced {
				return fmt.Errorf("cannot watch %s: %w", what, ctx.Err())
			}
		}
	}
	s.webhook.InformersHaveSynced()
	doors := &http.Server{
		Handler: s.webhook, ReadHeaderTimeout: 10 * time.Second,
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.certificate() }},
	}
	probes := &http.Server{Handler: s.probes(), ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 3)
	go func() { ended <- doors.ServeTLS(s.listener, "", "") }()
	go func() { ended <- probes.Serve(s.health) }()
	go func() { ended <- controller.StartAll(ctx, s.controllers...) }()
	var err error
	select {
	case <-ctx.Done():
	case err = <-ended:
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	err = errors.Join(err, doors.Shutdown(stopping), probes.Shutdown(stopping))
	if ctx.Err() != nil {
		return nil //nolint:nilerr // it was told to stop
	}
	return err
}

// probes are ready when there is a certificate to show.
func (s *Server) probes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if _, err := s.certificate(); err != nil {
			http.Error(w, "there is no certificate yet", http.StatusServiceUnavailable)
		}
	})
	return mux
}
