/*
 * The table of options, one row each, and the help that is printed from it.
 *
 * A row's default is a text that goes through the parser as a given value does.
 * Options that Massif's tool would consume (TOOL) are repeated in "desc:" as they
 * were given; all others (what to trace, how, and messages) are what Valgrind
 * calls core options and are not.
 */
#include "option_table.h"

#include <stdio.h>
#include <string.h>

#include "options.h"

static const char *const time_units[] = {"ms", "B", "i", NULL};
static const char *const probes_modes[] = {"auto", "break", "jump", NULL};
static const char *const trace_sources[] = {"heap", "brk", "mmap", "faults", NULL};
static const char *const views[] = {"live", "peak", "exit", "total", "count", NULL};
static const char *const xtree_modes[] = {"none", "allocs", "full", NULL};
static const char *const color_modes[] = {"auto", "always", "never", NULL};

#define AT(field) .offset = offsetof(struct options, field)
#define RANGE(low, high) .has_range = true, .min = (low), .max = (high)

const struct option_row option_rows[] = {
	{.text = "What to profile:"},
	{.name = "pid", .letter = 'p', .type = PIDS, .flags = SEPARATE, AT(pid), RANGE(1, 4194304),
	 .value = "PID", .text = "attach to the running process PID; Ctrl-C detaches"},
	{.name = "duration", .type = DECIMAL, AT(duration), RANGE(0.001, 1e9),
	 .value = "SECONDS", .text = "with -p: detach after this time"},
	{.name = "monitor", .type = NUMBER, AT(monitor_pid), RANGE(1, 4194304),
	 .value = "PID", .text = "say COMMAND [FILE] to the ptmem that profiles\nPID; help lists the commands"},
	{.name = "trace-children", .type = YES_NO, AT(trace_children), .initial = "no",
	 .value = "yes|no", .text = "go on in programs that the program executes"},
	{.name = "trace", .type = SET, AT(trace), .choices = trace_sources, .initial = "heap",
	 .value = "SOURCE,...", .text = "what to trace: heap, brk, mmap, faults; each has a\nfile of its own"},
	{.name = "trace-children-skip", .type = TEXT, AT(trace_children_skip),
	 .value = "PATTERN,...", .text = "with it: but not in programs of these names"},
	{.name = "trace-children-skip-by-arg", .type = TEXT, AT(trace_children_skip_by_arg),
	 .value = "PATTERN,...", .text = "with it: but not where an argument is like one\nof these"},
	{.name = "soname-synonyms", .type = TEXT, AT(soname_synonyms),
	 .value = "somalloc=PATTERN", .text = "watch the allocators of libc, libstdc++ and the\n"
					      "libraries of this name only"},
	{.name = "mempools", .type = YES_NO, AT(mempools), .initial = "no",
	 .value = "yes|no", .text = "count what the program allocates in memory pools,\nas its client requests tell"},
	{.name = "running-on-valgrind", .type = YES_NO, AT(running_on_valgrind), .initial = "no",
	 .value = "yes|no", .text = "what RUNNING_ON_VALGRIND in the program says"},
	{.name = "probes", .type = CHOICE, AT(probes), .choices = probes_modes, .initial = "auto",
	 .value = "auto|break|jump", .text = "how calls are caught: by breakpoints, by jumps,\n"
					     "or by whichever suits"},
	{.name = "ring", .type = SIZE, .flags = POWER, AT(ring), RANGE(65536, 1 << 30),
	 .value = "SIZE", .text = "bytes of the buffer between program and ptmem;\n"
				  "chosen by the number of CPUs if not given"},

	{.text = "The profile, as Massif's options:"},
	{.name = "time-unit", .type = CHOICE, .flags = TOOL, AT(time_unit), .choices = time_units,
	 .initial = "ms", .value = "ms|B|i", .text = "milliseconds, bytes allocated and freed, or\n"
						      "instructions"},
	{.name = "pages-as-heap", .type = YES_NO, .flags = TOOL, AT(pages_as_heap), .initial = "no",
	 .value = "yes|no", .text = "count mapped pages instead of heap blocks"},
	{.name = "depth", .type = NUMBER, .flags = TOOL, AT(depth), RANGE(1, 200), .initial = "30",
	 .value = "N", .text = "frames of a call path"},
	{.name = "threshold", .type = DECIMAL, .flags = TOOL, AT(threshold), RANGE(0, 100),
	 .initial = "1.0", .value = "PERCENT", .text = "call sites below this are put together"},
	{.name = "peak-inaccuracy", .type = DECIMAL, .flags = TOOL, AT(peak_inaccuracy), .initial = "1.0",
	 .value = "PERCENT", .text = "a new peak exceeds the last by more than this"},
	{.name = "peak-at-exit", .type = YES_NO, AT(peak_at_exit), .initial = "yes",
	 .value = "yes|no", .text = "whether the end may be the peak; Massif's answer\nis no"},
	{.name = "heap", .type = YES_NO, .flags = TOOL, AT(heap), .initial = "yes",
	 .value = "yes|no", .text = "profile the heap"},
	{.name = "stacks", .type = YES_NO, .flags = TOOL, AT(stacks), .initial = "no",
	 .value = "yes|no", .text = "profile the stacks of all threads, too"},
	{.name = "stack-sample", .type = PERIOD, AT(stack_sample_ms), RANGE(0, 86400000), .initial = "10",
	 .value = "MS|no", .text = "look at stacks of threads that make no call every\nMS milliseconds; no: at calls only"},
	{.name = "detailed-freq", .type = NUMBER, .flags = TOOL, AT(detailed_freq), RANGE(1, 1000000),
	 .initial = "10", .value = "N", .text = "every Nth snapshot has a call tree"},
	{.name = "max-snapshots", .type = NUMBER, .flags = TOOL, AT(max_snapshots), RANGE(10, 1000),
	 .initial = "100", .value = "N", .text = "snapshots kept at a time"},
	{.name = "heap-admin", .type = NUMBER, .flags = TOOL, AT(heap_admin), RANGE(0, 1024),
	 .initial = "8", .value = "BYTES", .text = "the allocator's own bytes for a block"},
	{.name = "alignment", .type = NUMBER, .flags = TOOL | POWER, AT(alignment), RANGE(16, 4096),
	 .initial = "16", .value = "BYTES", .text = "alignment of blocks, a power of two"},
	{.name = "realloc-zero-bytes-frees", .type = YES_NO, .flags = TOOL, AT(realloc_zero_bytes_frees),
	 .initial = "yes", .value = "yes|no", .text = "whether a block of realloc(p, 0), where the\n"
						      "allocator gives one, has 0 bytes or 1"},
	{.name = "alloc-fn", .type = TEXTS, .flags = TOOL, AT(alloc_fn),
	 .value = "NAME", .text = "this function allocates for its caller; repeatable"},
	{.name = "ignore-fn", .type = TEXTS, .flags = TOOL, AT(ignore_fn),
	 .value = "NAME", .text = "do not count what this function allocates;\nrepeatable"},

	{.text = "Names of functions and files:"},
	{.name = "demangle", .type = YES_NO, AT(demangle), .initial = "yes",
	 .value = "yes|no", .text = "names of C++ and Rust as in the source"},
	{.name = "show-below-main", .type = YES_NO, AT(show_below_main), .initial = "no",
	 .value = "yes|no", .text = "call paths from before main"},
	{.name = "fullpath-after", .type = TEXTS, AT(fullpath_after),
	 .value = "TEXT", .text = "paths of source files, what stands behind TEXT\n"
				  "in them; repeatable"},
	{.name = "read-inline-info", .type = YES_NO, AT(read_inline_info), .initial = "yes",
	 .value = "yes|no", .text = "inlined functions in call paths"},
	{.name = "extra-debuginfo-path", .type = TEXT, .flags = NOT_EMPTY, AT(extra_debuginfo_path),
	 .value = "FOLDER", .text = "where separate debug files are, too"},

	{.text = "Files:"},
	{.name = "massif-out-file", .letter = 'o', .type = TEXT, .flags = TOOL, AT(massif_out_file),
	 .initial = "massif.out.%p", .value = "FILE",
	 .text = "where the profile goes; %p: process id, %n: number\nof the file, %q{VAR}: environment\n"
		 "variable, %%: a percent sign"},
	{.name = "xtree-memory", .type = CHOICE, .flags = TOOL, AT(xtree_memory), .choices = xtree_modes,
	 .initial = "none", .value = "none|allocs|full",
	 .text = "write the memory by call path for kcachegrind:\nin use at the end, or also all that was\n"
		 "allocated and freed"},
	{.name = "xtree-memory-file", .type = TEXT, .flags = TOOL, AT(xtree_memory_file),
	 .initial = "xtmemory.kcg.%p", .value = "FILE",
	 .text = "where that goes; with .ms in its name it is a\nmassif file"},
	{.name = "xtree-compress-strings", .type = YES_NO, .flags = TOOL, AT(xtree_compress_strings),
	 .initial = "yes", .value = "yes|no", .text = "names in that file once only"},
	{.name = "events", .type = TEXT, .flags = NOT_EMPTY, AT(events_file),
	 .value = "FILE", .text = "write every event to FILE, as text"},
	{.name = "replay", .type = TEXT, .flags = NOT_EMPTY, AT(replay_file),
	 .value = "FILE", .text = "profile the events of FILE instead of a program"},

	{.text = "Calls counted, as memusage does:"},
	{.name = "memusage", .type = FLAG, AT(memusage),
	 .text = "print calls, bytes, peak and a histogram of sizes\nat the end, as memusage does, but for what it does\nwrong: ptmem(1) lists that"},
	{.name = "memusage-out", .type = TEXT, .flags = NOT_EMPTY, AT(memusage_out),
	 .value = "FILE", .text = "to FILE instead of standard error"},
	{.name = "data", .type = TEXT, .flags = NOT_EMPTY, AT(data_file),
	 .value = "FILE", .text = "write live bytes and stack depth of every call\nto FILE, for ptmem-report --png or "
				  "memusagestat"},
	{.name = "data-buffer", .type = NUMBER, AT(data_buffer), RANGE(1, 32768), .initial = "32768",
	 .value = "RECORDS", .text = "records of that file collected before they are\nwritten"},
	{.name = "mmap", .letter = 'm', .type = FLAG, AT(mmap),
	 .text = "count the program's calls of mmap, mremap and\nmunmap, too"},
	{.name = "no-timer", .type = FLAG, AT(no_timer),
	 .text = "do not look at the stacks between calls"},
	{.name = "progname", .type = TEXT, .flags = NOT_EMPTY, AT(progname),
	 .value = "NAME", .text = "count only in programs of this base name"},

	{.text = "Memory of the process over time:"},
	{.name = "sample", .type = SAMPLE, AT(sample_ms), RANGE(1, 86400000),
	 .value = "MS", .text = "read /proc every MS milliseconds [100]"},
	{.name = "sample-fields", .type = TEXT, .flags = NOT_EMPTY, AT(sample_fields),
	 .initial = "VmPeak,VmSize,VmHWM,VmRSS", .value = "LIST",
	 .text = "which lines of /proc/PID/status, with commas\nbetween"},
	{.name = "sample-out", .type = TEXT, .flags = NOT_EMPTY, AT(sample_out),
	 .value = "FILE", .text = "samples go to FILE, with header and times, not to\nstandard error"},

	{.text = "Growth and leaks:"},
	{.name = "leaks", .type = SECONDS, AT(leaks), RANGE(0, 1e9), .value = "[=AGE]",
	 .text = "say at the end, and when ptmem gets SIGUSR1, which\n"
		 "blocks are still there, by call path; only those\nolder than AGE seconds"},
	{.name = "leak-check", .type = FLAG, AT(leak_check),
	 .text = "the same, and to which of them nothing points any\nmore"},
	{.name = "leaks-out", .type = TEXT, .flags = NOT_EMPTY, AT(leaks_out), .value = "FILE",
	 .text = "where that goes instead of stderr: JSON if FILE\nends in .json, else text"},
	{.name = "error-exitcode", .type = NUMBER, AT(error_exitcode), RANGE(0, 255), .initial = "0", .value = "N",
	 .text = "with --leak-check: end with status N when bytes\nare definitely lost"},
	{.name = "folded", .type = TEXT, .flags = NOT_EMPTY, AT(folded_file), .value = "FILE",
	 .text = "write call paths as folded stacks"},
	{.name = "flame", .type = TEXT, .flags = NOT_EMPTY, AT(flame_file), .value = "FILE.svg",
	 .text = "draw call paths as a flame graph"},
	{.name = "view", .type = CHOICE, AT(view), .choices = views, .initial = "live", .value = "live|peak|exit|total|count",
	 .text = "which bytes folded stacks and flame graphs show;\ncount: allocations"},
	{.name = "top", .type = SECONDS, AT(top), RANGE(0.1, 86400), .value = "[=SECONDS]",
	 .text = "show all the time which call sites hold most, and\nhow they grow"},

	{.text = "Messages and the rest:"},
	{.name = "log-file", .type = TEXT, .flags = NOT_EMPTY, AT(log_file),
	 .value = "FILE", .text = "where messages go; %p: ptmem's process id"},
	{.name = "log-fd", .type = NUMBER, AT(log_fd), RANGE(0, 1 << 20), .initial = "2",
	 .value = "N", .text = "the descriptor that messages go to"},
	{.name = "child-silent-after-fork", .type = YES_NO, AT(child_silent_after_fork), .initial = "no",
	 .value = "yes|no", .text = "no messages about forked children"},
	{.name = "trace-malloc", .type = YES_NO, .flags = TOOL, AT(trace_malloc), .initial = "no",
	 .value = "yes|no", .text = "a message for each call"},
	{.name = "stats", .type = FLAG, AT(stats), .text = "print what ptmem itself did"},
	{.name = "verbose", .letter = 'v', .type = MORE, AT(log_level),
	 .text = "say more; twice: still more"},
	{.name = "quiet", .letter = 'q', .type = LESS, AT(log_level), .text = "only warnings and errors"},
	{.name = "color", .type = CHOICE, AT(color), .choices = color_modes, .initial = "auto",
	 .value = "auto|always|never", .text = "colour in messages"},
	{.name = "no-rc", .type = FLAG, AT(no_rc), .text = "read neither ptmemrc nor PTMEM_OPTS"},
	{.name = "command-line-only", .type = YES_NO, AT(command_line_only), .initial = "no",
	 .value = "yes|no", .text = "the same in Valgrind's words"},
	{.name = "help", .letter = 'h', .type = FLAG, AT(help), .text = "print this help"},
	{.name = "version", .letter = 'V', .type = FLAG, AT(version), .text = "print the version"},
};

const size_t option_row_count = ARRAY_SIZE(option_rows);

static void print_choices(FILE *f, const char *const *choice)
{
	for (size_t i = 0; choice[i]; i++)
		fprintf(f, "%s%s", i == 0 ? "" : choice[i + 1] ? ", " : " or ", choice[i]);
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
	case SAMPLE:
	case NUMBER:
		fputs(row->flags & POWER ? "a power of two" : "a whole number", f);
		break;
	case SIZE:
		fputs("a power of two (K, M or G may follow)", f);
		break;
	case DECIMAL:
	case SECONDS:
		fputs("a decimal number", f);
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
	default:
		fputs("a name", f);
	}
	if (row->has_range && row->type != PIDS)
		fprintf(f, " from %.15g to %.15g", row->min, row->max);
	fclose(f);
	return text;
}

/* "  -p, --pid=PID", then the text from column 33 on, its further lines below. */
static void print_row(FILE *file, const struct option_row *row)
{
	char letter[8] = "    ";
	if (row->letter)
		snprintf(letter, sizeof(letter), "-%c, ", row->letter);
	bool is_optional = row->type == SAMPLE;
	const char *equals = row->type == SECONDS ? "" : "="; /* "[=AGE]" brings its own */
	int n = fprintf(file, "  %s--%s%s%s%s%s", letter, row->name, is_optional ? "[" : "", row->value ? equals : "",
			row->value ? row->value : "", is_optional ? "]" : "");
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

void options_print_help(FILE *file)
{
	fputs("usage: ptmem [OPTION...] [--] PROGRAM [ARGUMENT...]\n"
	      "       ptmem [OPTION...] -p PID\n"
	      "       ptmem [OPTION...] --replay=FILE\n"
	      "       ptmem --monitor=PID COMMAND [FILE]\n"
	      "Profiles the heap of a program from outside and writes a massif file.\n", file);
	for (size_t i = 0; i < option_row_count; i++) {
		if (option_rows[i].name)
			print_row(file, &option_rows[i]);
		else
			fprintf(file, "\n%s\n", option_rows[i].text);
	}
	fputs("\nOptions are also read from ~/.config/ptmem/ptmemrc and PTMEM_OPTS; the command\n"
	      "line wins. ptmem-report FILE prints the graph and the call trees of a profile.\n", file);
}

void options_print_version(FILE *file)
{
	fputs("ptmem " PTMEM_VERSION "\n", file);
}
