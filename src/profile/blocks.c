/*
 * The block table, see blocks.h; blocks_quick.h describes it, and has the inline functions. This
 * file has the rest: collisions, growth, and blocks of unusual shape.
 */
#include "profile/blocks.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/alloc.h"
#include "base/log.h"
#include "profile/blocks_quick.h"

#define HUGE_PAGE ((size_t)2 << 20) /* with another size the advice is harmless */

/* Below this size a table may be half empty, for speed. */
#define SPARSE_SLOTS 512u

/* The maximum number of blocks in @slots. */
static uint32_t limit_of(uint32_t slots)
{
	return slots < SPARSE_SLOTS ? slots / 2 : (uint32_t)((uint64_t)slots * 4 / 5);
}

/* How many buckets or slots there are after @n. */
static uint32_t grown(uint32_t n)
{
	CHECK(n < UINT32_MAX / 2 / BUCKET);
	if (n < SPARSE_SLOTS / 2 / BUCKET)
		return n ? 2 * n : 2;
	return n + n / 3 + 1;
}

/* Slots and shards. */

#define NO_SLOT UINT32_MAX

/* *@out is written word by word: copying it as a whole would stall on store forwarding. */
static inline void unpack(const struct blocks *b, const struct shard *sh, uint32_t i,
			  struct block *out)
{
	const struct bucket *bucket = &sh->bucket[i / BUCKET];
	uint64_t place = bucket->place[i % BUCKET], owner = bucket->owner[i % BUCKET];
	uint64_t size = unpack_size(place, owner);
	out->addr = place_addr(place);
	out->size = size;
	out->capacity = capacity_of(size, b->alignment);
	out->leaf = (uint32_t)(owner >> 5) & LEAF_MAX;
	out->time_us = sh->keep_times ? bucket_time(bucket, i % BUCKET) << b->time_shift : 0;
	out->sample_shift = 0;
	out->weighted = 0;
}

static inline bool is_usual(const struct blocks *b, const struct block *block)
{
	return block->addr <= ADDR_MAX && block->size <= SIZE_MAX44 &&
	       block->capacity == capacity_of(block->size, b->alignment) && !block->sample_shift &&
	       !block->weighted;
}

/* The slot of @addr, which is neither 0 nor above ADDR_MAX; or NO_SLOT. */
static inline uint32_t shard_find(const struct shard *sh, uint64_t hash, taddr_t addr)
{
	uint32_t bits;
	if (!sh->buckets)
		return NO_SLOT;
	const struct bucket *b =
		blocks_search(sh, &sh->bucket[home_of(hash, sh->buckets)], addr, &bits);
	return b ? (uint32_t)(b - sh->bucket) * BUCKET + (uint32_t)__builtin_ctz(bits) : NO_SLOT;
}

/* @owner: without the count. The address is not there, and the shard has an empty slot. */
static void shard_put(struct shard *sh, uint64_t hash, uint64_t place, uint64_t owner,
		      uint64_t time)
{
	struct bucket *b = &sh->bucket[home_of(hash, sh->buckets)];
	uint32_t bits;
	for (; !(bits = match(b, 0)); b = next_bucket(sh, b))
		count_passed(b, 1);
	uint32_t k = (uint32_t)__builtin_ctz(bits);
	b->place[k] = place;
	b->owner[k] = owner | (b->owner[k] & PASSED_MAX);
	if (sh->keep_times)
		bucket_set_time(b, k, time);
}

static inline void shard_remove(struct shard *sh, uint64_t hash, uint32_t slot)
{
	struct bucket *b = &sh->bucket[slot / BUCKET];
	b->place[slot % BUCKET] = 0;
	b->owner[slot % BUCKET] &= PASSED_MAX;
	for (struct bucket *i = &sh->bucket[home_of(hash, sh->buckets)]; i != b;
	     i = next_bucket(sh, i))
		count_passed(i, -1);
	sh->count--;
}

static struct bucket *new_buckets(uint32_t count)
{
	size_t bytes = count * sizeof(struct bucket);
	void *b = NULL;
	CHECK(posix_memalign(&b, bytes < HUGE_PAGE ? sizeof(struct bucket) : HUGE_PAGE, bytes) ==
	      0);
	if (bytes >= HUGE_PAGE)
		madvise(b, ROUND_DOWN(bytes, HUGE_PAGE),
			MADV_HUGEPAGE); /* look-ups are scattered: fewer TLB misses */
	return memset(b, 0, bytes);
}

/*
 * How many blocks @buckets may hold. Buckets of three overflow more often than those of four: at
 * 4/5 python3 with --record takes 6 to 8 % more CPU time than at 2/3.
 */
static uint32_t shard_limit(uint32_t buckets, bool keep_times)
{
	return keep_times ? buckets * (BUCKET - 2) : limit_of(buckets * BUCKET);
}

__attribute__((noinline)) static void shard_resize(struct shard *sh, uint32_t buckets)
{
	struct shard old = *sh;
	sh->buckets = buckets;
	sh->bucket = new_buckets(buckets);
	sh->limit = shard_limit(buckets, sh->keep_times);
	for (uint32_t i = 0; sh->keep_times && i < buckets; i++)
		sh->bucket[i].place[BUCKET - 1] = TIMES_PLACE;
	for (uint32_t i = 0; i < old.buckets * BUCKET; i++) {
		const struct bucket *b = &old.bucket[i / BUCKET];
		uint32_t k = i % BUCKET;
		if (place_has_block(b->place[k]))
			shard_put(sh, hash_addr(place_addr(b->place[k])), b->place[k],
				  b->owner[k] & ~PASSED_MAX,
				  sh->keep_times ? bucket_time(b, k) : 0);
	}
	free(old.bucket);
}

void blocks_reserve(struct blocks *b, uint64_t count)
{
	uint64_t each = count / SHARDS + count / SHARDS / 32; /* hashes are nearly even */

	for (uint32_t i = 0; i < SHARDS; i++) {
		struct shard *sh = &b->shard[i];
		uint32_t buckets = sh->buckets;

		while (shard_limit(buckets, sh->keep_times) < sh->count + each)
			buckets = grown(buckets);
		if (buckets > sh->buckets)
			shard_resize(sh, buckets);
	}
}

/* The blocks of unusual shape. */

/* Whether the block at @i may move back to the hole at @hole: its home is not between them. */
static bool may_fill(uint32_t hole, uint32_t i, uint32_t home, uint32_t slots)
{
	uint32_t from_home = i >= home ? i - home : i + slots - home;
	uint32_t from_hole = i >= hole ? i - hole : i + slots - hole;
	return from_home >= from_hole;
}

static bool odd_find(const struct odd *o, taddr_t addr, uint32_t *i_out)
{
	uint32_t i = home_of(hash_addr(addr), o->slots);
	for (; o->slot[i].addr; i = i + 1 < o->slots ? i + 1 : 0) {
		if (o->slot[i].addr == addr) {
			*i_out = i;
			return true;
		}
	}
	*i_out = i;
	return false;
}

bool blocks_has_odd(const struct blocks *b, taddr_t addr)
{
	uint32_t i;
	return odd_find(&b->odd, addr, &i);
}

static void odd_grow(struct odd *o)
{
	struct odd old = *o;
	o->slots = grown(old.slots);
	o->slot = xcalloc(o->slots, sizeof(*o->slot));
	for (uint32_t i = 0; i < old.slots; i++) {
		uint32_t to;
		if (!old.slot[i].addr)
			continue;
		odd_find(o, old.slot[i].addr, &to);
		o->slot[to] = old.slot[i];
	}
	free(old.slot);
}

static void odd_add(struct odd *o, const struct block *block)
{
	uint32_t i;
	if (o->count >= limit_of(o->slots))
		odd_grow(o);
	odd_find(o, block->addr, &i);
	o->slot[i] = *block;
	o->count++;
}

static void odd_remove(struct odd *o, uint32_t hole)
{
	for (uint32_t i = hole;;) {
		i = i + 1 < o->slots ? i + 1 : 0;
		if (!o->slot[i].addr)
			break;
		if (!may_fill(hole, i, home_of(hash_addr(o->slot[i].addr), o->slots), o->slots))
			continue;
		o->slot[hole] = o->slot[i];
		hole = i;
	}
	o->slot[hole] = (struct block){ 0 };
	o->count--;
}

/* The table. */

struct blocks *blocks_new(bool keep_times, uint32_t alignment)
{
	struct blocks *b = xcalloc(1, sizeof(*b));
	b->keep_times = keep_times;
	for (uint32_t i = 0; i < SHARDS; i++)
		b->shard[i].keep_times = keep_times;
	b->alignment = alignment;
	return b;
}

struct blocks *blocks_clone(const struct blocks *b)
{
	struct blocks *c = xmemdup(b, sizeof(*b));
	for (uint32_t i = 0; i < SHARDS; i++) {
		struct shard *sh = &c->shard[i];
		if (!sh->bucket)
			continue;
		sh->bucket = memcpy(new_buckets(sh->buckets), sh->bucket,
				    sh->buckets * sizeof(*sh->bucket));
	}
	if (b->odd.slot)
		c->odd.slot = xmemdup(b->odd.slot, b->odd.slots * sizeof(*b->odd.slot));
	return c;
}

void blocks_free(struct blocks *b)
{
	if (!b)
		return;
	for (uint32_t i = 0; i < SHARDS; i++)
		free(b->shard[i].bucket);
	free(b->odd.slot);
	free(b);
}

/* Its slot in @sh, or NO_SLOT. */
static inline uint32_t find_usual(const struct shard *sh, uint64_t hash, taddr_t addr)
{
	return addr - 1 < ADDR_MAX ? shard_find(sh, hash, addr) : NO_SLOT;
}

bool blocks_find(const struct blocks *b, taddr_t addr, struct block *out)
{
	uint64_t hash = hash_addr(addr);
	const struct shard *sh = &b->shard[shard_of(hash)];
	uint32_t i = find_usual(sh, hash, addr);
	if (i != NO_SLOT) {
		unpack(b, sh, i, out);
		return true;
	}
	if (addr && b->odd.count && odd_find(&b->odd, addr, &i)) {
		*out = b->odd.slot[i];
		return true;
	}
	return false;
}

__attribute__((noinline)) static bool take_odd(struct blocks *b, taddr_t addr, struct block *out)
{
	uint32_t i;
	if (!addr || !b->odd.count || !odd_find(&b->odd, addr, &i))
		return false;
	*out = b->odd.slot[i];
	odd_remove(&b->odd, i);
	b->count--;
	return true;
}

bool blocks_take(struct blocks *b, taddr_t addr, struct block *out)
{
	uint64_t hash = hash_addr(addr);
	struct shard *sh = &b->shard[shard_of(hash)];
	uint32_t i = find_usual(sh, hash, addr);
	if (i == NO_SLOT)
		return take_odd(b, addr, out);
	unpack(b, sh, i, out);
	shard_remove(sh, hash, i);
	b->count--;
	return true;
}

__attribute__((noinline)) static void add_odd(struct blocks *b, const struct block *block)
{
	struct block whole = *block;
	if (!b->keep_times)
		whole.time_us = 0;
	odd_add(&b->odd, &whole);
}

/* Times up to @time_us shall fit: halves the resolution of all as often as needed. */
static void coarsen_times(struct blocks *b, uint64_t time_us)
{
	uint32_t more = 0;

	while (time_us >> (b->time_shift + more) >> TIME_BITS)
		more++;
	for (uint32_t i = 0; more && i < SHARDS; i++) {
		const struct shard *sh = &b->shard[i];
		for (uint32_t slot = 0; sh->keep_times && slot < sh->buckets * BUCKET; slot++) {
			struct bucket *bucket = &sh->bucket[slot / BUCKET];
			if (slot % BUCKET < BUCKET - 1)
				bucket_set_time(bucket, slot % BUCKET,
						bucket_time(bucket, slot % BUCKET) >> more);
		}
	}
	b->time_shift += more;
}

/* The rest of blocks_add: anything but a usual block with room in its home bucket. */
__attribute__((noinline)) static bool add_slowly(struct blocks *b, const struct block *block,
						  struct block *old_out)
{
	uint64_t hash = hash_addr(block->addr);
	struct shard *sh = &b->shard[shard_of(hash)];
	struct block old;
	bool is_replaced = blocks_take(b, block->addr, &old);
	if (is_replaced && old_out)
		*old_out = old;
	b->count++;
	if (!is_usual(b, block)) {
		add_odd(b, block);
		return is_replaced;
	}
	coarsen_times(b, block->time_us);
	if (sh->count >= sh->limit)
		shard_resize(sh, grown(sh->buckets));
	shard_put(sh, hash, pack_place(block->addr, block->size),
		  pack_owner(block->size, block->leaf), block->time_us >> b->time_shift);
	sh->count++;
	return is_replaced;
}

bool blocks_add(struct blocks *b, const struct block *block, struct block *old_out)
{
	CHECK(block->addr && block->leaf <= LEAF_MAX);
	if (is_usual(b, block) && blocks_quick_add(b, block->addr, block->size, block->leaf,
						     block->time_us))
		return false;
	return add_slowly(b, block, old_out);
}

uint64_t blocks_count(const struct blocks *b)
{
	return b->count;
}

size_t blocks_memory(const struct blocks *b)
{
	size_t bytes = sizeof(*b) + b->odd.slots * sizeof(*b->odd.slot);
	for (uint32_t i = 0; i < SHARDS; i++)
		bytes += b->shard[i].buckets * sizeof(struct bucket);
	return bytes;
}

int blocks_each(const struct blocks *b, int (*fn)(void *ctx, const struct block *block), void *ctx)
{
	int r = 0;
	for (uint32_t s = 0; s < SHARDS && !r; s++) {
		const struct shard *sh = &b->shard[s];
		for (uint32_t i = 0; i < sh->buckets * BUCKET && !r; i++) {
			if (!place_has_block(sh->bucket[i / BUCKET].place[i % BUCKET]))
				continue;
			struct block block;
			unpack(b, sh, i, &block);
			r = fn(ctx, &block);
		}
	}
	for (uint32_t i = 0; i < b->odd.slots && !r; i++)
		if (b->odd.slot[i].addr)
			r = fn(ctx, &b->odd.slot[i]);
	return r;
}

/* -- blocks in a realloc -- */

const struct held_block *held_find(const struct held_blocks *h, uint32_t thread)
{
	for (size_t i = 0; i < h->list.count; i++)
		if (h->list.data[i].thread == thread)
			return &h->list.data[i];
	return NULL;
}

bool held_take(struct held_blocks *h, uint32_t thread, struct held_block *out)
{
	const struct held_block *held = held_find(h, thread);

	if (!held)
		return false;
	size_t i = (size_t)(held - h->list.data);

	*out = *held;
	memmove(&h->list.data[i], &h->list.data[i + 1], (--h->list.count - i) * sizeof(*held));
	return true;
}
