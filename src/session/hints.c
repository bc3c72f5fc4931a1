/*
 * Detects setuid programs, Python, stripped objects, idle processes, and an operator new that
 * returns addresses inside blocks.
 */
#include "session/hints.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/proc.h"
#include "base/text.h"
#include "session/largest.h"
#include "session/session.h"
#include "tracee/state/module.h"

#define FEW_SAMPLES 100
#define FEW_CALLS 1000

/* ptrace(2), PTRACE_TRACEME: execve grants such privileges only if the tracer has them. */
void hints_at_start(const struct session *s)
{
	struct stat st;
	if (geteuid() == 0 || session_was_attached(s) || !s->space)
		return;
	_cleanup_free_ char *exe = xasprintf("/proc/%d/exe", (int)s->space->processes.reader);
	_cleanup_free_ char *path = proc_read_link((pid_t)s->process.pid, "exe");
	if (stat(exe, &st) != 0 || !path)
		return;
	bool is_setuid = (st.st_mode & S_ISUID && st.st_uid != geteuid()) ||
			 (st.st_mode & S_ISGID && st.st_mode & S_IXGRP && st.st_gid != getegid());
	bool has_capabilities = getxattr(exe, "security.capability", NULL, 0) > 0;
	if (is_setuid || has_capabilities)
		log_warn("%s has %s, which the kernel ignores under a tracer without root: "
			 "it may fail; run ptmem as root, or attach with -p as root",
			 path, is_setuid ? "a setuid or setgid bit" : "file capabilities");
}

/* -- at the end -- */

bool hints_is_python(const char *path)
{
	const char *name = text_base_name(path);
	if (strncmp(name, "lib", 3) == 0)
		name += 3;
	return strncmp(name, "python3", 7) == 0 || strncmp(name, "python2", 7) == 0;
}

/* The value of @name in the initial environment of @pid; NULL: unset or unknown. The caller
 * frees it. */
static char *read_variable(pid_t pid, const char *name, bool *is_known)
{
	_cleanup_fclose_ FILE *f = proc_open(pid, "environ");
	_cleanup_free_ char *line = NULL;
	size_t size = 0, n = strlen(name);
	*is_known = f != NULL;
	while (f && getdelim(&line, &size, '\0', f) > 0) {
		if (strncmp(line, name, n) == 0 && line[n] == '=')
			return xstrdup(line + n + 1);
	}
	return NULL;
}

/* pymalloc serves requests of up to 512 bytes from arenas that it maps, bypassing malloc. */
static void hint_at_pymalloc(const struct session *s)
{
	bool is_known = true;
	_cleanup_free_ char *value = NULL;
	if (!s->image.has_python)
		return;
	if (session_was_attached(s))
		value = read_variable(proc_find_reader((pid_t)s->process.pid), "PYTHONMALLOC",
				      &is_known);
	else if (getenv("PYTHONMALLOC"))
		value = xstrdup(getenv("PYTHONMALLOC"));
	if (is_known && !(value && strncmp(value, "malloc", 6) == 0))
		log_info("hint: Python's own allocator serves small objects, which are not in this "
			 "profile; PYTHONMALLOC=malloc in the program's environment shows them");
}

/* Of the largest call sites, if those without a name hold more than 5 % of the peak. */
static void hint_at_symbols(const struct largest *l)
{
	const char *object = NULL;
	uint64_t bytes = 0;

	for (size_t i = 0; i < l->count; i++) {
		if (!l->site[i].is_unnamed)
			continue;
		object = object ? object : l->site[i].object;
		bytes += l->site[i].bytes;
	}
	if (object && bytes > l->bytes / 20)
		log_info("hint: %s is stripped; names need its debug package (-dbgsym, -debuginfo) "
			 "or a build with -g", text_base_name(object));
}

/*
 * With samples: hardly any delete was seen; free was called more often than malloc and related
 * functions returned blocks, by at least half of the calls of operator new; and that many blocks
 * seem to be live, or were replaced by others at their addresses, so their releases were missed.
 */
static bool misses_deletes(const struct session *s)
{
	const struct profile_totals *p = profile_totals(s->heap.profile);
	const struct call_total *f = s->heap.sample.totals.function;
	uint64_t made = f[FUNCTION_NEW].calls, freed = f[FUNCTION_FREE].calls;
	uint64_t plain = f[FUNCTION_MALLOC].calls + f[FUNCTION_CALLOC].calls +
			 f[FUNCTION_REALLOC].calls + f[FUNCTION_MEMALIGN].calls;
	uint64_t unseen = profile_count(s->heap.profile, p->live_blocks + p->replaced_blocks);

	return p->samples >= FEW_SAMPLES && made >= FEW_CALLS &&
	       f[FUNCTION_DELETE].calls < made / 100 && freed >= plain &&
	       freed - plain >= made / 2 && unseen >= made / 2;
}

/* Without samples each such release is an unknown free. */
static bool has_header_frees(const struct profile_totals *p)
{
	return p->header_frees >= FEW_CALLS && p->header_frees >= p->unknown_frees / 10 * 9;
}

static void hint_at_headers(const struct session *s)
{
	const struct profile_totals *p = profile_totals(s->heap.profile);

	if (s->heap.sample.interval ? misses_deletes(s) : has_header_frees(p))
		log_info("hint: operator new seems to return addresses inside its blocks, and "
			 "operator delete to be inlined: such releases are not seen, and less is "
			 "in use than this says; see man ptmem, CAVEATS");
}

void hints_at_end(const struct session *s, const struct largest *largest)
{
	const struct options *o = s->run->options;
	if (!s->run->target || !o->profile.heap || o->profile.pages_as_heap)
		return;
	bool is_empty = profile_totals(s->heap.profile)->allocations == 0;
	if (is_empty && o->tracing.heap_sample > 1)
		log_info("hint: no allocation was sampled: take a smaller --heap-sample, or a "
			 "longer time");
	else if (session_was_attached(s) && is_empty)
		log_info("hint: nothing was allocated while ptmem was attached: attach for "
			 "longer, or while the program works");
	else
		hint_at_pymalloc(s);
	hint_at_headers(s);
	hint_at_symbols(largest);
}
