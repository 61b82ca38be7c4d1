"""Code put into processes that live elsewhere: in other namespaces, below another root, without /proc."""

import os
import re
import shutil
import subprocess
import unittest

from injecttest import InjectCase, Target

# Of the loader and the C library in another root: found nowhere else.
LIBRARIES = "/lib64/ld-linux-x86-64.so.2", "/lib/x86_64-linux-gnu/libc.so.6"
OWN = "-Wl,--dynamic-linker=/own/ld-linux-x86-64.so.2", "-Wl,-rpath,/own"


@unittest.skipIf(os.geteuid(), "needs root, for namespaces")
class NamespacesTest(InjectCase):
    def check(self, *by, kind="glibc"):
        """Begin the target by the command @by, which forks."""
        target = self.start_target(kind, threads=4, by=by, forks=True)
        target.go()
        self.assert_exact(target)
        threads = set(map(int, os.listdir("/proc/%d/task" % target.pid)))
        target.end()
        # those that the report names are of the recorder's own pid namespace
        told = re.findall(r"(?m)  (\d+) target-\S+$", self.report(self.path("x.mlk"), "--by", "thread"))
        self.assertEqual(set(map(int, told)), threads)
        self.assertNotIn(1, threads)

    def test_other_pids(self):
        """A thread has in its control block what it calls itself: here it has another number."""
        self.check("unshare", "--fork", "--pid", "--mount-proc")

    def test_other_pids_static(self):
        self.check("unshare", "--fork", "--pid", kind="glibc-static")

    def test_other_users(self):
        self.check("unshare", "--user", "--map-root-user", "--fork", "--pid")


@unittest.skipIf(os.geteuid(), "needs root, for another root")
class RootsTest(InjectCase):
    """The target, its loader and its C library are below a root of their own, where there is no /proc."""

    def check(self, *by, forks=False):
        root = self.path("root")
        os.makedirs(root + "/own")
        for library in LIBRARIES:
            shutil.copy(library, root + "/own")
        self.build("root/target", "inject_target.c", *OWN)
        argv = [part.replace("ROOT", root) for part in by]
        target = Target(self, self.spawn([*argv, "/target", "4"], stdin=subprocess.PIPE), forks)
        target.go()
        self.assert_whole(self.assert_exact(target))
        target.end()

    def test_chroot(self):
        self.check("chroot", "ROOT")

    def test_mount_namespace(self):
        self.check("unshare", "--mount", "--root", "ROOT")

    def test_container(self):
        """By pivot_root(2); all its namespaces are new, and it has no privileges."""
        if not shutil.which("bwrap"):
            self.skipTest("bubblewrap is not installed")
        self.check("bwrap", "--unshare-all", "--bind", "ROOT", "/", forks=True)
