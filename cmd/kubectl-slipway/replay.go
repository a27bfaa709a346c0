package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/spf13/cobra"

	"github.com/slipway-dev/slipway/shared/reconcile"
	"github.com/slipway-dev/slipway/shared/record"
)

// replayOptions are the flags of the command.
type replayOptions struct {
	*options
	from, mode, to, save, dir                  string
	live, send, letters, all, edited, accepted bool
}

// replayReport is what a replay came to, for programs.
type replayReport struct {
	Recording string            `json:"recording"`
	Function  string            `json:"function"`
	Recorded  string            `json:"recordedBy"`
	Replayed  string            `json:"replayedBy"`
	Live      bool              `json:"live,omitempty"`
	Same      bool              `json:"same"`
	Diff      string            `json:"diff,omitempty"`
	Unknown   []string          `json:"unknown,omitempty"`
	Settings  []string          `json:"settings,omitempty"`
	Unmapped  bool              `json:"unmapped,omitempty"`
	Concerns  []string          `json:"concerns,omitempty"`
	Changes   bool              `json:"changes"`
	Result    record.Result     `json:"result"`
	Decisions []record.Decision `json:"decisions,omitempty"`
}

func replayCommand(o *options) *cobra.Command {
	r := &replayOptions{options: o}
	cmd := &cobra.Command{
		Use:   "replay FILE|NAME...",
		Short: "Run a recorded reconcile again: offline, on the live cluster, or by sending its event",
		Long: `Plays a recording to the function that it is of, and shows what was decided, why, what that
changes and what was asked of API servers. Without further flags nothing is asked of any
cluster: every answer comes from the recording. The same version comes to the same, byte for
byte; what another version does differently is shown, and the exit code is 2.

  --live              reads the live cluster with your rights instead, in plan mode: nothing is
                      written, unless you say --mode apply in this very command
  --send              sends the recorded event, with all of its attributes, to the broker or to
                      the URL in --to; the function that it wakes does what it always does
  --from-dead-letter  the arguments are dead letters; with --send they are sent again, else they
                      are listed. --all takes all of them
  --save NAME         keeps the recording as a test case of the function, which go test runs

A NAME is the last column of kubectl slipway events.`,
		Example: `  # what would this version have done?
  kubectl slipway replay .local/default/recordings/machine-vm/20260102T030405.678901Z-machine-vm-0a1b2c3d.txtar
  # and what would it do now?
  kubectl slipway replay 20260102T030405.678901Z-machine-vm-0a1b2c3d --live
  # send every dead letter again
  kubectl slipway replay --from-dead-letter --all --send`,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{strings.TrimPrefix(record.Suffix, ".")}, cobra.ShellCompDirectiveFilterFileExt
		},
		RunE: func(cmd *cobra.Command, args []string) error { return r.run(cmd.Context(), args) },
	}
	historyFlag(cmd, &r.from)
	flags := cmd.Flags()
	flags.BoolVar(&r.live, "live", false, "read the live cluster")
	flags.StringVar(&r.mode, "mode", "plan", "with --live: plan, observe or apply")
	flags.BoolVar(&r.send, "send", false, "send the event")
	flags.StringVar(&r.to, "to", os.Getenv("SLIPWAY_BROKER"), "with --send: URL of a function or of the broker's ingress; empty is the cluster's broker (env SLIPWAY_BROKER)")
	flags.BoolVar(&r.letters, "from-dead-letter", false, "the arguments are dead letters")
	flags.BoolVar(&r.all, "all", false, "with --from-dead-letter: all of them")
	flags.BoolVar(&r.edited, "edited", false, "accept a recording that was edited")
	flags.StringVar(&r.save, "save", "", "keep the recording as a test case of this name")
	flags.StringVar(&r.dir, "save-dir", "", "with --save: directory; default is functions/FUNCTION/testdata/recordings")
	flags.BoolVar(&r.accepted, "accept", false, "with --save: keep what this version comes to, where it differs")
	_ = cmd.RegisterFlagCompletionFunc("mode", cobra.FixedCompletions([]string{"plan", "observe", "apply"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// check refuses flags that contradict each other before anything is done.
func (r *replayOptions) check(args []string) error {
	mode, err := reconcile.ParseMode(r.mode)
	if err != nil || mode == reconcile.ModeUnmanaged {
		return fmt.Errorf("cannot use --mode %q: use plan, observe or apply", r.mode)
	}
	for _, wrong := range []struct {
		is   bool
		says string
	}{
		{r.live && r.send, "cannot use --live and --send together: the function that --send wakes reads the cluster by itself"},
		{mode == reconcile.ModeApply && !r.live, "cannot use --mode apply without --live: a recording has nothing to write to"},
		{r.letters && (r.live || r.save != ""), "cannot use --from-dead-letter with --live or --save: a dead letter is an event alone"},
		{r.all && !r.letters, "cannot use --all without --from-dead-letter"},
		{r.save != "" && (r.live || r.send), "cannot use --save with --live or --send: a test case is played offline"},
		{r.save != "" && len(args) != 1, "cannot use --save with more than one recording"},
		{len(args) == 0 && !r.all, "name a recording: a file, or the last column of kubectl slipway events"},
	} {
		if wrong.is {
			return errors.New(wrong.says)
		}
	}
	return nil
}

func (r *replayOptions) run(ctx context.Context, args []string) error {
	if err := r.check(args); err != nil {
		return err
	}
	if r.letters {
		return r.deadLetters(ctx, args)
	}
	var recordings []*record.Recording
	for _, argument := range args {
		recording, err := r.find(ctx, argument)
		if err != nil {
			return err
		}
		recordings = append(recordings, recording)
	}
	if r.send {
		for _, recording := range recordings {
			if err := r.sendOne(ctx, recording); err != nil {
				return err
			}
		}
		return nil
	}
	return r.replayAll(ctx, recordings)
}

func (r *replayOptions) replayAll(ctx context.Context, recordings []*record.Recording) error {
	differ := false
	var reports []replayReport
	for _, recording := range recordings {
		report, err := r.one(ctx, recording)
		if err != nil {
			return err
		}
		differ = differ || !report.Same || (r.live && report.Changes)
		reports = append(reports, report)
	}
	if r.output == "json" || r.output == "yaml" {
		if err := r.print(reports, nil); err != nil {
			return err
		}
	}
	if differ {
		return exitCode(exitChanges)
	}
	return nil
}

// find reads a recording: a file if there is one of that name.
func (r *replayOptions) find(ctx context.Context, argument string) (*record.Recording, error) {
	if _, err := os.Stat(argument); err == nil || strings.HasSuffix(argument, record.Suffix) || strings.ContainsRune(argument, filepath.Separator) {
		recording, err := record.ReadFile(argument, r.edited)
		if errors.Is(err, record.ErrEdited) {
			err = fmt.Errorf("%w; --edited replays it all the same", err)
		}
		return recording, err
	}
	h, err := r.history(r.from)
	if err != nil {
		return nil, fmt.Errorf("cannot find recording %q: it is no file, and %w", argument, err)
	}
	return h.recording(ctx, argument, r.edited)
}

func (r *replayOptions) sendOne(ctx context.Context, recording *record.Recording) error {
	ce := reconcile.Event(recording)
	if ce == nil {
		return fmt.Errorf("cannot send the event of %s: no event is recorded", recording.Header.ID)
	}
	if err := r.options.send(ctx, r.to, *ce); err != nil {
		return fmt.Errorf("cannot send the event of %s: %w", recording.Header.ID, err)
	}
	fmt.Fprintf(r.out, "sent %s %s (event %s)\n", ce.Type(), recording.Header.Trigger, ce.ID())
	return nil
}

// one replays one recording.
func (r *replayOptions) one(ctx context.Context, recording *record.Recording) (replayReport, error) {
	report := replayReport{
		Recording: recording.Header.ID, Function: recording.Header.Function, Recorded: recording.Header.Version, Replayed: record.Version(), Live: r.live,
	}
	settings := recording.Header.Settings
	if settings == nil {
		settings = map[string]string{}
	}
	host, err := hostOf(recording.Header.Function, settings)
	if err != nil {
		return report, err
	}
	replayed := &reconcile.Replayed{}
	if r.live {
		replayed.Recording, err = r.tryLive(ctx, host, recording)
	} else {
		replayed, err = host.Replay(ctx, recording)
	}
	if err != nil {
		return report, err
	}
	report.Result, report.Decisions, report.Changes = replayed.Recording.Header.Result, replayed.Recording.Decisions, changes(replayed.Recording)
	report.Unknown, report.Settings, report.Unmapped = replayed.Unknown, replayed.Settings, replayed.Unmapped
	report.Concerns = replayed.Concerns
	report.Same = true
	if !r.live {
		if report.Diff, err = differences(recording, replayed.Recording); err != nil {
			return report, err
		}
		report.Same = report.Diff == "" && !report.Unmapped && len(report.Concerns) == 0
	}
	if r.output == "" || r.output == "wide" {
		show(r.out, replayed.Recording)
		r.compare(report)
	}
	if r.save != "" {
		return report, r.keep(recording, replayed.Recording, report)
	}
	return report, nil
}

func (r *replayOptions) tryLive(ctx context.Context, host *reconcile.Host, recording *record.Recording) (*record.Recording, error) {
	config, err := r.config()
	if err != nil {
		return nil, err
	}
	if err := host.Connect(config); err != nil {
		return nil, err
	}
	key := reconcile.Key{Namespace: recording.Header.Namespace, Name: recording.Header.Name, Part: recording.Header.Part}
	return host.Try(ctx, key, reconcile.Mode(r.mode), nil, reconcile.Event(recording))
}

// compare tells people how recording and replay differ.
func (r *replayOptions) compare(report replayReport) {
	switch {
	case report.Live:
		fmt.Fprintf(r.out, "\nThis is what the live cluster asks for now (mode %s).\n", r.mode)
	case report.Same:
		fmt.Fprintf(r.out, "\nThe same as recorded by version %s, byte for byte.\n", report.Recorded)
	default:
		fmt.Fprintf(r.out, "\nNot what version %s recorded:\n", report.Recorded)
		indent(r.out, "", report.Diff)
	}
	for _, note := range report.notes() {
		fmt.Fprintln(r.out, note)
	}
}

// notes tell what a difference may come from.
func (r replayReport) notes() []string {
	var out []string
	for _, question := range r.Unknown {
		out = append(out, "the recording does not hold: "+question)
	}
	if r.Unmapped {
		out = append(out, "this version would not reconcile the object for that event")
	}
	for _, line := range r.Concerns {
		out = append(out, "the event concerns other objects than recorded: "+line)
	}
	for _, name := range r.Settings {
		out = append(out, "setting "+name+" is not as it was recorded")
	}
	return out
}

// caseName is what a test case may be called.
var caseName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)

// keep writes a test case.
func (r *replayOptions) keep(recording, replayed *record.Recording, report replayReport) error {
	if !caseName.MatchString(r.save) {
		return fmt.Errorf("cannot save as %q: use letters, digits, dots and dashes", r.save)
	}
	if !report.Same {
		if !r.accepted {
			return errors.New("cannot save: this version comes to something else, and the test case would fail; --accept keeps what this version comes to")
		}
		recording = replayed
	}
	dir := r.dir
	if dir == "" {
		folder := filepath.Join("functions", recording.Header.Function)
		if _, err := os.Stat(folder); err != nil {
			return fmt.Errorf("cannot save: there is no %s here: run this in the root of the repository, or name a directory with --save-dir", folder)
		}
		dir = filepath.Join(folder, "testdata", "recordings")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // test data of a repository
		return fmt.Errorf("cannot save: %w", err)
	}
	text, err := recording.Encode()
	if err != nil {
		return fmt.Errorf("cannot save: %w", err)
	}
	path := filepath.Join(dir, strings.TrimSuffix(r.save, record.Suffix)+record.Suffix)
	if err := os.WriteFile(path, text, 0o644); err != nil { //nolint:gosec // test data of a repository
		return fmt.Errorf("cannot save: %w", err)
	}
	fmt.Fprintf(r.out, "saved as %s\n", path)
	return nil
}

// deadLetters lists dead letters, or sends them again.
func (r *replayOptions) deadLetters(ctx context.Context, ids []string) error {
	h, err := r.history(r.from)
	if err != nil {
		return err
	}
	all, err := h.letters(ctx)
	if err != nil {
		return err
	}
	var chosen []letter
	for _, l := range all {
		if r.all || contains(ids, l) {
			chosen = append(chosen, l)
		}
	}
	for _, id := range ids {
		if !holds(chosen, id) {
			return fmt.Errorf("cannot find dead letter %q: there are %d others", id, len(all))
		}
	}
	if !r.send {
		return r.print(append([]letter{}, chosen...), func(w io.Writer) {
			letterTable(w, chosen)
			fmt.Fprintln(w, "Nothing was sent: --send sends them again.")
		})
	}
	if len(chosen) == 0 {
		return errNothing
	}
	for _, l := range chosen {
		ce := again(l.Event)
		if err := r.options.send(ctx, r.to, ce); err != nil {
			return fmt.Errorf("cannot send dead letter %s: %w", l.ID, err)
		}
		fmt.Fprintf(r.out, "sent %s %s (event %s)\n", ce.Type(), ce.Subject(), ce.ID())
	}
	return nil
}

func contains(ids []string, l letter) bool {
	for _, id := range ids {
		if id == l.ID || id == l.Event.ID() {
			return true
		}
	}
	return false
}

func holds(chosen []letter, id string) bool {
	for _, l := range chosen {
		if contains([]string{id}, l) {
			return true
		}
	}
	return false
}

// again is a dead letter as it was before it was one: what the broker added on the way
// goes, everything else stays.
func again(ce cloudevents.Event) cloudevents.Event {
	out := ce.Clone()
	for name := range ce.Extensions() {
		if strings.HasPrefix(name, "knative") {
			out.SetExtension(name, nil)
		}
	}
	return out
}

func letterTable(w io.Writer, letters []letter) {
	if len(letters) == 0 {
		fmt.Fprintln(w, "There are no dead letters.")
	}
	for _, l := range letters {
		code, about := l.Event.Extensions()["knativeerrorcode"], l.Event.Subject()
		fmt.Fprintf(w, "%s  %s %s (event %s, answered %v)\n", l.ID, l.Event.Type(), about, l.Event.ID(), code)
	}
}
