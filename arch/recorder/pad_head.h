/*
 * The words before a pad's code: arch/CPU/pad.c writes them, and the pad passes them to the
 * recorder.
 */
#ifndef PTMEM_ARCH_RECORDER_PAD_HEAD_H
#define PTMEM_ARCH_RECORDER_PAD_HEAD_H

#include "arch/pad.h"

struct pad_head {
	uint64_t control; /* address of struct pad_control */
	uint64_t enter, leave, raw, finish; /* functions of the recorder */
	uint64_t after; /* for a marker: the address after it */
	uint64_t mark; /* function and type for the records of the short way */
	struct pad_probe probe;
	uint64_t same_labels; /* a function of the recorder; the code begins at a multiple of 16 */
};

#endif
