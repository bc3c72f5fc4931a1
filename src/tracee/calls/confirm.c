/*
 * The word before a block is the size of its chunk, with three flags (malloc.c, struct
 * malloc_chunk):
 *
 *	chunk = max(32, (size + 8) rounded up to 16), and up to 32 more if too little remained
 *	mmapped chunks: (chunk + 8) rounded up to pages
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

struct confirmed {
	HASH(taddr_t) blocks; /* that were allocated, and not released */
	bool is_partial;      /* there are others */
};

static void contradict(struct address_space *s, const char *what, taddr_t block)
{
	if (s->watch.is_disproved)
		return;
	s->watch.is_disproved = true;
	log_error("process %d: the functions that were taken for malloc, free and others in this "
		  "stripped static program are not those of glibc (%s %#lx): it has no profile; "
		  "--probe=malloc=0xADDRESS and others name them",
		  s->processes.pid, what, (unsigned long)block);
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

static struct confirmed *get(struct address_space *s)
{
	if (!s->heap.confirmed) {
		s->heap.confirmed = xcalloc(1, sizeof(*s->heap.confirmed));
		/* it ran before, or is a fork */
		s->heap.confirmed->is_partial = s->image.has_earlier_blocks || !s->image.is_own;
	}
	return s->heap.confirmed;
}

static bool take(struct confirmed *c, taddr_t block)
{
	const taddr_t *found = hash_find(&c->blocks, hash_u64(block), e, *e == block);

	if (found)
		hash_remove(&c->blocks, found);
	return found;
}

void confirm_result(struct address_space *s, const struct call *call, taddr_t block)
{
	struct confirmed *c = get(s);
	uint64_t chunk;

	c->is_partial |= s->pads || c->blocks.index.count >= BLOCKS_MAX;
	if (call->probe->kind == PROBE_REALLOC && (block || !call->args.size))
		take(c, call->args.block);
	if (!block)
		return;
	if (!read_chunk(s, block, &chunk) || !is_chunk_for(chunk, call->args.size)) {
		contradict(s, "an allocation returned", block);
		return;
	}
	s->watch.is_confirmed = true;
	if (!c->is_partial)
		*hash_add(&c->blocks, hash_u64(block)) = block;
}

void confirm_free(struct address_space *s, taddr_t block, bool is_inner)
{
	struct confirmed *c = get(s);
	uint64_t chunk;

	c->is_partial |= s->pads != NULL;
	if (!block)
		return;
	bool is_known = take(c, block) || c->is_partial || is_inner;

	if (!is_known || !read_chunk(s, block, &chunk))
		contradict(s, "a release of", block);
}

bool confirm_has_profile(struct address_space *s)
{
	if (s->watch.has_guesses && !s->watch.is_confirmed && !s->watch.is_disproved) {
		s->watch.is_disproved = true;
		log_error("process %d: glibc's malloc in this stripped static program was never "
			  "called; if it has another one, it has no profile; "
			  "--probe=malloc=0xADDRESS names it",
			  s->processes.pid);
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
