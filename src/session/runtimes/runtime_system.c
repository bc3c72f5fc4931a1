/*
 * A run-time system is recognized by the name of its program or library, or by a symbol of the
 * program. Its heap is at most as large as the resident memory was at its peak, less what is of
 * files and shared at the end, when some have released their heap. malloc's peak is a part of that;
 * others are stacks, and data of objects.
 */
#include "session/runtimes/runtime_system.h"

#include <inttypes.h>
#include <string.h>

#include "base/amount.h"
#include "base/log.h"
#include "base/proc.h"
#include "base/text.h"
#include "session/options.h"
#include "session/record/recording_values.h"
#include "session/run.h"
#include "session/runtimes/code_names.h"
#include "session/session.h"
#include "tracee/state/module.h"

#define SMALL (UINT64_C(16) << 20)   /* bytes: less is no reason for a hint */
#define UNKNOWN (UINT64_C(64) << 20) /* the same if nothing is known of the program */

/* What stacks have of the program's functions. */
enum shown_functions {
	FUNCTIONS_SHOWN,       /* all, or the language says what is missing (languages/) */
	FUNCTIONS_END,         /* their code has no unwind information: a walk ends in it */
	FUNCTIONS_NAMELESS,    /* addresses, unless the program publishes names */
	FUNCTIONS_INTERPRETED, /* those of the interpreter instead */
};

struct runtime_system {
	/* One of both: base name up to a digit, "-" or "."; a symbol that programs define */
	const char *object, *symbol;
	const char *objects; /* where they are; NULL = malloc has them */
	const char *advice;  /* what shows them, or how many there are; NULL = not known */
	const char *language;
	enum shown_functions functions;
	const char *names;   /* FUNCTIONS_NAMELESS: what publishes them; NULL = nothing */
	bool uses_malloc;    /* it takes its heap from malloc, in large blocks */
};

#define V8_HEAP "JavaScript objects are in V8's own heap"
#define V8_ADVICE "node --heapsnapshot-signal=SIGUSR2 or its inspector show those"
#define MONO_NAMES "MONO_ENV_OPTIONS=--jitmap in the program's environment publishes them"
#define ZEND_HEAP "PHP's own allocator serves most requests"
#define ZEND_ADVICE "USE_ZEND_ALLOC=0 in the program's environment shows them here"
#define LUAJIT_HEAP "LuaJIT's objects are in its own heap"
#define LUAJIT_ADVICE "collectgarbage(\"count\") says how many"
#define D_HEAP "D's objects are in its collector's own heap"
#define D_ADVICE "GC.stats() says how many"
#define GHC_HEAP "Haskell's objects are in GHC's own heap"
#define GHC_ADVICE "+RTS -hT -RTS shows those"
#define BOEHM_HEAP "what the Boehm collector manages is in its own heap"
#define BOEHM_ADVICE "GC_PRINT_STATS=1 in the program's environment says how much"
#define OCAML_HEAP "OCaml's objects are in its own heap"
#define OCAML_ADVICE "OCAMLRUNPARAM=v=0x400 says how much, Gc.Memprof samples those"
#define NIM_ADVICE "nim c --mm:orc -d:useMalloc makes a program that takes those from malloc"

static const struct runtime_system systems[] = {
	{.object = "node", .objects = V8_HEAP, .advice = V8_ADVICE},
	{.object = "nodejs", .objects = V8_HEAP, .advice = V8_ADVICE},
	{.object = "libnode", .objects = V8_HEAP, .advice = V8_ADVICE},
	{.object = "deno", .objects = V8_HEAP,
	 .advice = "its inspector (deno --inspect) shows those"},
	{.object = "bun", .objects = "JavaScript objects are in JavaScriptCore's own heap",
	 .advice = "its inspector (bun --inspect) shows those", .language = "JavaScript",
	 .functions = FUNCTIONS_NAMELESS},
	{.object = "libjvm", .objects = "Java objects are in the JVM's own heap",
	 .advice = "jcmd PID GC.class_histogram or a heap dump show those, "
		   "jcmd PID VM.native_memory what else it has mapped"},
	{.object = "libj9vm", .objects = "Java objects are in the JVM's own heap",
	 .advice = "a heap dump shows those", .language = "Java",
	 .functions = FUNCTIONS_NAMELESS},
	{.object = "libcoreclr", .objects = ".NET objects are in the runtime's own heap",
	 .advice = "dotnet-gcdump shows those", .language = ".NET",
	 .functions = FUNCTIONS_NAMELESS,
	 .names = "DOTNET_PerfMapEnabled=1 in the program's environment publishes them"},
	{.object = "libmonosgen", .objects = ".NET objects are in mono's own heap",
	 .advice = "mono --profile=log shows those", .language = ".NET",
	 .functions = FUNCTIONS_NAMELESS, .names = MONO_NAMES},
	{.object = "mono", .objects = ".NET objects are in mono's own heap",
	 .advice = "mono --profile=log shows those", .language = ".NET",
	 .functions = FUNCTIONS_NAMELESS, .names = MONO_NAMES},
	{.object = "beam", .objects = "Erlang's terms are in its own allocators' memory",
	 .advice = "erlang:memory(), recon_alloc and observer show those", .language = "Erlang",
	 .functions = FUNCTIONS_END},
	{.object = "php", .objects = ZEND_HEAP, .advice = ZEND_ADVICE},
	{.object = "libphp", .objects = ZEND_HEAP, .advice = ZEND_ADVICE},
	{.object = "luajit", .objects = LUAJIT_HEAP, .advice = LUAJIT_ADVICE, .language = "Lua",
	 .functions = FUNCTIONS_INTERPRETED},
	{.object = "libluajit", .objects = LUAJIT_HEAP, .advice = LUAJIT_ADVICE,
	 .language = "Lua", .functions = FUNCTIONS_INTERPRETED},
	{.object = "libpypy", .objects = "Python objects are in PyPy's own heap",
	 .advice = "gc.get_stats() says how many", .language = "Python",
	 .functions = FUNCTIONS_INTERPRETED},
	{.object = "libguile", .objects = "Guile's objects are in the collector's own heap",
	 .advice = "(gc-stats) says how many", .language = "Scheme", .functions = FUNCTIONS_END},
	{.object = "libjulia", .objects = "Julia's objects are in its own heap",
	 .advice = "Profile.take_heap_snapshot() shows those", .language = "Julia",
	 .functions = FUNCTIONS_NAMELESS},
	{.object = "sbcl", .objects = "Lisp objects are in SBCL's own heap",
	 .advice = "(room) shows those", .language = "Lisp", .functions = FUNCTIONS_NAMELESS},
	{.object = "racket", .objects = "Racket's objects are in its own heap",
	 .advice = "(dump-memory-stats) shows those", .language = "Racket",
	 .functions = FUNCTIONS_END},
	{.object = "libR", .advice = "Rprofmem() shows what they allocate", .language = "R",
	 .functions = FUNCTIONS_INTERPRETED},
	{.object = "libtcl", .language = "Tcl", .functions = FUNCTIONS_INTERPRETED},
	{.object = "libswipl", .language = "Prolog", .functions = FUNCTIONS_INTERPRETED},
	{.object = "libHSrts", .objects = GHC_HEAP, .advice = GHC_ADVICE, .language = "Haskell",
	 .functions = FUNCTIONS_END},
	{.object = "libgphobos", .objects = D_HEAP, .advice = D_ADVICE},
	{.object = "libdruntime", .objects = D_HEAP, .advice = D_ADVICE},
	{.object = "libgc", .objects = BOEHM_HEAP, .advice = BOEHM_ADVICE},
	{.object = "libdart", .objects = "Dart objects are in its own heap",
	 .advice = "its DevTools show those", .language = "Dart",
	 .functions = FUNCTIONS_NAMELESS},
	{.symbol = "hs_init_ghc", .objects = GHC_HEAP, .advice = GHC_ADVICE,
	 .language = "Haskell", .functions = FUNCTIONS_END},
	{.symbol = "luaJIT_setmode", .objects = LUAJIT_HEAP, .advice = LUAJIT_ADVICE,
	 .language = "Lua", .functions = FUNCTIONS_INTERPRETED},
	{.symbol = "runtime.mallocgc", .objects = "Go's objects are in its own heap",
	 .advice = "ptmem --inspect shows those"},
	{.symbol = "caml_alloc_shr", .objects = OCAML_HEAP, .advice = OCAML_ADVICE,
	 .uses_malloc = true},
	{.symbol = "NimMain", .objects = "Nim's objects are in its own heap",
	 .advice = NIM_ADVICE},
	{.symbol = "_d_run_main", .objects = D_HEAP, .advice = D_ADVICE},
	{.symbol = "GC_malloc", .objects = BOEHM_HEAP, .advice = BOEHM_ADVICE},
};

static bool is_object(const char *name, const char *wanted)
{
	size_t n = strlen(wanted);

	return strncmp(name, wanted, n) == 0 && strchr("0123456789-.", name[n]);
}

void runtime_system_note_module(struct session *s, const struct module *m)
{
	const char *name = m->path ? text_base_name(m->path) : "";

	s->image.is_emulator |= strncmp(name, "qemu-", 5) == 0;
	for (size_t i = 0; i < ARRAY_SIZE(systems); i++) {
		if (systems[i].object && is_object(name, systems[i].object)) {
			s->image.runtime = &systems[i];
			return;
		}
	}
}

/* The first row that a symbol names. */
static int match_symbol(void *ctx, const struct elf_symbol *sym)
{
	const struct runtime_system **found = ctx;

	for (size_t i = 0; sym->is_defined && i < ARRAY_SIZE(systems); i++) {
		const struct runtime_system *r = &systems[i];

		if (r->symbol && (!*found || r < *found) && strcmp(r->symbol, sym->name) == 0)
			*found = r;
	}
	return 0;
}

/*
 * One that is linked into the program is known by its symbols. They are read only now: most
 * programs have nothing of which it would say something.
 */
static const struct runtime_system *find_system(const struct session *s)
{
	const struct module *program = run_module(s->run, s->image.program);
	const struct runtime_system *found = NULL;

	if (s->image.runtime)
		return s->image.runtime;
	if (program && program->file)
		elf_file_each_symbol(program->file, match_symbol, &found);
	return found;
}

void runtime_system_measure(struct session *s, pid_t tid)
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

static void print_known(const struct session *s, const struct runtime_system *r, uint64_t anonymous,
			uint64_t peak)
{
	char all[AMOUNT_SIZE], part[AMOUNT_SIZE];

	amount_bytes((double)anonymous, all);
	amount_bytes((double)peak, part);
	if (r->uses_malloc && anonymous / 2 <= peak)
		log_info("hint: %s, which it takes from malloc in large blocks; %s", r->objects,
			 r->advice);
	else if (knows_malloc(s))
		log_info("hint: %s: of %s of anonymous memory, malloc had at most %s; %s",
			 r->objects, all, part, r->advice);
	else
		log_info("hint: %s, a part of %s of anonymous memory; %s", r->objects, all,
			 r->advice);
}

static void hint_at_heap(const struct session *s, const struct runtime_system *r)
{
	uint64_t anonymous = s->end.anonymous_bytes;
	uint64_t peak = profile_totals(s->heap.profile)->peak_bytes;
	char all[AMOUNT_SIZE], part[AMOUNT_SIZE];

	if (s->source[SOURCE_MMAP].is_traced)
		return;
	if (r && r->objects && (anonymous / 2 > peak || !knows_malloc(s) || r->uses_malloc)) {
		print_known(s, r, anonymous, peak);
	} else if (anonymous > UNKNOWN && anonymous / 4 > peak && knows_malloc(s)) {
		amount_bytes((double)anonymous, all);
		amount_bytes((double)peak, part);
		log_info("hint: of %s of anonymous memory, malloc had at most %s: "
			 "--trace=heap,mmap shows who maps the rest", all, part);
	}
}

/* What is missing from stacks, if there are any. */
static void hint_at_functions(const struct session *s, const struct runtime_system *r)
{
	const char *advice = r->objects ? NULL : r->advice;

	if (profile_totals(s->heap.profile)->allocations == 0 || s->stacks.virtual)
		return; /* nothing to show, or another interpreter's are */
	switch (r->functions) {
	case FUNCTIONS_SHOWN:
		return;
	case FUNCTIONS_END:
		if (s->stacks.counts.ends[UNWIND_NO_CFI])
			log_info("hint: call paths end in %s code, which has no unwind "
				 "information", r->language);
		return;
	case FUNCTIONS_NAMELESS:
		advice = r->names;
		if (!code_names_are_published(s))
			log_info("hint: %s functions have no names here%s%s", r->language,
				 advice ? "; " : "", advice ? advice : "");
		return;
	case FUNCTIONS_INTERPRETED:
		if (!code_names_are_published(s))
			log_info("hint: %s functions are not shown, but those of the "
				 "interpreter%s%s", r->language, advice ? "; " : "",
				 advice ? advice : "");
		return;
	}
}

void runtime_system_hints(const struct session *s)
{
	bool is_large = s->end.anonymous_bytes >= SMALL;

	if (s->image.is_emulator) {
		log_info("hint: this is a profile of the emulator, not of the program in it");
		return;
	}
	if (!is_large && !s->image.runtime && !s->stacks.counts.ends[UNWIND_NO_CFI])
		return;
	const struct runtime_system *r = find_system(s);

	if (is_large)
		hint_at_heap(s, r);
	if (r)
		hint_at_functions(s, r);
}
