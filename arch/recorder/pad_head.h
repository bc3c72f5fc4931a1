/*
 * What is before a pad's code: arch/CPU/pad.c writes it, and the pad hands it to the recorder.
 */
#ifndef PTMEM_ARCH_RECORDER_PAD_HEAD_H
#define PTMEM_ARCH_RECORDER_PAD_HEAD_H

#include "arch/pad.h"

struct pad_head {
	uint64_t control; /* address of struct pad_control */
	uint64_t enter, leave, raw, finish; /* functions of the recorder */
	uint64_t wait; /* of a short way that found no room in the ring */
	uint64_t after; /* of a marker: the address after it */
	uint64_t mark; /* function and type of the records of the short way */
	struct pad_probe probe;
};

#endif
