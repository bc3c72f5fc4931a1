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
#define PAD_FILTER_SIZE (sizeof(uint32_t) << PAD_FILTER_BITS)
#define PAD_DISTANCE_BITS 16
/*
 * The table has distances for the smallest interval, with as many fractional bits as the interval
 * may be shifted by.
 */
#define PAD_SHIFT_MAX 10u
#define PAD_DISTANCES_SIZE (sizeof(uint64_t) << PAD_DISTANCE_BITS)
#define PAD_FUNCTIONS 16 /* enum heap_function */

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

/*
 * More than the number of threads in pads: only a program that writes there itself may exhaust
 * them.
 */
#define PAD_FILTER_TRIES 10000

/* Replaces *@word if it equals *@old; otherwise *@old becomes its value. */
static inline int pad_filter_exchange(uint32_t *word, uint32_t *old, uint32_t next)
{
	return __atomic_compare_exchange_n(word, old, next, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

/* Adds a sample at @address to @word of the filter. */
static inline void pad_filter_add(uint32_t *word, uint64_t address)
{
	uint32_t old = __atomic_load_n(word, __ATOMIC_RELAXED), next;

	for (int i = 0; i < PAD_FILTER_TRIES; i++) {
		if ((old & PAD_FILTER_COUNT) == PAD_FILTER_COUNT)
			return;
		next = old ? PAD_FILTER_UNKNOWN | ((old & PAD_FILTER_COUNT) + 1) :
			     pad_filter_tag(address) | 1;
		if (pad_filter_exchange(word, &old, next))
			return;
	}
}

enum pad_filter_answer { PAD_FILTER_NO, PAD_FILTER_TAKEN, PAD_FILTER_MAYBE };

/* Whether @address is a sample according to @word. TAKEN: it was, and has been removed. */
static inline enum pad_filter_answer pad_filter_take(uint32_t *word, uint64_t address)
{
	uint32_t own = pad_filter_tag(address) | 1, old = __atomic_load_n(word, __ATOMIC_RELAXED);

	for (int i = 0; i < PAD_FILTER_TRIES && old < PAD_FILTER_UNKNOWN; i++) {
		if (old != own)
			return PAD_FILTER_NO;
		if (pad_filter_exchange(word, &old, 0))
			return PAD_FILTER_TAKEN;
	}
	return PAD_FILTER_MAYBE;
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
