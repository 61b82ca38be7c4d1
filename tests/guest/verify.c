/* verify.c - has the kernel's verifier follow each BPF program, and says what that took
 *
 * For each way in which the recorder sets the programs up: a line for each program,
 *
 *	verified VARIANT PROGRAM instructions=N processed=N states=N
 *
 * where processed is what the kernel limits to 1,000,000.  Exit status: 0 when all were taken, 1
 *when one was refused, with the end of the verifier's account on stderr.
 */
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/event.h"
#include "mleak.bpf.skel.h"
#include "reach.bpf.skel.h"

#define STATS_ONLY 4 /* linux/bpf_verifier.h: BPF_LOG_STATS */
#define ALL_STEPS  1 /* BPF_LOG_LEVEL1 */
#define LOG_BYTES  (16u << 20)
#define SHOWN	   3000 /* bytes of the end of an account */
#define MAX_PROGS  32

static const struct variant {
	const char *name;
	bool filtered, follow, in_pidns, by_number, sessions;
} variants[] = {
	{.name = "plain"},
	{.name = "sessions", .sessions = true},
	{.name = "follow+pidns", .follow = true, .in_pidns = true},
	{.name = "filtered", .filtered = true},
	{.name = "filtered+sessions", .filtered = true, .sessions = true},
	{.name = "sampled", .filtered = true, .by_number = true},
	{.name = "filtered+follow+pidns", .filtered = true, .follow = true, .in_pidns = true}};

static int print_nothing(enum libbpf_print_level level, const char *fmt, va_list args)
{
	(void)level, (void)fmt, (void)args;
	return 0;
}

static void set_up(struct mleak_bpf *skel, const struct variant *v)
{
	skel->rodata->follow = v->follow;
	skel->rodata->use_slots = 1;
	skel->rodata->sessions = v->sessions;
	skel->rodata->pidns_dev = v->in_pidns ? 4 : 0;
	skel->rodata->pidns_ino = v->in_pidns ? 4026532000u : 0;
	if (v->filtered)
		memcpy((void *)&skel->rodata->filter,
		       &(struct event_filter){.min_size = 16,
					      .max_size = 1 << 20,
					      .sum_processes = true,
					      .sum_sites = true,
					      .accounts = true,
					      .on = true,
					      .delays = true,
					      .by_thread = true,
					      .samples = true,
					      .by_bytes = !v->by_number},
		       sizeof(struct event_filter));
	/* a sample of many: each binary digit of the next one's distance is drawn */
	for (int i = 0; v->filtered && i < EVENT_FILTER_DIGITS; i++)
		skel->rodata->filter.digits[i] = 1u << 31;
}

/* The number behind @word in @log. */
static unsigned long number(const char *log, const char *word)
{
	const char *at = strstr(log, word);

	return at ? strtoul(at + strlen(word), NULL, 10) : 0;
}

static void print_row(const char *name, const struct bpf_program *prog, const char *log)
{
	printf("verified %s %s instructions=%zu processed=%lu states=%lu\n", name,
	       bpf_program__name(prog), bpf_program__insn_cnt(prog), number(log, "processed "),
	       number(log, "total_states "));
}

/* Say why @prog was refused: the end of its @log. */
static void print_refusal(const char *name, const struct bpf_program *prog, const char *log)
{
	size_t len = strlen(log);

	fprintf(stderr, "refused %s %s: ...%s\n", name, bpf_program__name(prog),
		log + (len > SHOWN ? len - SHOWN : 0));
}

/* Load the programs of @obj with accounts of @level.  Returns as bpf_object__load(). */
static int judge(const char *name, struct bpf_object *obj, int level, char *logs[MAX_PROGS])
{
	struct bpf_program *prog;
	int err, i = 0;

	bpf_object__for_each_program(prog, obj)
	{
		logs[i][0] = '\0';
		bpf_program__set_log_level(prog, (unsigned int)level);
		bpf_program__set_log_buf(prog, logs[i++], LOG_BYTES);
	}
	err = bpf_object__load(obj);
	i = 0;
	bpf_object__for_each_program(prog, obj)
	{
		if (!err)
			print_row(name, prog, logs[i]);
		else if (level == ALL_STEPS && bpf_program__fd(prog) < 0 && *logs[i])
			print_refusal(name, prog, logs[i]);
		i++;
	}
	return err;
}

/* The same of all programs of @v; NULL: of those that read registers. */
static int verify(const struct variant *v, int level, char *logs[MAX_PROGS])
{
	struct mleak_bpf *skel = v ? mleak_bpf__open() : NULL;
	struct reach_bpf *reach = v ? NULL : reach_bpf__open();
	int err;

	if (!skel && !reach)
		return -errno;
	if (v)
		set_up(skel, v);
	else
		reach->rodata->pidns_ino = 4026532000u;
	err = judge(v ? v->name : "reach", v ? skel->obj : reach->obj, level, logs);
	mleak_bpf__destroy(skel);
	reach_bpf__destroy(reach);
	return err;
}

int main(void)
{
	char *logs[MAX_PROGS];
	int status = 0;

	libbpf_set_print(print_nothing);
	for (int i = 0; i < MAX_PROGS; i++)
		if (!(logs[i] = malloc(LOG_BYTES)))
			return 1;
	for (size_t i = 0; i <= sizeof(variants) / sizeof(variants[0]); i++) {
		const struct variant *v = i ? &variants[i - 1] : NULL;
		int err = verify(v, STATS_ONLY, logs);

		if (!err)
			continue;
		fprintf(stderr, "%s: %s\n", v ? v->name : "reach", strerror(-err));
		verify(v, ALL_STEPS, logs);
		status = 1;
	}
	for (int i = 0; i < MAX_PROGS; i++)
		free(logs[i]);
	return status;
}
