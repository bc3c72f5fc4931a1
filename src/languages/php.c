/*
 * Where a process has PHP, and its functions. See php.h. What is read is the program's, and may
 * have been freed: everything is bounded, and checked as far as it can be.
 */
#include "languages/php.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/elf_file.h"
#include "base/text.h"

/* -- layouts -- */

static const struct php_layout layouts[] = {
	{PHP_VERSION(7, 3), .current = 488, .op_count = 60, .ops = 64, .file = 128},
	{PHP_VERSION(7, 4), .current = 488, .op_count = 60, .ops = 64, .file = 136},
	{PHP_VERSION(8, 0), .current = 488, .op_count = 68, .ops = 72, .file = 144},
	{PHP_VERSION(8, 1), .current = 488, .op_count = 68, .ops = 72, .file = 144},
	{PHP_VERSION(8, 2), .current = 488, .op_count = 80, .ops = 88, .file = 152},
	{PHP_VERSION(8, 3), .current = 488, .op_count = 76, .ops = 80, .file = 144},
	{PHP_VERSION(8, 4), .current = 488, .op_count = 96, .ops = 104, .file = 168},
	{PHP_VERSION(8, 5), .current = 512, .op_count = 96, .ops = 104, .file = 168},
};

/* The same in all of these. */
enum {
	FRAME_OP = 0, FRAME_FUNCTION = 24, FRAME_FLAGS = 40, FRAME_PREVIOUS = 48,
	FUNCTION_NAME = 8, FUNCTION_CLASS = 16, FUNCTION_ARGUMENTS = 40,
	CLASS_NAME = 8,
	TEXT_HASH = 8, TEXT_LENGTH = 16, TEXT_DATA = 24,
	OP_BYTES = 32, OP_LINE = 24,
};
enum function_type { TYPE_INTERNAL = 1, TYPE_USER = 2, TYPE_EVAL = 4 };
#define TYPE_MASK 0xffu
#define FLAG_TOP (1u << 17) /* of a frame */

static struct pad_function_kind own_kind(const struct php_layout *l, enum function_type type)
{
	return (struct pad_function_kind){
		.type_mask = TYPE_MASK, .type_value = type,
		.name = FUNCTION_NAME, .name_hash = TEXT_HASH,
		.file = l->file, .file_hash = TEXT_HASH,
		.line = l->file + sizeof(uint64_t), .table = l->ops,
	};
}

bool php_layout_use(struct php *p, uint32_t version)
{
	struct virtual_layout *f = &p->frames;
	size_t i = 0;

	while (i < ARRAY_SIZE(layouts) && layouts[i].version != version)
		i++;
	if (i == ARRAY_SIZE(layouts))
		return false;
	p->layout = layouts[i];
	f->thread.kind = VIRTUAL_STATE_FIXED;
	f->thread.place = (int64_t)p->globals;
	f->heads = 1;
	f->head[0] = p->layout.current;
	f->next = FRAME_PREVIOUS;
	f->identity = FRAME_FUNCTION;
	f->identity_mask = UINT64_MAX;
	f->position = FRAME_OP;
	f->position_size = sizeof(uint64_t);
	f->entry_kind = VIRTUAL_ENTRY_FLAG;
	f->entry = FRAME_FLAGS + 2;
	f->entry_mask = FLAG_TOP >> 16;
	f->has_callers_runs = true;
	f->kinds = 3;
	f->kind[0] = own_kind(&p->layout, TYPE_USER);
	f->kind[1] = own_kind(&p->layout, TYPE_EVAL);
	f->kind[2] = (struct pad_function_kind){
		.type_mask = TYPE_MASK, .type_value = TYPE_INTERNAL, .flags = PAD_KIND_NATIVE,
		.name = FUNCTION_NAME, .name_hash = TEXT_HASH,
		.file = FUNCTION_NAME, .file_hash = TEXT_HASH,
		.line = FUNCTION_CLASS, .table = FUNCTION_ARGUMENTS,
	};
	return true;
}

/* -- functions -- */

#define TEXT_MAX 4096u
#define OPS_MAX (1u << 17)

/* The zend_string at @addr; NULL if it is none. Visible; the caller frees it. */
static char *read_text(const struct language_memory *m, taddr_t addr)
{
	uint64_t size;
	char data[TEXT_MAX];

	if (!addr || addr % sizeof(addr) || !language_read_word(m, addr + TEXT_LENGTH, &size) ||
	    size >> 32)
		return NULL;
	size = MIN(size, sizeof(data));
	return m->read(m->ctx, addr + TEXT_DATA, data, size) ? text_clean(data, size) : NULL;
}

/* "Cart::add"; "{main}": the code of a file, outside of functions. */
static char *read_name(const struct language_memory *m, taddr_t function)
{
	uint64_t at, class, class_name;

	if (!language_read_word(m, function + FUNCTION_NAME, &at) ||
	    !language_read_word(m, function + FUNCTION_CLASS, &class))
		return NULL;
	if (!at)
		return xstrdup("{main}");
	char *name = read_text(m, at);

	if (!name || !class || class % sizeof(class) ||
	    !language_read_word(m, class + CLASS_NAME, &class_name))
		return name;
	_cleanup_free_ char *scope = read_text(m, class_name);
	char *both = scope ? xasprintf("%s::%s", scope, name) : NULL;

	if (!both)
		return name;
	free(name);
	return both;
}

/* The lines of all opcodes. */
static void read_lines(const struct php *p, const struct language_memory *m, taddr_t function,
		       struct virtual_function *out)
{
	uint32_t count;

	if (!m->read(m->ctx, function + p->layout.op_count, &count, sizeof(count)) ||
	    !count || count > OPS_MAX)
		return;
	_cleanup_free_ uint8_t *ops = xmalloc((size_t)count * OP_BYTES);

	if (!m->read(m->ctx, out->start, ops, (size_t)count * OP_BYTES))
		return;
	out->size = (uint64_t)count * OP_BYTES;
	out->table_size = count * sizeof(uint32_t);
	out->table = xcalloc(count, sizeof(uint32_t));
	for (uint32_t i = 0; i < count; i++)
		memcpy(out->table + i * sizeof(uint32_t), ops + i * OP_BYTES + OP_LINE,
		       sizeof(uint32_t));
}

static int function_read(const struct php *p, const struct language_memory *m,
			 const struct virtual_frame *frame, struct virtual_function *out)
{
	const taddr_t function = frame->identity;
	uint64_t type, file_text, ops, line, name_text;

	if (!function || function % sizeof(function) || !language_read_word(m, function, &type))
		return -EINVAL;
	type &= TYPE_MASK;
	if (!language_read_word(m, function + FUNCTION_NAME, &name_text))
		return -EINVAL;
	if (type != TYPE_INTERNAL && type != TYPE_USER && type != TYPE_EVAL)
		return -EINVAL;
	_cleanup_free_ char *name = read_name(m, function);

	if (!name)
		return -EINVAL;
	/* the outermost frame of a fiber has no name, and is none of PHP's */
	struct virtual_function f = {.object = function,
				     .is_internal = type == TYPE_INTERNAL && !name_text,
				     .stamp = virtual_stamp(&p->frames, m, function)};

	if (type != TYPE_INTERNAL) {
		if (!language_read_word(m, function + p->layout.file, &file_text) ||
		    !language_read_word(m, function + p->layout.ops, &ops) ||
		    !language_read_word(m, function + p->layout.file + sizeof(line), &line))
			return -EINVAL;
		f.file = read_text(m, file_text);
		if (!f.file)
			return -EINVAL;
		f.start = ops;
		f.first_line = (uint32_t)line <= INT32_MAX ? (uint32_t)line : 0;
		read_lines(p, m, function, &f);
	}
	if (!f.file)
		f.file = xstrdup("<internal:php>");
	f.name = name;
	name = NULL;
	*out = f;
	return 0;
}

static int read_function(const struct interpreter *i, const struct language_memory *m,
			 const struct virtual_frame *frame, struct virtual_function *out)
{
	return function_read(i->own, m, frame, out);
}

/* A frame's position is the address of the opcode that is executed. */
static uint32_t line_at(const struct interpreter *i, const struct language_memory *m,
			const struct virtual_function *f, uint64_t position)
{
	(void)i;
	(void)m;
	return virtual_function_line(f, position - f->start, OP_BYTES);
}

/* -- finding -- */

static ssize_t stack_of(const struct interpreter *i, const struct language_memory *m,
			struct interpreter_thread *t, struct virtual_frame *out, size_t max)
{
	const struct php *p = i->own;

	ssize_t n = virtual_frames_walk(&p->frames, m, p->globals, out, max);

	t->state[0] = p->globals;
	t->count = n >= 0; /* pads follow what counts */
	return n;
}

#define CHECK_DEPTH 256u

/* Whether the list of frames leads to functions of the program's own, with lines in them. */
static bool is_right(const struct php *p, const struct language_memory *m)
{
	struct virtual_frame frame[CHECK_DEPTH];
	ssize_t n = virtual_frames_walk(&p->frames, m, p->globals, frame, CHECK_DEPTH);
	size_t right = 0;

	n = n == -E2BIG ? (ssize_t)CHECK_DEPTH : n;
	for (ssize_t i = 0; i < n; i++) {
		struct virtual_function f;

		if (!frame[i].identity)
			continue;
		if (function_read(p, m, &frame[i], &f) != 0)
			return false;
		bool is_wrong = f.size && frame[i].position - f.start >= f.size;

		right += f.size > 0;
		virtual_function_deinit(&f);
		if (is_wrong)
			return false;
	}
	return right > 0;
}

struct php_object {
	taddr_t bias;
	struct php *php;
};

static int take_symbol(void *ctx, const struct elf_symbol *sym)
{
	struct php_object *s = ctx;
	struct virtual_loop loop = {s->bias + sym->vaddr, s->bias + sym->vaddr + sym->size,
				    VIRTUAL_LOOP};

	if (!sym->is_defined || !sym->name)
		return 0;
	s->php->has_threads |= strcmp(sym->name, "executor_globals_offset") == 0;
	if (strcmp(sym->name, "executor_globals") == 0)
		s->php->globals = loop.start;
	if (elf_symbol_is_function(sym) && strcmp(sym->name, "execute_ex") == 0)
		virtual_loop_add(&s->php->frames, &loop);
	return 0;
}

/* PHP says its version in what it sends to browsers. */
#define VERSION_TEXT "X-Powered-By: PHP/"
#define CONSTANTS_MAX (64u << 20)

static uint32_t find_version(struct elf_file *elf)
{
	GElf_Shdr section;

	if (!elf_file_section(elf->elf, ".rodata", &section) || section.sh_size > CONSTANTS_MAX)
		return 0;
	_cleanup_free_ uint8_t *data = elf_file_read(elf, section.sh_offset, section.sh_size);
	const size_t size = strlen(VERSION_TEXT);
	const char *at = data ? memmem(data, section.sh_size, VERSION_TEXT, size) : NULL;

	if (!at || at + size + 3 > (const char *)data + section.sh_size || !isdigit(at[size]) ||
	    at[size + 1] != '.' || !isdigit(at[size + 2]))
		return 0;
	return PHP_VERSION(at[size] - '0', at[size + 2] - '0');
}

static bool open_php(struct elf_file *elf, taddr_t bias, struct interpreter *out)
{
	struct php *p = xcalloc(1, sizeof(*p));
	struct php_object s = {bias, p};

	interpreter_own(out, p, &p->frames);
	elf_file_each_symbol(elf, take_symbol, &s);
	if (!p->frames.loops.count) {
		interpreter_close_own(out);
		return false;
	}
	interpreter_find_parts(elf, bias, &p->frames);
	p->version = find_version(elf);
	return true;
}

static void copy_php(const struct interpreter *from, struct interpreter *out)
{
	const struct php *old = from->own;
	struct php *p = xcalloc(1, sizeof(*p));

	p->globals = old->globals;
	p->version = old->version;
	p->has_threads = old->has_threads;
	interpreter_own(out, p, &p->frames);
}

static bool find_php(struct interpreter *i, const struct interpreter_process *in,
		     char **problem_out)
{
	const char *name = text_base_name(in->path);
	struct php *p = i->own;

	if (p->has_threads)
		*problem_out = xasprintf("%s is built for threads (ZTS); run the program with a "
					 "build that is not", name);
	else if (!p->globals)
		*problem_out = xasprintf("%s has no symbol executor_globals", name);
	else if (!php_layout_use(p, p->version))
		*problem_out = xasprintf("%s is PHP %u.%u; known are 7.3 to 8.5", name,
					 p->version >> 8, p->version & 0xff);
	else if (!is_right(p, &in->memory))
		*problem_out = xasprintf("%s runs no PHP code yet, as PHP %u.%u has it", name,
					 p->version >> 8, p->version & 0xff);
	return !*problem_out;
}

static bool is_php_object(const char *name)
{
	return strncmp(name, "php", 3) == 0 || strncmp(name, "libphp", 6) == 0;
}

/* Its programs and library, and extensions. */
static bool is_php_part(const char *path)
{
	return is_php_object(text_base_name(path)) || strstr(path, "/lib/php/") ||
	       strstr(path, "/php/extensions/");
}

static char *version_of(const struct interpreter *i)
{
	const struct php *p = i->own;

	return xasprintf("%u.%u", p->version >> 8, p->version & 0xff);
}

const struct language language_php = {
	.name = "PHP",
	.is_object = is_php_object,
	.is_part = is_php_part,
	.open = open_php,
	.copy = copy_php,
	.close = interpreter_close_own,
	.find = find_php,
	.stack = stack_of,
	.read_function = read_function,
	.line = line_at,
	.version = version_of,
};
