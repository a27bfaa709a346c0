package decode

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
)

// Without tells the clients of this package that nobody looks at these fields of what is
// read with the context: dotted paths of an object, with [] after a list. Where they stand
// in an answer, null stands before it is decoded: to pass over a text takes a small part
// of what it takes to make values of it. A caller drops the fields from what it gets.
func Without(ctx context.Context, paths []string) context.Context {
	if len(paths) == 0 {
		return ctx
	}
	return context.WithValue(ctx, unwanted{}, paths)
}

type unwanted struct{}

// lean is a transport that empties what is unwanted.
type lean struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (l lean) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := l.next.RoundTrip(req)
	paths, _ := req.Context().Value(unwanted{}).([]string)
	if err != nil || len(paths) == 0 || resp.StatusCode != http.StatusOK || !strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") {
		return resp, err
	}
	text, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	var rest io.Reader = bytes.NewReader(emptied(text, paths))
	if err != nil {
		rest = io.MultiReader(bytes.NewReader(text), failing{err})
	}
	resp.Body, resp.ContentLength = io.NopCloser(rest), -1
	resp.Header.Del("Content-Length")
	return resp, nil
}

// failing is the end of an answer that broke off.
type failing struct{ err error }

// Read implements io.Reader.
func (f failing) Read([]byte) (int, error) { return 0, f.err }

// field is what is known of a field: that it is unwanted, or what is in it. items are
// those of a list.
type field struct {
	unwanted bool
	items    *field
	fields   map[string]*field
}

func (f *field) child(name string) *field {
	if f.fields == nil {
		f.fields = map[string]*field{}
	}
	if f.fields[name] == nil {
		f.fields[name] = &field{}
	}
	return f.fields[name]
}

// add marks what a path leads to.
func (f *field) add(path []string) {
	for i, part := range path {
		name, isList := strings.CutSuffix(part, "[]")
		f = f.child(name)
		if isList && i < len(path)-1 {
			if f.items == nil {
				f.items = &field{}
			}
			f = f.items
		}
	}
	f.unwanted = true
}

// emptied is a text with null for what is unwanted of an object, or of each object of a
// list. A text that is no JSON stays as it is.
func emptied(text []byte, paths []string) []byte {
	root := &field{}
	for _, path := range paths {
		root.add(strings.Split(path, "."))
		root.add(append([]string{"items[]"}, strings.Split(path, ".")...))
	}
	w := &walker{text: text}
	if !w.value(root) {
		return text
	}
	return append(w.out, text[w.kept:]...)
}

// walker passes over a text. kept is where what has not been copied yet begins.
type walker struct {
	text, out []byte
	at, kept  int
}

func (w *walker) space() {
	for w.at < len(w.text) && (w.text[w.at] == ' ' || w.text[w.at] == '\n' || w.text[w.at] == '\t' || w.text[w.at] == '\r') {
		w.at++
	}
}

// next is the next character after space; 0 at the end.
func (w *walker) next() byte {
	w.space()
	if w.at == len(w.text) {
		return 0
	}
	return w.text[w.at]
}

// take passes over one character, if it is that.
func (w *walker) take(c byte) bool {
	if w.next() != c {
		return false
	}
	w.at++
	return true
}

// value passes over a value of which something is known; false if it is none.
func (w *walker) value(f *field) bool {
	switch c := w.next(); {
	case f != nil && f.unwanted:
		w.out = append(append(w.out, w.text[w.kept:w.at]...), "null"...)
		ok := w.skip()
		w.kept = w.at
		return ok
	case f != nil && f.fields != nil && c == '{':
		return w.members(func(name string) *field { return f.fields[name] })
	case f != nil && f.items != nil && c == '[':
		return w.elements(f.items)
	}
	return w.skip()
}

func (w *walker) members(of func(name string) *field) bool {
	w.at++
	if w.take('}') {
		return true
	}
	for {
		if w.next() != '"' {
			return false
		}
		from := w.at
		if !w.quoted() {
			return false
		}
		name := string(w.text[from+1 : w.at-1])
		if !w.take(':') || !w.value(of(name)) {
			return false
		}
		if w.take('}') {
			return true
		}
		if !w.take(',') {
			return false
		}
	}
}

func (w *walker) elements(f *field) bool {
	w.at++
	if w.take(']') {
		return true
	}
	for {
		if !w.value(f) {
			return false
		}
		if w.take(']') {
			return true
		}
		if !w.take(',') {
			return false
		}
	}
}

// skip passes over a value that is not looked into: whether its inside is JSON is for the
// decoder to say, unless it is unwanted, and then nobody asks.
func (w *walker) skip() bool {
	depth := 0
	for c := w.next(); c != 0; c = w.next() {
		switch c {
		case '"':
			if !w.quoted() {
				return false
			}
		case '{', '[':
			depth++
			w.at++
		case '}', ']':
			depth--
			w.at++
		case ',', ':':
			if depth == 0 {
				return false
			}
			w.at++
			continue
		default:
			w.literal()
		}
		if depth <= 0 {
			return depth == 0
		}
	}
	return false
}

// literal passes over a number or a word.
func (w *walker) literal() {
	for w.at < len(w.text) && !bytes.ContainsRune([]byte(" \n\t\r,:{}[]\""), rune(w.text[w.at])) {
		w.at++
	}
}

// quoted passes over a string.
func (w *walker) quoted() bool {
	for w.at++; ; w.at++ {
		next := bytes.IndexByte(w.text[w.at:], '"')
		if next < 0 {
			return false
		}
		w.at += next
		escapes := 0
		for escapes < w.at && w.text[w.at-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			w.at++
			return true
		}
	}
}
