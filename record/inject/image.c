/* image.c - see image.h */
#include "record/inject/image.h"

#include <stdbool.h>
#include <string.h>

#define PAGE 4096u

/* The bytes of the image, as record/injected/build.mk makes them. */
__asm__(".section .rodata\n"
	".p2align 12\n"
	"image_bytes: .incbin \"" IMAGE "\"\n"
	"image_bytes_end: .byte 0\n"
	".previous\n");
extern const uint8_t image_bytes[], image_bytes_end[];

/* Are @bytes at @offset within the data of the image, or what is zero behind it? */
static bool is_data(const struct injected_image *h, uint64_t offset, uint64_t bytes)
{
	return offset >= h->text_end && offset + bytes <= h->end;
}

static const char *check(const struct injected_image *h, size_t bytes)
{
	if (h->magic != INJECTED_IMAGE || h->layout != PRELOAD_LAYOUT)
		return "is of another build";
	if ((h->text_end | h->data_end | h->end | h->own) % PAGE || h->text_end > h->data_end ||
	    h->data_end != bytes || h->end < bytes)
		return "is not as long as it says";
	if (!is_data(h, h->injected, sizeof(struct injected)) ||
	    !is_data(h, h->own, sizeof(union injected_own)) ||
	    !is_data(h, h->threads, h->nr_threads * sizeof(struct injected_thread)))
		return "has its data elsewhere than it says";
	for (int i = 0; i < INJECTED_NR_STUBS; i++)
		if (h->stubs[i] < sizeof(*h) || h->stubs[i] >= h->text_end)
			return "has its functions elsewhere than it says";
	return NULL;
}

const char *image_get(struct image *out)
{
	const struct injected_image *h = (const struct injected_image *)image_bytes;
	const char *why = check(h, (size_t)(image_bytes_end - image_bytes));

	if (why)
		return why;
	*out = (struct image){.bytes = image_bytes,
			      .text_bytes = h->text_end,
			      .data_bytes = h->data_end - h->text_end,
			      .all_bytes = h->end,
			      .injected = h->injected,
			      .own = h->own,
			      .threads = h->threads,
			      .nr_threads = h->nr_threads,
			      .memory_bytes = h->memory_bytes};
	for (int i = 0; i < INJECTED_NR_STUBS; i++)
		out->stubs[i] = h->stubs[i];
	return NULL;
}

static int stub_of_new(const char *name)
{
	if (strstr(name, IMAGE_NOTHROW))
		return INJECTED_NEW_NOTHROW;
	return strstr(name, "St11align_val_t") ? INJECTED_NEW_ALIGNED : INJECTED_NEW;
}

int image_stub_for(uint32_t func, const char *name)
{
	static const uint8_t plus_one[] = {
		[FUNC_MALLOC] = INJECTED_MALLOC + 1,
		[FUNC_CALLOC] = INJECTED_CALLOC + 1,
		[FUNC_REALLOC] = INJECTED_REALLOC + 1,
		[FUNC_POSIX_MEMALIGN] = INJECTED_POSIX_MEMALIGN + 1,
		[FUNC_ALIGNED_ALLOC] = INJECTED_ALIGNED_ALLOC + 1,
		[FUNC_MEMALIGN] = INJECTED_ALIGNED_ALLOC + 1,
		[FUNC_VALLOC] = INJECTED_MALLOC + 1,
		[FUNC_PVALLOC] = INJECTED_MALLOC + 1,
		[FUNC_REALLOCARRAY] = INJECTED_REALLOCARRAY + 1,
		[FUNC_MMAP] = INJECTED_MMAP + 1,
		[FUNC_MREMAP] = INJECTED_MREMAP + 1,
		[FUNC_FREE] = INJECTED_FREE + 1,
		[FUNC_DELETE] = INJECTED_FREE + 1,
		[FUNC_MUNMAP] = INJECTED_MUNMAP + 1,
		[FUNC_MPROTECT] = INJECTED_MPROTECT + 1,
		[FUNC_MADVISE] = INJECTED_MADVISE + 1,
	};

	if (func == FUNC_NEW || func == FUNC_NEW_ARRAY)
		return stub_of_new(name);
	if (func == IMAGE_LOADER)
		return INJECTED_LOADER;
	return func < sizeof(plus_one) ? plus_one[func] - 1 : -1;
}
