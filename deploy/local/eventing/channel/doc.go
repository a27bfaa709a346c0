// Package channel stands in the place of Knative's channel between a broker's
// ingress and its filter.
//
// Everything around it is Knative's own: the Broker's and Trigger's reconcilers
// create the InMemoryChannel and the Subscriptions that they always create, the
// ingress sends to the channel's address, and events go to the subscriber
// through the filter. What differs is how events wait in between. Knative's
// in-memory channel either makes the source wait for every Trigger, or hands out
// everything at once; here each Trigger has a bounded queue of its own, in which
// events of one object keep their order and never overlap, and those of
// different objects do not wait for one another.
//
//  1. An event that the ingress passed on is matched with the Triggers' filters.
//     The filter does so again, but an event that nobody wants costs nothing.
//  2. It is put into the queue of every Trigger that wants it, or, if one of them
//     is full, into none: the source hears 429 and tries again.
//  3. Each try goes to the filter, which turns an answer that is neither empty
//     nor a CloudEvent into 502 and keeps the TTL on replies.
//  4. What fails is tried again as the delivery of the Trigger says. Between
//     tries it holds back events of the same object only.
//  5. A reply goes to the broker. What failed for good goes to the dead letter
//     sink, with the extensions that Knative adds to dead letters.
//
// Subscriptions that no Trigger owns are not served, nor are tokens passed along
// (the alpha feature authentication-oidc).
package channel
