/*
 * Performs a plan with an allocator: starts ptmem-replay. Hides: where that is, how a process gets
 * another malloc, and how its answer is read.
 */
#ifndef PTMEM_REPORT_WHATIF_REPLAY_RUN_H
#define PTMEM_REPORT_WHATIF_REPLAY_RUN_H

#include "report/whatif/allocator_spec.h"
#include "report/whatif/replay_plan.h"

/* Of blocks that are live at the end, on nearly empty pages. */
struct pinning_site {
	uint32_t site;     /* replay_plan.site_name */
	uint64_t pages;    /* that these blocks keep, perhaps with others */
	uint64_t blocks, bytes;
};

/* Of several replays, bytes. */
struct replay_range {
	uint64_t least, most;
};

struct replay_outcome {
	const struct allocator_spec *spec;
	char *library;         /* whose malloc it was: a path; owned */
	char *said;            /* what it printed; owned; "" = nothing */
	uint64_t *resident;    /* bytes by sample of the plan; owned */
	uint64_t peak, end;    /* bytes */
	struct replay_range peak_range, end_range; /* by how fast the clock is */
	uint64_t live_at_peak; /* at the first sample with the most */
	uint64_t cpu_ns, failed;
	uint64_t pages;        /* nearly empty at the end */
	VEC(struct pinning_site) pins; /* those with the most pages first */
};

/*
 * Which of the libraries of @spec is here, as allocator_spec_library; NULL: none, *@why_out is the
 * reason then, a text that the caller frees.
 */
const char *replay_find(const struct allocator_spec *spec, char **why_out);
/* Performs @plan with that @library. False: there is nothing to release, *@why_out as above. */
bool replay_run(const struct replay_plan *plan, const struct allocator_spec *spec,
		const char *library, struct replay_outcome *out, char **why_out);
void replay_outcome_deinit(struct replay_outcome *o);

#endif
