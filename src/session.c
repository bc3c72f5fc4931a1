/*
 * From the events of a space to its file. See session.h for the picture.
 *
 * Every event is unwound at once, since the target stands still only now; names
 * are looked up at the end, each address once (earlier only where --ignore-fn or
 * an object that is unloaded asks for them).
 */
#include "session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/elf_file.h"
#include "growth.h"
#include "output/memusage.h"
#include "output/pattern.h"
#include "session_quick.h"
#include "session_stacks.h"
#include "skip.h"
#include "top.h"

#define MAX_FRAMES 16384
#define MAX_DEPTH 200 /* of a filter */

/* -- what a run shares -- */

static struct filter *make_filter(const struct options *options, uint32_t depth)
{
	struct filter *f = filter_new(depth, options->show_below_main);
	if (options->pages_as_heap)
		filter_keep_first(f);
	for (size_t i = 0; i < options->alloc_fn.count; i++)
		filter_add_alloc_fn(f, options->alloc_fn.data[i]);
	for (size_t i = 0; i < options->ignore_fn.count; i++)
		filter_add_ignore_fn(f, options->ignore_fn.data[i]);
	return f;
}

void run_init(struct run *run, struct options *options)
{
	*run = (struct run){.options = options};
	run->directory = getcwd(NULL, 0);
	if (!run->directory)
		run->directory = xstrdup(".");
	_cleanup_free_ char *debug_dirs = NULL;
	if (options->extra_debuginfo_path)
		debug_dirs = xasprintf("%s:/usr/lib/debug", options->extra_debuginfo_path);
	struct symbols_options symbols_options = {
		.no_demangle = !options->demangle, .no_inline = !options->read_inline_info,
		.show_below_main = options->show_below_main, .debug_dirs = debug_dirs,
	};
	run->symbols = symbols_new(&symbols_options);
	run->filter = make_filter(options, options->depth);
	run->flame_filter = make_filter(options, MAX_DEPTH);
	run->whole_filter = filter_new_whole(options->depth, options->show_below_main);
}

void run_deinit(struct run *run)
{
	symbols_free(run->symbols);
	filter_free(run->filter);
	filter_free(run->whole_filter);
	filter_free(run->flame_filter);
	for (size_t i = 0; i < run->modules.count; i++) {
		if (run->modules.data[i])
			module_release(run->modules.data[i]);
	}
	vec_deinit(&run->modules);
	vec_deinit(&run->sessions);
	vec_deinit(&run->images);
	free(run->directory);
	free(run->command);
}

void run_add_module(struct run *run, struct module *m)
{
	while (run->modules.count <= m->id)
		*vec_add(&run->modules) = NULL;
	if (!run->modules.data[m->id])
		run->modules.data[m->id] = module_hold(m);
}

static unsigned *run_images(struct run *run, uint32_t pid)
{
	for (size_t i = 0; i < run->images.count; i++) {
		if (run->images.data[i].pid == pid)
			return &run->images.data[i].count;
	}
	struct image_count *c = vec_add(&run->images);
	*c = (struct image_count){.pid = pid};
	return &c->count;
}

struct module *run_module(const struct run *run, uint32_t id)
{
	return id < run->modules.count ? run->modules.data[id] : NULL;
}

/* -- names -- */

struct stack_walk {
	struct source *source;
	VEC(uint32_t) frames; /* innermost first */
};

static const struct symbol *stack_symbol(void *ctx, size_t i)
{
	struct stack_walk *w = ctx;
	return source_symbol(w->source, w->frames.data[i]);
}

/*
 * Without ignore-fns a block is ignored only if all its frames are alloc-fns. One
 * that is not settles it; the outermost is the same for most stacks.
 */
static bool is_surely_counted(const struct session *s, const struct calltree *tree, uint32_t node)
{
	if (filter_has_ignore_fns(s->run->filter) || !node ||
	    calltree_node_depth(tree, node) > filter_reach(s->run->filter))
		return false;
	while (calltree_parent(tree, node))
		node = calltree_parent(tree, node);
	const struct calltree_frame *f = calltree_frame(tree, calltree_node_frame(tree, node));
	const char *name = symbols_function(s->run->symbols, run_module(s->run, f->module), f->pc);
	return name && !filter_is_alloc_fn(s->run->filter, name);
}

static bool is_ignored(void *ctx, uint32_t node)
{
	struct stack_walk w = {.source = ctx};
	struct session *s = w.source->session;
	struct calltree *tree = profile_calltree(w.source->profile);
	if (is_surely_counted(s, tree, node))
		return false;
	for (; node; node = calltree_parent(tree, node))
		*vec_add(&w.frames) = calltree_node_frame(tree, node);
	size_t first, count;
	bool counts =
		filter_stack(s->run->filter, stack_symbol, &w, w.frames.count, &first, &count);
	vec_deinit(&w.frames);
	return !counts;
}

/* -- life -- */

static uint64_t read_instructions(void *ctx)
{
	struct session *s = ctx;
	return s->run->target ? target_instructions(s->run->target) : 0;
}

static const struct module *module_at(void *ctx, taddr_t pc)
{
	struct session *s = ctx;
	struct module *m = space_find_module(s->space, pc);
	return m ? m : target_refresh_module(s->run->target, s->space, pc);
}

static void add_unwinder(struct session *s)
{
	struct unwind_ops ops = {.module = module_at, .ctx = s};
	s->unwind = unwind_new(arch_native, &ops);
}

struct session *session_new(struct run *run, uint32_t pid, uint64_t start_ns)
{
	const struct options *o = run->options;
	struct session *s = xcalloc(1, sizeof(*s));
	s->run = run;
	s->pid = pid;
	s->start_ns = s->end_ns = start_ns;
	s->image = *run_images(run, pid) + 1;
	s->is_own_image = true;
	s->command = xstrdup(run->command);
	struct profile_options po = {
		.time_unit = o->time_unit,
		.peak_inaccuracy = o->peak_inaccuracy,
		.peak_at_exit = o->peak_at_exit,
		.detailed_freq = o->detailed_freq,
		.max_snapshots = o->max_snapshots,
		.heap_admin = o->heap_admin,
		.alignment = o->alignment,
		.no_heap = !o->heap,
		.is_ignored = is_ignored,
		.is_ignored_ctx = &s->source[SOURCE_HEAP],
		.instructions = read_instructions,
		.instructions_ctx = s,
		.keep_times = growth_needs_times(o),
	};
	if (o->pages_as_heap)
		po.heap_admin = 0;
	s->profile = profile_new(&po, start_ns);
	sources_init(s, &po, start_ns);
	session_stacks_init(s);
	*vec_add(&run->sessions) = s;
	if (o->xtree_memory != XTREE_NONE)
		s->flows = flows_new(o->xtree_memory == XTREE_FULL);
	return s;
}

void session_free(struct session *s)
{
	struct run *run = s->run;
	for (size_t i = 0; i < run->sessions.count; i++) {
		if (run->sessions.data[i] != s)
			continue;
		memmove(&run->sessions.data[i], &run->sessions.data[i + 1],
			(--run->sessions.count - i) * sizeof(*run->sessions.data));
	}
	growth_forget(s);
	top_forget(s);
	if (s->unwind)
		unwind_free(s->unwind);
	if (s->events)
		events_writer_free(s->events);
	for (size_t i = 0; i < s->paths.count; i++)
		free(s->paths.data[i].node);
	vec_deinit(&s->paths);
	memusage_free(s->memusage);
	stacks_free(s->stack_use);
	sources_deinit(s);
	profile_free(s->profile);
	flows_free(s->flows);
	free(s->command);
	free(s);
}

/* -- the sink -- */

static void read_command(struct space *space, char **command)
{
	char name[64];
	snprintf(name, sizeof(name), "/proc/%d/cmdline", (int)space->reader);
	_cleanup_fclose_ FILE *f = fopen(name, "re");
	_cleanup_free_ char *line = NULL;
	size_t size = 0;
	ssize_t n = 0;
	VEC(char) text = {0};
	while (f && (n = getdelim(&line, &size, '\0', f)) > 0) {
		if (text.count)
			*vec_add(&text) = ' ';
		for (const char *p = line; *p; p++)
			*vec_add(&text) = *p == '\n' ? ' ' : *p;
	}
	*vec_add(&text) = '\0';
	free(*command);
	*command = text.data;
}

static void note_modules(struct session *s)
{
	for (size_t i = 0; i < s->space->modules.count; i++) {
		struct module *m = s->space->modules.data[i];
		run_add_module(s->run, m);
		if (s->events)
			events_writer_module(s->events, m->id, m->start, m->end, m->bias, m->path);
	}
}

static void sink_space_new(void *ctx, struct space *space)
{
	struct run *run = ctx;
	struct session *s = session_new(run, (uint32_t)space->pid, target_clock());
	s->space = space;
	space->user = s;
	bool is_first = !run->is_first_known;
	run->is_first_known = true;
	if (run->options->pid_count > 0 || !is_first)
		read_command(space, &s->command);
	if (run->events_file && is_first) {
		s->events = events_writer_new(run->events_file);
		events_writer_header(s->events, s->command, s->pid, s->start_ns);
	}
	note_modules(s);
	add_unwinder(s);
	sources_start(s);
	usage_start(s);
}

static void sink_space_fork(void *ctx, struct space *parent, struct space *child)
{
	struct session *from = parent->user, *s = xmemdup(from, sizeof(*from));
	(void)ctx;
	s->space = child;
	s->pid = (uint32_t)child->pid;
	s->command = xstrdup(from->command);
	s->events = NULL;
	s->look = NULL;
	s->top_table = NULL;
	memset(&s->paths, 0, sizeof(s->paths));
	s->is_own_image = false;
	s->image = 1;
	s->profile = profile_clone(from->profile);
	*vec_add(&s->run->sessions) = s;
	if (from->flows)
		s->flows = flows_clone(from->flows);
	profile_set_ctx(s->profile, &s->source[SOURCE_HEAP], s);
	sources_fork(s);
	session_stacks_init(s); /* of the parent's threads only one goes on */
	add_unwinder(s);
	usage_fork(from, s);
	child->user = s;
}

static void sink_space_end(void *ctx, struct space *space, enum space_end why)
{
	struct session *s = space->user;
	(void)ctx;
	space_count_probes(space, &s->jumps, &s->breakpoints);
	space_count_markers(space, &s->marker_jumps, &s->marker_breakpoints);
	space->user = NULL;
	s->space = NULL;
	bool is_exec = why == SPACE_EXEC || why == SPACE_NEXT_IMAGE;
	s->has_next_image = why == SPACE_NEXT_IMAGE;
	s->was_replaced = why == SPACE_EXEC && !s->run->options->trace_children;
	s->attach_ns = space->attach_ns;
	/* what a fork had before it executed something else is in its parent's file */
	s->end_ns = target_clock();
	usage_end(s, is_exec, is_exec && (s->run->options->trace_children || !s->is_own_image));
	if (!is_exec || s->is_own_image) {
		session_finish(s, s->end_ns);
		*run_images(s->run, s->pid) += s->has_next_image;
	}
	session_free(s);
}

static void sink_module_loaded(void *ctx, struct space *space, struct module *m)
{
	struct session *s = space->user;
	run_add_module(ctx, m);
	if (s->events)
		events_writer_module(s->events, m->id, m->start, m->end, m->bias, m->path);
}

static void sink_module_unloaded(void *ctx, struct space *space, struct module *m)
{
	struct session *s = space->user;
	(void)ctx;
	unwind_forget(s->unwind, m->start, m->end);
	sources_forget(s, m->start, m->end);
	if (s->events)
		events_writer_module(s->events, m->id, 0, 0, 0, m->path);
}

uint32_t session_frame(struct session *s, struct profile *p, taddr_t pc)
{
	struct calltree *tree = profile_calltree(p);
	uint32_t frame = calltree_find_frame(tree, pc);
	if (frame)
		return frame;
	const struct module *m = module_at(s, pc);
	return calltree_get_frame(tree, pc, m ? m->id : 0);
}

/* Takes the new frames of a walked stack into the path. */
__attribute__((noinline)) static void extend_path(struct session *s, const struct heap_event *he)
{
	while (s->paths.count <= he->path)
		*vec_add(&s->paths) = (struct path){0};
	struct path *p = &s->paths.data[he->path];
	CHECK(he->kept <= p->count);
	p->node = xgrow(p->node, &p->capacity, he->frame_count + 1, sizeof(*p->node));
	uint32_t node = he->kept ? p->node[he->kept - 1] : 0;
	for (uint32_t i = he->kept; i < he->frame_count; i++) {
		node = calltree_get_child(profile_calltree(s->profile), node,
					  session_frame(s, s->profile, he->frame[i]));
		p->node[i] = node;
	}
}

/* The node of a stack that a pad walked: what it kept is known from the thread's last record. */
static inline uint32_t find_path_node(struct session *s, const struct heap_event *he)
{
	if (he->kept < he->frame_count || he->path >= s->paths.count)
		extend_path(s, he);
	struct path *p = &s->paths.data[he->path];
	CHECK(he->kept <= p->count || he->kept < he->frame_count);
	p->count = he->frame_count;
	return p->count ? p->node[p->count - 1] : 0;
}

static uint32_t path_node(struct session *s, const struct heap_event *he)
{
	s->stacks++;
	s->complete_stacks++;
	s->ends[UNWIND_COMPLETE]++;
	return find_path_node(s, he);
}

size_t session_walk(struct session *s, const struct stack_view *view, const taddr_t **pcs_out)
{
	static taddr_t pcs[MAX_FRAMES]; /* scratch: too large for the stack */
	enum unwind_end end = UNWIND_COMPLETE;
	size_t n = unwind_walk(s->unwind, view, pcs, MAX_FRAMES, &end);
	s->stacks++;
	s->ends[end]++;
	s->complete_stacks += end == UNWIND_COMPLETE;
	*pcs_out = pcs;
	return n;
}

static uint32_t stack_node(struct session *s, const struct stack_view *view)
{
	const taddr_t *pcs;
	size_t n = session_walk(s, view, &pcs);
	uint32_t node = 0;
	while (n > 0)
		node = calltree_get_child(profile_calltree(s->profile), node,
					  session_frame(s, s->profile, pcs[--n]));
	return node;
}

/* --verify: the pad sent its stack both ways. */
static void verify_stack(struct session *s, const struct heap_event *he, uint32_t node)
{
	uint32_t whole = stack_node(s, he->stack);
	s->stacks--;
	s->complete_stacks--;
	s->verified++;
	if (whole == node)
		return;
	s->differing++;
	log_warn("thread %u: the walked stack (%u frames) is not the unwound one", he->thread,
		 he->frame_count);
}

/* --trace-malloc: a line in Valgrind's form. */
static void trace_call(const struct session *s, const struct heap_event *he)
{
	static const char *const names[] = {
		[FUNCTION_MALLOC] = "malloc",	[FUNCTION_CALLOC] = "calloc",
		[FUNCTION_REALLOC] = "realloc", [FUNCTION_MEMALIGN] = "memalign",
		[FUNCTION_NEW] = "new",		[FUNCTION_FREE] = "free",
		[FUNCTION_DELETE] = "delete",	[FUNCTION_BRK] = NULL,
	};
	const char *name = he->function < ARRAY_SIZE(names) ? names[he->function] : NULL;
	unsigned long long size = he->size;
	if (name && he->kind == HEAP_ALLOC)
		log_info("--%u-- %s(%llu) = 0x%llX", s->pid, name, size,
			 (unsigned long long)he->addr);
	else if (name && he->kind == HEAP_FREE)
		log_info("--%u-- %s(0x%llX)", s->pid, name, (unsigned long long)he->addr);
	else if (name && he->kind == HEAP_REALLOC_END)
		log_info("--%u-- realloc(0x%llX,%llu) = 0x%llX", s->pid,
			  (unsigned long long)he->old_addr, size, (unsigned long long)he->addr);
}

static void sink_event(void *ctx, struct space *space, const struct heap_event *he)
{
	struct session *s = space->user;
	(void)ctx;
	static const uint8_t kinds[] = {
		[HEAP_ALLOC] = EVENT_ALLOC,
		[HEAP_FREE] = EVENT_FREE,
		[HEAP_REALLOC_BEGIN] = EVENT_REALLOC_BEGIN,
		[HEAP_REALLOC_END] = EVENT_REALLOC_END,
		[HEAP_MAPPING_CALL] = EVENT_MAPPING_CALL,
		[HEAP_SAMPLE] = EVENT_SAMPLE,
	};
	const struct options *o = s->run->options;
	session_stacks_see(s, he);
	if (he->kind == HEAP_MAP || he->kind == HEAP_UNMAP || he->kind == HEAP_FAULT) {
		sources_event(s, he);
		return;
	}
	struct event ev = {
		.time_ns = he->time_ns,
		.thread = he->thread,
		.kind = kinds[he->kind],
		.function = he->function,
		.addr = he->addr,
		.old_addr = he->old_addr,
		.size = he->size,
		.align = he->align,
		.sp = he->sp,
		.is_inner = he->is_inner,
	};
	if (ev.kind == EVENT_REALLOC_END && ev.addr && !ev.size && !o->realloc_zero_bytes_frees)
		ev.size = 1;
	if (o->trace_malloc)
		trace_call(s, he);
	if (he->frame)
		ev.node = path_node(s, he);
	if (he->stack) {
		if (he->frame)
			verify_stack(s, he, ev.node);
		else
			ev.node = stack_node(s, he->stack);
	}
	if (s->events)
		events_writer_event(s->events, profile_calltree(s->profile), &ev);
	usage_event(s, &ev);
	if (s->flows)
		flows_event(s->flows, &ev);
	if (o->heap)
		profile_event(s->profile, &ev);
}

static bool sink_wants_quick(void *ctx, struct space *space)
{
	(void)ctx;
	return space->user && session_wants_quick(space->user);
}

static uint32_t sink_node(void *ctx, struct space *space, const struct heap_event *he)
{
	(void)ctx;
	return find_path_node(space->user, he);
}

static void sink_quick(void *ctx, struct space *space, uint64_t time_ns,
		       const struct quick_event *ev, size_t count)
{
	(void)ctx;
	session_quick(space->user, time_ns, ev, count);
}

static void sink_thread_exit(void *ctx, struct space *space, pid_t tid)
{
	struct session *s = space->user;
	(void)ctx;
	profile_thread_exit(s->profile, (uint32_t)tid);
	usage_thread_exit(s, (uint32_t)tid);
	session_stacks_thread_exit(s, (uint32_t)tid);
	if (s->events)
		events_writer_thread_exit(s->events, (uint32_t)tid);
}

static bool sink_in_signal(void *ctx, struct space *space, struct stack_view *view,
			   taddr_t outer_sp)
{
	struct session *s = space->user;
	(void)ctx;
	return s && unwind_in_signal(s->unwind, view, outer_sp);
}

static size_t sink_stack_pcs(void *ctx, struct space *space, struct stack_view *view, taddr_t *pcs,
			     size_t max, bool *is_whole_out)
{
	struct session *s = space->user;
	enum unwind_end end = UNWIND_NO_CFI;
	(void)ctx;
	size_t n = s ? unwind_walk_stopped(s->unwind, view, pcs, max, &end) : 0;
	*is_whole_out = end == UNWIND_COMPLETE;
	return n;
}

static taddr_t sink_find_row(void *ctx, struct space *space, taddr_t start, taddr_t end,
			     int *saved_out)
{
	struct session *s = space->user;
	(void)ctx;
	for (taddr_t pc = start + 1; s && pc < end; pc++) {
		const struct unwind_rule *rule = unwind_rule_get(s->unwind, pc);
		unsigned saved = rule->saved;
		if (rule->kind != RULE_SP || rule->cfa_offset != 16 || (saved & (saved - 1)))
			continue;
		int i = saved ? __builtin_ctz(saved) : -1;
		if (i >= 0 && rule->slot[i] != -2)
			continue;
		*saved_out = i;
		return pc;
	}
	return 0;
}

static bool sink_skip_exec(void *ctx, pid_t pid)
{
	struct run *run = ctx;
	return skip_exec(run->options, pid);
}

static void sink_rule_memory(void *ctx, struct space *space, struct unwind_rule *memory,
			     uint32_t bits)
{
	struct session *s = space->user;
	(void)ctx;
	unwind_set_memory(s->unwind, memory, bits, NULL, NULL);
}

void session_fill_sink(struct target_sink *sink, struct run *run)
{
	*sink = (struct target_sink){
		.ctx = run,
		.space_new = sink_space_new,
		.space_fork = sink_space_fork,
		.space_end = sink_space_end,
		.module_loaded = sink_module_loaded,
		.module_unloaded = sink_module_unloaded,
		.event = sink_event,
		.wants_quick = sink_wants_quick,
		.node = sink_node,
		.quick = sink_quick,
		.thread_exit = sink_thread_exit,
		.in_signal = sink_in_signal,
		.rule_memory = sink_rule_memory,
		.find_row = sink_find_row,
		.stack_pcs = sink_stack_pcs,
		.last_look = growth_last_look,
		.skip_exec = sink_skip_exec,
	};
}

/* -- the end -- */

int session_check_patterns(const struct run *run)
{
	_cleanup_free_ char *why = NULL;
	const struct options *o = run->options;
	const char *option = "--massif-out-file";
	int rc = pattern_check(o->massif_out_file, &why);
	if (rc == 0 && o->xtree_memory != XTREE_NONE) {
		option = "--xtree-memory-file";
		rc = pattern_check(o->xtree_memory_file, &why);
	}
	if (rc != 0)
		log_error("%s: %s", option, why);
	return rc;
}

/* Without a heap profile the file says nothing: it is written only if nothing else is. */
static bool wants_file(const struct run *run)
{
	if (run->options->pages_as_heap)
		return true;
	return run->options->heap || run->options->stacks || !usage_is_wanted(run->options);
}

int session_check_out_files(struct run *run)
{
	const struct options *o = run->options;
	int rc = wants_file(run) ? run_check_file(run, "--massif-out-file", o->massif_out_file) : 0;
	if (rc == 0 && o->xtree_memory != XTREE_NONE)
		rc = run_check_file(run, "--xtree-memory-file", o->xtree_memory_file);
	if (rc == 0 && o->leaks_out)
		rc = run_check_file(run, "--leaks-out", o->leaks_out);
	if (rc == 0 && o->folded_file)
		rc = run_check_file(run, "--folded", o->folded_file);
	if (rc == 0 && o->flame_file)
		rc = run_check_file(run, "--flame", o->flame_file);
	return rc;
}

bool session_is_silent(const struct session *s)
{
	return s->run->options->child_silent_after_fork && !s->is_own_image;
}

void session_finish(struct session *s, uint64_t now_ns)
{
	char *path = NULL;
	s->end_ns = now_ns;
	profile_finish(s->profile, now_ns);
	if (s->events) {
		events_writer_end(s->events, now_ns);
		int rc = events_writer_free(s->events);
		s->events = NULL;
		if (rc != 0) {
			log_error("cannot write %s: %s", s->run->options->events_file,
				  strerror(-rc));
			s->run->files_failed++;
		}
	}
	if (s->source[SOURCE_HEAP].is_traced) {
		struct report r;
		source_fill_report(&s->source[SOURCE_HEAP], &r);
		int rc = wants_file(s->run) ? session_put_massif(s, &r, "", &path) : -ENOENT;
		session_finish_xtree(s, now_ns);
		if (!session_is_silent(s))
			session_print_summary(s, rc == 0 ? path : NULL);
		free(path);
	}
	sources_finish(s, now_ns);
	growth_finish(s, now_ns);
}

/* -- replay -- */

struct replay {
	struct run *run;
	struct session *session;
	uint64_t end_ns;
	bool is_started;
};

/* Pages that are there at the start come before it, at its time (sources_start). */
static void replay_start(struct replay *r, const struct event *ev)
{
	struct session *s = r->session;
	if (r->is_started || (ev && ev->kind == EVENT_MAP && ev->time_ns == s->start_ns))
		return;
	r->is_started = true;
	profile_start(s->profile, s->start_ns);
}

static void replay_header(void *ctx, const char *command, uint32_t pid, uint64_t start_ns)
{
	struct replay *r = ctx;
	struct session *s = r->session;
	free(s->command);
	s->command = xstrdup(command);
	s->pid = pid;
	s->start_ns = start_ns;
	profile_set_start(s->profile, start_ns);
	if (!r->run->options->pages_as_heap)
		replay_start(r, NULL);
	usage_start(s);
}

static void replay_module(void *ctx, const struct events_module *em)
{
	struct replay *r = ctx;
	if (em->end == 0)
		return; /* unloaded: its addresses have their frames */
	struct module *m = xcalloc(1, sizeof(*m));
	m->id = em->id;
	m->users = 1;
	m->start = em->start;
	m->end = em->end;
	m->bias = em->bias;
	m->path = xstrdup(em->path);
	if (elf_file_open(em->path, NULL, &m->file) != 0)
		m->file = NULL;
	run_add_module(r->run, m);
	module_release(m);
}

static void replay_name(void *ctx, const struct events_name *n)
{
	struct replay *r = ctx;
	struct symbol_frame frame = {
		.name = n->name, .file = n->file, .dir = n->dir, .line = n->line};
	const struct module *m = run_module(r->run, n->module);
	struct symbol sym = {.object = m ? m->path : NULL, .frame = &frame, .count = 1,
			     .is_main = n->name && strcmp(n->name, "main") == 0};
	symbols_define(r->run->symbols, n->module, n->pc, &sym);
}

static void replay_event(void *ctx, const struct event *ev)
{
	struct replay *r = ctx;
	replay_start(r, ev);
	r->end_ns = ev->time_ns;
	r->session->stacks += ev->node != 0;
	r->session->complete_stacks += ev->node != 0;
	usage_event(r->session, ev);
	if (r->session->flows)
		flows_event(r->session->flows, ev);
	if (ev->kind != EVENT_STACK || r->run->options->stacks)
		profile_event(r->session->profile, ev);
}

static void replay_thread_exit(void *ctx, uint32_t thread)
{
	struct replay *r = ctx;
	profile_thread_exit(r->session->profile, thread);
	usage_thread_exit(r->session, thread);
}

static void replay_end(void *ctx, uint64_t time_ns)
{
	struct replay *r = ctx;
	r->end_ns = time_ns;
}

int session_replay(struct run *run, const char *path)
{
	_cleanup_fclose_ FILE *f = fopen(path, "re");
	if (!f) {
		int err = errno;
		log_error("cannot read %s: %s", path, strerror(err));
		return -err;
	}
	struct replay r = {.run = run};
	r.session = session_new(run, 0, 0);
	const struct events_reader_ops ops = {
		.header = replay_header,
		.module = replay_module,
		.name = replay_name,
		.event = replay_event,
		.thread_exit = replay_thread_exit,
		.end = replay_end,
		.ctx = &r,
	};
	unsigned line = 0;
	const char *why = "";
	int rc = events_read(f, profile_calltree(r.session->profile), &ops, &line, &why);
	if (rc != 0)
		log_error("%s:%u: %s", path, line, why);
	if (rc == 0) {
		replay_start(&r, NULL);
		r.session->end_ns = r.end_ns;
		usage_end(r.session, false, false);
		session_finish(r.session, r.end_ns);
	}
	session_free(r.session);
	return rc;
}
