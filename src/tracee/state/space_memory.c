/*
 * Memory of the tracee: process_vm_readv is fast for reading; /proc/PID/mem can also write to
 * read-only text. It is opened for each write if too few descriptors are left to keep it open.
 */
#include "tracee/state/space_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tracee/os/image.h"
#include "tracee/state/space.h"

int space_open_memory(pid_t pid)
{
	char name[64];
	snprintf(name, sizeof(name), "/proc/%d/mem", (int)pid);
	int fd = open(name, O_RDWR | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Also what the program has no right to read. */
static ssize_t read_file(const struct address_space *s, taddr_t addr, void *buf, size_t size)
{
	if (s->files.memory < 0)
		return -ESRCH;
	ssize_t n = pread(s->files.memory, buf, size, (off_t)addr);
	return n < 0 ? -errno : n == 0 ? -ESRCH : n;
}

ssize_t space_read_some(const struct address_space *s, taddr_t addr, void *buf, size_t size)
{
	struct iovec local = {buf, size}, remote = {(void *)(uintptr_t)addr, size};
	ssize_t n = process_vm_readv(s->processes.reader, &local, 1, &remote, 1, 0);
	if (n > 0 || (n < 0 && errno == EFAULT))
		return n < 0 ? -EFAULT : n;
	return read_file(s, addr, buf, size);
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

/* Unlike a descriptor that was kept, this one could be of a program executed meanwhile. */
static int open_again(const struct address_space *s)
{
	uint64_t image = 0;
	int fd = space_open_memory(s->processes.reader);
	if (fd < 0)
		return fd;
	if (image_read(s->processes.reader, &image) == 0 && image == s->image.id)
		return fd;
	close(fd);
	return -EPERM;
}

static int write_memory(const struct address_space *s, taddr_t addr, const void *buf, size_t size)
{
	const int kept = s->files.memory, fd = kept >= 0 ? kept : open_again(s);
	if (fd < 0)
		return fd;
	ssize_t n = pwrite(fd, buf, size, (off_t)addr);
	if (n < 0)
		n = -errno;
	if (fd != kept)
		close(fd);
	if (n < 0)
		return (int)n;
	return (size_t)n == size ? 0 : n == 0 ? -ESRCH : -EFAULT;
}

/* -- memory that the program may have unmapped -- */

int space_holds_code(const struct address_space *s, const struct stub_area *a, taddr_t at,
		     size_t size)
{
	uint8_t now[PAGE_SIZE_MIN];
	while (size > 0) {
		size_t part = MIN(size, sizeof(now));
		ssize_t n = s->files.memory >= 0 ? read_file(s, at, now, part) :
						   space_read_some(s, at, now, part);
		if (n == -ESRCH)
			return -ESRCH;
		if (n <= 0 || memcmp(now, a->contents + (at - a->start), (size_t)n) != 0)
			return 0;
		at += (size_t)n;
		size -= (size_t)n;
	}
	return 1;
}

int space_write(const struct address_space *s, taddr_t addr, const void *buf, size_t size)
{
	struct stub_area *a = own_memory_find(&s->own, addr);
	if (!a || !a->contents)
		return write_memory(s, addr, buf, size);
	bool is_there =
		space_holds_code(s, a, a->start, MIN(a->written, (uint32_t)PAGE_SIZE_MIN)) != 0;
	own_memory_note(a, addr, buf, size);
	return is_there ? write_memory(s, addr, buf, size) : 0;
}

int space_rewrite_code(const struct address_space *s, const struct stub_area *a)
{
	return write_memory(s, a->start, a->contents, a->written);
}
