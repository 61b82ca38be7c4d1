"""What the BPF programs execute for an allocation, counted in what the kernel translated.

Counted is the way that an allocation takes when all goes well: the outermost malloc of a thread
known already, all of whose stack can be read, and a ring with room.  Beyond plain counting (the
counter in tests/bench/cost.bpf.c: note the size at the entry, add it up at the return), it may be 80
instructions; and there is no loop in it, however large the stack.
"""

import os
import re
import time
import unittest

from loadtest import LoadCase, program as load_program
from mleaktest import LONG, BUILD, needs_bpf, read_line
import xlated

BENCH = os.path.join(BUILD, "tests", "bench")
MALLOC = 1  # the attach cookie of malloc, bpf/event.h
RETURN = 1024  # EVENT_RETURN there, in that of a return
MOST_BEYOND_COUNTING = 80
BLOCK = 0x5555_0000_1230


class Programs:
    """What is put on malloc's entry and on its return, and a thread that went through both."""

    def __init__(self, pid, target, cookie):
        found = xlated.linked(pid)
        entry = [n for kind, n, cookies in found if kind == "uprobe_multi" and cookie in cookies]
        back = [n for kind, n, cookies in found if kind == "uretprobe_multi" and
                {cookie, str(int(cookie) | RETURN)} & set(cookies)]
        self.entry = xlated.program(entry[0])
        # A session link (Linux 6.13) has one program for both.
        self.back = xlated.program(back[0]) if back else self.entry
        self.pid = target.pid
        self.tid = max(int(tid) for tid in os.listdir("/proc/%d/task" % target.pid))
        self.sp = self.stack_pointer()

    def stack_pointer(self):
        """Where the thread waits; right after its last call it may still be on its way there."""
        end = time.monotonic() + LONG
        while time.monotonic() < end:
            with open("/proc/%d/task/%d/syscall" % (self.pid, self.tid)) as state:
                words = state.read().split()
            if len(words) > 2:
                return int(words[-2], 16)
            time.sleep(0.01)
        raise AssertionError("thread %d does not come to rest" % self.tid)

    def run(self, below=0):
        """Run one malloc(64) whose stack pointer stands @below bytes below the thread's own."""
        machine = xlated.Machine(self.pid, self.tid, MALLOC)
        sp = self.sp - 8 - below
        times = [machine.run(self.entry, {"rdi": 64, "rsp": sp, "rip": xlated.FUNCTION}),
                 machine.run(self.back, {"rax": BLOCK, "rsp": sp + 8, "rip": xlated.FUNCTION + 99})]
        return machine, times


def executed(times):
    return sum(sum(each.values()) for each in times)


@needs_bpf
class InstructionTest(LoadCase):
    def setUp(self):
        super().setUp()
        if tuple(map(int, re.findall(r"\d+", os.uname().release)[:2])) < (6, 16):
            self.skipTest("before Linux 6.16 /proc/PID/fdinfo does not tell of such links")

    def alone(self):
        """A thread alone in its memory, which frees what it allocated, and now waits."""
        target = self.spawn([os.path.join(BENCH, "cost_target")], stdin=-1)
        mleak, _ = self.attach(target)
        target.stdin.write(b"10\n")
        read_line(target)
        return Programs(mleak.pid, target, str(MALLOC))

    def target(self):
        """A thread that allocated, and now waits."""
        target = self.spawn([load_program(), "1000", "0.1", "1"], stdin=-1)
        self.assertEqual(read_line(target), "ready")
        return target

    def go(self, target):
        target.stdin.write(b"\n")
        self.assertIn("truth:", read_line(target))

    def mleaks(self):
        target = self.target()
        mleak, _ = self.attach(target)
        self.go(target)
        return Programs(mleak.pid, target, str(MALLOC))

    def counters(self):
        target = self.target()
        with open("/proc/%d/maps" % target.pid) as maps:
            libc = re.search(r"(/\S*/libc\.so\.6)$", maps.read(), re.M)[1]
        mleak, _ = self.attach(target)
        offset = malloc_site(mleak.pid)
        mleak.terminate()
        self.finish(mleak)
        probes = self.spawn([os.path.join(BENCH, "cost_probes"),
                             os.path.join(BENCH, "cost.bpf.o"), str(target.pid), libc,
                             "count_malloc_return@%s:return" % offset, "count_malloc@" + offset],
                            stdin=-1)
        self.assertEqual(read_line(probes), "ready")
        self.go(target)
        return Programs(probes.pid, target, "0")

    def test_80_instructions_beyond_plain_counting(self):
        mleak, counter = self.mleaks(), self.counters()
        counted = executed(counter.run()[1])
        for programs in (mleak, self.alone()):
            machine, times = programs.run()
            self.assertIn("bpf_ringbuf_submit", " ".join(machine.calls), "no event was sent")
            print_counts(programs, times, counted, machine)
            self.assertLessEqual(executed(times) - counted, MOST_BEYOND_COUNTING)

    def test_no_loop_over_stack_data(self):
        machine, times = self.mleaks().run(below=50000)
        self.assertGreater(machine.reserved, 32768, "that was no large stack")
        again = [n for each in times for n in each.values() if n > 1]
        self.assertEqual(again, [], "instructions were executed more than once")


def malloc_site(pid):
    """Offset in its file of the probe that process @pid has on malloc's entry."""
    for fd in os.listdir("/proc/%d/fdinfo" % pid):
        try:
            with open("/proc/%d/fdinfo/%s" % (pid, fd)) as info:
                text = info.read()
        except FileNotFoundError:
            continue  # the recorder has closed it since
        found = re.search(r"^%d\s+(0x[0-9a-f]+)\s" % MALLOC, text, re.M)
        if found:
            return found[1]
    raise AssertionError("no probe on malloc")


def print_counts(mleak, times, counted, machine):
    """Shown where MLEAK_SHOW_INSTRUCTIONS is set: figures for the documentation."""
    if not os.environ.get("MLEAK_SHOW_INSTRUCTIONS"):
        return
    names = ("malloc's entry", "malloc's return")
    for name, code, each in zip(names, (mleak.entry, mleak.back), times):
        longest, loops = xlated.longest_path(code)
        print("%-16s %4d in the program, %4d on the longest way, %3d executed, loops close at %s" %
              (name, len(code), longest, sum(each.values()), loops))
    print("counter: %d executed; beyond it: %d; helpers called: %d %s" % (
        counted, executed(times) - counted, len(machine.calls), " ".join(machine.calls)))


if __name__ == "__main__":
    unittest.main()
