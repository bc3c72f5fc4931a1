/*
 * The recorder: freestanding code that runs inside the target, called by pads.
 *
 * It makes no system call, takes no lock, uses no libc and only general registers, and each
 * function preserves all registers except those that pads save (on x86-64 rax, rdi, rsi, rdx):
 * make-recorder passes options for this to gcc; with clang functions preserve all but rax, which
 * costs a few instructions. It only accesses the shared memory (arch/pad.h) and its thread's stack.
 * It never reads outside [stack pointer, stack_high), whatever the rules and the stack contain.
 * Only where a rule says that a caller is on another stack it reads that, if the thread's g agrees.
 *
 *	recorder.h          the thread's slot
 *	recorder_walk.h     the incremental walk of the stack
 *	recorder_ring.h     room in the ring
 *	recorder_record.h   records of calls and markers
 *	recorder_markers.c  markers; here: calls
 */
#include "arch/recorder/recorder_record.h"

#define NESTED_FRAMES 64 /* maximum between a nested call and the outermost one */

API struct pad_slot *pad_search_slot(const struct pad_control *c, uint64_t tp)
{
	const struct pad_directory *d = directory(c);
	uint64_t mask = (1u << PAD_DIRECTORY_BITS) - 1, i = pad_directory_hash(tp);

	for (uint64_t n = 0; n <= mask; i = (i + 1) & mask, n++) {
		uint64_t key = READ(d[i].thread_pointer);
		if (key == tp)
			return (struct pad_slot *)d[i].slot;
		if (key == 0)
			break;
	}
	return 0;
}

#define SPIN_TURNS (1u << 21) /* 10 to 150 ms: a pause is 10 to 150 cycles */

/* Whether the reader made room up to @end meanwhile; not if it is gone. */
INLINE int spin_for_room(const struct pad_control *c, const struct pad_slot *slot, uint64_t end)
{
	for (uint32_t i = 0; i < SPIN_TURNS && !is_off(c); i++) {
		if (end <= READ(ring_of(slot)->limit))
			return 1;
		cpu_pause();
	}
	return 0;
}

/*
 * Waits until the ring of @slot has room up to @end. 0: the reader is gone, or is not to be waited
 * for. Each turn needs an answer of ptmem: otherwise untrusted memory alone would decide how often
 * this loops.
 */
INLINE int wait_for_room(const struct pad_control *c, const struct pad_slot *slot, uint64_t end)
{
	while (end > READ(ring_of(slot)->limit)) {
		uint64_t answer = PAD_FULL_GONE;
		if (is_off(c) || READ(c->flags) & PAD_LOSES)
			return 0;
		if (READ(c->flags) & PAD_SPINS && spin_for_room(c, slot, end))
			return 1;
		if (is_off(c))
			return 0;
		cpu_wait_for_room(slot->index, end, &answer);
		if (answer != PAD_FULL_RETRY)
			return 0;
	}
	return 1;
}

/* The counter; 0 if it is not to be read. */
API uint64_t pad_read_ticks(const struct pad_control *c)
{
	return READ(c->flags) & PAD_NO_TICKS ? 0 : cpu_ticks();
}

#define SPARE_SHIFT 7 /* 1 of 128 bytes may be between stamps with a pause */
#define SPARE_PART 2  /* a quarter */

/* Of a stamp at the head, @last ticks after the one before it: how far it is to the next. */
INLINE uint64_t next_step(const struct pad_control *c, struct pad_ring *ring, uint64_t last)
{
	uint64_t gap = c->gap_ticks, step = ring->step, bytes = ring->head - ring->stamp_end;
	uint64_t paused = last >= gap ? bytes << SPARE_SHIFT : 0, most;

	ring->spare += bytes;
	ring->spare -= paused < ring->spare ? paused : ring->spare;
	most = ring->spare >> (SPARE_SHIFT + SPARE_PART);
	if (last < gap / 4 + gap / 8) /* a busy thread's are 3/8 to 3/4 of the gap */
		step += step / 2 + PAD_TIME_SIZE;
	else if (last > gap / 2 + gap / 4 && last < gap)
		step /= 2;
	if (step > most)
		return most;
	ring->spare = step << (SPARE_SHIFT + SPARE_PART);
	return step;
}

INLINE void write_stamp(struct pad_ring *ring, uint64_t now, enum pad_record_type type)
{
	uint64_t *word = (uint64_t *)(ring->at + (ring->head & ring->mask));

	word[1] = now;
	word[0] = type;
	ring->ticks = now;
	set_head(ring, ring->head + PAD_TIME_SIZE);
}

/*
 * Writes a stamp at the head, if wanted, before a record of @size bytes; the next is due after
 * another step. @written: ticks when all records before it were written; 0: now.
 */
INLINE void stamp(const struct pad_control *c, struct pad_ring *ring, uint64_t size,
		  uint64_t written)
{
	uint64_t now = pad_read_ticks(c), clock, soft = UINT64_MAX, end;

	/* again: ptmem sets the flag if the counter cannot be read, and the clock before that */
	if (!(__atomic_load_n(&c->flags, __ATOMIC_ACQUIRE) & PAD_NO_TICKS)) {
		ring->step = next_step(c, ring, (written ? written : now) - ring->ticks);
		write_stamp(ring, now, PAD_RECORD_TIME);
		ring->stamp_end = ring->head;
		soft = ring->head + ring->step;
	} else if ((clock = READ(c->clock))) {
		if (clock != ring->ticks)
			write_stamp(ring, clock, PAD_RECORD_CLOCK);
		soft = 0; /* before each record */
	}
	end = record_end(ring, ring->head, size);
	if (soft < end)
		soft = end;
	WRITE(ring->soft_limit, soft < READ(ring->limit) ? soft : READ(ring->limit));
}

/*
 * The record of @size bytes that is to be written passes the soft limit: waits until there is room
 * for it and a stamp, and writes the stamp. 0: it is lost, or the reader is gone.
 */
API int pad_make_room(const struct pad_control *c, const struct pad_slot *slot, uint64_t size)
{
	struct pad_ring *ring = ring_of(slot);
	uint64_t end = record_end(ring, ring->head + PAD_TIME_SIZE, size), written = 0;

	if (__atomic_load_n(&ring->soft_limit, __ATOMIC_ACQUIRE) == 0)
		written = READ(ring->seen_ticks);
	if (unlikely(end > READ(ring->limit))) {
		if (!written)
			written = pad_read_ticks(c);
		if (!wait_for_room(c, slot, end))
			return 0;
	}
	stamp(c, ring, size, written);
	return 1;
}

/* A block of @bytes is not recorded, for there is no room. Not inline, as it is rare. */
API void pad_lose_block(const struct pad_control *c, const struct pad_slot *slot, uint64_t bytes)
{
	struct pad_lost *lost = &ring_of(slot)->lost;

	if (is_off(c))
		return;
	if (is_sampling(c))
		bytes = sample_weight(c, slot, bytes);
	WRITE(lost->allocations, lost->allocations + 1);
	WRITE(lost->bytes, lost->bytes + bytes);
}

API void pad_lose_release(const struct pad_control *c, const struct pad_slot *slot, uint64_t block)
{
	struct pad_lost *lost = &ring_of(slot)->lost;

	if (block && !is_off(c))
		WRITE(lost->releases, lost->releases + 1);
}

API int pad_guess_step(const struct pad_control *c, const struct pad_slot *slot,
		       struct pad_step *s)
{
	uint64_t start = READ(c->framed), high = slot->stack_high, fp = s->fp;
	const uint64_t *frame = (const uint64_t *)fp; /* its caller's, and the return address */

	if (s->pc - start >= READ(c->framed_size) || READ(c->flags) & PAD_VIRTUAL ||
	    slot->is_switched || !is_in_frame(high, s->at, fp) ||
	    !is_in_frame(high, s->at, fp + 8) || unwind_is_end(frame[1]) ||
	    unwind_rule_find((const struct unwind_rule *)c->rules, c->rule_bits, s->pc) ||
	    !cpu_is_framed(start, s->pc))
		return 0;
	s->fp_at = fp;
	s->extra_at = 0;
	s->uses_fp = PAD_STEP_GUESSED;
	s[1].at = fp + 16 - ARCH_RETURN_SIZE;
	s[1].fp = frame[0];
	s[1].pc = frame[1];
	return 1;
}

/* --- entering --- */

/*
 * Whether the frame of @call (its return slot, the address in there, its frame pointer) is inside
 * the call of slot->return_at. Not inline, so that outermost calls need not save the registers it
 * uses.
 */
API int pad_nesting(const struct pad_control *c, const struct pad_slot *slot,
		    const struct pad_step *call)
{
	uint64_t outer = slot->return_at, at = call->at;
	uint64_t high = slot->stack_high;
	struct pad_step s = { .at = at, .pc = call->pc, .fp = call->fp }, next = { 0 };

	if (at > outer)
		return slot->dirty ? UNSURE : STALE;
	if (READ(*(const uint64_t *)outer) != slot->return_to)
		return UNSURE;
	for (int n = 0; n < NESTED_FRAMES; n++) {
		if (s.at == outer)
			return NESTED;
		if (s.at > outer)
			return PASSED_BY;
		if (step(c, &high, &s, &next) != STEP_OUT)
			return UNSURE;
		s = next;
	}
	return UNSURE;
}

/* A release inside the call of @slot. */
static void record_inner(struct pad_stack *stack, const struct pad_head *head,
			 struct pad_slot *slot)
{
	uint64_t block = cpu_argument(stack, head->probe.block_arg);

	if (slot->kind != PAD_DELETE && block)
		record_word(slot, head, block, cpu_place(stack),
			    PAD_RECORD_INNER_FREE);
}

API int pad_enter_call(struct pad_stack *stack, const struct pad_head *head, uint64_t fp)
{
	struct pad_slot *slot;
	int way = enter(stack, head, fp, &slot);

	if (way == GO_NESTED) {
		if (head->probe.kind == PAD_DELETE)
			record_inner(stack, head, slot);
		return GO_STRAIGHT;
	}
	if (way != GO_CALL)
		return way;
	begin_call(stack, head, slot);
	if (head->probe.kind != PAD_ALLOC) {
		enum pad_record_type type = head->probe.kind == PAD_REALLOC ?
						    PAD_RECORD_REALLOC_BEGIN :
						    PAD_RECORD_FREE;
		int is_lost = !record_word(slot, head, cpu_argument(stack, head->probe.block_arg),
					   cpu_place(stack), type);
		if (unlikely(is_lost) && head->probe.kind == PAD_REALLOC)
			slot->arg[head->probe.block_arg] = 0; /* ends as an allocation */
	}
	return GO_CALL;
}

/* pad_enter_call for functions whose first argument is the size, without other arguments. */
API int pad_enter_plain(struct pad_stack *stack, const struct pad_head *head, uint64_t fp)
{
	const struct pad_control *c = head_control(head);
	uint64_t at = cpu_place(stack);
	struct pad_slot *slot;

	if (is_off(c))
		return GO_STRAIGHT;
	slot = find_slot(c);
	if (unlikely(!slot || at < slot->stack_low || at >= slot->stack_high ||
		     READ(slot->return_at)))
		return pad_enter_call(stack, head, fp);
	WRITE(slot->return_at, call_return_at(stack));
	barrier();
	slot->kind = PAD_ALLOC;
	slot->arg[0] = cpu_argument(stack, 0);
	WRITE(slot->return_to, head->after);
	return GO_CALL;
}

/*
 * A leaf: return_at is set only during the record. A signal handler must not use the ring while its
 * own thread is writing a record to it.
 */
API int pad_enter_free(struct pad_stack *stack, const struct pad_head *head, uint64_t fp)
{
	struct pad_slot *slot;
	int way = enter(stack, head, fp, &slot);
	uint64_t block;

	if (unlikely(way == GO_NESTED)) {
		record_inner(stack, head, slot);
		return GO_STRAIGHT;
	}
	if (way != GO_CALL)
		return way;
	WRITE(slot->return_at, cpu_place(stack));
	barrier();
	block = cpu_argument(stack, head->probe.block_arg);
	forget_state(slot, block);
	record_word(slot, head, block, cpu_place(stack), PAD_RECORD_FREE);
	finish(slot);
	return GO_STRAIGHT;
}

API int pad_enter_throw(struct pad_stack *stack, const struct pad_head *head, uint64_t fp)
{
	const struct pad_control *c = head_control(head);
	struct pad_slot *slot = is_off(c) ? 0 : find_slot(c);

	(void)stack;
	(void)fp;
	if (likely(!slot || (!READ(slot->return_at) && !READ(slot->has_thrown))))
		return GO_STRAIGHT;
	return trap(slot, PAD_REASON_THROW);
}

/* --- leaving --- */

/* A fiber may have moved to another thread inside the original: search all slots. */
API struct pad_slot *pad_find_call(const struct pad_control *c, uint64_t return_at)
{
	for (uint32_t k = 0; k < PAD_MAX_CHUNKS; k++) {
		struct pad_slot *slots = (struct pad_slot *)c->chunk[k].slots;
		for (uint64_t i = 0; i < c->chunk[k].used; i++)
			if (slots[i].return_at == return_at)
				return &slots[i];
	}
	return 0;
}

#define LIST_PARTS 8 /* of a ring: a longer record would wait for more room than needed */

/* Records outer frames of the list that was walked, as many as one record has room for. 0: lost. */
static KEEPS __attribute__((noinline)) int send_list(struct pad_control *c, struct pad_slot *slot)
{
	const uint64_t fixed = sizeof(struct pad_record_list) + tail_size(c) + 15;
	const uint64_t room = (ring_of(slot)->mask + 1) / LIST_PARTS;
	uint64_t frames = (room - fixed) / sizeof(struct pad_listed_frame), size;
	struct pad_record_list *r;
	struct ring_place place;

	if (frames > slot->walked - slot->list_kept)
		frames = slot->walked - slot->list_kept;
	size = record_size(c, sizeof(*r) + frames * sizeof(struct pad_listed_frame));
	WRITE(slot->dirty, 1);
	if (unlikely(!reserve(c, slot, size, &place)))
		return 0;
	r = (struct pad_record_list *)place.word;
	r->size = (uint32_t)size;
	r->kept = slot->list_kept;
	slot->list_end = slot->list_kept + (uint32_t)frames;
	pad_write_list(c, slot, (uint64_t *)(r + 1));
	*place.word = pad_mark(place.number, 0, PAD_RECORD_LIST);
	set_head(place.ring, place.ring->head + size);
	return 1;
}

enum { TAKE_TRAP, TAKE_LOST, TAKE_DONE };

/*
 * The list of the interpreter's functions, for a record of that stack. TAKE_TRAP: ptmem must read
 * it. TAKE_LOST: the ring has no room.
 */
INLINE int take_list(struct pad_control *c, struct pad_slot *slot, uint32_t kept, int64_t fresh)
{
	const uint64_t others = sizeof(struct pad_record_block) + 8 * (uint64_t)fresh;
	int way = slot->list_way;

	if (way < 0)
		way = pad_walk_list(c, slot, kept | (uint64_t)fresh << 32);
	slot->has_list = way != LIST_TRAP;
	if (unlikely(way == LIST_TRAP)) {
		slot->reason = PAD_REASON_DEEP;
		if (slot->walked < slot->max_listed || !needs_deep_cache(c, slot))
			slot->reason = PAD_REASON_VIRTUAL;
		return TAKE_TRAP;
	}
	while (unlikely(!fits_ring(c, slot, others + list_size(slot))))
		if (!send_list(c, slot))
			return TAKE_LOST;
	return TAKE_DONE;
}

/* A stack that no rules describe may pass the loop. */
INLINE void note_unwalked(const struct pad_control *c, struct pad_slot *slot)
{
	if (c->flags & PAD_VIRTUAL && slot->reason != PAD_REASON_DEEP)
		slot->reason = PAD_REASON_VIRTUAL;
}

INLINE void note_block(const struct pad_control *c, uint64_t block)
{
	const struct pad_virtual *v = (const struct pad_virtual *)c->virtual;
	uint64_t bit = pad_known_hash(block);

	if (unlikely(READ(v->filter[bit / 64]) >> bit % 64 & 1))
		pad_meet_function(c, block);
}

/*
 * The call that set return_at has returned; slot->caller_fp, slot->known and slot->list_way are
 * set.
 */
static KEEPS __attribute__((noinline)) int leave(struct pad_stack *stack,
						 const struct pad_head *head,
						 struct pad_slot *slot)
{
	struct pad_control *c = head_control(head);
	uint64_t at = cpu_place(stack);
	int64_t fresh = -1;
	uint32_t kept = 0;

	if (head->probe.kind != PAD_DELETE && !is_off(c)) {
		slot->result = block_result(stack, slot, &head->probe);
		if (c->flags & PAD_VIRTUAL && slot->list_way < 0)
			note_block(c, slot->result);
		if (unlikely(head->probe.is_string))
			slot->arg[head->probe.size_arg] = string_size(slot->result);
		if (!(c->flags & PAD_COUNT_ONLY) && slot->result) {
			if (unlikely(!take_labels(c, slot))) {
				lose_return(head, slot);
				finish(slot);
				return LEAVE_DONE;
			}
			if (unlikely(c->flags & PAD_VERIFY))
				return LEAVE_RAW;
			slot->reason = PAD_REASON_NONE;
			fresh = walk(c, slot, at, slot->caller_fp, slot->known, &kept);
			if (unlikely(fresh < 0 || !has_room(c, slot, kept, fresh))) {
				note_unwalked(c, slot);
				return LEAVE_RAW;
			}
			slot->has_list = 0;
			if (c->flags & PAD_VIRTUAL) {
				int way = take_list(c, slot, kept, fresh);
				if (unlikely(way == TAKE_TRAP))
					return LEAVE_RAW;
				if (unlikely(way == TAKE_LOST)) {
					lose_return(head, slot);
					finish(slot);
					return LEAVE_DONE;
				}
			}
		}
		record_return(at, head, slot, kept, fresh, 0, 0);
	}
	finish(slot);
	return LEAVE_DONE;
}

API int pad_leave(struct pad_stack *stack, const struct pad_head *head, uint64_t fp)
{
	const struct pad_control *c = head_control(head);
	struct pad_slot *slot = leaving_slot(c, call_return_at(stack));

	if (unlikely(!slot))
		return LEAVE_DONE;
	slot->caller_fp = fp;
	slot->known = 0;
	slot->list_way = -1;
	return leave(stack, head, slot);
}

API int pad_leave_plain(struct pad_stack *stack, const struct pad_head *head, uint64_t fp)
{
	struct pad_control *c = head_control(head);
	uint64_t at = cpu_place(stack), result = cpu_result(stack), bytes;
	struct pad_slot *slot = leaving_slot(c, call_return_at(stack));

	if (unlikely(!slot))
		return LEAVE_DONE;
	slot->return_pc = stack->return_slot; /* the short way did not set it */
	slot->caller_fp = fp;
	slot->known = 0;
	slot->list_way = -1;
	bytes = slot->arg[0];
	if (unlikely(is_off(c) || c->flags & PAD_VERIFY || result - 1 >= PAD_SAME_BLOCKS - 1 ||
		     bytes >= PAD_SAME_BYTES) ||
	    (!(c->flags & PAD_COUNT_ONLY) && !is_same_stack(slot, at, fp)))
		return leave(stack, head, slot);
	if (c->flags & PAD_VIRTUAL) {
		note_block(c, result);
		slot->list_way = pad_walk_list(c, slot, slot->frame_count);
		if (slot->list_way != LIST_SAME)
			return leave(stack, head, slot);
	}
	if (likely(take_labels(c, slot)))
		record_word(slot, head, result << 16 | bytes, at, PAD_RECORD_SAME);
	else
		pad_lose_block(c, slot, bytes);
	finish(slot);
	return LEAVE_DONE;
}

API int pad_raw(struct pad_stack *stack, const struct pad_head *head,
		const struct pad_saved *saved)
{
	uint64_t at = cpu_place(stack);
	struct pad_slot *slot = leaving_slot(head_control(head), call_return_at(stack));

	if (write_raw(at, head, slot, saved))
		return LEAVE_DONE;
	return LEAVE_TRAP;
}
