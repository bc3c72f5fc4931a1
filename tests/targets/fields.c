/*
 * Objects with fields that hold others. Each line on standard input names a field: what it holds
 * alone, in each object that has it, is freed.
 *
 * expect: as owned.c: the first line is "ready", the answers are "BLOCKS BYTES".
 */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "noinline.h"

enum { SESSIONS = 40, POOLED = 9000, LABELS = 60, VISITS = 700000 };

struct plan {
	char text[100];
};
struct order {
	struct order *next;
	char *name;
};
struct session {
	char kind;
	struct order *orders;
	char open;
	struct order *last;     /* the last one of orders */
	char *user;
	struct plan *plan;      /* of two sessions */
};
static struct {
	struct session *by_user[SESSIONS];
	struct session *newest; /* one of by_user */
	char *name;
} cache;
static struct session *pool;    /* an array: more than 64 KiB words */

struct visit {
	struct session *of;
	double at[5];
};
static struct visit *visits[VISITS]; /* more than 4 MiB: the first, the last, and one between */

static char *label[LABELS];     /* three different ones; the others are empty */

static size_t freed_blocks, freed_bytes;

NOINLINE static void *make(size_t size)
{
	void *p = calloc(1, size);

	NO_TAIL_CALL();
	return p;
}

static void drop(void *p)
{
	freed_blocks += p != NULL;
	freed_bytes += p ? malloc_usable_size(p) : 0;
	free(p);
}

static void fill_session(struct session *s, size_t i)
{
	s->user = make(20 + i % 70);
	for (size_t k = 0; k < i % 5; k++) {
		struct order *o = make(sizeof(*o));

		o->name = make(10 + k * 9);
		o->next = s->orders;
		s->orders = o;
		s->last = s->last ? s->last : o;
	}
}

static void fill(void)
{
	for (size_t i = 0; i < SESSIONS; i++) {
		cache.by_user[i] = make(sizeof(struct session));
		fill_session(cache.by_user[i], i);
		cache.by_user[i]->plan = i % 2 ? cache.by_user[i - 1]->plan :
						 make(sizeof(struct plan));
	}
	cache.newest = cache.by_user[7];
	cache.name = make(50);
	pool = make(POOLED * sizeof(*pool));
	for (size_t i = 0; i < POOLED; i++)
		fill_session(&pool[i], i);
	for (size_t i = 0; i < LABELS; i++) {
		label[i] = make(i == 1 ? 200 : 20);
		strcpy(label[i], i % 4 == 3 ? "" : i % 4 == 2 ? "third\tlabel" :
				 i % 4 == 1 ? "another label" : "a label \x1b[31m");
	}
	strcpy(label[0], "only once");
	for (size_t i = 0; i < 3; i++)
		visits[i * (VISITS - 1) / 2] = make(sizeof(**visits));
	__asm__ volatile("" : : "r"(visits) : "memory"); /* or the compiler removes it */
}

static void each_session(void (*f)(struct session *s))
{
	for (size_t i = 0; i < SESSIONS; i++)
		if (cache.by_user[i])
			f(cache.by_user[i]);
	for (size_t i = 0; i < POOLED; i++)
		f(&pool[i]);
}

static void drop_user(struct session *s)
{
	drop(s->user);
	s->user = NULL;
}

static void drop_names(struct session *s)
{
	for (struct order *o = s->orders; o; o = o->next) {
		drop(o->name);
		o->name = NULL;
	}
}

/* The orders from @o on, but for the last one, which the session holds, too. */
static void drop_orders(struct session *s, struct order **from)
{
	struct order *o = *from, *next;

	*from = NULL;
	for (; o && o != s->last; o = next) {
		next = o->next;
		drop(o->name);
		drop(o);
	}
}

static void drop_next(struct session *s)
{
	if (s->orders)
		drop_orders(s, &s->orders->next);
}

static void drop_first(struct session *s)
{
	drop_orders(s, &s->orders);
}

/* Now it is all that last holds. */
static void drop_last(struct session *s)
{
	if (s->last)
		drop(s->last->name);
	drop(s->last);
	s->last = NULL;
}

/* Plans are only held by these together, and session 7 by newest, too. */
static void drop_by_user(void)
{
	struct plan *kept = cache.newest->plan;

	for (size_t i = 0; i < SESSIONS; i++) {
		struct session *s = cache.by_user[i];

		cache.by_user[i] = NULL;
		if (s == cache.newest)
			continue;
		drop_first(s);
		drop_last(s);
		drop_user(s);
		if (i % 2 == 0 && s->plan != kept)
			drop(s->plan);
		drop(s);
	}
}

static void obey(const char *name)
{
	char answer[64];

	freed_blocks = freed_bytes = 0;
	if (strcmp(name, "user") == 0)
		each_session(drop_user);
	else if (strcmp(name, "name") == 0)
		each_session(drop_names);
	else if (strcmp(name, "next") == 0)
		each_session(drop_next);
	else if (strcmp(name, "orders") == 0)
		each_session(drop_first);
	else if (strcmp(name, "last") == 0)
		each_session(drop_last);
	else if (strcmp(name, "by_user") == 0)
		drop_by_user();
	else if (strcmp(name, "cache.name") == 0) {
		drop(cache.name);
		cache.name = NULL;
	}
	snprintf(answer, sizeof(answer), "%zu %zu\n", freed_blocks, freed_bytes);
	say(answer);
}

int main(void)
{
	fill();
	obey_lines(obey);
	return 0;
}
