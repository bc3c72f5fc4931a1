/*
 * Reads a core file: its notes, program headers, and the headers of the objects that the process
 * had mapped. Everything is checked.
 */
#include "inspect/core_file.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/procfs.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/text.h"

/* Calls @fn for each note until it returns false. @desc has @size bytes. */
typedef bool core_note_fn(void *ctx, uint32_t type, const uint8_t *desc, size_t size);

/*
 * A note consists of three words (size of the name, size of the content, type), the name and the
 * content. Name and content are padded to multiples of 4 bytes. NT_FILE (fs/binfmt_elf.c):
 *
 *	count, page size; start, end, offset in pages (count times); as many names, each ending in 0
 */

#define ALIGN4(n) ROUND_UP((uint64_t)(n), UINT64_C(4))
#define FILE_WORDS 3u

_Static_assert(sizeof(elf_gregset_t) <= sizeof(struct arch_regs), "registers fit");

static void core_notes_each(const uint8_t *notes, size_t size, core_note_fn *fn, void *ctx)
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

static void add_file(struct core_file *c, const uint64_t *word, uint64_t page, const char *name)
{
	static const char deleted[] = " (deleted)";
	struct map m = {.start = word[0], .end = word[1], .is_read = true};

	if (m.start >= m.end || m.start % PAGE_SIZE_MIN || m.end % PAGE_SIZE_MIN ||
	    __builtin_mul_overflow(word[2], page, &m.offset))
		return;
	m.is_deleted = text_ends_in(name, deleted);
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

/*
 * ELF headers of a core file. If there are 65,535 program headers or more, the first section header
 * holds their number (elf(5), PN_XNUM).
 */

#define PARTS_MAX (1u << 22)
#define NOTES_MAX (UINT64_C(256) << 20)

static int fail(int rc, char *why, char **why_out)
{
	*why_out = why;
	return rc;
}

static bool read_at(const struct core_file *c, uint64_t offset, void *buf, uint64_t size)
{
	return offset <= c->size && size <= c->size - offset &&
	       pread(c->fd, buf, size, (off_t)offset) == (ssize_t)size;
}

/* -- kind of file -- */

static const struct {
	const char *bytes, *name;
} packings[] = {
	{"\x1f\x8b", "gzip"}, {"\x28\xb5\x2f\xfd", "zstd"}, {"\xfd" "7zXZ", "xz"},
	{"\x04\x22\x4d\x18", "lz4"}, {"BZh", "bzip2"},
};

static char *explain_bytes(const uint8_t *bytes)
{
	for (size_t i = 0; i < ARRAY_SIZE(packings); i++)
		if (memcmp(bytes, packings[i].bytes, strlen(packings[i].bytes)) == 0)
			return xasprintf("is compressed (%s): decompress it first",
					 packings[i].name);
	return xstrdup("is not a core file");
}

static int check_header(const Elf64_Ehdr *h, char **why_out)
{
	if (memcmp(h->e_ident, ELFMAG, SELFMAG) != 0)
		return fail(-EINVAL, explain_bytes(h->e_ident), why_out);
	if (h->e_ident[EI_CLASS] != arch_native->elf_class)
		return fail(-EINVAL, xstrdup("is of a 32-bit program: only cores of 64-bit "
					     "programs can be read"), why_out);
	if (h->e_ident[EI_DATA] != ELFDATA2LSB || h->e_machine != arch_native->elf_machine)
		return fail(-EINVAL, xasprintf("is of another CPU (ELF machine %u): this ptmem "
					       "reads cores of %s", h->e_machine,
					       arch_native->name), why_out);
	if (h->e_type != ET_CORE)
		return fail(-EINVAL, xstrdup("is a program or library, not a core file"), why_out);
	if (h->e_phentsize != sizeof(Elf64_Phdr))
		return fail(-EINVAL, xstrdup("is corrupt: its program headers are of an unknown "
					     "size"), why_out);
	return 0;
}

/* -- program headers -- */

static uint64_t count_headers(const struct core_file *c, const Elf64_Ehdr *h)
{
	Elf64_Shdr first;

	if (h->e_phnum != PN_XNUM)
		return h->e_phnum;
	return read_at(c, h->e_shoff, &first, sizeof(first)) ? first.sh_info : 0;
}

static bool add_part(struct core_file *c, const Elf64_Phdr *h)
{
	struct core_part p = {.start = h->p_vaddr, .offset = h->p_offset, .filled = h->p_filesz,
			      .flags = h->p_flags};

	if (h->p_memsz == 0)
		return true;
	if (__builtin_add_overflow(h->p_vaddr, h->p_memsz, &p.end) || p.filled > h->p_memsz ||
	    p.start % PAGE_SIZE_MIN || p.end % PAGE_SIZE_MIN || p.filled % PAGE_SIZE_MIN)
		return false;
	*vec_add(&c->parts) = p;
	return true;
}

static bool sort_parts(struct core_file *c)
{
	vec_sort(&c->parts, taddr_compare);
	for (size_t i = 1; i < c->parts.count; i++)
		if (c->parts.data[i].start < c->parts.data[i - 1].end)
			return false;
	return c->parts.count > 0;
}

/* The number of bytes of [@offset, @offset + @size) beyond the end of the file. */
static uint64_t count_missing(const struct core_file *c, uint64_t offset, uint64_t size)
{
	uint64_t there = offset < c->size ? c->size - offset : 0;

	return size > there ? size - there : 0;
}

static int take_headers(struct core_file *c, const Elf64_Phdr *list, uint64_t count, char **why_out)
{
	uint64_t missing = 0, memory = 0;
	bool is_good = true;

	for (uint64_t i = 0; i < count; i++) {
		const Elf64_Phdr *h = &list[i];

		if (h->p_type == PT_LOAD)
			is_good &= add_part(c, h);
		if (h->p_type != PT_LOAD && h->p_type != PT_NOTE)
			continue;
		memory += MIN(h->p_filesz, UINT64_MAX - memory);
		missing += MIN(count_missing(c, h->p_offset, h->p_filesz), UINT64_MAX - missing);
	}
	if (missing > 0)
		return fail(-EINVAL, xasprintf("is truncated: %llu of %llu bytes are missing",
					       (unsigned long long)missing,
					       (unsigned long long)memory), why_out);
	if (memory > c->size) /* segments that share bytes are much to read from a small file */
		return fail(-EINVAL, xstrdup("is corrupt: its segments have more bytes than the "
					     "file"), why_out);
	if (!is_good || !sort_parts(c))
		return fail(-EINVAL, xstrdup("is corrupt: its program headers contradict each "
					     "other"), why_out);
	return 0;
}

static void read_notes(struct core_file *c, const Elf64_Phdr *h)
{
	if (h->p_filesz > NOTES_MAX)
		return;
	_cleanup_free_ uint8_t *notes = xmalloc(h->p_filesz + 1);

	if (read_at(c, h->p_offset, notes, h->p_filesz))
		core_notes_each(notes, h->p_filesz, take_note, c);
}

/* The kernel writes the thread that crashed first. */
static void put_main_first(struct core_file *c)
{
	for (size_t i = 1; i < c->threads.count; i++) {
		struct core_thread th = c->threads.data[i];

		if (th.tid != c->pid)
			continue;
		c->threads.data[i] = c->threads.data[0];
		c->threads.data[0] = th;
		return;
	}
}

static int read_all(struct core_file *c, char **why_out)
{
	Elf64_Ehdr h = {0};
	uint8_t *bytes = (uint8_t *)&h;

	if (pread(c->fd, bytes, sizeof(h), 0) < (ssize_t)sizeof(h))
		return fail(-EINVAL, c->size ? explain_bytes(bytes) : xstrdup("is empty"), why_out);
	int rc = check_header(&h, why_out);
	uint64_t count = rc == 0 ? count_headers(c, &h) : 0;

	if (rc != 0)
		return rc;
	if (count == 0 || count > PARTS_MAX)
		return fail(-EINVAL, xstrdup("is corrupt: it has no program headers"), why_out);
	_cleanup_free_ Elf64_Phdr *list = xcalloc(count, sizeof(*list));

	if (!read_at(c, h.e_phoff, list, count * sizeof(*list)))
		return fail(-EINVAL, xstrdup("is truncated: it ends within its program headers"),
			    why_out);
	rc = take_headers(c, list, count, why_out);
	for (uint64_t i = 0; i < count && rc == 0; i++)
		if (list[i].p_type == PT_NOTE)
			read_notes(c, &list[i]);
	if (rc == 0 && c->threads.count == 0)
		return fail(-EINVAL, xstrdup("is corrupt: it has no registers of any thread"),
			    why_out);
	return rc;
}

int core_file_open(const char *path, struct core_file *out, char **why_out)
{
	struct core_file c = {.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
	struct stat st;

	if (c.fd < 0 || fstat(c.fd, &st) != 0) {
		int rc = -errno;

		core_file_close(&c);
		return fail(rc, xstrdup(strerror(-rc)), why_out);
	}
	c.size = (uint64_t)st.st_size;
	int rc = S_ISREG(st.st_mode) ? read_all(&c, why_out)
				     : fail(-EINVAL, xstrdup("is not a regular file"), why_out);

	if (rc != 0) {
		core_file_close(&c);
		return rc;
	}
	if (!c.command) {
		c.command = xstrdup("");
		c.pid = c.threads.data[0].tid;
	}
	put_main_first(&c);
	*out = c;
	return 0;
}

void core_file_close(struct core_file *c)
{
	if (c->fd >= 0)
		close(c->fd);
	vec_release(&c->files, e, free(e->path));
	vec_deinit(&c->parts);
	vec_deinit(&c->threads);
	free(c->command);
}

ssize_t core_file_read(const struct core_file *c, taddr_t addr, void *buf, size_t size)
{
	const struct core_part *p = vec_find(&c->parts, addr);

	if (!p || addr - p->start >= p->filled)
		return -1;
	size = MIN(size, p->filled - (addr - p->start));
	return pread(c->fd, buf, size, (off_t)(p->offset + (addr - p->start)));
}

bool core_file_read_all(const struct core_file *c, taddr_t addr, void *buf, size_t size)
{
	for (char *to = buf; size > 0;) {
		ssize_t n = core_file_read(c, addr, to, size);

		if (n <= 0)
			return false;
		to += n;
		addr += (taddr_t)n;
		size -= (size_t)n;
	}
	return true;
}

/* Reads program headers and the build-id note. See core_file.h. */

#define HEADERS_MAX 64u
#define OBJECT_NOTES_MAX 4096u

static bool take_id(void *ctx, uint32_t type, const uint8_t *desc, size_t size)
{
	struct core_object *o = ctx;

	if (type != NT_GNU_BUILD_ID || size > sizeof(o->build_id))
		return true;
	memcpy(o->build_id, desc, size);
	o->build_id_size = size;
	return false;
}

static void read_object_notes(const struct core_file *c, taddr_t addr, uint64_t size,
		       struct core_object *o)
{
	uint8_t notes[OBJECT_NOTES_MAX];

	if (size <= sizeof(notes) && core_file_read_all(c, addr, notes, size))
		core_notes_each(notes, size, take_id, o);
}

bool core_object_read(const struct core_file *c, taddr_t start, struct core_object *out)
{
	Elf64_Ehdr h;
	Elf64_Phdr list[HEADERS_MAX];
	struct core_object o = {0};
	const Elf64_Phdr *first = NULL;

	if (!core_file_read_all(c, start, &h, sizeof(h)) ||
	    memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 || h.e_machine != arch_native->elf_machine ||
	    h.e_phentsize != sizeof(*list) || h.e_phnum > ARRAY_SIZE(list) ||
	    !core_file_read_all(c, start + h.e_phoff, list, h.e_phnum * sizeof(*list)))
		return false;
	for (size_t i = 0; i < h.e_phnum && !first; i++)
		first = list[i].p_type == PT_LOAD ? &list[i] : NULL;
	if (!first)
		return false;
	o.bias = start - ROUND_DOWN(first->p_vaddr - first->p_offset, (taddr_t)PAGE_SIZE_MIN);
	for (size_t i = 0; i < h.e_phnum; i++) {
		taddr_t at = o.bias + list[i].p_vaddr, end = at + list[i].p_memsz;

		if (list[i].p_type == PT_LOAD && at < end && o.segments < ARRAY_SIZE(o.segment)) {
			o.segment[o.segments].start = at;
			o.segment[o.segments].is_exec = list[i].p_flags & PF_X;
			o.segment[o.segments++].end = end;
		} else if (list[i].p_type == PT_NOTE && o.build_id_size == 0) {
			read_object_notes(c, at, list[i].p_filesz, &o);
		}
	}
	*out = o;
	return true;
}
