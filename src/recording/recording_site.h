/* Call sites in a recording (symbols/wrapper.h), as nodes: rows, -1 = no stack. */
#ifndef PTMEM_RECORDING_RECORDING_SITE_H
#define PTMEM_RECORDING_RECORDING_SITE_H

#include "recording/recording.h"
#include "symbols/wrapper.h"

/* What frame @row is to call sites if the user says nothing (code_owner.h). The page applies that.
 */
struct recording_role {
	enum frame_rank rank;
	bool is_allocator; /* by name; see wrapper.h */
	bool is_fixed;     /* --my-code does not make it a call site: it allocates, or calls main */
	bool is_start;     /* start-up code */
};

struct recording_role recording_frame_role(const struct recording *r, size_t row);
/* As the page has it: a sum of enum wrapper_role. */
unsigned recording_role_bits(const struct recording_role *role);

/* Names of frame @row, and r->my_code. */
struct frame_text recording_frame_text(const struct recording *r, size_t row);

/* As META has them, a thousand at most. */
void recording_read_my_code(struct recording *r);

/* The call site of leaf @leaf (row). */
int64_t recording_site(const struct recording *r, size_t leaf);
/* The call site of the path that ends at node @node - 1; 0 = no stack. */
int64_t recording_site_of(const struct recording *r, uint64_t node);

#endif
