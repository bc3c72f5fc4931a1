/*
 * An image is identified by its auxiliary vector in the kernel (addresses of program, vdso and
 * stack), and by the 16 random bytes at AT_RANDOM, which differ even without ASLR.
 */
#include "tracee/state/space.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/proc.h"
#include "base/types.h"

#define MAX_ENTRIES 64
#define RANDOM_WORDS 2

static uint64_t mix(uint64_t hash, uint64_t word)
{
	return hash_u64(hash ^ word) + 1;
}

static uint64_t mix_random(pid_t pid, uint64_t addr, uint64_t hash)
{
	uint64_t word[RANDOM_WORDS] = {0};
	struct iovec local = {word, sizeof(word)}, remote = {(void *)(uintptr_t)addr, sizeof(word)};
	if (process_vm_readv(pid, &local, 1, &remote, 1, 0) != (ssize_t)sizeof(word))
		return hash;
	return mix(mix(hash, word[0]), word[1]);
}

int image_read(pid_t pid, uint64_t *image_out)
{
	Elf64_auxv_t entry[MAX_ENTRIES];
	_cleanup_fclose_ FILE *file = proc_open(pid, "auxv");
	if (!file)
		return errno == ENOENT ? -ESRCH : -errno;
	size_t count = fread(entry, sizeof(entry[0]), MAX_ENTRIES, file);
	if (count == 0)
		return -ESRCH;
	uint64_t hash = 0;
	for (size_t i = 0; i < count; i++) {
		hash = mix(mix(hash, entry[i].a_type), entry[i].a_un.a_val);
		if (entry[i].a_type == AT_RANDOM)
			hash = mix_random(pid, entry[i].a_un.a_val, hash);
	}
	*image_out = hash | 1;
	return 0;
}

/* There are few areas, so they are searched linearly. */

struct stub_area *own_memory_add_code(struct own_memory *own, taddr_t start, uint32_t size)
{
	struct stub_area *a = vec_add(&own->areas);
	*a = (struct stub_area){
		.start = start, .size = size, .used = size, .contents = xcalloc(1, size)};
	return a;
}

void own_memory_note(struct stub_area *a, taddr_t addr, const void *bytes, size_t size)
{
	uint64_t at = addr - a->start;
	if (!a->contents || at >= a->size)
		return;
	size = MIN(size, a->size - at);
	memcpy(a->contents + at, bytes, size);
	a->written = MAX(a->written, (uint32_t)(at + size));
}

void own_memory_give_up(struct stub_area *a)
{
	free(a->saved);
	free(a->contents);
	a->saved = a->contents = NULL;
	a->size = a->used = a->written = 0;
}

static uint8_t *copy_contents(const struct stub_area *a)
{
	return a->contents ? memcpy(xcalloc(1, a->size), a->contents, a->written) : NULL;
}

struct own_memory own_memory_clone(const struct own_memory *from)
{
	struct own_memory own = {.next = from->next, .mapped = from->mapped};

	CHECK(from->shared_size <= UINT32_MAX);
	for (size_t i = 0; i < from->areas.count; i++) {
		struct stub_area *a = vec_add(&own.areas);
		*a = from->areas.data[i];
		if (a->saved)
			a->saved = xmemdup(a->saved, a->size);
		a->contents = copy_contents(a);
	}
	if (from->shared)
		*vec_add(&own.areas) = (struct stub_area){
			.start = from->shared, .size = (uint32_t)from->shared_size,
			.used = (uint32_t)from->shared_size, .is_pads = true, .is_memory = true,
		};
	return own;
}

void own_memory_clear(struct own_memory *own)
{
	for (size_t i = 0; i < own->areas.count; i++) {
		free(own->areas.data[i].saved);
		free(own->areas.data[i].contents);
	}
	own->areas.count = 0;
	own->shared = own->shared_size = own->next = 0;
}

void own_memory_deinit(struct own_memory *own)
{
	own_memory_clear(own);
	vec_deinit(&own->areas);
}

static struct stub_area *own_memory_find(const struct own_memory *own, taddr_t addr)
{
	for (size_t i = 0; i < own->areas.count; i++) {
		if (addr - own->areas.data[i].start < own->areas.data[i].size)
			return &own->areas.data[i];
	}
	return NULL;
}

const struct stub_area *space_find_area(const struct address_space *s, taddr_t addr)
{
	return own_memory_find(&s->own, addr);
}

bool space_is_own(const struct address_space *s, taddr_t addr)
{
	const struct stub_area *a = space_find_area(s, addr);
	return (a && !a->is_slack) || addr - s->own.shared < s->own.shared_size;
}

/*
 * Memory of the tracee: process_vm_readv is fast for reading; /proc/PID/mem can also write to
 * read-only text. It is opened for each write if too few descriptors are left to keep it open.
 */

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

#define FRAMES_SEARCHED (1u << 20) /* bytes of a stack, for a return address in a frame */

void space_replace_words(struct address_space *s, taddr_t sp, taddr_t end, uint64_t from,
			 uint64_t to)
{
	uint64_t word[512];
	for (taddr_t at = sp; at < end && at - sp < FRAMES_SEARCHED; at += sizeof(word)) {
		size_t size = MIN((size_t)(end - at), sizeof(word));
		if (space_read(s, at, word, size) != 0)
			return;
		for (size_t i = 0; i < size / sizeof(*word); i++) {
			if (word[i] == from)
				space_write(s, at + i * sizeof(*word), &to, sizeof(to));
		}
	}
}
