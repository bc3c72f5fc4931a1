/*
 * The recorder's part for interpreters: walks the list of functions that an interpreter runs in
 * this thread, and compares it with that of the thread's last record. See arch/pad_virtual.h.
 *
 * The list is the thread's own, and the thread is here: nothing of it changes meanwhile. What says
 * where it is, is a variable that another thread may change, or that is not what ptmem took it for:
 * so it is followed only where it is the state that ptmem has found for this thread.
 */
#include "arch/recorder/recorder_walk.h"

typedef int32_t __attribute__((may_alias)) any_int;

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

/* A stack of values that the allocation has moved, which the state of this thread refers to yet. */
struct moved_stack {
	uint64_t from, size, to; /* size 0: none */
};

INLINE uint64_t function_in(const struct pad_virtual_values *v, const struct moved_stack *moved,
			    uint64_t value)
{
	if (unlikely(value - moved->from < moved->size))
		value += moved->to - moved->from;
	else if (unlikely(value < moved->size))
		value += moved->to; /* it is an offset meanwhile */
	if (*(const volatile uint8_t *)(value + v->tag) != v->function_tag)
		return 0;
	return load(load(value) + v->function);
}

INLINE uint64_t raw_identity(const struct pad_virtual_layout *l, const struct moved_stack *moved,
			     uint64_t at, uint64_t part)
{
	uint64_t identity = load(at + l->identity);

	if (unlikely(l->values.is_used))
		return function_in(&l->values, moved, identity);
	return identity || !l->native ? identity : load(part + l->native);
}

INLINE struct pad_virtual_frame *list_of(const struct pad_slot *slot)
{
	return (struct pad_virtual_frame *)slot->list;
}

INLINE struct pad_virtual_frame *walk_of(const struct pad_slot *slot)
{
	return (struct pad_virtual_frame *)slot->walk;
}

INLINE uint64_t hash_at(uint64_t text, uint64_t offset)
{
	return text ? load(text + offset) : 0;
}

INLINE uint64_t position_at(const struct pad_virtual_layout *l, uint64_t at, uint64_t size)
{
	if (likely(size == 8))
		return load(at + l->position);
	return (uint64_t)(int64_t)*(const volatile int32_t *)(at + l->position);
}

INLINE int is_entry(const struct pad_virtual_layout *l, uint64_t entry)
{
	if (l->entry_kind == PAD_ENTRY_EACH)
		return 1;
	if (l->entry_kind == PAD_ENTRY_FLAG)
		return (entry & l->entry_mask) != 0;
	return entry >= l->entry_min;
}

INLINE int has_function(const struct pad_virtual_layout *l, uint64_t entry)
{
	return l->entry_kind != PAD_ENTRY_SHIM || entry < l->entry_min;
}

/* The function of the frame; 0: it has none. */
INLINE uint64_t function_of(const struct pad_virtual_layout *l, const struct pad_virtual_frame *f)
{
	return has_function(l, pad_frame_entry(f)) ? f->identity & l->identity_mask : 0;
}

INLINE uint64_t flags_of(const struct pad_virtual_layout *l, uint64_t kind)
{
	return kind == PAD_NO_FUNCTION ? PAD_KIND_NONE : l->kind[kind].flags;
}

INLINE uint64_t word_of(const struct pad_virtual_layout *l, const struct pad_virtual_frame *f)
{
	uint64_t flags = flags_of(l, pad_frame_kind(f));
	uint64_t word = flags & PAD_KIND_NONE ? 0 : function_of(l, f);

	if (!(flags & PAD_KIND_NATIVE) && is_entry(l, pad_frame_entry(f)))
		word |= PAD_VIRTUAL_ENTRY;
	return word;
}

INLINE uint64_t read_stamp(const struct pad_function_kind *k, uint64_t function)
{
	struct pad_stamp stamp;
	uint64_t name = load(function + k->name);

	stamp.name_hash = hash_at(name, k->name_hash);
	stamp.file = load(function + k->file);
	stamp.file_hash = hash_at(stamp.file, k->file_hash);
	if (k->flags & PAD_KIND_DEEP)
		function = name;
	stamp.line = load(function + k->line);
	stamp.table = load(function + k->table);
	return pad_short_stamp(pad_stamp_of(&stamp));
}

INLINE int is_of_kind(const struct pad_function_kind *k, uint64_t function)
{
	return (load(function + k->type) & k->type_mask) == k->type_value;
}

/* What ptmem has read at @identity; NULL: nothing. */
INLINE const struct pad_known *find_known(const struct pad_virtual *v, uint64_t identity)
{
	const uint64_t mask = (1u << PAD_KNOWN_BITS) - 1;
	uint64_t i = pad_known_hash(identity);

	for (uint64_t n = 0; n <= mask; n++, i = (i + 1) & mask) {
		if (READ(v->known[i].identity) == identity)
			return &v->known[i];
		if (!READ(v->known[i].identity))
			return 0;
	}
	return 0;
}

INLINE int is_known(const struct pad_virtual *v, uint64_t identity, uint64_t stamp)
{
	const struct pad_known *k = find_known(v, identity);

	return k && pad_short_stamp(READ(k->stamp)) == stamp;
}

/*
 * The kind and the stamp of @function. 0: it is of no usual type, or unknown: ptmem must read it.
 */
INLINE int read_function(const struct pad_virtual *v, uint64_t function, uint64_t *kind_out,
			 uint64_t *stamp_out)
{
	const struct pad_function_kind *k = v->layout.kind;
	uint64_t kind = 0;

	for (; !is_of_kind(k, function); k++)
		if (unlikely(++kind >= v->layout.kinds))
			return 0;
	*kind_out = kind;
	if (k->flags & PAD_KIND_NONE)
		return 1;
	*stamp_out = read_stamp(k, function);
	return is_known(v, function, *stamp_out);
}

/*
 * A walk, innermost first: frames are read to the slot's walk up to the outermost one that differs
 * from the last list; those outside of it, from number `same` on, are in that list, where frame
 * number n is list[top - n].
 */
struct list_walk {
	const struct pad_virtual *v;
	uint64_t end;
	int64_t count, same, top;
	uint32_t misses;        /* frames that were searched for in vain */
	uint32_t is_plain;      /* frames are linked, and have all that is compared */
	uint32_t has_functions; /* no function has died since the last list */
	const struct pad_slot *slot;
	struct moved_stack moved;
};

/* Reads the frame at @at; @like: one that may have the same function. 0: ptmem must do so. */
INLINE int read_frame(const struct list_walk *w, uint64_t at,
		      const struct pad_virtual_frame *like, struct pad_virtual_frame *out)
{
	const struct pad_virtual *v = w->v;
	const struct pad_virtual_layout *l = &v->layout;
	uint64_t part = part_of(l, at), identity = raw_identity(l, &w->moved, at, part);
	uint64_t entry = entry_byte(l, part), kind = PAD_NO_FUNCTION, stamp = 0;
	uint64_t function = has_function(l, entry) ? identity & l->identity_mask : 0;

	if (likely(function && like && like->identity == identity &&
		   pad_frame_kind(like) != PAD_NO_FUNCTION)) {
		kind = pad_frame_kind(like);
		stamp = pad_frame_stamp(like);
	} else if (function && unlikely(!read_function(v, function, &kind, &stamp))) {
		return 0;
	}
	out->at = at;
	out->identity = identity;
	out->position = flags_of(l, kind) & PAD_KIND_NATIVE ?
				0 : position_at(l, at, l->position_size);
	out->tag = pad_frame_tag(stamp, kind, entry);
	return 1;
}

/* Where the frames of an array end; 0: they are linked. */
INLINE uint64_t end_of(const struct pad_virtual_layout *l, uint64_t state)
{
	return l->stride ? load(state + l->stack) + 8 * load(state + l->stack_words) : 0;
}

/* State number @n of the thread, innermost first; 0: there is none. */
INLINE uint64_t state_of(const struct pad_slot *slot, uint32_t n)
{
	if (!n)
		return slot->virtual_state;
	return n <= PAD_OUTER_STATES ? slot->virtual_outer[n - 1] : 0;
}

/* The innermost frame of the state that is outside of the one whose outermost frame is at @at. */
static KEEPS __attribute__((noinline)) uint64_t outer_list(const struct pad_slot *slot,
							   const struct pad_virtual_layout *l,
							   uint64_t at)
{
	uint64_t state, outside;

	for (uint32_t n = 0; (state = state_of(slot, n)) != 0; n++) {
		outside = state_of(slot, n + 1);
		if (at - state < l->values.state_size)
			return outside ? load(outside + l->head[0]) : 0;
	}
	return 0;
}

/* The frame outside of that at @at; 0: there is none. */
INLINE uint64_t next_of(const struct list_walk *w, uint64_t at)
{
	const struct pad_virtual_layout *l = &w->v->layout;
	uint64_t next;

	if (unlikely(l->stride))
		return at + l->stride < w->end ? at + l->stride : 0;
	next = load(at + l->next);
	if (unlikely(!next && l->values.is_used))
		return outer_list(w->slot, l, at);
	return next;
}

#define FIND_FRAMES 8 /* how far from where it is expected a frame is looked for; how often */

/* Frames that are the same follow others that are not: all these are in the slot's walk. */
INLINE void copy_same(struct pad_slot *slot, struct list_walk *w)
{
	for (int64_t n = w->same; n < w->count; n++)
		walk_of(slot)[n] = list_of(slot)[w->top - n];
	w->same = w->count;
}

/* The number of frames from @at outwards; more than a walk can have: too many. */
INLINE int64_t count_frames(const struct list_walk *w, uint64_t at)
{
	int64_t n = 0;

	for (; at && n <= PAD_MAX_LISTED; n++)
		at = next_of(w, at);
	return n;
}

/*
 * Which frame of the list is at @at, where another one was expected: its number; 0: none that can
 * be found. After a few that are not there both lists are aligned by their outermost frames.
 */
static KEEPS __attribute__((noinline)) int64_t find_frame(const struct pad_slot *slot,
							  struct list_walk *w, uint64_t at)
{
	const struct pad_virtual_frame *list = list_of(slot);
	int64_t listed = slot->listed, i = w->top - w->count;

	if (w->misses > FIND_FRAMES)
		return 0;
	if (w->misses++ == FIND_FRAMES) {
		if (w->v->layout.state_kind == PAD_STATE_FRAMES)
			return 0;
		i = count_frames(w, at);
		w->top = w->count + i;
		return i <= listed && list[i].at == at ? i : 0;
	}
	for (int64_t d = 1; d <= FIND_FRAMES; d++) {
		int64_t n = i - d > 0 && i - d <= listed && list[i - d].at == at ? i - d :
			    i + d > 0 && i + d <= listed && list[i + d].at == at ? i + d : 0;

		if (n) {
			w->top = n + w->count;
			return n;
		}
	}
	return 0;
}

/* The frame of the list that is at @at, and may be the same; NULL: none. */
INLINE const struct pad_virtual_frame *counterpart(const struct pad_slot *slot,
						   struct list_walk *w, uint64_t at)
{
	int64_t i = w->top - w->count;

	if (unlikely(i <= 0 || i > (int64_t)slot->listed || list_of(slot)[i].at != at))
		i = find_frame(slot, w, at);
	return i ? &list_of(slot)[i] : 0;
}

/*
 * The first frame from that of @f on, outwards, that differs from the list, or calls the same one
 * from another place. The addresses of frames are those of the list, to which the links are
 * compared, so that no load has to wait for one before it.
 */
INLINE const struct pad_virtual_frame *
skip_linked(const struct pad_virtual_layout *l, const struct pad_virtual_frame *f, uint64_t size)
{
	const char *identity = (const char *)l->identity, *entry = (const char *)l->entry;
	const char *next = (const char *)l->next, *position = (const char *)l->position;
	uint64_t at = f->at, differs;

	/* loads that are not volatile: each is one instruction with what is done with it */
	do {
		uint64_t outside = f[-1].at;

		differs = *(const any_word *)(position + at) ^ f->position;
		if (size != 8)
			differs = (uint64_t)(int64_t)*(const any_int *)(position + at) ^
				  f->position;
		differs |= (*(const any_word *)(identity + at) ^ f->identity) |
			   (*(const any_word *)(next + at) ^ outside) |
			   (uint8_t)(*(const uint8_t *)(entry + at) ^ f->tag);
		at = outside;
		f--;
	} while (!differs && at);
	return differs ? f + 1 : f;
}

/* Whether the frame at f->at is @f. */
INLINE int is_same_frame(const struct list_walk *w, const struct pad_virtual_frame *f)
{
	const struct pad_virtual_layout *l = &w->v->layout;
	uint64_t part = part_of(l, f->at);

	if ((raw_identity(l, &w->moved, f->at, part) ^ f->identity) |
	    (entry_byte(l, part) ^ pad_frame_entry(f)))
		return 0;
	return position_at(l, f->at, l->position_size) == f->position ||
	       flags_of(l, pad_frame_kind(f)) & PAD_KIND_NATIVE;
}

/* Whether the function of @f, which runs, is the one that it was. */
INLINE int is_same_function(const struct pad_virtual_layout *l, const struct pad_virtual_frame *f)
{
	uint64_t kind = pad_frame_kind(f), function = function_of(l, f);
	const struct pad_function_kind *k = &l->kind[kind];

	if (kind == PAD_NO_FUNCTION)
		return 1;
	return is_of_kind(k, function) &&
	       (k->flags & PAD_KIND_NONE || read_stamp(k, function) == pad_frame_stamp(f));
}

/*
 * Passes frames that are those of the list from @f on, outwards. Returns the address of the next
 * one, which is another one, or outside of others; 0: none.
 */
INLINE uint64_t skip_same(struct list_walk *w, const struct pad_virtual_frame *f)
{
	const struct pad_virtual_layout *l = &w->v->layout;
	const struct pad_virtual_frame *first = f;
	uint64_t at, checked = 0; /* the function of the frame before */

	if (likely(w->is_plain && w->has_functions))
		f = l->position_size == 8 ? skip_linked(l, f, 8) : skip_linked(l, f, 4);
	for (at = f->at; at && at == f->at && likely(is_same_frame(w, f)); f--) {
		if (!w->has_functions && f->identity != checked && !is_same_function(l, f))
			break;
		checked = f->identity;
		at = next_of(w, at);
	}
	w->count += first - f;
	return at;
}

INLINE uint64_t begin_walk(struct list_walk *w, const struct pad_slot *slot, uint64_t state)
{
	const struct pad_virtual_layout *l = &w->v->layout;
	uint64_t at = state;

	w->is_plain = l->kinds == 1 && !(l->via | l->native | l->stride | l->values.is_used);
	w->has_functions = l->counts_deaths && slot->list_deaths == slot->walk_deaths;
	w->end = end_of(l, state);
	w->top = slot->listed;
	for (uint64_t i = 0; i < l->heads && at; i++)
		at = load(at + l->head[i]);
	return l->stride && at >= w->end ? 0 : at;
}

/* 0: ptmem must read the list. */
INLINE int walk_frames(struct list_walk *w, struct pad_slot *slot, uint64_t state)
{
	struct pad_virtual_frame *walk = walk_of(slot);
	uint64_t at = begin_walk(w, slot, state);

	while (at) {
		const struct pad_virtual_frame *f = counterpart(slot, w, at), *like;
		if (likely(f)) {
			at = skip_same(w, f);
			if (likely(!at))
				break;
			if (unlikely(w->count >= (int64_t)slot->max_listed))
				return 0;
			copy_same(slot, w);
			f = &list_of(slot)[w->top - w->count];
			if (f->at != at)
				continue;
		}
		if (unlikely(w->count >= (int64_t)slot->max_listed))
			return 0;
		like = f && w->has_functions ? f : w->count ? &walk[w->count - 1] : 0;
		if (unlikely(!read_frame(w, at, like, &walk[w->count])))
			return 0;
		w->same = ++w->count;
		at = next_of(w, at);
	}
	if (unlikely(w->count > (int64_t)slot->max_listed))
		return 0;
	if (w->top != w->count) /* the list has other frames outside */
		copy_same(slot, w);
	return 1;
}

/* -- PAD_STATE_STACK -- */

/*
 * Where @state has its next place in native frames; 0: it has none, or is gone: no variable says
 * whether it is still one, until a frame has that place.
 */
API uint64_t pad_state_jump(const struct pad_virtual_values *v, uint64_t state)
{
	return cpu_unsure_load(state + v->jump);
}

/* The search for states in native frames, innermost first. */
struct jump_search {
	const struct pad_virtual_values *v;
	const struct pad_slot *slot;
	uint64_t jump;   /* where the state that was found last has its next place; 0: nowhere */
	uint32_t states; /* that were found */
};

/* A native frame of pc has the words from @at to @end. 0: it has no place of the next state. */
INLINE int take_jump(struct jump_search *s, uint64_t pc, uint64_t at, uint64_t end)
{
	if (likely(pc - s->v->runner_start >= s->v->runner_end - s->v->runner_start))
		return 1;
	if (!s->jump) {
		uint64_t state = state_of(s->slot, s->states++);
		if (!state)
			return 0;
		s->jump = pad_state_jump(s->v, state);
	}
	if (s->jump - at >= end - at)
		return 0;
	s->jump = load(s->jump + s->v->jump_outer);
	return 1;
}

/*
 * Whether all states have their places in the native frames. One that has none, as without a
 * protected call, may be gone, so that nothing in it can be followed: ptmem must look.
 */
INLINE int has_all_states(const struct jump_search *s)
{
	return !s->jump && !state_of(s->slot, s->states);
}

/* A stack may be moved: then where its functions are is known, or ptmem must look. */
INLINE int find_moved(struct list_walk *w)
{
	const struct pad_virtual_layout *l = &w->v->layout;
	const struct pad_slot *slot = w->slot;
	uint64_t state, stack, value;

	for (uint32_t n = 0; (state = state_of(slot, n)) != 0; n++) {
		stack = load(state + l->values.stack);
		if (slot->kind == PAD_REALLOC && slot->arg[0] == stack && slot->result) {
			w->moved.from = stack;
			w->moved.size = load(state + l->values.stack_end) + l->values.extra - stack;
			w->moved.to = slot->result;
			continue;
		}
		value = load(load(state + l->head[0]) + l->identity);
		if (value - stack >= load(state + l->values.stack_end) + l->values.extra - stack)
			return 0;
	}
	return 1;
}

/* The state that runs in the thread; 0: there is none, or ptmem must find it. */
static KEEPS __attribute__((noinline)) uint64_t find_on_stack(struct list_walk *w, uint64_t stack)
{
	const struct pad_slot *slot = w->slot;
	struct jump_search s = { .v = &w->v->layout.values, .slot = slot };
	const struct pad_step *step = steps_of(slot);
	const struct pad_check *check = checks_of(slot);
	const struct pad_frame *frame = frames_of(slot);
	uint32_t kept = (uint32_t)stack, fresh = (uint32_t)(stack >> 32);

	if (READ(w->v->layout.mode) != PAD_VIRTUAL_ON || !slot->virtual_state)
		return 0;
	for (uint32_t i = 0; i < fresh; i++) {
		uint64_t end = i + 1 < fresh ? step[i + 1].at :
			       kept ? check[frame[kept - 1].check].at : slot->stack_high;
		if (!take_jump(&s, step[i].pc, step[i].at, end))
			return 0;
	}
	for (uint32_t i = kept; i-- > 0;) {
		const struct pad_check *c = &check[frame[i].check];
		uint64_t end = i ? check[frame[i - 1].check].at : slot->stack_high;
		if (!take_jump(&s, c->value, c->at, end))
			return 0;
	}
	/* a state that no frame is in may be gone */
	if (!s.states && !passes_loop(&w->v->layout, slot, stack))
		return 0;
	return has_all_states(&s) && find_moved(w) ? slot->virtual_state : 0;
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
	return pad_short_stamp(pad_stamp_of(&stamp));
}

/* The function of the frame with frame pointer @fp, 0 if it has none. */
INLINE void read_own_function(const struct pad_virtual_layout *l, uint64_t fp,
			      struct pad_virtual_frame *out)
{
	uint64_t closure = load(fp + l->identity), function = 0;

	if (is_reference(l, load(fp + l->entry)) && is_reference(l, closure))
		function = load(closure - l->tag_value + l->owner);
	out->at = fp;
	out->identity = is_reference(l, function) ? function - l->tag_value : 0;
	out->position = 0;
	out->tag = out->identity ? pad_frame_tag(frame_stamp(l, out->identity), 0, 0) :
				   pad_frame_tag(0, PAD_NO_FUNCTION, 0);
}

/* A native frame. 0: there are too many, or its function is unknown. */
INLINE int take_native(struct list_walk *w, struct pad_slot *slot, uint64_t fp)
{
	struct pad_virtual_frame *f = &walk_of(slot)[w->count];
	const struct pad_virtual_frame *old;
	int64_t top = w->top;

	if (unlikely(w->count == slot->max_listed))
		return 0;
	old = counterpart(slot, w, fp);
	if (w->top != top)
		w->same = w->count;
	read_own_function(&w->v->layout, fp, f);
	w->count++;
	if (old && old->identity == f->identity && old->tag == f->tag)
		return 1;
	w->same = w->count;
	return !f->identity || is_known(w->v, f->identity, pad_frame_stamp(f));
}

/*
 * Walks the frames of the stack: @stack as for pad_walk_list. All are in the slot's walk. A frame
 * whose way to its caller is not by the frame pointer may have another value in it: ptmem must
 * look.
 */
static KEEPS __attribute__((noinline)) int walk_native(struct list_walk *w, struct pad_slot *slot,
						       uint64_t stack)
{
	const struct pad_virtual_layout *l = &w->v->layout;
	const struct pad_frame *frame = frames_of(slot);
	const struct pad_step *s = steps_of(slot);
	uint32_t kept = (uint32_t)stack, fresh = (uint32_t)(stack >> 32);

	w->top = slot->listed;
	for (uint32_t i = 0; i < fresh; i++)
		if (is_in_loop(l, s[i].pc) && (!s[i].uses_fp || !take_native(w, slot, s[i].fp)))
			return 0;
	for (uint32_t i = kept; i-- > 0;)
		if (is_in_loop(l, checks_of(slot)[frame[i].check].value) &&
		    (!frame[i].needs_fp || !take_native(w, slot, frame[i].fp)))
			return 0;
	if (w->top != w->count)
		w->same = w->count;
	return 1;
}

/* -- arrays -- */

INLINE uint64_t load_number(uint64_t at)
{
	return *(const volatile uint32_t *)at;
}

/* Where a walk of arrays is. */
struct element_walk {
	const struct pad_virtual_layout *l;
	uint64_t state, array;  /* array: 0 = all are walked */
	uint64_t at, position, place; /* the next element; of its function */
	int64_t left;           /* elements that the array has yet */
};

INLINE void enter_array(struct element_walk *e)
{
	const struct pad_virtual_arrays *a = &e->l->arrays;

	if (e->array) {
		e->left = (int32_t)load_number(e->array + a->last) + 1;
		e->at = load(e->array + a->elements) + (uint64_t)(e->left - 1) * a->element;
	}
}

INLINE struct element_walk begin_elements(const struct pad_virtual_layout *l, uint64_t state)
{
	struct element_walk e = { .l = l, .state = state };

	e.position = load(state + l->position);
	e.place = pad_place(load(state + l->arrays.place)) | PAD_PLACE_IS_INNERMOST;
	e.array = load(state + l->head[0]);
	enter_array(&e);
	return e;
}

/* What is recorded of the position of the next function. */
INLINE uint64_t position_of(const struct element_walk *e)
{
	uint64_t number = likely(e->position) ? load_number(e->position + e->l->arrays.number) : 0;

	return e->place | pad_place_number(number);
}

/* The function outside of all arrays is the last frame. */
INLINE void outermost_frame(const struct element_walk *e, struct pad_virtual_frame *out)
{
	out->at = e->state;
	out->identity = load(e->state + e->l->arrays.outermost);
	if (!out->identity)
		out->identity = load(e->state + e->l->arrays.outermost_else);
	out->position = position_of(e);
	out->tag = pad_frame_tag(0, PAD_NO_FUNCTION, 1);
}

/* The next frame, innermost first, whose function is not looked at. 0: that is outermost_frame. */
INLINE int next_element(struct element_walk *e, struct pad_virtual_frame *out)
{
	const struct pad_virtual_arrays *a = &e->l->arrays;

	for (; e->array; e->array = load(e->array + a->outer), enter_array(e)) {
		while (e->left > 0) {
			uint64_t at = e->at, type = *(const volatile uint8_t *)(at + a->type);
			uint64_t identity = a->other_identity, entry;
			e->left--;
			e->at -= a->element;
			if (likely(pad_byte_in(a->functions, type)))
				identity = e->l->identity;
			else if (pad_byte_in(a->shims, type))
				identity = 0;
			else if (!pad_byte_in(a->other_functions, type))
				continue;
			out->at = at;
			out->identity = identity ? load(at + identity) : 0;
			out->position = 0;
			entry = 1;
			if (likely(identity)) {
				uint64_t back = load(at + a->back);
				entry = !back && !pad_byte_in(a->joined, type);
				out->position = position_of(e);
				e->position = load(at + a->caller);
				e->place = pad_place(back);
			}
			out->tag = pad_frame_tag(0, PAD_NO_FUNCTION, entry);
			return 1;
		}
	}
	return 0;
}

/* Whether @f, whose function is @function or not looked at, is @old, as it was. */
INLINE int is_same_element(const struct pad_virtual *v, const struct pad_virtual_frame *f,
			   const struct pad_virtual_frame *old, uint64_t *function)
{
	uint64_t kind = pad_frame_kind(old);

	if ((f->identity ^ old->identity) | (f->position ^ old->position) |
	    (pad_frame_entry(f) ^ pad_frame_entry(old)))
		return 0;
	if (f->identity == *function || !f->identity)
		return 1;
	*function = f->identity;
	return is_of_kind(&v->layout.kind[kind], f->identity) &&
	       read_stamp(&v->layout.kind[kind], f->identity) == pad_frame_stamp(old);
}

/* Whether all frames are those of the last list. */
INLINE int is_same_walk(const struct list_walk *w, const struct pad_slot *slot, uint64_t state)
{
	struct element_walk e = begin_elements(&w->v->layout, state);
	const struct pad_virtual_frame *list = list_of(slot);
	uint64_t i = slot->listed, function = 0;
	struct pad_virtual_frame f;

	for (; i > 1 && next_element(&e, &f); i--)
		if (!is_same_element(w->v, &f, &list[i], &function))
			return 0;
	if (i != 1 || next_element(&e, &f))
		return 0;
	outermost_frame(&e, &f);
	return is_same_element(w->v, &f, &list[1], &function);
}

/*
 * Reads the kind and the stamp of the frame's function; @outside: the frame outside of it, which
 * may have the same, or NULL; @old: the frame of the last list in its place, or NULL. 0: ptmem must
 * do so.
 */
INLINE int take_function(const struct pad_virtual *v, struct pad_virtual_frame *f,
			 const struct pad_virtual_frame *outside,
			 const struct pad_virtual_frame *old)
{
	uint64_t kind = 0, stamp = 0, entry = pad_frame_entry(f);

	if (!f->identity)
		return 1;
	if (outside && outside->identity == f->identity) {
		f->tag = pad_frame_tag(pad_frame_stamp(outside), pad_frame_kind(outside), entry);
		return 1;
	}
	/* an element can be listed before it has its function: then that is anything, or poison */
	if (!(old && old->identity == f->identity) && unlikely(!find_known(v, f->identity)))
		return 0;
	for (; !is_of_kind(&v->layout.kind[kind], f->identity); kind++)
		if (unlikely(kind + 1 >= v->layout.kinds))
			return 0;
	stamp = read_stamp(&v->layout.kind[kind], f->identity);
	f->tag = pad_frame_tag(stamp, kind, entry);
	return (old && old->identity == f->identity && pad_frame_stamp(old) == stamp) ||
	       is_known(v, f->identity, stamp);
}

/* Compares what was walked with the list, from the outermost frame on. 0: ptmem must read it. */
INLINE int compare_elements(struct list_walk *w, const struct pad_slot *slot)
{
	const struct pad_virtual_frame *list = list_of(slot) + 1, *outside = 0;
	int64_t kept = 0;

	for (int64_t i = 0; i < w->count; i++) {
		struct pad_virtual_frame *f = &walk_of(slot)[w->count - 1 - i];
		const struct pad_virtual_frame *old = i < (int64_t)slot->listed ? &list[i] : 0;

		if (unlikely(!take_function(w->v, f, outside, old)))
			return 0;
		outside = f;
		if (kept == i && old && old->identity == f->identity &&
		    old->position == f->position && old->tag == f->tag)
			kept++;
	}
	w->same = w->count - kept;
	return 1;
}

/* All frames are in the slot's walk, unless they are the same. 0: ptmem must read the list. */
static KEEPS __attribute__((noinline)) int walk_arrays(struct list_walk *w,
						       const struct pad_slot *slot, uint64_t state)
{
	struct element_walk e = begin_elements(&w->v->layout, state);
	struct pad_virtual_frame f;

	if (is_same_walk(w, slot, state)) {
		w->count = slot->listed;
		return 1;
	}
	for (;; walk_of(slot)[w->count++] = f) {
		if (unlikely(w->count == (int64_t)slot->max_listed))
			return 0;
		if (!next_element(&e, &f))
			break;
	}
	outermost_frame(&e, &f);
	walk_of(slot)[w->count++] = f;
	return compare_elements(w, slot);
}

API int pad_walk_list(const struct pad_control *c, struct pad_slot *slot, uint64_t stack)
{
	const struct pad_virtual *v = (const struct pad_virtual *)c->virtual;
	struct list_walk w;
	uint64_t state = 0;
	int is_walked = 1;

	/* member by member: gcc's way to clear the whole takes longer than a list of 5 frames */
	w.v = v;
	w.slot = slot;
	w.moved.size = 0;
	w.end = 0;
	w.count = w.same = w.top = 0;
	w.misses = w.is_plain = w.has_functions = 0;
	slot->walk_deaths = READ(v->deaths);
	if (v->layout.state_kind == PAD_STATE_FRAMES) {
		is_walked = walk_native(&w, slot, stack);
	} else {
		if (unlikely(v->layout.state_kind == PAD_STATE_STACK))
			state = find_on_stack(&w, stack);
		else
			state = find_state(&v->layout, slot);
		if (likely(state))
			is_walked = v->layout.arrays.element ? walk_arrays(&w, slot, state) :
							       walk_frames(&w, slot, state);
		else if (passes_loop(&v->layout, slot, stack))
			is_walked = 0;
	}
	slot->walked = (uint32_t)w.count;
	slot->list_kept = (uint32_t)(w.count - w.same);
	if (unlikely(!is_walked))
		return LIST_TRAP;
	if (w.same || slot->walked != slot->listed)
		return LIST_OTHER;
	slot->list_deaths = slot->walk_deaths;
	return LIST_SAME;
}

API void pad_meet_function(const struct pad_control *c, uint64_t block)
{
	struct pad_virtual *v = (struct pad_virtual *)c->virtual;
	const uint64_t mask = (1u << PAD_KNOWN_BITS) - 1;
	uint64_t i = pad_known_hash(block), one = 1;

	for (uint64_t n = 0; n <= mask && READ(v->known[i].identity); n++, i = (i + 1) & mask)
		if (READ(v->known[i].identity) == block) {
			cpu_add(&v->deaths, &one, c->shared);
			return;
		}
}

API void pad_write_list(const struct pad_control *c, struct pad_slot *slot, uint64_t *out)
{
	const struct pad_virtual *v = (const struct pad_virtual *)c->virtual;
	const struct pad_virtual_frame *walk = walk_of(slot) + slot->walked;
	struct pad_virtual_frame *list = list_of(slot) + 1;

	for (uint32_t i = slot->list_kept; i < slot->list_end; i++) {
		struct pad_virtual_frame f = walk[-1 - (int64_t)i];
		*out++ = word_of(&v->layout, &f);
		*out++ = f.position;
		list[i] = f;
	}
	slot->listed = slot->list_kept = slot->list_end;
	slot->list_deaths = slot->walk_deaths;
}
