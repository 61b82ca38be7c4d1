"""All versions of CPython that are found: functions, files and lines are those of its traceback."""

import glob
import json
import os
import subprocess

from markstest import marked_stacks
from mleaktest import TESTS, needs_bpf
from pythontest import COUNT, KNOWN, PythonCase, interpreters

# More frames than are recorded: the program takes long to tell of them, so there are few marks.
DEEP, FRAMES = 100, 128


class VersionsCase(PythonCase):
    backend = "preload"

    def known(self):
        found = {version: path for version, path in interpreters().items() if version in KNOWN}
        if not found:
            self.skipTest("there is no python3.8 to python3.14 in PATH or MLEAK_TEST_PYTHONS")
        return found.items()

    def record_marks(self, python, part, count):
        trace = self.path("trace.mlk")
        result = self.mleak("record", "--backend", self.backend, "-o", trace, "--", python,
                            self.marks, part, str(count), self.answer)
        self.assertEqual(result.status, 0, result.err)
        return trace


class PythonVersionsTest(VersionsCase):
    def test_each_mark_has_the_frames_of_its_traceback(self):
        for version, python in self.known():
            with self.subTest(version=version):
                report = self.assert_same(self.record_marks(python, "all", 2 * COUNT), 2 * COUNT)
                self.assertEqual(report["lost"]["kinds"], {})

    def test_interpreters_of_one_process_have_their_own_frames(self):
        for version, python in self.known():
            with self.subTest(version=version):
                self.assert_same(self.record_marks(python, "interpreters", 1000), 4000)

    def test_the_innermost_frames_are_recorded_and_the_others_counted(self):
        for version, python in self.known():
            with self.subTest(version=version):
                trace = self.record_marks(python, "deep", DEEP)
                report = json.loads(self.mleak("report", "--format=json", trace).out)
                told = {frames[-FRAMES:]: amount for frames, amount in self.take_answers().items()}
                found = marked_stacks(report, "[python]")
                self.assertTrue(all(found[frames] == amount for frames, amount in told.items()))
                lost = report["lost"]["kinds"]["allocations without all callers that an interpreter had"]
                self.assertGreaterEqual(lost, DEEP)
                self.assertRegex(self.mleak("info", trace).out,
                                 r"\nlost +%d allocations without all callers" % lost)
                self.assertIn("allocations without all callers",
                              self.mleak("report", "--format=json", trace).err)


@needs_bpf
class PythonVersionsProbesTest(PythonVersionsTest):
    backend = "bpf"


@needs_bpf
class PythonVersionsAttachTest(VersionsCase):
    def test_attached_by_probes(self):
        for version, python in self.known():
            with self.subTest(version=version):
                self.attach(python, "all")

    def test_attached_by_injected_code(self):
        for version, python in self.known():
            with self.subTest(version=version):
                self.attach(python, "all", "--backend", "inject")


class PythonStaticTest(VersionsCase):
    """Programs that contain the interpreter, and have only their exported symbols: each thread's
    variables are found in another way than those of a library."""

    def test_stripped_programs_with_the_interpreter_in_them(self):
        built = 0
        for version, python in self.known():
            home = os.path.dirname(os.path.dirname(os.path.realpath(python)))
            name = "python%d.%d" % version
            archives = glob.glob(os.path.join(glob.escape(home), "lib", name, "config-*", "lib*.a"))
            if not archives:
                continue
            option = ("-pie", "-no-pie")[version[1] // 2 % 2]
            program = self.path(name)
            main = os.path.join(os.path.dirname(archives[0]), "python.o")
            subprocess.run(["gcc", "-s", option, "-rdynamic", "-o", program, main, archives[0],
                            "-lpthread", "-ldl", "-lutil", "-lm"], check=True)
            built += 1
            with self.subTest(version=version, option=option):
                os.environ["PYTHONHOME"] = home
                self.addCleanup(os.environ.pop, "PYTHONHOME", None)
                self.assert_same(self.record_marks(program, "all", COUNT))
                os.environ.pop("PYTHONHOME")
        if not built:
            self.skipTest("there is no libpython3.N.a beside an interpreter")


@needs_bpf
class PythonStaticProbesTest(PythonStaticTest):
    backend = "bpf"


class PythonToldTest(VersionsCase):
    """3.14 tells where its frames are; a program that does the same stands for it."""

    def record_fake(self, *options):
        program = self.path("python-fake")
        subprocess.run(["gcc", "-O1", "-rdynamic", *options, "-o", program,
                        os.path.join(TESTS, "live", "fake_python314.c")], check=True)
        trace = self.path("trace.mlk")
        result = self.mleak("record", "--backend", self.backend, "-o", trace, "--", program)
        self.assertEqual(result.status, 0, result.err)
        return trace

    def test_frames_are_where_it_says(self):
        for option in ("-pie", "-no-pie"):
            with self.subTest(option=option):
                report = json.loads(self.mleak("report", "--format=json", self.record_fake(option)).out)
                frames = report["frames"]
                found = {tuple((frames[i]["function"], frames[i]["file"], frames[i]["line"])
                               for i in stack["frames"] if frames[i]["module"] == "[python]"):
                         stack["outstanding"]["blocks"] for stack in report["stacks"]}
                self.assertEqual(found[("inner", "new.py", 8), ("outer", "new.py", 8)], 100)

    def test_without_the_gil_it_is_not_known(self):
        trace = self.record_fake("-DFREE_THREADED=1")
        self.assertIn("lack the functions of Python 3.14.0: it is built without the GIL\n",
                      self.mleak("report", trace).err)


@needs_bpf
class PythonToldProbesTest(PythonToldTest):
    backend = "bpf"


class PythonUnknownTest(VersionsCase):
    def test_an_unknown_version_is_told_and_has_frames_of_machine_code(self):
        others = {version: path for version, path in interpreters().items() if version not in KNOWN}
        for version, python in {**others, "fake": self.make_fake()}.items():
            with self.subTest(version=version):
                trace = self.path("trace.mlk")
                command = [python, "3"] if version == "fake" else [python, "-c", "bytes(5000)"]
                result = self.mleak("record", "--backend", "preload", "-o", trace, "--", *command)
                self.assertEqual(result.status, 0, result.err)
                report = self.mleak("report", "--format=json", trace)
                self.assertRegex(report.err, r"lack the functions of Python \d+\.\d+\.\d+: frames "
                                             r"are known of 3\.8 to 3\.14 only\n")
                self.assertRegex(self.mleak("info", trace).out,
                                 r"\ninterpreter +\d+ Python \d.*: without its functions, as ")
                modules = {frame["module"] for frame in json.loads(report.out)["frames"]}
                self.assertNotIn("[python]", modules)
                functions = {frame["function"] for frame in json.loads(report.out)["frames"]}
                self.assertTrue(any("Py" in function for function in functions), functions)

    def make_fake(self):
        """A program that looks like CPython 3.7."""
        program = self.path("python-fake")
        subprocess.run(["gcc", "-O1", "-rdynamic", "-DVERSION=0x030710f0", "-o", program,
                        os.path.join(TESTS, "live", "fake_python.c")], check=True)
        return program
