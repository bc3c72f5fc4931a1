/* The recorder's side of markers: client requests and probes of the program's own. See blob_recorder.c. */
#include "arch/x86_64/blob_record.h"

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
