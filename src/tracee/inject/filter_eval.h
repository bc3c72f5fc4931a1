/* What a seccomp filter, a program in classic BPF, answers to a system call. */
#ifndef PTMEM_TRACEE_INJECT_FILTER_EVAL_H
#define PTMEM_TRACEE_INJECT_FILTER_EVAL_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FILTER_WORDS 16u /* of struct seccomp_data */

/* The call: struct seccomp_data in words of 32 bits, of which some are known. */
struct filter_input {
	uint32_t word[FILTER_WORDS];
	uint32_t known; /* bit N: word[N] */
};

/*
 * Whether the filter allows the call, whatever the unknown words are: each path ends in
 * SECCOMP_RET_ALLOW or SECCOMP_RET_LOG. False if the program is not one that the kernel accepts.
 */
bool filter_allows(const struct sock_filter *code, size_t count, const struct filter_input *input);

#endif
