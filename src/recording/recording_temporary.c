/* See recording_temporary.h. A release by realloc ends no lifetime: it does not count. */
#include "recording/recording_temporary.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/amount.h"

#define TIME_MAX_US 0x1p62 /* lifetimes have 63 bits */

bool recording_temporary_parse(const char *text, uint64_t *us_out)
{
	static const struct {
		const char *name;
		double us;
	} units[] = {{"", 1e6}, {"s", 1e6}, {"ms", 1e3}, {"us", 1}};
	size_t digits = strspn(text, "0123456789.");
	char *end;
	double value = strtod(text, &end);

	for (size_t i = 0; digits && end == text + digits && i < ARRAY_SIZE(units); i++) {
		double us = value * units[i].us;

		if (strcmp(end, units[i].name) != 0)
			continue;
		if (us > 0 && us <= TIME_MAX_US) {
			*us_out = (uint64_t)us + ((double)(uint64_t)us < us);
			return true;
		}
	}
	return false;
}

void recording_temporary_within(struct recording *r, uint64_t us)
{
	const struct recording_table *lifetimes = &r->table[RECORDING_LIFETIMES];
	struct recording_table *leaves = &r->table[RECORDING_LEAVES];
	struct recording_table *ends = &r->table[RECORDING_END];
	uint64_t buckets = 0, all = 0; /* bucket k: up to 1 << k, without it */

	while (UINT64_C(1) << buckets < us)
		buckets++;
	r->temporary_below = UINT64_C(1) << buckets;
	for (size_t i = 0; i < leaves->rows; i++)
		leaves->column[LEAF_TEMPORARY][i] = 0;
	for (size_t i = 0; i < lifetimes->rows; i++) {
		uint64_t count = lifetimes->column[BUCKET_COUNT][i];

		if (lifetimes->column[BUCKET_NUMBER][i] > buckets)
			continue;
		leaves->column[LEAF_TEMPORARY][lifetimes->column[BUCKET_LEAF][i] - 1] += count;
		all += count;
	}
	for (size_t i = 0; i < ends->rows; i++)
		ends->column[END_TEMPORARY][i] = all;
}

char *recording_temporary_text(const struct recording *r)
{
	char us[AMOUNT_SIZE];

	return r->temporary_below
		       ? xasprintf("released within %s us", amount_commas(r->temporary_below, us))
		       : NULL;
}
