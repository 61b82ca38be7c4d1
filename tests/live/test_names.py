"""Names in the report: fetched over the network only when asked for, inlined functions, warnings."""

import http.server
import json
import os
import re
import shutil
import subprocess
import threading

from backends import both_backends, either_backend
from mleaktest import Case, parse_folded

SOURCE = b"""#include <stdlib.h>
void *volatile kept;
static inline __attribute__((always_inline)) void fill(int n) { kept = malloc(n * 13); }
static inline __attribute__((always_inline)) void serve(int n)
{
	fill(n);
	__asm__ volatile("");
}
__attribute__((noinline, noipa)) void work(int n)
{
	serve(n);
	__asm__ volatile("");
}
int main(int argc, char **argv)
{
	for (int i = 0; i < 7; i++)
		work(argc);
	return !argv;
}
"""


class Server:
    """Debug files over HTTP on the loopback, as /buildid/ID/debuginfo; keeps what was asked for."""

    def __init__(self, files):
        self.asked = asked = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                asked.append(self.path)
                match = re.fullmatch("/buildid/([0-9a-f]+)/debuginfo", self.path)
                path = match and files.get(match[1])
                self.send_response(200 if path else 404)
                body = b""
                if path:
                    with open(path, "rb") as file:
                        body = file.read()
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = "http://127.0.0.1:%d/" % self.http.server_address[1]
        self.thread = threading.Thread(target=self.http.serve_forever)
        self.thread.start()

    def stop(self):
        self.http.shutdown()
        self.thread.join()
        self.http.server_close()


class NamesTest(Case):
    def build(self, *flags, source=SOURCE):
        self.write("program.c", source)
        subprocess.run(["gcc", "-O2", "-g", *flags, "-o", "program", "program.c"], cwd=self.dir,
                       check=True)
        return self.path("program")

    def split_debug(self):
        """Strip the program; its debug file, to which nothing leads."""
        run = lambda *command: subprocess.run(command, cwd=self.dir, check=True)
        run("objcopy", "--only-keep-debug", "program", "hidden.debug")
        run("strip", "program")
        return self.path("hidden.debug")

    def build_id(self):
        notes = subprocess.run(["readelf", "-n", self.path("program")], stdout=subprocess.PIPE,
                               text=True, check=True).stdout
        return re.search("Build ID: ([0-9a-f]+)", notes)[1]

    def environment(self, **more):
        known = {k: v for k, v in os.environ.items() if not k.startswith("DEBUGINFOD")}
        return {**known, "DEBUGINFOD_CACHE_PATH": self.path("cache"), **more}

    def serve(self, files):
        server = Server(files)
        self.addCleanup(server.stop)
        return server


@either_backend
class DebuginfodTest(NamesTest):
    def setUp(self):
        super().setUp()
        self.build()
        debug = self.split_debug()
        self.server = self.serve({self.build_id(): debug})
        self.trace, _ = self.record(self.path("program"))
        self.env = self.environment(DEBUGINFOD_URLS=self.server.url)

    def report_with(self, *options):
        return self.mleak("report", *options, self.trace, env=self.env)

    def test_without_the_option_no_server_is_asked(self):
        result = self.report_with()
        self.assertEqual((result.status, result.err), (0, ""))
        self.assertNotIn("work", result.out)
        self.assertEqual(self.server.asked, [])
        self.assertFalse(os.path.exists(self.path("cache")))

    def test_with_it_the_missing_file_is_fetched_once(self):
        for _ in range(2):
            result = self.report_with("--debuginfod")
            self.assertEqual((result.status, result.err), (0, ""))
            self.assertRegex(result.out, r" work  \S*program\.c:11\n")
            wanted = "/buildid/%s/debuginfo" % self.build_id()
            self.assertEqual(self.server.asked.count(wanted), 1)

    def test_a_server_without_the_file_changes_nothing(self):
        plain = self.report_with()
        self.env = self.environment(DEBUGINFOD_URLS=self.serve({}).url)
        result = self.report_with("--debuginfod")
        self.assertEqual((result.status, result.err, result.out), (0, "", plain.out))

    def test_a_server_that_gives_another_file_is_not_believed(self):
        plain = self.report_with()
        subprocess.run(["gcc", "-O1", "-g", "-o", "other", "program.c"], cwd=self.dir, check=True)
        server = self.serve({self.build_id(): self.path("other")})
        self.env = self.environment(DEBUGINFOD_URLS=server.url)
        result = self.report_with("--debuginfod")
        self.assertEqual((result.status, result.out), (0, plain.out))

    def test_no_servers_named(self):
        self.env = self.environment()
        result = self.report_with("--debuginfod")
        self.assertEqual((result.status, result.out), (2, ""))
        self.assert_one_message(result.err, naming="DEBUGINFOD_URLS")


@both_backends
class InlineTest(NamesTest):
    def test_inlined_functions_are_shown_when_asked_for(self):
        self.build()
        trace, _ = self.record(self.path("program"))
        out = self.report(trace, "--inline")
        places = re.findall(r"  (\S+(?: \(inlined\))?)  \S*program\.c:(\d+)$", out, re.M)
        self.assertEqual(places, [("main", "17"), ("work", "11"), ("serve (inlined)", "6"),
                                  ("fill (inlined)", "3")])
        stack, = [s for s in parse_folded(self.report(trace, "--inline", "--folded"))
                  if "work" in s.frames]
        self.assertEqual(stack.frames[-3:], ["work", "serve (inlined)", "fill (inlined)"])
        for args in ["report"], ["diff", trace]:
            result = self.mleak(*args, "--inline", "--format=csv", trace)
            self.assertIn(";work;serve (inlined);fill (inlined)\"", result.out)
        self.assertIn(";work;serve (inlined);fill (inlined) ",
                      self.mleak("diff", "--inline", "--folded", trace, trace).out)
        self.assertNotIn("inlined", self.report(trace))

    def test_a_frame_of_two_stacks_has_its_inlined_functions_in_both(self):
        self.build(source=SOURCE.replace(b"\treturn !argv", b"\twork(argc);\n\treturn !argv"))
        trace, _ = self.record(self.path("program"))
        document = json.loads(self.report(trace, "--inline", "--format=json"))
        frames = [(f["function"], f.get("line"), f.get("inlined", False)) for f in document["frames"]]
        paths = [[frames[i] for i in stack["frames"]] for stack in document["stacks"]]
        inner = [("fill", 3, True), ("serve", 6, True), ("work", 11, False)]
        mains = [next(f for f in path if f[0] == "main") for path in paths if path[:3] == inner]
        self.assertEqual(sorted(mains), [("main", 17, False), ("main", 18, False)])


@either_backend
class NotesTest(NamesTest):
    def test_a_module_whose_debug_information_cannot_be_read_is_named_once(self):
        program = self.build("-rdynamic")
        subprocess.run(["objcopy", "--compress-debug-sections=zstd", program], check=True)
        with open(program, "rb") as file:
            data = file.read()
        # ELFCOMPRESS_ZSTD, in the header of a section, becomes a kind that nobody knows
        self.write("program", re.sub(rb"\x02\0{7}(?=[^\0].{2}\0{5}\x01\0{7}\x28\xb5\x2f\xfd)",
                                     b"\x77" + bytes(7), data, flags=re.S), mode=0o755)
        self.assertIn(b"\x77" + bytes(7), open(program, "rb").read())
        trace, _ = self.record(program)
        result = self.mleak("report", trace)
        self.assertEqual(result.status, 0)
        self.assert_one_message(result.err, naming="program' are missing: its debug information")
        self.assertRegex(result.out, r" work\n")

    def check_compressed(self, kind, *embeds):
        program = self.build()
        subprocess.run(["objcopy", "--compress-debug-sections=" + kind, program], check=True)
        for embed in embeds:
            trace, _ = self.record(program, options=("--embed", embed))
            if embed == "debug":
                shutil.move(program, self.path("away"))
            self.assertRegex(self.report(trace), r" work  \S*program\.c:11\n", embed)

    def test_debug_information_compressed_by_zstd_is_read(self):
        self.check_compressed("zstd", "symbols", "debug")

    def test_debug_information_compressed_by_zlib_is_read_of_a_program_that_the_trace_lacks(self):
        self.check_compressed("zlib", "none")

    def test_debug_information_compressed_by_zlib_in_the_older_form_is_kept_in_the_trace(self):
        self.check_compressed("zlib-gnu", "debug")
