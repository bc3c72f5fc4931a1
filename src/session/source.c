/* A source for writers: its profile, and names for the frames of its call tree. */
#include "session/source.h"

#include "session/pseudo_frame.h"
#include "session/session.h"

/* For the call tree of @ctx, a struct source. */
static const struct symbol *find_symbol(void *ctx, uint32_t frame, enum symbol_part part)
{
	struct source *src = ctx;
	struct run *run = src->session->run;
	const struct calltree_frame *f = calltree_frame(profile_calltree(src->profile), frame);
	return symbols_find(run->symbols, run_module(run, f->module), f->pc, part);
}

static enum memory_kind memory_kind(const struct source *src)
{
	static const uint8_t kinds[SOURCE_COUNT] = {
		[SOURCE_HEAP] = MEMORY_HEAP, [SOURCE_BRK] = MEMORY_BRK,
		[SOURCE_MMAP] = MEMORY_MAPPED, [SOURCE_FAULTS] = MEMORY_FAULTS,
	};
	bool is_pages = src->kind == SOURCE_HEAP &&
			src->session->run->options->profile.pages_as_heap;

	return is_pages ? MEMORY_PAGES : (enum memory_kind)kinds[src->kind];
}

void source_fill_report(struct source *src, struct report *out)
{
	struct session *s = src->session;
	const struct options *o = s->run->options;
	*out = (struct report){
		.profile = src->profile,
		.filter = s->run->filter,
		.symbol = find_symbol,
		.symbol_ctx = src,
		.desc = src->kind == SOURCE_HEAP ? s->process.desc : o->desc,
		.command = s->process.command,
		.threshold = o->profile.threshold,
		.pid = s->process.pid,
		.fullpath_after = o->names.fullpath_after.data,
		.fullpath_after_count = o->names.fullpath_after.count,
		.memory = memory_kind(src),
	};
	if (src->kind == SOURCE_FAULTS)
		out->cut_frame =
			pseudo_frame_find(profile_calltree(src->profile), PSEUDO_TRUNCATED);
}
