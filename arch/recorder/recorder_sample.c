/*
 * Calls of sampling pads that the short ways of their templates do not handle. See
 * recorder_calls.c.
 */
#include "arch/recorder/recorder_record.h"
#include "arch/recorder/recorder_sample.h"

/* Whether no pad of the thread is running. */
INLINE int is_outermost(const struct pad_slot *slot)
{
	return !READ(slot->return_at);
}

INLINE uint64_t requested_size(const struct pad_stack *stack, const struct pad_probe *probe)
{
	uint64_t size;

	if (probe->size_arg == PAD_NO_ARG || probe->is_string)
		return 0;
	size = cpu_argument(stack, probe->size_arg);
	if (probe->count_arg != PAD_NO_ARG &&
	    __builtin_mul_overflow(size, cpu_argument(stack, probe->count_arg), &size))
		return UINT64_MAX;
	return size;
}

/* malloc, calloc: jumps to the original unless the call is sampled. */
API int pad_enter_sample_leaf(struct pad_stack *stack, const struct pad_head *head, uint64_t fp)
{
	struct pad_control *c = head_control(head);
	uint64_t size = requested_size(stack, &head->probe);
	struct pad_slot *slot = is_off(c) ? 0 : find_slot(c);
	uint32_t sampled;
	int way;

	if (likely(slot && is_outermost(slot) && READ(slot->left) >= size)) {
		WRITE(slot->left, slot->left - size);
		count_call(slot, head, size);
		return GO_STRAIGHT;
	}
	way = enter(stack, head, fp, &slot);
	if (way != GO_CALL)
		return way == GO_NESTED ? GO_STRAIGHT : way;
	count_call(slot, head, size);
	begin_call(stack, head, slot);
	sampled = takes_sample(c, slot, size);
	if (!sampled) {
		finish(slot); /* it was left by longjmp */
		return GO_STRAIGHT;
	}
	slot->is_old_sampled = 0;
	slot->is_sampled = sampled;
	return GO_CALL;
}

/* The release by a call of realloc, or by a delete that calls other functions. */
INLINE void record_release(struct pad_stack *stack, const struct pad_head *head,
			   struct pad_slot *slot)
{
	struct pad_control *c = head_control(head);
	uint64_t block = cpu_argument(stack, head->probe.block_arg);
	uint32_t answer = is_filtered(c, block) ? pad_filter_take(filter_of(c), block) :
						  PAD_FILTER_NO;
	enum pad_record_type type;

	slot->is_old_sampled = answer;
	if (answer == PAD_FILTER_NO)
		return;
	/* the filter decides whether it is known to be one */
	if (head->probe.kind == PAD_REALLOC)
		type = answer == PAD_FILTER_TAKEN ? PAD_RECORD_REALLOC_BEGIN :
						    PAD_RECORD_REALLOC_MAYBE;
	else
		type = answer == PAD_FILTER_TAKEN ? PAD_RECORD_FREE : PAD_RECORD_INNER_FREE;
	if (!record_sample_release(slot, head, block, cpu_place(stack), type))
		slot->is_old_sampled = 0;
}

INLINE void record_free(struct pad_stack *stack, const struct pad_head *head,
			struct pad_slot *slot, uint64_t block)
{
	struct pad_control *c = head_control(head);
	enum pad_record_type type = released_as(c, block);

	if (type)
		record_sample_release(slot, head, block, cpu_place(stack), type);
}

static void record_inner_sample(struct pad_stack *stack, const struct pad_head *head,
				struct pad_slot *slot)
{
	uint64_t block = cpu_argument(stack, head->probe.block_arg);

	if (is_filtered(head_control(head), block))
		record_free(stack, head, slot, block);
}

/* Any function that may call probed functions is tracked until it returns, sampled or not. */
API int pad_enter_sample_call(struct pad_stack *stack, const struct pad_head *head, uint64_t fp)
{
	struct pad_control *c = head_control(head);
	uint64_t size = requested_size(stack, &head->probe);
	struct pad_slot *slot;
	int way = enter(stack, head, fp, &slot);

	if (way == GO_NESTED) {
		if (head->probe.kind == PAD_DELETE && slot->kind != PAD_DELETE)
			record_inner_sample(stack, head, slot);
		return GO_STRAIGHT;
	}
	if (way != GO_CALL)
		return way;
	count_call(slot, head, size);
	begin_call(stack, head, slot);
	slot->is_old_sampled = 0;
	slot->is_sampled = takes_sample(c, slot, size);
	if (head->probe.kind != PAD_ALLOC)
		record_release(stack, head, slot);
	return GO_CALL;
}

API int pad_enter_sample_free(struct pad_stack *stack, const struct pad_head *head, uint64_t fp)
{
	struct pad_control *c = head_control(head);
	uint64_t block = cpu_argument(stack, head->probe.block_arg);
	struct pad_slot *slot = is_off(c) ? 0 : find_slot(c);
	int is_hit = is_filtered(c, block), way;

	if (likely(slot))
		forget_state(slot, block);
	if (likely(slot && is_outermost(slot) && !is_hit)) {
		count_call(slot, head, 0);
		return GO_STRAIGHT;
	}
	way = enter(stack, head, fp, &slot);
	if (unlikely(way == GO_NESTED)) {
		if (is_hit && slot->kind != PAD_DELETE)
			record_free(stack, head, slot, block);
		return GO_STRAIGHT;
	}
	if (way != GO_CALL)
		return way;
	count_call(slot, head, 0);
	WRITE(slot->return_at, cpu_place(stack));
	barrier();
	if (is_hit)
		record_free(stack, head, slot, block);
	finish(slot);
	return GO_STRAIGHT;
}

/* A realloc of a sampled block has returned @result, without a new sample. */
INLINE void record_lost(struct pad_stack *stack, const struct pad_head *head,
			struct pad_slot *slot, uint64_t result)
{
	if (result)
		slot->arg[head->probe.size_arg] = 0;
	slot->result = 0;
	slot->has_list = 0;
	record_return(cpu_place(stack), head, slot, 0, -1, 0, 0);
}

/* Whether realloc has removed the block from the filter, and was not asked to free it. */
INLINE int is_moved(const struct pad_slot *slot, const struct pad_head *head)
{
	return slot->is_old_sampled == PAD_FILTER_TAKEN && head->probe.kind == PAD_REALLOC &&
	       slot->arg[head->probe.size_arg];
}

/* The size is known now: whether the call of a function that returns a string is sampled. */
INLINE void sample_string(struct pad_control *c, const struct pad_head *head,
			  struct pad_slot *slot, uint64_t result)
{
	uint64_t size = string_size(result);

	slot->arg[head->probe.size_arg] = size;
	if (is_off(c))
		return;
	count_bytes(slot, head, size);
	slot->is_sampled = takes_sample(c, slot, size);
}

API int pad_leave_sample(struct pad_stack *stack, const struct pad_head *head, uint64_t fp)
{
	struct pad_control *c = head_control(head);
	struct pad_slot *slot = leaving_slot(c, call_return_at(stack));
	uint64_t result;

	if (unlikely(!slot))
		return LEAVE_DONE;
	result = block_result(stack, slot, &head->probe);
	if (!result && is_moved(slot, head))
		pad_filter_add(filter_of(c), slot->arg[head->probe.block_arg]); /* it failed */
	if (unlikely(head->probe.is_string))
		sample_string(c, head, slot, result);
	if (slot->is_sampled && !has_sample_room(c, slot)) {
		if (result)
			pad_lose_block(c, slot, block_size(slot, &head->probe));
		slot->is_sampled = 0;
	}
	if (slot->is_sampled) {
		if (result)
			pad_filter_add(filter_of(c), result);
		return pad_leave(stack, head, fp);
	}
	if (slot->is_old_sampled && head->probe.kind == PAD_REALLOC && !is_off(c))
		record_lost(stack, head, slot, result);
	finish(slot);
	return LEAVE_DONE;
}
