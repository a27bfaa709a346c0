package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// ErrAnswerTooLarge is an answer of a remote cluster that is larger than allowed.
// Nothing is known of what it says.
var ErrAnswerTooLarge = errors.New("the answer is larger than allowed")

// bounds keep what one request to a remote cluster may cost.
type bounds struct {
	timeout time.Duration
	// answer is the size of an answer in bytes; 0 is no bound.
	answer int64
}

// perValue is how many bytes of an answer there must be for each of its values: an
// empty object takes two, and thirty times as much once it has been read.
const perValue = 20

// crowded tells whether an answer has more values than one of its largest size may.
func crowded(body []byte, limit int64) bool {
	count := 0
	for _, begin := range []string{"{", "[", ","} {
		count += bytes.Count(body, []byte(begin))
	}
	return int64(count) > limit/perValue
}

// around puts the bound of an answer around a transport. With one, the cluster is
// not trusted at all: a request is made once, whatever client-go would make of a
// broken connection or of the server's wish that it come again.
func (b bounds) around(next http.RoundTripper) http.RoundTripper {
	if b.answer <= 0 {
		return next
	}
	return bounded{next: next, limit: b.answer}
}

type bounded struct {
	next  http.RoundTripper
	limit int64
}

// RoundTrip sends a request and takes in the whole answer. The transport below has
// unpacked it: a few bytes that unpack to many are caught too.
func (t bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		return nil, final(req, err)
	}
	defer resp.Body.Close()
	if resp.ContentLength > t.limit {
		return nil, ErrAnswerTooLarge
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, t.limit+1))
	if err != nil {
		return nil, final(req, err)
	}
	if int64(len(body)) > t.limit || crowded(body, t.limit) {
		return nil, ErrAnswerTooLarge
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	resp.Header.Del("Retry-After")
	return resp, nil
}

// softer are the words by which client-go knows an error after which it tries
// again, ten times, a second apart.
var softer = strings.NewReplacer(
	"connection reset by peer", "connection reset", "use of closed network connection", "connection closed",
	"http2: ", "HTTP/2: ", "http: can't write", "cannot write")

// final is an error after which client-go does not try again.
func final(req *http.Request, err error) error {
	if req.Context().Err() != nil {
		return err
	}
	return fmt.Errorf("no answer: %s", softer.Replace(err.Error()))
}

// CloseIdleConnections lets http.Client reach the transport below.
func (t bounded) CloseIdleConnections() {
	if below, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		below.CloseIdleConnections()
	}
}

// WrappedRoundTripper lets client-go find the transport below.
func (t bounded) WrappedRoundTripper() http.RoundTripper { return t.next }
