"""A page of --format=html draws resident memory: that which a program has touched, of what it was given."""

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


@either_backend
class PageRssTest(Case):
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
        # of a chosen process there is no such line: the samples are of all
        pid = re.search(r"\(pid (\d+)\)", page.data["title"])[1]
        self.assertEqual(pagetest.Page(self.report(trace, "--format=html", "--pid", pid)).rss(), [])
