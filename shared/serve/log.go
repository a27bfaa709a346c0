package serve

import (
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
)

// Logger writes JSON lines whose fields are named as the operators that
// Slipway replaces name them: timestamp, level in lower case, message.
func Logger(w io.Writer, level string) *slog.Logger {
	var lowest slog.Level
	if err := lowest.UnmarshalText([]byte(level)); err != nil {
		lowest = slog.LevelInfo
	}
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: lowest, ReplaceAttr: rename}))
}

// CheckLevel says whether a level is one: debug, info, warn or error, or empty for
// info.
func CheckLevel(level string) error {
	if !slices.Contains([]string{"", "debug", "info", "warn", "error"}, level) {
		return fmt.Errorf("cannot log at level %q: allowed is debug, info, warn or error", level)
	}
	return nil
}

func rename(groups []string, a slog.Attr) slog.Attr {
	if len(groups) > 0 {
		return a
	}
	switch a.Key {
	case slog.TimeKey:
		a.Key = "timestamp"
	case slog.MessageKey:
		a.Key = "message"
	case slog.LevelKey:
		a.Value = slog.StringValue(strings.ToLower(a.Value.String()))
	}
	if a.Value.Kind() == slog.KindString && a.Value.String() == "" {
		return slog.Attr{}
	}
	return a
}
