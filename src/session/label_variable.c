/*
 * A symbol says where a variable is, debug information which type it has. The way to a member is
 * compiled to loads and offsets.
 */
#include "session/label_variable.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "graph/thread_blocks.h"
#include "session/otel_keys.h"
#include "symbols/debug_files.h"
#include "symbols/demangle.h"
#include "tracee/state/module.h"
#include "tracee/state/space.h"

/* -- symbols -- */

/* A variable in an ELF file. */
struct found_symbol {
	uint64_t vaddr, size;   /* of a thread's: offset in the object's block */
	bool is_thread_local, is_local;
};

struct symbol_search {
	const struct label_option *option;
	const char *file;       /* that the next local symbols are of */
	struct found_symbol best;
	unsigned found;         /* at different places, of those like the best one */
};

/* What compilers append to a static of a function: "cache.0", also after link-time optimization. */
static size_t plain_size(const char *symbol)
{
	return strcspn(symbol, ".");
}

static bool is_named(const char *symbol, const char *name)
{
	if (strcmp(symbol, name) == 0)
		return true;
	if (strstr(name, "::")) {
		_cleanup_free_ char *whole = strncmp(symbol, "_Z", 2) == 0 ||
						     strncmp(symbol, "_R", 2) == 0 ?
						     demangle(symbol) : NULL;

		return whole && strcmp(whole, name) == 0;
	}
	return plain_size(symbol) == strlen(name) && strncmp(symbol, name, strlen(name)) == 0;
}

static int note_symbol(void *ctx, const struct elf_symbol *sym)
{
	struct symbol_search *s = ctx;
	const char *file = s->option->file;
	bool is_local = elf_symbol_is_local(sym), is_of_thread = sym->type == STT_TLS;

	if (sym->type == STT_FILE)
		s->file = sym->name;
	if (!sym->is_defined || !sym->size || (sym->type != STT_OBJECT && !is_of_thread) ||
	    (s->option->is_thread_local && !is_of_thread) ||
	    (file && (!is_local || !s->file || strcmp(text_base_name(s->file), file) != 0)) ||
	    !is_named(sym->name, s->option->object))
		return 0;
	struct found_symbol new = {sym->vaddr, sym->size, is_of_thread, is_local};
	struct found_symbol *best = &s->best;

	if (s->found && best->vaddr == new.vaddr &&
	    best->is_thread_local == new.is_thread_local)
		return 0;
	/* one that all files can name comes before those of one file */
	if (s->found && is_local && !best->is_local)
		return 0;
	s->found = s->found && is_local == best->is_local ? s->found + 1 : 1;
	*best = new;
	return 0;
}

static void search_symbols(struct elf_file *file, struct symbol_search *s)
{
	elf_file_each_symbol(file, note_symbol, s);
	if (s->found || elf_file_section(file->elf, ".symtab", NULL))
		return;
	struct elf_file *debug = debuglink_find(file, DEBUGLINK_DIRS);

	if (!debug)
		return;
	elf_file_each_symbol(debug, note_symbol, s);
	elf_file_release(debug);
}

/* The type of the variable at @sym; TYPE_NONE: no debug information has it. */
static uint32_t type_of(struct type_table *types, struct elf_file *file,
			const struct found_symbol *sym)
{
	struct debug_units *units = type_table_add(types, file);
	size_t count;
	const struct debug_variable *d = debug_units_variables(units, &count);

	for (size_t i = 0; i < count; i++) {
		if (d[i].address != sym->vaddr || d[i].is_thread_local != sym->is_thread_local)
			continue;
		Dwarf_Die die = d[i].die;
		uint32_t type = type_table_read_of(types, units, &die);

		if (type != TYPE_NONE)
			return type;
		d = debug_units_variables(units, &count);
	}
	return TYPE_NONE;
}

/* -- the way -- */

/* What is compiled: the place is reached by `pad` so far, and has the type. */
struct label_way {
	struct type_table *types;
	struct pad_label *pad;
	uint32_t type;
	uint64_t size;          /* of a variable of unknown type; else 0 */
};

static bool is_struct(const struct data_type *t)
{
	return t->kind == DATA_STRUCT || t->kind == DATA_UNION;
}

static void add_offset(struct label_way *w, uint64_t offset)
{
	if (w->pad->steps)
		w->pad->offset[w->pad->steps - 1] += offset;
	else
		w->pad->place = (int64_t)((uint64_t)w->pad->place + offset);
}

static bool follow_pointer(struct label_way *w)
{
	const struct data_type *t = type_table_get(w->types, w->type);

	if (w->pad->steps == PAD_LABEL_STEPS)
		return false;
	w->type = t->kind == DATA_POINTER ? t->target : TYPE_NONE;
	w->size = 0;
	w->pad->steps++;
	return true;
}

/* A struct is entered as it is, a pointer is followed; of unknown types their size says which. */
static bool enter(struct label_way *w)
{
	return is_struct(type_table_get(w->types, w->type)) ||
	       (w->type == TYPE_NONE && w->size > sizeof(uint64_t)) || follow_pointer(w);
}

static bool take_member(struct label_way *w, const struct label_step *step)
{
	struct member_place place = {0};

	if (!enter(w))
		return false;
	if (!step->member) {
		add_offset(w, step->offset);
		w->type = TYPE_NONE;
		w->size = 0;
		return true;
	}
	if (!type_table_find_place(w->types, w->type, step->member, &place) || place.bit_size)
		return false;
	add_offset(w, place.offset);
	w->type = place.type;
	w->size = 0;
	return true;
}

static bool finish_counted(struct label_way *w, uint64_t data, uint64_t length)
{
	if (data > UINT32_MAX || length > UINT32_MAX)
		return false;
	w->pad->kind = PAD_LABEL_COUNTED;
	w->pad->data = (uint32_t)data;
	w->pad->length = (uint32_t)length;
	return true;
}

/* Follows the pointer to a text. */
static bool follow_text(struct label_way *w)
{
	w->pad->has_null = 1;
	return follow_pointer(w);
}

static bool finish_text(struct label_way *w, uint64_t size)
{
	w->pad->kind = PAD_LABEL_TEXT;
	w->pad->size = size && size < PAD_LABEL_BYTES ? (uint32_t)size : PAD_LABEL_BYTES;
	return true;
}

/* What is at the end of the way, with @form. False: it has no text. */
static bool finish_way(struct label_way *w, enum value_form form)
{
	const struct data_type t = *type_table_get(w->types, w->type);
	bool is_pointer = t.kind == DATA_POINTER, is_text = form <= VALUE_STRING;
	uint32_t inner = is_pointer || t.kind == DATA_ARRAY ? t.target : TYPE_NONE;
	uint64_t data, length;

	if (is_text && is_struct(&t))
		return data_counted_string(w->types, w->type, &data, &length) &&
		       finish_counted(w, data, length);
	if (is_text && is_pointer && data_counted_string(w->types, inner, &data, &length))
		return follow_text(w) && finish_counted(w, data, length);
	if (is_text && t.kind == DATA_ARRAY && data_is_character(w->types, inner))
		return finish_text(w, t.count);
	if (form == VALUE_STRING && w->type == TYPE_NONE && w->size > sizeof(uint64_t))
		return finish_text(w, w->size);
	if (form == VALUE_STRING || (form == VALUE_AUTO && is_pointer &&
				     data_is_character(w->types, inner)))
		return follow_text(w) && finish_text(w, 0);
	uint64_t size = t.size ? t.size : w->size;

	if (size > sizeof(uint64_t) || is_struct(&t))
		return false;
	w->pad->kind = PAD_LABEL_NUMBER;
	w->pad->size = size ? (uint32_t)size : sizeof(uint64_t);
	return true;
}

/* -- threads -- */

static bool read_space(void *ctx, taddr_t addr, void *buf, size_t size)
{
	return space_read(ctx, addr, buf, size) == 0;
}

static int note_start(void *ctx, const struct elf_symbol *sym)
{
	(void)ctx;
	return sym->is_defined && strcmp(sym->name, "__libc_start_main") == 0;
}

/*
 * Where the block of @m is, to whose start pad->place is added. False: the dynamic linker has not
 * numbered it yet, or the C library, which says what vectors are like, is not there.
 */
static bool place_block(const struct address_space *space, const struct module *m,
			struct pad_label *pad)
{
	const struct thread_memory memory = {read_space, (void *)space};
	struct thread_blocks blocks = {0};
	struct thread_entry entry;
	bool has_library = false;
	size_t own = 0;

	for (size_t i = 0; i < space->modules.count; i++) {
		const struct module *each = space->modules.data[i];

		if (!each->file || each->is_vdso)
			continue;
		if (each == m)
			own = blocks.objects.count;
		has_library |= elf_file_each_symbol(each->file, note_start, NULL) != 0;
		*vec_add(&blocks.objects) =
			(struct thread_object){.file = each->file, .bias = each->bias};
	}
	thread_blocks_init(&blocks, &memory);
	bool is_known = has_library && own < blocks.objects.count &&
			thread_blocks_entry(&blocks, own, &entry);

	vec_deinit(&blocks.objects);
	if (!is_known)
		return false;
	pad->base = PAD_LABEL_VECTOR;
	pad->vector = entry.vector;
	pad->entry = entry.entry;
	pad->count = entry.count;
	pad->number = entry.number;
	return true;
}

/* Begins the way to @sym of @m. False: not yet. */
static bool begin_way(const struct address_space *space, const struct module *m,
		      const struct found_symbol *sym, struct pad_label *pad)
{
	*pad = (struct pad_label){.base = PAD_LABEL_FIXED};
	pad->place = (int64_t)(sym->is_thread_local ? sym->vaddr : sym->vaddr + m->bias);
	return !sym->is_thread_local || place_block(space, m, pad);
}

const char *label_variable_find(const struct address_space *space, const struct module *m,
				struct type_table *types, const struct label_option *l,
				struct label_place *out)
{
	struct symbol_search s = {.option = l};
	struct pad_label pad;

	if (!m->file || m->is_vdso)
		return NULL;
	search_symbols(m->file, &s);
	if (!s.found)
		return NULL;
	if (s.found > 1)
		return "several files have a variable of this name: say which, as in "
		       "server.c:current";
	*out = (struct label_place){.module = m->id, .is_pending = true};
	if (!begin_way(space, m, &s.best, &pad))
		return NULL;
	struct label_way w = {types, &pad, type_of(types, m->file, &s.best), 0};

	out->is_pending = false;
	w.size = w.type == TYPE_NONE ? s.best.size : 0;
	for (unsigned i = 0; i < l->steps; i++)
		if (!take_member(&w, &l->step[i]))
			return l->step[i].member && w.type == TYPE_NONE ?
				       "no debug information says where its member is: build the "
				       "program with -g, or give its offset, as in ->+16" :
				       "it has no such member, or that is a bit field";
	if (!finish_way(&w, l->form))
		return "it is neither text nor a number: name a member";
	pad.has_null = 0;
	out->type = w.type;
	out->pad = pad;
	return NULL;
}

/* Whether what is at the end of the way may be text or not: only its bytes say so. */
static bool is_undecided(const struct label_way *w, enum value_form form)
{
	const struct data_type *t = type_table_get(w->types, w->type);

	return form == VALUE_AUTO && (w->type == TYPE_NONE || (t->kind == DATA_POINTER &&
							       t->target == TYPE_NONE));
}

bool label_argument_place(struct type_table *types, taddr_t entry, uint32_t type,
			  const struct label_option *l, struct label_place *out)
{
	struct pad_label pad = {.base = PAD_LABEL_CALL, .function = entry, .argument = l->arg};
	struct label_way w = {types, &pad, type, type == TYPE_NONE ? sizeof(uint64_t) : 0};

	for (unsigned i = 0; i < l->steps; i++)
		if (!take_member(&w, &l->step[i]))
			return false;
	if (l->arg >= PAD_LABEL_ARGUMENTS || is_undecided(&w, l->form) || !finish_way(&w, l->form))
		return false;
	*out = (struct label_place){.pad = pad, .type = w.type};
	return true;
}

void label_context_find(const struct address_space *space, const struct module *m,
			const struct label_option *l, struct label_place *out)
{
	static const struct label_option variable = {.object = (char *)"otel_thread_ctx_v1",
						     .is_thread_local = true};
	struct symbol_search s = {.option = &variable};
	struct pad_label pad;
	int key = -1;

	if (!m->file || m->is_vdso)
		return;
	/* the symbol was found already: while there are no keys, it is not looked for again */
	if (out->is_pending && (key = otel_keys_find(space, l->object)) < 0)
		return;
	search_symbols(m->file, &s);
	if (s.found != 1)
		return;
	if (!out->is_pending)
		key = otel_keys_find(space, l->object);
	*out = (struct label_place){.module = m->id, .is_pending = true};
	if (key < 0 || !begin_way(space, m, &s.best, &pad))
		return;
	pad.steps = 1;
	pad.kind = PAD_LABEL_ATTRIBUTE;
	pad.key = (uint32_t)key;
	out->pad = pad;
	out->is_pending = false;
}

/* -- values -- */

struct word_reader {
	const struct address_space *space;
	taddr_t at;             /* of the last word; 0 = none */
	uint64_t word;
	uint64_t argument;      /* of a call: the first word */
	bool is_begun;
};

static int load_word(void *ctx, uint64_t at, int is_fixed, uint64_t *out)
{
	struct word_reader *r = ctx;

	(void)is_fixed;

	if (!r->at || r->at != at) {
		r->at = 0;
		if (space_read(r->space, at, &r->word, sizeof(r->word)) != 0)
			return 0;
		r->at = at;
	}
	*out = r->word;
	return 1;
}

#define ARGUMENT_AT 4096 /* any that is aligned */

static int load_argument(void *ctx, uint64_t at, int is_fixed, uint64_t *out)
{
	struct word_reader *r = ctx;

	if (r->is_begun)
		return load_word(ctx, at, is_fixed, out);
	r->is_begun = true;
	*out = r->argument;
	return 1;
}

void label_argument_read(const struct address_space *space, uint64_t argument,
			 const struct pad_label *p, struct pad_label_value *out)
{
	struct word_reader words = {.space = space, .argument = argument};
	const struct pad_label_reader reader = {load_argument, &words};

	*out = (struct pad_label_value){0};
	pad_label_read(p, &reader, ARGUMENT_AT, out);
}

void label_variable_read(const struct address_space *space, uint64_t thread_pointer,
			 const struct pad_label *p, struct pad_label_value *out)
{
	struct word_reader words = {.space = space};
	const struct pad_label_reader reader = {load_word, &words};

	*out = (struct pad_label_value){0};
	if (p->kind != PAD_LABEL_NONE)
		pad_label_read(p, &reader, thread_pointer, out);
}

static ssize_t read_nothing(void *ctx, taddr_t addr, void *buf, size_t size)
{
	(void)ctx;
	(void)addr;
	(void)buf;
	(void)size;
	return -1;
}

char *label_variable_text(struct type_table *types, const struct label_option *l,
			  const struct label_place *place, const struct pad_label_value *v)
{
	if (v->state == PAD_LABEL_ABSENT || place->pad.kind == PAD_LABEL_NONE)
		return NULL;
	if (v->state == PAD_LABEL_NULL)
		return xstrdup("(null)");
	if (v->state != PAD_LABEL_PRESENT)
		return xstrdup("?");
	if (place->pad.kind != PAD_LABEL_NUMBER)
		return text_clean((const char *)v->word, MIN(v->size, PAD_LABEL_BYTES));
	const struct data_value number = {.types = types, .read = read_nothing, .is_word = true,
					  .word = v->word[0], .type = place->type};
	enum value_form form = l->form;

	if (place->type == TYPE_NONE && form == VALUE_AUTO)
		form = VALUE_INTEGER;
	return data_value_text(&number, form);
}
