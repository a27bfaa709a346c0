package caller

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// EnvAudience is what tokens have to be for; setting it puts the gate up.
	EnvAudience = "EVENT_AUDIENCE"
	// EnvSenders are the accounts whose tokens let an event in, with commas between.
	EnvSenders = "EVENT_SENDERS"
	// EnvTokenFile is the file with this process' own token, for the broker.
	EnvTokenFile = "K_SINK_TOKEN_FILE" //nolint:gosec // a name, not a token
)

const (
	// remembered is how long the answer about a token holds.
	remembered = time.Minute
	// mostRemembered bounds the memory; a function has one or two senders.
	mostRemembered = 1000
	// longestToken bounds what is looked at; a token has about a thousand bytes.
	longestToken = 16 << 10
)

// Review asks whose a token is. An empty name without an error says that it is
// nobody's, or not for the audience.
type Review func(ctx context.Context, token, audience string) (user string, err error)

// Gate lets events of known senders through.
type Gate struct {
	// Audience is what a token has to be for.
	Audience string
	// Senders are the users whose tokens let an event in.
	Senders []string
	// Review asks the API server.
	Review Review
	// Now is the clock.
	Now func() time.Time

	mu    sync.Mutex
	known map[[sha256.Size]byte]answer
}

type answer struct {
	user  string
	until time.Time
}

// FromEnvironment makes the gate that the environment asks for; nil if it asks for
// none. The review is made only if there is a gate.
func FromEnvironment(getenv func(string) string, review func() (Review, error)) (*Gate, error) {
	audience, list := getenv(EnvAudience), getenv(EnvSenders)
	if audience == "" && list == "" {
		return nil, nil //nolint:nilnil // no gate is an answer, not a failure
	}
	var senders []string
	for sender := range strings.SplitSeq(list, ",") {
		if sender = strings.TrimSpace(sender); sender != "" {
			senders = append(senders, sender)
		}
	}
	if audience == "" || len(senders) == 0 {
		return nil, fmt.Errorf("cannot tell who may send events: set both %s and %s, or neither", EnvAudience, EnvSenders)
	}
	ask, err := review()
	if err != nil {
		return nil, err
	}
	return &Gate{Audience: audience, Senders: senders, Review: ask, Now: time.Now}, nil
}

type admitted struct{}

// Admitted tells whether a gate let the request through.
func Admitted(ctx context.Context) bool { return ctx.Value(admitted{}) != nil }

// Required tells whether the environment asks for a gate.
func Required(getenv func(string) string) bool {
	return getenv(EnvAudience) != "" || getenv(EnvSenders) != ""
}

// Guard puts the gate before a handler. Health checks pass: the kubelet has no token.
// A nil gate lets everything through.
func (g *Gate) Guard(next http.Handler) http.Handler {
	if g == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/health/") {
			next.ServeHTTP(w, r)
			return
		}
		if status, why := g.judge(r); status != http.StatusOK {
			if status == http.StatusUnauthorized {
				w.Header().Set("WWW-Authenticate", "Bearer")
			}
			http.Error(w, why, status)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), admitted{}, true)))
	})
}

// judge tells the HTTP status of a request, and why.
func (g *Gate) judge(r *http.Request) (status int, why string) {
	token, ok := bearer(r)
	if !ok {
		return http.StatusUnauthorized, "the event came without a token: only events of a Trigger whose subscriber has the audience " + g.Audience + " are taken"
	}
	if !claims(token, g.Audience) {
		return http.StatusUnauthorized, "the event's token is for another audience than " + g.Audience
	}
	user, err := g.whose(r.Context(), token)
	if err != nil {
		return http.StatusServiceUnavailable, "the API server cannot be asked whose the event's token is"
	}
	if user == "" {
		return http.StatusUnauthorized, "the event's token is not valid"
	}
	if !slices.Contains(g.Senders, user) {
		return http.StatusForbidden, "events of " + user + " are not taken"
	}
	return http.StatusOK, ""
}

// whose asks the API server, or remembers what it said.
func (g *Gate) whose(ctx context.Context, token string) (string, error) {
	hash := sha256.Sum256([]byte(token))
	g.mu.Lock()
	known, ok := g.known[hash]
	g.mu.Unlock()
	if ok && g.Now().Before(known.until) {
		return known.user, nil
	}
	user, err := g.Review(ctx, token, g.Audience)
	if err != nil || user == "" {
		return "", err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.known == nil || len(g.known) >= mostRemembered {
		g.known = map[[sha256.Size]byte]answer{}
	}
	g.known[hash] = answer{user: user, until: g.Now().Add(remembered)}
	return user, nil
}

func bearer(r *http.Request) (string, bool) {
	scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	return token, ok && strings.EqualFold(scheme, "Bearer") && token != "" && len(token) <= longestToken
}

// claims tells whether a token says of itself that it is for the audience. Nothing
// is proven by that; it spares the API server what cannot be good.
func claims(token, audience string) bool {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return false
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return false
	}
	var body struct {
		Audience audiences `json:"aud"`
	}
	return json.Unmarshal(payload, &body) == nil && slices.Contains(body.Audience, audience)
}

// audiences is one or several, as tokens write them.
type audiences []string

// UnmarshalJSON implements json.Unmarshaler.
func (a *audiences) UnmarshalJSON(raw []byte) error {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		*a = audiences{one}
		return nil
	}
	var several []string
	if err := json.Unmarshal(raw, &several); err != nil {
		return errors.New("an audience is a text or a list of texts")
	}
	*a = several
	return nil
}
