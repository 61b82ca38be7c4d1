"""Programs that reserve a lot more than they use: what is reserved is what the kernel says of them."""

import json
import os
import re
import shutil
import subprocess
import unittest

from mleaktest import LONG, MLEAK_FAST, Case, needs_bpf, read_line, wait_until

MIB = 1 << 20

JAVA = r"""
public class Holds {
	static byte[][] kept = new byte[64][];
	public static void main(String[] args) throws Exception {
		for (int i = 0; i < kept.length; i++)
			kept[i] = new byte[1 << 20];
		System.out.println("ready " + ProcessHandle.current().pid());
		System.in.read();
	}
}
"""

GO = r"""
package main

// #include <stdlib.h>
import "C"
import "fmt"
import "os"

var kept [][]byte

func main() {
	C.free(C.malloc(47))
	for i := 0; i < 64; i++ {
		kept = append(kept, make([]byte, 1<<20))
	}
	fmt.Println("ready", os.Getpid())
	os.Stdin.Read(make([]byte, 1))
}
"""


def parse_mappings(smaps):
    """Start, end, permissions and resident bytes of each mapping."""
    pattern = r"(?m)^([0-9a-f]+)-([0-9a-f]+) (\S+) .*\n(?:\w+: .*\n)*?Rss: +(\d+) kB$"
    return [(int(start, 16), int(end, 16), perms, int(rss) << 10)
            for start, end, perms, rss in re.findall(pattern, smaps)]


@needs_bpf
class ReservedTest(Case):
    program = MLEAK_FAST

    def mapped(self, trace):
        """What the program reserved by itself: starts and ends."""
        said = re.findall(r" mmap (\d+) 0x([0-9a-f]+) reserved$", self.mleak("script", trace).out, re.M)
        return [(int(address, 16), int(address, 16) + int(size)) for size, address in said]

    def inaccessible(self, pid, ranges):
        """Bytes of the @ranges that the kernel lets process @pid not access, and that are not resident."""
        with open("/proc/%d/smaps" % pid) as smaps:
            mappings = parse_mappings(smaps.read())
        total = 0
        for start, end, perms, rss in mappings:
            inside = sorted((max(start, a), min(end, b)) for a, b in ranges if a < end and start < b)
            if perms != "---p" or not inside:
                continue
            for a, b in inside:
                total += max(b - max(a, start), 0)
                start = max(start, b)
            total -= rss
        return total

    def check(self, argv, least):
        trace = self.path("x.mlk")
        record = self.start_mleak("record", "-o", trace, "--", *argv, stdin=subprocess.PIPE)
        pid = int(read_line(record).split()[1])

        def sums():
            return json.loads(self.mleak("report", "--format=json", trace).out)["totals"]

        def agree():
            reserved, said = sums()["reserved"]["bytes"], self.inaccessible(pid, self.mapped(trace))
            # single pages were made inaccessible after they had been accessible: they may have memory
            return least <= reserved and abs(reserved - said) < MIB // 8

        wait_until(agree, "the sum of what is reserved")
        # 64 MiB are held, and all that is outstanding is far less than what is reserved
        self.assertGreater(sums()["outstanding"]["bytes"], 64 * MIB)
        self.assertLess(sums()["outstanding"]["bytes"], 512 * MIB)
        record.stdin.close()
        record.stdin = None
        self.assertEqual(self.finish(record).status, 0)

    @unittest.skipUnless(shutil.which("java") and shutil.which("javac"), "there is no java")
    def test_java(self):
        source = self.write("Holds.java", JAVA.encode())
        subprocess.run(["javac", "-d", self.dir, source], check=True, timeout=LONG, capture_output=True)
        self.check(["java", "-Xms128m", "-Xmx1g", "-XX:+UseSerialGC", "-cp", self.dir, "Holds"], 800 * MIB)

    @unittest.skipUnless(shutil.which("go"), "there is no go")
    def test_go_with_cgo(self):
        source, program = self.write("holds.go", GO.encode()), self.path("holds")
        subprocess.run(["go", "build", "-o", program, source], check=True, timeout=LONG, capture_output=True,
                       env=dict(os.environ, HOME=self.path("home"), GO111MODULE="off", CGO_ENABLED="1"))
        trace = self.path("x.mlk")
        record = self.start_mleak("record", "-o", trace, "--", program, stdin=subprocess.PIPE)
        read_line(record)
        record.stdin.close()
        record.stdin = None
        self.assertEqual(self.finish(record).status, 0)
        # Go's heap is not the program's: nothing of it is recorded
        totals = json.loads(self.mleak("report", "--format=json", trace).out)["totals"]
        self.assertEqual(totals["reserved"]["bytes"], 0)
        self.assertLess(totals["outstanding"]["bytes"], MIB)
