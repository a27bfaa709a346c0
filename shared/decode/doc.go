// Package decode reads the answers of API servers, which is most of what a function's
// processor time goes into.
//
// The decoder of client-go's dynamic client goes over a list four times: for its kind,
// for its items as raw text, for the list without them, and item by item, each time
// with a check of the whole syntax first. This package goes over it once, with the same
// JSON library, sigs.k8s.io/json.
//
// What it reads is what client-go would read, to the type of each number. Whatever is
// no object or list of a kind (a Status, an error, text that is no JSON) it leaves to
// client-go's decoder, errors included.
package decode
