/*
 * Event files replayed, the snapshots compared with the listing beside them.
 * Listings named massif_* are Massif's own (tests/golden/make_golden.py); the
 * first line of a listing gives the options:
 *
 *	# time-unit=B max-snapshots=10
 *	INDEX KIND TIME HEAP EXTRA STACKS
 *	<tab>PC(hex) BYTES            one for each site of a detailed snapshot, by pc
 */
#include <glob.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "profile/events.h"
#include "profile/profile.h"

struct replay {
	struct profile *profile;
};

static struct profile_options read_options(const char *line)
{
	struct profile_options o = {
		.time_unit = TIME_MS, .peak_inaccuracy = 1.0, .detailed_freq = 10,
		.max_snapshots = 100, .heap_admin = 8, .alignment = 16,
	};
	char *copy = xstrdup(line), *save, *word = strtok_r(copy, " \n", &save);
	while ((word = strtok_r(NULL, " \n", &save))) {
		char *value = strchr(word, '=');
		assert_non_null(value);
		*value++ = '\0';
		if (!strcmp(word, "time-unit"))
			o.time_unit = strcmp(value, "B") ? TIME_MS : TIME_BYTES;
		else if (!strcmp(word, "peak-inaccuracy"))
			o.peak_inaccuracy = atof(value);
		else if (!strcmp(word, "detailed-freq"))
			o.detailed_freq = (uint32_t)atoi(value);
		else if (!strcmp(word, "max-snapshots"))
			o.max_snapshots = (uint32_t)atoi(value);
		else if (!strcmp(word, "heap-admin"))
			o.heap_admin = (uint32_t)atoi(value);
		else if (!strcmp(word, "alignment"))
			o.alignment = (uint32_t)atoi(value);
		else if (!strcmp(word, "peak-at-exit"))
			o.peak_at_exit = !strcmp(value, "yes");
		else if (!strcmp(word, "heap"))
			o.no_heap = !strcmp(value, "no");
		else
			fail_msg("unknown option %s", word);
	}
	free(copy);
	return o;
}

static void on_header(void *ctx, const char *command, uint32_t pid, uint64_t start_ns)
{
	profile_start(((struct replay *)ctx)->profile, start_ns);
}

static void on_event(void *ctx, const struct event *ev)
{
	profile_event(((struct replay *)ctx)->profile, ev);
}

static void on_thread_exit(void *ctx, uint32_t thread)
{
	profile_thread_exit(((struct replay *)ctx)->profile, thread);
}

static void on_end(void *ctx, uint64_t time_ns)
{
	profile_finish(((struct replay *)ctx)->profile, time_ns);
}

struct site {
	taddr_t pc;
	uint64_t bytes;
};

static int by_pc(const void *a, const void *b)
{
	const struct site *x = a, *y = b;
	return (x->pc > y->pc) - (x->pc < y->pc);
}

static void list_tree(FILE *out, struct profile *p, uint32_t i)
{
	uint64_t *bytes;
	uint32_t count = profile_snapshot_leaves(p, i, &bytes);
	struct site *site = xcalloc(count, sizeof(*site));
	struct calltree *t = profile_calltree(p);
	for (uint32_t leaf = 1; leaf <= count; leaf++) {
		uint32_t frame = calltree_node_frame(t, profile_leaf(p, leaf)->node);
		site[leaf - 1] = (struct site){ calltree_frame(t, frame)->key, bytes[leaf] };
	}
	qsort(site, count, sizeof(*site), by_pc);
	for (uint32_t k = 0; k < count; k++)
		fprintf(out, "\t%" PRIx64 " %" PRIu64 "\n", site[k].pc, site[k].bytes);
	free(site);
	free(bytes);
}

static char *list_snapshots(const char *options_line, struct profile *p)
{
	static const char *const kinds[] = { "empty", "detailed", "peak" };
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	fputs(options_line, out);
	for (uint32_t i = 0; i < profile_snapshot_count(p); i++) {
		const struct snapshot *s = profile_snapshot(p, i);
		fprintf(out, "%u %s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", i, kinds[s->kind], s->time,
			s->heap, s->extra, s->stacks);
		if (s->kind != SNAPSHOT_EMPTY)
			list_tree(out, p, i);
	}
	fclose(out);
	return text;
}

static char *read_all(const char *path)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f = fopen(path, "r");
	if (!f)
		fail_msg("cannot open %s", path);
	if (getdelim(&text, &size, '\0', f) < 0)
		fail_msg("cannot read %s", path);
	fclose(f);
	return text;
}

/* Fails at the first line that differs. */
static void compare_lines(const char *path, const char *got, const char *expected)
{
	for (unsigned line = 1; *got || *expected; line++) {
		size_t n = strcspn(got, "\n"), m = strcspn(expected, "\n");
		if (n != m || memcmp(got, expected, n) != 0)
			fail_msg("%s:%u: expected \"%.*s\", got \"%.*s\"", path, line, (int)m, expected, (int)n, got);
		got += n + (got[n] == '\n');
		expected += m + (expected[m] == '\n');
	}
}

static void check_one(const char *events_path)
{
	char *path = xasprintf("%.*s.snapshots", (int)(strlen(events_path) - strlen(".events")), events_path);
	char *expected = read_all(path);
	char *line = xstrndup(expected, strcspn(expected, "\n") + 1);
	struct profile_options options = read_options(line);
	struct replay r = { .profile = profile_new(&options, 0) };
	struct events_reader_ops ops = { .header = on_header, .event = on_event, .thread_exit = on_thread_exit,
					 .end = on_end, .ctx = &r };
	unsigned number = 0;
	const char *why = "";
	FILE *f = fopen(events_path, "r");
	if (events_read(f, profile_calltree(r.profile), &ops, &number, &why) != 0)
		fail_msg("%s:%u: %s", events_path, number, why);
	fclose(f);
	profile_check(r.profile);
	char *listing = list_snapshots(line, r.profile);
	compare_lines(path, listing, expected);
	profile_free(r.profile);
	free(listing);
	free(line);
	free(expected);
	free(path);
}

static void golden_files_give_their_listing(void **state)
{
	glob_t g;
	assert_int_equal(glob("tests/golden/*.events", 0, NULL, &g), 0);
	assert_true(g.gl_pathc >= 8);
	for (size_t i = 0; i < g.gl_pathc; i++)
		check_one(g.gl_pathv[i]);
	globfree(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden_files_give_their_listing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
