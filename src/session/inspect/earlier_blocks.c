/*
 * The blocks of a process are known with certainty if
 *
 *	its malloc is supported by src/inspect, and no other object has one
 *	no thread is in the middle of malloc
 *	each heap could be walked to its end, and all chunks on lists are free in it
 *	all memory that malloc has from the kernel was found
 *	it is recorded where each block begins
 */
#include "session/inspect/earlier_blocks.h"

#include <string.h>

#include "base/alloc.h"
#include "base/amount.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/text.h"
#include "output/inspect_report.h"
#include "profile/profile.h"
#include "session/inspect/inspect_stopped.h"
#include "session/inspect/object_names.h"
#include "session/memory_source.h"
#include "session/session.h"
#include "symbols/code_owner.h"
#include "tracee/state/module.h"
#include "tracee/state/probe.h"
#include "tracee/state/space.h"

#define PREFETCHED 16u

struct earlier_block {
	taddr_t addr;
	uint64_t size : 46, type : 18;
};
#define EARLIER_SIZE_MAX ((UINT64_C(1) << 46) - 1)

struct earlier_blocks {
	VEC(struct earlier_block) list;
	struct inspect_stopped look; /* has their types */
	bool has_look;
	uint32_t space;          /* its id */
	char *doubt;             /* why they are not known; NULL: they are */
};

bool earlier_blocks_are_wanted(const struct options *o)
{
	return o->attach.earlier_blocks && options_attach(o) && o->profile.heap &&
	       !o->profile.pages_as_heap && o->tracing.sources & 1u << SOURCE_HEAP &&
	       !options_sample_interval(o) && !options_sample_only(o);
}

void earlier_blocks_free(struct earlier_blocks *e)
{
	if (!e)
		return;
	vec_deinit(&e->list);
	if (e->has_look)
		inspect_stopped_deinit(&e->look);
	free(e->doubt);
	free(e);
}

static void forget(struct run *run)
{
	earlier_blocks_free(run->earlier);
	run->earlier = NULL;
}

/* -- are they known? -- */

static bool has_malloc(const struct module *m)
{
	for (size_t i = 0; m->sites && i < m->sites->list.count; i++)
		if (m->sites->list.data[i].probe->function == FUNCTION_MALLOC)
			return true;
	return false;
}

/* Whether @m has the allocator that was found. */
static bool has_found(const struct inspect_stopped *l, const struct module *m)
{
	const char *name = l->report.other.name ? malloc_module_name(m) : NULL;

	return name && strcmp(name, l->report.other.name) == 0;
}

/* glibc's: musl's is its libc. */
static bool is_loader(const struct module *m)
{
	const char *name = text_base_name(m->path);

	return text_begins_with(name, "ld-") && !text_begins_with(name, "ld-musl");
}

/* Whether the dynamic linker has not loaded an object with malloc yet: then there are no blocks. */
static bool is_before_malloc(const struct inspect_stopped *l)
{
	bool has_loader = false;

	for (size_t i = 0; i < l->modules.list.count; i++) {
		const struct module *m = l->modules.list.data[i];

		if (is_loader(m))
			has_loader = true;
		else if (has_malloc(m) || !(m->sites || m->is_vdso))
			return false;
	}
	return has_loader && !l->malloc.libc.module && !l->report.other.name;
}

/* An object besides libc's and that of the allocator that programs may call malloc of; or NULL. */
static const struct module *find_rival(const struct inspect_stopped *l)
{
	for (size_t i = 0; i < l->modules.list.count; i++) {
		const struct module *m = l->modules.list.data[i];
		bool is_any_loader = text_begins_with(text_base_name(m->path), "ld-");

		if (m != l->malloc.libc.module && !is_any_loader && has_malloc(m) &&
		    !has_found(l, m))
			return m;
	}
	return NULL;
}

static uint64_t missing_bytes(const struct inspect_report *r)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < r->heaps.arenas.count; i++)
		sum += r->heaps.arenas.data[i].missing_bytes;
	return sum;
}

/* Why the blocks of @l may be incomplete or wrong; NULL: they are neither. */
static char *find_doubt(const struct inspect_stopped *l)
{
	const struct inspect_report *r = &l->report;
	const struct module *rival = find_rival(l);

	if (rival)
		return xasprintf("its malloc may be that of %s", text_base_name(rival->path));
	if (is_before_malloc(l))
		return NULL;
	if (!l->malloc.libc.module && !r->other.name)
		return xstrdup("its malloc is not glibc's");
	if (!inspect_stopped_knows_glibc(l))
		return xasprintf("its malloc is glibc %u.%u's, which ptmem does not know",
				 l->glibc_major, l->glibc_minor);
	if (!inspect_stopped_knows_other(l))
		return xasprintf("its malloc is a %s's of a version that ptmem does not know",
				 r->other.name);
	if (l->inside > 0)
		return xasprintf("%u thread%s did not leave malloc", l->inside,
				 l->inside == 1 ? "" : "s");
	if (!l->has_arena && !r->other.name)
		return xstrdup("its malloc has not been used");
	if (r->other.sums.loose_blocks > 0)
		return xasprintf("where %llu of them begin is not recorded, since they may be "
				 "aligned", (unsigned long long)r->other.sums.loose_blocks);
	if (!inspect_is_consistent(r))
		return xstrdup("its heap is not consistent");
	if (l->has_arena && (!r->is_mmapped_complete || missing_bytes(r) > 0))
		return xstrdup("parts of its heap were not found");
	return NULL;
}

static void keep_block(void *ctx, taddr_t addr, uint64_t usable, uint32_t type)
{
	struct earlier_blocks *e = ctx;

	*vec_add(&e->list) = (struct earlier_block){
		.addr = addr, .size = MIN(usable, EARLIER_SIZE_MAX), .type = type};
}

void earlier_blocks_read(void *ctx, struct address_space *space)
{
	struct run *run = ctx;
	struct earlier_blocks *e = xcalloc(1, sizeof(*e));

	forget(run);
	e->space = space->id;
	run->earlier = e;
	const struct inspect_wish wish = {
		.block = keep_block, .ctx = e, .only_blocks = true, .wants_types = true};
	int rc = inspect_stopped(run->target, space, &wish, &e->look);

	if (rc != 0) {
		e->doubt = xasprintf("its memory cannot be read: %s", strerror(-rc));
		return;
	}
	e->has_look = true;
	log_debug("process %d: threads left malloc in %u moments and %u steps",
		  (int)space->processes.pid, e->look.moments, e->look.steps);
	inspect_stopped_version(&e->look);
	e->doubt = find_doubt(&e->look);
}

/* -- their events -- */

static void add_block(struct session *s, const struct event *ev)
{
	if (s->events.writer)
		events_writer_event(s->events.writer, profile_calltree(s->heap.profile), ev);
	if (s->heap.flows)
		flows_event(s->heap.flows, ev);
	profile_event(s->heap.profile, ev);
}

/* A file of events has its name: a replay has no symbol at its address. */
static uint32_t make_frame(struct session *s, const char *text)
{
	struct calltree *tree = profile_calltree(s->heap.profile);
	uint32_t frame = pseudo_frame_get(s->run->symbols, tree, text, NULL);
	const struct events_name name = {.pc = calltree_frame(tree, frame)->key, .name = text};

	if (s->events.writer)
		events_writer_name(s->events.writer, &name);
	return frame;
}

/*
 * Whether only an allocator makes objects of type @t: their functions are in its library. The
 * program's own types that are derived from such have their functions in the program.
 */
static bool is_allocators(const struct held_modules *modules, const struct block_type *t)
{
	uint64_t vaddr;
	const struct module *m = t->table ? held_modules_find(modules, t->table, &vaddr) : NULL;

	return m && standard_malloc(m->path);
}

/* A node for each type: as if it had called what made all of these blocks. */
static uint32_t *make_nodes(struct session *s, const struct inspect_stopped *look)
{
	const struct block_types *types = &look->report.types;
	struct calltree *tree = profile_calltree(s->heap.profile);
	uint32_t *node = xcalloc(types->list.count + 1, sizeof(*node));
	uint32_t earlier = types->list.count ? make_frame(s, EARLIER_BLOCKS_FRAME) : 0;
	char text[INSPECT_TYPE_SIZE];

	for (size_t i = 0; i < types->list.count; i++) {
		_cleanup_free_ char *name =
			xasprintf("[%s]", inspect_type_text(&types->list.data[i], text));

		uint32_t frame = make_frame(s, name);

		if (s->heap.own_types < OWN_TYPES_MAX &&
		    is_allocators(&look->modules, &types->list.data[i]))
			s->heap.own_type[s->heap.own_types++] = frame;
		node[i] = calltree_get_child(tree, calltree_get_child(tree, 0, frame), earlier);
	}
	return node;
}

static void add_blocks(struct session *s, struct earlier_blocks *e)
{
	struct event ev = {.kind = EVENT_EARLIER, .time_ns = s->process.start_ns};

	type_names_find(&e->look.report.types, &e->look.modules);
	_cleanup_free_ uint32_t *node = make_nodes(s, &e->look);

	profile_reserve(s->heap.profile, e->list.count);
	for (size_t i = 0; i < e->list.count; i++) {
		const struct earlier_block *b = &e->list.data[i];

		if (i + PREFETCHED < e->list.count)
			profile_prefetch(s->heap.profile, b[PREFETCHED].addr);
		ev.addr = b->addr;
		ev.size = b->size;
		ev.node = node[b->type];
		add_block(s, &ev);
	}
}

void session_add_earlier_blocks(struct session *s)
{
	struct earlier_blocks *e = s->run->earlier;

	if (!e || !s->space || e->space != s->space->id)
		return;
	if (e->doubt) {
		log_info("process %u: blocks from before the attach are not known: %s",
			 s->process.pid, e->doubt);
		forget(s->run);
		return;
	}
	add_blocks(s, e);
	s->space->image.has_earlier_blocks = false;
	forget(s->run);
}
