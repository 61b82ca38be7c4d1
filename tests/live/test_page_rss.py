"""A page of --format=html draws resident memory: that which a program has touched, of what it was given."""

import csv
import io
import json
import re
import subprocess

import pagetest
from backends import either_backend
from mleaktest import Case

BYTES = 64 << 20
# Half is touched after some seconds: each second has a sample.
SOURCE = """#include <stdlib.h>
#include <string.h>
#include <unistd.h>
char *volatile kept;
int main(void)
{
    kept = malloc(%d);
    usleep(2500000);
    memset(kept, 1, %d / 2);
    usleep(2500000);
    return 0;
}
""" % (BYTES, BYTES)


# What it takes is not of malloc; only at its end is there a block.
MAPPED = """#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(void)
{
    char *p = (char *)syscall(SYS_mmap, 0, %d, 3, 0x22, -1, 0L);
    for (int i = 0; i < 30; i++) {
        memset(p + (long)i * (%d / 30), 1, %d / 30);
        usleep(100000);
    }
    if (%d)
        for (volatile char *q = malloc(10); q; q = 0)
            *q = 1;
    return 0;
}
"""


@either_backend
class PageRssTest(Case):
    def of_mapped(self, ends_with_block):
        source = self.write("mapped.c", (MAPPED % (BYTES, BYTES, BYTES, ends_with_block)).encode())
        subprocess.run(["gcc", "-O0", "-o", self.path("mapped"), source], check=True)
        return self.record(self.path("mapped"))[0]

    def test_what_is_not_malloc_is_told(self):
        trace = self.of_mapped(False)
        head = self.report(trace)
        what, why = re.search(r"\n  RSS +(grew by .*):\n    (.*)\n", head).groups()
        data = pagetest.Page(self.report(trace, "--format=html")).data
        self.assertEqual((data["memory_answer"], data["memory_reason"]), (what, why))
        grown = int(re.search(r"grew by ([\d,]+) bytes", what)[1].replace(",", ""))
        self.assertAlmostEqual(grown, BYTES, delta=BYTES // 3)  # the first sample may be late

    def test_a_timeline_of_what_is_not_malloc_has_its_slices(self):
        for ends_with_block in False, True:
            trace = self.of_mapped(ends_with_block)
            rows = list(csv.DictReader(io.StringIO(self.report(trace, "--timeline", "--format=csv"))))
            self.assertGreaterEqual(len(rows), 16)
            resident = [int(row["rss_bytes"]) for row in rows if row["rss_bytes"]]
            self.assertEqual(resident, sorted(resident))
            self.assertGreaterEqual(len(set(resident)), 3)
            self.assertGreater(resident[-1] - resident[0], BYTES // 2)

    def test_resident_memory_is_what_was_touched(self):
        source = self.write("touch.c", SOURCE.encode())
        subprocess.run(["gcc", "-O1", "-o", self.path("touch"), source], check=True)
        trace, _ = self.record(self.path("touch"))
        page = pagetest.Page(self.report(trace, "--format=html"))
        points = [(us, rss) for us, rss in zip(page.data["until"], page.rss()) if rss is not None]
        early = max(rss for us, rss in points if us < 2000000)
        late = max(rss for _, rss in points)
        self.assertLess(abs(late - early - BYTES // 2), 2 << 20)
        # all of it is outstanding all the time
        self.assertGreaterEqual(min(bytes for bytes, _ in page.total()[len(page.data["until"]) // 10:]), BYTES)
        # in the last slice it ended: there is what was before
        self.assertIsNotNone(page.rss()[-1])
        # of a chosen process it is that one's
        pid = re.search(r"\(pid (\d+)\)", page.data["title"])[1]
        self.assertEqual(pagetest.Page(self.report(trace, "--format=html", "--pid", pid)).rss(), page.rss())

    def test_of_a_chosen_process_it_is_its_own(self):
        """A child that touches 32 MiB, and then its parent that touches nothing: after the child's end there
        is no line of it."""
        source = self.write("touch.c", SOURCE.encode())
        subprocess.run(["gcc", "-O1", "-o", self.path("touch"), source], check=True)
        trace, _ = self.record("sh", "-c", "%s; sleep 2; :" % self.path("touch"), options=["--follow"])
        page = pagetest.Page(self.report(trace, "--format=html"))
        pids = {int(group["pid"]) for group in json.loads(
            self.report(trace, "--timeline", "--format=json"))["memory_samples"]}
        parent = int(re.search(r"\(pid (\d+)\)", page.data["title"])[1])
        children = [pid for pid in pids - {parent}
                    if max(filter(None, pagetest.Page(self.report(trace, "--format=html", "--pid", str(pid))).rss()),
                           default=0) > BYTES // 2]
        self.assertEqual(len(children), 1)
        rss = pagetest.Page(self.report(trace, "--format=html", "--pid", str(children[0]))).rss()
        self.assertIsNone(rss[-1])
        of_parent = pagetest.Page(self.report(trace, "--format=html", "--pid", str(parent))).rss()
        self.assertLess(max(filter(None, of_parent)), BYTES // 4)
        self.assertIsNotNone(of_parent[-1])
