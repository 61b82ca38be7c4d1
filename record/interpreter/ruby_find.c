/* ruby_find.c - see ruby_find.h
 *
 * Where Ruby 3.1 has what, as bpf/ruby_walk.h says it, is from Debian's libruby3.1: its functions
 * rb_profile_frames(), rb_iseq_label() and rb_iseq_line_no() read the same words.  It is no
 * interface, and was tried with 3.1.2.
 */
#include "record/interpreter/ruby_find.h"

#include <stdio.h>
#include <string.h>

#include "record/interpreter/python_code.h"
#include "record/module/elffile.h"

#define VERSION	    "3.1."
#define VERSION_NR  0x0301
#define VERSION_MAX 16
#define LABEL_MAX   16	/* bytes of rb_iseq_label() that are looked at, */
#define PROFILE_MAX 256 /* and of rb_profile_frames() */

/* What is looked for among the file's dynamic symbols. */
enum { VM_EXEC, RUBY_VERSION, PROFILE, LABEL };

/* Has the code of @function @bytes, among its first @most? */
static bool has_code(Elf *elf, const struct elf_place *function, size_t most, const void *bytes,
		     size_t nr)
{
	size_t len = 0;
	const void *code;

	if (function->size < most)
		most = (size_t)function->size;
	code = most ? elffile_bytes(elf, function->start, most, &len) : NULL;
	return code && memmem(code, len, bytes, nr);
}

/* Find where frames are.  Returns NULL, or why they cannot be read. */
static const char *find_layout(struct event_python *at, Elf *elf, const char *version,
			       const struct elf_place *found, uint64_t bias)
{
	/* mov 16(%rdi), %rax; mov 80(%rax), %rax */
	static const uint8_t label[] = {0x48, 0x8b, 0x47, 0x10, 0x48, 0x8b, 0x40, 0x50};
	/* add $64, %rbx: to the next frame */
	static const uint8_t next[] = {0x48, 0x83, 0xc3, 0x40};

	if (strncmp(version, VERSION, strlen(VERSION)) != 0)
		return "frames are known of 3.1 only";
	if (!has_code(elf, &found[LABEL], LABEL_MAX, label, sizeof(label)) ||
	    !has_code(elf, &found[PROFILE], PROFILE_MAX, next, sizeof(next)) ||
	    !python_code_current(at, elf, &found[PROFILE], bias))
		return "its functions read frames otherwise than in 3.1";
	at->shape = PYTHON_IS_RUBY;
	at->version = VERSION_NR | PYTHON_RUBY_VERSION;
	return NULL;
}

/* As interpreter_kind.describe. */
static bool describe(struct interpreter_place *place, Elf *elf, const struct elf_place *found,
		     uint64_t bias)
{
	size_t len = 0;
	const char *why, *version;

	if (!found[VM_EXEC].size || !found[RUBY_VERSION].size)
		return false;
	version = elffile_bytes(elf, found[RUBY_VERSION].start, VERSION_MAX, &len);
	if (version)
		snprintf(place->version, sizeof(place->version), "%.*s", (int)strnlen(version, len),
			 version);
	interpreter_set_ranges(place, elf, &found[VM_EXEC], bias);
	why = find_layout(&place->at, elf, place->version, found, bias);
	if (why)
		interpreter_give_up(place, why);
	return true;
}

const struct interpreter_kind ruby_kind = {
	.language = MLK_LANGUAGE_RUBY,
	.file = "ruby",
	.symbols =
		{
			[VM_EXEC] = "rb_vm_exec",
			[RUBY_VERSION] = "ruby_version",
			[PROFILE] =
				"rb_profile_frames", /* which begins with the thread's variable */
			[LABEL] = "rb_iseq_label",
		},
	.describe = describe,
};
