/* Thinned recordings: small enough, readable, and with the sums of the whole one. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "profile/cells.h"
#include "recording/recording.h"
#include "recording/recording_format.h"
#include "recording/recording_reduce.h"

#define INTERVALS 400u
#define LEAVES 3000u
#define THREADS 700u
#define RELEASES 900u
#define MARKERS 5000u

static uint64_t seed;

static uint64_t draw(uint64_t below)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (seed >> 33) % below;
}

/* -- a recording with everything, as it is written -- */

static void add_names(struct recording *r)
{
	char name[32];

	recording_add(r, RECORDING_OBJECTS, (uint64_t[]){recording_string(r, "/bin/a"), 0, 1, 2, 0});
	recording_add(r, RECORDING_OBJECTS, (uint64_t[]){recording_string(r, "/lib/b"), 0, 3, 4, 0});
	for (uint64_t i = 0; i < LEAVES; i++) {
		snprintf(name, sizeof(name), "function_%u", (unsigned)draw(1u << 30));
		recording_add(r, RECORDING_FRAMES,
			      (uint64_t[]){recording_string(r, name), 0, i, 2, 0, 0, draw(1u << 30)});
		recording_add(r, RECORDING_NODES, (uint64_t[]){draw(i + 1), i});
	}
}

static void add_cell(struct recording *r, uint64_t leaf, uint64_t born, uint64_t died,
		     uint64_t blocks)
{
	recording_add(r, RECORDING_CELLS,
		      (uint64_t[]){3, leaf, born, died, blocks, blocks * 10, 0});
}

/* Blocks that are born at any time, also before, and of which some die later. */
static uint64_t add_cells(struct recording *r, uint64_t leaf, uint64_t *live)
{
	uint64_t blocks = 10 + draw(50), dead = draw(10), born = draw(INTERVALS - 10);
	uint64_t died = born + 1 + draw(9);

	if (leaf % 7 == 0)
		born = CELL_BEFORE;
	add_cell(r, leaf, born, CELL_NEVER, blocks);
	if (dead)
		add_cell(r, leaf, born, died, dead);
	for (uint64_t t = born == CELL_BEFORE ? 0 : born; t < INTERVALS; t++)
		live[t] += 10 * (blocks - (t >= died ? dead : 0));
	return blocks * 10;
}

static void add_leaf(struct recording *r, uint64_t leaf, uint64_t bytes)
{
	recording_add(r, RECORDING_LEAVES,
		      (uint64_t[LEAF_COLUMNS]){leaf, bytes / 10, bytes, 1, 2, 1, bytes, 5, leaf});
	recording_add(r, RECORDING_SIZES, (uint64_t[]){leaf, 4, bytes / 10});
	recording_add(r, RECORDING_LIFETIMES, (uint64_t[]){leaf, draw(20), 1});
	recording_add(r, RECORDING_SHARES, (uint64_t[]){leaf, draw(THREADS), bytes / 10, bytes, 0});
	recording_add(r, RECORDING_PEAK, (uint64_t[]){0, leaf, bytes, bytes / 10, 0});
	recording_add(r, RECORDING_LEAKS,
		      (uint64_t[]){leaf, recording_string(r, "definite"), 1, 10});
	recording_add(r, RECORDING_LEAK_AGES,
		      (uint64_t[]){leaf, recording_string(r, "definite"), 64, 64 + leaf % 4, 1, 10});
	recording_add(r, RECORDING_LEAK_HOLDERS,
		      (uint64_t[]){leaf, recording_string(r, "possible"),
				   recording_string(r, "a register"), 1, 10});
}

static void add_rest(struct recording *r, const uint64_t *live, uint64_t peak)
{
	char text[64];

	for (uint64_t t = 0; t < INTERVALS; t++)
		recording_add(r, RECORDING_TIMELINE,
			      (uint64_t[TIME_COLUMNS]){3, t, live[t], live[t] / 10, live[t] + draw(9),
						       t, t * 10, t / 2, draw(9), draw(9)});
	recording_add(r, RECORDING_PEAK_AT, (uint64_t[]){77, peak, peak / 10, 0});
	recording_add(r, RECORDING_END, (uint64_t[END_COLUMNS]){live[INTERVALS - 1]});
	for (uint64_t i = 0; i < THREADS; i++) {
		recording_add(r, RECORDING_THREADS, (uint64_t[]){i, 1000 + i});
		snprintf(text, sizeof(text), "thread.%u", 1000 + (unsigned)i);
		recording_set_meta(r, text, "worker");
	}
	for (uint64_t i = 0; i < RELEASES; i++)
		recording_add(r, RECORDING_RELEASES, (uint64_t[]){i, 1, draw(1000)});
	for (uint64_t i = 0; i < MARKERS; i++) {
		snprintf(text, sizeof(text), "%u", (unsigned)draw(1u << 30));
		recording_add(r, RECORDING_MARKERS,
			      (uint64_t[]){i / 2, recording_string(r, "fork"),
					   recording_string(r, text)});
	}
}

static struct recording *make(void)
{
	struct recording *r = recording_new();
	uint64_t live[INTERVALS] = {0}, peak = 0;
	char *text = malloc(100001);

	seed = 1;
	memset(text, 'x', 100000);
	text[100000] = 0;
	recording_set_meta(r, "command", text);
	free(text);
	add_names(r);
	recording_add(r, RECORDING_CELLS, (uint64_t[CELL_COLUMNS]){3});
	for (uint64_t leaf = 1; leaf <= LEAVES; leaf++) {
		uint64_t bytes = add_cells(r, leaf, live) + (leaf == 1234) * 1000000;

		add_leaf(r, leaf, bytes);
		peak += bytes;
	}
	add_rest(r, live, peak);
	return r;
}

static struct recording *read_back(const struct recording *r, size_t *size_out)
{
	char *data = NULL, *why = NULL;
	FILE *file = open_memstream(&data, size_out);
	struct recording *back = NULL;

	assert_int_equal(recording_write(file, r), 0);
	fclose(file);
	if (recording_read(data, *size_out, &back, &why) != 0)
		fail_msg("%s", why);
	free(data);
	return back;
}

/* -- the tests -- */

static uint64_t sum(const struct recording *r, enum recording_table_id id, unsigned column)
{
	uint64_t all = 0;

	for (size_t i = 0; i < recording_rows(r, id); i++)
		all += recording_get(r, id, i, column);
	return all;
}

/* The bytes that are live at the end of each interval, from the cells that a reader has. */
static void live_of(const struct recording *r, uint64_t live_out[INTERVALS])
{
	size_t count = recording_rows(r, RECORDING_TIMELINE);

	assert_true(count <= INTERVALS);
	memset(live_out, 0, INTERVALS * sizeof(*live_out));
	for (size_t i = 0; i < recording_rows(r, RECORDING_CELLS); i++) {
		uint64_t born = recording_get(r, RECORDING_CELLS, i, CELL_BORN);
		uint64_t died = recording_get(r, RECORDING_CELLS, i, CELL_DIED);
		uint64_t bytes = recording_get(r, RECORDING_CELLS, i, CELL_BYTES);

		/* what each interval adds to the one before it, which may be less than 0 */
		if (born == CELL_BEFORE)
			born = 0;
		if (died <= born)
			continue;
		if (born < count)
			live_out[born] += bytes;
		if (died < count)
			live_out[died] -= bytes;
	}
	for (size_t t = 1; t < count; t++)
		live_out[t] += live_out[t - 1];
}

/* Each remaining moment has the totals that it had in @whole, of which @live is what live_of() says. */
static void check_moments(const struct recording *whole, const uint64_t *live, const struct recording *thin)
{
	unsigned merges = thin->shift - whole->shift;
	uint64_t thin_live[INTERVALS];

	live_of(thin, thin_live);
	for (size_t t = 0; t < recording_rows(thin, RECORDING_TIMELINE); t++) {
		size_t last = MIN(((t + 1) << merges) - 1, (size_t)INTERVALS - 1);

		for (unsigned c = TIME_LIVE_BYTES; c <= TIME_RELEASES; c++)
			if (c != TIME_PEAK_BYTES)
				assert_int_equal(recording_get(thin, RECORDING_TIMELINE, t, c),
						 recording_get(whole, RECORDING_TIMELINE, last, c));
		assert_int_equal(thin_live[t], live[last]);
	}
}

static void check_sums(const struct recording *whole, const struct recording *thin)
{
	static const struct {
		enum recording_table_id id;
		unsigned column;
	} sums[] = {
		{RECORDING_LEAVES, LEAF_BYTES},	  {RECORDING_LEAVES, LEAF_ALLOCATIONS},
		{RECORDING_LEAVES, LEAF_REALLOCS}, {RECORDING_SIZES, BUCKET_COUNT},
		{RECORDING_LIFETIMES, BUCKET_COUNT}, {RECORDING_SHARES, SHARE_BYTES},
		{RECORDING_PEAK, PEAK_BYTES},	  {RECORDING_LEAKS, LEAK_BYTES},
		{RECORDING_LEAK_AGES, LEAK_AGE_BYTES},
		{RECORDING_LEAK_HOLDERS, LEAK_HOLDER_BYTES},
		{RECORDING_RELEASES, RELEASE_BYTES}, {RECORDING_END, END_LIVE_BYTES},
	};

	for (size_t i = 0; i < ARRAY_SIZE(sums); i++)
		assert_int_equal(sum(thin, sums[i].id, sums[i].column),
				 sum(whole, sums[i].id, sums[i].column));
	uint64_t most = 0;

	for (size_t i = 0; i < recording_rows(thin, RECORDING_LEAK_AGES); i++)
		most = MAX(most, recording_get(thin, RECORDING_LEAK_AGES, i, LEAK_AGE_MOST));
	assert_int_equal(most, 67);
}

static bool has_text(const struct recording *r, const char *text)
{
	for (size_t i = 1; i < r->text.count; i++)
		if (strcmp(r->text.data[i], text) == 0)
			return true;
	return false;
}

/* The first object is the program, even if no frame is in it. */
static void check_program(const struct recording *r)
{
	uint64_t path = recording_get(r, RECORDING_OBJECTS, 0, OBJECT_PATH);

	assert_string_equal(r->text.data[path], "/bin/a");
}

static void any_limit(void **state)
{
	struct recording *r = make();
	size_t whole_size, size;
	struct recording *whole = read_back(r, &whole_size);
	uint64_t live[INTERVALS];

	(void)state;
	live_of(whole, live);
	assert_null(recording_limit(r, whole_size));
	for (uint64_t limit = RECORDING_LEAST_LIMIT; limit < whole_size; limit += limit / 7) {
		struct recording *thin = recording_limit(r, limit), *back;

		assert_non_null(thin);
		back = read_back(thin, &size);
		assert_true(size <= limit);
		check_moments(whole, live, back);
		check_sums(whole, back);
		check_program(back);
		assert_non_null(strstr(recording_meta(back, "lost"), "thinned to"));
		recording_free(back);
		recording_free(thin);
	}
	recording_free(whole);
	recording_free(r);
}

/* Only as many rows as asked for: the largest ones, with their names. */
static void largest_stay(void **state)
{
	struct recording *r = make(), *thin, *back;
	struct recording_detail detail = recording_detail_all(r);
	size_t size;

	(void)state;
	detail.leaves = 1;
	detail.threads = 2;
	detail.releases = 3;
	detail.markers = 4;
	thin = recording_reduce(r, &detail);
	back = read_back(thin, &size);
	assert_int_equal(recording_rows(back, RECORDING_LEAVES), 2);
	assert_int_equal(recording_get(back, RECORDING_LEAVES, 0, LEAF_BYTES),
			 recording_get(r, RECORDING_LEAVES, 1233, LEAF_BYTES));
	assert_int_equal(recording_rows(back, RECORDING_THREADS), 3);
	assert_int_equal(recording_rows(back, RECORDING_RELEASES), 4);
	assert_int_equal(recording_rows(back, RECORDING_MARKERS), 4);
	assert_int_equal(recording_get(back, RECORDING_MARKERS, 3, MARKER_TIME), (MARKERS - 1) / 2);
	assert_true(has_text(back, "[other call paths]"));
	assert_true(has_text(back, r->text.data[recording_get(r, RECORDING_FRAMES, 1233,
							      FRAME_FUNCTION)]));
	assert_string_equal(recording_meta(back, "thread.0"), "[other threads]");
	recording_free(back);
	recording_free(thin);
	recording_free(r);
}

/* Coarser times come first: all call paths and their totals are still there. */
static void times_first(void **state)
{
	struct recording *r = make(), *thin;
	size_t size;
	struct recording *whole = read_back(r, &size);

	(void)state;
	thin = recording_limit(r, size - 1);
	assert_int_equal(recording_rows(thin, RECORDING_LEAVES), LEAVES);
	assert_int_equal(recording_rows(thin, RECORDING_TIMELINE), INTERVALS / 2);
	assert_non_null(strstr(recording_meta(thin, "lost"),
			       "intervals of 0.016 s instead of 0.008 s"));
	assert_null(strstr(recording_meta(thin, "lost"), "call paths"));
	recording_free(thin);
	recording_free(whole);
	recording_free(r);
}

static void empty(void **state)
{
	struct recording *r = recording_new();

	(void)state;
	assert_null(recording_limit(r, RECORDING_LEAST_LIMIT));
	recording_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_limit),
		cmocka_unit_test(largest_stay),
		cmocka_unit_test(times_first),
		cmocka_unit_test(empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
