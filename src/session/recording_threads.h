/* Names of a process's threads read from /proc: each is recorded once. */
#ifndef PTMEM_RECORDING_THREADS_H
#define PTMEM_RECORDING_THREADS_H

#include "recording/recording.h"

struct recording_threads {
	pid_t pid;
	struct recording *known;   /* the owner's: texts */
	/* by the number of the text "thread.ID": that of the name of the thread; 0 = not known */
	VEC(uint32_t) name;
};

struct thread_name {
	char key[32];              /* "thread.ID" */
	char name[64];
};

void recording_threads_deinit(struct recording_threads *t);

/* The name of @thread; false if it has none any more, or still the one that was read before. */
bool recording_threads_read(struct recording_threads *t, uint32_t thread, struct thread_name *out);

#endif
