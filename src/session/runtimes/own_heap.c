/*
 * A run-time system is recognized by the name of its program or library. Its heap is at most as
 * large as the resident memory was at its peak, less what is of files and shared at the end, when
 * some have released their heap. malloc's peak is a part of that; others are stacks, and data of
 * objects.
 */
#include "session/runtimes/own_heap.h"

#include <inttypes.h>
#include <string.h>

#include "base/amount.h"
#include "base/log.h"
#include "base/proc.h"
#include "base/text.h"
#include "session/options.h"
#include "session/record/recording_values.h"
#include "session/session.h"
#include "tracee/state/module.h"

#define SMALL (UINT64_C(16) << 20)   /* bytes: less is no reason for a hint */
#define UNKNOWN (UINT64_C(64) << 20) /* the same if nothing is known of the program */

struct own_heap {
	const char *object; /* base name up to a digit, "-" or "." */
	const char *objects; /* what is in the heap */
	const char *advice;
};

static const struct own_heap own_heaps[] = {
	{"node", "JavaScript objects are in V8's own heap",
	 "node --heapsnapshot-signal=SIGUSR2 or its inspector show those"},
	{"nodejs", "JavaScript objects are in V8's own heap",
	 "node --heapsnapshot-signal=SIGUSR2 or its inspector show those"},
	{"libnode", "JavaScript objects are in V8's own heap",
	 "node --heapsnapshot-signal=SIGUSR2 or its inspector show those"},
	{"bun", "JavaScript objects are in JavaScriptCore's own heap",
	 "its inspector (bun --inspect) shows those"},
	{"deno", "JavaScript objects are in V8's own heap",
	 "its inspector (deno --inspect) shows those"},
	{"libjvm", "Java objects are in the JVM's own heap",
	 "jcmd PID GC.class_histogram or a heap dump show those, jcmd PID VM.native_memory "
	 "what else it has mapped"},
	{"libcoreclr", ".NET objects are in the runtime's own heap", "dotnet-gcdump shows those"},
	{"libmonosgen", ".NET objects are in mono's own heap", "mono --profile=log shows those"},
	{"mono", ".NET objects are in mono's own heap", "mono --profile=log shows those"},
	{"beam", "Erlang's terms are in its own allocators' memory",
	 "erlang:memory(), recon_alloc and observer show those"},
	{"php", "PHP's own allocator serves most requests",
	 "USE_ZEND_ALLOC=0 in the program's environment shows them here"},
	{"libphp", "PHP's own allocator serves most requests",
	 "USE_ZEND_ALLOC=0 in the program's environment shows them here"},
	{"luajit", "LuaJIT's objects are in its own heap",
	 "collectgarbage(\"count\") says how many"},
	{"libluajit", "LuaJIT's objects are in its own heap",
	 "collectgarbage(\"count\") says how many"},
	{"libpypy", "Python objects are in PyPy's own heap", "gc.get_stats() says how many"},
	{"libguile", "Guile's objects are in the collector's own heap",
	 "(gc-stats) says how many"},
	{"libjulia", "Julia's objects are in its own heap",
	 "Profile.take_heap_snapshot() shows those"},
	{"sbcl", "Lisp objects are in SBCL's own heap", "(room) shows those"},
	{"racket", "Racket's objects are in its own heap", "(dump-memory-stats) shows those"},
	{"libgphobos", "D's objects are in its collector's own heap", "GC.stats() says how many"},
	{"libgc", "what the Boehm collector manages is in its own heap",
	 "GC_PRINT_STATS=1 in the program's environment says how much"},
	{"libdart", "Dart objects are in its own heap", "its DevTools show those"},
};

static bool is_object(const char *name, const char *wanted)
{
	size_t n = strlen(wanted);

	return strncmp(name, wanted, n) == 0 && strchr("0123456789-.", name[n]);
}

static const struct own_heap *find(const char *path)
{
	const char *name = text_base_name(path);

	for (size_t i = 0; i < ARRAY_SIZE(own_heaps); i++) {
		if (is_object(name, own_heaps[i].object))
			return &own_heaps[i];
	}
	return NULL;
}

void own_heap_note_module(struct session *s, const struct module *m)
{
	const struct own_heap *found = m->path ? find(m->path) : NULL;

	if (found)
		s->image.own_heap = found;
	s->image.is_emulator |= strncmp(text_base_name(m->path), "qemu-", 5) == 0;
}

void own_heap_measure(struct session *s, pid_t tid)
{
	struct proc_status st;

	if (proc_status_read(tid, &st) != 0)
		return;
	uint64_t other = st.file_resident + st.shared_resident;

	s->end.peak_resident = st.peak_resident;
	s->run->most_resident = MAX(s->run->most_resident, st.peak_resident);
	if (s->recording && st.peak_resident) /* a replay has it from the file of events */
		recording_values_set(s, "peak_resident", "%" PRIu64, st.peak_resident);
	s->end.anonymous_bytes = st.peak_resident > other ? st.peak_resident - other : 0;
}

/* Whether the profile has all blocks of malloc. */
static bool knows_malloc(const struct session *s)
{
	return !s->image.was_attached || profile_totals(s->heap.profile)->earlier_blocks > 0;
}

static void print_known(const struct session *s, const struct own_heap *heap, uint64_t anonymous,
			uint64_t peak)
{
	char all[AMOUNT_SIZE], part[AMOUNT_SIZE];

	amount_bytes((double)anonymous, all);
	amount_bytes((double)peak, part);
	if (knows_malloc(s))
		log_info("hint: %s: of %s of anonymous memory, malloc had at most %s; %s",
			 heap->objects, all, part, heap->advice);
	else
		log_info("hint: %s, a part of %s of anonymous memory; %s", heap->objects, all,
			 heap->advice);
}

void own_heap_hint(const struct session *s)
{
	uint64_t anonymous = s->end.anonymous_bytes;
	uint64_t peak = profile_totals(s->heap.profile)->peak_bytes;
	char all[AMOUNT_SIZE], part[AMOUNT_SIZE];

	if (s->image.is_emulator)
		log_info("hint: this is a profile of the emulator, not of the program in it");
	if (s->source[SOURCE_MMAP].is_traced || s->image.is_emulator || anonymous < SMALL)
		return;
	if (s->image.own_heap && (anonymous / 2 > peak || !knows_malloc(s))) {
		print_known(s, s->image.own_heap, anonymous, peak);
	} else if (anonymous > UNKNOWN && anonymous / 4 > peak && knows_malloc(s)) {
		amount_bytes((double)anonymous, all);
		amount_bytes((double)peak, part);
		log_info("hint: of %s of anonymous memory, malloc had at most %s: "
			 "--trace=heap,mmap shows who maps the rest", all, part);
	}
}
