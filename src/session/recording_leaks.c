/* Sums the blocks of a leak check by leaf and kind. */
#include "session/recording_leaks.h"

#include <stdlib.h>

#include "leak/leakcheck.h"
#include "profile/cells.h"
#include "recording/recording.h"

static struct cells sum_blocks(const struct leakcheck *c)
{
	struct cells sum = {0};

	for (size_t i = 0; i < c->blocks.count; i++) {
		const struct leakcheck_block *b = &c->blocks.data[i];
		const struct cell one = {b->leaf, c->state[i], 0, 1, b->size, 0};

		cells_add(&sum, &one);
	}
	return sum;
}

struct recording *recording_leaks_new(const struct leakcheck *c)
{
	static const char *const kinds[] = {
		[LEAKCHECK_DEFINITE] = "definite", [LEAKCHECK_INDIRECT] = "indirect",
		[LEAKCHECK_POSSIBLE] = "possible", [LEAKCHECK_REACHABLE] = "reachable",
	};
	struct recording *r = recording_new();
	struct cells sum = sum_blocks(c);
	struct cell *cell;
	size_t n = cells_sorted(&sum, &cell);

	for (size_t i = 0; i < n; i++) {
		const uint64_t row[LEAK_COLUMNS] = {
			cell[i].leaf, recording_string(r, kinds[cell[i].born]), cell[i].blocks,
			cell[i].bytes};

		recording_add(r, RECORDING_LEAKS, row);
	}
	free(cell);
	cells_deinit(&sum);
	return r;
}

void recording_leaks_add(const struct recording *from, struct recording *r)
{
	recording_set_meta(r, "leak_check", "1");
	recording_copy(from, RECORDING_LEAKS, 1u << LEAK_KIND, r);
}
