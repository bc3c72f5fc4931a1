/* What is known of a process with V8. See v8_stacks.h. */
#include "session/runtimes/v8_stacks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/text.h"
#include "languages/v8.h"
#include "session/runtimes/code_names.h"
#include "session/runtimes/stop_memory.h"
#include "session/runtimes/virtual_stacks.h"
#include "session/session.h"
#include "tracee/os/maps.h"
#include "tracee/pads/pads.h"
#include "tracee/state/module.h"
#include "tracee/state/space.h"
#include "unwind/unwind.h"

#define REGION_MIN (UINT64_C(16) << 20) /* V8 reserves more for JavaScript */
#define REGION_MAX (UINT64_C(1) << 30)
#define RETRY_NS UINT64_C(20000000)     /* between searches for code */
#define TRIES_MAX 256u                  /* to read a function */
#define MARKER_MAX 256u                 /* of frames without a function: an even number, not 0 */

/* A map that was not V8's when it was looked at. */
struct refused_map {
	taddr_t start, end;
	uint64_t until_ns; /* it may be then: what is reserved grows */
};

#define REFUSED 8u

/* Code in which frames can have functions. */
struct function_range {
	taddr_t start, end;
	bool is_compiled; /* at run time; else it is the interpreter */
};

/* A function, as long as another one has not taken its address. */
struct js_function {
	uint64_t identity, stamp;
	uint64_t key; /* of its name */
	uint32_t tries;
};

/* The stack of a slot's last record; arrays are outermost first. */
struct js_path {
	/* after each native frame: the node, and how many functions of the list are used */
	VEC(struct { uint32_t node; uint32_t used; }) native;
	uint32_t result;
	uint32_t renamed; /* as in the session when that was looked up */
};

struct v8_stacks {
	struct address_space *space;
	uint32_t module;     /* the object with V8 */
	struct elf_file *file; /* of it; held by the module */
	char *path;
	struct v8 v8;
	bool is_on;
	VEC(struct function_range) ranges;
	struct refused_map refused[REFUSED];
	size_t next_refused;
	HASH(struct js_function) functions;
	VEC(struct js_path) paths; /* by slot */
	uint64_t unmerged;
	struct stop_memory *memory;
};

static bool read_memory(void *ctx, taddr_t addr, void *buf, size_t size)
{
	const struct v8_stacks *v = ctx;

	return space_read(v->space, addr, buf, size) == 0;
}

static struct language_memory memory_of(struct v8_stacks *v)
{
	return (struct language_memory){read_memory, v};
}

bool v8_stacks_are_on(const struct session *s)
{
	return s->stacks.v8 && s->stacks.v8->is_on;
}

/* -- code -- */

static void publish(struct v8_stacks *v)
{
	struct pad_virtual_layout out = {.mode = PAD_VIRTUAL_ON};

	v8_fill_pad_layout(&v->v8, &out);
	for (size_t i = 0; i < v->ranges.count && out.ranges < PAD_VIRTUAL_RANGES; i++) {
		/* of return addresses */
		out.range[out.ranges].start = v->ranges.data[i].start + 1;
		out.range[out.ranges++].end = v->ranges.data[i].end + 1;
	}
	if (!v->is_on)
		out = (struct pad_virtual_layout){.mode = PAD_VIRTUAL_OFF};
	pads_set_virtual(v->space, &out);
}

/* @pc: of a caller the return address minus 1. */
static const struct function_range *find_range(const struct v8_stacks *v, taddr_t pc)
{
	for (size_t i = 0; i < v->ranges.count; i++)
		if (pc >= v->ranges.data[i].start && pc < v->ranges.data[i].end)
			return &v->ranges.data[i];
	return NULL;
}

static void drop_ranges(struct session *s, taddr_t start, taddr_t end)
{
	struct v8_stacks *v = s->stacks.v8;
	size_t kept = 0;

	for (size_t i = 0; i < v->ranges.count; i++) {
		const struct function_range r = v->ranges.data[i];

		if (r.start >= end || r.end <= start)
			v->ranges.data[kept++] = r;
		else
			unwind_forget(s->stacks.unwind, r.start, r.end + 1);
	}
	if (kept == v->ranges.count)
		return;
	v->ranges.count = kept;
	publish(v);
}

static void add_range(struct v8_stacks *v, taddr_t start, taddr_t end, bool is_compiled)
{
	size_t kept = 0;

	for (size_t i = 0; i < v->ranges.count; i++) {
		const struct function_range r = v->ranges.data[i];

		if (r.is_compiled && is_compiled && r.start <= end && start <= r.end) {
			start = MIN(start, r.start); /* what was reserved has grown */
			end = MAX(end, r.end);
		} else {
			v->ranges.data[kept++] = r;
		}
	}
	v->ranges.count = kept;
	if (kept == PAD_VIRTUAL_RANGES)
		return;
	*vec_add(&v->ranges) = (struct function_range){start, end, is_compiled};
	publish(v);
}

/* Whether @m can be a part of what V8 has reserved for code. */
static bool is_reserved(const struct map *m)
{
	return map_is_anonymous(m) && !m->path[0] && !m->is_shared;
}

static bool is_refused(const struct v8_stacks *v, taddr_t pc, uint64_t now)
{
	for (size_t i = 0; i < REFUSED; i++)
		if (pc >= v->refused[i].start && pc < v->refused[i].end &&
		    now < v->refused[i].until_ns)
			return true;
	return false;
}

/* Adds the range of what is reserved around map @at, if it has @size bytes at least. */
static void add_region(struct v8_stacks *v, const struct maps *maps, size_t at, uint64_t size)
{
	const struct map *m = maps->list.data;
	size_t last = at;

	while (at > 0 && is_reserved(&m[at - 1]) && m[at - 1].end == m[at].start &&
	       m[last].end - m[at - 1].start <= REGION_MAX)
		at--;
	while (last + 1 < maps->list.count && is_reserved(&m[last + 1]) &&
	       m[last + 1].start == m[last].end && m[last + 1].end - m[at].start <= REGION_MAX)
		last++;
	if (m[last].end - m[at].start >= size)
		add_range(v, m[at].start, m[last].end, true);
}

/* Finds what V8 has reserved for code around @pc, which no file covers: at least @size bytes. */
static void find_region(struct v8_stacks *v, taddr_t pc, uint64_t size)
{
	uint64_t now = clock_now_ns();
	struct maps maps;

	if (is_refused(v, pc, now) || maps_read(v->space->processes.reader, &maps) != 0)
		return;
	size_t at = vec_search(&maps.list, m, m->end <= pc);
	const struct map *m = at < maps.list.count ? &maps.list.data[at] : NULL;

	if (m && pc >= m->start && m->is_exec && is_reserved(m))
		add_region(v, &maps, at, size);
	if (m && pc >= m->start && !find_range(v, pc))
		v->refused[v->next_refused++ % REFUSED] = (struct refused_map){
			m->start, m->end, clock_now_ns() + RETRY_NS};
	maps_deinit(&maps);
}

/*
 * Whether the frame at @fp is one of WebAssembly, which has regions of its own, of any size: it has
 * a marker, and returns to code of V8. Code that others generate does not.
 */
static bool is_wasm_frame(struct v8_stacks *v, taddr_t fp, uint64_t marker)
{
	const struct language_memory m = memory_of(v);
	const struct module *module;
	uint64_t pc;

	if (!marker || marker & 1 || marker > MARKER_MAX ||
	    !language_read_word(&m, fp + sizeof(pc), &pc) || !pc)
		return false;
	module = space_find_module(v->space, pc - 1);
	return module ? module->file == v->file : find_range(v, pc - 1) != NULL;
}

bool v8_stacks_find_code(struct session *s, const struct generated_place *place,
			 struct generated_code *out)
{
	struct v8_stacks *v = s->stacks.v8;
	const struct language_memory m = memory_of(v);
	taddr_t pc = place->pc - 1;
	uint64_t context;

	/* until its prologue has been executed a function has no frame */
	if (place->is_exact || !place->fp || place->fp < place->sp ||
	    !language_read_word(&m, place->fp + (uint64_t)(int64_t)v->v8.layout.frame_context,
				&context))
		return false;
	if (!find_range(v, pc))
		find_region(v, pc, is_wasm_frame(v, place->fp, context) ? 1 : REGION_MIN);
	const struct function_range *r = find_range(v, pc);

	if (!r || !r->is_compiled ||
	    (!v8_frame_function(&v->v8, &m, place->fp) && context > MARKER_MAX))
		return false;
	*out = (struct generated_code){.kind = GENERATED_FP, .start = r->start, .end = r->end,
				       .is_fixed = true};
	return true;
}

/* -- functions -- */

static struct js_function *find_function(struct v8_stacks *v, uint64_t identity)
{
	return hash_find(&v->functions, hash_u64(identity), e, e->identity == identity);
}

static uint64_t key_of(struct session *s, const struct v8_function *f)
{
	const char *base = f->path ? text_base_name(f->path) : NULL;
	_cleanup_free_ char *dir = NULL;

	if (base && base > f->path + 1)
		dir = xstrndup(f->path, (size_t)(base - f->path) - 1);
	struct symbol_frame frame = {.name = f->name, .file = base, .dir = dir, .line = f->line};
	const struct symbol sym = {.object = f->path, .frame = &frame, .count = 1};

	return symbols_name(s->run->symbols, &sym);
}

/* The function @identity runs in a thread that is stopped: reads it, unless it is known. */
static void learn_function(struct session *s, uint64_t identity)
{
	struct v8_stacks *v = s->stacks.v8;
	const struct language_memory m = memory_of(v);
	uint64_t stamp = v8_function_stamp(&v->v8, &m, identity);
	struct js_function *f = find_function(v, identity);
	struct v8_function read;

	if (!f) {
		f = hash_add(&v->functions, hash_u64(identity));
		*f = (struct js_function){.identity = identity};
	}
	if (!stamp || f->stamp != stamp) {
		f->stamp = stamp;
		f->key = 0;
		f->tries++;
		if (v8_function_read(&v->v8, &m, identity, &read) == 0) {
			f->key = key_of(s, &read);
			f->tries = 0;
			v8_function_deinit(&read);
		} else if (f->tries < TRIES_MAX) {
			f->stamp = 0; /* it is being moved: pads ask again */
			return;
		}
	}
	if (stamp)
		pads_know_function(v->space, identity, stamp);
}

/* Adds the frame of @identity at @pc behind @node. */
static uint32_t add_frame(struct session *s, struct profile *p, uint32_t node, taddr_t pc,
			  uint64_t identity)
{
	const struct js_function *f = identity ? find_function(s->stacks.v8, identity) : NULL;

	if (!f || !f->key)
		return session_child(s, p, node, pc);
	return calltree_get_child(profile_calltree(p), node, session_named_frame(s, p, f->key));
}

/* -- stopped threads -- */

/*
 * Of a stopped thread only the stack is read by pages: V8's other threads may move objects at any
 * time.
 */
struct stop_reader {
	struct v8_stacks *v8;
	struct language_memory stack;
	taddr_t low, high;
};

#define AROUND_FRAMES 64u /* bytes: a frame's function is near its frame pointer */

static bool read_at_stop(void *ctx, taddr_t addr, void *buf, size_t size)
{
	const struct stop_reader *r = ctx;

	return addr >= r->low && addr < r->high ? r->stack.read(r->stack.ctx, addr, buf, size) :
						  read_memory(r->v8, addr, buf, size);
}

static void begin_stop(struct v8_stacks *v, const struct native_stack *stack,
		       struct stop_reader *out)
{
	*out = (struct stop_reader){v, stop_memory_reader(v->memory), UINT64_MAX, 0};
	stop_memory_forget(v->memory);
	for (size_t i = 0; stack->tid && i < stack->count; i++) {
		if (!stack->fp[i])
			continue;
		out->low = MIN(out->low, stack->fp[i] - AROUND_FRAMES);
		out->high = MAX(out->high, stack->fp[i] + AROUND_FRAMES);
	}
}

uint32_t v8_stack_node(struct session *s, struct profile *p, const struct native_stack *stack)
{
	struct v8_stacks *v = s->stacks.v8;
	struct stop_reader reader;
	const struct language_memory m = {read_at_stop, &reader};
	uint64_t learned = 0; /* the function of the last frame: recursion has many of the same */
	uint32_t node = 0;

	begin_stop(v, stack, &reader);
	for (size_t i = stack->count; i-- > 0;) {
		uint64_t identity = 0;

		session_module(s, stack->pc[i]); /* may be a copy of built-in code that is new */
		/* of a copied stack the objects can have moved since */
		if (stack->tid && find_range(v, stack->pc[i]))
			identity = v8_frame_function(&v->v8, &m, stack->fp[i]);
		if (identity && identity != learned) {
			learn_function(s, identity);
			learned = identity;
		}
		node = add_frame(s, p, node, stack->pc[i], identity);
	}
	return node;
}

/* -- records of pads -- */

/* Adds the frames from number @from on. False: the list does not have one function for each. */
static bool add_frames(struct session *s, const struct heap_event *he, struct js_path *path,
		       uint32_t from)
{
	const struct v8_stacks *v = s->stacks.v8;
	uint32_t node = from ? path->native.data[from - 1].node : 0;
	uint32_t used = from ? path->native.data[from - 1].used : 0;

	for (uint32_t i = from; i < he->frame_count; i++) {
		uint64_t identity = 0;

		if (find_range(v, he->frame[i])) {
			if (used == he->list_count)
				return false;
			identity = he->list[used++].word & ~(uint64_t)PAD_VIRTUAL_ENTRY;
		}
		node = add_frame(s, s->heap.profile, node, he->frame[i], identity);
		path->native.data[i].node = node;
		path->native.data[i].used = used;
	}
	return used == he->list_count;
}

static uint32_t native_node(struct session *s, const struct heap_event *he)
{
	uint32_t node = 0;

	for (uint32_t i = 0; i < he->frame_count; i++)
		node = session_child(s, s->heap.profile, node, he->frame[i]);
	return node;
}

uint32_t v8_path_node(struct session *s, const struct heap_event *he)
{
	struct v8_stacks *v = s->stacks.v8;

	while (v->paths.count <= he->path)
		*vec_add(&v->paths) = (struct js_path){0};
	struct js_path *path = &v->paths.data[he->path];

	if (path->renamed != s->stacks.renamed)
		path->native.count = 0;
	path->renamed = s->stacks.renamed;
	uint32_t kept = (uint32_t)MIN(he->kept, path->native.count);

	if (kept == he->frame_count && path->native.count == kept &&
	    he->list_kept == he->list_count && kept &&
	    path->native.data[kept - 1].used == he->list_count)
		return path->result;
	while (kept && path->native.data[kept - 1].used > he->list_kept)
		kept--;
	vec_reserve(&path->native, he->frame_count);
	path->native.count = 0;
	if (add_frames(s, he, path, kept)) {
		path->native.count = he->frame_count;
		path->result = path->native.count ?
				       path->native.data[path->native.count - 1].node : 0;
		return path->result;
	}
	v->unmerged++;
	return native_node(s, he);
}

/* -- life -- */

static bool may_have_v8(const char *path)
{
	static const char *const parts[] = {"node", "libv8", "electron", "deno"};
	const char *base = text_base_name(path);

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		if (strstr(base, parts[i]))
			return true;
	return false;
}

static void open_v8(struct session *s, const struct module *m)
{
	struct v8_stacks *v = xcalloc(1, sizeof(*v));
	const struct language_memory memory = {read_memory, v};

	v->space = s->space;
	v->memory = stop_memory_new(s->space);
	int rc = v8_open(m->file, m->bias, &memory, &v->v8);

	if (rc == -ENOENT) {
		stop_memory_free(v->memory);
		free(v);
		return;
	}
	s->stacks.v8 = v;
	v->module = m->id;
	v->file = m->file;
	v->path = xstrdup(m->path);
	v->is_on = rc == 0;
	log_verbose("%s: V8, whose functions are %sshown", m->path, v->is_on ? "" : "not ");
}

void v8_stacks_module(struct session *s, const struct module *m)
{
	struct v8_stacks *v = s->stacks.v8;

	if (!m->file || !s->space || s->run->options->tracing.verify_stacks)
		return;
	if (v && v->is_on && v->file != m->file)
		drop_ranges(s, m->start, m->end); /* a region was given back */
	if (!v && !s->stacks.virtual && may_have_v8(m->path))
		open_v8(s, m);
	v = s->stacks.v8;
	if (!v || !v->is_on || v->file != m->file)
		return;
	taddr_t start = m->bias + v->v8.loop, end = m->bias + v->v8.loop_end;

	if (start >= m->start && end <= m->end && !find_range(v, start))
		add_range(v, start, end, false);
}

void v8_stacks_module_gone(struct session *s, const struct module *m)
{
	struct v8_stacks *v = s->stacks.v8;

	if (!v || !v->is_on)
		return;
	drop_ranges(s, m->start, m->end);
	if (m->id != v->module)
		return;
	v->is_on = false;
	publish(v);
}

void v8_stacks_free(struct v8_stacks *v)
{
	if (!v)
		return;
	vec_release(&v->paths, e, vec_deinit(&e->native));
	vec_deinit(&v->ranges);
	hash_deinit(&v->functions);
	v8_deinit(&v->v8);
	stop_memory_free(v->memory);
	free(v->path);
	free(v);
}

void v8_stacks_fork(struct session *child)
{
	bool had = child->stacks.v8;

	child->stacks.v8 = NULL;
	for (size_t i = 0; had && child->space && i < child->space->modules.count; i++)
		v8_stacks_module(child, child->space->modules.data[i]);
}

void v8_stacks_print(const struct session *s)
{
	const struct v8_stacks *v = s->stacks.v8;

	if (v && !v->is_on && !code_names_are_published(s))
		log_info("  JavaScript   functions have no names: %s lacks symbols for them; "
			 "\"node --perf-basic-prof\" publishes their names", v->path);
}
