/*
 * The table of options, one row each, and the help that is printed from it.
 *
 * A row's default is a string that is parsed like a given value. Options of Massif's tool
 * (OPT_TOOL) are repeated in "desc:" as given; all others (what to trace, how, and messages)
 * correspond to Valgrind's core options, and are not.
 */
#include "cli/command_line.h"

#include <stdio.h>
#include <string.h>

#include "session/options.h"

static const char *const time_units[] = {"ms", "B", "i", NULL};
static const char *const probes_modes[] = {"auto", "break", "jump", NULL};
static const char *const interpreters_modes[] = {"auto", "only", "mixed", "no", NULL};
static const char *const python_mallocs[] = {"auto", "malloc", "probe", "keep", NULL};
static const char *const trace_sources[] = {"heap", "brk", "mmap", "faults", NULL};
static const char *const views[] = {"live", "peak", "exit", "total", "count", "cold", NULL};
static const char *const xtree_modes[] = {"none", "allocs", "full", NULL};
static const char *const leak_kinds[] = {"definite", "indirect", "possible", "reachable", "all",
					 NULL};
static const char *const gen_modes[] = {"no", "yes", "all", NULL};
static const char *const color_modes[] = {"auto", "always", "never", NULL};

static bool more_messages(const char *text, void *field)
{
	enum log_level *level = field;

	*level = *level < LOG_VERBOSE ? LOG_VERBOSE : LOG_DEBUG;
	return true;
}

static bool less_messages(const char *text, void *field)
{
	*(enum log_level *)field = LOG_WARN;
	return true;
}

static bool parse_age(const char *text, void *field)
{
	return text && amount_parse_age(text, field);
}

static bool parse_help(const char *text, void *field)
{
	*(enum help_mode *)field = text ? HELP_ALL : HELP_EVERYDAY;
	return !text || strcmp(text, "all") == 0;
}

#define AT(field) .offset = offsetof(struct options, field)

static const struct option_row rows[] = {
	{.text = "What to profile:"},
	{.name = "pid", .letter = 'p', .type = OPT_PIDS, .flags = OPT_SEPARATE | OPT_EVERYDAY,
	 AT(attach.pid),
	 OPTION_RANGE(1, 4194304),
	 .value = "PID", .takes = "a process id",
	 .text = "attach to the running process PID; Ctrl-C detaches"},
	{.name = "follow", .type = OPT_TEXTS, .flags = OPT_NOT_EMPTY, AT(attach.follow),
	 .value = "NAME|UNIT|/CGROUP",
	 .text = "attach to the processes of this name, systemd unit\n"
		 "or control group, as they appear; repeatable"},
	{.name = "duration", .type = OPT_DECIMAL, AT(attach.duration), OPTION_RANGE(0.001, 1e9),
	 .value = "SECONDS", .text = "with -p or --follow: detach after this time"},
	{.name = "earlier-blocks", .type = OPT_YES_NO, AT(attach.earlier_blocks), .initial = "yes",
	 .value = "yes|no",
	 .text = "with -p: the blocks that were allocated before are\nin the profile, read from "
		 "malloc's heaps"},
	{.name = "inspect", .type = OPT_TEXT, .flags = OPT_EVERYDAY | OPT_NOT_EMPTY,
	 AT(inspect.what),
	 .value = "[=CORE]",
	 .text = "with -p, or of the core file CORE: print what memory\n"
		 "consists of, and why malloc does not return what is\n"
		 "free, and end; of a PROGRAM: as --inspect-at-exit",
	 .brief = "what memory consists of, with -p or of a core file"},
	{.name = "inspect-at-exit", .type = OPT_FLAG, AT(inspect.at_exit),
	 .text = "profile, and print that at the end, and at each\nSIGUSR1 to ptmem",
	 .brief = "profile, and print at the end what memory consists of"},
	{.name = "inspect-pointers", .type = OPT_FLAG, AT(inspect.pointers),
	 .text = "also find what points to blocks of each type, which\ntakes longer"},
	{.name = "cold", .type = OPT_TIME, AT(inspect.cold), OPTION_RANGE(0.01, 1e9),
	 .value = "TIME",
	 .text = "find which blocks are not touched for that time\n"
		 "(60s), read or written, and report as --inspect; in\n"
		 "a profile by call path, too",
	 .brief = "find memory that is not touched for this time"},
	{.name = "brief", .type = OPT_FLAG, AT(is_brief),
	 .text = "reports of --inspect, --graph and --leak-check have\n"
		 "at most 4 KiB: what is largest, each with the\n"
		 "command that shows more; Markdown if FILE ends in\n.md",
	 .brief = "what is largest in a report, in at most 4 KiB"},
	{.name = "inspect-copy", .type = OPT_SIZE, .flags = OPT_OR_AUTO, AT(inspect.copy),
	 .initial = "auto", .absent = (double)OPTIONS_COPY_AUTO,
	 OPTION_RANGE(0, UINT64_C(1) << 40), .value = "auto|SIZE",
	 .text = "with --inspect, --graph and --leak-check: copy a\nprocess that has at most this "
		 "much memory of its\nown, and examine the copy: it is stopped for less\n"
		 "time; auto: a fourth of what is available",
	 .brief = "copy processes of up to this size, to stop them for less time"},
	{.name = "inspect-out", .type = OPT_TEXT, .flags = OPT_NOT_EMPTY, AT(inspect.out),
	 .value = "FILE",
	 .text = "where that goes instead of standard output (stderr\n"
		 "when profiling): JSON if FILE ends in .json, the\n"
		 "blocks in use if in .csv, a Go program's profile for\n"
		 "pprof if in .pb.gz, else text",
	 .brief = "where the output of --inspect goes"},
	{.name = "graph", .type = OPT_TEXT, .flags = OPT_NOT_EMPTY, AT(graph.what),
	 .value = "[=CORE]",
	 .text = "with -p, or of the core file CORE: print which\n"
		 "variables, threads and other owners hold the\n"
		 "blocks in use, and how much each holds alone, and\n"
		 "end; of a PROGRAM: at its end, and at each SIGUSR1",
	 .brief = "which variables hold how much of the heap"},
	{.name = "graph-depth", .type = OPT_NUMBER, AT(graph.depth), .initial = "1",
	 OPTION_RANGE(0, 1000), .value = "NUMBER",
	 .text = "with --graph: levels of blocks that are shown below\neach owner"},
	{.name = "who-holds", .type = OPT_TEXT, .flags = OPT_NOT_EMPTY, AT(graph.who_holds),
	 .value = "ADDRESS|TYPE|FUNCTION",
	 .text = "with --graph: print only what holds the block at\n"
		 "ADDRESS, those of a TYPE, or those that a FUNCTION\n"
		 "allocated: the shortest ways to them",
	 .brief = "what holds a block, those of a type or of a function"},
	{.name = "containers", .type = OPT_TEXT, .flags = OPT_NOT_EMPTY, AT(graph.containers),
	 .value = "FILE",
	 .text = "with --graph: containers that FILE describes, too",
	 .brief = "descriptions of containers for --graph"},
	{.name = "graph-out", .type = OPT_TEXT, .flags = OPT_NOT_EMPTY, AT(graph.out),
	 .value = "FILE",
	 .text = "write the graph to FILE, for ptmem-report: JSON if\n"
		 "it ends in .json, text if in .txt",
	 .brief = "write the graph to FILE, for ptmem-report"},
	{.name = "monitor", .type = OPT_NUMBER, AT(monitor_pid), OPTION_RANGE(1, 4194304),
	 .value = "PID",
	 .text = "send COMMAND [FILE] to the ptmem that profiles\nPID; help lists the commands",
	 .brief = "send a command to the ptmem that profiles PID"},
	{.name = "trace-children", .type = OPT_YES_NO, .flags = OPT_EVERYDAY, AT(children.trace),
	 .initial = "no",
	 .value = "yes|no", .text = "also profile the programs that it executes"},
	{.name = "follow-exec", .type = OPT_YES_NO, AT(children.follow_exec),
	 .initial = "yes", .value = "yes|no",
	 .text = "if it executes another program in its place, as\n"
		 "wrapper scripts do, the profile is that one's"},
	{.name = "trace", .type = OPT_SET, AT(tracing.sources), OPTION_CHOICES(trace_sources),
	 .initial = "heap",
	 .value = "SOURCE,...",
	 .text = "what to trace: heap, brk, mmap, faults; each has a\nfile of its own"},
	{.name = "trace-children-skip", .type = OPT_TEXT, AT(children.skip),
	 .value = "PATTERN,...", .text = "but not programs of these names",
	 .brief = "do not follow programs of these names"},
	{.name = "trace-children-skip-by-arg", .type = OPT_TEXT, AT(children.skip_by_arg),
	 .value = "PATTERN,...", .text = "but not programs with an argument like one of\nthese",
	 .brief = "do not follow programs with such an argument"},
	{.name = "soname-synonyms", .type = OPT_TEXT, AT(tracing.soname_synonyms),
	 .value = "somalloc=PATTERN", .text = "watch the allocators of libc, libstdc++ and the\n"
					      "libraries of this name only"},
	{.name = "probe", .type = OPT_TEXTS, .flags = OPT_NOT_EMPTY, AT(tracing.probe),
	 .value = "PROBE",
	 .text = "also watch the program's own allocator:\n"
		 "alloc:my_alloc:size=arg1, free:my_free:arg1, ...; or\n"
		 "malloc=0xADDRESS in a program without symbols;\n"
		 "@FILE: one on each line; repeatable",
	 .brief = "also watch this function, an allocator of the program"},
	{.name = "mempools", .type = OPT_YES_NO, AT(tracing.mempools), .initial = "no",
	 .value = "yes|no",
	 .text = "count what the program allocates in memory pools,\n"
		 "as announced by its client requests"},
	{.name = "running-on-valgrind", .type = OPT_YES_NO, AT(tracing.running_on_valgrind),
	 .initial = "no",
	 .value = "yes|no", .text = "the value of RUNNING_ON_VALGRIND in the program"},
	{.name = "probes", .type = OPT_CHOICE, AT(tracing.probes), OPTION_CHOICES(probes_modes),
	 .initial = "auto",
	 .value = "auto|break|jump", .text = "how calls are caught: by breakpoints, by jumps,\n"
					     "or by whichever suits"},
	{.name = "interpreters", .type = OPT_CHOICE, AT(names.interpreters),
	 OPTION_CHOICES(interpreters_modes), .initial = "auto",
	 .value = "auto|only|mixed|no",
	 .text = "functions of Python, Ruby, PHP and Perl programs:\n"
		 "instead of the interpreter's, alone, with all native\n"
		 "ones, or not at all"},
	{.name = "python", .type = OPT_CHOICE, AT(names.interpreters),
	 OPTION_CHOICES(interpreters_modes), .initial = "auto",
	 .value = "auto|only|mixed|no", .text = "the same as --interpreters"},
	{.name = "python-malloc", .type = OPT_CHOICE, AT(children.python_malloc),
	 OPTION_CHOICES(python_mallocs), .initial = "auto",
	 .value = "auto|malloc|probe|keep",
	 .text = "small objects of Python programs: by starting them\n"
		 "with PYTHONMALLOC=malloc, by watching Python's own\n"
		 "allocator, by whichever suits, or not"},
	{.name = "heap-sample", .type = OPT_SIZE, .flags = OPT_EVERYDAY, AT(tracing.heap_sample),
	 OPTION_RANGE(1, ESTIMATE_INTERVAL_MAX),
	 .value = "BYTES", .text = "record only a sample of the allocations, on average\n"
				   "one every BYTES bytes (512K, 1M, ...), and estimate\n"
				   "the rest; 1: record all"},
	{.name = "budget", .type = OPT_DECIMAL, .flags = OPT_PERCENT, AT(tracing.budget),
	 OPTION_RANGE(0.01, 1000),
	 .value = "PERCENT", .text = "sample less often while ptmem costs more than this\n"
				     "share of a CPU: 2%"},
	{.name = "max-wait", .type = OPT_TIME, AT(tracing.max_wait), OPTION_RANGE(0, 31536000),
	 .value = "TIME", .text = "if ptmem is stopped, the program waits for it for\n"
				  "at most this time, then events are lost [1s;\n"
				  "0 with --heap-sample=256K or more]"},
	{.name = "seed", .type = OPT_NUMBER, AT(tracing.seed), OPTION_RANGE(1, UINT32_MAX),
	 .value = "N", .text = "which allocations these are; random if not given",
	 .brief = "which allocations are samples"},
	{.name = "ring", .type = OPT_SIZE, .flags = OPT_POWER, AT(tracing.ring),
	 OPTION_RANGE(65536, 1 << 30),
	 .value = "SIZE", .text = "bytes of the buffer between a program's first\n"
				  "thread and ptmem; 1M if not given"},
	{.name = "verify-stacks", .type = OPT_NUMBER, AT(tracing.verify_stacks), .absent = 1,
	 OPTION_RANGE(1, 1e9), .value = "[=N]",
	 .text = "compare each stack, or one in N, with what another\n"
		 "unwinder finds, and count the differences; slow"},

	{.text = "The profile, as Massif's options:"},
	{.name = "time-unit", .type = OPT_CHOICE, .flags = OPT_TOOL, AT(profile.time_unit),
	 OPTION_CHOICES(time_units),
	 .initial = "ms", .value = "ms|B|i", .text = "milliseconds, bytes allocated and freed, or\n"
						      "instructions"},
	{.name = "pages-as-heap", .type = OPT_YES_NO, .flags = OPT_TOOL, AT(profile.pages_as_heap),
	 .initial = "no",
	 .value = "yes|no", .text = "count mapped pages instead of heap blocks"},
	{.name = "depth", .type = OPT_NUMBER, .flags = OPT_TOOL, AT(profile.depth),
	 OPTION_RANGE(1, 200),
	 .initial = "30",
	 .value = "N", .text = "frames of a call path"},
	{.name = "threshold", .type = OPT_DECIMAL, .flags = OPT_TOOL, AT(profile.threshold),
	 OPTION_RANGE(0, 100),
	 .initial = "1.0", .value = "PERCENT", .text = "call sites below this are merged"},
	{.name = "peak-inaccuracy", .type = OPT_DECIMAL, .flags = OPT_TOOL,
	 AT(profile.peak_inaccuracy),
	 .initial = "1.0",
	 .value = "PERCENT", .text = "a new peak exceeds the last by more than this"},
	{.name = "peak-at-exit", .type = OPT_YES_NO, AT(profile.peak_at_exit), .initial = "yes",
	 .value = "yes|no", .text = "whether the end may be the peak; in Massif it\nmay not"},
	{.name = "heap", .type = OPT_YES_NO, .flags = OPT_TOOL, AT(profile.heap), .initial = "yes",
	 .value = "yes|no", .text = "profile the heap"},
	{.name = "stacks", .type = OPT_YES_NO, .flags = OPT_TOOL, AT(profile.stacks),
	 .initial = "no",
	 .value = "yes|no", .text = "profile the stacks of all threads, too"},
	{.name = "stack-sample", .type = OPT_NUMBER, .flags = OPT_OR_NO | OPT_NOT_EMPTY,
	 AT(profile.stack_sample_ms), OPTION_RANGE(0, 86400000),
	 .initial = "10",
	 .value = "MS|no",
	 .text = "read stack pointers of threads that make no call\n"
		 "every MS milliseconds; no: at calls only"},
	{.name = "detailed-freq", .type = OPT_NUMBER, .flags = OPT_TOOL, AT(profile.detailed_freq),
	 OPTION_RANGE(1, 1000000),
	 .initial = "10", .value = "N", .text = "every Nth snapshot has a call tree"},
	{.name = "max-snapshots", .type = OPT_NUMBER, .flags = OPT_TOOL, AT(profile.max_snapshots),
	 OPTION_RANGE(10, 1000),
	 .initial = "100", .value = "N", .text = "snapshots kept at a time"},
	{.name = "heap-admin", .type = OPT_NUMBER, .flags = OPT_TOOL, AT(profile.heap_admin),
	 OPTION_RANGE(0, 1024),
	 .initial = "8", .value = "BYTES", .text = "the allocator's own bytes for a block"},
	{.name = "alignment", .type = OPT_NUMBER, .flags = OPT_TOOL | OPT_POWER,
	 AT(profile.alignment),
	 OPTION_RANGE(16, 4096),
	 .initial = "16", .value = "BYTES", .text = "alignment of blocks, a power of two"},
	{.name = "realloc-zero-bytes-frees", .type = OPT_YES_NO, .flags = OPT_TOOL,
	 AT(profile.realloc_zero_bytes_frees),
	 .initial = "yes", .value = "yes|no",
	 .text = "whether a block of realloc(p, 0), where the\n"
						      "allocator gives one, has 0 bytes or 1"},
	{.name = "alloc-fn", .type = OPT_TEXTS, .flags = OPT_TOOL, AT(names.alloc_fn),
	 .value = "NAME", .text = "this function allocates for its caller; repeatable"},
	{.name = "ignore-fn", .type = OPT_TEXTS, .flags = OPT_TOOL, AT(names.ignore_fn),
	 .value = "NAME", .text = "do not count what this function allocates;\nrepeatable"},

	{.text = "Names of functions and files:"},
	{.name = "demangle", .type = OPT_YES_NO, AT(names.demangle), .initial = "yes",
	 .value = "yes|no", .text = "names of C++ and Rust as in the source"},
	{.name = "show-below-main", .type = OPT_YES_NO, AT(names.show_below_main), .initial = "no",
	 .value = "yes|no", .text = "call paths from before main"},
	{.name = "fullpath-after", .type = OPT_TEXTS, AT(names.fullpath_after),
	 .value = "TEXT", .text = "show paths of source files: the part after TEXT;\n"
				  "repeatable"},
	{.name = "my-code", .type = OPT_PARSED,
	 .parse = my_code_include, .flags = OPT_NOT_EMPTY | OPT_REPEATABLE, AT(names.my_code),
	 .value = "PATTERN", .text = "functions of these source files or objects are\n"
				     "yours: may be call sites; repeatable"},
	{.name = "not-my-code", .type = OPT_PARSED,
	 .parse = my_code_exclude, .flags = OPT_NOT_EMPTY | OPT_REPEATABLE, AT(names.my_code),
	 .value = "PATTERN", .text = "they are not: their callers are; repeatable",
	 .brief = "functions of these source files or objects are not yours"},
	{.name = "read-inline-info", .type = OPT_YES_NO, AT(names.read_inline_info),
	 .initial = "yes",
	 .value = "yes|no", .text = "inlined functions in call paths"},
	{.name = "extra-debuginfo-path", .type = OPT_TEXT, .flags = OPT_NOT_EMPTY,
	 AT(names.extra_debuginfo_path),
	 .value = "DIRECTORY", .text = "also search here for separate debug files"},
	{.name = "debuginfod", .type = OPT_YES_NO, AT(names.debuginfod), .initial = "yes",
	 .value = "yes|no", .text = "ask the servers in DEBUGINFOD_URLS for others",
	 .brief = "ask debuginfod servers for debug files"},

	{.text = "Files:"},
	{.name = "massif-out-file", .letter = 'o', .type = OPT_TEXT,
	 .flags = OPT_TOOL | OPT_EVERYDAY,
	 AT(files.massif),
	 .initial = "massif.out.%p", .value = "FILE",
	 .text = "where the profile goes; %p: process id, %n: number\n"
		 "of the file, %q{VAR}: environment\n"
		 "variable, %%: a percent sign"},
	{.name = "xtree-memory", .type = OPT_CHOICE, .flags = OPT_TOOL, AT(files.xtree_mode),
	 OPTION_CHOICES(xtree_modes),
	 .initial = "none", .value = "none|allocs|full",
	 .text = "write the memory by call path for kcachegrind:\n"
		 "in use at the end, or also all that was\n"
		 "allocated and freed"},
	{.name = "xtree-memory-file", .type = OPT_TEXT, .flags = OPT_TOOL, AT(files.xtree),
	 .initial = "xtmemory.kcg.%p", .value = "FILE",
	 .text = "where that goes; with .ms in its name it is a\nmassif file",
	 .brief = "where --xtree-memory goes"},
	{.name = "xtree-compress-strings", .type = OPT_YES_NO, .flags = OPT_TOOL,
	 AT(files.xtree_compress_strings),
	 .initial = "yes", .value = "yes|no", .text = "write each name in that file once",
	 .brief = "write each name in the file of --xtree-memory once"},
	{.name = "record", .type = OPT_TEXT, .flags = OPT_NOT_EMPTY | OPT_EVERYDAY,
	 AT(files.record),
	 .value = "FILE", .text = "record everything: any moment, any range of time;\n"
				   "read it with ptmem-report FILE"},
	{.name = "record-every", .type = OPT_TIME, AT(files.record_every),
	 OPTION_RANGE(0.1, 48 * 86400.0),
	 .value = "TIME",
	 .text = "begin the next recording after this time (10m, 1h);\n"
		 "%n: its number, 001, 002, ...",
	 .brief = "begin the next recording after this time"},
	{.name = "record-keep", .type = OPT_NUMBER, AT(files.record_keep), OPTION_RANGE(1, 1000000),
	 .value = "N", .text = "keep the last N of them, and remove older ones",
	 .brief = "how many recordings of --record-every are kept"},
	{.name = "record-limit", .type = OPT_SIZE, AT(files.record_limit),
	 OPTION_RANGE(65536, 1ull << 50),
	 .value = "SIZE", .text = "the largest size of a recording: details get coarser\n"
				  "before it becomes larger"},
	{.name = "when", .type = OPT_TEXTS, AT(when),
	 .value = "CONDITION[:ACTION]",
	 .text = "when heap>2G, rss>80%, growth>100M/min, pressure>10%\n"
		 "or limit>0/min (of its cgroup) begins to hold: write\n"
		 "the recording so far, or inspect, detach, or end;\n"
		 "repeatable",
	 .brief = "when a condition begins to hold, record, inspect, detach or end"},
	{.name = "limit", .type = OPT_TEXTS, .flags = OPT_NOT_EMPTY, AT(limits),
	 .value = "METRIC<AMOUNT", .takes = "a limit, as in peak<100M",
	 .text = "end with status 1 unless peak<100M, live-at-end<1M,\n"
		 "allocated<1G, allocations<10K, temporary<50% or\n"
		 "leaked<1 holds at the end; peak@parse<10M is about\n"
		 "call paths with the function parse; repeatable",
	 .brief = "a limit that the profile must keep, for tests"},
	{.name = "within", .type = OPT_TEXTS, .flags = OPT_NOT_EMPTY, AT(within),
	 .value = "FUNCTION", .takes = "the name of a function",
	 .text = "measure each call of this function, from its entry\n"
		 "to its return; limits are those of each call;\nrepeatable",
	 .brief = "measure each call of this function"},
	{.name = "label", .type = OPT_TEXTS, .flags = OPT_NOT_EMPTY, AT(labels),
	 .value = "FUNCTION:argN",
	 .text = "while a call of this function lasts, what its thread\n"
		 "allocates is under [NAME: VALUE]: the argument, or\n"
		 "->MEMBER of it; or VARIABLE, what that says at each\n"
		 "allocation, or otel:KEY, of OpenTelemetry's thread\n"
		 "context; NAME=... gives the name; repeatable",
	 .brief = "whom memory is for: an argument, or a variable"},
	{.name = "limits-file", .type = OPT_TEXTS, .flags = OPT_NOT_EMPTY, AT(files.limits),
	 .value = "FILE",
	 .text = "a file of limits, one on each line, and of comments\n"
		 "that begin with #; repeatable",
	 .brief = "a file of limits"},
	{.name = "limits-out", .type = OPT_TEXTS, .flags = OPT_NOT_EMPTY, AT(files.limits_out),
	 .value = "FILE",
	 .text = "what was found of them; by the end of its name: .md,\n"
		 ".xml (JUnit), .sarif, .json, else annotations for\n"
		 "GitHub; repeatable",
	 .brief = "where to write what was found of the limits"},
	{.name = "repeat", .type = OPT_NUMBER, .flags = OPT_NOT_EMPTY, AT(repeat),
	 OPTION_RANGE(1, 10000), .value = "N",
	 .text = "run the program N times, and say which metrics are\n"
		 "the same each time; limits must be exceeded in all",
	 .brief = "run the program N times"},
	{.name = "free-stacks", .type = OPT_FLAG, AT(files.free_stacks),
	 .text = "with --record or --html: also which call paths\n"
		 "release blocks; much slower"},
	{.name = "html", .type = OPT_TEXT, .flags = OPT_NOT_EMPTY | OPT_EVERYDAY, AT(files.html),
	 .value = "FILE", .text = "write an interactive report for a browser"},
	{.name = "embed-sources", .type = OPT_FLAG, AT(files.embeds_sources),
	 .text = "with --html: the page has the program's sources,\nwith what each line holds",
	 .brief = "put the program's sources into the page of --html"},
	{.name = "source", .type = OPT_TEXTS, .flags = OPT_NOT_EMPTY, AT(files.sources),
	 .value = "DIR", .text = "with --embed-sources: where sources are now;\nrepeatable",
	 .brief = "where sources for --embed-sources are now"},
	{.name = "listen", .type = OPT_TEXT, .flags = OPT_NOT_EMPTY, AT(listen.at),
	 .value = "[=ADDRESS:PORT]",
	 .text = "serve the report, pprof profiles and metrics while\n"
		 "the program runs; default: 127.0.0.1, a free port"},
	{.name = "listen-token", .type = OPT_TEXT, .flags = OPT_NOT_EMPTY, AT(listen.token),
	 .value = "FILE", .text = "only clients that send the token in FILE",
	 .brief = "--listen serves only clients that send the token in FILE"},
	{.name = "listen-open", .type = OPT_FLAG, AT(listen.is_open),
	 .text = "to anyone",
	 .brief = "--listen serves anyone"},
	{.name = "listen-linger", .type = OPT_DECIMAL, AT(listen.linger), OPTION_RANGE(1, 86400),
	 .value = "SECONDS", .text = "go on for this long after the program has ended",
	 .brief = "--listen goes on for this long after the end of the program"},
	{.name = "events", .type = OPT_TEXT, .flags = OPT_NOT_EMPTY, AT(files.events),
	 .value = "FILE", .text = "write every event to FILE, as text"},
	{.name = "replay", .type = OPT_TEXT, .flags = OPT_NOT_EMPTY, AT(files.replay),
	 .value = "FILE", .text = "profile the events of FILE instead of a program"},

	{.text = "Calls counted, as memusage does:"},
	{.name = "memusage", .type = OPT_FLAG, AT(memusage.count),
	 .text = "print calls, bytes, peak and a histogram of sizes\n"
		 "at the end, as memusage does; ptmem(1) lists the\ndifferences"},
	{.name = "memusage-out", .type = OPT_TEXT, .flags = OPT_NOT_EMPTY, AT(memusage.out),
	 .value = "FILE", .text = "to FILE instead of standard error",
	 .brief = "where --memusage goes"},
	{.name = "data", .type = OPT_TEXT, .flags = OPT_NOT_EMPTY, AT(memusage.data_file),
	 .value = "FILE",
	 .text = "write live bytes and stack depth of every call\n"
		 "to FILE, for ptmem-report --png or "
				  "memusagestat"},
	{.name = "data-buffer", .type = OPT_NUMBER, AT(memusage.data_buffer),
	 OPTION_RANGE(1, 32768),
	 .initial = "32768",
	 .value = "RECORDS", .text = "records of that file collected before they are\nwritten",
	 .brief = "records of --data that are collected before they are written"},
	{.name = "mmap", .letter = 'm', .type = OPT_FLAG, AT(memusage.mmap),
	 .text = "count the program's calls of mmap, mremap and\nmunmap, too"},
	{.name = "no-timer", .type = OPT_FLAG, AT(memusage.no_timer),
	 .text = "do not read stack pointers between calls"},
	{.name = "progname", .type = OPT_TEXT, .flags = OPT_NOT_EMPTY, AT(memusage.progname),
	 .value = "NAME", .text = "count only in programs of this base name"},

	{.text = "Memory of the process over time:"},
	{.name = "sample", .type = OPT_NUMBER, AT(samples.ms), .absent = 100,
	 OPTION_RANGE(1, 86400000),
	 .value = "[=MS]", .text = "read /proc every MS milliseconds [100]"},
	{.name = "sample-fields", .type = OPT_TEXT, .flags = OPT_NOT_EMPTY, AT(samples.fields),
	 .value = "LIST", .text = "which lines of /proc/PID/status, with commas\n"
				  "between [VmSize,VmPeak,VmRSS,VmHWM; in a file\n"
				  "also Monotonic,Realtime: the moment, in ns]"},
	{.name = "sample-out", .type = OPT_TEXT, .flags = OPT_NOT_EMPTY, AT(samples.out),
	 .value = "FILE",
	 .text = "write samples to FILE, with header and times, not\nto standard error"},

	{.text = "Growth and leaks:"},
	{.name = "leaks", .type = OPT_DECIMAL, .flags = OPT_NOT_EMPTY, AT(leaks.age),
	 OPTION_RANGE(0, 1e9),
	 .value = "[=AGE]",
	 .text = "list the blocks that are live at the end, and at\n"
		 "each SIGUSR1 to ptmem, by call path; with AGE: those\nolder than AGE seconds"},
	{.name = "leak-check", .type = OPT_FLAG, .flags = OPT_EVERYDAY, AT(leaks.check),
	 .text = "list the blocks that are live at the end by call\n"
		 "path, and which of them no pointer reaches"},
	{.name = "leaks-out", .type = OPT_TEXT, .flags = OPT_NOT_EMPTY, AT(leaks.out),
	 .value = "FILE",
	 .text = "where that list goes instead of stderr: JSON if\nFILE ends in .json, else text",
	 .brief = "where lists of leaks go"},
	{.name = "older-than", .type = OPT_PARSED, .parse = parse_age, AT(leaks.older_than),
	 .value = "TIME",
	 .takes = "an age (300ms, 2.5, 10m, 1h, 2d), or a share of the run (10%)",
	 .text = "leave out younger blocks [0; of a process that runs\non: 10 % of the run]"},
	{.name = "show-leak-kinds", .type = OPT_SET, AT(leaks.shown_kinds),
	 OPTION_CHOICES(leak_kinds),
	 .initial = "definite,possible,reachable", .value = "KIND,...",
	 .text = "kinds of blocks that the text of a leak check\nlists, also indirect"},
	{.name = "leak-holders", .type = OPT_FLAG, AT(leaks.holders),
	 .text = "with --leak-check: show what holds the blocks that\n"
		 "are reachable, from the root on"},
	{.name = "suppressions", .type = OPT_TEXTS, .flags = OPT_NOT_EMPTY, AT(leaks.suppressions),
	 .value = "FILE",
	 .text = "with --leak-check: leave out the leaks that FILE\nlists, in Valgrind's format; "
		 "repeatable"},
	{.name = "gen-suppressions", .type = OPT_CHOICE, AT(leaks.gen_suppressions),
	 OPTION_CHOICES(gen_modes), .initial = "no", .value = "no|yes|all",
	 .text = "print such an entry with each leak",
	 .brief = "print suppressions for leaks"},
	{.name = "error-exitcode", .type = OPT_NUMBER, AT(leaks.error_exitcode),
	 OPTION_RANGE(0, 255),
	 .initial = "0", .value = "N",
	 .text = "with --leak-check: end with status N when bytes\nare definitely lost"},
	{.name = "folded", .type = OPT_TEXT, .flags = OPT_NOT_EMPTY, AT(files.folded),
	 .value = "FILE",
	 .text = "write call paths as folded stacks"},
	{.name = "flame", .type = OPT_TEXT, .flags = OPT_NOT_EMPTY | OPT_EVERYDAY, AT(files.flame),
	 .value = "FILE.svg",
	 .text = "draw call paths as a flame graph"},
	{.name = "view", .type = OPT_CHOICE, AT(files.view), OPTION_CHOICES(views),
	 .initial = "live", .value = "live|peak|exit|total|count|cold",
	 .text = "which bytes folded stacks and flame graphs show;\ncount: allocations; "
		 "cold: what --cold found"},
	{.name = "top", .type = OPT_DECIMAL, .flags = OPT_EVERYDAY | OPT_NOT_EMPTY, AT(top),
	 OPTION_RANGE(0.1, 86400),
	 .value = "[=SECONDS]",
	 .text = "show a live table of the call sites that hold most,\nand of how they grow"},

	{.text = "Messages and the rest:"},
	{.name = "log-file", .type = OPT_TEXT, .flags = OPT_NOT_EMPTY, AT(messages.log_file),
	 .value = "FILE", .text = "file for messages; %p: ptmem's process id"},
	{.name = "log-fd", .type = OPT_NUMBER, AT(messages.log_fd), OPTION_RANGE(0, 1 << 20),
	 .initial = "2",
	 .value = "N", .text = "descriptor for messages"},
	{.name = "child-silent-after-fork", .type = OPT_YES_NO, AT(children.silent_after_fork),
	 .initial = "no",
	 .value = "yes|no", .text = "no messages about forked children"},
	{.name = "trace-malloc", .type = OPT_YES_NO, .flags = OPT_TOOL, AT(messages.trace_malloc),
	 .initial = "no",
	 .value = "yes|no", .text = "a message for each call"},
	{.name = "stats", .type = OPT_FLAG, AT(messages.stats),
	 .text = "print what ptmem itself did"},
	{.name = "verbose", .letter = 'v', .type = OPT_PARSED, .flags = OPT_REPEATABLE,
	 .parse = more_messages, AT(messages.level),
	 .text = "print more; twice: still more"},
	{.name = "quiet", .letter = 'q', .type = OPT_PARSED, .parse = less_messages,
	 AT(messages.level),
	 .text = "only warnings and errors"},
	{.name = "color", .type = OPT_CHOICE, AT(messages.color), OPTION_CHOICES(color_modes),
	 .initial = "auto",
	 .value = "auto|always|never", .text = "colour in messages"},
	{.name = "no-rc", .type = OPT_FLAG, AT(invocation.no_rc),
	 .text = "read neither ptmemrc nor PTMEM_OPTS"},
	{.name = "command-line-only", .type = OPT_YES_NO, AT(invocation.command_line_only),
	 .initial = "no",
	 .value = "yes|no", .text = "the same, as Valgrind names it",
	 .brief = "the same as --no-rc"},
	{.name = "help", .letter = 'h', .type = OPT_PARSED, .flags = OPT_EVERYDAY,
	 .parse = parse_help, AT(invocation.help),
	 .value = "[=all]", .takes = "all, or no value",
	 .text = "print the everyday options; all: all of them"},
	{.name = "version", .letter = 'V', .type = OPT_FLAG, .flags = OPT_EVERYDAY,
	 AT(invocation.version),
	 .text = "print the version"},
};

const struct option_table options_table = {rows, ARRAY_SIZE(rows)};

static const struct option_layout layout = {"  ", ", ", "    ", 33, true};

void options_print_help(FILE *file, enum help_mode mode)
{
	fputs("usage: ptmem [OPTION...] [--] PROGRAM [ARGUMENT...]\n"
	      "       ptmem [OPTION...] -p PID\n"
	      "       ptmem [OPTION...] --replay=FILE\n"
	      "       ptmem [OPTION...] --inspect=CORE [PROGRAM]\n"
	      "       ptmem --monitor=PID COMMAND [FILE]\n"
	      "Profiles the heap of a program from outside and writes a massif file.\n", file);
	if (mode == HELP_ALL) {
		option_print_all(file, &options_table, &layout);
		fputs("\nOptions are also read from ~/.config/ptmem/ptmemrc and PTMEM_OPTS; the "
		      "command\nline wins. ptmem-report FILE prints the graph and the call trees "
		      "of a profile.\n", file);
		return;
	}
	fputs("\nEveryday options:\n", file);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].flags & OPT_EVERYDAY)
			option_print(file, &rows[i], &layout);
	fputs("\nptmem --help=all lists all options, man ptmem explains them.\n"
	      "ptmem-report FILE prints the graph and the call trees of a profile.\n", file);
}

void options_print_version(FILE *file)
{
	fputs("ptmem " PTMEM_VERSION "\n", file);
}
