/* Source lines for a recording, from this test's own file; a file of another build-id is not used. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/elf_file.h"
#include "recording/recording_resolve.h"

extern const char __executable_start[];

__attribute__((always_inline)) static inline int twice(volatile int *p)
{
	*p += 1;
	return *p * 2;
}

__attribute__((noinline)) static int outer(volatile int *p)
{
	return twice(p) + 1; /* INLINED HERE */
}

struct world {
	struct symbols *symbols;
	struct filter *filter;
	struct name_resolver *lines;
};

static int set_up(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	w->symbols = symbols_new(&(struct symbols_options){0});
	w->filter = filter_new(30, false);
	w->lines = name_resolver_new(w->symbols, w->filter);
	*state = w;
	return 0;
}

static int tear_down(void **state)
{
	struct world *w = *state;

	name_resolver_free(w->lines);
	symbols_free(w->symbols);
	filter_free(w->filter);
	free(w);
	return 0;
}

/* The hexadecimal build-id of this program; "" if it has none. */
static char *own_build_id(void)
{
	static char hex[129];
	struct elf_file *file;

	assert_int_equal(elf_file_open(NULL, "/proc/self/exe", NULL, &file), 0);
	for (size_t i = 0; i < file->build_id_size && i < 64; i++)
		snprintf(hex + 2 * i, 3, "%02x", file->build_id[i]);
	elf_file_release(file);
	return hex;
}

/* Two stacks: outer alone, and outer called by what has no object. */
static struct recording *make_recording(const char *path, const char *build_id, uint64_t address)
{
	struct recording *r = recording_new();
	const uint64_t start = (uint64_t)__executable_start;

	recording_add(r, RECORDING_OBJECTS, (uint64_t[OBJECT_COLUMNS]){
		recording_string(r, path), recording_string(r, build_id), start, start + (1 << 24), 0});
	recording_add(r, RECORDING_FRAMES, (uint64_t[FRAME_COLUMNS]){
		[FRAME_FUNCTION] = recording_string(r, "[unknown]"), [FRAME_ADDRESS] = 7});
	recording_add(r, RECORDING_FRAMES, (uint64_t[FRAME_COLUMNS]){
		[FRAME_FUNCTION] = recording_string(r, "outer"), [FRAME_OBJECT] = 1, [FRAME_ADDRESS] = address});
	recording_add(r, RECORDING_NODES, (uint64_t[NODE_COLUMNS]){0, 1});
	recording_add(r, RECORDING_NODES, (uint64_t[NODE_COLUMNS]){0, 0});
	recording_add(r, RECORDING_NODES, (uint64_t[NODE_COLUMNS]){2, 1});
	recording_add(r, RECORDING_LEAVES, (uint64_t[LEAF_COLUMNS]){[LEAF_NODE] = 1});
	recording_add(r, RECORDING_LEAVES, (uint64_t[LEAF_COLUMNS]){[LEAF_NODE] = 3});
	recording_add(r, RECORDING_LEAVES, (uint64_t[LEAF_COLUMNS]){[LEAF_NODE] = 0});
	return r;
}

static const char *text_of(const struct recording *r, size_t frame, unsigned column)
{
	return r->text.data[recording_get(r, RECORDING_FRAMES, frame, column)];
}

/* "outer<twice", innermost last. */
static void check_stack(const struct recording *r, size_t leaf, const char *expected)
{
	char *found = strdup("");
	uint64_t node = recording_get(r, RECORDING_LEAVES, leaf, LEAF_NODE);

	while (node > 0) {
		size_t frame = recording_get(r, RECORDING_NODES, node - 1, NODE_FRAME);
		char *longer = xasprintf("%s%s%s", text_of(r, frame, FRAME_FUNCTION), *found ? "<" : "", found);

		free(found);
		found = longer;
		node = recording_get(r, RECORDING_NODES, node - 1, NODE_PARENT);
	}
	assert_string_equal(found, expected);
	free(found);
}

/* An address within twice, where it is inlined in outer. */
static uint64_t find_inlined(struct name_resolver *l)
{
	const uint64_t start = (uint64_t)(uintptr_t)outer;

	for (uint64_t at = start; at < start + 400; at++) {
		struct recording *r = make_recording("/proc/self/exe", own_build_id(), at);

		recording_resolve(l, r, (uint32_t)getpid());
		size_t frames = recording_rows(r, RECORDING_FRAMES);

		recording_free(r);
		if (frames == 3)
			return at;
	}
	fail_msg("twice is nowhere in outer");
	return 0;
}

static void test_inlined(void **state)
{
	struct world *w = *state;
	struct recording *r = make_recording("/proc/self/exe", own_build_id(), find_inlined(w->lines));

	recording_resolve(w->lines, r, (uint32_t)getpid());
	check_stack(r, 0, "outer<twice");
	check_stack(r, 1, "[unknown]<outer<twice");
	check_stack(r, 2, "");
	assert_non_null(strstr(text_of(r, 1, FRAME_FILE), "test_recording_lines.c"));
	assert_true(recording_get(r, RECORDING_FRAMES, 1, FRAME_LINE) > 0);
	assert_false(recording_get(r, RECORDING_FRAMES, 1, FRAME_INLINED));
	assert_true(recording_get(r, RECORDING_FRAMES, 2, FRAME_INLINED));
	recording_free(r);
}

static void check_kept(struct world *w, const char *path, const char *build_id)
{
	struct recording *r = make_recording(path, build_id, (uint64_t)(uintptr_t)outer);

	recording_resolve(w->lines, r, UINT32_MAX / 2); /* no such process */
	assert_int_equal(recording_rows(r, RECORDING_FRAMES), 2);
	assert_string_equal(text_of(r, 1, FRAME_FUNCTION), "outer");
	assert_string_equal(text_of(r, 1, FRAME_FILE), "");
	check_stack(r, 1, "[unknown]<outer");
	recording_free(r);
}

/* Nothing is made up: what cannot be found stays as it was. */
static void test_other_files(void **state)
{
	char other[129];

	strcpy(other, own_build_id());
	other[0] = other[0] == '0' ? '1' : '0';
	check_kept(*state, "/proc/self/exe", other);
	check_kept(*state, "/proc/self/exe", "");
	check_kept(*state, "/proc/self/exe", "zz");
	check_kept(*state, "/nonexistent", own_build_id());
	check_kept(*state, "/dev/zero", own_build_id());
	check_kept(*state, "/proc/self", own_build_id());
	check_kept(*state, "[vdso]", own_build_id());
}

static size_t count_files(void)
{
	DIR *d = opendir("/proc/self/fd");
	size_t count = 0;

	assert_non_null(d);
	while (readdir(d))
		count++;
	closedir(d);
	return count;
}

/* Each has its objects at other addresses. */
static void test_many_processes(void **state)
{
	struct world *w = *state;
	size_t files = 0;

	for (uint64_t i = 0; i < 5000; i++) {
		uint64_t shift = i << 12;
		struct recording *r = make_recording("/proc/self/exe", own_build_id(),
						     (uint64_t)(uintptr_t)outer + shift);

		r->table[RECORDING_OBJECTS].column[OBJECT_START][0] += shift;
		r->table[RECORDING_OBJECTS].column[OBJECT_END][0] += shift;
		recording_resolve(w->lines, r, (uint32_t)getpid());
		assert_string_equal(text_of(r, 1, FRAME_FUNCTION), "outer");
		assert_non_null(strstr(text_of(r, 1, FRAME_FILE), "test_recording_lines.c"));
		recording_free(r);
		if (i == 0)
			files = count_files();
		assert_int_equal(count_files(), files);
	}
}

/* The texts of a file that was read are not in the table by which texts are found. */
static void test_many_texts(void **state)
{
	struct world *w = *state;
	struct recording *r = make_recording("/proc/self/exe", own_build_id(), (uint64_t)(uintptr_t)outer);

	hash_deinit(&r->text_index);
	for (int i = 0; i < 5000; i++) {
		char name[20];

		snprintf(name, sizeof(name), "text %d", i);
		*vec_add(&r->text) = strdup(name);
	}
	recording_resolve(w->lines, r, (uint32_t)getpid());
	assert_non_null(strstr(text_of(r, 1, FRAME_FILE), "test_recording_lines.c"));
	recording_free(r);
}

int main(void)
{
	volatile int n = 0;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_inlined, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_other_files, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_many_processes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_many_texts, set_up, tear_down),
	};

	return outer(&n) < 0 || cmocka_run_group_tests(tests, NULL, NULL);
}
