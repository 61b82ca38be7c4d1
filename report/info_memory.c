/* info_memory.c - see info_memory.h */
#include "report/info_memory.h"

#include <inttypes.h>
#include <stdio.h>

#include "report/base/text.h"

/* The least and the most of @value in the samples of @process. */
static void put_range(const struct memory_process *process, enum mlk_memory_value value)
{
	char least_text[TEXT_NUMBER_MAX], most_text[TEXT_NUMBER_MAX];
	uint64_t least = UINT64_MAX, most = 0;

	for (size_t i = 0; i < process->nr; i++) {
		const struct mlk_memory *sample = &process->all[i];

		if (!(sample->known >> value & 1))
			continue;
		least = sample->value[value] < least ? sample->value[value] : least;
		most = sample->value[value] > most ? sample->value[value] : most;
	}
	if (least <= most)
		printf(", %s %s to %s", mlk_memory_text(value), text_number(least_text, least),
		       text_number(most_text, most));
}

void info_memory_put(const struct memory_samples *memory)
{
	char buf[TEXT_NUMBER_MAX];

	for (size_t i = 0; i < memory->nr; i++) {
		const struct memory_process *process = &memory->all[i];

		printf("%-12s ", "memory");
		if (process->tgid)
			printf("%" PRIu32, process->tgid);
		else
			fputs("machine", stdout);
		printf(" %s %s", text_number(buf, process->taken),
		       process->taken == 1 ? "sample" : "samples");
		put_range(process, process->tgid ? MLK_MEMORY_RSS : MLK_MEMORY_AVAILABLE);
		if (process->tgid)
			put_range(process, MLK_MEMORY_PSS);
		if (process->failed)
			printf(", %s failed: %s", text_number(buf, process->failed),
			       mlk_strerror(-(int)(process->error & INT32_MAX)));
		putchar('\n');
	}
	if (memory->left_out)
		printf("%-12s %s\n", "memory left", text_number(buf, memory->left_out));
}
