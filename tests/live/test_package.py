"""The Debian packages hold what `make install` installs, each file once, and name what they need."""

import glob
import os
import re
import shutil
import subprocess
import unittest

from installtest import BUILD_PLAIN, one_make
from markdown import dead_links
from mleaktest import Case, ROOT

PACKAGES = ["libdwunw-dev", "libdwunw0", "mleak"]
LIBRARIES = "/usr/lib/x86_64-linux-gnu"


def run(*argv):
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise AssertionError("%s: %s%s" % (argv, done.stdout, done.stderr))
    return done.stdout


def files_below(folder):
    return {"/" + os.path.relpath(os.path.join(where, name), folder)
            for where, _, names in os.walk(folder) for name in names}


@unittest.skipUnless(shutil.which("dpkg-shlibdeps"), "dpkg-dev is not installed")
class PackageTest(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = os.path.join(BUILD_PLAIN, "test-deb")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.make("deb", "DEB_OUT=" + cls.folder)
        cls.packages = {os.path.basename(path).split("_")[0]: path
                        for path in glob.glob(cls.folder + "/*.deb")}

    @classmethod
    def make(cls, *args):
        # make's own variables would make the inner make a part of the outer one.
        env = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
        with one_make():
            done = subprocess.run(["make", "-s", "-C", ROOT, "O=" + BUILD_PLAIN, *args], env=env,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            raise AssertionError("make %s: %s" % (args, done.stdout))

    def extract(self, package):
        folder = self.path(package)
        run("dpkg-deb", "-x", self.packages[package], folder)
        return folder

    def field(self, package, name):
        return run("dpkg-deb", "-f", self.packages[package], name).strip()

    def test_each_file_that_is_installed_is_in_one_package(self):
        self.make("install", "PREFIX=/usr", "LIBDIR=" + LIBRARIES, "DESTDIR=" + self.path("dest"))
        installed = files_below(self.path("dest")) - {"/usr/share/doc/mleak/LICENSE"}
        self.assertGreater(len(installed), 15)
        self.assertEqual(sorted(self.packages), PACKAGES)
        packed = []
        for package in PACKAGES:
            packed += [path for path in files_below(self.extract(package))
                       if not re.search("/(changelog.gz|copyright)$", path)]
        plain = [re.sub(r"(/man1/.*)\.gz$", r"\1", path) for path in packed]
        plain = [path.replace("/doc/libdwunw-dev/", "/doc/mleak/") for path in plain]
        self.assertEqual(sorted(plain), sorted(installed))

    def test_each_link_of_a_packed_document_leads_somewhere(self):
        together = self.path("together")
        for package in PACKAGES:
            run("dpkg-deb", "-x", self.packages[package], together)
        dead, found = dead_links(os.path.join(together, "usr/share/doc"))
        self.assertEqual(dead, [])
        self.assertGreater(found, 100)

    def test_the_packed_program_runs_and_has_the_package_s_version(self):
        program = os.path.join(self.extract("mleak"), "usr/bin/mleak")
        for package in PACKAGES:
            self.assertEqual(run(program, "--version").splitlines()[0],
                             "mleak " + self.field(package, "Version"))

    def test_the_packages_of_all_libraries_needed_are_depended_on(self):
        for package, path in (("mleak", "usr/bin/mleak"),
                              ("libdwunw0", LIBRARIES[1:] + "/libdwunw.so.0")):
            file = os.path.join(self.extract(package), path)
            needed = re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", file))
            self.assertIn("libc.so.6", needed)
            depends = {name.split()[0] for name in self.field(package, "Depends").split(", ")}
            found = {run("dpkg", "-S", "*/x86_64-linux-gnu/" + library).split(":")[0] for library in needed}
            self.assertEqual(depends, found)

    def test_what_the_static_library_needs_is_depended_on(self):
        text = open(os.path.join(self.extract("libdwunw-dev"), LIBRARIES[1:],
                                 "pkgconfig/dwunw.pc")).read()
        depends = {name.split()[0] for name in self.field("libdwunw-dev", "Depends").split(", ")}
        for library in re.findall(r"-l(\w+)", text.split("Libs.private:")[1]):
            owner = run("dpkg", "-S", "%s/lib%s.a" % (LIBRARIES, library)).split(":")[0]
            self.assertIn(owner, depends | {"libc6-dev"})

    def test_the_same_sources_make_the_same_packages(self):
        first = {name: open(path, "rb").read() for name, path in self.packages.items()}
        os.environ["SOURCE_DATE_EPOCH"] = "1700000000"
        self.addCleanup(os.environ.pop, "SOURCE_DATE_EPOCH")
        again = []
        for name in "ab":
            folder = os.path.join(self.folder, name)
            self.make("deb", "DEB_OUT=" + folder)
            again.append({name: open(os.path.join(folder, os.path.basename(path)), "rb").read()
                          for name, path in self.packages.items()})
        self.assertEqual(again[0], again[1])
        self.assertNotEqual(again[0], first)

    @unittest.skipUnless(shutil.which("lintian"), "lintian is not installed")
    def test_lintian_finds_no_error(self):
        done = subprocess.run(["lintian", "--fail-on", "error", *self.packages.values()],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)
