/* Threads that halt together when they are asked to, so that what they have in use can be counted. */
#ifndef PARK_H
#define PARK_H

#include <pthread.h>
#include <stdint.h>

static pthread_mutex_t park_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t park_changed = PTHREAD_COND_INITIALIZER;
static uint64_t parked;
static int must_park;

/* Each thread calls it often. */
static void park_if_asked(void)
{
	if (!__atomic_load_n(&must_park, __ATOMIC_RELAXED))
		return;
	pthread_mutex_lock(&park_mutex);
	parked++;
	pthread_cond_broadcast(&park_changed);
	while (must_park)
		pthread_cond_wait(&park_changed, &park_mutex);
	parked--;
	pthread_cond_broadcast(&park_changed);
	pthread_mutex_unlock(&park_mutex);
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

#endif
