// Package perturb asks the same few questions of every function, by its declaration:
//
//	What if events are lost, doubled and reordered?
//	What if one API call fails, whichever it is, in whatever way?
//	What if the process is killed before or after a write?
//	What if it reads what was true a while ago?
//	What if two copies are at it at once?
//
// A function has one scenario (the files named after functions): what stands around it,
// the steps of a story, and what neighbours do whenever there is something for them to
// do. The story is played once in calm, and again under each perturbation. Events are
// made of what was really written, by the function's declared watches, and delivered
// as a broker delivers them: again while the answer asks for it, at most five times.
// When the perturbation is over one resync follows, and then
//
//   - the state is that of the calm story, but for what the suite's normaliser takes
//     out and what the scenario's own says, with its reason;
//   - a pass of all events and a resync writes nothing;
//   - where a single call failed, no event had to be given up, and the state was that
//     of the calm story before the resync.
//
// By default a sample of all calls is taken, chosen by -seed; -exhaustive takes all
// (make perturb): some 35,000 runs, several hours. -share takes a part of them.
package perturb
