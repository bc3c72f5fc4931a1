/*
 * A counter is a descriptor of perf_event_open in counting mode: no interrupts, no
 * buffer, one read for its value. Later threads and children inherit it, so a started program needs
 * one counter, and an attached one needs one for each thread. Virtual machines often have no such
 * counter, so one is tried first.
 */
#include "tracee/os/instructions.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>


static int open_counter(pid_t tid, bool is_disabled, bool enable_on_exec)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_HW_INSTRUCTIONS,
		.inherit = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.disabled = is_disabled,
		.enable_on_exec = enable_on_exec,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int instructions_check(void)
{
	int fd = open_counter(0, true, false);
	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

int instructions_add(struct instruction_counters *c, pid_t tid, bool enable_on_exec)
{
	int fd = open_counter(tid, enable_on_exec, enable_on_exec);
	if (fd < 0)
		return fd;
	*vec_add(&c->fd) = fd;
	return 0;
}

uint64_t instructions_read(const struct instruction_counters *c)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < c->fd.count; i++) {
		uint64_t n;
		if (read(c->fd.data[i], &n, sizeof(n)) == sizeof(n))
			sum += n;
	}
	return sum;
}

void instructions_close(struct instruction_counters *c)
{
	for (size_t i = 0; i < c->fd.count; i++)
		close(c->fd.data[i]);
	vec_deinit(&c->fd);
}
