package worker

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/slipway-dev/slipway/shared/render"
)

// errMessage marks a message that is none.
var errMessage = errors.New("invalid message")

// report is what a child says of one job.
type report struct {
	Answer render.Answer `json:"answer"`
	// CPU is what the child has used since its start; Resident the most memory it
	// ever had, in bytes.
	CPU      time.Duration `json:"cpu"`
	Resident int64         `json:"resident"`
}

// send writes a message.
func send(w io.Writer, message any) error {
	body, err := json.Marshal(message)
	if err != nil {
		return fmt.Errorf("cannot encode a message: %w", err)
	}
	packet := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(body)), uint32(len(body))) //nolint:gosec // far below 4 GiB: memory is bounded
	if _, err := w.Write(append(packet, body...)); err != nil {
		return fmt.Errorf("cannot send a message: %w", err)
	}
	return nil
}

// receive reads a message of at most size bytes.
func receive(r io.Reader, size int, message any) error {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return fmt.Errorf("cannot receive a message: %w", err)
	}
	length := int(binary.BigEndian.Uint32(head[:]))
	if length > size {
		return fmt.Errorf("%w: it has %d bytes, %d are allowed", errMessage, length, size)
	}
	body := make([]byte, length)
	if _, err := io.ReadFull(r, body); err != nil {
		return fmt.Errorf("cannot receive a message: %w", err)
	}
	if err := json.Unmarshal(body, message); err != nil {
		return fmt.Errorf("%w: %w", errMessage, err)
	}
	return nil
}
