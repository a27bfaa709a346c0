#!/bin/bash
# The first process of the node: makes the namespaces it was started in a machine of
# its own, says so, and waits until nobody holds its standard input any more.
#   STATE   the node's data, on a disk
#   GROUP   the name of its control groups
set -euo pipefail

# Mounts below reach the pods' namespaces, but not the machine: unshare cut that off.
mount --make-rshared /
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p "$STATE"/lib/{kubelet,containerd,cni} "$STATE"/log/{pods,containers} "$STATE/sysctl"
mount --bind "$STATE/lib" /var/lib
mount --bind "$STATE/log" /var/log

# The kubelet wants these values and would set them for the whole machine. It is
# shown files that hold them instead.
pretend() {
	local file=$STATE/sysctl/${1//\//.}
	echo "$2" >"$file"
	mount --bind "$file" "/proc/sys/$1"
}
pretend vm/overcommit_memory 1
pretend vm/panic_on_oom 0
pretend kernel/panic 10
pretend kernel/panic_on_oops 1
pretend kernel/keys/root_maxkeys 1000000
pretend kernel/keys/root_maxbytes 25000000

hostname node1
ip link set lo up
# Both ends in here: service addresses need a route before kube-proxy rewrites them,
# and nobody answers at its end.
ip link add eth0 type veth peer name eth0p
ip link set eth0 up
ip link set eth0p up
ip addr add 10.20.0.2/24 dev eth0
ip route add default via 10.20.0.1
echo 1 >/proc/sys/net/ipv4/ip_forward

for hierarchy in /sys/fs/cgroup/*/; do
	[ -L "${hierarchy%/}" ] && continue
	mkdir -p "$hierarchy$GROUP"
	for file in cpuset.cpus cpuset.mems; do
		if [ -f "$hierarchy$file" ] && [ "$hierarchy" != /sys/fs/cgroup/unified/ ]; then
			cat "$hierarchy$file" >"$hierarchy$GROUP/$file"
		fi
	done
done
echo booted >"$STATE/booted"
# The shell reaps whoever loses its parent.
while read -r _; do :; done
