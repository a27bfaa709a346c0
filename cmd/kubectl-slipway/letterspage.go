package main

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/slipway-dev/slipway/shared/reconcile"
	"github.com/slipway-dev/slipway/shared/record"
)

type attribute struct{ Name, Value string }

type shownLetter struct {
	ID, Type, About, Time, Code string
	Attributes                  []attribute
}

func (c *console) lettersPage(w http.ResponseWriter, r *http.Request) {
	letters, err := c.history.letters(r.Context())
	if err != nil {
		c.problem(w, http.StatusBadGateway, "The dead letters cannot be listed", err)
		return
	}
	p := page{Title: "Dead letters", Page: "letters"}
	for i := len(letters) - 1; i >= 0 && len(p.Letters) < shown; i-- {
		p.Letters = append(p.Letters, letterOf(letters[i]))
	}
	c.render(w, "letters", p)
}

// aboutOf is what a dead letter was about: "Machine team-a/web".
func aboutOf(l letter) string {
	text := func(name string) string { value, _ := l.Event.Extensions()[name].(string); return value }
	about := cmp.Or(l.Event.Subject(), l.Event.ID())
	if text("kind") != "" {
		about = text("kind") + " " + reconcile.Key{Namespace: text("namespace"), Name: text("name")}.String()
	}
	return record.WithoutPasswords(about)
}

// letterOf is a dead letter without its data, which nobody has looked at for secrets.
func letterOf(l letter) shownLetter {
	out := shownLetter{ID: l.ID, Type: l.Event.Type(), About: aboutOf(l)}
	if at := l.Event.Time(); !at.IsZero() {
		out.Time = at.Local().Format(time.DateTime + " MST")
	}
	attributes := map[string]string{"subject": l.Event.Subject(), "id": l.Event.ID(), "source": l.Event.Source(), "data": fmt.Sprintf("%d bytes", len(l.Event.Data()))}
	for name, value := range l.Event.Extensions() {
		attributes[name] = fmt.Sprint(value)
	}
	out.Code = attributes["knativeerrorcode"]
	// What a function answered may quote what it was sent.
	delete(attributes, "knativeerrordata")
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		value := record.WithoutPasswords(attributes[name])
		if record.SecretName(name) {
			value = "[not shown]"
		}
		out.Attributes = append(out.Attributes, attribute{name, value})
	}
	return out
}
