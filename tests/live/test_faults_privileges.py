"""With the least privileges a recording works, what is missing is named, and what is not needed any
more is given up."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import xlated
from faulttest import TARGET, FaultCase, Truth
from mleaktest import LONG, descendants, needs_bpf, read_line, state_of, wait_until

NOBODY = 65534
CAPS = {"dac_read_search": 2, "kill": 5, "sys_ptrace": 19, "sys_admin": 21, "perfmon": 38,
        "bpf": 39, "checkpoint_restore": 40}


def bits(*names):
    return sum(1 << CAPS[name] for name in names)


@needs_bpf
class PrivilegesTest(FaultCase):
    def setUp(self):
        super().setUp()
        if not shutil.which("setpriv"):
            self.skipTest("setpriv (util-linux) is not installed")
        os.chmod(self.dir, 0o777)

    def with_caps(self, *caps):
        """The beginning of a command that runs as nobody with the capabilities @caps alone."""
        sets = ",".join(["-all"] + ["+cap_%d" % CAPS[cap] for cap in caps])
        return ["setpriv", "--reuid=%d" % NOBODY, "--regid=%d" % NOBODY, "--clear-groups",
                "--inh-caps=" + sets, "--ambient-caps=" + sets, "--bounding-set=" + sets]

    def start_as_nobody(self, program, *options):
        target = self.start(*self.with_caps(), program)
        return target

    def mleak_copy(self):
        return shutil.copy(self.program, self.dir)

    def record_as_nobody(self, pid, *caps):
        mleak = self.spawn(self.with_caps(*caps) + [self.mleak_copy(), "record", "-o",
                                                    self.path("x.mlk"), "-p", str(pid)])
        return mleak

    def refusal(self, pid, *caps):
        result = self.finish(self.record_as_nobody(pid, *caps))
        self.assertEqual(result.status, 125, result.err)
        self.assertFalse(os.path.exists(self.path("x.mlk")))
        self.assert_one_message(result.err)
        return result.err

    def check_recorded(self, target, *caps):
        mleak = self.record_as_nobody(target.pid, *caps)
        self.wait_for_probes(mleak)
        before = self.tell(target, "early", 0)
        self.tell(target, "early", 23)
        truth = self.tell(target, "free", 7)
        self.stop(mleak)
        self.assertEqual(self.assert_accounted(truth, before), Truth(0, 0))
        self.assertIn("leak_early", self.report(self.path("x.mlk")))

    def test_bpf_and_perfmon_suffice_for_one_s_own_process(self):
        self.check_recorded(self.start_as_nobody(self.compile("target")), "bpf", "perfmon")

    def test_with_sys_ptrace_they_suffice_for_another_user_s_process(self):
        self.check_recorded(self.start(self.compile("target")), "bpf", "perfmon", "sys_ptrace")

    def test_filters_change_with_what_is_kept(self):
        """The delay ends and SIGUSR1 is heeded when most capabilities are given up; what was left
        out is counted to the end, when all are."""
        target = self.start_as_nobody(self.compile("target"))
        mleak = self.spawn(self.with_caps("bpf", "perfmon") +
                           [self.mleak_copy(), "record", "-o", self.path("x.mlk"), "--trigger", "1G",
                            "-D", "1s", "-p", str(target.pid)])
        self.wait_for_probes(mleak)
        nr = 0
        # The first that the delay does not leave out, the trigger does.
        while not self.left_out("trigger"):
            nr = self.tell(target, "early", 1).allocs
            self.assertLess(nr, 3000, "the delay does not end")
            time.sleep(0.05)
        nr = self.tell(target, "early", 5).allocs
        mleak.send_signal(signal.SIGUSR1)
        end = time.monotonic() + LONG
        while not self.was_recorded():
            self.assertLess(time.monotonic(), end, "SIGUSR1 changed nothing")
            nr = self.tell(target, "early", 1).allocs
            time.sleep(0.05)
        target.stdin.close()
        result = self.finish(mleak)
        self.assertEqual(result.status, 0, result.err)
        dump = self.dump()
        self.assertGreaterEqual(self.left_out("trigger"), 6)
        self.assertEqual(self.left_out("trigger") + self.left_out("delay") + dump.count("\n  ALLOC "), nr)

    def left_out(self, why):
        """How many allocations the trace says so far that the filter @why left out."""
        found = re.findall(r"^  SKIPPED (?!B).* %s (\d+)" % why, self.dump(), re.M)
        return int(found[-1]) if found else 0

    def was_recorded(self):
        return "\n  ALLOC " in self.dump()

    def test_what_is_missing_is_named(self):
        target = self.start_as_nobody(self.compile("target"))
        for caps, missing in ((("bpf",), "lacks CAP_PERFMON;"), (("perfmon",), "lacks CAP_BPF;"),
                              ((), "lacks CAP_BPF and CAP_PERFMON;"),
                              (("sys_ptrace",), "lacks CAP_BPF and CAP_PERFMON;")):
            with self.subTest(caps=caps):
                self.assertIn(missing, self.refusal(target.pid, *caps))
        other = self.start(self.path("target"))
        said = self.refusal(other.pid, "bpf", "perfmon")
        self.assertIn("belongs to another user, and mleak lacks CAP_SYS_PTRACE", said)

    def test_process_that_protects_itself_takes_sys_ptrace(self):
        program = self.compile("target", "-DPREPARE=prctl(PR_SET_DUMPABLE,0);", "-include",
                               "sys/prctl.h")
        target = self.start_as_nobody(program)
        said = self.refusal(target.pid, "bpf", "perfmon")
        self.assertIn("it is protected", said)
        self.assertIn("lacks CAP_SYS_PTRACE", said)
        self.check_recorded(target, "bpf", "perfmon", "sys_ptrace")

    def test_set_user_id_target_is_recorded_by_root_alone(self):
        if os.statvfs(self.dir).f_flag & os.ST_NOSUID:
            self.skipTest("/tmp is mounted with nosuid")
        program = self.compile("target")
        os.chmod(program, 0o4755)
        target = self.start_as_nobody(program)
        with open("/proc/%d/status" % target.pid) as status:
            self.assertRegex(status.read(), r"Uid:\t%d\t0\t0\t0" % NOBODY)
        self.assertIn("lacks CAP_SYS_PTRACE", self.refusal(target.pid, "bpf", "perfmon"))
        mleak = self.attach(target.pid)
        truth = self.tell(target, "early", 23)
        self.stop(mleak)
        self.assertEqual(self.assert_accounted(truth), Truth(0, 0))

    def test_target_that_gains_rights_by_exec_is_left(self):
        if os.statvfs(self.dir).f_flag & os.ST_NOSUID:
            self.skipTest("/tmp is mounted with nosuid")
        os.chmod(self.compile("higher", "-static"), 0o4755)
        first = self.compile("first", "-DMORE(c,n)=if(!strcmp(c,\"exec\")) execl(\"./higher\","
                             " \"higher\", (char *)0);")
        target = self.start_as_nobody(first)
        mleak = self.record_as_nobody(target.pid, "bpf", "perfmon")
        self.wait_for_probes(mleak)
        target.stdin.write(b"exec 1\n")
        self.assertEqual(read_line(target), "ready")
        result = self.finish(mleak)
        self.assertIn("lacks CAP_SYS_PTRACE", result.err)
        self.assertEqual(result.status, 125)
        self.tell(target, "early", 23)
        self.assertNotIn("leak_early", self.mleak("report", self.path("x.mlk")).out)

    def test_process_that_proc_does_not_show(self):
        target = self.start(self.compile("target"))
        script = "mount -t proc -o hidepid=2 proc /proc && exec " + " ".join(
            self.with_caps("bpf", "perfmon") + [self.mleak_copy(), "record", "-o",
                                                self.path("x.mlk"), "-p", str(target.pid)])
        result = self.finish(self.spawn(["unshare", "-m", "sh", "-c", script]))
        if "mount:" in result.err:
            self.skipTest(result.err)
        self.assertEqual(result.status, 125)
        self.assert_one_message(result.err, naming="hidepid")

    def test_user_namespace_is_named(self):
        target = self.start(self.compile("target"))
        result = self.finish(self.spawn(["unshare", "-Ur", self.program, "record", "-o",
                                         self.path("x.mlk"), "-p", str(target.pid)]))
        if "unshare:" in result.err:
            self.skipTest(result.err)
        self.assertEqual(result.status, 125)
        self.assert_one_message(result.err, naming="user namespace")

    def capabilities(self, pid):
        """The permitted and bounding sets of all threads of @pid, and whether one could get more."""
        found = set()
        for tid in os.listdir("/proc/%d/task" % pid):
            try:
                with open("/proc/%d/task/%s/status" % (pid, tid)) as status:
                    text = status.read()
            except OSError:
                continue  # ended meanwhile
            permitted, effective, bounding = (
                int(re.search(r"^Cap%s:\s*(\w+)" % name, text, re.M)[1], 16)
                for name in ("Prm", "Eff", "Bnd"))
            self.assertEqual(permitted, effective)
            found.add((permitted, bounding, int(re.search(r"NoNewPrivs:\s*(\d)", text)[1])))
        return found

    def helper_of(self, pid):
        """The child of the recorder @pid that keeps its privileges."""
        helper = wait_until(lambda: next(filter(self.is_helper, descendants(pid)), None),
                            "the recorder has no helper")
        # it waits for the recorder before that
        wait_until(lambda: self.has_given_up(helper), "the helper has begun")
        return helper

    @staticmethod
    def has_given_up(pid):
        with open("/proc/%d/status" % pid) as status:
            return "\nNoNewPrivs:\t1\n" in status.read()

    @staticmethod
    def is_helper(pid):
        try:
            with open("/proc/%d/comm" % pid) as comm:
                return comm.read() == "mleak-helper\n"
        except OSError:
            return False  # ended meanwhile

    def wait_for_caps(self, pid, wanted):
        """Until all threads of @pid have the capabilities @wanted, and can get no others."""
        end = time.monotonic() + LONG
        while self.capabilities(pid) != {(wanted, 0, 1)}:
            self.assertLess(time.monotonic(), end, self.capabilities(pid))
            time.sleep(0.01)

    def wait_for_files(self, helper):
        """Until it has nothing open that it does not need; it opens files for the recorder, and closes
        them at once."""
        end = time.monotonic() + LONG
        while True:
            files = []
            for fd in os.listdir("/proc/%d/fd" % helper):
                with contextlib.suppress(FileNotFoundError):  # closed meanwhile
                    files.append(os.readlink("/proc/%d/fd/%s" % (helper, fd)))
            others = [file for file in files if not re.match(
                r"socket:|/dev/null$|anon_inode:(bpf-prog|\[pidfd\])|pidfd:", file)]
            if files and not others:
                return
            self.assertLess(time.monotonic(), end, others or "it has ended")
            time.sleep(0.01)

    def check_given_up(self, kept, *options):
        """All threads of the recorder have nothing, and its helper no more than @kept."""
        target = self.start(self.compile("target"))
        mleak = self.attach(target.pid, *options)
        helper = self.helper_of(mleak.pid)
        self.wait_for_caps(mleak.pid, 0)
        with open("/proc/self/status") as status:
            ours = int(re.search(r"CapPrm:\s*(\w+)", status.read())[1], 16)
        self.wait_for_caps(helper, kept & ours)
        self.assertGreater(len(os.listdir("/proc/%d/task" % mleak.pid)), 2)
        truth = self.tell(target, "early", 23)
        self.assertEqual(self.capabilities(mleak.pid), {(0, 0, 1)})
        self.wait_for_files(helper)
        self.stop(mleak)
        self.wait_for_end(helper)
        self.assertEqual(self.assert_accounted(truth), Truth(0, 0))

    def test_recorder_has_no_privileges_while_it_records(self):
        self.check_given_up(bits("bpf", "perfmon", "sys_ptrace", "dac_read_search",
                                 "checkpoint_restore", "sys_admin"))

    def test_recorder_that_follows_children_has_no_privileges_either(self):
        self.check_given_up(bits("bpf", "perfmon", "sys_ptrace", "dac_read_search",
                                 "checkpoint_restore", "sys_admin"), "--follow")

    def test_recorder_by_perf_events_has_no_privileges_either(self):
        self.check_given_up(bits("bpf", "perfmon", "sys_ptrace", "dac_read_search",
                                 "checkpoint_restore", "sys_admin"), "--uprobes=perf")

    def test_killed_helper_costs_only_what_it_was_for(self):
        """Without it the program begun by exec is not recorded, and that is said; all else is."""
        target = self.start(self.exec_target())
        mleak = self.attach(target.pid)
        os.kill(self.helper_of(mleak.pid), signal.SIGKILL)
        truth = self.tell(target, "early", 23)
        target.stdin.write(b"exec 1\n")
        self.assertEqual(read_line(target), "ready")
        self.wait_for_words(mleak, "cannot (watch|probe|record) process %d" % target.pid)
        self.tell(target, "early", 5)
        target.stdin.close()
        result = self.finish(mleak)
        self.assertEqual(self.assert_accounted(truth), Truth(0, 0))
        self.assertRegex(result.err, r"cannot (watch|probe|record) process %d" % target.pid)

    def exec_target(self):
        """A command to start, which runs another program, statically linked, when told "exec"."""
        self.compile("second", "-static")
        return self.compile("first", "-DMORE(c,n)=if(!strcmp(c,\"exec\")) execl(\"./second\","
                            " \"second\", (char *)0);")

    def check_exec(self, target, mleak):
        target.stdin.write(b"exec 1\n")
        self.assertEqual(read_line(target), "ready")
        self.wait_for_words(mleak, "runs 'second' now")
        truth = self.tell(target, "early", 23)
        self.stop(mleak)
        # What a statically linked program allocates before its main may come, too.
        seen = len(re.findall(r"\n  ALLOC .* size 47,", self.dump()))
        self.assertEqual((seen, self.seen()[1]), (truth.allocs, Truth(0, 0)))

    def test_exec_is_followed_with_what_is_kept(self):
        target = self.start(self.exec_target())
        self.check_exec(target, self.attach(target.pid))

    def test_exec_is_followed_with_perf_events(self):
        target = self.start(self.exec_target())
        self.check_exec(target, self.attach(target.pid, "--uprobes=perf"))

    def test_exec_is_followed_without_root(self):
        target = self.start_as_nobody(self.exec_target())
        mleak = self.record_as_nobody(target.pid, "bpf", "perfmon")
        self.wait_for_probes(mleak)
        self.check_exec(target, mleak)

    def test_exec_of_another_user_s_process_is_followed_without_root(self):
        target = self.start(self.exec_target())
        mleak = self.record_as_nobody(target.pid, "bpf", "perfmon", "sys_ptrace")
        self.wait_for_probes(mleak)
        self.check_exec(target, mleak)

    def bpf_programs(self):
        """The numbers of all BPF programs in the kernel: other recorders' as well."""
        out = subprocess.run(["bpftool", "prog", "show"], capture_output=True, text=True,
                             env=dict(os.environ, PATH=os.environ["PATH"] + ":/usr/sbin")).stdout
        return {int(number) for number in re.findall(r"^(\d+): ", out, re.M)}

    def test_killed_recorder_leaves_nothing_behind(self):
        target = self.start(self.compile("target"))
        text = self.functions(target.pid)
        mleak = self.attach(target.pid)
        ours = {number for _, number, _ in xlated.linked(mleak.pid)}
        self.assertTrue(ours & self.bpf_programs(), "where are the programs?")
        self.assertNotEqual(self.functions(target.pid), text, "where are the breakpoints?")
        helper = self.helper_of(mleak.pid)
        mleak.kill()
        self.finish(mleak)
        wait_until(lambda: not ours & self.bpf_programs(), "programs are left in the kernel")
        wait_until(lambda: self.functions(target.pid) == text, "breakpoints are left in the code")
        self.wait_for_end(helper)
        for folder, _, files in os.walk("/sys/fs/bpf"):
            self.assertFalse([f for f in files if "mleak" in f], folder)
        self.assertEqual(self.tell(target, "pairs", 1000), Truth(1000, 1000))

    def wait_for_end(self, pid):
        """Until @pid has ended; it may not have been waited for."""
        wait_until(lambda: state_of(pid) in "ZX", "process %d does not end" % pid)

    def functions(self, pid):
        """The code of the C library as it is in the memory of process @pid."""
        with open("/proc/%d/maps" % pid) as maps:
            line = next(line for line in maps if "libc.so" in line and "r-xp" in line)
        start, end = (int(at, 16) for at in line.split()[0].split("-"))
        with open("/proc/%d/mem" % pid, "rb") as memory:
            memory.seek(start)
            return memory.read(end - start)
