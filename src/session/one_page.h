/*
 * --html for several processes: one page of all of them (recording/processes_page.h), if the name
 * has neither %p nor %n. It is written when the last process has ended; until then their recordings
 * are kept, as files in memory.
 */
#ifndef PTMEM_SESSION_ONE_PAGE_H
#define PTMEM_SESSION_ONE_PAGE_H

#include "base/alloc.h"
#include "base/types.h"

struct options;
struct recording;
struct run;
struct session;

/* All zero at first; owned by the run. */
struct one_page {
	VEC(struct one_page_part {
		char *data;
		size_t size;
	}) part;
	uint64_t bytes;        /* of all */
	uint32_t pid;          /* of the first one */
};

/*
 * The sources of programs as a member of their page's JSON, "" without --embed-sources, of @count
 * recordings. The caller frees it.
 */
char *one_page_sources(const struct options *o, const struct recording *const *r, size_t count);
/*
 * Keeps the recording @r of @s, which has ended, for a page of all. false: @s has a page of its
 * own, since there was no other process, and will be none.
 */
bool one_page_add(struct session *s, const struct recording *r);
/* Writes the page, if anything was kept. */
void one_page_finish(struct run *run);
void one_page_deinit(struct one_page *p);

#endif
