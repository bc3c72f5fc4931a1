/*
 * A file of events (ptmem --events) as a plan for ptmem-replay. Hides: which calls are performed,
 * by which thread, and in which order.
 *
 * Threads do not run at the same time: they take turns, each of up to REPLAY_WINDOW events of all
 * of them. Within this window the events of a thread follow each other; across windows the order is
 * that of the file. A window ends early where a thread needs a block of another one, or a thread
 * begins or ends. So peaks coincide, and there are few switches.
 */
#ifndef PTMEM_REPORT_WHATIF_REPLAY_PLAN_H
#define PTMEM_REPORT_WHATIF_REPLAY_PLAN_H

#include "base/alloc.h"
#include "base/types.h"
#include "replay/replay_format.h"
#include "symbols/code_owner.h"

#define REPLAY_WINDOW 1000u
#define REPLAY_SAMPLES 400u /* about as many at equal distances, and some where memory grows */

struct plan_sample {
	uint64_t time_ns;     /* since the start */
	uint64_t live_bytes;
};

struct replay_plan {
	int fd;               /* of the file; -1: none */
	struct replay_head head;
	char *command;        /* owned */
	uint32_t pid;
	VEC(struct plan_sample) samples;
	uint64_t calls, peak_bytes, peak_blocks;
	uint64_t end_bytes, end_blocks;
	uint64_t earlier_blocks; /* from before the profile: allocated first */
	uint64_t other_calls;    /* of custom allocators: not performed */
	uint64_t duration_ns;
	uint64_t limit;          /* bytes of resident memory that a replay may take: the caller's */
	unsigned cut_line;       /* where the file is cut; 0: it is not */
	uint32_t *site;          /* by block: its call site, from 0; live at the end only. Owned */
	char **site_name;        /* owned */
	size_t site_count;
};

/*
 * Makes the plan of the file at @path ("-": standard input); @my_code: for call sites. 0; or
 * -errno, -EINVAL with *@why_out, which the caller frees. Then there is nothing to release.
 */
int replay_plan_make(const char *path, const struct my_code *my_code, struct replay_plan *out,
		     char **why_out);
void replay_plan_deinit(struct replay_plan *plan);

#endif
