/*
 * Each object has a list of its variables by address, with those of DWARF and those that only the
 * symbol table has, and one of those of threads by their offset in the object's block.
 */
#include "graph/variables.h"

#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "graph/thread_blocks.h"
#include "symbols/debug_files.h"
#include "symbols/demangle.h"
#include "symbols/symtab.h"

/* Numbers of variables, by address; ends are the furthest of all up to there. */
struct variable_entry {
	uint64_t start, end;    /* in the ELF file, or the object's block */
	uint32_t variable;
};

struct variable_list {
	VEC(struct variable_entry) list; /* ascending, disjoint */
};

struct variable_object {
	struct elf_file *file;  /* held */
	struct elf_file *debug; /* for symbols; NULL = not searched, or none. Owned */
	struct debug_units *units;
	taddr_t bias;
	bool is_read;
	struct variable_list fixed, of_threads;
};

/* Where an object has its variables in a thread. */
struct thread_block {
	taddr_t start, end;
	uint32_t object;
	pid_t tid;
};

struct variables {
	struct type_table *types;
	VEC(struct variable_object) objects;
	VEC(struct program_variable) all;
	VEC(struct thread_block) blocks; /* ascending once they are sorted */
	struct thread_blocks where;
	bool is_sorted, has_threads;
};

struct variables *variables_new(struct type_table *types)
{
	struct variables *v = xcalloc(1, sizeof(*v));

	v->types = types;
	return v;
}

void variables_free(struct variables *v)
{
	if (!v)
		return;
	for (size_t i = 0; i < v->objects.count; i++) {
		struct variable_object *o = &v->objects.data[i];

		vec_deinit(&o->fixed.list);
		vec_deinit(&o->of_threads.list);
		elf_file_release(o->debug);
		elf_file_release(o->file);
	}
	vec_deinit(&v->objects);
	vec_release(&v->all, e, free(e->name));
	vec_deinit(&v->blocks);
	vec_deinit(&v->where.objects);
	free(v);
}

void variables_add_object(struct variables *v, struct elf_file *file, taddr_t bias)
{
	*vec_add(&v->objects) = (struct variable_object){
		.file = elf_file_hold(file), .bias = bias,
		.units = type_table_add(v->types, file)};
	*vec_add(&v->where.objects) = (struct thread_object){.file = file, .bias = bias};
}

/* -- symbols -- */

struct symbol_reader {
	struct variables *v;
	struct variable_object *object;
	const char *file;       /* the source file that the next local symbols are of */
};

/* Whether [@start, @start + @size) is in the object's memory, or in the block of a thread. */
static bool is_inside(const struct variable_object *o, uint64_t start, uint64_t size)
{
	const struct elf_segment *s = elf_file_segment(o->file, start);

	return s && size <= s->memsz - (start - s->vaddr);
}

static int add_symbol(void *ctx, const struct elf_symbol *sym)
{
	struct symbol_reader *r = ctx;

	if (sym->type == STT_FILE)
		r->file = sym->name;
	/* "DW.ref.NAME" only leads to NAME, for exceptions */
	if (!sym->is_defined || sym->size == 0 || !*sym->name ||
	    strncmp(sym->name, "DW.", 3) == 0 ||
	    (sym->type != STT_OBJECT && sym->type != STT_TLS))
		return 0;
	bool is_local = elf_symbol_is_local(sym);

	if (sym->type == STT_OBJECT ? !is_inside(r->object, sym->vaddr, sym->size) :
				      sym->size > UINT32_MAX)
		return 0;
	*vec_add(&r->v->all) = (struct program_variable){
		.start = sym->vaddr, .size = sym->size, .symbol = sym->name,
		.object = (uint32_t)(r->object - r->v->objects.data),
		.file = is_local && r->file && *r->file ? r->file : NULL,
		.is_thread_local = sym->type == STT_TLS};
	return 0;
}

static void read_symbols(struct variables *v, struct variable_object *o)
{
	struct symbol_reader r = {.v = v, .object = o};

	elf_file_each_symbol(o->file, add_symbol, &r);
	if (elf_file_section(o->file->elf, ".symtab", NULL))
		return;
	o->debug = debuglink_find(o->file, DEBUGLINK_DIRS);
	r.file = NULL;
	if (o->debug)
		elf_file_each_symbol(o->debug, add_symbol, &r);
}

/* -- DWARF -- */

static void read_debug(struct variables *v, struct variable_object *o)
{
	size_t count;
	const struct debug_variable *d = debug_units_variables(o->units, &count);

	for (size_t i = 0; i < count; i++) {
		size_t now;

		d = debug_units_variables(o->units, &now); /* types may have moved it */

		struct program_variable p = {
			.start = d[i].address, .has_debug = true, .debug = d[i],
			.object = (uint32_t)(o - v->objects.data),
			.is_thread_local = d[i].is_thread_local};

		p.type = type_table_read_of(v->types, o->units, &p.debug.die);
		p.size = MAX(type_table_get(v->types, p.type)->size, UINT64_C(1));
		if (p.is_thread_local ? p.size <= UINT32_MAX : is_inside(o, p.start, p.size))
			*vec_add(&v->all) = p;
	}
}

/* -- one list -- */

/*
 * By place: those of DWARF with a type first, then the larger ones, then by the better name.
 */
static int compare(const void *a, const void *b)
{
	const struct program_variable *x = a, *y = b;

	if (x->is_thread_local != y->is_thread_local)
		return x->is_thread_local ? 1 : -1;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->has_debug != y->has_debug)
		return x->has_debug ? -1 : 1;
	if (x->size != y->size)
		return x->size > y->size ? -1 : 1;
	if (x->has_debug)
		return x->debug.die.addr < y->debug.die.addr ? -1 :
		       x->debug.die.addr > y->debug.die.addr;
	return strcmp(x->symbol, y->symbol) == 0 ? 0 :
	       symtab_is_better_name(x->symbol, y->symbol) ? -1 : 1;
}

/*
 * Whether @next, which begins no earlier than @p, is a part of it or the same. The symbol of a
 * variable knows its size if DWARF does not: where an array is only declared there.
 */
static bool is_within(struct program_variable *p, const struct program_variable *next)
{
	if (p->is_thread_local != next->is_thread_local || next->start >= p->start + p->size)
		return false;
	if (p->has_debug && !next->has_debug && p->start == next->start) {
		p->size = MAX(p->size, next->size);
		p->symbol = p->symbol ? p->symbol : next->symbol;
		p->file = next->file;
	}
	return true;
}

/* Sorts the variables from number @first on, and leaves one for each place. */
static void make_lists(struct variables *v, struct variable_object *o, uint32_t first)
{
	struct program_variable *p = v->all.data + first;
	size_t count = v->all.count - first, kept = 0;

	if (count)
		qsort(p, count, sizeof(*p), compare);
	for (size_t i = 0; i < count; i++)
		if (kept == 0 || !is_within(&p[kept - 1], &p[i]))
			p[kept++] = p[i];
	v->all.count = first + kept;
	for (size_t i = 0; i < kept; i++) {
		struct variable_list *list = p[i].is_thread_local ? &o->of_threads : &o->fixed;

		*vec_add(&list->list) = (struct variable_entry){
			p[i].start, p[i].start + p[i].size, first + (uint32_t)i};
		if (!p[i].is_thread_local)
			p[i].start += o->bias;
	}
}

static void read_object(struct variables *v, struct variable_object *o)
{
	uint32_t first = (uint32_t)v->all.count;

	if (o->is_read)
		return;
	o->is_read = true;
	read_symbols(v, o);
	read_debug(v, o);
	make_lists(v, o, first);
}

/* -- threads -- */

static bool read_inspected(void *ctx, taddr_t addr, void *buf, size_t size)
{
	return memory_read(ctx, addr, buf, size);
}

void variables_add_thread(struct variables *v, pid_t tid, taddr_t thread_pointer,
			  struct inspect_memory *memory)
{
	const struct thread_memory source = {read_inspected, memory};

	if (!v->has_threads)
		thread_blocks_init(&v->where, &source);
	v->has_threads = true;
	for (size_t i = 0; i < v->objects.count; i++) {
		taddr_t start = thread_blocks_find(&v->where, &source, thread_pointer, i);

		if (start)
			*vec_add(&v->blocks) = (struct thread_block){
				start, start + v->where.objects.data[i].size, (uint32_t)i, tid};
	}
	v->is_sorted = false;
}

/* -- questions -- */

static bool find_in(const struct variable_list *l, uint64_t at, struct variable_place *out)
{
	const struct variable_entry *e = vec_find(&l->list, at);

	if (!e)
		return false;
	*out = (struct variable_place){.variable = e->variable, .offset = at - e->start};
	return true;
}

static bool finish_place(const struct variables *v, taddr_t addr, struct variable_place *out)
{
	out->type = v->all.data[out->variable].type;
	out->start = addr - out->offset;
	return true;
}

bool variables_find(struct variables *v, taddr_t addr, struct variable_place *out)
{
	if (!v->is_sorted)
		vec_sort(&v->blocks, taddr_compare);
	v->is_sorted = true;
	const struct thread_block *b = vec_find(&v->blocks, addr);

	if (b) {
		struct variable_object *o = &v->objects.data[b->object];

		read_object(v, o);
		if (!find_in(&o->of_threads, addr - b->start, out))
			return false;
		out->tid = b->tid;
		return finish_place(v, addr, out);
	}
	for (size_t i = 0; i < v->objects.count; i++) {
		struct variable_object *o = &v->objects.data[i];

		if (!elf_file_segment(o->file, addr - o->bias))
			continue;
		read_object(v, o);
		if (find_in(&o->fixed, addr - o->bias, out))
			return finish_place(v, addr, out);
	}
	return false;
}

uint32_t variables_count(struct variables *v)
{
	for (size_t i = 0; i < v->objects.count; i++)
		read_object(v, &v->objects.data[i]);
	return (uint32_t)v->all.count;
}

const struct program_variable *variables_get(const struct variables *v, uint32_t variable)
{
	return &v->all.data[variable];
}

const struct elf_file *variables_file(const struct variables *v, uint32_t variable)
{
	return v->objects.data[v->all.data[variable].object].file;
}

/* What compilers append: the number of a function's static, where a function was copied. */
static bool is_compilers(const char *suffix)
{
	static const char *const known[] = {"lto_priv", "llvm", "isra", "constprop", "part"};

	if (text_is_digit((uint8_t)*suffix))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (strncmp(suffix, known[i], strlen(known[i])) == 0)
			return true;
	return false;
}

/* GCC names the static of a function "cache.0", clang "parse.cache". */
static char *plain_text(const char *symbol)
{
	const char *dot = strchr(symbol, '.');

	if (!dot || dot == symbol)
		return xstrdup(symbol);
	if (is_compilers(dot + 1))
		return xstrndup(symbol, (size_t)(dot - symbol));
	return xasprintf("%.*s() %.*s", (int)(dot - symbol), symbol,
			 (int)strcspn(dot + 1, "."), dot + 1);
}

/* "ns::get(int)::instance" becomes "ns::get() instance". */
static char *function_static_text(char *name)
{
	char *end = NULL, *at = name;
	int depth = 1;

	while ((at = strstr(at, ")::")))
		end = at++;
	if (!end)
		return name;
	for (at = end; at > name && depth > 0;) {
		at--;
		depth += *at == ')' ? 1 : *at == '(' ? -1 : 0;
	}
	if (depth != 0 || at == name)
		return name;
	char *out = xasprintf("%.*s() %s", (int)(at - name), name, end + 3);

	free(name);
	return out;
}

static char *symbol_text(const struct program_variable *p)
{
	char *whole = demangle(p->symbol);
	char *name = whole ? function_static_text(whole) : plain_text(p->symbol);
	const char *slash = p->file ? strrchr(p->file, '/') : NULL;
	const char *file = slash ? slash + 1 : p->file;

	if (!file || strstr(name, "::") || strstr(name, "() "))
		return name;
	char *out = xasprintf("%s: %s", file, name);

	free(name);
	return out;
}

const char *variables_name(struct variables *v, uint32_t variable)
{
	struct program_variable *p = &v->all.data[variable];

	if (p->name)
		return p->name;
	if (p->has_debug)
		p->name = debug_units_variable_name(v->objects.data[p->object].units, &p->debug);
	if (!p->name)
		p->name = p->symbol ? symbol_text(p) : xstrdup("?");
	return p->name;
}
