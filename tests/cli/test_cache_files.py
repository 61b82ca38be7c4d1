"""Which file is a cache of stacks: whose it is, who may read it, and what is left when writing fails."""

import os
import resource
import shutil
import signal
import stat
import subprocess

from mleaktest import AS_NOBODY, MLEAK_FAST, state_of, wait_until
from cachetest import NAMED, CacheCase

NOBODY, OTHER = 65534, 12345


class FileTest(CacheCase):
    def setUp(self):
        super().setUp()
        if os.geteuid():
            self.skipTest("needs root, to be several users")

    def named(self):
        """The library for other file systems."""
        library = self.path("named.so")
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, self.write("named.c", NAMED.encode())], check=True)
        return library

    def assert_foreign(self, what):
        """A file that is none of ours is neither believed nor touched."""
        before = os.lstat(self.cache)
        with self.subTest(what=what):
            self.assertFalse(self.is_used())
            self.assertEqual(self.cached(self.path_of), self.plain(self.path_of))
            self.assertEqual(os.lstat(self.cache).st_ino, before.st_ino)
            self.assertEqual(os.lstat(self.cache).st_mtime_ns, before.st_mtime_ns)

    def test_whose_it_may_be(self):
        lie = self.lie()
        self.assertTrue(self.is_used())
        os.chown(self.cache, OTHER, OTHER)
        self.assert_foreign("another user's")
        os.chown(self.path_of, OTHER, OTHER)
        self.assertTrue(self.is_used(), "that of the trace's owner")
        os.chown(self.path_of, 0, 0)
        os.chown(self.cache, 0, 0)
        os.chmod(self.cache, 0o644)
        self.assertTrue(self.is_used())
        self.assertEqual(self.read(self.cache), lie)

    def test_one_that_others_may_write_is_made_anew(self):
        """It says what they like, so it is not believed."""
        os.chmod(self.path_of, 0o644)
        for mode in 0o620, 0o602, 0o666:
            with self.subTest(mode=oct(mode)):
                lie = self.lie()
                os.chmod(self.cache, mode)
                self.assertFalse(self.is_used())
                self.assertFalse(self.read(self.cache) == lie, "it is still there")
                self.assertEqual(stat.S_IMODE(os.stat(self.cache).st_mode), 0o644)
                os.unlink(self.cache)
        self.lie()
        os.chown(self.cache, OTHER, OTHER)
        os.chmod(self.cache, 0o666)
        self.assert_foreign("another user's, who lets others write it")

    def test_where_others_may_write_all_files_there_is_none(self):
        """As on vfat that is mounted so; that file system is not on each machine."""
        env = dict(os.environ, MLEAK_CACHE="always", LD_PRELOAD=self.named(), MADE=self.path("made"))
        before = sorted(os.listdir(self.dir))
        for _ in range(2):
            result = self.finish(self.spawn([MLEAK_FAST, "report", "--folded", self.path_of], env=env))
            self.assertEqual(tuple(result), self.plain("--folded", self.path_of))
        self.assertTrue(os.path.exists(self.path("made")), "no file was tried")
        self.assertEqual(os.path.getsize(self.path("made")), 0, "something was written in vain")
        os.unlink(self.path("made"))
        self.assert_nothing_is_left(before)

    def test_what_is_no_cache_stays(self):
        self.write("x.mlk.stacks", b"a file of the user's own")
        self.assert_foreign("text")
        os.unlink(self.cache)
        shutil.copy(self.path_of, self.cache)
        self.assert_foreign("a trace")
        os.unlink(self.cache)
        os.mkdir(self.cache)
        self.assert_foreign("a directory")
        os.rmdir(self.cache)
        os.mkfifo(self.cache)
        self.assert_foreign("a pipe")

    def test_it_goes_when_the_trace_has_its_stacks_itself(self):
        self.cached(self.path_of)
        self.assertTrue(os.path.exists(self.cache))
        self.assertEqual(self.mleak("unwind", self.path_of).status, 0)
        self.assertFalse(os.path.exists(self.cache))
        self.write("x.mlk.stacks", b"a file of the user's own")
        self.assertEqual(self.mleak("unwind", self.path_of).status, 0)
        self.assertTrue(os.path.exists(self.cache))

    def test_a_link_is_not_followed(self):
        self.lie()
        os.rename(self.cache, self.path("elsewhere"))
        os.symlink("elsewhere", self.cache)
        self.assert_foreign("a link to one")
        os.unlink(self.path("elsewhere"))
        self.assert_foreign("a link to nothing")
        self.assertFalse(os.path.exists(self.path("elsewhere")))

    def test_it_is_beside_the_trace_itself(self):
        os.mkdir(self.path("links"))
        link = self.path("links/link.mlk")
        os.symlink("../x.mlk", link)
        self.cached(link)
        self.assertEqual(os.listdir(self.path("links")), ["link.mlk"])
        self.assertTrue(os.path.exists(self.cache))

    def test_who_can_read_the_trace_can_read_it(self):
        for mode, expected in (0o600, 0o600), (0o640, 0o640), (0o664, 0o644), (0o444, 0o644):
            os.chmod(self.path_of, mode)
            os.chown(self.path_of, OTHER, OTHER + 1)
            self.make()
            st = os.stat(self.cache)
            self.assertEqual((stat.S_IMODE(st.st_mode), st.st_uid, st.st_gid),
                             (expected, OTHER, OTHER + 1))
            os.unlink(self.cache)

    def test_who_may_not_read_the_trace_any_more(self):
        """A trace that was made private: a report that finds its cache makes that private, too."""
        os.chmod(self.path_of, 0o644)
        self.make()
        for mode, expected in (0o640, 0o640), (0o666, 0o640), (0o600, 0o600):
            os.chmod(self.path_of, mode)
            self.cached(self.path_of)
            self.assertEqual(stat.S_IMODE(os.stat(self.cache).st_mode), expected)

    def test_where_nothing_can_be_written(self):
        os.chmod(self.dir, 0o755)
        os.chmod(self.path_of, 0o644)
        plain = self.plain(self.path_of)
        self.assertEqual(self.cached(self.path_of, **AS_NOBODY), plain)
        self.assert_nothing_is_left(["x.mlk"])
        self.lie()
        os.chmod(self.cache, 0o644)
        self.assertNotEqual(self.cached(self.path_of, "--addresses", **AS_NOBODY),
                            self.plain(self.path_of, "--addresses"), "root's is believed")

    def test_in_a_folder_of_all(self):
        """Nobody else's cache is replaced there."""
        os.chmod(self.dir, 0o1777)
        os.chmod(self.path_of, 0o644)
        self.cached(self.path_of, **AS_NOBODY)
        self.assertEqual(os.stat(self.cache).st_uid, NOBODY)
        inode = os.stat(self.cache).st_ino
        self.assertEqual(self.cached(self.path_of), self.plain(self.path_of))
        self.assertEqual(os.stat(self.cache).st_ino, inode)

    def test_a_full_disk_leaves_nothing(self):
        disk, data = self.path("disk"), self.read(self.path_of)
        os.mkdir(disk)
        size = (len(data) // 4096 + 2) * 4096
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%d" % size, "none", disk], capture_output=True)
        if done.returncode:
            self.skipTest("no file system can be mounted")
        self.addCleanup(subprocess.run, ["umount", disk], check=True)
        self.path_of = shutil.copy(self.path_of, disk)
        # and nearly all of the rest is taken
        with open(disk + "/rest", "wb") as rest, self.assertRaises(OSError):
            while True:
                os.write(rest.fileno(), bytes(4096))
        os.truncate(disk + "/rest", os.path.getsize(disk + "/rest") - 4096)
        self.assertEqual(self.cached(self.path_of), self.plain(self.path_of))
        self.assertEqual(sorted(os.listdir(disk)), ["rest", "x.mlk"])
        os.unlink(disk + "/rest")

    def test_with_a_limit_of_files_there_is_none(self):
        """Who writes beyond that is killed, unless he sees to it."""
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
        self.assertEqual(self.cached(self.path_of, preexec_fn=limit), self.plain(self.path_of))
        self.assert_nothing_is_left(["x.mlk"])

    def test_several_at_once(self):
        plain = self.plain(self.path_of)
        before = self.make()
        os.unlink(self.cache)
        env = dict(os.environ, MLEAK_CACHE="always")
        running = [self.start_mleak("report", self.path_of, env=env) for _ in range(6)]
        for process in running:
            self.assertEqual(tuple(self.finish(process)), plain)
        self.assertEqual(self.read(self.cache), before)
        self.assert_nothing_is_left(["x.mlk", "x.mlk.stacks"])

    def test_one_that_is_killed_leaves_nothing(self):
        plain, env = self.plain(self.path_of), dict(os.environ, MLEAK_CACHE="always")
        for _ in range(12):
            process = self.spawn([self.program, "report", "--no-pager", self.path_of], env=env,
                                 stdout=subprocess.DEVNULL)
            while process.poll() is None and not self.has_cache_open(process):
                pass
            process.kill()
            process.wait()
            self.assertIn(sorted(os.listdir(self.dir)), (["x.mlk"], ["x.mlk", "x.mlk.stacks"]))
            self.assertEqual(self.cached(self.path_of), plain)
            os.unlink(self.cache)

    def test_one_that_is_ended_leaves_nothing_where_files_need_names(self):
        env = dict(os.environ, MLEAK_CACHE="always", LD_PRELOAD=self.named(), STOP_THERE="1")

        def ended_by(number):
            """Who started the tests may ignore it, as a shell does for what is in the background."""
            signal.signal(number, signal.SIG_DFL)

        for number in signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT:
            with self.subTest(number=number):
                # sanitizers are to come first of what is preloaded
                process = self.spawn([MLEAK_FAST, "report", "--no-pager", self.path_of], env=env,
                                     stdout=subprocess.DEVNULL, preexec_fn=lambda number=number: ended_by(number))
                wait_until(lambda process=process: state_of(process.pid) == "T", "it makes no file")
                self.assertEqual(self.parts(), ["x.mlk.stacks.part%d" % process.pid])
                process.send_signal(number)
                process.send_signal(signal.SIGCONT)
                self.assertEqual(self.finish(process).status, -number)
                self.assertEqual(self.parts(), [])

    def parts(self):
        return [name for name in os.listdir(self.dir) if ".part" in name]

    def test_what_a_killed_one_left_is_removed(self):
        """Where files without a name cannot be, it has one of its process."""
        data = self.make()
        ended = self.spawn(["true"])
        ended.wait()
        left = self.write("x.mlk.stacks.part%d" % ended.pid, data[:len(data) // 2])
        other = self.write("x.mlk.stacks.part%d.txt" % ended.pid, data)
        os.chmod(left, 0o600)
        os.unlink(self.cache)
        self.make()
        self.assert_nothing_is_left(["x.mlk", "x.mlk.stacks", os.path.basename(other)])

    def has_cache_open(self, process):
        try:
            return any(os.readlink("/proc/%d/fd/%s" % (process.pid, fd)).startswith(self.path("#"))
                       for fd in os.listdir("/proc/%d/fd" % process.pid))
        except OSError:
            return False
