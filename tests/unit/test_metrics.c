/* /metrics: its lines are what Prometheus reads, whatever a program calls itself. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "listen/answer.h"

static char *write_metrics(const struct served_table *t, bool is_openmetrics)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	metrics_write(out, t, (uint32_t)getpid(), is_openmetrics);
	fclose(out);
	assert_int_equal(strlen(text), size);
	return text;
}

static void add_process(struct served_table *t, uint32_t pid, const char *command, size_t size)
{
	struct served *s = vec_add(&t->list);

	*s = (struct served){.journal = -1};
	s->info.pid = pid;
	memcpy(s->info.command, command, size);
	s->info.totals = (struct listen_totals){
		.live_bytes = 7000, .live_blocks = 7, .peak_bytes = UINT64_MAX, .allocated_bytes = 1, .allocations = 2,
		.frees = 3, .failed = 4, .interval = 524288, .stacks = 5, .complete_stacks = 6, .stopped_ns = 1500000000,
		.longest_stop_ns = 250000000, .trap_stops = 8, .trap_ns = 1, .longest_trap_ns = 51000000,
	};
}

static void expect(const char *text, const char *line)
{
	if (!strstr(text, line))
		fail_msg("no line %s in\n%s", line, text);
}

static void test_values(void **state)
{
	struct served_table t = {0};

	add_process(&t, 42, "server", 7);
	add_process(&t, 43, "", 1);
	_cleanup_free_ char *text = write_metrics(&t, false), *open = write_metrics(&t, true);

	expect(text, "\nptmem_heap_live_blocks{pid=\"42\",command=\"server\"} 7\n");
	expect(text, "\nptmem_heap_peak_bytes{pid=\"42\",command=\"server\"} 18446744073709551615\n");
	expect(text, "\nptmem_heap_frees_total{pid=\"43\",command=\"\"} 3\n");
	expect(text, "# TYPE ptmem_heap_frees_total counter\n");
	expect(text, "\nptmem_stopped_seconds_total{pid=\"42\",command=\"server\"} 1.500000000\n");
	expect(text, "\nptmem_longest_stop_seconds{pid=\"42\",command=\"server\"} 0.250000000\n");
	expect(text, "\nptmem_longest_breakpoint_seconds{pid=\"42\",command=\"server\"} 0.051000000\n");
	expect(text, "\nptmem_breakpoint_seconds_total{pid=\"42\",command=\"server\"} 0.000000001\n");
	assert_null(strstr(text, "# EOF"));
	expect(open, "# TYPE ptmem_heap_frees counter\nptmem_heap_frees_total{pid=\"42\",command=\"server\"} 3\n");
	assert_string_equal(open + strlen(open) - 6, "# EOF\n");
	vec_deinit(&t.list);
}

/* Where a process runs is known of those that ptmem attached to. */
static void test_processes(void **state)
{
	struct served_table t = {0};

	add_process(&t, 42, "server", 7);
	_cleanup_free_ char *none = write_metrics(&t, false);

	assert_null(strstr(none, "ptmem_process_info"));
	add_process(&t, 43, "other", 6);
	t.list.data[1].info.is_attached = true;
	strcpy(t.list.data[1].info.name, "a\"b");
	memset(t.list.data[1].info.cgroup, 'a', sizeof(t.list.data[1].info.cgroup));
	memcpy(t.list.data[1].info.cgroup, "/x/", 3);
	_cleanup_free_ char *text = write_metrics(&t, false);

	expect(text, "# TYPE ptmem_process_info gauge\nptmem_process_info{pid=\"43\",name=\"a\\\"b\",cgroup=\"/x/aaaa");
	expect(text, "aaaa\",container=\"\"} 1\n");
	strcpy(t.list.data[1].info.cgroup,
	       "/docker-0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef.scope");
	_cleanup_free_ char *container = write_metrics(&t, true);

	t.list.data[1].info.name[0] = '\0';
	t.list.data[0].info.is_attached = true;
	_cleanup_free_ char *nameless = write_metrics(&t, false);

	expect(nameless, "gauge\nptmem_process_info{pid=\"42\",name=\"\",cgroup=\"\",container=\"\"} 1\n"
			 "ptmem_process_info{pid=\"43\",name=\"\",cgroup=\"/docker-");
	expect(container, ",container=\"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"} 1\n");
	vec_deinit(&t.list);
}

/* Of a process that is gone nothing is known. */
static void test_resident(void **state)
{
	struct served_table t = {0};

	add_process(&t, (uint32_t)getpid(), "self", 5);
	add_process(&t, UINT32_MAX, "gone", 5);
	_cleanup_free_ char *text = write_metrics(&t, false);

	expect(text, "\nptmem_resident_bytes{pid=\"4294967295\",command=\"gone\"} 0\n");
	const char *own = strstr(strstr(text, "# TYPE ptmem_resident_bytes"), "command=\"self\"} ");
	assert_true(strtoull(own + strlen("command=\"self\"} "), NULL, 10) > 100000);
	vec_deinit(&t.list);
}

static double cpu_seconds(const struct served_table *t)
{
	_cleanup_free_ char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	metrics_write(out, t, UINT32_MAX, false);
	fclose(out);
	return strtod(strstr(text, "\nprocess_cpu_seconds_total ") + strlen("\nprocess_cpu_seconds_total "), NULL);
}

/* The time of a ptmem that is gone still counts. */
static void test_cpu(void **state)
{
	struct served_table t = {.ptmem_ticks = 1000 * (uint64_t)sysconf(_SC_CLK_TCK)};

	assert_true(cpu_seconds(&t) >= 1000);
	metrics_note_cpu(&t, UINT32_MAX);
	assert_true(cpu_seconds(&t) >= 1000);
}

/* Each line of a text without samples is the head of a family. */
static void test_nothing(void **state)
{
	const struct served_table t = {0};
	_cleanup_free_ char *text = write_metrics(&t, true);

	expect(text, "# TYPE ptmem_heap_live_bytes gauge\n");
	assert_null(strstr(text, "{pid="));
	expect(text, "\nprocess_resident_memory_bytes ");
}

/* The length of the character at @s, or 0 if it is no UTF-8. */
static size_t character(const char *s)
{
	unsigned char c = (unsigned char)*s;
	size_t n = c < 0x80 ? 1 : c >= 0xc2 && c < 0xe0 ? 2 : c >= 0xe0 && c < 0xf0 ? 3 : c >= 0xf0 && c < 0xf5 ? 4 : 0;

	for (size_t i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	return n;
}

/* After @label, a quoted text: its end. No line feed is in it, a quote and a backslash are escaped. */
static const char *check_quoted(const char *s)
{
	assert_int_equal(*s, '"');
	for (s++; *s != '"';) {
		if (*s == '\\') {
			assert_true(s[1] == '\\' || s[1] == '"' || s[1] == 'n');
			s++;
		}
		assert_true((unsigned char)*s >= ' ');
		assert_int_not_equal(character(s), 0);
		s += character(s);
	}
	return s + 1;
}

/* Each line of a family is NAME{pid="...",command="..."} NUMBER. */
static void check_lines(const char *text)
{
	for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
		const char *at = strstr(line, "command=");

		if (*line == '#' || !at || at > strchr(line, '\n'))
			continue;
		at = check_quoted(at + strlen("command="));
		assert_memory_equal(at, "} ", 2);
		assert_int_equal(strspn(at + 2, "0123456789."), strchr(at + 2, '\n') - (at + 2));
	}
}

/* A command is what the program says: any bytes, cut anywhere, without an end. */
static void test_hostile_commands(void **state)
{
	static const char *const commands[] = {
		"a\nptmem_heap_live_bytes{pid=\"1\"} 0\n", "\"} 1\n", "\\", "\\\"", "\\n", "x\\", "\xff\xfe\xc3", "\xe2\x82", "\xf0\x9f\x98",
		"\xed\xa0\x80", "\xc0\xaf", "\r\t\b\x1b[2J\x7f", "caf\xc3\xa9 \xe2\x82\xac", ("\xe2\x80\xae" "evil"), "# EOF\n",
	};

	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		struct served_table t = {0};

		add_process(&t, 1, commands[i], strlen(commands[i]) + 1);
		_cleanup_free_ char *text = write_metrics(&t, i % 2);

		check_lines(text);
		vec_deinit(&t.list);
	}
	for (int c = 1; c < 256; c++) {
		struct served_table t = {0};
		char full[sizeof(t.list.data->info.command)];

		memset(full, c, sizeof(full));
		add_process(&t, 1, full, sizeof(full));
		_cleanup_free_ char *text = write_metrics(&t, c % 2);

		check_lines(text);
		assert_true(c != 'x' || strstr(text, "xx\"} 7000\n"));
		vec_deinit(&t.list);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values), cmocka_unit_test(test_resident),
		cmocka_unit_test(test_processes),
		cmocka_unit_test(test_cpu), cmocka_unit_test(test_nothing), cmocka_unit_test(test_hostile_commands),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
