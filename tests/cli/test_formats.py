"""The formats of `mleak report`, read by the tools that they are for, on a golden trace."""

import json
import os
import re

import formatstest
from formatstest import FORMATS, READERS, Sums
from mleaktest import TESTS, Case, parse_folded

TRACE = os.path.join(TESTS, "golden", "v1.1-cxx.mlk")
# As the sample said of itself, and the C++ runtime's emergency pool.
OUTSTANDING = Sums(77994, 70)
ALLOCATED = Sums(589744, 4670)


class FormatsTest(Case):
    def export(self, name, *args):
        """Write the report in format @name to a file; returns its path."""
        path = self.path("report." + name)
        with open(path, "wb") as out:
            result = self.mleak("report", "--format=" + name, *args, TRACE, stdout=out)
        self.assertEqual((result.status, result.err), (0, ""))
        return path

    def check(self, name):
        sums = READERS[name](self.export(name))
        self.assertEqual(sums.bytes, OUTSTANDING.bytes)
        self.assertIn(sums.blocks, (None, OUTSTANDING.blocks))

    def test_tree(self):
        self.check("tree")

    def test_flat(self):
        self.check("flat")

    def test_folded_and_its_synonym(self):
        self.check("folded")
        with open(self.path("report.folded"), encoding="utf-8") as file:
            self.assertEqual(file.read(), self.report(TRACE, "--folded"))

    def test_json(self):
        self.check("json")

    def test_csv_by_rfc_4180(self):
        self.check("csv")
        with open(self.path("report.csv"), "rb") as file:
            lines = file.read().split(b"\r\n")
        self.assertEqual(lines.pop(), b"")
        self.assertNotIn(b"\n", b"".join(lines))

    def test_pprof_is_read_by_pprof(self):
        self.check("pprof")
        values = formatstest.samples_of_pprof(self.path("report.pprof"))
        self.assertEqual(sum(v[1] for v in values), ALLOCATED.bytes)
        self.assertEqual(sum(v[0] for v in values), ALLOCATED.blocks)

    def test_heaptrack_is_read_by_heaptrack_print(self):
        self.check("heaptrack")
        out = formatstest.run("heaptrack_print", "-l", "1", "-f", self.path("report.heaptrack"))
        self.assertRegex(out, r"(?m)^calls to allocation functions: 4670 ")
        self.assertRegex(out, r"(?m)^1\.08K leaked over 23 calls from\n"
                              r"shop::place_order\(leak_sum&\)\n")
        with open(self.export("json"), encoding="utf-8") as file:
            peak = json.load(file)["totals"]["peak"]["bytes"]
        self.assertIn("peak heap memory consumption: %s\n" % formatstest.heaptrack_size(peak), out)

    def test_speedscope(self):
        self.check("speedscope")

    def test_html_shows_totals_and_the_top_leak_in_chromium(self):
        self.check("html")
        page = formatstest.page_in_chromium(self.path("report.html"), "view=flame")
        text = formatstest.text_of(page)
        self.assertIn("mleak: outstanding memory of ./cxx", text)
        seconds = re.search(r"\), ([\d.]+) s on ", self.report(TRACE).splitlines()[0])[1]
        self.assertIn("recorded for %s s; no events were lost" % seconds, " ".join(text.split()))
        self.assertRegex(text, r"76\.2 KiB in 70 blocks were not freed by the end of the recording, 93\.2 % of it by ")
        drawn = int(re.search(r'data-drawn="(\d+)"', page)[1])
        # each distinct path of the folded stacks is a rectangle; the comm is no frame here
        stacks = parse_folded(self.report(TRACE, "--folded"))
        paths = {tuple(s.frames[:n]) for s in stacks for n in range(1, len(s.frames) + 1)}
        self.assertEqual(drawn, len(paths) + 1)

    def test_html_is_searched_and_zoomed(self):
        path = self.export("html")
        page = formatstest.page_in_chromium(path, "search=place_order")
        self.assertIn("matched: 1,081 bytes", page)
        page = formatstest.page_in_chromium(path, "zoom=main")
        self.assertIn('data-focus="main"', page)
        self.assertIn("main: 5,290 bytes (6.78 %), 69 blocks", formatstest.text_of(page))

    def test_html_tells_of_stacks_that_it_has_no_room_for(self):
        with open(self.export("html"), encoding="utf-8") as file:
            page = file.read()
        self.assertRegex(page, r'"rest":\{\s*"stacks":0,')
        path = self.write("more.html", re.sub(r'("rest":\{\s*"stacks":)0,', r"\g<1>1234,", page).encode())
        self.assertIn("1,234 more stacks, the lightest, are in no view but in the sums",
                      formatstest.text_of(formatstest.page_in_chromium(path)))

    def test_html_asks_for_nothing_elsewhere(self):
        with open(self.export("html"), encoding="utf-8") as file:
            page = file.read()
        self.assertIn("default-src 'none'", page)
        # the viewer is only run in a frame, to which the same policy applies
        own = re.sub(r'(<script type="text/plain" id="speedscope">).*?(</script>)', r"\1\2", page,
                     flags=re.S).replace("http://www.w3.org/2000/svg", "").replace(
                          "https://www.speedscope.app/file-format-schema.json", "")
        self.assertNotRegex(own, r"(?i)src=|href=|url\(|https?:|import ")

    def test_top_holds_in_each_format(self):
        for name in FORMATS:
            if name in ("tree", "heaptrack"):
                continue  # these tell the totals of all, too
            with self.subTest(format=name):
                path = self.export(name, "-n", "1")
                if name == "json":
                    with open(path, encoding="utf-8") as file:
                        report = json.load(file)
                    self.assertEqual([s["outstanding"]["bytes"] for s in report["stacks"]], [72704])
                    self.assertEqual(report["left_out"], {"stacks": 3, "blocks": 69, "bytes": 5290})
                elif name == "html":
                    rows = formatstest.table_of(formatstest.page_in_chromium(path))
                    self.assertEqual(rows["shown"], (72704, 1))
                    self.assertEqual(rows["left out by top"], (5290, 69))
                else:
                    self.assertEqual(READERS[name](path).bytes, 72704)

    def test_the_same_report_is_the_same_bytes(self):
        for name in FORMATS:
            with open(self.export(name), "rb") as first:
                before = first.read()
            with self.subTest(format=name), open(self.export(name), "rb") as second:
                self.assertEqual(before, second.read())

    def test_names_that_are_not_demangled_are_those_that_cxxfilt_makes_the_others_of(self):
        def names(*args):
            with open(self.export("json", *args), encoding="utf-8") as file:
                return [frame["function"] for frame in json.load(file)["frames"]]
        mangled = names("--no-demangle")
        self.assertIn("_ZN4shop11place_orderER8leak_sum", mangled)
        self.assertEqual(formatstest.run("c++filt", "--", *mangled).splitlines(), names())

    def test_an_unknown_format_is_refused_with_the_names_of_all(self):
        result = self.mleak("report", "--format=xml", TRACE)
        self.assertEqual((result.status, result.out), (2, ""))
        self.assert_one_message(result.err, "xml")
        for name in FORMATS:
            self.assertIn(name, result.err)
