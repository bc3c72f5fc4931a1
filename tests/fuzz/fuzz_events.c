/*
 * Feeds spoilt event files to the reader and what it lets through to a profile:
 * no crash, no hang, a line and a reason for each refusal, and the invariants
 * hold. Run it under ASan; run_events.sh does.
 *
 *	fuzz_events SECONDS FILE...     mutations of FILE until the time is over
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/log.h"
#include "profile/events.h"
#include "profile/events_read.h"
#include "profile/profile.h"
#include "profile/profile_check.h"

struct text {
	char *data;
	size_t size;
};

static uint64_t seed;

static size_t any(size_t below)
{
	return below ? (size_t)(hash_u64(++seed) % below) : 0;
}

static struct text read_text(const char *path)
{
	struct text t = { 0 };
	size_t capacity = 0;
	FILE *f = fopen(path, "r");
	if (!f) {
		perror(path);
		exit(1);
	}
	for (int c; (c = getc(f)) != EOF && t.size < 20000; t.size++) {
		t.data = xgrow(t.data, &capacity, t.size + 1, 1);
		t.data[t.size] = (char)c;
	}
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

/* Most changes keep the form of the text, so that the reader gets far. */
static void mutate(struct text *t)
{
	static const char bytes[] = "0123456789abcdef \n\\tx-#\0\xffnlgiafbrmusxeh";
	size_t at = any(t->size), from = any_line(t), to = any_line(t);
	size_t n = line_size(t, from) < line_size(t, to) ? line_size(t, from) : line_size(t, to);
	switch (any(6)) {
	case 0:
		t->data[at] = bytes[any(sizeof(bytes) - 1)];
		break;
	case 1:
		t->data[at] ^= (char)(1u << any(8));
		break;
	case 2: /* a number becomes another one */
		while (at < t->size && (t->data[at] < '0' || t->data[at] > '9'))
			at++;
		if (at < t->size)
			t->data[at] = (char)('0' + any(10));
		break;
	case 3: /* a line over another one, or over a part of it */
		memmove(t->data + to, t->data + from, n);
		break;
	case 4: /* a line goes */
		n = line_size(t, from);
		memmove(t->data + from, t->data + from + n, t->size - from - n);
		t->size -= n;
		break;
	case 5:
		if (!any(20))
			t->size = at + 1;
		break;
	}
}

static struct profile *profile;

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

static void on_sampling(void *ctx, uint64_t interval, uint64_t sample_seed)
{
	profile_set_sample_interval(profile, interval);
}

/* Whether the text was good. */
static bool feed(const struct text *t)
{
	static const struct events_reader_ops ops = {
		.header = on_header, .module = on_module, .name = on_name, .value = on_value,
		.event = on_event, .thread_exit = on_thread_exit, .end = on_end,
		.sampling = on_sampling, .total = on_total,
	};
	struct profile_options o = { .time_unit = (enum time_unit)any(2), .peak_inaccuracy = 1.0,
				     .detailed_freq = 1 + (uint32_t)any(5), .max_snapshots = 10 + (uint32_t)any(30),
				     .heap_admin = 8, .alignment = 16, .peak_at_exit = true };
	unsigned line = 0;
	const char *why = NULL;
	FILE *f = fmemopen(t->data, t->size, "r");
	profile = profile_new(&o, 0);
	int r = events_read(f, profile_calltree(profile), &ops, &line, &why);
	CHECK(r == 0 || (r == -EINVAL && line > 0 && why && *why));
	profile_check(profile);
	profile_free(profile);
	fclose(f);
	return r == 0;
}

int main(int argc, char **argv)
{
	unsigned long runs = 0, good = 0;
	if (argc < 3) {
		fprintf(stderr, "usage: fuzz_events SECONDS FILE...\n");
		return 2;
	}
	time_t end = time(NULL) + atoi(argv[1]);
	while (time(NULL) < end) {
		struct text t = read_text(argv[2 + runs % (unsigned long)(argc - 2)]);
		for (size_t n = any(8); n > 0 && t.size > 0; n--)
			mutate(&t);
		if (t.size > 0)
			good += feed(&t);
		free(t.data);
		runs++;
	}
	printf("fuzz_events: %lu files, %lu of them accepted\n", runs, good);
	return 0;
}
