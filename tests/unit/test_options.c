/*
 * The command line: every option's good and bad values with the line that is
 * printed, the order of the three sources, desc:, and what excludes what.
 */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "cli/command_line.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define MAX_ARGS 16

/* What the last options_parse wrote to stderr. */
static char message[4096];

/* A home of our own, so that the user's ptmemrc is not read. */
static char home[] = "/tmp/ptmem-options.XXXXXX";
static char config[128], directory[160], rc_file[192];

/* Parses @line, split as PTMEM_OPTS is, after the word "ptmem"; stderr goes to @message. */
static int parse(const char *line, struct options *o, struct words *words)
{
	static char *argv[MAX_ARGS + 1]; /* outlives @o */
	FILE *capture = tmpfile();
	assert_non_null(capture);
	*words = (struct words){0};
	assert_int_equal(shell_words_split("ptmem", words), 0);
	assert_int_equal(shell_words_split(line, words), 0);
	assert_true(words->count < MAX_ARGS);
	memset(argv, 0, sizeof(argv));
	memcpy(argv, words->data, words->count * sizeof(argv[0]));

	int saved = dup(STDERR_FILENO);
	dup2(fileno(capture), STDERR_FILENO);
	int err = options_parse((int)words->count, argv, o);
	dup2(saved, STDERR_FILENO);
	close(saved);
	rewind(capture);
	message[fread(message, 1, sizeof(message) - 1, capture)] = '\0';
	fclose(capture);
	return err;
}

static void check_good(const char *line, void (*check)(const struct options *o))
{
	struct options o;
	struct words words;
	if (parse(line, &o, &words))
		fail_msg("'%s' is refused: %s", line, message);
	assert_string_equal(message, "");
	if (check)
		check(&o);
	options_deinit(&o);
	shell_words_deinit(&words);
}

/* It is accepted with a warning; @check: NULL = nothing to check. */
static void check_warned(const char *line, const char *want, void (*check)(const struct options *o))
{
	struct options o;
	struct words words;
	char wanted[sizeof(message)];
	if (parse(line, &o, &words))
		fail_msg("'%s' is refused: %s", line, message);
	snprintf(wanted, sizeof(wanted), "ptmem: warning: %s\n", want);
	assert_string_equal(message, wanted);
	if (check)
		check(&o);
	options_deinit(&o);
	shell_words_deinit(&words);
}

static void check_bad(const char *line, const char *want)
{
	struct options o;
	struct words words;
	char wanted[sizeof(message)];
	if (parse(line, &o, &words) != -EINVAL)
		fail_msg("'%s' is not refused", line);
	snprintf(wanted, sizeof(wanted), "ptmem: %s\n", want);
	assert_string_equal(message, wanted);
	shell_words_deinit(&words);
}

static void is_default_but_no_rc(const struct options *o)
{
	assert_string_equal(o->command[0], "prog");
	assert_null(o->command[1]);
	assert_int_equal(o->attach.pid_count, 0);
	assert_true(o->attach.duration == 0);
	assert_false(o->children.trace);
	assert_int_equal(o->tracing.probes, PROBES_AUTO);
	assert_int_equal(o->tracing.ring, 0);
	assert_int_equal(o->profile.time_unit, TIME_MS);
	assert_int_equal(o->profile.depth, 30);
	assert_true(o->profile.threshold == 1.0);
	assert_true(o->profile.peak_inaccuracy == 1.0);
	assert_true(o->profile.peak_at_exit);
	assert_int_equal(o->profile.detailed_freq, 10);
	assert_int_equal(o->profile.max_snapshots, 100);
	assert_int_equal(o->profile.heap_admin, 8);
	assert_int_equal(o->profile.alignment, 16);
	assert_int_equal(o->names.alloc_fn.count, 0);
	assert_int_equal(o->names.ignore_fn.count, 0);
	assert_string_equal(o->files.massif, "massif.out.%p");
	assert_null(o->files.events);
	assert_null(o->files.replay);
	assert_true(o->leaks.age == OPTION_OFF && o->top == OPTION_OFF);
	assert_false(o->leaks.check);
	assert_null(o->leaks.out);
	assert_int_equal(o->leaks.error_exitcode, 0);
	assert_true(!o->files.folded && !o->files.flame);
	assert_int_equal(o->files.view, SHOW_LIVE);
	assert_false(o->messages.stats);
	assert_int_equal(o->messages.level, LOG_INFO);
	assert_int_equal(o->messages.color, COLOR_AUTO);
	assert_false(o->invocation.help || o->invocation.version);
	assert_string_equal(o->desc, "(none)");
}

static void is_default(const struct options *o)
{
	is_default_but_no_rc(o);
	assert_false(o->invocation.no_rc);
}

static void test_defaults(void **state)
{
	check_good("prog", is_default);
	check_good("-- prog", is_default);
	check_good("--no-rc prog", is_default_but_no_rc);
}

static void is_first_half(const struct options *o)
{
	assert_string_equal(o->command[0], "prog");
	assert_string_equal(o->command[1], "--depth=0");
	assert_null(o->command[2]);
	assert_true(o->children.trace);
	assert_int_equal(o->tracing.probes, PROBES_JUMP);
	assert_int_equal(o->tracing.ring, 4 << 20);
	assert_int_equal(o->profile.time_unit, TIME_INSTRUCTIONS);
	assert_int_equal(o->profile.depth, 200);
	assert_true(o->profile.threshold == 0.5);
	assert_true(o->profile.peak_inaccuracy == -3.25);
	assert_false(o->profile.peak_at_exit);
	assert_int_equal(o->profile.detailed_freq, 1000000);
}

static void is_second_half(const struct options *o)
{
	assert_int_equal(o->profile.max_snapshots, 1000);
	assert_int_equal(o->profile.heap_admin, 0);
	assert_int_equal(o->profile.alignment, 4096);
	assert_int_equal(o->names.alloc_fn.count, 2);
	assert_string_equal(o->names.alloc_fn.data[0], "a b");
	assert_string_equal(o->names.alloc_fn.data[1], "");
	assert_int_equal(o->names.ignore_fn.count, 1);
	assert_string_equal(o->names.ignore_fn.data[0], "x=y");
	assert_string_equal(o->files.massif, "");
	assert_string_equal(o->files.events, "e");
	assert_true(o->messages.stats);
	assert_true(o->invocation.no_rc);
	assert_int_equal(o->messages.color, COLOR_NEVER);
}

static void is_brk_and_faults(const struct options *o)
{
	assert_int_equal(o->tracing.sources, 1u << SOURCE_BRK | 1u << SOURCE_FAULTS);
	assert_true(o->profile.pages_as_heap);
	assert_string_equal(o->desc, "--pages-as-heap=yes");
}

static void has_stacks(const struct options *o)
{
	assert_true(o->profile.stacks);
	assert_int_equal(o->profile.stack_sample_ms, 0);
	assert_string_equal(o->desc, "--stacks=yes");
}

static void has_stacks_by_default(const struct options *o)
{
	assert_false(o->profile.stacks);
	assert_int_equal(o->profile.stack_sample_ms, 10);
}

/* Massif 3.19: silently disabled. */
static void has_no_pages(const struct options *o)
{
	assert_false(o->profile.pages_as_heap);
	assert_string_equal(o->desc, "--pages-as-heap=yes --heap=no");
}

static void test_every_field(void **state)
{
	check_good("--stacks=yes --stack-sample=no prog", has_stacks);
	check_good("--massif:stacks=yes --stack-sample=0 prog", has_stacks);
	check_good("--stacks=yes --stacks=no prog", NULL);
	check_good("prog", has_stacks_by_default);
	check_good("--pages-as-heap=yes --heap=no prog", has_no_pages);
	check_good("--trace-children=yes --probes=jump --ring=4M --time-unit=i --depth=200 --threshold=.5 "
		   "--peak-inaccuracy=-3.25 --peak-at-exit=no --detailed-freq=1000000 prog --depth=0",
		   is_first_half);
	check_good("--max-snapshots=1000 --heap-admin=0 --alignment=4096 '--alloc-fn=a b' --alloc-fn= "
		   "--ignore-fn=x=y --massif-out-file= --events=e --stats --no-rc --color=never prog",
		   is_second_half);
	check_good("--trace=brk,faults --pages-as-heap=yes prog", is_brk_and_faults);
}

/* Each accepted alone in front of a program. */
static void test_good_values(void **state)
{
	static const char *const good[] = {
		"--depth=1", "--depth=+5", "'--depth= 5'", "--depth=007", "--threshold=0", "--threshold=100",
		"--threshold=5.", "--threshold=100.000", "--threshold=", "--threshold=.", "--threshold=+1",
		"'--threshold= 5'", "--peak-inaccuracy=-3", "--peak-inaccuracy=1000000", "--detailed-freq=1",
		"--max-snapshots=10", "--heap-admin=1024", "--heap-admin=", "--alignment=16", "--alignment=2048",
		"--time-unit=B", "--time-unit=ms", "--ring=64k", "--ring=1G", "--ring=65536", "--probes=break",
		"--probes=auto", "--peak-at-exit=yes", "--trace-children=no", "--color=always", "--color=auto",
		"-v", "-vvv", "-qv", "-o f", "-of", "--memcheck:leak-check=no", "--dhat:x", "--massif:depth=3",
		"--alloc-fn=a:b", "--pages-as-heap=yes", "--trace=heap", "--trace=faults,brk,mmap,heap",
		"--massif:pages-as-heap=no",
	};
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		char line[256];
		snprintf(line, sizeof(line), "%s prog", good[i]);
		check_good(line, NULL);
	}
}

#define DEPTH "--depth takes a whole number from 1 to 200"
#define THRESHOLD "--threshold takes a decimal number from 0 to 100"
#define SOURCES "--trace takes one or more, with commas between, of heap, brk, mmap or faults"
#define ALIGNMENT "--alignment takes a power of two from 16 to 4096"
#define RING "--ring takes a power of two (K, M or G may follow) from 65536 to 1073741824"
#define STACK_SAMPLE "--stack-sample takes no or a whole number from 0 to 86400000"
#define DURATION "--duration takes a decimal number from 0.001 to 1000000000"

static const struct {
	const char *option, *complaint;
} bad_values[] = {
	{"--depth=0", DEPTH}, {"--depth=201", DEPTH}, {"--depth=", DEPTH}, {"--depth=-1", DEPTH},
	{"--depth=abc", DEPTH}, {"--depth=1k", DEPTH}, {"--depth=0x10", DEPTH}, {"--depth=5.0", DEPTH},
	{"--depth=99999999999999999999", DEPTH}, {"--depth=4294967297", DEPTH}, {"--massif:depth=0", DEPTH},
	{"--threshold=-1", THRESHOLD}, {"--threshold=100.1", THRESHOLD}, {"--threshold=1e0", THRESHOLD},
	{"--threshold=5%", THRESHOLD}, {"--threshold=1.2.3", THRESHOLD}, {"--threshold=nan", THRESHOLD},
	{"--peak-inaccuracy=x", "--peak-inaccuracy takes a decimal number"},
	{"--peak-inaccuracy=inf", "--peak-inaccuracy takes a decimal number"},
	{"--detailed-freq=0", "--detailed-freq takes a whole number from 1 to 1000000"},
	{"--detailed-freq=1000001", "--detailed-freq takes a whole number from 1 to 1000000"},
	{"--max-snapshots=9", "--max-snapshots takes a whole number from 10 to 1000"},
	{"--max-snapshots=1001", "--max-snapshots takes a whole number from 10 to 1000"},
	{"--heap-admin=1025", "--heap-admin takes a whole number from 0 to 1024"},
	{"--heap-admin=-1", "--heap-admin takes a whole number from 0 to 1024"},
	{"--alignment=8", ALIGNMENT}, {"--alignment=24", ALIGNMENT}, {"--alignment=8192", ALIGNMENT},
	{"--alignment=", ALIGNMENT},
	{"--stacks=maybe", "--stacks takes yes or no"}, {"--stacks=", "--stacks takes yes or no"},
	{"--stacks", "a value is missing, --stacks=yes|no"},
	{"--stack-sample=", STACK_SAMPLE}, {"--stack-sample=yes", STACK_SAMPLE}, {"--stack-sample=-1", STACK_SAMPLE},
	{"--stack-sample=86400001", STACK_SAMPLE}, {"--stack-sample=1.5", STACK_SAMPLE},
	{"--time-unit=x", "--time-unit takes ms, B or i"}, {"--time-unit=", "--time-unit takes ms, B or i"},
	{"--time-unit=b", "--time-unit takes ms, B or i"},
	{"--probes=pads", "--probes takes auto, break or jump"},
	{"--color=maybe", "--color takes auto, always or never"},
	{"--pages-as-heap=1", "--pages-as-heap takes yes or no"},
	{"--trace=", SOURCES}, {"--trace=stack", SOURCES}, {"--trace=brk,", SOURCES}, {"--trace=brk;mmap", SOURCES},
	{"--peak-at-exit=maybe", "--peak-at-exit takes yes or no"},
	{"--trace-children=", "--trace-children takes yes or no"},
	{"--trace-children=1", "--trace-children takes yes or no"},
	{"--ring=1", RING}, {"--ring=3M", RING}, {"--ring=4Mi", RING}, {"--ring=M", RING}, {"--ring=2G", RING},
	{"--ring=9999999999G", RING},
	{"--events=", "--events takes a name"}, {"--replay=", "--replay takes a name"},
	{"--pid=", "--pid takes a process id"}, {"--pid=,", "--pid takes a process id"},
	{"--pid=0", "--pid takes a process id"}, {"--pid=-1", "--pid takes a process id"},
	{"--pid=12x", "--pid takes a process id"}, {"--pid=4194305", "--pid takes a process id"},
	{"--pid=12,,x", "--pid takes a process id"},
	{"--leaks=", "--leaks takes a decimal number from 0 to 1000000000"},
	{"--leaks=-1", "--leaks takes a decimal number from 0 to 1000000000"},
	{"--older-than=x", "--older-than takes an age (300ms, 2.5, 10m, 1h, 2d), or a share of the run (10%)"},
	{"--older-than=101%", "--older-than takes an age (300ms, 2.5, 10m, 1h, 2d), or a share of the run (10%)"},
	{"--leak-check=summary", "--leak-check takes full, yes or no"}, {"--leaks-out=", "--leaks-out takes a name"},
	{"--error-exitcode=256", "--error-exitcode takes a whole number from 0 to 255"},
	{"--folded=", "--folded takes a name"}, {"--flame", "its value follows an equals sign, --flame=prog"},
	{"--view=dead", "--view takes live, peak, exit, total, count or cold"},
	{"--top=0", "--top takes a decimal number from 0.1 to 86400"},
	{"--duration=0", DURATION}, {"--duration=1m", DURATION},
	{"--stats=maybe", "--stats takes yes or no"}, {"--help=x", "--help takes all, or no value"},
	{"--depth", "a value is missing, --depth=N"}, {"--alloc-fn", "its value follows an equals sign, --alloc-fn=prog"},
};

static void test_bad_values(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(bad_values); i++) {
		char line[256], want[256];
		snprintf(line, sizeof(line), "'%s' prog", bad_values[i].option);
		snprintf(want, sizeof(want), "bad option '%s': %s", bad_values[i].option, bad_values[i].complaint);
		check_bad(line, want);
	}
}

#define NO_NAME "-p takes a process id, and no process is called abc-no; --follow=abc-no waits for one"

static void test_unknown(void **state)
{
	check_bad("--depht=3 prog", "unknown option '--depht=3': did you mean --depth?");
	check_bad("--samp=3 prog", "unknown option '--samp=3': did you mean --sample?");
	check_bad("--trace-child=no x", "unknown option '--trace-child=no': did you mean --trace-children?");
	check_bad("--xy prog", "unknown option '--xy': ptmem --help=all lists all");
	check_bad("-p abc-no", NO_NAME);
	check_bad("-pabc-no", NO_NAME);
	check_bad("--pid=abc-no", NO_NAME);
	check_bad("--dept=3 prog", "unknown option '--dept=3': did you mean --depth?");
	check_bad("--treshold=3 prog", "unknown option '--treshold=3': did you mean --threshold?");
	check_bad("--trace-childern=no x", "unknown option '--trace-childern=no': did you mean --trace-children?");
	check_bad("--frobnicate prog", "unknown option '--frobnicate': ptmem --help=all lists all");
	check_bad("--massif:frobnicate=1 x", "unknown option '--massif:frobnicate=1': ptmem --help=all lists all");
	check_bad("-x prog", "unknown option '-x': ptmem --help=all lists all");
	check_bad("-vx prog", "unknown option '-vx': ptmem --help=all lists all");
	check_bad("--=1 prog", "unknown option '--=1': ptmem --help=all lists all");
}

static void test_missing(void **state)
{
	check_bad("-p", "bad option '-p': a value is missing, --pid=PID");
	check_bad("--pid", "bad option '--pid': a value is missing, --pid=PID");
	check_bad("-vo", "bad option '-vo': a value is missing, --massif-out-file=FILE");
	check_bad("", "no program given; see ptmem --help");
	check_bad("--", "no program given; see ptmem --help");
	check_bad("--depth=3", "no program given; see ptmem --help");
}

static void check_every(const char *value, double seconds)
{
	struct options o;
	struct words words;
	char line[80];

	snprintf(line, sizeof(line), "--record=r --record-every=%s prog", value);
	assert_int_equal(parse(line, &o, &words), 0);
	assert_true(o.files.record_every == seconds);
	options_deinit(&o);
	shell_words_deinit(&words);
}

static void test_times(void **state)
{
	check_every("0.5", 0.5);
	check_every("30", 30);
	check_every("45s", 45);
	check_every("10m", 600);
	check_every("1.5h", 5400);
	check_every("7d", 604800);
	check_every("48d", 4147200);
	for (const char *bad = "0\0m\0-5m\0x\0" "5ms\0" "1e9d\0" "1m1s\0" "49d\0.\0"; *bad;
	     bad += strlen(bad) + 1) {
		char line[80], want[200];

		snprintf(line, sizeof(line), "--record=r --record-every=%s prog", bad);
		snprintf(want, sizeof(want), "bad option '--record-every=%s': --record-every takes a number of seconds "
			 "(s, m, h or d may follow) from 0.1s to 48d", bad);
		check_bad(line, want);
	}
}

static void test_contradictions(void **state)
{
	static const char *const replay =
		"--replay reads events from a file: it takes neither --pid nor a program";
	check_bad("-p 1 prog", "--pid and a program cannot be combined");
	check_bad("--duration=5 prog", "--duration needs --pid or --follow");
	check_bad("--record=- --record-every=10m prog",
		  "--record-every makes several files: standard output, a device or a FIFO has one place for them");
	check_bad("--record=/dev/null --record-every=10m prog",
		  "--record-every makes several files: standard output, a device or a FIFO has one place for them");
	check_bad("--flame=x.png prog",
		  "--flame writes SVG, not png: give it a name that ends in .svg, which browsers show");
	check_bad("--flame=/a.b/x.PDF prog",
		  "--flame writes SVG, not PDF: give it a name that ends in .svg, which browsers show");
	check_bad("--duration=5 --replay=f", "--duration needs --pid or --follow");
	check_bad("--replay=f prog", replay);
	check_bad("--replay=f -p 1", replay);
	check_bad("--replay=f --top", "--replay has no program: --leak-check and --top cannot be used with it");
	check_bad("--replay=f --leak-check", "--replay has no program: --leak-check and --top cannot be used with it");
	check_bad("--heap=no -o f --memusage prog",
		  "--massif-out-file has no effect: with --heap=no no massif file is written");
	check_bad("-p 1 --sample --heap=no --massif-out-file=f",
		  "--massif-out-file has no effect: with --heap=no no massif file is written");
	check_bad("--heap=no --depth=5 --memusage prog",
		  "--depth has no effect: with --heap=no no massif file is written");
	check_bad("--stacks=yes --trace=faults prog",
		  "--stacks has nothing to show without heap among --trace's sources");
	check_good("--heap=no --depth=5 --memusage --stacks=yes prog", NULL);
	check_good("--heap=no -o f prog", NULL);
	check_bad("--replay=f --events=g", "--replay and --events cannot be combined");
}

static void is_counting_calls(const struct options *o)
{
	assert_true(o->memusage.count);
	assert_false(o->profile.pages_as_heap);
}

static const struct {
	const char *line, *want;
} without_effect[] = {
	{"--view=peak prog", "--view needs --folded or --flame"},
	{"--error-exitcode=3 prog", "--error-exitcode needs --leak-check"},
	{"--leaks --error-exitcode=3 prog", "--error-exitcode needs --leak-check"},
	{"--leak-check --leak-check=no --leak-holders prog", "--leak-holders needs --leak-check"},
	{"--show-leak-kinds=all prog", "--show-leak-kinds needs --leak-check"},
	{"--max-wait=2 --probes=break prog", "--max-wait changes nothing with --probes=break, where each call waits for "
					     "ptmem"},
	{"--older-than=3 prog", "--older-than needs --leaks or --leak-check"},
	{"--leaks --leak-holders prog", "--leak-holders needs --leak-check"},
	{"--record-every=10m prog", "--record-every needs --record"},
	{"--record=r --record-keep=3 prog", "--record-keep needs --record-every"},
	{"--record-limit=1M prog", "--record-limit needs --record"},
	{"--record=r --record-every=1h --replay=f",
	 "--replay has no time that passes: --record-every cannot be used with it"},
	{"--sample-fields=VmRSS prog", "--sample-fields needs --sample"},
	{"--sample-out=f prog", "--sample-out needs --sample"},
	{"--leaks-out=f prog", "--leaks-out needs --leaks or --leak-check"},
	{"--replay=f --inspect-at-exit", "--replay has no program: there is nothing to inspect"},
	{"--memusage-out=f prog", "--memusage-out needs --memusage"},
	{"--data-buffer=1 prog", "--data-buffer needs --data"},
	{"-m prog", "--mmap needs --memusage or --data"},
	{"--no-timer prog", "--no-timer needs --memusage or --data"},
	{"--progname=x prog", "--progname needs --memusage or --data"},
	{"--stack-sample=5 prog", "--stack-sample needs --stacks, --memusage or --data"},
	{"--log-file=f --log-fd=1 prog", "--log-file and --log-fd cannot be combined"},
	{"--replay=f --trace-children=yes", "--replay and --trace-children cannot be combined"},
	{"--replay=f --trace=mmap",
	 "--replay has events of the heap only: --trace cannot add other sources"},
	{"--replay=f --sample", "--sample needs a process: --replay has none"},
	{"--heap=no --leaks prog", "--leaks has nothing to show with --heap=no"},
	{"--heap=no --flame=f prog", "--flame has nothing to show with --heap=no"},
	{"--trace=mmap --leak-check prog",
	 "--leak-check has nothing to show without heap among --trace's sources"},
	{"--trace=mmap --top prog", "--top has nothing to show without heap among --trace's sources"},
	{"--trace=brk --xtree-memory=full prog", "--xtree-memory needs heap among --trace's sources"},
	{"--monitor=1 -o f status", "--monitor and --massif-out-file cannot be combined"},
	{"--monitor=1 --leaks status", "--monitor and --leaks cannot be combined"},
	{"--sample --sample-fields=VmRSS,Name prog",
	 "--sample-fields: /proc/PID/status has no 'Name' that can be sampled"},
	{"--sample --sample-fields=VmRSS, prog", "--sample-fields: /proc/PID/status has no '' that can be sampled"},
};

static void is_on_stderr(const struct options *o)
{
	assert_null(o->files.events);
	assert_false(o->leaks.check);
	assert_true(o->top == OPTION_OFF);
	assert_int_equal(o->samples.ms, 0);
}

static void is_flame_without_heap(const struct options *o)
{
	assert_string_equal(o->files.flame, "f");
}

/*
 * An option without effect is an error, for Valgrind's options a warning; as a default it is
 * neither.
 */
static void test_without_effect(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(without_effect); i++)
		check_bad(without_effect[i].line, without_effect[i].want);
	check_warned("--xtree-memory-file=f prog", "--xtree-memory-file has no effect without --xtree-memory", NULL);
	check_warned("--trace-children-skip=f prog", "--trace-children-skip has no effect without --trace-children",
		     NULL);
	check_bad("--inspect --inspect-at-exit prog",
		  "--inspect and --inspect-at-exit cannot be combined: the first does not profile");
	check_good("--trace=mmap --flame=f --view=peak prog", is_flame_without_heap);
	check_good("--flame=x.svg prog", NULL);
	check_good("--flame=a.png/x prog", NULL);
	check_good("--monitor=1 -q --color=never status", NULL);
	check_good("--stack-sample=5 --data=d prog", NULL);
	for (size_t i = 0; i < ARRAY_SIZE(without_effect); i++) {
		const char *last = strrchr(without_effect[i].line, ' ');
		bool has_program = strcmp(last, " prog") == 0;
		/* no such field, wherever it is given */
		if (!has_program || strstr(without_effect[i].line, "--sample --sample-fields"))
			continue;
		_cleanup_free_ char *options = xstrndup(without_effect[i].line,
							(size_t)(last - without_effect[i].line));
		setenv("PTMEM_OPTS", options, 1);
		check_good("prog", NULL);
	}
	setenv("PTMEM_OPTS", "--error-exitcode=3 --duration=3", 1);
	check_good("prog", NULL);
	setenv("PTMEM_OPTS", "--leak-check --top --sample --events=e", 1);
	check_good("--replay=f", is_on_stderr);
	setenv("PTMEM_OPTS", "--pages-as-heap=yes", 1);
	check_good("--memusage prog", is_counting_calls);
	unsetenv("PTMEM_OPTS");
}

static void is_pid_12(const struct options *o)
{
	assert_null(o->command);
	assert_int_equal(o->attach.pid_count, 1);
	assert_int_equal(o->attach.pid[0], 12);
}

static void test_pid(void **state)
{
	static const char *const forms[] = {"-p 12", "-p12", "--pid=12", "--pid 12", "-vp12", "-p ' 12\n'",
					    "-p 12,12", "-p 12 --pid=12", "-p ,12,", "-p 12 --"};
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++)
		check_good(forms[i], is_pid_12);
}

static void is_several(const struct options *o)
{
	static const pid_t pids[] = {34, 12, 56};
	assert_int_equal(o->attach.pid_count, 3);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(o->attach.pid[i], pids[i]);
}

static void test_several_pids(void **state)
{
	check_good("-p 34,12,56", is_several);
	check_good("-p '34 12 56'", is_several); /* as pidof prints them */
	check_good("-p 34 -p 12,34 --pid=56,12", is_several);
}

static void test_too_many_pids(void **state)
{
	char line[4096] = "-p ";
	for (int i = 1; i <= OPTIONS_MAX_PIDS + 1; i++)
		snprintf(line + strlen(line), sizeof(line) - strlen(line), "%d,", i);
	check_bad(line, "bad option '-p': --pid takes no more than 256 processes");
}

static void is_leaks_all(const struct options *o)
{
	assert_true(o->leaks.age == OPTION_ALL);
	assert_false(o->leaks.check);
	assert_true(o->top == OPTION_OFF);
}

static void is_leaks_old(const struct options *o)
{
	assert_true(o->leaks.age == 2.5);
	assert_true(o->leaks.check);
	assert_string_equal(o->leaks.out, "l.json");
	assert_int_equal(o->leaks.error_exitcode, 3);
	assert_true(o->top == 0.5);
	assert_int_equal(o->files.view, SHOW_CALLS);
}

static void is_inspected_at_exit(const struct options *o)
{
	assert_null(o->inspect.what);
	assert_true(o->inspect.at_exit);
}

static void test_growth(void **state)
{
	check_good("--inspect --inspect-out=f --heap-sample=512K prog", is_inspected_at_exit);
	check_good("--inspect-at-exit -p 1", is_inspected_at_exit);
	check_good("--leaks prog", is_leaks_all);
	check_good("--leaks=2.5 --leak-check --leaks-out=l.json --error-exitcode=3 --top=.5 --view=count --folded=f prog",
		   is_leaks_old);
	check_good("--leak-check=full --gen-suppressions=no prog", NULL);
	check_good("--leak-check=no --gen-suppressions=no --error-exitcode=0 prog", NULL);
	check_good("--leak-check --older-than=5m --leak-holders --suppressions=a --suppressions=b --gen-suppressions=all "
		   "--show-leak-kinds=definite,indirect prog", NULL);
	/* scripts pass it to any tool */
	check_good("--error-exitcode=0 prog", NULL);
}

static void is_duration(const struct options *o)
{
	assert_true(o->attach.duration == 2.5);
}

static void is_replay(const struct options *o)
{
	assert_string_equal(o->files.replay, "f");
	assert_null(o->command);
}

static void is_help(const struct options *o)
{
	assert_true(o->invocation.help);
}

static void is_version(const struct options *o)
{
	assert_true(o->invocation.version);
}

static void test_modes(void **state)
{
	check_good("-p 1 --duration=2.5", is_duration);
	check_good("--replay=f", is_replay);
	check_good("-h", is_help);
	check_good("--help --depth=0", is_help);
	check_good("-p 1 --help prog", is_help);
	check_good("-V", is_version);
	check_good("--version", is_version);
}

static void is_odd_program(const struct options *o)
{
	assert_string_equal(o->command[0], "-odd");
	assert_string_equal(o->command[1], "--");
	assert_string_equal(o->command[2], "-v");
	assert_int_equal(o->messages.level, LOG_INFO);
}

static void is_lone_dash(const struct options *o)
{
	assert_string_equal(o->command[0], "-");
	assert_int_equal(o->messages.level, LOG_INFO);
}

static void is_quiet(const struct options *o)
{
	assert_int_equal(o->messages.level, LOG_WARN);
}

static void is_debug(const struct options *o)
{
	assert_int_equal(o->messages.level, LOG_DEBUG);
}

static void test_end_of_options(void **state)
{
	check_good("-- -odd -- -v", is_odd_program);
	check_good("- -v", is_lone_dash);
	check_good("-v -q prog", is_quiet);
	check_good("-q -vv prog", is_debug);
}

static void has_desc(const struct options *o)
{
	assert_string_equal(o->desc, "--depth=+5 --massif-out-file=f --threshold=5. --depth=7 --alloc-fn=");
	assert_int_equal(o->profile.depth, 7);
}

static void has_no_desc(const struct options *o)
{
	assert_string_equal(o->desc, "(none)");
}

static void test_desc(void **state)
{
	check_good("-v --depth=+5 -o f --stats --massif:threshold=5. --memcheck:x=1 --depth=7 --alloc-fn= prog",
		   has_desc);
	check_good("--trace-children=yes --peak-at-exit=no --probes=break --ring=1M --events=e -q --no-rc "
		   "--color=never prog", has_no_desc);
	check_good("-p 1 --duration=2", has_no_desc);
}

static void has_environment_first(const struct options *o)
{
	assert_int_equal(o->profile.depth, 9);
	assert_int_equal(o->profile.heap_admin, 2);
	assert_string_equal(o->names.ignore_fn.data[0], "a b");
	assert_string_equal(o->desc, "--depth=3 --heap-admin=2 --ignore-fn=a b --depth=9");
}

static void test_environment(void **state)
{
	static const struct {
		const char *opts, *complaint;
	} bad[] = {
		{"--depth=0", "PTMEM_OPTS: bad option '--depth=0': " DEPTH},
		{"--dept=1", "PTMEM_OPTS: unknown option '--dept=1': did you mean --depth?"},
		{"-v other", "PTMEM_OPTS: 'other' is not an option"},
		{"-- other", "PTMEM_OPTS: 'other' is not an option"},
		{"--alloc-fn='x", "PTMEM_OPTS: unterminated quote"},
	};
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		setenv("PTMEM_OPTS", bad[i].opts, 1);
		check_bad("prog", bad[i].complaint);
		check_good("--help", is_help);
		check_good("--no-rc prog", is_default_but_no_rc);
	}
	setenv("PTMEM_OPTS", " --depth=3\t--heap-admin=2 # not this\n --ignore-fn='a b' ", 1);
	check_good("--depth=9 prog", has_environment_first);
	setenv("PTMEM_OPTS", "", 1);
	check_good("prog", is_default);
	unsetenv("PTMEM_OPTS");
}

static void write_rc(const char *text, mode_t mode)
{
	FILE *f = fopen(rc_file, "w");
	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fchmod(fileno(f), mode), 0);
	fclose(f);
}

static void has_rc_first(const struct options *o)
{
	assert_string_equal(o->desc, "--depth=1 --depth=2 --depth=3");
	assert_int_equal(o->profile.depth, 3);
	assert_int_equal(o->messages.level, LOG_VERBOSE);
}

static void test_rc_file(void **state)
{
	char want[512];
	write_rc("# mine\n--depth=1 -v\n", 0644);
	setenv("PTMEM_OPTS", "--depth=2", 1);
	check_good("--depth=3 prog", has_rc_first);
	setenv("XDG_CONFIG_HOME", config, 1); /* precedes HOME */
	setenv("HOME", "/nonexistent", 1);
	check_good("--depth=3 prog", has_rc_first);
	unsetenv("XDG_CONFIG_HOME");
	unsetenv("PTMEM_OPTS");
	check_good("prog", is_default);
	setenv("HOME", home, 1);

	write_rc("--depth=0\n", 0644);
	snprintf(want, sizeof(want), "%s: bad option '--depth=0': " DEPTH, rc_file);
	check_bad("prog", want);
	check_good("--no-rc prog", is_default_but_no_rc);
	write_rc("", 0644);
	check_good("prog", is_default);
	unlink(rc_file);
}

static void test_rc_file_of_others(void **state)
{
	struct options o;
	struct words words;
	char want[512];
	write_rc("--depth=7\n", 0666);
	assert_int_equal(parse("prog", &o, &words), 0);
	snprintf(want, sizeof(want), "ptmem: warning: %s is ignored: other users can write to it\n", rc_file);
	assert_string_equal(message, want);
	is_default(&o);
	options_deinit(&o);
	shell_words_deinit(&words);
	unlink(rc_file);
}

static void test_help(void **state)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	options_print_help(f, HELP_EVERYDAY);
	options_print_help(f, HELP_ALL);
	fclose(f);
	assert_non_null(strstr(text, "  -p, --pid=PID "));
	assert_non_null(strstr(text, " [massif.out.%p]\n"));
	for (const char *line = text; *line;) {
		size_t length = strcspn(line, "\n");
		if (length > 85)
			fail_msg("too wide: %.*s", (int)length, line);
		line += length + 1;
	}
	free(text);
}

static int make_home(void **state)
{
	if (!mkdtemp(home))
		return -1;
	snprintf(config, sizeof(config), "%s/.config", home);
	snprintf(directory, sizeof(directory), "%s/ptmem", config);
	snprintf(rc_file, sizeof(rc_file), "%s/ptmemrc", directory);
	setenv("HOME", home, 1);
	unsetenv("XDG_CONFIG_HOME");
	unsetenv("PTMEM_OPTS");
	log_set_color(COLOR_NEVER);
	return mkdir(config, 0700) || mkdir(directory, 0700);
}

static int remove_home(void **state)
{
	return rmdir(directory) || rmdir(config) || rmdir(home);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_every_field),
		cmocka_unit_test(test_good_values),
		cmocka_unit_test(test_bad_values),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_missing),
		cmocka_unit_test(test_times),
		cmocka_unit_test(test_contradictions),
		cmocka_unit_test(test_without_effect),
		cmocka_unit_test(test_pid), cmocka_unit_test(test_several_pids),
		cmocka_unit_test(test_too_many_pids), cmocka_unit_test(test_growth),
		cmocka_unit_test(test_modes),
		cmocka_unit_test(test_end_of_options),
		cmocka_unit_test(test_desc),
		cmocka_unit_test(test_environment),
		cmocka_unit_test(test_rc_file),
		cmocka_unit_test(test_rc_file_of_others),
		cmocka_unit_test(test_help),
	};
	return cmocka_run_group_tests_name("options", tests, make_home, remove_home);
}
