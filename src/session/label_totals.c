/* Sums of all processes, by text, and rows of the summary. */
#include "session/label_totals.h"

#include <stdlib.h>
#include <string.h>

#include "base/amount.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/text.h"
#include "session/label_option.h"
#include "session/options.h"
#include "session/run.h"

int label_use_compare(const struct label_use *x, const struct label_use *y)
{
	if (x->held != y->held)
		return x->held < y->held ? 1 : -1;
	return x->bytes != y->bytes ? x->bytes < y->bytes ? 1 : -1 : 0;
}

void label_use_add(struct label_use *to, const struct label_use *from)
{
	to->held += from->held;
	to->bytes += from->bytes;
	to->calls += from->calls;
}

void label_use_print(const char *name, const struct label_use *use, uint64_t all,
		      const char *text)
{
	char held[AMOUNT_SIZE], bytes[AMOUNT_SIZE], calls[AMOUNT_SIZE];

	log_info("  %-12s %10s %5.1f %%  %s; allocated %s in %s call%s", name,
		 amount_bytes((double)use->held, held), amount_percent(use->held, all), text,
		 amount_bytes((double)use->bytes, bytes), amount_commas(use->calls, calls),
		 plural(use->calls));
}

uint64_t label_text_hash(uint32_t label, const char *text)
{
	return hash_u64(label) ^ hash_bytes(text, strlen(text));
}

struct label_total *label_totals_get(struct label_totals *to, uint32_t label, const char *text)
{
	uint64_t hash = label_text_hash(label, text);
	struct label_total *t = hash_find(&to->total, hash, e,
					  e->label == label && strcmp(e->text, text) == 0);

	if (t)
		return t;
	while (to->texts.count <= label)
		*vec_add(&to->texts) = 0;
	if (*text && to->texts.data[label] >= LABEL_TEXTS_MAX && strcmp(text, "other") != 0)
		return label_totals_get(to, label, "other");
	to->texts.data[label] += *text != 0;
	t = hash_add(&to->total, hash);
	*t = (struct label_total){.label = label, .text = xstrdup(text)};
	return t;
}

void label_totals_deinit(struct label_totals *t)
{
	for (size_t i = 0; hash_next(&t->total.index, &i); i++)
		free(t->total.slot[i].text);
	hash_deinit(&t->total);
	vec_deinit(&t->texts);
}

static int compare_totals(const void *a, const void *b)
{
	const struct label_total *x = a, *y = b;
	int order = label_use_compare(&x->use, &y->use);

	return order ? order : strcmp(x->text, y->text);
}

static void print_total(const struct run *run, const struct label_totals *totals, uint32_t label,
			uint64_t live)
{
	VEC(struct label_total) list = {0};
	_cleanup_free_ char *name = xasprintf("all by %s", run->labels[label].name);
	struct label_use rest = {0};

	for (size_t i = 0; hash_next(&totals->total.index, &i); i++)
		if (totals->total.slot[i].label == label)
			*vec_add(&list) = totals->total.slot[i];
	vec_sort(&list, compare_totals);
	for (size_t i = 0; i < list.count; i++) {
		const struct label_total *t = &list.data[i];

		if (i < LABEL_TEXTS_SHOWN)
			label_use_print(i ? "" : name, &t->use, live,
					*t->text ? t->text : "(none)");
		else
			label_use_add(&rest, &t->use);
	}
	_cleanup_free_ char *others = xasprintf("%zu others", list.count - LABEL_TEXTS_SHOWN);

	if (list.count > LABEL_TEXTS_SHOWN)
		label_use_print("", &rest, live, others);
	vec_deinit(&list);
}

void label_totals_print(const struct run *run, const struct label_totals *totals, uint64_t live)
{
	for (uint32_t i = 0; run->labels && i < run->options->labels.count; i++)
		if (run->labels[i].first == i)
			print_total(run, totals, i, live);
}
