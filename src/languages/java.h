/*
 * HotSpot (OpenJDK 11 to 25) from outside: what its generated code is, how a frame of it leads to
 * its caller, and the names and lines of Java methods. Nothing is executed in the program.
 *
 *	gHotSpotVMStructs, ..Types     offsets of all fields, in libjvm.so itself
 *	CodeCache -> heaps -> blobs    compiled methods, the interpreter, stubs; by address
 *	compiled frame                 fixed size: CodeBlob::_frame_size; return address at its end
 *	interpreted frame              by frame pointer; has the method and the bytecode's address
 *	nmethod -> PcDesc -> scopes    the methods that are inlined at an address
 *	Method -> ConstMethod -> ConstantPool -> Symbol, line table
 *
 * Code is freed and its memory used again, and classes are unloaded: what is found holds while the
 * thread whose frame it is has not gone on. java_blob.stamp tells whether it is still the same.
 */
#ifndef PTMEM_LANGUAGES_JAVA_H
#define PTMEM_LANGUAGES_JAVA_H

#include "base/alloc.h"
#include "base/elf_file.h"
#include "languages/virtual_frames.h"

#define JAVA_OLDEST 11u

/* Offsets of fields, JAVA_ABSENT = this version does not have it. See rows in java.c. */
#define JAVA_ABSENT UINT32_MAX

struct java_layout {
	uint32_t array_length, array_data;
	uint32_t heap_memory, heap_segments, heap_shift, space_low, space_high;
	uint32_t block_used, block_size;
	uint32_t blob_name, blob_size, blob_frame, blob_complete, blob_code_start, blob_code_end,
		blob_code_offset, blob_data_offset, blob_mutable, blob_relocations;
	uint32_t nmethod_method, nmethod_scopes, nmethod_scopes_offset, nmethod_descs_offset,
		nmethod_descs_end, nmethod_metadata, nmethod_immutable, nmethod_original,
		nmethod_id, nmethod_deopt, nmethod_deopt_offset, nmethod_deopt_mh,
		nmethod_deopt_mh_offset, nmethod_size;
	uint32_t method_const, const_pool, const_flags, const_code_size, const_name, const_size,
		const_has_lines;
	uint32_t pool_holder, pool_source, pool_size, class_name, class_source;
	uint32_t symbol_length, symbol_text;
	uint32_t desc_pc, desc_scope, desc_size;
	uint32_t entry_size;      /* ContinuationEntry */
	/* of an interpreted frame, in words from its frame pointer */
	int32_t frame_sender, frame_last;
	/* addresses of variables */
	uint64_t heaps, version, entry_return;
};

/* A part of the code cache. */
struct java_heap {
	taddr_t start, end;
	taddr_t segments;         /* a byte for each segment: how far back its block begins */
	uint64_t segment_count;
	uint32_t shift;           /* segments have 1 << shift bytes */
};

#define JAVA_HEAPS_MAX 8u

/* A virtual machine in a process. */
struct java {
	struct java_layout layout;
	uint32_t version;         /* 17 */
	struct java_heap heap[JAVA_HEAPS_MAX];
	uint32_t heaps;
};

/*
 * Reads the layout of the virtual machine whose libjvm.so is @elf, mapped at @bias. -EAGAIN: it is
 * not initialized yet; -EINVAL: it lacks something.
 */
int java_open(struct elf_file *elf, taddr_t bias, const struct language_memory *m,
	      struct java *out);

/* Reads where the heaps are, which grow: after java_open, and if an address is in none of them. */
bool java_read_heaps(struct java *j, const struct language_memory *m);

enum java_blob_kind {
	JAVA_COMPILED,    /* of Java methods, by a compiler */
	JAVA_NATIVE,      /* it calls a native method */
	JAVA_INTERPRETER,
	JAVA_STUB,        /* all others */
};

struct java_blob {
	enum java_blob_kind kind;
	taddr_t at;               /* of its header */
	taddr_t start, end;       /* of its code */
	uint32_t size;            /* from the header */
	uint32_t frame_size;      /* bytes; 0 = none, or unknown */
	int32_t complete;         /* from this offset in the code on there is a frame; -1 = never */
	taddr_t method;           /* Method*, 0 = none */
	taddr_t deopt, deopt_mh;  /* return addresses are exchanged for these; 0 = none */
	uint32_t original;        /* offset from the stack pointer where the true one is then */
	uint64_t stamp;           /* another method there hardly has it; 0 = no method */
	taddr_t descs, descs_end; /* PcDesc */
	taddr_t scopes, metadata;
};

/* Finds the code that contains @pc. -ENOENT if none does, -EFAULT if it cannot be read. */
int java_blob_find(const struct java *j, const struct language_memory *m, taddr_t pc,
		   struct java_blob *out);

/* The stamp of what begins at @at now, which was a compiled method; 0 if it is none. */
uint64_t java_blob_stamp(const struct java *j, const struct language_memory *m, taddr_t at);

/* What it is called in the virtual machine; "" if that cannot be read. Visible characters. */
void java_blob_name(const struct java *j, const struct language_memory *m,
		    const struct java_blob *blob, char *name, size_t size);

/* A frame of generated code. */
struct java_place {
	taddr_t pc;               /* exact */
	bool is_return;           /* pc is a return address */
	taddr_t sp, fp;           /* fp 0 = unknown */
};

/* Where its caller's frame is. */
struct java_step {
	enum { JAVA_BY_SIZE, JAVA_BY_FP, JAVA_UNKNOWN } kind;
	uint64_t size;            /* BY_SIZE: from sp to the caller's; return address and frame
				   * pointer are just below it */
	taddr_t caller_sp;        /* BY_FP: 0 = just above the return address */
	bool is_fixed;            /* the same for each frame with this pc */
};

/* How @place, in @blob, leads to its caller. */
void java_step(const struct java *j, const struct language_memory *m, const struct java_blob *blob,
	       const struct java_place *place, struct java_step *out);

/* A method that runs in a frame. */
struct java_frame {
	taddr_t method;           /* Method* */
	int32_t bci;              /* of the bytecode; -1 = unknown */
};

#define JAVA_FRAMES_MAX 64u

/* Whether the compiler describes the return address @pc of @blob. */
bool java_is_described(const struct java *j, const struct language_memory *m,
		       const struct java_blob *blob, taddr_t pc);

/* What an interpreted frame runs: the words in the frame. */
struct java_running {
	taddr_t method, bytecode; /* Method*, address of the bytecode */
};

/* Fills @out from the frame at @place, which is one of the interpreter. False if it has no fp. */
bool java_running(const struct java *j, const struct language_memory *m,
		  const struct java_place *place, struct java_running *out);

/*
 * The methods that run in @place, innermost first, the inlined ones included. Their number, 0 if it
 * is none of Java, at most JAVA_FRAMES_MAX.
 */
uint32_t java_frames(const struct java *j, const struct language_memory *m,
		     const struct java_blob *blob, const struct java_place *place,
		     struct java_frame *out);

/* -- methods -- */

struct java_method {
	char *name;               /* "java.util.HashMap.put". Owned, visible */
	char *file;               /* "HashMap.java"; NULL = unknown. Owned */
	uint64_t stamp;           /* as java_method_stamp */
	uint8_t *lines;           /* table. Owned */
	size_t lines_size;
	uint32_t code_size;       /* bytes of bytecode */
	bool has_zero;            /* numbers in the table may have bytes that are 0 */
};

/* Reads the method at @method. -EINVAL if there is none. java_method_deinit frees @out. */
int java_method_read(const struct java *j, const struct language_memory *m, taddr_t method,
		     struct java_method *out);
void java_method_deinit(struct java_method *x);

/* A number that another method at the same address hardly has; 0 if there is none. */
uint64_t java_method_stamp(const struct java *j, const struct language_memory *m, taddr_t method);

/* The line of the bytecode at @bci; 0 = unknown. */
uint32_t java_method_line(const struct java_method *x, int32_t bci);

/*
 * A number of HotSpot's compressed streams at data[*at], which is moved behind it. False at the
 * end of the data. @has_zero: versions to 19.
 */
bool java_read_number(const uint8_t *data, size_t size, size_t *at, bool has_zero, uint32_t *out);

#endif
