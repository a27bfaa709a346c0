package channel

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/cloudevents/sdk-go/v2/binding"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	"go.uber.org/zap"
	"knative.dev/eventing/pkg/broker"
	"knative.dev/eventing/pkg/kncloudevents"
	"knative.dev/eventing/pkg/kncloudevents/attributes"
	"knative.dev/eventing/pkg/utils"
	duckv1 "knative.dev/pkg/apis/duck/v1"

	"github.com/slipway-dev/slipway/deploy/local/eventing/names"
	"github.com/slipway-dev/slipway/deploy/local/eventing/queue"
	"github.com/slipway-dev/slipway/deploy/local/eventing/report"
)

// reasonLength is how much of a function's answer people are shown.
const reasonLength = 200

// once is a delivery without retries: the queue makes them, so that they do not
// hold up other events.
func once(retry kncloudevents.RetryConfig) *kncloudevents.RetryConfig {
	config := kncloudevents.NoRetries()
	config.RequestTimeout = retry.RequestTimeout
	return &config
}

// try makes one try at delivering the item.
func (t *Table) try(ctx context.Context, s *subscriber, i *item, try int) queue.Result {
	delivery := s.delivery.Load()
	start := time.Now()
	info, err := t.options.Dispatcher.SendEvent(ctx, i.event, delivery.Target,
		kncloudevents.WithHeader(i.headers.Clone()), kncloudevents.WithRetryConfig(once(delivery.Retry)))
	if ctx.Err() != nil {
		return queue.Result{}
	}
	again := err != nil && try <= delivery.Retry.RetryMax && retriable(ctx, delivery.Retry, info)
	line := report.Event{
		Kind: report.KindEvent, Subject: s.subject(i.event), Function: i.function,
		Status: info.ResponseCode, DurationMs: milliseconds(time.Since(start)), Attempt: try,
	}
	result := queue.Result{Again: again}
	switch {
	case again:
		result.After = delivery.Retry.Backoff(try-1, nil)
		line.RetryMs = milliseconds(result.After)
	case err != nil:
		result.Finally = func(ctx context.Context) {
			t.bury(ctx, s, i, delivery, delivery.Target, info, try)
		}
	default:
		result.Finally = t.reply(s, i, delivery, info, try)
	}
	t.options.Report.Write(line)
	return result
}

// retriable asks Knative whether the answer is worth another try.
func retriable(ctx context.Context, retry kncloudevents.RetryConfig, info *kncloudevents.DispatchInfo) bool {
	again, err := retry.CheckRetry(ctx, &http.Response{StatusCode: info.ResponseCode, Header: info.ResponseHeader}, nil)
	return again && err == nil
}

// reply is what sends the answer to the broker, if it is an event; nil if not.
func (t *Table) reply(s *subscriber, i *item, delivery *Delivery, info *kncloudevents.DispatchInfo, try int) func(context.Context) {
	message := cehttp.NewMessage(info.ResponseHeader, io.NopCloser(bytes.NewReader(info.ResponseBody)))
	if delivery.Reply == nil || message.ReadEncoding() == binding.EncodingUnknown {
		return nil
	}
	return func(ctx context.Context) {
		event, err := binding.ToEvent(ctx, message)
		if err != nil {
			// The filter turned down what is no event, so this cannot be reached
			// but by a change of Knative's.
			t.options.Log.Error("cannot read a reply", zap.Stringer("trigger", s.trigger), zap.Error(err))
			return
		}
		answer, err := t.options.Dispatcher.SendEvent(ctx, *event, *delivery.Reply,
			kncloudevents.WithHeader(utils.PassThroughHeaders(info.ResponseHeader)),
			kncloudevents.WithRetryConfig(&delivery.Retry))
		if err == nil || ctx.Err() != nil {
			return
		}
		t.bury(ctx, s, i, delivery, *delivery.Reply, answer, try)
	}
}

// bury sends the event to the dead letter sink.
func (t *Table) bury(ctx context.Context, s *subscriber, i *item, delivery *Delivery, destination duckv1.Addressable, info *kncloudevents.DispatchInfo, tries int) {
	failure := understand(destination, info)
	line := report.DeadLetter{
		Kind: report.KindDeadLetter, Subject: s.subject(i.event), Function: i.function,
		Status: info.ResponseCode, Attempts: tries, Reason: shorten(failure.ErrResponseBody),
	}
	if delivery.DeadLetter != nil {
		line.Sink = delivery.DeadLetter.URL.String()
		_, err := t.options.Dispatcher.SendEvent(ctx, i.event, *delivery.DeadLetter,
			kncloudevents.WithHeader(i.headers.Clone()),
			kncloudevents.WithRetryConfig(&delivery.Retry),
			kncloudevents.WithTransformers(transformers(failure, info.ResponseCode)...))
		line.Delivered = err == nil
		if err != nil {
			t.options.Log.Error("cannot deliver a dead letter", zap.Stringer("trigger", s.trigger), zap.String("id", i.event.ID()), zap.Error(err))
		}
	}
	t.options.Report.Write(line)
}

// understand finds out who failed and what it said. The filter wraps both; what
// it says on its own account is nobody's failure.
func understand(destination duckv1.Addressable, info *kncloudevents.DispatchInfo) broker.ErrExtensionInfo {
	if names.Parse(destination.URL.Host).Role != names.Filter {
		return broker.ErrExtensionInfo{ErrDestination: destination.URL, ErrResponseBody: info.ResponseBody}
	}
	var wrapped broker.ErrExtensionInfo
	if err := json.Unmarshal(info.ResponseBody, &wrapped); err != nil {
		return broker.ErrExtensionInfo{ErrResponseBody: info.ResponseBody}
	}
	return wrapped
}

// transformers put Knative's extensions on a dead letter: none if nobody but the
// filter is to blame, as in a cluster.
func transformers(failure broker.ErrExtensionInfo, code int) binding.Transformers {
	if failure.ErrDestination == nil {
		return nil
	}
	data := base64.StdEncoding.EncodeToString(failure.ErrResponseBody)
	return attributes.KnativeErrorTransformers(*failure.ErrDestination.URL(), code, data)
}

func shorten(body []byte) string {
	return string(bytes.ToValidUTF8(body[:min(len(body), reasonLength)], nil))
}

// subject is what people are told about the event.
func (s *subscriber) subject(event cloudevents.Event) report.Subject {
	text := func(name string) string {
		value, _ := event.Extensions()[name].(string)
		return value
	}
	return report.Subject{
		ID: event.ID(), Type: event.Type(), Cluster: text("cluster"),
		ObjectKind: text("kind"), Namespace: text("namespace"), Name: text("name"),
		Trigger: s.trigger.Name,
	}
}

func milliseconds(d time.Duration) float64 {
	return float64(d.Microseconds()) / 1000
}
