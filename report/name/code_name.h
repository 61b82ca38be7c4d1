/* code_name.h - what a runtime calls a function of generated code, as people call it */
#ifndef REPORT_CODE_NAME_H
#define REPORT_CODE_NAME_H

#include <stdint.h>

/* A function of generated code. */
struct code_name {
	char *function;
	char *file;    /* or NULL */
	uint32_t line; /* or 0 */
};

/*
 * Take apart @text, a name of a perf map, as "JS:*handle /srv/app.js:12:3" of Node.js, or
 * "Lorg/x/Server;::handle" of Java.  How well code was compiled is no part of its name.  The
 * strings of *@name are to be freed.  Returns 0, or -ENOMEM with nothing in it.
 */
int code_name_parse(struct code_name *name, const char *text);

#endif
