package cluster

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

// Answer is what the API server answered one of Slipway's accounts.
type Answer struct {
	Verb string `json:"verb"`
	URI  string `json:"requestURI"`
	User struct {
		Username string `json:"username"`
	} `json:"user"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	At time.Time `json:"requestReceivedTimestamp"`
}

// Account is the name of the account that asked.
func (a Answer) Account() string {
	return a.User.Username[strings.LastIndexByte(a.User.Username, ':')+1:]
}

// String says who asked for what and got which answer.
func (a Answer) String() string {
	return fmt.Sprintf("%s: %s %s: %d", a.Account(), a.Verb, a.URI, a.ResponseStatus.Code)
}

// Write tells whether the request was there to change something. A dry run is not, nor
// is a question about somebody's rights.
func (a Answer) Write() bool {
	switch a.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return !strings.Contains(a.URI, "dryRun=All") && !strings.Contains(a.URI, "reviews")
	}
	return false
}

// Answers are those that were given at or after the given time.
func (c *Cluster) Answers(since time.Time) ([]Answer, error) {
	file, err := os.Open(c.AuditLog())
	if err != nil {
		return nil, fmt.Errorf("cannot read what the API server answered: %w", err)
	}
	defer func() { _ = file.Close() }()
	var answers []Answer
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var a Answer
		// The last line may be half written.
		if json.Unmarshal(lines.Bytes(), &a) == nil && !a.At.Before(since) {
			answers = append(answers, a)
		}
	}
	return answers, lines.Err()
}
