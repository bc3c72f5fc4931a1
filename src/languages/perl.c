/*
 * Where a process has Perl, and its functions. See perl.h. What is read is the program's, and may
 * have been freed: everything is bounded, and checked as far as it can be.
 */
#include "languages/perl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/elf_file.h"
#include "base/text.h"

/* -- layouts -- */

static const struct perl_layout layouts[] = {
	{PERL_VERSION(5, 28), .stacks = 240, .position = 224, .main_function = 1816,
	 .program = 1488, .context = 96, .sub = 64, .eval = 80, .statement = 195},
	{PERL_VERSION(5, 30), .stacks = 240, .position = 224, .main_function = 1816,
	 .program = 1488, .context = 96, .sub = 64, .eval = 80, .statement = 195},
	{PERL_VERSION(5, 32), .stacks = 240, .position = 224, .main_function = 1816,
	 .program = 1488, .context = 104, .sub = 72, .eval = 88, .statement = 195},
	{PERL_VERSION(5, 34), .stacks = 224, .position = 208, .main_function = 1800,
	 .program = 1472, .context = 104, .sub = 72, .eval = 88, .statement = 195},
	{PERL_VERSION(5, 36), .stacks = 224, .position = 208, .main_function = 1800,
	 .program = 1472, .context = 104, .sub = 72, .eval = 88, .statement = 195,
	 .has_names_inside = true},
	{PERL_VERSION(5, 38), .stacks = 224, .position = 208, .main_function = 1584,
	 .program = 1240, .context = 104, .sub = 72, .eval = 88, .statement = 198,
	 .has_names_inside = true},
	{PERL_VERSION(5, 40), .stacks = 224, .position = 208, .main_function = 1584,
	 .program = 1240, .context = 104, .sub = 72, .eval = 88, .statement = 198,
	 .has_names_inside = true},
};

/* The same in all of these. */
enum {
	STACK_CONTEXTS = 8, STACK_OUTER = 16, STACK_LAST = 32,
	CONTEXT_TYPE = 0, CONTEXT_CALLER = 16, CONTEXT_BACK = 48,
	STATE_OP = 8, ROOT_BEHIND_MAIN = 8,
	OP_NEXT = 0, OP_PARENT = 8, OP_TARGET = 24, OP_BITS = 32, COP_LINE = 36, OP_FIRST = 40,
	OP_BYTES = 48, COP_FILE = 48,
	OBJECT_BODY = 0, OBJECT_FLAGS = 8, OBJECT_DATA = 16,
	CV_PACKAGE = 32, CV_ROOT = 48, CV_GLOB = 56, CV_FILE = 64, CV_SEQUENCE = 88, CV_FLAGS = 92,
	GLOB_NAME = 32, GLOB_PACKAGE = 40,
	HASH_MAX = 24, HASH_BODY = 32,
	NAMES = 0, NAME_COUNT = 28,
	KEY_LENGTH = 4, KEY_TEXT = 8,
};
enum object_type { TYPE_GLOB = 9, TYPE_HASH = 12, TYPE_CODE = 13, TYPE_FORMAT = 14 };
#define TYPE_OF(flags) ((flags) >> 32 & 0xff)
#define HASH_HAS_NAME (UINT64_C(1) << (32 + 25))
#define CODE_HAS_KEY 0x8000u /* a name instead of a glob */

/* Contexts: the type, and what its bits are. */
#define CONTEXT_MASK 0x0fu
enum context_type { CONTEXT_NONE = 0, CONTEXT_SUB = 9, CONTEXT_FORMAT = 10, CONTEXT_EVAL = 11 };
#define EVAL_IS_BLOCK 0x40u
#define SUB_IS_IN_MATCH 0x40u /* code in a regular expression, which has a loop of its own */
#define SUB_IS_REPEATED 0x80u /* the same, and the sub that has the expression: seen already */

static void set_bit(uint64_t *set, uint32_t byte)
{
	set[byte / 64] |= UINT64_C(1) << byte % 64;
}

static void use_contexts(struct pad_virtual_arrays *a)
{
	for (uint32_t byte = 0; byte < 256; byte++) {
		switch (byte & CONTEXT_MASK) {
		case CONTEXT_NONE: /* the block of a sort */
			set_bit(a->shims, byte);
			break;
		case CONTEXT_SUB:
			if (!(byte & SUB_IS_REPEATED))
				set_bit(a->functions, byte);
			if (byte & SUB_IS_IN_MATCH)
				set_bit(a->joined, byte);
			break;
		case CONTEXT_FORMAT:
			set_bit(a->functions, byte);
			break;
		case CONTEXT_EVAL:
			if (!(byte & EVAL_IS_BLOCK))
				set_bit(a->other_functions, byte);
		}
	}
}

static struct pad_function_kind code_kind(enum object_type type)
{
	return (struct pad_function_kind){
		.type = OBJECT_FLAGS, .type_mask = UINT64_C(0xff) << 32,
		.type_value = (uint64_t)type << 32, .flags = PAD_KIND_DEEP,
		.name = OBJECT_BODY, .name_hash = CV_SEQUENCE,
		.file = OBJECT_BODY, .file_hash = CV_FILE, .line = CV_GLOB, .table = CV_ROOT,
	};
}

/* Replaces offsets by those of variables, from the first of them. False: they are too far apart. */
static bool use_variables(struct perl *p)
{
	uint16_t *const offset[PERL_VARIABLES] = {
		&p->layout.stacks, &p->layout.position, &p->layout.main_function,
		&p->layout.program, &p->layout.op, &p->layout.root,
	};
	taddr_t first = p->variable[0];

	for (size_t i = 1; i < PERL_VARIABLES; i++)
		first = MIN(first, p->variable[i]);
	for (size_t i = 0; i < PERL_VARIABLES; i++) {
		if (p->variable[i] - first > UINT16_MAX)
			return false;
		*offset[i] = (uint16_t)(p->variable[i] - first);
	}
	p->frames.thread.kind = VIRTUAL_STATE_FIXED;
	p->frames.thread.place = (int64_t)first;
	return true;
}

static bool has_variables(const struct perl *p)
{
	for (size_t i = 0; i < PERL_VARIABLES; i++)
		if (!p->variable[i])
			return false;
	return true;
}

/* Sets the layouts of @version. False: it is not known. */
static bool use_layout(struct perl *p, uint32_t version)
{
	struct virtual_layout *f = &p->frames;
	size_t i = 0;

	while (i < ARRAY_SIZE(layouts) && layouts[i].version != version)
		i++;
	if (i == ARRAY_SIZE(layouts))
		return false;
	p->layout = layouts[i];
	p->layout.op = STATE_OP;
	p->layout.root = p->layout.main_function + ROOT_BEHIND_MAIN;
	if (has_variables(p) && !use_variables(p))
		return false;
	f->heads = 1;
	f->head[0] = p->layout.stacks;
	f->identity = p->layout.sub;
	f->identity_mask = UINT64_MAX;
	f->position = p->layout.position;
	f->position_size = sizeof(uint64_t);
	f->entry_kind = VIRTUAL_ENTRY_FLAG;
	f->entry_mask = 1;
	f->arrays = (struct pad_virtual_arrays){
		.element = p->layout.context, .elements = STACK_CONTEXTS, .last = STACK_LAST,
		.outer = STACK_OUTER, .type = CONTEXT_TYPE, .other_identity = p->layout.eval,
		.back = CONTEXT_BACK, .caller = CONTEXT_CALLER, .number = COP_LINE,
		.place = p->layout.op, .outermost = p->layout.root,
		.outermost_else = p->layout.main_function,
	};
	use_contexts(&f->arrays);
	f->kinds = 3;
	f->kind[0] = code_kind(TYPE_CODE);
	f->kind[1] = code_kind(TYPE_FORMAT);
	/* the op that is a tree's root has no parent, and so is no object, which has a type */
	f->kind[2] = (struct pad_function_kind){
		.type = OP_PARENT, .type_mask = UINT64_MAX, .type_value = 0,
		.line = OP_FIRST, .table = OP_TARGET,
	};
	return true;
}

/* -- names -- */

#define TEXT_MAX 4096u
#define TEXT_STEP 64u
#define MAIN "main::"

/* The text of the key (HEK) at @addr; NULL if it is none. Visible; the caller frees it. */
static char *read_key(const struct language_memory *m, taddr_t addr)
{
	uint32_t size;
	char data[TEXT_MAX];

	if (!addr || !m->read(m->ctx, addr + KEY_LENGTH, &size, sizeof(size)) || !size ||
	    size > sizeof(data) || !m->read(m->ctx, addr + KEY_TEXT, data, size))
		return NULL;
	return text_clean(data, size);
}

/* The text at @addr, which ends with 0; NULL if there is none. Visible; the caller frees it. */
static char *read_string(const struct language_memory *m, taddr_t addr)
{
	char data[TEXT_MAX];
	size_t size = 0;

	while (addr && size < sizeof(data)) {
		size_t step = TEXT_STEP - (addr + size) % TEXT_STEP;

		step = MIN(step, sizeof(data) - size);
		if (!m->read(m->ctx, addr + size, data + size, step))
			return NULL;
		size_t length = strnlen(data + size, step);

		size += length;
		if (length < step)
			return size ? text_clean(data, size) : NULL;
	}
	return NULL;
}

/* The body of the object at @addr if it is of @type; 0: it is not. *flags_out can be NULL. */
static taddr_t body_of(const struct language_memory *m, taddr_t addr, enum object_type type,
		       uint64_t *flags_out)
{
	uint64_t object[2];

	if (!addr || addr % sizeof(addr) || !m->read(m->ctx, addr, object, sizeof(object)) ||
	    TYPE_OF(object[1]) != type)
		return 0;
	if (flags_out)
		*flags_out = object[1];
	return object[0];
}

/* The name of the package that is the hash at @hash. NULL: it has none. */
static char *read_package(const struct perl *p, const struct language_memory *m, taddr_t hash)
{
	uint64_t flags, max, names;
	taddr_t body = body_of(m, hash, TYPE_HASH, &flags), at = body + HASH_BODY;
	int32_t count;

	if (!body || !(flags & HASH_HAS_NAME) || !language_read_word(m, body + HASH_MAX, &max))
		return NULL;
	if (!p->layout.has_names_inside) {
		if (!language_read_word(m, hash + OBJECT_DATA, &at))
			return NULL;
		at += (max + 1) * sizeof(uint64_t);
	}
	if (!language_read_word(m, at + NAMES, &names) ||
	    !m->read(m->ctx, at + NAME_COUNT, &count, sizeof(count)) || !names ||
	    (count && !language_read_word(m, names, &names)))
		return NULL;
	return read_key(m, names);
}

/* "Shop::open"; NULL: it has no name, as the code of a file. @body: of the CV. */
static char *read_name(const struct perl *p, const struct language_memory *m, taddr_t body)
{
	uint64_t glob, package, key;
	uint32_t flags;

	if (!language_read_word(m, body + CV_GLOB, &glob) || !glob ||
	    !m->read(m->ctx, body + CV_FLAGS, &flags, sizeof(flags)))
		return NULL;
	if (flags & CODE_HAS_KEY) {
		key = glob;
		if (!language_read_word(m, body + CV_PACKAGE, &package))
			return NULL;
	} else {
		taddr_t at = body_of(m, glob, TYPE_GLOB, NULL);

		if (!at || !language_read_word(m, at + GLOB_NAME, &key) ||
		    !language_read_word(m, at + GLOB_PACKAGE, &package))
			return NULL;
	}
	char *name = read_key(m, key);
	_cleanup_free_ char *scope = name ? read_package(p, m, package) : NULL;

	if (!scope || strcmp(scope, "main") == 0)
		return name;
	char *both = xasprintf("%s::%s", scope, name);

	free(name);
	return both;
}

/* -- lines -- */

#define OP_TYPE 0x1ffu        /* of OP_BITS */
#define OP_HAS_SIBLING (1u << 14)
#define OP_HAS_KIDS (1u << 18)
#define OPS_MAX (1u << 17)
#define OPS_DEEP 1000u
#define CLIMB_MAX (1u << 16)

struct perl_op {
	uint64_t next, parent, target, first;
	uint32_t bits, line; /* line: of a COP */
};

static bool read_op(const struct language_memory *m, taddr_t addr, struct perl_op *out)
{
	uint8_t bytes[OP_BYTES];

	if (!addr || addr % sizeof(addr) || !m->read(m->ctx, addr, bytes, sizeof(bytes)))
		return false;
	*out = (struct perl_op){
		.next = load_u64(bytes + OP_NEXT), .parent = load_u64(bytes + OP_PARENT),
		.target = load_u64(bytes + OP_TARGET), .first = load_u64(bytes + OP_FIRST),
		.bits = (uint32_t)load_u64(bytes + OP_BITS),
		.line = (uint32_t)(load_u64(bytes + OP_BITS) >> 32),
	};
	return true;
}

/* An op: in the order of the tree, these are a function's table. */
struct op_line {
	uint64_t at, next;
	uint32_t statement; /* line of the statement that is executed */
	uint32_t line;      /* of the one that it is in */
};

struct op_walk {
	const struct perl *perl;
	const struct language_memory *memory;
	VEC(struct op_line) lines;
	bool is_useful;     /* not all lines are those of the statements that are executed */
};

/* Adds @first and its siblings, with what is below; @outer: the statement that these are in. */
static void walk_ops(struct op_walk *w, taddr_t first, struct op_line outer, uint32_t depth)
{
	struct op_line line = outer;
	struct perl_op op;

	for (taddr_t at = first; w->lines.count < OPS_MAX && read_op(w->memory, at, &op);
	     at = op.parent) {
		uint32_t type = op.bits & OP_TYPE;

		if (type == w->perl->layout.statement || type == w->perl->layout.statement + 1u)
			line.statement = line.line = op.line;
		else if (!type && op.target == w->perl->layout.statement)
			line.line = op.line;
		line.at = at;
		line.next = op.next;
		*vec_add(&w->lines) = line;
		w->is_useful |= line.line != line.statement;
		if (op.bits & OP_HAS_KIDS && depth < OPS_DEEP)
			walk_ops(w, op.first, line, depth + 1);
		if (!(op.bits & OP_HAS_SIBLING))
			break;
	}
}

/* The root of the tree that @at is in; 0: there is none. */
static taddr_t climb(const struct language_memory *m, taddr_t at)
{
	struct perl_op op;

	for (uint32_t i = 0; i < CLIMB_MAX && read_op(m, at, &op); i++) {
		if (!op.parent)
			return at;
		at = op.parent;
	}
	return 0;
}

/* The lines of all ops of the tree @root. */
static void read_lines(const struct perl *p, const struct language_memory *m, taddr_t root,
		       struct virtual_function *out)
{
	struct op_walk w = {.perl = p, .memory = m};

	walk_ops(&w, root, (struct op_line){0}, 0);
	if (w.is_useful) {
		out->table_size = w.lines.count * sizeof(*w.lines.data);
		out->table = xmalloc(out->table_size);
		memcpy(out->table, w.lines.data, out->table_size);
	}
	vec_deinit(&w.lines);
}

/* The line at @position: what Perl's caller() has. */
static uint32_t find_line(const struct virtual_function *f, uint64_t position)
{
	uint32_t number = pad_place_number(position);
	taddr_t place = pad_place_address(position);
	struct op_line line;

	for (size_t i = 0; place && i + sizeof(line) <= f->table_size; i += sizeof(line)) {
		memcpy(&line, f->table + i, sizeof(line));
		if (line.statement == number &&
		    (position & PAD_PLACE_IS_INNERMOST ? line.at : line.next) == place)
			return line.line;
	}
	return number;
}

/* A frame's position has its line, and the place of an op, which can be more exact. */
static uint32_t line_at(const struct interpreter *i, const struct language_memory *m,
			const struct virtual_function *f, uint64_t position)
{
	(void)i;
	(void)m;
	return find_line(f, position);
}

/* -- functions -- */

static char *read_string_at(const struct language_memory *m, taddr_t addr)
{
	taddr_t text;

	return language_read_word(m, addr, &text) ? read_string(m, text) : NULL;
}

/* The file of the COP at @cop. Without threads it has a glob, "_<FILE". */
static char *read_cop_file(const struct perl *p, const struct language_memory *m, taddr_t cop)
{
	taddr_t glob, key;

	if (!has_variables(p))
		return read_string_at(m, cop + COP_FILE);
	if (!language_read_word(m, cop + COP_FILE, &glob))
		return NULL;
	taddr_t body = body_of(m, glob, TYPE_GLOB, NULL);

	if (!body || !language_read_word(m, body + GLOB_NAME, &key))
		return NULL;
	_cleanup_free_ char *name = read_key(m, key);

	return name && text_begins_with(name, "_<") ? xstrdup(name + 2) : NULL;
}

/* The code of the program, or of a file or a string: what has no name. @body: of the CV, or 0. */
static void read_nameless(const struct perl *p, const struct language_memory *m,
			  const struct virtual_frame *frame, taddr_t body,
			  struct virtual_function *out)
{
	taddr_t main_function = 0;

	if (frame->at &&
	    language_read_word(m, frame->at + p->layout.main_function, &main_function) &&
	    (!body || main_function == frame->identity))
		out->file = read_string_at(m, frame->at + p->layout.program);
	if (!out->file && frame->source)
		out->file = read_cop_file(p, m, frame->source);
	bool is_string = out->file && text_begins_with(out->file, "(eval ");

	out->name = xstrdup(is_string ? "(eval)" : "{main}");
	read_lines(p, m, body ? climb(m, frame->source) : frame->identity, out);
}

/* The body of the function @code, 0 of one that is a tree of ops. False: it is none. */
static bool function_body(const struct language_memory *m, taddr_t code, taddr_t *body_out)
{
	taddr_t body = body_of(m, code, TYPE_CODE, NULL);
	uint64_t parent;

	if (!body)
		body = body_of(m, code, TYPE_FORMAT, NULL);
	if (!body && (!code || code % sizeof(code) ||
		      !language_read_word(m, code + OP_PARENT, &parent) || parent))
		return false;
	*body_out = body;
	return true;
}

static int function_read(const struct perl *p, const struct language_memory *m,
			 const struct virtual_frame *frame, struct virtual_function *out)
{
	const taddr_t code = frame->identity;
	taddr_t body, root;

	if (!function_body(m, code, &body))
		return -EINVAL;
	*out = (struct virtual_function){.object = code,
					 .stamp = virtual_stamp(&p->frames, m, code)};
	out->name = body ? read_name(p, m, body) : NULL;
	if (!out->name) {
		read_nameless(p, m, frame, body, out);
		return 0;
	}
	out->file = read_string_at(m, body + CV_FILE);
	if (language_read_word(m, body + CV_ROOT, &root))
		read_lines(p, m, root, out);
	return 0;
}

static int read_function(const struct interpreter *i, const struct language_memory *m,
			 const struct virtual_frame *frame, struct virtual_function *out)
{
	return function_read(i->own, m, frame, out);
}

/* -- threads -- */

#define CHECK_DEPTH 64u
#define STACKS_MAX 4096u

/* Whether @state can be an interpreter: its stacks end, and it has a main function. */
static bool has_stacks(const struct perl *p, const struct language_memory *m, taddr_t state)
{
	taddr_t stack, contexts, main_function;
	int32_t last;

	if (!state || state % sizeof(state) ||
	    !language_read_word(m, state + p->layout.main_function, &main_function) ||
	    !body_of(m, main_function, TYPE_CODE, NULL) ||
	    !language_read_word(m, state + p->layout.stacks, &stack) || !stack)
		return false;
	for (uint32_t i = 0; stack; i++) {
		if (i == STACKS_MAX || stack % sizeof(stack) ||
		    !m->read(m->ctx, stack + STACK_LAST, &last, sizeof(last)) || last < -1 ||
		    !language_read_word(m, stack + STACK_CONTEXTS, &contexts) || !contexts ||
		    !language_read_word(m, stack + STACK_OUTER, &stack))
			return false;
	}
	return true;
}

/* Whether @state is an interpreter, whose frames lead to functions with lines. */
static bool is_state(const struct perl *p, const struct language_memory *m, taddr_t state)
{
	struct virtual_frame frame[CHECK_DEPTH];

	if (!has_stacks(p, m, state))
		return false;
	ssize_t n = virtual_frames_walk(&p->frames, m, state, frame, CHECK_DEPTH);
	size_t right = 0;

	n = n == -E2BIG ? (ssize_t)CHECK_DEPTH : n;
	for (ssize_t i = 0; i < n; i++) {
		struct virtual_function f;

		if (!frame[i].identity)
			continue;
		if (function_read(p, m, &frame[i], &f) != 0)
			return false;
		right += f.file && pad_place_number(frame[i].position) > 0;
		virtual_function_deinit(&f);
	}
	return right > 0;
}

#define PLACE_STEP 256u

/* Looks for a thread's interpreter among the words of a step from its thread pointer. */
static bool find_in_step(struct perl *p, const struct language_memory *m, taddr_t pointer,
			 int64_t offset)
{
	uint64_t word[PLACE_STEP / sizeof(uint64_t)];

	if (!m->read(m->ctx, pointer + (taddr_t)offset, word, sizeof(word)))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(word); i++) {
		if (!is_state(p, m, word[i]))
			continue;
		p->frames.thread.kind = VIRTUAL_STATE_TLS;
		p->frames.thread.place = (int64_t)(i * sizeof(word[0])) + offset;
		return true;
	}
	return false;
}

/* Bytes below a thread pointer with variables of threads; above it, with pthread_getspecific's. */
#define VARIABLES_REACH 8192
#define KEYS_REACH 2560

/* Where the thread has its interpreter. */
static bool find_place(struct perl *p, const struct language_memory *m, taddr_t pointer)
{
	const int64_t step = PLACE_STEP;

	for (int64_t offset = -step; pointer && offset >= -VARIABLES_REACH; offset -= step)
		if (find_in_step(p, m, pointer, offset))
			return true;
	for (int64_t offset = 0; pointer && offset < KEYS_REACH; offset += step)
		if (find_in_step(p, m, pointer, offset))
			return true;
	return false;
}

static ssize_t stack_of(const struct interpreter *i, const struct language_memory *m,
			struct interpreter_thread *t, struct virtual_frame *out, size_t max)
{
	const struct perl *p = i->own;

	/* pads follow what counts */
	t->count = 0;
	t->state[0] = (taddr_t)p->frames.thread.place;
	if ((p->frames.thread.kind == VIRTUAL_STATE_TLS &&
	     !language_read_word(m, t->thread_pointer + t->state[0], &t->state[0])) ||
	    !has_stacks(p, m, t->state[0]))
		return 0;
	ssize_t n = virtual_frames_walk(&p->frames, m, t->state[0], out, max);
	taddr_t body;

	t->count = n >= 0;
	/* "require" allocates when its context is there, and has no function yet */
	if (n > 0 && !function_body(m, out[0].identity, &body))
		out[0].identity = 0;
	return n;
}

/* -- finding -- */

struct perl_object {
	struct elf_file *elf;
	taddr_t bias;
	struct perl *perl;
	struct elf_functions functions;
	struct virtual_loop tries; /* Perl_pp_entertry */
	bool has_catch;
};

/* Where the loop is called, and what then runs. */
static const struct {
	const char *name;
	enum virtual_loop_kind kind;
} codes[] = {
	{"Perl_runops_standard", VIRTUAL_LOOP},
	{"Perl_runops_debug", VIRTUAL_LOOP},
	{"perl_parse", VIRTUAL_CALLS_OUTERMOST},
	{"perl_run", VIRTUAL_CALLS_OUTERMOST},
	{"perl_destruct", VIRTUAL_CALLS_OUTERMOST},
	{"Perl_call_sv", VIRTUAL_CALLS_RUN},
	{"Perl_eval_sv", VIRTUAL_CALLS_RUN},
	/* the first eval in such a run begins another loop, for exceptions */
	{"S_docatch", VIRTUAL_CALLS_SAME},
};

static const char *const variables[PERL_VARIABLES] = {
	[PERL_STACKS] = "PL_curstackinfo", [PERL_POSITION] = "PL_curcop",
	[PERL_MAIN_FUNCTION] = "PL_main_cv", [PERL_PROGRAM] = "PL_origfilename",
	[PERL_OP] = "PL_op", [PERL_ROOT] = "PL_main_root",
};

static int take_symbol(void *ctx, const struct elf_symbol *sym)
{
	struct perl_object *s = ctx;
	struct virtual_loop loop = {s->bias + sym->vaddr, s->bias + sym->vaddr + sym->size,
				    VIRTUAL_NO_LOOP};

	if (!sym->is_defined || !sym->name)
		return 0;
	if (strcmp(sym->name, "PL_version") == 0)
		s->perl->version_bytes = loop.start;
	for (size_t i = 0; i < PERL_VARIABLES; i++)
		if (strcmp(sym->name, variables[i]) == 0)
			s->perl->variable[i] = loop.start;
	if (!elf_symbol_is_function(sym))
		return 0;
	if (strcmp(sym->name, "Perl_pp_entertry") == 0)
		s->tries = (struct virtual_loop){sym->vaddr, sym->vaddr + sym->size,
						 VIRTUAL_NO_LOOP};
	for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
		if (strcmp(sym->name, codes[i].name) != 0)
			continue;
		loop.kind = codes[i].kind;
		virtual_loop_add(&s->perl->frames, &loop);
		s->has_catch |= loop.kind == VIRTUAL_CALLS_SAME;
	}
	return 0;
}

/* A function without a name that is called where an eval begins: S_docatch. */
static void take_branch(void *ctx, taddr_t target)
{
	struct perl_object *s = ctx;
	const struct elf_function *f = interpreter_function_at(&s->functions, target);

	if (!f)
		return;
	const struct virtual_loop catch = {s->bias + f->start, s->bias + f->end,
					   VIRTUAL_CALLS_SAME};

	virtual_loop_add(&s->perl->frames, &catch);
}

static bool open_perl(struct elf_file *elf, taddr_t bias, struct interpreter *out)
{
	struct perl *p = xcalloc(1, sizeof(*p));
	struct perl_object s = {.elf = elf, .bias = bias, .perl = p};

	interpreter_own(out, p, &p->frames);
	elf_file_each_symbol(elf, take_symbol, &s);
	if (!p->version_bytes || !p->frames.loops.count) {
		interpreter_close_own(out);
		return false;
	}
	if (!s.has_catch) {
		elf_functions_find(elf, &s.functions);
		interpreter_each_branch(elf, s.tries.start, s.tries.end, take_branch, &s);
		vec_deinit(&s.functions.list);
	}
	interpreter_find_parts(elf, bias, &p->frames);
	return true;
}

static void copy_perl(const struct interpreter *from, struct interpreter *out)
{
	const struct perl *old = from->own;
	struct perl *p = xcalloc(1, sizeof(*p));

	p->version_bytes = old->version_bytes;
	memcpy(p->variable, old->variable, sizeof(p->variable));
	interpreter_own(out, p, &p->frames);
}

#define REVISION 5u

static bool find_perl(struct interpreter *i, const struct interpreter_process *in,
		      char **problem_out)
{
	const char *name = text_base_name(in->path);
	struct perl *p = i->own;
	uint8_t version = 0;

	in->memory.read(in->memory.ctx, p->version_bytes, &version, sizeof(version));
	if (!use_layout(p, PERL_VERSION(REVISION, version)))
		*problem_out = xasprintf("%s is Perl 5.%u; known are 5.28 to 5.40", name, version);
	else if (has_variables(p) ?
			 !is_state(p, &in->memory, (taddr_t)p->frames.thread.place) :
			 !find_place(p, &in->memory, in->thread->thread_pointer))
		*problem_out = xasprintf("no thread was found that runs Perl code of %s, as Perl "
					 "5.%u has it", name, version);
	return !*problem_out;
}

static bool is_perl_object(const char *name)
{
	return strncmp(name, "perl", 4) == 0 || strncmp(name, "libperl", 7) == 0;
}

/* Its program and library, and modules that are parts of Perl. */
static bool is_perl_part(const char *path)
{
	return is_perl_object(text_base_name(path)) ||
	       (strstr(path, "/perl") && strstr(path, "/auto/") && !strstr(path, "/perl5/") &&
		!strstr(path, "/site_perl/") && !strstr(path, "/vendor_perl/"));
}

static char *version_of(const struct interpreter *i)
{
	const struct perl *p = i->own;

	return xasprintf("%u.%u", p->layout.version >> 8, p->layout.version & 0xff);
}

const struct language language_perl = {
	.name = "Perl",
	.is_object = is_perl_object,
	.is_part = is_perl_part,
	.open = open_perl,
	.copy = copy_perl,
	.close = interpreter_close_own,
	.find = find_perl,
	.stack = stack_of,
	.read_function = read_function,
	.line = line_at,
	.version = version_of,
};
