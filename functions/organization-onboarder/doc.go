// Package organizationonboarder is the function organization-onboarder: it says
// of an Organization that it is ready, which lets the tenant begin.
//
// # What wakes it
//
// Changes of Organizations, which have no namespace, and the resync.
//
// # What it does
//
// An Organization that is not being deleted, that does not ask to be left out
// (spec.skipAutoAssign) and whose condition Ready is not True gets Ready=True with
// the reason Ready. Nothing else is examined.
//
// # What holds
//
//   - Ready=True is left as it is, whoever wrote it and whatever generation it
//     observed.
//   - Conditions of others stay as they are, to the byte.
//   - Nothing is written but the status, once, under the resourceVersion that was
//     read. At the fixpoint nothing is written.
//
// Its rights are to read Organizations and to change their status.
package organizationonboarder
