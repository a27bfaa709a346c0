package cluster

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const limit = 10_000

func boundedClient(t *testing.T, do http.HandlerFunc) (*Client, *atomic.Int32) {
	t.Helper()
	text, asked := apiServer(t, do)
	set := newSet(t)
	set.RemoteAnswer = limit
	return connected(t, set.View(), "east", text), asked
}

func TestAnAnswerThatIsTooLargeIsNotRead(t *testing.T) {
	blank := strings.Repeat(" ", 1000)
	for name, c := range map[string]struct {
		reason string
		do     http.HandlerFunc
		want   error
	}{
		"small": {reason: "an object like any other", do: namespace},
		"of the largest size": {reason: "the bound itself is allowed", do: func(w http.ResponseWriter, _ *http.Request) {
			content := `{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}}`
			_, _ = io.WriteString(w, content+strings.Repeat(" ", limit-len(content)))
		}},
		"declared": {reason: "not a byte is read", want: ErrAnswerTooLarge, do: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "10000000")
			_, _ = io.WriteString(w, blank)
		}},
		"endless": {reason: "it is cut off", want: ErrAnswerTooLarge, do: func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				_, _ = io.WriteString(w, blank)
			}
		}},
		"crowded": {reason: "what is small takes much room once it is read", want: ErrAnswerTooLarge, do: func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"apiVersion": "v1", "kind": "Namespace", "items": [`+strings.Repeat("{},", 1000)+`{}]}`)
		}},
		"packed": {reason: "what counts is what it unpacks to", want: ErrAnswerTooLarge, do: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			packed := gzip.NewWriter(w)
			for range 1000 {
				_, _ = io.WriteString(packed, blank)
			}
			_ = packed.Close()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			client, _ := boundedClient(t, c.do)
			if err := get(WithMemory(t.Context()), client); !errors.Is(err, c.want) {
				t.Errorf("%s: got %v, want %v", c.reason, err, c.want)
			}
		})
	}
}

func TestAnUntrustedClusterIsAskedOnceWhateverItSays(t *testing.T) {
	for name, do := range map[string]http.HandlerFunc{
		"later": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "5")
			w.WriteHeader(http.StatusTooManyRequests)
		},
		"broken": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"broken off": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "{")
		},
	} {
		t.Run(name, func(t *testing.T) {
			client, asked := boundedClient(t, do)
			started := time.Now()
			if err := get(t.Context(), client); err == nil {
				t.Error("there is no error")
			}
			if took := time.Since(started); took > 3*time.Second || asked.Load() != 1 {
				t.Errorf("it was asked %d times in %s", asked.Load(), took)
			}
		})
	}
}

func TestManyRequestsOfACallCostADeadClusterOne(t *testing.T) {
	client, asked := boundedClient(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	for range 3 { // calls
		before := asked.Load()
		ctx := WithMemory(t.Context())
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				if err := get(ctx, client); err == nil {
					t.Error("there is no error")
				}
			})
		}
		all.Wait()
		if got := asked.Load() - before; got != 1 {
			t.Errorf("it was asked %d times", got)
		}
	}
}

func TestOneWhoWaitsForTheFirstRequestNeedNot(t *testing.T) {
	held := make(chan struct{})
	client, asked := boundedClient(t, func(w http.ResponseWriter, r *http.Request) {
		<-held
		namespace(w, r)
	})
	ctx := WithMemory(t.Context())
	first := make(chan error)
	go func() { first <- get(ctx, client) }()
	for asked.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	hasty, cancel := context.WithCancel(ctx)
	cancel()
	if err := get(hasty, client); err == nil || asked.Load() != 1 {
		t.Errorf("%v after %d requests", err, asked.Load())
	}
	close(held)
	if err := <-first; err != nil {
		t.Error(err)
	}
	if err := get(ctx, client); err != nil {
		t.Error(err)
	}
}

func TestClustersWithoutABoundShareNoConnectionWithThoseThatHaveOne(t *testing.T) {
	text, _ := apiServer(t, namespace)
	free, bound := newSet(t), newSet(t)
	bound.RemoteAnswer = limit
	if connected(t, free, "east", text) == connected(t, bound, "east", text) {
		t.Error("the bound of one counts for both, or for none")
	}
}
