/* The state of a thread that concerns pads. */
#include "tracee/pads/pad_thread.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "tracee/state/thread.h"

struct pad_thread *pad_thread(struct thread *th)
{
	if (!th->pads)
		th->pads = xcalloc(1, sizeof(*th->pads));
	return th->pads;
}

int pad_thread_slot(const struct thread *th)
{
	return th->pads && th->pads->pointer ? (int)th->pads->slot : -1;
}

void pad_thread_forget(struct thread *th)
{
	free(th->pads);
	th->pads = NULL;
}
