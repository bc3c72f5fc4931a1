/* By way of a recording that has only what pprof shows: objects, frames, paths. */
#include "recording/go_pprof.h"

#include <stdlib.h>

#include "base/hash.h"
#include "recording/recording.h"
#include "recording/recording_pprof.h"

struct known_frame {
	taddr_t pc;
	uint64_t row;
};

struct go_recording {
	struct recording *r;
	HASH(struct known_frame) frames;
};

static uint64_t frame_row(struct go_recording *g, const struct inspect_go_frame *f)
{
	uint64_t hash = hash_u64(f->pc);
	struct known_frame *known = hash_find(&g->frames, hash, e, e->pc == f->pc);

	if (known)
		return known->row;
	const uint64_t row[FRAME_COLUMNS] = {
		[FRAME_FUNCTION] = recording_string(g->r, f->name),
		[FRAME_FILE] = recording_string(g->r, f->file), [FRAME_LINE] = f->line,
		[FRAME_OBJECT] = 1, [FRAME_ADDRESS] = f->pc - 1};

	known = hash_add(&g->frames, hash);
	*known = (struct known_frame){f->pc, recording_rows(g->r, RECORDING_FRAMES)};
	recording_add(g->r, RECORDING_FRAMES, row);
	return recording_rows(g->r, RECORDING_FRAMES) - 1;
}

static void add_path(struct go_recording *g, const struct inspect_go *go,
		     const struct inspect_go_path *p)
{
	uint64_t node = 0;

	for (uint32_t i = p->frames; i-- > 0;) {
		const uint64_t row[NODE_COLUMNS] = {
			[NODE_PARENT] = node,
			[NODE_FRAME] = frame_row(g, &go->frames.data[p->frame + i])};

		recording_add(g->r, RECORDING_NODES, row);
		node = recording_rows(g->r, RECORDING_NODES);
	}
	const uint64_t leaf[LEAF_COLUMNS] = {[LEAF_NODE] = node};

	recording_add(g->r, RECORDING_LEAVES, leaf);
}

void go_pprof_write(FILE *out, const struct inspect_go *g)
{
	struct go_recording to = {.r = recording_new()};
	struct pprof_value *value = xcalloc(g->paths.count + 1, sizeof(*value));
	const uint64_t object[OBJECT_COLUMNS] = {
		[OBJECT_PATH] = recording_string(to.r, g->path), [OBJECT_START] = g->start,
		[OBJECT_END] = g->end};

	recording_add(to.r, RECORDING_OBJECTS, object);
	to.r->interval = g->rate;
	for (size_t i = 0; i < g->paths.count; i++) {
		const struct go_estimate *e = &g->paths.data[i].counts;

		add_path(&to, g, &g->paths.data[i]);
		value[i] = (struct pprof_value){
			{e->live_bytes, e->live, e->allocated_bytes, e->allocated}};
	}
	recording_pprof_write(out, to.r, value, false);
	free(value);
	hash_deinit(&to.frames);
	recording_free(to.r);
}
