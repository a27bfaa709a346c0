// Package function runs functions as processes: the activator of this stack.
//
// A function is a Service of serving.knative.dev. In a cluster it is a container
// that exists while it has requests; here it is a process.
//
//  1. The Service gets the address that it would have in a cluster, and the
//     condition Ready, which is False with the file's name if there is no binary.
//  2. The first request starts the process and waits until it says that it is
//     ready, for 20 seconds at most.
//  3. Not more requests are in flight than the Service's containerConcurrency;
//     the others wait.
//  4. A process without requests is stopped after the idle time: SIGTERM, and
//     SIGKILL after 10 seconds.
//  5. A process that dies fails its requests with 502; the next request starts a
//     new one. A process whose Service was changed is replaced.
//  6. The process acts as the Service's service account: its kubeconfig holds a
//     token of that account, which is renewed while the process lives.
//
// Processes share nothing and remember nothing: what a function knows it reads.
// They die with this process.
//
// A Service with the annotation slipway.dev/disabled: "true" answers 503 and is
// never started.
package function
