/* The observers of a run. */
#include "session/observer.h"


void observers_add(struct run *run, const struct observer *o)
{
	*vec_add(&run->observers) = o;
}

void observers_remove(struct run *run, const struct observer *o)
{
	size_t kept = 0;

	for (size_t i = 0; i < run->observers.count; i++) {
		if (run->observers.data[i] != o)
			run->observers.data[kept++] = run->observers.data[i];
	}
	run->observers.count = kept;
}
