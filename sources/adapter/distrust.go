package adapter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"golang.org/x/time/rate"
)

// Bounds of what a cluster that belongs to somebody else may cost.
const (
	// maxAnswer is the size of an answer in bytes, maxEvent that of one event of a
	// watch: twice what the annotations of an object may have in all.
	maxAnswer = 1 << 20
	maxEvent  = 512 << 10
	// perValue is how many bytes there must be for each value: an empty object takes
	// two, and thirty times as much once it has been read.
	perValue = 20
	// maxComplaint is the size of an answer that says no.
	maxComplaint = 16 << 10
	// perSecond is how many events go out each second, atOnce how many after a
	// silence. A cluster that has more waits, on its own connection; what its API
	// server drops meanwhile counts as lost, of which dev.slipway.cluster.connected
	// tells.
	perSecond = 20
	atOnce    = 100
)

var errTooLarge = errors.New("the answer is larger than allowed")

// distrusting bounds what the answers of an API server can cost that may be anything.
type distrusting struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (d distrusting) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := d.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	switch {
	case response.StatusCode >= http.StatusBadRequest:
		// Its text would go into logs.
		body, err := io.ReadAll(io.LimitReader(response.Body, maxComplaint+1))
		_ = response.Body.Close()
		if err != nil || len(body) > maxComplaint {
			body = nil
		}
		response.Body = io.NopCloser(bytes.NewReader(body))
		response.Header.Del("Retry-After") // client-go would wait as long as it says
	case request.URL.Query().Get("watch") == "true":
		response.Body = &documents{ReadCloser: response.Body, left: maxEvent, values: maxEvent / perValue}
	default:
		response.Body = &whole{ReadCloser: response.Body, left: maxAnswer, values: maxAnswer / perValue}
	}
	return response, nil
}

// CloseIdleConnections lets http.Client reach the transport below.
func (d distrusting) CloseIdleConnections() {
	if below, ok := d.next.(interface{ CloseIdleConnections() }); ok {
		below.CloseIdleConnections()
	}
}

// WrappedRoundTripper lets client-go find the transport below.
func (d distrusting) WrappedRoundTripper() http.RoundTripper { return d.next }

// whole is an answer of bounded size.
type whole struct {
	io.ReadCloser
	left, values int
}

// Read implements io.Reader.
func (w *whole) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	w.left -= n
	for _, begin := range []string{"{", "[", ","} {
		w.values -= bytes.Count(p[:n], []byte(begin))
	}
	if w.left < 0 || w.values < 0 {
		return 0, errTooLarge
	}
	return n, err
}

// documents is a stream of JSON objects of bounded size each, in any number.
type documents struct {
	io.ReadCloser
	// left is what may still come before the present one ends, values how many.
	left, values    int
	depth           int
	quoted, escaped bool
}

// Read implements io.Reader.
func (d *documents) Read(p []byte) (int, error) {
	n, err := d.ReadCloser.Read(p)
	for _, c := range p[:n] {
		d.left--
		switch {
		case d.escaped:
			d.escaped = false
		case d.quoted:
			d.escaped, d.quoted = c == '\\', c != '"'
		case c == '"':
			d.quoted = true
		case c == '{':
			d.depth++
			d.values--
		case c == '[', c == ',':
			d.values--
		case c == '}':
			if d.depth--; d.depth == 0 {
				d.left, d.values = maxEvent, maxEvent/perValue
			}
		}
		if d.left < 0 || d.values < 0 || d.depth < 0 {
			return 0, errTooLarge
		}
	}
	return n, err
}

// paced is a client that sends only so many events in a second.
type paced struct {
	cloudevents.Client
	limit *rate.Limiter
}

// Send implements cloudevents.Client.
func (p paced) Send(ctx context.Context, event cloudevents.Event) cloudevents.Result {
	if err := p.limit.Wait(ctx); err != nil {
		return fmt.Errorf("cannot send event %q: %w", event.ID(), err)
	}
	return p.Client.Send(ctx, event)
}

// shownError is the longest text of an error that is logged.
const shownError = 512

// short is an error's text as it is logged: an API server may have written it.
func short(err error) string {
	if text := err.Error(); len(text) > shownError {
		return text[:shownError] + "..."
	}
	return err.Error()
}
