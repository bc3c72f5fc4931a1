/* Covered blocks are in one array, with a chain for each address. */
#include "profile/profile_update.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

#define ALIGNMENT 16u

struct overlay *overlay_new(void)
{
	struct overlay *o = xcalloc(1, sizeof(*o));
	o->request = blocks_new(false, ALIGNMENT);
	o->top = blocks_new(false, ALIGNMENT);
	memset(vec_add(&o->list), 0, sizeof(struct covered));
	return o;
}

struct overlay *overlay_clone(const struct overlay *o)
{
	if (!o)
		return NULL;
	struct overlay *c = xmemdup(o, sizeof(*o));
	c->request = blocks_clone(o->request);
	c->top = blocks_clone(o->top);
	c->list.data = xmemdup(o->list.data, o->list.count * sizeof(*o->list.data));
	c->list.capacity = o->list.count;
	return c;
}

void overlay_free(struct overlay *o)
{
	if (!o)
		return;
	blocks_free(o->request);
	blocks_free(o->top);
	vec_deinit(&o->list);
	free(o);
}

/* A table used as a set, or as a map to small numbers. */
static void put_number(struct blocks *b, taddr_t addr, uint64_t number)
{
	const struct block entry = {.addr = addr,
				    .size = number,
				    .capacity = ROUND_UP(number, (uint64_t)ALIGNMENT)};
	blocks_add(b, &entry, NULL);
}

static uint32_t take_number(struct blocks *b, taddr_t addr)
{
	struct block entry;
	return blocks_take(b, addr, &entry) ? (uint32_t)entry.size : 0;
}

static uint32_t new_covered(struct overlay *o)
{
	uint32_t i = o->free;
	if (!i) {
		vec_add(&o->list);
		return (uint32_t)o->list.count - 1;
	}
	o->free = o->list.data[i].below;
	return i;
}

static void cover(struct profile *p, taddr_t addr, bool was_request)
{
	struct overlay *o = p->overlay;
	struct covered c = {.is_request = was_request, .is_used = true};
	c.is_counted = blocks_take(p->blocks, addr, &c.block);
	if (!c.is_counted && !blocks_take(p->ignored, addr, &c.block))
		return;
	c.below = take_number(o->top, addr);
	uint32_t i = new_covered(o);
	o->list.data[i] = c;
	put_number(o->top, addr, i);
}

void overlay_push(struct profile *p, taddr_t addr, bool is_request)
{
	bool was_request = take_number(p->overlay->request, addr) != 0;
	cover(p, addr, was_request);
	if (is_request)
		put_number(p->overlay->request, addr, 1);
}

void overlay_pop(struct profile *p, taddr_t addr)
{
	struct overlay *o = p->overlay;
	struct block other;
	if (blocks_find(p->blocks, addr, &other) || blocks_find(p->ignored, addr, &other))
		return; /* reused by another thread while it was moved */
	take_number(o->request, addr);
	uint32_t i = take_number(o->top, addr);
	if (!i)
		return;
	struct covered c = o->list.data[i];
	if (c.below)
		put_number(o->top, addr, c.below);
	if (c.is_request)
		put_number(o->request, addr, 1);
	blocks_add(c.is_counted ? p->blocks : p->ignored, &c.block, NULL);
	o->list.data[i] = (struct covered){.below = o->free};
	o->free = i;
}

int overlay_each(const struct overlay *o, int (*fn)(void *ctx, const struct block *block),
		 void *ctx)
{
	int rc = 0;
	for (size_t i = 1; o && i < o->list.count && rc == 0; i++) {
		if (o->list.data[i].is_used && o->list.data[i].is_counted)
			rc = fn(ctx, &o->list.data[i].block);
	}
	return rc;
}
