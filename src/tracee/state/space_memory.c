/*
 * Memory of the tracee: process_vm_readv is fast for reading; /proc/PID/mem can also write to
 * read-only text.
 */
#include "tracee/state/space_memory.h"

#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tracee/state/space.h"

ssize_t space_read_some(const struct address_space *s, taddr_t addr, void *buf, size_t size)
{
	struct iovec local = {buf, size}, remote = {(void *)(uintptr_t)addr, size};
	ssize_t n = process_vm_readv(s->processes.reader, &local, 1, &remote, 1, 0);
	if (n > 0 || (n < 0 && errno == EFAULT))
		return n < 0 ? -EFAULT : n;
	if (s->files.memory < 0)
		return -ESRCH;
	n = pread(s->files.memory, buf, size, (off_t)addr);
	return n < 0 ? -errno : n == 0 ? -ESRCH : n;
}

int space_read(const struct address_space *s, taddr_t addr, void *buf, size_t size)
{
	size_t done = 0;
	while (done < size) {
		ssize_t n = space_read_some(s, addr + done, (uint8_t *)buf + done, size - done);
		if (n <= 0)
			return n < 0 ? (int)n : -EFAULT;
		done += (size_t)n;
	}
	return 0;
}

bool space_holds_above(const struct address_space *s, taddr_t sp, taddr_t at, uint64_t want)
{
	uint64_t word = 0;
	return at && sp <= at && space_read(s, at, &word, sizeof(word)) == 0 && word == want;
}

int space_write(const struct address_space *s, taddr_t addr, const void *buf, size_t size)
{
	if (s->files.memory < 0)
		return -EPERM;
	ssize_t n = pwrite(s->files.memory, buf, size, (off_t)addr);
	if (n < 0)
		return -errno;
	return (size_t)n == size ? 0 : n == 0 ? -ESRCH : -EFAULT;
}
