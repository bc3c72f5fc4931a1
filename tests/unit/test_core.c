/*
 * A core file of a forked child with a used heap, written here: what is read from it equals the
 * child's memory; and with bytes of its headers, notes, arenas and chunks changed at random,
 * nothing crashes or hangs, and the rows always add up.
 */
#include <elf.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/procfs.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "inspect/core_file.h"
#include "inspect/inspect.h"
#include "rounds.h"

#define MUTATIONS 80u
#define BLOCKS 3000u
#define NOTES_SIZE 65536u
#define PAGE ((uint64_t)PAGE_SIZE_MIN)
#define LARGEST (UINT64_C(4) << 20)

/* glibc's own, where a sanitizer takes the place of malloc */
void *__libc_malloc(size_t size);
void __libc_free(void *block);

static void *block[BLOCKS];

static void use_heap(void)
{
	for (size_t i = 0; i < BLOCKS; i++)
		block[i] = __libc_malloc(24 + i * 37 % 2000);
	for (size_t i = 0; i < BLOCKS; i++)
		if (i % 5)
			__libc_free(block[i]);
}

/* -- writing a core -- */

struct core_bytes {
	uint8_t *notes;
	size_t notes_size;
	VEC(Elf64_Phdr) headers;
	char path[64];
	int fd;
	uint64_t size;
};

static void put(struct core_bytes *c, const void *bytes, size_t size)
{
	assert_true(c->notes_size + size <= NOTES_SIZE);
	memcpy(c->notes + c->notes_size, bytes, size);
	c->notes_size += size;
}

static void put_note(struct core_bytes *c, uint32_t type, const void *desc, size_t size)
{
	static const char zeros[4] = "";
	Elf64_Nhdr head = {5, (uint32_t)size, type};

	put(c, &head, sizeof(head));
	put(c, "CORE\0\0\0", 8);
	put(c, desc, size);
	put(c, zeros, -size % 4);
}

static void put_threads(struct core_bytes *c, pid_t pid, taddr_t sp)
{
	struct elf_prstatus status = {.pr_pid = pid};
	struct elf_prpsinfo info = {.pr_pid = pid, .pr_psargs = "a program "};
	struct arch_regs regs = {0};

	regs.word[arch_native->sp] = sp;
	/* same as ours, which fork does not change */
	regs.word[arch_native->thread_pointer] = (taddr_t)(uintptr_t)__builtin_thread_pointer();
	memcpy(&status.pr_reg, &regs, sizeof(status.pr_reg));
	put_note(c, NT_PRSTATUS, &status, sizeof(status));
	put_note(c, NT_PRPSINFO, &info, sizeof(info));
}

static void put_files(struct core_bytes *c, const struct maps *maps)
{
	uint64_t *words = calloc(2 + 3 * maps->list.count, sizeof(*words)), count = 0;
	char *names = calloc(maps->list.count, 4096), *name = names;

	for (size_t i = 0; i < maps->list.count; i++) {
		const struct map *m = &maps->list.data[i];

		if (*m->path != '/')
			continue;
		words[2 + 3 * count] = m->start;
		words[3 + 3 * count] = m->end;
		words[4 + 3 * count++] = m->offset / PAGE;
		name = stpcpy(name, m->path) + 1;
	}
	words[0] = count;
	words[1] = PAGE;
	size_t size = (2 + 3 * count) * sizeof(*words);
	uint8_t *all = malloc(size + (size_t)(name - names));

	memcpy(all, words, size);
	memcpy(all + size, names, (size_t)(name - names));
	put_note(c, NT_FILE, all, size + (size_t)(name - names));
	free(all);
	free(names);
	free(words);
}

/*
 * What can be written, and the first page of files. Larger mappings belong to no heap: a sanitizer
 * has some.
 */
static uint64_t filled_of(const struct map *m)
{
	bool is_object = *m->path == '/' && m->offset == 0 && m->is_read;
	bool is_data = m->is_write && m->is_read && m->end - m->start <= LARGEST;

	if (m->is_shared || (*m->path == '[' && !is_data))
		return 0;
	return is_data ? m->end - m->start : is_object ? PAGE : 0;
}

static void write_core(struct core_bytes *c, pid_t pid, const struct maps *maps)
{
	uint64_t offset = ROUND_UP(sizeof(Elf64_Ehdr) + (1 + maps->list.count) * sizeof(Elf64_Phdr) +
				   c->notes_size, PAGE);
	Elf64_Ehdr head = {.e_ident = ELFMAG, .e_type = ET_CORE, .e_machine = arch_native->elf_machine,
			   .e_phoff = sizeof(head), .e_phentsize = sizeof(Elf64_Phdr),
			   .e_phnum = (uint16_t)(1 + maps->list.count)};

	head.e_ident[EI_CLASS] = ELFCLASS64;
	head.e_ident[EI_DATA] = ELFDATA2LSB;
	*vec_add(&c->headers) = (Elf64_Phdr){
		.p_type = PT_NOTE, .p_filesz = c->notes_size,
		.p_offset = sizeof(head) + (1 + maps->list.count) * sizeof(Elf64_Phdr)};
	for (size_t i = 0; i < maps->list.count; i++) {
		const struct map *m = &maps->list.data[i];
		uint64_t filled = filled_of(m);
		uint8_t *bytes = calloc(1, filled + 1);
		struct iovec here = {bytes, filled}, there = {(void *)(uintptr_t)m->start, filled};

		if (filled)
			process_vm_readv(pid, &here, 1, &there, 1, 0);
		assert_int_equal(pwrite(c->fd, bytes, filled, (off_t)offset), filled);
		free(bytes);
		*vec_add(&c->headers) = (Elf64_Phdr){
			.p_type = PT_LOAD, .p_vaddr = m->start, .p_memsz = m->end - m->start,
			.p_filesz = filled, .p_offset = offset,
			.p_flags = (m->is_read ? PF_R : 0u) | (m->is_write ? PF_W : 0u) |
				   (m->is_exec ? PF_X : 0u)};
		offset += filled;
	}
	assert_int_equal(pwrite(c->fd, &head, sizeof(head), 0), sizeof(head));
	size_t size = c->headers.count * sizeof(*c->headers.data);

	assert_int_equal(pwrite(c->fd, c->headers.data, size, sizeof(head)), size);
	assert_int_equal(pwrite(c->fd, c->notes, c->notes_size,
				(off_t)c->headers.data[0].p_offset), c->notes_size);
	assert_int_equal(ftruncate(c->fd, (off_t)offset), 0);
	c->size = offset;
}

static void make_core(struct core_bytes *c)
{
	struct maps maps = {0};
	int ready[2];
	char letter;

	*c = (struct core_bytes){.notes = calloc(1, NOTES_SIZE)};
	assert_int_equal(pipe(ready), 0);
	pid_t pid = fork();

	if (pid == 0) {
		use_heap();
		if (write(ready[1], "x", 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(ready[0], &letter, 1), 1);
	assert_int_equal(maps_read(pid, &maps), 0);
	c->fd = memfd_create("core", MFD_CLOEXEC);
	snprintf(c->path, sizeof(c->path), "/proc/self/fd/%d", c->fd);
	put_threads(c, pid, (taddr_t)(uintptr_t)&letter);
	put_files(c, &maps);
	write_core(c, pid, &maps);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	maps_deinit(&maps);
	close(ready[0]);
	close(ready[1]);
}

static void free_core(struct core_bytes *c)
{
	vec_deinit(&c->headers);
	free(c->notes);
	close(c->fd);
}

/* -- reading it -- */

struct reading {
	struct inspect_report report;
	struct core_sums sums;
	char *why;
	pid_t pid;
	char command[16];
	uint64_t blocks;
	uint32_t objects, with_id;
	taddr_t heap;
};

static void count_block(void *ctx, taddr_t addr, uint64_t usable, uint32_t type)
{
	struct reading *r = ctx;

	(void)usable;
	(void)type;
	r->blocks++;
	r->heap = r->heap ? r->heap : addr;
}

static void add_objects(const struct core_file *file, struct inspect_input *in, struct reading *r)
{
	for (size_t i = 0; i < in->resident.maps.list.count; i++) {
		const struct map *m = &in->resident.maps.list.data[i];
		struct core_object o;

		if (*m->path != '/' || m->offset || !core_object_read(file, m->start, &o))
			continue;
		r->objects++;
		r->with_id += o.build_id_size > 0;
		for (size_t k = 0; k < o.segments; k++)
			inspect_add_segment(in, o.segment[k].start, o.segment[k].end);
	}
}

static void inspect_core(const struct core_file *file, struct reading *r)
{
	struct inspect_input in = {.source = core_memory_source(file), .block = count_block,
				   .block_ctx = r, .wants_types = true};

	assert_int_equal(core_memory_read(file, &in.resident, &r->sums), 0);
	for (size_t i = 0; i < file->threads.count; i++) {
		const struct arch_regs *regs = &file->threads.data[i].regs;

		*vec_add(&in.threads) = (struct glibc_thread){
			.tid = file->threads.data[i].tid, .sp = regs->word[arch_native->sp],
			.thread_pointer = regs->word[arch_native->thread_pointer]};
	}
	add_objects(file, &in, r);
	inspect_run(&in, &r->report);
	assert_int_equal(r->report.all.resident, in.resident.resident);
	assert_int_equal(r->report.all.resident + r->sums.zeros, r->sums.bytes);
	inspect_input_deinit(&in);
}

/* Returns whether the core could be read; otherwise prints the reason. */
static bool read_core(const struct core_bytes *c, struct reading *r)
{
	struct core_file file;

	*r = (struct reading){0};
	if (core_file_open(c->path, &file, &r->why) != 0) {
		assert_non_null(r->why);
		return false;
	}
	r->pid = file.pid;
	snprintf(r->command, sizeof(r->command), "%s", file.command);
	inspect_core(&file, r);
	core_file_close(&file);
	return true;
}

static void free_reading(struct reading *r)
{
	inspect_report_deinit(&r->report);
	free(r->why);
}

static void test_whole(void **state)
{
	struct core_bytes c;
	struct reading r;
	uint64_t filled = 0;

	(void)state;
	make_core(&c);
	assert_true(read_core(&c, &r));
	for (size_t i = 1; i < c.headers.count; i++)
		filled += c.headers.data[i].p_filesz;
	assert_int_equal(r.sums.bytes, filled);
	assert_string_equal(r.command, "a program");
	assert_true(r.objects >= 3); /* the program, libc, ld.so */
	assert_true(r.with_id >= 1);
	assert_true(r.report.heaps.arenas.count >= 1);
	assert_true(r.report.heaps.arenas.data[0].live_blocks >= BLOCKS / 5);
	assert_int_equal(r.blocks, r.report.heaps.arenas.data[0].live_blocks +
				   r.report.mmapped_blocks);
	assert_true(inspect_is_consistent(&r.report));
	free_reading(&r);
	free_core(&c);
}

static void expect_refusal(const struct core_bytes *c, const char *words)
{
	struct reading r;

	assert_false(read_core(c, &r));
	if (!strstr(r.why, words))
		fail_msg("'%s' instead of '%s'", r.why, words);
	free_reading(&r);
}

static void spoil(const struct core_bytes *c, uint64_t at, const void *bytes, size_t size,
		  const char *words)
{
	uint8_t old[16];

	assert_int_equal(pread(c->fd, old, size, (off_t)at), size);
	assert_int_equal(pwrite(c->fd, bytes, size, (off_t)at), size);
	expect_refusal(c, words);
	assert_int_equal(pwrite(c->fd, old, size, (off_t)at), size);
}

#define AT(field) offsetof(Elf64_Ehdr, field)
#define PART_AT(i, field) (sizeof(Elf64_Ehdr) + (i) * sizeof(Elf64_Phdr) + offsetof(Elf64_Phdr, field))

static void test_refused(void **state)
{
	const uint64_t odd = 7, far = UINT64_MAX - 4095;
	struct core_bytes c;
	size_t filled = 1;

	(void)state;
	make_core(&c);
	while (c.headers.data[filled].p_filesz == 0)
		filled++;
	spoil(&c, 0, "\x28\xb5\x2f\xfd", 4, "compressed (zstd)");
	spoil(&c, 0, "text", 4, "is not a core file");
	spoil(&c, EI_CLASS, "\1", 1, "32-bit");
	spoil(&c, AT(e_machine), "\xb7", 2, "of another CPU (ELF machine 183)");
	spoil(&c, AT(e_type), "\3", 2, "a program or library");
	spoil(&c, AT(e_phnum), "\0", 2, "no program headers");
	spoil(&c, AT(e_phentsize), "\1", 2, "of an unknown size");
	spoil(&c, AT(e_phoff), &far, 8, "ends within its program headers");
	spoil(&c, PART_AT(3, p_vaddr), &odd, 8, "contradict each other");
	spoil(&c, PART_AT(3, p_memsz), &far, 8, "contradict each other");
	spoil(&c, PART_AT(2, p_vaddr), &c.headers.data[1].p_vaddr, 8, "contradict each other");
	spoil(&c, PART_AT(0, p_type), "\0", 2, "no registers of any thread");
	spoil(&c, PART_AT(filled, p_offset), &far, 8, "is truncated");
	assert_int_equal(ftruncate(c.fd, (off_t)(c.size / 2)), 0);
	expect_refusal(&c, "is truncated");
	assert_int_equal(ftruncate(c.fd, 20), 0);
	expect_refusal(&c, "is not a core file");
	assert_int_equal(ftruncate(c.fd, 0), 0);
	expect_refusal(&c, "is empty");
	free_core(&c);
}

/* -- mutations -- */

static uint64_t offset_of(const struct core_bytes *c, taddr_t addr)
{
	for (size_t i = 1; i < c->headers.count; i++) {
		const Elf64_Phdr *h = &c->headers.data[i];

		if (addr >= h->p_vaddr && addr < h->p_vaddr + h->p_filesz)
			return h->p_offset + (addr - h->p_vaddr);
	}
	fail();
	return 0;
}

/* A word of the headers and notes, of the heap, or of the main arena. */
static uint64_t pick(const struct core_bytes *c, uint64_t heap, uint64_t arena)
{
	switch (rand() % 3) {
	case 0: return 8 * ((uint64_t)rand() % ((c->headers.data[0].p_offset + c->notes_size) / 8));
	case 1: return heap + 8 * ((uint64_t)rand() % 100000);
	default: return arena + 8 * ((uint64_t)rand() % 270);
	}
}

static uint64_t pick_value(uint64_t old)
{
	switch (rand() % 8) {
	case 0: return 0;
	case 1: return UINT64_MAX;
	case 2: return old + 16;
	case 3: return old ^ UINT64_C(1) << rand() % 64;
	case 4: return old - 16;
	case 5: return (uint64_t)rand() << 4;
	case 6: return old + PAGE;
	default: return old ^ 1;
	}
}

/* Whether it could still be read. */
static bool mutate(const struct core_bytes *c, uint64_t heap, uint64_t arena)
{
	struct { uint64_t at, old; } changed[8];
	size_t count = 1 + (size_t)rand() % ARRAY_SIZE(changed);
	struct reading r;

	for (size_t i = 0; i < count; i++) {
		uint64_t value;

		changed[i].at = pick(c, heap, arena);
		assert_int_equal(pread(c->fd, &changed[i].old, 8, (off_t)changed[i].at), 8);
		value = pick_value(changed[i].old);
		assert_int_equal(pwrite(c->fd, &value, 8, (off_t)changed[i].at), 8);
	}
	bool is_read = read_core(c, &r);

	free_reading(&r);
	while (count-- > 0)
		assert_int_equal(pwrite(c->fd, &changed[count].old, 8, (off_t)changed[count].at), 8);
	return is_read;
}

static void test_mutations(void **state)
{
	unsigned read = 0;
	struct core_bytes c;
	struct reading r;

	(void)state;
	make_core(&c);
	assert_true(read_core(&c, &r));
	uint64_t arena = offset_of(&c, r.report.heaps.arenas.data[0].addr);
	uint64_t heap = offset_of(&c, r.heap);

	free_reading(&r);
	srand(1);
	for (unsigned i = 0; i < rounds(MUTATIONS); i++)
		read += mutate(&c, heap, arena);
	assert_true(read > rounds(MUTATIONS) / 10 && read < rounds(MUTATIONS));
	free_core(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_mutations),
	};

	(void)setrlimit(RLIMIT_CPU, &(struct rlimit){ 120, 120 }); /* an infinite loop fails */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
