/* test_record_thread_values.c - values by keys are where the C library says that threads have them
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "record/interpreter/thread_values.h"
#include "record/target/maps.h"

#define PYTHON_READ(to, addr, len) (memcpy((to), (const void *)(uintptr_t)(addr), (len)), 0)
#include "bpf/python_walk.h"

#define KEYS 100 /* of several blocks */

/* What this process has of it. */
static uint16_t find_values(void)
{
	struct target t = {.pid = getpid(), .task = getpid(), .pidfd = -1};
	struct maps maps = {0};
	uint16_t found = 0;

	assert_int_equal(maps_read(&maps, getpid()), 0);
	for (size_t i = 0; i < maps.nr && !found; i++)
		if (maps.v[i].perms & MLK_PERM_X && maps.v[i].inode &&
		    thread_values_is_likely(&maps.v[i]))
			found = thread_values_find(&t, &maps.v[i]);
	maps_release(&maps);
	return found;
}

static void *check_each(void *arg)
{
	const pthread_key_t *keys = arg;
	const uint64_t self = (uint64_t)__builtin_thread_pointer();
	struct python_walk w;

	for (uintptr_t i = 0; i < KEYS; i++) {
		const uint32_t key[2] __attribute__((aligned(8))) = {1, keys[i]};
		const uint32_t none[2] __attribute__((aligned(8))) = {0, keys[i]};
		struct event_python py = {.key = (uintptr_t)key, .specific = find_values()};

		assert_true(py.specific != 0);
		assert_int_equal(python_kept_state(&w, &py, self), 0);
		assert_int_equal(pthread_setspecific(keys[i], (void *)(i * 8 + 8)), 0);
		assert_int_equal(python_kept_state(&w, &py, self), i * 8 + 8);
		/* that the key is not made yet, or not any more */
		py.key = (uintptr_t)none;
		assert_int_equal(python_kept_state(&w, &py, self), 0);
		py = (struct event_python){.key = (uintptr_t)key};
		assert_int_equal(python_kept_state(&w, &py, self), 0);
		assert_int_equal(pthread_setspecific(keys[i], NULL), 0);
	}
	return NULL;
}

static void values_are_where_it_says(void **state)
{
	pthread_key_t keys[KEYS];
	pthread_t thread;

	(void)state;
	for (int i = 0; i < KEYS; i++)
		assert_int_equal(pthread_key_create(&keys[i], NULL), 0);
	check_each(keys);
	assert_int_equal(pthread_create(&thread, NULL, check_each, keys), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	for (int i = 0; i < KEYS; i++)
		pthread_key_delete(keys[i]);
}

static void other_files_say_nothing(void **state)
{
	struct target t = {.pid = getpid(), .task = getpid(), .pidfd = -1};
	struct maps maps = {0};
	unsigned int looked = 0;

	(void)state;
	assert_int_equal(maps_read(&maps, getpid()), 0);
	for (size_t i = 0; i < maps.nr; i++) {
		const struct mlk_mapping *m = &maps.v[i];

		if (!(m->perms & MLK_PERM_X) || !m->inode || thread_values_is_likely(m))
			continue;
		assert_int_equal(thread_values_find(&t, m), 0);
		looked++;
	}
	assert_true(looked > 0);
	maps_release(&maps);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_are_where_it_says),
		cmocka_unit_test(other_files_say_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
