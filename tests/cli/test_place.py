"""The files that mleak writes: through no link, over nothing that is somebody else's or being written;
and who wrote a trace says so only if it is there."""

import glob
import os
import shutil
import subprocess
import unittest

from mleaktest import AS_NOBODY, TESTS, Case, read_line, wait_until

GOLDEN = sorted(glob.glob(os.path.join(TESTS, "golden", "*.mlk")))


class PlaceCase(Case):
    def setUp(self):
        super().setUp()
        self.trace = shutil.copy(GOLDEN[0], self.path("t.mlk"))

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def files(self):
        return sorted(set(os.listdir(self.dir)) - {"t.mlk"})

    def start(self, *options, output="x.mlk", **popen_options):
        """Start to record a command that waits for its input to end; the trace has its name then."""
        process = self.start_mleak("record", "--backend", "preload", "-o", output, *options, "--",
                                   "sh", "-c", "echo up; cat", stdin=subprocess.PIPE,
                                   **popen_options)
        self.assertEqual(read_line(process), "up")
        return process

    def end(self, process):
        process.stdin.close()
        process.stdin = None
        return self.finish(process)

    def refused(self, *args, status):
        before = self.files()
        result = self.mleak(*args)
        self.assertEqual((result.status, result.out), (status, ""), result.err)
        self.assert_one_message(result.err)
        self.assertEqual(self.files(), before)
        return result.err


class UnwindPlaceTest(PlaceCase):
    def test_no_link_is_followed_to_a_file_that_is_named(self):
        self.write("precious", b"precious")
        os.symlink(self.path("precious"), self.path("x.mlk"))
        os.symlink(self.path("none"), self.path("dangling.mlk"))
        os.symlink("t.mlk", self.path("same.mlk"))
        before = self.read("t.mlk")
        for name, what in (("x.mlk", "it is a symbolic link, which is not followed"),
                           ("dangling.mlk", "it is a symbolic link to what does not exist, and is not followed"),
                           ("same.mlk", "it is a symbolic link, which is not followed")):
            with self.subTest(name=name):
                said = self.refused("unwind", "-o", self.path(name), self.trace, status=2)
                self.assertIn(what, said)
                self.assertTrue(os.path.islink(self.path(name)))
        self.assertEqual(self.read("precious"), b"precious")
        self.assertEqual(self.read("t.mlk"), before)

    @unittest.skipIf(os.geteuid() != 0, "needs root")
    def test_the_link_of_another_user_does_not_lead_to_a_file_of_root(self):
        os.chmod(self.dir, 0o777)
        self.write("precious", b"precious")
        self.finish(self.spawn(["ln", "-s", self.path("precious"), self.path("x.mlk")], **AS_NOBODY))
        self.assertTrue(os.path.islink(self.path("x.mlk")))
        self.refused("unwind", "-o", self.path("x.mlk"), self.trace, status=2)
        self.assertEqual(self.read("precious"), b"precious")

    def test_a_file_that_is_there_is_kept(self):
        self.write("x.mlk", b"before")
        result = self.mleak("unwind", "-q", "-o", self.path("x.mlk"), self.trace)
        self.assertEqual((result.status, result.err), (0, ""))
        self.assertEqual(self.read("x.mlk.old"), b"before")
        self.assertIn("UNWOUND", self.mleak("report", "--dump", self.path("x.mlk")).out)
        self.assertEqual(self.files(), ["x.mlk", "x.mlk.old"])

    def test_a_trace_that_is_recorded_is_left_alone(self):
        process = self.start()
        said = self.refused("unwind", "-o", self.path("x.mlk"), self.trace, status=2)
        self.assertIn("another process is writing a trace to it", said)
        result = self.end(process)
        self.assertEqual(result.status, 0, result.err)
        self.report(self.path("x.mlk"))


class RecordPlaceTest(PlaceCase):
    def test_no_link_is_followed(self):
        self.write("precious", b"precious")
        os.symlink(self.path("precious"), self.path("x.mlk"))
        self.refused("record", "--backend", "preload", "-o", self.path("x.mlk"), "--", "true",
                     status=125)
        self.assertEqual(self.read("precious"), b"precious")

    def record(self):
        result = self.mleak("record", "--backend", "preload", "--no-cache", "-q", "-o", self.path("x.mlk"), "--",
                            "true")
        self.assertEqual(result.status, 0, result.err)

    def test_what_is_kept_keeps_its_cache(self):
        self.write("x.mlk", self.read(self.trace))
        self.mleak("report", self.path("x.mlk"), env=dict(os.environ, MLEAK_CACHE="always"))
        before = self.read("x.mlk.stacks")
        self.record()
        self.assertEqual(self.files(), ["x.mlk", "x.mlk.old", "x.mlk.old.stacks"])
        self.assertEqual(self.read("x.mlk.old.stacks"), before)
        # that of the one that is gone goes, but nothing else of that name
        self.write("x.mlk.stacks", b"a file of the user's own")
        self.record()
        self.assertEqual(self.files(), ["x.mlk", "x.mlk.old", "x.mlk.stacks"])
        self.assertEqual(self.read("x.mlk.stacks"), b"a file of the user's own")

    def test_a_running_recording_keeps_its_file(self):
        """Two more with the same name: one made it FILE.old, the other replaced that."""
        first = self.start()
        for _ in range(2):
            said = self.refused("record", "--backend", "preload", "-o", "x.mlk", "--", "touch",
                                "started", status=125)
            self.assertIn("another process is writing a trace to it", said)
        self.assertEqual(self.files(), ["x.mlk"])
        result = self.end(first)
        self.assertEqual(result.status, 0, result.err)
        self.assertIn("sh -c", self.report(self.path("x.mlk")))
        for kept in ([], ["x.mlk.old"], ["x.mlk.old"]):
            self.assertEqual(self.files(), sorted(["x.mlk"] + kept))
            self.assertEqual(self.end(self.start()).status, 0)  # which is over

    def test_the_one_that_is_kept_is_no_running_recording_s(self):
        first = self.start(output="x.mlk.old")
        self.write("x.mlk", b"before")
        said = self.refused("record", "--backend", "preload", "-o", "x.mlk", "--", "true", status=125)
        self.assertIn(".old", said)
        self.assertEqual(self.end(first).status, 0)
        self.report(self.path("x.mlk.old"))

    def test_of_many_that_begin_at_once_one_has_the_name(self):
        for before in (None, b"before"):
            with self.subTest(before=before):
                if before:
                    self.write("x.mlk", before)
                all_of_them = [
                    self.start_mleak("record", "--backend", "preload", "-o", "x.mlk", "--", "sh",
                                     "-c", "echo up; cat", stdin=subprocess.PIPE) for _ in range(8)]
                wait_until(lambda: sum(p.poll() is not None for p in all_of_them) == 7,
                           "seven are refused")
                winner, = [p for p in all_of_them if p.poll() is None]
                for process in all_of_them:
                    if process is not winner:
                        result = self.finish(process)
                        self.assertEqual(result.status, 125)
                        self.assertIn("another process is writing a trace to it", result.err)
                self.assertEqual(read_line(winner), "up")
                self.assertEqual(self.end(winner).status, 0)
                self.report(self.path("x.mlk"))
                if before:
                    self.assertEqual(self.read("x.mlk.old"), before)
                os.unlink(self.path("x.mlk"))

    def gone(self, change, why, output="x.mlk"):
        """What is said at the end when @change() was done to the file meanwhile."""
        process = self.start(output=output)
        change()
        result = self.end(process)
        self.assertEqual(result.status, 125, result.err)
        self.assert_messages(result.err)
        self.assertIn(why, result.err)
        self.assertNotIn("wrote", result.err)

    def test_deleted(self):
        self.gone(lambda: os.unlink(self.path("x.mlk")), "it was deleted while it was written")

    def test_folder_removed(self):
        os.mkdir(self.path("folder"))
        self.gone(lambda: shutil.rmtree(self.path("folder")), "it was deleted while it was written",
                  output="folder/x.mlk")

    def test_folder_renamed(self):
        os.mkdir(self.path("folder"))
        self.gone(lambda: os.rename(self.path("folder"), self.path("other")),
                  "it was moved or replaced while it was written", output="folder/x.mlk")

    def test_replaced(self):
        def replace():
            self.write("another", b"another")
            os.rename(self.path("another"), self.path("x.mlk"))
        self.gone(replace, "it was deleted while it was written")
        self.assertEqual(self.read("x.mlk"), b"another")

    def test_cut(self):
        for size in (0, 10):
            with self.subTest(size=size):
                self.gone(lambda: os.truncate(self.path("x.mlk"), size),
                          "something else changed it while it was written")
                self.assertEqual(os.path.getsize(self.path("x.mlk")), size, "a hole and more")

    def test_written_to(self):
        """What is appended after the recorder looked at the file's size, and before it writes, is
        written over: such a trace is whole, and the test is done again."""
        for _ in range(20):
            process = self.start()
            with open(self.path("x.mlk"), "ab") as file:
                file.write(b"more")
            result = self.end(process)
            if result.status:
                break
            self.report(self.path("x.mlk"))
        self.assertEqual(result.status, 125, result.err)
        self.assert_messages(result.err)
        self.assertIn("something else changed it while it was written", result.err)
        self.assertNotIn("wrote", result.err)


class LeftoverTest(PlaceCase):
    def test_nothing_is_left_of_one_that_is_killed(self):
        """At whatever moment: there is no file, or the trace."""
        for _ in range(10):
            process = self.start_mleak("record", "--backend", "preload", "-o", "x.mlk", "--", "cat",
                                       stdin=subprocess.PIPE)
            wait_until(lambda: self.has_file(process) or process.poll() is not None, "a file is made")
            process.kill()
            self.finish(process)
            self.assertIn(self.files(), ([], ["x.mlk"]))
            if self.files():
                os.unlink(self.path("x.mlk"))

    def has_file(self, process):
        try:
            return any(os.readlink("/proc/%d/fd/%s" % (process.pid, fd)).startswith(self.dir + "/")
                       for fd in os.listdir("/proc/%d/fd" % process.pid) if int(fd) > 2)
        except OSError:
            return False

    def test_what_killed_ones_left_is_removed_and_nothing_else(self):
        gone = self.spawn(["true"])
        self.finish(gone)
        begun, user_s = self.read("t.mlk")[:100], b"part of something"
        alive = self.start(output="y.mlk")
        left = ["x.mlk.part%d" % gone.pid]
        others = {"x.mlk.part00": begun,                     # as by split(1)
                  "x.mlk.part%d" % os.getpid(): begun,       # of one that lives
                  "x.mlk.part": begun, "y.mlk.part%d" % gone.pid: begun,
                  "x.mlk.part%d.gz" % gone.pid: begun}
        for name in left + list(others):
            self.write(name, others.get(name, begun), 0o600)
        self.mleak("record", "--backend", "preload", "-o", "x.mlk", "--", "true")
        self.assertEqual(self.files(), sorted(["x.mlk", "y.mlk", *others]))
        for mode, content in ((0o644, begun), (0o600, user_s)):
            self.write(left[0], content, mode)
            self.mleak("record", "--backend", "preload", "-o", "x.mlk", "--", "true")
            self.assertEqual(self.read(left[0]), content)
        self.assertEqual(self.end(alive).status, 0)
