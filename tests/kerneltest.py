"""What tests of `mleak record --kernel` have in common: a target, and how it is recorded."""

import csv
import io
import os
import re
import signal
import subprocess

from mleaktest import TESTS, Case, needs_bpf, read_line, wait_until

# As in kernel_target.c.
PIPES, EVENTS, EPOLLS, SOCKETS, FILES, PERCPU = 211, 223, 97, 61, 53, 307
OPEN = 2 * PIPES + EVENTS + EPOLLS + SOCKETS + FILES

# How many files each system call makes in all.
CALLS = {"pipe2": 2 * PIPES, "eventfd2": EVENTS, "epoll_create1": EPOLLS, "socket": SOCKETS,
         "memfd_create": FILES}

# A slab keeps a word for each of its objects, to account for it (CONFIG_MEMCG): they are the slab's,
# and stay as long as it does.  So do slabs.
OF_SLABS = "alloc_slab_obj_exts|alloc_slab_page|account_slab|memcg_alloc_"


@needs_bpf
class KernelCase(Case):
    has_target = True
    target_source, target_flags = "kernel_target.c", ()

    def setUp(self):
        super().setUp()
        if not self.has_target:
            return
        # No other test's program has this name.
        self.comm = "mlkt%d" % os.getpid()
        built = self.finish(self.spawn(["gcc", "-D_GNU_SOURCE", "-O2", *self.target_flags, "-o", self.comm,
                                        os.path.join(TESTS, "live", self.target_source)]))
        self.assertEqual(built.status, 0, built.err)
        self.target = self.start_target(self.comm)

    def start_target(self, name):
        target = self.spawn([self.path(name)], stdin=subprocess.PIPE)
        self.assertEqual(read_line(target), "ready")
        return target

    def tell(self, command, target=None):
        """Have the target do @command."""
        target = target or self.target
        target.stdin.write(command.encode() + b"\n")
        self.assertEqual(read_line(target), "done")

    def make_cgroup(self, name):
        """A new cgroup: its folder.  Who is in it at the end is moved out of it."""
        with open("/proc/mounts") as mounts:
            roots = re.findall(r"^\S+ (\S+) cgroup2 rw", mounts.read(), re.M)
        if not roots:
            self.skipTest("no cgroups of version 2 are mounted")
        group = os.path.join(roots[0], name)
        os.mkdir(group)
        self.addCleanup(os.rmdir, group)
        self.addCleanup(self.move_to, roots[0])
        return group

    def move_to(self, group):
        with open(os.path.join(group, "cgroup.procs"), "w") as procs:
            procs.write(str(self.target.pid))

    def start(self, *options, trace="x.mlk", **more):
        """Start a recording into @trace, and wait until it records."""
        path = self.path(trace)
        if os.path.exists(path):
            os.unlink(path)
        recorder = self.start_mleak("record", "--kernel", "-o", trace, *options, **more)
        # When it has looked at the blocks for the first time, it writes what it left out.
        wait_until(lambda: recorder.poll() is not None or
                   os.path.exists(path) and "LOSSES" in self.mleak("report", "--dump", path).out,
                   "nothing is recorded")
        if recorder.poll() is not None:
            self.fail(self.finish(recorder).err)
        return recorder

    def wait_for_files(self, trace):
        """Wait until the recorder has looked at all that was made."""
        wait_until(lambda: self.groups(trace, "cache").get("filp") == OPEN, "not all is written")

    def stop(self, recorder, signo=signal.SIGINT):
        """End a recording by a signal; what it said."""
        recorder.send_signal(signo)
        result = self.finish(recorder)
        self.assertEqual(result.status, 0, result.err)
        self.assert_messages(result.err)
        self.assertNotRegex(result.err, "Sanitizer|runtime error:")
        self.assertRegex(result.err.splitlines()[-1], "now run: mleak report ")
        return result.err

    def record_while(self, *commands, options=()):
        """Record the target while it does @commands; the trace, and what the recorder said."""
        recorder = self.start("--comm", self.comm, *options)
        for command in commands:
            self.tell(command)
        return self.path("x.mlk"), self.stop(recorder)

    def shown(self, trace, *options, **more):
        """A report; it may warn of frees that were lost."""
        result = self.mleak("report", *options, trace, **more)
        self.assertEqual(result.status, 0, result.err)
        return result.out

    def table(self, trace, *options):
        return list(csv.DictReader(io.StringIO(self.shown(trace, "--format=csv", *options))))

    def groups(self, trace, key, *options):
        """The blocks of each row of --by @key."""
        return {row[key]: int(row["outstanding_blocks"])
                for row in self.table(trace, "--by", key, *options)}

    def stacks(self, trace, call):
        """[(frames, blocks)] of what is outstanding of the system call, but for what slabs keep."""
        rows = self.table(trace, "--function", "sys_%s$" % call)
        return [(row["stack"].split(";"), int(row["outstanding_blocks"])) for row in rows
                if not re.search(OF_SLABS, row["stack"])]

    def lost(self, trace):
        """How many events, of which may be frees of what looks outstanding."""
        return int(re.search(r"^ +lost events +([\d,]+)", self.shown(trace), re.M)[1].replace(",", ""))
