/* memory_then.c - see memory_then.h */
#include "report/context/memory_then.h"

#include <errno.h>

/* Is the report about @process? The machine is none. */
static bool is_chosen(const struct report_data *export, const struct memory_process *process)
{
	const uint32_t pid = export->leaks->chosen.pid;

	return process->tgid && (!pid || process->tgid == pid);
}

static bool sum_at(const struct report_data *export, enum mlk_memory_value value, uint64_t time_ns,
		   uint64_t *bytes)
{
	const struct replay *leaks = export->leaks;
	const struct memory_process *process;
	const struct mlk_memory *sample;

	if (!leaks->chosen.pid)
		return memory_samples_at(&leaks->memory, value, time_ns, bytes);
	process = memory_samples_find(&leaks->memory, leaks->chosen.pid);
	sample = process ? memory_sample_at(process, value, time_ns) : NULL;
	*bytes = sample ? sample->value[value] : 0;
	return sample;
}

/* When the last process ended up to @until_ns; 0: none did. */
static uint64_t last_end(const struct report_data *export, uint64_t until_ns)
{
	const struct memory_samples *samples = &export->leaks->memory;
	uint64_t last = 0;

	for (size_t i = 0; i < samples->nr; i++) {
		const struct memory_process *p = &samples->all[i];

		for (size_t at = 0; at < p->nr && p->all[at].time_ns <= until_ns; at++)
			if (is_chosen(export, p) && !p->all[at].known &&
			    p->all[at].error == ESRCH && p->all[at].time_ns > last)
				last = p->all[at].time_ns;
	}
	return last;
}

bool memory_then(const struct report_data *export, enum mlk_memory_value value, uint64_t from_ns,
		 uint64_t until_ns, uint64_t *bytes)
{
	uint64_t end_ns;

	if (sum_at(export, value, until_ns, bytes))
		return true;
	end_ns = last_end(export, until_ns);
	return end_ns > from_ns && sum_at(export, value, end_ns - 1, bytes);
}

/* Has any sample of @value at least @least bytes? */
static bool is_any(const struct report_data *export, enum mlk_memory_value value, uint64_t least)
{
	const struct memory_samples *samples = &export->leaks->memory;

	for (size_t i = 0; i < samples->nr; i++)
		for (size_t at = 0; at < samples->all[i].nr; at++)
			if (is_chosen(export, &samples->all[i]) &&
			    samples->all[i].all[at].known >> value & 1 &&
			    samples->all[i].all[at].value[value] >= least)
				return true;
	return false;
}

bool memory_is_known(const struct report_data *export)
{
	return is_any(export, MLK_MEMORY_RSS, 0);
}

bool memory_was_swapped(const struct report_data *export)
{
	return is_any(export, MLK_MEMORY_SWAP, 1);
}
