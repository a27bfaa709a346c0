// Package queue holds events between a broker and one subscriber.
//
// A Queue promises:
//
//  1. Items with the same key are handled one at a time, in the order they came.
//  2. Items with different keys run side by side, up to a limit.
//  3. An item that waits for its next try holds back its own key only: it takes
//     no place of the limit, so a broken object cannot stop the others.
//  4. It is bounded, and says no at once when it is full.
//  5. Stopping lets what can still be handled be handled, for a short while.
//
// There are no workers: a goroutine exists only while an item is being handled.
package queue
