/*
 * The recorder's part for markers: client requests and probes of the program. See
 * recorder_calls.c.
 */
#include "arch/recorder/recorder_record.h"
#include "arch/recorder/recorder_sample.h"

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

/* The arguments of the request with code @code. */
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

/* The requested action, with its block's address and size. */
INLINE int read_marker(const struct pad_stack *stack, const struct pad_head *head,
		       const struct pad_slot *slot, uint64_t *addr_out, uint64_t *size_out)
{
	uint64_t at = cpu_request(stack);
	const uint64_t *request = (const uint64_t *)at;

	if (head->probe.kind != PAD_REQUEST) {
		*addr_out = cpu_argument(stack, 0);
		*size_out = cpu_argument(stack, 1);
		return head->probe.kind == PAD_MARKED_ALLOC ? DO_ALLOC : DO_FREE;
	}
	/* memory other than the stack might be unreadable: ptmem reads it */
	if (unlikely(at < cpu_marker_sp(stack) - CPU_RED_ZONE || at >= slot->stack_high - 6 * 8))
		return DO_TRAP;
	*addr_out = request[1];
	*size_out = request[2];
	return judge_request(head_control(head), request[0]);
}

/* Whether a block that a marker announces is sampled. */
INLINE int takes_block(const struct pad_control *c, struct pad_slot *slot, uint64_t addr,
		       uint64_t size)
{
	if (!takes_sample(c, slot, size))
		return 0;
	if (!has_sample_room(c, slot)) {
		pad_lose_block(c, slot, size);
		return 0;
	}
	pad_filter_add(filter_of(c), addr);
	return 1;
}

/* LEAVE_RAW: the frames before it must be copied. */
API int pad_enter_marker(struct pad_stack *stack, const struct pad_head *head, uint64_t fp)
{
	struct pad_control *c = head_control(head);
	uint64_t at = cpu_marker_sp(stack) - ARCH_RETURN_SIZE, pc = head->after + 1;
	uint64_t addr = 0, size = 0;
	struct pad_slot *slot;
	enum pad_record_type type = PAD_RECORD_FREE;
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
	if (is_sampling(c)) {
		if (what == DO_FREE) {
			count_function(slot, head->probe.release_function);
			type = released_as(c, addr);
		} else {
			count_call(slot, head, size);
		}
		if (what == DO_FREE ? !type : !takes_block(c, slot, addr, size))
			return GO_STRAIGHT;
	}
	WRITE(slot->return_at, at);
	barrier();
	if (what == DO_FREE) {
		if (is_sampling(c))
			record_sample_release(slot, head, addr, at, type);
		else
			record_word(slot, head, addr, at, type);
		finish(slot);
		return LEAVE_DONE;
	}
	slot->return_pc = pc;
	slot->result = addr;
	slot->arg[0] = size;
	if (!(c->flags & PAD_COUNT_ONLY)) {
		if (unlikely(!take_labels(c, slot))) {
			slot->has_list = 0;
			lose_return(head, slot);
			finish(slot);
			return LEAVE_DONE;
		}
		if (unlikely(c->flags & PAD_VERIFY))
			return LEAVE_RAW;
		fresh = walk(c, slot, at, fp, 0, &kept);
		if (unlikely(fresh < 0 || !has_room(c, slot, kept, fresh)))
			return LEAVE_RAW;
	}
	slot->has_list = 0;
	record_return(at, head, slot, kept, fresh, 0, 0);
	finish(slot);
	return LEAVE_DONE;
}

/* Like pad_raw; GO_TRAP if the record would be too large. */
API int pad_raw_marker(struct pad_stack *stack, const struct pad_head *head,
		       const struct pad_saved *saved)
{
	uint64_t at = cpu_marker_sp(stack) - ARCH_RETURN_SIZE;
	struct pad_slot *slot = leaving_slot(head_control(head), at);

	if (write_raw(at, head, slot, saved))
		return LEAVE_DONE;
	finish(slot);
	return GO_TRAP;
}

API void pad_finish(struct pad_stack *stack, const struct pad_head *head)
{
	finish(leaving_slot(head_control(head), call_return_at(stack)));
}
