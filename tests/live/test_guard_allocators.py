"""Guard bytes and what allocators promise: the C library's, others, and operators new and delete."""

import os

from mleaktest import parse_totals
from test_guard import GuardCase

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


class AllocatorTest(GuardCase):
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
