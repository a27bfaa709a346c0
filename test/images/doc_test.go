// Package images shows that what is built and pushed is what runs: with the real kn
// func and the real ko, into a registry of this machine. The program is unpacked from
// the layers that were pushed, and takes CloudEvents on a real API server.
//
// Building for three platforms takes minutes with cold caches, so the tests run only
// when they are asked for:
//
//	make func-test    the whole set and one staged function by kn func, one image by ko
//	make func-all     every function by kn func
//
// NOTE: no container engine runs here: the program is started as a process, not in the
// image's own file system. In test/cluster containerd runs one that kn func built.
package images
