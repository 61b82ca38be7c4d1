/* session_switch.c - one trace ends, and the next one begins, while events come */
#include "record/session/interpreted.h"
#include "record/session/session.h"

void session_end_trace(struct session *s, enum mlk_end reason, uint64_t *bytes)
{
	/* without events time goes on, too */
	if (s->preload && preload_taken_ns(s->preload) > s->time_ns)
		s->time_ns = preload_taken_ns(s->preload);
	trace_out_fail(&s->out, overrun_list_flush(&s->overruns, s->out.writer));
	session_sample_all(s);
	session_flush_memory(s);
	session_write_accounts(s, true);
	session_write_interpreters(s);
	session_flush(s);
	if (!s->out.err)
		trace_out_fail(&s->out, mlk_writer_finish(s->out.writer, reason, s->time_ns));
	*bytes = mlk_writer_bytes(s->out.writer);
	session_losses(s, &s->before);
}

void session_begin_trace(struct session *s, const struct session_opts *opts, int fd)
{
	struct session_opts how = *opts;
	struct mlk_writer *ended = s->out.writer;
	int err;

	how.fd = fd;
	s->switched = true;
	s->out.writer = NULL;
	mlk_writer_free(ended); /* its thread is done with the file */
	err = session_write_meta(s, &how);
	if (err) {
		s->out.writer = NULL;
		trace_out_fail(&s->out, err);
		return;
	}
	module_table_begin_trace(&s->out.modules);
	code_ranges_release(&s->code);
	code_table_begin_trace(&s->codes);
	s->out.code_changed = true;
	s->losses_ns = 0;
	/* META tells the triggers of the command line */
	if (s->chosen)
		session_mark(s, MLK_MARK_CHANGE, "as chosen in the traces before");
	if (s->probes)
		probes_begin_accounts(s->probes);
	else if (s->preload)
		accounts_begin_trace(&preload_accounts(s->preload)->sums);
	for (size_t i = 0; i < s->nr && !s->out.err; i++)
		process_begin_trace(s->all[i], &s->out);
	session_sample_all(s);
}

void session_own_losses(const struct session *s, struct mlk_losses *losses)
{
	session_losses(s, losses);
	for (int i = 0; i < MLK_LOSS_NR; i++)
		losses->count[i] -= s->before.count[i];
	for (int i = 0; i < MLK_SKIP_NR; i++) {
		losses->skipped[i] -= s->before.skipped[i];
		losses->skipped_bytes[i] -= s->before.skipped_bytes[i];
	}
}
