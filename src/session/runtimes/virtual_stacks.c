/*
 * Interpreters in a process, what is known of their functions and threads, and merged stacks. See
 * virtual_stacks.h.
 */
#include "session/runtimes/virtual_stacks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/amount.h"
#include "base/cleanup.h"
#include "base/elf_file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/proc.h"
#include "base/text.h"
#include "languages/interpreter.h"
#include "session/runtimes/code_names.h"
#include "session/runtimes/stop_memory.h"
#include "session/session.h"
#include "session/summary.h"
#include "symbols/code_owner.h"
#include "tracee/os/ptrace.h"
#include "tracee/pads/pads.h"
#include "tracee/state/space.h"

#define FRAMES_MAX (1u << 20)
#define POSITIONS_MAX (1u << 20) /* names are looked up again after so many */
#define TRIES_MAX 4096u          /* stops at which an interpreter was looked for in vain */

/* A function that the interpreter was seen to run. */
struct known_function {
	uint64_t identity;
	uint32_t serial; /* changes when another function has taken its place */
	struct virtual_function code;
};

struct known_position {
	uint32_t serial;
	uint64_t position;
	uint64_t key; /* of its name; 0: not to be shown */
};

/* The frame in the heap's call tree of a function at a position: most are among the last ones. */
#define RECENT_FRAMES 4096u

struct recent_frame {
	uint64_t identity, position;
	uint32_t generation; /* changes when a function has taken the place of another */
	uint32_t frame;      /* 0: not to be shown */
};

/* A function of a merged list. */
struct list_node {
	uint32_t base; /* of the outermost of a run: the node before it */
	uint32_t node; /* after it */
};

/* After a native frame: the node, and the next frame of the list. */
struct native_node {
	uint32_t node, next;
};

/*
 * A function allocates in turn at a few places. A series are records that have as many functions,
 * all the same but the innermost one, and the same outer native frames, so that none of these need
 * be compared. What differs is kept with its merge.
 */
struct merge_series {
	uint32_t number;       /* 0 = none */
	size_t frames, native; /* functions; native frames that are the same */
};

#define KEPT_MERGES 256u
#define KEPT_NATIVE 6u     /* native frames of a merge that may differ */

struct kept_merge {
	uint32_t series, generation; /* 0 = none; as in struct recent_frame */
	uint32_t count;              /* of native frames, all */
	uint64_t identity, position; /* of the innermost function */
	bool is_entry;
	taddr_t pc[KEPT_NATIVE];
	struct native_node native[KEPT_NATIVE];
	struct list_node last;
	uint32_t run, result;
};

/* The merged stack of a slot's last record; arrays are outermost first. */
struct mixed_path {
	VEC(struct native_node) native;
	VEC(struct virtual_frame) frames;
	struct list_node *list;
	uint32_t *run;                /* of each frame: where its run begins */
	size_t listed, list_capacity, run_capacity; /* those of the last merge */
	bool was_mixed;
	uint32_t result;
	struct merge_series series;
};

struct virtual_stacks {
	struct address_space *space;
	uint32_t module;              /* the object with the interpreter */
	char *path;
	VEC(struct addr_range) hidden; /* objects of which nothing is shown */
	/* objects that exchange parts of the native stack: what is outside of these is others' */
	VEC(struct addr_range) switchers;
	struct interpreter interpreter; /* its loops are known from the file */
	bool is_found, is_given_up, is_published;
	bool has_other_objects;       /* some functions' objects are no blocks of malloc */
	uint32_t tries, next_try;
	char *problem;                /* why it was not found; NULL = nothing to say */
	char *other;                  /* an object with another one of its language; NULL = none */
	HASH(struct known_function) functions;
	HASH(struct known_position) positions;
	uint32_t last_serial;
	struct recent_frame *recent;  /* RECENT_FRAMES */
	struct kept_merge *kept;      /* KEPT_MERGES */
	uint32_t last_series;
	HASH(struct interpreter_thread) threads;
	VEC(struct mixed_path) paths; /* by slot */
	struct mixed_path scratch;
	VEC(taddr_t) pcs;
	struct stop_memory *memory;
	struct virtual_frame *list;   /* FRAMES_MAX; NULL = not needed yet */
	uint64_t unmerged, merged;
};

static struct language_memory memory_of(struct virtual_stacks *v)
{
	return stop_memory_reader(v->memory);
}

/* -- publishing -- */

/* Addresses may have another meaning now. */
static void forget_series(struct virtual_stacks *v)
{
	for (size_t i = 0; i < v->paths.count; i++)
		v->paths.data[i].series.number = 0;
}

/* Tells pads what they need; before the interpreter is found, only where its loop is. */
static void publish(struct virtual_stacks *v)
{
	const struct virtual_layout *l = v->interpreter.frames;
	bool is_on = v->is_found && l->thread.kind != VIRTUAL_STATE_UNKNOWN;
	struct pad_virtual_layout out = {.mode = is_on ? PAD_VIRTUAL_ON : PAD_VIRTUAL_WAITING};

	if (v->is_given_up)
		out.mode = PAD_VIRTUAL_OFF;
	virtual_layout_publish(l, is_on, &out);
	out.counts_deaths = !v->has_other_objects && !v->space->heap.sampling;
	pads_set_virtual(v->space, &out);
	v->is_published = is_on || v->is_given_up;
	forget_series(v);
}

/* -- finding -- */

/* At a stop whose stack passes the loop. */
static void find_interpreter(struct virtual_stacks *v, struct interpreter_thread *thread)
{
	const struct language *language = v->interpreter.language;
	struct maps maps;

	if (v->tries++ < v->next_try)
		return;
	v->next_try = 2 * v->tries;
	if (maps_read(v->space->processes.reader, &maps) != 0)
		return;
	struct root_dir *root = root_dir_of(v->space->processes.reader, NULL);
	const struct interpreter_process in = {
		.pid = v->space->processes.reader, .root = root, .maps = &maps,
		.memory = memory_of(v), .path = v->path, .thread = thread,
	};

	free(v->problem);
	v->problem = NULL;
	v->is_found = language->find(&v->interpreter, &in, &v->problem);
	root_dir_release(root);
	maps_deinit(&maps);
	if (v->is_found) {
		_cleanup_free_ char *version = language->version(&v->interpreter);

		log_verbose("%s: %s %s, whose functions are shown, after %u tries", v->path,
			    language->name, version, v->tries);
	} else if (v->tries >= TRIES_MAX) {
		v->is_given_up = true;
	}
	publish(v);
}

static bool passes_loop(const struct virtual_stacks *v, const struct native_stack *stack)
{
	for (size_t i = 0; i < stack->count; i++)
		if (virtual_loop_find(v->interpreter.frames, stack->pc[i]) != VIRTUAL_NO_LOOP)
			return true;
	return false;
}

/* Whether there is something to be found: it is not enough that code is on @stack that calls it. */
static bool runs_loop(const struct virtual_stacks *v, const struct native_stack *stack)
{
	for (size_t i = 0; i < stack->count; i++) {
		enum virtual_loop_kind kind =
			virtual_loop_find(v->interpreter.frames, stack->pc[i]);

		if (kind == VIRTUAL_LOOP || kind == VIRTUAL_LOOP_PART)
			return true;
	}
	return false;
}

/* -- functions -- */

static struct known_function *find_function(struct virtual_stacks *v, uint64_t identity)
{
	return hash_find(&v->functions, hash_u64(identity), e, e->identity == identity);
}

/* Whether the interpreter's object has @addr: in its data, which may have functions. */
static bool is_own_data(const struct virtual_stacks *v, taddr_t addr)
{
	for (size_t i = 0; i < v->space->modules.count; i++) {
		const struct module *m = v->space->modules.data[i];

		if (m->id == v->module && m->file)
			return elf_file_segment(m->file, addr - m->bias);
	}
	return false;
}

/*
 * Pads see when the object of a function is replaced by another one, if that is a block: then
 * malloc returns its address again. What is part of the interpreter's data lives for ever.
 */
static void check_object(struct session *s, uint64_t identity)
{
	struct virtual_stacks *v = s->stacks.virtual;

	if (v->has_other_objects || profile_has_block(s->heap.profile, identity) ||
	    is_own_data(v, identity))
		return;
	log_debug("the function at %#" PRIx64 " is no block", identity);
	v->has_other_objects = true;
	publish(v);
}

/* Reads the function of @frame, which runs in a thread that is stopped, unless it is known. */
static void learn_function(struct session *s, const struct virtual_frame *frame)
{
	struct virtual_stacks *v = s->stacks.virtual;
	const struct interpreter *i = &v->interpreter;
	const struct language_memory m = memory_of(v);
	uint64_t identity = frame->identity, stamp = virtual_stamp(i->frames, &m, identity);
	struct known_function *f = find_function(v, identity);

	if (!f) {
		f = hash_add(&v->functions, hash_u64(identity));
		*f = (struct known_function){.identity = identity};
	} else if (stamp && f->code.stamp == stamp) {
		pads_know_function(v->space, identity, stamp);
		return;
	}
	check_object(s, identity);
	virtual_function_deinit(&f->code);
	f->serial = ++v->last_serial;
	if (i->language->read_function(i, &m, frame, &f->code) != 0)
		f->code = (struct virtual_function){0};
	else
		pads_know_function(v->space, identity, f->code.stamp);
}

/* The key of a function whose name cannot be read. */
static uint64_t unknown_key(const struct virtual_stacks *v, struct session *s)
{
	_cleanup_free_ char *name = xasprintf("[%s]", v->interpreter.language->name);
	struct symbol_frame sf = {.name = name};

	return symbols_name(s->run->symbols, &(struct symbol){.frame = &sf, .count = 1});
}

static uint64_t name_of(struct virtual_stacks *v, struct session *s, struct known_function *f,
			uint64_t position)
{
	const struct language_memory m = memory_of(v);
	const struct interpreter *interpreter = &v->interpreter;
	struct symbol_frame sf = {.name = f->code.name};
	struct symbol sym = {.frame = &sf, .count = 1};
	_cleanup_free_ char *dir = NULL;

	if (!f->code.name)
		return unknown_key(v, s);
	if (f->code.is_internal)
		return 0;
	bool has_path = f->code.file && strncmp(f->code.file, INTERPRETER_FILE,
						strlen(INTERPRETER_FILE)) != 0;
	const char *slash = has_path ? strrchr(f->code.file, '/') : NULL;

	stop_memory_forget(v->memory); /* which the place of a copied instruction is in */

	sf.line = interpreter->language->line(interpreter, &m, &f->code, position);
	if (!sf.line)
		sf.line = f->code.first_line;
	sf.file = f->code.file;
	if (!sf.line && !has_path)
		sym.object = sf.file;
	if (slash && slash[1]) {
		dir = xstrndup(f->code.file, (size_t)(slash - f->code.file));
		sf.file = slash + 1;
		sf.dir = dir;
	}
	return symbols_name(s->run->symbols, &sym);
}

/* The key of the name of @frame; 0: it is not to be shown. */
static uint64_t key_of(struct virtual_stacks *v, struct session *s,
		       const struct virtual_frame *frame)
{
	struct known_function *f = find_function(v, frame->identity);

	if (!f) /* a record that no pad wrote */
		return unknown_key(v, s);
	uint64_t hash = hash_u64(frame->position ^ hash_u64(f->serial));
	struct known_position *known =
		hash_find(&v->positions, hash,
			  e, e->serial == f->serial && e->position == frame->position);

	if (known)
		return known->key;
	uint64_t key = name_of(v, s, f, frame->position);

	if (v->positions.index.count >= POSITIONS_MAX) {
		hash_deinit(&v->positions);
		memset(&v->positions, 0, sizeof(v->positions));
	}
	*hash_add(&v->positions, hash) =
		(struct known_position){f->serial, frame->position, key};
	return key;
}

/* -- merging -- */

/* A stack to be merged: native frames outermost first, the first @kept as in the path. */
struct merge_job {
	struct session *session;
	struct profile *profile;
	struct mixed_path *path; /* path->frames are set, the first frames_kept as before */
	const taddr_t *pc;
	size_t count, kept, frames_kept;
};

/* With -X perf, Python calls its loop by trampolines, which have the names of functions. */
static bool is_hidden(struct session *s, taddr_t pc)
{
	const struct virtual_stacks *v = s->stacks.virtual;
	enum interpreters_mode mode = s->run->options->names.interpreters;

	if (mode != INTERPRETERS_AUTO)
		return mode == INTERPRETERS_ONLY;
	if (ranges_have(v->hidden.data, v->hidden.count, pc))
		return true;
	return code_names_begin(s, pc, "py::");
}

/* The frame of a function in the call tree; 0: it is not to be shown. */
static uint32_t find_frame(const struct merge_job *j, const struct virtual_frame *f)
{
	struct virtual_stacks *v = j->session->stacks.virtual;
	size_t slot = hash_u64(f->identity ^ f->position << 1) % RECENT_FRAMES;
	struct recent_frame *recent = &v->recent[slot];
	bool is_heap = j->profile == j->session->heap.profile;

	if (!f->identity)
		return 0;
	if (is_heap && recent->identity == f->identity && recent->position == f->position &&
	    recent->generation == v->last_serial)
		return recent->frame;
	uint64_t key = key_of(v, j->session, f);
	uint32_t frame = key ? session_named_frame(j->session, j->profile, key) : 0;

	if (is_heap)
		*recent = (struct recent_frame){f->identity, f->position, v->last_serial, frame};
	return frame;
}

/* Where the functions from @first on have the nodes that they had: behind those. */
static size_t skip_known(const struct merge_job *j, size_t first, size_t end, uint32_t *node)
{
	const struct mixed_path *path = j->path;
	size_t known = MIN(MIN(end, j->frames_kept), path->listed);

	if (first >= known || path->list[first].base != *node)
		return first;
	*node = path->list[known - 1].node;
	return known;
}

static uint32_t add_functions(const struct merge_job *j, uint32_t node, size_t first, size_t end)
{
	struct calltree *tree = profile_calltree(j->profile);
	struct mixed_path *path = j->path;
	uint32_t base = node;

	path->list = xgrow(path->list, &path->list_capacity, end + 1, sizeof(*path->list));
	for (size_t i = skip_known(j, first, end, &node); i < end; i++) {
		uint32_t frame = find_frame(j, &path->frames.data[i]);

		node = frame ? calltree_get_child(tree, node, frame) : node;
		path->list[i] = (struct list_node){base, node};
	}
	return node;
}

/* The node of the stack without functions of the language. */
static uint32_t native_node(const struct merge_job *j)
{
	struct mixed_path *path = j->path;
	size_t kept = path->was_mixed ? 0 : MIN(j->kept, path->native.count);
	uint32_t node = kept ? path->native.data[kept - 1].node : 0;

	path->native.count = kept;
	for (size_t i = kept; i < j->count; i++) {
		node = session_child(j->session, j->profile, node, j->pc[i]);
		*vec_add(&path->native) = (struct native_node){.node = node};
	}
	path->listed = 0;
	path->was_mixed = false;
	return node;
}

#define PSEUDO_NOT_MERGED "[native frames unknown]"

/* The list alone: the stacks do not fit. */
static uint32_t list_node(const struct merge_job *j)
{
	struct calltree *tree = profile_calltree(j->profile);
	uint32_t node = calltree_get_child(
		tree, 0,
		pseudo_frame_get(j->session->run->symbols, tree, PSEUDO_NOT_MERGED, NULL));

	j->session->stacks.virtual->unmerged++;
	j->path->listed = 0;
	struct virtual_merge g = virtual_merge_begin(
		j->session->stacks.virtual->interpreter.frames, j->path->frames.data,
		j->path->frames.count);

	return add_functions(j, node, MIN(g.next, 1), j->path->frames.count);
}

/* How many native frames of the path are merged as they were; the list may have changed inside. */
static size_t count_kept(const struct merge_job *j)
{
	const struct mixed_path *path = j->path;
	size_t kept = path->was_mixed ? MIN(j->kept, path->native.count) : 0;
	size_t same = j->frames_kept;
	bool grows = same < path->frames.count && !path->frames.data[same].is_entry;

	/* UINT32_MAX: a loop without a run, which it may have now */
	while (kept && (path->native.data[kept - 1].next > same ||
			(grows && path->native.data[kept - 1].next == same)))
		kept--;
	return kept;
}

/* Below a greenlet are the frames of others, one of whose loops may seem to be of its own run. */
static bool is_exchanged(const struct virtual_stacks *v, const struct merge_job *j)
{
	for (size_t i = 0; v->switchers.count && i < j->count; i++)
		if (ranges_have(v->switchers.data, v->switchers.count, j->pc[i]))
			return true;
	return false;
}

/* Adds native frames and functions from @g on to @node; false: they do not fit. */
static bool add_rest(const struct merge_job *j, struct virtual_merge *g, uint32_t *node)
{
	size_t first;

	for (size_t i = 0; i < j->count; i++) {
		enum virtual_step step = virtual_merge_step(g, j->pc[i], &first);

		if (step == VIRTUAL_SHOW_RUN)
			*node = add_functions(j, *node, first, g->next);
		else if (step == VIRTUAL_SHOW_NATIVE && !is_hidden(j->session, j->pc[i]))
			*node = session_child(j->session, j->profile, *node, j->pc[i]);
	}
	return virtual_merge_is_right(g);
}

/*
 * The node of stacks that did not fit as they are: below the functions of a fiber's callers, or the
 * list alone.
 */
static uint32_t unfit_node(const struct merge_job *j, struct virtual_merge *g)
{
	struct mixed_path *path = j->path;
	uint32_t node = 0;
	size_t loops = 0;

	path->listed = 0;
	path->native.count = 0;
	g->run = NULL;
	g->unchanged = 0;
	for (size_t i = 0; i < j->count; i++)
		loops += virtual_loop_find(g->layout, j->pc[i]) != VIRTUAL_NO_LOOP;
	if (virtual_merge_skip_callers(g, loops)) {
		node = add_functions(j, node, 0, g->next);
		if (add_rest(j, g, &node))
			return node;
	}
	return loops ? list_node(j) : native_node(j);
}

/* The frames from @first to @end are a run. */
static void note_run(const struct merge_job *j, size_t first, size_t end)
{
	struct mixed_path *path = j->path;

	path->run = xgrow(path->run, &path->run_capacity, end + 1, sizeof(*path->run));
	for (size_t i = MAX(first, MIN(j->frames_kept, path->listed)); i < end; i++)
		path->run[i] = (uint32_t)first;
}

static uint32_t merge(const struct merge_job *j)
{
	struct virtual_stacks *v = j->session->stacks.virtual;
	struct mixed_path *path = j->path;
	struct virtual_merge g = virtual_merge_begin(v->interpreter.frames, path->frames.data,
						     path->frames.count);

	if (path->frames.count <= g.next)
		return native_node(j);
	size_t kept = count_kept(j), first = 0;
	/* functions outside of the first run, which native code called, come with it */
	const size_t base = g.next, outermost = MIN(base, 1);
	uint32_t node = kept ? path->native.data[kept - 1].node : 0;

	vec_reserve(&path->native, j->count);
	g.run = path->run;
	g.unchanged = MIN(j->frames_kept, path->listed);
	if (kept)
		virtual_merge_resume(&g, j->pc, kept, path->native.data[kept - 1].next);
	for (size_t i = kept; i < j->count; i++) {
		size_t before = g.next;
		enum virtual_step step = virtual_merge_step(&g, j->pc[i], &first);

		if (g.next != before) {
			note_run(j, before, g.last_run);
			note_run(j, g.last_run, g.next);
		}
		g.run = path->run;
		if (step == VIRTUAL_SHOW_RUN)
			node = add_functions(j, node, first == base ? outermost : first, g.next);
		else if (step == VIRTUAL_SHOW_NATIVE && !is_hidden(j->session, j->pc[i]))
			node = session_child(j->session, j->profile, node, j->pc[i]);
		path->native.data[i].node = node;
		path->native.data[i].next = g.bare ? UINT32_MAX : (uint32_t)g.next;
	}
	g.is_wrong |= g.bare && is_exchanged(v, j);
	path->native.count = j->count;
	path->listed = g.is_wrong ? 0 : g.next;
	path->was_mixed = true;
	if (!virtual_merge_is_right(&g))
		return unfit_node(j, &g);
	v->merged++;
	size_t rest = virtual_merge_rest(&g);

	if (rest > g.next) {
		path->listed = 0;
		node = add_functions(j, node, g.next == base ? outermost : g.next, rest);
	}
	return node ? node : native_node(j);
}

/* -- stopped threads -- */

static struct interpreter_thread *states_of(struct virtual_stacks *v, taddr_t pointer)
{
	struct interpreter_thread *t =
		hash_find(&v->threads, hash_u64(pointer), e, e->thread_pointer == pointer);

	if (!t) {
		t = hash_add(&v->threads, hash_u64(pointer));
		*t = (struct interpreter_thread){.thread_pointer = pointer};
	}
	return t;
}

/* Fills in the list of the thread's frames, outermost first. False: it cannot be read. */
static bool read_list(struct session *s, struct interpreter_thread *states,
		      struct mixed_path *out)
{
	struct virtual_stacks *v = s->stacks.virtual;
	const struct interpreter *interpreter = &v->interpreter;
	const struct language_memory m = memory_of(v);
	uint64_t outer = 0;

	if (!v->list)
		v->list = xcalloc(FRAMES_MAX, sizeof(*v->list));
	ssize_t n = interpreter->language->stack(interpreter, &m, states, v->list, FRAMES_MAX);

	out->frames.count = 0;
	for (ssize_t i = n; i-- > 0;) {
		*vec_add(&out->frames) = v->list[i];
		/* most frames of long lists are of functions that call themselves */
		if (v->list[i].identity && v->list[i].identity != outer)
			learn_function(s, &v->list[i]);
		outer = v->list[i].identity;
	}
	return n >= 0;
}

/* Whether the list has a run for each loop of @j. */
static bool fits(const struct virtual_stacks *v, const struct merge_job *j)
{
	struct virtual_merge g = virtual_merge_begin(v->interpreter.frames, j->path->frames.data,
						     j->path->frames.count);
	size_t first;

	for (size_t i = 0; i < j->count; i++)
		virtual_merge_step(&g, j->pc[i], &first);
	return virtual_merge_is_right(&g) && !g.bare;
}

static uint32_t merge_stopped(struct merge_job *j, struct interpreter_thread *states)
{
	struct virtual_stacks *v = j->session->stacks.virtual;
	const struct language_memory m = memory_of(v);
	taddr_t pointer = states->thread_pointer;

	for (int i = 0; i < 2; i++) {
		if (read_list(j->session, states, j->path) && fits(v, j))
			break;
		states->count = i ? states->count : 0; /* a state may be new: once more */
	}
	if (!v->is_published &&
	    (!v->interpreter.language->find_place ||
	     v->interpreter.language->find_place(&v->interpreter, &m, states)))
		publish(v);
	/* a pad knows one state for each thread, unless the stack says which there are */
	bool has_all = states->count == 1 ||
		       v->interpreter.frames->thread.kind == VIRTUAL_STATE_STACK;

	pads_set_thread_states(v->space, pointer, states->state, has_all ? states->count : 0);
	return merge(j);
}

/* The thread that has stopped with @stack. */
static struct interpreter_thread *stopped_thread(struct virtual_stacks *v,
						 const struct native_stack *stack)
{
	struct arch_regs regs = {0};

	if (ptrace_get_regs(stack->tid, &regs) != 0)
		regs = (struct arch_regs){0};
	struct interpreter_thread *t = states_of(v, regs.word[arch_native->thread_pointer]);

	t->regs = regs;
	t->sp = regs.word[arch_native->sp];
	t->moved_from = stack->moved_from;
	t->moved_to = stack->moved_to;
	return t;
}

uint32_t virtual_stack_node(struct session *s, struct profile *p, const struct native_stack *stack)
{
	struct virtual_stacks *v = s->stacks.virtual;
	struct interpreter_thread *thread = NULL;
	bool has_loop = stack->tid && !v->is_given_up && passes_loop(v, stack);

	if (stack->tid)
		pads_count_death(v->space);
	v->pcs.count = 0;
	for (size_t i = stack->count; i-- > 0;)
		*vec_add(&v->pcs) = stack->pc[i];
	struct merge_job j = {s, p, &v->scratch, v->pcs.data, stack->count, 0, 0};

	if (has_loop) {
		stop_memory_forget(v->memory);
		thread = stopped_thread(v, stack);
		if (!v->is_found && runs_loop(v, stack))
			find_interpreter(v, thread);
	}
	if (!has_loop || !v->is_found)
		return native_node(&j);
	return merge_stopped(&j, thread);
}

/* -- records of pads -- */

/* Updates the list of @path by @he. Returns how many outer frames are as before. */
static size_t update_list(const struct heap_event *he, struct mixed_path *path)
{
	size_t kept = MIN(he->list_kept, path->frames.count);

	path->frames.count = kept;
	for (size_t i = kept; i < he->list_count; i++) {
		uint64_t word = he->list[i].word;

		*vec_add(&path->frames) = (struct virtual_frame){
			.identity = word & ~(uint64_t)PAD_VIRTUAL_ENTRY,
			.position = he->list[i].position,
			.is_entry = word & PAD_VIRTUAL_ENTRY,
		};
	}
	return kept;
}

/* Else the record begins another series. */
static bool is_in_series(const struct merge_job *j)
{
	struct merge_series *series = &j->path->series;
	size_t frames = j->path->frames.count;

	if (series->number && series->frames == frames && j->path->listed == frames && frames &&
	    j->frames_kept + 1 >= frames && j->kept >= series->native && j->count >= j->kept &&
	    j->count - series->native <= KEPT_NATIVE)
		return true;
	*series = (struct merge_series){++j->session->stacks.virtual->last_series, frames, j->kept};
	return false;
}

static const struct virtual_frame *innermost(const struct merge_job *j)
{
	return &j->path->frames.data[j->path->frames.count - 1];
}

/* Where the merge of @j is kept, if it is. */
static struct kept_merge *kept_merge_of(const struct merge_job *j)
{
	uint64_t key = innermost(j)->position ^ j->path->series.number;

	if (j->count > j->path->series.native)
		key ^= j->pc[j->count - 1] << 20;
	return &j->session->stacks.virtual->kept[hash_u64(key) % KEPT_MERGES];
}

static bool is_kept(const struct merge_job *j, const struct kept_merge *k)
{
	const struct virtual_frame *f = innermost(j);
	size_t same = j->path->series.native;

	return k->series == j->path->series.number && k->count == j->count &&
	       k->generation == j->session->stacks.virtual->last_serial &&
	       k->identity == f->identity && k->position == f->position &&
	       k->is_entry == f->is_entry &&
	       memcmp(k->pc, &j->pc[same], (j->count - same) * sizeof(*k->pc)) == 0;
}

/* The path becomes what the merge of @j would make of it. */
static uint32_t take_kept(const struct merge_job *j, const struct kept_merge *k)
{
	struct mixed_path *path = j->path;
	size_t last = path->frames.count - 1, same = path->series.native;

	CHECK_DEBUG(merge(j) == k->result && path->listed == last + 1);
	vec_reserve(&path->native, j->count);
	for (size_t i = same; i < j->count; i++)
		path->native.data[i] = k->native[i - same];
	path->native.count = j->count;
	path->list[last] = k->last;
	path->run[last] = k->run;
	j->session->stacks.virtual->merged++;
	return k->result;
}

/* Keeps the merge that was made last, in the place of another one. */
static void keep_merge(const struct merge_job *j, struct kept_merge *k)
{
	const struct virtual_stacks *v = j->session->stacks.virtual;
	const struct mixed_path *path = j->path;
	const struct virtual_frame *f = innermost(j);
	size_t last = path->frames.count - 1, same = path->series.native;

	k->series = 0;
	if (path->listed != last + 1 || path->native.count != j->count)
		return;
	struct kept_merge now = {
		.series = path->series.number, .generation = v->last_serial,
		.count = (uint32_t)j->count, .identity = f->identity, .position = f->position,
		.is_entry = f->is_entry, .last = path->list[last], .run = path->run[last],
		.result = path->result,
	};
	for (size_t i = same; i < j->count; i++) {
		/* of generated code a name, which may change, says whether it is shown */
		if (path->native.data[i].next == UINT32_MAX ||
		    !space_find_module(v->space, j->pc[i]))
			return;
		now.pc[i - same] = j->pc[i];
		now.native[i - same] = path->native.data[i];
	}
	*k = now;
}

uint32_t virtual_path_node(struct session *s, const struct heap_event *he)
{
	struct virtual_stacks *v = s->stacks.virtual;

	while (v->paths.count <= he->path)
		*vec_add(&v->paths) = (struct mixed_path){0};
	struct mixed_path *path = &v->paths.data[he->path];
	size_t before = path->frames.count;
	bool is_same = he->kept == he->frame_count && path->native.count == he->frame_count &&
		       he->list_kept == he->list_count;
	size_t kept = update_list(he, path);

	if (is_same && kept == before && path->frames.count == before)
		return path->result;
	const struct merge_job j = {s, s->heap.profile, path, he->frame, he->frame_count,
				    he->kept, kept};
	if (path->frames.count == 0)
		return path->result = native_node(&j);
	struct kept_merge *k = is_in_series(&j) ? kept_merge_of(&j) : NULL;

	if (k && is_kept(&j, k))
		return path->result = take_kept(&j, k);
	path->result = merge(&j);
	if (k)
		keep_merge(&j, k);
	return path->result;
}

/* -- life -- */

static struct virtual_stacks *new_stacks(struct session *s)
{
	struct virtual_stacks *v = xcalloc(1, sizeof(*v));

	v->space = s->space;
	v->memory = stop_memory_new(s->space);
	v->recent = xcalloc(RECENT_FRAMES, sizeof(*v->recent));
	v->kept = xcalloc(KEPT_MERGES, sizeof(*v->kept));
	return v;
}

static bool is_part(const struct virtual_stacks *v, const struct module *m)
{
	return v->interpreter.language->is_part(m->path);
}

static bool is_switcher(const struct virtual_stacks *v, const struct module *m)
{
	const struct language *l = v->interpreter.language;

	return l->is_switcher && l->is_switcher(m->path);
}

/* @m may have another interpreter of the language. */
static void note_other(struct virtual_stacks *v, const struct module *m)
{
	const struct language *l = v->interpreter.language;
	struct interpreter found = {.language = l};

	if (v->other || m->id == v->module || !l->is_object(text_base_name(m->path)) ||
	    !l->open(m->file, m->bias, &found))
		return;
	l->close(&found);
	v->other = xstrdup(m->path);
}

void virtual_stacks_module(struct session *s, const struct module *m)
{
	struct virtual_stacks *v = s->stacks.virtual;
	struct interpreter found;

	if (s->run->options->names.interpreters == INTERPRETERS_NO ||
	    s->run->options->tracing.verify_stacks || !m->file)
		return;
	if (v)
		forget_series(v);
	if (v && v->module && is_switcher(v, m))
		*vec_add(&v->switchers) = (struct addr_range){m->start, m->end};
	if (v && v->module)
		note_other(v, m);
	if (v && v->module && is_part(v, m))
		*vec_add(&v->hidden) = (struct addr_range){m->start, m->end};
	if ((v && v->module) || !interpreter_open(m->path, m->file, m->bias, &found))
		return;
	v = s->stacks.virtual = new_stacks(s);
	v->module = m->id;
	v->path = xstrdup(m->path);
	v->interpreter = found;
	if (found.missing) {
		v->is_given_up = true;
		v->problem = xasprintf("%s has no symbol %s", text_base_name(m->path),
				       found.missing);
	}
	*vec_add(&v->hidden) = found.embedded.end ? found.embedded :
						    (struct addr_range){m->start, m->end};
	for (size_t i = 0; i < s->space->modules.count; i++) {
		const struct module *other = s->space->modules.data[i];

		if (other != m && is_part(v, other))
			*vec_add(&v->hidden) = (struct addr_range){other->start, other->end};
		if (is_switcher(v, other))
			*vec_add(&v->switchers) = (struct addr_range){other->start, other->end};
	}
	publish(v);
}

void virtual_stacks_module_gone(struct session *s, const struct module *m)
{
	struct virtual_stacks *v = s->stacks.virtual;

	if (v)
		forget_series(v);
	for (size_t i = 0; v && i < v->hidden.count; i++)
		if (v->hidden.data[i].start == m->start)
			v->hidden.data[i].end = m->start;
	for (size_t i = 0; v && i < v->switchers.count; i++)
		if (v->switchers.data[i].start == m->start)
			v->switchers.data[i].end = m->start;
	if (!v || v->module != m->id)
		return;
	v->is_given_up = true;
	publish(v);
}

static void drop_path(struct mixed_path *path)
{
	vec_deinit(&path->native);
	free(path->list);
	free(path->run);
	vec_deinit(&path->frames);
}

void virtual_stacks_free(struct virtual_stacks *v)
{
	if (!v)
		return;
	for (size_t i = 0; hash_next(&v->functions.index, &i); i++)
		virtual_function_deinit(&v->functions.slot[i].code);
	hash_deinit(&v->functions);
	hash_deinit(&v->positions);
	hash_deinit(&v->threads);
	vec_release(&v->paths, e, drop_path(e));
	drop_path(&v->scratch);
	vec_deinit(&v->pcs);
	vec_deinit(&v->hidden);
	vec_deinit(&v->switchers);
	if (v->interpreter.own)
		v->interpreter.language->close(&v->interpreter);
	stop_memory_free(v->memory);
	free(v->recent);
	free(v->kept);
	free(v->list);
	free(v->problem);
	free(v->other);
	free(v->path);
	free(v);
}

/* The child looks for the interpreter again: it has one thread, and its own pads. */
void virtual_stacks_fork(struct session *child)
{
	const struct virtual_stacks *from = child->stacks.virtual;
	struct virtual_stacks *v;

	if (!from)
		return;
	v = child->stacks.virtual = new_stacks(child);
	v->module = from->module;
	v->path = xstrdup(from->path);
	v->is_given_up = from->is_given_up;
	vec_append(&v->hidden, &from->hidden);
	vec_append(&v->switchers, &from->switchers);
	v->interpreter.language = from->interpreter.language;
	v->interpreter.language->copy(&from->interpreter, &v->interpreter);
	vec_append(&v->interpreter.frames->loops, &from->interpreter.frames->loops);
	publish(v);
}

void virtual_stacks_print(const struct session *s)
{
	const struct virtual_stacks *v = s->stacks.virtual;
	char n[AMOUNT_SIZE];

	if (!v || (!v->tries && !v->problem))
		return;
	const char *language = v->interpreter.language->name;

	if (!v->is_found)
		log_info("  %-12s functions of the interpreter are shown instead of the "
			 "program's%s%s", language, v->problem ? ": " : "",
			 v->problem ? v->problem : "");
	if (v->other)
		log_info("  %-12s functions of %s are shown, of %s the interpreter's", language,
			 text_base_name(v->path), v->other);
	if (v->unmerged)
		log_info("  %-12s %s stack%s of native and of %s functions did not fit; "
			 "the latter are below \"%s\"",
			 language, amount_commas(v->unmerged, n), plural(v->unmerged), language,
			 PSEUDO_NOT_MERGED);
}
