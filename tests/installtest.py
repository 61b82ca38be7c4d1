"""installtest - for the tests in live/ of what is installed: a test with an installation of its own"""

import contextlib
import fcntl
import os
import re
import subprocess

from mleaktest import Case, MLEAK_FAST, ROOT

BUILD_PLAIN = os.path.dirname(os.path.abspath(MLEAK_FAST))
WARNINGS = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O2"]


@contextlib.contextmanager
def one_make():
    """Nobody else's make works in BUILD_PLAIN meanwhile: what one still builds, another would install."""
    with open(os.path.join(BUILD_PLAIN, "test-make.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def document(name):
    with open(os.path.join(ROOT, "doc", name)) as text:
        return text.read()


class Installed(Case):
    """mleak and libdwunw installed into the test's directory."""

    def setUp(self):
        super().setUp()
        self.dest = self.path("dest")
        self.prefix = "/opt/mleak"
        self.root = self.dest + self.prefix
        # make's own variables would make the inner make a part of the outer one.
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
        self.env["PKG_CONFIG_PATH"] = os.path.join(self.root, "lib/pkgconfig")
        self.env["PKG_CONFIG_SYSROOT_DIR"] = self.dest
        self.env["LD_LIBRARY_PATH"] = os.path.join(self.root, "lib")
        self.make("install")

    def run_checked(self, argv, **options):
        done = subprocess.run(argv, env=self.env, stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
        self.assertEqual(done.returncode, 0, "%s\n%s%s" % (argv, done.stdout, done.stderr))
        return done.stdout

    def make(self, target):
        with one_make():
            return self.run_checked(["make", "-s", "-C", ROOT, "O=" + BUILD_PLAIN, target,
                                     "DESTDIR=" + self.dest, "PREFIX=" + self.prefix])

    def pkg_config(self, *options):
        flags = self.run_checked(["pkg-config", *options, "dwunw"]).split()
        return ["-l:libdwunw.a" if f == "-ldwunw" and "--static" in options else f for f in flags]

    def examples(self):
        """Write the programs of doc/api_usage.md into the test's directory; returns their paths."""
        paths = []
        for text in re.findall(r"^```c\n(.*?)^```$", document("api_usage.md"), re.M | re.S):
            name = re.match(r"/\* (\w+\.c) - ", text)
            self.assertTrue(name, "an example without a name: " + text[:80])
            paths.append(self.write(name[1], text.encode()))
        return paths

    def build(self, path, *options):
        program = path[:-2] + "".join(options)
        self.run_checked(["gcc", *WARNINGS, "-g", "-o", program, path,
                          *self.pkg_config("--cflags"), *self.pkg_config("--libs", *options)])
        return program

    def run_program(self, argv, **options):
        return self.finish(self.spawn(argv, env=self.env, **options))
