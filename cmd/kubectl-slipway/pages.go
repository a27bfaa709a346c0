package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/slipway-dev/slipway/shared/reconcile"
	"github.com/slipway-dev/slipway/shared/record"
)

//go:embed console
var assets embed.FS

const (
	// shown is how many reconciles a page lists.
	shown = 100
	// policy lets the page load nothing but its own style and script.
	policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)

// console is the web page.
type console struct {
	*options
	history   history
	templates *template.Template
	// token is in every form: who has not seen the page cannot post.
	token string
	// offline never asks the live cluster.
	offline bool
	// playing lets one replay run at a time: settings are those of the process.
	playing sync.Mutex
}

// page is what the templates are given.
type page struct {
	Title, Page, Token, Query string
	Headers                   []record.Header
	Flow                      template.HTML
	Recording                 *record.Recording
	Decisions                 []shownDecision
	StatusDiff, Difference    template.HTML
	StatusTold, Verdict       string
	// Whole tells that a list is of more than one object.
	Whole        bool
	Bad, Offline bool
	Letters      []shownLetter
	// Notes are what a replay found besides.
	Notes []string
}

func newConsole(o *options, h history) (*console, error) {
	c := &console{options: o, history: h, token: rand.Text()}
	var err error
	c.templates, err = template.New("").Funcs(template.FuncMap{
		"object": objectLink, "told": verdictOf, "count": count,
		"day":   func(t time.Time) string { return t.Local().Format(time.DateOnly) },
		"clock": func(t time.Time) string { return t.Local().Format(time.TimeOnly) },
		"zone":  func() string { return time.Now().Local().Format("MST") },
	}).ParseFS(assets, "console/pages.html")
	if err != nil {
		return nil, fmt.Errorf("cannot make the console's pages: %w", err)
	}
	return c, nil
}

// count is "1 read", "2 reads".
func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

func objectLink(h record.Header) string {
	return "/object?" + url.Values{"kind": {h.Kind}, "namespace": {h.Namespace}, "name": {h.Name}}.Encode()
}

func (c *console) handler() http.Handler {
	mux := http.NewServeMux()
	for file, kind := range map[string]string{"style.css": "text/css; charset=utf-8", "live.js": "text/javascript; charset=utf-8"} {
		mux.HandleFunc("GET /"+file, func(w http.ResponseWriter, _ *http.Request) {
			text, _ := assets.ReadFile("console/" + file)
			w.Header().Set("Content-Type", kind)
			_, _ = w.Write(text)
		})
	}
	mux.HandleFunc("GET /{$}", c.flowPage)
	mux.HandleFunc("GET /flow", c.flowPart)
	mux.HandleFunc("GET /stream", c.stream)
	mux.HandleFunc("GET /object", c.objectPage)
	mux.HandleFunc("GET /recording/{id}", c.recordingPage)
	mux.HandleFunc("POST /recording/{id}/replay", c.replay)
	mux.HandleFunc("GET /deadletters", c.lettersPage)
	return guard(mux)
}

// guard lets only those in who mean this very server: a page of somebody else's that
// has its name resolve to this machine does not.
func guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		if ip := net.ParseIP(strings.Trim(host, "[]")); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			http.Error(w, "this is the console of another host", http.StatusMisdirectedRequest)
			return
		}
		if site := r.Header.Get("Sec-Fetch-Site"); r.Method != http.MethodGet && site != "" && site != "same-origin" {
			http.Error(w, "another page may not ask for that", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (c *console) render(w http.ResponseWriter, name string, p page) {
	p.Token, p.Offline = c.token, c.offline
	var out bytes.Buffer
	if err := c.templates.ExecuteTemplate(&out, name, p); err != nil {
		http.Error(w, "cannot show the page", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = out.WriteTo(w)
}

func (c *console) problem(w http.ResponseWriter, code int, title string, err error) {
	w.WriteHeader(code)
	c.render(w, "problem", page{Title: title, Verdict: err.Error(), Bad: true})
}

// newest lists headers, the newest first.
func (c *console) newest(ctx context.Context, f record.Filter) ([]record.Header, error) {
	f.Limit = shown
	headers, err := c.history.headers(ctx, f)
	slices.Reverse(headers)
	return headers, err
}

func (c *console) flowPage(w http.ResponseWriter, r *http.Request) {
	headers, err := c.newest(r.Context(), record.Filter{})
	if err != nil {
		c.problem(w, http.StatusBadGateway, "The recordings cannot be listed", err)
		return
	}
	c.render(w, "flow", page{Title: "Flow", Page: "flow", Headers: headers, Flow: drawFlow(headers)})
}

func (c *console) flowPart(w http.ResponseWriter, r *http.Request) {
	headers, err := c.newest(r.Context(), record.Filter{})
	if err != nil {
		http.Error(w, "the recordings cannot be listed", http.StatusBadGateway)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write([]byte(drawFlow(headers)))
}

func filterOf(q url.Values) record.Filter {
	return record.Filter{Kind: q.Get("kind"), Namespace: q.Get("namespace"), Name: q.Get("name")}
}

func (c *console) objectPage(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	f := filterOf(q)
	headers, err := c.newest(r.Context(), f)
	if err != nil {
		c.problem(w, http.StatusBadGateway, "The recordings cannot be listed", err)
		return
	}
	title := strings.TrimSpace(f.Kind + " " + reconcile.Key{Namespace: f.Namespace, Name: f.Name}.String())
	c.render(w, "object", page{Title: cmp.Or(title, "All objects"), Whole: f.Name == "", Headers: headers, Query: url.Values{"kind": {f.Kind}, "namespace": {f.Namespace}, "name": {f.Name}}.Encode()})
}

// stream sends a row for each new reconcile.
func (c *console) stream(w http.ResponseWriter, r *http.Request) {
	flusher, ok := w.(http.Flusher)
	if !ok {
		http.Error(w, "nothing can be streamed here", http.StatusNotImplemented)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	flusher.Flush()
	f := filterOf(r.URL.Query())
	f.After = cmp.Or(r.Header.Get("Last-Event-ID"), time.Now().UTC().Format("20060102T150405.000000Z"))
	ticker := time.NewTicker(followPeriod)
	defer ticker.Stop()
	for {
		headers, err := c.history.headers(r.Context(), f)
		if err != nil {
			return // the browser connects again
		}
		for _, h := range headers {
			var row bytes.Buffer
			if err := c.templates.ExecuteTemplate(&row, "row", h); err != nil {
				return
			}
			text, err := json.Marshal(row.String())
			if err != nil {
				return
			}
			fmt.Fprintf(w, "id: %s\nevent: row\ndata: %s\n\n", h.ID, text)
			f.After = h.ID
		}
		flusher.Flush()
		select {
		case <-r.Context().Done():
			return
		case <-ticker.C:
		}
	}
}

func (c *console) recordingPage(w http.ResponseWriter, r *http.Request) {
	recording, err := c.history.recording(r.Context(), r.PathValue("id"), false)
	if err != nil {
		c.problem(w, http.StatusNotFound, "The recording cannot be read", err)
		return
	}
	c.render(w, "recording", recordingOf(recording))
}

// replay plays a recording, offline or in plan mode.
func (c *console) replay(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 1<<12)
	if subtle.ConstantTimeCompare([]byte(r.PostFormValue("token")), []byte(c.token)) != 1 {
		http.Error(w, "the form is not of this console: load the page again", http.StatusForbidden)
		return
	}
	live := r.PostFormValue("how") == "plan"
	if live && c.offline {
		http.Error(w, "this console replays offline only", http.StatusForbidden)
		return
	}
	recording, err := c.history.recording(r.Context(), r.PathValue("id"), false)
	if err != nil {
		c.problem(w, http.StatusNotFound, "The recording cannot be read", err)
		return
	}
	replayed, told, difference, err := c.play(r.Context(), recording, live)
	if err != nil {
		p := recordingOf(recording)
		p.Verdict, p.Bad = err.Error(), true
		c.render(w, "recording", p)
		return
	}
	p := recordingOf(replayed)
	p.Recording.Header.ID = recording.Header.ID
	p.Verdict, p.Notes, p.Difference = told[0], told[1:], diffHTML(difference)
	p.Bad = difference != "" || len(p.Notes) > 0
	c.render(w, "recording", p)
}

func (c *console) play(ctx context.Context, recording *record.Recording, live bool) (replayed *record.Recording, told []string, difference string, err error) {
	c.playing.Lock()
	defer c.playing.Unlock()
	settings := recording.Header.Settings
	if settings == nil {
		settings = map[string]string{}
	}
	host, err := hostOf(recording.Header.Function, settings)
	if err != nil {
		return nil, nil, "", err
	}
	if live {
		r := replayOptions{options: c.options, mode: string(reconcile.ModePlan)}
		replayed, err = r.tryLive(ctx, host, recording)
		return replayed, []string{"This is what the live cluster asks for now. Nothing was written."}, "", err
	}
	out, err := host.Replay(ctx, recording)
	if err != nil {
		return nil, nil, "", err
	}
	if difference, err = differences(recording, out.Recording); err != nil {
		return nil, nil, "", err
	}
	verdict := fmt.Sprintf("Replayed by version %s: the same as recorded, byte for byte. Nothing was asked of any cluster.", record.Version())
	if difference != "" {
		verdict = fmt.Sprintf("Replayed by version %s: not what version %s recorded. Nothing was asked of any cluster.", record.Version(), recording.Header.Version)
	}
	report := replayReport{Unknown: out.Unknown, Settings: out.Settings, Unmapped: out.Unmapped, Concerns: out.Concerns}
	return out.Recording, append([]string{verdict}, report.notes()...), difference, nil
}
