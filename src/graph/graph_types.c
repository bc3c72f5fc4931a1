/* See graph_typing.c for what fills the tables. */
#include "graph/graph_types.h"

#include <stdlib.h>

void graph_types_free(struct graph_types *t)
{
	if (!t)
		return;
	vec_deinit(&t->words);
	vec_release(&t->fields, f, free(f->name));
	vec_release(&t->containers, c, free(c->name));
	vec_release(&t->padding, p, { free(p->name); free(p->order); });
	free(t);
}

const struct graph_field *graph_types_find(const struct graph_types *t, uint32_t of,
					   uint32_t word)
{
	uint32_t each = of < t->words.count ? t->words.data[of] : 0;

	word = each ? word % each : word;
	size_t i = vec_search(&t->fields, f, f->of < of || (f->of == of && f->word < word));
	const struct graph_field *f = i < t->fields.count ? &t->fields.data[i] : NULL;

	return f && f->of == of && f->word == word ? f : NULL;
}

const char *graph_types_field(const struct graph_types *t, uint32_t of, uint32_t word)
{
	const struct graph_field *f = graph_types_find(t, of, word);

	return f ? f->name : NULL;
}
