package setting

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
)

type settings struct {
	Namespace, Object, Word string
	On                      bool
	Count                   int
	Wait, Short             time.Duration
	Room                    resource.Quantity
}

var variables = []Variable[settings]{
	{EnvVar: EnvVar{Name: "NAMESPACE", Default: "default"}, Allowed: ANamespace, Parse: Label(func(s *settings) *string { return &s.Namespace })},
	{EnvVar: EnvVar{Name: "OBJECT"}, Allowed: AnObject, Parse: Name(func(s *settings) *string { return &s.Object })},
	{
		EnvVar: EnvVar{Name: "WORD", Default: "blue"}, Allowed: "blue, or nothing", EmptyMatters: true,
		Parse: OneOf(func(s *settings) *string { return &s.Word }, "blue", ""),
	},
	{EnvVar: EnvVar{Name: "ON", Default: "true"}, Allowed: TrueOrFalse, Parse: Bool(func(s *settings) *bool { return &s.On })},
	{EnvVar: EnvVar{Name: "COUNT", Default: "5"}, Allowed: OneTo1000, Parse: Whole(func(s *settings) *int { return &s.Count }, 1, 1000)},
	{EnvVar: EnvVar{Name: "WAIT", Default: "10s"}, Allowed: TimeAbove0, Parse: Duration(func(s *settings) *time.Duration { return &s.Wait })},
	{
		EnvVar: EnvVar{Name: "SHORT", Default: "1s"}, Allowed: "a duration from 1s to 2s",
		Parse: DurationWithin(func(s *settings) *time.Duration { return &s.Short }, time.Second, 2*time.Second),
	},
	{EnvVar: EnvVar{Name: "ROOM", Default: "8Gi"}, Allowed: SizeAbove0, Parse: Size(func(s *settings) *resource.Quantity { return &s.Room })},
}

func environment(values map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, ok := values[name]
		return value, ok
	}
}

func TestParse(t *testing.T) {
	defaults := settings{Namespace: "default", Word: "blue", On: true, Count: 5, Wait: 10 * time.Second, Short: time.Second, Room: resource.MustParse("8Gi")}
	with := func(change func(*settings)) settings {
		s := defaults
		change(&s)
		return s
	}
	for name, c := range map[string]struct {
		reason string
		env    map[string]string
		want   settings
	}{
		"nothing is set":    {"defaults stand", nil, defaults},
		"set to nothing":    {"an empty value counts as unset", map[string]string{"NAMESPACE": "", "COUNT": ""}, defaults},
		"nothing means it":  {"unless it is a value of its own", map[string]string{"WORD": ""}, with(func(s *settings) { s.Word = "" })},
		"values":            {"what is set is used", map[string]string{"OBJECT": "a.b", "ON": "false", "COUNT": "1000", "SHORT": "2s"}, with(func(s *settings) { s.Object, s.On, s.Count, s.Short = "a.b", false, 1000, 2*time.Second })},
		"somebody else's":   {"other variables are not looked at", map[string]string{"HOME": "/"}, defaults},
		"no default at all": {"what has no default stays as it was", map[string]string{"OBJECT": ""}, defaults},
	} {
		t.Run(name, func(t *testing.T) {
			var got settings
			if err := Parse(&got, variables, environment(c.env)); err != nil {
				t.Fatalf("%s: %v", c.reason, err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

func TestAValueThatCannotBeUsedIsSaidWithTheWayOut(t *testing.T) {
	for _, v := range variables {
		for _, value := range map[string][]string{
			"NAMESPACE": {"a.b", "A"}, "OBJECT": {"a/b"}, "WORD": {"red"}, "ON": {"yes"}, "COUNT": {"0", "1001", "x", "1.5"},
			"WAIT": {"0s", "-1s", "10"}, "SHORT": {"999ms", "3s"}, "ROOM": {"0", "-1", "big"},
		}[v.Name] {
			var s settings
			err := Parse(&s, variables, environment(map[string]string{v.Name: value}))
			if err == nil {
				t.Errorf("%s=%q was taken", v.Name, value)
				continue
			}
			for _, part := range []string{v.Name, value, v.Allowed} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%s=%q: the error does not say %q: %v", v.Name, value, part, err)
				}
			}
		}
	}
}

func TestDocs(t *testing.T) {
	if got := Docs(variables); len(got) != len(variables) || got[0].Name != "NAMESPACE" {
		t.Errorf("all are documented, in their order: %v", got)
	}
	if got := Docs(variables, "COUNT", "ON"); len(got) != 2 || got[0].Name != "ON" || got[1].Name != "COUNT" {
		t.Errorf("those that are asked for are documented, in the order of the variables: %v", got)
	}
}
