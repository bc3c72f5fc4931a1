/* See inspect_title.h. */
#include "session/inspect/inspect_title.h"

#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/text.h"
#include "output/inspect_report.h"
#include "output/outfile.h"
#include "session/inspect/inspect_stopped.h"
#include "session/out.h"
#include "tracee/state/module.h"

/* The versions of glibc with the structures of src/malloc/glibc.h. */
#define MINOR_MIN 28u
#define MINOR_MAX 44u

static bool is_newer(unsigned major, unsigned minor)
{
	return major == 2 && minor > MINOR_MAX;
}

void inspect_title_init(struct inspect_title *out, uint32_t pid, const char *command,
			const struct inspect_stopped *look)
{
	*out = (struct inspect_title){
		.pid = pid, .command = command, .rss = look->rss, .swap = look->swap,
		.glibc_major = look->glibc_major, .glibc_minor = look->glibc_minor,
		.is_newer = is_newer(look->glibc_major, look->glibc_minor) && look->has_arena &&
			    !look->other,
		.has_malloc = look->has_arena, .inside = look->inside, .moments = look->moments};
}

bool inspect_title_knows(unsigned major, unsigned minor)
{
	return !major || (major == 2 && minor >= MINOR_MIN);
}

/* Whether all structures of a glibc's malloc are as in a known version, block by block. */
static bool is_verified(const struct inspect_report *r)
{
	for (size_t i = 0; i < r->heaps.arenas.count; i++)
		if (r->heaps.arenas.data[i].missing_bytes > 0)
			return false;
	return inspect_is_consistent(r) && r->params.is_known && r->is_mmapped_complete &&
	       (r->caches > 0 || r->params.tcache_count == 0);
}

/* Whether what was found is what the symbols of program and libraries say. */
static bool is_other_found(const struct inspect_stopped *look)
{
	const char *found = look->report.other.name;

	return found && strcmp(found, look->other) == 0;
}

/* Its file's name tells versions and builds apart: "libmimalloc-secure.so.2.1". */
static char *refuse_other(uint32_t pid, const struct inspect_stopped *look)
{
	const struct module *m = look->other_object;
	const struct allocator_kind *kind = allocator_kind_named(look->other);

	return xasprintf("process %u: its malloc is %s's (%s), %s", pid, look->other,
			 m ? text_base_name(m->path) : "unknown file",
			 kind && kind->find ?
			 "which has not been used, or is of a version or a build that --inspect "
			 "does not know" : "which --inspect does not know");
}

char *inspect_title_refusal(uint32_t pid, const struct inspect_stopped *look)
{
	unsigned major = look->glibc_major, minor = look->glibc_minor;

	if (!inspect_stopped_knows_other(look))
		return xasprintf("process %u: its malloc is %s's, version %s, which --inspect does "
				 "not know", pid, look->report.other.name,
				 *look->version ? look->version : "unknown");
	if (look->other && is_other_found(look))
		return NULL;
	if (look->other)
		return refuse_other(pid, look);
	if (!inspect_title_knows(major, minor))
		return xasprintf("process %u: its malloc is glibc %u.%u's; --inspect knows 2.%u to "
				 "2.%u", pid, major, minor, MINOR_MIN, MINOR_MAX);
	if (is_newer(major, minor) && !is_verified(&look->report))
		return xasprintf("process %u: its malloc is glibc %u.%u's, not all of which is as "
				 "in the versions that --inspect knows, 2.%u to 2.%u", pid, major,
				 minor, MINOR_MIN, MINOR_MAX);
	return NULL;
}

bool inspect_title_wants_blocks(const char *path)
{
	return text_ends_in(path, ".csv");
}

/* The text's warnings have no place in a list of blocks. */
static void warn_of_doubts(const char *path, const struct inspect_title *t,
			   const struct inspect_report *r)
{
	_cleanup_free_ char *text = NULL, *prefix = xasprintf("%s: ", path);
	size_t size;
	FILE *file = open_memstream(&text, &size);

	if (!file)
		return;
	inspect_report_print_doubts(file, t, r);
	if (fclose(file) == 0)
		log_print_lines(LOG_WARN, prefix, text);
}

static int put_found(FILE *file, const void *ctx)
{
	const struct inspect_found *f = ctx;

	if (text_ends_in(f->path, ".json"))
		inspect_report_write_json(file, f->title, f->report);
	else if (inspect_title_wants_blocks(f->path))
		inspect_blocks_write(file, f->blocks, &f->report->types);
	else
		inspect_report_print(file, f->title, f->report);
	return 0;
}

int inspect_title_write(const struct inspect_found *f)
{
	int rc = outfile_put(f->path, put_found, f);

	if (rc == 0 && inspect_title_wants_blocks(f->path))
		warn_of_doubts(f->path, f->title, f->report);
	return rc;
}

int inspect_title_save(const struct inspect_found *f)
{
	const char *end = text_ends_in(f->path, ".json")	      ? ".json" :
			  inspect_title_wants_blocks(f->path) ? ".csv" :
								"";
	int rc = out_put(OUT_INSPECT, f->title->pid, f->path,
			 &(struct out_content){.put = put_found, .ctx = f, .end = end});

	if (inspect_title_wants_blocks(f->path))
		warn_of_doubts(f->path, f->title, f->report);
	return rc;
}
