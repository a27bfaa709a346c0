package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/shared/record"
)

// gallery is a directory with many recordings: those that the functions keep as tests,
// a minute apart, with one of everything that is hard to show.
func gallery(t *testing.T) (dir string, ids map[string]string) {
	t.Helper()
	dir, id := shelf(t)
	ids = map[string]string{"done": id}
	paths, err := filepath.Glob("../../functions/*/testdata/recordings/*" + record.Suffix)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no recordings are found: %v", err)
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for i, path := range paths {
		r, err := record.ReadFile(path, false)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Time = at.Add(time.Duration(i) * time.Minute)
		r.Header.ID = r.Header.Time.Format("20060102T150405.000000Z") + "-" + r.Header.Function + "-" + fmt.Sprintf("%08x", i)
		shelve(t, dir, r)
		ids[r.Header.Result.Class] = r.Header.ID
		if r.Header.Function == "machine-vm" && r.Header.WriteCount > 0 {
			ids["machine"] = r.Header.ID
		}
	}
	r, err := record.ReadFile(specimenPath, false)
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("a-very-long-name-", 10)
	r.Header.ID, r.Header.Name, r.Header.Namespace, r.Header.Trigger = "20260102T040000.000000Z-long-1", long, long, "Organization "+long
	r.Header.Result.Class, r.Header.Result.Reason, r.Header.Result.Message = "terminal", "SpecificationCannotWork", strings.Repeat("word", 60)
	shelve(t, dir, r)
	ids["long"] = r.Header.ID
	return dir, ids
}

func shelve(t *testing.T, dir string, r *record.Recording) {
	t.Helper()
	text, err := r.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := record.WriteFile(filepath.Join(dir, "recordings", r.Header.ID+record.Suffix), text); err != nil {
		t.Fatal(err)
	}
}

// audit is run in each page; it returns what somebody could not read, reach or hear.
const audit = `(() => {
  const out = [];
  const luminance = (c) => {
    const [r, g, b] = c.map((v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const parts = (color) => (color.match(/[\d.]+/g) || []).map(Number);
  const solid = (color) => { const p = parts(color); return p.length === 3 || p[3] === 1 ? p.slice(0, 3) : null; };
  const ground = (node) => {
    if (node.ownerSVGElement) {
      const rect = node.parentElement.querySelector("rect") && node.parentElement.tagName === "g" && node.parentElement.querySelector("rect");
      if (rect && rect.tagName === "rect") return solid(getComputedStyle(rect).fill);
      node = node.ownerSVGElement;
    }
    for (; node; node = node.parentElement) {
      const color = solid(getComputedStyle(node).backgroundColor);
      if (color) return color;
    }
    return [255, 255, 255];
  };
  if (document.documentElement.scrollWidth > innerWidth) {
    const wide = [...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".scroll, pre, svg"));
    out.push("the page is wider than the window: " + wide.slice(0, 3).map((e) => e.tagName + "." + e.className).join(", "));
  }
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const told = new Set();
  for (let text = walker.nextNode(); text; text = walker.nextNode()) {
    const node = text.parentElement;
    if (!text.data.trim() || !node.getClientRects().length || ["SCRIPT", "STYLE"].includes(node.tagName)) continue;
    const style = getComputedStyle(node);
    const ink = solid(node.ownerSVGElement ? style.fill : style.color), paper = ground(node);
    if (!ink || !paper) continue;
    const [a, b] = [luminance(ink), luminance(paper)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05), key = style.color + paper;
    if (ratio < 4.5 && !told.has(key)) { told.add(key); out.push("contrast " + ratio.toFixed(2) + ": " + text.data.trim().slice(0, 40)); }
    if (parseFloat(style.fontSize) < 12) out.push("small print: " + text.data.trim().slice(0, 40));
  }
  if (document.querySelectorAll("h1").length !== 1) out.push("not one h1");
  let level = 1;
  for (const h of document.querySelectorAll("h1, h2, h3, h4")) {
    const here = Number(h.tagName[1]);
    if (here > level + 1) out.push("a heading is left out before " + h.textContent);
    level = here;
  }
  for (const e of document.querySelectorAll("a, button, summary, input:not([type=hidden])")) {
    const name = (e.getAttribute("aria-label") || e.textContent || (e.labels && e.labels[0] && e.labels[0].textContent) || "").trim();
    if (!name) out.push("nameless " + e.outerHTML.slice(0, 80));
  }
  for (const e of document.querySelectorAll(".scroll, pre")) {
    if (e.scrollWidth > e.clientWidth + 1 && e.tabIndex < 0 && !e.querySelector("a, button")) out.push("no key scrolls " + e.tagName);
  }
  const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
  if (new Set(ids).size !== ids.length) out.push("an id is there twice");
  if (!document.title || !document.documentElement.lang) out.push("no title or language");
  return out;
})()`

// TestTheConsoleInABrowser looks at every page in Chromium, if this machine has one:
// wide in light and narrow in dark. SLIPWAY_SCREENSHOTS names a directory for pictures,
// which are taken of every combination.
func TestTheConsoleInABrowser(t *testing.T) {
	b := openBrowser(t)
	dir, ids := gallery(t)
	server, _ := consoleOn(t, dir)
	empty, _ := consoleOn(t, t.TempDir())
	out := os.Getenv("SLIPWAY_SCREENSHOTS")
	pages := []struct{ name, address string }{
		{"flow", server.URL + "/"},
		{"object", server.URL + "/object?kind=Organization"},
		{"done", server.URL + "/recording/" + ids["done"]},
		{"machine", server.URL + "/recording/" + ids["machine"]},
		{"terminal", server.URL + "/recording/" + ids["terminal"]},
		{"long", server.URL + "/recording/" + ids["long"]},
		{"letters", server.URL + "/deadletters"},
		{"missing", server.URL + "/recording/none"},
		{"empty", empty.URL + "/"},
		{"empty-letters", empty.URL + "/deadletters"},
		{"replayed", server.URL + "/recording/" + ids["machine"] + "#replay"},
	}
	for _, window := range []struct {
		name          string
		width, height int
	}{{"wide", 1280, 900}, {"narrow", 390, 844}} {
		for _, dark := range []bool{false, true} {
			if out == "" && dark != (window.name == "narrow") {
				continue
			}
			b.look(window.width, window.height, dark)
			scheme := map[bool]string{false: "light", true: "dark"}[dark]
			for _, page := range pages {
				b.visit(page.address)
				if page.name == "replayed" {
					b.open(func() { b.eval(`document.querySelector("button[value=offline]").click()`, nil) })
				}
				what := page.name + "-" + window.name + "-" + scheme
				var found []string
				b.eval(audit, &found)
				for _, complaint := range append(found, b.complaints("http://"+hostOfURL(page.address))...) {
					if page.name == "missing" && strings.Contains(complaint, "404") {
						continue
					}
					t.Errorf("%s: %s", what, complaint)
				}
				if out != "" {
					b.picture(filepath.Join(out, what+".png"))
				}
			}
		}
	}
}

func hostOfURL(address string) string {
	_, rest, _ := strings.Cut(address, "://")
	host, _, _ := strings.Cut(rest, "/")
	return host
}

// TestTheConsoleIsUsedWithKeysAlone also sees a new reconcile come by itself.
func TestTheConsoleIsUsedWithKeysAlone(t *testing.T) {
	b := openBrowser(t)
	dir, _ := gallery(t)
	server, _ := consoleOn(t, dir)
	b.look(1280, 900, false)
	b.visit(server.URL + "/")
	var focused string
	b.press("Tab", 9, "")
	b.eval(`document.activeElement.textContent + " " + (document.activeElement.getBoundingClientRect().left >= 0)`, &focused)
	if focused != "Skip to the content true" {
		t.Errorf("the first key leads to %q", focused)
	}
	r, err := record.ReadFile(specimenPath, false)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.ID = time.Now().UTC().Add(time.Second).Format("20060102T150405.000000Z") + "-new-1"
	r.Header.Trigger = "Organization just-now"
	shelve(t, dir, r)
	var came bool
	b.eval(`new Promise((done) => {
		const there = () => (document.getElementById("rows").firstElementChild || document.body).textContent.includes("just-now");
		if (there()) return done(true);
		new MutationObserver(() => { if (there()) done(true); }).observe(document.getElementById("rows"), { childList: true });
		setTimeout(() => done(false), 15000);
	})`, &came)
	if !came {
		t.Error("a new reconcile does not come by itself")
	}
	b.eval(`document.querySelector("#rows tr:first-child td:first-child a").focus()`, nil)
	b.open(func() { b.press("Enter", 13, "\r") })
	b.eval(`document.querySelector("button[value=offline]").focus()`, nil)
	var outline string
	b.press("Shift", 16, "")
	b.eval(`getComputedStyle(document.activeElement).outlineStyle`, &outline)
	if outline == "none" {
		t.Error("nobody sees where the focus is")
	}
	b.open(func() { b.press("Enter", 13, "\r") })
	var verdict string
	b.eval(`document.querySelector("main [role=status]").textContent`, &verdict)
	if !strings.Contains(verdict, "byte for byte") {
		t.Errorf("the replay says %q", verdict)
	}
	if complaints := b.complaints(server.URL); len(complaints) > 0 {
		t.Errorf("the pages complain: %v", complaints)
	}
}
