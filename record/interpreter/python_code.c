/* python_code.c - see python_code.h */
#include "record/interpreter/python_code.h"

#include <stdio.h>
#include <string.h>

#include "record/module/elffile.h"

#define CODE_MAX 256 /* bytes of a function that are looked at */

/* Code that is looked through. */
struct code {
	const uint8_t *bytes;
	size_t len;
	uint64_t address;
};

static bool find_code(struct code *c, Elf *elf, const struct elf_place *function)
{
	size_t most = function->size < CODE_MAX ? (size_t)function->size : CODE_MAX;

	*c = (struct code){.address = function->start};
	if (most)
		c->bytes = elffile_bytes(elf, function->start, most, &c->len);
	return c->bytes != NULL;
}

static int32_t number_at(const struct code *c, size_t at)
{
	int32_t number = 0;

	if (at + sizeof(number) <= c->len)
		memcpy(&number, c->bytes + at, sizeof(number));
	return number;
}

/* Do the @len bytes at @at of the code be @pattern, where -1 is any? */
static bool matches(const struct code *c, size_t at, const int16_t *pattern, size_t len)
{
	if (at + len > c->len)
		return false;
	for (size_t i = 0; i < len; i++)
		if (pattern[i] >= 0 && c->bytes[at + i] != pattern[i])
			return false;
	return true;
}

/* What the instruction that has its distance of 4 bytes at @at, its last ones, leads to. */
static uint64_t target_of(const struct code *c, size_t at)
{
	return c->address + at + 4 + (uint64_t)(int64_t)number_at(c, at);
}

/* The version that the string at @address begins with; 0: none. */
static uint32_t version_at(Elf *elf, uint64_t address)
{
	unsigned int major, minor, micro;
	char text[16] = "";
	size_t len;
	const char *found = elffile_bytes(elf, address, sizeof(text) - 1, &len);

	if (!found)
		return 0;
	memcpy(text, found, len);
	if (sscanf(text, "%1u.%2u.%2u", &major, &minor, &micro) != 3)
		return 0;
	return major << 24 | minor << 16 | micro << 8;
}

uint32_t python_code_version(Elf *elf, const struct elf_place *function)
{
	struct code c;
	uint32_t version = 0;

	if (!find_code(&c, elf, function))
		return 0;
	for (size_t i = 0; i + 5 <= c.len && !version; i++) {
		const uint8_t *b = c.bytes + i;

		/* lea DISTANCE(%rip), REGISTER; or in a program that is never moved mov ADDRESS */
		if (b[0] == 0x8d && (b[1] & 0xc7) == 0x05)
			version = version_at(elf, target_of(&c, i + 2));
		else if ((b[0] & 0xf8) == 0xb8)
			version = version_at(elf, (uint32_t)number_at(&c, i + 1));
	}
	return version;
}

/* What is loaded from relative to %rax, by the instruction at @at.  False: it is none such. */
static bool find_load(const struct code *c, size_t at, int32_t *plus)
{
	static const int16_t plain[] = {0x48, 0x8b, 0x00}, byte[] = {0x48, 0x8b, 0x40},
			     number[] = {0x48, 0x8b, 0x80};

	*plus = 0;
	if (matches(c, at, plain, 3))
		return true;
	if (matches(c, at, byte, 3) && at + 4 <= c->len) {
		*plus = (int8_t)c->bytes[at + 3];
		return true;
	}
	*plus = number_at(c, at + 3);
	return matches(c, at, number, 3) && at + 7 <= c->len;
}

/* lea INDEX(%rip), %rdi; call __tls_get_addr; and a load.  The call is one of several kinds. */
static bool find_dynamic(struct event_python *at, const struct code *c, size_t i)
{
	static const int16_t lea[] = {0x48, 0x8d, 0x3d, -1, -1, -1, -1};

	if (!matches(c, i, lea, 7))
		return false;
	for (size_t call = i + 7; call < i + 16; call++)
		if (find_load(c, call, &at->current_plus)) {
			at->current = target_of(c, i + 3);
			at->current_kind = PYTHON_DYNAMIC;
			return true;
		}
	return false;
}

/* mov SLOT(%rip), %rax; mov %fs:(%rax), %rax */
static bool find_slot(struct event_python *at, const struct code *c, size_t i)
{
	static const int16_t slot[] = {0x48, 0x8b, 0x05, -1, -1, -1, -1, 0x64, 0x48, 0x8b, 0x00};

	if (!matches(c, i, slot, 11))
		return false;
	at->current = target_of(c, i + 3);
	at->current_kind = PYTHON_SLOT;
	return true;
}

/* mov %fs:OFFSET, %rax; or mov $OFFSET, %rax; mov %fs:(%rax), %rax; or the first with 0, and then
 * an addition and a load. */
static bool find_offset(struct event_python *at, const struct code *c, size_t i)
{
	static const int16_t direct[] = {0x64, 0x48, 0x8b, 0x04, 0x25, -1, -1, -1, -1},
			     constant[] = {0x48, 0xc7, 0xc0, -1,   -1,	-1,
					   -1,	 0x64, 0x48, 0x8b, 0x00},
			     lea[] = {0x48, 0x8d, 0x80, -1, -1, -1, -1};
	int64_t offset = 0;

	if (matches(c, i, constant, 11)) {
		offset = number_at(c, i + 3);
	} else if (matches(c, i, direct, 9)) {
		offset = number_at(c, i + 5);
		i += 9;
		if (!offset && matches(c, i, lea, 7)) {
			offset = number_at(c, i + 3);
			i += 7;
			if (!find_load(c, i, &at->current_plus))
				return false;
		} else if (!offset && find_load(c, i, &at->current_plus)) {
			offset = at->current_plus;
			at->current_plus = 0;
		}
	}
	at->current = (uint64_t)offset;
	at->current_kind = PYTHON_THREAD;
	return offset < 0; /* variables are below the control block */
}

bool python_code_current(struct event_python *at, Elf *elf, const struct elf_place *function,
			 uint64_t bias)
{
	struct code c;

	if (!find_code(&c, elf, function))
		return false;
	for (size_t i = 0; i < c.len; i++) {
		if (find_dynamic(at, &c, i) || find_slot(at, &c, i)) {
			at->current += bias;
			return true;
		}
		if (find_offset(at, &c, i))
			return true;
	}
	at->current_kind = PYTHON_NOWHERE;
	return false;
}
