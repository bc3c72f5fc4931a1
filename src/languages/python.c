/*
 * Where a process has CPython, by which offsets its structs are read, and the states of its
 * threads. See python.h.
 *
 * The table is of 64-bit builds, compiled from each version's headers. Offsets in _Py_DebugOffsets
 * are used as they are, but each must be small: they are the program's.
 */
#include "languages/python.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "arch/arch.h"
#include "base/cleanup.h"
#include "base/elf_file.h"
#include "base/text.h"

/* -- layouts -- */

#define OFFSET_MAX (1u << 20)   /* of an interpreter's state, the largest struct */
#define OBJECT_OFFSET_MAX 512u  /* in frames and objects */

/* Objects before the free-threaded build; texts until 3.11, and from 3.12 on. */
#define OBJECTS \
	.type = 8, .size = 16, .type_name = 24, .text_length = 16, .text_state = 32, \
	.text_kind_bit = 2, .bytes_data = 32
#define TEXTS_3_8 .text_ascii = 48, .text_compact = 72
#define TEXTS_3_12 .text_ascii = 40, .text_compact = 56
#define STATES_3_8 .state_next = 8, .state_interp = 16
#define CODE_3_8                                                                             \
	.code_file = 104, .code_name = 112, .code_line = 40, .code_table = 120, .code_args = 16, \
	.interp_threads = 8, .interpreters = 32, .state_thread = 176
#define CODE_3_11                                                                            \
	.lines = PYTHON_LOCATIONS, .positions = PYTHON_POINTER, .code_file = 112,            \
	.code_name = 120, .code_qualname = 128, .code_table = 136, .interpreters = 40

static const struct python_layout layouts[] = {
	{.version = PYTHON_VERSION(3, 8), OBJECTS, TEXTS_3_8, STATES_3_8, CODE_3_8,
	 .lines = PYTHON_LNOTAB, .positions = PYTHON_BYTES, .current_state = 1368},
	{.version = PYTHON_VERSION(3, 9), OBJECTS, TEXTS_3_8, STATES_3_8, CODE_3_8,
	 .lines = PYTHON_LNOTAB, .positions = PYTHON_BYTES, .current_state = 568},
	{.version = PYTHON_VERSION(3, 10), OBJECTS, TEXTS_3_8, STATES_3_8, CODE_3_8,
	 .lines = PYTHON_LINETABLE, .positions = PYTHON_UNITS, .current_state = 568},
	{.version = PYTHON_VERSION(3, 11), OBJECTS, TEXTS_3_8, STATES_3_8, CODE_3_11,
	 .interp_threads = 16, .state_thread = 152, .current_state = 576, .code_line = 72,
	 .code_args = 56, .code_start = 184},
	{.version = PYTHON_VERSION(3, 12), OBJECTS, TEXTS_3_12, STATES_3_8, CODE_3_11,
	 .interp_threads = 72, .state_thread = 136, .code_line = 68, .code_args = 52,
	 .code_start = 192},
};

/* The frames of these versions: as layouts. From 3.13 on they are published, but for the entry. */
#define FRAMES_3_8 \
	.heads = 1, .head = {24}, .next = 24, .identity = 32, .position_size = 4, \
	.entry_kind = VIRTUAL_ENTRY_EACH, .identity_mask = UINT64_MAX
#define FRAMES_3_12 \
	.heads = 2, .head = {56, 0}, .next = 8, .identity = 0, .position_size = 8, .position = 56, \
	.entry_kind = VIRTUAL_ENTRY_SHIM, .entry = 70, .entry_min = 3, .identity_mask = UINT64_MAX

static const struct virtual_layout frame_layouts[ARRAY_SIZE(layouts)] = {
	{FRAMES_3_8, .position = 104},
	{FRAMES_3_8, .position = 104},
	{FRAMES_3_8, .position = 96},
	{.heads = 2, .head = {56, 8}, .next = 48, .identity = 32, .position_size = 8,
	 .position = 56, .entry_kind = VIRTUAL_ENTRY_FLAG, .entry = 68,
	 .entry_mask = 0xff, .identity_mask = UINT64_MAX},
	{FRAMES_3_12},
};

/* Where an offset is in _Py_DebugOffsets, in words from its start, by version. */
struct debug_place {
	uint8_t word[3];       /* 3.13, 3.14, 3.15 */
	uint32_t max;
	size_t field;          /* in struct python_layout */
};

#define FIELD(name) offsetof(struct python_layout, name)

#define DEBUG_WORDS 128u
#define DEBUG_COOKIE "xdebugpy"
enum { DEBUG_VERSION = 1, DEBUG_FREE_THREADED = 2 };

static const struct debug_place debug_places[] = {
	{{5, 5, 5}, OFFSET_MAX, FIELD(interpreters)},
	{{8, 8, 8}, OFFSET_MAX, FIELD(interp_next)},
	{{9, 9, 9}, OFFSET_MAX, FIELD(interp_threads)},
	{{21, 24, 24}, OFFSET_MAX, FIELD(state_next)},
	{{22, 25, 25}, OFFSET_MAX, FIELD(state_interp)},
	{{24, 27, 30}, OFFSET_MAX, FIELD(state_thread)},
	{{35, 40, 48}, OBJECT_OFFSET_MAX, FIELD(code_file)},
	{{36, 41, 49}, OBJECT_OFFSET_MAX, FIELD(code_name)},
	{{37, 42, 50}, OBJECT_OFFSET_MAX, FIELD(code_qualname)},
	{{38, 43, 51}, OBJECT_OFFSET_MAX, FIELD(code_table)},
	{{39, 44, 52}, OBJECT_OFFSET_MAX, FIELD(code_line)},
	{{40, 45, 53}, OBJECT_OFFSET_MAX, FIELD(code_args)},
	{{43, 48, 56}, OBJECT_OFFSET_MAX, FIELD(code_start)},
	{{0, 49, 57}, OBJECT_OFFSET_MAX, FIELD(code_copies)},
	{{45, 51, 59}, OBJECT_OFFSET_MAX, FIELD(type)},
	{{52, 58, 70}, OBJECT_OFFSET_MAX, FIELD(size)},
	{{47, 53, 61}, OBJECT_OFFSET_MAX, FIELD(type_name)},
	{{66, 76, 88}, OBJECT_OFFSET_MAX, FIELD(bytes_data)},
	{{68, 78, 90}, OBJECT_OFFSET_MAX, FIELD(text_state)},
	{{69, 79, 91}, OBJECT_OFFSET_MAX, FIELD(text_length)},
	{{70, 80, 92}, OBJECT_OFFSET_MAX, FIELD(text_ascii)},
};

/* Of frames: the state's current_frame, and what is in a frame. */
enum { DEBUG_HEAD, DEBUG_PREVIOUS, DEBUG_EXECUTABLE, DEBUG_POSITION, DEBUG_OWNER, DEBUG_FRAME };
static const uint8_t debug_frame[3][DEBUG_FRAME] = {
	{23, 29, 30, 31, 33}, {26, 32, 33, 34, 36}, {26, 40, 41, 42, 44}};

/* Fills in what _Py_DebugOffsets says. False: not a version that is known, or nonsense. */
static bool use_debug_offsets(struct python *p, const uint64_t *words)
{
	uint32_t version = (uint32_t)(words[DEBUG_VERSION] >> 16);
	uint32_t column = version - PYTHON_VERSION(3, 13);
	struct python_layout *l = &p->layout;

	if (version < PYTHON_VERSION(3, 13) || version > PYTHON_NEWEST)
		return false;
	const uint8_t *frame = debug_frame[column];

	p->is_free_threaded = words[DEBUG_FREE_THREADED] == 1;
	*l = (struct python_layout){.version = version, .lines = PYTHON_LOCATIONS,
				    .positions = PYTHON_POINTER};
	for (size_t i = 0; i < ARRAY_SIZE(debug_places); i++) {
		const struct debug_place *d = &debug_places[i];
		uint32_t offset = (uint32_t)words[d->word[column]];

		if (!d->word[column])
			continue;
		if (words[d->word[column]] > d->max)
			return false;
		memcpy((char *)l + d->field, &offset, sizeof(offset));
	}
	for (int i = 0; i < DEBUG_FRAME; i++)
		if (words[frame[i]] > OBJECT_OFFSET_MAX)
			return false;
	l->text_compact = l->text_ascii + 2 * sizeof(uint64_t);
	/* interned is a bit field of two bits, but a byte if threads run at once (since 3.14) */
	l->text_kind_bit = p->is_free_threaded && version >= PYTHON_VERSION(3, 14) ? 8 : 2;
	p->frames.heads = 1;
	p->frames.head[0] = (uint16_t)words[frame[DEBUG_HEAD]];
	p->frames.next = (uint16_t)words[frame[DEBUG_PREVIOUS]];
	p->frames.identity = (uint16_t)words[frame[DEBUG_EXECUTABLE]];
	p->frames.position = (uint16_t)words[frame[DEBUG_POSITION]];
	p->frames.position_size = sizeof(uint64_t);
	p->frames.entry = (uint16_t)words[frame[DEBUG_OWNER]];
	p->frames.entry_kind = VIRTUAL_ENTRY_SHIM;
	p->frames.entry_min = 3; /* FRAME_OWNED_BY_CSTACK; since 3.14 FRAME_OWNED_BY_INTERPRETER */
	p->frames.has_base = version >= PYTHON_VERSION(3, 15);
	p->frames.identity_mask = ~UINT64_C(7); /* since 3.14 references have marks in low bits */
	return true;
}

static void use_table(struct python *p, uint32_t version)
{
	size_t i = version - layouts[0].version;

	p->layout = layouts[i];
	memcpy(&p->frames, &frame_layouts[i], offsetof(struct virtual_layout, loops));
	if (p->layout.current_state) {
		p->frames.thread.kind = VIRTUAL_STATE_GLOBAL;
		p->frames.thread.place = (int64_t)(p->runtime + p->layout.current_state);
		p->frames.thread.owner = (uint16_t)p->layout.state_thread;
	}
}

bool python_text_layout(uint64_t size, struct python_layout *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++)
		/* the largest form has a pointer to its characters after what compact ones have */
		if (layouts[i].text_compact + sizeof(uint64_t) == size) {
			*out = layouts[i];
			return true;
		}
	return false;
}

/* -- states -- */

#define INTERPRETERS_MAX 1024u
#define THREADS_MAX 16384u /* of all interpreters */

/* A state, as found in its interpreter's list. Non-zero: stop. */
typedef int state_fn(void *ctx, taddr_t state, taddr_t thread_pointer);

struct state_visitor {
	state_fn *fn;
	void *ctx;
	uint32_t left; /* how many more states there may be: lists need not end */
};

static int each_state_of(const struct python *p, const struct language_memory *m, taddr_t interp,
			 struct state_visitor *v)
{
	const struct python_layout *l = &p->layout;
	taddr_t state, owner, thread;
	int rc = 0;

	if (!language_read_word(m, interp + l->interp_threads, &state))
		return -EFAULT;
	while (state && !rc) {
		if (v->left-- == 0 || state % sizeof(state) ||
		    !language_read_word(m, state + l->state_interp, &owner) || owner != interp ||
		    !language_read_word(m, state + l->state_thread, &thread))
			return -EFAULT;
		rc = v->fn(v->ctx, state, thread);
		if (!language_read_word(m, state + l->state_next, &state))
			return -EFAULT;
	}
	return rc;
}

/*
 * Calls @fn for the states of all threads, those of the newest interpreter first, until it returns
 * non-zero, and returns that; -EFAULT if one does not lead back to its interpreter.
 */
static int each_state(const struct python *p, const struct language_memory *m, state_fn *fn,
		      void *ctx)
{
	struct state_visitor v = {fn, ctx, THREADS_MAX};
	taddr_t interp;
	int rc = 0;

	if (!language_read_word(m, p->runtime + p->layout.interpreters, &interp))
		return -EFAULT;
	for (uint32_t i = 0; interp && !rc; i++) {
		if (i == INTERPRETERS_MAX || interp % sizeof(interp))
			return -EFAULT;
		rc = each_state_of(p, m, interp, &v);
		if (!rc && !language_read_word(m, interp + p->layout.interp_next, &interp))
			return -EFAULT;
	}
	return rc;
}

static int add_state(void *ctx, taddr_t state, taddr_t thread_pointer)
{
	struct interpreter_thread *out = ctx;

	if (thread_pointer == out->thread_pointer)
		out->state[out->count++] = state;
	return out->count == INTERPRETER_STATES_MAX;
}

/* Finds the states of a thread among those of all. */
static void find_states(const struct python *p, const struct language_memory *m,
			taddr_t thread_pointer, struct interpreter_thread *out)
{
	taddr_t current;

	*out = (struct interpreter_thread){.thread_pointer = thread_pointer};
	if (each_state(p, m, add_state, out) < 0 && out->count == 0)
		return;
	if (!p->layout.current_state ||
	    !language_read_word(m, p->runtime + p->layout.current_state, &current))
		return;
	for (uint32_t i = 1; i < out->count; i++) {
		if (out->state[i] != current)
			continue;
		memmove(&out->state[1], &out->state[0], i * sizeof(current));
		out->state[0] = current;
	}
}

ssize_t python_stack(const struct python *p, const struct language_memory *m,
		     struct interpreter_thread *states, struct virtual_frame *out, size_t max)
{
	ssize_t count = 0;
	taddr_t thread;

	for (uint32_t i = 0; i < states->count; i++)
		if (!language_read_word(m, states->state[i] + p->layout.state_thread, &thread) ||
		    thread != states->thread_pointer)
			states->count = 0;
	if (!states->count)
		find_states(p, m, states->thread_pointer, states);
	for (uint32_t i = 0; i < states->count; i++) {
		ssize_t n = virtual_frames_walk(&p->frames, m, states->state[i], out + count,
						max - (size_t)count);

		if (n < 0)
			return n;
		count += n;
		/* within another interpreter's frames */
		if (p->frames.has_base && i + 1 < states->count && n && !out[count - 1].identity)
			count--;
	}
	return count;
}

/* -- thread-local memory -- */

#define PLACE_REACH 8192u /* bytes on both sides of the thread pointer */
#define PLACE_WORDS (2 * PLACE_REACH / sizeof(uint64_t))
#define PLACE_STEP 512u   /* bytes that are read at once: others can end earlier */

struct place_search {
	uint64_t word[PLACE_WORDS]; /* of one thread */
	uint8_t is_known[PLACE_WORDS / (PLACE_STEP / sizeof(uint64_t))];
	bool is_wrong[PLACE_WORDS]; /* in a thread that was seen */
	uint32_t hits[PLACE_WORDS];
};

static void read_place(struct place_search *s, const struct language_memory *m, taddr_t pointer)
{
	for (size_t i = 0; i < ARRAY_SIZE(s->is_known); i++)
		s->is_known[i] = m->read(m->ctx, pointer - PLACE_REACH + i * PLACE_STEP,
					 (char *)s->word + i * PLACE_STEP, PLACE_STEP);
}

static void compare_place(struct place_search *s, const struct interpreter_thread *states)
{
	for (size_t i = 0; i < PLACE_WORDS; i++) {
		bool is_own = false;

		for (uint32_t j = 0; j < states->count; j++)
			is_own |= s->word[i] == states->state[j];
		s->hits[i] += is_own;
		s->is_wrong[i] |= !is_own && s->word[i] != 0;
		s->is_wrong[i] |= !s->is_known[i / (PLACE_STEP / sizeof(uint64_t))];
	}
}

/*
 * Which of two places with the state is the variable: the one below the thread pointer and next to
 * it, where the program's variables are. A thread's stack is below these, and the values of its
 * pthread_setspecific(), which also have the state while the thread has not the lock, are above.
 */
static bool is_better_place(const struct place_search *s, size_t i, size_t best)
{
	const size_t middle = PLACE_REACH / sizeof(uint64_t);

	if (best == PLACE_WORDS || s->hits[i] != s->hits[best])
		return best == PLACE_WORDS || s->hits[i] > s->hits[best];
	return i < middle; /* they are asked in their order */
}

bool python_find_place(struct python *p, const struct language_memory *m, const taddr_t *pointers,
		       size_t count)
{
	_cleanup_free_ struct place_search *s = xcalloc(1, sizeof(*s));
	size_t best = PLACE_WORDS;

	if (p->frames.thread.kind == VIRTUAL_STATE_GLOBAL)
		return true;
	for (size_t i = 0; i < count; i++) {
		struct interpreter_thread states;

		find_states(p, m, pointers[i], &states);
		read_place(s, m, pointers[i]);
		compare_place(s, &states);
	}
	for (size_t i = 0; i < PLACE_WORDS; i++)
		if (!s->is_wrong[i] && s->hits[i] && is_better_place(s, i, best))
			best = i;
	if (best == PLACE_WORDS)
		return false;
	p->frames.thread.kind = VIRTUAL_STATE_TLS;
	p->frames.thread.place = (int64_t)(best * sizeof(uint64_t)) - (int64_t)PLACE_REACH;
	return true;
}

/* -- the check -- */

#define CHECK_DEPTH 256u
#define CHECK_STATES 1024u

struct walk_check {
	struct python *python;
	const struct language_memory *memory;
	uint32_t states;
	bool has_code;
};

/* Whether @code is an object of the type "code"; learns the type. */
static bool learn_type(struct walk_check *c, taddr_t code)
{
	const struct python_layout *l = &c->python->layout;
	const struct language_memory *m = c->memory;
	taddr_t type, name;
	char text[sizeof("code")];

	if (!code || !language_read_word(m, code + l->type, &type) || type % 8 ||
	    !language_read_word(m, type + l->type_name, &name) ||
	    !m->read(m->ctx, name, text, sizeof(text)) || memcmp(text, "code", sizeof(text)) != 0)
		return false;
	c->python->code_type = c->python->frames.kind[0].type_value = type;
	c->python->frames.kinds = 1;
	return true;
}

static int check_state(void *ctx, taddr_t state, taddr_t thread_pointer)
{
	struct walk_check *c = ctx;
	struct python *p = c->python;
	struct virtual_frame frame[CHECK_DEPTH];
	ssize_t n = virtual_frames_walk(&p->frames, c->memory, state, frame, CHECK_DEPTH);

	c->states++;
	if (n == -E2BIG)
		n = CHECK_DEPTH;
	for (ssize_t i = 0; i < n && !c->has_code; i++) {
		struct virtual_function code;

		if (!frame[i].identity || !learn_type(c, frame[i].identity))
			continue;
		if (python_code_read(p, c->memory, frame[i].identity, &code) != 0)
			continue;
		int64_t offset = python_code_offset(p, c->memory, &code, frame[i].position);

		c->has_code = offset >= -2 && (!code.size || offset < (int64_t)code.size);
		virtual_function_deinit(&code);
	}
	return c->has_code || c->states == CHECK_STATES;
}

/* 0: the layout fits; -EAGAIN: nothing contradicts it, but no thread runs Python code; -EINVAL. */
static int check(struct python *p, const struct language_memory *m)
{
	struct walk_check c = {.python = p, .memory = m};

	p->code_type = 0;
	p->frames.kinds = 0;
	if (each_state(p, m, check_state, &c) < 0)
		return -EINVAL;
	return c.has_code ? 0 : -EAGAIN;
}

/* -- finding -- */

enum python_symbol {
	SYM_RUNTIME, SYM_LOOP, SYM_VERSION, SYM_3_8, SYM_3_9, SYM_3_10, SYMBOLS
};

static const char *const symbol_names[SYMBOLS] = {
	[SYM_RUNTIME] = "_PyRuntime",
	[SYM_LOOP] = "_PyEval_EvalFrameDefault",
	[SYM_VERSION] = "Py_Version",
	/* functions of the API that are new in a version */
	[SYM_3_8] = "PyCode_NewWithPosOnlyArgs",
	[SYM_3_9] = "PyObject_CallNoArgs",
	[SYM_3_10] = "PyIter_Send",
};
#define PART_PREFIX "_TAIL_CALL_"

struct loaded_object {
	taddr_t bias;
	taddr_t symbol[SYMBOLS]; /* 0 = none */
	struct python *python;   /* its loops are filled in */
};

static int take_symbol(void *ctx, const struct elf_symbol *sym)
{
	struct loaded_object *o = ctx;
	const char *loop = symbol_names[SYM_LOOP];
	struct virtual_loop code = {o->bias + sym->vaddr, o->bias + sym->vaddr + sym->size,
				    VIRTUAL_LOOP};

	if (!sym->is_defined || !sym->name)
		return 0;
	for (int i = 0; i < SYMBOLS; i++)
		if (strcmp(sym->name, symbol_names[i]) == 0)
			o->symbol[i] = o->bias + sym->vaddr;
	if (!elf_symbol_is_function(sym) || sym->size > OFFSET_MAX)
		return 0;
	/* its parts are named _PyEval_EvalFrameDefault.cold, ..Default.constprop.0 and the like */
	if (strncmp(sym->name, loop, strlen(loop)) == 0 &&
	    (!sym->name[strlen(loop)] || sym->name[strlen(loop)] == '.'))
		virtual_loop_add(&o->python->frames, &code);
	code.kind = VIRTUAL_LOOP_PART;
	if (strncmp(sym->name, PART_PREFIX, strlen(PART_PREFIX)) == 0)
		virtual_loop_add(&o->python->frames, &code);
	return 0;
}

static bool find_bias(const struct elf_file *elf, const struct maps *maps, const struct map *first,
		      taddr_t *out)
{
	const struct map *end = maps->list.data + maps->list.count;

	if (!elf->segment_count)
		return false;
	const struct elf_segment *s = &elf->segment[0];

	for (const struct map *m = first; m < end; m++) {
		if (m->ino != first->ino || m->dev != first->dev || m->offset > s->offset ||
		    s->offset - m->offset >= m->end - m->start)
			continue;
		*out = m->start + (s->offset - m->offset) - s->vaddr;
		return true;
	}
	return false;
}

/* The range of versions that @o may have. False: none of those known. */
static bool versions_of(const struct loaded_object *o, const struct language_memory *m,
			uint32_t *low, uint32_t *high)
{
	uint64_t words[DEBUG_WORDS];
	uint32_t hex;

	*low = PYTHON_OLDEST;
	*high = PYTHON_VERSION(3, 12);
	if (m->read(m->ctx, o->symbol[SYM_RUNTIME], words, sizeof(words)) &&
	    memcmp(words, DEBUG_COOKIE, sizeof(words[0])) == 0) {
		*low = *high = (uint32_t)(words[DEBUG_VERSION] >> 16);
	} else if (o->symbol[SYM_VERSION]) {
		if (!m->read(m->ctx, o->symbol[SYM_VERSION], &hex, sizeof(hex)))
			return false;
		*low = *high = hex >> 16;
	} else if (o->symbol[SYM_LOOP]) {
		/* it exports the API, and is older than Py_Version */
		*low = *high = o->symbol[SYM_3_10]  ? PYTHON_VERSION(3, 10) :
			       o->symbol[SYM_3_9] ? PYTHON_VERSION(3, 9) :
			       o->symbol[SYM_3_8] ? PYTHON_VERSION(3, 8) : PYTHON_VERSION(3, 7);
	}
	return *low >= PYTHON_OLDEST && *high <= PYTHON_NEWEST;
}

/* What pads read of a code object: names, and words that do not change. */
static void set_function(struct python *p)
{
	const struct python_layout *l = &p->layout;

	const uint32_t hash = l->text_length + sizeof(uint64_t);

	p->frames.kind[0] = (struct pad_function_kind){
		.type = l->type,
		.type_mask = UINT64_MAX,
		.name = l->code_qualname ? l->code_qualname : l->code_name,
		.name_hash = hash,
		.file = l->code_file,
		.file_hash = hash,
		.line = ROUND_DOWN(l->code_line, sizeof(uint64_t)),
		.table = l->code_table,
	};
}

bool python_layout_use(struct python *p, const struct language_memory *m, uint32_t version)
{
	uint64_t words[DEBUG_WORDS];

	if (version <= layouts[ARRAY_SIZE(layouts) - 1].version)
		use_table(p, version);
	else if (!m->read(m->ctx, p->runtime, words, sizeof(words)) || !use_debug_offsets(p, words))
		return false;
	set_function(p);
	return true;
}

static void set_problem(struct pythons *out, char *problem)
{
	free(out->problem);
	out->problem = problem;
}

/* Adds the interpreter of @o, which has a _PyRuntime, if its layout makes sense. */
static void add_python(struct pythons *out, struct elf_file *elf, struct loaded_object *o,
		       const struct language_memory *m)
{
	struct python *p = o->python;
	const char *name = text_base_name(elf->path);
	uint32_t low, high;
	int rc = -EINVAL;

	p->runtime = o->symbol[SYM_RUNTIME];
	if (!versions_of(o, m, &low, &high)) {
		set_problem(out, xasprintf("%s is Python %u.%u; known are 3.8 to 3.15", name,
					   high >> 8, high & 0xff));
		return;
	}
	for (uint32_t v = low; v <= high && rc; v++) {
		int checked = python_layout_use(p, m, v) ? check(p, m) : -EINVAL;

		if (checked == 0 || rc == -EINVAL)
			rc = checked;
	}
	if (rc == -EAGAIN) {
		set_problem(out, xasprintf("no thread runs Python code of %s yet", name));
	} else if (rc) {
		set_problem(out, xasprintf("the structs of %s are not as Python %u.%u has them",
					   name, high >> 8, high & 0xff));
	} else {
		interpreter_find_parts(elf, o->bias, &p->frames);
		p->has_loop = p->frames.loops.count > 0;
		p->path = xstrdup(elf->path);
		*vec_add(&out->list) = *p;
		*p = (struct python){0};
	}
}

/* Fills in out->loops, which virtual_layout_deinit frees. False: @elf has none. */
static bool python_find_loop(struct elf_file *elf, taddr_t bias, struct virtual_layout *out)
{
	struct python python = {0};
	struct loaded_object o = {.python = &python, .bias = bias};

	elf_file_each_symbol(elf, take_symbol, &o);
	if (!o.symbol[SYM_LOOP] || !o.symbol[SYM_RUNTIME]) {
		virtual_layout_deinit(&python.frames);
		return false;
	}
	interpreter_find_parts(elf, bias, &python.frames);
	*out = python.frames;
	return true;
}

static int open_object(const struct interpreter_process *in, const struct map *m,
		       struct elf_file **out)
{
	int fd = -ENOENT;

	if (m->is_deleted) {
		_cleanup_free_ char *path = xasprintf("/proc/%d/map_files/%lx-%lx", in->pid,
						      (unsigned long)m->start,
						      (unsigned long)m->end);

		fd = root_dir_open(NULL, path);
	} else {
		fd = root_dir_open_mapped(in->root, m->path);
	}
	if (fd < 0)
		return fd;
	return elf_file_open_fd(NULL, fd, root_dir_name(in->root, m->path), in->root, out);
}

static void look_at(const struct interpreter_process *in, const struct map *m, struct pythons *out)
{
	struct elf_file *elf;
	struct python python = {0};
	struct loaded_object o = {.python = &python};
	GElf_Shdr section;
	int rc = open_object(in, m, &elf);

	if (rc < 0) {
		set_problem(out, xasprintf("%s: %s", m->path, strerror(-rc)));
		return;
	}
	if (find_bias(elf, in->maps, m, &o.bias)) {
		elf_file_each_symbol(elf, take_symbol, &o);
		/* of a program without symbols */
		if (!o.symbol[SYM_RUNTIME] && elf_file_section(elf->elf, ".PyRuntime", &section))
			o.symbol[SYM_RUNTIME] = o.bias + section.sh_addr;
		if (o.symbol[SYM_RUNTIME])
			add_python(out, elf, &o, &in->memory);
	}
	virtual_layout_deinit(&python.frames);
	elf_file_release(elf);
}

static bool is_first_map(const struct maps *maps, size_t i)
{
	const struct map *m = &maps->list.data[i];

	for (size_t j = 0; j < i; j++)
		if (maps->list.data[j].ino == m->ino && maps->list.data[j].dev == m->dev)
			return false;
	return true;
}

void python_find(const struct interpreter_process *in, struct pythons *out)
{
	_cleanup_free_ char *exe = xasprintf("/proc/%d/exe", in->pid);
	struct stat st = {0};

	*out = (struct pythons){0};
	if (stat(exe, &st) != 0)
		st.st_ino = 0;
	for (size_t i = 0; i < in->maps->list.count; i++) {
		const struct map *m = &in->maps->list.data[i];

		if (m->path[0] == '/' && m->ino &&
		    (strstr(text_base_name(m->path), "python") ||
		     (m->ino == st.st_ino && m->dev == st.st_dev)) &&
		    is_first_map(in->maps, i))
			look_at(in, m, out);
	}
}

void pythons_deinit(struct pythons *p)
{
	for (size_t i = 0; i < p->list.count; i++) {
		virtual_layout_deinit(&p->list.data[i].frames);
		free(p->list.data[i].path);
	}
	vec_deinit(&p->list);
	free(p->problem);
	p->problem = NULL;
}

/* -- the language -- */

static bool is_python_object(const char *name)
{
	return strstr(name, "python") != NULL;
}

/* Its program, or a module of its own library. */
static bool is_python_part(const char *path)
{
	return strncmp(text_base_name(path), "python", 6) == 0 || strstr(path, "/lib-dynload/");
}

static bool is_greenlet(const char *path)
{
	return strstr(text_base_name(path), "greenlet") != NULL;
}

static bool open_python(struct elf_file *elf, taddr_t bias, struct interpreter *out)
{
	struct python *p = xcalloc(1, sizeof(*p));

	interpreter_own(out, p, &p->frames);
	if (python_find_loop(elf, bias, &p->frames))
		return true;
	free(p);
	return false;
}

static void drop_python(struct python *p)
{
	virtual_layout_deinit(&p->frames);
	free(p->path);
	*p = (struct python){0};
}

static void copy_python(const struct interpreter *from, struct interpreter *out)
{
	struct python *p = xcalloc(1, sizeof(*p));

	interpreter_own(out, p, &p->frames);
}

static void close_python(struct interpreter *i)
{
	drop_python(i->own);
	free(i->own);
}

static bool find_python(struct interpreter *i, const struct interpreter_process *in,
			char **problem_out)
{
	const char *name = root_dir_name(in->root, in->path);
	struct python *own = i->own;
	struct pythons found;
	bool result = false;

	python_find(in, &found);
	for (size_t k = 0; k < found.list.count && !result; k++) {
		struct python *p = &found.list.data[k];

		if (!p->has_loop || strcmp(p->path, name) != 0)
			continue;
		drop_python(own);
		*own = *p;
		*p = (struct python){0};
		result = true;
	}
	*problem_out = found.problem;
	found.problem = NULL;
	pythons_deinit(&found);
	return result;
}

static bool find_python_place(struct interpreter *i, const struct language_memory *m,
			      const struct interpreter_thread *t)
{
	return python_find_place(i->own, m, &t->thread_pointer, 1);
}

static ssize_t stack_of_python(const struct interpreter *i, const struct language_memory *m,
			       struct interpreter_thread *t, struct virtual_frame *out, size_t max)
{
	return python_stack(i->own, m, t, out, max);
}

static int read_python_function(const struct interpreter *i, const struct language_memory *m,
				const struct virtual_frame *frame, struct virtual_function *out)
{
	return python_code_read(i->own, m, frame->identity, out);
}

static uint32_t python_line(const struct interpreter *i, const struct language_memory *m,
			    const struct virtual_function *f, uint64_t position)
{
	const struct python *p = i->own;

	return python_code_line(&p->layout, f, python_code_offset(p, m, f, position));
}

static char *python_version(const struct interpreter *i)
{
	const struct python *p = i->own;

	return xasprintf("%u.%u", p->layout.version >> 8, p->layout.version & 0xff);
}

const struct language language_python = {
	.name = "Python",
	.is_object = is_python_object,
	.is_part = is_python_part,
	.is_switcher = is_greenlet,
	.open = open_python,
	.copy = copy_python,
	.close = close_python,
	.find = find_python,
	.find_place = find_python_place,
	.stack = stack_of_python,
	.read_function = read_python_function,
	.line = python_line,
	.version = python_version,
};
