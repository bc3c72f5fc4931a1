/*
 * Core files: program headers, notes, mapped objects, and what --graph makes of the memory in them.
 * The seed has a thread, a file whose first page is dumped, data, and a stack.
 */
#include "tests/fuzz/fuzz.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/procfs.h>
#include <unistd.h>

#include "base/log.h"
#include "graph/heap_graph.h"
#include "inspect/core_file.h"
#include "inspect/inspect.h"
#include "session/inspect/graph_names.h"
#include "session/inspect/malloc_module.h"

#define PAGE 4096u
#define FILE_AT UINT64_C(0x555555554000)
#define DATA_AT UINT64_C(0x555555556000)
#define STACK_AT UINT64_C(0x7ffffffde000)
#define NAME "CORE\0\0\0"

struct note_head {
	Elf64_Nhdr head;
	char name[8];
};

struct core_image {
	Elf64_Ehdr header;
	Elf64_Phdr part[4];
	struct {
		struct note_head status_head;
		struct elf_prstatus status;
		struct note_head info_head;
		struct elf_prpsinfo info;
		struct note_head auxv_head;
		uint64_t auxv[8];
		struct note_head files_head;
		struct {
			uint64_t count, page, row[3];
			char name[16];
		} files;
	} notes;
	struct {
		Elf64_Ehdr header;
		Elf64_Phdr part[3];
		struct note_head id_head;
		uint8_t id[8];
		uint8_t rest[PAGE - sizeof(Elf64_Ehdr) - 3 * sizeof(Elf64_Phdr) -
			     sizeof(struct note_head) - 8];
	} file;
	uint64_t data[PAGE / 8], stack[PAGE / 8];
};

#define AT(member) offsetof(struct core_image, member)
#define SIZE(member) sizeof(((struct core_image *)NULL)->member)
#define HEAD(type, member) {{5, SIZE(notes.member), type}, NAME}
#define LOAD(at, member, flags) \
	{PT_LOAD, flags, AT(member), at, 0, SIZE(member), SIZE(member), PAGE}

static const struct core_image seed = {
	.header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		   .e_type = ET_CORE, .e_machine = EM_X86_64, .e_version = EV_CURRENT,
		   .e_phoff = AT(part), .e_ehsize = sizeof(Elf64_Ehdr),
		   .e_phentsize = sizeof(Elf64_Phdr), .e_phnum = 4},
	.part = {{PT_NOTE, PF_R, AT(notes), 0, 0, SIZE(notes), 0, 4},
		 LOAD(FILE_AT, file, PF_R | PF_X), LOAD(DATA_AT, data, PF_R | PF_W),
		 LOAD(STACK_AT, stack, PF_R | PF_W)},
	.notes = {
		.status_head = HEAD(NT_PRSTATUS, status),
		.status = {.pr_pid = 100, .pr_reg = {[19] = STACK_AT + 64}},
		.info_head = HEAD(NT_PRPSINFO, info),
		.info = {.pr_pid = 100, .pr_psargs = "prog with arguments"},
		.auxv_head = HEAD(NT_AUXV, auxv),
		.auxv = {AT_SYSINFO_EHDR, FILE_AT, AT_RANDOM, STACK_AT + 128, AT_ENTRY, FILE_AT},
		.files_head = HEAD(NT_FILE, files),
		.files = {1, PAGE, {FILE_AT, FILE_AT + PAGE, 0}, "/nowhere/prog"}},
	.file = {
		.header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
			   .e_type = ET_DYN, .e_machine = EM_X86_64, .e_version = EV_CURRENT,
			   .e_phoff = sizeof(Elf64_Ehdr), .e_ehsize = sizeof(Elf64_Ehdr),
			   .e_phentsize = sizeof(Elf64_Phdr), .e_phnum = 3},
		.part = {{PT_LOAD, PF_R | PF_X, 0, 0, 0, PAGE, PAGE, PAGE},
			 {PT_LOAD, PF_R | PF_W, 0, 0x2000, 0, PAGE, PAGE, PAGE},
			 {PT_NOTE, PF_R, AT(file.id_head) - AT(file), AT(file.id_head) - AT(file),
			  0, sizeof(struct note_head) + 8, 0, 4}},
		.id_head = {{4, 8, NT_GNU_BUILD_ID}, "GNU"},
		.id = {1, 2, 3, 4, 5, 6, 7, 8}},
	.data = {DATA_AT + 8, 0x21, DATA_AT + 64, STACK_AT, 3, 4, 5, 0x31, FILE_AT},
	.stack = {DATA_AT, STACK_AT + 16, FILE_AT + 8, 1, 2, 3}};

const struct fuzz_seed fuzz_seeds[] = {{(const char *)&seed, sizeof(seed)}, {0}};

static void read_objects(const struct core_file *c)
{
	struct core_object o;
	uint8_t buf[100];

	for (size_t i = 0; i < c->parts.count; i++) {
		core_object_read(c, c->parts.data[i].start, &o);
		core_file_read_all(c, c->parts.data[i].end - 50, buf, sizeof(buf));
	}
	for (size_t i = 0; i < c->files.count; i++)
		core_object_read(c, c->files.data[i].start, &o);
}

static void make_graph(const struct core_file *c, struct inspect_input *in)
{
	struct inspect_report report = {0};
	struct held_modules modules = {0};
	struct heap_graph graph;

	for (size_t i = 0; i < c->threads.count; i++)
		*vec_add(&in->threads) = (struct glibc_thread){
			.tid = c->threads.data[i].tid,
			.sp = c->threads.data[i].regs.word[arch_native->sp],
			.thread_pointer = c->threads.data[i].regs.word[arch_native->thread_pointer]};
	in->wants_types = in->wants_holders = in->wants_python = true;
	in->source = core_memory_source(c);
	inspect_run(in, &report);
	heap_graph_init(&graph);
	graph.keeps_edges = true;
	if (graph_names_build(&report, &modules, in, &graph))
		heap_graph_solve(&graph);
	heap_graph_deinit(&graph);
	inspect_report_deinit(&report);
}

void fuzz_one(const uint8_t *data, size_t size)
{
	static int fd = -1;
	char path[64], *why = NULL;
	struct core_file c;
	struct core_sums sums = {0};
	struct inspect_input in = {0};

	if (fd < 0)
		fd = memfd_create("core", 0);
	CHECK(fd >= 0 && ftruncate(fd, 0) == 0 && pwrite(fd, data, size, 0) == (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (core_file_open(path, &c, &why) != 0) {
		free(why);
		return;
	}
	read_objects(&c);
	if (core_memory_read(&c, &in.resident, &sums) == 0)
		make_graph(&c, &in);
	inspect_input_deinit(&in);
	core_file_close(&c);
}
