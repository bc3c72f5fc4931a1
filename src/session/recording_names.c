/* See recording_names.h. */
#include "session/recording_names.h"

#include "base/elf_file.h"
#include "profile/history.h"
#include "session/recording_run_internal.h"
#include "session/session.h"

static bool find_object(void *ctx, uint32_t id, struct recording_object *out)
{
	const struct session *s = ctx;
	const struct module *m = run_module(s->run, id);

	if (!m)
		return false;
	*out = (struct recording_object){.path = m->path, .start = m->start, .end = m->end};
	if (!m->file)
		return true;
	out->build_id = m->file->build_id;
	out->build_id_size = m->file->build_id_size;
	const struct elf_segment *segment = elf_file_segment(m->file, m->start - m->bias);

	if (segment)
		out->offset = segment->offset + (m->start - m->bias - segment->vaddr);
	return true;
}

static const char *find_function(void *ctx, uint32_t frame)
{
	struct session *s = ctx;
	const struct calltree_frame *f = calltree_frame(profile_calltree(s->heap.profile), frame);
	const struct module *m = run_module(s->run, f->module);

	if (!m) /* it may be a pseudo frame, whose name is known */
		return symbols_find(s->run->symbols, NULL, f->pc, SYMBOL_REAL)->frame->name;
	return symbols_function(s->run->symbols, m, f->pc);
}

struct recording_input session_recording_input(struct session *s, const struct recording_span *span,
					       const struct report *report, bool is_quick)
{
	const struct profile *p = report->profile;

	return (struct recording_input){
		.report = report,
		.history = span->part ? profile_history(p) : profile_whole_history(p),
		.names = {find_object, is_quick ? find_function : NULL, s, s->image.program},
		.releases = s->heap.releases,
	};
}
