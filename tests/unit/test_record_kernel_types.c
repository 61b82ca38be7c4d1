/* test_record_kernel_types.c - of the kernel's types those that are asked for, laid out as before
 *
 * The kernel's are made by libbpf, or are those of the running kernel; what is left of them is read
 * by libbpf.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "record/probe/kernel_types.h"

/* The result of reducing the @len bytes at @kernel to the names in @ours, read by libbpf. NULL: it
 * failed with *@err. */
static struct btf *reduce(const void *kernel, size_t len, const struct btf *ours, int *err)
{
	int fd = memfd_create("reduced", MFD_CLOEXEC);
	struct btf *btf = NULL;
	char path[64];

	assert_true(fd >= 0);
	*err = kernel_types_reduce(fd, kernel, len, ours);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (!*err)
		btf = btf__parse(path, NULL);
	close(fd);
	return btf;
}

static int find(const struct btf *btf, const char *name)
{
	return btf__find_by_name_kind(btf, name, BTF_KIND_STRUCT);
}

/* Are both types laid out in the same way?  Through what has no name, too. */
static void check_same(const struct btf *a, uint32_t ida, const struct btf *b, uint32_t idb)
{
	const struct btf_type *ta = btf__type_by_id(a, ida), *tb = btf__type_by_id(b, idb);

	assert_int_equal(ta->info, tb->info);
	assert_int_equal(ta->size, tb->size);
	for (uint32_t i = 0; i < btf_vlen(ta); i++) {
		const struct btf_member *ma = btf_members(ta) + i, *mb = btf_members(tb) + i;
		const char *name = btf__name_by_offset(a, ma->name_off);
		int inner_a = btf__resolve_type(a, ma->type),
		    inner_b = btf__resolve_type(b, mb->type);

		assert_string_equal(name, btf__name_by_offset(b, mb->name_off));
		assert_int_equal(ma->offset, mb->offset);
		assert_int_equal(btf__resolve_size(a, ma->type), btf__resolve_size(b, mb->type));
		assert_int_equal(btf_kind(btf__type_by_id(a, (uint32_t)inner_a)),
				 btf_kind(btf__type_by_id(b, (uint32_t)inner_b)));
		if (!name[0])
			check_same(a, (uint32_t)inner_a, b, (uint32_t)inner_b);
	}
}

/* struct big { struct inner in; struct { long deep; union { int x; char y; }; }; struct big *next;
 *	enum state s; struct inner many[3]; const count_t n; int bits : 5; };
 * and another one, which nobody asks for. */
static struct btf *make_kernel(void)
{
	struct btf *btf = btf__new_empty();
	int i = btf__add_int(btf, "int", 4, BTF_INT_SIGNED), l = btf__add_int(btf, "long", 8, 1);
	int inner, within, both, next, state, many, count, constant;

	inner = btf__add_struct(btf, "inner", 12);
	btf__add_field(btf, "secret", l, 0, 0);
	btf__add_field(btf, "other", i, 64, 0);
	both = btf__add_union(btf, NULL, 4);
	btf__add_field(btf, "x", i, 0, 0);
	within = btf__add_struct(btf, NULL, 16);
	btf__add_field(btf, "deep", l, 0, 0);
	btf__add_field(btf, NULL, both, 64, 0);
	next = btf__add_ptr(btf, btf__type_cnt(btf) + 7);
	state = btf__add_enum(btf, "state", 4);
	btf__add_enum_value(btf, "STATE_ONE", 1);
	btf__add_enum_value(btf, "STATE_TWO", 2);
	many = btf__add_array(btf, i, inner, 3);
	count = btf__add_typedef(btf, "count_t", within);
	constant = btf__add_const(btf, count);
	btf__add_struct(btf, "unasked", 4);
	btf__add_field(btf, "x", i, 0, 0);
	btf__add_func_proto(btf, i);
	btf__add_struct(btf, "big", 112);
	btf__add_field(btf, "in", inner, 0, 0);
	btf__add_field(btf, NULL, within, 128, 0);
	btf__add_field(btf, "next", next, 256, 0);
	btf__add_field(btf, "s", state, 320, 0);
	btf__add_field(btf, "many", many, 352, 0);
	btf__add_field(btf, "n", constant, 704, 0);
	btf__add_field(btf, "bits", i, 832, 5);
	return btf;
}

/* Our own types: struct big___new and enum state, with members that do not matter. */
static struct btf *make_ours(const char *first, const char *second)
{
	struct btf *btf = btf__new_empty();

	btf__add_struct(btf, first, 0);
	if (second)
		btf__add_enum(btf, second, 4);
	return btf;
}

static void test_what_is_asked_for_stays(void **state)
{
	struct btf *kernel = make_kernel(), *ours = make_ours("big___new", "state___mine"), *left;
	const struct btf_type *t;
	uint32_t len;
	const void *raw = btf__raw_data(kernel, &len);
	int err, id;

	(void)state;
	left = reduce(raw, len, ours, &err);
	assert_int_equal(err, 0);
	assert_non_null(left);
	check_same(kernel, (uint32_t)find(kernel, "big"), left, (uint32_t)find(left, "big"));
	id = btf__find_by_name_kind(left, "state", BTF_KIND_ENUM);
	t = btf__type_by_id(left, (uint32_t)id);
	assert_int_equal(btf_vlen(t), 2);
	assert_string_equal(btf__name_by_offset(left, btf_enum(t)[1].name_off), "STATE_TWO");
	assert_int_equal(btf_enum(t)[1].val, 2);
	/* how large, and no more */
	t = btf__type_by_id(left, (uint32_t)find(left, "inner"));
	assert_int_equal(t->size, 12);
	assert_int_equal(btf_vlen(t), 0);
	assert_true(find(left, "unasked") < 0);
	btf__free(left);
	btf__free(ours);
	btf__free(kernel);
}

static void test_nothing_is_asked_for(void **state)
{
	struct btf *kernel = make_kernel(), *ours = make_ours("nowhere", NULL), *left;
	uint32_t len;
	const void *raw = btf__raw_data(kernel, &len);
	int err;

	(void)state;
	left = reduce(raw, len, ours, &err);
	assert_int_equal(err, 0);
	assert_non_null(left);
	assert_int_equal(btf__type_cnt(left), 1);
	btf__free(left);
	btf__free(ours);
	btf__free(kernel);
}

/* Cut anywhere, or with any byte changed: an error, or something that libbpf can judge. */
static void test_damage(void **state)
{
	struct btf *kernel = make_kernel(), *ours = make_ours("big", "state");
	uint32_t len;
	const uint8_t *raw = btf__raw_data(kernel, &len);
	int err;

	(void)state;
	for (uint32_t cut = 0; cut < len; cut++) {
		uint8_t *part = malloc(cut + 1);

		assert_non_null(part);
		memcpy(part, raw, cut);
		assert_null(reduce(part, cut, ours, &err));
		assert_int_equal(err, -74 /* EBADMSG */);
		free(part);
	}
	for (uint32_t at = 0; at < len * 3; at++) {
		const uint8_t flips[] = {0xff, 1, 0x80};
		uint8_t *whole = malloc(len);

		assert_non_null(whole);
		memcpy(whole, raw, len);
		whole[at % len] ^= flips[at / len];
		btf__free(reduce(whole, len, ours, &err));
		free(whole);
	}
	btf__free(ours);
	btf__free(kernel);
}

/* What bpf/kernel.h asks for. */
static void test_running_kernel(void **state)
{
	const char *const names[] = {"task_struct",   "mm_struct",     "signal_struct",
				     "thread_struct", "pid",	       "pid_namespace",
				     "upid",	      "vm_area_struct"};
	struct btf *kernel = btf__load_vmlinux_btf(), *ours = btf__new_empty(), *left;
	int fd = memfd_create("reduced", MFD_CLOEXEC);
	char path[64];

	(void)state;
	if (!kernel) {
		btf__free(ours);
		skip();
	}
	assert_true(fd >= 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		btf__add_struct(ours, names[i], 0);
	btf__add_enum(ours, "bpf_func_id___mleak", 4);
	assert_int_equal(kernel_types_write(fd, ours), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	left = btf__parse(path, NULL);
	assert_non_null(left);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		check_same(kernel, (uint32_t)find(kernel, names[i]), left,
			   (uint32_t)find(left, names[i]));
	assert_true(btf__find_by_name_kind(left, "bpf_func_id", BTF_KIND_ENUM) > 0);
	assert_true(btf__type_cnt(left) * 10 < btf__type_cnt(kernel));
	close(fd);
	btf__free(left);
	btf__free(ours);
	btf__free(kernel);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_asked_for_stays),
		cmocka_unit_test(test_nothing_is_asked_for),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_running_kernel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
