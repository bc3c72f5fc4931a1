/*
 * Functions that are seen on the stack: NOINLINE functions are not inlined, cloned or merged with
 * identical ones; NO_TAIL_CALL() comes after a call that must not become a jump.
 */
#ifndef NOINLINE_H
#define NOINLINE_H

#if defined(__clang__)
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone, noipa))
#endif
#define NO_TAIL_CALL() __asm__ volatile("" ::: "memory")

#endif
