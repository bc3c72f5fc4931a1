/*
 * Looks an address up once and caches the result in a hash table from (module, pc) to struct
 * symbol. What a look-up needs of an ELF file (symbol table, DWARF) is read at its first look-up,
 * and shared by all mappings of the file. Owns the results, their strings and the opened debug
 * files.
 */
#include "symbols/symbols.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/elf_file.h"
#include "base/frame_key.h"
#include "base/go_table.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/text.h"
#include "symbols/debug_files.h"
#include "symbols/debug_info.h"
#include "symbols/demangle.h"
#include "symbols/string_pool.h"
#include "symbols/symtab.h"

/* The data of one file. */
struct object {
	struct elf_file *file;  /* holds a reference */
	struct elf_file *debug; /* its separate debug file, owned; or NULL */
	struct symtab symtab;
	struct debug_info *info;
	bool is_whole;          /* needs no debug file */
	bool was_fetched;       /* or could not be */
	bool is_new;            /* its debug file has been fetched: earlier results are obsolete */
};

/* One cached result; the slot is free while both symbols are NULL. */
struct answer {
	taddr_t pc;
	uint32_t module_id;  /* 0 = outside any module */
	struct symbol *sym;  /* owned, one allocation with its frames; NULL: not looked up yet */
	struct symbol *real; /* SYMBOL_REAL, likewise; NULL also if sym was there before */
	const struct elf_file *file; /* of the module; NULL = none, or not looked up in it */
};

struct symbols {
	bool no_demangle, no_inline, show_below_main;
	char *debug_dirs;
	struct string_pool strings;
	VEC(struct object *) objects; /* owned; pointers, so that an object does not move */
	HASH(struct answer) answers;  /* by module and address */
	uint64_t changes;             /* of answers */
	VEC(struct symbol *) obsolete; /* owned */
	struct symbol_frames scratch;
};

struct symbols *symbols_new(const struct symbols_options *options)
{
	struct symbols *s = xcalloc(1, sizeof(*s));
	s->no_demangle = options->no_demangle;
	s->no_inline = options->no_inline;
	s->show_below_main = options->show_below_main;
	s->debug_dirs = xstrdup(options->debug_dirs ? options->debug_dirs : DEBUGLINK_DIRS);
	return s;
}

static void object_free(struct object *o)
{
	debug_info_free(o->info);
	symtab_deinit(&o->symtab);
	elf_file_release(o->debug);
	elf_file_release(o->file);
	free(o);
}

void symbols_forget(struct symbols *s)
{
	vec_release(&s->objects, e, object_free(*e));
	for (size_t i = 0; hash_next(&s->answers.index, &i); i++) {
		free(s->answers.slot[i].sym);
		free(s->answers.slot[i].real);
	}
	hash_deinit(&s->answers);
	vec_release(&s->obsolete, e, free(*e));
	vec_deinit(&s->scratch);
	string_pool_deinit(&s->strings);
	s->strings = (struct string_pool){0};
	s->changes++;
}

void symbols_free(struct symbols *s)
{
	if (!s)
		return;
	symbols_forget(s);
	free(s->debug_dirs);
	free(s);
}

static bool has_dwarf(struct elf_file *file)
{
	return elf_file_section(file->elf, ".debug_info", NULL) ||
	       elf_file_section(file->elf, ".zdebug_info", NULL);
}

/* Takes ownership of @debug. */
static void read_object(struct symbols *s, struct object *o, struct elf_file *debug)
{
	struct elf_file *source = debug && !has_dwarf(o->file) ? debug : o->file;
	o->debug = debug;
	symtab_init(&o->symtab, o->file, debug);
	o->info = debug_info_new(o->file, source, &s->strings,
				 &(struct symbols_options){.no_demangle = s->no_demangle,
							   .debug_dirs = s->debug_dirs});
}

static struct object *get_object(struct symbols *s, struct elf_file *file)
{
	for (size_t i = s->objects.count; i-- > 0;) {
		if (s->objects.data[i]->file == file)
			return s->objects.data[i];
	}
	struct object *o = xcalloc(1, sizeof(*o));
	o->is_whole = has_dwarf(file) && elf_file_section(file->elf, ".symtab", NULL);
	o->file = elf_file_hold(file);
	read_object(s, o, o->is_whole ? NULL : debuglink_find(file, s->debug_dirs));
	*vec_add(&s->objects) = o;
	return o;
}

/* Start-up code, by its raw name (doc/massif.md 1.3). */
static bool is_startup(const char *name)
{
	static const char *const names[] = {
		"__libc_start_main", "__libc_start_call_main", "generic_start_main", "_start",
	};
	static const char *const prefixes[] = {"__libc_start_main.", "generic_start_main."};
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (strcmp(name, names[i]) == 0)
			return true;
	}
	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
		if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	}
	return false;
}

/* The name of @entry as reports show it. */
static const char *shown_name(struct symbols *s, struct symtab_entry *entry)
{
	if (!entry->shown && !s->show_below_main && is_startup(entry->name))
		entry->shown = "(below main)";
	if (!entry->shown) {
		char *plain = s->no_demangle ? NULL : demangle(entry->name);
		entry->shown = string_pool_add(&s->strings, plain ? plain : entry->name);
		free(plain);
	}
	return entry->shown;
}

/* Copies @frames (at least one) into a symbol in one allocation. */
static struct symbol *new_symbol(const struct symbol_frame *frames, size_t count)
{
	struct symbol *sym = xcalloc(1, sizeof(*sym) + count * sizeof(*sym->frame));
	sym->frame = (struct symbol_frame *)(sym + 1);
	sym->count = (uint32_t)count;
	memcpy(sym->frame, frames, count * sizeof(*frames));
	return sym;
}

/* The symbol for an address of which only the module, or nothing, is known. */
static struct symbol *new_nameless(struct symbols *s, const struct module *m)
{
	struct symbol *sym = new_symbol(&(struct symbol_frame){0}, 1);
	sym->object = m ? string_pool_add(&s->strings, m->path) : NULL;
	return sym;
}

/* Sets the line of @vaddr in @f, if the table has one. */
static void set_go_line(struct symbols *s, struct symbol_frame *frame, const struct go_table *t,
			const struct go_function *f, uint64_t vaddr)
{
	const char *path;

	if (!go_table_line(t, f, vaddr, &path, &frame->line))
		return;
	const char *base = text_base_name(path);
	_cleanup_free_ char *dir = xstrndup(path, (size_t)(base - path) - (base > path));

	frame->file = string_pool_add(&s->strings, base);
	frame->dir = base > path ? string_pool_add(&s->strings, dir) : NULL;
}

#define GO_INLINED_MAX 100

/* The frames at @vaddr by a Go program's own table, if DWARF has no line for it. */
static void find_go_frames(struct symbols *s, struct elf_file *file, uint64_t vaddr)
{
	struct symbol_frames *frames = &s->scratch;
	const struct go_table *t = go_table_of(file);
	struct go_function f;

	if (!t || frames->count != 1 || frames->data[0].file ||
	    !go_table_find_caller(t, vaddr, &f))
		return;
	for (frames->count = 0;;) {
		struct symbol_frame *frame = vec_add(frames);
		uint64_t at = vaddr;

		*frame = (struct symbol_frame){0};
		set_go_line(s, frame, t, &f, vaddr);
		if (s->no_inline || frames->count == GO_INLINED_MAX ||
		    !go_table_inlined(t, &f, &at, &frame->name))
			return;
		frame->name = string_pool_add(&s->strings, frame->name);
		vaddr = at;
	}
}

/* The real function at @vaddr, as a Go program's own table names it; NULL. */
static const char *go_name(struct symbols *s, const struct object *o, uint64_t vaddr)
{
	const struct go_table *t = go_table_of(o->file);
	struct go_function f;

	return t && go_table_find_caller(t, vaddr, &f) ? string_pool_add(&s->strings, f.name) :
							 NULL;
}

/* Names the real function at @vaddr of @o; false if no table has it. */
static bool set_real(struct symbols *s, struct symbol *sym, struct object *o, uint64_t vaddr)
{
	struct symtab_entry *entry = symtab_find(&o->symtab, vaddr);
	const char *go = go_name(s, o, vaddr), *name = go ? go : entry ? entry->name : NULL;

	if (!name)
		return false;
	sym->raw = string_pool_add(&s->strings, name);
	sym->is_main = strcmp(name, "main") == 0;
	sym->is_below_main = is_startup(name);
	sym->frame[sym->count - 1].name = go ? go : shown_name(s, entry);
	return true;
}

static struct symbol *look_up(struct symbols *s, const struct module *m, taddr_t pc)
{
	if (!m || !m->file)
		return new_nameless(s, m);
	uint64_t vaddr = pc - m->bias;
	struct object *o = get_object(s, m->file);
	s->scratch.count = 0;
	bool is_whole = debug_info_find(o->info, vaddr, s->no_inline, &s->scratch);
	find_go_frames(s, m->file, vaddr);
	struct symbol *sym = new_symbol(s->scratch.data, s->scratch.count);
	sym->object = string_pool_add(&s->strings, m->path);
	sym->lacks_inlined = !is_whole;
	set_real(s, sym, o, vaddr);
	return sym;
}

/* NULL if no symbol table has it. */
static struct symbol *look_up_real(struct symbols *s, const struct module *m, taddr_t pc)
{
	if (!m || !m->file)
		return NULL;
	struct symbol *sym = new_nameless(s, m);
	if (set_real(s, sym, get_object(s, m->file), pc - m->bias))
		return sym;
	free(sym);
	return NULL;
}

static bool is_free(const struct answer *a)
{
	return !a->sym && !a->real;
}

static uint64_t hash_answer(uint32_t module_id, taddr_t pc)
{
	return hash_u64(pc ^ hash_u64(module_id));
}

/* The answer for (@module_id, @pc). If it is free, the caller fills it. */
static struct answer *get_answer(struct symbols *s, uint32_t module_id, taddr_t pc)
{
	uint64_t hash = hash_answer(module_id, pc);
	struct answer *a =
		hash_find(&s->answers, hash, e, e->pc == pc && e->module_id == module_id);
	if (!a) {
		a = hash_add(&s->answers, hash);
		*a = (struct answer){.pc = pc, .module_id = module_id};
	}
	return a;
}

/* -- debug files that are fetched -- */

struct fetching {
	struct symbols *symbols;
	VEC(struct object *) objects;
	VEC(struct debuginfod_request) requests;
	bool (*should_stop)(void *ctx);
	void *ctx;
};

static bool should_stop_fetching(void *ctx)
{
	const struct fetching *f = ctx;
	return f->should_stop(f->ctx);
}

static void use_fetched(void *ctx, size_t index, const char *path)
{
	const struct fetching *f = ctx;
	struct object *o = f->objects.data[index];
	struct elf_file *debug = debuglink_open(o->file, path);
	if (!debug) {
		log_verbose("debuginfod: %s is not the debug file of %s", path, o->file->path);
		return;
	}
	log_verbose("debuginfod: %s has the debug information of %s", path, o->file->path);
	debug_info_free(o->info);
	symtab_deinit(&o->symtab);
	read_object(f->symbols, o, debug);
	o->is_new = true;
}

static bool is_obsolete(const struct symbols *s, const struct answer *a)
{
	for (size_t i = 0; a->file && i < s->objects.count; i++) {
		if (s->objects.data[i]->file == a->file)
			return s->objects.data[i]->is_new;
	}
	return false;
}

static void retire(struct symbols *s, struct symbol *sym)
{
	if (sym)
		*vec_add(&s->obsolete) = sym;
}

/* Removes the answers of new objects, by building the table again. */
static void drop_obsolete(struct symbols *s)
{
	__typeof__(s->answers) old = s->answers, kept = {0};
	for (size_t i = 0; hash_next(&old.index, &i); i++) {
		const struct answer *a = &old.slot[i];
		if (is_obsolete(s, a)) {
			retire(s, a->sym);
			retire(s, a->real);
		} else {
			*hash_add(&kept, hash_answer(a->module_id, a->pc)) = *a;
		}
	}
	hash_deinit(&old);
	s->answers = kept;
	s->changes++;
	for (size_t i = 0; i < s->objects.count; i++)
		s->objects.data[i]->is_new = false;
}

uint64_t symbols_changes(const struct symbols *s)
{
	return s->changes;
}

void symbols_note(struct symbols *s, const struct module *m)
{
	if (m && m->file)
		get_object(s, m->file);
}

static bool wants_debug_file(const struct object *o)
{
	return !o->is_whole && !o->debug && !o->was_fetched && o->file->build_id_size > 0 &&
	       !o->file->image;
}

bool symbols_wants_fetch(const struct symbols *s)
{
	for (size_t i = 0; i < s->objects.count; i++)
		if (wants_debug_file(s->objects.data[i]))
			return true;
	return false;
}

void symbols_fetch(struct symbols *s, bool (*should_stop)(void *ctx), void *ctx)
{
	struct fetching f = {.symbols = s, .should_stop = should_stop, .ctx = ctx};
	for (size_t i = 0; i < s->objects.count; i++) {
		struct object *o = s->objects.data[i];
		if (!wants_debug_file(o))
			continue;
		o->was_fetched = true;
		*vec_add(&f.objects) = o;
		*vec_add(&f.requests) = (struct debuginfod_request){
			o->file->build_id, o->file->build_id_size, text_base_name(o->file->path)};
	}
	debuginfod_fetch(f.requests.data, f.requests.count,
			 &(struct debuginfod_ops){use_fetched, should_stop_fetching, &f});
	if (s->answers.index.count)
		drop_obsolete(s);
	vec_deinit(&f.objects);
	vec_deinit(&f.requests);
}

/* -- look-ups -- */

const char *symbols_function(struct symbols *s, const struct module *m, taddr_t pc)
{
	if (!m || !m->file)
		return NULL;
	struct object *o = get_object(s, m->file);
	struct symtab_entry *entry = symtab_find(&o->symtab, pc - m->bias);
	const char *go = go_name(s, o, pc - m->bias);
	return go ? go : entry ? shown_name(s, entry) : NULL;
}

bool symbol_is_startup(const struct symbol *s)
{
	static const char versioned[] = "__libc_start_main@";
	const char *name = s->frame[s->count - 1].name;

	return s->is_below_main || (name && strncmp(name, versioned, sizeof(versioned) - 1) == 0);
}

const struct symbol *symbols_find(struct symbols *s, const struct module *m, taddr_t pc,
				  enum symbol_part part)
{
	struct answer *a = get_answer(s, m ? m->id : 0, pc);
	if (is_free(a))
		a->file = m ? m->file : NULL;
	if (part == SYMBOL_REAL && !a->sym && !a->real)
		a->real = look_up_real(s, m, pc);
	if (!a->sym && !(part == SYMBOL_REAL && a->real))
		a->sym = look_up(s, m, pc);
	return a->sym ? a->sym : a->real;
}

void symbols_define(struct symbols *s, uint32_t module_id, taddr_t pc, const struct symbol *sym)
{
	struct answer *a = get_answer(s, module_id, pc);
	s->changes += !is_free(a);
	free(a->sym);
	free(a->real);
	a->real = NULL;
	a->sym = new_symbol(sym->frame, sym->count);
	a->sym->object = string_pool_add(&s->strings, sym->object);
	a->sym->is_main = sym->is_main;
	a->sym->is_below_main = sym->is_below_main;
	for (uint32_t i = 0; i < sym->count; i++) {
		struct symbol_frame *f = &a->sym->frame[i];
		f->name = string_pool_add(&s->strings, f->name);
		f->plain = string_pool_add(&s->strings, f->plain);
		f->file = string_pool_add(&s->strings, f->file);
		f->dir = string_pool_add(&s->strings, f->dir);
	}
}

/* -- named functions -- */

static uint64_t hash_text(uint64_t hash, const char *text)
{
	for (const char *c = text ? text : ""; *c; c++)
		hash = hash_u64(hash ^ (uint8_t)*c);
	return hash_u64(hash + 1);
}

static bool is_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool is_same_name(const struct symbol *a, const struct symbol *b)
{
	const struct symbol_frame *x = a->frame, *y = b->frame;

	return is_text(x->name, y->name) && is_text(x->file, y->file) && is_text(x->dir, y->dir) &&
	       x->line == y->line && is_text(a->object, b->object);
}

uint64_t symbols_name(struct symbols *s, const struct symbol *sym)
{
	const struct symbol_frame *f = sym->frame;
	uint64_t hash = hash_text(f->line, f->name);

	hash = hash_text(hash_text(hash, f->file), f->dir);
	uint64_t key = frame_named_key(hash_text(hash, sym->object));

	for (;; key = frame_named_key((key + 1) << 8)) {
		const struct answer *a = get_answer(s, 0, key);

		if (is_free(a))
			break;
		if (a->sym && is_same_name(a->sym, sym))
			return key;
	}
	symbols_define(s, 0, key, sym);
	return key;
}

const struct symbol *symbols_named(struct symbols *s, uint64_t key)
{
	return symbols_find(s, NULL, key, SYMBOL_ALL);
}
