/*
 * realloc in its two halves. The first takes the block out of its table, since
 * from then on its address may be given to another thread; the bytes stay
 * counted. The second does the accounting of the whole in one event:
 *
 *	block was   returned            then
 *	any         NULL, size > 0      failed: the block is restored
 *	unknown     anything            nothing is recorded
 *	counted     NULL, size 0        a free
 *	counted     address             peak attempt if it shrinks; update; normal attempt
 *	counted     address, but the    peak attempt if it shrinks; its bytes stay where they
 *	            site is ignored     are forever, the block is ignored from now on
 *	ignored     anything            stays ignored
 *
 * Of samples the last but two rows are a free and an allocation: see profile.h.
 *
 * A first half whose second half never comes (the thread ended, a longjmp out of realloc, ptmem
 * detached meanwhile) is undone. If the address belongs to another block by then, that realloc had
 * already released it: it counts as a free.
 */
#include "profile/realloc.h"

#include <string.h>

#include "profile/profile_update.h"

/* Index of the block that @thread holds; held.count if none. */
static size_t find_held(const struct profile *p, uint32_t thread)
{
	size_t i = 0;
	while (i < p->held.count && p->held.data[i].thread != thread)
		i++;
	return i;
}

static bool is_taken(const struct profile *p, taddr_t addr)
{
	struct block other;
	return blocks_find(p->blocks, addr, &other) || blocks_find(p->ignored, addr, &other);
}

/* If another block is live at the address now, the free of the held one was missed. */
static void restore_block(struct profile *p, const struct held *held)
{
	bool has_other = is_taken(p, held->block.addr);
	if (held->from == HELD_UNKNOWN || (held->from == HELD_IGNORED && has_other))
		return;
	if (held->from == HELD_IGNORED)
		blocks_add(p->ignored, &held->block, NULL);
	else if (has_other)
		profile_free_unseen(p, &held->block);
	else
		blocks_add(p->blocks, &held->block, NULL);
}

/* Keeps held blocks in the order of their first halves. */
static struct held remove_held(struct profile *p, size_t i)
{
	struct held held = p->held.data[i];
	memmove(&p->held.data[i], &p->held.data[i + 1], (p->held.count - i - 1) * sizeof(held));
	p->held.count--;
	return held;
}

/* Undoes the first half number @i. */
static void undo(struct profile *p, size_t i)
{
	struct held held = remove_held(p, i);

	if (held.from == HELD_COUNTED && is_taken(p, held.block.addr))
		profile_free_block(p, &held.block, held.thread);
	else
		restore_block(p, &held);
}

void realloc_undo_thread(struct profile *p, uint32_t thread)
{
	size_t i = find_held(p, thread);
	if (i < p->held.count)
		undo(p, i);
}

/* Newest first: of two blocks at one address the older one was freed. */
void realloc_undo_all(struct profile *p)
{
	while (p->held.count > 0)
		undo(p, p->held.count - 1);
}

bool realloc_is_begun(const struct profile *p, uint32_t thread, taddr_t addr)
{
	size_t i = find_held(p, thread);
	return i < p->held.count && p->held.data[i].from != HELD_UNKNOWN &&
	       p->held.data[i].block.addr == addr;
}

void realloc_begin(struct profile *p, const struct event *ev)
{
	realloc_undo_thread(p, ev->thread);
	if (!ev->old_addr)
		return;
	struct held held = profile_hold(p, ev->old_addr);
	held.thread = ev->thread;
	*vec_add(&p->held) = held;
}

/* The block removed by the first half of @ev. Without a first half the block is looked up now. */
static struct held take_held(struct profile *p, const struct event *ev)
{
	size_t i = find_held(p, ev->thread);
	if (i < p->held.count && p->held.data[i].block.addr == ev->old_addr)
		return remove_held(p, i);
	realloc_undo_thread(p, ev->thread);
	return profile_hold(p, ev->old_addr);
}

/* The site of the realloc is ignored (2.8): no update, no normal attempt. */
static void lose(struct profile *p, const struct block *old, const struct event *ev)
{
	p->lost_bytes += old->size;
	p->lost_extra += profile_block_extra(p, old);
	p->lost_blocks++;
	profile_add_ignored(p, ev->addr, ev->size);
}

/* For histories the old block is released, and a new one allocated. */
static void remember_change(struct profile *p, const struct block *old, const struct block *new,
			    uint32_t thread)
{
	struct history_block from = history_block_of(old, thread, profile_weigh(p, old));
	struct history_block to = history_block_of(new, thread, profile_weigh(p, new));

	if (!p->history)
		return;
	to.new_bytes = new->size > old->size ? new->size - old->size : 0;
	from.is_resized = true;
	remember_release(p, &from, old->time_us);
	remember_alloc(p, &to);
	remember_resize(p, &to, old->addr);
}

static void change_block(struct profile *p, const struct block *old, const struct event *ev)
{
	if (ev->size < old->size && !p->options.no_heap)
		try_peak(p, "re-PEAK");
	struct block block = *old;
	block.addr = ev->addr;
	block.size = ev->size;
	block.time_us = clock_us(p);
	block.leaf = get_leaf(p, ev->node); /* after the peak: a new site is not in it */
	if (block.leaf == LEAF_IGNORED) {
		lose(p, old, ev);
		return;
	}
	if (ev->size > old->capacity)
		block.capacity = capacity_of(ev->size, p->options.alignment);
	if (p->overlay && block.addr != old->addr)
		overlay_push(p, block.addr, false);
	profile_add_block(p, &block);
	count_out(p, old->leaf, profile_weigh(p, old));
	count_in(p, block.leaf, profile_weigh(p, &block));
	/* only the growth is newly allocated: the rest was counted at the original allocation */
	p->leaf.data[block.leaf].total_bytes -= MIN(old->size, block.size);
	uint64_t before = old->capacity, after = block.capacity; /* admin is in both */
	pass_bytes(p, after > before ? after - before : before - after);
	p->totals.reallocations++;
	p->totals.allocated_bytes += block.size > old->size ? block.size - old->size : 0;
	remember_change(p, old, &block, ev->thread);
	note_peak(p);
	if (!p->options.no_heap)
		try_normal(p, "realloc");
}

static void replace_sample(struct profile *p, const struct block *old, const struct event *ev)
{
	struct weight w = profile_weigh(p, old);
	struct history_block from = history_block_of(old, ev->thread, w);

	from.is_resized = true;
	count_free(p, old->leaf, w);
	remember_release(p, &from, old->time_us);
	profile_alloc(p, ev);
}

void realloc_end(struct profile *p, const struct event *ev)
{
	if (!ev->old_addr) {
		realloc_undo_thread(p, ev->thread);
		profile_alloc(p, ev);
		return;
	}
	struct held held = take_held(p, ev);
	if (!ev->addr && ev->size > 0) {
		p->totals.failed++;
		restore_block(p, &held);
		return;
	}
	if (held.from == HELD_UNKNOWN)
		p->totals.unknown_frees++;
	else if (held.from == HELD_IGNORED && ev->addr)
		profile_add_ignored(p, ev->addr, ev->size);
	else if (held.from == HELD_COUNTED && ev->addr && p->options.sample_interval)
		replace_sample(p, &held.block, ev);
	else if (held.from == HELD_COUNTED && ev->addr)
		change_block(p, &held.block, ev);
	else if (held.from == HELD_COUNTED)
		profile_free_block(p, &held.block, ev->thread);
	if (p->overlay && ev->addr != ev->old_addr)
		overlay_pop(p, ev->old_addr);
}
