/* Names of generated code: perf maps and jitdump files, as they grow, and what is wrong in them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/hash.h"
#include "languages/code_name.h"
#include "languages/perf_map.h"

struct world {
	struct code_map map;
	struct perf_file file;
	int fd;
	char path[32];
};

static struct world open_world(enum perf_file_kind kind)
{
	struct world w = {.path = "/tmp/test_perf_map.XXXXXX"};

	w.fd = mkstemp(w.path);
	assert_true(w.fd >= 0);
	perf_file_init(&w.file, kind, w.path);
	return w;
}

static void close_world(struct world *w)
{
	close(w->fd);
	unlink(w->path);
	perf_file_deinit(&w->file);
	code_map_deinit(&w->map);
}

static void put(struct world *w, const void *data, size_t size)
{
	assert_int_equal(write(w->fd, data, size), size);
}

static void put_text(struct world *w, const char *text)
{
	put(w, text, strlen(text));
}

static void refresh(struct world *w, uint64_t now)
{
	assert_int_equal(perf_file_refresh(&w->file, &w->map, w->fd, now), 0);
}

#define assert_named(w, addr, time, name) assert_named_at(w, addr, time, name, __LINE__)
static void assert_named_at(struct world *w, taddr_t addr, uint64_t time, const char *name, int line)
{
	const struct code_entry *e = code_map_find(&w->map, addr, time);
	char *found = e ? code_map_name(&w->map, e) : NULL;

	if (!found != !name || (name && strcmp(found, name) != 0))
		fail_msg("line %d: %s instead of %s", line, found ? found : "none", name ? name : "none");
	free(found);
}

static void test_map(void **state)
{
	struct world w = open_world(PERF_MAP);

	put_text(&w, "1000 20 f\n0x2000 0X10 LazyCompile:*g /a b.js:7\n  3000\t8\tpy::h:/x.py\r\n");
	refresh(&w, 5);
	assert_named(&w, 0x1000, 5, "f");
	assert_named(&w, 0x101f, 0, "f");
	assert_named(&w, 0x1020, 5, NULL);
	assert_named(&w, 0xfff, 5, NULL);
	assert_named(&w, 0x200f, 5, "LazyCompile:*g /a b.js:7");
	assert_named(&w, 0x3001, 5, "py::h:/x.py");
	assert_int_equal(w.file.bad, 0);
	close_world(&w);
}

/* The end of a line that is being written is read when it is whole. */
static void test_growth(void **state)
{
	struct world w = open_world(PERF_MAP);

	refresh(&w, 1);
	put_text(&w, "1000 20 f\n2000 10 ");
	refresh(&w, 2);
	assert_named(&w, 0x2000, 9, NULL);
	put_text(&w, "gg\n3");
	refresh(&w, 3);
	assert_named(&w, 0x2000, 9, "gg");
	put_text(&w, "000 1 h\n");
	refresh(&w, 4);
	assert_named(&w, 0x3000, 9, "h");
	refresh(&w, 5);
	assert_int_equal(w.map.entries.count, 3);
	assert_int_equal(w.file.bad, 0);
	close_world(&w);
}

/* What is used again has its new name since it may have been there. */
static void test_reuse(void **state)
{
	struct world w = open_world(PERF_MAP);

	put_text(&w, "1000 100 old\n");
	refresh(&w, 10);
	put_text(&w, "1040 10 new\n");
	refresh(&w, 20);
	assert_named(&w, 0x1040, 9, "old");
	assert_named(&w, 0x1040, 10, "new");
	assert_named(&w, 0x1050, 10, "old");
	put_text(&w, "1000 100 newest\n1000 100 last\n");
	refresh(&w, 30);
	assert_named(&w, 0x1040, 19, "new");
	assert_named(&w, 0x1040, 20, "last");
	close_world(&w);
}

/* jcmd PID Compiler.perfmap writes all of it anew. */
static void test_rewritten(void **state)
{
	struct world w = open_world(PERF_MAP);

	put_text(&w, "1000 20 f\n2000 10 g\n4000 10 gone\n");
	refresh(&w, 10);
	assert_int_equal(ftruncate(w.fd, 0), 0);
	lseek(w.fd, 0, SEEK_SET);
	put_text(&w, "1000 20 f\n2000 18 gg\n3000 1 i\n5000 1 of the same length or longer\n");
	refresh(&w, 20);
	assert_int_equal(w.map.entries.count, 6);
	assert_named(&w, 0x1000, 20, "f");
	assert_named(&w, 0x2000, 9, "g");
	assert_named(&w, 0x2010, 20, "gg");
	assert_named(&w, 0x4000, 20, "gone");
	assert_int_equal(ftruncate(w.fd, 0), 0);
	lseek(w.fd, 0, SEEK_SET);
	put_text(&w, "2000 10 g\n");
	refresh(&w, 30);
	assert_named(&w, 0x2000, 30, "g");
	assert_named(&w, 0x2010, 30, "gg");
	close_world(&w);
}

static void test_bad_lines(void **state)
{
	struct world w = open_world(PERF_MAP);
	char *huge = malloc(1 << 21);

	put_text(&w, "\n\nfoo\n1000\n1000 10\n1000 10 \n1000 0 zero\nfffffffffffffff0 20 wraps\n"
		     "1000 ffffffffffffff huge\n12345678901234567 1 long\n-1 5 sign\n0 5 null\n");
	refresh(&w, 1);
	assert_int_equal(w.map.entries.count, 0);
	assert_int_equal(w.file.bad, 10);
	memset(huge, 'x', 1 << 21);
	memcpy(huge, "5000 10 ", 8);
	put(&w, huge, 1 << 21);
	refresh(&w, 2);
	put_text(&w, "\n6000 10 after\n");
	refresh(&w, 3);
	assert_named(&w, 0x5000, 9, NULL);
	assert_named(&w, 0x6000, 9, "after");
	assert_int_equal(w.map.entries.count, 1);
	/* control characters do not reach a terminal */
	put(&w, "7000 10 a\033b\0c\n", 14);
	refresh(&w, 4);
	assert_named(&w, 0x7000, 9, "a?b");
	free(huge);
	close_world(&w);
}

/* Against a list that is looked through from its end, with functions that overlap in any way. */
static void test_random(void **state)
{
	enum { COUNT = 20000, SPACE = 1 << 16 };
	struct code_map map = {0};
	static uint32_t start[COUNT], end[COUNT];
	uint64_t r = 1;
	char name[16];

	for (int i = 0; i < COUNT; i++) {
		r = hash_u64(r + 1);
		start[i] = 1 + (uint32_t)(r % SPACE);
		end[i] = start[i] + 1 + (uint32_t)(r >> 32) % (i % 100 ? 64 : 4096);
		snprintf(name, sizeof(name), "f%d", i);
		struct code_entry e = {.start = start[i], .end = end[i], .from = (uint64_t)i / 7};

		assert_true(code_map_add(&map, &e, name, strlen(name)));
		r = hash_u64(r);
		taddr_t addr = r % SPACE;
		uint64_t time = (r >> 32) % (uint64_t)(i / 7 + 1);
		const struct code_entry *found = code_map_find(&map, addr, time);
		int want = i;

		while (want >= 0 && !(addr >= start[want] && addr < end[want] &&
				      (uint64_t)want / 7 <= time))
			want--;
		assert_int_equal(found != NULL, want >= 0);
		if (found)
			assert_int_equal(found->order, want);
	}
	code_map_deinit(&map);
}

/* -- jitdump -- */

struct bytes {
	uint8_t data[4096];
	size_t size;
};

static void add(struct bytes *b, uint64_t value, size_t size)
{
	memcpy(b->data + b->size, &value, size);
	b->size += size;
}

static void add_name(struct bytes *b, const char *name)
{
	memcpy(b->data + b->size, name, strlen(name) + 1);
	b->size += strlen(name) + 1;
}

static void put_header(struct world *w, uint64_t flags)
{
	struct bytes b = {0};

	add(&b, 0x4A695444, 4);
	add(&b, 1, 4);
	add(&b, 40, 4);
	add(&b, 62, 4);
	add(&b, 0, 4);
	add(&b, 1234, 4);
	add(&b, 1, 8);
	add(&b, flags, 8);
	put(w, b.data, b.size);
}

static void put_record(struct world *w, uint32_t id, uint64_t time, const struct bytes *body)
{
	struct bytes b = {0};

	add(&b, id, 4);
	add(&b, 16 + body->size, 4);
	add(&b, time, 8);
	put(w, b.data, b.size);
	put(w, body->data, body->size);
}

static void put_load(struct world *w, uint64_t time, taddr_t addr, const char *name)
{
	struct bytes b = {0};

	add(&b, 1234, 4);
	add(&b, 1234, 4);
	add(&b, addr, 8);
	add(&b, addr, 8);
	add(&b, 16, 8);
	add(&b, time, 8);
	add_name(&b, name);
	b.size += 16; /* the code */
	put_record(w, 0, time, &b);
}

static void put_move(struct world *w, uint64_t time, taddr_t from, taddr_t to)
{
	struct bytes b = {0};

	add(&b, 1234, 8);
	add(&b, to, 8);
	add(&b, from, 8);
	add(&b, to, 8);
	add(&b, 16, 8);
	add(&b, 1, 8);
	put_record(w, 1, time, &b);
}

/* Lines 10 and 20 from @shift and @shift + 8 on. */
static void put_lines(struct world *w, taddr_t addr, uint32_t shift)
{
	struct bytes b = {0};

	add(&b, addr, 8);
	add(&b, 3, 8);
	add(&b, addr + shift, 8);
	add(&b, 10, 4);
	add(&b, 0, 4);
	add_name(&b, "a.js");
	add(&b, addr + shift + 8, 8);
	add(&b, 20, 4);
	add(&b, 0, 4);
	add_name(&b, "\xff");
	add(&b, addr + shift + 12, 8);
	add(&b, 5, 4);
	add(&b, 0, 4);
	add_name(&b, "b.js");
	put_record(w, 2, 0, &b);
}

static void assert_line(struct world *w, taddr_t addr, uint64_t time, const char *file, uint32_t line)
{
	const struct code_entry *e = code_map_find(&w->map, addr, time);
	char *found;
	uint32_t number;

	assert_non_null(e);
	assert_true(code_map_line(&w->map, e, addr, &found, &number));
	assert_string_equal(found, file);
	assert_int_equal(number, line);
	free(found);
}

static void test_jitdump(void **state)
{
	struct world w = open_world(PERF_JITDUMP);

	put_header(&w, 0);
	put_lines(&w, 0x1000, 0);
	put_load(&w, 10, 0x1000, "f");
	put_load(&w, 20, 0x1000, "g");
	put_move(&w, 30, 0x1000, 0x5000);
	put_load(&w, 40, 0x9000, "future");
	refresh(&w, 35);
	assert_int_equal(w.file.bad, 0);
	assert_named(&w, 0x1000, 9, NULL);
	assert_named(&w, 0x100f, 19, "f");
	assert_named(&w, 0x1000, 20, "g");
	assert_named(&w, 0x5000, 29, NULL);
	assert_named(&w, 0x5004, 30, "g");
	assert_named(&w, 0x9000, 35, "future"); /* a time that has not come is now */
	assert_line(&w, 0x1000, 15, "a.js", 10);
	assert_line(&w, 0x1007, 15, "a.js", 10);
	assert_line(&w, 0x1008, 15, "a.js", 20);
	assert_line(&w, 0x100f, 15, "b.js", 5);
	char *file;
	uint32_t line;

	assert_false(code_map_line(&w.map, code_map_find(&w.map, 0x1000, 20), 0x1000, &file, &line));
	close_world(&w);
}

/* V8's lines are those of a file with a header. A moved function keeps its lines. */
static void test_jitdump_shift(void **state)
{
	struct world w = open_world(PERF_JITDUMP);

	put_header(&w, 0);
	put_lines(&w, 0x1000, 0x40);
	put_load(&w, 10, 0x1000, "f");
	put_move(&w, 30, 0x1000, 0x5000);
	refresh(&w, 35);
	assert_line(&w, 0x1008, 15, "a.js", 20);
	assert_line(&w, 0x5008, 30, "a.js", 20);
	close_world(&w);
}

/* Cut off at any byte and then continued, it says the same. */
static void test_jitdump_growth(void **state)
{
	struct world whole = open_world(PERF_JITDUMP);

	put_header(&whole, 1);
	put_lines(&whole, 0x1000, 0);
	put_load(&whole, 10, 0x1000, "f");
	put_load(&whole, 20, 0x2000, "g");
	off_t size = lseek(whole.fd, 0, SEEK_CUR);

	for (off_t cut = 0; cut <= size; cut++) {
		struct world w = open_world(PERF_JITDUMP);
		uint8_t data[4096];

		assert_int_equal(pread(whole.fd, data, sizeof(data), 0), size);
		put(&w, data, (size_t)cut);
		refresh(&w, 1);
		put(&w, data + cut, (size_t)(size - cut));
		refresh(&w, 2);
		assert_int_equal(w.map.entries.count, 2);
		assert_named(&w, 0x2000, 2, "g");
		assert_line(&w, 0x1008, 2, "a.js", 20);
		assert_int_equal(w.file.bad, 0);
		close_world(&w);
	}
	close_world(&whole);
}

static void test_jitdump_bad(void **state)
{
	struct world w = open_world(PERF_JITDUMP);
	struct bytes short_load = {.size = 8}, wild = {0};

	put_header(&w, 0);
	put_record(&w, 0, 5, &short_load);
	put_record(&w, 1, 5, &short_load);
	put_record(&w, 2, 5, &short_load);
	put_record(&w, 77, 5, &short_load);
	add(&wild, 0, 8);
	add(&wild, 0, 8);
	add(&wild, ~15ull, 8);
	add(&wild, 16, 8);
	add(&wild, 0, 8);
	add_name(&wild, "wraps");
	put_record(&w, 0, 5, &wild);
	put_load(&w, 10, 0x1000, "f");
	refresh(&w, 20);
	assert_int_equal(w.file.bad, 4);
	assert_int_equal(w.map.entries.count, 1);
	put(&w, "\0\0\0\0\1\0\0\0........", 16); /* shorter than itself */
	put_load(&w, 10, 0x2000, "g");
	refresh(&w, 30);
	assert_named(&w, 0x2000, 99, NULL);
	assert_true(w.file.is_broken);
	close_world(&w);
	w = open_world(PERF_JITDUMP);
	put_text(&w, "DTiJ no, this is something else, and long enough to be one");
	refresh(&w, 1);
	assert_true(w.file.is_broken);
	close_world(&w);
}

/* A process's own map is found, others' files are not its. */
static void test_process(void **state)
{
	struct perf_maps p;
	char path[64];

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	perf_maps_init(&p, getpid(), NULL);
	assert_int_equal(perf_maps_refresh(&p, 1), 0);
	FILE *f = fopen(path, "w");

	assert_true(f && fputs("1000 10 own\n", f) >= 0 && fclose(f) == 0);
	assert_int_equal(perf_maps_refresh(&p, 2), 1);
	assert_non_null(code_map_find(&p.code, 0x1000, 2));
	perf_maps_add_mapped(&p, "/tmp/jit-12.dump");
	perf_maps_add_mapped(&p, "/tmp/jit-12.dump");
	perf_maps_add_mapped(&p, "/tmp/jit-12.dump2");
	perf_maps_add_mapped(&p, "/tmp/jit-.dump");
	perf_maps_add_mapped(&p, "/tmp/jit-12.dum");
	assert_int_equal(p.files.count, 2);
	if (getuid() == 0) {
		put_text(&(struct world){.fd = open(path, O_WRONLY | O_APPEND)}, "2000 10 not own\n");
		assert_int_equal(chown(path, 12345, 12345), 0);
		assert_int_equal(perf_maps_refresh(&p, 3), 0);
	}
	unlink(path);
	perf_maps_deinit(&p);
}

/* What is not the process's own file is not read, and nothing waits for it. */
static void test_wrong_files(void **state)
{
	struct perf_maps p;
	char path[64], other[64];
	const struct timespec old[2] = {{.tv_sec = 1}, {.tv_sec = 1}};

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	snprintf(other, sizeof(other), "/tmp/perf-%d.other", getpid());
	unlink(path);
	perf_maps_init(&p, getpid(), NULL);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(perf_maps_refresh(&p, 1), 0);
	unlink(path);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(perf_maps_refresh(&p, 2), 0);
	rmdir(path);
	FILE *f = fopen(other, "w");

	assert_true(f && fputs("1000 10 other\n", f) >= 0 && fclose(f) == 0);
	assert_int_equal(symlink(other, path), 0);
	assert_int_equal(perf_maps_refresh(&p, 3), 0);
	unlink(path);
	assert_int_equal(utimensat(AT_FDCWD, other, old, 0), 0);
	assert_int_equal(rename(other, path), 0);
	assert_int_equal(perf_maps_refresh(&p, 4), 0); /* of an earlier process with this id */
	assert_int_equal(utimensat(AT_FDCWD, path, NULL, 0), 0);
	assert_int_equal(perf_maps_refresh(&p, 5), 1);
	unlink(path);
	perf_maps_deinit(&p);
}

/* A file that is open is read on when it has changed; a fork knows what its parent did. */
static void test_poll(void **state)
{
	struct perf_maps p, child;
	char path[64];

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	unlink(path);
	FILE *f = fopen(path, "w");

	assert_true(f && fputs("1000 10 first\n", f) >= 0 && fflush(f) == 0);
	perf_maps_init(&p, getpid(), NULL);
	assert_int_equal(perf_maps_poll(&p, 1), 0);
	assert_int_equal(perf_maps_refresh(&p, 2), 1);
	assert_int_equal(perf_maps_poll(&p, 3), 0);
	assert_true(fputs("1000 10 second\n2000 10 third\n", f) >= 0 && fclose(f) == 0);
	p.code.changes.count = 0;
	assert_int_equal(perf_maps_poll(&p, 5), 2);
	assert_int_equal(p.code.changes.count, 2);
	assert_int_equal(p.code.changes.data[1].start, 0x2000);
	assert_int_equal(p.code.changes.data[1].from, 3);
	unlink(path);
	perf_maps_fork(&child, &p, 1, NULL);
	char *name = code_map_name(&child.code, code_map_find(&child.code, 0x1000, 2));

	assert_string_equal(name, "first");
	free(name);
	name = code_map_name(&child.code, code_map_find(&child.code, 0x1000, 3));
	assert_string_equal(name, "second");
	free(name);
	assert_int_equal(child.code.changes.count, 0);
	perf_maps_deinit(&child);
	perf_maps_deinit(&p);
}

static void check_name(const char *text, const char *function, const char *path, uint32_t line)
{
	struct code_name n;

	code_name_parse(text, &n);
	assert_string_equal(n.function, function);
	if (path)
		assert_string_equal(n.path, path);
	else
		assert_null(n.path);
	assert_int_equal(n.line, line);
	code_name_deinit(&n);
}

static void test_names(void **state)
{
	check_name("py::Cart.add:/srv/a b/cart.py", "Cart.add", "/srv/a b/cart.py", 0);
	check_name("py::<module>:<frozen importlib._bootstrap>", "<module>",
		   "<frozen importlib._bootstrap>", 0);
	check_name("py::", "py::", NULL, 0);
	check_name("py::f:", "py::f:", NULL, 0);
	check_name("py:::x", "py:::x", NULL, 0);
	check_name("JS:*add /srv/shop/cart.js:12:9", "add", "/srv/shop/cart.js", 12);
	check_name("JS:~get total file:///srv/my shop/cart.mjs:3:10", "get total",
		   "/srv/my shop/cart.mjs", 3);
	check_name("JS:^ /a.js:1:1", "(anonymous)", "/a.js", 1);
	check_name("JS:*emit node:events:465:44", "emit", "node:events", 465);
	check_name("LazyCompile:~f evalmachine.<anonymous>:1:2", "f", "evalmachine.<anonymous>", 1);
	check_name("Function:f", "f", NULL, 0);
	check_name("JS:", "", NULL, 0);
	check_name("JS:f x:99999999999:1", "f", "x:99999999999:1", 0);
	check_name("JS:f /:1:2", "f", "/", 1);
	check_name("JS:f file://:1:2", "f", "file://", 1);
	check_name("Builtin:ArrayMap", "Builtin:ArrayMap", NULL, 0);
	check_name("int com.example.Cart.add(int)", "int com.example.Cart.add(int)", NULL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_map), cmocka_unit_test(test_growth),
		cmocka_unit_test(test_reuse), cmocka_unit_test(test_rewritten),
		cmocka_unit_test(test_bad_lines), cmocka_unit_test(test_random),
		cmocka_unit_test(test_jitdump), cmocka_unit_test(test_jitdump_shift),
		cmocka_unit_test(test_jitdump_growth), cmocka_unit_test(test_jitdump_bad),
		cmocka_unit_test(test_process), cmocka_unit_test(test_wrong_files),
		cmocka_unit_test(test_poll), cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
