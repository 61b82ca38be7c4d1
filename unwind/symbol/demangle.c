/* demangle.c - libiberty's demanglers, and a bound on what they do with hostile names
 *
 * A name may refer back to its own parts, so that its meaning doubles with every few characters.
 * The demanglers hand their result over in pieces and offer no way to stop them, so the piece that
 * does not fit jumps out of them.
 */
#include "unwind/symbol/demangle.h"

#include <ctype.h>
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"

struct output {
	char text[DWUNW_MAX_NAME];
	size_t len;
	bool full;
	bool is_rust; /* which demangler is at work */
	jmp_buf stop;
};

typedef int demangler(const char *mangled, int options, demangle_callbackref callback,
		      void *opaque);

static bool is_ascii(const char *data, size_t len)
{
	while (len && !(data[len - 1] & 0x80))
		len--;
	return !len;
}

/*
 * Jumping out loses no memory: between calls of this function, cplus_demangle_v3_callback() has
 * only what is on its stack, as it also serves __cxa_demangle() where there may be no heap; and so
 * has rust_demangle_callback(), except for an identifier in punycode, which it decodes on the heap,
 * hands over as a whole and frees.  Only such a one holds bytes beyond ASCII: the next piece must
 * do.
 */
static void take(const char *data, size_t len, void *opaque)
{
	struct output *out = opaque;

	if (!out->full && len <= sizeof(out->text) - out->len) {
		memcpy(out->text + out->len, data, len);
		out->len += len;
		return;
	}
	out->full = true;
	if (!out->is_rust || is_ascii(data, len))
		longjmp(out->stop, 1);
}

static bool run(struct output *out, demangler *demangle, const char *plain)
{
	out->len = 0;
	out->full = false;
	out->is_rust = demangle == rust_demangle_callback;
	if (setjmp(out->stop))
		return false;
	return demangle(plain, DMGL_PARAMS | DMGL_ANSI, take, out) && !out->full;
}

/* Does @plain, of Rust, bind more than some thousand lifetimes, by the type of a function (F) or a
 * trait object (D) and a number in base 62?  libiberty counts up to that number, without a word
 * where it prints nothing. */
static bool binds_many(const char *plain)
{
	for (const char *at = plain; (at = strchr(at, 'G')) != NULL; at++) {
		size_t digits = 0;

		if (at == plain || (at[-1] != 'F' && at[-1] != 'D'))
			continue;
		while (isalnum((unsigned char)at[1 + digits]))
			digits++;
		if (digits > 2 && at[1 + digits] == '_')
			return true;
	}
	return false;
}

/* As cplus_demangle() does for DMGL_AUTO: Rust's names first, whose older kind looks like C++. */
static bool demangle(struct output *out, const char *plain)
{
	if (plain[0] != '_' || (plain[1] == 'R' && binds_many(plain)))
		return false;
	return run(out, rust_demangle_callback, plain) ||
	       (!out->full && run(out, cplus_demangle_v3_callback, plain));
}

char *dwunw_demangle(const char *raw, size_t len)
{
	char *plain = strndup(raw, len < DWUNW_MAX_NAME ? len : DWUNW_MAX_NAME), *name;
	struct output out;

	if (!plain || len > DWUNW_MAX_NAME || !demangle(&out, plain))
		return plain;
	name = strndup(out.text, out.len);
	free(plain);
	return name;
}

const char *dwunw_demangled_names_demangled(struct dwunw_demangled_names *strings, const char *raw,
					    size_t len)
{
	uint64_t key = (uint64_t)(uintptr_t)raw;
	uint32_t nr = dwunw_addr_index_find(&strings->index, key);
	char *name;

	if (nr != DWUNW_NOT_FOUND)
		return strings->name[nr];
	if (grow_array(&strings->name, strings->nr, &strings->room, sizeof(name)))
		return NULL;
	name = strings->mangled ? strndup(raw, len < DWUNW_MAX_NAME ? len : DWUNW_MAX_NAME)
				: dwunw_demangle(raw, len);
	if (!name || dwunw_addr_index_add(&strings->index, key, strings->nr)) {
		free(name);
		return NULL;
	}
	strings->name[strings->nr++] = name;
	return name;
}

void dwunw_demangled_names_release(struct dwunw_demangled_names *strings)
{
	for (uint32_t i = 0; i < strings->nr; i++)
		free(strings->name[i]);
	free(strings->name);
	dwunw_addr_index_release(&strings->index);
}
