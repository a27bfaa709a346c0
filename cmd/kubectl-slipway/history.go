package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/spf13/cobra"

	"github.com/slipway-dev/slipway/shared/record"
)

// readTimeout bounds one question to an archive.
const readTimeout = 15 * time.Second

// letter is an event that no function could take.
type letter struct {
	ID    string            `json:"id"`
	Event cloudevents.Event `json:"event"`
}

// history is where recordings and dead letters are.
type history interface {
	headers(ctx context.Context, f record.Filter) ([]record.Header, error)
	recording(ctx context.Context, id string, edited bool) (*record.Recording, error)
	letters(ctx context.Context) ([]letter, error)
}

func historyFlag(cmd *cobra.Command, from *string) {
	cmd.Flags().StringVar(from, "from", os.Getenv("SLIPWAY_RECORDINGS"),
		"directory with recordings, or URL of an event-archive; empty asks the cluster's event-archive (env SLIPWAY_RECORDINGS)")
}

// history finds recordings and dead letters.
func (o *options) history(from string) (history, error) {
	switch {
	case strings.HasPrefix(from, "http://") || strings.HasPrefix(from, "https://"):
		return &archive{client: &http.Client{Timeout: readTimeout}, url: strings.TrimSuffix(from, "/")}, nil
	case from != "":
		info, err := os.Stat(from)
		if err != nil {
			return nil, fmt.Errorf("cannot find recordings: %w", err)
		}
		if !info.IsDir() {
			return nil, fmt.Errorf("cannot find recordings in %q: it is no directory", from)
		}
		return folder(from), nil
	}
	return o.clusterArchive()
}

// byTokenFile lets an archive ask a file for its token, each time that it is refused: what
// a kubelet mounts is renewed.
func byTokenFile(h history, path string) error {
	a, ok := h.(*archive)
	if !ok {
		return errors.New("cannot use --token-file: a directory asks for no token")
	}
	a.renew = func(context.Context) (string, error) {
		text, err := os.ReadFile(path) //nolint:gosec // the file that the caller named
		if err != nil {
			return "", fmt.Errorf("cannot read the token for the archive: %w", err)
		}
		return strings.TrimSpace(string(text)), nil
	}
	return nil
}

// folder is a directory: of recordings, or of a local stack.
type folder string

// sub is a directory below, if it is there.
func (f folder) sub(name string) string {
	path := filepath.Join(string(f), name)
	if info, err := os.Stat(path); err == nil && info.IsDir() { //nolint:gosec // the directory that the caller named
		return path
	}
	return string(f)
}

func (f folder) headers(_ context.Context, filter record.Filter) ([]record.Header, error) {
	return record.Headers(f.sub("recordings"), filter)
}

func (f folder) recording(_ context.Context, id string, edited bool) (*record.Recording, error) {
	path, err := record.Find(f.sub("recordings"), id)
	if err != nil {
		return nil, err
	}
	return record.ReadFile(path, edited)
}

func (f folder) letters(context.Context) ([]letter, error) {
	dir := f.sub("event-archive")
	names, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, fmt.Errorf("cannot list the dead letters: %w", err)
	}
	slices.Sort(names)
	var out []letter
	for _, name := range names {
		raw, err := os.ReadFile(name) //nolint:gosec // a file of the directory that was asked for
		if err != nil {
			return nil, fmt.Errorf("cannot read a dead letter: %w", err)
		}
		l := letter{ID: strings.TrimSuffix(filepath.Base(name), ".json")}
		if json.Unmarshal(raw, &l.Event) == nil {
			out = append(out, l)
		}
	}
	return out, nil
}

// archive is an event-archive.
type archive struct {
	client *http.Client
	url    string
	// renew makes a token; nil where none is needed.
	renew func(ctx context.Context) (string, error)

	mu    sync.Mutex
	token string
}

// get asks the archive. A token that has expired is renewed once.
func (a *archive) get(ctx context.Context, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	code, text, err := a.ask(ctx, path)
	if err == nil && code == http.StatusUnauthorized && a.renew != nil {
		token, problem := a.renew(ctx)
		if problem != nil {
			return nil, problem
		}
		a.mu.Lock()
		a.token = token
		a.mu.Unlock()
		code, text, err = a.ask(ctx, path)
	}
	if err != nil {
		return nil, err
	}
	if code != http.StatusOK {
		return nil, fmt.Errorf("the archive at %s answered %d %s: %.300s; name a directory or another archive with --from", record.WithoutPasswords(a.url), code, http.StatusText(code), bytes.TrimSpace(text))
	}
	return text, nil
}

func (a *archive) ask(ctx context.Context, path string) (code int, text []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.url+path, nil) //nolint:gosec // the address that the caller named
	if err != nil {
		return 0, nil, fmt.Errorf("cannot ask the archive: %w", err)
	}
	a.mu.Lock()
	if a.token != "" {
		req.Header.Set("X-Slipway-Token", a.token)
	}
	a.mu.Unlock()
	resp, err := a.client.Do(req) //nolint:gosec // the address that the caller named
	if err != nil {
		return 0, nil, fmt.Errorf("cannot reach the archive: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	if text, err = io.ReadAll(io.LimitReader(resp.Body, 4*record.MaxSize)); err != nil {
		return 0, nil, fmt.Errorf("cannot read the archive's answer: %w", err)
	}
	return resp.StatusCode, text, nil
}

func (a *archive) list(ctx context.Context, path string, into any) error {
	text, err := a.get(ctx, path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("cannot read the archive's answer: %w", err)
	}
	return nil
}

func (a *archive) headers(ctx context.Context, f record.Filter) ([]record.Header, error) {
	q := url.Values{}
	for name, value := range map[string]string{"function": f.Function, "kind": f.Kind, "namespace": f.Namespace, "name": f.Name, "after": f.After} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if f.Limit > 0 {
		q.Set("limit", strconv.Itoa(f.Limit))
	}
	var list struct {
		Items []record.Header `json:"items"`
	}
	err := a.list(ctx, "/api/recordings?"+q.Encode(), &list)
	return list.Items, err
}

func (a *archive) recording(ctx context.Context, id string, edited bool) (*record.Recording, error) {
	if !record.ValidID(id) {
		return nil, fmt.Errorf("cannot find recording %q: that is no recording's name, and no file", id)
	}
	text, err := a.get(ctx, "/api/recordings/"+id)
	if err != nil {
		return nil, err
	}
	r, err := record.Parse(text)
	if errors.Is(err, record.ErrEdited) && edited {
		return r, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read recording %q: %w", id, err)
	}
	return r, nil
}

func (a *archive) letters(ctx context.Context) ([]letter, error) {
	var list struct {
		Items []letter `json:"items"`
	}
	err := a.list(ctx, "/api/deadletters", &list)
	return list.Items, err
}

const (
	archiveName = "event-archive"
	// archiveReaders is the Service of the port that readers come through.
	archiveReaders = "event-archive-readers"
	// reader is the account that a token is asked for: whoever may do that may read.
	reader = "recordings-reader"
)

// clusterArchive is the archive of the cluster, reached through the API server, with a
// token that the cluster makes for us.
func (o *options) clusterArchive() (history, error) {
	config, err := o.config()
	if err != nil {
		return nil, fmt.Errorf("%w; name a directory or an archive with --from", err)
	}
	client, server, err := apiServer(config)
	if err != nil {
		return nil, err
	}
	namespace := server + "/api/v1/namespaces/" + o.system
	return &archive{
		client: client, url: namespace + "/services/http:" + archiveReaders + ":80/proxy",
		renew: func(ctx context.Context) (string, error) { return readersToken(ctx, client, namespace) },
	}, nil
}

// readersToken asks for a token that the archive accepts.
func readersToken(ctx context.Context, client *http.Client, namespace string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	body := `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{"audiences":["` + archiveName + `"],"expirationSeconds":3600}}`
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, namespace+"/serviceaccounts/"+reader+"/token", strings.NewReader(body))
	if err != nil {
		return "", fmt.Errorf("cannot ask for a token: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return "", fmt.Errorf("cannot ask for a token: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	var answer struct {
		Status struct {
			Token string `json:"token"`
		} `json:"status"`
		Message string `json:"message"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&answer); resp.StatusCode/100 == 2 && err != nil {
		return "", errors.New("cannot ask for a token: the API server's answer cannot be read")
	}
	if resp.StatusCode/100 != 2 {
		return "", fmt.Errorf("cannot read the archive: you need the right to create a token of ServiceAccount %s: %s %s", reader, resp.Status, answer.Message)
	}
	return answer.Status.Token, nil
}
