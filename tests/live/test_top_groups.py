"""The lists of threads and processes on the screen of `mleak top`, and a screen with many stacks: they
are held against what the program does, and counts."""

import re

from faulttest import FaultCase
from mleaktest import MLEAK, needs_bpf, number, wait_until
from screentest import Terminal

# Two threads; one holds few large blocks and the other many small ones, from one function each and
# from one that both call.
THREADS = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
#define FRAME __attribute__((noipa))
static void *volatile last;
FRAME void of_large(void) { last = malloc(100003); }
FRAME void of_small(void) { last = malloc(47); }
FRAME void of_both(void) { last = malloc(1009); }
static void *large(void *arg)
{
	pthread_setname_np(pthread_self(), "large");
	for (volatile int i = 0; i < 23; i++)
		of_large();
	for (volatile int i = 0; i < 3; i++)
		of_both();
	for (;;)
		pause();
	return arg;
}
static void *small(void *arg)
{
	pthread_setname_np(pthread_self(), "small");
	for (volatile int i = 0; i < 211; i++)
		of_small();
	for (volatile int i = 0; i < 5; i++)
		of_both();
	for (;;) {
		usleep(10000);
		of_small();
	}
	return arg;
}
int main(void)
{
	pthread_t thread;
	pthread_create(&thread, NULL, large, NULL);
	usleep(300000);
	pthread_create(&thread, NULL, small, NULL);
	pause();
	return 0;
}
"""

# 60 functions, each of which allocates once, and each more than the one before.
MANY = "#include <stdlib.h>\n#include <unistd.h>\nstatic void *volatile last;\n" + "".join(
    "__attribute__((noipa)) void allocate_%d(void) { last = malloc(%d); }\n" % (i, 1000 + i) for i in range(60)) + \
    "int main(void) {%s for (;;) pause(); }\n" % "".join("allocate_%d();" % i for i in range(60))

# C++ of which the innermost frames are the library's.
LIBRARY = r"""
#include <map>
#include <string>
#include <unistd.h>
#include <vector>
static std::map<std::string, std::vector<std::string>> kept;
__attribute__((noipa)) void fill_the_map(int i)
{
	kept["a name that is too long for itself " + std::to_string(i)].push_back(std::string(99, 'x'));
}
int main()
{
	for (int i = 0; i < 97; i++)
		fill_the_map(i);
	for (;;)
		pause();
}
"""


@needs_bpf
class TopGroupsTest(FaultCase):
    def names(self, screen):
        return re.findall(r"(?m) [\d,]+  (\w+) \(\d+/\d+\)$", screen)

    def test_threads_are_sorted_and_lead_to_their_stacks(self):
        self.compile("threads", "-O1", "-pthread", source=THREADS)
        terminal = Terminal(self, MLEAK, "top", "200ms", "--", self.path("threads"))
        terminal.wait("of_small")
        terminal.type("t")
        seen = terminal.wait(r"^ *size\* +net/s +age +blocks +thread$")
        seen = terminal.wait(r"  small \(")
        self.assertEqual(self.names(seen), ["large", "small", "threads"])
        for key, title, first in (("n", "blocks", "small"), ("b", "size", "large"), ("r", "net/s", "small"),
                                  ("a", "age", "large")):
            terminal.type(key)
            # rates are known from the second table on
            seen = terminal.wait(r"^.* %s\* .*thread$\n.*  %s \(" % (re.escape(title), first))
            self.assertEqual(sorted(self.names(seen)), ["large", "small", "threads"])
        self.assertNotIn(" -  ", seen)
        terminal.type("b", "Enter")
        terminal.wait(r"^thread: large \(\d+/\d+\)  \(Esc: all\)")
        terminal.wait(r" 23 +[\d.]+ \w+  of_large")
        seen = terminal.wait(r" 3 +[\d.]+ \w+  of_both")
        self.assertNotIn("of_small", seen)
        self.assertNotIn("freed ", seen.splitlines()[3])
        terminal.type("n")
        terminal.wait(r"blocks\* ")
        terminal.type("Enter")
        seen = terminal.wait(r" in 23 blocks outstanding; 23 allocated, 0 freed")
        self.assertIn("of_large", seen)
        terminal.type("Enter", "t", "Enter")  # the first by blocks
        wait_until(lambda: "thread: large" not in terminal.screen() and "of_both" in terminal.screen(), "no others")
        terminal.type("Escape")
        terminal.wait(r"(?s)of_large.*of_small|of_small.*of_large")

    def test_what_stands_still_can_be_looked_into(self):
        self.compile("threads", "-O1", "-pthread", source=THREADS)
        terminal = Terminal(self, MLEAK, "top", "200ms", "--", self.path("threads"))
        terminal.wait("of_small")
        terminal.type("Space", "t", "n")
        seen = terminal.wait(r"blocks\* .*thread$\n.*small")
        blocks = number(re.search(r"(?m) ([\d,]+)  small", seen)[1])
        terminal.type("Enter")
        terminal.wait(r"^thread: small")
        seen = terminal.wait(r" 5 +[\d.]+ \w+  of_both")
        self.assertEqual(sum(map(number, re.findall(r" ([\d,]+) +[\d.]+ \w+  of_small", seen))), blocks - 5)

    def test_a_process_s_stacks(self):
        self.compile("threads", "-O1", "-pthread", source=THREADS)
        terminal = Terminal(self, MLEAK, "top", "200ms", "--", self.path("threads"))
        terminal.wait("of_small")
        terminal.type("p")
        terminal.wait(r"^ *size\* +net/s +age +blocks +process$\n.*threads \(\d+\)$")
        terminal.type("Enter")
        terminal.wait(r"^process: threads")
        terminal.wait(r" 3 .*of_both < large")
        terminal.wait(r" 5 .*of_both < small")

    def test_so_many_rows_as_wanted_and_as_fit(self):
        self.compile("many", source=MANY)
        for columns, args, shown in (120, ("-n", "5"), 5), (121, ("-n", "1"), 1), (122, ("-n", "99"), 25), \
                                    (123, (), 25):
            with self.subTest(args=args):
                terminal = Terminal(self, MLEAK, "top", *args, "200ms", "--", self.path("many"), columns=columns)
                terminal.wait("from 60 stacks")
                wanted = ["allocate_%d" % i for i in range(59, 59 - shown, -1)]
                wait_until(lambda: re.findall(r"allocate_\d+", terminal.screen()) == wanted, "not these rows")
                terminal.type("End")
                last = shown if "-n" in args and shown < 25 else 60
                terminal.wait(r"allocate_%d < main.*\n(\n)*.*q end" % (60 - last))
                terminal.type("q")
                terminal.status()

    def test_a_function_of_the_program_is_in_each_row(self):
        self.compile("library", "-O0", source=LIBRARY, compiler="g++")
        for columns in 40, 60, 80, 120, 200:
            with self.subTest(columns=columns):
                terminal = Terminal(self, MLEAK, "top", "200ms", "--", self.path("library"), columns=columns)
                terminal.wait(r"fill_the_m|map\(int\)")
                terminal.type("Space")
                rows = [row for row in terminal.wait(r"\[paused\]").splitlines()[4:-1] if row.strip()]
                self.assertGreaterEqual(len(rows), 3)
                own = [row for row in rows if re.search(r"fill_the_m|map\(int\)|main", row)]
                # but for what the library allocates before main
                self.assertGreaterEqual(len(own), len(rows) - 1, rows)
                if columns == 200:
                    self.assertTrue(any("  library.c:9" in row for row in rows), rows)
                terminal.type("q")
                terminal.status()


@needs_bpf
class TopPauseTest(FaultCase):
    def rate(self, screen):
        amount, unit = re.search(r"(?m)^outstanding .*, \+?(-?[\d.,]+) (\w+)/s$", screen).groups()
        return float(amount.replace(",", "")) * {"bytes": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20}[unit]

    def test_a_pause_shows_no_rate_of_a_moment(self):
        """The program leaks 100 blocks of 4,001 bytes a second; that of a few milliseconds is none, or many."""
        self.compile("steady", source=r"""
#include <stdlib.h>
#include <unistd.h>
static void *volatile last;
int main(void) { for (;;) { last = malloc(4001); usleep(10000); } }
""")
        terminal = Terminal(self, MLEAK, "top", "2s", "--", self.path("steady"))
        terminal.wait(r"main")
        terminal.wait(r" [4-9]\.\d s ")
        table = terminal.screen()
        wait_until(lambda: terminal.screen() != table, "there is no other table")
        true = self.rate(terminal.screen())
        for _ in range(3):
            terminal.type("Space")
            terminal.wait(r"\[paused\]")
            self.assertTrue(true / 2 < self.rate(terminal.screen()) < true * 2, (true, terminal.screen()))
            terminal.type("Space")
            wait_until(lambda: "[paused]" not in terminal.screen(), "it stands still")
            self.assertTrue(true / 2 < self.rate(terminal.screen()) < true * 2, (true, terminal.screen()))
        terminal.type("q")
        terminal.status()
