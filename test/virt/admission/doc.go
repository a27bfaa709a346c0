// Package admission knows what KubeVirt's admission webhooks demand of a
// VirtualMachine, so that machines that functions make can be checked where no
// webhook runs: in table tests, property tests and on a local stack.
//
// The rules are those that were observed alike with the webhooks of KubeVirt 1.8.0
// and 1.9.0, with a cluster configuration of defaults. They are numbered; a
// violation carries the number.
//
//	 1  exactly one of running and runStrategy, and a strategy that exists
//	 2  no unknown fields, inside the template neither
//	 3  names of disks and volumes; each disk has a volume; at most 256 devices of a kind
//	 4  buses of disks and cdroms
//	 5  names and networks of interfaces, and their bindings
//	 6  models and MACs of interfaces
//	 7  the boot order
//	 8  no interface at all is no violation: KubeVirt adds one unless told otherwise
//	 9  machine types
//	10  firmware and secure boot
//	11  features are structures
//	12  sources and sizes of cloud-init data
//	13  data volume templates have a source and a volume
//	14  memory, without which the machine is accepted and its instance is not
package admission
