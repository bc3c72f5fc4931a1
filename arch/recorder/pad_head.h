/*
 * What arch/CPU/pad.c, the templates of pads and the recorder share: the table at the start of the
 * recorder's code, and the words before a pad's code, which the pad passes to the recorder.
 */
#ifndef PTMEM_ARCH_RECORDER_PAD_HEAD_H
#define PTMEM_ARCH_RECORDER_PAD_HEAD_H

/* The recorder's functions pad_NAME, and instructions in them, in the order of the table. */
#define RECORDER_NAMES(each)                                                                   \
	each(enter_call) each(enter_plain) each(enter_free) each(enter_throw)                  \
	each(enter_labelled) each(enter_marker) each(leave) each(leave_plain) each(raw)        \
	each(raw_marker) each(finish) each(full_trap) each(ticks) each(unsure_load)            \
	each(label_load) each(enter_sample_leaf) each(enter_sample_call)                       \
	each(enter_sample_free) each(leave_sample)

#ifndef __ASSEMBLER__

#include <stdbool.h>

#include "arch/pad.h"

/* Offsets from the start of the recorder's code. */
struct recorder_names {
#define RECORDER_MEMBER(name) uint32_t name;
	RECORDER_NAMES(RECORDER_MEMBER)
#undef RECORDER_MEMBER
};

struct pad_head {
	uint64_t control; /* address of struct pad_control */
	uint64_t enter, leave, raw, finish; /* functions of the recorder */
	uint64_t after; /* for a marker: the address after it */
	uint64_t mark; /* function and type for the records of the short way */
	struct pad_probe probe;
	uint64_t same_labels; /* a function of the recorder; the code begins at a multiple of 16 */
};

static inline bool pad_is_release(const struct pad_probe *p)
{
	return p->kind == PAD_FREE || p->kind == PAD_DELETE;
}

static inline bool pad_is_marker(const struct pad_probe *p)
{
	return p->kind >= PAD_REQUEST;
}

/*
 * Whether the recorder's short way is sufficient: the first argument is the size, the others do not
 * matter.
 */
static inline bool pad_is_plain(const struct pad_probe *p)
{
	return p->kind == PAD_ALLOC && p->size_arg == 0 && p->count_arg == PAD_NO_ARG &&
	       p->align_arg == PAD_NO_ARG && p->out_arg == PAD_NO_ARG && p->fixed_align == 0 &&
	       !p->is_string;
}

/* The function of the recorder, among @names, that the pad of @request enters. */
static inline uint32_t pad_enter_function(const struct pad_request *request,
					  const struct recorder_names *names)
{
	const struct pad_probe *p = &request->probe;

	if (request->is_sampling && p->kind <= PAD_DELETE)
		return p->kind == PAD_FREE ? names->enter_sample_free :
		       p->is_leaf	   ? names->enter_sample_leaf :
					     names->enter_sample_call;
	return p->kind == PAD_FREE	  ? names->enter_free :
	       p->kind == PAD_THROW_CHECK ? names->enter_throw :
	       p->kind == PAD_LABELLED	  ? names->enter_labelled :
	       pad_is_marker(p)		  ? names->enter_marker :
	       pad_is_plain(p)		  ? names->enter_plain :
					    names->enter_call;
}

/* The head of the pad of @request, whose original returns to @after; without same_labels. */
static inline struct pad_head pad_make_head(const struct pad_request *request,
					    const struct recorder_names *names, uint64_t after)
{
	const struct pad_probe *p = &request->probe;
	uint32_t leave = request->is_sampling && p->kind <= PAD_DELETE ? names->leave_sample :
			 pad_is_plain(p) ? names->leave_plain : names->leave;

	return (struct pad_head){
		.control = request->control,
		.enter = request->recorder + pad_enter_function(request, names),
		.leave = request->recorder + leave,
		.raw = request->recorder + (pad_is_marker(p) ? names->raw_marker : names->raw),
		.finish = request->recorder + names->finish,
		.after = after,
		.mark = (uint32_t)p->function << 4 |
			(pad_is_release(p) ? PAD_RECORD_FREE : PAD_RECORD_SAME),
		.probe = *p,
	};
}

#endif
#endif
