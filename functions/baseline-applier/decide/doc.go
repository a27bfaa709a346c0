// Package decide is the thinking of baseline-applier: which assets are wanted, what
// each should look like after its user's patch and mask, whether the live object
// drifts from that, whether writing is allowed now, and what to tell.
//
// [Look] goes through the assets and is what everything else rests on: [Decide] turns
// what it found into a plan, [Conclude] into Events and metrics, the command line into
// tables. Per asset:
//
//	conditions ─► root exclusion ─► live ─► definition ─► render ─► pause, opt-out
//	  ─► patch ─► mask ─► label ─► dry-run ─► drift ─► budget ─► apply ─► record
//
// What has to be remembered from one call to the next is a [Record] per asset in one
// ConfigMap, which is written under its resourceVersion before any object is: so two
// copies never spend one budget twice, and the record of a write is there before the
// write can be.
package decide
