/*
 * The table of options, one row each, and the help that is printed from it.
 *
 * A row's default is a string that is parsed like a given value. Options of Massif's tool (TOOL)
 * are repeated in "desc:" as given; all others (what to trace, how, and messages) correspond to
 * Valgrind's core options, and are not.
 */
#include "cli/command_line.h"

#include <stdio.h>
#include <string.h>

#include "session/options.h"

static const char *const time_units[] = {"ms", "B", "i", NULL};
static const char *const probes_modes[] = {"auto", "break", "jump", NULL};
static const char *const trace_sources[] = {"heap", "brk", "mmap", "faults", NULL};
static const char *const views[] = {"live", "peak", "exit", "total", "count", NULL};
static const char *const xtree_modes[] = {"none", "allocs", "full", NULL};
static const char *const leak_kinds[] = {"definite", "indirect", "possible", "reachable", "all",
					 NULL};
static const char *const gen_modes[] = {"no", "yes", "all", NULL};
static const char *const color_modes[] = {"auto", "always", "never", NULL};

#define AT(field) .offset = offsetof(struct options, field)
#define RANGE(low, high) .has_range = true, .min = (low), .max = (high)

const struct option_row option_rows[] = {
	{.text = "What to profile:"},
	{.name = "pid", .letter = 'p', .type = PIDS, .flags = SEPARATE | EVERYDAY, AT(attach.pid),
	 RANGE(1, 4194304),
	 .value = "PID", .text = "attach to the running process PID; Ctrl-C detaches"},
	{.name = "follow", .type = TEXTS, .flags = NOT_EMPTY, AT(attach.follow),
	 .value = "NAME|UNIT|/CGROUP",
	 .text = "attach to the processes of this name, systemd unit\n"
		 "or control group, as they appear; repeatable"},
	{.name = "duration", .type = DECIMAL, AT(attach.duration), RANGE(0.001, 1e9),
	 .value = "SECONDS", .text = "with -p or --follow: detach after this time"},
	{.name = "earlier-blocks", .type = YES_NO, AT(attach.earlier_blocks), .initial = "yes",
	 .value = "yes|no",
	 .text = "with -p: the blocks that were allocated before are\nin the profile, read from "
		 "malloc's heaps"},
	{.name = "inspect", .type = MAY_TEXT, .flags = EVERYDAY | NOT_EMPTY, AT(inspect.what),
	 .value = "[=CORE]",
	 .text = "with -p, or of the core file CORE: print what memory\n"
		 "consists of, and why malloc does not return what is\n"
		 "free, and end; of a PROGRAM: as --inspect-at-exit"},
	{.name = "inspect-at-exit", .type = FLAG, AT(inspect.at_exit),
	 .text = "profile, and print that at the end, and at each\nSIGUSR1 to ptmem"},
	{.name = "inspect-pointers", .type = FLAG, AT(inspect.pointers),
	 .text = "also find what points to blocks of each type, which\ntakes longer"},
	{.name = "inspect-copy", .type = SIZE, AT(inspect.copy), .initial = "64M",
	 RANGE(0, UINT64_C(1) << 40), .value = "SIZE",
	 .text = "with --inspect: copy a process that has at most this\nmuch memory of its own, "
		 "and examine the copy: it is\nstopped for less time"},
	{.name = "inspect-out", .type = TEXT, .flags = NOT_EMPTY, AT(inspect.out), .value = "FILE",
	 .text = "where that goes instead of standard output (stderr\n"
		 "when profiling): JSON if FILE ends in .json, the\n"
		 "blocks in use if in .csv, else text"},
	{.name = "monitor", .type = NUMBER, AT(monitor_pid), RANGE(1, 4194304),
	 .value = "PID",
	 .text = "send COMMAND [FILE] to the ptmem that profiles\nPID; help lists the commands"},
	{.name = "trace-children", .type = YES_NO, .flags = EVERYDAY, AT(children.trace),
	 .initial = "no",
	 .value = "yes|no", .text = "also profile the programs that it executes"},
	{.name = "follow-exec", .type = YES_NO, AT(children.follow_exec),
	 .initial = "yes", .value = "yes|no",
	 .text = "if it executes another program in its place, as\n"
		 "wrapper scripts do, the profile is that one's"},
	{.name = "trace", .type = SET, AT(tracing.sources), .choices = trace_sources,
	 .initial = "heap",
	 .value = "SOURCE,...",
	 .text = "what to trace: heap, brk, mmap, faults; each has a\nfile of its own"},
	{.name = "trace-children-skip", .type = TEXT, AT(children.skip),
	 .value = "PATTERN,...", .text = "but not programs of these names"},
	{.name = "trace-children-skip-by-arg", .type = TEXT, AT(children.skip_by_arg),
	 .value = "PATTERN,...", .text = "but not programs with an argument like one of\nthese"},
	{.name = "soname-synonyms", .type = TEXT, AT(tracing.soname_synonyms),
	 .value = "somalloc=PATTERN", .text = "watch the allocators of libc, libstdc++ and the\n"
					      "libraries of this name only"},
	{.name = "mempools", .type = YES_NO, AT(tracing.mempools), .initial = "no",
	 .value = "yes|no",
	 .text = "count what the program allocates in memory pools,\n"
		 "as announced by its client requests"},
	{.name = "running-on-valgrind", .type = YES_NO, AT(tracing.running_on_valgrind),
	 .initial = "no",
	 .value = "yes|no", .text = "the value of RUNNING_ON_VALGRIND in the program"},
	{.name = "probes", .type = CHOICE, AT(tracing.probes), .choices = probes_modes,
	 .initial = "auto",
	 .value = "auto|break|jump", .text = "how calls are caught: by breakpoints, by jumps,\n"
					     "or by whichever suits"},
	{.name = "heap-sample", .type = SIZE, .flags = EVERYDAY, AT(tracing.heap_sample),
	 RANGE(1, ESTIMATE_INTERVAL_MAX),
	 .value = "BYTES", .text = "record only a sample of the allocations, on average\n"
				   "one every BYTES bytes (512K, 1M, ...), and estimate\n"
				   "the rest; 1: record all"},
	{.name = "budget", .type = DECIMAL, .flags = PERCENT, AT(tracing.budget),
	 RANGE(0.01, 1000),
	 .value = "PERCENT", .text = "sample less often while ptmem costs more than this\n"
				     "share of a CPU: 2%"},
	{.name = "max-wait", .type = TIME, AT(tracing.max_wait), RANGE(0, 31536000),
	 .value = "TIME", .text = "if ptmem is stopped, the program waits for it no\n"
				  "longer, and events are lost [1s; 0 with\n"
				  "--heap-sample=256K or more]"},
	{.name = "seed", .type = NUMBER, AT(tracing.seed), RANGE(1, UINT32_MAX),
	 .value = "N", .text = "which allocations these are; random if not given"},
	{.name = "ring", .type = SIZE, .flags = POWER, AT(tracing.ring), RANGE(65536, 1 << 30),
	 .value = "SIZE", .text = "bytes of the buffer between a program's first\n"
				  "thread and ptmem; 1M if not given"},
	{.name = "verify-stacks", .type = MAY_NUMBER, AT(tracing.verify_stacks), RANGE(1, 1e9),
	 .implied = 1, .value = "N",
	 .text = "compare each stack, or one in N, with what another\n"
		 "unwinder finds, and count the differences; slow"},

	{.text = "The profile, as Massif's options:"},
	{.name = "time-unit", .type = CHOICE, .flags = TOOL, AT(profile.time_unit),
	 .choices = time_units,
	 .initial = "ms", .value = "ms|B|i", .text = "milliseconds, bytes allocated and freed, or\n"
						      "instructions"},
	{.name = "pages-as-heap", .type = YES_NO, .flags = TOOL, AT(profile.pages_as_heap),
	 .initial = "no",
	 .value = "yes|no", .text = "count mapped pages instead of heap blocks"},
	{.name = "depth", .type = NUMBER, .flags = TOOL, AT(profile.depth), RANGE(1, 200),
	 .initial = "30",
	 .value = "N", .text = "frames of a call path"},
	{.name = "threshold", .type = DECIMAL, .flags = TOOL, AT(profile.threshold), RANGE(0, 100),
	 .initial = "1.0", .value = "PERCENT", .text = "call sites below this are merged"},
	{.name = "peak-inaccuracy", .type = DECIMAL, .flags = TOOL, AT(profile.peak_inaccuracy),
	 .initial = "1.0",
	 .value = "PERCENT", .text = "a new peak exceeds the last by more than this"},
	{.name = "peak-at-exit", .type = YES_NO, AT(profile.peak_at_exit), .initial = "yes",
	 .value = "yes|no", .text = "whether the end may be the peak; in Massif it\nmay not"},
	{.name = "heap", .type = YES_NO, .flags = TOOL, AT(profile.heap), .initial = "yes",
	 .value = "yes|no", .text = "profile the heap"},
	{.name = "stacks", .type = YES_NO, .flags = TOOL, AT(profile.stacks), .initial = "no",
	 .value = "yes|no", .text = "profile the stacks of all threads, too"},
	{.name = "stack-sample", .type = PERIOD, AT(profile.stack_sample_ms), RANGE(0, 86400000),
	 .initial = "10",
	 .value = "MS|no",
	 .text = "read stack pointers of threads that make no call\n"
		 "every MS milliseconds; no: at calls only"},
	{.name = "detailed-freq", .type = NUMBER, .flags = TOOL, AT(profile.detailed_freq),
	 RANGE(1, 1000000),
	 .initial = "10", .value = "N", .text = "every Nth snapshot has a call tree"},
	{.name = "max-snapshots", .type = NUMBER, .flags = TOOL, AT(profile.max_snapshots),
	 RANGE(10, 1000),
	 .initial = "100", .value = "N", .text = "snapshots kept at a time"},
	{.name = "heap-admin", .type = NUMBER, .flags = TOOL, AT(profile.heap_admin),
	 RANGE(0, 1024),
	 .initial = "8", .value = "BYTES", .text = "the allocator's own bytes for a block"},
	{.name = "alignment", .type = NUMBER, .flags = TOOL | POWER, AT(profile.alignment),
	 RANGE(16, 4096),
	 .initial = "16", .value = "BYTES", .text = "alignment of blocks, a power of two"},
	{.name = "realloc-zero-bytes-frees", .type = YES_NO, .flags = TOOL,
	 AT(profile.realloc_zero_bytes_frees),
	 .initial = "yes", .value = "yes|no",
	 .text = "whether a block of realloc(p, 0), where the\n"
						      "allocator gives one, has 0 bytes or 1"},
	{.name = "alloc-fn", .type = TEXTS, .flags = TOOL, AT(names.alloc_fn),
	 .value = "NAME", .text = "this function allocates for its caller; repeatable"},
	{.name = "ignore-fn", .type = TEXTS, .flags = TOOL, AT(names.ignore_fn),
	 .value = "NAME", .text = "do not count what this function allocates;\nrepeatable"},

	{.text = "Names of functions and files:"},
	{.name = "demangle", .type = YES_NO, AT(names.demangle), .initial = "yes",
	 .value = "yes|no", .text = "names of C++ and Rust as in the source"},
	{.name = "show-below-main", .type = YES_NO, AT(names.show_below_main), .initial = "no",
	 .value = "yes|no", .text = "call paths from before main"},
	{.name = "fullpath-after", .type = TEXTS, AT(names.fullpath_after),
	 .value = "TEXT", .text = "show paths of source files: the part after TEXT;\n"
				  "repeatable"},
	{.name = "my-code", .type = PATTERNS, .flags = NOT_EMPTY, AT(names.my_code),
	 .value = "PATTERN", .text = "functions of these source files or objects are\n"
				     "yours: may be call sites; repeatable"},
	{.name = "not-my-code", .type = PATTERNS, .flags = NOT_EMPTY, AT(names.my_code),
	 .value = "PATTERN", .text = "they are not: their callers are; repeatable"},
	{.name = "read-inline-info", .type = YES_NO, AT(names.read_inline_info), .initial = "yes",
	 .value = "yes|no", .text = "inlined functions in call paths"},
	{.name = "extra-debuginfo-path", .type = TEXT, .flags = NOT_EMPTY,
	 AT(names.extra_debuginfo_path),
	 .value = "DIRECTORY", .text = "also search here for separate debug files"},
	{.name = "debuginfod", .type = YES_NO, AT(names.debuginfod), .initial = "yes",
	 .value = "yes|no", .text = "ask the servers in DEBUGINFOD_URLS for others"},

	{.text = "Files:"},
	{.name = "massif-out-file", .letter = 'o', .type = TEXT, .flags = TOOL | EVERYDAY,
	 AT(files.massif),
	 .initial = "massif.out.%p", .value = "FILE",
	 .text = "where the profile goes; %p: process id, %n: number\n"
		 "of the file, %q{VAR}: environment\n"
		 "variable, %%: a percent sign"},
	{.name = "xtree-memory", .type = CHOICE, .flags = TOOL, AT(files.xtree_mode),
	 .choices = xtree_modes,
	 .initial = "none", .value = "none|allocs|full",
	 .text = "write the memory by call path for kcachegrind:\n"
		 "in use at the end, or also all that was\n"
		 "allocated and freed"},
	{.name = "xtree-memory-file", .type = TEXT, .flags = TOOL, AT(files.xtree),
	 .initial = "xtmemory.kcg.%p", .value = "FILE",
	 .text = "where that goes; with .ms in its name it is a\nmassif file"},
	{.name = "xtree-compress-strings", .type = YES_NO, .flags = TOOL,
	 AT(files.xtree_compress_strings),
	 .initial = "yes", .value = "yes|no", .text = "write each name in that file once"},
	{.name = "record", .type = TEXT, .flags = NOT_EMPTY | EVERYDAY, AT(files.record),
	 .value = "FILE", .text = "record everything: any moment, any range of time;\n"
				   "read it with ptmem-report FILE"},
	{.name = "record-every", .type = TIME, AT(files.record_every), RANGE(0.1, 48 * 86400.0),
	 .value = "TIME",
	 .text = "begin the next recording after this time (10m, 1h);\n"
		 "%n: its number, 001, 002, ..."},
	{.name = "record-keep", .type = NUMBER, AT(files.record_keep), RANGE(1, 1000000),
	 .value = "N", .text = "keep the last N of them, and remove older ones"},
	{.name = "record-limit", .type = SIZE, AT(files.record_limit), RANGE(65536, 1ull << 50),
	 .value = "SIZE", .text = "the largest size of a recording: details get coarser\n"
				  "before it becomes larger"},
	{.name = "when", .type = TEXTS, AT(when),
	 .value = "CONDITION[:ACTION]",
	 .text = "when heap>2G, rss>80%, growth>100M/min, pressure>10%\n"
		 "or limit>0/min (of its cgroup) begins to hold: write\n"
		 "the recording so far, or detach, or end; repeatable"},
	{.name = "free-stacks", .type = FLAG, AT(files.free_stacks),
	 .text = "with --record or --html: also which call paths\n"
		 "release blocks; much slower"},
	{.name = "html", .type = TEXT, .flags = NOT_EMPTY | EVERYDAY, AT(files.html),
	 .value = "FILE", .text = "write an interactive report for a browser"},
	{.name = "listen", .type = MAY_TEXT, .flags = NOT_EMPTY, AT(listen.at),
	 .value = "[=ADDRESS:PORT]",
	 .text = "serve the report, pprof profiles and metrics while\n"
		 "the program runs; default: 127.0.0.1, a free port"},
	{.name = "listen-token", .type = TEXT, .flags = NOT_EMPTY, AT(listen.token),
	 .value = "FILE", .text = "only clients that send the token in FILE"},
	{.name = "listen-open", .type = FLAG, AT(listen.is_open),
	 .text = "to anyone"},
	{.name = "listen-linger", .type = DECIMAL, AT(listen.linger), RANGE(1, 86400),
	 .value = "SECONDS", .text = "go on for this long after the program has ended"},
	{.name = "events", .type = TEXT, .flags = NOT_EMPTY, AT(files.events),
	 .value = "FILE", .text = "write every event to FILE, as text"},
	{.name = "replay", .type = TEXT, .flags = NOT_EMPTY, AT(files.replay),
	 .value = "FILE", .text = "profile the events of FILE instead of a program"},

	{.text = "Calls counted, as memusage does:"},
	{.name = "memusage", .type = FLAG, AT(memusage.count),
	 .text = "print calls, bytes, peak and a histogram of sizes\n"
		 "at the end, as memusage does; ptmem(1) lists the\ndifferences"},
	{.name = "memusage-out", .type = TEXT, .flags = NOT_EMPTY, AT(memusage.out),
	 .value = "FILE", .text = "to FILE instead of standard error"},
	{.name = "data", .type = TEXT, .flags = NOT_EMPTY, AT(memusage.data_file),
	 .value = "FILE",
	 .text = "write live bytes and stack depth of every call\n"
		 "to FILE, for ptmem-report --png or "
				  "memusagestat"},
	{.name = "data-buffer", .type = NUMBER, AT(memusage.data_buffer), RANGE(1, 32768),
	 .initial = "32768",
	 .value = "RECORDS", .text = "records of that file collected before they are\nwritten"},
	{.name = "mmap", .letter = 'm', .type = FLAG, AT(memusage.mmap),
	 .text = "count the program's calls of mmap, mremap and\nmunmap, too"},
	{.name = "no-timer", .type = FLAG, AT(memusage.no_timer),
	 .text = "do not read stack pointers between calls"},
	{.name = "progname", .type = TEXT, .flags = NOT_EMPTY, AT(memusage.progname),
	 .value = "NAME", .text = "count only in programs of this base name"},

	{.text = "Memory of the process over time:"},
	{.name = "sample", .type = MAY_NUMBER, AT(samples.ms), RANGE(1, 86400000),
	 .implied = 100,
	 .value = "MS", .text = "read /proc every MS milliseconds [100]"},
	{.name = "sample-fields", .type = TEXT, .flags = NOT_EMPTY, AT(samples.fields),
	 .value = "LIST", .text = "which lines of /proc/PID/status, with commas\n"
				  "between [VmSize,VmPeak,VmRSS,VmHWM; in a file\n"
				  "also Monotonic,Realtime: the moment, in ns]"},
	{.name = "sample-out", .type = TEXT, .flags = NOT_EMPTY, AT(samples.out),
	 .value = "FILE",
	 .text = "write samples to FILE, with header and times, not\nto standard error"},

	{.text = "Growth and leaks:"},
	{.name = "leaks", .type = SECONDS, AT(leaks.age), RANGE(0, 1e9),
	 .value = "[=AGE]",
	 .text = "list the blocks that are live at the end, and at\n"
		 "each SIGUSR1 to ptmem, by call path; with AGE: those\nolder than AGE seconds"},
	{.name = "leak-check", .type = FLAG, .flags = EVERYDAY, AT(leaks.check),
	 .text = "list the blocks that are live at the end by call\n"
		 "path, and which of them no pointer reaches"},
	{.name = "leaks-out", .type = TEXT, .flags = NOT_EMPTY, AT(leaks.out), .value = "FILE",
	 .text = "where that list goes instead of stderr: JSON if\nFILE ends in .json, else text"},
	{.name = "older-than", .type = TIME, AT(leaks.older_than), RANGE(0, 1e9),
	 .value = "TIME",
	 .text = "leave out younger blocks [0; of a process that runs\non: 10 % of the run]"},
	{.name = "show-leak-kinds", .type = SET, AT(leaks.shown_kinds), .choices = leak_kinds,
	 .initial = "definite,possible,reachable", .value = "KIND,...",
	 .text = "kinds of blocks that the text of a leak check\nlists, also indirect"},
	{.name = "leak-holders", .type = FLAG, AT(leaks.holders),
	 .text = "with --leak-check: show what holds the blocks that\n"
		 "are reachable, from the root on"},
	{.name = "suppressions", .type = TEXTS, .flags = NOT_EMPTY, AT(leaks.suppressions),
	 .value = "FILE",
	 .text = "with --leak-check: leave out the leaks that FILE\nlists, in Valgrind's format; "
		 "repeatable"},
	{.name = "gen-suppressions", .type = CHOICE, AT(leaks.gen_suppressions),
	 .choices = gen_modes, .initial = "no", .value = "no|yes|all",
	 .text = "print such an entry with each leak"},
	{.name = "error-exitcode", .type = NUMBER, AT(leaks.error_exitcode), RANGE(0, 255),
	 .initial = "0", .value = "N",
	 .text = "with --leak-check: end with status N when bytes\nare definitely lost"},
	{.name = "folded", .type = TEXT, .flags = NOT_EMPTY, AT(files.folded), .value = "FILE",
	 .text = "write call paths as folded stacks"},
	{.name = "flame", .type = TEXT, .flags = NOT_EMPTY | EVERYDAY, AT(files.flame),
	 .value = "FILE.svg",
	 .text = "draw call paths as a flame graph"},
	{.name = "view", .type = CHOICE, AT(files.view), .choices = views,
	 .initial = "live", .value = "live|peak|exit|total|count",
	 .text = "which bytes folded stacks and flame graphs show;\ncount: allocations"},
	{.name = "top", .type = SECONDS, .flags = EVERYDAY, AT(top), RANGE(0.1, 86400),
	 .value = "[=SECONDS]",
	 .text = "show a live table of the call sites that hold most,\nand of how they grow"},

	{.text = "Messages and the rest:"},
	{.name = "log-file", .type = TEXT, .flags = NOT_EMPTY, AT(messages.log_file),
	 .value = "FILE", .text = "file for messages; %p: ptmem's process id"},
	{.name = "log-fd", .type = NUMBER, AT(messages.log_fd), RANGE(0, 1 << 20), .initial = "2",
	 .value = "N", .text = "descriptor for messages"},
	{.name = "child-silent-after-fork", .type = YES_NO, AT(children.silent_after_fork),
	 .initial = "no",
	 .value = "yes|no", .text = "no messages about forked children"},
	{.name = "trace-malloc", .type = YES_NO, .flags = TOOL, AT(messages.trace_malloc),
	 .initial = "no",
	 .value = "yes|no", .text = "a message for each call"},
	{.name = "stats", .type = FLAG, AT(messages.stats), .text = "print what ptmem itself did"},
	{.name = "verbose", .letter = 'v', .type = MORE, AT(messages.level),
	 .text = "print more; twice: still more"},
	{.name = "quiet", .letter = 'q', .type = LESS, AT(messages.level),
	 .text = "only warnings and errors"},
	{.name = "color", .type = CHOICE, AT(messages.color), .choices = color_modes,
	 .initial = "auto",
	 .value = "auto|always|never", .text = "colour in messages"},
	{.name = "no-rc", .type = FLAG, AT(invocation.no_rc),
	 .text = "read neither ptmemrc nor PTMEM_OPTS"},
	{.name = "command-line-only", .type = YES_NO, AT(invocation.command_line_only),
	 .initial = "no",
	 .value = "yes|no", .text = "the same, as Valgrind names it"},
	{.name = "help", .letter = 'h', .type = HELP, .flags = EVERYDAY, AT(invocation.help),
	 .value = "[=all]",
	 .text = "print the everyday options; all: all of them"},
	{.name = "version", .letter = 'V', .type = FLAG, .flags = EVERYDAY, AT(invocation.version),
	 .text = "print the version"},
};

const size_t option_row_count = ARRAY_SIZE(option_rows);

static void print_choices(FILE *f, const char *const *choice)
{
	for (size_t i = 0; choice[i]; i++)
		fprintf(f, "%s%s", i == 0 ? "" : choice[i + 1] ? ", " : " or ", choice[i]);
}

/* In seconds, or in days if these are whole. */
static void print_times(FILE *f, const struct option_row *row)
{
	long long most = (long long)row->max;

	if (most % 86400)
		fprintf(f, " from %.16gs to %llds", row->min, most);
	else
		fprintf(f, " from %.16gs to %lldd", row->min, most / 86400);
}

char *option_takes(const struct option_row *row)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	CHECK(f);
	switch (row->type) {
	case PERIOD:
		fputs("no or ", f);
		/* fallthrough */
	case MAY_NUMBER:
	case NUMBER:
		fputs(row->flags & POWER ? "a power of two" : "a whole number", f);
		break;
	case SIZE:
		fprintf(f, "a %s (K, M or G may follow)",
			row->flags & POWER ? "power of two" : "whole number");
		break;
	case DECIMAL:
	case SECONDS:
		fputs("a decimal number", f);
		break;
	case TIME:
		fputs("a number of seconds (s, m, h or d may follow)", f);
		break;
	case PIDS:
		fputs("a process id", f);
		break;
	case CHOICE:
		print_choices(f, row->choices);
		break;
	case SET:
		fputs("one or more, with commas between, of ", f);
		print_choices(f, row->choices);
		break;
	case YES_NO:
		fputs("yes or no", f);
		break;
	case HELP:
		fputs("all, or no value", f);
		break;
	default:
		fputs("a name", f);
	}
	if (row->has_range && row->type == TIME)
		print_times(f, row);
	else if (row->has_range && row->type != PIDS)
		fprintf(f, " from %.16g to %.16g", row->min, row->max);
	fclose(f);
	return text;
}

/* "  -p, --pid=PID", then the text from column 33 on, with further lines below. */
static void print_row(FILE *file, const struct option_row *row)
{
	char letter[8] = "    ";
	if (row->letter)
		snprintf(letter, sizeof(letter), "-%c, ", row->letter);
	bool is_optional = row->type == MAY_NUMBER;
	/* "[=AGE]" has its own */
	const char *equals = row->value && *row->value == '[' ? "" : "=";
	int n = fprintf(file, "  %s--%s%s%s%s%s", letter, row->name, is_optional ? "[" : "",
			row->value ? equals : "", row->value ? row->value : "",
			is_optional ? "]" : "");
	int column = 33;
	if (n >= column) {
		fputc('\n', file);
		n = 0;
	}
	for (const char *s = row->text; *s; n = 0) {
		int length = (int)strcspn(s, "\n");
		fprintf(file, "%*s%.*s", column - n, "", length, s);
		s += length;
		if (*s) {
			fputc('\n', file);
			s++;
		}
	}
	if (row->initial)
		fprintf(file, " [%s]", row->initial);
	fputc('\n', file);
}

static void print_everyday(FILE *file)
{
	fputs("\nEveryday options:\n", file);
	for (size_t i = 0; i < option_row_count; i++) {
		if (option_rows[i].flags & EVERYDAY)
			print_row(file, &option_rows[i]);
	}
	fputs("\nptmem --help=all lists all options, man ptmem explains them.\n"
	      "ptmem-report FILE prints the graph and the call trees of a profile.\n", file);
}

static void print_all(FILE *file)
{
	for (size_t i = 0; i < option_row_count; i++) {
		if (option_rows[i].name)
			print_row(file, &option_rows[i]);
		else
			fprintf(file, "\n%s\n", option_rows[i].text);
	}
	fputs("\nOptions are also read from ~/.config/ptmem/ptmemrc and PTMEM_OPTS; the command\n"
	      "line wins. ptmem-report FILE prints the graph and the call trees of a profile.\n",
	      file);
}

void options_print_help(FILE *file, enum help_mode mode)
{
	fputs("usage: ptmem [OPTION...] [--] PROGRAM [ARGUMENT...]\n"
	      "       ptmem [OPTION...] -p PID\n"
	      "       ptmem [OPTION...] --replay=FILE\n"
	      "       ptmem [OPTION...] --inspect=CORE [PROGRAM]\n"
	      "       ptmem --monitor=PID COMMAND [FILE]\n"
	      "Profiles the heap of a program from outside and writes a massif file.\n", file);
	if (mode == HELP_ALL)
		print_all(file);
	else
		print_everyday(file);
}

void options_print_version(FILE *file)
{
	fputs("ptmem " PTMEM_VERSION "\n", file);
}
