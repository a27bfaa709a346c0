package adapter

import (
	"context"
	"log/slog"
	"maps"
	"slices"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// zapTo is a zap logger whose lines go to log: Knative logs by zap, the rest of
// the process by slog, and people read one kind of line. What Knative calls info
// is of use only to its own authors, so it becomes debug.
func zapTo(log *slog.Logger) *zap.Logger {
	return zap.New(&bridge{log: log, LevelEnabler: zapcore.DebugLevel})
}

type bridge struct {
	zapcore.LevelEnabler
	log    *slog.Logger
	fields []zapcore.Field
}

var _ zapcore.Core = (*bridge)(nil)

// With implements zapcore.Core.
func (b *bridge) With(fields []zapcore.Field) zapcore.Core {
	joined := append(append([]zapcore.Field{}, b.fields...), fields...)
	return &bridge{LevelEnabler: b.LevelEnabler, log: b.log, fields: joined}
}

// Check implements zapcore.Core.
func (b *bridge) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if !b.log.Enabled(context.Background(), level(entry.Level)) {
		return checked
	}
	return checked.AddCore(entry, b)
}

// Write implements zapcore.Core.
func (b *bridge) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	encoder := zapcore.NewMapObjectEncoder()
	for _, field := range b.fields {
		field.AddTo(encoder)
	}
	for _, field := range fields {
		field.AddTo(encoder)
	}
	var attributes []any
	for _, name := range slices.Sorted(maps.Keys(encoder.Fields)) {
		attributes = append(attributes, slog.Any(name, encoder.Fields[name]))
	}
	b.log.Log(context.Background(), level(entry.Level), entry.Message, attributes...)
	return nil
}

// Sync implements zapcore.Core.
func (b *bridge) Sync() error { return nil }

func level(of zapcore.Level) slog.Level {
	switch {
	case of >= zapcore.ErrorLevel:
		return slog.LevelError
	case of == zapcore.WarnLevel:
		return slog.LevelWarn
	default:
		return slog.LevelDebug
	}
}
