/* runtime_names.c - see runtime_names.h */
#include "report/name/runtime_names.h"

#include <stddef.h>
#include <string.h>

#include "report/base/text.h"

/* File names begin so; a version may follow. */
static const char *const modules[] = {
	"libc.so",     "libc-2.",   "libc.musl-",  "ld-linux",	  "ld-musl-",	 "libpthread",
	"libm.so",     "libdl",	    "libstdc++.",  "libc++.",	  "libc++abi.",	 "libgcc_s.",
	"libasan.",    "liblsan.",  "libjemalloc", "libtcmalloc", "libmimalloc", "libsnmalloc",
	"librpmalloc", "libmleak-", "[vdso]",
};

/* Names of functions begin so, as they are shown. */
static const char *const scopes[] = {
	"std::",       "__gnu_cxx::", "operator new", "alloc::", "core::",
	"hashbrown::", "<alloc::",    "<core::",      "<std::",	 "__rust_",
	"__rdl_",      "__rg_",	      "__rustc::",    "[", /* a remark */
};

/* Those of a program that is linked statically, or has its own. */
static const char *const allocators[] = {
	"malloc",   "calloc", "realloc", "reallocarray", "posix_memalign", "aligned_alloc",
	"memalign", "valloc", "pvalloc", "strdup",	 "strndup",	   "_start",
};

static bool begins_with(const char *text, const char *const *words, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (!strncmp(text, words[i], strlen(words[i])))
			return true;
	return false;
}

/* Where the name of @function begins: templates have the type of what they return before it. */
static const char *name_of(const char *function)
{
	size_t len = strcspn(function, "<(");

	if (!strncmp(function, "operator", strlen("operator")))
		return function;
	while (len && function[len - 1] != ' ')
		len--;
	return function + len;
}

bool is_runtime_function(const char *function, const char *module)
{
	const char *name = name_of(function);

	if (begins_with(text_file_name(module), modules, sizeof(modules) / sizeof(*modules)) ||
	    begins_with(name, scopes, sizeof(scopes) / sizeof(*scopes)))
		return true;
	for (size_t i = 0; i < sizeof(allocators) / sizeof(*allocators); i++)
		if (!strcmp(name, allocators[i]))
			return true;
	return false;
}
