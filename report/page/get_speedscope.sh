#!/bin/sh
# get_speedscope.sh - fetch speedscope from npm, for the pages of --format=html; `make speedscope`
#
# usage: get_speedscope.sh VERSION SHA512 OUT
#   SHA512   of the package, in hexadecimal: nothing else is taken
#   OUT      receives one script, with the licence in it, that can stand in an element of HTML
# Where it cannot be had, that is said, and pages go without: the exit status is 0.
set -eu

version=$1 sum=$2 out=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

without()
{
	echo "speedscope cannot be had ($1): --format=html goes without it"
	exit 0
}

echo "fetching speedscope $version from npm, some 300 kB"
if command -v npm > /dev/null; then
	(cd "$work" && timeout 60 npm pack --silent --fetch-retries=0 "speedscope@$version") > "$work/log" 2>&1 ||
		without "npm does not give speedscope $version"
elif command -v curl > /dev/null; then
	curl -fsSL --max-time 60 -o "$work/speedscope-$version.tgz" \
		"https://registry.npmjs.org/speedscope/-/speedscope-$version.tgz" 2> "$work/log" ||
		without "$(head -n 1 "$work/log")"
else
	without "neither npm nor curl is here"
fi
echo "$sum  $work/speedscope-$version.tgz" | sha512sum --check --status ||
	{ echo "speedscope $version from npm is not what it was"; exit 1; }
tar -xzf "$work/speedscope-$version.tgz" -C "$work"
cd "$work/package"
{
	echo "/*! speedscope $version, https://www.speedscope.app"
	sed 's/^/ * /; s/ $//' LICENSE
	echo ' */'
	printf 'document.head.appendChild(document.createElement("style")).textContent = "'
	sed '/^\/\*#/d; s/@font-face{[^}]*}//' dist/release/speedscope-*.css | tr '"' "'" | tr -d '\n'
	echo '";'
	sed '/^\/\/# sourceMappingURL/d' dist/release/speedscope-*.js
} > "$work/script"
if grep -qi -e '</script' -e '<!--' "$work/script"; then
	echo "speedscope $version cannot stand in a page"
	exit 1
fi
cd - > /dev/null
mkdir -p "$(dirname "$out")"
mv "$work/script" "$out"
echo "speedscope $version is in $out"
