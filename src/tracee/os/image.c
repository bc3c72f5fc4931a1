/*
 * An image is identified by its auxiliary vector in the kernel (addresses of program, vdso and
 * stack), and by the 16 random bytes at AT_RANDOM, which differ even without ASLR.
 */
#include "tracee/os/image.h"

#include <elf.h>
#include <errno.h>
#include <sys/uio.h>

#include "base/cleanup.h"
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
