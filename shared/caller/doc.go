// Package caller tells who sent an event, where Knative's authentication is on.
//
// A Trigger whose subscriber has an audience makes the broker send a token along:
// its audience is the function, its subject the account that Knative made for the
// Trigger. With EVENT_AUDIENCE and EVENT_SENDERS set, a [Gate] in front of the
// function's handler lets through only requests with such a token:
//
//  1. No token, or one that is for somebody else by its own words: 401, without a
//     question to the API server.
//  2. The API server is asked whose the token is (TokenReview, for the audience).
//     It answers that it is nobody's, or not for this function: 401.
//  3. The account is not among the senders: 403.
//  4. The API server does not answer: 503, so that the broker sends the event again.
//
// An answer that lets through is remembered for a minute, by the token's hash.
//
// A token proves by which Trigger an event came, and nothing of what is in it: an
// event stays a key. It travels in clear text unless Knative's transport encryption
// is on.
//
// With the variables set, a function that runs under a main program without the gate
// (the one that kn func generates) refuses everything: see [Admitted].
package caller
