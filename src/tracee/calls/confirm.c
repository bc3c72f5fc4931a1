/*
 * What is before a block shows whose it is.
 *
 * glibc: the word before it is the size of its chunk, with three flags (malloc.c, struct
 * malloc_chunk):
 *
 *	chunk = max(32, (size + 8) rounded up to 16), and up to 32 more if too little remained
 *	mmapped chunks: (chunk + 8) rounded up to pages
 *
 * musl: 16 bytes * the distance, at 2 bytes before the block, are between the first block and this
 * one. The first has before it a pointer to its group's data, which has one to the group
 * (mallocng/meta.h, get_meta).
 *
 * jemalloc: nothing is before it. Blocks must be aligned, in memory, and apart.
 */
#include "tracee/calls/confirm.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/log.h"
#include "tracee/state/probe.h"
#include "tracee/state/space.h"
#include "tracee/state/thread.h"

#define CHUNK_MIN 32u
#define CHUNK_ALIGN 16u
#define CHUNK_MMAPPED 2u
#define CHUNK_FLAGS 7u
#define LARGEST_PAGE (UINT64_C(1) << 30)
#define BLOCKS_MAX 4096 /* that are remembered */

#define UNIT 16u           /* musl's */
#define FAR_DISTANCE 4u    /* before the block: not zero if the distance has 32 bits, */
#define DISTANCE_FAR 8u    /* and is here, */
#define DISTANCE_NEAR 2u   /* not here: 16 bits */
#define META_GROUP 16u     /* offset of the pointer to the group in its data */

#define SMALL_ALIGN 8u     /* of blocks of less than 16 bytes in jemalloc */
#define APART_MAX 64       /* blocks that are compared with a new one */

struct confirmed_block {
	taddr_t addr;
	uint64_t size;
	bool is_live;         /* not released */
};

struct confirmed {
	HASH(struct confirmed_block) blocks; /* that were allocated */
	bool is_partial;      /* there are others */
};

static void contradict(struct address_space *s, const char *what, taddr_t block)
{
	if (s->watch.is_disproved)
		return;
	s->watch.is_disproved = true;
	log_error("process %d: the functions that were taken for malloc, free and others in this "
		  "stripped static program are not those of %s (%s %#lx): it has no profile; "
		  "--probe=malloc=0xADDRESS and others name them",
		  s->processes.pid, probe_guess_name(s->watch.guess), what, (unsigned long)block);
}

static bool read_chunk(const struct address_space *s, taddr_t block, uint64_t *size_out)
{
	return block % CHUNK_ALIGN == 0 &&
	       space_read(s, block - sizeof(*size_out), size_out, sizeof(*size_out)) == 0 &&
	       (*size_out & ~(uint64_t)CHUNK_FLAGS) % CHUNK_ALIGN == 0 && *size_out >= CHUNK_MIN;
}

static bool is_chunk_for(uint64_t chunk, uint64_t size)
{
	bool is_mmapped = chunk & CHUNK_MMAPPED;
	uint64_t want = MAX((uint64_t)CHUNK_MIN,
			    ROUND_UP(size + sizeof(chunk), (uint64_t)CHUNK_ALIGN));

	chunk &= ~(uint64_t)CHUNK_FLAGS;
	return chunk >= want && chunk - want <= (is_mmapped ? LARGEST_PAGE : CHUNK_MIN);
}

static bool is_musl_block(const struct address_space *s, taddr_t block)
{
	uint8_t is_far;
	uint16_t near;
	int32_t far;
	taddr_t group, meta, back;
	uint64_t distance;

	if (block % UNIT != 0 || space_read(s, block - FAR_DISTANCE, &is_far, 1) != 0 ||
	    space_read(s, block - DISTANCE_NEAR, &near, sizeof(near)) != 0 ||
	    space_read(s, block - DISTANCE_FAR, &far, sizeof(far)) != 0)
		return false;
	distance = is_far ? (uint64_t)far : near;
	group = block - UNIT * distance - UNIT;
	return space_read(s, group, &meta, sizeof(meta)) == 0 &&
	       space_read(s, meta + META_GROUP, &back, sizeof(back)) == 0 && back == group;
}

/* Whether all of its memory is there. */
static bool is_readable(const struct address_space *s, taddr_t block, uint64_t size)
{
	taddr_t last = block + (size ? size - 1 : 0);
	uint8_t byte;

	return last >= block && space_read(s, block, &byte, 1) == 0 &&
	       space_read(s, last, &byte, 1) == 0;
}

/* Whether @block is one of @s' allocator, as far as can be seen. */
static bool is_block(const struct address_space *s, taddr_t block)
{
	uint64_t chunk;

	switch ((enum probe_guess)s->watch.guess) {
	case GUESS_GLIBC:
		return read_chunk(s, block, &chunk);
	case GUESS_MUSL:
		return is_musl_block(s, block);
	case GUESS_JEMALLOC:
	case GUESS_NONE:
		break;
	}
	return block % SMALL_ALIGN == 0 && is_readable(s, block, 1);
}

/* Whether it may have been allocated with @size bytes. */
static bool is_block_of(const struct address_space *s, taddr_t block, uint64_t size)
{
	uint64_t chunk;

	if (!is_block(s, block) || !is_readable(s, block, size))
		return false;
	if (s->watch.guess == GUESS_GLIBC)
		return read_chunk(s, block, &chunk) && is_chunk_for(chunk, size);
	return block % CHUNK_ALIGN == 0 || size < CHUNK_ALIGN;
}

/* Whether one of the first blocks shares memory with it, as far as all releases are known. */
static bool overlaps(const struct confirmed *c, taddr_t block, uint64_t size)
{
	if (c->is_partial)
		return false;
	for (size_t i = 0; c->blocks.index.count <= APART_MAX && hash_next(&c->blocks.index, &i);
	     i++) {
		const struct confirmed_block *b = &c->blocks.slot[i];

		if (b->is_live && block < b->addr + b->size && b->addr < block + size)
			return true;
	}
	return false;
}

static struct confirmed *get(struct address_space *s)
{
	if (!s->heap.confirmed) {
		s->heap.confirmed = xcalloc(1, sizeof(*s->heap.confirmed));
		/* it ran before, or is a fork */
		s->heap.confirmed->is_partial = s->image.has_earlier_blocks || !s->image.is_own;
	}
	return s->heap.confirmed;
}

static struct confirmed_block *find(const struct confirmed *c, taddr_t block)
{
	return hash_find(&c->blocks, hash_u64(block), e, e->addr == block);
}

/*
 * Whether @block may be released: it is live or, when a thread of glibc's ends, one that it has
 * released and that is in its cache (tcache_thread_shutdown).
 */
static bool release(const struct address_space *s, struct confirmed *c, taddr_t block)
{
	struct confirmed_block *found = find(c, block);
	bool was_live = found && found->is_live;

	if (found)
		found->is_live = false;
	return was_live || (found && s->watch.guess == GUESS_GLIBC) || c->is_partial;
}

static void add(struct confirmed *c, taddr_t block, uint64_t size)
{
	struct confirmed_block *b = find(c, block);

	if (!b && !c->is_partial)
		b = hash_add(&c->blocks, hash_u64(block));
	if (b)
		*b = (struct confirmed_block){block, size, true};
}

void confirm_realloc(struct address_space *s, taddr_t block)
{
	struct confirmed *c = get(s);

	c->is_partial |= s->pads != NULL;
	if (block && (!release(s, c, block) || !is_block(s, block)))
		contradict(s, "a change of the size of", block);
}

void confirm_result(struct address_space *s, const struct call *call, taddr_t block)
{
	struct confirmed *c = get(s);

	c->is_partial |= s->pads || c->blocks.index.count >= BLOCKS_MAX;
	if (call->probe->kind == PROBE_REALLOC && !block && call->args.block && call->args.size)
		add(c, call->args.block, 0); /* it failed: the block remains */
	if (!block)
		return;
	if (!is_block_of(s, block, call->args.size) || overlaps(c, block, call->args.size)) {
		contradict(s, "an allocation returned", block);
		return;
	}
	s->watch.is_confirmed = true;
	add(c, block, call->args.size);
}

void confirm_free(struct address_space *s, taddr_t block, bool is_inner)
{
	struct confirmed *c = get(s);

	c->is_partial |= s->pads != NULL;
	if (block && ((!release(s, c, block) && !is_inner) || !is_block(s, block)))
		contradict(s, "a release of", block);
}

bool confirm_has_profile(struct address_space *s)
{
	if (s->watch.guess && !s->watch.is_confirmed && !s->watch.is_disproved) {
		s->watch.is_disproved = true;
		log_error("process %d: %s's malloc in this stripped static program was never "
			  "called; if it has another one, it has no profile; "
			  "--probe=malloc=0xADDRESS names it",
			  s->processes.pid, probe_guess_name(s->watch.guess));
	}
	return !s->watch.is_disproved;
}

void confirm_forget(struct address_space *s)
{
	if (s->heap.confirmed)
		hash_deinit(&s->heap.confirmed->blocks);
	free(s->heap.confirmed);
	s->heap.confirmed = NULL;
}
