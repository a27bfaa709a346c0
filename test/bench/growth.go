package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/discovery"

	"github.com/slipway-dev/slipway/deploy/local/build"
)

// grown is what so many objects cost a process of the function. Sizes are bytes.
type grown struct {
	Function string `json:"function"`
	Objects  int    `json:"objects"`
	// Seconds, Reads and Writes are those of the first event of each object, the next
	// those of a second event that finds nothing to do.
	Seconds       float64 `json:"seconds"`
	Reads         int     `json:"reads"`
	Writes        int     `json:"writes"`
	AgainSeconds  float64 `json:"againSeconds"`
	AgainReads    int     `json:"againReads"`
	AgainWrites   int     `json:"againWrites"`
	ResidentBytes int64   `json:"residentBytes"`
	PeakBytes     int64   `json:"peakBytes"`
}

// grow makes so many objects, and lets one process take care of all of them.
func (x *subject) grow(ctx context.Context, count int) (grown, error) {
	r := grown{Function: x.Function, Objects: count}
	nameOf := func(i int) string { return fmt.Sprintf("n%d-%04d", count, i) }
	if err := each(count, parallel, func(i int) error {
		_, err := x.prepare(ctx, nameOf(i))
		return err
	}); err != nil {
		return r, err
	}
	p, _, err := launch(ctx, filepath.Join(x.place.root, build.DefaultBin, x.Function), x.place.kube.Kubeconfig, x.limits()...)
	if err != nil {
		return r, err
	}
	defer p.stop()
	all := func(seconds *float64, reads, writes *int) error {
		before, err := x.place.requests(ctx)
		if err != nil {
			return err
		}
		started := time.Now()
		if err := each(count, parallel, func(i int) error { return p.send(ctx, x.event(nameOf(i))) }); err != nil {
			return err
		}
		*seconds = time.Since(started).Seconds()
		after, err := x.place.requests(ctx)
		*reads, *writes = after.reads-before.reads, after.writes-before.writes
		return err
	}
	if err := all(&r.Seconds, &r.Reads, &r.Writes); err != nil {
		return r, err
	}
	// What the first pass has left, a second and third finish.
	var seconds float64
	var reads, writes int
	for range maxRounds {
		if err := all(&seconds, &reads, &writes); err != nil {
			return r, err
		}
		r.AgainSeconds, r.AgainReads, r.AgainWrites = seconds, reads, writes
		if writes == 0 {
			break
		}
		r.Seconds, r.Reads, r.Writes = r.Seconds+seconds, r.Reads+reads, r.Writes+writes
	}
	if r.ResidentBytes, err = resident(p.cmd.Process.Pid); err != nil {
		return r, err
	}
	r.PeakBytes, err = memory(p.cmd.Process.Pid, "VmHWM:")
	return r, err
}

// counted is a line of the API server's metrics: labels, verb and number.
var counted = regexp.MustCompile(`^apiserver_request_total\{(.*scope="(?:resource|namespace|cluster)".*verb="([A-Z]+)".*)\} (\S+)$`)

// itsOwn are what an API server asks itself for: leases, and an address for each Service.
var itsOwn = []string{`group="coordination.k8s.io"`, `resource="ipaddresses"`}

// answered are the requests that the API server has answered so far, about what functions
// read and write.
type answered struct{ reads, writes int }

// requests counts by the API server's own metrics. What it asks itself of is left out.
func (p *place) requests(ctx context.Context) (answered, error) {
	var sum answered
	client, err := discovery.NewDiscoveryClientForConfig(p.kube.Config)
	if err != nil {
		return sum, err
	}
	text, err := client.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return sum, err
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		found := counted.FindStringSubmatch(lines.Text())
		if found == nil || strings.Contains(found[1], `dry_run="All"`) || slices.ContainsFunc(itsOwn, func(label string) bool { return strings.Contains(found[1], label) }) {
			continue
		}
		n, err := strconv.ParseFloat(found[3], 64)
		if err != nil {
			return sum, err
		}
		switch found[2] {
		case "GET", "LIST":
			sum.reads += int(n)
		case "POST", "PUT", "PATCH", "APPLY", "DELETE":
			sum.writes += int(n)
		}
	}
	return sum, lines.Err()
}
