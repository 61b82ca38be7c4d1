"""What a recording keeps beside its trace for the first report: when, and that the report is the same."""

import array
import contextlib
import fcntl
import os
import resource
import signal
import subprocess
import termios
import unittest

from cachetest import NAMED, OWN, WITH_GROWTH
from forevertest import Forever
from mleaktest import AS_NOBODY, MLEAK_FAST, descendants, masks_of, needs_bpf, read_line, state_of, wait_until
from thentest import ThenCase
from unwindtest import chunks_of

VIEWS = ((), ("--format=folded",), ("--flat",), ("--growth",), ("--format=json",), ("--by=function",))
MANY = """
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
	for (int i = 0; i < atoi(argv[1]); i++) {
		void *volatile p = malloc(47);
		if (i % 10007)
			free(p);
	}
	return 23;
}
"""


def blocks_sigterm(pid):
    with open("/proc/%d/status" % pid) as status:
        return masks_of(status.read())["SigBlk"] >> signal.SIGTERM - 1 & 1


class KeepCase(ThenCase):
    backend = "preload"

    def setUp(self):
        super().setUp()
        self.trace = self.path("x.mlk")
        self.kept = self.trace + ".stacks"

    def recorded(self, *argv, options=(), status=0, mode="always", **others):
        """Record @argv; returns what was said of the recording."""
        env = dict(os.environ, MLEAK_CACHE=mode)
        result = self.mleak("record", "--backend", self.backend, "-o", self.trace, *options, "--", *argv, env=env,
                            **others)
        self.assertEqual(result.status, status, result.err)
        if "--quiet" not in options:
            self.assert_messages(result.err)
        return result.err

    def waiting(self, script="echo ready; read x; exit 7", options=(), **others):
        """A recording of a command that ends with 7 when it is told to."""
        recorder = self.start_mleak("record", "--backend", self.backend, "-o", self.trace, *options, "--", "sh",
                                    "-c", script, stdin=-1, env=dict(os.environ, MLEAK_CACHE="always"), **others)
        self.assertEqual(read_line(recorder), "ready")
        return recorder

    def hold_keeper(self, recorder):
        """Have the process that is to keep it stopped, and the command end.  Returns it, which was told then."""
        keeper = self.then_of(recorder)
        os.kill(keeper, signal.SIGSTOP)
        wait_until(lambda: state_of(keeper) == "T", "it does not stop")
        folder = "/proc/%d/fd" % keeper
        # those of the same names that it has from the recorder are no pipe of the recorder's own
        pipe = next(fd for fd in sorted(os.listdir(folder), key=int)
                    if int(fd) > 2 and os.readlink(os.path.join(folder, fd)).startswith("pipe:"))
        recorder.stdin.write(b"\n")
        recorder.stdin.flush()
        with open(os.path.join(folder, pipe), "rb", buffering=0) as request:
            waiting = array.array("i", [0])
            wait_until(lambda: fcntl.ioctl(request, termios.FIONREAD, waiting) == 0 and waiting[0],
                       "it is told nothing")
        return keeper

    def owns(self):
        """The types of chunks with results in what was kept."""
        with open(self.kept, "rb") as kept:
            return {chunk.type for chunk in chunks_of(kept.read()) if chunk.type >= OWN}

    def assert_nothing_kept(self):
        self.assertTrue(os.path.exists(self.trace))
        self.assertEqual([name for name in os.listdir(os.path.dirname(self.trace))
                          if name.startswith("x.mlk") and not name.endswith(".old")], ["x.mlk"])


class KeepTest(KeepCase):
    def build(self):
        program = self.path("many")
        subprocess.run(["gcc", "-g", "-O1", "-o", program, self.write("many.c", MANY.encode())], check=True)
        return program

    def test_the_first_report_is_the_same(self):
        said = self.recorded(self.sample("first"))
        self.assertIn("preparing the first report, in '%s'" % self.kept, said)
        self.assertEqual(self.owns(), {WITH_GROWTH})
        with open(self.kept, "rb") as kept:
            before = kept.read()
        for view in VIEWS:
            with self.subTest(view=view):
                self.assertEqual(self.report(self.trace, *view), self.report(self.trace, "--no-cache", *view))
        with open(self.kept, "rb") as kept:
            self.assertEqual(kept.read(), before)  # no report had to make it anew
        os.unlink(self.kept)
        self.mleak("report", self.trace, env=dict(os.environ, MLEAK_CACHE="always"))
        with open(self.kept, "rb") as kept:
            self.assertEqual(kept.read(), before)  # as a report makes it

    def test_one_that_is_unwound_keeps_results_too(self):
        for options in ("--unwind",), ("--unwind", "--drop-raw"):
            with self.subTest(options=options):
                self.recorded(self.sample("first"), options=options)
                self.assertEqual(self.owns(), {WITH_GROWTH})
                for view in VIEWS:
                    self.assertEqual(self.report(self.trace, *view), self.report(self.trace, "--no-cache", *view))

    def test_what_was_unwound_stays_when_the_keeping_is_ended(self):
        """By a signal to the recorder, and as the kernel ends what takes too much memory."""
        program = self.build()
        for to_recorder in True, False:
            with self.subTest(to_recorder=to_recorder), open(self.path("out"), "wb") as out:
                recorder = self.start_mleak("record", "--backend", self.backend, "-o", self.trace, "--unwind", "--",
                                            program, "1500000", stdout=out, env=dict(os.environ, MLEAK_CACHE="auto"))
                self.wait_for_words(recorder, "preparing")
                if to_recorder:
                    recorder.send_signal(signal.SIGINT)
                else:
                    for pid in descendants(recorder.pid)[-1:]:
                        with contextlib.suppress(ProcessLookupError):
                            os.kill(pid, signal.SIGKILL)
                result = self.finish(recorder)
                self.assertEqual(result.status, 23, result.err)
                self.assertNotIn("stays as it was recorded", result.err)
                self.assertRegex(self.mleak("info", self.trace).out, r"(?m)^unwound +yes$")

    def test_only_where_it_takes_time(self):
        many = self.build()
        self.assertNotIn("preparing", self.recorded(many, "200000", status=23, mode=""))
        self.assert_nothing_kept()
        self.recorded(many, "260000", status=23, mode="auto")
        self.assertEqual(self.owns(), {WITH_GROWTH})

    def test_not_where_it_is_not_wanted(self):
        for options, mode in ((), "never"), (("--no-cache",), "always"), ((), "nonsense"):
            with self.subTest(options=options, mode=mode):
                self.assertNotIn("preparing", self.recorded("true", options=options, mode=mode))
                self.assert_nothing_kept()

    def test_not_of_several_nor_of_a_pipe(self):
        self.recorded("true", options=("--switch-output=1M",))
        self.assertNotIn("x.mlk.1.stacks", os.listdir(self.dir))
        self.trace = "-"
        with open(self.path("piped"), "wb") as piped:
            process = self.start_mleak("record", "--backend", self.backend, "-o", "-", "--", "true", stdout=piped,
                                       env=dict(os.environ, MLEAK_CACHE="always"))
            self.assertEqual(self.finish(process).status, 0)
        self.assertFalse([name for name in os.listdir(self.dir) if name.endswith(".stacks")])

    def test_nothing_is_said_where_it_is_quiet(self):
        self.assertEqual(self.recorded("ls", options=("--quiet",)), "")
        self.assertEqual(self.owns(), {WITH_GROWTH})

    def test_who_is_told_to_end_ends(self):
        """By SIGTERM, as a service is: then the recorder has the command end, and does nothing more."""
        recorder = self.waiting("trap 'exit 7' TERM; echo ready; while :; do sleep 0.1; done")
        recorder.send_signal(signal.SIGTERM)
        result = self.finish(recorder)
        self.assertEqual(result.status, 7, result.err)
        self.assertNotIn("preparing", result.err)
        self.assert_nothing_kept()

    def test_a_signal_to_the_recorder_ends_it(self):
        for number in signal.SIGTERM, signal.SIGINT:
            with self.subTest(number=number):
                recorder = self.waiting()
                keeper = self.hold_keeper(recorder)
                recorder.send_signal(number)
                wait_until(lambda recorder=recorder: self.pipe_has_ended(recorder), "it takes no signal")
                os.kill(keeper, signal.SIGCONT)
                result = self.finish(recorder)
                self.assertEqual(result.status, 7, result.err)  # the command's
                self.assert_messages(result.err)
                self.assertNotIn("preparing", result.err)
                self.assert_nothing_kept()

    @unittest.skipIf(os.geteuid() != 0, "needs root, to mount")
    def test_no_room_for_it_is_told(self):
        """On a disk that is filled when the trace is there."""
        script = "mount -t tmpfs -o size=16m none '%s' && exec '%s' record --backend %s -o '%s' -- " \
                 "sh -c 'echo ready; read x; exit 7'"
        full = self.path("full")
        os.mkdir(full)
        self.trace = os.path.join(full, "x.mlk")
        recorder = self.spawn(["unshare", "-m", "sh", "-c", script % (full, self.program, self.backend, self.trace)],
                              stdin=-1, env=dict(os.environ, MLEAK_CACHE="always"))
        self.assertEqual(read_line(recorder), "ready")
        folder = os.open("/proc/%d/root%s" % (recorder.pid, full), os.O_RDONLY | os.O_DIRECTORY)
        self.addCleanup(os.close, folder)
        keeper = self.hold_keeper(recorder)
        fill = os.open("fill", os.O_WRONLY | os.O_CREAT, dir_fd=folder)
        with contextlib.suppress(OSError):  # there is no room any more
            while True:
                os.write(fill, bytes(4096))
        os.close(fill)
        os.kill(keeper, signal.SIGCONT)
        result = self.finish(recorder)
        self.assertEqual(result.status, 7, result.err)
        self.assertRegex(result.err, r"(?m)^mleak: '%s.stacks' was not written, or not all of it: No space left on "
                         r"device; the trace is whole, and its first report takes longer$" % self.trace)
        self.assertEqual(sorted(os.listdir(folder)), ["fill", "x.mlk"])
        with open(os.open("x.mlk", os.O_RDONLY, dir_fd=folder), "rb") as trace:
            self.report(self.write("copy.mlk", trace.read()))  # which says of nothing that it is missing

    def test_a_blocked_signal_is_taken(self):
        """Who started the recorder may have blocked what ends the keeping."""
        def block():
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})

        with open(self.path("out"), "wb") as out:
            recorder = self.start_mleak("record", "--backend", self.backend, "-o", self.trace, "--", self.build(),
                                        "1500000", stdout=out, env=dict(os.environ, MLEAK_CACHE="auto"),
                                        preexec_fn=block)
            self.wait_for_words(recorder, "preparing")
            wait_until(lambda: not blocks_sigterm(descendants(recorder.pid)[-1]), "it keeps that blocked")
            self.assertEqual(self.finish(recorder).status, 23)

    def test_while_the_command_goes_on_nothing_is_made(self):
        """Its time is not for that, and Ctrl-C is its own."""
        for told in False, True:
            with self.subTest(told=told):
                recorder = self.waiting("trap 'exit 7' TERM; echo ready; read x; exit 7", ("--duration=100ms",))
                keeper = self.then_of(recorder)
                self.wait_for_words(recorder, "mleak waits for the command")
                with open("/proc/%d/stat" % keeper) as stat:
                    self.assertEqual(stat.read().rpartition(")")[2].split()[16], "0", "it has become nice")
                if told:
                    recorder.send_signal(signal.SIGTERM)
                else:
                    recorder.stdin.write(b"\n")
                result = self.finish(recorder)
                self.assertEqual(result.status, 7, result.err)
                self.assertEqual(os.path.exists(self.kept), not told)
                self.assertEqual("preparing" in result.err, not told)
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(self.kept)

    def test_what_fails_is_not_told(self):
        recorder = self.waiting()
        keeper = self.hold_keeper(recorder)
        os.unlink(self.trace)
        os.kill(keeper, signal.SIGCONT)
        result = self.finish(recorder)
        self.assertEqual(result.status, 7, result.err)
        self.assert_messages(result.err)
        self.assertNotIn("cannot", result.err)
        self.assertFalse(os.path.exists(self.kept))

    def test_nothing_is_left_where_files_need_names(self):
        """As on file systems without O_TMPFILE."""
        self.program = MLEAK_FAST  # sanitizers are to come first of what is preloaded
        library = self.path("named.so")
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, self.write("named.c", NAMED.encode())], check=True)
        with open(self.path("out"), "wb") as out:
            recorder = self.start_mleak("record", "--backend", self.backend, "-o", self.trace, "--", "env", "-u",
                                        "LD_PRELOAD", self.build(), "1500000", stdout=out,
                                        env=dict(os.environ, MLEAK_CACHE="auto", LD_PRELOAD=library))
            self.wait_for_words(recorder, "preparing")
            wait_until(lambda: self.parts() or recorder.poll() is not None, "nothing is written")
            recorder.send_signal(signal.SIGINT)
            self.finish(recorder)
        self.assertEqual(self.parts(), [])

    def parts(self):
        return [name for name in os.listdir(self.dir) if ".stacks.part" in name]

    def test_nothing_is_begun_that_cannot_be_kept(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30))

        self.assertNotIn("preparing", self.recorded("true", preexec_fn=limit))
        self.assert_nothing_kept()

    def test_without_its_process_all_else_is_as_ever(self):
        recorder = self.waiting()
        os.kill(self.then_of(recorder), signal.SIGKILL)
        recorder.stdin.write(b"\n")
        result = self.finish(recorder)
        self.assertEqual(result.status, 7, result.err)
        self.assert_messages(result.err)
        self.assert_nothing_kept()

    def test_where_nothing_more_can_be_written(self):
        folder = self.path("closed")
        os.mkdir(folder)
        os.chmod(folder, 0o777)
        self.trace = os.path.join(folder, "x.mlk")
        self.backend = "preload"
        recorder = self.waiting(**AS_NOBODY)
        os.chmod(folder, 0o555)
        recorder.stdin.write(b"\n")
        result = self.finish(recorder)
        self.assertEqual(result.status, 7, result.err)
        self.assert_messages(result.err)
        self.assertNotIn("preparing", result.err)
        self.assert_nothing_kept()

    def test_a_command_that_cannot_be_started(self):
        result = self.mleak("record", "--backend", self.backend, "-o", self.trace, "--", self.path("none"))
        self.assertEqual(result.status, 127)
        self.assert_one_message(result.err, naming="none")


@needs_bpf
class KeepByProbesTest(KeepTest):
    backend = "bpf"

    def test_not_of_a_process_that_goes_on(self):
        """Its time is not for reports, unless it is to be unwound."""
        target = Forever(self)
        for options, number, wanted in (((), signal.SIGINT, False), (("--unwind",), signal.SIGINT, True),
                                        (("--unwind",), signal.SIGTERM, False)):
            with self.subTest(options=options, number=number):
                self.trace = self.path("x%d%d.mlk" % (number, wanted))
                recorder = self.start_mleak("record", "-p", str(target.pid), "-o", self.trace, *options,
                                            env=dict(os.environ, MLEAK_CACHE="always"))
                wait_until(lambda: "alloc" in self.mleak("script", self.trace).out, "nothing is recorded")
                recorder.send_signal(number)
                self.assertEqual(self.finish(recorder).status, 0)
                self.assertEqual(os.path.exists(self.trace + ".stacks"), wanted)

    def test_children_are_waited_for_where_that_was_ignored(self):
        def ignore():
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)

        target = Forever(self)
        result = self.mleak("record", "-p", str(target.pid), "-o", self.trace, "--unwind", "--duration=100ms",
                            preexec_fn=ignore)
        self.assertEqual(result.status, 0, result.err)
        self.assertNotIn("stays as it was recorded", result.err)


if __name__ == "__main__":
    unittest.main()
