/*
 * Markers: places in the text where a program announces that it allocates or frees. valgrind.h's
 * client requests (doc/massif.md 3) are found by their bytes; probes of .note.stapsdt are
 * ptmem:alloc, ptmem:free (ptmem.h), otel_memory:alloc and :free. All are code without effect, so
 * a thread that hits a breakpoint there continues after it. A block that a program announces
 * becomes the same event as a call of malloc or free; inside a watched call a marker announces
 * nothing new. A note: three words (address, base, semaphore), then provider, name and arguments,
 * each zero-terminated; owner "stapsdt", type 3. Addresses assume that .stapsdt.base is at base:
 * in a file that was moved later (prelink) all of them are off by the same distance.
 */
#ifndef PTMEM_TRACEE_CALLS_CLIENT_REQUEST_H
#define PTMEM_TRACEE_CALLS_CLIENT_REQUEST_H

#include "arch/arch.h"
#include "base/alloc.h"
#include "base/elf_file.h"
#include "base/types.h"
#include "tracee/state/thread.h"

#define REQUEST_WORDS 6 /* words of a request's block: the code, then five arguments */

enum request_kind {
	REQUEST_NONE,            /* irrelevant for a profile: answered with its default */
	REQUEST_IS_RUNNING,      /* RUNNING_ON_VALGRIND */
	REQUEST_MONITOR,         /* text */
	REQUEST_ALLOC,           /* addr, size */
	REQUEST_FREE,            /* addr */
	REQUEST_RESIZE,          /* addr, size: the new one */
	REQUEST_POOL_CREATE,     /* pool, flags */
	REQUEST_POOL_DESTROY,    /* pool */
	REQUEST_POOL_ALLOC,      /* pool, addr, size */
	REQUEST_POOL_FREE,       /* pool, addr */
	REQUEST_POOL_TRIM,       /* pool, addr, size: what is outside ends */
	REQUEST_POOL_MOVE,       /* pool, addr: its new name */
	REQUEST_POOL_CHANGE,     /* pool, old_addr, addr, size */
	REQUEST_POOL_EXISTS,     /* pool */
};

#define REQUEST_POOL_AUTO_FREE 1u /* a flag: a block's end ends all blocks inside it */

struct request {
	uint8_t kind;            /* enum request_kind */
	taddr_t addr, old_addr, pool, text;
	uint64_t size, flags;
};

struct request request_decode(const uint64_t word[REQUEST_WORDS]);

static inline bool request_is_of_pool(const struct request *r)
{
	return r->kind >= REQUEST_POOL_CREATE;
}

enum marker_kind { MARKER_REQUEST, MARKER_ALLOC, MARKER_FREE, MARKER_KIND_COUNT };

struct marker {
	uint64_t vaddr;       /* in the file; the first member, by which they are sorted */
	uint64_t function, function_size; /* containing function; 0 = unknown */
	uint64_t semaphore;   /* vaddr of the 16-bit semaphore; 0 = none */
	uint8_t kind;         /* enum marker_kind */
	struct arch_operand block, size; /* arguments of ALLOC; of FREE: block */
	/*
	 * ALLOC: the weighted bytes of a sampled block (otel_memory:alloc with three arguments,
	 * which is fired only for samples)
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

/* The markers of an address space: breakpoints at them, and their stops. */

struct trap;

/* Finds the markers of @m's file, once; if possible before its program is stopped. */
void requests_find_markers(struct target *t, struct module *m);

/* Installs breakpoints at all markers of @m, and raises its semaphores. */
void requests_install(struct target *t, struct address_space *s, struct module *m);
/* Lowers the semaphore of @trap, whose breakpoint was removed. */
void requests_removed(struct address_space *s, struct trap *trap);

/*
 * Whether the first bytes of the marker at @trap may be replaced by a jump; if not, *why (static
 * text).
 */
bool requests_may_jump(const struct target *t, const struct address_space *s,
		       const struct trap *trap, const char **why_out);
/* Which requests the pads of @s must pass to ptmem: enum pad_flag. */
uint32_t requests_pad_flags(const struct target *t, const struct address_space *s);

/* Copies and frees the marker state of @s. */
void requests_fork(const struct address_space *from, struct address_space *to);
void requests_free(struct address_space *s);

#endif
