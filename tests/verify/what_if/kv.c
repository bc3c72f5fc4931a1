/*
 * A store with four threads that insert, replace and delete under locks, each with requests and
 * replies of its own; at the end nine of ten keys are deleted. For scripts/what_if_table.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 65536, LOCKS = 64, THREADS = 4, KEYS = 100000, ROUNDS = 120000 };

struct entry {
	struct entry *next;
	unsigned key;
	char *value;
};

static struct entry *table[BUCKETS];
static pthread_mutex_t lock[LOCKS];

static unsigned next_random(unsigned *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

static void set(unsigned key, unsigned size)
{
	unsigned bucket = key % BUCKETS;

	pthread_mutex_lock(&lock[bucket % LOCKS]);
	struct entry *e = table[bucket];

	while (e && e->key != key)
		e = e->next;
	if (!e) {
		e = malloc(sizeof(*e));
		*e = (struct entry){table[bucket], key, NULL};
		table[bucket] = e;
	}
	free(e->value);
	e->value = memset(malloc(size), 1, size);
	pthread_mutex_unlock(&lock[bucket % LOCKS]);
}

static void delete(unsigned key)
{
	unsigned bucket = key % BUCKETS;

	pthread_mutex_lock(&lock[bucket % LOCKS]);
	struct entry **at = &table[bucket];

	while (*at && (*at)->key != key)
		at = &(*at)->next;
	if (*at) {
		struct entry *e = *at;

		*at = e->next;
		free(e->value);
		free(e);
	}
	pthread_mutex_unlock(&lock[bucket % LOCKS]);
}

static void *serve(void *arg)
{
	unsigned state = (unsigned)(size_t)arg * 7919 + 1;

	for (int i = 0; i < ROUNDS; i++) {
		char *request = memset(malloc(100 + next_random(&state) % 900), 1, 100);
		unsigned key = next_random(&state) % KEYS;

		if (next_random(&state) % 4)
			set(key, 16 + next_random(&state) % (i < ROUNDS / 2 ? 600 : 200));
		else
			delete(key);
		char *reply = malloc(64 + next_random(&state) % 200);

		reply[0] = 1;
		free(request);
		free(reply);
	}
	return NULL;
}

int main(void)
{
	pthread_t id[THREADS];

	for (int i = 0; i < LOCKS; i++)
		pthread_mutex_init(&lock[i], NULL);
	for (size_t i = 0; i < THREADS; i++)
		pthread_create(&id[i], NULL, serve, (void *)(i + 1));
	for (int i = 0; i < THREADS; i++)
		pthread_join(id[i], NULL);
	for (unsigned key = 0; key < KEYS; key++)
		if (key % 10)
			delete(key);
	return 0;
}
