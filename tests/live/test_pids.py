"""`record -p` by name and with commas, `-O` by a file's name, names with % for `-o`, and `-q`."""

import os
import shutil
import socket
import time

from mleaktest import Case, needs_bpf, parse_totals, read_line, wait_until


@needs_bpf
class PidsTest(Case):
    def start(self, name, *args):
        """The sample forever as a program of that name, once it runs."""
        program = self.path(name)
        if not os.path.exists(program):
            os.rename(shutil.copy(self.sample("forever"), self.path("copy")), program)
        process = self.spawn([program, *args])
        wait_until(lambda: len(os.listdir("/proc/%d/task" % process.pid)) > 1, "it does not start")
        return process

    def recorded(self, *args, name="x.mlk"):
        result = self.mleak("record", "-d", "0.3", "-o", name, *args)
        self.assertEqual(result.status, 0, result.err)
        return result.err

    def test_by_name(self):
        name = "mleak-test-%d" % os.getpid()
        target = self.start(name)
        self.assertIn("(pid %d)" % target.pid, self.recorded("-p", name))
        self.assertGreater(parse_totals(self.report(self.path("x.mlk"))).allocations.blocks, 0)

    def test_a_name_longer_than_the_kernel_keeps(self):
        name = "mleak-test-with-a-long-name-%d" % os.getpid()
        target = self.start(name)
        with open("/proc/%d/comm" % target.pid) as comm:
            self.assertEqual(comm.read().strip(), name[:15])
        self.assertIn("(pid %d)" % target.pid, self.recorded("-p", name))

    def test_several_of_a_name_are_listed(self):
        name = "mleak-two-%d" % os.getpid()
        pids = [self.start(name, "10").pid, self.start(name, "20").pid]
        result = self.mleak("record", "-p", name, "-d", "0.1")
        self.assertEqual(result.status, 125)
        self.assert_one_message(result.err, naming=name)
        for pid, argument in zip(pids, ("10", "20")):
            self.assertIn("%d (%s %s)" % (pid, name, argument), result.err)
        self.assertFalse(os.path.exists(self.path("mleak.mlk")))
        self.recorded("-p", "%d,%d" % tuple(pids))
        for pid in pids:
            totals = parse_totals(self.report(self.path("x.mlk"), "--pid", str(pid)))
            self.assertGreater(totals.allocations.blocks, 0)

    def test_names_and_numbers_together(self):
        name = "mleak-mix-%d" % os.getpid()
        target, other = self.start(name), self.start("other")
        said = self.recorded("-p", "%s,%d" % (name, other.pid))
        self.assertIn("2 processes", said)

    def test_no_such_name(self):
        for value in ("mleak-no-such-%d" % os.getpid(), "1,mleak-no-such", "1,,1"):
            result = self.mleak("record", "-p", value)
            self.assertEqual(result.status, 125)
            self.assert_one_message(result.err, naming="name of a running process")

    def test_zombies_have_no_name(self):
        name = "mleak-gone-%d" % os.getpid()
        target = self.start(name)
        target.send_signal(9)
        wait_until(lambda: open("/proc/%d/stat" % target.pid).read().rpartition(")")[2].split()[0] == "Z",
                   "it does not end")
        result = self.mleak("record", "-p", name)
        self.assert_one_message(result.err, naming="not '%s'" % name)

    def test_object_by_its_name(self):
        target = self.start("forever")
        for name in ("libc.so.6", "libc.so"):
            self.recorded("-p", str(target.pid), "-O", name, name="o.mlk")
            totals = parse_totals(self.report(self.path("o.mlk")))
            self.assertGreater(totals.allocations.blocks, 0)
        for name, word in (("libnone.so.6", "has not mapped it"), ("libc", "has not mapped it"),
                           ("forever", "does not define malloc")):
            result = self.mleak("record", "-p", str(target.pid), "-O", name)
            self.assertEqual(result.status, 125)
            self.assert_one_message(result.err, naming=word)

    def test_object_in_two_folders(self):
        source = b"#include <stdlib.h>\nvoid *malloc_of(size_t n) { return malloc(n); }\n"
        self.write("two.c", source)
        main = b"#include <dlfcn.h>\n#include <stdio.h>\n#include <unistd.h>\nint main(int c, char **v)" \
               b"{ for (int i = 1; i < c; i++) if (!dlopen(v[i], 2)) return 1; puts(\"ready\"); " \
               b"fflush(stdout); pause(); return 0; }\n"
        self.write("main.c", main)
        os.mkdir(self.path("a"))
        os.mkdir(self.path("b"))
        for command in (["gcc", "-shared", "-fPIC", "-o", "a/libtwo.so", "two.c"],
                        ["gcc", "-shared", "-fPIC", "-o", "b/libtwo.so", "two.c"], ["gcc", "-o", "main", "main.c"]):
            self.assertEqual(self.finish(self.spawn(command)).status, 0)
        target = self.spawn([self.path("main"), "./a/libtwo.so", "./b/libtwo.so"])
        read_line(target)
        result = self.mleak("record", "-p", str(target.pid), "-O", "libtwo.so")
        self.assertEqual(result.status, 125)
        self.assert_one_message(result.err, naming="two files of this name")

    def test_names_of_traces(self):
        target = self.start("forever")
        before = time.time()
        self.recorded("-p", str(target.pid), name="%h-%p-%t-%%.mlk")
        found = [name for name in os.listdir(self.dir) if name.endswith("%.mlk")]
        self.assertEqual(len(found), 1)
        start = "%s-%d-" % (socket.gethostname(), target.pid)
        self.assertTrue(found[0].startswith(start), found)
        told = time.mktime(time.strptime(found[0][len(start):-len("-%.mlk")], "%Y%m%d-%H%M%S"))
        self.assertGreaterEqual(told, int(before))
        self.assertLessEqual(told, time.time())

    def test_the_pid_of_a_command(self):
        result = self.mleak("record", "-o", "%p.mlk", "--", "sh", "-c", "echo $$")
        self.assertEqual(result.status, 0, result.err)
        self.assertTrue(os.path.exists(self.path(result.out.strip() + ".mlk")), os.listdir(self.dir))

    def test_wrong_names(self):
        for args in (["-o", "x%y", "--", "true"], ["-o", "x%", "--", "true"], ["--kernel", "-o", "%p"]):
            result = self.mleak("record", *args)
            self.assertEqual(result.status, 125)
            self.assert_one_message(result.err, naming="%")

    def test_quiet(self):
        target = self.start("forever")
        self.assertEqual(self.recorded("-q", "-p", str(target.pid)), "")
        self.report(self.path("x.mlk"))
        result = self.mleak("record", "-q", "-p", "0")
        self.assert_one_message(result.err, naming="'0'")
