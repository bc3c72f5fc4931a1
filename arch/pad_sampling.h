/*
 * Sampling pads (--heap-sample). Marks lie on the stream of allocated bytes, at exponentially
 * distributed distances. An allocation that receives a mark is recorded as any call is in exact
 * mode; all others only lower slot.left, the bytes before the thread's next mark. The distances are
 * drawn from a table, by a generator whose state is in the slot. An exponential distance has no
 * memory: after a sampled block the next one begins at the block's end, whatever the mark's
 * position in it.
 *
 * The interval is doubled and halved while the program runs (--budget): it is the smallest one,
 * which the table is made for, shifted by control.sample_shift. A thread reads that when it draws a
 * distance, and keeps it in slot.left_shift until the distance is used up: whatever changes
 * meanwhile, each block is sampled with the probability of that interval. Its record says which.
 *
 * The filter distinguishes releases of sampled blocks from all others: it has a word for each hash
 * of an address, 0 = no live sample has this hash. The word of a single sample identifies the block
 * (pad_filter_tag), so the recorder removes it itself, and records the release. (If ptmem did that,
 * every free of the same address would be recorded until it has read the record: half a million in
 * a loop of pairs.) If samples collide the word only counts them. Then a release may be that of
 * another block: it is recorded as INNER_FREE or REALLOC_MAYBE, and ptmem, which knows the
 * addresses of all samples, decrements the count.
 *
 * Most releases are of no sample, and of blocks anywhere: each would fetch another line, and
 * translate another page, of the filter's 2 MiB. So the words are summed up by cells, one for each
 * cache line of words: the number of words there that are not 0. It is incremented before a word
 * becomes other than 0, and decremented after it has become 0 again; so it is never too low. All
 * cells together have 32 KiB.
 *
 * A call that may call other probed functions (a wrapper) sets return_at even when it is not
 * sampled, so that only the outermost call counts; a leaf, which never does, jumps to the original.
 * slot.count has the exact number of calls of each function, and of the bytes that they requested.
 */
#ifndef PTMEM_ARCH_PAD_SAMPLING_H
#define PTMEM_ARCH_PAD_SAMPLING_H

#include <stdint.h>

#define PAD_FILTER_BITS 19
#define PAD_FILTER_COUNT 0x7fu /* bits of the number of samples; all ones: stays so */
#define PAD_FILTER_UNKNOWN (~0u & ~PAD_FILTER_COUNT) /* instead of a tag */
#define PAD_CELL_SHIFT 4 /* logarithm of the words for each cell */
#define PAD_DISTANCE_BITS 16
/*
 * The table has distances for the smallest interval, with as many fractional bits as the interval
 * may be shifted by.
 */
#define PAD_SHIFT_MAX 10u
#define PAD_DISTANCES_SIZE (sizeof(uint64_t) << PAD_DISTANCE_BITS)
#define PAD_FUNCTIONS 16 /* enum heap_function */

struct pad_filter {
	uint32_t word[1 << PAD_FILTER_BITS];
	uint8_t cell[1 << (PAD_FILTER_BITS - PAD_CELL_SHIFT)];
};

/* Neighbours share cache lines. */
static inline uint64_t pad_filter_hash(uint64_t address)
{
	uint64_t granule = address >> 4;
	return (granule ^ granule >> PAD_FILTER_BITS) & ((1u << PAD_FILTER_BITS) - 1);
}

/* With the hash this is the complete address; UNKNOWN if that is impossible. */
static inline uint32_t pad_filter_tag(uint64_t address)
{
	uint64_t tag = (address >> (4 + PAD_FILTER_BITS) << 1 | (address >> 3 & 1)) *
		       (PAD_FILTER_COUNT + 1);
	return address & 7 || tag > PAD_FILTER_UNKNOWN ? PAD_FILTER_UNKNOWN : (uint32_t)tag;
}

/* Whether a sample may have the hash of @address. */
static inline int pad_filter_may_have(const struct pad_filter *f, uint64_t address)
{
	uint64_t i = pad_filter_hash(address);

	return __atomic_load_n(&f->cell[i >> PAD_CELL_SHIFT], __ATOMIC_RELAXED) &&
	       __atomic_load_n(&f->word[i], __ATOMIC_RELAXED);
}

/*
 * More than the number of threads in pads: only a program that writes there itself may exhaust
 * them.
 */
#define PAD_FILTER_TRIES 10000

/* Replaces word @i if it equals *@old; otherwise *@old becomes its value. */
static inline int pad_filter_exchange(struct pad_filter *f, uint64_t i, uint32_t *old,
				      uint32_t next)
{
	uint8_t *cell = &f->cell[i >> PAD_CELL_SHIFT];
	int comes = !*old && next, goes = *old && !next, is_done;

	if (comes)
		__atomic_add_fetch(cell, 1, __ATOMIC_SEQ_CST);
	is_done = __atomic_compare_exchange_n(&f->word[i], old, next, 0, __ATOMIC_SEQ_CST,
					      __ATOMIC_RELAXED);
	if (is_done ? goes : comes)
		__atomic_sub_fetch(cell, 1, __ATOMIC_SEQ_CST);
	return is_done;
}

/* Adds a sample; @first: the word if there is no other. */
static inline void pad_filter_increment(struct pad_filter *f, uint64_t address, uint32_t first)
{
	uint64_t i = pad_filter_hash(address);
	uint32_t old = __atomic_load_n(&f->word[i], __ATOMIC_RELAXED), next;

	for (int n = 0; n < PAD_FILTER_TRIES; n++) {
		if ((old & PAD_FILTER_COUNT) == PAD_FILTER_COUNT)
			return;
		next = old ? PAD_FILTER_UNKNOWN | ((old & PAD_FILTER_COUNT) + 1) :
			     first;
		if (pad_filter_exchange(f, i, &old, next))
			return;
	}
}

/* Adds a sample at @address. */
static inline void pad_filter_add(struct pad_filter *f, uint64_t address)
{
	pad_filter_increment(f, address, pad_filter_tag(address) | 1);
}

/* The sample at @address was removed, but its release is lost: the next answer will be MAYBE. */
static inline void pad_filter_put_back(struct pad_filter *f, uint64_t address)
{
	pad_filter_increment(f, address, PAD_FILTER_UNKNOWN | 1);
}

enum pad_filter_answer { PAD_FILTER_NO, PAD_FILTER_TAKEN, PAD_FILTER_MAYBE };

/* Whether @address is a sample. TAKEN: it was, and has been removed. */
static inline enum pad_filter_answer pad_filter_take(struct pad_filter *f, uint64_t address)
{
	uint64_t i = pad_filter_hash(address);
	uint32_t own = pad_filter_tag(address) | 1;
	uint32_t old = __atomic_load_n(&f->word[i], __ATOMIC_RELAXED);

	for (int n = 0; n < PAD_FILTER_TRIES && old < PAD_FILTER_UNKNOWN; n++) {
		if (old != own)
			return PAD_FILTER_NO;
		if (pad_filter_exchange(f, i, &old, 0))
			return PAD_FILTER_TAKEN;
	}
	return PAD_FILTER_MAYBE;
}

/* A sample at @address, for which the answer was MAYBE, is no more. */
static inline void pad_filter_decrement(struct pad_filter *f, uint64_t address)
{
	uint64_t i = pad_filter_hash(address);
	uint32_t old = __atomic_load_n(&f->word[i], __ATOMIC_RELAXED);

	for (int n = 0; n < PAD_FILTER_TRIES; n++) {
		uint32_t count = old & PAD_FILTER_COUNT;

		if (old < PAD_FILTER_UNKNOWN || count == PAD_FILTER_COUNT ||
		    pad_filter_exchange(f, i, &old, count <= 1 ? 0 : old - 1))
			return;
	}
}

/* A sample that was added to the filter is not recorded. */
static inline void pad_filter_forget(struct pad_filter *f, uint64_t address)
{
	if (pad_filter_take(f, address) == PAD_FILTER_MAYBE)
		pad_filter_decrement(f, address);
}

static inline uint64_t pad_next_random(uint64_t random)
{
	return random * 0x5851f42d4c957f2dull + 0x14057b7ef767814full;
}

/* The index in the table of distances for the generator's state @random. */
static inline uint64_t pad_distance_index(uint64_t random)
{
	return random >> (64 - PAD_DISTANCE_BITS);
}

/* An entry of the table as whole bytes. */
static inline uint64_t pad_distance(uint64_t entry, uint32_t shift)
{
	return entry >> (PAD_SHIFT_MAX - shift % (PAD_SHIFT_MAX + 1));
}

/* Exact totals of one function. */
struct pad_count {
	uint64_t calls, bytes;
};

#endif
