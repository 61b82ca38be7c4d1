/* cfi_at.c - print our rows of call frame information at given addresses
 *
 * usage: cfi_at FILE < ADDRESSES      (hexadecimal)
 *
 * A line for each: the address, the CFA, then NAME=RULE for each register that has a rule, named as
 * `readelf --debug-dump=frames-interp` does; or the address and "none".
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "unwind/cfi/cfi.h"

static const char *reg_name(unsigned int reg)
{
	static const char *const names[] = {"rax", "rdx", "rcx", "rbx", "rsi", "rdi",
					    "rbp", "rsp", "r8",	 "r9",	"r10", "r11",
					    "r12", "r13", "r14", "r15", "ra"};

	return reg < DWUNW_CFI_REGS ? names[reg] : "?";
}

static void print_rule(const struct dwunw_cfi_rule *rule)
{
	static const char *const plain[] = {[DWUNW_CFI_UNDEFINED] = "u",
					    [DWUNW_CFI_SAME] = "s",
					    [DWUNW_CFI_EXPR] = "exp",
					    [DWUNW_CFI_VAL_EXPR] = "vexp"};

	if (rule->kind == DWUNW_CFI_OFFSET || rule->kind == DWUNW_CFI_VAL_OFFSET)
		printf("%c%+d", rule->kind == DWUNW_CFI_OFFSET ? 'c' : 'v', (int)rule->off);
	else if (rule->kind == DWUNW_CFI_REGISTER)
		printf("%s", reg_name(rule->reg));
	else
		printf("%s", plain[rule->kind]);
}

static void print_rules(const struct dwunw_cfi_rules *rules)
{
	if (rules->cfa.kind == DWUNW_CFI_REGISTER)
		printf("%s%+d", reg_name(rules->cfa.reg), (int)rules->cfa.off);
	else
		printf("exp");
	for (unsigned int reg = 0; reg < DWUNW_CFI_REGS; reg++) {
		if (rules->reg[reg].kind == DWUNW_CFI_UNSPECIFIED)
			continue;
		printf(" %s=", reg_name(reg));
		print_rule(&rules->reg[reg]);
	}
	printf("\n");
}

int main(int argc, char **argv)
{
	int fd = argc == 2 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;
	Elf *elf = elf_version(EV_CURRENT) ? elf_begin(fd, ELF_C_READ_MMAP, NULL) : NULL;
	struct dwunw_cfi *cfi = elf ? dwunw_cfi_new(elf) : NULL;
	struct dwunw_cfi_rules rules;
	uint64_t addr;
	int found = 0;

	while (cfi && found >= 0 && scanf("%" SCNx64, &addr) == 1) {
		printf("%" PRIx64 " ", addr);
		found = dwunw_cfi_rules_at(cfi, addr, &rules);
		if (found > 0)
			print_rules(&rules);
		else
			printf("none\n");
	}
	dwunw_cfi_free(cfi);
	elf_end(elf);
	if (fd >= 0)
		close(fd);
	return !cfi || found < 0;
}
