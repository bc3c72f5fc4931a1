/*
 * One ELF file, opened once through libelf and shared by all readers: symbols for probes, CFI for
 * unwinding, names for reports.
 *
 * Independent of processes. Files are untrusted: every offset is checked, a broken file gives
 * -EINVAL, never a crash.
 */
#ifndef PTMEM_BASE_ELF_FILE_H
#define PTMEM_BASE_ELF_FILE_H

#include <gelf.h>
#include <sys/types.h>

#include "base/alloc.h"
#include "base/proc.h"
#include "base/types.h"

struct elf_file;

struct open_elf {
	dev_t dev;
	ino_t ino;             /* 0 of an image in memory */
	struct elf_file *file;
};

/* The open files that are shared, not owned; zeroed = empty. It must outlive its last file, or be
 * emptied by elf_files_deinit. */
struct elf_files {
	VEC(struct open_elf) open;
	/*
	 * the file that was released last stays open, since a program is looked at several times
	 * when it is executed: elf_files_deinit is needed
	 */
	bool keeps_last;
	struct elf_file *last; /* owned; NULL = none */
	struct root_dir *root; /* the last one that was not ours; held, NULL = none */
};

struct elf_segment {
	uint64_t vaddr, offset, filesz, memsz;
	bool is_exec, is_readable;
};

struct elf_file {
	uint32_t users;
	struct elf_files *files; /* where it is listed; NULL = it is not shared */
	char *path;            /* the name it was opened by, in @root */
	struct root_dir *root; /* held; NULL = ours */
	dev_t dev;
	ino_t ino;
	struct timespec changed; /* st_ctim when it was opened */
	int fd;                /* -1 for an image in memory */
	Elf *elf;
	uint8_t *image;        /* image in memory (vdso), owned; else NULL */
	size_t image_size;
	uint16_t machine, type; /* EM_*, ET_* */
	uint8_t elf_class;
	uint64_t entry;
	/* DF_1_PIE and no dynamic linker: its functions may all be local */
	bool is_static_pie;
	bool has_interp;       /* has PT_INTERP */
	/* DT_FINI of such a program, its last destructor; 0 = none */
	uint64_t fini;
	struct elf_segment *segment; /* PT_LOAD, ascending */
	size_t segment_count;
	const uint8_t *build_id; /* NULL if none; points into the file */
	size_t build_id_size;
	uint64_t build_id_vaddr; /* where it is mapped */
	void *user;            /* for the symbols stage; see user_free */
	void (*user_free)(void *user);
	void *cfi_user;        /* for the unwind stage */
	void (*cfi_user_free)(void *user);
	void *go_user;         /* for go_table.h */
	void (*go_user_free)(void *user);
	void *marker_user;     /* for tracee/calls/client_request.h: its markers */
	void (*marker_user_free)(void *user);
};

/*
 * Opens @path. A file that is open already in @files (same device and inode) is shared; NULL = it
 * is opened for the caller alone. @name: for elf_file.path; NULL = @path.
 */
int elf_file_open(struct elf_files *files, const char *path, const char *name,
		  struct elf_file **file_out);

/* The same for @fd, whose ownership it takes: file @name of @root (NULL = ours). */
int elf_file_open_fd(struct elf_files *files, int fd, const char *name, struct root_dir *root,
		     struct elf_file **file_out);

/* Takes ownership of @image (malloc'ed, @size bytes), a complete ELF file in memory. */
int elf_file_open_memory(uint8_t *image, size_t size, const char *name, struct elf_file **file_out);

/* The same, shared by all that open the same bytes. */
int elf_file_open_image(struct elf_files *files, uint8_t *image, size_t size, const char *name,
			struct elf_file **file_out);

struct elf_file *elf_file_hold(struct elf_file *file);
void elf_file_release(struct elf_file *file); /* may be NULL */

/* Whether both are the same file on disk. */
bool elf_file_is_same(const struct elf_file *a, const struct elf_file *b);
/* The files that are still open are not shared any more. */
void elf_files_deinit(struct elf_files *files);

struct elf_symbol {
	const char *name;      /* points into the file; .dynsym names carry no version */
	uint64_t vaddr, size;
	uint8_t type, bind;    /* STT_*, STB_* */
	bool is_defined;
};

/* Whether it names code. */
bool elf_symbol_is_function(const struct elf_symbol *sym);
/* Whether no other source file can refer to it by name. */
bool elf_symbol_is_local(const struct elf_symbol *sym);

/*
 * Calls @fn for each symbol of .dynsym, then of .symtab, until it returns
 * non-zero, and returns that value; 0 at the end. Of a broken table only the readable part is used.
 */
int elf_file_each_symbol(struct elf_file *file, int (*fn)(void *ctx, const struct elf_symbol *sym),
			 void *ctx);

/*
 * Copies @size bytes at @offset of the file; the caller frees the copy. NULL if the file is
 * shorter.
 */
uint8_t *elf_file_read(const struct elf_file *file, uint64_t offset, uint64_t size);

/* The section @name of @elf if it has contents in the file, else NULL. @header_out may be NULL. */
Elf_Scn *elf_file_section(Elf *elf, const char *name, GElf_Shdr *header_out);
/* False: @elf has no section @name. Takes a fraction of the time of a search. */
bool elf_file_may_have_section(Elf *elf, const char *name);

/* The segment that contains @vaddr, or NULL. */
const struct elf_segment *elf_file_segment(const struct elf_file *file, uint64_t vaddr);
/* Whether @vaddr is in the file, in a segment that is executable. */
bool elf_file_is_code(const struct elf_file *file, uint64_t vaddr);

/*
 * The functions of an ELF file, by its symbols and the search table of .eh_frame_hdr (LSB Core,
 * 10.6.2), for analyses that must decode code from a function's start.
 *
 *	start               end
 *	|---- a function ----|----- a gap -----|---- the next function ----
 */

enum elf_function_kind {
	ELF_FUNCTION,
	/* part of a code section: padding, data between code, code without symbol and CFI */
	ELF_GAP,
	ELF_NO_CODE, /* headers, and sections of data next to code in one segment */
};

struct elf_function {
	/* in an executable segment; an unknown end is the start of the next function */
	uint64_t start, end;
	enum elf_function_kind kind;
};

struct elf_functions {
	VEC(struct elf_function) list; /* ascending, disjoint */
};

/*
 * The dynamic linker that the program at @path names, to be freed by the caller; NULL: it names
 * none, or is no program.
 */
char *elf_read_interpreter(const char *path);

/* The caller frees @out->list with vec_deinit. */
void elf_functions_find(struct elf_file *file, struct elf_functions *out);

#endif
