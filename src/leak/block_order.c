/*
 * A radix sort: takes a third of the time of a comparison sort for ten million blocks. It goes from
 * the lowest digit to the highest, skips digits that are equal in all addresses, and alternates
 * between two arrays.
 */
#include "leak/block_order.h"

#include <string.h>

#include "base/large.h"

#define DIGIT_BITS 11
#define DIGITS (1u << DIGIT_BITS)

/* Bits in which addresses differ. */
static uint64_t differing_bits(const struct leakcheck_block *block, size_t count)
{
	uint64_t bits = 0;

	for (size_t i = 1; i < count; i++)
		bits |= block[i].addr ^ block[0].addr;
	return bits;
}

/* One pass: a stable sort of @from into @to by the digit at @shift. */
static void sort_digit(const struct leakcheck_block *from, struct leakcheck_block *to, size_t count,
		       unsigned shift)
{
	size_t place[DIGITS] = {0}, sum = 0;

	for (size_t i = 0; i < count; i++)
		place[from[i].addr >> shift & (DIGITS - 1)]++;
	for (size_t i = 0; i < DIGITS; i++) {
		size_t here = place[i];
		place[i] = sum;
		sum += here;
	}
	for (size_t i = 0; i < count; i++)
		to[place[from[i].addr >> shift & (DIGITS - 1)]++] = from[i];
}

/* Equal addresses are rare. */
static void sort_equal(struct leakcheck_block *block, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		struct leakcheck_block b = block[i];
		size_t k = i;

		for (; k > 0 && block[k - 1].addr == b.addr && block[k - 1].size < b.size; k--)
			block[k] = block[k - 1];
		block[k] = b;
	}
}

void block_order_sort(struct leakcheck_block *block, size_t count)
{
	uint64_t bits = differing_bits(block, count);
	struct leakcheck_block *from = block;

	if (count < 2)
		return;
	struct leakcheck_block *other = large_map(count * sizeof(*other)), *to = other;
	for (unsigned shift = 0; shift < 64; shift += DIGIT_BITS) {
		if (!(bits >> shift & (DIGITS - 1)))
			continue;
		sort_digit(from, to, count, shift);
		from = to;
		to = from == block ? other : block;
	}
	if (from != block)
		memcpy(block, from, count * sizeof(*block));
	large_unmap(other, count * sizeof(*other));
	sort_equal(block, count);
}
