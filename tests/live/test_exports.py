"""The formats of `mleak report` on what was recorded: the samples' own counts, and hostile names."""

import json
import os
import re
import subprocess

from backends import either_backend
import formatstest
from formatstest import FORMATS, READERS, Sums
from mleaktest import LONG, Case, ends_in, number, parse_answers, parse_folded

# Names of functions, in the order of the functions of HOSTILE_C, by what is bad in each.
HOSTILE = [
    b"new\nline\rfeed",
    b"escape\x1b[31m\x07",
    b"semi;colon 42",
    b"</script><script>document.title='pwned'</script>",
    b"<!--<script>",
    b"bidi\xe2\x80\xaegnp.exe\xe2\x80\xa8",
    b"invalid\xff\xfe\xc3(",
    b'=1+1"quoted",\\back',
]
ROOM = 60
# Also as a source file (an escape, a bidi mark and bytes that are no UTF-8), and as a program.
HOSTILE_LINE = '#line 1 "so;urce\\n\\033[31m</script>\\342\\200\\256\\377.c"\n'
HOSTILE_FILE = b"pro;gram\x1b[31m<!--<script>\xe2\x80\xae\xff"
HOSTILE_C = "#include <stdlib.h>\n#include <sys/prctl.h>\n" + HOSTILE_LINE + "".join(
    "__attribute__((noipa)) void f%s(void) { __asm__ volatile(\"\" :: \"r\"(malloc(%d)) : "
    "\"memory\"); }\n" % (("%d" % i).rjust(ROOM - 1, "_"), 1000 + i)
    for i in range(len(HOSTILE))) + "int main(void) { prctl(PR_SET_NAME, \"x;\\n\\033\\377<b>\"); " + \
    "".join("f%s(); " % ("%d" % i).rjust(ROOM - 1, "_") for i in range(len(HOSTILE))) + \
    "return 0; }\n"


@either_backend
class ExportsTest(Case):
    def export(self, name, trace):
        path = self.path("report." + name)
        with open(path, "wb") as out:
            result = self.mleak("report", "--format=" + name, trace, stdout=out)
        self.assertEqual((result.status, result.err), (0, ""))
        return path

    def check_sample(self, name):
        """Each format has the same totals; and the sample's leaks are what it said."""
        trace, out = self.record(self.sample(name))
        answers = parse_answers(out)
        stacks = parse_folded(self.report(trace, "--folded"))
        for answer in answers:
            found = [s.bytes for s in stacks if ends_in(s.frames, answer.path)]
            self.assertEqual(sum(found), answer.bytes, answer)
        with open(self.export("json", trace), encoding="utf-8") as file:
            report = json.load(file)
        total = report["totals"]["outstanding"]
        # by the reports' own functions: what the sample says of its blocks, too
        for answer in answers:
            names = [f["function"] for f in report["frames"]]
            found = [s["outstanding"] for s in report["stacks"]
                     if ends_in([names[f] for f in reversed(s["frames"])], answer.path)]
            self.assertEqual((sum(s["bytes"] for s in found), sum(s["blocks"] for s in found)),
                             (answer.bytes, answer.blocks))
        for kind in FORMATS:
            with self.subTest(sample=name, format=kind):
                sums = READERS[kind](self.export(kind, trace))
                self.assertEqual(sums.bytes, total["bytes"])
                self.assertIn(sums.blocks, (None, total["blocks"]))

    def test_html_has_the_totals_of_the_text(self):
        """Of a program that executes another one, all it had is gone then."""
        trace, _ = self.record("bash", "-c", "true; exec true")
        rows = re.findall(r"(?m)^  ([a-z][a-z ]+[a-z]) +([\d,]+) blocks? +([\d,]+) bytes$",
                          self.mleak("report", trace).out)
        page = self.mleak("report", "--format=html", trace).out
        told = json.loads(re.search(r'id="data">(.*?)</script>', page, re.S)[1])["totals"]
        self.assertIn("gone at exec", [name for name, *_ in rows])
        for name, blocks, size in rows:
            name = {"allocations": "allocated", "frees": "freed"}.get(name, name)
            self.assertEqual(told[name], {"blocks": number(blocks), "bytes": number(size)})

    def test_totals_of_all_formats_are_equal_and_leaks_are_what_the_samples_count(self):
        for name in "first", "single", "clean", "cxx", "threads", "realloc", "aligned":
            self.check_sample(name)


@either_backend
class HostileNamesTest(Case):
    def setUp(self):
        super().setUp()
        source = self.write("hostile.c", HOSTILE_C.encode())
        program = self.path("hostile")
        subprocess.run(["gcc", "-O1", "-g", "-o", program, source], check=True)
        with open(program, "rb") as file:
            image = file.read()
        for i, name in enumerate(HOSTILE):
            old = b"f" + (b"%d" % i).rjust(ROOM - 1, b"_") + b"\0"
            assert image.count(old) == 2 and len(name) < ROOM
            image = image.replace(old, name.ljust(ROOM + 1, b"\0"))
        folder = os.fsencode(self.dir)
        os.rename(self.write("crafted", image, mode=0o755), folder + b"/" + HOSTILE_FILE)
        self.trace = self.path("x.mlk")
        result = self.mleak("record", "-o", self.trace, "--", folder + b"/" + HOSTILE_FILE)
        self.assertEqual(result.status, 0, result.err)
        self.check_text(result.err.encode())

    def export(self, name):
        path = self.path("report." + name)
        with open(path, "wb") as out:
            result = self.mleak("report", "--format=" + name, self.trace, stdout=out)
        self.assertEqual((result.status, result.err), (0, ""))
        with open(path, "rb") as file:
            return path, file.read()

    def check_text(self, data):
        """Valid UTF-8 without control characters (but ends of lines) and without bidi marks."""
        self.assertNotRegex(data.decode().replace("\r\n", "\n"), formatstest.BIDI)
        self.assertNotIn("\r", data.decode().replace("\r\n", "\n"))

    def test_text_formats_are_harmless_and_keep_their_totals(self):
        total = sum(1000 + i for i in range(len(HOSTILE)))
        for name in FORMATS:
            if name in ("pprof", "html"):
                continue
            with self.subTest(format=name):
                path, data = self.export(name)
                self.check_text(data)
                self.assertEqual(READERS[name](path), READERS[name](path)._replace(bytes=total))

    def test_names_are_there_as_text(self):
        _, data = self.export("json")
        names = [frame["function"] for frame in json.loads(data)["frames"]]
        self.assertIn("so;urce\\x0A\\x1B[31m</script>\\u{202E}\\xFF.c",
                      [frame["file"] for frame in json.loads(data)["frames"]])
        for expected in ("new\\x0Aline\\x0Dfeed", "escape\\x1B[31m\\x07", "semi;colon 42",
                         "</script><script>document.title='pwned'</script>", "<!--<script>",
                         "bidi\\u{202E}gnp.exe\\u{2028}", "invalid\\xFF\\xFE\\xC3(",
                         '=1+1"quoted",\\back'):
            self.assertIn(expected, names)
        self.assertNotIn(b"</", data)
        self.assertNotIn(b"<!", data)

    def test_tables_and_other_commands_are_harmless_too(self):
        commands = [["report", "--by", key] for key in ("thread", "module", "function", "file")]
        commands += [["report", "--by", key, "--format=json"] for key in ("thread", "file")]
        commands += [["report", "--growth", "--format=json"],
                     ["report", "--timeline", "--format=json"], ["diff", "--format=json", self.trace],
                     ["diff", "--format=html", self.trace]]
        commands += [["report", "--growth"], ["report", "--color=always", "--format=csv"],
                     ["report", "--by", "function", "--format=csv"], ["info"], ["script"],
                     ["diff", self.trace], ["diff", "--folded", self.trace],
                     ["diff", "--format=csv", self.trace], ["report", "--dump=full"],
                     ["report", "--inline"], ["report", "--timeline"],
                     ["report", "--no-demangle", "--format=speedscope"], ["report", "--addresses"]]
        for command in commands:
            with self.subTest(command=command):
                process = self.start_mleak(*command, self.trace)
                out, err = process.communicate(timeout=3 * LONG)
                self.assertEqual((process.returncode, err), (0, b""))
                self.assertNotEqual(out, b"")
                self.check_text(out)

    def test_pprof(self):
        path, _ = self.export("pprof")
        self.check_text(formatstest.run(formatstest.pprof(), "-raw", path).encode())
        self.assertEqual(READERS["pprof"](path).blocks, len(HOSTILE))

    def test_csv_has_no_formulas(self):
        path, _ = self.export("csv")
        rows = formatstest.rows_of_csv(path)
        self.assertEqual(len(rows), len(HOSTILE))
        self.assertIn("'=1+1\"quoted\",\\back", [row["function"] for row in rows])

    def test_folded_has_the_frames_that_it_should(self):
        _, data = self.export("folded")
        self.assertEqual({len(s.frames) for s in parse_folded(data.decode())}, {5})

    def test_html_does_not_run_names(self):
        path, data = self.export("html")
        self.check_text(data)
        # its own three
        self.assertEqual(data.lower().count(b"</script"), 3)
        page = formatstest.page_in_chromium(path)
        self.assertNotIn("<title>pwned", page)
        total = sum(1000 + i for i in range(len(HOSTILE)))
        self.assertEqual(formatstest.table_of(page)["shown"], Sums(total, len(HOSTILE)))
        page = formatstest.page_in_chromium(path, "view=growth", expression=formatstest.ALL_OPENED)
        self.assertNotIn("<title>pwned", page)
        self.assertRegex(formatstest.text_of(page), r"</script><script>document\.title='pwned'</script> +\S+ +\[pro;gram\\x1B\[31m")
