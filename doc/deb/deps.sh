#!/bin/sh
# deps.sh - install those of Debian's packages that are missing, as root; elsewhere list them; `make deps`
#
# usage: deps.sh PACKAGE...
set -eu

missing=
for package in "$@"; do
	dpkg-query -W -f '${Status}' "$package" 2> /dev/null | grep -q 'ok installed' ||
		missing="$missing $package"
done
[ -n "$missing" ] || exit 0

echo "missing packages:$missing"
if ! command -v apt-get > /dev/null || [ "$(id -u)" != 0 ]; then
	echo "install them (Debian's names) and run make again; as root on Debian, make does it"
	exit 1
fi
apt-get update -q
install="apt-get install -y --no-install-recommends"
# shellcheck disable=SC2086 # they are words
$install --print-uris -qq $missing | awk '
	{ bytes += $3 }
	END { printf "make fetches %d packages, %.1f MB, by: ", NR, bytes / 1e6 }'
echo "$install"
# shellcheck disable=SC2086
DEBIAN_FRONTEND=noninteractive $install -q $missing
