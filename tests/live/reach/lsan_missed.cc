/* lsan_missed.cc - what LeakSanitizer misses, by reports about it: words that stacks have kept */
#include "lsan_cases.h"

FRAME void deep_frame(void *block)
{
	void *volatile words[2048];

	words[0] = block;
	keep((void *)words);
}

FRAME void stale_stack_leak(void)
{
	deep_frame(get(1237));
	tell("lost", 1, 1237);
}

FRAME void first_frame(void)
{
	void *volatile words[128];

	words[0] = get(1249);
	keep((void *)words);
}

/* The words of the frame before are in this one, too. */
FRAME void second_frame(void)
{
	volatile char room[1024];

	keep((void *)room);
	exit(0);
}

FRAME void frames_overlay(void)
{
	tell("lost", 1, 1249);
	first_frame();
	second_frame();
}

struct one_word {
	void *word;
};

FRAME struct one_word by_value(void)
{
	struct one_word s;

	s.word = get(1259);
	return s;
}

FRAME void rarely_missed(void)
{
	struct one_word s = by_value();

	keep(&s);
	tell("lost", 1, 1259);
}

FRAME void trivial_leak(void)
{
	char *text = (char *)get(3);

	strcpy(text, "aa");
	say("%s\n", text);
	tell("lost", 1, 3);
}

FRAME void stack_scan(void)
{
	char *volatile text = (char *)get(1277);

	strcpy(text, "hello");
	tell("lost", 1, 1277);
	exit(0);
}

const struct lsan_case missed_cases[] = {
	CASE(stale_stack_leak), CASE(frames_overlay), CASE(rarely_missed),
	CASE(trivial_leak),	CASE(stack_scan),     {NULL, NULL},
};
