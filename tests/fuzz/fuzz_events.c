/*
 * Feeds spoilt event files to the reader and what it lets through to a profile:
 * no crash, no hang, a line and a reason for each refusal, and the invariants
 * hold. Run it under ASan; run_events.sh does.
 *
 *	fuzz_events SECONDS FILE...     mutations of FILE until the time is over
 *
 * Most mutations keep the grammar, so that a part of the files, which is printed, is
 * accepted; if none of a file is, that is a failure.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/log.h"
#include "profile/events.h"
#include "profile/profile.h"

#define MAX_SIZE 20000
#define ENOUGH 200 /* concatenations of one file, so that some of them are valid */

struct text {
	char *data;
	size_t size, capacity;
};

/* A file that the mutations start from. */
struct start {
	const char *path;
	struct text text;
	unsigned long runs, good;
};

static uint64_t seed;

static size_t any(size_t below)
{
	return below ? (size_t)(hash_u64(++seed) % below) : 0;
}

static void add_text(struct text *t, const char *data, size_t size)
{
	t->data = xgrow(t->data, &t->capacity, t->size + size, 1);
	memcpy(t->data + t->size, data, size);
	t->size += size;
}

/* The first lines of the file, MAX_SIZE bytes at most, and its last one, the end. */
static struct text read_text(const char *path)
{
	struct text t = {0};
	char *line = NULL;
	size_t capacity = 0;
	ssize_t length;
	FILE *f = fopen(path, "r");
	if (!f) {
		perror(path);
		exit(1);
	}
	while ((length = getline(&line, &capacity, f)) > 0)
		if (line[0] == 'e' || t.size + (size_t)length <= MAX_SIZE)
			add_text(&t, line, (size_t)length);
	free(line);
	fclose(f);
	return t;
}

/* Start of a line near a random place. */
static size_t any_line(const struct text *t)
{
	size_t at = any(t->size);
	while (at > 0 && t->data[at - 1] != '\n')
		at--;
	return at;
}

static size_t line_size(const struct text *t, size_t at)
{
	const char *end = memchr(t->data + at, '\n', t->size - at);
	return end ? (size_t)(end - t->data) - at + 1 : t->size - at;
}

/* Replaces @size bytes at @at by @with. */
static void replace(struct text *t, size_t at, size_t size, const char *with)
{
	size_t length = strlen(with), rest = t->size - at - size;
	t->data = xgrow(t->data, &t->capacity, t->size + length, 1);
	memmove(t->data + at + length, t->data + at + size, rest);
	memcpy(t->data + at, with, length);
	t->size = at + length + rest;
}

/* -- changes that keep the form -- */

/* A field at or after @at that is a number, or whose first letters are; 0: none. */
static size_t number_after(const struct text *t, size_t *at)
{
	size_t n = 0;
	while (*at < t->size && (*at == 0 || t->data[*at - 1] != ' '))
		++*at;
	while (*at + n < t->size && strchr("0123456789abcdef", t->data[*at + n]))
		n++;
	return n;
}

/* A number is replaced by one of the file, one of a few, or an extreme value of a type. */
static void change_number(struct text *t)
{
	static const char *const edges[] = {
		"0", "1", "2", "7", "255", "4096", "65535", "4294967295", "1099511627776",
		"9223372036854775807", "9223372036854775808", "18446744073709551615",
	};
	char number[24] = "";
	size_t at = any(t->size), from = any(t->size);
	size_t size = number_after(t, &at), length = number_after(t, &from);
	if (!size)
		return;
	if (any(4) && length && length < sizeof(number))
		memcpy(number, t->data + from, length);
	else if (any(2))
		snprintf(number, sizeof(number), "%zu", any(20));
	else
		strcpy(number, edges[any(sizeof(edges) / sizeof(edges[0]))]);
	replace(t, at, size, number);
}

static uint64_t any_number(void)
{
	uint64_t n = hash_u64(++seed);
	return any(3) ? n % 4 : any(8) ? n % 100000 : n >> any(64);
}

static uint64_t any_address(void)
{
	return any(8) ? 0x5000 + 16 * any(40) : any_number();
}

/* An event of any kind, with all fields that its letter has: A address, N number; see events.c. */
static void new_event(char *line, size_t size, uint64_t time)
{
	static const char *const kinds[] = {
		"aANN", "RAANN", "fA", "jA", "bA", "rAAN", "mAN", "uAN", "sN", "cAANN",
		"tA", "pN", "kA", "dA", "oAN", "qNN", "zAN",
	};
	const char *kind = kinds[any(sizeof(kinds) / sizeof(kinds[0]))];
	int n = snprintf(line, size, "%c %llu %zu %zu %zu", *kind, (unsigned long long)time,
			 any(3), any(30), any(3));
	for (const char *field = kind + 1; *field; field++)
		n += snprintf(line + n, size - (size_t)n, *field == 'A' ? " %llx" : " %llu",
			      (unsigned long long)(*field == 'A' ? any_address() : any_number()));
	if (!any(4) && !strchr("tkd", *kind))
		n += snprintf(line + n, size - (size_t)n, " %llx",
			      (unsigned long long)any_address());
	snprintf(line + n, size - (size_t)n, "\n");
}

/* Other lines. */
static void new_record(char *line, size_t size)
{
	static const char *const lines[] = {
		"x %zu\n", "g %zu\n", "w %zu 7 1000\n", "y %zu 1\n", "# %zu\n", "v key %zu\n",
		"l %zu 5000 6000 0 /usr/bin/x\n", "i 7 %zu 12 0 main\tx.c\t/usr\n",
		"i 7 0 %zu 1 main\\x41\\t\t\t\n",
	};
	snprintf(line, size, lines[any(sizeof(lines) / sizeof(lines[0]))], any(4));
}

/* A new line before any other that is not one of the first two, mostly at its time. */
static void add_line(struct text *t)
{
	size_t at = any_line(t);
	char line[256], begin[64] = "";
	unsigned long long time = 0;
	memcpy(begin, t->data + at, MIN(sizeof(begin) - 1, t->size - at));
	if (at == 0 || *begin == 'h')
		return;
	if (sscanf(begin, "%*[a-z] %llu", &time) != 1 || !any(8))
		time = any_number();
	if (any(4))
		new_event(line, sizeof(line), time);
	else
		new_record(line, sizeof(line));
	replace(t, at, 0, line);
}

/* A line replaces another one or a part of it, or is repeated. */
static void copy_line(struct text *t)
{
	char line[256] = "";
	size_t from = any_line(t), to = any_line(t), size = line_size(t, to);
	memcpy(line, t->data + from, MIN(sizeof(line) - 1, line_size(t, from)));
	replace(t, to, any(2) ? 0 : any(8) ? size : any(size), line);
}

/* -- changes that mostly make it invalid -- */

static void spoil_byte(struct text *t)
{
	static const char bytes[] = "0123456789abcdef \n\\tx-#\0\xffnlgiafbrmusxeh";
	size_t at = any(t->size);
	if (any(2))
		t->data[at] = bytes[any(sizeof(bytes) - 1)];
	else
		t->data[at] ^= (char)(1u << any(8));
}

static void mutate(struct text *t)
{
	size_t at = any_line(t);
	switch (any(24)) {
	case 0:
		spoil_byte(t);
		break;
	case 1:
		t->size = any(8) ? t->size : any(t->size) + 1;
		break;
	case 2:
		replace(t, at, line_size(t, at), "");
		break;
	case 3:
		copy_line(t);
		break;
	case 4: case 5: case 6: case 7: case 8: case 9: case 10: case 11:
		change_number(t);
		break;
	default:
		add_line(t);
	}
}

static struct profile *profile;
static const struct text *fed;

static char crash[4096];

/* After a file that made it fail. */
static void keep_file(void)
{
	FILE *f = fopen(crash, "w");
	if (!f)
		return;
	fwrite(fed->data, 1, fed->size, f);
	fclose(f);
	fprintf(stderr, "fuzz_events 0 %s does it again\n", crash);
}

static void on_abort(int sig)
{
	keep_file();
	_exit(128 + sig);
}

void __asan_set_death_callback(void (*fn)(void)) __attribute__((weak));

/* Beside @program. */
static void keep_what_breaks_it(const char *program)
{
	snprintf(crash, sizeof(crash), "%s.crash", program);
	signal(SIGABRT, on_abort);
	if (__asan_set_death_callback)
		__asan_set_death_callback(keep_file);
}

static void on_header(void *ctx, const char *command, uint32_t pid, uint64_t start_ns)
{
	profile_start(profile, start_ns);
}

static void on_module(void *ctx, const struct events_module *m)
{
	CHECK(m->id && (m->path ? m->start < m->end : !m->end));
}

static void on_name(void *ctx, const struct events_name *n)
{
	CHECK(!n->name || *n->name);
}

static void on_value(void *ctx, const char *key, const char *value)
{
	CHECK(*key && value);
}

static void on_total(void *ctx, uint8_t function, const struct call_total *total)
{
	CHECK(total);
}

static void on_event(void *ctx, const struct event *ev)
{
	CHECK(ev->node < calltree_node_count(profile_calltree(profile)));
	profile_event(profile, ev);
}

static void on_thread_exit(void *ctx, uint32_t thread)
{
	profile_thread_exit(profile, thread);
}

static void on_end(void *ctx, uint64_t time_ns)
{
	profile_finish(profile, time_ns);
}

static void on_cut(void *ctx, unsigned line)
{
	profile_finish(profile, line);
}

static void on_sampling(void *ctx, uint64_t interval, uint64_t sample_seed)
{
	profile_set_sample_interval(profile, interval);
}

/* Histories contain blocks only: no mapped ranges, no counts. */
static bool has_blocks_only(const struct text *t)
{
	return !memmem(t->data, t->size, "\nm ", 3) && !memmem(t->data, t->size, "\np ", 3);
}

/* Whether the text was accepted. */
static bool feed(const struct text *t)
{
	static const struct events_reader_ops ops = {
		.header = on_header, .module = on_module, .name = on_name, .value = on_value,
		.event = on_event, .thread_exit = on_thread_exit, .end = on_end,
		.sampling = on_sampling, .total = on_total, .cut = on_cut,
	};
	const uint64_t h = hash_u64(t->size); /* the same file, the same options */
	struct profile_options o = {
		.time_unit = (enum time_unit)(h % 2), .peak_inaccuracy = 1.0,
		.detailed_freq = 1 + (uint32_t)(h / 2 % 5), .heap_admin = 8, .alignment = 16,
		.max_snapshots = 10 + (uint32_t)(h / 10 % 30), .peak_at_exit = true,
		.keep_times = h / 300 % 4, .keep_history = h / 300 % 2 && has_blocks_only(t),
	};
	unsigned line = 0;
	const char *why = NULL;
	FILE *f = fmemopen(t->data, t->size, "r");
	profile = profile_new(&o, 0);
	fed = t;
	int r = events_read(f, profile_calltree(profile), &ops, &line, &why);
	CHECK(r == 0 || (r == -EINVAL && line > 0 && why && *why));
	profile_check(profile);
	profile_free(profile);
	fclose(f);
	return r == 0;
}

static void run(struct start *s)
{
	struct text t = {0};
	add_text(&t, s->text.data, s->text.size);
	for (size_t n = 1 + any(8); n > 0 && t.size > 0; n--)
		mutate(&t);
	if (t.size > 0)
		s->good += feed(&t);
	free(t.data);
	s->runs++;
}

/* Whether the mutations reach the code behind the reader. */
static bool report(const struct start *s)
{
	printf("%s: %lu files, %lu of them accepted (%.1f %%)\n", s->path, s->runs, s->good,
	       s->runs ? 100.0 * (double)s->good / (double)s->runs : 0);
	if (s->good || s->runs < ENOUGH)
		return true;
	printf("%s: nothing that is made of it reaches a profile\n", s->path);
	return false;
}

int main(int argc, char **argv)
{
	if (argc < 3) {
		fprintf(stderr, "usage: fuzz_events SECONDS FILE...\n");
		return 2;
	}
	time_t end = time(NULL) + atoi(argv[1]);
	size_t count = (size_t)argc - 2;
	struct start *starts = xcalloc(count, sizeof(*starts));
	bool is_good = true;
	keep_what_breaks_it(argv[0]);
	for (size_t i = 0; i < count; i++) {
		starts[i] = (struct start){.path = argv[2 + i], .text = read_text(argv[2 + i])};
		if (!feed(&starts[i].text)) {
			printf("%s: is refused as it is\n", starts[i].path);
			is_good = false;
		}
	}
	for (size_t i = 0; time(NULL) < end; i++)
		run(&starts[i % count]);
	for (size_t i = 0; i < count; i++) {
		is_good = report(&starts[i]) && is_good;
		free(starts[i].text.data);
	}
	free(starts);
	return is_good ? 0 : 1;
}
