/*
 * Java in a session: answers the unwinder's questions about generated code, and turns what runs in
 * it into named frames of the call tree. Hides: which libjvm.so there is, what is kept of methods
 * and code, and that both can go while they are kept.
 *
 *	address, frame -> languages/java.h -> methods -> keys of names -> chain: a list of keys
 *
 * A pc of a frame that depends on more than the pc (an interpreter's) is replaced by the key of a
 * chain, which the session replaces in turn by the frames.
 */
#ifndef PTMEM_SESSION_RUNTIMES_JAVA_FRAMES_H
#define PTMEM_SESSION_RUNTIMES_JAVA_FRAMES_H

#include "base/types.h"
#include "unwind/unwind.h"

struct address_space;
struct java_frames;
struct symbols;

/* What it needs of the session; each NULL = nothing is done. */
struct java_ops {
	/* Code in [start, end) has gone: rules for it, and frames at its addresses. */
	void (*forget)(void *ctx, taddr_t start, taddr_t end);
	/* A name got a key. */
	void (*named)(void *ctx, uint64_t key, const char *name, const char *file, uint32_t line);
	void *ctx;
};

/* For the libjvm.so @m of @space. */
struct java_frames *java_frames_new(const struct module *m, struct address_space *space,
				    struct symbols *symbols, const struct java_ops *ops);
void java_frames_free(struct java_frames *f); /* may be NULL */

/* As unwind_ops.generated. */
bool java_frames_find(struct java_frames *f, const struct generated_place *place,
		      struct generated_code *out);

/*
 * The keys of the frames for @pc, a chain's key or an address in generated code (minus 1, as walks
 * report them), outermost first. Their number, 0 if it is neither. Valid until the next call.
 */
size_t java_frames_of(struct java_frames *f, taddr_t pc, const uint64_t **keys_out);

#endif
