/* Threads that halt together when they are asked to, so that what they have in use can be counted. */
#ifndef PARK_H
#define PARK_H

#include <pthread.h>
#include <stdint.h>

static pthread_mutex_t park_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t park_changed = PTHREAD_COND_INITIALIZER;
static uint64_t parked, park_turns;
static int must_park;

/* Each thread calls it often. True if the thread was parked and has a turn: it parks again soon. */
static inline int park_if_asked(void)
{
	uint64_t turns;
	int is_turn;

	if (!__atomic_load_n(&must_park, __ATOMIC_RELAXED))
		return 0;
	pthread_mutex_lock(&park_mutex);
	turns = park_turns;
	parked++;
	pthread_cond_broadcast(&park_changed);
	while (must_park && turns == park_turns)
		pthread_cond_wait(&park_changed, &park_mutex);
	is_turn = turns != park_turns;
	if (!is_turn) {
		parked--;
		pthread_cond_broadcast(&park_changed);
	}
	pthread_mutex_unlock(&park_mutex);
	return is_turn;
}

/* Asks all @count threads to park, or to continue; returns when they have done so. */
static void park_set(int is_asked, uint64_t count)
{
	pthread_mutex_lock(&park_mutex);
	__atomic_store_n(&must_park, is_asked, __ATOMIC_RELAXED);
	pthread_cond_broadcast(&park_changed);
	while (parked != (is_asked ? count : 0))
		pthread_cond_wait(&park_changed, &park_mutex);
	pthread_mutex_unlock(&park_mutex);
}

/* Gives each of @count parked threads a turn; returns when they have parked again. */
static inline void park_turn(uint64_t count)
{
	pthread_mutex_lock(&park_mutex);
	park_turns++;
	parked = 0;
	pthread_cond_broadcast(&park_changed);
	while (parked != count)
		pthread_cond_wait(&park_changed, &park_mutex);
	pthread_mutex_unlock(&park_mutex);
}

#endif
