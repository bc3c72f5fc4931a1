/*
 * Assembles pads: a template from the blob (blob_pad.S), its head filled in, the
 * function's moved first instructions at its end.
 */
#include <errno.h>
#include <string.h>

#include "arch/x86_64/blob.h"
#include "arch/x86_64/x86_64.h"
#include "base/log.h"

extern const uint8_t x86_64_blob[], x86_64_blob_end[], x86_64_blob_elf[], x86_64_blob_elf_end[];

static const struct x86_blob_table *table(void)
{
	return (const struct x86_blob_table *)(const void *)x86_64_blob;
}

struct pad_blob arch_pad_blob(void)
{
	CHECK(table()->magic == BLOB_MAGIC);
	return (struct pad_blob){
		.code = x86_64_blob,
		.size = (size_t)(x86_64_blob_end - x86_64_blob),
		.elf = x86_64_blob_elf,
		.elf_size = (size_t)(x86_64_blob_elf_end - x86_64_blob_elf),
		.full_trap = table()->full_trap,
	};
}

/* Whether the recorder's short way will do: the first argument is the size, the rest does not matter. */
static bool is_plain(const struct pad_probe *p)
{
	return p->kind == PAD_ALLOC && p->size_arg == 0 && p->count_arg == PAD_NO_ARG &&
	       p->align_arg == PAD_NO_ARG && p->out_arg == PAD_NO_ARG && p->fixed_align == 0;
}

static bool is_marker(const struct pad_probe *probe)
{
	return probe->kind >= PAD_REQUEST;
}

static struct x86_pad_head make_head(const struct pad_request *request, uint64_t after)
{
	const struct x86_blob_table *t = table();
	uint32_t enter = request->probe.kind == PAD_FREE ? t->enter_free :
			 request->probe.kind == PAD_THROW_CHECK ? t->enter_throw :
			 is_marker(&request->probe) ? t->enter_marker :
			 is_plain(&request->probe) ? t->enter_plain : t->enter_call;
	uint32_t raw = is_marker(&request->probe) ? t->raw_marker : t->raw;

	return (struct x86_pad_head){
		.control = request->control,
		.enter = request->blob + enter,
		.leave = request->blob + (is_plain(&request->probe) ? t->leave_plain : t->leave),
		.raw = request->blob + raw,
		.finish = request->blob + t->finish,
		.after = after,
		.probe = request->probe,
	};
}

/* A marker is left out as a whole: nothing has to be moved. */
static int make_marker_pad(const struct pad_request *request, uint8_t *out, struct pad *pad_out,
			   const char **why_out)
{
	__typeof__(&table()->marker) t = &table()->marker;
	taddr_t at = request->at;
	struct pad pad = {
		.at = at,
		.size = t->end - t->start,
		.patch_size = X86_JUMP_SIZE,
		.patch_at = request->entry,
		.moved = X86_JUMP_SIZE,
		.bias = at - t->start,
		.start = at + (t->entry - t->start),
		.straight = request->behind,
		.entry_trap = at + (t->entry_trap - t->start),
		.tail = at + (t->back - t->start),
		.exit[0] = {at + (t->moved - t->start), at + (t->back - t->start)},
	};
	uint8_t *jump = out + (t->moved - t->start), *back = out + (t->back - t->start);

	CHECK(pad.size <= PAD_ROOM && at % PAD_ALIGN == 0);
	if (request->behind - request->entry < X86_JUMP_SIZE) {
		*why_out = "it has no room for a jump";
		return -ENOTSUP;
	}
	memcpy(out, x86_64_blob + t->start, pad.size);
	if (x86_64_branch(0xe9, request->entry, pad.start, pad.patch) ||
	    x86_64_branch(0xe9, at + (t->moved - t->start), request->behind, jump) ||
	    x86_64_branch(0xe9, pad.tail, request->behind, back)) {
		*why_out = "the pad is out of reach";
		return -ENOTSUP;
	}
	struct x86_pad_head head = make_head(request, request->behind);
	memcpy(out, &head, sizeof(head));
	*pad_out = pad;
	return 0;
}

int arch_make_pad(const struct pad_request *request, uint8_t *out, struct pad *pad_out,
		  const char **why_out)
{
	if (is_marker(&request->probe))
		return make_marker_pad(request, out, pad_out, why_out);
	bool is_jump = request->probe.kind == PAD_FREE || request->probe.kind == PAD_THROW_CHECK;
	__typeof__(&table()->call) t = is_jump ? &table()->jump : &table()->call;
	uint32_t size = t->end - t->start, moved_at = t->moved - t->start;
	taddr_t at = request->at;
	struct x86_move m = {.code = request->code,
			     .code_size = request->code_size,
			     .from = request->entry,
			     .to = at + moved_at,
			     .out = out + moved_at,
			     .out_size = size - moved_at};
	struct pad pad = {
		.at = at, .size = size, .patch_size = X86_JUMP_SIZE, .straight = at + moved_at};

	CHECK(size <= PAD_ROOM && at % PAD_ALIGN == 0);
	memcpy(out, x86_64_blob + t->start, size);
	if (x86_64_displace(&m)) {
		*why_out = m.why;
		return -ENOTSUP;
	}
	if (m.moved < X86_JUMP_SIZE) {
		*why_out = "the function has no room for a jump";
		return -ENOTSUP;
	}
	taddr_t back = at + (t->back - t->start);
	if (x86_64_branch(0xe9, m.from, at + (t->entry - t->start), pad.patch) ||
	    x86_64_branch(0xe9, back, m.from, out + (t->back - t->start))) {
		*why_out = "the pad is out of reach";
		return -ENOTSUP;
	}
	pad.bias = at - t->start;
	pad.patch_at = m.from;
	pad.start = at + (t->entry - t->start);
	pad.moved = (uint32_t)m.moved;
	pad.pushes_return = m.pushes_return;
	pad.after = t->after ? at + (t->after - t->start) : 0;
	pad.entry_trap = at + (t->entry_trap - t->start);
	pad.leave_trap = t->leave_trap ? at + (t->leave_trap - t->start) : 0;
	pad.tail = t->tail ? at + (t->tail - t->start) : back;
	pad.exit[0] = (struct pad_exit){pad.straight, back};
	if (t->ret)
		pad.exit[1] = (struct pad_exit){at + (t->ret - t->start), pad.tail};
	struct x86_pad_head head = make_head(request, pad.after);
	memcpy(out, &head, sizeof(head));
	*pad_out = pad;
	return 0;
}
