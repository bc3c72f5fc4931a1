/*
 * The recorder: freestanding code that runs inside the target, called by pads.
 *
 * It makes no syscall, takes no lock, knows no libc, uses general registers only, and
 * each function keeps all registers but those that pads save (rax, rdi, rsi, rdx):
 * make-blob tells gcc so for the whole file; clang keeps all but rax, which costs a few
 * instructions. Its only memory is the shared one
 * (arch/pad.h) and its thread's stack. It never reads outside [stack pointer,
 * stack_high), whatever the rules and the stack hold.
 *
 * The incremental walk. The slot holds the frames of the thread's last record,
 * outermost first, as checks: a word of the stack and the value it had. A frame is
 * still what it was when its return slot and everything outside of it are: where a
 * frame's CFA is, follows from the code address in the return slot before it, and
 * from the frame pointer where the rule says so (needs_fp; the word in which the
 * frame pointer was saved is then a check too). So
 *	1. compare the checks from the outermost inwards; behind a difference nothing is known
 *	2. walk by rules from the innermost outwards, until a return slot is one of step 1
 */
#include "arch/x86_64/blob.h"

#include <stddef.h>

#ifdef KEEPS_REGISTERS /* for all functions of the file, by options */
#define KEEPS
#else
#define KEEPS __attribute__((no_caller_saved_registers))
#endif
/*
 * What pads call. No function that is called has more than three arguments: others come in
 * registers that are kept.
 */
#define API KEEPS __attribute__((noinline, used))
#define INLINE static inline __attribute__((always_inline))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define barrier() __asm__ volatile("" ::: "memory")
#define READ(x) (*(const volatile __typeof__(x) *)&(x))
#define WRITE(x, v) (*(volatile __typeof__(x) *)&(x) = (v))

enum { GO_STRAIGHT = 0, GO_CALL = 1, GO_NESTED = 2, GO_TRAP = -1 }; /* of the pad_enter functions */
enum { LEAVE_DONE = 0, LEAVE_RAW = 1, LEAVE_TRAP = 2 }; /* of pad_leave, pad_raw */
enum { NESTED, STALE, PASSED_BY, UNSURE };

#define NESTED_FRAMES 64 /* between a nested call and the outermost one */

API int pad_enter_call(struct x86_pad_stack *stack, const struct x86_pad_head *head, uint64_t fp);
API int pad_enter_plain(struct x86_pad_stack *stack, const struct x86_pad_head *head, uint64_t fp);
API int pad_enter_free(struct x86_pad_stack *stack, const struct x86_pad_head *head, uint64_t fp);
API int pad_enter_throw(struct x86_pad_stack *stack, const struct x86_pad_head *head, uint64_t fp);
API int pad_enter_marker(struct x86_pad_stack *stack, const struct x86_pad_head *head, uint64_t fp);
API int pad_leave(struct x86_pad_stack *stack, const struct x86_pad_head *head, uint64_t fp);
API int pad_leave_plain(struct x86_pad_stack *stack, const struct x86_pad_head *head, uint64_t fp);
API int pad_raw(struct x86_pad_stack *stack, const struct x86_pad_head *head,
		const struct x86_pad_saved *saved);
API int pad_raw_marker(struct x86_pad_stack *stack, const struct x86_pad_head *head,
		       const struct x86_pad_saved *saved);
API void pad_finish(struct x86_pad_stack *stack, const struct x86_pad_head *head);
API int pad_wait(struct pad_control *control, uint64_t position, uint64_t end);
API struct pad_slot *pad_search_slot(const struct pad_control *c, uint64_t tp);
API int pad_nesting(const struct pad_control *c, const struct pad_slot *slot,
		    const struct pad_step *call);

INLINE struct pad_control *head_control(const struct x86_pad_head *head)
{
	return (struct pad_control *)head->control;
}

typedef uint64_t __attribute__((may_alias)) any_word;

INLINE int is_off(const struct pad_control *c)
{
	_Static_assert(offsetof(struct pad_control, owner) == 0 &&
			       offsetof(struct pad_control, off) == 4,
		       "one word says both");
	return unlikely(READ(*(const any_word *)&c->owner) & (~0ull << 32 | PAD_OWNER_DIED));
}

INLINE const struct pad_directory *directory(const struct pad_control *c)
{
	return (const struct pad_directory *)((const char *)c + PAD_DIRECTORY_OFFSET);
}

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

/* The slot of this thread, or NULL. */
INLINE struct pad_slot *find_slot(const struct pad_control *c)
{
	const struct pad_directory *d;
	uint64_t tp;

	__asm__ volatile("mov %%fs:0, %0"
			 : "=r"(tp)); /* the thread pointer, as the x86-64 TLS ABI has it there */
	d = &directory(c)[pad_directory_hash(tp)];
	if (likely(READ(d->thread_pointer) == tp))
		return (struct pad_slot *)d->slot;
	return pad_search_slot(c, tp);
}

INLINE int trap(struct pad_slot *slot, enum pad_reason reason)
{
	slot->reason = reason;
	return GO_TRAP;
}

/* --- the walk --- */

enum { STEP_OUT, STEP_END, STEP_UNKNOWN };

INLINE int is_in_stack(const struct pad_slot *slot, uint64_t above, uint64_t at)
{
	return at > above && at < slot->stack_high && (at & 7) == 0;
}

/*
 * From the frame whose return slot is s->at to its caller: *next gets the caller's return
 * slot, the address in there and its frame pointer; s what the way depends on.
 */
INLINE int step(const struct pad_control *c, const struct pad_slot *slot, struct pad_step *s,
		struct pad_step *next)
{
	const struct unwind_rule *rule =
		unwind_rule_find((const struct unwind_rule *)c->rules, c->rule_bits, s->pc);
	uint64_t cfa, base;

	if (unlikely(!rule))
		return STEP_UNKNOWN;
	s->fp_at = s->extra_at = 0;
	s->uses_fp = 0;
	switch (READ(rule->kind)) {
	case RULE_SP:
		cfa = base = s->at + 8 + (int64_t)rule->cfa_offset;
		break;
	case RULE_FP:
		cfa = base = s->fp + (int64_t)rule->cfa_offset;
		s->uses_fp = 1;
		break;
	case RULE_FP_DEREF:
		base = s->fp;
		s->uses_fp = 1;
		s->extra_at = base + (int64_t)rule->cfa_offset;
		if (!is_in_stack(slot, s->at, s->extra_at))
			return STEP_UNKNOWN;
		s->extra_value = cfa = *(const uint64_t *)s->extra_at;
		break;
	case RULE_END:
		return STEP_END;
	default:
		return STEP_UNKNOWN;
	}
	next->at = cfa - 8;
	if (unlikely(!is_in_stack(slot, s->at, next->at)))
		return STEP_UNKNOWN;
	next->pc = *(const uint64_t *)next->at;
	next->fp = s->fp;
	if (rule->saved & 1) { /* callee-saved register 0 is the frame pointer */
		s->fp_at = base + 8 * (int64_t)rule->slot[0];
		if (unlikely(!is_in_stack(slot, s->at, s->fp_at)))
			return STEP_UNKNOWN;
		next->fp = *(const uint64_t *)s->fp_at;
	}
	if (unlikely(unwind_is_end(next->pc))) {
		if (s->extra_at)
			return STEP_UNKNOWN;
		s->extra_at = next->at;
		s->extra_value = next->pc;
		return STEP_END;
	}
	return STEP_OUT;
}

/* How many of the first @count checks hold, of which the first @known do. */
INLINE uint32_t count_checks(const struct pad_slot *slot, uint32_t known, uint32_t count)
{
	const struct pad_check *c = slot->check + known, *end = slot->check + count;

	for (; c + 4 <= end; c += 4) {
		uint64_t differ = (*(const uint64_t *)c[0].at ^ c[0].value) |
				  (*(const uint64_t *)c[1].at ^ c[1].value) |
				  (*(const uint64_t *)c[2].at ^ c[2].value) |
				  (*(const uint64_t *)c[3].at ^ c[3].value);
		if (differ)
			break;
	}
	while (c < end && *(const uint64_t *)c->at == c->value)
		c++;
	return (uint32_t)(c - slot->check);
}

/* How many outer frames of the last record are certainly as they were, given that the
 * innermost return slot is now @at; the first @known checks hold. */
INLINE uint32_t count_valid(const struct pad_slot *slot, uint64_t at, uint32_t known)
{
	uint32_t n = slot->frame_count, i, checks;

	while (n && slot->check[slot->frame[n - 1].check].at < at)
		n--;
	checks = n ? slot->frame[n - 1].check + 1 : 0;
	i = count_checks(slot, known < checks ? known : checks, checks);
	if (likely(i == checks))
		return n;
	while (n && slot->frame[n - 1].check >= i)
		n--;
	return n;
}

/*
 * Whether the stack whose innermost return slot is
 * @at is that of the last record. Sets slot->known.
 */
INLINE int is_same_stack(struct pad_slot *slot, uint64_t at, uint64_t fp)
{
	uint32_t n = slot->check_count, known;

	if (!n || slot->check[n - 1].at != at)
		return 0;
	slot->known = known = count_checks(slot, 0, n);
	return known == n && (!slot->needs_fp || slot->fp == fp);
}

/*
 * Walks the stack from the call that set the guard, whose caller has frame pointer @fp: fills
 * slot->step, innermost first. @known: so many checks hold. *kept_out: outer frames as in the last
 * record; returns the number of others, or -1 when a rule is missing.
 */
INLINE int64_t walk(const struct pad_control *c, struct pad_slot *slot, uint64_t fp, uint32_t known,
		    uint32_t *kept_out)
{
	uint64_t at = slot->guard;
	uint32_t top = count_valid(slot, at, known), n = 0;

	slot->step[0].at = at;
	slot->step[0].pc = slot->return_pc;
	slot->step[0].fp = fp;
	for (;;) {
		struct pad_step *s = &slot->step[n];
		int way;
		while (top && slot->check[slot->frame[top - 1].check].at < s->at)
			top--;
		if (top) {
			const struct pad_frame *f = &slot->frame[top - 1];
			if (slot->check[f->check].at == s->at &&
			    slot->check[f->check].value == s->pc &&
			    (!f->needs_fp || f->fp == s->fp)) {
				*kept_out = top;
				return n;
			}
		}
		if (unlikely(n + 1 >= PAD_MAX_FRAMES))
			return -1;
		way = step(c, slot, s, s + 1);
		if (unlikely(way == STEP_UNKNOWN))
			return -1;
		n++;
		if (way == STEP_END) {
			*kept_out = 0;
			return n;
		}
	}
}

/* Takes the @fresh steps into the frames behind the first @kept. 0 when there is no room. */
INLINE int remember(struct pad_slot *slot, uint32_t kept, uint32_t fresh)
{
	uint32_t check = kept ? slot->frame[kept - 1].check + 1 : 0;
	uint32_t n = kept;

	if (unlikely(kept + fresh > PAD_MAX_FRAMES || check + 3 * fresh > PAD_MAX_CHECKS))
		return 0;
	while (fresh--) {
		const struct pad_step *s = &slot->step[fresh];
		uint32_t needs_outside = n && slot->frame[n - 1].needs_fp;
		if (s->extra_at)
			slot->check[check++] = (struct pad_check){ s->extra_at, s->extra_value };
		if (s->fp_at && needs_outside)
			slot->check[check++] = (struct pad_check){s->fp_at, slot->frame[n - 1].fp};
		slot->check[check] = (struct pad_check){ s->at, s->pc };
		slot->frame[n].fp = s->fp;
		slot->frame[n].check = check++;
		slot->frame[n].needs_fp = s->uses_fp || (!s->fp_at && needs_outside);
		n++;
	}
	slot->frame_count = n;
	slot->check_count = check;
	slot->needs_fp = n && slot->frame[n - 1].needs_fp;
	slot->fp = n ? slot->frame[n - 1].fp : 0;
	return 1;
}

/* --- the ring --- */

enum wait_end { WAIT_GONE, WAIT_ROOM, WAIT_AGAIN };

INLINE int has_ring_room(const struct pad_control *c, uint64_t end)
{
	uint64_t room = READ(c->room); /* before the tail */
	return end - READ(c->tail) <= room;
}

/* Until the ring has room for [position, end), or the reader is gone, or gives the range up. */
API int pad_wait(struct pad_control *c, uint64_t position, uint64_t end)
{
	while (!has_ring_room(c, end)) {
		uint64_t again = 0;
		if (is_off(c))
			return WAIT_GONE;
		__asm__ volatile(".globl pad_full_trap\npad_full_trap: int3"
				 : "+a"(again) : "D"(position), "S"(end) : "memory");
		if (again)
			return WAIT_AGAIN;
	}
	return WAIT_ROOM;
}

INLINE uint64_t *reserve(struct pad_control *c, uint64_t size, uint64_t *position_out)
{
	uint64_t position;
	char *p;

	for (;;) {
		int end;
		position = size;
		if (c->shared)
			__asm__ volatile("lock xadd %0, %1" : "+r"(position), "+m"(c->head));
		else
			__asm__ volatile("xadd %0, %1" : "+r"(position), "+m"(c->head));
		if (likely(has_ring_room(c, position + size)))
			break;
		end = pad_wait(c, position, position + size);
		if (end == WAIT_GONE)
			return 0;
		if (end == WAIT_ROOM)
			break;
	}
	p = (char *)c->ring + (position & (c->ring_size - 1));
	__asm__ volatile("prefetchw 512(%0)" ::"r"(p));
	*position_out = position;
	if (!p)
		__builtin_unreachable();
	return (uint64_t *)p;
}

INLINE void commit(const struct pad_control *c, uint64_t *p, uint64_t position, uint32_t slot,
		   const struct x86_pad_head *head, enum pad_record_type type)
{
	uint64_t mark =
		pad_mark(position, c->key, slot << 8 | (uint32_t)head->probe.function << 4 | type);
	__atomic_store_n(p, mark, __ATOMIC_RELEASE);
}

INLINE uint64_t tail_size(const struct pad_control *c)
{
	return c->flags & PAD_STACK_POINTER ? PAD_TAIL : 0;
}

/* @at: the call's return slot. */
INLINE void record_block(struct pad_control *c, const struct pad_slot *slot,
			 const struct x86_pad_head *head, uint64_t block, uint64_t at,
			 enum pad_record_type type)
{
	uint64_t position, *p = reserve(c, 16 + tail_size(c), &position);
	if (unlikely(!p))
		return;
	p[1] = block;
	if (c->flags & PAD_STACK_POINTER)
		p[2] = at + 8;
	commit(c, p, position, slot->index, head, type);
}

/* The slot is free again. */
INLINE void finish(struct pad_slot *slot)
{
	barrier();
	WRITE(slot->guard, 0);
}

/* --- entering --- */

INLINE uint64_t argument(const struct x86_pad_stack *stack, uint8_t i)
{
	return i == 0 ? stack->rdi : i == 1 ? stack->rsi : stack->rdx;
}

/*
 * Whether the frame of @call (its return slot, the address in there, its frame pointer) happens
 * inside the call of slot->guard. Out of line: outermost calls shall not save the registers that
 * this needs.
 */
API int pad_nesting(const struct pad_control *c, const struct pad_slot *slot,
		    const struct pad_step *call)
{
	uint64_t guard = slot->guard, at = call->at;
	struct pad_step s = { .at = at, .pc = call->pc, .fp = call->fp }, next = { 0 };

	if (at > guard)
		return slot->dirty ? UNSURE : STALE;
	if (READ(*(const uint64_t *)guard) != slot->guard_pc)
		return UNSURE;
	for (int n = 0; n < NESTED_FRAMES; n++) {
		if (s.at == guard)
			return NESTED;
		if (s.at > guard)
			return PASSED_BY;
		if (step(c, slot, &s, &next) != STEP_OUT)
			return UNSURE;
		s = next;
	}
	return UNSURE;
}

/*
 * Of the frame whose return slot is @at. GO_CALL: it is outermost on the thread *slot_out;
 * GO_NESTED: it is inside a call.
 */
INLINE int enter_frame(const struct pad_control *c, uint64_t at, uint64_t pc, uint64_t fp,
		       struct pad_slot **slot_out)
{
	struct pad_slot *slot;

	if (is_off(c))
		return GO_STRAIGHT;
	slot = find_slot(c);
	if (unlikely(!slot))
		return GO_TRAP;
	*slot_out = slot;
	if (unlikely(at < slot->stack_low || at >= slot->stack_high))
		return trap(slot, PAD_REASON_BOUNDS);
	if (READ(slot->guard)) {
		const struct pad_step call = { .at = at, .pc = pc, .fp = fp };
		int nested = pad_nesting(c, slot, &call);
		if (nested == NESTED)
			return GO_NESTED;
		if (nested != STALE)
			return trap(slot,
				    nested == PASSED_BY ? PAD_REASON_STALE : PAD_REASON_GUARD);
	}
	return GO_CALL;
}

INLINE int enter(struct x86_pad_stack *stack, const struct x86_pad_head *head, uint64_t fp,
		 struct pad_slot **slot_out)
{
	return enter_frame(head_control(head), (uint64_t)&stack->return_slot, stack->return_slot,
			   fp, slot_out);
}

API int pad_enter_call(struct x86_pad_stack *stack, const struct x86_pad_head *head, uint64_t fp)
{
	struct pad_slot *slot;
	int way = enter(stack, head, fp, &slot);

	if (way != GO_CALL)
		return way == GO_NESTED ? GO_STRAIGHT : way;
	/* The guard first: from here on a signal handler leaves the slot alone. */
	WRITE(slot->guard, (uint64_t)&stack->return_slot);
	barrier();
	slot->kind = head->probe.kind;
	slot->return_pc = stack->return_slot;
	slot->arg[0] = stack->rdi;
	slot->arg[1] = stack->rsi;
	slot->arg[2] = stack->rdx;
	WRITE(slot->guard_pc, head->after);
	if (head->probe.kind != PAD_ALLOC) {
		enum pad_record_type type = head->probe.kind == PAD_REALLOC ?
						    PAD_RECORD_REALLOC_BEGIN :
						    PAD_RECORD_FREE;
		record_block(head_control(head), slot, head, argument(stack, head->probe.block_arg),
			     (uint64_t)&stack->return_slot, type);
	}
	return GO_CALL;
}

/* pad_enter_call where the block's size is the first argument, and nothing else is needed later. */
API int pad_enter_plain(struct x86_pad_stack *stack, const struct x86_pad_head *head, uint64_t fp)
{
	const struct pad_control *c = head_control(head);
	uint64_t at = (uint64_t)&stack->return_slot;
	struct pad_slot *slot;

	if (is_off(c))
		return GO_STRAIGHT;
	slot = find_slot(c);
	if (unlikely(!slot || at < slot->stack_low || at >= slot->stack_high || READ(slot->guard)))
		return pad_enter_call(stack, head, fp);
	WRITE(slot->guard, at);
	barrier();
	slot->kind = PAD_ALLOC;
	slot->return_pc = stack->return_slot;
	slot->arg[0] = stack->rdi;
	WRITE(slot->guard_pc, head->after);
	return GO_CALL;
}

/*
 * A leaf: the guard is set during the record only. A signal handler must not use the
 * ring while its own thread holds a hole in it: a full ring could never be drained.
 */
API int pad_enter_free(struct x86_pad_stack *stack, const struct x86_pad_head *head, uint64_t fp)
{
	struct pad_slot *slot;
	int way = enter(stack, head, fp, &slot);

	if (unlikely(way == GO_NESTED)) {
		if (slot->kind != PAD_DELETE && argument(stack, head->probe.block_arg))
			record_block(head_control(head), slot, head,
				     argument(stack, head->probe.block_arg),
				     (uint64_t)&stack->return_slot, PAD_RECORD_INNER_FREE);
		return GO_STRAIGHT;
	}
	if (way != GO_CALL)
		return way;
	WRITE(slot->guard, (uint64_t)&stack->return_slot);
	barrier();
	record_block(head_control(head), slot, head, argument(stack, head->probe.block_arg),
		     (uint64_t)&stack->return_slot, PAD_RECORD_FREE);
	finish(slot);
	return GO_STRAIGHT;
}

API int pad_enter_throw(struct x86_pad_stack *stack, const struct x86_pad_head *head, uint64_t fp)
{
	const struct pad_control *c = head_control(head);
	struct pad_slot *slot = is_off(c) ? 0 : find_slot(c);

	(void)stack;
	(void)fp;
	if (likely(!slot || !READ(slot->guard)))
		return GO_STRAIGHT;
	return trap(slot, PAD_REASON_THROW);
}

/* --- leaving --- */

/* A fiber may have been moved to another thread inside the original: look everywhere. */
static KEEPS __attribute__((noinline)) struct pad_slot *find_guard(
	const struct pad_control *c, uint64_t at)
{
	struct pad_slot *slots = (struct pad_slot *)c->slots;
	for (uint32_t i = 0; i < c->slot_count; i++)
		if (slots[i].guard == at)
			return &slots[i];
	return 0;
}

/* The slot of the call whose return slot is @at. There is always one. */
INLINE struct pad_slot *leaving_slot(const struct pad_control *c, uint64_t at)
{
	struct pad_slot *slot = find_slot(c);
	return likely(slot && slot->guard == at) ? slot : find_guard(c, at);
}

INLINE uint64_t block_size(const struct pad_slot *slot, const struct pad_probe *probe)
{
	uint64_t size = slot->arg[probe->size_arg];
	if (probe->count_arg != PAD_NO_ARG &&
	    __builtin_mul_overflow(size, slot->arg[probe->count_arg], &size))
		return UINT64_MAX;
	return size;
}

INLINE uint64_t block_result(const struct x86_pad_stack *stack, const struct pad_slot *slot,
			     const struct pad_probe *probe)
{
	if (likely(probe->out_arg == PAD_NO_ARG))
		return stack->rax;
	return (uint32_t)stack->rax ? 0 : *(const uint64_t *)slot->arg[probe->out_arg];
}

/* Fixed part of a record whose mark comes last. */
INLINE void fill_block(struct pad_record_block *r, const struct pad_slot *slot,
		       const struct pad_probe *probe)
{
	r->result = slot->result;
	r->bytes = block_size(slot, probe);
	if (probe->kind == PAD_REALLOC)
		r->align = slot->arg[probe->block_arg];
	else
		r->align = probe->align_arg == PAD_NO_ARG ? probe->fixed_align :
							    slot->arg[probe->align_arg];
}

/* Without string instructions, and without a call of memcpy. */
INLINE void copy_words(uint64_t *to, const void *from, uint64_t count)
{
	for (const uint64_t *p = from; count--; to++, p++) {
		*to = *p;
		barrier();
	}
}

/*
 * Writes the record of what happened in the frame with return slot @at. @fresh < 0: no incremental
 * stack. @saved: the raw stack comes along, @raw bytes of it. 0 when the reader is gone.
 */
INLINE int record_return(uint64_t at, const struct x86_pad_head *head, struct pad_slot *slot,
			 uint32_t kept, int64_t fresh, const struct x86_pad_saved *saved,
			 uint64_t raw)
{
	struct pad_control *c = head_control(head);
	uint64_t size = sizeof(struct pad_record_block) + (fresh > 0 ? (uint64_t)fresh * 8 : 0);
	uint64_t position, *p, sp = at + 8;
	struct pad_record_block *r;

	if (saved)
		size += PAD_RAW_REGS * 8 + raw;
	size = ((size + 15) & ~15ull) + tail_size(c);
	if (fresh >= 0)
		WRITE(slot->dirty, 1);
	p = reserve(c, size, &position);
	if (unlikely(!p))
		return 0;
	r = (struct pad_record_block *)p;
	r->size = (uint32_t)size;
	r->flags = (uint16_t)((fresh >= 0 ? PAD_HAS_STACK : 0) | (saved ? PAD_HAS_RAW : 0));
	r->fresh = (uint16_t)(fresh > 0 ? fresh : 0);
	r->kept = kept;
	r->raw = (uint32_t)raw;
	fill_block(r, slot, &head->probe);
	p = (uint64_t *)(r + 1);
	for (int64_t i = fresh; i-- > 0;)
		*p++ = slot->step[i].pc;
	if (saved) {
		uint64_t regs[PAD_RAW_REGS] = {
			[3] = saved->rbx,  [6] = saved->rbp,	  [7] = sp,
			[12] = saved->r12, [13] = saved->r13,	  [14] = saved->r14,
			[15] = saved->r15, [16] = slot->return_pc};
		for (int i = 0; i < PAD_RAW_REGS; i++)
			*p++ = regs[i];
		uint64_t words = raw / 8;
		const void *from = (const void *)sp;
		if (likely(head->probe.kind < PAD_REQUEST))
			__asm__ volatile("rep movsq" : "+D"(p), "+S"(from), "+c"(words)::"memory");
		else /* the direction flag is whatever the marker's function has it */
			copy_words(p, from, words);
	}
	if (c->flags & PAD_STACK_POINTER)
		*(uint64_t *)((char *)r + size - PAD_TAIL) = sp;
	if (fresh >= 0)
		remember(slot, kept, (uint32_t)fresh);
	commit(c, (uint64_t *)r, position, slot->index, head,
	       head->probe.kind == PAD_REALLOC ? PAD_RECORD_REALLOC_END : PAD_RECORD_ALLOC);
	barrier();
	WRITE(slot->dirty, 0);
	return 1;
}

/* Whether the slot can take in @fresh frames behind @kept, and the ring such a record. */
INLINE int has_room(const struct pad_control *c, const struct pad_slot *slot, uint32_t kept,
		    int64_t fresh)
{
	uint32_t check = kept ? slot->frame[kept - 1].check + 1 : 0;
	return kept + fresh <= PAD_MAX_FRAMES && check + 3 * fresh <= PAD_MAX_CHECKS &&
	       sizeof(struct pad_record_block) + 8 * (uint64_t)fresh <= c->raw_max;
}

/* The call that set the guard has returned; slot->caller_fp and slot->known are set. */
static KEEPS __attribute__((noinline)) int leave(struct x86_pad_stack *stack,
						 const struct x86_pad_head *head,
						 struct pad_slot *slot)
{
	const struct pad_control *c = head_control(head);
	int64_t fresh = -1;
	uint32_t kept = 0;

	if (head->probe.kind != PAD_DELETE && !is_off(c)) {
		slot->result = block_result(stack, slot, &head->probe);
		if (!(c->flags & PAD_COUNT_ONLY) && slot->result) {
			if (unlikely(c->flags & PAD_VERIFY))
				return LEAVE_RAW;
			fresh = walk(c, slot, slot->caller_fp, slot->known, &kept);
			if (unlikely(fresh < 0 || !has_room(c, slot, kept, fresh)))
				return LEAVE_RAW;
		}
		record_return(slot->guard, head, slot, kept, fresh, 0, 0);
	}
	finish(slot);
	return LEAVE_DONE;
}

API int pad_leave(struct x86_pad_stack *stack, const struct x86_pad_head *head, uint64_t fp)
{
	struct pad_slot *slot = leaving_slot(head_control(head), (uint64_t)&stack->return_slot);

	stack->return_slot = slot->return_pc;
	slot->caller_fp = fp;
	slot->known = 0;
	return leave(stack, head, slot);
}

API int pad_leave_plain(struct x86_pad_stack *stack, const struct x86_pad_head *head, uint64_t fp)
{
	struct pad_control *c = head_control(head);
	uint64_t at = (uint64_t)&stack->return_slot, result = stack->rax, bytes, position, *p;
	struct pad_slot *slot = leaving_slot(c, at);

	stack->return_slot = slot->return_pc;
	slot->caller_fp = fp;
	slot->known = 0;
	bytes = slot->arg[0];
	if (unlikely(is_off(c) || c->flags & PAD_VERIFY || result - 1 >= PAD_SAME_BLOCKS - 1 ||
		     bytes >= PAD_SAME_BYTES) ||
	    (!(c->flags & PAD_COUNT_ONLY) && !is_same_stack(slot, at, fp)))
		return leave(stack, head, slot);
	p = reserve(c, 16 + tail_size(c), &position);
	if (likely(p)) {
		p[1] = result << 16 | bytes;
		if (c->flags & PAD_STACK_POINTER)
			p[2] = at + 8;
		commit(c, p, position, slot->index, head, PAD_RECORD_SAME);
	}
	finish(slot);
	return LEAVE_DONE;
}

/*
 * The raw record of the call or marker with return slot
 * @at; the slot is free then. 0: it would be too large.
 */
INLINE int write_raw(uint64_t at, const struct x86_pad_head *head, struct pad_slot *slot,
		     const struct x86_pad_saved *saved)
{
	const struct pad_control *c = head_control(head);
	uint64_t raw = (slot->stack_high - at - 8) & ~7ull;
	int64_t fresh = -1;
	uint32_t kept = 0;

	if (c->flags & PAD_VERIFY) {
		fresh = walk(c, slot, saved->rbp, 0, &kept);
		if (fresh >= 0 && !has_room(c, slot, kept, fresh))
			fresh = -1;
	}
	if (sizeof(struct pad_record_block) + PAD_RAW_REGS * 8 + raw + 8 * (fresh > 0 ? fresh : 0) +
		    16 >
	    c->raw_max)
		return 0;
	record_return(at, head, slot, kept, fresh, saved, raw);
	finish(slot);
	return 1;
}

API int pad_raw(struct x86_pad_stack *stack, const struct x86_pad_head *head,
		const struct x86_pad_saved *saved)
{
	uint64_t at = (uint64_t)&stack->return_slot;
	struct pad_slot *slot = leaving_slot(head_control(head), at);

	if (write_raw(at, head, slot, saved))
		return LEAVE_DONE;
	slot->reason = PAD_REASON_LARGE;
	return LEAVE_TRAP;
}

/* --- markers --- */

/* Above what is saved and the red zone: where a marker's function has its stack pointer. */
INLINE uint64_t marker_sp(const struct x86_pad_stack *stack)
{
	return (uint64_t)(&stack->return_slot + 1) + PAD_RED_ZONE;
}

enum {
	REQUEST_RUNNING = 0x1001,
	REQUEST_MONITOR = 0x1202,
	REQUEST_MALLOCLIKE = 0x1301,
	REQUEST_FREELIKE,
	REQUEST_POOLS,
	REQUEST_POOLS_END = 0x130a,
	REQUEST_RESIZEINPLACE
};
enum { DO_NOTHING, DO_ALLOC, DO_FREE, DO_TRAP };

/* What the request whose code is @code needs. */
INLINE int judge_request(const struct pad_control *c, uint64_t code)
{
	uint32_t answered = c->flags;

	if (code == REQUEST_MALLOCLIKE || code == REQUEST_FREELIKE)
		return answered & PAD_ANSWER_BLOCKS ? DO_TRAP :
		       code == REQUEST_MALLOCLIKE   ? DO_ALLOC :
						      DO_FREE;
	if (code == REQUEST_MONITOR || code == REQUEST_RESIZEINPLACE)
		return DO_TRAP;
	if (code == REQUEST_RUNNING)
		return answered & PAD_ANSWER_RUNNING ? DO_TRAP : DO_NOTHING;
	if (code >= REQUEST_POOLS && code <= REQUEST_POOLS_END)
		return answered & PAD_ANSWER_POOLS ? DO_TRAP : DO_NOTHING;
	return DO_NOTHING;
}

/* What is to be done, with its block's address and size. */
INLINE int read_marker(const struct x86_pad_stack *stack, const struct x86_pad_head *head,
		       const struct pad_slot *slot, uint64_t *addr_out, uint64_t *size_out)
{
	uint64_t at = stack->return_slot; /* rax */
	const uint64_t *request = (const uint64_t *)at;

	if (head->probe.kind != PAD_REQUEST) {
		*addr_out = stack->rdi;
		*size_out = stack->rsi;
		return head->probe.kind == PAD_MARKED_ALLOC ? DO_ALLOC : DO_FREE;
	}
	/* elsewhere than on the stack it might not be readable: ptmem looks */
	if (unlikely(at < marker_sp(stack) - PAD_RED_ZONE || at >= slot->stack_high - 6 * 8))
		return DO_TRAP;
	*addr_out = request[1];
	*size_out = request[2];
	return judge_request(head_control(head), request[0]);
}

/* LEAVE_RAW: the frames before it have to be copied. */
API int pad_enter_marker(struct x86_pad_stack *stack, const struct x86_pad_head *head, uint64_t fp)
{
	struct pad_control *c = head_control(head);
	uint64_t at = marker_sp(stack) - 8, pc = head->after + 1, addr = 0, size = 0;
	struct pad_slot *slot;
	int64_t fresh = -1;
	uint32_t kept = 0;
	int way = enter_frame(c, at, pc, fp, &slot);

	if (way != GO_CALL)
		return way == GO_NESTED ? GO_STRAIGHT : way;
	int what = read_marker(stack, head, slot, &addr, &size);
	if (unlikely(what == DO_TRAP))
		return trap(slot, PAD_REASON_MARKER);
	if (what == DO_NOTHING || !addr)
		return GO_STRAIGHT;
	WRITE(slot->guard, at);
	barrier();
	if (what == DO_FREE) {
		record_block(c, slot, head, addr, at, PAD_RECORD_FREE);
		finish(slot);
		return LEAVE_DONE;
	}
	slot->return_pc = pc;
	slot->result = addr;
	slot->arg[0] = size;
	if (!(c->flags & PAD_COUNT_ONLY)) {
		if (unlikely(c->flags & PAD_VERIFY))
			return LEAVE_RAW;
		fresh = walk(c, slot, fp, 0, &kept);
		if (unlikely(fresh < 0 || !has_room(c, slot, kept, fresh)))
			return LEAVE_RAW;
	}
	record_return(at, head, slot, kept, fresh, 0, 0);
	finish(slot);
	return LEAVE_DONE;
}

/* As pad_raw; GO_TRAP where the record would be too large. */
API int pad_raw_marker(struct x86_pad_stack *stack, const struct x86_pad_head *head,
		       const struct x86_pad_saved *saved)
{
	uint64_t at = marker_sp(stack) - 8;
	struct pad_slot *slot = leaving_slot(head_control(head), at);

	if (write_raw(at, head, slot, saved))
		return LEAVE_DONE;
	finish(slot);
	return trap(slot, PAD_REASON_LARGE);
}

API void pad_finish(struct x86_pad_stack *stack, const struct x86_pad_head *head)
{
	finish(leaving_slot(head_control(head), (uint64_t)&stack->return_slot));
}
