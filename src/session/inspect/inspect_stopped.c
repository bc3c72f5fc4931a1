/*
 * A thread is inside malloc if a pc on its stack is: it may be in the kernel, or in a signal
 * handler that interrupted malloc.
 */
#include "session/inspect/inspect_stopped.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/uio.h>

#include "base/cleanup.h"
#include "base/elf_file.h"
#include "base/proc.h"
#include "base/text.h"
#include "session/exec_info.h"
#include "session/inspect/graph_names.h"
#include "session/inspect/malloc_module.h"
#include "session/inspect/object_names.h"
#include "tracee/control/attach.h"
#include "tracee/control/roots.h"
#include "tracee/control/target.h"
#include "tracee/state/module.h"
#include "tracee/state/space.h"
#include "unwind/unwind.h"

#define PCS 64u
#define MOMENTS_MAX 200u
#define STEPS_MAX 2048u /* of all threads: each one waits for a CPU twice */
#define MOMENT_NS 30000u

/* -- threads -- */

struct collector {
	struct address_space *space;
	struct unwind *unwind;
	struct inspect_input *in;
	const struct malloc_modules *malloc;
	const struct written_pages *written; /* NULL = unknown */
	struct copy_ranges unchanged;
	bool is_last;
};

static const struct module *module_at(void *ctx, taddr_t pc)
{
	return space_find_module(ctx, pc);
}

static bool is_in_own(const struct collector *c, const taddr_t *pc, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (space_is_own(c->space, pc[i]))
			return true;
	return false;
}

static bool have_pc(const taddr_t *pc, size_t count, taddr_t wanted)
{
	for (size_t i = 0; i < count; i++)
		if (pc[i] == wanted)
			return true;
	return false;
}

/* Where the outermost function of malloc on a stack returns to; 0: no frame is outside of it. */
static taddr_t find_way_out(const struct malloc_modules *malloc, const taddr_t *pc, size_t count)
{
	for (size_t i = count; i-- > 0;)
		if (malloc_modules_have(malloc, pc + i, 1))
			return i + 1 < count ? pc[i + 1] : 0;
	return 0;
}

static void add_thread(void *ctx, const struct thread_view *v)
{
	struct collector *c = ctx;
	struct glibc_thread *th = vec_add(&c->in->threads);
	taddr_t pc[PCS], sp[PCS];
	enum unwind_end end;
	size_t n = 1;

	pc[0] = v->pc;
	sp[0] = v->sp;
	unwind_keep_sp(c->unwind, sp);
	if (v->stack)
		n = unwind_walk_stopped(c->unwind, v->stack, pc, PCS, &end);
	unwind_keep_sp(c->unwind, NULL);
	if (c->in->wants_frames)
		inspect_add_frames(c->in, v->tid, pc, sp, n);

	*th = (struct glibc_thread){
		.tid = v->tid, .sp = v->sp, .thread_pointer = v->thread_pointer};
	if (v->stack)
		th->interrupted_count = (uint32_t)unwind_interrupted(
			c->unwind, v->stack, th->interrupted, THREAD_INTERRUPTED);
	/* a stub is reported together with the entry of its function */
	size_t first = v->has_returned ? MIN(n, (size_t)2) : 0;

	th->is_inside = v->has_call || malloc_modules_have(c->malloc, pc + first, n - first) ||
			is_in_own(c, pc + first, n - first) ||
			(v->delete_return && have_pc(pc, n, v->delete_return));
	if (th->is_inside)
		th->way_out = find_way_out(c->malloc, pc, n);
}

static bool wants_thread(void *ctx, pid_t tid)
{
	const struct inspect_input *in = ctx;

	for (size_t i = 0; i < in->threads.count; i++)
		if (in->threads.data[i].tid == tid)
			return in->threads.data[i].is_inside;
	return false; /* it is new: at its first instruction */
}

/* Steps threads out of malloc, one after the other. Whether any has left it. */
static bool step_out(struct target *t, struct collector *c, struct inspect_stopped *out)
{
	bool has_left = false;

	for (size_t i = 0; i < c->in->threads.count && out->steps < STEPS_MAX; i++) {
		const struct glibc_thread *th = &c->in->threads.data[i];

		if (th->is_inside && th->way_out)
			has_left |= target_step_thread(t, c->space, th->tid, th->way_out,
						       &out->steps);
	}
	return has_left;
}

/*
 * Lets threads leave malloc in whatever order, while those that have left wait. A thread that calls
 * it without pause is rarely outside when it is stopped at random, so that all are is a matter of
 * hundreds of moments: those that can be stepped are stepped to its return.
 */
static int settle(struct target *t, struct collector *c, struct inspect_stopped *out)
{
	bool may_step = true;

	for (out->moments = 0;;) {
		c->in->threads.count = 0;
		c->in->frames.count = 0;
		thread_views_each(t, c->space, add_thread, c);
		out->inside = 0;
		for (size_t i = 0; i < c->in->threads.count; i++)
			out->inside += c->in->threads.data[i].is_inside;
		/* all are past their exit stops: their memory is being unmapped */
		if (c->in->threads.count == 0 && !c->is_last)
			return -ESRCH;
		if (out->inside == 0 || c->is_last || out->moments == MOMENTS_MAX)
			return 0;
		if (may_step && step_out(t, c, out)) {
			may_step = false;
			continue;
		}
		may_step = true;
		out->moments++;
		if (!target_run_threads(t, c->space, wants_thread, c->in, MOMENT_NS))
			return -ESRCH;
	}
}

/* -- memory -- */

/*
 * Whether segment @g of @m is where it should be. A program that maps a part of its own code again,
 * as node does, seems to be a second object there, whose other segments are not.
 */
static bool is_mapped(const struct inspect_input *in, const struct module *m,
		      const struct elf_segment *g)
{
	taddr_t page = PAGE_SIZE_MIN, start = ROUND_DOWN(m->bias + g->vaddr, page);
	const struct map *map = maps_find(&in->resident.maps, start);

	return g->filesz == 0 ||
	       (map && *map->path == '/' &&
		map->offset + (start - map->start) == ROUND_DOWN(g->offset, (uint64_t)page));
}

static void add_segments(const struct address_space *s, struct inspect_input *in)
{
	for (size_t i = 0; i < s->modules.count; i++) {
		const struct module *m = s->modules.data[i];

		for (size_t k = 0; m->file && !m->is_vdso && k < m->file->segment_count; k++) {
			const struct elf_segment *g = &m->file->segment[k];

			if (!is_mapped(in, m, g))
				continue;
			inspect_add_segment(in, m->bias + g->vaddr,
					    m->bias + g->vaddr + g->memsz);
		}
	}
}

static void add_own(const struct address_space *s, struct inspect_input *in)
{
	for (size_t i = 0; i < s->own.areas.count; i++) {
		const struct stub_area *a = &s->own.areas.data[i];

		if (!a->is_slack)
			*vec_add(&in->profiler) =
				(struct addr_range){a->start, a->start + a->size};
	}
	if (s->own.shared)
		*vec_add(&in->profiler) =
			(struct addr_range){s->own.shared, s->own.shared + s->own.shared_size};
}

static void add_registers(struct target *t, struct collector *c)
{
	if (!c->in->wants_holders)
		return;
	struct roots *roots = roots_collect_words(t, c->space);

	vec_append(&c->in->registers, &roots->words);
	roots_free(roots);
}

static void examine(struct inspect_stopped *l)
{
	inspect_run(&l->in, &l->report);
	l->is_copied = false;
	l->has_arena = l->report.heaps.arenas.count > 0 && l->report.heaps.arenas.data[0].is_main;
}

/* While the process is stopped: its memory is gone afterwards. */
static void examine_now(struct inspect_stopped *l)
{
	examine(l);
	inspect_input_deinit(&l->in);
	l->in = (struct inspect_input){0};
}

/* What the process shares with ptmem is large, and not the process's. */
static bool is_shared_with_us(const struct inspect_input *in, const struct page_run *run)
{
	const struct map *m = maps_find(&in->resident.maps, run->start);

	for (size_t i = 0; m && m->is_shared && i < in->profiler.count; i++)
		if (run->start >= in->profiler.data[i].start &&
		    run->end <= in->profiler.data[i].end)
			return true;
	return false;
}

/* The resident memory of the process itself: its list is to be freed. */
static struct resident own_pages(const struct inspect_input *in)
{
	struct resident own = in->resident;

	memset(&own.list, 0, sizeof(own.list));
	for (size_t i = 0; i < in->resident.list.count; i++)
		if (!is_shared_with_us(in, &in->resident.list.data[i]))
			*vec_add(&own.list) = in->resident.list.data[i];
	return own;
}

static bool make_copy(struct inspect_stopped *l, struct memory_copy *copy,
		      const struct copy_ranges *unchanged)
{
	struct resident own = own_pages(&l->in);
	bool is_made = copy && memory_copy_make(copy, &own, unchanged, &l->in.source);

	vec_deinit(&own.list);
	if (is_made)
		memory_copy_redirect(copy, &l->in.source);
	l->copy = copy;
	return is_made;
}

/* What VmRSS does not have: by files that take no time. */
static void read_around(pid_t pid, struct inspect_stopped *out)
{
	_cleanup_fclose_ FILE *file = proc_open(pid, "status");
	_cleanup_free_ char *line = NULL;
	struct memory_cgroup group;
	uint64_t anonymous = 0;
	size_t size = 0;

	while (file && getline(&line, &size, file) > 0)
		if (!maps_take_bytes(line, "RssAnon:", &anonymous))
			maps_take_bytes(line, "HugetlbPages:", &out->hugetlb);
	memory_cgroup_find_of(pid, &group);
	out->has_cgroup = memory_cgroup_usage(&group, anonymous, &out->cgroup);
	memory_cgroup_deinit(&group);
}

static int read_all(struct target *t, struct collector *c, struct inspect_stopped *out)
{
	struct address_space *s = c->space;
	int rc = settle(t, c, out);

	if (rc == 0)
		rc = c->written ? resident_read_watched(c->written, &c->in->resident,
							copy_ranges_add, &c->unchanged) :
				  resident_read(s->processes.reader, &c->in->resident);
	if (rc != 0)
		return rc;
	out->rss = c->in->resident.rss;
	out->swap = c->in->resident.swap;
	if (!c->in->only_blocks)
		read_around(s->processes.reader, out);
	add_segments(s, c->in);
	add_own(s, c->in);
	add_registers(t, c);
	return 0;
}

void inspect_stopped_copy_init(struct memory_copy *out, pid_t pid, uint64_t most)
{
	struct proc_statm m;
	bool is_known = proc_statm_read(pid, &m) == 0 && m.resident >= m.shared;
	uint64_t bytes = is_known ? m.resident - m.shared : 0;

	memory_copy_init(out, bytes <= most ? bytes : 0);
}

/* -- objects -- */

static void hold_modules(const struct address_space *s, struct held_modules *out)
{
	for (size_t i = 0; i < s->modules.count; i++)
		*vec_add(&out->list) = module_hold(s->modules.data[i]);
}

void inspect_objects_read(const struct address_space *s, struct inspect_objects *out)
{
	inspect_objects_deinit(out);
	hold_modules(s, &out->modules);
	malloc_modules_find(s->modules.data, s->modules.count, &out->malloc);
	/* what is on every stack */
	if (s->modules.count > 0)
		unwind_prepare(s->modules.data[0]);
	if (out->malloc.libc.module)
		unwind_prepare(out->malloc.libc.module);
}

void inspect_objects_deinit(struct inspect_objects *o)
{
	held_modules_deinit(&o->modules);
	*o = (struct inspect_objects){0};
}

/* Whether @o, which may be NULL, has the objects that @s has now. */
static bool are_known(const struct address_space *s, const struct inspect_objects *o)
{
	if (!o || o->modules.list.count != s->modules.count)
		return false;
	for (size_t i = 0; i < s->modules.count; i++)
		if (o->modules.list.data[i] != s->modules.data[i])
			return false;
	return true;
}

static void call_visit(void *ctx, struct address_space *s)
{
	struct inspect_visit *v = ctx;

	v->rc = v->fn(v, s);
}

int inspect_visit_run(struct inspect_visit *v)
{
	const struct target_options options = {
		.only_reads = true, .makes_calls = v->makes_calls, .probes = {.none = true}};
	const struct event_sink sink = {
		.ctx = v, .before_stop = v->before, .space_new = call_visit};

	v->rc = -ESRCH;
	v->target = target_new(&options, &sink, v->registry);
	int rc = target_attach(v->target, v->pid, &v->problem, &v->detail);

	if (rc == 0) {
		v->stopped_ns = target_stats(v->target)->attach_ns;
		target_detach(v->target);
	}
	target_free(v->target);
	return rc ? rc : v->rc;
}

int inspect_stopped(struct target *t, struct address_space *s, const struct inspect_wish *wish,
		 struct inspect_stopped *out)
{
	const struct unwind_ops ops = {.module = module_at, .ctx = s};
	struct unwind *own = s->sink.unwind ? NULL : unwind_new(arch_native, &ops);
	struct collector c = {.space = s, .in = &out->in, .malloc = &out->malloc,
			      .unwind = own ? own : s->sink.unwind,
			      .written = wish->copy ? wish->written : NULL,
			      .is_last = wish->is_last};

	*out = (struct inspect_stopped){
		.wants_graph = wish->wants_graph,
		.in = {.source = memory_of_process(&s->processes.reader),
		       .block = wish->block, .python_block = wish->python_block,
		       .block_ctx = wish->ctx,
		       .only_blocks = wish->only_blocks, .paths = wish->paths,
		       .touched = wish->touched,
		       .wants_types = wish->wants_types, .wants_holders = wish->wants_holders,
		       .wants_python = wish->wants_graph, .wants_frames = wish->wants_graph}};
	out->in.source.read_file = object_bytes_read;
	out->in.source.file_ctx = &out->modules;
	heap_graph_init(&out->graph);
	out->graph.keeps_edges = wish->wants_graph;
	out->graph.drops_places = wish->drops_places;
	out->graph.containers = wish->containers;
	if (are_known(s, wish->objects))
		out->malloc = wish->objects->malloc;
	else
		malloc_modules_find(s->modules.data, s->modules.count, &out->malloc);
	hold_modules(s, &out->modules);
	out->modules.link = exec_info_link(s->processes.reader, &out->modules.program);
	int rc = read_all(t, &c, out);

	if (rc == 0 && !wish->only_blocks)
		go_state_read(&out->modules, &out->in.source, &out->go);
	out->in.has_go = out->go.module != NULL;

	unwind_free(own);
	if (rc != 0)
		inspect_stopped_deinit(out);
	else if (make_copy(out, wish->copy, &c.unchanged))
		out->is_copied = true;
	else
		examine_now(out);
	vec_deinit(&c.unchanged.list);
	return rc;
}

static void add_plain_thread(void *ctx, const struct thread_view *v)
{
	struct inspect_input *in = ctx;

	*vec_add(&in->threads) = (struct glibc_thread){
		.tid = v->tid, .sp = v->sp, .thread_pointer = v->thread_pointer};
}

int inspect_stopped_spare(struct target *t, struct address_space *s, struct resident *pages,
			  struct inspect_spare_input *out)
{
	struct inspect_input *in = &out->in;
	int rc = 0;

	*out = (struct inspect_spare_input){.reader = s->processes.reader};
	in->source = memory_of_process(&out->reader);
	if (pages)
		in->resident = *pages;
	else
		rc = resident_read(out->reader, &in->resident);
	if (rc != 0)
		return rc;
	in->source.read_file = object_bytes_read;
	in->source.file_ctx = &out->modules;
	hold_modules(s, &out->modules);
	add_segments(s, in);
	thread_views_each(t, s, add_plain_thread, in);
	return 0;
}

void inspect_spare_input_deinit(struct inspect_spare_input *in)
{
	inspect_input_deinit(&in->in);
	held_modules_deinit(&in->modules);
}

bool inspect_stopped_knows_glibc(const struct inspect_stopped *l)
{
	return !l->glibc_major || (l->glibc_major == 2 && l->glibc_minor >= GLIBC_MINOR_MIN);
}

bool inspect_stopped_knows_other(const struct inspect_stopped *l)
{
	const struct allocator_kind *kind = allocator_kind_named(l->report.other.name);

	return !kind || !kind->versions[0] ||
	       text_is_among(l->version, kind->versions, ALLOCATOR_NAMES);
}

void inspect_stopped_version(struct inspect_stopped *l)
{
	const struct allocator_kind *kind = allocator_kind_named(l->report.other.name);

	if (l->malloc.libc.module)
		malloc_module_version(l->malloc.libc.module, &l->glibc_major, &l->glibc_minor);
	if (kind && kind->versions[0] && l->malloc.own.module)
		malloc_module_jemalloc(l->malloc.own.module, l->version);
}

/*
 * The name and the object of another allocator whose malloc and free a program with @l calls:
 * @found if that is one of several, otherwise the first of them; NULL if none is known.
 */
static const char *find_other(const struct held_modules *l, const char *found,
			      const struct module **object_out)
{
	const char *first = NULL;

	for (size_t i = 0; i < l->list.count; i++) {
		const char *name = malloc_module_name(l->list.data[i]);
		bool is_found = name && found && strcmp(name, found) == 0;

		if (is_found || (name && !first)) {
			first = name;
			*object_out = l->list.data[i];
		}
		if (is_found)
			break;
	}
	return first;
}

/* The graph and the copy are not in memory at once for longer than types need both. */
static void find_graph(struct inspect_stopped *l)
{
	l->has_graph = graph_names_build(&l->report, &l->modules, &l->in, &l->graph);
	if (l->copy)
		memory_copy_deinit(l->copy);
	if (l->has_graph)
		heap_graph_solve(&l->graph);
}

void inspect_stopped_classify(struct inspect_stopped *l)
{
	if (l->is_copied)
		examine(l);
	l->other = find_other(&l->modules, l->report.other.name, &l->other_object);
	if (!l->other)
		l->other = l->report.other.name; /* of a program without symbols */
	type_names_find(&l->report.types, &l->modules);
	if (l->wants_graph)
		find_graph(l);
	else
		holder_names_find(&l->report.holders, &l->modules);
	inspect_input_deinit(&l->in);
	l->in = (struct inspect_input){0};
	inspect_stopped_version(l);
}

void inspect_stopped_deinit(struct inspect_stopped *l)
{
	inspect_input_deinit(&l->in);
	inspect_report_deinit(&l->report);
	go_state_deinit(&l->go);
	heap_graph_deinit(&l->graph);
	held_modules_deinit(&l->modules);
}
