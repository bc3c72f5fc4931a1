/*
 * jemalloc's size classes: 8, multiples of 16 up to 64, then four for each doubling:
 *
 *	80 96 112 128   160 192 224 256   320 ...
 */
#ifndef PTMEM_INSPECT_JEMALLOC_CLASS_H
#define PTMEM_INSPECT_JEMALLOC_CLASS_H

#include "base/types.h"

#define JEMALLOC_CLASSES 232u

/* The size of blocks of class @i, below JEMALLOC_CLASSES. */
uint64_t jemalloc_class_size(uint32_t i);

#endif
