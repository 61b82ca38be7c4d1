"""Root that lacks CAP_SYS_PTRACE, as in a container: processes of other users are examined as these users."""

import os

from mleaktest import Case, needs_bpf, parse_totals, read_line, wait_until

NOBODY = 65534
DOCKER = ("chown,+dac_override,+fsetid,+fowner,+mknod,+net_raw,+setgid,+setuid,+setfcap,+setpcap,"
          "+net_bind_service,+sys_chroot,+kill,+audit_write")
BPF = ",+cap_38,+cap_39,+cap_21"  # CAP_PERFMON, CAP_BPF, and CAP_SYS_ADMIN for kernels before 6.6

TARGET = r"""
#include <stdio.h>
#include <stdlib.h>
static void *volatile kept[29], *volatile lost;
static __attribute__((noinline)) void lose(int nr)
{
	for (int i = 0; i < nr; i++)
		lost = malloc(47);
	lost = NULL;
}
int main(void)
{
	lose(23);
	for (int i = 0; i < 29; i++)
		kept[i] = malloc(101);
	puts("ready");
	fflush(stdout);
	while (getchar() > 0)
		lose(31);
	puts("done");
	fflush(stdout);
	return getchar() > 0;
}
"""


class ContainerCase(Case):
    def setUp(self):
        super().setUp()
        if os.geteuid():
            self.skipTest("only root becomes another user")
        self.write("target.c", TARGET.encode())
        built = self.finish(self.spawn(["gcc", "-O1", "-g", "-o", "target", "target.c"]))
        self.assertEqual(built.status, 0, built.err)
        os.chmod(self.dir, 0o755)
        self.target = self.spawn(["setpriv", "--reuid=%d" % NOBODY, "--regid=%d" % NOBODY, "--clear-groups",
                                  "./target"], stdin=-1)
        self.assertEqual(read_line(self.target), "ready")

    def start_contained(self, *args, caps=""):
        return self.spawn(["setpriv", "--inh-caps=-all", "--bounding-set=-all,+" + DOCKER + caps,
                           self.program, *args, "-p", str(self.target.pid)])

    def contained(self, *args, **options):
        return self.finish(self.start_contained(*args, **options))


class ContainerTest(ContainerCase):
    def test_pointers_are_read(self):
        result = self.contained("reach", "-o", self.path("x.mlk"))
        self.assertEqual(result.status, 0, result.err)
        self.assertRegex(result.out, r"\n +lost +23 blocks +1,288 bytes\n")  # 56 each, as glibc has it

    def test_what_takes_the_capability_is_told(self):
        result = self.contained("record", "--backend", "inject", "-o", self.path("x.mlk"))
        self.assertEqual(result.status, 125)
        self.assert_one_message(result.err, "may be examined only with CAP_SYS_PTRACE")
        result = self.contained("record", "-o", self.path("x.mlk"))
        self.assertEqual(result.status, 125)
        self.assert_one_message(result.err, "lacks CAP_BPF")
        self.assertFalse(os.path.exists(self.path("x.mlk")))


@needs_bpf
class ContainerProbesTest(ContainerCase):
    def test_with_the_capabilities_of_ebpf_it_is_recorded(self):
        mleak = self.start_contained("record", "-o", self.path("x.mlk"), caps=BPF)
        wait_until(lambda: os.path.exists(self.path("x.mlk")) or mleak.poll() is not None, "it does not attach")
        self.target.stdin.write(b"x\0")
        self.assertEqual(read_line(self.target), "done")
        self.target.stdin.close()
        self.target.stdin = None
        self.assertEqual(self.finish(mleak).status, 0)
        totals = parse_totals(self.report(self.path("x.mlk"), "--bytes"))
        self.assert_whole(totals)
        self.assertEqual(totals.outstanding, (31, 31 * 47))
