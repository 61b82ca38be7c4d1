/* root_text.c - see root_text.h */
#include "report/reach/root_text.h"

#include <inttypes.h>

#include "report/base/text.h"

static void put_thread(FILE *out, uint32_t tid, const char *name)
{
	fprintf(out, "thread %" PRIu32, tid);
	if (!name[0])
		return;
	fputs(" (", out);
	text_print(out, name);
	fputc(')', out);
}

static void put_variable(FILE *out, const struct root_name *name)
{
	fputs("variable ", out);
	text_print(out, name->name);
	if (name->file[0]) {
		fputs(" (", out);
		text_print(out, name->file);
		fputc(')', out);
	}
	fputs(" in ", out);
	text_print(out, text_file_name(name->path));
}

static void put_memory(FILE *out, const struct root_name *name, const char *mapping)
{
	if (mapping) {
		fprintf(out, "memory mapped by %s", mapping);
		return;
	}
	if (name->name[0])
		text_print(out, name->name);
	else
		fprintf(out, "memory from 0x%" PRIx64 " to 0x%" PRIx64, name->start, name->end);
	fputs(name->stale ? "" : ", outside of recorded blocks", out);
}

void root_text_print(FILE *out, const struct root_name *name, const char *thread,
		     const char *mapping)
{
	switch (name->kind) {
	case ROOT_VARIABLE:
		put_variable(out, name);
		break;
	case ROOT_THREAD_LOCAL:
		fputs("thread-local ", out);
		put_variable(out, name);
		break;
	case ROOT_DATA:
		fputs("data of ", out);
		text_print(out, name->path);
		break;
	case ROOT_STACK:
		fputs(name->stale ? "stale words below the stack of " : "stack of ", out);
		put_thread(out, name->number, thread);
		return;
	case ROOT_MEMORY:
		fputs(name->stale ? "stale words of freed blocks in " : "", out);
		put_memory(out, name, mapping);
		return;
	case ROOT_REGISTERS:
		fputs("registers of ", out);
		put_thread(out, name->number, thread);
		break;
	case ROOT_EPOLL:
		fprintf(out, "epoll, descriptor %" PRIu32, name->number);
		break;
	case ROOT_TIMER:
		fprintf(out, "timer %" PRIu32, name->number);
		break;
	case ROOT_SIGNAL_STACK:
		fputs("stack for signals of ", out);
		put_thread(out, name->number, thread);
		break;
	default:
		fputs("other memory", out);
	}
	fputs(name->stale ? ", which was freed" : "", out);
}

const char *root_text_word(enum root_kind kind)
{
	static const char *const words[] = {
		[ROOT_OTHER] = "other",
		[ROOT_VARIABLE] = "variable",
		[ROOT_DATA] = "data",
		[ROOT_STACK] = "stack",
		[ROOT_MEMORY] = "memory",
		[ROOT_REGISTERS] = "registers",
		[ROOT_EPOLL] = "epoll",
		[ROOT_TIMER] = "timer",
		[ROOT_SIGNAL_STACK] = "signal-stack",
		[ROOT_THREAD_LOCAL] = "thread-local",
	};

	return words[kind];
}

void root_text_json(struct json *json, const struct root_name *name)
{
	json_bool(json, "stale", name->stale);
	json_text(json, "name", name->name);
	json_text(json, "file", name->file);
	json_text(json, "module", name->path);
	json_number(json, "start", name->start);
	json_number(json, "size", name->end - name->start);
	json_number(json, "number", name->number);
}
