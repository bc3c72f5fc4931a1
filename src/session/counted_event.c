/* The kinds correspond one to one, except for those of profile/event.h that sessions create. */
#include "session/counted_event.h"

static const uint8_t kinds[] = {
	[HEAP_ALLOC] = EVENT_ALLOC,
	[HEAP_FREE] = EVENT_FREE,
	[HEAP_REALLOC_BEGIN] = EVENT_REALLOC_BEGIN,
	[HEAP_REALLOC_END] = EVENT_REALLOC_END,
	[HEAP_MAP] = EVENT_MAP,
	[HEAP_UNMAP] = EVENT_UNMAP,
	[HEAP_MAPPING_CALL] = EVENT_MAPPING_CALL,
	[HEAP_SAMPLE] = EVENT_SAMPLE,
	[HEAP_PROGRAM_END] = EVENT_PROGRAM_END,
	[HEAP_FAULT] = EVENT_COUNT,
};

struct event counted_event(const struct heap_event *he)
{
	return (struct event){
		.time_ns = he->time_ns,
		.thread = he->thread,
		.kind = kinds[he->kind],
		.function = he->function,
		.is_inner = he->is_inner,
		.sample_shift = he->sample_shift,
		.addr = he->addr,
		.old_addr = he->old_addr,
		.size = he->size,
		.align = he->align,
		.weighted = he->weighted,
		.sp = he->sp,
	};
}
