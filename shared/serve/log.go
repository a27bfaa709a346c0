package serve

import (
	"io"
	"log/slog"
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
