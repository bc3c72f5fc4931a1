/*
 * Markers: places in the text where a program announces that it allocates or frees: valgrind.h's
 * client requests (doc/massif.md 3), found by their bytes, and probes of .note.stapsdt:
 * ptmem:alloc, ptmem:free (ptmem.h), otel_memory:alloc and :free. All are code without effect, so a
 * thread that hits a breakpoint there continues after it.
 *
 * A note: three words (address, base, semaphore), then provider, name and
 * arguments, each zero-terminated; owner "stapsdt", type 3. Addresses assume that .stapsdt.base is
 * at base: in a file that was moved later (prelink) all of them are off by the same distance.
 */
#ifndef PTMEM_TRACEE_CALLS_MARKER_H
#define PTMEM_TRACEE_CALLS_MARKER_H

#include "arch/arch.h"
#include "base/elf_file.h"
#include "base/vec.h"

enum marker_kind { MARKER_REQUEST, MARKER_ALLOC, MARKER_FREE, MARKER_KIND_COUNT };

struct marker {
	uint64_t vaddr;       /* in the file */
	uint64_t function, function_size; /* containing function; 0 = unknown */
	uint64_t semaphore;   /* vaddr of the 16-bit semaphore; 0 = none */
	uint8_t kind;         /* enum marker_kind */
	struct arch_operand block, size; /* arguments of ALLOC; of FREE: block */
	/*
	 * ALLOC: the bytes that a sampled block stands for (otel_memory:alloc with three
	 * arguments, which is fired for samples alone)
	 */
	struct arch_operand weighted;
	bool has_weight;
};

struct marker_list {
	VEC(struct marker) list;
	uint32_t unknown;     /* probes of ours whose arguments cannot be read */
};

/* Finds all markers of @file, each once. The caller frees @out->list with vec_deinit. */
void marker_find(struct elf_file *file, const struct arch *arch, struct marker_list *out);

/* Calls @fn with the offset of each client request marker in @size bytes at @data. */
void marker_scan(const struct arch *arch, const uint8_t *data, size_t size,
		 void (*fn)(void *ctx, size_t offset), void *ctx);

/*
 * Parses the descriptor of one note in a file whose .stapsdt.base is at @base (0: it has none).
 * Returns 0; -ENOENT for a probe that is not ours; -EINVAL if malformed; -ENOTSUP for one of ours
 * whose arguments cannot be read. Sets *out only on success.
 */
int marker_read_note(const struct arch *arch, const uint8_t *desc, size_t size, uint64_t base,
		     struct marker *out);

/* Whether @o is the complete register of argument @i of a function. */
bool marker_is_argument(const struct arch_operand *o, const struct arch *arch, unsigned i);

/* Evaluates @o with these registers. @read: reads target memory, 0 or -errno. */
typedef int marker_read_fn(void *ctx, taddr_t addr, void *buf, size_t size);
int marker_value(const struct arch_operand *o, const struct arch_regs *regs, marker_read_fn *read,
		 void *ctx, uint64_t *out);

#endif
