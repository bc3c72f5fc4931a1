/* See leak_details.h. */
#include "report/leak_details.h"

#include <stdlib.h>
#include <string.h>

#include "base/amount.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "recording/recording_site.h"
#include "report/recording_paths.h"

#define HOLDERS 3u /* as in the text of a leak check */

/* As in tables. The caller frees it. */
static char *site_of(const struct recording *r, uint64_t leaf)
{
	bool is_known = leaf > 0 && leaf <= recording_rows(r, RECORDING_LEAVES);

	return recording_site_label(r, is_known ? recording_site(r, leaf - 1) : -1);
}

static int compare(const void *a, const void *b)
{
	const struct leak_detail *x = a, *y = b;
	int sites = strcmp(x->site, y->site);

	if (sites)
		return sites;
	if (!x->chain || !y->chain)
		return !y->chain - !x->chain;
	int chains = x->bytes < y->bytes ? 1 : -(x->bytes > y->bytes);

	return chains ? chains : strcmp(x->chain, y->chain);
}

/* Ages of a site become one; equal chains are neighbours unless their bytes differ. */
static bool merge(struct leak_detail *to, struct leak_detail *from)
{
	if (strcmp(to->site, from->site) != 0 ||
	    (to->chain && from->chain ? strcmp(to->chain, from->chain) != 0 :
					to->chain != from->chain))
		return false;
	to->least = MIN(to->least, from->least);
	to->most = MAX(to->most, from->most);
	to->bytes += from->bytes;
	to->blocks += from->blocks;
	free(from->site);
	return true;
}

void leak_details_find(struct leak_details *d, const struct recording *r, const char *kind,
		       double older_ms)
{
	const struct recording_table *ages = &r->table[RECORDING_LEAK_AGES];
	const struct recording_table *held = &r->table[RECORDING_LEAK_HOLDERS];

	*d = (struct leak_details){0};
	for (size_t i = 0; i < ages->rows; i++) {
		if (strcmp(r->text.data[ages->column[LEAK_AGE_KIND][i]], kind) != 0 ||
		    (double)ages->column[LEAK_AGE_LEAST][i] < older_ms)
			continue;
		*vec_add(&d->list) = (struct leak_detail){
			.site = site_of(r, ages->column[LEAK_AGE_LEAF][i]),
			.least = ages->column[LEAK_AGE_LEAST][i],
			.most = ages->column[LEAK_AGE_MOST][i]};
	}
	for (size_t i = 0; i < held->rows; i++) {
		if (strcmp(r->text.data[held->column[LEAK_HOLDER_KIND][i]], kind) != 0)
			continue;
		*vec_add(&d->list) = (struct leak_detail){
			.site = site_of(r, held->column[LEAK_HOLDER_LEAF][i]),
			.chain = r->text.data[held->column[LEAK_HOLDER_CHAIN][i]],
			.bytes = held->column[LEAK_HOLDER_BYTES][i],
			.blocks = held->column[LEAK_HOLDER_BLOCKS][i]};
	}
	vec_sort(&d->list, compare);
	vec_merge(&d->list, merge);
}

void leak_details_deinit(struct leak_details *d)
{
	for (size_t i = 0; i < d->list.count; i++)
		free(d->list.data[i].site);
	vec_deinit(&d->list);
}

bool leak_details_have_holders(const struct leak_details *d)
{
	for (size_t i = 0; i < d->list.count; i++)
		if (d->list.data[i].chain)
			return true;
	return false;
}

void leak_details_ages(const struct leak_details *d, const char *site, char **ages_out)
{
	*ages_out = NULL;
	for (size_t i = 0; i < d->list.count; i++) {
		const struct leak_detail *at = &d->list.data[i];

		if (at->chain || strcmp(at->site, site) != 0)
			continue;
		*ages_out = at->least == at->most ?
			xasprintf(", %.3f s old", (double)at->most / 1000) :
			xasprintf(", %.3f to %.3f s old", (double)at->least / 1000,
				  (double)at->most / 1000);
		return;
	}
}

void leak_details_put_holders(FILE *out, const struct leak_details *d, const char *site)
{
	char bytes[AMOUNT_SIZE], blocks[AMOUNT_SIZE];
	unsigned shown = 0;

	for (size_t i = 0; i < d->list.count && shown < HOLDERS; i++) {
		const struct leak_detail *at = &d->list.data[i];

		if (!at->chain || strcmp(at->site, site) != 0)
			continue;
		_cleanup_free_ char *chain = text_clean(at->chain, strlen(at->chain));

		fprintf(out, "%37sheld by %s: %s byte%s in %s block%s\n", "", chain,
			amount_commas(at->bytes, bytes), plural(at->bytes),
			amount_commas(at->blocks, blocks), plural(at->blocks));
		shown++;
	}
}
