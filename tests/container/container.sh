#!/bin/bash
# container.sh - run `make deps`, `make test-all` and `make demo` in a new Debian system, once as its root with
# what a container's root may do, and once as an ordinary user
#
# usage: container.sh [SUITE]; as root, in a clone.  MIRROR names another mirror of Debian.
#
# What is mounted in the new system is so in namespaces of their own, which end with this.
set -euo pipefail

# As Docker has it by default: no BPF, no perf_event_open(2), no mounts, no namespaces.
CAPS=chown,dac_override,fowner,fsetid,kill,setgid,setuid,setpcap,net_bind_service,net_raw,sys_chroot,mknod,audit_write,setfcap

if [ -z "${MLEAK_CHROOT:-}" ]; then
	MLEAK_CHROOT=$(mktemp -d /var/tmp/mleak-container.XXXXXX)
	export MLEAK_CHROOT
	trap 'rm -rf --one-file-system "$MLEAK_CHROOT"' EXIT
	unshare --mount --pid --ipc --uts --fork --propagation private "$0" "$@"
	exit
fi

suite=${1:-bookworm} root=$MLEAK_CHROOT
mirror=${MIRROR:-http://deb.debian.org/debian}

say() { printf 'check-container: %s\n' "$*"; }
fail() { say "FAILED: $*"; exit 1; }
inside() {
	setpriv --bounding-set="-all,+${CAPS//,/,+}" --inh-caps=-all chroot "$root" env -i HOME=/root LANG=C.UTF-8 \
		PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"
}
as_user() {
	inside setpriv --reuid=mleak --regid=mleak --clear-groups --bounding-set=-all env HOME=/home/mleak \
		PATH=/usr/local/bin:/usr/bin:/bin "$@"
}

make_devices() {
	mount -t tmpfs -o mode=755 none "$root/dev"
	for name in null zero full random urandom tty; do
		touch "$root/dev/$name"
		mount --bind "/dev/$name" "$root/dev/$name"
	done
	mkdir "$root/dev/pts" "$root/dev/shm"
	mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 none "$root/dev/pts"
	mount -t tmpfs -o mode=1777 none "$root/dev/shm"
	ln -s pts/ptmx "$root/dev/ptmx"
	ln -s /proc/self/fd "$root/dev/fd"
}

chmod 755 "$root" # mktemp lets nobody but root through it
say "debootstrap $suite"
debootstrap --variant=minbase --include=make,git "$suite" "$root" "$mirror" > "$root.log" 2>&1 ||
	{ tail -n 30 "$root.log"; rm "$root.log"; fail debootstrap; }
rm "$root.log"
make_devices
mount -t proc proc "$root/proc"
[ ! -d /sys/kernel/btf ] || mount --rbind -o ro /sys "$root/sys"
git clone -q --no-hardlinks . "$root/root/mleak"
inside useradd -m mleak
cp -r "$root/root/mleak" "$root/home/mleak/mleak"
inside chown -R mleak: /home/mleak/mleak

inside mount -t tmpfs none /mnt 2> /dev/null && fail "this is no container: its root may mount"
say "as root without privileges"
inside make -C /root/mleak deps test-all demo || fail "as root"
say "as an ordinary user"
as_user make -C /home/mleak/mleak deps test-all demo || fail "as an ordinary user"
say "both succeed"
