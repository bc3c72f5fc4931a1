/* See holder_names.h. */
#include "session/holder_names.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "symbols/data_symbols.h"
#include "symbols/demangle.h"
#include "tracee/state/module.h"

struct names {
	const struct held_modules *modules;
	struct data_symbols *symbols;
};

/* The variable at @addr, or else the object: where it begins. */
static taddr_t find_variable(void *ctx, taddr_t addr)
{
	const struct names *n = ctx;
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

static char *clean(const char *text)
{
	return text_clean(text, strlen(text));
}

static void name_variable(const struct names *n, struct block_holder *h)
{
	uint64_t vaddr, offset;
	const struct module *m = held_modules_find(n->modules, h->key, &vaddr);
	const char *symbol = m ? data_symbols_find(n->symbols, m->file, vaddr, &offset) : NULL;
	_cleanup_free_ char *plain = symbol ? demangle(symbol) : NULL;

	if (symbol)
		h->name = clean(plain ? plain : symbol);
	else
		m = find_object(n->modules, h->key);
	h->object = m ? clean(text_base_name(m->path)) : NULL;
}

void holder_names_find(struct block_holders *h, const struct held_modules *modules)
{
	struct names n = {.modules = modules, .symbols = data_symbols_new()};

	block_holders_find(h, find_variable, &n);
	for (size_t i = 0; i < h->list.count; i++)
		if (h->list.data[i].kind == HOLDER_VARIABLE)
			name_variable(&n, &h->list.data[i]);
	data_symbols_free(n.symbols);
}
