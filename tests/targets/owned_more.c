/*
 * More variables that own structures, see owned.h: intrusive lists and trees, pointers with tags in
 * their low bits, variables of threads and of frames.
 */
#include <pthread.h>
#include <stdint.h>
#include <unistd.h>

#include "owned.h"

enum { COUNT = 300, LEVELS = 8, BUCKETS = 32, FANOUT = 16, ROOM = 64 };

static uint32_t seed = 1;

static uint32_t pick(uint32_t below)
{
	seed = seed * 1103515245u + 12345u;
	return (seed >> 8) % below;
}

/* -- a skip list -- */

struct tower {
	uint64_t key;
	struct tower *next[];
};

static struct tower *towers[LEVELS];

static void fill_towers(void)
{
	for (uint64_t key = COUNT; key > 0; key--) {
		unsigned height = 1;

		while (height < LEVELS && pick(2))
			height++;
		struct tower *t = make(sizeof(*t) + height * sizeof(*t->next));

		t->key = key;
		for (unsigned i = 0; i < height; i++) {
			t->next[i] = towers[i];
			towers[i] = t;
		}
	}
}

static void drop_towers(void)
{
	struct tower *t = towers[0];

	while (t) {
		struct tower *next = t->next[0];

		drop(t);
		t = next;
	}
	memset(towers, 0, sizeof(towers));
}

/* -- chains that point back to where the pointer to them is -- */

struct chained {
	char *text;
	struct chained *next, **back;
};

struct chained *chains[BUCKETS];

static void fill_chains(void)
{
	for (unsigned i = 0; i < COUNT; i++) {
		struct chained *c = make(sizeof(*c)), **head = &chains[i % BUCKETS];

		c->text = make(10 + i % 70);
		c->next = *head;
		if (*head)
			(*head)->back = &c->next;
		c->back = head;
		*head = c;
	}
}

static void drop_chains(void)
{
	for (unsigned i = 0; i < BUCKETS; i++)
		while (chains[i]) {
			struct chained *c = chains[i];

			chains[i] = c->next;
			drop(c->text);
			drop(c);
		}
}

/* -- a cache: a hash table and a list by use, both through the same entries -- */

struct link {
	struct link *next, *previous;
};

struct entry {
	struct entry *same_bucket;
	char *value;
	struct link by_use;
};

static struct {
	struct entry **bucket;
	struct link *by_use;    /* a block of its own */
} cache;

static void fill_cache(void)
{
	cache.bucket = make(BUCKETS * sizeof(*cache.bucket));
	cache.by_use = make(sizeof(*cache.by_use));
	*cache.by_use = (struct link){cache.by_use, cache.by_use};
	for (unsigned i = 0; i < COUNT; i++) {
		struct entry *e = make(sizeof(*e)), **bucket = &cache.bucket[pick(BUCKETS)];

		e->same_bucket = *bucket;
		*bucket = e;
		e->value = make(20 + pick(200));
		e->by_use = (struct link){cache.by_use, cache.by_use->previous};
		cache.by_use->previous->next = &e->by_use;
		cache.by_use->previous = &e->by_use;
	}
}

static void drop_cache(void)
{
	for (struct link *l = cache.by_use->next; l != cache.by_use;) {
		struct entry *e = (struct entry *)((char *)l - offsetof(struct entry, by_use));

		l = l->next;
		drop(e->value);
		drop(e);
	}
	drop(cache.by_use);
	drop(cache.bucket);
	memset(&cache, 0, sizeof(cache));
}

/* -- a tree inside of items, with a colour in the lowest bit of the pointer to the parent -- */

struct vertex {
	uintptr_t parent;
	struct vertex *child[2];
};

struct fruit {
	uint64_t number;
	char *name;
	struct vertex vertex;
};

struct vertex *orchard;

static void fill_orchard(void)
{
	for (uint64_t i = 0; i < COUNT; i++) {
		struct fruit *f = make(sizeof(*f));
		struct vertex **at = &orchard;
		uintptr_t parent = 0;

		f->number = i;
		f->name = make(1 + i % 40);
		while (*at) {
			parent = (uintptr_t)*at;
			at = &(*at)->child[pick(2)];
		}
		f->vertex.parent = parent | (i & 1);
		*at = &f->vertex;
	}
}

static void drop_vertex(struct vertex *v)
{
	if (!v)
		return;
	drop_vertex(v->child[0]);
	drop_vertex(v->child[1]);
	struct fruit *f = (struct fruit *)((char *)v - offsetof(struct fruit, vertex));

	drop(f->name);
	drop(f);
}

static void drop_orchard(void)
{
	drop_vertex(orchard);
	orchard = NULL;
}

/* -- a trie: the two lowest bits say what a pointer leads to -- */

enum { IS_LEAF = 1, IS_INNER = 2, TAGS = 3 };

struct fan {
	uintptr_t child[FANOUT];
};

static uintptr_t trie;

static uintptr_t make_trie(unsigned depth)
{
	if (depth == 0)
		return (uintptr_t)make(24 + pick(60)) | IS_LEAF;
	struct fan *f = make(sizeof(*f));

	for (unsigned i = 0; i < FANOUT; i++)
		f->child[i] = pick(3) ? 0 : make_trie(depth - 1);
	return (uintptr_t)f | IS_INNER;
}

static void drop_child(uintptr_t child)
{
	struct fan *f = (void *)(child & ~(uintptr_t)TAGS);

	for (unsigned i = 0; child & IS_INNER && i < FANOUT; i++)
		drop_child(f->child[i]);
	drop(f);
}

static void drop_trie(void)
{
	drop_child(trie);
	trie = 0;
}

/* -- a graph with edges in all directions -- */

struct city {
	struct city **roads;
	char *name;
};

struct city **cities;

static void fill_cities(void)
{
	cities = make(COUNT * sizeof(*cities));
	for (unsigned i = 0; i < COUNT; i++) {
		cities[i] = make(sizeof(*cities[i]));
		cities[i]->name = make(4 + pick(30));
		cities[i]->roads = make(5 * sizeof(struct city *));
	}
	for (unsigned i = 0; i < COUNT; i++)
		for (unsigned k = 0; k < 4; k++)
			cities[i]->roads[k] = cities[pick(COUNT)];
}

static void drop_cities(void)
{
	for (unsigned i = 0; i < COUNT; i++) {
		drop(cities[i]->roads);
		drop(cities[i]->name);
		drop(cities[i]);
	}
	drop(cities);
	cities = NULL;
}

/* -- an arena: objects in chunks, which point to each other -- */

struct chunk {
	struct chunk *previous;
	uint64_t used;
	char *object[ROOM];
};

static struct chunk *arena;

static void fill_arena(void)
{
	for (unsigned i = 0; i < COUNT; i++) {
		if (!arena || arena->used == ROOM) {
			struct chunk *c = make(sizeof(*c));

			c->previous = arena;
			arena = c;
		}
		/* into the chunk itself, or the one before */
		struct chunk *c = arena->previous && pick(2) ? arena->previous : arena;

		arena->object[arena->used++] = (char *)&c->object[pick(ROOM)];
	}
}

static void drop_arena(void)
{
	while (arena) {
		struct chunk *c = arena;

		arena = c->previous;
		drop(c);
	}
}

/* -- rows, a ring of pointers, a callback with its context -- */

double **rows;

static void drop_rows(void)
{
	for (unsigned i = 0; i < ROOM; i++)
		drop(rows[i]);
	drop(rows);
	rows = NULL;
}

static struct {
	uint64_t head, tail;
	void **place;
} jobs;

static void fill_jobs(void)
{
	jobs.place = make(ROOM * sizeof(*jobs.place));
	for (jobs.tail = 50; jobs.head < 100; jobs.head++)
		if (jobs.head >= jobs.tail)
			jobs.place[jobs.head % ROOM] = make(100 + pick(100));
}

static void drop_jobs(void)
{
	for (; jobs.tail < jobs.head; jobs.tail++)
		drop(jobs.place[jobs.tail % ROOM]);
	drop(jobs.place);
	jobs.place = NULL;
}

struct context {
	char *text[3];
};

static void call_back(struct context *c)
{
	for (unsigned i = 0; i < 3; i++)
		drop(c->text[i]);
	drop(c);
}

struct {
	void (*call)(struct context *c);
	struct context *context;
} callback = {.call = call_back};

static void drop_callback(void)
{
	callback.call(callback.context);
	callback.context = NULL;
}

/* -- variables of two threads, and of frames -- */

static _Thread_local struct chunk *pool;
static _Thread_local char *names[10];
static struct chunk **of_other_pool;
static char **of_other_names;
static void *volatile *of_frame, *volatile *of_array;
static pthread_barrier_t is_ready;

static void fill_thread(void)
{
	for (unsigned i = 0; i < 10; i++) {
		struct chunk *c = make(sizeof(*c));

		c->previous = pool;
		pool = c;
		names[i] = make(1 + i * 11);
	}
}

static void drop_chunks(struct chunk **list)
{
	while (*list) {
		struct chunk *c = *list;

		*list = c->previous;
		drop(c);
	}
}

static void drop_names_of(char **list)
{
	for (unsigned i = 0; i < 10; i++) {
		drop(list[i]);
		list[i] = NULL;
	}
}

static void drop_pool(void)
{
	drop_chunks(&pool);
}

static void drop_names(void)
{
	drop_names_of(names);
}

static void drop_other_pool(void)
{
	drop_chunks(of_other_pool);
}

static void drop_other_names(void)
{
	drop_names_of(of_other_names);
}

/* What the innermost of many frames has. */
static void drop_frame(void)
{
	drop(*of_frame);
	*of_frame = NULL;
}

/* An array in main. */
static void drop_array(void)
{
	for (unsigned i = 0; i < 20; i++) {
		drop(of_array[i]);
		of_array[i] = NULL;
	}
}

NOINLINE static void descend(unsigned depth)
{
	void *volatile held = depth == 0 ? make(5000) : NULL;

	if (depth > 0)
		descend(depth - 1);
	of_frame = depth == 0 ? &held : of_frame;
	pthread_barrier_wait(&is_ready);
	pause();
}

static void *run_thread(void *arg)
{
	fill_thread();
	of_other_pool = &pool;
	of_other_names = names;
	descend(20);
	return arg;
}

/* -- commands -- */

static const struct owned variables[] = {
	{"towers", drop_towers}, {"chains", drop_chains}, {"cache", drop_cache},
	{"orchard", drop_orchard}, {"trie", drop_trie}, {"cities", drop_cities},
	{"arena", drop_arena}, {"rows", drop_rows}, {"jobs", drop_jobs},
	{"callback", drop_callback}, {"pool", drop_pool}, {"names", drop_names},
	{"other_pool", drop_other_pool}, {"other_names", drop_other_names},
	{"frame", drop_frame}, {"array", drop_array},
};

static void obey(const char *name)
{
	drop_named(variables, sizeof(variables) / sizeof(*variables), name);
}

static void fill(void)
{
	fill_towers();
	fill_chains();
	fill_cache();
	fill_orchard();
	trie = make_trie(4);
	fill_cities();
	fill_arena();
	rows = make(ROOM * sizeof(*rows));
	for (unsigned i = 0; i < ROOM; i++)
		rows[i] = make((i + 1) * sizeof(**rows));
	fill_jobs();
	callback.context = make(sizeof(*callback.context));
	for (unsigned i = 0; i < 3; i++)
		callback.context->text[i] = make(100 * (i + 1));
	fill_thread();
}

int main(void)
{
	void *volatile held[20];
	pthread_t thread;

	fill();
	for (unsigned i = 0; i < 20; i++)
		held[i] = make(50 + i);
	of_array = held;
	stays = make(1);
	pthread_barrier_init(&is_ready, NULL, 2);
	if (pthread_create(&thread, NULL, run_thread, NULL) != 0)
		return 1;
	pthread_barrier_wait(&is_ready);
	obey_lines(obey);
	return 0;
}
