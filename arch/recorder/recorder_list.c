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
		return load(tp + (uint64_t)l->place) == slot->virtual_state ?
			       slot->virtual_state : 0;
	if (l->state_kind == PAD_STATE_FIXED)
		return slot->virtual_state == (uint64_t)l->place ? slot->virtual_state : 0;
	state = load((uint64_t)l->place);
	return state == slot->virtual_state && load(state + l->owner) == tp ? state : 0;
}

/* What has the entry byte of the frame at @at: it, or what it refers to. */
INLINE uint64_t part_of(const struct pad_virtual_layout *l, uint64_t at)
{
	return l->via ? load(at + l->via) : at;
}

INLINE uint64_t entry_byte(const struct pad_virtual_layout *l, uint64_t part)
{
	return *(const volatile uint8_t *)(part + l->entry);
}

INLINE uint64_t raw_identity(const struct pad_virtual_layout *l, uint64_t at, uint64_t part)
{
	uint64_t identity = load(at + l->identity);

	return identity || !l->native ? identity : load(part + l->native);
}

INLINE const struct pad_function_kind *kind_of(const struct pad_virtual_layout *l,
					       const struct pad_virtual_frame *f)
{
	return &l->kind[f->kind];
}

INLINE uint64_t hash_at(uint64_t text, uint64_t offset)
{
	return text ? load(text + offset) : 0;
}

INLINE uint64_t position_of(const struct pad_virtual_layout *l, uint64_t at)
{
	if (likely(l->position_size == 8))
		return load(at + l->position);
	return (uint64_t)(int64_t)*(const volatile int32_t *)(at + l->position);
}

INLINE uint64_t identity_of(const struct pad_virtual_frame *f)
{
	return f->word & ~(uint64_t)PAD_VIRTUAL_ENTRY;
}

/*
 * Whether the frame at @at is @f, of the last list. The function's words are loaded once the frame
 * is known to have it, its names once it is known to have these: they are alive.
 */
INLINE int is_same_frame(const struct pad_virtual_layout *l, uint64_t at,
			 const struct pad_virtual_frame *f, uint64_t checked)
{
	const struct pad_function_kind *k = kind_of(l, f);
	uint64_t identity = identity_of(f), part = part_of(l, at);

	if ((at ^ f->at) | (raw_identity(l, at, part) ^ f->identity) |
	    (entry_byte(l, part) ^ f->entry))
		return 0;
	if ((position_of(l, at) ^ f->position) && !(k->flags & PAD_KIND_NATIVE))
		return 0;
	if (!identity || identity == checked)
		return 1;
	if ((load(identity + k->name) ^ f->name) | (load(identity + k->file) ^ f->file))
		return 0;
	if (k->flags & PAD_KIND_DEEP)
		identity = f->name;
	if ((load(identity + k->line) ^ f->line) | (load(identity + k->table) ^ f->table))
		return 0;
	return !((hash_at(f->name, k->name_hash) ^ f->name_hash) |
		 (hash_at(f->file, k->file_hash) ^ f->file_hash));
}

INLINE void read_function(const struct pad_function_kind *k, uint64_t identity,
			  struct pad_virtual_frame *out)
{
	struct pad_stamp stamp;

	out->name = load(identity + k->name);
	out->name_hash = stamp.name_hash = hash_at(out->name, k->name_hash);
	out->file = stamp.file = load(identity + k->file);
	out->file_hash = stamp.file_hash = hash_at(stamp.file, k->file_hash);
	if (k->flags & PAD_KIND_DEEP)
		identity = out->name;
	out->line = stamp.line = load(identity + k->line);
	out->table = stamp.table = load(identity + k->table);
	out->stamp = pad_stamp_of(&stamp);
}

INLINE uint64_t word_of(const struct pad_virtual_layout *l, const struct pad_virtual_frame *f)
{
	uint64_t identity = f->identity & l->identity_mask;

	if (l->entry_kind == PAD_ENTRY_EACH)
		return identity | PAD_VIRTUAL_ENTRY;
	if (l->entry_kind == PAD_ENTRY_FLAG)
		return identity | (f->entry & l->entry_mask ? PAD_VIRTUAL_ENTRY : 0);
	return f->entry >= l->entry_min ? PAD_VIRTUAL_ENTRY : identity;
}

/* Reads the frame at @at. 0: its function is of no usual type, so ptmem must do so. */
INLINE int read_frame(const struct pad_virtual_layout *l, uint64_t at,
		      struct pad_virtual_frame *out)
{
	const struct pad_function_kind *k = l->kind;
	uint64_t identity, part = part_of(l, at);

	out->at = at;
	out->identity = raw_identity(l, at, part);
	out->entry = entry_byte(l, part);
	out->position = position_of(l, at);
	out->word = word_of(l, out);
	out->stamp = out->kind = 0;
	identity = identity_of(out);
	if (!identity)
		return 1;
	while ((load(identity + k->type) & k->type_mask) != k->type_value) {
		if (unlikely(++out->kind >= l->kinds))
			return 0;
		k++;
	}
	if (k->flags & PAD_KIND_NATIVE) {
		out->word &= ~(uint64_t)PAD_VIRTUAL_ENTRY;
		out->position = 0;
	}
	if (k->flags & PAD_KIND_NONE) {
		out->word &= PAD_VIRTUAL_ENTRY;
		return 1;
	}
	read_function(k, identity, out);
	return 1;
}

/* Where the frames of an array end; 0: they are linked. */
INLINE uint64_t end_of(const struct pad_virtual_layout *l, uint64_t state)
{
	return l->stride ? load(state + l->stack) + 8 * load(state + l->stack_words) : 0;
}

/* The frame outside of that at @at; 0: there is none. */
INLINE uint64_t next_of(const struct pad_virtual_layout *l, uint64_t at, uint64_t end)
{
	if (likely(!l->stride))
		return load(at + l->next);
	return at + l->stride < end ? at + l->stride : 0;
}

/*
 * A walk, innermost first: frames are read to slot.walk up to the outermost one that differs from
 * the last list; those outside of it, from number `same` on, are in that list, where frame number n
 * is list[top - n].
 */
struct list_walk {
	int64_t count, same, top; /* top < 0: no frame of the list was met */
};

#define FIND_FRAMES 16u /* of the list's innermost: where one is looked for */

INLINE int64_t find_in_list(const struct pad_slot *slot, uint64_t at)
{
	uint32_t listed = slot->listed;

	for (uint32_t i = 1; i <= FIND_FRAMES && i <= listed; i++)
		if (slot->list[listed - i].at == at)
			return listed - i;
	return -1;
}

/* Frames that are the same follow others that are not: all these are in slot.walk. */
INLINE void copy_same(struct pad_slot *slot, const struct list_walk *w)
{
	for (int64_t n = w->same; n < w->count; n++)
		slot->walk[n] = slot->list[w->top - n];
}

/* The frames from @at outwards that are those of the list from @f on; *count_out: their number. */
INLINE uint64_t skip_same(const struct pad_virtual_layout *l, uint64_t at,
			  const struct pad_virtual_frame *f, const struct pad_virtual_frame *last,
			  uint64_t end, int64_t *count_out)
{
	const struct pad_virtual_frame *first = f;
	uint64_t checked = 0; /* the function of the frame before */

	for (; at && f >= last && likely(is_same_frame(l, at, f, checked)); f--) {
		checked = identity_of(f);
		at = next_of(l, at, end);
	}
	*count_out = first - f;
	return at;
}

/* 0: ptmem must read the list. */
INLINE int walk_frames(const struct pad_virtual_layout *l, struct pad_slot *slot, uint64_t state,
		       struct list_walk *w)
{
	uint64_t at = state, end = end_of(l, state);

	w->count = w->same = 0;
	w->top = -1;
	for (uint64_t i = 0; i < l->heads && at; i++)
		at = load(at + l->head[i]);
	if (l->stride && at >= end)
		at = 0;
	while (at) {
		int64_t same = 0;
		if (w->top < 0) {
			w->top = find_in_list(slot, at);
			if (w->top >= 0)
				w->top += w->count;
		}
		if (w->top >= w->count)
			at = skip_same(l, at, &slot->list[w->top - w->count], slot->list, end,
				       &same);
		w->count += same;
		if (!at)
			break;
		if (unlikely(w->count == PAD_VIRTUAL_FRAMES))
			return 0;
		copy_same(slot, w);
		if (unlikely(!read_frame(l, at, &slot->walk[w->count])))
			return 0;
		w->same = ++w->count;
		at = next_of(l, at, end);
	}
	if (w->top + 1 != w->count && w->same != w->count) {
		/* the list has more frames outside: those are not the same ones */
		copy_same(slot, w);
		w->same = w->count;
	}
	return 1;
}

/* -- PAD_STATE_FRAMES -- */

INLINE int is_reference(const struct pad_virtual_layout *l, uint64_t word)
{
	return (word & l->tag_mask) == l->tag_value && word >= l->lowest;
}

/* The word at @offset of what @word refers to; @word if it is no reference. */
INLINE uint64_t referred(const struct pad_virtual_layout *l, uint64_t word, uint64_t offset)
{
	return is_reference(l, word) ? load(word - l->tag_value + offset) : word;
}

INLINE uint64_t frame_stamp(const struct pad_virtual_layout *l, uint64_t function)
{
	uint64_t name = load(function + l->name);
	struct pad_stamp stamp;

	stamp.name_hash = pad_stamp_mix(name, referred(l, name, l->name_word));
	stamp.file = load(function + l->file);
	stamp.file_hash = referred(l, stamp.file, l->file_word);
	stamp.line = load(function + l->line);
	stamp.table = load(function + l->table);
	return pad_stamp_of(&stamp);
}

/* The function of the frame with frame pointer @fp, 0 if it has none. */
INLINE void read_own_function(const struct pad_virtual_layout *l, uint64_t fp,
			      struct pad_virtual_frame *out)
{
	uint64_t closure = load(fp + l->identity), function = 0;

	if (is_reference(l, load(fp + l->entry)) && is_reference(l, closure))
		function = load(closure - l->tag_value + l->owner);
	function = is_reference(l, function) ? function - l->tag_value : 0;
	out->at = fp;
	out->word = function | PAD_VIRTUAL_ENTRY;
	out->position = 0;
	out->stamp = function ? frame_stamp(l, function) : 0;
}

/* A native frame: 0 if there are too many. */
INLINE int take_native(const struct pad_virtual_layout *l, struct pad_slot *slot, uint64_t fp,
		       struct list_walk *w)
{
	struct pad_virtual_frame *f = &slot->walk[w->count];

	if (unlikely(w->count == PAD_VIRTUAL_FRAMES))
		return 0;
	if (w->top < 0) {
		w->top = find_in_list(slot, fp);
		if (w->top >= 0)
			w->top += w->count;
	}
	read_own_function(l, fp, f);
	w->count++;
	if (w->top >= w->count - 1) {
		const struct pad_virtual_frame *old = &slot->list[w->top - (w->count - 1)];

		if (old->at == fp && old->word == f->word && old->stamp == f->stamp)
			return 1;
	}
	w->same = w->count;
	return 1;
}

/*
 * Walks the frames of the stack: @stack as for pad_walk_list. All are in slot.walk. A frame whose
 * way to its caller is not by the frame pointer may have another value in it: ptmem must look.
 */
static KEEPS __attribute__((noinline)) int walk_native(const struct pad_virtual_layout *l,
						       struct pad_slot *slot, uint64_t stack,
						       struct list_walk *w)
{
	const struct pad_frame *frame = frames_of(slot);
	const struct pad_step *s = steps_of(slot);
	uint32_t kept = (uint32_t)stack, fresh = (uint32_t)(stack >> 32);

	w->count = w->same = 0;
	w->top = -1;
	for (uint32_t i = 0; i < fresh; i++)
		if (is_in_loop(l, s[i].pc) &&
		    (!s[i].uses_fp || !take_native(l, slot, s[i].fp, w)))
			return 0;
	for (uint32_t i = kept; i-- > 0;)
		if (is_in_loop(l, checks_of(slot)[frame[i].check].value) &&
		    (!frame[i].needs_fp || !take_native(l, slot, frame[i].fp, w)))
			return 0;
	if (w->top + 1 != w->count)
		w->same = w->count;
	return 1;
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

/* What the record of @w is. */
INLINE int judge(const struct pad_virtual *v, struct pad_slot *slot, const struct list_walk *w)
{
	slot->walked = (uint32_t)w->count;
	slot->list_kept = (uint32_t)(w->count - w->same);
	if (w->same == 0 && slot->walked == slot->listed)
		return LIST_SAME;
	for (int64_t n = 0; n < w->same; n++) {
		const struct pad_virtual_frame *f = &slot->walk[n];
		int64_t i = w->top - n;
		if (i >= 0 && i < slot->listed && slot->list[i].word == f->word &&
		    slot->list[i].stamp == f->stamp)
			continue;
		if (identity_of(f) && unlikely(!is_known(v, identity_of(f), f->stamp)))
			return LIST_TRAP;
	}
	return LIST_OTHER;
}

API int pad_walk_list(const struct pad_control *c, struct pad_slot *slot, uint64_t stack)
{
	const struct pad_virtual *v = (const struct pad_virtual *)c->virtual;
	struct list_walk w;
	uint64_t state;

	if (v->layout.state_kind == PAD_STATE_FRAMES)
		return likely(walk_native(&v->layout, slot, stack, &w)) ? judge(v, slot, &w) :
									  LIST_TRAP;
	state = find_state(&v->layout, slot);
	if (unlikely(!state)) {
		if (passes_loop(&v->layout, slot, stack))
			return LIST_TRAP;
		slot->walked = slot->list_kept = 0;
		return slot->listed ? LIST_OTHER : LIST_SAME;
	}
	return likely(walk_frames(&v->layout, slot, state, &w)) ? judge(v, slot, &w) : LIST_TRAP;
}

/* The list that was walked is recorded. */
API void pad_remember_list(struct pad_slot *slot)
{
	uint32_t n = slot->walked;

	for (uint32_t i = slot->list_kept; i < n; i++)
		slot->list[i] = slot->walk[n - 1 - i];
	slot->listed = n;
}
