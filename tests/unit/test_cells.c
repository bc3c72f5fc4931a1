/* Tests of profile/cells: packed cells are those of a table that is not packed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/types.h"
#include "profile/cells.h"
#include "rounds.h"

#define LEAVES 300u
#define STEPS 60000u

struct world {
	struct cells plain, packed;
	uint64_t state;
};

static uint32_t any(struct world *w, uint32_t n)
{
	w->state = w->state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(w->state >> 33) % n;
}

static struct cell any_cell(struct world *w, uint32_t now)
{
	uint32_t born = any(w, 20) ? any(w, now + 1) : CELL_BEFORE;
	bool has_died = born == CELL_BEFORE || (born < now && any(w, 2));
	struct cell c = {.leaf = 1 + any(w, LEAVES), .born = (uint16_t)born,
			 .died = (uint16_t)(has_died ? now : CELL_NEVER)};

	c.blocks = any(w, 3);
	c.bytes = c.blocks * any(w, 100000);
	c.variance = any(w, 2) ? c.bytes * c.bytes : 0;
	if (any(w, 3) == 0) {
		c.blocks = -c.blocks;
		c.bytes = -c.bytes;
		c.variance = -c.variance;
	}
	return c;
}

static void add(struct world *w, const struct cell *c)
{
	cells_add(&w->plain, c);
	cells_add(&w->packed, c);
}

static void check_same(struct world *w)
{
	struct cell *cell[2];
	size_t n = cells_sorted(&w->plain, &cell[0]);

	assert_int_equal(cells_sorted(&w->packed, &cell[1]), n);
	assert_memory_equal(cell[0], cell[1], n * sizeof(*cell[0]));
	for (size_t i = 1; i < n; i++)
		assert_true(cell_order(&cell[0][i - 1]) < cell_order(&cell[0][i]));
	free(cell[0]);
	free(cell[1]);
	assert_true(cells_bound(&w->packed) >= n);
	assert_int_equal(cells_used(&w->plain), n);
}

static void clone(struct world *w)
{
	struct cells old = w->packed;

	cells_clone(&w->packed, &old);
	cells_deinit(&old);
}

static void packed_are_the_same(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= rounds(5); seed++) {
		struct world w = {.packed.packs = true, .state = seed};
		uint32_t now = 0;

		for (uint32_t i = 0; i < STEPS; i++) {
			struct cell c = any_cell(&w, now);

			add(&w, &c);
			if (any(&w, 10) == 0) { /* and nothing remains of it */
				c.blocks = -c.blocks;
				c.bytes = -c.bytes;
				c.variance = -c.variance;
				add(&w, &c);
			}
			now += any(&w, 100) == 0;
			if (now == 512) {
				cells_merge(&w.plain);
				cells_merge(&w.packed);
				now /= 2;
				check_same(&w);
			}
			if (any(&w, STEPS / 4) == 0)
				clone(&w);
		}
		check_same(&w);
		assert_true(w.packed.run.count > 0);
		assert_true(w.packed.slots < w.plain.slots);
		assert_int_equal(cells_used(&w.packed), cells_used(&w.plain));
		assert_int_equal(cells_bound(&w.packed), cells_used(&w.plain));
		check_same(&w);
		cells_deinit(&w.plain);
		cells_deinit(&w.packed);
		assert_true(w.packed.packs);
	}
}

/* Values of all sizes, in the order in which a run has them. */
static void runs_keep_values(void **state)
{
	struct cell_run run = {0};
	struct cell_reader rd = {0};
	struct cell found, cell[65];

	(void)state;
	for (unsigned i = 0; i <= 64; i++) {
		uint64_t n = i < 64 ? UINT64_C(1) << i : UINT64_MAX;

		cell[i] = (struct cell){.leaf = 1 + i / 2 * 40000000, .born = (uint16_t)(i * 15),
					.died = i % 3 ? CELL_NEVER : CELL_BEFORE - 1,
					.blocks = n, .bytes = -n, .variance = n - 1};
		cell_run_add(&run, &cell[i]);
	}
	cell_run_end(&run);
	cell_reader_add(&rd, &run);
	for (unsigned i = 0; i <= 64; i++) {
		assert_true(cell_reader_next(&rd, &found));
		assert_memory_equal(&found, &cell[i], sizeof(found));
	}
	assert_false(cell_reader_next(&rd, &found));
	cell_reader_deinit(&rd);
	cell_run_deinit(&run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packed_are_the_same),
		cmocka_unit_test(runs_keep_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
