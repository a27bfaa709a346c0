// Package record keeps reconciles as files, and reads them again.
//
// A recording holds everything that one reconcile was: the event with its
// attributes and body, every read with its answer, every decision with its
// reasons, every request that was made for it with the server's answer, what was
// concluded, and which function of which version did so at what time. It is one
// text file in the txtar format whose parts are YAML, in the order in which a
// person wants to read them; the last part holds the checksum of the others.
//
// A recording holds no secrets. Whatever is secret was sealed when it was read
// (package vault), and what a decision puts into a secret field by itself is told
// by its length alone. Tokens stay as they are, so the same handler comes to the
// same plan, byte for byte, when the recording is played to it
// (reconcile.Host.Replay).
//
// A Recorder decides which reconciles are kept, and hands them to its sinks in the
// background: a directory, an event-archive, or both. It never holds up an answer.
// What cannot be kept is dropped and counted.
//
// Settings, for every function:
//
//	SLIPWAY_RECORD             annotated (default): objects with the annotation slipway.dev/record;
//	                           namespaces: these, and what lies in a namespace with the annotation;
//	                           all: every reconcile; off: none, whatever an object says
//	SLIPWAY_RECORD_NAMESPACES  every reconcile in these namespaces, with commas between them
//	SLIPWAY_RECORD_SAMPLE      how much is kept of what is not asked for by an object's own
//	                           annotation, from 0 to 1 (1)
//	SLIPWAY_RECORD_DIR         keep recordings in this directory
//	SLIPWAY_RECORD_KEEP        how many of each function the directory holds (500)
//	SLIPWAY_RECORD_ARCHIVE     send recordings to this URL of an event-archive
//	SLIPWAY_RECORD_MAX_BYTES   how large one may be (4 MiB); of a larger one, what was read is left out
//
// With neither a directory nor an archive nothing is recorded. The annotation
// slipway.dev/record on an object is "true" (keep all of its reconciles) or "false"
// (keep none). On a namespace it says the same of all objects in it, and an object's own
// comes first; it counts only where SLIPWAY_RECORD says namespaces, for it costs each
// reconcile a read of the Namespace and the right to it
// (deploy/components/namespace-recording).
package record
