/* left_out.c - see left_out.h */
#include "report/context/left_out.h"

#include "report/base/text.h"

void print_left_out(FILE *out, size_t nr, const char *one, const char *many,
		    struct live_amount amount)
{
	char number[TEXT_NUMBER_MAX], blocks[TEXT_NUMBER_MAX], bytes[TEXT_NUMBER_MAX];

	if (nr)
		fprintf(out, "left out: %s %s with %s %s, %s bytes\n", text_number(number, nr),
			nr == 1 ? one : many, text_number(blocks, amount.blocks),
			text_blocks(amount.blocks), text_number(bytes, amount.bytes));
}
