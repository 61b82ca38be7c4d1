/* pack.c - see pack.h */
#include "report/page/pack.h"

#include <errno.h>
#include <stdlib.h>

#define BITS 5
#define MORE (1u << BITS)

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

int pack_open(struct pack *pack)
{
	*pack = (struct pack){0};
	pack->out = open_memstream(&pack->text, &pack->len);
	return pack->out ? 0 : -ENOMEM;
}

void pack_number(struct pack *pack, uint64_t number)
{
	for (; number >= MORE; number >>= BITS, pack->nr++)
		fputc(digits[number % MORE + MORE], pack->out);
	fputc(digits[number], pack->out);
	pack->nr++;
}

void pack_signed(struct pack *pack, int64_t number)
{
	pack_number(pack, number < 0 ? ((0 - (uint64_t)number) << 1) - 1 : (uint64_t)number << 1);
}

int pack_close(struct pack *pack, struct json *json, const char *key)
{
	int err = 0;

	if (pack->out && fclose(pack->out))
		err = -ENOMEM;
	else if (pack->out && json)
		json_text(json, key, pack->text);
	free(pack->text);
	*pack = (struct pack){0};
	return err;
}
