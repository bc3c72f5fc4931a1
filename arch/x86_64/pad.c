/*
 * Assembles pads: a copy of a template (recorder_template.S) with its head filled in and the
 * function's moved first instructions at its end. Which template, and where the pad enters the
 * recorder, the table at the start of the recorder's code says; only this file reads it.
 */
#include <errno.h>
#include <string.h>

#include "arch/recorder/pad_head.h"
#include "arch/x86_64/pad_layout.h"
#include "arch/x86_64/x86_64.h"

#define CONTROL_IS(member, offset) (offsetof(struct pad_control, member) == PAD_CONTROL_##offset)
#define RULE_IS(member, offset) (offsetof(struct unwind_rule, member) == PAD_RULE_##offset)
#define RING_IS(member, offset) (offsetof(struct pad_ring, member) == PAD_RING_##offset)
#define SLOT_IS(member, offset) (offsetof(struct pad_slot, member) == PAD_SLOT_##offset)

_Static_assert(sizeof(struct pad_head) == PAD_HEAD_SIZE &&
		       offsetof(struct pad_head, mark) == PAD_HEAD_MARK &&
		       offsetof(struct pad_head, same_labels) == PAD_HEAD_SAME_LABELS &&
		       offsetof(struct pad_head, probe.function) == PAD_HEAD_FUNCTION,
	       "as in pad_layout.h");
_Static_assert(CONTROL_IS(flags, FLAGS) && CONTROL_IS(shared, SHARED) &&
		       CONTROL_IS(next_number, NUMBER) && CONTROL_IS(rules, RULES) &&
		       CONTROL_IS(label_epoch, LABEL_EPOCH) &&
		       CONTROL_IS(rule_bits, RULE_BITS) && RULE_IS(pc, PC) &&
		       RULE_IS(cfa_offset, OFFSET) && RULE_IS(kind, KIND) &&
		       sizeof(struct unwind_rule) == 32 && RULE_SP == PAD_LAYOUT_RULE_SP &&
		       RING_IS(head, HEAD) &&
		       RING_IS(soft_limit, SOFT_LIMIT) && RING_IS(at, AT) && RING_IS(mask, MASK),
	       "as in pad_layout.h");
_Static_assert(SLOT_IS(stack_low, LOW) && SLOT_IS(stack_high, HIGH) &&
		       SLOT_IS(return_at, RETURN_AT) && SLOT_IS(return_to, RETURN_TO) &&
		       SLOT_IS(ring, RING) && SLOT_IS(arg, ARG) && SLOT_IS(kind, KIND) &&
		       SLOT_IS(check_count, CHECK_COUNT) && SLOT_IS(needs_fp, NEEDS_FP) &&
		       SLOT_IS(fp, FP) && SLOT_IS(check, CHECK) && SLOT_IS(left, LEFT) &&
		       SLOT_IS(is_sampled, SAMPLED) &&
		       offsetof(struct pad_slot, is_old_sampled) == PAD_SLOT_SAMPLED + 4 &&
		       SLOT_IS(label_epoch, LABEL_EPOCH) &&
		       SLOT_IS(label_checks, LABEL_CHECKS) &&
		       SLOT_IS(label_check, LABEL_CHECK) && sizeof(struct pad_check) == 16 &&
		       SLOT_IS(count, COUNT) && sizeof(struct pad_count) == 16,
	       "as in pad_layout.h");
_Static_assert(PAD_ALLOC == PAD_LAYOUT_ALLOC && PAD_COUNT_ONLY == PAD_LAYOUT_COUNT_ONLY &&
		       (PAD_LAYOUT_LONG_WAY | PAD_VIRTUAL) == PAD_LAYOUT_OTHER_WAY &&
		       PAD_HAS_LABELS == PAD_LAYOUT_HAS_LABELS &&
		       (PAD_VERIFY | PAD_STACK_POINTER) == PAD_LAYOUT_LONG_WAY &&
		       PAD_OWNER_DIED == PAD_LAYOUT_DIED && PAD_MARK_LOW == PAD_LAYOUT_MARK_LOW &&
		       PAD_DIRECTORY_OFFSET == PAD_LAYOUT_DIRECTORY &&
		       PAD_DIRECTORY_BITS == PAD_LAYOUT_DIRECTORY_BITS &&
		       PAD_FILTER_BITS == PAD_LAYOUT_FILTER_BITS &&
		       PAD_FILTER_OFFSET + offsetof(struct pad_filter, cell) == PAD_LAYOUT_CELLS &&
		       PAD_CELL_SHIFT == PAD_LAYOUT_CELL_SHIFT && PAD_DELETE == PAD_LAYOUT_DELETE,
	       "as in pad_layout.h");
#undef CONTROL_IS
#undef RULE_IS
#undef RING_IS
#undef SLOT_IS

/* Offsets from there. */
struct recorder_table {
	uint32_t magic;
	struct recorder_names names;
	uint32_t same_labels, short_label_load, short_label_end;
	struct {
		uint32_t start, entry, entry_trap, after, leave_trap, moved, end, back, ret, tail,
			down;
		/* entry code that may precede start, with the same head: short ways */
		uint32_t sample_alloc, sample_free, exact_free;
	} call, tracked, plain, jump, marker; /* the templates; 0 if there is none */
};

/*
 * Assembles pads: a copy of a template (recorder_template.S) with its head filled in and the
 * function's moved first instructions at its end.
 */

extern const uint8_t x86_64_recorder[], x86_64_recorder_end[], x86_64_recorder_elf[],
	x86_64_recorder_elf_end[];

static const struct recorder_table *table(void)
{
	return (const struct recorder_table *)(const void *)x86_64_recorder;
}

struct recorder_image arch_recorder_image(void)
{
	return (struct recorder_image){
		.code = x86_64_recorder,
		.size = (size_t)(x86_64_recorder_end - x86_64_recorder),
		.elf = x86_64_recorder_elf,
		.elf_size = (size_t)(x86_64_recorder_elf_end - x86_64_recorder_elf),
		.full_trap = table()->names.full_trap,
		.full_answer = (uint32_t)arch_native->ret,
		.ticks = table()->names.ticks,
		.ticks_size = 2, /* rdtsc */
		.unsure_load = table()->names.unsure_load,
		.unsure_load_size = 3, /* mov (%rdi), %rax */
		.label_load = table()->names.label_load,
		.label_load_size = 5, /* mov (%rdi), %rax; mov $1, %dl */
		.short_label_load = table()->short_label_load,
		.short_label_size = table()->short_label_end - table()->short_label_load,
	};
}

static struct pad_head make_head(const struct pad_request *request, uint64_t after)
{
	struct pad_head head = pad_make_head(request, &table()->names, after);

	head.same_labels = request->recorder + table()->same_labels;
	return head;
}

/* The marker's code is skipped: nothing has to be moved. */
static int make_marker_pad(const struct pad_request *request, uint8_t *out, struct pad *pad_out,
			   const char **why_out)
{
	__typeof__(&table()->marker) t = &table()->marker;
	taddr_t at = request->at;
	struct pad pad = {
		.at = at,
		.size = t->end - t->start,
		.patch_size = X86_JUMP_SIZE,
		.patch_at = request->from,
		.moved = X86_JUMP_SIZE,
		.bias = at - t->start,
		.start = at + (t->entry - t->start),
		.straight = request->behind,
		.entry_trap = at + (t->entry_trap - t->start),
		.tail = at + (t->back - t->start),
		.exit[0] = {at + (t->moved - t->start), at + (t->back - t->start)},
	};
	uint8_t *jump = out + (t->moved - t->start), *back = out + (t->back - t->start);

	if (request->behind - request->from < X86_JUMP_SIZE) {
		*why_out = "it has no room for a jump";
		return -ENOTSUP;
	}
	memcpy(out, x86_64_recorder + t->start, pad.size);
	if (x86_64_branch(0xe9, request->from, pad.start, pad.patch) ||
	    x86_64_branch(0xe9, at + (t->moved - t->start), request->behind, jump) ||
	    x86_64_branch(0xe9, pad.tail, request->behind, back)) {
		*why_out = "the pad is out of reach";
		return -ENOTSUP;
	}
	struct pad_head head = make_head(request, request->behind);
	memcpy(out, &head, sizeof(head));
	*pad_out = pad;
	return 0;
}

/* push of the callee-saved register of @request: always two bytes, with a REX prefix. */
static void put_push(const struct pad_request *request, uint8_t out[2])
{
	static const uint8_t reg[] = {5, 3, 12, 13, 14, 15}; /* as arch_native->dwarf_saved */
	uint8_t r = reg[request->saved];

	out[0] = r < 8 ? 0x40 : 0x41;
	out[1] = (uint8_t)(0x50 | (r & 7));
}

/* Whether the templates match this file, and fit in a pad's room. */
static bool has_templates(void)
{
	const struct recorder_table *t = table();

	return t->magic == RECORDER_MAGIC && t->call.end - t->call.sample_alloc <= PAD_ROOM &&
	       t->tracked.end - t->tracked.sample_free <= PAD_ROOM &&
	       t->plain.end - t->plain.start <= PAD_ROOM &&
	       t->jump.end - t->jump.exact_free <= PAD_ROOM &&
	       t->marker.end - t->marker.start <= PAD_ROOM;
}

static __typeof__(&table()->call) find_template(const struct pad_request *request)
{
	const struct pad_probe *p = &request->probe;

	if (p->kind == PAD_FREE || p->kind == PAD_THROW_CHECK || p->kind == PAD_LABELLED)
		return &table()->jump;
	if (p->kind == PAD_DELETE)
		return &table()->tracked;
	/* tracked leaves unsampled calls without asking the recorder */
	if (request->is_sampling)
		return p->is_leaf || p->is_string ? &table()->call : &table()->tracked;
	return pad_is_plain(p) ? &table()->plain : &table()->call;
}

/* The code to be placed before the template, as its entry; 0: none. */
static uint32_t find_short_way(const struct pad_request *request)
{
	__typeof__(&table()->call) t = find_template(request);
	const struct pad_probe *p = &request->probe;

	if (request->is_sampling && pad_is_plain(p))
		return t->sample_alloc;
	/* short ways free the first argument, and hide releases inside */
	if (!pad_is_release(p) || p->is_open || p->block_arg != 0)
		return 0;
	return request->is_sampling ? t->sample_free : t->exact_free;
}

int arch_make_pad(const struct pad_request *request, uint8_t *out, struct pad *pad_out,
		  const char **why_out)
{
	*why_out = "its pad has no place";
	if (!has_templates() || request->at % PAD_ALIGN != 0)
		return -EINVAL;
	if (pad_is_marker(&request->probe))
		return make_marker_pad(request, out, pad_out, why_out);
	__typeof__(&table()->call) t = find_template(request);
	uint32_t before = find_short_way(request), start = before ? before : t->start;
	uint32_t size = t->end - start, moved_at = t->moved - start;
	taddr_t at = request->at;
	struct arch_move m = {.code = request->code,
			     .code_size = request->code_size,
			     .from = request->from,
			     .min_bytes = request->code_size,
			     .to = at + moved_at,
			     .out = out + moved_at,
			     .out_size = size - moved_at};
	struct pad pad = {
		.at = at, .size = size, .patch_size = X86_JUMP_SIZE, .straight = at + moved_at};

	if (request->code_size < X86_JUMP_SIZE) {
		*why_out = "the function has no room for a jump";
		return -ENOTSUP;
	}
	memcpy(out, x86_64_recorder + start, size);
	if (x86_64_relocate(&m)) {
		*why_out = m.why;
		return -ENOTSUP;
	}
	if (t->down)
		put_push(request, out + (t->down - start));
	pad.start = before ? at : at + (t->entry - start);
	taddr_t back = at + (t->back - start);
	if (x86_64_branch(0xe9, m.from, pad.start, pad.patch) ||
	    x86_64_branch(0xe9, back, m.from, out + (t->back - start))) {
		*why_out = "the pad is out of reach";
		return -ENOTSUP;
	}
	pad.bias = at - start;
	pad.patch_at = m.from;
	pad.moved = (uint32_t)m.moved;
	pad.pushes_return = m.pushes_return;
	pad.after = t->after ? at + (t->after - start) : 0;
	pad.entry_trap = at + (t->entry_trap - start);
	pad.leave_trap = t->leave_trap ? at + (t->leave_trap - start) : 0;
	pad.tail = t->tail ? at + (t->tail - start) : back;
	pad.exit[0] = (struct pad_exit){pad.straight, back};
	if (t->ret)
		pad.exit[1] = (struct pad_exit){at + (t->ret - start), pad.tail};
	struct pad_head head = make_head(request, pad.after);
	memcpy(out + (t->start - start), &head, sizeof(head));
	*pad_out = pad;
	return 0;
}
