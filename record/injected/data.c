/* data.c - the image's data, and what the event writer has from the C library elsewhere */
#include <sys/syscall.h>
#include <time.h>

#include "record/injected/threads.h"
#include "record/libpreload/event/sample.h"

#define TEXT(x)	 TEXT_(x)
#define TEXT_(x) #x

struct injected injected __attribute__((section(".injected"), aligned(4096)));

union preload_own preload_own __attribute__((section(".own"), aligned(4096)));

/* Names of parts of it. */
__asm__(".globl preload_settings, preload_state\n"
	".hidden preload_settings, preload_state\n"
	".set preload_settings, injected + " TEXT(
		INJECTED_SETTINGS_AT) "\n"
				      ".set preload_state, injected + " TEXT(
					      INJECTED_STATE_AT) "\n");

#define AT(type, member, at) _Static_assert(offsetof(type, member) == (at), "as the stubs know it")

_Static_assert(sizeof(struct injected_thread) == INJECTED_THREAD_SIZE &&
		       !(INJECTED_NR_THREADS & (INJECTED_NR_THREADS - 1)),
	       "as the stubs know it");
AT(struct injected_thread, tcb, 0);
AT(struct injected_thread, tid, INJECTED_TID_AT);
AT(struct injected_thread, inside, INJECTED_INSIDE_AT);
AT(struct injected_thread, self, INJECTED_SELF_AT);
AT(struct injected, tid_offset, INJECTED_TID_OFFSET_AT);
AT(struct injected, state.loader, INJECTED_LOADER_AT);
AT(struct preload_thread, lanes[0], 0);
AT(struct preload_thread, sampler.distance, INJECTED_DISTANCE_AT);
AT(struct preload_thread, sampler.drawn, INJECTED_DRAWN_AT);
AT(struct preload_thread, sampler.released, INJECTED_RELEASED_AT);
AT(struct thread_ring, ring, 0);
AT(struct preload_ring, skipped[EVENT_SKIP_SAMPLE], INJECTED_SKIPPED_AT + 8 * INJECTED_SKIP_SAMPLE);
AT(struct preload_ring, skipped[EVENT_SKIP_FREE], INJECTED_SKIPPED_AT + 8 * INJECTED_SKIP_FREE);
AT(struct preload_ring, skipped_bytes, INJECTED_SKIPPED_BYTES_AT);
AT(struct preload_lanes, loader_seen, 0);
AT(struct sample_kept, cells, 0);
_Static_assert(SAMPLE_CELLS == 1 << 16 && PRELOAD_RELEASED_NONE == 0, "as the stubs know it");
_Static_assert(sizeof(preload_self.sampler.released) == 4 && sizeof(sample_full) == 1,
	       "as the stubs write and read it");

static uint64_t memory_used;

_Static_assert(INJECTED_MEMORY > PRELOAD_MAX_RINGS * sizeof(struct thread_ring) + (8u << 20),
	       "room for all rings, and for the addresses of a sample");

static uint64_t whole_pages(uint64_t bytes)
{
	return (bytes + 4095) & ~4095ull;
}

void *preload_get_memory(size_t bytes)
{
	uint64_t at;

	bytes = whole_pages(bytes);
	at = __atomic_fetch_add(&memory_used, bytes, __ATOMIC_RELAXED);
	return at + bytes <= INJECTED_MEMORY ? (void *)(injected.memory + at) : NULL;
}

void preload_give_memory_back(void *memory, size_t bytes)
{
	uint64_t at = (uint64_t)memory - injected.memory, end = at + whole_pages(bytes);

	/* Unless another has been given out since. */
	__atomic_compare_exchange_n(&memory_used, &end, at, false, __ATOMIC_RELAXED,
				    __ATOMIC_RELAXED);
}

uint64_t preload_monotonic_ns(void)
{
	struct timespec ts = {0};

	preload_syscall(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&ts, 0, 0);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* In a child of fork there is no memory, and it is not looked for. */
struct preload_header *thread_ring_find_memory(enum preload_loss kind)
{
	(void)kind;
	return NULL;
}

/* What a child of vfork does it does to its parent's memory: it counts as that. */
bool thread_ring_is_child(void)
{
	preload_self.vforked = false;
	return false;
}

/* The loader's list of modules has a lock, which is not ours to take.  Where nothing says that it
 * has changed, the loader may go on allocating until it has: the recorder looks when it is left. */
void thread_ring_check_loader(uint64_t pc)
{
	bool inside = preload_in_loader(pc);
	uint64_t now;

	__atomic_store_n(&preload_lanes.loader_seen, inside, __ATOMIC_RELAXED);
	if (injected.modules_at) {
		now = *(const volatile uint64_t *)injected.modules_at;
		if (__atomic_exchange_n(&injected.modules, now, __ATOMIC_RELAXED) == now)
			return;
	} else if (inside) {
		return;
	}
	preload_maps_changed(true);
}
