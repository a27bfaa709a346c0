package decode

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var texts = map[string]string{
	"Object":      `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","labels":{}},"n":[1,-2,0,true,false,null,"x"]}`,
	"Spaces":      " {\n\t\"apiVersion\" : \"v1\" , \"kind\":\"Pod\" , \"a\" : [ ] , \"b\":[ 1 , 2 ]\r}\n",
	"Escapes":     `{"apiVersion":"v1","kind":"Pod","a":"\"\\\/\b\f\n\r\t\u00e9\u2028ü","\u0061b":"c"}`,
	"Surrogates":  `{"apiVersion":"v1","kind":"Pod","a":"\ud83d\ude00 \ud83d x"}`,
	"Floats":      `{"apiVersion":"v1","kind":"Pod","a":1.5,"b":1e3,"c":-0,"d":12345678901234567890,"e":999999999999999999,"f":9223372036854775807}`,
	"Twice":       `{"apiVersion":"v1","kind":"Pod","a":1,"a":2}`,
	"NotUTF8":     "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"a\":\"\xff\"}",
	"Deep":        `{"apiVersion":"v1","kind":"Pod","a":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `}`,
	"LeadingZero": `{"apiVersion":"v1","kind":"Pod","a":01}`,
	"Comma":       `{"apiVersion":"v1","kind":"Pod",}`,
	"More":        `{"apiVersion":"v1","kind":"Pod"} x`,
	"Cut":         `{"apiVersion":"v1","kind":"Pod","a":"\`,
	"Control":     "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"a\":\"\n\"}",
	"Array":       `[]`, "Empty": ``, "Null": `null`, "Word": `{"a":nul}`,
}

func TestAnObjectIsReadAsClientGoReadsIt(t *testing.T) {
	for name, text := range texts {
		t.Run(name, func(t *testing.T) { agree(t, []byte(text)) })
	}
}

// agree fails unless a text is read, or refused, as client-go does it.
func agree(t *testing.T, text []byte) {
	t.Helper()
	for _, pair := range [][2]runtime.Object{
		{&unstructured.Unstructured{}, &unstructured.Unstructured{}},
		{&unstructured.UnstructuredList{}, &unstructured.UnstructuredList{}},
	} {
		_, wantKind, wrong := scheme{}.Decode(text, nil, pair[0])
		_, gotKind, err := decoder{scheme{}}.Decode(text, nil, pair[1])
		if (wrong == nil) != (err == nil) {
			t.Fatalf("%q: the error is %v, client-go's is %v", text, err, wrong)
		}
		if wrong != nil {
			continue
		}
		if diff := cmp.Diff(wantKind, gotKind); diff != "" {
			t.Errorf("%q is of another kind (-client-go +got):\n%s", text, diff)
		}
		// The difference of two deeply nested values takes for ever, their equality does not.
		if !reflect.DeepEqual(pair[0], pair[1]) {
			t.Errorf("%q was read otherwise:\nclient-go %#v\ngot %#v", text, pair[0], pair[1])
		}
	}
}

func FuzzAnAnswer(f *testing.F) {
	for _, text := range texts {
		f.Add([]byte(text))
	}
	for _, text := range lists {
		f.Add([]byte(text))
	}
	f.Fuzz(agree)
}

// scheme decodes as client-go's dynamic client does.
type scheme struct{}

func (scheme) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	return unstructured.UnstructuredJSONScheme.Decode(data, defaults, into)
}

func many(n int) []byte {
	var b strings.Builder
	b.WriteString(`{"apiVersion":"v1","kind":"PodList","metadata":{"resourceVersion":"7","continue":"x"},"items":[`)
	for i := range n {
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, `{"metadata":{"name":"pod-%d","namespace":"default","uid":"%d","labels":{"app":"web"},"managedFields":[{"manager":"m","operation":"Apply",`+
			`"apiVersion":"v1","time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:labels":{"f:app":{}}},"f:spec":{"f:replicas":{},"f:template":{"f:a":{},"f:b":{}}}}}]},`+
			`"spec":{"replicas":3,"text":"some text of ordinary length","list":[{"name":"a"},{"name":"b"}]},"status":{"conditions":[{"type":"Ready","status":"True","reason":"Ready","message":"all is well"}]}}`, i, i)
	}
	b.WriteString("]}")
	return []byte(b.String())
}

var lists = map[string]string{
	"BuiltIn": string(many(3)),
	"Custom":  `{"apiVersion":"a/v1","kind":"XList","items":[{"apiVersion":"a/v1","kind":"X"}]}`,
	"None":    `{"apiVersion":"a/v1","kind":"XList","metadata":{},"items":[]}`,
	"Null":    `{"apiVersion":"a/v1","kind":"XList","metadata":{},"items":null}`,
	"NoItems": `{"apiVersion":"a/v1","kind":"X"}`,
	"Wrong":   `{"apiVersion":"a/v1","kind":"XList","items":[1]}`,
	"Half":    `{"apiVersion":"a/v1","kind":"XList","items":[{"kind":"X"},{"apiVersion":"a/v1"},{}]}`,
}

func TestAListIsReadAsClientGoReadsIt(t *testing.T) {
	for name, text := range lists {
		t.Run(name, func(t *testing.T) { agree(t, []byte(text)) })
	}
}

func TestAStatusIsLeftToClientGo(t *testing.T) {
	for _, text := range []string{`{"apiVersion":"v1","kind":"Status"}`, `{"metadata":{}}`} {
		if obj := (&unstructured.Unstructured{}); object([]byte(text), obj) {
			t.Errorf("%s was read as %v", text, obj.Object)
		}
	}
}

func BenchmarkList(b *testing.B) {
	text := many(100)
	for name, d := range map[string]runtime.Decoder{"client-go": scheme{}, "decode": decoder{scheme{}}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				var list unstructured.UnstructuredList
				if _, _, err := d.Decode(text, nil, &list); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
