/* Reads objects' files and symbol tables after the process was resumed. */
#include "session/inspect/object_names.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/elf_file.h"
#include "base/text.h"
#include "session/inspect/malloc_module.h"
#include "symbols/demangle.h"
#include "symbols/symtab.h"
#include "tracee/state/module.h"

/* Whole pages of the file are mapped: what is before a segment on its first page is there, too. */
static const struct elf_segment *find_segment(const struct elf_file *file, uint64_t vaddr)
{
	for (size_t i = file->segment_count; i-- > 0;) {
		const struct elf_segment *g = &file->segment[i];
		uint64_t before = g->vaddr % PAGE_SIZE_MIN;

		if (before <= g->offset && vaddr >= g->vaddr - before &&
		    vaddr - (g->vaddr - before) < g->filesz + before)
			return g;
	}
	return NULL;
}

static ssize_t read_segment(const struct elf_file *file, uint64_t vaddr, void *buf, size_t size)
{
	const struct elf_segment *g = find_segment(file, vaddr);

	if (!g)
		return -1;
	uint64_t rest = g->vaddr + g->filesz - vaddr, offset = g->offset + (vaddr - g->vaddr);

	size = MIN(size, rest);
	_cleanup_free_ uint8_t *bytes = elf_file_read(file, offset, size);

	if (!bytes)
		return -1;
	memcpy(buf, bytes, size);
	return (ssize_t)size;
}

ssize_t object_bytes_read(void *modules, taddr_t addr, void *buf, size_t size)
{
	uint64_t vaddr;
	const struct module *m = held_modules_find(modules, addr, &vaddr);

	return m ? read_segment(m->file, vaddr, buf, size) : -1;
}

struct variable_finder {
	const struct held_modules *modules;
	struct data_symbols *symbols;
};

/* The variable at @addr, or else the object: where it begins. */
static taddr_t find_variable(void *ctx, taddr_t addr)
{
	const struct variable_finder *n = ctx;
	uint64_t vaddr, offset;
	const struct module *m = held_modules_find(n->modules, addr, &vaddr);

	if (!m)
		return 0;
	return data_symbols_find(n->symbols, m->file, vaddr, &offset) ? addr - offset : m->bias;
}

static const struct module *find_object(const struct held_modules *modules, taddr_t bias)
{
	for (size_t i = 0; i < modules->list.count; i++)
		if (modules->list.data[i]->file && modules->list.data[i]->bias == bias)
			return modules->list.data[i];
	return NULL;
}

static char *clean_copy(const char *text)
{
	return text_clean(text, strlen(text));
}

static void name_variable(const struct variable_finder *n, struct block_holder *h)
{
	uint64_t vaddr, offset;
	const struct module *m = held_modules_find(n->modules, h->key, &vaddr);
	const char *symbol = m ? data_symbols_find(n->symbols, m->file, vaddr, &offset) : NULL;
	_cleanup_free_ char *plain = symbol ? demangle(symbol) : NULL;

	if (symbol)
		h->name = clean_copy(plain ? plain : symbol);
	else
		m = find_object(n->modules, h->key);
	h->object = m ? clean_copy(held_modules_name(n->modules, m->file, m->path)) : NULL;
}

void holder_names_find(struct block_holders *h, const struct held_modules *modules)
{
	struct variable_finder n = {.modules = modules, .symbols = data_symbols_new()};

	block_holders_find(h, find_variable, &n);
	for (size_t i = 0; i < h->list.count; i++)
		if (h->list.data[i].kind == HOLDER_VARIABLE)
			name_variable(&n, &h->list.data[i]);
	data_symbols_free(n.symbols);
}

#define TYPE_INFO "typeinfo for "
#define TABLE "vtable for "

/* "3Foo" -> "Foo"; what means nothing stays as it is. */
static void name_type(struct block_type *t)
{
	_cleanup_free_ char *symbol = xasprintf("_ZTI%s", t->name + (*t->name == '*'));
	_cleanup_free_ char *plain = demangle(symbol);
	const char *name = plain ? text_after(plain, TYPE_INFO) : NULL;

	if (!name)
		return;
	free(t->name);
	t->name = xstrdup(name);
}

static void name_table(struct block_type *t, struct data_symbols *symbols,
		       const struct held_modules *modules)
{
	uint64_t offset = 0, vaddr = t->key;
	const struct module *m = held_modules_find(modules, t->key, &vaddr);
	const char *symbol = m ? data_symbols_find(symbols, m->file, vaddr, &offset) : NULL;
	_cleanup_free_ char *plain = symbol ? demangle(symbol) : NULL;
	const char *of_type = plain ? text_after(plain, TABLE) : NULL;
	const char *name = plain ? plain : symbol;

	if (of_type) {
		t->kind = KIND_CXX;
		t->name = xstrdup(of_type);
	} else if (name && offset == 0) {
		t->name = xstrdup(name);
	} else {
		t->name = xasprintf("%s+%#llx", name ? name : m ? text_base_name(m->path) : "?",
				    (unsigned long long)(name ? offset : vaddr));
	}
}

void type_names_find(struct block_types *t, const struct held_modules *modules)
{
	struct data_symbols *symbols = data_symbols_new();

	for (size_t i = 0; i < t->list.count; i++) {
		struct block_type *e = &t->list.data[i];

		if (e->kind == KIND_TABLE)
			name_table(e, symbols, modules);
		else if (e->kind == KIND_CXX)
			name_type(e);
		_cleanup_free_ char *name = e->name;

		e->name = name ? clean_copy(name) : NULL;
	}
	data_symbols_free(symbols);
}
