/*
 * The half of a leak check for which the target stands, kept short; see leak_look.h. What
 * can be done before is: the kernel takes longer to find memory for what will be
 * kept than the scan takes to fill it.
 */
#include "leak_look.h"

#include <string.h>

#include "base/log.h"
#include "target/roots.h"
#include "target/target.h"

static int copy_block(void *ctx, const struct block *b)
{
	const struct leakcheck_block block = {
		.addr = b->addr, .size = b->size, .leaf = b->leaf, .time = b->time};

	leakcheck_add_block(ctx, &block);
	return 0;
}

static int note_block(void *ctx, const struct block *b)
{
	leakcheck_note_block(ctx, &(struct leakcheck_block){.addr = b->addr, .size = b->size});
	return 0;
}

static void copy_blocks(const struct session *s, struct leak_look *look)
{
	leakcheck_expect(&look->check, profile_block_count(s->profile));
	profile_each_block(s->profile, copy_block, &look->check);
	look->has_blocks = true;
}

/*
 * Adds @range but for what is below a stack pointer in it. *@below: the first such part not passed
 * yet.
 */
static void add_range(struct leakcheck *c, const struct roots *r, struct root_range range,
		      size_t *below)
{
	for (; *below < r->below_stacks.count && r->below_stacks.data[*below].start < range.end;
	     ++*below) {
		struct root_range hole = r->below_stacks.data[*below];

		if (pointer_scan_has_target_near(&c->scan, hole.start, hole.end))
			continue; /* a stack in the heap, perhaps */
		if (hole.end > range.end) { /* this and the next range */
			leakcheck_add_memory(c, range.start, MAX(range.start, hole.start));
			return;
		}
		leakcheck_add_memory(c, range.start, hole.start);
		range.start = MAX(range.start, hole.end);
	}
	leakcheck_add_memory(c, range.start, range.end);
}

static void add_memory(const struct roots *r, struct leakcheck *c)
{
	size_t below = 0;

	for (size_t i = 0; i < r->memory.count; i++)
		add_range(c, r, r->memory.data[i], &below);
}

static struct leak_look *get_look(struct session *s)
{
	if (s->look && s->look->is_taken)
		leak_look_forget(s);
	if (!s->look) {
		s->look = xcalloc(1, sizeof(*s->look));
		leakcheck_init(&s->look->check);
	}
	return s->look;
}

void leak_look_prepare(struct session *s)
{
	struct roots *roots;

	if (roots_list(s->space, &roots) != 0)
		return; /* the look itself says why */
	struct leak_look *look = get_look(s);

	copy_blocks(s, look);
	add_memory(roots, &look->check);
	leakcheck_prepare(&look->check, roots_read, roots);
	look->has_blocks = false;
	look->is_prepared = true;
	roots_free(roots);
}

void leak_look_take(struct session *s)
{
	struct roots *roots;
	uint64_t begin = target_clock();
	int rc = roots_collect(s->run->target, s->space, &roots);

	if (rc != 0) {
		leak_look_forget(s);
		log_warn("process %u: no leak check: %s", s->pid, strerror(-rc));
		return;
	}
	struct leak_look *look = get_look(s);

	if (look->is_prepared)
		copy_blocks(s, look);
	else /* their places are enough: to copy them takes memory, which takes time */
		profile_each_block(s->profile, note_block, &look->check);
	add_memory(roots, &look->check);
	for (size_t i = 0; i < roots->words.count; i++)
		leakcheck_add_root(&look->check, roots->words.data[i]);
	leakcheck_scan(&look->check, roots_read, roots);
	roots_free(roots);
	look->is_taken = true;
	look->bytes = look->check.scan.bytes;
	look->time_ns = target_clock();
	look->pause_ns = look->time_ns - begin;
}

struct leak_look *leak_look_of(struct session *s)
{
	if (!s->look || !s->look->is_taken)
		return NULL;
	if (!s->look->has_blocks)
		copy_blocks(s, s->look);
	return s->look;
}

void leak_look_forget(struct session *s)
{
	if (!s->look)
		return;
	leakcheck_deinit(&s->look->check);
	free(s->look);
	s->look = NULL;
}
