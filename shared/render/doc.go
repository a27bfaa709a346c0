// Package render says what it means to render a WorkloadTemplate: what goes in,
// what may come out, and what went wrong. It is the language that the function,
// the command line and the webhook have in common.
//
// A render depends on nothing but its Request:
//
//	Cluster, Workload ─► ProjectCluster, ProjectWorkload ─► Request ─► a child process ─► Answer
//	Answer ─► Request.Decode ─► Outputs ─► Rules.Check ─► Objects, in the order in which they are applied
//
// Everything here is plain data and pure rules: decisions import it. The language
// of templates, CUE, is in package evaluate, which runs in a child process only
// (package worker): what a template's author writes is never evaluated where
// requests are served.
package render
