"""cachetest - for the tests of the cache beside a trace: reports with it and without it"""

import os

from unwindtest import GOLDEN, VIEWS, UnwindCase, chunks_of, join

OWN, WITH_GROWTH = 64, 65  # types of chunks with results
KERNEL = next(path for path in GOLDEN if "kernel" in path)
USERS = [path for path in GOLDEN if "kernel" not in path]
LIBC = b"/usr/lib/x86_64-linux-gnu/libc.so.6"
MORE_VIEWS = VIEWS + [[], ["--format=json"], ["--format=html"], ["--lost"], ["--at", "1ms"], ["--cost", "peak"]]

# A library for file systems without O_TMPFILE; a program stops when it has made a file, if so asked.
# With $MADE others may write all files, and the first that is made has that name, too.
NAMED = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
static int (*next_fchmod(void))(int, mode_t) { return dlsym(RTLD_NEXT, "fchmod"); }
int fchmod(int fd, mode_t mode) { return getenv("MADE") ? -1 : next_fchmod()(fd, mode); }
int openat(int dir, const char *path, int flags, ...)
{
	int (*real)(int, const char *, int, ...) = dlsym(RTLD_NEXT, "openat");
	va_list args;
	int mode, fd;

	va_start(args, flags);
	mode = va_arg(args, int);
	va_end(args);
	if ((flags & O_TMPFILE) == O_TMPFILE) {
		errno = EOPNOTSUPP;
		return -1;
	}
	fd = real(dir, path, flags, mode);
	if (flags & O_EXCL && getenv("STOP_THERE"))
		raise(SIGSTOP);
	if (flags & O_EXCL && getenv("MADE") && fd >= 0) {
		next_fchmod()(fd, 0666);
		linkat(dir, path, AT_FDCWD, getenv("MADE"), 0);
	}
	return fd;
}
int openat64(int dir, const char *path, int flags, ...) __attribute__((alias("openat")));
"""


class CacheCase(UnwindCase):
    def setUp(self):
        super().setUp()
        self.path_of = self.write("x.mlk", self.read(self.trace))
        self.cache = self.path_of + ".stacks"

    def cached(self, *args, mode="always", **options):
        """What `mleak report` says with a cache, if it can have one."""
        env = dict(os.environ, MLEAK_CACHE=mode)
        result = self.mleak("report", *args, env=env, **options)
        return result.status, result.out, result.err

    def plain(self, *args, **options):
        return self.cached("--no-cache", *args, **options)

    def make(self, *args):
        """Make a report that makes the cache; returns the cache."""
        self.cached(*args, self.path_of)
        return self.read(self.cache)

    def lie(self):
        """Have the cache say other stacks under right sums, and no results: a report shows whether it was
        read."""
        data = self.make()
        chunks = [c for c in chunks_of(data) if c.type < OWN]
        for chunk in chunks:
            content = bytearray(chunk.content())
            at = content.index(LIBC) + len(LIBC)  # of the address where it was mapped
            content[at + 1] ^= 0x11
            chunk.set_content(bytes(content))
        lie = join(data, chunks)
        self.write("x.mlk.stacks", lie)
        os.chmod(self.cache, 0o600)
        return lie

    def is_used(self, *args):
        """Is the cache that lies believed, by a report that neither reads nor makes results?"""
        views = ("--folded", "--addresses", "--thread", "*", *args, self.path_of)
        return self.cached(*views) != self.plain(*views)
