/*
 * Caches of frames; see pad_memory.h. Addresses in slots are written for the recorder, and never
 * read back: private memory records which slot has which deep cache.
 */
#include "tracee/pads/pad_memory.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "tracee/pads/heap_sampling.h"
#include "tracee/pads/pads.h"

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

/* Of the array of a list of @frames, rounded up as PAD_LINES is. */
#define LIST_BYTES(frames) (((frames) + 4) / 4 * 4 * sizeof(struct pad_virtual_frame))

static void forget_frames(struct pad_slot *slot)
{
	slot->frame_count = slot->check_count = slot->listed = 0;
	slot->label_fault = slot->label_epoch = 0;
	memset(slot->label, 0, sizeof(slot->label));
}

/* The arrays of lists begin at @list. */
static void use_list(struct pad_slot *slot, taddr_t list, uint32_t max)
{
	_Static_assert(offsetof(struct pad_list, walk) - offsetof(struct pad_list, list) ==
				       LIST_BYTES(PAD_LISTED) &&
			       offsetof(struct pad_deep_cache, walk) -
					       offsetof(struct pad_deep_cache, list) ==
				       LIST_BYTES(PAD_MAX_LISTED),
		       "what is walked follows the list");
	slot->list = list;
	slot->walk = list + LIST_BYTES(max);
	slot->max_listed = max;
}

/* Slot @index gets a new thread: its frames are stored in the slot. */
static void pad_cache_use_own(struct pad_memory *m, uint32_t index)
{
	struct pad_slot *slot = pad_memory_slot(m, index);
	taddr_t cache = pad_memory_slot_address(m, index) + offsetof(struct pad_slot, cache);

	forget_frames(slot);
	memset(slot->call, 0, sizeof(slot->call));
	slot->check = cache + offsetof(struct pad_cache, check);
	slot->frame = cache + offsetof(struct pad_cache, frame);
	slot->step = cache + offsetof(struct pad_cache, step);
	slot->max_frames = PAD_SLOT_FRAMES;
	use_list(slot, pad_memory_slot_address(m, index) + offsetof(struct pad_slot, own_list) +
			       offsetof(struct pad_list, list),
		 PAD_LISTED);
	slot->may_request = 1;
	slot->virtual_state = 0;
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
	use_list(slot, cache + offsetof(struct pad_deep_cache, list), PAD_MAX_LISTED);
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

/* The thread of slot @index has ended. */
static void pad_cache_return(struct pad_memory *m, uint32_t index)
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

/* Slot @index of @m, a copy of the parent's memory, gets a copy of the deep cache. */
static void pad_cache_inherit(struct pad_memory *m, uint32_t index,
			      const struct pad_deep_copy *copy)
{
	memcpy(deep_cache(m, copy->index), &copy->cache, sizeof(copy->cache));
	lend(m, copy->index, index);
}

/*
 * Slots and their directory.
 */

#define TAKEN_OUT 1 /* a thread pointer in the directory that is neither empty nor a thread's */

static struct pad_place *find(const struct pad_memory *m, uint64_t key)
{
	const uint64_t mask = (1u << PAD_DIRECTORY_BITS) - 1;
	struct pad_place *p = m->place;

	for (uint64_t i = pad_directory_hash(key), n = 0; n <= mask; i = (i + 1) & mask, n++) {
		if (p[i].thread_pointer == key)
			return &p[i];
		if (p[i].thread_pointer == 0)
			return NULL;
	}
	return NULL;
}

/* A free place for @key, which is not in the directory. At most a quarter of it is in use. */
static struct pad_place *find_room(const struct pad_memory *m, uint64_t key)
{
	uint64_t mask = (1u << PAD_DIRECTORY_BITS) - 1, i = pad_directory_hash(key);

	while (m->place[i].thread_pointer > TAKEN_OUT)
		i = (i + 1) & mask;
	return &m->place[i];
}

/* The shared copy of @p. */
static struct pad_directory *shared_place(const struct pad_memory *m, const struct pad_place *p)
{
	return (struct pad_directory *)(void *)(m->base + m->layout.directory) + (p - m->place);
}

static void enter(struct pad_memory *m, uint64_t thread_pointer, uint32_t index)
{
	struct pad_place *p = find_room(m, thread_pointer);
	struct pad_directory *shared = shared_place(m, p);

	*p = (struct pad_place){ thread_pointer, index };
	shared->slot = pad_memory_slot_address(m, index);
	__atomic_store_n(&shared->thread_pointer, thread_pointer, __ATOMIC_RELEASE);
}

int pad_slots_find(const struct pad_memory *m, uint64_t thread_pointer)
{
	const struct pad_place *p = find(m, thread_pointer);
	return p ? (int)p->slot : -ENOENT;
}

void pad_slots_reset(struct pad_memory *m, uint32_t index)
{
	struct pad_slot *slot = pad_memory_slot(m, index);

	slot->return_at = slot->return_to = 0;
	slot->dirty = 0;
	forget_frames(slot);
	slot->reason = PAD_REASON_NONE;
}

static uint32_t use_next(struct pad_memory *m)
{
	uint32_t index = m->slots.used, chunk = pad_memory_chunk(m, &index);

	m->control->chunk[chunk].used = index + 1;
	return m->slots.used++;
}

bool pad_slots_have_room(const struct pad_memory *m, uint64_t thread_pointer)
{
	return m->slots.free_count || m->slots.used < m->slots.count || find(m, thread_pointer);
}

int pad_slots_add(struct pad_memory *m, uint64_t thread_pointer, taddr_t stack_low,
			  taddr_t stack_high)
{
	const struct pad_place *p = find(m, thread_pointer);
	struct pad_slot *slot;
	uint32_t index;

	if (thread_pointer <= TAKEN_OUT)
		return -EINVAL;
	if (p)
		index = p->slot;
	else if (m->slots.free_count)
		index = m->slots.free_slot[--m->slots.free_count];
	else if (m->slots.used < m->slots.count)
		index = use_next(m);
	else
		return -ENOSPC;
	slot = pad_memory_slot(m, index);
	if (!slot->thread_pointer && m->written.flags & PAD_SAMPLING)
		heap_sampling_seed_slot(m, index);
	slot->thread_pointer = thread_pointer;
	slot->index = index;
	pad_memory_place_ring(m, index);
	slot->stack_low = stack_low;
	slot->stack_high = stack_high;
	slot->is_apart = 0;
	slot->has_thrown = 0;
	pad_slots_reset(m, index);
	if (!p) {
		pad_cache_use_own(m, index);
		enter(m, thread_pointer, index);
	}
	return (int)index;
}

static void add_free_slot(struct pad_memory *m, uint32_t index)
{
	m->slots.free_slot =
		xgrow(m->slots.free_slot, &m->slots.free_capacity, m->slots.free_count + 1,
		      sizeof(*m->slots.free_slot));
	m->slots.free_slot[m->slots.free_count++] = index;
}

void pad_slots_remove(struct pad_memory *m, uint64_t thread_pointer)
{
	struct pad_place *p = find(m, thread_pointer);

	if (!p || thread_pointer <= TAKEN_OUT)
		return;
	add_free_slot(m, p->slot);
	pad_cache_return(m, p->slot);
	p->thread_pointer = TAKEN_OUT;
	__atomic_store_n(&shared_place(m, p)->thread_pointer, TAKEN_OUT, __ATOMIC_RELEASE);
}

void pad_slots_inherit(struct pad_memory *m, const struct pad_control *control,
			const struct pad_slot *slot, const struct pad_deep_copy *deep)
{
	struct pad_control *own = m->control;

	pad_memory_set_off(m, control->off);
	pad_memory_set_flags(m, control->flags);
	pad_memory_set_shared(m, control->shared);
	own->next_number = control->next_number;
	/* a slot keeps its index: the thread may be about to write it into a record */
	own->chunk[0].used = m->slots.used = slot->index + 1;
	for (uint32_t i = 0; i < slot->index; i++)
		add_free_slot(m, i);
	*pad_memory_slot(m, slot->index) = *slot;
	pad_memory_place_ring(m, slot->index);
	if (deep)
		pad_cache_inherit(m, slot->index, deep);
	enter(m, slot->thread_pointer, slot->index);
}
