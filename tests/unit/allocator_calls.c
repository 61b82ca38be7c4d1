/* allocator_calls.c - a program that calls all the functions of its allocator, without end
 *
 * test_record_returns_steps traces it.  It is never sanitized: a sanitizer brings an allocator.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>

#define MOST_BLOCKS 512

/* A function that the child calls, and its arguments: s size, S size of a small array, a alignment,
 * m where the pointer goes, p a block, P one with an alignment, o its size, b its alignment, n
 * nothing of meaning, 0 flags (then the block is not NULL). */
static const struct op {
	const char *name, *args;
} ops[] = {{"malloc", "s"},
	   {"calloc", "cS"},
	   {"realloc", "ps"},
	   {"reallocarray", "pcS"},
	   {"posix_memalign", "mas"},
	   {"aligned_alloc", "as"},
	   {"memalign", "as"},
	   {"valloc", "s"},
	   {"pvalloc", "s"},
	   {"mallocx", "s0"},
	   {"rallocx", "ps0"},
	   {"_Znwm", "s"},
	   {"_Znam", "s"},
	   {"_ZnwmRKSt9nothrow_t", "sn"},
	   {"_ZnamRKSt9nothrow_t", "sn"},
	   {"_ZnwmSt11align_val_t", "sa"},
	   {"_ZnamSt11align_val_t", "sa"},
	   {"_ZnwmSt11align_val_tRKSt9nothrow_t", "san"},
	   {"_ZnamSt11align_val_tRKSt9nothrow_t", "san"},
	   {"free", "p"},
	   {"free", "p"},
	   {"cfree", "p"},
	   {"free_sized", "po"},
	   {"dallocx", "p0"},
	   {"sdallocx", "po0"},
	   {"_ZdlPv", "p"},
	   {"_ZdaPv", "p"},
	   {"_ZdlPvm", "po"},
	   {"_ZdaPvm", "po"},
	   {"_ZdlPvRKSt9nothrow_t", "pn"},
	   {"_ZdaPvRKSt9nothrow_t", "pn"},
	   {"_ZdlPvSt11align_val_t", "Pb"},
	   {"_ZdaPvSt11align_val_t", "Pb"},
	   {"_ZdlPvmSt11align_val_t", "Pob"},
	   {"_ZdaPvmSt11align_val_t", "Pob"},
	   {"_ZdlPvSt11align_val_tRKSt9nothrow_t", "Pbn"}};

#define NR_OPS (sizeof(ops) / sizeof(ops[0]))

static struct block {
	uint64_t at, size, align;
} blocks[MOST_BLOCKS];

/* What the caller expects to be kept has values that can be told apart. */
static uint64_t call(void *fn, const uint64_t *args)
{
	uint64_t result = (uint64_t)fn, a = args[0], b = args[1], c = args[2];

	asm volatile("mov %%rsp, %%rbx\n\t"
		     "sub $256, %%rsp\n\t"
		     "and $-16, %%rsp\n\t"
		     "mov $0x1212, %%r12d\n\t"
		     "mov $0x1313, %%r13d\n\t"
		     "mov $0x1414, %%r14d\n\t"
		     "mov $0x1515, %%r15d\n\t"
		     "call *%%rax\n\t"
		     "mov %%rbx, %%rsp"
		     : "+a"(result), "+D"(a), "+S"(b), "+d"(c)
		     :
		     : "rbx", "rcx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory",
		       "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8",
		       "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
	return result;
}

/* Mostly sizes that the fast ways serve. */
static uint64_t choose_size(void)
{
	static const uint64_t below[] = {64, 64, 64, 64, 1024, 1024, 1024, 40000, 40000, 3000000};

	return 1 + (uint64_t)random() % below[random() % 10];
}

/* Arguments of @op for the block @b. */
static void choose_args(const struct op *op, struct block *b, uint64_t *args)
{
	static uint64_t where[2];
	uint64_t size = choose_size(), align = 16u << random() % 9;

	for (size_t i = 0; op->args[i]; i++)
		switch (op->args[i]) {
		case 's': /* aligned_alloc() may insist on a multiple */
			args[i] = b->size =
				strchr(op->args, 'a') ? (size + align - 1) & -align : size;
			break;
		case 'c':
			args[i] = b->size = 1 + (uint64_t)random() % 16;
			break;
		case 'S':
			args[i] = 1 + size % 64;
			b->size *= args[i];
			break;
		case 'a':
			args[i] = b->align = align;
			break;
		case 'm':
		case 'n':
			args[i] = (uint64_t)where;
			break;
		case 'p':
		case 'P':
			args[i] = b->at;
			break;
		case 'o':
			args[i] = b->size;
			break;
		case 'b':
			args[i] = b->align;
			break;
		default:
			args[i] = 0;
			break;
		}
}

/* Does a block like @b fit to @op?  (One with an alignment is freed by its kind of operator, or
 * without a size.) */
static bool fits(const struct op *op, const struct block *b)
{
	if (!strpbrk(op->args, "pP"))
		return !b->at;
	if (op->args[0] == 'P' || op->args[1] == 'o')
		return b->at && (op->args[0] == 'P') == !!b->align;
	return b->at || (!strchr(op->args, '0') && random() % 16 == 0); /* of NULL, too */
}

/* The function @name where malloc is, too: it has the same blocks. */
static void *find_op(const char *name)
{
	void *fn = dlsym(RTLD_DEFAULT, name);
	Dl_info of_fn, of_malloc;

	return fn && dladdr(fn, &of_fn) && dladdr(dlsym(RTLD_DEFAULT, "malloc"), &of_malloc) &&
			       of_fn.dli_fbase == of_malloc.dli_fbase
		       ? fn
		       : NULL;
}

/* Blocks of an operator may be freed by free() and the other way round: debugging allocators do not
 * have that. */
static _Noreturn void make_calls(void)
{
	void *fns[NR_OPS];

	for (size_t i = 0; i < NR_OPS; i++)
		fns[i] = find_op(ops[i].name);
	for (;;) {
		size_t i = (size_t)random() % NR_OPS;
		struct block *b = &blocks[random() % MOST_BLOCKS], was = *b;
		uint64_t args[4] = {0}, result;

		if (!fns[i] || !fits(&ops[i], b))
			continue;
		choose_args(&ops[i], b, args);
		/* Nobody has so much; an operator would throw. */
		if (ops[i].args[0] == 's' && ops[i].name[0] != '_' && random() % 64 == 0)
			args[0] = 1ull << 62;
		if (strpbrk(ops[i].args, "pP") && !strpbrk(ops[i].args, "sS"))
			b->at = b->align = 0;
		result = call(fns[i], args);
		if (ops[i].args[0] == 'm')
			result = (int)result ? 0 : *(uint64_t *)args[0];
		if (strpbrk(ops[i].args, "sS")) {
			b->at = result;
			if (!result && was.at)
				*b = was; /* it lives */
			else if (ops[i].args[0] == 'p')
				b->align = 0;
		}
	}
}

int main(void)
{
	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	raise(SIGTRAP);
	make_calls();
}
