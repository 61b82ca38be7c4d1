"""What the recorder is to its target: before it in the queue, and never the cause of its end."""

import os
import time

from mleaktest import Case, needs_bpf

SLEEPS = r"""
#include <stdlib.h>
#include <unistd.h>
static void *volatile kept;
int main(void)
{
	for (;;) {
		kept = malloc(32);
		usleep(10000);
	}
}
"""


@needs_bpf
class Recorder(Case):
    def compile(self, name, code):
        source = self.write(name + ".c", code.encode())
        built = self.spawn(["cc", "-g", "-O0", "-o", self.path(name), source])
        self.assertEqual(self.finish(built).status, 0)
        return self.path(name)

    def wait_for(self, path):
        for _ in range(600):
            if os.path.exists(path):
                return
            time.sleep(0.05)
        self.fail("there is no %s" % path)

    def test_the_recorder_goes_before_who_fills_the_ring(self):
        target = self.spawn([self.compile("sleeps", SLEEPS)])
        trace = self.path("x.mlk")
        mleak = self.start_mleak("record", "-p", str(target.pid), "-o", trace)
        self.wait_for(trace)
        nice = None
        for _ in range(100):
            nice = os.getpriority(os.PRIO_PROCESS, mleak.pid)
            if nice:
                break
            time.sleep(0.05)
        self.assertLess(nice, os.getpriority(os.PRIO_PROCESS, target.pid))
