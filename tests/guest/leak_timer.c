/* leak_timer.c - a kernel module that leaks on purpose, and counts what it does
 *
 * A timer allocates blocks of 64 bytes at each tick, in softirq context, and frees them soon after,
 * but one of 1,000.  /sys/module/leak_timer/parameters/ has the answers: allocated, freed, kept.
 * To write 1 to run there starts the timer; 0 stops it, and frees what was not to be kept.  To
 * write anything to now does at once, in the thread that writes, what the timer does at a tick.
 */
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/timer.h>
#include <linux/version.h>

#define SIZE	 64
#define PER_TICK 100
#define KEEP	 1000 /* one of so many */
#define PENDING	 16   /* blocks that wait to be freed */

struct block {
	struct block *next;
	char rest[SIZE - sizeof(struct block *)];
};

static struct timer_list timer;
static struct block *pending[PENDING], *leaked;
static unsigned long allocated, freed, kept;
static bool run;

module_param(allocated, ulong, 0444);
module_param(freed, ulong, 0444);
module_param(kept, ulong, 0444);

static void release_block(struct block *b)
{
	if (b) {
		freed++;
		kfree(b);
	}
}

/* It calls kmalloc() from another page than that which it begins in, behind all other functions: so
 * it has a name only if the module's code is known to its end. */
static noinline __section(".text.last") struct block *leak_here(void)
{
	struct block *b;

	asm volatile("jmp 1f\n.skip 4096, 0xcc\n1:");
	b = kmalloc(sizeof(*b), GFP_ATOMIC);
	if (b)
		allocated++;
	return b;
}

static __always_inline void allocate_some(void)
{
	for (int i = 0; i < PER_TICK; i++) {
		struct block **place = &pending[i % PENDING], *b = leak_here();

		if (b && allocated % KEEP == 0) {
			b->next = leaked;
			leaked = b;
			kept++;
			continue;
		}
		release_block(*place);
		*place = b;
	}
}

static noinline void leak_timer_tick(struct timer_list *unused)
{
	allocate_some();
	mod_timer(&timer, jiffies + 1);
}

static void stop(void)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
	del_timer_sync(&timer);
#else
	timer_delete_sync(&timer);
#endif
	for (int i = 0; i < PENDING; i++) {
		release_block(pending[i]);
		pending[i] = NULL;
	}
}

static int set_run(const char *text, const struct kernel_param *param)
{
	bool was = run;
	int err = param_set_bool(text, param);

	if (err || run == was)
		return err;
	if (run)
		mod_timer(&timer, jiffies + 1);
	else
		stop();
	return 0;
}

static const struct kernel_param_ops run_ops = {.set = set_run, .get = param_get_bool};
module_param_cb(run, &run_ops, &run, 0644);

/* Only while the timer does not run. */
static noinline int leak_timer_now(const char *text, const struct kernel_param *param)
{
	allocate_some();
	return 0;
}

static const struct kernel_param_ops now_ops = {.set = leak_timer_now};
module_param_cb(now, &now_ops, NULL, 0200);

static int __init leak_timer_init(void)
{
	timer_setup(&timer, leak_timer_tick, TIMER_PINNED);
	return 0;
}

static void leak_timer_exit(void)
{
	stop();
	while (leaked) {
		struct block *b = leaked;

		leaked = b->next;
		kfree(b);
	}
}

module_init(leak_timer_init);
module_exit(leak_timer_exit);
MODULE_DESCRIPTION("leaks on purpose, for tests of mleak");
MODULE_LICENSE("Dual BSD/GPL");
