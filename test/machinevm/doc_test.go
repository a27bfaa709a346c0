// Package machinevm tests the function machine-vm as a whole against a real API
// server: the function's own handler, under its own ServiceAccount with the
// generated rights, on the definitions of KubeVirt, CDI and Multus themselves.
//
// What every test of the package contributes to (evidence_test.go):
//
//   - Each write of the function is sent with strict field validation, and each
//     VirtualMachine that it writes must pass KubeVirt's admission rules.
//   - Each request is held against the generated roles: a refusal that no test
//     provoked fails the package, and so does a right that no test made use of.
//
// Tests come in two sorts. Most run without KubeVirt: a VirtualMachine is then an
// object like any other, every call of the function can be counted, paused or
// failed, and what follows is the same each time. The others run with KubeVirt
// played (platform_test.go) and with a source that turns every change into an
// event, as Knative's does.
package machinevm
