/*
 * Where a process has Ruby, and its functions. See ruby.h. What is read is the program's, and may
 * have been freed: everything is bounded, and checked as far as it can be.
 */
#include "languages/ruby.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/elf_file.h"
#include "base/text.h"

/* -- layouts -- */

static const struct ruby_layout layouts[] = {
	{RUBY_VERSION(3, 0), .frame_size = 56, .lines = 120, .line_size = 8},
	{RUBY_VERSION(3, 1), .frame_size = 64, .lines = 120, .line_size = 12},
	{RUBY_VERSION(3, 2), .frame_size = 64, .lines = 112, .line_size = 12,
	 .has_long_texts = true, .has_plain_line = true},
	{RUBY_VERSION(3, 3), .frame_size = 56, .lines = 112, .line_size = 12,
	 .has_long_texts = true, .has_plain_line = true},
	{RUBY_VERSION(3, 4), .frame_size = 56, .lines = 112, .line_size = 12,
	 .has_long_texts = true, .has_plain_line = true},
};

/* The same in all of these. */
enum {
	CONTEXT_STACK = 0, CONTEXT_WORDS = 8, CONTEXT_FRAME = 16,
	FRAME_PC = 0, FRAME_ISEQ = 16, FRAME_EP = 32,
	EP_METHOD = -16,
	ISEQ_BODY = 16,
	METHOD_DEFINITION = 16, METHOD_ID = 24, METHOD_OWNER = 32,
	DEFINITION_FUNCTION = 8, DEFINITION_ID = 32,
	BODY_CODE = 8, BODY_PATH = 64, BODY_METHOD = 72, BODY_LABEL = 80, BODY_LINE = 88,
	BODY_BYTES = 160,
	CLASS_PART = 24,
};

/* An object's flags: its type; of internal ones their own. */
#define TYPE_MASK 0x1fu
#define TYPE_INTERNAL 0x1au
#define INTERNAL_MASK (0xfu << 12 | TYPE_MASK)
#define INTERNAL(type) ((uint64_t)(type) << 12 | TYPE_INTERNAL)
enum { INTERNAL_IFUNC = 4, INTERNAL_METHOD = 6, INTERNAL_ISEQ = 7 };
/* Flags of environments: a run of the loop begins; it is a method's, not a block's. */
#define ENTRY_FINISH 0x20
#define ENTRY_LOCAL 0x02

bool ruby_layout_use(struct ruby *r, uint32_t version)
{
	struct virtual_layout *f = &r->frames;
	size_t i = 0;

	while (i < ARRAY_SIZE(layouts) && layouts[i].version != version)
		i++;
	if (i == ARRAY_SIZE(layouts))
		return false;
	r->layout = layouts[i];
	f->heads = 1;
	f->head[0] = CONTEXT_FRAME;
	f->stack = CONTEXT_STACK;
	f->stack_words = CONTEXT_WORDS;
	f->stride = r->layout.frame_size;
	f->identity = FRAME_ISEQ;
	f->identity_mask = UINT64_MAX;
	f->position = FRAME_PC;
	f->position_size = sizeof(uint64_t);
	f->via = FRAME_EP;
	f->native = EP_METHOD;
	f->entry_kind = VIRTUAL_ENTRY_FLAG;
	f->entry = 0;
	f->entry_mask = ENTRY_FINISH;
	f->has_base = true;
	f->has_loose_runs = true; /* the load of a module */
	f->kinds = 3;
	f->kind[0] = (struct pad_function_kind){
		.type_mask = INTERNAL_MASK, .type_value = INTERNAL(INTERNAL_ISEQ),
		.flags = PAD_KIND_DEEP, .name = ISEQ_BODY, .name_hash = BODY_LABEL,
		.file = ISEQ_BODY, .file_hash = BODY_PATH, .line = BODY_LINE, .table = BODY_CODE,
	};
	f->kind[1] = (struct pad_function_kind){
		.type_mask = INTERNAL_MASK, .type_value = INTERNAL(INTERNAL_METHOD),
		.flags = PAD_KIND_NATIVE,
		.name = METHOD_DEFINITION, .name_hash = DEFINITION_FUNCTION,
		.file = METHOD_OWNER, .file_hash = CLASS_PART,
		.line = METHOD_DEFINITION, .table = METHOD_OWNER,
	};
	f->kind[2] = (struct pad_function_kind){
		.type_mask = INTERNAL_MASK, .type_value = INTERNAL(INTERNAL_IFUNC),
		.flags = PAD_KIND_NATIVE | PAD_KIND_NONE,
	};
	return true;
}

/* -- texts -- */

/* The path at @addr: a String, or an Array of a path and its real path. */
static char *read_path(const struct ruby *r, const struct language_memory *m, taddr_t addr)
{
	taddr_t elements, path;
	uint64_t count;

	if (!ruby_read_array(m, addr, &elements, &count))
		return ruby_read_text(r, m, addr);
	return language_read_word(m, elements, &path) ? ruby_read_text(r, m, path) : NULL;
}

/* -- lines -- */

#define CODE_WORDS_MAX (1u << 20)
#define SOON 54u         /* positions whose entries' numbers are in the table's first words */
#define SOON_BYTES 48u
#define BLOCK 512u       /* positions of a block; of the other ones */
#define BLOCK_BYTES 80u

/* The number of entries that begin at or before @position. */
static uint64_t count_entries(const uint8_t *table, uint32_t position)
{
	if (position < SOON)
		return load_u64(table + position / 9 * sizeof(uint64_t)) >> position % 9 * 7 & 127;
	const uint8_t *block = table + SOON_BYTES + (position - SOON) / BLOCK * BLOCK_BYTES;
	uint32_t bit = (position - SOON) % BLOCK, part = bit / 64;
	uint64_t ranks = load_u64(block + 8), bits = load_u64(block + 16 + part * sizeof(bits));
	uint64_t before = part ? ranks >> (part - 1) * 9 & 511 : 0;

	return (uint32_t)load_u64(block) + before +
	       (uint64_t)__builtin_popcountll(bits << (63 - bit % 64));
}

/* @entries: @count of them; @table: those that begin at a position, NULL if there is only one. */
static void fill_lines(const struct ruby *r, const uint8_t *entries, uint64_t count,
		       const uint8_t *table, struct virtual_function *out)
{
	uint32_t positions = (uint32_t)(out->size / sizeof(uint64_t));

	out->table_size = positions * sizeof(uint32_t);
	out->table = xcalloc(positions, sizeof(uint32_t));
	for (uint32_t i = 0; i < positions; i++) {
		uint64_t n = table ? count_entries(table, i) : 1;

		if (n > 0 && n <= count)
			memcpy(out->table + i * sizeof(uint32_t),
			       entries + (n - 1) * r->layout.line_size, sizeof(uint32_t));
	}
}

static void read_lines(const struct ruby *r, const struct language_memory *m, const uint8_t *body,
		       struct virtual_function *out)
{
	taddr_t entries = load_u64(body + r->layout.lines);
	uint32_t count = (uint32_t)load_u64(body + r->layout.lines + 16);
	taddr_t table = load_u64(body + r->layout.lines + 24);
	uint64_t positions = out->size / sizeof(uint64_t), size = SOON_BYTES;

	if (!positions || !count || count > CODE_WORDS_MAX)
		return;
	if (positions > SOON)
		size += (positions - SOON + BLOCK - 1) / BLOCK * BLOCK_BYTES;
	_cleanup_free_ uint8_t *entry = xmalloc((size_t)count * r->layout.line_size);
	_cleanup_free_ uint8_t *index = count > 1 ? xmalloc(size) : NULL;

	if (m->read(m->ctx, entries, entry, (size_t)count * r->layout.line_size) &&
	    (!index || m->read(m->ctx, table, index, size)))
		fill_lines(r, entry, count, index, out);
}

/* -- functions -- */

#define ENVIRONMENTS_MAX 64u

/*
 * The method that the frame of @ep is in, by the environments around it: those of the methods that
 * blocks are in are at the end. 0: it is in none.
 */
static taddr_t find_method(const struct language_memory *m, taddr_t ep)
{
	uint64_t word[3], flags; /* the method or else the scope; the outer environment; flags */

	for (uint32_t i = 0; i < ENVIRONMENTS_MAX; i++) {
		if (!m->read(m->ctx, ep + (taddr_t)(int64_t)EP_METHOD, word, sizeof(word)))
			return 0;
		if (word[0] && word[0] % sizeof(word[0]) == 0 &&
		    language_read_word(m, word[0], &flags) &&
		    (flags & INTERNAL_MASK) == INTERNAL(INTERNAL_METHOD))
			return word[0];
		if (word[2] & ENTRY_LOCAL)
			return 0;
		ep = word[1] & ~(taddr_t)3;
	}
	return 0;
}

/* "block in Cart#add": @label, "block in add", with the class of the method before its name. */
static char *add_class(const struct ruby *r, const struct language_memory *m,
		       const struct virtual_frame *frame, const char *label, const char *method)
{
	taddr_t ep, entry, class;
	size_t size = strlen(label), tail = method ? strlen(method) : 0;

	if (!tail || tail > size || strcmp(label + size - tail, method) != 0 ||
	    !language_read_word(m, frame->at + FRAME_EP, &ep))
		return NULL;
	entry = find_method(m, ep);
	if (!entry || !language_read_word(m, entry + METHOD_OWNER, &class))
		return NULL;
	_cleanup_free_ char *prefix = ruby_read_class(r, m, class);

	return prefix ? xasprintf("%.*s%s%s", (int)(size - tail), label, prefix, method) : NULL;
}

static int read_iseq(const struct ruby *r, const struct language_memory *m,
		     const struct virtual_frame *frame, struct virtual_function *out)
{
	const taddr_t iseq = frame->identity;
	uint8_t body[BODY_BYTES];
	taddr_t at;

	if (!language_read_word(m, iseq + ISEQ_BODY, &at) ||
	    !m->read(m->ctx, at, body, sizeof(body)))
		return -EINVAL;
	_cleanup_free_ char *label = ruby_read_text(r, m, load_u64(body + BODY_LABEL));
	_cleanup_free_ char *method = ruby_read_text(r, m, load_u64(body + BODY_METHOD));
	_cleanup_free_ char *file = read_path(r, m, load_u64(body + BODY_PATH));
	uint64_t words = load_u64(body) >> 32, line = load_u64(body + BODY_LINE);

	line = r->layout.has_plain_line ? (uint32_t)line : line >> 1;
	if (!label || !file || words > CODE_WORDS_MAX)
		return -EINVAL;
	char *name = frame->at ? add_class(r, m, frame, label, method) : NULL;

	*out = (struct virtual_function){
		.name = name ? name : label, .file = file, .object = iseq,
		.start = load_u64(body + BODY_CODE),
		.first_line = line <= INT32_MAX ? (uint32_t)line : 0,
		.size = words * sizeof(uint64_t), .stamp = virtual_stamp(&r->frames, m, iseq),
	};
	label = name ? label : NULL;
	file = NULL;
	read_lines(r, m, body, out);
	return 0;
}

/* A method that is a function in C: "Array#map". */
static int read_method(const struct ruby *r, const struct language_memory *m, taddr_t method,
		       struct virtual_function *out)
{
	uint64_t word[5];

	if (!m->read(m->ctx, method, word, sizeof(word)))
		return -EINVAL;
	_cleanup_free_ char *name = ruby_read_id(r, m, word[METHOD_ID / sizeof(word[0])]);
	_cleanup_free_ char *class = ruby_read_class(r, m, word[METHOD_OWNER / sizeof(word[0])]);

	*out = (struct virtual_function){
		.name = xasprintf("%s%s", class ? class : "", name ? name : "[method]"),
		.file = xstrdup("<internal:ruby>"), .object = method,
		.stamp = virtual_stamp(&r->frames, m, method),
	};
	return 0;
}

static int function_read(const struct ruby *r, const struct language_memory *m,
			 const struct virtual_frame *frame, struct virtual_function *out)
{
	uint64_t flags;

	if (!frame->identity || frame->identity % sizeof(uint64_t) ||
	    !language_read_word(m, frame->identity, &flags))
		return -EINVAL;
	if ((flags & INTERNAL_MASK) == INTERNAL(INTERNAL_ISEQ))
		return read_iseq(r, m, frame, out);
	if ((flags & INTERNAL_MASK) == INTERNAL(INTERNAL_METHOD))
		return read_method(r, m, frame->identity, out);
	return -EINVAL;
}

static int read_function(const struct interpreter *i, const struct language_memory *m,
			 const struct virtual_frame *frame, struct virtual_function *out)
{
	return function_read(i->own, m, frame, out);
}

/* A frame's position is the address of the next instruction. */
static uint32_t line_at(const struct interpreter *i, const struct language_memory *m,
			const struct virtual_function *f, uint64_t position)
{
	uint64_t offset = position - f->start;

	(void)i;
	(void)m;
	if (offset > f->size)
		return 0;
	return virtual_function_line(f, offset ? offset - 1 : 0, sizeof(uint64_t));
}

/* -- threads -- */

#define CHECK_DEPTH 64u
#define STACK_WORDS_MAX (UINT64_C(1) << 24)

/* Whether @context can be an execution context: its innermost frame is in its stack. */
static bool has_stack(const struct ruby *r, const struct language_memory *m, taddr_t context)
{
	uint64_t words[3];

	if (!context || context % sizeof(context) ||
	    !m->read(m->ctx, context, words, sizeof(words)))
		return false;
	uint64_t size = words[1] * sizeof(uint64_t), at = words[2] - words[0];

	return words[0] && words[0] % 8 == 0 && words[1] <= STACK_WORDS_MAX && at < size &&
	       (size - at) % r->layout.frame_size == 0;
}

/* Whether @context is an execution context, whose frames lead to a function with a name. */
static bool is_context(const struct ruby *r, const struct language_memory *m, taddr_t context)
{
	struct virtual_frame frame[CHECK_DEPTH];

	if (!has_stack(r, m, context))
		return false;
	ssize_t n = virtual_frames_walk(&r->frames, m, context, frame, CHECK_DEPTH);

	n = n == -E2BIG ? (ssize_t)CHECK_DEPTH : n;
	for (ssize_t i = 0; i < n; i++) {
		struct virtual_function f;

		if (!frame[i].identity || function_read(r, m, &frame[i], &f) != 0)
			continue;
		bool is_right = frame[i].position - f.start <= f.size;

		if (!f.start) {
			virtual_function_deinit(&f);
			continue;
		}

		virtual_function_deinit(&f);
		return is_right;
	}
	return false;
}

#define PLACE_STEP 256u
#define PLACE_REACH 8192u /* bytes below the thread pointer, where variables of threads are */

/*
 * Where the thread has its context: the place next to its thread pointer which has one, since a
 * thread's stack can be below its variables.
 */
static bool find_place(struct ruby *r, const struct language_memory *m, taddr_t pointer)
{
	uint64_t word[PLACE_STEP / sizeof(uint64_t)];

	for (taddr_t offset = PLACE_STEP; pointer && offset <= PLACE_REACH; offset += PLACE_STEP) {
		if (!m->read(m->ctx, pointer - offset, word, sizeof(word)))
			return false;
		for (size_t i = ARRAY_SIZE(word); i-- > 0;) {
			if (!is_context(r, m, word[i]))
				continue;
			r->frames.thread.kind = VIRTUAL_STATE_TLS;
			r->frames.thread.place = (int64_t)(i * sizeof(word[0])) - (int64_t)offset;
			return true;
		}
	}
	return false;
}

static ssize_t stack_of(const struct interpreter *i, const struct language_memory *m,
			struct interpreter_thread *t, struct virtual_frame *out, size_t max)
{
	const struct ruby *r = i->own;

	/* pads follow what counts */
	t->count = 0;
	if (!language_read_word(m, t->thread_pointer + (taddr_t)r->frames.thread.place,
				&t->state[0]) || !has_stack(r, m, t->state[0]))
		return 0;
	ssize_t n = virtual_frames_walk(&r->frames, m, t->state[0], out, max);

	t->count = n >= 0;
	return n;
}

/* -- finding -- */

#define LOOP "rb_vm_exec"
#define CALLER "rb_iseq_eval" /* calls it, and is exported by all versions */

struct ruby_object {
	taddr_t bias;
	struct ruby *ruby;
	struct virtual_loop caller; /* in the file */
};

static int take_symbol(void *ctx, const struct elf_symbol *sym)
{
	struct ruby_object *s = ctx;
	struct virtual_loop loop = {s->bias + sym->vaddr, s->bias + sym->vaddr + sym->size,
				    VIRTUAL_LOOP};

	if (!sym->is_defined || !sym->name)
		return 0;
	if (strcmp(sym->name, "ruby_version") == 0)
		s->ruby->version_text = loop.start;
	if (elf_symbol_is_function(sym) && strcmp(sym->name, LOOP) == 0)
		virtual_loop_add(&s->ruby->frames, &loop);
	if (elf_symbol_is_function(sym) && strcmp(sym->name, CALLER) == 0)
		s->caller = (struct virtual_loop){sym->vaddr, sym->vaddr + sym->size,
						  VIRTUAL_NO_LOOP};
	return 0;
}

#define INSTRUCTIONS_MIN 8192u /* bytes of the function that has them */

/*
 * Adds the loop of an object without its symbol: from 3.3 on that is only in .symtab, which strip
 * removes. The loop is the function with the interpreter's instructions, or calls it.
 */
static void find_loop(struct elf_file *elf, const struct ruby_object *object)
{
	struct elf_functions functions;
	struct interpreter_called called;
	const struct elf_function *loop = NULL;
	size_t found = 0;

	elf_functions_find(elf, &functions);
	interpreter_find_called(elf, &functions, object->caller.start, object->caller.end,
				&called);
	for (size_t i = 0; i < called.count; i++) {
		const struct elf_function *f = called.list[i], *largest;

		largest = interpreter_largest_called(elf, &functions, f, f);
		if (largest->end - largest->start < INSTRUCTIONS_MIN || f == loop)
			continue;
		loop = f;
		found++;
	}
	if (found == 1)
		virtual_loop_add(&object->ruby->frames,
				 &(struct virtual_loop){object->bias + loop->start,
							object->bias + loop->end, VIRTUAL_LOOP});
	vec_deinit(&functions.list);
}

/* The last segment is what the program writes to. */
static void find_data(const struct elf_file *elf, taddr_t bias, struct ruby *r)
{
	const struct elf_segment *last = NULL;

	for (size_t i = 0; i < elf->segment_count; i++)
		if (!last || elf->segment[i].vaddr > last->vaddr)
			last = &elf->segment[i];
	if (!last || last->is_exec)
		return;
	r->data.start = bias + ROUND_UP(last->vaddr, sizeof(uint64_t));
	r->data.end = bias + last->vaddr + last->memsz;
}

static bool open_ruby(struct elf_file *elf, taddr_t bias, struct interpreter *out)
{
	struct ruby *r = xcalloc(1, sizeof(*r));
	struct ruby_object s = {.bias = bias, .ruby = r};

	interpreter_own(out, r, &r->frames);
	elf_file_each_symbol(elf, take_symbol, &s);
	if (r->version_text && !r->frames.loops.count)
		find_loop(elf, &s);
	if (r->version_text && !r->frames.loops.count) {
		out->missing = LOOP;
		return true;
	}
	if (r->version_text) {
		interpreter_find_parts(elf, bias, &r->frames);
		find_data(elf, bias, r);
		return true;
	}
	interpreter_close_own(out);
	return false;
}

static void copy_ruby(const struct interpreter *from, struct interpreter *out)
{
	const struct ruby *old = from->own;
	struct ruby *r = xcalloc(1, sizeof(*r));

	r->version_text = old->version_text;
	r->data = old->data;
	interpreter_own(out, r, &r->frames);
}

static bool find_ruby(struct interpreter *i, const struct interpreter_process *in,
		      char **problem_out)
{
	struct ruby *r = i->own;
	char text[8] = "";
	unsigned major = 0, minor = 0;

	if (in->memory.read(in->memory.ctx, r->version_text, text, sizeof(text) - 1) &&
	    text[1] == '.' && text[3] == '.') {
		major = (unsigned)(text[0] - '0');
		minor = (unsigned)(text[2] - '0');
	}
	if (!ruby_layout_use(r, RUBY_VERSION(major, minor)))
		*problem_out = xasprintf("%s is Ruby %u.%u; known are 3.0 to 3.4",
					 text_base_name(in->path), major, minor);
	else if (!find_place(r, &in->memory, in->thread->thread_pointer))
		*problem_out = xasprintf("no thread was found that runs Ruby code of %s, as Ruby "
					 "%u.%u has it", text_base_name(in->path), major, minor);
	else
		ruby_find_symbols(r, &in->memory);
	return !*problem_out;
}

static bool is_ruby_object(const char *name)
{
	return strstr(name, "ruby") != NULL;
}

/* Its program and library, and modules of its own library. */
static bool is_ruby_part(const char *path)
{
	const char *name = text_base_name(path);

	return strncmp(name, "ruby", 4) == 0 || strncmp(name, "libruby", 7) == 0 ||
	       (strstr(path, "/ruby/3.") && !strstr(path, "/gems/"));
}

static char *version_of(const struct interpreter *i)
{
	const struct ruby *r = i->own;

	return xasprintf("%u.%u", r->layout.version >> 8, r->layout.version & 0xff);
}

const struct language language_ruby = {
	.name = "Ruby",
	.is_object = is_ruby_object,
	.is_part = is_ruby_part,
	.open = open_ruby,
	.copy = copy_ruby,
	.close = interpreter_close_own,
	.find = find_ruby,
	.stack = stack_of,
	.read_function = read_function,
	.line = line_at,
	.version = version_of,
};
