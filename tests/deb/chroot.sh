#!/bin/bash
# chroot.sh - install the packages of `make deb` into a new Debian system, use them there, and
# remove them again
#
# usage: chroot.sh FOLDER-WITH-PACKAGES [SUITE]; as root.  MIRROR names another mirror of Debian.
#
# What is mounted in the new system is so in a mount namespace of its own, which ends with this.
set -euo pipefail

if [ -z "${MLEAK_CHROOT:-}" ]; then
	MLEAK_CHROOT=$(mktemp -d /var/tmp/mleak-chroot.XXXXXX)
	export MLEAK_CHROOT
	trap 'rm -rf --one-file-system "$MLEAK_CHROOT"' EXIT
	unshare --mount --propagation private "$0" "$@"
	exit
fi

packages=$(realpath "$1") suite=${2:-bookworm} root=$MLEAK_CHROOT
mirror=${MIRROR:-http://deb.debian.org/debian}

say() { printf 'check-deb: %s\n' "$*"; }
fail() { say "FAILED: $*"; exit 1; }
inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@"; }
apt() { inside apt-get -q -y --no-install-recommends "$@" > "$root/apt.log" 2>&1 || { tail -n 30 "$root/apt.log"; fail "apt-get $*"; }; }
files() { (cd "$root" && find usr etc -not -type d | LC_ALL=C sort); }

say "debootstrap $suite"
debootstrap --variant=minbase "$suite" "$root" "$mirror" > "$root.log" 2>&1 || { tail -n 30 "$root.log"; rm "$root.log"; fail debootstrap; }
rm "$root.log"
mount -t proc proc "$root/proc"
mount --rbind -o ro /sys "$root/sys"
mkdir "$root/packages"
cp "$packages"/*.deb "$root/packages"

files > "$root/before"
inside sh -c 'apt-get -q -y --no-install-recommends install /packages/mleak_*.deb' > "$root/apt.log" 2>&1 ||
	{ tail -n 30 "$root/apt.log"; fail "installing mleak"; }
version=$(dpkg-deb -f "$root"/packages/mleak_*.deb Version)
[ "$(inside mleak --version | head -n 1)" = "mleak $version" ] || fail "mleak --version"
say "mleak $version is installed, with what it depends on only"
inside dpkg --verify mleak || fail "files differ from the package's"

try() { # BACKEND
	inside mleak record --backend "$1" -o /x.mlk -- perl -e 'my @a = (1..100000)' || fail "mleak record --backend $1"
	inside mleak report -n 3 /x.mlk > "$root/report" || fail "mleak report"
	head -n 8 "$root/report"
	grep -q '^  complete stacks 100\.0 %' "$root/report" || fail "the report has incomplete stacks"
	grep -q 'Perl_\|perl' "$root/report" || fail "the report does not name perl"
}

try preload
if [ -r /sys/kernel/btf/vmlinux ]; then try bpf; else say "no BPF here"; fi

inside sh -c 'apt-get -q -y --no-install-recommends install gcc libc6-dev pkg-config /packages/libdwunw*.deb' \
	> "$root/apt.log" 2>&1 || { tail -n 30 "$root/apt.log"; fail "installing libdwunw-dev"; }
printf '%s\n' '#include <dwunw.h>' '#include <stdio.h>' 'int main(void) { struct dwunw *dw;' \
	'if (dwunw_new(&dw)) return 1; dwunw_free(dw); puts("library works"); return 0; }' > "$root/use.c"
inside sh -c 'gcc -o /use /use.c $(pkg-config --cflags --libs dwunw) && /use' || fail "libdwunw"
inside sh -c 'gcc -o /use-static /use.c -l:libdwunw.a $(pkg-config --libs --static dwunw | sed s/-ldwunw//) && /use-static' ||
	fail "libdwunw.a"

apt purge mleak libdwunw0 libdwunw-dev
for package in mleak libdwunw0 libdwunw-dev; do
	[ ! -e "$root/usr/share/doc/$package" ] || fail "$package leaves its documents behind"
done
left=$(files | LC_ALL=C comm -13 "$root/before" - | grep -E 'mleak|dwunw' || true)
[ -z "$left" ] || fail "left behind: $left"
say "removed again; nothing is left"
