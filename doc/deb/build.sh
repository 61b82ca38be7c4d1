#!/bin/sh
# build.sh - make Debian packages of what `make install` installs; called by `make deb`
#
# usage: build.sh ROOT VERSION OUT
#   ROOT     where `make install DESTDIR=ROOT PREFIX=/usr` was run; it is emptied into the packages
#   OUT      receives the packages
# SOURCE_DATE_EPOCH dates all files; DEBFULLNAME and DEBEMAIL name the maintainer, as for dch(1).
set -eu
umask 022

root=$(realpath "$1") version=$2 out=$(realpath "$3")
data=$(realpath "$(dirname "$0")")
date=${SOURCE_DATE_EPOCH:-$(date +%s)}
maintainer="${DEBFULLNAME:-the mleak authors} <${DEBEMAIL:-mleak@example.org}>"
libdir=usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)
work=$(mktemp -d "$out/work.XXXXXX")
trap 'rm -rf "$work"' EXIT

# move PACKAGE PATH...: these are in that package
move()
{
	package=$1
	shift
	for path; do
		mkdir -p "$work/$package/$(dirname "$path")"
		mv "$root/$path" "$work/$package/$path"
	done
}

# finish PACKAGE: what policy wants in each package, and the package itself
finish()
{
	dir=$work/$1 doc=$work/$1/usr/share/doc/$1
	mkdir -p "$doc" "$dir/DEBIAN"
	cp "$data/copyright" "$doc"
	gzip -9n < debian/changelog > "$doc/changelog.gz"
	chmod -R u=rwX,go=rX "$dir"
	dpkg-gencontrol -p"$1" -P"$dir" -Tdebian/"$1".substvars -fdebian/files
	(cd "$dir" && find usr -type f -exec md5sum {} + | LC_ALL=C sort -k 2 > DEBIAN/md5sums)
	find "$dir" -exec touch -h -d "@$date" {} +
	SOURCE_DATE_EPOCH=$date dpkg-deb --root-owner-group -Zxz -b "$dir" "$out" > /dev/null
}

mkdir "$work/debian"
cd "$work"
sed "s|@MAINTAINER@|$maintainer|" "$data/control" > debian/control
cat > debian/changelog << END
mleak ($version) unstable; urgency=medium

  * Built by make deb.

 -- $maintainer  $(LC_ALL=C date -u -R -d "@$date")
END

find "$root/usr/share/man" -type f -exec gzip -9n {} +
preload=$libdir/mleak/libmleak-preload.so
strip --strip-unneeded -R .comment -R .note "$root/usr/bin/mleak" "$root/$libdir/libdwunw.so.0" "$root/$preload"
strip --strip-debug -D "$root/$libdir/libdwunw.a" "$root/$libdir/mleak/libmleak-wrap.a"
chmod 644 "$root/$libdir/libdwunw.so.0"
rm "$root/usr/share/doc/mleak/LICENSE" # it is in the copyright file

move libdwunw0 "$libdir/libdwunw.so.0"
move mleak "$preload" "$libdir/mleak/libmleak-wrap.a"
rmdir "$root/$libdir/mleak"
mkdir -p libdwunw0/DEBIAN libdwunw-dev/usr/share/doc/libdwunw-dev
echo "libdwunw 0 libdwunw0 (>= $version)" > libdwunw0/DEBIAN/shlibs
echo "activate-noawait ldconfig" > libdwunw0/DEBIAN/triggers
move libdwunw-dev "$libdir" usr/include
# The documents of the library are in its package, and the links to and from them say so.
of_library='(api_usage|dwunw_[a-z]+)\.md'
find "$root/usr/share/doc/mleak" -name '*.md' -exec sed -E -i "s;\]\((\.\./)?$of_library;](\1../libdwunw-dev/\2.md;g" {} +
mv "$root"/usr/share/doc/mleak/api_usage.md "$root"/usr/share/doc/mleak/dwunw_*.md \
	libdwunw-dev/usr/share/doc/libdwunw-dev
sed -E -i 's;\]\(([a-z][a-z0-9/_-]*\.md);](../mleak/\1;g' libdwunw-dev/usr/share/doc/libdwunw-dev/*.md
mkdir -p mleak/DEBIAN
rmdir "$root/usr/lib"
mv "$root"/usr/* mleak/usr

dpkg-shlibdeps -Tdebian/mleak.substvars mleak/usr/bin/mleak "mleak/$preload"
dpkg-shlibdeps -Tdebian/libdwunw0.substvars "libdwunw0/$libdir/libdwunw.so.0"
: > debian/libdwunw-dev.substvars
for package in mleak libdwunw0 libdwunw-dev; do
	finish "$package"
done
