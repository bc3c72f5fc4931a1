/*
 * The recorder's part for interpreters: walks the list of functions that an interpreter runs in
 * this thread, and compares it with that of the thread's last record. See arch/pad_virtual.h.
 *
 * The list is the thread's own, and the thread is here: nothing of it changes meanwhile. What says
 * where it is, is a variable that another thread may change, or that is not what ptmem took it for:
 * so it is followed only where it is the state that ptmem has found for this thread.
 */
#include "arch/recorder/recorder_walk.h"

INLINE uint64_t load(uint64_t at)
{
	return READ(*(const any_word *)at);
}

INLINE int is_in_loop(const struct pad_virtual_layout *l, uint64_t pc)
{
	for (uint64_t i = 0; i < l->ranges; i++)
		if (pc - l->range[i].start < l->range[i].end - l->range[i].start)
			return 1;
	return 0;
}

/* Whether the stack of @kept frames of the last record, and @fresh others, passes the loop. */
static KEEPS __attribute__((noinline)) int passes_loop(const struct pad_virtual_layout *l,
						       const struct pad_slot *slot, uint64_t stack)
{
	uint32_t kept = (uint32_t)stack, fresh = (uint32_t)(stack >> 32);

	for (uint32_t i = 0; i < fresh; i++)
		if (is_in_loop(l, steps_of(slot)[i].pc))
			return 1;
	/* while ptmem waits for the interpreter, no stack with the loop is recorded */
	if (READ(l->mode) != PAD_VIRTUAL_ON)
		return 0;
	for (uint32_t i = 0; i < kept; i++)
		if (is_in_loop(l, checks_of(slot)[frames_of(slot)[i].check].value))
			return 1;
	return 0;
}

/* The interpreter's state of this thread; 0: it has none now, or ptmem must find it. */
INLINE uint64_t find_state(const struct pad_virtual_layout *l, const struct pad_slot *slot)
{
	uint64_t tp = cpu_thread_pointer(), state;

	if (READ(l->mode) != PAD_VIRTUAL_ON || !slot->virtual_state)
		return 0;
	if (l->state_kind == PAD_STATE_TLS)
		return load(tp + (uint64_t)l->place) == slot->virtual_state ? slot->virtual_state : 0;
	state = load((uint64_t)l->place);
	return state == slot->virtual_state && load(state + l->owner) == tp ? state : 0;
}

/* 0: it is no function of the usual type. */
INLINE uint64_t stamp_of(const struct pad_virtual_layout *l, uint64_t identity)
{
	struct pad_stamp stamp;

	if (unlikely(load(identity + l->type) != l->type_value))
		return 0;
	stamp.name_hash = load(load(identity + l->name) + l->hash);
	stamp.file = load(identity + l->file);
	stamp.file_hash = load(stamp.file + l->hash);
	stamp.line = load(identity + l->line);
	stamp.table = load(identity + l->table);
	return pad_stamp_of(&stamp);
}

/* Reads the frame at @at. 0: ptmem must do so. */
INLINE int read_frame(const struct pad_virtual_layout *l, uint64_t at,
		      struct pad_virtual_frame *out)
{
	uint64_t identity = load(at + l->identity) & l->identity_mask, is_entry = 1;

	if (l->entry_kind != PAD_ENTRY_EACH) {
		uint8_t byte = *(const volatile uint8_t *)(at + l->entry);
		is_entry = l->entry_kind == PAD_ENTRY_FLAG ? byte != 0 : byte >= l->entry_min;
		if (l->entry_kind == PAD_ENTRY_SHIM && is_entry)
			identity = 0;
	}
	out->position = l->position_size == 8 ?
				load(at + l->position) :
				(uint64_t)(int64_t)*(const volatile int32_t *)(at + l->position);
	out->word = identity | (is_entry ? PAD_VIRTUAL_ENTRY : 0);
	out->stamp = identity ? stamp_of(l, identity) : 1;
	return out->stamp != 0;
}

/* Fills slot.walk. Returns the number of frames; -1: ptmem must read them. */
INLINE int64_t read_frames(const struct pad_virtual_layout *l, struct pad_slot *slot,
			   uint64_t state)
{
	uint64_t at = state;
	int64_t n = 0;

	for (uint64_t i = 0; i < l->heads && at; i++)
		at = load(at + l->head[i]);
	for (; at; at = load(at + l->next)) {
		if (unlikely(n == PAD_VIRTUAL_FRAMES || !read_frame(l, at, &slot->walk[n])))
			return -1;
		n++;
	}
	return n;
}

INLINE int is_known(const struct pad_virtual *v, uint64_t identity, uint64_t stamp)
{
	const uint64_t mask = (1u << PAD_KNOWN_BITS) - 1;
	uint64_t i = pad_known_hash(identity);

	for (uint64_t n = 0; n <= mask; n++, i = (i + 1) & mask) {
		if (READ(v->known[i].identity) == identity)
			return READ(v->known[i].stamp) == stamp;
		if (!READ(v->known[i].identity))
			return 0;
	}
	return 0;
}

/* Compares the @n frames walked with the last list. */
INLINE int compare(const struct pad_virtual *v, struct pad_slot *slot, uint32_t n)
{
	uint32_t both = n < slot->listed ? n : slot->listed, i = 0;

	for (; i < both; i++) {
		const struct pad_virtual_frame *a = &slot->list[i], *b = &slot->walk[n - 1 - i];
		if ((a->word ^ b->word) | (a->position ^ b->position) | (a->stamp ^ b->stamp))
			break;
	}
	slot->walked = n;
	slot->list_kept = i;
	if (i == n && n == slot->listed)
		return LIST_SAME;
	for (; i < n; i++) {
		const struct pad_virtual_frame *a = &slot->list[i], *b = &slot->walk[n - 1 - i];
		uint64_t identity = b->word & ~(uint64_t)PAD_VIRTUAL_ENTRY;
		if (i < slot->listed && a->word == b->word && a->stamp == b->stamp)
			continue;
		if (identity && unlikely(!is_known(v, identity, b->stamp)))
			return LIST_TRAP;
	}
	return LIST_OTHER;
}

API int pad_walk_list(const struct pad_control *c, struct pad_slot *slot, uint64_t stack)
{
	const struct pad_virtual *v = (const struct pad_virtual *)c->virtual;
	uint64_t state = find_state(&v->layout, slot);
	int64_t n;

	if (unlikely(!state)) {
		if (passes_loop(&v->layout, slot, stack))
			return LIST_TRAP;
		slot->walked = slot->list_kept = 0;
		return slot->listed ? LIST_OTHER : LIST_SAME;
	}
	n = read_frames(&v->layout, slot, state);
	return unlikely(n < 0) ? LIST_TRAP : compare(v, slot, (uint32_t)n);
}

/* The list that was walked is recorded. */
API void pad_remember_list(struct pad_slot *slot)
{
	uint32_t n = slot->walked;

	for (uint32_t i = slot->list_kept; i < n; i++)
		slot->list[i] = slot->walk[n - 1 - i];
	slot->listed = n;
}
