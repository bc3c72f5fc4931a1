/*
 * CFI of one ELF file, through libdw.
 *
 * .eh_frame is tried first: nearly every file has it, and libdw finds a row in it by the table of
 * .eh_frame_hdr. .debug_frame, here or in the file that the build-id names below /usr/lib/debug, is
 * opened only if a row is missing.
 *
 * Files are untrusted. libdw checks what it reads but allocates as many
 * registers as an instruction names, up to gigabytes; so a file's CFI passes
 * through cfi_check.c before libdw may use it.
 */
#include "unwind/cfi.h"

#include <elfutils/libdw.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/elf_file.h"
#include "base/vec.h"
#include "unwind/cfi_check.h"
#include "unwind/known_rules.h"

#define MAX_GAP (uint64_t)8192 /* bytes of code to read if no symbol is near */
#define WINDOW (uint64_t)16384 /* bytes of code to read at least, and at most */
#define WINDOW_MAX ((uint64_t)64 << 20)

struct function_span {
	uint64_t start, end;
};

/* A part of the file's code. A whole text of 100 MB and more would take as much of our memory. */
struct code_window {
	uint64_t vaddr, size;
	uint8_t *bytes;     /* owned; NULL = nothing read */
};

struct cfi {
	Dwarf_CFI *eh;
	Dwarf *dwarf;       /* of the file itself, for .debug_frame */
	Dwarf *separate;    /* of the separate debug file */
	int separate_fd;
	Dwarf_CFI *debug[2]; /* of dwarf and separate; libdw's */
	bool has_debug;     /* debug[] were searched for */
	bool has_functions; /* the list of functions was built */
	VEC(struct function_span) functions; /* ascending, for code without CFI */
	struct known_rules rules;
	struct code_window code; /* the one read last */
};

static void cfi_free(void *user)
{
	struct cfi *cfi = user;

	if (cfi->eh)
		dwarf_cfi_end(cfi->eh);
	if (cfi->dwarf)
		dwarf_end(cfi->dwarf);
	if (cfi->separate)
		dwarf_end(cfi->separate);
	if (cfi->separate_fd >= 0)
		close(cfi->separate_fd);
	vec_deinit(&cfi->functions);
	known_rules_deinit(&cfi->rules);
	free(cfi->code.bytes);
	free(cfi);
}

static struct cfi *cfi_of(struct elf_file *file)
{
	struct cfi *cfi = file->cfi_user;

	if (cfi)
		return cfi;
	cfi = xcalloc(1, sizeof(*cfi));
	cfi->separate_fd = -1;
	if (cfi_check_eh_frame(file->elf))
		cfi->eh = dwarf_getcfi_elf(file->elf);
	file->cfi_user = cfi;
	file->cfi_user_free = cfi_free;
	return cfi;
}

struct known_rules *cfi_known_rules(struct elf_file *file)
{
	return &cfi_of(file)->rules;
}

/* "/usr/lib/debug/.build-id/ab/cdef.debug", or -1. */
static int open_separate(const struct elf_file *file)
{
	char path[160] = "/usr/lib/debug/.build-id/";
	size_t n = strlen(path);

	if (!file->build_id || file->build_id_size < 2 || file->build_id_size > 40)
		return -1;
	for (size_t i = 0; i < file->build_id_size; i++)
		n += (size_t)snprintf(path + n, sizeof(path) - n, i == 0 ? "%02x/" : "%02x",
				      file->build_id[i]);
	snprintf(path + n, sizeof(path) - n, ".debug");
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* libdw decompresses all sections of a file that it opens: some 30 ms for the C library's. */
static Dwarf *open_with_frames(int fd)
{
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	bool has_frames = elf && elf_file_section(elf, ".debug_frame", NULL);

	elf_end(elf);
	return has_frames ? dwarf_begin(fd, DWARF_C_READ) : NULL;
}

/* Once. */
static void find_debug_frames(struct cfi *cfi, const struct elf_file *file)
{
	if (cfi->has_debug)
		return;
	cfi->has_debug = true;
	if (elf_file_section(file->elf, ".debug_frame", NULL) && cfi_check_debug_frame(file->elf))
		cfi->dwarf = dwarf_begin_elf(file->elf, DWARF_C_READ, NULL);
	if (cfi->dwarf)
		cfi->debug[0] = dwarf_getcfi(cfi->dwarf);
	cfi->separate_fd = open_separate(file);
	if (cfi->separate_fd >= 0)
		cfi->separate = open_with_frames(cfi->separate_fd);
	if (cfi->separate && cfi_check_debug_frame(dwarf_getelf(cfi->separate)))
		cfi->debug[1] = dwarf_getcfi(cfi->separate);
}

Dwarf_Frame *cfi_find_eh_frame(struct elf_file *file, uint64_t vaddr)
{
	struct cfi *cfi = cfi_of(file);
	Dwarf_Frame *frame = NULL;

	if (file->elf_class != ELFCLASS64 || !cfi->eh ||
	    dwarf_cfi_addrframe(cfi->eh, vaddr, &frame) != 0)
		return NULL;
	return frame;
}

Dwarf_Frame *cfi_find(struct elf_file *file, uint64_t vaddr)
{
	struct cfi *cfi = cfi_of(file);
	Dwarf_Frame *frame = cfi_find_eh_frame(file, vaddr);

	if (frame || file->elf_class != ELFCLASS64)
		return frame;
	find_debug_frames(cfi, file);
	for (size_t i = 0; i < ARRAY_SIZE(cfi->debug); i++)
		if (cfi->debug[i] && dwarf_cfi_addrframe(cfi->debug[i], vaddr, &frame) == 0)
			return frame;
	return NULL;
}

static const struct elf_segment *code_segment(const struct elf_file *file, uint64_t vaddr)
{
	for (size_t i = 0; i < file->segment_count; i++) {
		const struct elf_segment *s = &file->segment[i];
		if (s->is_exec && vaddr >= s->vaddr && vaddr - s->vaddr < s->filesz)
			return s;
	}
	return NULL;
}

const uint8_t *cfi_code(struct elf_file *file, uint64_t vaddr, uint64_t want, size_t *size_out)
{
	struct code_window *w = &cfi_of(file)->code;
	const struct elf_segment *segment = code_segment(file, vaddr);
	if (!segment)
		return NULL;
	uint64_t at = vaddr - segment->vaddr, left = segment->filesz - at;
	if (!w->bytes || vaddr < w->vaddr || vaddr - w->vaddr > w->size ||
	    MIN(want, left) > w->size - (vaddr - w->vaddr)) {
		free(w->bytes);
		w->vaddr = vaddr;
		w->size = MIN(left, MIN(MAX(want, WINDOW), WINDOW_MAX));
		w->bytes = elf_file_read(file, segment->offset + at, w->size);
		if (!w->bytes)
			return NULL;
	}
	*size_out = w->size - (vaddr - w->vaddr);
	return w->bytes + (vaddr - w->vaddr);
}

static int add_function(void *ctx, const struct elf_symbol *sym)
{
	struct cfi *cfi = ctx;

	if (sym->is_defined && sym->type == STT_FUNC && sym->vaddr &&
	    sym->vaddr + sym->size >= sym->vaddr)
		*vec_add(&cfi->functions) =
			(struct function_span){sym->vaddr, sym->vaddr + sym->size};
	return 0;
}

static int compare_spans(const void *a, const void *b)
{
	const struct function_span *x = a, *y = b;

	return x->start != y->start ? (x->start > y->start) - (x->start < y->start)
				    : (x->end > y->end) - (x->end < y->end);
}

/* Once. */
static void read_functions(struct cfi *cfi, struct elf_file *file)
{
	if (cfi->has_functions)
		return;
	cfi->has_functions = true;
	elf_file_each_symbol(file, add_function, cfi);
	if (cfi->functions.count)
		qsort(cfi->functions.data, cfi->functions.count, sizeof(cfi->functions.data[0]),
		      compare_spans);
}

void cfi_prepare(struct elf_file *file)
{
	struct cfi *cfi = cfi_of(file);

	find_debug_frames(cfi, file);
	read_functions(cfi, file);
}

/* The last function that starts at or before @vaddr, or NULL. */
static const struct function_span *function_before(struct elf_file *file, uint64_t vaddr)
{
	struct cfi *cfi = cfi_of(file);

	read_functions(cfi, file);
	size_t n = vec_search(&cfi->functions, f, f->start <= vaddr);
	return n > 0 ? &cfi->functions.data[n - 1] : NULL;
}

enum cfi_start cfi_code_start(struct elf_file *file, uint64_t vaddr, uint64_t *start_out)
{
	const struct function_span *span = function_before(file, vaddr);
	const struct elf_segment *segment = elf_file_segment(file, vaddr);

	if (!segment)
		return CFI_START_NONE;
	if (span && vaddr < span->end) {
		*start_out = span->start;
		return CFI_START_FUNCTION;
	}
	*start_out = vaddr - MIN(vaddr - segment->vaddr, MAX_GAP);
	if (span && span->end >= *start_out) {
		*start_out = span->end;
		return CFI_START_GAP;
	}
	return CFI_START_SOMEWHERE;
}
