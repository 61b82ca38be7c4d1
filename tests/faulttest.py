"""faulttest - what the tests of faults share: a target that does what it is told and counts it, and
the trace's account of the same."""

import collections
import ctypes
import os
import re
import subprocess
import time

from mleaktest import LONG, MLEAK_FAST, Case, read_line

# Takes lines "COMMAND NUMBER" and answers each with what it has done in all.  It allocates for
# nothing else.
TARGET = r"""
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifndef PREPARE
#define PREPARE
#endif
#ifndef MORE
#define MORE(command, number)
#endif
#define FRAME __attribute__((noinline, noipa))
static unsigned long allocs, frees;
static void *kept[200000];
static unsigned nr_kept, first_kept;
FRAME void leak_early(void) { kept[nr_kept++] = malloc(47); allocs++; }
FRAME void leak_late(void) { kept[nr_kept++] = malloc(53); allocs++; }
FRAME void free_oldest(void) { free(kept[first_kept++]); frees++; }
FRAME void pair(void)
{
	void *block = malloc(17);
	__asm__ volatile("" : "+r"(block));
	allocs++;
	free(block);
	frees++;
}
/* A stack of several pages above each call. */
FRAME void many_pairs(int n)
{
	char room[12000];
	memset(room, n, sizeof(room));
	__asm__ volatile("" : : "r"(room) : "memory");
	while (n-- > 0)
		pair();
	__asm__ volatile("" : : "r"(room) : "memory");
}
int main(int argc, char **argv)
{
	char line[100];
	(void)argc, (void)argv;
	PREPARE
	write(1, "ready\n", 6);
	for (;;) {
		int n = 0, number, len = 0, said;
		char command[40];
		while (len < (int)sizeof(line) - 1 && read(0, line + len, 1) == 1 && line[len] != '\n')
			len++;
		line[len] = '\0';
		if (!len || sscanf(line, "%39s %d", command, &number) != 2)
			return 0;
		if (!strcmp(command, "early"))
			for (; n < number; n++)
				leak_early();
		else if (!strcmp(command, "late"))
			for (; n < number; n++)
				leak_late();
		else if (!strcmp(command, "free"))
			for (; n < number; n++)
				free_oldest();
		else if (!strcmp(command, "pairs"))
			many_pairs(number);
		MORE(command, number)
		said = snprintf(line, sizeof(line), "allocs=%lu frees=%lu\n", allocs, frees);
		write(1, line, said);
	}
}
"""

Truth = collections.namedtuple("Truth", "allocs frees")


class KernelTable:
    """A hash table of the running recorder @pid, in the kernel, by its sizes; with CAP_SYS_ADMIN."""
    BPF = 321  # the system call, and its commands
    UPDATE, NEXT_KEY, BY_ID = 2, 4, 14
    MAX_TARGETS = 4096  # EVENT_MAX_TARGETS of bpf/event.h: the processes
    MIN_CODE = 128      # struct event_code is larger, and those of other tables with a process each are not

    def __init__(self, pid, entries=MAX_TARGETS, key_size=4, value_size=None):
        for fd in os.listdir("/proc/%d/fdinfo" % pid):
            with open("/proc/%d/fdinfo/%s" % (pid, fd)) as info:
                field = dict(re.findall(r"^(\w+):\s*(\w+)", info.read(), re.M))
            sizes = [int(field.get(name, 0)) for name in ("map_type", "max_entries", "key_size")]
            value = int(field.get("value_size", 0))
            if sizes == [1, entries, key_size] and value_size in (None, value) and (
                    entries != self.MAX_TARGETS or value >= self.MIN_CODE):
                break
        else:
            raise AssertionError("recorder %d has no such table" % pid)
        self.room = entries
        self.key_words = key_size // 4
        self.value = ctypes.create_string_buffer(value)
        self.fd = self.call(self.BY_ID, int(field["map_id"]))
        assert self.fd >= 0, os.strerror(-self.fd)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.fd)

    def call(self, command, *words):
        attr = (ctypes.c_uint64 * 16)(*words)
        libc = ctypes.CDLL(None, use_errno=True)
        result = libc.syscall(self.BPF, command, ctypes.byref(attr), ctypes.sizeof(attr))
        return result if result >= 0 else -ctypes.get_errno()

    def add(self, number):
        key = ctypes.c_uint32(number)
        err = self.call(self.UPDATE, self.fd, ctypes.addressof(key), ctypes.addressof(self.value))
        assert not err, os.strerror(-err)

    def keys(self):
        """Each as its words of 32 bits."""
        found, last, key = set(), 0, (ctypes.c_uint32 * self.key_words)()
        while not self.call(self.NEXT_KEY, self.fd, last, ctypes.addressof(key)):
            found.add(tuple(key))
            last = ctypes.addressof(key)
        return found


class FaultCase(Case):
    program = MLEAK_FAST

    def compile(self, name, *flags, source=TARGET, compiler="gcc"):
        """The program @name, of @source; C++ if @compiler is g++."""
        self.write(name + ".c", source.encode())
        language = "c++" if compiler == "g++" else "c"
        result = self.finish(self.spawn([compiler, "-O2", "-g", "-x", language, "-o", name,
                                         name + ".c", *flags]))
        self.assertTrue(os.path.exists(self.path(name)), result.err)
        return self.path(name)

    def start(self, *argv, **options):
        """Start a program of TARGET."""
        target = self.spawn(argv, stdin=subprocess.PIPE, **options)
        self.assertEqual(read_line(target), "ready")
        return target

    def tell(self, target, command, number=1):
        """Have @target do something; returns all that it did so far."""
        target.stdin.write(b"%s %d\n" % (command.encode(), number))
        line = read_line(target)
        return Truth(*(int(n) for n in re.match(r"allocs=(\d+) frees=(\d+)$", line).groups()))

    def attach(self, pid, *options, **popen_options):
        """Start to record @pid into x.mlk, and wait until the probes stand."""
        if os.path.exists(self.path("x.mlk")):
            os.remove(self.path("x.mlk"))
        mleak = self.start_mleak("record", "-o", self.path("x.mlk"), *options, "-p", str(pid),
                                 **popen_options)
        self.wait_for_probes(mleak)
        return mleak

    def wait_for_probes(self, mleak):
        """The trace gets its name when the probes stand, however long that takes."""
        end = time.monotonic() + LONG
        while not os.path.exists(self.path("x.mlk")):
            if mleak.poll() is not None:
                self.fail("mleak ended at once: %s" % (self.finish(mleak),))
            self.assertLess(time.monotonic(), end, "mleak attached nothing")
            time.sleep(0.01)

    def stop(self, mleak):
        """End the recording in order; returns what it printed on stderr."""
        mleak.terminate()
        result = self.finish(mleak)
        self.assertEqual(result.status, 0, result.err)
        return result.err

    def dump(self, trace=None):
        return self.mleak("report", "--dump", trace or self.path("x.mlk")).out

    def seen(self, dump=None):
        """Allocations and frees in the trace, and those that it says were lost."""
        dump = dump or self.dump()
        losses = re.findall(r"^  LOSSES (.*)$", dump, re.M)
        lost = dict(re.findall(r"(\w+) (\d+)", losses[-1])) if losses else {}
        return (Truth(dump.count("\n  ALLOC "), dump.count("\n  FREE ")),
                Truth(int(lost.get("allocs", 0)), int(lost.get("frees", 0))))

    def assert_accounted(self, truth, before=Truth(0, 0)):
        """What was seen and what is said to be lost is what there was since @before, of each kind;
        returns what was lost."""
        seen, lost = self.seen()
        self.assertEqual(seen.allocs + lost.allocs, truth.allocs - before.allocs, "allocations")
        self.assertEqual(seen.frees + lost.frees, truth.frees - before.frees, "frees")
        return lost
