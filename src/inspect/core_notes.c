/*
 * A note consists of three words (size of the name, size of the content, type), the name and the
 * content. Name and content are padded to multiples of 4 bytes. NT_FILE (fs/binfmt_elf.c):
 *
 *	count, page size; start, end, offset in pages (count times); as many names, each ending in 0
 */
#include "inspect/core_notes.h"

#include <elf.h>
#include <string.h>
#include <sys/procfs.h>

#include "base/alloc.h"

#define ALIGN4(n) ROUND_UP((uint64_t)(n), UINT64_C(4))
#define FILE_WORDS 3u

_Static_assert(sizeof(elf_gregset_t) <= sizeof(struct arch_regs), "registers fit");

void core_notes_each(const uint8_t *notes, size_t size, core_note_fn *fn, void *ctx)
{
	size_t at = 0;

	while (size - at >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr head;

		memcpy(&head, notes + at, sizeof(head));
		at += sizeof(head);
		uint64_t name = ALIGN4(head.n_namesz), desc = head.n_descsz;

		if (name > size - at || desc > size - at - name)
			return;
		if (!fn(ctx, head.n_type, notes + at + name, desc))
			return;
		at += MIN(name + ALIGN4(desc), size - at);
	}
}

static void take_thread(struct core_file *c, const uint8_t *desc, size_t size)
{
	struct elf_prstatus status;
	struct core_thread *th;

	if (size < sizeof(status))
		return;
	memcpy(&status, desc, sizeof(status));
	th = vec_add(&c->threads);
	*th = (struct core_thread){.tid = status.pr_pid};
	memcpy(&th->regs, &status.pr_reg, sizeof(status.pr_reg));
}

static void take_process(struct core_file *c, const uint8_t *desc, size_t size)
{
	struct elf_prpsinfo info;

	if (size < sizeof(info) || c->command)
		return;
	memcpy(&info, desc, sizeof(info));
	c->pid = info.pr_pid;
	c->command = xstrndup(info.pr_psargs, sizeof(info.pr_psargs));
	for (size_t n = strlen(c->command); n > 0 && c->command[n - 1] == ' '; n--)
		c->command[n - 1] = '\0';
}

static void take_auxv(struct core_file *c, const uint8_t *desc, size_t size)
{
	uint64_t pair[2];

	for (size_t at = 0; at + sizeof(pair) <= size; at += sizeof(pair)) {
		memcpy(pair, desc + at, sizeof(pair));
		if (pair[0] == AT_SYSINFO_EHDR)
			c->vdso = pair[1];
		else if (pair[0] == AT_RANDOM)
			c->on_stack = pair[1];
		else if (pair[0] == AT_ENTRY)
			c->entry = pair[1];
	}
}

static bool ends_in(const char *text, const char *end)
{
	size_t n = strlen(text), k = strlen(end);

	return n >= k && strcmp(text + n - k, end) == 0;
}

static void add_file(struct core_file *c, const uint64_t *word, uint64_t page, const char *name)
{
	static const char deleted[] = " (deleted)";
	struct map m = {.start = word[0], .end = word[1], .is_read = true};

	if (m.start >= m.end || m.start % PAGE_SIZE_MIN || m.end % PAGE_SIZE_MIN ||
	    __builtin_mul_overflow(word[2], page, &m.offset))
		return;
	m.is_deleted = ends_in(name, deleted);
	m.path = xstrndup(name, strlen(name) - (m.is_deleted ? strlen(deleted) : 0));
	*vec_add(&c->files) = m;
}

static void take_files(struct core_file *c, const uint8_t *desc, size_t size)
{
	uint64_t head[2], word[FILE_WORDS];

	if (size < sizeof(head) || c->files.count > 0)
		return;
	memcpy(head, desc, sizeof(head));
	if (head[0] > (size - sizeof(head)) / sizeof(word))
		return;
	const uint8_t *table = desc + sizeof(head), *end = desc + size;
	const uint8_t *name = table + head[0] * sizeof(word);

	for (uint64_t i = 0; i < head[0]; i++) {
		const uint8_t *zero = memchr(name, 0, (size_t)(end - name));

		if (!zero)
			return;
		memcpy(word, table + i * sizeof(word), sizeof(word));
		add_file(c, word, head[1], (const char *)name);
		name = zero + 1;
	}
}

static bool take_note(void *ctx, uint32_t type, const uint8_t *desc, size_t size)
{
	switch (type) {
	case NT_PRSTATUS:
		take_thread(ctx, desc, size);
		break;
	case NT_PRPSINFO:
		take_process(ctx, desc, size);
		break;
	case NT_AUXV:
		take_auxv(ctx, desc, size);
		break;
	case NT_FILE:
		take_files(ctx, desc, size);
		break;
	}
	return true;
}

void core_notes_read(const uint8_t *notes, size_t size, struct core_file *out)
{
	core_notes_each(notes, size, take_note, out);
}
