package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// browserTimeout bounds what a browser may take for one thing.
const browserTimeout = 30 * time.Second

// browser is a Chromium without a window, driven through two pipes.
type browser struct {
	t       *testing.T
	in      io.Writer
	session string

	mu      sync.Mutex
	last    int
	answers map[int]chan reply
	// events are what the page told of itself since they were last taken.
	events []notice
	loaded chan struct{}
}

type reply struct {
	Result json.RawMessage
	Error  *struct{ Message string }
}

type notice struct {
	Method string
	Params json.RawMessage
}

// openBrowser starts the browser of this machine, if it has one.
func openBrowser(t *testing.T) *browser {
	t.Helper()
	program := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			program = path
			break
		}
	}
	if program == "" {
		t.Skip("no Chromium is installed on this machine: the pages are tested by what they hold, not by how they look")
	}
	ours, theirs := pipe(t), pipe(t)
	profile, err := os.MkdirTemp("", "slipway-browser-")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, //nolint:gosec // the browser that was found
		"--headless", "--hide-scrollbars", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-extensions",
		"--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--user-data-dir="+profile, "--remote-debugging-pipe", "about:blank")
	cmd.ExtraFiles = []*os.File{ours.reader, theirs.writer}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = ours.reader.Close(), theirs.writer.Close()
	b := &browser{t: t, in: ours.writer, answers: map[int]chan reply{}, loaded: make(chan struct{}, 1)}
	done := make(chan struct{})
	go func() { defer close(done); b.listen(theirs.reader) }()
	t.Cleanup(func() {
		_, _ = b.send("", "Browser.close", nil)
		ended := time.AfterFunc(5*time.Second, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		ended.Stop()
		<-done
		// Its last children write for a moment after it has ended.
		for range 100 {
			if os.RemoveAll(profile) == nil {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
	})
	var target struct{ TargetID string }
	b.call("", "Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.call("", "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Network", "Log"} {
		b.do(domain+".enable", nil, nil)
	}
	return b
}

type pipeEnds struct{ reader, writer *os.File }

func pipe(t *testing.T) pipeEnds {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = r.Close(), w.Close() })
	return pipeEnds{r, w}
}

// listen takes what the browser says until it ends.
func (b *browser) listen(from io.Reader) {
	in := bufio.NewReader(from)
	for {
		raw, err := in.ReadBytes(0)
		if err != nil {
			return
		}
		var message struct {
			ID int
			notice
			reply
		}
		if json.Unmarshal(raw[:len(raw)-1], &message) != nil {
			continue
		}
		b.mu.Lock()
		if waiting := b.answers[message.ID]; message.ID != 0 && waiting != nil {
			delete(b.answers, message.ID)
			waiting <- message.reply
		} else if message.Method != "" {
			b.events = append(b.events, message.notice)
		}
		b.mu.Unlock()
		if message.Method == "Page.loadEventFired" {
			select {
			case b.loaded <- struct{}{}:
			default:
			}
		}
	}
}

func (b *browser) send(session, method string, params any) (chan reply, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last++
	message := map[string]any{"id": b.last, "method": method}
	if params != nil {
		message["params"] = params
	}
	if session != "" {
		message["sessionId"] = session
	}
	raw, err := json.Marshal(message)
	if err != nil {
		return nil, err
	}
	answer := make(chan reply, 1)
	b.answers[b.last] = answer
	_, err = b.in.Write(append(raw, 0))
	return answer, err
}

func (b *browser) call(session, method string, params, into any) {
	b.t.Helper()
	answer, err := b.send(session, method, params)
	if err != nil {
		b.t.Fatalf("cannot ask the browser for %s: %v", method, err)
	}
	select {
	case got := <-answer:
		if got.Error != nil {
			b.t.Fatalf("the browser refuses %s: %s", method, got.Error.Message)
		}
		if into == nil {
			return
		}
		if err := json.Unmarshal(got.Result, into); err != nil {
			b.t.Fatalf("the browser answers %s with %.300s: %v", method, got.Result, err)
		}
	case <-time.After(browserTimeout):
		b.t.Fatalf("the browser does not answer %s", method)
	}
}

func (b *browser) do(method string, params, into any) {
	b.t.Helper()
	b.call(b.session, method, params, into)
}

// open shows a page; act leads to it.
func (b *browser) open(act func()) {
	b.t.Helper()
	select {
	case <-b.loaded:
	default:
	}
	act()
	select {
	case <-b.loaded:
	case <-time.After(browserTimeout):
		b.t.Fatal("the page does not load")
	}
}

func (b *browser) visit(address string) {
	b.t.Helper()
	b.open(func() { b.do("Page.navigate", map[string]any{"url": address}, nil) })
}

// look sets how large the window is, and whether the person likes it dark.
func (b *browser) look(width, height int, dark bool) {
	b.t.Helper()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	b.do("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}, nil)
	b.do("Emulation.setEmulatedMedia", map[string]any{"features": []any{
		map[string]any{"name": "prefers-color-scheme", "value": scheme}, map[string]any{"name": "prefers-reduced-motion", "value": "reduce"},
	}}, nil)
}

// eval runs a script in the page, and waits for what it promises.
func (b *browser) eval(script string, into any) {
	b.t.Helper()
	var out struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	b.do("Runtime.evaluate", map[string]any{"expression": script, "awaitPromise": true, "returnByValue": true}, &out)
	if out.ExceptionDetails != nil {
		b.t.Fatalf("the script fails: %s %s", out.ExceptionDetails.Text, out.ExceptionDetails.Exception.Description)
	}
	if into != nil {
		if err := json.Unmarshal(out.Result.Value, into); err != nil {
			b.t.Fatalf("the script gives %.300s: %v", out.Result.Value, err)
		}
	}
}

// press presses a key.
func (b *browser) press(key string, code int, text string) {
	b.t.Helper()
	b.do("Input.dispatchKeyEvent", map[string]any{"type": "keyDown", "key": key, "code": key, "windowsVirtualKeyCode": code, "text": text}, nil)
	b.do("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key, "code": key, "windowsVirtualKeyCode": code}, nil)
}

// picture is what the page looks like, far down.
func (b *browser) picture(path string) {
	b.t.Helper()
	var page struct {
		CSSContentSize struct{ Width, Height float64 }
	}
	b.do("Page.getLayoutMetrics", nil, &page)
	var shot struct{ Data []byte }
	b.do("Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": true, "clip": map[string]any{
		"x": 0, "y": 0, "width": page.CSSContentSize.Width, "height": min(page.CSSContentSize.Height, 1800), "scale": 1,
	}}, &shot)
	if err := os.WriteFile(path, shot.Data, 0o600); err != nil { //nolint:gosec // below the directory that the caller named
		b.t.Fatal(err)
	}
}

// complaints are errors of the page and requests that go elsewhere than to its server,
// since they were last asked for.
func (b *browser) complaints(server string) []string {
	b.mu.Lock()
	events := b.events
	b.events = nil
	b.mu.Unlock()
	var out []string
	for _, e := range events {
		var p struct {
			Request struct{ URL string }
			Entry   struct{ Level, Text string }
		}
		_ = json.Unmarshal(e.Params, &p)
		switch {
		case e.Method == "Network.requestWillBeSent" && !strings.HasPrefix(p.Request.URL, server+"/") && !strings.HasPrefix(p.Request.URL, "data:"):
			out = append(out, "it asks for "+p.Request.URL)
		case e.Method == "Log.entryAdded" && (p.Entry.Level == "error" || p.Entry.Level == "warning"):
			out = append(out, "the browser says: "+p.Entry.Text)
		case e.Method == "Runtime.exceptionThrown":
			out = append(out, fmt.Sprintf("a script fails: %s", e.Params))
		}
	}
	return out
}
