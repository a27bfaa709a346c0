package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/deploy/local/stack"
)

// audited is one line of an audit log.
type audited struct {
	Verb       string `json:"verb"`
	RequestURI string `json:"requestURI"`
	User       struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	Received time.Time `json:"requestReceivedTimestamp"`
}

// accounts are who functions are on the supervisor and on target clusters.
func accounts(functions []string) []string {
	all := []string{"system:serviceaccount:" + stack.Namespace + ":slipway"}
	for _, name := range functions {
		all = append(all, "system:serviceaccount:"+stack.Namespace+":"+name)
	}
	return all
}

// audit gives every write of the functions, on every cluster.
func audit(s *stack.Stack, functions []string, each func(cluster string, line audited)) error {
	who := accounts(functions)
	dirs := map[string]string{"supervisor": s.Cluster.Dir}
	for _, remote := range s.Remotes {
		dirs["target"+remote.Name] = remote.Cluster.Dir
	}
	for name, dir := range dirs {
		where := "supervisor"
		if name != where {
			where = "target"
		}
		file, err := os.Open(filepath.Join(dir, stack.AuditLog))
		if err != nil {
			return err
		}
		reader := bufio.NewReader(file)
		for {
			raw, err := reader.ReadBytes('\n')
			if err != nil {
				// The last line may not be whole yet.
				break
			}
			var line audited
			if err := json.Unmarshal(raw, &line); err != nil {
				_ = file.Close()
				return fmt.Errorf("cannot read the audit log: %w", err)
			}
			if slices.Contains(who, line.User.Username) && !strings.Contains(line.RequestURI, "dryRun=All") {
				each(where, line)
			}
		}
		_ = file.Close()
	}
	return nil
}

// writes counts the functions' writes since a time.
func writes(s *stack.Stack, functions []string, since time.Time) (done, refused map[string]int, err error) {
	done, refused = map[string]int{}, map[string]int{}
	err = audit(s, functions, func(cluster string, line audited) {
		if line.Received.Before(since) {
			return
		}
		what := line.ObjectRef.Resource
		if line.ObjectRef.Subresource != "" {
			what += "/" + line.ObjectRef.Subresource
		}
		if line.ResponseStatus.Code/100 == 2 {
			done[cluster+" "+line.Verb+" "+what]++
		} else {
			refused[strconv.Itoa(line.ResponseStatus.Code)+" "+line.Verb+" "+what]++
		}
	})
	return done, refused, err
}

// still waits until the functions have not written for a while, and returns when they
// did last.
func still(ctx context.Context, s *stack.Stack, functions []string) (time.Time, error) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		var last time.Time
		if err := audit(s, functions, func(_ string, line audited) {
			if line.Received.After(last) {
				last = line.Received
			}
		}); err != nil {
			return last, err
		}
		if time.Since(last) > stillness {
			return last, nil
		}
		select {
		case <-ctx.Done():
			return last, ctx.Err()
		case <-tick.C:
		}
	}
}
