package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// envRole makes the test's binary play a part of the stack.
const envRole = "EVENTING_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(envRole) {
	case "eventing":
		main()
	case "echo":
		echo()
	default:
		os.Exit(m.Run())
	}
}

// seen is what the echo function logs of a request.
type seen struct {
	Msg        string    `json:"msg"`
	At         time.Time `json:"at"`
	PID        int       `json:"pid"`
	User       string    `json:"user,omitempty"`
	Type       string    `json:"type,omitempty"`
	ObjectKind string    `json:"objectKind,omitempty"`
	Name       string    `json:"name,omitempty"`
	Label      string    `json:"label,omitempty"`
	Subject    string    `json:"subject,omitempty"`
	ErrorCode  string    `json:"errorCode,omitempty"`
	ErrorDest  string    `json:"errorDest,omitempty"`
	ErrorData  string    `json:"errorData,omitempty"`
	TTL        string    `json:"ttl,omitempty"`
	Env        string    `json:"env,omitempty"`
}

// echo is a function. It tells what it got, and the name of the object says how
// it answers: "fail-400-x", "text-x", "reply-x", or empty for all others.
func echo() {
	write := json.NewEncoder(os.Stdout)
	_ = write.Encode(seen{Msg: "started", At: time.Now(), PID: os.Getpid(), User: whoAmI(), Env: os.Getenv("K_SINK") + " " + os.Getenv("GREETING")})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health/readiness", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("POST /", func(w http.ResponseWriter, r *http.Request) {
		get := func(name string) string { return r.Header.Get("Ce-" + name) }
		_ = write.Encode(seen{
			Msg: "event", At: time.Now(), PID: os.Getpid(), Type: get("Type"), ObjectKind: get("Kind"), Name: get("Name"), Subject: get("Subject"),
			ErrorCode: get("Knativeerrorcode"), ErrorDest: get("Knativeerrordest"), ErrorData: get("Knativeerrordata"), TTL: get("Knativebrokerttl"),
		})
		answer(w, get("Type"), get("Name"), os.Getenv("OBEDIENT") != "")
	})
	server := &http.Server{Addr: os.Getenv("LISTEN_ADDRESS"), Handler: mux, ReadHeaderTimeout: time.Second}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go func() {
		<-ctx.Done()
		_ = server.Shutdown(context.Background())
	}()
	fmt.Println("this line is no JSON object")
	_ = server.ListenAndServe()
	_ = write.Encode(seen{Msg: "stopping", PID: os.Getpid()})
}

func answer(w http.ResponseWriter, eventType, name string, obedient bool) {
	var code int
	switch {
	case !obedient:
		w.WriteHeader(http.StatusNoContent)
	case strings.HasPrefix(name, "fail-"):
		_, _ = fmt.Sscanf(name, "fail-%d-", &code)
		http.Error(w, "no such cluster", code)
	case strings.HasPrefix(name, "text-"):
		_, _ = fmt.Fprint(w, "OK")
	case strings.HasPrefix(name, "reply-") || eventType == "test.loop":
		w.Header().Set("Ce-Specversion", "1.0")
		w.Header().Set("Ce-Id", "reply-to-"+name)
		w.Header().Set("Ce-Source", "/echo")
		w.Header().Set("Ce-Type", map[bool]string{true: "test.loop", false: "test.reply"}[strings.HasPrefix(name, "reply-loop") || eventType == "test.loop"])
		w.WriteHeader(http.StatusOK)
	case strings.HasPrefix(name, "crash-"):
		os.Exit(3)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

// whoAmI asks the API server, with the kubeconfig that a function is given.
func whoAmI() string {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err.Error()
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err.Error()
	}
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(context.Background(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return err.Error()
	}
	return review.Status.UserInfo.Username
}
