/* See injected_calls.h. */
#include "tracee/inject/injected_calls.h"

#include <linux/seccomp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/types.h"
#include "tracee/inject/filter_eval.h"

/* linux/memfd.h; without it the kernel logs a warning, and vm.memfd_noexec=2 may forbid the call */
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x8u
#endif

#define ARG(n) (1u << (n))
#define CODE (PROT_READ | PROT_EXEC)
#define DATA (PROT_READ | PROT_WRITE)
#define CODE_FLAGS (MAP_PRIVATE | MAP_ANONYMOUS)
#define DATA_FLAGS (MAP_SHARED | MAP_NORESERVE)
#define NO_FILE ((uint64_t)-1)
#define FILE_FLAGS (MFD_CLOEXEC | MFD_ALLOW_SEALING)
#define ANONYMOUS (ARG(2) | ARG(3) | ARG(4) | ARG(5))
#define OF_FILE (ARG(2) | ARG(3) | ARG(5))

const struct injected_call injected_calls[INJECTED_CALLS] = {
	[CALL_MAP_HANDLER] = {"mmap", SYS_mmap, ANONYMOUS,
			      {0, 0, CODE, CODE_FLAGS | MAP_NORESERVE, NO_FILE, 0}},
	[CALL_UNMAP] = {"munmap", SYS_munmap, 0, {0}},
	[CALL_MAP_AREA] = {"mmap", SYS_mmap, ANONYMOUS,
			   {0, 0, CODE, CODE_FLAGS | MAP_FIXED_NOREPLACE, NO_FILE, 0}},
	[CALL_MAP_CODE] = {"mmap", SYS_mmap, ANONYMOUS, {0, 0, CODE, CODE_FLAGS, NO_FILE, 0}},
	[CALL_CREATE_FILE] = {"memfd_create", SYS_memfd_create, ARG(1),
			      {0, FILE_FLAGS | MFD_NOEXEC_SEAL}},
	[CALL_CREATE_FILE_OLD] = {"memfd_create", SYS_memfd_create, ARG(1), {0, FILE_FLAGS}},
	[CALL_MAP_FILE] = {"mmap", SYS_mmap, OF_FILE, {0, 0, DATA, DATA_FLAGS, 0, 0}},
	[CALL_MAP_FILE_OVER] = {"mmap", SYS_mmap, OF_FILE,
				{0, 0, DATA, DATA_FLAGS | MAP_FIXED, 0, 0}},
	[CALL_CLOSE] = {"close", SYS_close, 0, {0}},
	[CALL_BRK] = {"brk", SYS_brk, ARG(0), {0}},
	[CALL_SET_ACTION] = {"rt_sigaction", SYS_rt_sigaction, ARG(0) | ARG(3), {SIGTRAP, 0, 0, 8}},
	[CALL_SET_MASK] = {"rt_sigprocmask", SYS_rt_sigprocmask, ARG(2) | ARG(3), {0, 0, 0, 8}},
	[CALL_GET_PROCESS] = {"getpid", SYS_getpid, 0, {0}},
	[CALL_GET_THREAD] = {"gettid", SYS_gettid, 0, {0}},
	[CALL_SEND_SIGNAL] = {"rt_tgsigqueueinfo", SYS_rt_tgsigqueueinfo, ARG(2), {0, 0, SIGTRAP}},
	[CALL_END_SIGNAL] = {"rt_sigreturn", SYS_rt_sigreturn, 0, {0}},
};

static bool is_call(const struct injected_call *c, long number, const uint64_t args[6])
{
	bool is_same = c->number == number;
	for (unsigned i = 0; i < 6 && is_same; i++)
		is_same = !(c->known & ARG(i)) || c->arg[i] == args[i];
	return is_same;
}

bool injected_calls_has(long number, const uint64_t args[6])
{
	for (unsigned i = 0; i < INJECTED_CALLS; i++) {
		if (is_call(&injected_calls[i], number, args))
			return true;
	}
	return false;
}

static void set_known(struct filter_input *input, size_t offset, size_t size)
{
	for (size_t i = offset; i < offset + size; i += sizeof(uint32_t))
		input->known |= 1u << (i / sizeof(uint32_t));
}

static struct filter_input make_input(const struct injected_call *c, uint32_t audit_arch)
{
	struct seccomp_data data = {.nr = (int)c->number, .arch = audit_arch};
	struct filter_input input = {0};
	set_known(&input, offsetof(struct seccomp_data, nr), sizeof(data.nr));
	set_known(&input, offsetof(struct seccomp_data, arch), sizeof(data.arch));
	for (unsigned i = 0; i < 6; i++) {
		data.args[i] = c->arg[i];
		if (c->known & ARG(i))
			set_known(&input, offsetof(struct seccomp_data, args[i]), sizeof(uint64_t));
	}
	memcpy(input.word, &data, sizeof(data));
	return input;
}

const struct injected_call *injected_calls_find_forbidden(const struct sock_filter *filter,
							  size_t count, uint32_t audit_arch)
{
	for (unsigned i = 0; i < INJECTED_CALLS; i++) {
		struct filter_input input = make_input(&injected_calls[i], audit_arch);
		if (!filter_allows(filter, count, &input))
			return &injected_calls[i];
	}
	return NULL;
}
