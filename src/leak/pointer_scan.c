/*
 * Reading the target's memory for pointers; pointer_scan.h has the picture.
 *
 * Pieces are small enough to stay in a CPU's cache between the kernel's copy and
 * the look at them.
 */
#include "leak/pointer_scan.h"

#include <sys/mman.h>

#include "base/log.h"
#include "leak/block_index.h"

#define PIECE_SIZE (1u << 20)
#define LARGE_PAGE (1u << 21)
#define NEAR_SHIFT 21
#define NEAR_BITS (UINT64_C(1) << (BLOCK_INDEX_ADDRESS_BITS - NEAR_SHIFT))
#define PAGE_WORDS (PAGE_SIZE_MIN / sizeof(uint64_t))

void pointer_scan_init(struct pointer_scan *s)
{
	*s = (struct pointer_scan){.low = UINT64_MAX};
	s->near = xcalloc(NEAR_BITS / 64, sizeof(*s->near));
	s->buffer = xmalloc(PIECE_SIZE);
}

void pointer_scan_deinit(struct pointer_scan *s)
{
	vec_deinit(&s->pages);
	if (s->reserved)
		munmap(s->values.data, s->reserved);
	else
		free(s->values.data);
	s->values.data = NULL;
	s->values.count = s->values.capacity = s->reserved = 0;
	free(s->near);
	free(s->buffer);
	s->near = NULL;
	s->buffer = NULL;
}

void pointer_scan_add_target(struct pointer_scan *s, taddr_t start, taddr_t end)
{
	s->low = MIN(s->low, start);
	s->high = MAX(s->high, end);
	for (uint64_t i = start >> NEAR_SHIFT; i <= (end - 1) >> NEAR_SHIFT; i++)
		s->near[i / 64] |= UINT64_C(1) << i % 64;
}

void pointer_scan_reserve(struct pointer_scan *s, uint64_t bytes)
{
	size_t size = ROUND_UP(bytes + PIECE_SIZE, (uint64_t)LARGE_PAGE);

	if (s->reserved || s->values.data)
		return;
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return; /* it grows as it is needed */
	madvise(p, size, MADV_HUGEPAGE);
	s->values.data = p;
	s->values.capacity = size / sizeof(*s->values.data);
	s->reserved = size;
}

bool pointer_scan_has_target_near(const struct pointer_scan *s, taddr_t start, taddr_t end)
{
	uint64_t last = (MIN(end, UINT64_C(1) << BLOCK_INDEX_ADDRESS_BITS) - 1) >> NEAR_SHIFT;

	for (uint64_t i = start >> NEAR_SHIFT; i <= last; i++)
		if (s->near[i / 64] >> i % 64 & 1)
			return true;
	return false;
}

/* Much memory is zero: eight words at a time. */
static bool is_zero(const uint64_t word[8])
{
	return !(word[0] | word[1] | word[2] | word[3] | word[4] | word[5] | word[6] | word[7]);
}

/* Keeps words of a page (from @first to before @end) that may be pointers. */
static void take_page(struct pointer_scan *s, taddr_t page, const uint64_t *word, size_t first,
		      size_t end)
{
	struct pointer_page found = {.addr = page, .first = s->values.count};
	taddr_t low = s->low, span = s->high > s->low ? s->high - s->low : 0;

	CHECK(!s->reserved || s->values.count + PAGE_WORDS <= s->values.capacity);
	vec_reserve(&s->values, s->values.count + PAGE_WORDS);
	uint64_t *value = &s->values.data[s->values.count];
	const uint64_t *begin = value;

	for (size_t i = first; i < end; i++) {
		while (i + 8 <= end && is_zero(&word[i]))
			i += 8;
		if (i == end)
			break;
		uint64_t v = word[i], near = v >> NEAR_SHIFT;

		if (v - low >= span || !(s->near[near / 64] >> near % 64 & 1))
			continue;
		*value++ = v;
		found.mask[i / 64] |= UINT64_C(1) << i % 64;
	}
	if (value == begin)
		return;
	s->values.count += (size_t)(value - begin);
	*vec_add(&s->pages) = found;
}

/* @size bytes at @addr, both multiples of a word, stand in the buffer. */
static void take_piece(struct pointer_scan *s, taddr_t addr, size_t size)
{
	for (size_t done = 0; done < size;) {
		taddr_t page = ROUND_DOWN(addr + done, (taddr_t)PAGE_SIZE_MIN);
		size_t first = (addr + done - page) / sizeof(uint64_t);
		size_t count = MIN(PAGE_WORDS - first, (size - done) / sizeof(uint64_t));
		const uint64_t *word = (const uint64_t *)(s->buffer + done);

		take_page(s, page, word - first, first, first + count);
		done += count * sizeof(uint64_t);
	}
}

void pointer_scan_range(struct pointer_scan *s, taddr_t start, taddr_t end, pointer_read_fn *read,
			void *ctx)
{
	start = ROUND_UP(start, (taddr_t)sizeof(uint64_t));
	end = ROUND_DOWN(end, (taddr_t)sizeof(uint64_t));
	while (start < end) {
		ssize_t n = read(ctx, start, s->buffer, MIN(end - start, (taddr_t)PIECE_SIZE));
		size_t got = n > 0 ? ROUND_DOWN((size_t)n, sizeof(uint64_t)) : 0;

		if (got == 0) {
			taddr_t next =
				MIN(ROUND_DOWN(start, (taddr_t)PAGE_SIZE_MIN) + PAGE_SIZE_MIN, end);
			s->unreadable += next - start;
			start = next;
			continue;
		}
		take_piece(s, start, got);
		s->bytes += got;
		start += got;
	}
}
