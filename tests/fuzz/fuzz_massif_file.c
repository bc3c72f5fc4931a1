/*
 * Feeds the reader of massif files with spoilt ones: every input is read, its
 * tree is checked link by link, and all reports are made of it. Whatever the
 * bytes are, there is no crash, no hang, and an error says which line.
 *
 * Usage: fuzz_massif_file ROUNDS FILE...    (deterministic: round i is always the same)
 * With clang -fsanitize=fuzzer -DFUZZ_LIBFUZZER it is a libFuzzer target instead.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/log.h"
#include "report/diff_output.h"
#include "report/diff_paths.h"
#include "report/massif_file.h"
#include "report/massif_output.h"
#include "report/massif_paths.h"

#define SECONDS_AN_INPUT 10

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Every node has exactly one parent, before it, and fits its snapshot. */
static void check_tree(const struct massif_file *f)
{
	size_t linked = 1;

	for (size_t i = 1; i < f->node_count; i++) {
		struct massif_frame frame;

		for (uint32_t c = f->node[i].first_child; c; c = f->node[c].next_sibling) {
			CHECK(c > i && c < f->node_count);
			CHECK(f->node[c].parent == i);
			linked++;
		}
		massif_file_frame(&f->node[i], &frame);
		CHECK(frame.function.size <= f->node[i].text.size);
		CHECK(frame.location.size <= f->node[i].text.size);
	}
	for (size_t i = 0; i < f->snapshot_count; i++) {
		const struct massif_snapshot *s = &f->snapshot[i];

		CHECK(s->total <= f->largest_total && s->root < f->node_count);
		CHECK((s->root == 0) == (s->kind == MASSIF_EMPTY));
		if (s->root) {
			CHECK(f->node[s->root].parent == 0 && f->node[s->root].next_sibling == 0);
			CHECK(f->node[s->root].bytes <= s->total);
			linked++;
		}
	}
	CHECK(linked == f->node_count);
	CHECK(f->peak == SIZE_MAX || f->peak < f->snapshot_count);
}

static void print_file(struct massif_file *f, const struct msprint_options *options)
{
	static FILE *sink;
	char *why = NULL;

	if (!sink)
		sink = fopen("/dev/null", "w");
	msprint(sink, f, options, &why);
	free(why);
	massif_json_write(sink, f);
}

/* Compares the file with itself, and the first snapshot with the last one. */
static void compare(struct massif_file *f)
{
	const struct input input[2] = {{.kind = INPUT_MASSIF, .massif = f},
				       {.kind = INPUT_MASSIF, .massif = f}};
	struct diff_pair pair = {.input = input};
	struct diff_rows rows;

	for (size_t i = f->snapshot_count; i-- > 0;)
		if (f->snapshot[i].root)
			pair.snapshot[PATH_OLD] = i;
	for (size_t i = 0; i < f->snapshot_count; i++)
		if (f->snapshot[i].root)
			pair.snapshot[PATH_NEW] = i;
	if (!f->snapshot_count || !f->snapshot[pair.snapshot[PATH_OLD]].root)
		return;
	FILE *sink = fopen("/dev/null", "w");

	pair.match = diff_pair_match(input, false);
	for (int side = PATH_OLD; side <= PATH_NEW; side++)
		massif_paths_view(f, pair.snapshot[side], &pair.view[side]);
	for (int order = DIFF_CALLER_FIRST; order <= DIFF_TABLE; order++) {
		struct path_tree *t = diff_pair_tree(&pair, (enum diff_order)order);

		diff_rows_init(&rows, t);
		diff_json_write(sink, input, (char *[]){NULL, NULL}, pair.match,
				&(struct diff_json_rows){{"a", "b"}, &rows, NULL});
		diff_rows_write_csv(sink, &rows, false);
		diff_rows_deinit(&rows);
		path_tree_free(t);
	}
	frame_match_free(pair.match);
	recording_view_deinit(&pair.view[PATH_OLD]);
	recording_view_deinit(&pair.view[PATH_NEW]);
	fclose(sink);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct msprint_options options[] = {
		{.threshold = 1, .width = 72, .height = 20, .arguments = ""},
		{.threshold = 0, .width = 4, .height = 4, .arguments = ""},
		{.threshold = 100, .width = 1000, .height = 5, .arguments = ""},
	};
	struct massif_file *f;
	char *why;

	/* A copy of its exact size, so that reading beyond it is found. */
	if (massif_file_parse(xmemdup(data, size), size, &f, &why)) {
		CHECK(!strncmp(why, "Line ", 5));
		free(why);
		return 0;
	}
	check_tree(f);
	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		print_file(f, &options[i]);
	compare(f);
	massif_paths_free(f);
	massif_file_free(f);
	return 0;
}

#ifndef FUZZ_LIBFUZZER

struct bytes {
	uint8_t *data;
	size_t size, capacity;
};

static uint64_t random_state;

static uint64_t random_below(uint64_t n)
{
	random_state += 0x9e3779b97f4a7c15ull;
	return n ? hash_u64(random_state) % n : 0;
}

/* Replaces @old bytes at @at by the @size bytes of @text. */
static void splice(struct bytes *b, size_t at, size_t old, const void *text, size_t size)
{
	b->data = xgrow(b->data, &b->capacity, b->size - old + size, 1);
	memmove(b->data + at + size, b->data + at + old, b->size - at - old);
	memcpy(b->data + at, text, size);
	b->size += size - old;
}

/* Text with a meaning in the format, or numbers at its limits. */
static void insert_word(struct bytes *b)
{
	static const char *const word[] = {
		"\n", "#", " ", "n", ":", "=", "n0: 0 x\n", "n1: 0 x\n", "n4294967296: 1 x\n", "-1", "0",
		"4294967295", "18446744073709551615", "18446744073709551616", "99999999999999999999999999",
		"heap_tree=peak\n", "heap_tree=empty\n", "snapshot=", "time=", "desc:", "cmd:", "0x", "(", ")",
		" in 1 place", "\r", "\t", "#-----------\n", "time_unit: ms\n",
	};
	const char *w = word[random_below(ARRAY_SIZE(word))];
	size_t at = random_below(b->size + 1);
	size_t old = random_below(2) ? 0 : random_below(MIN(b->size - at, 8u) + 1);

	splice(b, at, old, w, strlen(w));
}

static void copy_piece(struct bytes *b, const struct bytes *from)
{
	size_t start = random_below(from->size), size = random_below(MIN(from->size - start, 2000u) + 1);
	uint8_t *piece = xmemdup(from->data + start, size + !size);

	splice(b, random_below(b->size + 1), 0, piece, size);
	free(piece);
}

static void mutate(struct bytes *b, const struct bytes *other)
{
	size_t at = random_below(b->size);

	switch (random_below(6)) {
	case 0:
		if (b->size)
			b->data[at] ^= (uint8_t)(1u << random_below(8));
		break;
	case 1:
		if (b->size)
			b->data[at] = (uint8_t)random_below(256);
		break;
	case 2:
		splice(b, at, random_below(MIN(b->size - at, 300u) + 1), "", 0);
		break;
	case 3:
		if (!random_below(20))
			b->size = at;
		break;
	case 4:
		copy_piece(b, other);
		break;
	default:
		insert_word(b);
	}
}

static struct bytes read_seed(const char *path)
{
	struct bytes b = {0};
	FILE *f = fopen(path, "r");

	if (!f) {
		perror(path);
		exit(1);
	}
	b.data = xgrow(b.data, &b.capacity, 1 << 20, 1);
	b.size = fread(b.data, 1, b.capacity, f);
	fclose(f);
	return b;
}

static void run_round(uint64_t round, const struct bytes *seed, size_t seed_count)
{
	struct bytes b = {0};

	random_state = hash_u64(round);
	const struct bytes *from = &seed[random_below(seed_count)];

	splice(&b, 0, 0, from->data, from->size);
	for (uint64_t n = 1u << random_below(4); n; n--)
		mutate(&b, &seed[random_below(seed_count)]);
	alarm(SECONDS_AN_INPUT); /* a hang ends in SIGALRM */
	LLVMFuzzerTestOneInput(b.data, b.size);
	free(b.data);
}

int main(int argc, char **argv)
{
	if (argc < 3) {
		fprintf(stderr, "usage: %s ROUNDS FILE...\n", argv[0]);
		return 1;
	}
	uint64_t rounds = strtoull(argv[1], NULL, 10);
	size_t seed_count = (size_t)argc - 2;
	struct bytes *seed = xcalloc(seed_count, sizeof(*seed));

	for (size_t i = 0; i < seed_count; i++)
		seed[i] = read_seed(argv[i + 2]);
	for (uint64_t i = 0; i < rounds; i++)
		run_round(i, seed, seed_count);
	printf("%" PRIu64 " rounds passed\n", rounds);
	for (size_t i = 0; i < seed_count; i++)
		free(seed[i].data);
	free(seed);
	return 0;
}

#endif
