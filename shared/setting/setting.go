// Package setting reads what a program is told by its environment: every variable
// has a default, a line for people, and what may stand there. A value that cannot be
// used is an error; nothing is guessed.
package setting

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
)

// EnvVar documents one environment variable.
type EnvVar struct{ Name, Default, Help string }

// Variable is one environment variable of settings S: how it is documented and
// parsed.
type Variable[S any] struct {
	EnvVar
	// Flag is the predecessor's flag of the same meaning, where it had one.
	Flag string
	// Allowed says what may stand there.
	Allowed string
	// EmptyMatters tells that an empty value is a value, not an absence.
	EmptyMatters bool
	// Parse puts a value into the settings; false refuses it.
	Parse func(s *S, value string) bool
}

// Parse reads the variables. A variable that is not set, or is empty where that has
// no meaning, has its default; one without a default then leaves s as it is. The
// error names the variable, its value and what is allowed.
func Parse[S any](s *S, variables []Variable[S], lookup func(name string) (string, bool)) error {
	for _, v := range variables {
		value, ok := lookup(v.Name)
		if !ok || (value == "" && !v.EmptyMatters) {
			value = v.Default
		}
		if value == "" && !v.EmptyMatters {
			continue
		}
		if !v.Parse(s, value) {
			return fmt.Errorf("cannot use environment variable %s=%q: allowed is %s", v.Name, value, v.Allowed)
		}
	}
	return nil
}

// Docs documents variables: those of the names given, or all.
func Docs[S any](variables []Variable[S], names ...string) []EnvVar {
	var docs []EnvVar
	for _, v := range variables {
		if len(names) == 0 || slices.Contains(names, v.Name) {
			docs = append(docs, v.EnvVar)
		}
	}
	return docs
}

// The texts of Variable.Allowed that many have in common.
const (
	ANamespace  = "a namespace's name"
	AnObject    = "an object's name"
	TrueOrFalse = "true or false"
	OneTo1000   = "a whole number from 1 to 1000"
	SizeAbove0  = "a size above 0, like 8Gi"
	TimeAbove0  = "a duration above 0, like 10s"
)

// Label takes the name of a namespace.
func Label[S any](field func(*S) *string) func(*S, string) bool {
	return func(s *S, value string) bool {
		*field(s) = value
		return len(validation.IsDNS1123Label(value)) == 0
	}
}

// Name takes the name of an object.
func Name[S any](field func(*S) *string) func(*S, string) bool {
	return func(s *S, value string) bool {
		*field(s) = value
		return len(validation.IsDNS1123Subdomain(value)) == 0
	}
}

// OneOf takes one of some words.
func OneOf[S any, T ~string](field func(*S) *T, words ...T) func(*S, string) bool {
	return func(s *S, value string) bool {
		*field(s) = T(value)
		return slices.Contains(words, T(value))
	}
}

// Bool takes true or false, and what strconv.ParseBool takes for them.
func Bool[S any](field func(*S) *bool) func(*S, string) bool {
	return func(s *S, value string) bool {
		b, err := strconv.ParseBool(value)
		*field(s) = b
		return err == nil
	}
}

// Whole takes a whole number within bounds.
func Whole[S any](field func(*S) *int, least, most int) func(*S, string) bool {
	return func(s *S, value string) bool {
		n, err := strconv.Atoi(value)
		*field(s) = n
		return err == nil && n >= least && n <= most
	}
}

// Duration takes a duration above zero.
func Duration[S any](field func(*S) *time.Duration) func(*S, string) bool {
	return DurationWithin(field, 1, math.MaxInt64)
}

// DurationWithin takes a duration within bounds.
func DurationWithin[S any](field func(*S) *time.Duration, least, most time.Duration) func(*S, string) bool {
	return func(s *S, value string) bool {
		d, err := time.ParseDuration(value)
		*field(s) = d
		return err == nil && d >= least && d <= most
	}
}

// Size takes a quantity above zero.
func Size[S any](field func(*S) *resource.Quantity) func(*S, string) bool {
	return func(s *S, value string) bool {
		q, err := resource.ParseQuantity(value)
		*field(s) = q
		return err == nil && q.Sign() > 0
	}
}
