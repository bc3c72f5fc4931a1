/*
 * Caches of frames; see pad_cache.h. Addresses in slots are written for the recorder, and never
 * read back: private memory records which slot has which deep cache.
 */
#include "tracee/pads/pad_cache.h"

#include <string.h>

#include "base/alloc.h"

/* The deep cache of slot @index, or -1. */
static int find_deep(const struct pad_memory *m, uint32_t index)
{
	for (int i = 0; i < PAD_DEEP_CACHES; i++) {
		if (m->deep[i].is_lent && m->deep[i].slot == index)
			return i;
	}
	return -1;
}

static int find_free_deep(const struct pad_memory *m)
{
	for (int i = 0; i < PAD_DEEP_CACHES; i++) {
		if (!m->deep[i].is_lent)
			return i;
	}
	return -1;
}

static struct pad_deep_cache *deep_cache(const struct pad_memory *m, uint32_t deep)
{
	return (struct pad_deep_cache *)(void *)(m->base + m->layout.deep_caches) + deep;
}

static void lend(struct pad_memory *m, uint32_t deep, uint32_t index)
{
	m->deep[deep].is_lent = true;
	m->deep[deep].slot = index;
}

static void forget_frames(struct pad_slot *slot)
{
	slot->frame_count = slot->check_count = 0;
}

void pad_cache_use_own(struct pad_memory *m, uint32_t index)
{
	struct pad_slot *slot = pad_memory_slot(m, index);
	taddr_t cache = pad_memory_slot_address(m, index) + offsetof(struct pad_slot, cache);

	forget_frames(slot);
	slot->check = cache + offsetof(struct pad_cache, check);
	slot->frame = cache + offsetof(struct pad_cache, frame);
	slot->step = cache + offsetof(struct pad_cache, step);
	slot->max_frames = PAD_SLOT_FRAMES;
	slot->may_request = 1;
}

static void use_deep(struct pad_memory *m, uint32_t index, uint32_t deep)
{
	struct pad_slot *slot = pad_memory_slot(m, index);
	taddr_t cache = m->target + m->layout.deep_caches + deep * sizeof(struct pad_deep_cache);

	lend(m, deep, index);
	slot->check = cache + offsetof(struct pad_deep_cache, check);
	slot->frame = cache + offsetof(struct pad_deep_cache, frame);
	slot->step = cache + offsetof(struct pad_deep_cache, step);
	slot->max_frames = PAD_MAX_FRAMES;
}

void pad_cache_deepen(struct pad_memory *m, uint32_t index)
{
	struct pad_slot *slot = pad_memory_slot(m, index);
	int deep = find_deep(m, index) < 0 ? find_free_deep(m) : -1;

	slot->may_request = 0;
	slot->reason = PAD_REASON_NONE;
	forget_frames(slot);
	if (deep >= 0)
		use_deep(m, index, (uint32_t)deep);
}

void pad_cache_return(struct pad_memory *m, uint32_t index)
{
	int deep = find_deep(m, index);

	if (deep >= 0)
		m->deep[deep].is_lent = false;
}

struct pad_deep_copy *pad_cache_copy(const struct pad_memory *m, uint32_t index)
{
	int deep = find_deep(m, index);
	struct pad_deep_copy *copy;

	if (deep < 0)
		return NULL;
	copy = xmalloc(sizeof(*copy));
	copy->index = (uint32_t)deep;
	memcpy(&copy->cache, deep_cache(m, copy->index), sizeof(copy->cache));
	return copy;
}

void pad_cache_inherit(struct pad_memory *m, uint32_t index, const struct pad_deep_copy *copy)
{
	memcpy(deep_cache(m, copy->index), &copy->cache, sizeof(copy->cache));
	lend(m, copy->index, index);
}
