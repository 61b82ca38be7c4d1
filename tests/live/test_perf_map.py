"""Perf maps and dumps that are none: what a process puts there costs little time, and is said."""

import os

from backends import both_backends
from mleaktest import Case

# Puts something else where its perf map would be, and allocates.
PROGRAM = """import os, sys
path = "/tmp/perf-%d.map" % os.getpid()
exec(sys.argv[1])
print(path)
kept = [bytes(4703) for i in range(23)]
"""


@both_backends
class PerfMapTest(Case):
    def record_with(self, code):
        """Record a process that runs @code first; returns what mleak said, and the dump's lines of names."""
        program = self.write("program.py", PROGRAM.encode())
        trace = self.path("x.mlk")
        result = self.mleak("record", "-o", trace, "--", "/usr/bin/python3", program, code)
        path = result.out.strip()
        if os.path.lexists(path):
            os.unlink(path)
        self.assertEqual(result.status, 0, result.err)
        lines = self.mleak("report", "--dump", trace).out.splitlines()
        names = [line for line in lines if line.startswith("  CODENAMES") or line.startswith("    code ")]
        return result.err, names

    def test_a_map_is_read_though_the_process_has_ended(self):
        err, names = self.record_with("open(path, 'w').write('10000 20 one\\n20000 20 two\\n')")
        self.assertNotIn("incomplete", err)
        self.assertIn("    code 10000 32 frame 0 name one", names)
        self.assertIn("    code 20000 32 frame 0 name two", names)

    def test_what_was_there_before_the_process_is_of_another_one(self):
        for code in ("open(path, 'w').write('10000 20 one\\n'); os.utime(path, (1, 1))",
                     "os.symlink('/etc/passwd', path); os.utime(path, (1, 1), follow_symlinks=False)"):
            with self.subTest(code=code):
                err, names = self.record_with(code)
                self.assertNotIn("incomplete", err)
                self.assertEqual(names, [])

    def check_refused(self, code, why):
        err, names = self.record_with(code)
        self.assertRegex(err, r"mleak: warning: the names of generated code of process \d+ are incomplete: its "
                              r"/tmp/perf-\d+\.map " + why)
        self.assertEqual(len(names), 1)
        self.assertTrue(names[0].endswith("problem " + why), names)
        self.assertRegex(self.mleak("report", self.path("x.mlk")).err, "its /tmp/perf-PID.map " + why)

    def test_a_symbolic_link_is_not_followed(self):
        self.check_refused("os.symlink('/etc/passwd', path)", "is a symbolic link")

    def test_a_fifo_is_not_waited_for(self):
        self.check_refused("os.mkfifo(path)", "is no regular file")

    def test_lines_that_are_none_are_counted(self):
        self.check_refused("open(path, 'w').write('nothing\\n' * 1000)", "has lines that are no names")

    def test_a_gigabyte_is_read_in_part(self):
        code = "f = open(path, 'w'); f.write('10000 20 one\\n'); f.truncate(1 << 30); f.close()"
        err, names = self.record_with(code)
        self.assertRegex(err, r"perf-\d+\.map (has more than 64 MiB|has lines that are no names)")
        self.assertIn("    code 10000 32 frame 0 name one", names)
        left_out = max(int(line.split("left out ")[1].split(",")[0]) for line in names if "left out" in line)
        self.assertGreater(left_out, (1 << 30) - (65 << 20))


# Makes a dump with one function, as a runtime does, and allocates.
DUMP = b"""import mmap, os, struct, sys
path = "jit-%d.dump" % os.getpid()
f = open(path, "wb+")
f.write(struct.pack("<IIIIIIQQ", 0x4A695444, 1, 40, 62, 0, os.getpid(), 0, 0))
name = b"one\\0"
f.write(struct.pack("<IIQIIQQQQ", 0, 56 + len(name) + 32, 0, 0, 0, 0x10000, 0x10000, 32, 1) + name + bytes(32))
f.flush()
exec(sys.argv[1])
f.flush()
sign = mmap.mmap(f.fileno(), 40, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
kept = [bytes(4703) for i in range(23)]
"""


@both_backends
class JitdumpTest(Case):
    def record_with(self, code):
        """Record a process that runs @code before its dump can be found; what mleak said, and the dump's lines."""
        trace = self.path("x.mlk")
        program = self.write("program.py", DUMP)
        result = self.mleak("record", "-o", trace, "--", "/usr/bin/python3", program, code, cwd=self.dir)
        self.assertEqual(result.status, 0, result.err)
        self.assertNotIn("modules whose file", result.err)
        lines = self.mleak("report", "--dump", trace).out.splitlines()
        return result.err, [line for line in lines if line.startswith(("  CODENAMES", "    code "))]

    def test_a_dump_is_read_though_the_process_has_ended(self):
        err, names = self.record_with("pass")
        self.assertNotIn("incomplete", err)
        self.assertIn("    code 10000 32 frame 0 name one", names)

    def test_a_gigabyte_is_given_up(self):
        err, names = self.record_with("f.truncate(1 << 30)")
        self.assertRegex(err, r"mleak: warning: the names of generated code of process \d+ are incomplete: its "
                              r"jit-\d+\.dump has records that are none")
        self.assertIn("    code 10000 32 frame 0 name one", names)
        left_out = max(int(line.split("left out ")[1].split(",")[0]) for line in names if "left out" in line)
        self.assertGreater(left_out, (1 << 30) - 4096)

    def test_another_file_at_its_path_is_not_read(self):
        # what is mapped has no path any more
        err, names = self.record_with("os.unlink(path); os.symlink('/etc/passwd', path)")
        if "    code 10000 32 frame 0 name one" not in names:  # found after the process had ended
            self.assertRegex(err, r"jit-\d+\.dump could not be opened")
