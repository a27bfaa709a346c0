package decode

import (
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

const (
	// maxDepth is how deep values may be nested.
	maxDepth = 200
	// maxNames and maxName bound the names that are shared.
	maxNames, maxName = 1024, 64
)

// parser goes over a text once.
type parser struct {
	text []byte
	at   int
	// names are those of fields seen before.
	names map[string]string
	// ok is false once something was met that is left to others.
	ok bool
}

// parsers keeps names from one text to the next.
var parsers = sync.Pool{New: func() any { return &parser{names: map[string]string{}} }}

// parse reads a JSON object; false if that is left to others.
func parse(text []byte) (map[string]any, bool) {
	p, _ := parsers.Get().(*parser)
	defer func() {
		p.text = nil
		parsers.Put(p)
	}()
	if len(p.names) > maxNames {
		clear(p.names)
	}
	p.text, p.at, p.ok = text, 0, true
	value := p.value(0)
	p.space()
	fields, is := value.(map[string]any)
	return fields, p.ok && is && p.at == len(text)
}

func (p *parser) fail() any {
	p.ok = false
	p.at = len(p.text)
	return nil
}

func (p *parser) space() {
	for p.at < len(p.text) {
		switch p.text[p.at] {
		case ' ', '\n', '\t', '\r':
			p.at++
		default:
			return
		}
	}
}

// next is the first byte that is no space; 0 at the end.
func (p *parser) next() byte {
	p.space()
	if p.at == len(p.text) {
		return 0
	}
	return p.text[p.at]
}

func (p *parser) value(depth int) any {
	if depth > maxDepth {
		return p.fail()
	}
	switch c := p.next(); {
	case c == '{':
		return p.object(depth)
	case c == '[':
		return p.array(depth)
	case c == '"':
		return p.string()
	case c == 't':
		return p.word("true", true)
	case c == 'f':
		return p.word("false", false)
	case c == 'n':
		return p.word("null", nil)
	case c == '-' || (c >= '0' && c <= '9'):
		return p.number()
	}
	return p.fail()
}

func (p *parser) word(word string, value any) any {
	end := p.at + len(word)
	if end > len(p.text) || string(p.text[p.at:end]) != word {
		return p.fail()
	}
	p.at = end
	return value
}

func (p *parser) object(depth int) any {
	fields := map[string]any{}
	p.at++
	if p.next() == '}' {
		p.at++
		return fields
	}
	for p.ok {
		if p.next() != '"' {
			return p.fail()
		}
		name := p.name()
		if p.next() != ':' {
			return p.fail()
		}
		p.at++
		fields[name] = p.value(depth + 1)
		switch p.next() {
		case ',':
			p.at++
		case '}':
			p.at++
			return fields
		default:
			return p.fail()
		}
	}
	return nil
}

func (p *parser) array(depth int) any {
	items := []any{}
	p.at++
	if p.next() == ']' {
		p.at++
		return items
	}
	for p.ok {
		items = append(items, p.value(depth+1))
		switch p.next() {
		case ',':
			p.at++
		case ']':
			p.at++
			return items
		default:
			return p.fail()
		}
	}
	return nil
}

// maxDigits is how many digits certainly fit into 64 bits.
const maxDigits = 18

// number reads an integer. Others, and those that are spelled in an unusual way, are left
// to others.
func (p *parser) number() any {
	start := p.at
	if p.text[p.at] == '-' {
		p.at++
	}
	first := p.at
	for p.at < len(p.text) && p.text[p.at] >= '0' && p.text[p.at] <= '9' {
		p.at++
	}
	digits := p.text[first:p.at]
	if len(digits) == 0 || len(digits) > maxDigits || p.goesOn() {
		return p.fail()
	}
	if digits[0] == '0' && p.at-start > 1 {
		return p.fail() // a leading zero, or minus zero
	}
	n, err := strconv.ParseInt(string(p.text[start:p.at]), 10, 64)
	if err != nil {
		return p.fail()
	}
	return n
}

// goesOn tells whether what follows digits makes them a part of another number.
func (p *parser) goesOn() bool {
	return p.at < len(p.text) && strings.IndexByte(".eE+-", p.text[p.at]) >= 0
}

// name is the name of a field.
func (p *parser) name() string {
	raw, plain := p.quoted()
	if !p.ok {
		return ""
	}
	if !plain {
		return p.unquote(raw)
	}
	if known, ok := p.names[string(raw)]; ok {
		return known
	}
	name := string(raw)
	if len(name) <= maxName && len(p.names) <= maxNames {
		p.names[name] = name
	}
	return name
}

func (p *parser) string() any {
	raw, plain := p.quoted()
	if !p.ok {
		return nil
	}
	if plain {
		return string(raw)
	}
	return p.unquote(raw)
}

// quoted is what stands between two quotes; plain if it means itself.
func (p *parser) quoted() (raw []byte, plain bool) {
	p.at++
	start := p.at
	plain = true
	for p.at < len(p.text) {
		switch c := p.text[p.at]; {
		case c == '"':
			raw = p.text[start:p.at]
			p.at++
			return raw, plain
		case c == '\\':
			plain = false
			p.at += 2
		case c < ' ':
			p.fail()
			return nil, false
		case c < utf8.RuneSelf:
			p.at++
		default:
			_, size := utf8.DecodeRune(p.text[p.at:])
			if size == 1 {
				p.fail() // no UTF-8
				return nil, false
			}
			p.at += size
		}
	}
	p.fail()
	return nil, false
}

// simple are the escapes that stand for one character.
var simple = map[byte]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// unquote resolves escapes. Half a pair of surrogates is left to others.
func (p *parser) unquote(raw []byte) string {
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			out = append(out, raw[i])
			continue
		}
		i++
		if raw[i] == 'u' {
			if i+4 >= len(raw) {
				p.fail()
				return ""
			}
			n, err := strconv.ParseUint(string(raw[i+1:i+5]), 16, 16)
			if err != nil || (n >= 0xd800 && n < 0xe000) {
				p.fail()
				return ""
			}
			out = utf8.AppendRune(out, rune(n))
			i += 4
			continue
		}
		c, ok := simple[raw[i]]
		if !ok {
			p.fail()
			return ""
		}
		out = append(out, c)
	}
	return string(out)
}
