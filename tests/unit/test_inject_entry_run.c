/* test_inject_entry_run.c - functions that begin with a jump do what they did before */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "record/inject/entry.h"
#include "tests/unit/inject_island.h"

/* What the functions below read, write and jump to. */
static uint8_t data[128] __attribute__((used, aligned(64)));
static const void *leave __attribute__((used));

/* A function, assembled twice: one is changed, the other is not.  Labels 1 to 9 are its own. */
struct twice {
	const uint8_t *changed, *changed_end, *original, *original_end;
	const char *name; /* with ':' behind it, what the processor must have for it */
};

#define TWICE(name, body)                                                        \
	__asm__(".pushsection entry_text, \"ax\", @progbits\n"                   \
		".balign 512\n1000:\n" body "1001:\n.balign 16\n.balign 512\n"   \
		"2000:\n" body "2001:\n.balign 512\n.popsection\n"               \
		".pushsection .rodata\n3000: .asciz \"" name "\"\n.popsection\n" \
		".pushsection entry_table, \"aw\", @progbits\n.balign 8\n"       \
		".quad 1000b, 1001b, 2000b, 2001b, 3000b\n.popsection\n")

extern struct twice __start_entry_table[], __stop_entry_table[];
extern uint8_t __start_entry_text[], __stop_entry_text[];

TWICE("pushes", "push %rbx; push %rbp; push %r12; mov %rdi,%rbx; lea (%rbx,%rsi,2),%rax\n"
		"pop %r12; pop %rbp; pop %rbx; ret\n");
TWICE("stack", "sub $88,%rsp; mov %r8,64(%rsp); mov 104(%rsp),%rax; mov 64(%rsp),%rdx\n"
	       "add $88,%rsp; ret\n");
TWICE("compare", "cmpb $7,data+3(%rip); je 1f; mov $1,%eax; ret; 1: mov $2,%eax; ret\n");
TWICE("store", "movl $0x12345678,data+8(%rip); ret\n");
TWICE("store 16", "movw $0x1234,data+8(%rip); ret\n");
TWICE("load", "mov data(%rip),%rax; add %rdi,%rax; ret\n");
TWICE("load late", "push %rdi; pop %rax; push %rsi; pop %rdx; xor data+40(%rip),%rax; ret\n");
TWICE("address", "lea data(%rip),%rax; mov 16(%rax),%rcx; ret\n");
TWICE("locked", "lock xaddq %rdi,data+16(%rip); mov %rdi,%rax; ret\n");
TWICE("thread", "mov %fs:0,%rax; mov 16(%rax),%rcx; ret\n");
TWICE("constant", "movabs $0x123456789abcdef0,%rax; ret\n");
TWICE("carry", "adc $5,%rdi; adc %rsi,%rax; setc %cl; ret\n");
TWICE("nop", "nopl 0(%rax,%rax,1); mov %rdi,%rax; ret\n");
TWICE("repeated", "push %rdi; push %rcx; lea data+64(%rip),%rdi; mov $8,%ecx; rep stosb\n"
		  "pop %rcx; pop %rdi; ret\n");
TWICE("x87", "fildq data(%rip); fistpq data+24(%rip); ret\n");
TWICE("sse",
      "movdqu data+1(%rip),%xmm0; paddd data(%rip),%xmm0; movdqu %xmm0,data+48(%rip); ret\n");
TWICE("avx2:", "vmovdqu data+1(%rip),%ymm0; vpaddd data(%rip),%ymm0,%ymm0; vmovdqu "
	       "%ymm0,data+32(%rip); vzeroupper; ret\n");
TWICE("avx512f:", "vmovdqu64 data+1(%rip),%zmm16; vpaddd data(%rip){1to16},%zmm16,%zmm16\n"
		  "vmovdqu64 %zmm16,data+64(%rip)\n"
		  "vpxorq %zmm16,%zmm16,%zmm16; vzeroupper; ret\n");
TWICE("endbr64", "endbr64; push %rdi; mov %rsi,%rax; pop %rdx; ret\n");
TWICE("endbr64 and a jump", "endbr64; test %rdi,%rdi; js 1f; mov $1,%eax; ret; 1: xor %eax,%eax\n"
			    "ret\n");
TWICE("jump over padding", "jmp 1f; .balign 16; 1: lea 1(%rdi),%rax; ret\n");
TWICE("jump far", "jmp 1f; .skip 200,0x90; 1: lea 1(%rdi),%rax; ret\n");
TWICE("jump with bnd", ".byte 0xf2; jmp 1f; .skip 200,0x90; 1: lea 1(%rdi),%rax; ret\n");
TWICE("jump with a hint", ".byte 0x3e; jz 1f; mov $1,%eax; ret; 1: mov $2,%eax; ret\n");
TWICE("jump by memory", "jmp *leave(%rip)\n");
TWICE("jump by a register", "mov leave(%rip),%rax; notrack jmp *%rax\n");
TWICE("jumps", "jc 1f; jo 2f; mov data+5(%rip),%rax; ret; 1: mov $1,%eax; ret; 2: mov $2,%eax\n"
	       "ret\n");
TWICE("return", "ret\n");
TWICE("short", "xor %eax,%eax; ret\n");
TWICE("endbr64 and a return", "endbr64; ret\n");
TWICE("popped", "ret $0\n");
TWICE("system call", "mov $39,%eax; syscall; xor %ecx,%ecx; xor %r11d,%r11d; ret\n");
TWICE("loop behind", "mov $8,%eax; 1: add %rdi,%rdx; dec %eax; jnz 1b; ret\n");
TWICE("recursion", "3: and $15,%edi; jz 1f; push %rdi; dec %edi; call 3b; pop %rdi\n"
		   "add %rdi,%rax; ret; 1: xor %eax,%eax; ret\n");

#define JUMP(cc)                                                      \
	TWICE(cc, cc " 1f; mov $1,%eax; ret; 1: mov $2,%eax; ret\n"); \
	TWICE(cc " far", cc " 1f; mov $1,%eax; ret; .skip 200,0x90; 1: mov $2,%eax; ret\n")
JUMP("jo");
JUMP("jno");
JUMP("jc");
JUMP("jnc");
JUMP("jz");
JUMP("jnz");
JUMP("jbe");
JUMP("ja");
JUMP("js");
JUMP("jns");
JUMP("jp");
JUMP("jnp");
JUMP("jl");
JUMP("jge");
JUMP("jle");
JUMP("jg");

/* What a function gets and leaves. */
struct registers {
	uint64_t rax, rcx, rdx, rsi, rdi, r8, r9, r10, r11, rbx, rbp, r12, r13, r14, r15, flags;
};

/* Call @function with the registers *@r, and put there what they are afterwards. */
void call_with(const void *function, struct registers *r);

__asm__(".pushsection .text\ncall_with:\n"
	"push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15; push %rsi; push %rdi\n"
	"push 120(%rsi); popf\n"
	"mov (%rsi),%rax; mov 8(%rsi),%rcx; mov 16(%rsi),%rdx; mov 32(%rsi),%rdi\n"
	"mov 40(%rsi),%r8; mov 48(%rsi),%r9; mov 56(%rsi),%r10; mov 64(%rsi),%r11\n"
	"mov 72(%rsi),%rbx; mov 80(%rsi),%rbp; mov 88(%rsi),%r12; mov 96(%rsi),%r13\n"
	"mov 104(%rsi),%r14; mov 112(%rsi),%r15; mov 24(%rsi),%rsi\n"
	"call *(%rsp)\n"
	"push %rsi; mov 16(%rsp),%rsi\n"
	"mov %rax,(%rsi); mov %rcx,8(%rsi); mov %rdx,16(%rsi); mov %rdi,32(%rsi)\n"
	"mov %r8,40(%rsi); mov %r9,48(%rsi); mov %r10,56(%rsi); mov %r11,64(%rsi)\n"
	"mov %rbx,72(%rsi); mov %rbp,80(%rsi); mov %r12,88(%rsi); mov %r13,96(%rsi)\n"
	"mov %r14,104(%rsi); mov %r15,112(%rsi)\n"
	"pop %rax; mov %rax,24(%rsi); pushf; pop 120(%rsi)\n"
	"pop %rdi; pop %rsi; pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx; ret\n"
	"leave_here: lea 7(%rdi),%rax; ret\n.popsection\n");

extern const uint8_t leave_here[];

#define FLAGS 0x8d5u /* CF PF AF ZF SF OF */

static void fill_random(void *at, size_t len)
{
	for (size_t i = 0; i < len; i += sizeof(uint64_t)) {
		uint64_t x = next_random();

		/* Numbers near 0 and its ends set more flags. */
		if (x % 3 == 0)
			x = next_random() % 5 - 2 + (next_random() % 2 << 63);
		memcpy((uint8_t *)at + i, &x, sizeof(x));
	}
}

/* Call both with the same registers and data, and compare what they leave. */
static void compare_once(const struct twice *f)
{
	struct registers r, given, left;
	uint8_t before[sizeof(data)], after[sizeof(data)];

	fill_random(&given, sizeof(given));
	fill_random(data, sizeof(data));
	data[3] = given.r8 % 2 ? 7 : data[3];
	given.flags = 0x202 | (given.flags & FLAGS);
	memcpy(before, data, sizeof(data));
	r = given;
	call_with(f->original, &r);
	left = r;
	memcpy(after, data, sizeof(data));
	memcpy(data, before, sizeof(data));
	r = given;
	call_with(f->changed, &r);
	if (memcmp(&r, &left, sizeof(r)) != 0 || memcmp(data, after, sizeof(data)) != 0)
		fail_msg("%s leaves something else", f->name);
}

static bool is_supported(const char *name)
{
	if (!strcmp(name, "avx2:"))
		return __builtin_cpu_supports("avx2");
	return strcmp(name, "avx512f:") != 0 || __builtin_cpu_supports("avx512f");
}

static void check_function(const struct twice *f, struct island *island)
{
	const struct inject_code code = {.at = (uintptr_t)f->changed,
					 .bytes = f->changed,
					 .len = 512,
					 .size = (size_t)(f->changed_end - f->changed),
					 .next = (uintptr_t)f->original};
	uint8_t before[512];
	struct inject_entry entry;
	const char *why;
	uint64_t calls;

	memcpy(before, f->changed, sizeof(before));
	why = change(island, &code, &entry);
	if (why)
		fail_msg("%s is refused: %s", f->name, why);
	for (int i = 0; i < 500; i++)
		compare_once(f);
	calls = island->calls;
	change_back(&entry);
	assert_memory_equal(before, f->changed, sizeof(before));
	compare_once(f);
	if (calls < 500 || island->calls != calls)
		fail_msg("%s was counted %u times", f->name, (unsigned int)calls);
}

static void functions_do_what_they_did(void **state)
{
	static uint8_t islands[1 << 14] __attribute__((aligned(4096)));
	const size_t nr = (size_t)(__stop_entry_table - __start_entry_table);

	(void)state;
	leave = leave_here;
	assert_true(nr * sizeof(struct island) <= sizeof(islands));
	assert_true(make_writable(__start_entry_text, __stop_entry_text));
	assert_true(make_writable(islands, islands + sizeof(islands)));
	for (size_t i = 0; i < nr; i++)
		if (is_supported(__start_entry_table[i].name))
			check_function(&__start_entry_table[i], (struct island *)islands + i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_do_what_they_did),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
