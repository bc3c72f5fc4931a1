/*
 * Assembles pads: a copy of a template (recorder_template.S) with its head filled in and the
 * function's moved instruction at its end. Which template, and where the pad enters the recorder,
 * the table at the start of the recorder's code says; only this file reads it.
 */
#include <errno.h>
#include <string.h>

#include "arch/aarch64/aarch64.h"
#include "arch/aarch64/pad_layout.h"
#include "arch/pad.h"
#include "arch/recorder/pad_head.h"

_Static_assert(sizeof(struct pad_head) == PAD_HEAD_SIZE &&
		       offsetof(struct pad_head, enter) == PAD_HEAD_ENTER &&
		       offsetof(struct pad_head, leave) == PAD_HEAD_LEAVE &&
		       offsetof(struct pad_head, raw) == PAD_HEAD_RAW &&
		       offsetof(struct pad_head, finish) == PAD_HEAD_FINISH,
	       "as in pad_layout.h");
_Static_assert(PAD_RETURN_BELOW == PAD_PUSHED_SIZE, "return_at is the mark's address");

/* A template: offsets from the start of the recorder; 0 if there is none. */
struct template {
	uint32_t start, entry, entry_trap, after, leave_trap, moved, end, back, ret, tail;
};

/* Offsets from there. */
struct recorder_table {
	uint32_t magic;
	struct recorder_names names;
	struct template call, jump;
};

extern const uint8_t aarch64_recorder[], aarch64_recorder_end[], aarch64_recorder_elf[],
	aarch64_recorder_elf_end[];

static const struct recorder_table *table(void)
{
	return (const struct recorder_table *)(const void *)aarch64_recorder;
}

struct recorder_image arch_recorder_image(void)
{
	return (struct recorder_image){
		.code = aarch64_recorder,
		.size = (size_t)(aarch64_recorder_end - aarch64_recorder),
		.elf = aarch64_recorder_elf,
		.elf_size = (size_t)(aarch64_recorder_elf_end - aarch64_recorder_elf),
		.full_trap = table()->names.full_trap,
		.full_answer = 2, /* x2 */
		.ticks = table()->names.ticks,
		.ticks_size = A64_SIZE,
		.unsure_load = table()->names.unsure_load,
		.unsure_load_size = A64_SIZE,
		.label_load = table()->names.label_load,
		.label_load_size = 2 * A64_SIZE,
	};
}

int arch_make_pad(const struct pad_request *request, uint8_t *out, struct pad *pad_out,
		  const char **why_out)
{
	const struct pad_probe *p = &request->probe;
	bool is_jump = p->kind == PAD_FREE || p->kind == PAD_THROW_CHECK;
	const struct template *t = is_jump ? &table()->jump : &table()->call;
	uint32_t moved_at = t->moved - t->start, patch, back;
	taddr_t at = request->at, bias = at - t->start;
	struct arch_move m = {
		.code = request->code,
		.code_size = request->code_size,
		.from = request->from,
		.min_bytes = A64_SIZE,
		.to = at + moved_at,
		.out = out + moved_at,
		.out_size = PAD_MOVED_ROOM,
	};

	*why_out = "its pad has no place";
	if (table()->magic != RECORDER_MAGIC || t->end - t->start > PAD_ROOM || at % PAD_ALIGN != 0)
		return -EINVAL;
	*why_out = "markers and labels have no pads on this CPU";
	if (p->kind >= PAD_LABELLED)
		return -ENOTSUP;
	memcpy(out, aarch64_recorder + t->start, t->end - t->start);
	int err = aarch64_relocate(&m);

	*why_out = err ? m.why : "the pad is out of reach";
	if (err || !a64_branch(A64_BRANCH, m.from, bias + t->entry, &patch) ||
	    !a64_branch(A64_BRANCH, bias + t->back, m.from, &back))
		return -ENOTSUP;
	a64_store(out + (t->back - t->start), back);
	*pad_out = (struct pad){
		.at = at,
		.size = t->end - t->start,
		.patch_size = A64_SIZE,
		.patch_at = m.from,
		.moved = (uint32_t)m.moved,
		.pushes_return = m.pushes_return,
		.bias = bias,
		.start = bias + t->entry,
		.straight = bias + t->moved,
		.after = t->after ? bias + t->after : 0,
		.entry_trap = bias + t->entry_trap,
		.leave_trap = t->leave_trap ? bias + t->leave_trap : 0,
		.tail = bias + (t->tail ? t->tail : t->back),
		.exit[0] = {bias + t->moved, bias + t->back},
	};
	if (t->ret)
		pad_out->exit[1] = (struct pad_exit){bias + t->ret, bias + t->tail};
	a64_store(pad_out->patch, patch);
	struct pad_head head = pad_make_head(request, &table()->names, pad_out->after);
	memcpy(out, &head, sizeof(head));
	return 0;
}
