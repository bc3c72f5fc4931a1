/* A source for writers: its profile, and names for the frames of its call tree. */
#include "session/source.h"

#include <string.h>

#include "session/pseudo_frame.h"
#include "session/session.h"

static struct frame_names *get_names(struct source *src, uint32_t frame)
{
	uint64_t changes = symbols_changes(src->session->run->symbols);
	size_t known = src->names_changes == changes ? src->names.count : 0;

	if (frame >= known) {
		vec_reserve(&src->names, (size_t)frame + 1);
		memset(&src->names.data[known], 0,
		       (src->names.capacity - known) * sizeof(*src->names.data));
		src->names.count = src->names.capacity;
		src->names_changes = changes;
	}
	return &src->names.data[frame];
}

/* For the call tree of @ctx, a struct source. */
static const struct symbol *find_symbol(void *ctx, uint32_t frame, enum symbol_part part)
{
	struct source *src = ctx;
	struct run *run = src->session->run;
	const struct symbol **known = &get_names(src, frame)->part[part];

	if (*known)
		return *known;
	const struct calltree_frame *f = calltree_frame(profile_calltree(src->profile), frame);

	return *known = symbols_find(run->symbols, run_module(run, f->module), f->pc, part);
}

bool source_is_counted(struct source *src, uint32_t frame)
{
	struct run *run = src->session->run;
	bool *is_counted = &get_names(src, frame)->is_counted;

	if (*is_counted)
		return true;
	const struct calltree_frame *f = calltree_frame(profile_calltree(src->profile), frame);
	const char *name = symbols_function(run->symbols, run_module(run, f->module), f->pc);

	return *is_counted = name && !filter_is_alloc_fn(run->filter, name);
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
		.my_code = o->names.my_code.rule.count ? &o->names.my_code : NULL,
		.fullpath_after = o->names.fullpath_after.data,
		.fullpath_after_count = o->names.fullpath_after.count,
		.memory = memory_kind(src),
	};
	if (src->kind == SOURCE_FAULTS)
		out->cut_frame =
			pseudo_frame_find(profile_calltree(src->profile), PSEUDO_TRUNCATED);
}
