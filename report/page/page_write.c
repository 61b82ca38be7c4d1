/* page_write.c - see page_write.h */
#include "report/page/page_write.h"

#include <string.h>

/* The bytes of the page, as build.mk puts them together. */
__asm__(".section .rodata\n"
	"page_text: .incbin \"" PAGE "\"\n"
	"page_text_end: .byte 0\n"
	".previous\n");
extern const char page_text[], page_text_end[];

/* What was fetched by `make speedscope`, if it was; it is a script. */
#ifdef SPEEDSCOPE
#define INCLUDE_VIEWER ".incbin \"" SPEEDSCOPE "\"\n"
#else
#define INCLUDE_VIEWER ""
#endif
__asm__(".section .rodata\n"
	"page_viewer: " INCLUDE_VIEWER "page_viewer_end: .byte 0\n"
	".previous\n");
extern const char page_viewer[], page_viewer_end[];

/* Print the page from @at up to @placeholder, which it has.  Returns where it goes on. */
static const char *put_page(FILE *out, const char *at, const char *placeholder)
{
	const char *found = strstr(at, placeholder);

	fwrite(at, 1, (size_t)(found - at), out);
	return found + strlen(placeholder);
}

int page_write(FILE *out, enum page_kind kind, int (*put)(struct json *json, const void *arg),
	       const void *arg)
{
	struct json json = {.out = out};
	const char *at = put_page(out, page_text, "@DATA@");
	int err;

	json_open(&json, NULL, '{');
	json_text(&json, "kind", kind == PAGE_DIFF ? "diff" : "report");
	err = put(&json, arg);
	json_close(&json, '}');
	at = put_page(out, at, "@SPEEDSCOPE@");
	/* it knows of no differences */
	if (kind == PAGE_REPORT)
		fwrite(page_viewer, 1, (size_t)(page_viewer_end - page_viewer), out);
	fwrite(at, 1, (size_t)(page_text_end - at), out);
	return err;
}
