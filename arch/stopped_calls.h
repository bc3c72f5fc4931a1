/*
 * System calls, of all CPUs, that fail with EINTR after a mere stop (signal(7)): rows of a CPU's
 * arch.stopped_calls, which adds those that it alone has.
 */
#ifndef PTMEM_ARCH_STOPPED_CALLS_H
#define PTMEM_ARCH_STOPPED_CALLS_H

#include <sys/syscall.h>

#include "arch/arch.h"

#define STOPPED_CALLS \
	{SYS_epoll_pwait, TIMEOUT_MS, 4, 5}, \
	{SYS_epoll_pwait2, TIMEOUT_POINTER, 4, 5}, \
	{SYS_semop, TIMEOUT_NEVER, 0, 0}, \
	{SYS_semtimedop, TIMEOUT_POINTER, 4, 0}, \
	{SYS_rt_sigtimedwait, TIMEOUT_POINTER, 3, 0}, \
	{SYS_io_getevents, TIMEOUT_POINTER, 5, 0}, \
	{SYS_io_pgetevents, TIMEOUT_POINTER, 5, 6}, \
	{SYS_msgrcv, TIMEOUT_NEVER, 0, 0}, \
	{SYS_msgsnd, TIMEOUT_NEVER, 0, 0}, \
	/* of sockets that have a timeout */ \
	{.nr = SYS_read, .timeout = TIMEOUT_HIDDEN}, \
	{.nr = SYS_readv, .timeout = TIMEOUT_HIDDEN}, \
	{.nr = SYS_recvfrom, .timeout = TIMEOUT_HIDDEN}, \
	{.nr = SYS_recvmsg, .timeout = TIMEOUT_HIDDEN}, \
	{.nr = SYS_recvmmsg, .timeout = TIMEOUT_HIDDEN}, \
	{.nr = SYS_write, .timeout = TIMEOUT_HIDDEN}, \
	{.nr = SYS_writev, .timeout = TIMEOUT_HIDDEN}, \
	{.nr = SYS_sendto, .timeout = TIMEOUT_HIDDEN}, \
	{.nr = SYS_sendmsg, .timeout = TIMEOUT_HIDDEN}, \
	{.nr = SYS_sendmmsg, .timeout = TIMEOUT_HIDDEN}, \
	{.nr = SYS_accept, .timeout = TIMEOUT_HIDDEN}, \
	{.nr = SYS_accept4, .timeout = TIMEOUT_HIDDEN}, \
	{.nr = SYS_connect, .timeout = TIMEOUT_HIDDEN}

#endif
