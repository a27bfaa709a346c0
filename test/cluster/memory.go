package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// Resident is the memory of one container, in MB.
type Resident struct {
	// Pod is "namespace/name", Program the file name of the program.
	Pod, Program string
	MB           float64
}

// podUID finds the pod in the name of a control group.
var podUID = regexp.MustCompile(`/pod([0-9a-f-]{36})/`)

// Memory is what the processes of all pods have resident, without those that only hold
// a pod's namespaces.
func (c *Cluster) Memory(ctx context.Context) ([]Resident, error) {
	text, err := c.Kubectl(ctx, "get", "pods", "-A", "-o", `jsonpath={range .items[*]}{.metadata.uid} {.metadata.namespace}/{.metadata.name}{"\n"}{end}`)
	if err != nil {
		return nil, err
	}
	pods := map[string]string{}
	for line := range strings.Lines(text) {
		if uid, name, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			pods[uid] = name
		}
	}
	files, _ := filepath.Glob("/proc/[0-9]*/cgroup")
	var all []Resident
	for _, file := range files {
		groups, err := os.ReadFile(file) //nolint:gosec // of /proc
		if err != nil {
			continue
		}
		match := podUID.FindSubmatch(groups)
		if match == nil || pods[string(match[1])] == "" {
			continue
		}
		dir := filepath.Dir(file)
		program, err := os.Readlink(filepath.Join(dir, "exe"))
		if err != nil || filepath.Base(program) == "pause" {
			continue
		}
		status, err := os.ReadFile(filepath.Join(dir, "status")) //nolint:gosec // of /proc
		if err != nil {
			continue
		}
		all = append(all, Resident{Pod: pods[string(match[1])], Program: filepath.Base(program), MB: resident(string(status))})
	}
	return all, nil
}

// resident is VmRSS of a process's status, in MB.
func resident(status string) float64 {
	for line := range strings.Lines(status) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "VmRSS:" {
			kilobytes, _ := strconv.ParseFloat(fields[1], 64)
			return kilobytes / 1024
		}
	}
	return 0
}

// String is a line of a table.
func (r Resident) String() string { return fmt.Sprintf("%6.1f MB  %-18s %s", r.MB, r.Program, r.Pod) }
