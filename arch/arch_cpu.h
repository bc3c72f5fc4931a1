/*
 * The sizes that differ between CPUs, as constants: of registers, instructions, addresses and
 * unwind rules. This file alone chooses a CPU; a new one has its line here.
 */
#ifndef PTMEM_ARCH_ARCH_CPU_H
#define PTMEM_ARCH_ARCH_CPU_H

#if defined(__x86_64__)
#include "arch/x86_64/x86_64_cpu.h"
#else
#error "ptmem does not know this CPU: see doc/porting.md"
#endif

#endif
