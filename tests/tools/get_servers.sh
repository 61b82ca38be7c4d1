#!/bin/sh
# get_servers.sh - fetch servers that tests record from Debian, and unpack them; `make servers`
#
# usage: get_servers.sh OUT
#   OUT   becomes a folder with them, as they would be installed below /
# They are not installed: that would start them, now and with each boot.  Where they cannot be had,
# that is said, and their tests are skipped: the exit status is 0.
set -eu

packages="nginx postgresql-15 postgresql-client-15 apache2-utils"
out=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

echo "fetching $packages from Debian, some 20 MB"
# shellcheck disable=SC2086 # they are words
if ! (cd "$work" && timeout 300 apt-get download -qq -o APT::Sandbox::User=root $packages) > "$work/log" 2>&1; then
	echo "servers cannot be had ($(head -n 1 "$work/log")): their tests are skipped"
	exit 0
fi
for package in "$work"/*.deb; do
	dpkg-deb -x "$package" "$work/root"
done
# of no use here, and most of it
rm -rf "$work/root/usr/share/locale" "$work/root/usr/share/doc" "$work"/root/usr/lib/postgresql/*/lib/bitcode
chmod 755 "$work/root"
mkdir -p "$(dirname "$out")"
rm -rf "$out"
mv "$work/root" "$out"
echo "servers are in $out"
