/*
 * The block table, see blocks.h. Open addressing with linear probing in SHARDS
 * independent tables, chosen by hash. A block of usual shape is one slot:
 *
 *	place: size bits 0-15 | address (48)      0 = empty
 *	owner: size bits 16-47 | leaf (31) | 0
 *
 * A shard grows by a third when it is 4/5 full (small ones are kept half empty) and is copied alone, so growing
 * never needs a second copy of everything. A slot's home is hash * slots >> 32:
 * any number of slots will do, and copying walks both tables in order. Taking a
 * block out shifts its followers back; there are no tombstones.
 *
 * A block of unusual shape (address or size beyond 48 bits, a capacity that the
 * rule of 2.5 does not give) is kept whole in `odd`, a table of the same kind.
 */
#include "profile/blocks.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "profile/capacity.h"

#define SHARD_BITS 6
#define SHARDS (1u << SHARD_BITS)
#define FIRST_SLOTS 8u
#define BITS48 ((UINT64_C(1) << 48) - 1)
#define LEAF_MAX ((UINT32_C(1) << 31) - 1)

struct slot {
	uint64_t place, owner;
};

struct shard {
	struct slot *slot;
	uint32_t *time;   /* parallel to slot; NULL unless times are kept */
	uint32_t slots, count;
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
	bool keep_times;
};

/* Below this a table is small enough to be half empty, for speed: clusters stay short. */
#define SPARSE_SLOTS 8192u

static bool is_full(uint32_t count, uint32_t slots)
{
	if (slots < SPARSE_SLOTS)
		return (uint64_t)(count + 1) * 2 > slots;
	return (uint64_t)(count + 1) * 5 > (uint64_t)slots * 4;
}

static uint32_t grown(uint32_t slots)
{
	CHECK(slots < UINT32_MAX / 2);
	if (slots < SPARSE_SLOTS / 2)
		return slots ? 2 * slots : FIRST_SLOTS;
	return slots + slots / 3 + 1;
}

/* Addresses differ in their middle bits: one multiplication spreads them over the upper ones. */
static uint64_t hash_addr(taddr_t addr)
{
	uint64_t h = (addr ^ addr >> 32) * 0x9e3779b97f4a7c15ull;
	return h ^ h >> 29;
}

static uint32_t home_of(uint64_t hash, uint32_t slots)
{
	return (uint32_t)((hash & UINT32_MAX) * slots >> 32);
}

/* Whether what stands at @i may move back to the hole at @hole: its home is not between them. */
static bool may_fill(uint32_t hole, uint32_t i, uint32_t home, uint32_t slots)
{
	uint32_t from_home = i >= home ? i - home : i + slots - home;
	uint32_t from_hole = i >= hole ? i - hole : i + slots - hole;
	return from_home >= from_hole;
}

/* Slots and shards. */

static taddr_t slot_addr(const struct slot *s)
{
	return s->place & BITS48;
}

static struct slot slot_pack(const struct block *block)
{
	return (struct slot){
		.place = block->addr | block->size << 48,
		.owner = (block->size >> 16) << 32 | (uint64_t)block->leaf << 1,
	};
}

static struct block slot_unpack(const struct blocks *b, const struct shard *sh, uint32_t i)
{
	const struct slot *s = &sh->slot[i];
	uint64_t size = s->place >> 48 | (s->owner >> 32) << 16;
	return (struct block){
		.addr = slot_addr(s),
		.size = size,
		.capacity = capacity_of(size, b->alignment),
		.leaf = (uint32_t)s->owner >> 1,
		.time = sh->time ? sh->time[i] : 0,
	};
}

static bool is_usual(const struct blocks *b, const struct block *block)
{
	return block->addr <= BITS48 && block->size <= BITS48 &&
	       block->capacity == capacity_of(block->size, b->alignment);
}

static uint32_t shard_of(uint64_t hash)
{
	return (uint32_t)(hash >> (64 - SHARD_BITS));
}

/* Finds @addr in @sh, or the empty slot where it belongs. The shard must have an empty slot. */
static bool shard_find(const struct shard *sh, uint64_t hash, taddr_t addr, uint32_t *i_out)
{
	uint32_t i = home_of(hash, sh->slots);
	for (; sh->slot[i].place; i = i + 1 < sh->slots ? i + 1 : 0) {
		if (slot_addr(&sh->slot[i]) == addr) {
			*i_out = i;
			return true;
		}
	}
	*i_out = i;
	return false;
}

static void shard_set(struct shard *sh, uint32_t i, const struct slot *slot, uint32_t time)
{
	sh->slot[i] = *slot;
	if (sh->time)
		sh->time[i] = time;
}

static void shard_grow(struct shard *sh, bool keep_times)
{
	struct shard old = *sh;
	sh->slots = grown(old.slots);
	sh->slot = xcalloc(sh->slots, sizeof(*sh->slot));
	sh->time = keep_times ? xcalloc(sh->slots, sizeof(*sh->time)) : NULL;
	for (uint32_t i = 0; i < old.slots; i++) {
		if (!old.slot[i].place)
			continue;
		taddr_t addr = slot_addr(&old.slot[i]);
		uint32_t to;
		shard_find(sh, hash_addr(addr), addr, &to);
		shard_set(sh, to, &old.slot[i], old.time ? old.time[i] : 0);
	}
	free(old.slot);
	free(old.time);
}

static void shard_remove(struct shard *sh, uint32_t hole)
{
	for (uint32_t i = hole;;) {
		i = i + 1 < sh->slots ? i + 1 : 0;
		if (!sh->slot[i].place)
			break;
		uint32_t home = home_of(hash_addr(slot_addr(&sh->slot[i])), sh->slots);
		if (!may_fill(hole, i, home, sh->slots))
			continue;
		shard_set(sh, hole, &sh->slot[i], sh->time ? sh->time[i] : 0);
		hole = i;
	}
	shard_set(sh, hole, &(struct slot){ 0 }, 0);
	sh->count--;
}

/* The blocks of unusual shape. */

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
	if (is_full(o->count, o->slots))
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
	b->alignment = alignment;
	return b;
}

static void *clone_array(const void *array, size_t count, size_t size)
{
	return array ? xmemdup(array, count * size) : NULL;
}

struct blocks *blocks_clone(const struct blocks *b)
{
	struct blocks *c = xmemdup(b, sizeof(*b));
	for (uint32_t i = 0; i < SHARDS; i++) {
		struct shard *sh = &c->shard[i];
		sh->slot = clone_array(sh->slot, sh->slots, sizeof(*sh->slot));
		sh->time = clone_array(sh->time, sh->slots, sizeof(*sh->time));
	}
	c->odd.slot = clone_array(b->odd.slot, b->odd.slots, sizeof(*b->odd.slot));
	return c;
}

void blocks_free(struct blocks *b)
{
	if (!b)
		return;
	for (uint32_t i = 0; i < SHARDS; i++) {
		free(b->shard[i].slot);
		free(b->shard[i].time);
	}
	free(b->odd.slot);
	free(b);
}

bool blocks_find(const struct blocks *b, taddr_t addr, struct block *out)
{
	uint64_t hash = hash_addr(addr);
	const struct shard *sh = &b->shard[shard_of(hash)];
	uint32_t i;
	if (!addr)
		return false;
	if (sh->count && shard_find(sh, hash, addr, &i)) {
		*out = slot_unpack(b, sh, i);
		return true;
	}
	if (b->odd.count && odd_find(&b->odd, addr, &i)) {
		*out = b->odd.slot[i];
		return true;
	}
	return false;
}

bool blocks_take(struct blocks *b, taddr_t addr, struct block *out)
{
	uint64_t hash = hash_addr(addr);
	struct shard *sh = &b->shard[shard_of(hash)];
	uint32_t i;
	if (!addr)
		return false;
	if (sh->count && shard_find(sh, hash, addr, &i)) {
		*out = slot_unpack(b, sh, i);
		shard_remove(sh, i);
	} else if (b->odd.count && odd_find(&b->odd, addr, &i)) {
		*out = b->odd.slot[i];
		odd_remove(&b->odd, i);
	} else {
		return false;
	}
	b->count--;
	return true;
}

bool blocks_add(struct blocks *b, const struct block *block, struct block *old_out)
{
	uint64_t hash = hash_addr(block->addr);
	struct shard *sh = &b->shard[shard_of(hash)];
	struct block old;
	uint32_t i, odd;
	CHECK(block->addr && block->leaf <= LEAF_MAX);
	if (is_full(sh->count, sh->slots))
		shard_grow(sh, b->keep_times);
	bool is_replaced = shard_find(sh, hash, block->addr, &i) ||
			   (b->odd.count && odd_find(&b->odd, block->addr, &odd));
	if (is_replaced) {
		blocks_take(b, block->addr, &old);
		if (old_out)
			*old_out = old;
		shard_find(sh, hash, block->addr, &i);
	}
	if (is_usual(b, block)) {
		struct slot slot = slot_pack(block);
		shard_set(sh, i, &slot, block->time);
		sh->count++;
	} else {
		struct block whole = *block;
		if (!b->keep_times)
			whole.time = 0;
		odd_add(&b->odd, &whole);
	}
	b->count++;
	return is_replaced;
}

uint64_t blocks_count(const struct blocks *b)
{
	return b->count;
}

size_t blocks_memory(const struct blocks *b)
{
	size_t bytes = sizeof(*b) + b->odd.slots * sizeof(*b->odd.slot);
	for (uint32_t i = 0; i < SHARDS; i++) {
		const struct shard *sh = &b->shard[i];
		bytes += sh->slots * (sizeof(*sh->slot) + (sh->time ? sizeof(*sh->time) : 0));
	}
	return bytes;
}

int blocks_each(const struct blocks *b, int (*fn)(void *ctx, const struct block *block), void *ctx)
{
	int r = 0;
	for (uint32_t s = 0; s < SHARDS && !r; s++) {
		const struct shard *sh = &b->shard[s];
		for (uint32_t i = 0; i < sh->slots && !r; i++) {
			if (!sh->slot[i].place)
				continue;
			struct block block = slot_unpack(b, sh, i);
			r = fn(ctx, &block);
		}
	}
	for (uint32_t i = 0; i < b->odd.slots && !r; i++)
		if (b->odd.slot[i].addr)
			r = fn(ctx, &b->odd.slot[i]);
	return r;
}
