/* Events as text: what is written is read back; what is wrong is refused with its line and reason. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "profile/events.h"

#define HEAD "ptmem-events 1\nh 1 0 x\n"

/* Records what it receives, including names and headers. */
struct copier {
	struct events_writer *writer;
	struct calltree *tree;
};

static void copy_header(void *ctx, const char *command, uint32_t pid, uint64_t start_ns)
{
	events_writer_header(((struct copier *)ctx)->writer, command, pid, start_ns);
}

static void copy_module(void *ctx, const struct events_module *m)
{
	events_writer_module(((struct copier *)ctx)->writer, m);
}

static void copy_name(void *ctx, const struct events_name *n)
{
	events_writer_name(((struct copier *)ctx)->writer, n);
}

static void copy_event(void *ctx, const struct event *ev)
{
	struct copier *c = ctx;
	events_writer_event(c->writer, c->tree, ev);
}

static void copy_thread_exit(void *ctx, uint32_t thread)
{
	events_writer_thread_exit(((struct copier *)ctx)->writer, thread);
}

static void copy_end(void *ctx, uint64_t time_ns)
{
	events_writer_end(((struct copier *)ctx)->writer, time_ns);
}

static void copy_sampling(void *ctx, uint64_t interval, uint64_t seed)
{
	struct copier *c = ctx;
	events_writer_sampling(c->writer, interval, seed);
}

static void copy_total(void *ctx, uint8_t function, const struct call_total *total)
{
	struct copier *c = ctx;
	struct call_totals totals = {0};
	totals.function[function] = *total;
	events_writer_totals(c->writer, &totals);
}

static void copy_value(void *ctx, const char *key, const char *value)
{
	struct copier *c = ctx;
	events_writer_value(c->writer, key, value);
}

static void copy_touched(void *ctx, taddr_t addr, uint64_t bytes)
{
	events_writer_touched(((struct copier *)ctx)->writer, addr, bytes);
}

static void copy_touch_size(void *ctx, uint64_t least)
{
	events_writer_touch_size(((struct copier *)ctx)->writer, least);
}

/* Reads @text and returns it rewritten by a writer; NULL when it is refused. */
static char *copy_of(const char *text, size_t size, unsigned *line_out, const char **why_out)
{
	char *copy = NULL;
	size_t copy_size = 0;
	FILE *in = fmemopen((void *)text, size, "r"), *out = open_memstream(&copy, &copy_size);
	struct copier c = { events_writer_new(out), calltree_new() };
	struct events_reader_ops ops = { copy_header, copy_module, copy_name, copy_value, copy_event, copy_thread_exit, copy_end,
					 &c, copy_sampling, copy_total, NULL, NULL, copy_touched, copy_touch_size };
	int r = events_read(in, c.tree, &ops, line_out, why_out);
	assert_int_equal(events_writer_free(c.writer), 0);
	calltree_free(c.tree);
	fclose(in);
	fclose(out);
	if (r == 0)
		return copy;
	assert_int_equal(r, -EINVAL);
	free(copy);
	return NULL;
}

static void assert_same(const char *text)
{
	unsigned line;
	const char *why = "";
	char *copy = copy_of(text, strlen(text), &line, &why);
	assert_string_equal(copy ? copy : why, text);
	free(copy);
}

static void what_is_read_is_written_the_same(void **state)
{
	static const char text[] =
		"ptmem-events 1\n"
		"h 4294967295 18446744073709551615 ./a b\\nc\\td\\\\e\\x01 \xc3\xa9\\x7f\n"
		"l 1 400000 401000 400000 /usr/bin/a b\n"
		"l 7 7f0000000000 7f0000001000 7f0000000000 /lib/\\nx.so\n"
		"M 18446744073709551615\n"
		"i 400123 1 12 1 in<lined>\ta.c\t/src\n"
		"i 400123 1 0 0 \t\t\n"
		"n 1 0 400123 1\n"
		"n 2 1 7f0000000100 7\n"
		"a 5 9 1 2 0 18446744073709551615 64\n"
		"n 3 1 400124 1\n"
		"f 6 9 6 3 5000\n"
		"b 7 9 3 0 ffffffffffffffff\n"
		"r 8 9 3 1 ffffffffffffffff 0 1\n"
		"m 9 9 8 0 7f0000002000 4096\n"
		"u 10 9 9 0 7f0000002000 4096\n"
		"s 11 9 0 0 1000\n"
		"a 11 9 1 2 7000 8 0 7ffc00001000\n"
		"f 11 9 6 0 7000 7ffc00001008\n"
		"r 11 9 3 1 7000 7010 9 7ffc00001010\n"
		"c 11 9 8 0 0 7f0000004000 8192 146028888067 7ffc00001000\n"
		"c 11 9 10 0 7f0000004000 0 8192 4096\n"
		"t 11 9 0 0 7ffc00000ff0\n"
		"p 11 9 0 0 4096\n"
		"q 11 9 0 0 4096 8192\n"
		"T ffffffffffffffff 0\n"
		"T 0 18446744073709551615\n"
		"v thread.9 a \\\\ b\n"
		"j 11 9 6 0 7000\n"
		"g 7\n"
		"l 8 7f0000000000 7f0000001000 7f0000000000 /lib/y.so\n"
		"n 4 1 7f0000000100 8\n"
		"a 12 9 255 4 6000 1 0\n"
		"g 8\n"
		"l 7 7f0000000000 7f0000001000 7f0000000000 /lib/\\nx.so\n"
		"a 12 9 1 2 8000 3 0\n"
		"x 9\n"
		"z 12 9 0 4 6010 1\n"
		"e 13\n";
	assert_same(text);
	assert_same("ptmem-events 1\n"
		    "h 1 0 x\n"
		    "y 524288 42\n"
		    "a 5 9 1 0 5000 600 0\n"
		    "R 5 9 3 0 5000 6000 600 0\n"
		    "s 6 9 0 0 1000\n"
		    "q 7 9 0 0 4096 8192\n"
		    "w 1 18446744073709551615 600\n"
		    "e 13\n");
}

static void comments_and_empty_lines_say_nothing(void **state)
{
	static const char text[] = "ptmem-events 1\n# x\n\nh 1 0 x\n#\nf 1 1 1 0 ABCdef\ne 2\n\n# after\n";
	unsigned line;
	const char *why;
	char *copy = copy_of(text, strlen(text), &line, &why);
	assert_string_equal(copy, HEAD "f 1 1 1 0 abcdef\ne 2\n");
	free(copy);
}

static void refused(const char *text, unsigned line, const char *why)
{
	unsigned got_line = 0;
	const char *got_why = "";
	assert_null(copy_of(text, strlen(text), &got_line, &got_why));
	if (!strstr(got_why, why) || got_line != line)
		fail_msg("\"%s\": line %u, %s", text, got_line, got_why);
}

static void what_is_wrong_is_refused(void **state)
{
	refused("\n", 1, "not an event file");
	refused("ptmem-events 2\n", 1, "not an event file");
	refused("ptmem-events 1\n", 2, "no end line");
	refused("ptmem-events 1\ne 1\n", 2, "no header");
	refused(HEAD "h 1 0 x\n", 3, "second header");
	refused(HEAD "ptmem-events 1\n", 3, "second first line");
	refused(HEAD "e 1\nptmem-events 1\n", 4, "second first line");
	refused("ptmem-events 1\nptmem-events 1\n", 2, "second first line");
	refused(HEAD "e 1\ne 1\n", 4, "after the end");
	refused(HEAD "a 1 1 1 0 1 1 0\nM 1\n", 4, "after the first event");
	refused(HEAD "T 1\n", 3, "");
	refused(HEAD "e 1", 3, "cut");
	refused(HEAD "f 1 1 1 0 5000\n", 4, "no end line");
	refused(HEAD "@ 1\n", 3, "no such kind");
	refused(HEAD "e\n", 3, "missing");
	refused(HEAD "e  1\n", 3, "not a number");
	refused(HEAD "e 1 \n", 3, "more fields");
	refused(HEAD "e -1\n", 3, "not a number");
	refused(HEAD "e 1a\n", 3, "not a number");
	refused(HEAD "e\t1\n", 3, "missing");
	refused(HEAD "e 18446744073709551616\n", 3, "too large");
	refused(HEAD "x 4294967296\n", 3, "too large");
	refused(HEAD "f 1 1 256 0 5000\n", 3, "too large");
	refused(HEAD "f 1 1 1 0 10000000000000000\n", 3, "too large");
	refused(HEAD "f 1 1 1 0 0x50\n", 3, "not a number");
	refused(HEAD "f 1 1 1 0\n", 3, "missing");
	refused(HEAD "f 1 1 1 0 50 1 2\n", 3, "more fields"); /* one more would be the stack pointer */
	refused(HEAD "f 1 1 1 1 50\n", 3, "no such node");
	refused(HEAD "n 2 0 400000 0\n", 3, "node ids");
	refused(HEAD "n 1 1 400000 0\n", 3, "before its parent");
	refused(HEAD "n 1 0 400000 3\n", 3, "no such module");
	refused(HEAD "l 0 1 2 0 x\n", 3, "module id");
	refused(HEAD "l 1 1 2 0 x\nl 1 3 4 0 y\n", 4, "module id");
	refused(HEAD "l 1 2 2 0 x\n", 3, "ends before");
	refused(HEAD "l 1 1 2 0\n", 3, "missing");
	refused(HEAD "l 1 1 2 0 a\tb\n", 3, "control character");
	refused(HEAD "l 1 1 2 0 a\\q\n", 3, "escape");
	refused(HEAD "l 1 1 2 0 a\\x0\n", 3, "escape");
	refused(HEAD "l 1 1 2 0 a\\x00\n", 3, "escape");
	refused(HEAD "l 1 1 2 0 a\\\n", 3, "escape");
	refused(HEAD "y 1 1\n", 3, "distance");
	refused(HEAD "y 1099511627777 1\n", 3, "distance");
	refused(HEAD "y 512\n", 3, "missing");
	refused(HEAD "f 1 1 1 0 5000\ny 512 1\n", 4, "after events");
	refused(HEAD "y 512 1\nm 1 1 0 0 5000 4096\n", 4, "not of samples");
	refused(HEAD "y 512 1\nu 1 1 0 0 5000 4096\n", 4, "not of samples");
	refused(HEAD "y 512 1\np 1 1 0 0 4096\n", 4, "not of samples");
	refused(HEAD "y 512 1\nz 1 1 0 0 5000 16\n", 4, "not of samples");
	refused(HEAD "s 1 1 0 0 4611686018427387905\n", 3, "more than 2^62");
	refused(HEAD "p 1 1 0 0 18446744073709551615\n", 3, "more than 2^62");
	refused(HEAD "a 1 1 1 0 5000 4611686018427387900 5\n", 3, "more than 2^62");
	refused(HEAD "r 1 1 1 0 0 5000 4611686018427387904\nz 1 1 0 0 6000 1\n", 4, "more than 2^62");
	refused(HEAD "m 1 1 0 0 5000 18446744073709551615\n", 3, "more than 2^62");
	refused(HEAD "w 16 1 1\n", 3, "too large");
	refused(HEAD "g 1\n", 3, "no such module");
	refused(HEAD "l 1 1 2 0 x\nl 1 1 2 0 x\n", 4, "in use");
	refused(HEAD "l 1 1 2 0 x\ng 1\ng 1\n", 5, "no such module");
	refused(HEAD "i 1 0 1 2 a\tb\tc\n", 3, "too large");
	refused(HEAD "i 1 0 1 0 a\tb\n", 3, "missing");
	refused(HEAD "i 1 0 1 0 a\tb\tc\td\n", 3, "control character");
	unsigned line;
	const char *why;
	assert_null(copy_of(HEAD "e 1\0\n", strlen(HEAD) + 5, &line, &why));
	assert_string_equal(why, "a NUL character");
}

static ssize_t no_space(void *cookie, const char *data, size_t size)
{
	errno = ENOSPC;
	return 0;
}

static void a_full_disk_is_reported(void **state)
{
	FILE *full = fopencookie(NULL, "w", (cookie_io_functions_t){ .write = no_space });
	assert_non_null(full);
	struct events_writer *w = events_writer_new(full);
	events_writer_header(w, "x", 1, 0);
	events_writer_end(w, 1);
	assert_int_equal(events_writer_free(w), -ENOSPC);
	fclose(full);
}

static void note_cut(void *ctx, unsigned line)
{
	*(unsigned *)ctx = line;
}

/* 0 = refused */
static unsigned cut_at(const char *text)
{
	unsigned at = 0, line;
	const char *why;
	struct calltree *tree = calltree_new();
	FILE *in = fmemopen((void *)text, strlen(text), "r");
	const struct events_reader_ops ops = {.cut = note_cut, .ctx = &at};
	int rc = events_read(in, tree, &ops, &line, &why);

	fclose(in);
	calltree_free(tree);
	assert_true(rc == 0 ? at > 0 : at == 0);
	return at;
}

static void a_cut_file_can_be_read(void **state)
{
	assert_int_equal(cut_at(HEAD "f 1 1 1 0 5000\n"), 3);
	assert_int_equal(cut_at(HEAD "f 1 1 1 0 5000\nf 2 1 1 0 50"), 4);
	assert_int_equal(cut_at(HEAD "f 1 1 1 0 5000\n@ 2 1"), 4);
	assert_int_equal(cut_at(HEAD "f 1 1 1 0 5000\n@ 2 1\n"), 0);
	assert_int_equal(cut_at(HEAD), 2);
	assert_int_equal(cut_at("ptmem-events 1\nh 1 0"), 0);
	assert_int_equal(cut_at("ptmem-ev"), 0);
}

static void what_could_not_be_written_is_cut(void **state)
{
	char path[] = "/tmp/ptmem-unit-XXXXXX", text[200];
	uint64_t last = 0;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	dprintf(fd, HEAD "f 17 1 1 0 5000\ni 1 0 1 0 a\tb\tc\nf 25 1 1 0 50");
	assert_true(events_cut(path, &last));
	assert_int_equal(last, 17);
	ssize_t n = pread(fd, text, sizeof(text), 0);
	assert_true(n > 0 && text[n - 1] == '\n');
	assert_int_equal(n, strlen(HEAD "f 17 1 1 0 5000\ni 1 0 1 0 a\tb\tc\n"));
	assert_int_equal(ftruncate(fd, strlen(HEAD)), 0);
	assert_false(events_cut(path, &last));
	unlink(path);
	close(fd);
	assert_false(events_cut(path, &last));
	assert_false(events_cut("/dev/null", &last));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_read_is_written_the_same),
		cmocka_unit_test(comments_and_empty_lines_say_nothing),
		cmocka_unit_test(what_is_wrong_is_refused),
		cmocka_unit_test(a_full_disk_is_reported),
		cmocka_unit_test(a_cut_file_can_be_read),
		cmocka_unit_test(what_could_not_be_written_is_cut),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
