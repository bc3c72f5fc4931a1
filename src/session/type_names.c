/* See type_names.h. */
#include "session/type_names.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "symbols/data_symbols.h"
#include "symbols/demangle.h"
#include "tracee/state/module.h"

#define TYPE_INFO "typeinfo for "
#define TABLE "vtable for "

static const char *without(const char *text, const char *prefix)
{
	size_t n = strlen(prefix);

	return strncmp(text, prefix, n) == 0 ? text + n : NULL;
}

/* "3Foo" -> "Foo"; what means nothing stays as it is. */
static void name_type(struct block_type *t)
{
	_cleanup_free_ char *symbol = xasprintf("_ZTI%s", t->name + (*t->name == '*'));
	_cleanup_free_ char *plain = demangle(symbol);
	const char *name = plain ? without(plain, TYPE_INFO) : NULL;

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
	const char *of_type = plain ? without(plain, TABLE) : NULL;
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

/* Takes over @name. */
static char *clean(char *name)
{
	char *text = text_clean(name, strlen(name));

	free(name);
	return text;
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
		if (e->name)
			e->name = clean(e->name);
	}
	data_symbols_free(symbols);
}
