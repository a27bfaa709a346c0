package report_test

import (
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/deploy/local/eventing/report"
)

func TestALineOfAFunctionIsAnObjectIfItParsesAsOne(t *testing.T) {
	for text, want := range map[string]string{
		`{"b":1,"a":"<"}`: `{"kind":"log","function":"fn","line":{"b":1,"a":"<"}}`,
		`plain "text"`:    `{"kind":"log","function":"fn","line":"plain \"text\""}`,
		`[1]`:             `{"kind":"log","function":"fn","line":"[1]"}`,
		`null`:            `{"kind":"log","function":"fn","line":"null"}`,
	} {
		var out strings.Builder
		report.New(&out).Write(report.FunctionLine("fn", []byte(text)))
		if got := strings.TrimSuffix(out.String(), "\n"); got != want {
			t.Errorf("the line %s became %s, want %s", text, got, want)
		}
	}
}
