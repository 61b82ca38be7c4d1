"""Blocks that are written beyond their bounds: `mleak record --guard`."""

import json
import os
import re
import subprocess
import unittest

from mleaktest import MLEAK_FAST, ROOT, needs_bpf, parse_totals
from test_preload import PreloadCase

KINDS = ["beyond", "before", "string", "thread", "growing", "aligned"]
ALLOCATORS = ["libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2.0"]

# What the allocator's functions promise.  "all right", or the line that does not hold.
PROMISES = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#define CHECK(x) do { if (!(x)) { printf("line %d: %s\n", __LINE__, #x); exit(3); } } while (0)
extern void *__libc_malloc(size_t);
static volatile size_t zero, most = SIZE_MAX;

static void sizes(void)
{
	for (size_t n = 0; n < 3000; n = n * 5 / 4 + 1) {
		unsigned char *p = malloc(n), *q;
		CHECK(p && !((uintptr_t)p & 15) && malloc_usable_size(p) == n);
		memset(p, 0xee, n);
		free(p);
		q = calloc(n, 3);
		CHECK(q && malloc_usable_size(q) == 3 * n);
		for (size_t i = 0; i < 3 * n; i++)
			CHECK(!q[i]);
		memset(q, 0x77, 3 * n);
		free(q);
	}
}

static void *aligned(int how, size_t align, size_t n)
{
	void *p = NULL;
	if (how == 0)
		CHECK(!posix_memalign(&p, align, n));
	else
		p = how == 1 ? aligned_alloc(align, n) : memalign(align, n);
	CHECK(p && !((uintptr_t)p & (align - 1)) && malloc_usable_size(p) == n);
	memset(p, 'a', n);
	return p;
}

static void alignments(void)
{
	for (size_t align = 8; align <= 2 << 20; align *= 2)
		for (size_t n = 1; n < 600; n = n * 3 + 1)
			for (int how = 0; how < 3; how++) {
				unsigned char *p = realloc(aligned(how, align, n), n + 4001);
				CHECK(p && malloc_usable_size(p) == n + 4001);
				for (size_t i = 0; i < n; i++)
					CHECK(p[i] == 'a');
				memset(p, 'b', n + 4001);
				p = realloc(p, 1);
				CHECK(*p == 'b');
				free(p);
			}
	void *v = valloc(10), *w = pvalloc(10), *none = (void *)1;
	CHECK(!((uintptr_t)v & 4095) && !((uintptr_t)w & 4095) && malloc_usable_size(w) == 4096);
	memset(v, 1, 10);
	memset(w, 1, 4096);
	free(v);
	free(w);
	/* more than a head holds: it may be had, or not */
	if (!posix_memalign(&none, 1ull << 32, 10))
		free(realloc(none, 5000));
	CHECK(posix_memalign(&none, 3, 10) == EINVAL && posix_memalign(&none, 64, most / 2) == ENOMEM);
}

static void reallocs(void)
{
	unsigned char *p = NULL;
	for (size_t n = 1; n < 400000; n = n * 3 / 2 + 1) {
		size_t had = malloc_usable_size(p);
		p = realloc(p, n);
		CHECK(p && malloc_usable_size(p) == n);
		for (size_t i = 0; i < had && i < n; i++)
			CHECK(p[i] == (unsigned char)i);
		for (size_t i = 0; i < n; i++)
			p[i] = (unsigned char)i;
	}
	errno = 0;
	CHECK(!realloc(p, most / 2) && errno == ENOMEM && p[5] == 5);
	CHECK(!reallocarray(p, most / 2, 5) && p[5] == 5);
	p = realloc(p, 7);
	CHECK(p[6] == 6 && malloc_usable_size(p) == 7);
	CHECK(!realloc(p, zero));
	CHECK(!malloc(most) && !calloc(most, 2) && !calloc(2, most / 2 + 2));
}

/* Given out by another way. */
static void foreign(void)
{
	char *p = __libc_malloc(100), *line = NULL, *text;
	size_t room = 0;
	FILE *f = fopen("/proc/self/maps", "r");
	memset(p, 'f', 100);
	CHECK(malloc_usable_size(p) >= 100);
	p = realloc(p, 1000);
	CHECK(p[99] == 'f');
	memset(p, 'g', 1000);
	p = realloc(p, 10000);
	CHECK(p[999] == 'g');
	free(p);
	free(__libc_malloc(5));
	while (getline(&line, &room, f) > 0)
		;
	free(line);
	fclose(f);
	CHECK(asprintf(&text, "%d %s", 5, "words") > 0);
	free(text);
	free(strdup("x"));
	free(realpath("/proc/self/exe", NULL));
}

static void *passed[4][64];
static pthread_barrier_t barrier;

static void *pass(void *arg)
{
	long me = (long)arg;
	for (int round = 0; round < 200; round++) {
		for (int i = 0; i < 64; i++) {
			size_t n = (size_t)(round * 7 + i * 13 + me) % 900;
			passed[me][i] = i & 1 ? malloc(n) : aligned_alloc(64, n);
			memset(passed[me][i], (int)me, n);
		}
		pthread_barrier_wait(&barrier);
		for (int i = 0; i < 64; i++)
			free(i & 2 ? passed[(me + 1) % 4][i] : realloc(passed[(me + 1) % 4][i], 77));
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

static void threads(void)
{
	pthread_t t[4];
	pthread_barrier_init(&barrier, NULL, 4);
	for (long i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, pass, (void *)i);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
}

static void children(void)
{
	char *p = malloc(1000), *q = aligned_alloc(128, 100);
	int status;
	if (!fork()) {
		CHECK(malloc_usable_size(p) == 1000);
		free(p);
		free(realloc(q, 5000));
		sizes();
		alignments();
		exit(7);
	}
	wait(&status);
	CHECK(WEXITSTATUS(status) == 7);
	if (!vfork())
		_exit(9);
	wait(&status);
	CHECK(WEXITSTATUS(status) == 9);
	free(p);
	free(q);
}

int main(void)
{
	sizes();
	alignments();
	reallocs();
	foreign();
	threads();
	children();
	puts("all right");
	return 0;
}
"""

# A block of 47 bytes is overrun and lives, while other threads are in the allocator.
ENDS = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
static void *churn(void *arg)
{
	void *v[64] = {0};
	unsigned s = (unsigned)(long)arg;
	for (;;) {
		unsigned i = rand_r(&s) % 64;
		if (rand_r(&s) & 1) {
			free(v[i]);
			v[i] = rand_r(&s) & 1 ? malloc(rand_r(&s) % 200000) : aligned_alloc(64, 100);
		} else {
			v[i] = realloc(v[i], rand_r(&s) % 200000 + 1);
		}
	}
	return arg;
}
int main(int argc, char **argv)
{
	pthread_t t;
	char *volatile p = malloc(47);
	p[48] = 'x';
	for (long i = 1; i < 5; i++)
		pthread_create(&t, NULL, churn, (void *)i);
	usleep(10000);
	if (argv[1][0] == 'r')
		return 5;
	if (argv[1][0] == 'c') {
		execv("/nonexistent", argv);
		execl("/bin/sh", "sh", "-c", "exit 5", NULL);
	}
	_exit(5);
}
"""

NEIGHBOURS = r"""
#include <stdlib.h>
#define FRAME __attribute__((noinline, noipa))
static char *p[5];
static FRAME void first(void) { p[0] = malloc(101); }
static FRAME void second(void) { p[1] = malloc(103); }
static FRAME void third(void) { p[2] = malloc(107); }
static FRAME void last(void) { free(p[1]); }
int main(void)
{
	free(malloc(5));
	first();
	second();
	third();
	((char *volatile)p[1])[103] = 0;
	last();
	return 0;
}
"""

# Each of 4 threads overruns 251 blocks by 3 bytes; one of them, aligned ones from below.
MANY = r"""
#include <pthread.h>
#include <stdlib.h>
static void *run(void *arg)
{
	for (int i = 0; i < 251; i++) {
		char *volatile p = arg ? malloc(41 + i) : aligned_alloc(128, 41 + i);
		long at = arg ? 41 + i : -16;
		p[at] = p[at + 1] = p[at + 2] = 'y';
		if (i % 2)
			free(p);
		else
			free(realloc(p, 9000));
	}
	return arg;
}
int main(void)
{
	pthread_t t[4];
	for (long i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, run, (void *)i);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	return 0;
}
"""

# What lies behind a block is copied to behind another.
COPIED = r"""
#include <stdlib.h>
#include <string.h>
int main(void)
{
	char *p = malloc(47), *q = malloc(47);
	memset(p, 'p', 47);
	memcpy(q, p, 47 + 8);
	free(p);
	free(q);
	return 0;
}
"""

# The bookkeeping of ours before a block is overwritten, too.
DEEP = r"""
#include <stdlib.h>
#include <string.h>
int main(void)
{
	char *p = malloc(47), *q = aligned_alloc(64, 53), *r = malloc(59);
	memset(p, 'p', 47);
	memset(p - 24, 'x', 24);
	memset(q - 30, 'x', 30);
	memset(r - 17, 'x', 17);
	p = realloc(p, 9001);
	for (int i = 0; i < 47; i++)
		if (p[i] != 'p')
			return 1;
	free(p);
	free(q);
	free(r);
	return 0;
}
"""

# Operators new and delete of each form, and blocks that go back by another way than they came.
OPERATORS = r"""
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <malloc.h>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>
struct alignas(64) Aligned { char c[200]; };
struct alignas(4096) Page { char c[5000]; };
static int handled;
static void *reserve;
template <class T> static T *use(T *p, size_t n)
{
	asm volatile("" : : "r"(p) : "memory");
	if (p)
		memset((void *)p, 'u', n);
	return p;
}
template <class T> static T *made(T *p) { return use(p, sizeof(T)); }
template <class T> static void ways()
{
	delete made(new T);
	delete made(new (std::nothrow) T);
	delete[] use(new T[3], 3 * sizeof(T));
	delete[] use(new (std::nothrow) T[3], 3 * sizeof(T));
}
static void handler()
{
	handled++;
	free(use((char *)malloc(1000), 1000));
	free(reserve);
	reserve = nullptr;
	std::set_new_handler(nullptr);
}
static void work()
{
	std::align_val_t big = (std::align_val_t)256;
	for (int i = 0; i < 1000; i++) {
		ways<char>();
		ways<Aligned>();
		ways<Page>();
		size_t n = (size_t)i * 7;
		operator delete(use(operator new(n), n));
		operator delete(use(operator new(n), n), n);
		operator delete(use(operator new(n), n), std::nothrow);
		operator delete[](use(operator new[](n), n), n);
		operator delete(use(operator new(n, big), n), big);
		operator delete(use(operator new(n, big), n), n, big);
		operator delete[](use(operator new[](n, big, std::nothrow), n), big, std::nothrow);
		operator delete[](use(operator new[](n, big), n), n, big);
		// wrong, and common
		free(use(operator new(n), n));
		operator delete(use(malloc(n), n));
		free(realloc(use(operator new(n), n), n + 999));
		if (malloc_usable_size(use(operator new(n), n)) < n)
			abort();
		std::vector<std::string> v(30, std::string(100, 'v'));
		std::make_shared<std::vector<Aligned>>(3);
	}
}
int main(int argc, char **)
{
	std::thread t(work);
	work();
	t.join();
	for (int i = 0; argc > 1 && i < 3; i++) {
		reserve = malloc(100);
		std::set_new_handler(handler);
		try {
			use((char *)operator new((size_t)1 << 60), 1);
		} catch (std::bad_alloc &) {
			work();
		}
	}
	printf("handled: %d\n", handled);
	return 0;
}
"""

# Each operator's block is overrun by as many bytes as its line says.
BEYOND = r"""
#include <cstring>
#include <new>
struct alignas(64) Aligned { char c[192]; };
static void *volatile p;
static void over(size_t size, size_t by) { memset((char *)p, 1, size + by); }
int main()
{
	p = operator new(100); over(100, 1); operator delete(p);
	p = operator new[](101); over(101, 2); operator delete[](p, (size_t)101);
	p = new Aligned; over(192, 3); delete (Aligned *)p;
	p = new (std::nothrow) char[103]; over(103, 4); delete[] (char *)p;
	p = operator new(104); over(104, 5);
	return 0;
}
"""


class GuardCase(PreloadCase):
    program = MLEAK_FAST
    options = ("--guard",)

    def overruns(self, trace):
        found = json.loads(self.report(trace, "--format=json"))["overruns"]
        self.assertTrue(found["guarded"])
        return found

    def record_sample(self, *kinds, **how):
        """The trace, and (found, size, offset, length, path) of each line that the sample prints."""
        trace, out = self.record(self.sample("overrun"), *kinds, **how)
        lines = re.findall(r"^overrun: found=(\S+) size=(\d+) offset=(-?\d+) len=(\d+) path=(\S+)$",
                           out, re.M)
        self.assertEqual(len(lines), len(out.splitlines()))
        return trace, sorted((found, *map(int, numbers), path.split(";"))
                             for found, *numbers, path in lines)

    def said(self, trace):
        """The same, as the report says it; paths from main, or the thread's first function."""
        result = []
        for site in self.overruns(trace)["first_sites"]:
            self.assertEqual(site["blocks"], 1)
            self.assertEqual(site["changed"], site["length"])
            self.assertEqual(site["block"]["size"], site["size"])
            frames = [frame["function"] for frame in site["block"]["frames"]]
            until = frames.index("main" if "main" in frames else "in_thread")
            behind = site["side"] == "behind"
            offset = site["size"] + site["distance"] if behind else -site["distance"]
            result.append((site["found"]["at"], site["size"], offset, site["length"],
                           frames[until::-1]))
        return sorted(result)


class GuardTest(GuardCase):
    def test_what_the_sample_overruns_is_found_and_nothing_else(self):
        trace, truth = self.record_sample()
        self.assertEqual(len(truth), 10)
        self.assertEqual(self.said(trace), truth)
        sites = self.overruns(trace)
        self.assertEqual(sites["found"], 10)
        for site in sites["first_sites"]:
            self.assertEqual(site["bytes"], "00" if site["size"] == 61 else "78" * site["length"])
            frames = [frame["function"] for frame in site["found"]["frames"]]
            if site["found"]["at"] != "exit":
                self.assertEqual(frames[0], site["block"]["frames"][site["size"] not in (73, 83, 89)]
                                 ["function"])
            self.assertNotIn("libmleak", json.dumps(site["found"]["frames"]))

    def test_the_recorder_says_how_many_it_found(self):
        for kinds, said in ((["beyond", "before"], "2 overruns of blocks were found; the report shows them"),
                            (["beyond"], "1 overrun of a block was found; the report shows it"),
                            (["nothing"], None)):
            result = self.mleak("record", "--guard", "-o", self.path("x.mlk"), "--",
                                self.sample("overrun"), *kinds, **self.as_user)
            self.assertEqual(re.findall(r"\d+ overruns? .*", result.err), [said] if said else [])

    def test_the_text_tells_of_each(self):
        trace, truth = self.record_sample("beyond", "before")
        text = self.report(trace)
        self.assertIn("OVERRUNS: 2 found", text.split("\n\n")[0])
        tail = text[text.rindex("OVERRUNS: 2 found"):]
        self.assertRegex(tail, r"7 bytes were written behind a block of 47 bytes, from offset 47\n"
                         r" +offset +47:  78 78 78 78 78 78 78 +xxxxxxx\n  the block: 0x[0-9a-f]+, "
                         r"47 bytes, allocated at [^\n]*\n +make .*\n +beyond .*\n +main ")
        self.assertRegex(tail, r"1 byte was written before a block of 53 bytes, from offset -1\n")
        self.assertRegex(tail, r"found when thread \d+ \(overrun\) freed it, at .*, by\n +beyond ")

    def test_address_sanitizer_says_the_same(self):
        program = self.path("asan")
        subprocess.run(["gcc", "-g", "-O1", "-pthread", "-fsanitize=address", "-fno-builtin", "-o",
                        program, os.path.join(ROOT, "samples", "overrun.c")], check=True)
        trace, _ = self.record_sample()
        sites = {(s["size"], s["side"]): s for s in self.overruns(trace)["first_sites"]}
        for kind in KINDS:
            with self.subTest(kind):
                run = self.finish(self.spawn([program, kind],
                                             env=dict(os.environ, ASAN_OPTIONS="detect_leaks=0")))
                where = re.search(r"is located (\d+) bytes? (to the left|to the right|before|after)"
                                  r"(?: of)? (\d+)-byte region", run.err)
                stack = re.search(r"allocated by .*\n((?: +#\d+ .*\n)+)", run.err)
                functions = re.findall(r" in (?!__interceptor_)(\w+) .*overrun\.c", stack[1])
                side = "before" if where[2] in ("to the left", "before") else "behind"
                site = sites[int(where[3]), side]
                self.assertEqual(site["distance"], int(where[1]))
                self.assertEqual([f["function"] for f in site["block"]["frames"]][:len(functions)],
                                 functions)

    def test_blocks_are_as_the_functions_promise(self):
        program = self.compile("promises", PROMISES, "-w")
        trace, out = self.record(program)
        self.assertEqual(out, "all right\n")
        text = self.report(trace)
        self.assertIn("no overruns: the bytes around each block were watched", text)
        self.assertEqual(parse_totals(text).lost, 0)

    def test_allocators_that_are_libraries(self):
        tried = 0
        for library in ALLOCATORS:
            path = os.path.join("/usr/lib/x86_64-linux-gnu", library)
            if not os.path.exists(path):
                continue
            tried += 1
            with self.subTest(library):
                trace, truth = self.record_sample(env=dict(os.environ, LD_PRELOAD=path))
                self.assertEqual(self.said(trace), truth)
        self.assertGreater(tried, 0)

    def each_allocator(self, name, source):
        """A C++ program of @source, linked with each allocator: libstdc++'s operators call the C
        library's, the others have operators of their own."""
        paths = [os.path.join("/usr/lib/x86_64-linux-gnu", library) for library in ALLOCATORS]
        for path in [None, *filter(os.path.exists, paths)]:
            with self.subTest(path):
                flags = ["-Wl,--no-as-needed", path] if path else []
                yield path, self.compile(name, source, "-std=c++17", "-w", *flags, compiler="g++")

    def test_operators_of_an_allocator(self):
        for path, program in self.each_allocator("operators", OPERATORS):
            # mimalloc aborts where memory is short, and calls no handler without end
            throws = [] if path and "mimalloc" in path else ["throw"]
            trace, out = self.record(program, *throws)
            self.assertEqual(out, "handled: %d\n" % (3 if throws else 0))
            text = self.report(trace)
            self.assertIn("no overruns: ", text)
            self.assertEqual(parse_totals(text).lost, 0)
            self.assertNotIn("unknown frees", text)

    def test_blocks_of_operators_are_watched(self):
        for _, program in self.each_allocator("beyond", BEYOND):
            trace, _ = self.record(program)
            self.assertEqual(sorted((s["size"], s["distance"], s["length"], s["found"]["at"])
                                    for s in self.overruns(trace)["first_sites"]),
                             [(100, 0, 1, "free"), (101, 0, 2, "free"), (103, 0, 4, "free"),
                              (104, 0, 5, "exit"), (192, 0, 3, "free")])

    def test_blocks_that_live_at_the_end(self):
        program = self.compile("ends", ENDS)
        for how, found in (("return", "exit"), ("_exit", "exit"), ("called", "exec")):
            with self.subTest(how):
                trace = self.path("x.mlk")
                result = self.mleak("record", "--guard", "-o", trace, "--", program, how,
                                    **self.as_user)
                self.assertEqual(result.status, 5, result.err)
                sites = self.overruns(trace)["first_sites"]
                self.assertEqual([(s["found"]["at"], s["size"], s["distance"]) for s in sites],
                                 [(found, 47, 1)])

    def test_neighbours(self):
        trace, _ = self.record(self.compile("neighbours", NEIGHBOURS))
        site, = self.overruns(trace)["first_sites"]
        self.assertEqual([(site[k]["size"], site[k]["frames"][0]["function"])
                          for k in ("before", "block", "after")],
                         [(101, "first"), (103, "second"), (107, "third")])
        self.assertEqual(site["found"]["frames"][0]["function"], "last")

    def test_many_in_several_threads(self):
        trace, _ = self.record(self.compile("many", MANY))
        found = self.overruns(trace)
        self.assertEqual(found["found"], 4 * 251)
        self.assertEqual(parse_totals(self.report(trace)).lost, 0)
        self.assertEqual(sorted((s["side"], s["length"], s["blocks"]) for s in found["first_sites"]),
                         [("before", 3, 251), ("behind", 3, 3 * 251)])

    def test_of_blocks_that_are_left_out_too(self):
        many = self.compile("many", MANY)
        for options in (("-s", "10"), ("-z", "9000")):
            trace, _ = self.record(many, options=options)
            text = self.report(trace)
            self.assertIn("OVERRUNS: 1,004 found", text)
            self.assertEqual(len(re.findall(r"found when .* by\n +run  ", text)),
                             text.count("found when"))

    def test_the_bytes_behind_another_block_are_no_excuse(self):
        trace, _ = self.record(self.compile("copied", COPIED))
        site, = self.overruns(trace)["first_sites"]
        self.assertLess(site["distance"], 4)
        self.assertGreater(site["length"], 4)

    def test_what_is_overwritten_far_before_a_block(self):
        trace, _ = self.record(self.compile("deep", DEEP))
        sites = self.overruns(trace)["first_sites"]
        self.assertEqual(sorted((s["size"], s["side"], s["distance"]) for s in sites),
                         [(47, "before", 32), (53, "before", 32), (59, "before", 32)])

    def test_an_overrun_fails_a_check_for_leaks(self):
        trace, _ = self.record(self.sample("overrun"), "beyond")
        for options, status in (((), 0), (("--fail-on-leak",), 1), (("--fail-on-leak=1G",), 1)):
            self.assertEqual(self.mleak("report", *options, trace).status, status)
        trace, _ = self.record(self.sample("clean"))
        self.assertEqual(self.mleak("report", "--fail-on-leak", trace).status, 0)

    def test_formats_without_room_for_them_say_so(self):
        trace, _ = self.record(self.sample("overrun"), "beyond")
        result = self.mleak("report", "--folded", trace)
        self.assertEqual(result.status, 0)
        self.assert_one_message(result.err, naming="1 overruns of blocks were found")

    def test_a_redacted_trace_has_no_byte_of_them(self):
        trace, _ = self.record(self.sample("overrun"), "beyond", options=["--redact"])
        site, = self.overruns(trace)["first_sites"]
        self.assertEqual((site["bytes"], site["length"]), ("", 7))

    def test_without_guard_nothing_is_said_of_overruns(self):
        self.options = ("--backend", "preload")
        trace, _ = self.record(self.sample("clean"))
        self.assertNotIn("overrun", self.report(trace))


@needs_bpf
class RootTest(GuardCase):
    as_user = {}

    def test_guard_takes_the_library_where_ebpf_is_allowed_too(self):
        trace, truth = self.record_sample("beyond")
        self.assertRegex(self.report(trace, "--dump"), r"(?m)backend preload$")
        self.assertEqual(self.said(trace), truth)


class RefusedTest(GuardCase):
    def refused(self, *args):
        result = self.mleak("record", "-o", self.path("x.mlk"), *args)
        self.assertEqual(result.status, 125)
        self.assertFalse(os.path.exists(self.path("x.mlk")))
        self.assert_one_message(result.err, naming="--guard")

    def test_with_ebpf(self):
        self.refused("--guard", "--backend", "bpf", "--", "true")

    def test_of_a_running_process(self):
        self.refused("--guard", "-p", str(os.getpid()))

    def test_without_recording(self):
        self.refused("--guard", "--dry-run", "--", "true")


del GuardCase, PreloadCase

if __name__ == "__main__":
    unittest.main()
