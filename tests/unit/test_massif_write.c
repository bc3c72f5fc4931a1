/*
 * The massif writer against golden files. The profile, its call tree and the
 * filter are tables here, so that a test fixes the writer alone: which leaves
 * exist with how many bytes at which snapshot is said, not computed.
 *
 * UPDATE_GOLDEN=1 in the environment rewrites the golden files.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "output/massif.h"
#include "output/report.h"

#define MAX_FRAMES 64

/* The tables. */
struct table_node {
	uint32_t parent, frame;
};

struct calltree {
	VEC(struct calltree_frame) frame;
	VEC(struct table_node) node;
};

struct table_snapshot {
	struct snapshot head;
	uint32_t leaf_count;
	uint64_t *bytes;
};

struct profile {
	struct profile_options options;
	struct calltree tree;
	VEC(struct leaf) leaf;
	VEC(struct table_snapshot) snapshot;
};

static struct profile profile;
static struct symbol symbols[MAX_FRAMES];
static unsigned symbol_calls, filter_calls;
static uint32_t ignored_frame; /* a leaf with this innermost frame is ignored */
static size_t strip;           /* frames that the filter takes from the top */

/* Functions called by the writer, which read the tables. */
struct calltree *profile_calltree(struct profile *p) { return &p->tree; }
const struct profile_options *profile_options(const struct profile *p) { return &p->options; }
uint32_t profile_leaf_count(const struct profile *p) { return (uint32_t)p->leaf.count - 1; }
const struct leaf *profile_leaf(const struct profile *p, uint32_t leaf) { return &p->leaf.data[leaf]; }
uint32_t profile_snapshot_count(const struct profile *p) { return (uint32_t)p->snapshot.count; }

const struct snapshot *profile_snapshot(const struct profile *p, uint32_t i)
{
	return &p->snapshot.data[i].head;
}

uint32_t profile_snapshot_leaves(const struct profile *p, uint32_t i, uint64_t **bytes_out)
{
	const struct table_snapshot *s = &p->snapshot.data[i];

	*bytes_out = xmemdup(s->bytes, (s->leaf_count + 1) * sizeof(uint64_t));
	return s->leaf_count;
}

const struct calltree_frame *calltree_frame(const struct calltree *t, uint32_t frame)
{
	return &t->frame.data[frame];
}

double profile_error(const struct profile *p, uint64_t variance) { return 0; }
uint64_t profile_leaf_variance(const struct profile *p, uint32_t leaf, uint64_t bytes) { return 0; }
uint64_t profile_count(const struct profile *p, uint64_t units) { return units; }

uint32_t calltree_parent(const struct calltree *t, uint32_t node) { return t->node.data[node].parent; }
uint32_t calltree_node_frame(const struct calltree *t, uint32_t node) { return t->node.data[node].frame; }

bool filter_stack(const struct filter *f, filter_symbol_fn *symbol, void *ctx, size_t count,
		  struct filter_range *shown_out)
{
	filter_calls++;
	shown_out->first = MIN(strip, count);
	shown_out->count = count - shown_out->first;
	return !ignored_frame || symbol(ctx, 0, SYMBOL_ALL) != &symbols[ignored_frame];
}

static const struct symbol *find_symbol(void *ctx, uint32_t frame, enum symbol_part part)
{
	static struct symbol_frame plain = {.name = "f", .file = "f.c", .line = 1};
	static const struct symbol other = {.frame = &plain, .count = 1};

	symbol_calls++;
	return frame < MAX_FRAMES && symbols[frame].count ? &symbols[frame] : &other;
}

/* Filling the tables. */
static uint32_t add_frame(taddr_t pc, uint32_t module, const char *object, const struct symbol_frame *frames,
			  uint32_t count)
{
	uint32_t i = (uint32_t)profile.tree.frame.count;

	*vec_add(&profile.tree.frame) = (struct calltree_frame){.key = pc, .module = module};
	if (i < MAX_FRAMES)
		symbols[i] = (struct symbol){
			.object = object,
			.frame = count ? xmemdup(frames, count * sizeof(*frames)) : NULL,
			.count = count,
		};
	return i;
}

#define FRAME(pc, module, object, ...)                                                          \
	add_frame(pc, module, object, (struct symbol_frame[]){__VA_ARGS__},                      \
		  sizeof((struct symbol_frame[]){__VA_ARGS__}) / sizeof(struct symbol_frame))

/* A leaf from its frames, outermost first, ended by 0. */
static uint32_t add_leaf(const uint32_t *frame)
{
	uint32_t node = 0;

	for (; *frame; frame++) {
		uint32_t child = (uint32_t)profile.tree.node.count;

		*vec_add(&profile.tree.node) = (struct table_node){.parent = node, .frame = *frame};
		node = child;
	}
	*vec_add(&profile.leaf) = (struct leaf){.node = node};
	return (uint32_t)profile.leaf.count - 1;
}

#define LEAF(...) add_leaf((uint32_t[]){__VA_ARGS__, 0})

static void add_snapshot(enum snapshot_kind kind, uint64_t time, uint64_t extra, uint32_t leaf_count,
			 const uint64_t *bytes)
{
	struct table_snapshot *s = vec_add(&profile.snapshot);

	*s = (struct table_snapshot){.head = {.kind = kind, .time = time, .extra = extra}};
	s->leaf_count = leaf_count;
	s->bytes = xcalloc(leaf_count + 1, sizeof(uint64_t));
	for (uint32_t i = 0; i < leaf_count; i++) {
		s->bytes[i + 1] = bytes[i];
		s->head.heap += bytes[i];
	}
}

#define SNAPSHOT(kind, time, extra, ...)                                                         \
	add_snapshot(kind, time, extra, sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t),    \
		     (uint64_t[]){__VA_ARGS__})

static struct report report;

static int setup(void **state)
{
	memset(&profile, 0, sizeof(profile));
	memset(symbols, 0, sizeof(symbols));
	symbol_calls = filter_calls = ignored_frame = 0;
	strip = 0;
	*vec_add(&profile.tree.frame) = (struct calltree_frame){0};
	*vec_add(&profile.tree.node) = (struct table_node){0};
	*vec_add(&profile.leaf) = (struct leaf){0};
	profile.options.time_unit = TIME_BYTES;
	report = (struct report){
		.profile = &profile,
		.symbol = find_symbol,
		.desc = "(none)",
		.command = "./prog",
		.threshold = 1.0,
	};
	return 0;
}

static int teardown(void **state)
{
	for (size_t i = 0; i < profile.snapshot.count; i++)
		free(profile.snapshot.data[i].bytes);
	for (size_t i = 0; i < MAX_FRAMES; i++)
		free(symbols[i].frame);
	vec_deinit(&profile.snapshot);
	vec_deinit(&profile.leaf);
	vec_deinit(&profile.tree.node);
	vec_deinit(&profile.tree.frame);
	return 0;
}

static char *written(void)
{
	char *text;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	assert_int_equal(massif_write(f, &report, NULL), 0);
	fclose(f);
	return text;
}

static char *read_whole(const char *path)
{
	_cleanup_fclose_ FILE *f = fopen(path, "r");
	char *text = xcalloc(1, 1 << 20);

	if (f)
		assert_true(fread(text, 1, (1 << 20) - 1, f) < (1 << 20) - 1);
	return text;
}

static void assert_golden(const char *name)
{
	_cleanup_free_ char *path = xasprintf("tests/golden/massif_write_%s.out", name);
	_cleanup_free_ char *text = written();

	if (getenv("UPDATE_GOLDEN")) {
		FILE *f = fopen(path, "w");

		assert_non_null(f);
		fputs(text, f);
		fclose(f);
	}
	_cleanup_free_ char *expected = read_whole(path);

	assert_string_equal(text, expected);
}

static void assert_contains(const char *part)
{
	_cleanup_free_ char *text = written();

	if (!strstr(text, part))
		fail_msg("'%s' is not in:\n%s", part, text);
}

static void assert_lacks(const char *part)
{
	_cleanup_free_ char *text = written();

	if (strstr(text, part))
		fail_msg("'%s' is in:\n%s", part, text);
}

/* The tests. */
static void test_header(void **state)
{
	assert_contains("desc: (none)\ncmd: ./prog\ntime_unit: B\n");
	report.desc = "--time-unit=ms --depth=5";
	report.command = "./prog \"a  b\" $x \\n";
	profile.options.time_unit = TIME_MS;
	assert_contains("desc: --time-unit=ms --depth=5\ncmd: ./prog \"a  b\" $x \\n\ntime_unit: ms\n");
	profile.options.time_unit = TIME_INSTRUCTIONS;
	report.command = "sh -c a\nb\n";
	assert_contains("\ncmd: sh -c a b \ntime_unit: i\n");
}

static void test_locations(void **state)
{
	LEAF(FRAME(0xabcdef0123, 1, "/bin/x", {.name = "f(int)", .file = "a.c", .dir = "/s/d", .line = 7}));
	LEAF(FRAME(0x1000, 1, "/bin/x", {.name = "g"}));
	LEAF(FRAME(0x2000, 1, "/bin/x", {.file = "a.c", .line = 9}));
	LEAF(FRAME(0x3000, 1, "/bin/x", {0}));
	LEAF(FRAME(0x4000, 0, NULL, {.name = "jit"}));
	LEAF(FRAME(0x0, 0, NULL, {0}));
	LEAF(FRAME(0x5000, 1, "/bin/x y", {.name = "no_line", .file = "a.c"}));
	LEAF(FRAME(0x6000, 1, "/bin/a\nb", {.name = "two\nlines"}));
	LEAF(FRAME(0x7000, 1, "/bin/x", {.name = "lam()::{lambda(int)#1}::operator()(int) const"}));
	SNAPSHOT(SNAPSHOT_DETAILED, 5000000000, 72, 90, 80, 70, 60, 50, 40, 30, 20, 10);
	assert_golden("locations");
}

static void set_fullpath(struct report *r, const char *after)
{
	static const char *list[1];

	list[0] = after;
	r->fullpath_after = list;
	r->fullpath_after_count = 1;
}

static void test_fullpath(void **state)
{
	LEAF(FRAME(0x1000, 1, "/bin/x", {.name = "f", .file = "a.c", .dir = "/tmp/src/sub", .line = 7}));
	SNAPSHOT(SNAPSHOT_DETAILED, 1, 8, 100);
	assert_contains(": f (a.c:7)\n");
	/* As Valgrind 3.19 prints them for a file in /tmp/src/sub. */
	set_fullpath(&report, "");
	assert_contains(": f (/tmp/src/sub/a.c:7)\n");
	set_fullpath(&report, "/tmp/");
	assert_contains(": f (src/sub/a.c:7)\n");
	set_fullpath(&report, "/tmp/src/sub");
	assert_contains(": f (a.c:7)\n");
	set_fullpath(&report, "/tmp/src/sub/");
	assert_contains(": f (/tmp/src/sub/a.c:7)\n");
	set_fullpath(&report, "src");
	assert_contains(": f (/sub/a.c:7)\n");
	set_fullpath(&report, "absent");
	assert_contains(": f (/tmp/src/sub/a.c:7)\n");
	report.fullpath_after = (const char *const[]){"absent", "src", "tmp"};
	report.fullpath_after_count = 3;
	assert_contains(": f (/sub/a.c:7)\n");
}

static void test_long_name(void **state)
{
	char name[2501];

	memset(name, 'n', 2500);
	name[2500] = '\0';
	LEAF(FRAME(0x1000, 1, "/bin/x", {.name = name}));
	SNAPSHOT(SNAPSHOT_DETAILED, 1, 8, 100);
	_cleanup_free_ char *line = xasprintf("\n n0: 100 0x1000: %s (in /bin/x)\n", name);

	assert_contains(line);
}

/* main -> f -> {g, h}, and f from another place in main, with two inlined functions at f's address. */
static void test_inlined(void **state)
{
	uint32_t main_frame = FRAME(0x1000, 1, "/bin/x", {.name = "main", .file = "a.c", .line = 30});
	uint32_t f = FRAME(0x2000, 1, "/bin/x", {.name = "inner<int>", .file = "a.h", .line = 3},
			   {.name = "outer", .file = "a.h", .line = 9}, {.name = "f(int)", .file = "a.c", .line = 20});
	uint32_t g = FRAME(0x3000, 1, "/bin/x", {.name = "g", .file = "a.c", .line = 10});
	uint32_t h = FRAME(0x4000, 1, "/bin/x", {.name = "h", .file = "a.c", .line = 11});

	LEAF(main_frame, f, g);
	LEAF(main_frame, f, h);
	uint32_t other = FRAME(0x1010, 1, "/bin/x", {.name = "main", .file = "a.c", .line = 31});

	LEAF(main_frame, f);
	LEAF(other, f);
	SNAPSHOT(SNAPSHOT_PEAK, 100, 24, 300, 200, 500, 40);
	assert_golden("inlined");
}

/* Kinds, big numbers, sites that appear, become empty and remain; merging from the inside. */
static void test_snapshots(void **state)
{
	uint32_t main_frame = FRAME(0x1000, 1, "/bin/x", {.name = "main", .file = "a.c", .line = 30});
	uint32_t other = FRAME(0x1010, 1, "/bin/x", {.name = "main", .file = "a.c", .line = 31});
	uint32_t f = FRAME(0x2000, 1, "/bin/x", {.name = "f", .file = "a.c", .line = 20});

	LEAF(main_frame, f);
	LEAF(other, f);
	LEAF(main_frame);
	SNAPSHOT(SNAPSHOT_DETAILED, 0, 0, 0);
	profile.snapshot.data[0].leaf_count = 0; /* nothing allocated yet */
	SNAPSHOT(SNAPSHOT_EMPTY, 1, 8, 1000);
	SNAPSHOT(SNAPSHOT_DETAILED, 2, 8, 1000);
	SNAPSHOT(SNAPSHOT_PEAK, 6000000000, 4294967296, 4294967296, 4294967296, 18014398509481984);
	SNAPSHOT(SNAPSHOT_DETAILED, 6000000001, 8, 0, 20, 20);
	profile.snapshot.data[4].head.stacks = 12;
	SNAPSHOT(SNAPSHOT_DETAILED, 6000000002, 8, 0, 0, 0);
	assert_golden("snapshots");
	report.threshold = 0;
	assert_golden("snapshots_all");
}

static void test_threshold(void **state)
{
	uint32_t frame[8];

	for (uint32_t i = 0; i < 8; i++)
		frame[i] = FRAME(0x1000 + i, 1, "/bin/x", {.name = "f", .file = "a.c", .line = 1});
	for (uint32_t i = 0; i < 8; i++)
		LEAF(frame[i]);
	/* 10 % of 1000 + 9 is 100.9; truncated to 100. */
	report.threshold = 10;
	SNAPSHOT(SNAPSHOT_DETAILED, 1, 9, 100, 99, 101, 0, 400, 200, 100, 0);
	assert_golden("threshold");
	report.threshold = 0.999;
	assert_contains(" n0: 0 in 2 places, all below massif's threshold (1.00%)\n");
	report.threshold = 0.995;
	assert_contains("(0.99%)\n");
	report.threshold = 100;
	assert_contains("n1: 1000 (heap allocation functions) malloc/new/new[], --alloc-fns, etc.\n"
			" n0: 1000 in 8 places, all below massif's threshold (100.00%)\n");
	report.threshold = 10;
	profile.snapshot.data[0].head.stacks = 1000; /* counts like the heap */
	assert_contains("n3: 1000 (heap");
	report.threshold = 100;
	profile.leaf.count = 2;
	profile.snapshot.data[0].leaf_count = 1;
	assert_contains(" n0: 100 in 1 place, below massif's threshold (100.00%)\n");
}

/* Equal bytes: the aggregate first, then by load order of the module, then by address; 0x0 before all. */
static void test_ties(void **state)
{
	static const struct { taddr_t pc; uint32_t module; } at[] = {
		{0x7f0000003000, 2}, {0x7f0000009000, 1}, {0x10, 3}, {0x7f0000001000, 2}, {0x500, 0}, {0, 0},
		{0x7f0000008000, 1},
	};

	for (size_t i = 0; i < ARRAY_SIZE(at); i++)
		LEAF(FRAME(at[i].pc, at[i].module, "/o", {.name = "f"}));
	LEAF(FRAME(0x20, 1, "/o", {.name = "small"}));
	LEAF(FRAME(0x21, 1, "/o", {.name = "small"}));
	SNAPSHOT(SNAPSHOT_DETAILED, 1, 0, 64, 64, 64, 64, 64, 64, 64, 32, 32);
	report.threshold = 12;
	assert_golden("ties");
}

/* One address under two modules (another object mapped there later) is two sites. */
static void test_address_reused(void **state)
{
	LEAF(FRAME(0x1000, 1, "/lib/old", {.name = "f"}));
	LEAF(FRAME(0x1000, 2, "/lib/new", {.name = "g"}));
	SNAPSHOT(SNAPSHOT_DETAILED, 1, 0, 64, 64);
	assert_contains("n2: 128 (heap allocation functions) malloc/new/new[], --alloc-fns, etc.\n"
			" n0: 64 0x1000: f (in /lib/old)\n n0: 64 0x1000: g (in /lib/new)\n");
}

static void test_pages_and_no_heap(void **state)
{
	LEAF(FRAME(0x1000, 1, "/bin/x", {.name = "mmap"}));
	SNAPSHOT(SNAPSHOT_PEAK, 1, 0, 4096);
	report.memory = MEMORY_PAGES;
	assert_contains("heap_tree=peak\nn1: 4096 (page allocation syscalls) mmap/mremap/brk, --alloc-fns, etc.\n n0:");
	/* Valgrind 3.19 with --heap=no --stacks=yes --detailed-freq=1: every snapshot is "empty". */
	profile.options.no_heap = true;
	profile.snapshot.data[0].head.heap = 0;
	assert_contains("mem_heap_B=0\nmem_heap_extra_B=0\nmem_stacks_B=0\nheap_tree=empty\n");
	assert_lacks("n1:");
}

static void test_filter(void **state)
{
	uint32_t main_frame = FRAME(0x1000, 1, "/bin/x", {.name = "main"});
	uint32_t wrapper = FRAME(0x2000, 1, "/bin/x", {.name = "xmalloc"});
	uint32_t ignored = FRAME(0x3000, 1, "/bin/x", {.name = "ignored"});

	LEAF(main_frame, wrapper);
	LEAF(main_frame, ignored);
	for (int i = 0; i < 5; i++)
		SNAPSHOT(SNAPSHOT_DETAILED, 1, 0, 100, 0);
	ignored_frame = ignored;
	strip = 1;
	report.threshold = 0;
	assert_contains("n1: 100 (heap allocation functions) malloc/new/new[], --alloc-fns, etc.\n"
			" n0: 100 0x1000: main (in /bin/x)\n#");
	assert_int_equal(filter_calls, 2); /* once a leaf, not once a snapshot */
}

static void test_disk_full(void **state)
{
	_cleanup_fclose_ FILE *full = fopen("/dev/full", "w");

	SNAPSHOT(SNAPSHOT_EMPTY, 1, 0, 0); /* less than a buffer: found when it is flushed */
	assert_int_equal(massif_write(full, &report, NULL), -ENOSPC);
	for (int i = 0; i < 1000; i++)
		SNAPSHOT(SNAPSHOT_EMPTY, 1, 0, 0);
	assert_int_equal(massif_write(full, &report, NULL), -ENOSPC);
}

/* 100,000 sites below one wrapper, 50 detailed snapshots: names only for what is printed. */
static void test_large(void **state)
{
	uint32_t outer[20];
	_cleanup_free_ uint64_t *bytes = xcalloc(100000, sizeof(*bytes));

	for (uint32_t i = 0; i < 20; i++)
		outer[i] = add_frame(0x1000 + i, 1, "/bin/x", NULL, 0);
	for (uint32_t i = 0; i < 100000; i++) {
		uint32_t path[32] = {0}, n = 0;

		for (uint32_t j = 0; j < 20; j++)
			path[n++] = outer[(i >> j / 2) % 20];
		path[n++] = add_frame(0x100000 + i, 2, "/lib/x", NULL, 0);
		add_leaf(path);
		bytes[i] = i < 10 ? 1000000 : i % 100;
	}
	for (int i = 0; i < 50; i++)
		add_snapshot(SNAPSHOT_DETAILED, (uint64_t)i, 0, 100000, bytes);
	clock_t start = clock();

	free(written());
	print_message("100,000 leaves, 50 snapshots: %.2f s\n", (double)(clock() - start) / CLOCKS_PER_SEC);
	assert_true(symbol_calls < 50 * 10 * 32);
	assert_int_equal(filter_calls, 100000);
}

/* Random stacks: what is written against sums over all leaves. */

#define RANDOM_LEAVES 300u
#define RANDOM_FRAMES 6u
#define RANDOM_DEPTH 8u

static uint32_t random_path[RANDOM_LEAVES + 1][RANDOM_DEPTH + 1]; /* innermost first, ended by 0 */

struct expected {
	uint64_t bytes;
	uint32_t frame, places; /* frame 0: the aggregate */
};

static int compare_expected(const void *a, const void *b)
{
	const struct expected *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return x->frame < y->frame ? -1 : x->frame > y->frame;
}

/* What the leaves of @in, which begin with the same @depth frames, have next. */
static size_t expected_children(const bool *in, unsigned depth, const struct table_snapshot *s, uint64_t limit,
				struct expected *out)
{
	struct expected rest = {0};
	size_t n = 0;

	for (uint32_t frame = 1; frame <= RANDOM_FRAMES; frame++) {
		struct expected e = {.frame = frame};
		bool exists = false;

		for (uint32_t leaf = 1; leaf <= s->leaf_count; leaf++) {
			if (!in[leaf] || random_path[leaf][depth] != frame)
				continue;
			exists = true;
			e.bytes += s->bytes[leaf];
		}
		if (exists && e.bytes >= limit) {
			out[n++] = e;
		} else if (exists) {
			rest.bytes += e.bytes;
			rest.places++;
		}
	}
	if (rest.places)
		out[n++] = rest;
	qsort(out, n, sizeof(*out), compare_expected);
	return n;
}

static void put_expected(FILE *f, const char *head, const bool *in, unsigned depth, const struct table_snapshot *s,
			 uint64_t limit)
{
	struct expected child[RANDOM_FRAMES + 1];
	size_t n = expected_children(in, depth, s, limit, child);

	fprintf(f, "%*sn%zu: %s\n", (int)depth, "", n, head);
	for (size_t i = 0; i < n; i++) {
		bool below[RANDOM_LEAVES + 1];
		char text[64];

		if (!child[i].frame) {
			fprintf(f, "%*sn0: %lu in %u place%s below massif's threshold (%.2f%%)\n", (int)depth + 1, "",
				child[i].bytes, child[i].places, child[i].places == 1 ? "," : "s, all",
				report.threshold);
			continue;
		}
		for (uint32_t leaf = 1; leaf <= RANDOM_LEAVES; leaf++)
			below[leaf] = in[leaf] && random_path[leaf][depth] == child[i].frame;
		snprintf(text, sizeof(text), "%lu 0x%X: f (f.c:1)", child[i].bytes, 0x1000 + child[i].frame);
		put_expected(f, text, below, depth + 1, s, limit);
	}
}

static char *expected_tree(const struct table_snapshot *s)
{
	bool in[RANDOM_LEAVES + 1];
	char *text, head[128];
	size_t size;
	FILE *f = open_memstream(&text, &size);
	uint64_t limit = (uint64_t)((double)s->head.heap * report.threshold / 100);

	memset(in, true, sizeof(in));
	snprintf(head, sizeof(head), "%lu (heap allocation functions) malloc/new/new[], --alloc-fns, etc.",
		 s->head.heap);
	put_expected(f, head, in, 0, s, s->head.heap ? limit : 1);
	fclose(f);
	return text;
}

static void add_random_leaf(uint32_t leaf, uint64_t *random)
{
	uint32_t depth = 1 + (uint32_t)(*random >> 20) % RANDOM_DEPTH, outermost_first[RANDOM_DEPTH + 1] = {0};

	memset(random_path[leaf], 0, sizeof(random_path[leaf]));
	for (uint32_t i = 0; i < depth; i++) {
		*random = hash_u64(*random + 1);
		/* mostly the same: common beginnings */
		random_path[leaf][i] = 1 + (*random % 3 ? 0 : (uint32_t)(*random >> 8) % RANDOM_FRAMES);
		outermost_first[depth - 1 - i] = random_path[leaf][i];
	}
	add_leaf(outermost_first);
}

/* The tree is split further for each snapshot, which has other leaves, and other ones that matter. */
static void test_random(void **state)
{
	uint64_t random = 1;

	for (uint32_t i = 1; i <= RANDOM_FRAMES; i++)
		add_frame(0x1000 + i, 1, "/bin/x", NULL, 0);
	for (uint32_t leaf = 1; leaf <= RANDOM_LEAVES; leaf++)
		add_random_leaf(leaf, &random);
	for (uint32_t i = 0; i < 20; i++) {
		uint64_t bytes[RANDOM_LEAVES] = {0};

		for (uint32_t leaf = 0; leaf < RANDOM_LEAVES; leaf++) {
			random = hash_u64(random + 1);
			bytes[leaf] = random % 4 ? 0 : random % 1000;
		}
		add_snapshot(SNAPSHOT_DETAILED, i, 0, RANDOM_LEAVES * (20 - i) / 20, bytes);
	}
	for (int i = 0; i < 3; i++) {
		report.threshold = (double[]){5, 0.5, 0}[i];
		for (size_t k = 0; k < profile.snapshot.count; k++) {
			_cleanup_free_ char *tree = expected_tree(&profile.snapshot.data[k]);
			assert_contains(tree);
		}
	}
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_header), T(test_locations), T(test_fullpath), T(test_long_name), T(test_inlined),
		T(test_snapshots), T(test_threshold), T(test_ties), T(test_address_reused),
		T(test_pages_and_no_heap), T(test_filter), T(test_disk_full), T(test_large),
		T(test_random),
	};

	return cmocka_run_group_tests_name("massif_write", tests, NULL, NULL);
}
