// Package model says how many changes a second an installation bears, on paper, and
// simulates it event by event, so that the paper can be checked.
//
// A change of an object goes through four stations. Its source sends the events of one
// kind one after the other, and waits for the broker's answer each time. The broker hands
// over any number at once. A function takes so many at once, and events of one object
// wait for each other: one runs, one waits, all further ones are the same as the one that
// waits. The API server has so many processors, and each event asks it for reads and, if
// something is to be done, for writes; those come back as events of their own.
//
// The paper (Limits) knows only how busy each station is. The simulation (Run) knows
// queues too, and so how long a change takes.
package model
