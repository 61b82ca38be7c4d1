"""What `make install` installs is complete: programs build with it alone, and uninstall leaves nothing."""

import glob
import os
import re
import signal
import time

from installtest import Installed, WARNINGS, document
from markdown import dead_links
from mleaktest import ROOT, needs_bpf, read_line, wait_until


class InstallTest(Installed):
    def test_examples_of_the_document_build_and_run_against_both_libraries(self):
        paths = self.examples()
        self.assertEqual([os.path.basename(p) for p in paths], ["snapshot.c", "stacks.c"])
        for options in [(), ("--static",)]:
            program = self.build(paths[0], *options)
            with self.subTest(options=options):
                linked = self.run_checked(["ldd", program])
                self.assertEqual("libdwunw.so.0 => " + self.root in linked, not options, linked)
                result = self.run_program([program])
                self.assertEqual((result.status, result.err), (0, ""))
                names = [line.split()[1].split(".")[0] for line in result.out.splitlines()[:-1]]
                self.assertEqual(names[:4], ["save", "inner", "outer", "main"], result.out)
                self.assertIn(result.out.splitlines()[-1], ("complete", "stack bytes end"))
            self.build(paths[1], *options)

    def test_the_library_exports_what_the_header_declares(self):
        header = os.path.join(self.root, "include/dwunw.h")
        text = self.run_checked(["gcc", "-E", "-P", header])
        declared = re.findall(r"\b(dwunw_\w+)\(", re.sub(r"\btypedef [^;]*;", "", text))
        self.assertGreater(len(declared), 15)
        symbols = self.run_checked(["nm", "-D", "--defined-only",
                                    os.path.join(self.root, "lib/libdwunw.so.0")])
        exported = [line.split()[-1].split("@")[0] for line in symbols.splitlines()
                    if " A " not in line]
        self.assertEqual(sorted(exported), sorted(set(declared)))
        dynamic = self.run_checked(["readelf", "-d", os.path.join(self.root, "lib/libdwunw.so")])
        self.assertIn("Library soname: [libdwunw.so.0]", dynamic)

    def test_the_headers_are_cplusplus_too(self):
        use = self.write("use.cc", b"#include <dwunw.h>\nint main() { struct dwunw *dw; "
                         b"int err = dwunw_new(&dw); dwunw_free(dw); return err; }\n")
        program = self.path("use")
        self.run_checked(["g++", "-Wall", "-Wextra", "-Werror", "-o", program, use,
                          *self.pkg_config("--cflags", "--libs")])
        self.assertEqual(self.run_program([program]).status, 0)

    def test_the_event_is_laid_out_as_documented(self):
        section = document("api_usage.md").split("## The event, byte by byte")[1].split("\n## ")[0]
        fields = re.findall(r"^\| (\d+) \| (\d+) \| `(\w+)` \|", section, re.M)
        flags = re.findall(r"^\| (\d+) \| `(DWUNW_EVENT_\w+)` \|", section, re.M)
        self.assertEqual((len(fields), len(flags)), (10, 5))
        text = "#include <stddef.h>\n#include <dwunw_event.h>\n"
        for offset, size, name in fields:
            text += ("_Static_assert(offsetof(struct dwunw_async_event, %s) == %s, \"%s\");\n"
                     % (name, offset, name))
            if size != "0":
                text += ("_Static_assert(sizeof(((struct dwunw_async_event *)0)->%s) == %s, \"%s\");\n"
                         % (name, size, name))
        for bit, name in flags:
            text += "_Static_assert(%s == 1 << %s, \"%s\");\n" % (name, bit, name)
        source = self.write("layout.c", text.encode())
        self.run_checked(["gcc", *WARNINGS, "-c", "-o", self.path("layout.o"), source,
                          *self.pkg_config("--cflags")])

    def test_every_status_and_flag_is_explained(self):
        text = document("api_usage.md")
        names = []
        for path in glob.glob(os.path.join(self.root, "include/dwunw*.h")):
            with open(path, encoding="ascii") as header:
                names += re.findall(r"^\t(DWUNW_(?:STATUS|FRAME_FLAG|SAMPLE|COPY|DENIED|READER|NOTE)"
                                    r"_\w+)", header.read(), re.M)
        self.assertGreater(len(names), 15)
        missing = [n for n in names if not n.endswith("_NR") and n != "DWUNW_DENIED_NOT"
                   and "`" + n + "`" not in text]
        self.assertEqual(missing, [])

    def test_each_link_of_an_installed_document_leads_somewhere(self):
        dead, found = dead_links(os.path.join(self.root, "share/doc/mleak"))
        self.assertEqual(dead, [])
        self.assertGreater(found, 100)

    def test_uninstall_leaves_nothing(self):
        def files():
            return [os.path.join(d, f) for d, _, names in os.walk(self.dest) for f in names]

        self.assertGreater(len(files()), 8)
        self.make("uninstall")
        self.assertEqual(files(), [])
        self.assertFalse(os.path.exists(os.path.join(self.root, "share/doc/mleak")))


@needs_bpf
class BpfMemleakTest(Installed):
    def test_the_sample_finds_the_leaks_that_happened_while_it_watched(self):
        self.check(self.build_sample())

    def test_the_sample_with_the_static_library_finds_them_too(self):
        self.check(self.build_sample("STATIC=1"))

    def build_sample(self, *options):
        out = self.path("bpf")
        self.run_checked(["make", "-s", "-C", os.path.join(ROOT, "samples/bpf_memleak"),
                          "O=" + out, *options])
        return os.path.join(out, "memleak")

    def counted(self, target):
        target.send_signal(signal.SIGUSR1)
        found = re.fullmatch(r"count: blocks=(\d+) bytes=(\d+)", read_line(target))
        return int(found[1]), int(found[2])

    def switch(self, target, word):
        target.send_signal(signal.SIGUSR2)
        self.assertEqual(read_line(target), word)

    def check(self, program):
        target = self.spawn([self.sample("forever"), "1"])
        self.assertEqual(read_line(target), "ready")
        self.switch(target, "paused")
        for seconds in 3, 15, 60:
            before = self.counted(target)
            tool = self.spawn([program, str(target.pid), str(seconds)], env=self.env)
            self.assertRegex(tool.stderr.readline().decode(), "^watching process")
            self.switch(target, "running")
            time.sleep(0.7)
            wait_until(lambda: self.counted(target)[0] - before[0] > 50, "the target stands still")
            self.switch(target, "paused")
            after = self.counted(target)
            in_time = tool.poll() is None
            result = self.finish(tool)
            if in_time:
                break
        self.assertTrue(in_time, "this machine is too slow: the tool was done before the target")
        self.assertEqual((result.status, result.err), (0, ""))
        self.assertNotIn("lost", result.out)
        found = re.findall(r"^(\d+) bytes in (\d+) blocks, stack complete:\n((?:    .*\n)+)",
                           result.out, re.M)
        leaks = [(int(b), int(n)) for b, n, frames in found
                 if re.search(r"leak_here .*\n.* handle_request .*\n(?:.*\n)* *\S+ serve_(?:rea|wri)", frames)]
        self.assertEqual(len(leaks), 2, result.out)
        self.assertEqual(sum(n for _, n in leaks), after[0] - before[0], result.out)
        self.assertEqual(sum(b for b, _ in leaks), after[1] - before[1], result.out)
        self.assertGreater(after[0] - before[0], 50)
