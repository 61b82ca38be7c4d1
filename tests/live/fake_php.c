/* fake_php.c - what looks like PHP 8.2 to a recorder, and lies
 *
 * usage: php-fake circle|type|generators|exception|none
 *
 * circle: the frame chain has no end.  type: its function is of a kind that is none.  generators:
 * the ones that delegate do so in a circle.  exception: the instruction is another's, and the one
 * before the exception, too.  none: nothing is executed.  It allocates 100 blocks of 47 bytes.
 *
 * With VERSION it says that it is another one, and with ELSEWHERE it has its innermost frame
 * elsewhere.  It may be a library, too, with -Dmain=php_main.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef VERSION
#define VERSION "8.2.99"
#endif
#ifdef ELSEWHERE
#define CURRENT 62
#else
#define CURRENT 61
#endif
#define SHOWN __attribute__((visibility("default")))

SHOWN uint64_t executor_globals[225];
SHOWN uint64_t *zend_ce_generator;
static uint64_t class[4], frame[8], inner[8], function[31], name[8], file[8], generator[32], op[8];

const char *const header = "X-Powered-By: PHP/" VERSION;

SHOWN __attribute__((noinline)) uint64_t *zend_get_executed_scope(void)
{
	return *(uint64_t **)&executor_globals[CURRENT];
}

static void make_text(uint64_t *text, const char *characters)
{
	text[2] = strlen(characters);
	strcpy((char *)&text[3], characters);
}

static void make(const char *kind)
{
	make_text(name, "circle");
	make_text(file, "nowhere.php");
	zend_ce_generator = class;
	function[0] = strcmp(kind, "type") ? 2 : 77;
	function[1] = (uint64_t)name;
	function[10] = 1; /* instruction */
	function[11] = (uint64_t)op;
	function[19] = (uint64_t)file;
	function[20] = 7; /* the first line */
	op[3] = 9;	  /* the line */
	frame[0] = strcmp(kind, "exception") ? (uint64_t)op : (uint64_t)op + 3200;
	executor_globals[110] = (uint64_t)op - 3200;
	frame[3] = (uint64_t)function;
	frame[5] = 1u << 17;	    /* execute_ex() was called for it */
	frame[6] = (uint64_t)frame; /* it is its own caller */
	if (!strcmp(kind, "exception"))
		frame[6] = 0;
	if (!strcmp(kind, "generators")) {
		frame[5] |= 1u << 24;
		frame[6] = (uint64_t)inner;
		inner[4] = (uint64_t)generator;
		inner[5] = 8; /* an object */
		generator[2] = (uint64_t) class;
		generator[7] = (uint64_t)frame;
		generator[19] = (uint64_t)generator; /* it delegates to itself */
	}
	if (strcmp(kind, "none"))
		executor_globals[CURRENT] = (uint64_t)frame;
}

SHOWN __attribute__((noinline)) void *execute_ex(void)
{
	void *block = malloc(47);

	__asm__ volatile("" : "+r"(block)); /* no tail call */
	return block;
}

int main(int argc, char **argv)
{
	make(argc > 1 ? argv[1] : "none");
	for (int i = 0; i < 100; i++)
		execute_ex();
	return zend_get_executed_scope() == NULL && puts(header) < 0;
}
