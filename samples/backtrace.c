/* backtrace.c - an oracle: leaks, and what libgcc's own unwinder says of the stacks that made them
 *
 * The program has a malloc() of its own, which notes the stack of its caller and then *jumps* to
 * libc's malloc: that one sees the same return address, so both have to find the same frames.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <unwind.h>

#include "plugin.h"

enum { MAX_FRAMES = 256, MAX_TRUTHS = 16, RECURSION = 50 };

/* One leaked block and the stack it was allocated by. */
struct truth {
	size_t size;
	unsigned long blocks;
	uintptr_t caller; /* where malloc() returns to: the frames inside of it are not wanted */
	int nr_frames;
	uintptr_t pc[MAX_FRAMES];
};

static struct truth truths[MAX_TRUTHS];
static int nr_truths;
static struct truth *armed; /* the next malloc() notes its stack here */
static void *(*libc_malloc)(size_t);

static _Unwind_Reason_Code note_frame(struct _Unwind_Context *context, void *arg)
{
	struct truth *truth = arg;
	int before_insn;
	uintptr_t pc = _Unwind_GetIPInfo(context, &before_insn);

	if (pc == 0 || truth->nr_frames == MAX_FRAMES)
		return _URC_END_OF_STACK;
	if (truth->nr_frames > 0 || pc == truth->caller)
		truth->pc[truth->nr_frames++] = pc;
	return _URC_NO_REASON;
}

static FRAME void note_stack(void *caller)
{
	struct truth *truth = armed;

	armed = NULL; /* whatever the unwinder itself allocates is not wanted */
	truth->caller = (uintptr_t)caller;
	_Unwind_Backtrace(note_frame, truth);
}

static FRAME void find_libc_malloc(void)
{
	libc_malloc = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
}

/* The last call must stay a jump: built with -O2, and nothing may come after it. */
/* The linker takes it for malloc; but its symbol does not say that it is a function, so that no
 * tool that probes functions disturbs the stack which it looks at. */
__asm__(".globl malloc\n"
	".set malloc, traced_malloc_entry\n");
__asm__(".text\n"
	"traced_malloc_entry: jmp traced_malloc\n");

FRAME __attribute__((used)) void *traced_malloc(size_t size)
{
	if (!libc_malloc)
		find_libc_malloc();
	if (armed)
		note_stack(__builtin_return_address(0));
	return libc_malloc(size);
}

static FRAME void leak(size_t size)
{
	struct truth *truth = &truths[nr_truths++];
	void *block;

	truth->size = size;
	armed = truth;
	block = malloc(size);
	keep(block);
	truth->blocks++;
}

FRAME void leak_recursive(int frames_left, size_t size)
{
	if (frames_left > 1)
		leak_recursive(frames_left - 1, size);
	else
		leak(size);
	AFTER_CALL();
}

/* Calls back from inside libc; the first comparison leaks, the others do not. */
static FRAME int leak_compare(const void *a, const void *b)
{
	static int calls;

	if (calls++ == 0)
		leak(53);
	return *(const int *)a - *(const int *)b;
}

static FRAME void leak_in_qsort(void)
{
	int numbers[] = {3, 1, 4, 1, 5, 9, 2, 6};

	qsort(numbers, sizeof(numbers) / sizeof(numbers[0]), sizeof(numbers[0]), leak_compare);
	keep(numbers);
}

/* The stack pointer is rounded down, so the frame's address is found by a DWARF expression. */
FRAME void leak_over_aligned(size_t size)
{
	char block[192] __attribute__((aligned(128)));

	keep(block);
	leak(size);
	keep(block);
}

/* Arguments on the stack: it grows and shrinks around the call. */
FRAME void leak_many_arguments(long a, long b, long c, long d, long e, long f, long g, size_t size)
{
	leak(size + a + b + c + d + e + f + g);
	AFTER_CALL();
}

static FRAME void on_signal(int signal)
{
	leak(61);
	keep(&signal);
}

static FRAME void leak_in_signal(void)
{
	struct sigaction action = {.sa_handler = on_signal};

	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
	AFTER_CALL();
}

static FRAME void *leaking_thread(void *unused)
{
	leak_recursive(3, 67);
	AFTER_CALL();
	return unused;
}

static FRAME int leak_in_thread(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, leaking_thread, NULL))
		return -1;
	return pthread_join(thread, NULL);
}

static FRAME int leak_in_plugin(size_t size)
{
	void (*deep)(void (*)(size_t), size_t);
	char path[1024];
	void *plugin;

	path_beside(path, sizeof(path), "plugin.so");
	plugin = dlopen(path, RTLD_LAZY);
	if (!plugin)
		return -1;
	deep = (void (*)(void (*)(size_t), size_t))dlsym(plugin, "plugin_deep");
	if (!deep)
		return -1;
	deep(leak, size);
	AFTER_CALL();
	return 0;
}

/* @pc as its ELF file counts addresses: that of the first loaded byte there, plus the distance. */
static uintptr_t file_address(uintptr_t pc, uintptr_t base)
{
	const Elf64_Ehdr *elf = (const Elf64_Ehdr *)base;
	const Elf64_Phdr *segment = (const Elf64_Phdr *)(base + elf->e_phoff);

	while (segment->p_type != PT_LOAD)
		segment++;
	return pc - base + segment->p_vaddr;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* MODULE+0xADDR; the loader knows the program by argv[0] only, which may be anything. */
static void print_frame(uintptr_t pc, const char *separator)
{
	char exe[1024] = "";
	Dl_info info, self;

	if (!dladdr((void *)pc, &info) || !dladdr((void *)print_frame, &self)) {
		say("%s?+0x%lx", separator, (unsigned long)pc);
		return;
	}
	if (info.dli_fbase == self.dli_fbase && readlink("/proc/self/exe", exe, 1023) > 0)
		info.dli_fname = exe;
	say("%s%s+0x%lx", separator, base_name(info.dli_fname),
	    (unsigned long)file_address(pc, (uintptr_t)info.dli_fbase));
}

static void print_truth(const struct truth *truth)
{
	say("truth: size=%zu blocks=%lu frames=", truth->size, truth->blocks);
	for (int i = 0; i < truth->nr_frames; i++)
		print_frame(truth->pc[i], i ? ";" : "");
	say("\n");
}

int main(void)
{
	leak(LEAK_BYTES);
	leak_in_qsort();
	leak_over_aligned(59);
	leak_in_signal();
	if (leak_in_thread())
		return 1;
	if (leak_in_plugin(71))
		return 1;
	leak_recursive(RECURSION, 73);
	leak_many_arguments(1, 2, 3, 4, 5, 6, 7, 51);

	for (int i = 0; i < nr_truths; i++)
		print_truth(&truths[i]);
	return 0;
}
