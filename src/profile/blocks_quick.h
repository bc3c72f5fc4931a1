/*
 * The inside of the block table, for blocks.c and for code that counts many events in a
 * row; all other code uses blocks.h. Open addressing in SHARDS independent tables,
 * chosen by hash. A shard is an array of buckets, a bucket is a cache line of four
 * slots, and a block of usual shape is one slot:
 *
 *	place: address (48) | size bits 0-15                       0 = empty
 *	owner: size bits 16-43 | leaf (31) | passed (5)
 *
 * Where times are kept, the last slot of each bucket is none: it has the times of the others.
 * An array of times beside the buckets would be a second miss of the cache for each block.
 *
 * A block is in its home bucket, or, if that was full, in the first one after
 * with room. `passed` (in the first slot of a bucket) counts the blocks that went by
 * it: 0 ends a search. So nearly every search reads one line and takes no branch that
 * the CPU cannot foresee, and a block goes without any other being moved.
 *
 * A shard grows by a third when it is 4/5 full (2/3 with times; small ones are kept half empty)
 * and is copied alone, so growing never needs a second copy of everything. A block's home is
 * hash * buckets >> 32: any number of buckets will do, and copying walks both tables in
 * order.
 *
 * A block of unusual shape (address beyond ADDR_MAX or size beyond 44 bits, a capacity that
 * the rule of 2.5 does not give, a sample of a longer interval) is kept whole in `odd`, with
 * linear probing.
 */
#ifndef PTMEM_PROFILE_BLOCKS_QUICK_H
#define PTMEM_PROFILE_BLOCKS_QUICK_H

#include <stddef.h>
#include <string.h>

#include "profile/blocks.h"

/* Fewer are larger when one is copied, more have no huge pages below a million blocks. */
#define SHARD_BITS 3
#define SHARDS (1u << SHARD_BITS)
#define BUCKET 4u
#define PLACE_SIZE_BITS 16 /* of the size, below the address */
/* of a slot with times: not empty, no block's */
#define TIMES_PLACE (~UINT64_C(0) << (64 - PLACE_SIZE_BITS))
#define ADDR_MAX ((TIMES_PLACE >> PLACE_SIZE_BITS) - 1)      /* an address beyond it is unusual */
#define SIZE_MAX44 ((UINT64_C(1) << 44) - 1)
#define LEAF_MAX ((UINT32_C(1) << 31) - 1)
#define PASSED_MAX UINT64_C(31)

struct bucket {
	uint64_t place[BUCKET], owner[BUCKET];
} __attribute__((aligned(64)));

/* Slot i is number i % BUCKET of bucket i / BUCKET. */
struct shard {
	struct bucket *bucket;
	uint32_t buckets, count;
	uint32_t limit;   /* it grows when so many are in it */
	bool keep_times;
};

/* Whole blocks; addr 0 = empty. */
struct odd {
	struct block *slot;
	uint32_t slots, count;
};

struct blocks {
	struct shard shard[SHARDS];
	struct odd odd;
	uint64_t count;
	uint32_t alignment;
	uint32_t time_shift; /* times are kept in units of 1 << time_shift us */
	bool keep_times;
};

/* Addresses differ in their middle bits: one multiplication spreads them over the upper ones. */
static inline uint64_t hash_addr(taddr_t addr)
{
	uint64_t h = (addr ^ addr >> 32) * 0x9e3779b97f4a7c15ull;
	return h ^ h >> 29;
}

/* Which of @places, buckets or slots, is examined first. */
static inline uint32_t home_of(uint64_t hash, uint32_t places)
{
	return (uint32_t)((hash & UINT32_MAX) * places >> 32);
}

static inline uint32_t shard_of(uint64_t hash)
{
	return (uint32_t)(hash >> (64 - SHARD_BITS));
}

static inline taddr_t place_addr(uint64_t place)
{
	return place >> 16;
}

static inline uint64_t pack_place(taddr_t addr, uint64_t size)
{
	return addr << 16 | (size & 0xffff);
}

static inline uint64_t pack_owner(uint64_t size, uint32_t leaf)
{
	return size >> 16 << 36 | (uint64_t)leaf << 5;
}

static inline uint64_t unpack_size(uint64_t place, uint64_t owner)
{
	return (place & 0xffff) | owner >> 36 << 16;
}

/* Whether a block is there: neither is it empty, nor are these times. */
static inline bool place_has_block(uint64_t place)
{
	return place - 1 < TIMES_PLACE - 1;
}

static inline uint64_t passed(const struct bucket *b)
{
	return b->owner[0] & PASSED_MAX;
}

/* The slots of @b, a bit each, whose address is that of @key. A sum of carries: no branch, four
 * instructions a slot. */
static inline uint32_t match(const struct bucket *b, uint64_t key)
{
	uint32_t bits = (b->place[3] ^ key) < 1u << 16;
	_Static_assert(BUCKET == 4, "as many terms");
	bits += bits + ((b->place[2] ^ key) < 1u << 16);
	bits += bits + ((b->place[1] ^ key) < 1u << 16);
	bits += bits + ((b->place[0] ^ key) < 1u << 16);
	return bits;
}

/*
 * The short ways, for blocks of usual shape where nothing prevents it; else nothing is done,
 * and the functions of blocks.h must be asked.
 */

static inline struct bucket *blocks_home(const struct blocks *b, uint64_t hash)
{
	const struct shard *sh = &b->shard[shard_of(hash)];
	return &sh->bucket[home_of(hash, sh->buckets)];
}

/* How many events to look ahead for blocks_prefetch: about as long as a line takes to come. */
#define BLOCKS_AHEAD 32

/*
 * @addr will be looked up soon: its line is fetched into the cache. GCC takes a function that only
 * does so for one without effects, and drops the calls of it, unless they are inlined early: with
 * 600,000 blocks an event takes 90 ns then instead of 18.
 */
__attribute__((always_inline)) static inline void
blocks_prefetch(const struct blocks *b, taddr_t addr)
{
	const struct bucket *home = blocks_home(b, hash_addr(addr));

	__builtin_prefetch(home, 1);
	__builtin_prefetch(home + 1, 1); /* where it is if its home was full */
}

/* One block more, or less, went by. A counter that is full stays so until the shard grows. */
static inline void count_passed(struct bucket *b, int change)
{
	if (passed(b) != PASSED_MAX)
		b->owner[0] += (uint64_t)(int64_t)change;
}

static inline struct bucket *next_bucket(const struct shard *sh, struct bucket *b)
{
	return b + 1 < sh->bucket + sh->buckets ? b + 1 : sh->bucket;
}

/*
 * From @home to the block at @addr: its bucket and the bit
 * of its slot, or NULL. There is an empty slot somewhere.
 */
static inline struct bucket *blocks_search(const struct shard *sh, struct bucket *home,
					   taddr_t addr, uint32_t *bit_out)
{
	uint32_t n = 0;
	for (struct bucket *b = home;; b = next_bucket(sh, b)) {
		*bit_out = match(b, addr << 16);
		if (*bit_out)
			return b;
		if (!passed(b) || ++n == sh->buckets)
			return NULL;
	}
}

/* a block of unusual shape; there is one at least */
bool blocks_has_odd(const struct blocks *b, taddr_t addr);

/* Whether surely no block of any shape is at @addr. */
static inline bool blocks_is_absent(const struct blocks *b, taddr_t addr)
{
	uint64_t hash = hash_addr(addr);
	if (addr - 1 >= ADDR_MAX || (b->odd.count && blocks_has_odd(b, addr)))
		return false;
	if (!b->shard[shard_of(hash)].count)
		return true;
	uint32_t bits;
	return !blocks_search(&b->shard[shard_of(hash)], blocks_home(b, hash), addr, &bits);
}

/*
 * Times have 37 bits, in the words of the last slot. owner: the lower 32 bits of the first time and
 * of the second; place: 16 bits of TIMES_PLACE, the upper 5 bits of each, 1 unused, and the lower
 * 32 of the third.
 */
#define TIME_BITS 37

static inline uint32_t time_high_shift(uint32_t k)
{
	return 33 + 5 * k;
}

static inline void bucket_set_time(struct bucket *b, uint32_t k, uint64_t time)
{
	_Static_assert(BUCKET == 4 && 3 * TIME_BITS + 16 <= 128, "three times in two words");
	uint32_t low = (uint32_t)time;
	uint64_t mask = UINT64_C(31) << time_high_shift(k);
	uint64_t high = (time >> 32) << time_high_shift(k);

	b->place[3] = (b->place[3] & ~mask) | high;
	if (k == 2)
		b->place[3] = (b->place[3] & ~(uint64_t)UINT32_MAX) | low;
	else
		memcpy((uint8_t *)&b->owner[3] + 4 * k, &low, sizeof(low));
}

static inline uint64_t bucket_time(const struct bucket *b, uint32_t k)
{
	uint32_t low = (uint32_t)b->place[3];

	if (k != 2)
		memcpy(&low, (const uint8_t *)&b->owner[3] + 4 * k, sizeof(low));
	return (b->place[3] >> time_high_shift(k) & 31) << 32 | low;
}

/* Adds a block whose capacity is capacity_of(size, alignment). */
static inline bool blocks_quick_add(struct blocks *b, taddr_t addr, uint64_t size, uint32_t leaf,
				    uint64_t time_us)
{
	uint64_t hash = hash_addr(addr), time = time_us >> b->time_shift;
	struct shard *sh = &b->shard[shard_of(hash)];
	uint32_t bits;
	if (sh->count >= sh->limit || addr - 1 >= ADDR_MAX || size > SIZE_MAX44 ||
	    leaf > LEAF_MAX || time >> TIME_BITS || (b->odd.count && blocks_has_odd(b, addr)))
		return false;
	struct bucket *to = blocks_home(b, hash);
	if (blocks_search(sh, to, addr, &bits))
		return false;
	for (; !(bits = match(to, 0)); to = next_bucket(sh, to))
		count_passed(to, 1);
	uint32_t k = (uint32_t)__builtin_ctz(bits);
	to->place[k] = pack_place(addr, size);
	to->owner[k] = pack_owner(size, leaf) | (to->owner[k] & PASSED_MAX);
	if (sh->keep_times)
		bucket_set_time(to, k, time);
	sh->count++;
	b->count++;
	return true;
}

struct block_owner {
	uint64_t size, time_us;
	uint32_t leaf;
	bool is_found;
};

static inline struct block_owner blocks_quick_take(struct blocks *b, taddr_t addr)
{
	uint64_t hash = hash_addr(addr);
	struct shard *sh = &b->shard[shard_of(hash)];
	uint32_t bits;
	if (!sh->count || addr - 1 >= ADDR_MAX)
		return (struct block_owner){ 0 };
	struct bucket *home = blocks_home(b, hash), *from = blocks_search(sh, home, addr, &bits);
	if (!from)
		return (struct block_owner){ 0 };
	uint32_t k = (uint32_t)__builtin_ctz(bits);
	uint64_t place = from->place[k], owner = from->owner[k];
	from->place[k] = 0;
	from->owner[k] = owner & PASSED_MAX;
	for (; home != from; home = next_bucket(sh, home))
		count_passed(home, -1);
	sh->count--;
	b->count--;
	return (struct block_owner){
		.size = unpack_size(place, owner), .leaf = (uint32_t)(owner >> 5) & LEAF_MAX,
		.time_us = sh->keep_times ? bucket_time(from, k) << b->time_shift : 0,
		.is_found = true,
	};
}

#endif
