/* See elf_marker.h. The file may be any one: all that is read of it is bounded. */
#include "base/elf_marker.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

#define OWNER "ptmem"
#define TYPE 1u
#define SEGMENTS_MAX 64u
#define NOTES_MAX 4096u

struct elf_marker {
	Elf64_Nhdr head;
	char owner[8]; /* padded to a multiple of 4 */
};

__attribute__((section(".note.ptmem"), used, aligned(4))) static const struct elf_marker note = {
	.head = {.n_namesz = sizeof(OWNER), .n_type = TYPE}, .owner = OWNER};

/* Notes that are aligned to 8 bytes are of others. */
static size_t padded(uint32_t size)
{
	return ((size_t)size + 3) & ~(size_t)3;
}

static bool has_note(const char *notes, size_t size)
{
	size_t at = 0;

	while (size - at >= sizeof(note)) {
		Elf64_Nhdr head;

		if (memcmp(notes + at, &note, sizeof(note)) == 0)
			return true;
		memcpy(&head, notes + at, sizeof(head));
		at += sizeof(head);
		if (padded(head.n_namesz) > size - at)
			return false;
		at += padded(head.n_namesz);
		if (padded(head.n_descsz) > size - at)
			return false;
		at += padded(head.n_descsz);
	}
	return false;
}

static bool segment_has_note(int fd, const Elf64_Phdr *ph)
{
	char notes[NOTES_MAX];

	if (ph->p_type != PT_NOTE)
		return false;
	ssize_t n = pread(fd, notes, MIN(ph->p_filesz, (uint64_t)sizeof(notes)),
			  (off_t)ph->p_offset);

	return n > 0 && has_note(notes, (size_t)n);
}

bool elf_marker_is_in(pid_t pid)
{
	char path[64];
	Elf64_Ehdr eh;
	Elf64_Phdr ph;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || pread(fd, &eh, sizeof(eh), 0) != sizeof(eh) ||
	    memcmp(eh.e_ident, ELFMAG, SELFMAG) != 0 || eh.e_ident[EI_CLASS] != ELFCLASS64)
		return false;
	for (unsigned i = 0; i < MIN((unsigned)eh.e_phnum, SEGMENTS_MAX); i++) {
		off_t at = (off_t)(eh.e_phoff + i * sizeof(ph));

		if (pread(fd, &ph, sizeof(ph), at) != sizeof(ph))
			return false;
		if (segment_has_note(fd, &ph))
			return true;
	}
	return false;
}
