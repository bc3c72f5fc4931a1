/*
 * Frames of Python: the interpreters that are here run a script that knows its own stacks
 * (python_stacks.py). At each stop all frames of all threads are compared, and merged with the native
 * stacks as libdw sees them. Those that are not here are named.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <dirent.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "arch/arch.h"
#include "base/cleanup.h"
#include "languages/python.h"
#include "rounds.h"
#include "tracee/os/ptrace.h"

#define FRAMES 20000

/* -- merging -- */

/* A frame of a merged stack. */
struct merged_frame {
	bool is_virtual;
	uint32_t index; /* in the list of its kind */
};

/* Both innermost first. */
struct merge_input {
	const taddr_t *pc;
	size_t pcs;
	const struct virtual_frame *frame;
	size_t frames;
};

/* Merges both, innermost first. -EILSEQ if they do not fit. */
static ssize_t virtual_frames_merge(const struct virtual_layout *l, const struct merge_input *in,
				    struct merged_frame *out, bool *bare_out)
{
	static struct virtual_frame list[FRAMES];
	static struct merged_frame reversed[2 * FRAMES];
	struct virtual_merge g;
	size_t n = 0, first;

	assert_true(in->frames <= FRAMES && in->pcs <= FRAMES);
	for (size_t i = 0; i < in->frames; i++)
		list[i] = in->frame[in->frames - 1 - i];
	g = virtual_merge_begin(l, list, in->frames);
	for (size_t i = in->pcs; i-- > 0;) {
		enum virtual_step step = virtual_merge_step(&g, in->pc[i], &first);

		if (step == VIRTUAL_SHOW_NATIVE)
			reversed[n++] = (struct merged_frame){false, (uint32_t)i};
		for (; step == VIRTUAL_SHOW_RUN && first < g.next; first++)
			if (list[first].identity)
				reversed[n++] = (struct merged_frame){
					true, (uint32_t)(in->frames - 1 - first)};
	}
	for (size_t i = 0; i < n; i++)
		out[i] = reversed[n - 1 - i];
	*bare_out = g.bare > 0;
	return virtual_merge_is_right(&g) ? (ssize_t)n : -EILSEQ;
}

static const struct virtual_loop two_loops[] = {
	{0x1000, 0x2000, VIRTUAL_LOOP},
	{0x5000, 0x5100, VIRTUAL_LOOP},      /* a cold part */
	{0x3000, 0x4000, VIRTUAL_LOOP_PART},
};

/*
 * @native: a character for each frame, innermost first: l a loop, c its cold part, p a part, others
 * no loop. @list: a letter for each function, ! behind those that are entries, | a shim. @want: both.
 */
static void merge_case(const char *native, const char *list, const char *want)
{
	struct virtual_layout l = {0};
	taddr_t pc[32];
	struct virtual_frame frame[32];
	struct merge_input in = {.pc = pc, .frame = frame};
	struct merged_frame out[64];
	char text[64] = "";

	for (size_t i = 0; i < 3; i++)
		virtual_loop_add(&l, &two_loops[i]);
	for (const char *c = native; *c; c++)
		pc[in.pcs++] = *c == 'l' ? 0x1fff : *c == 'c' ? 0x5000 : *c == 'p' ? 0x3000 : 0x9000;
	for (const char *c = list; *c; c++) {
		if (*c == '!')
			frame[in.frames - 1].is_entry = true;
		else
			frame[in.frames++] = (struct virtual_frame){
				.identity = *c == '|' ? 0 : (uint64_t)*c, .is_entry = *c == '|'};
	}
	bool is_bare;
	ssize_t n = virtual_frames_merge(&l, &in, out, &is_bare);

	virtual_layout_deinit(&l);
	if (n < 0) {
		assert_int_equal(n, -EILSEQ);
		assert_null(want);
		return;
	}
	for (ssize_t i = 0; i < n; i++)
		text[i] = out[i].is_virtual ? (char)frame[out[i].index].identity :
					      native[out[i].index];
	assert_string_equal(text, want ? want : "an error");
}

static void test_merge(void **state)
{
	merge_case("mxlyls", "A!B!", "mxAyBs");   /* up to 3.10: a loop for each function */
	merge_case("mxlyls", "AB!C!", "mxAByCs"); /* 3.11: calls within the loop */
	merge_case("mxlyls", "AB|C|", "mxAByCs"); /* 3.12: a shim below */
	merge_case("mcycs", "A|BC|", "mAyBCs");
	merge_case("mpls", "AB|", "mABs");        /* instructions are functions */
	merge_case("mplxpls", "A|B|", "mAxBs");
	merge_case("mps", "A|", "mAs");
	merge_case("ms", "", "ms");
	merge_case("mls", "", "mls");             /* its function is not in the list yet */
	merge_case("mlyls", "A|", "mlyAs");
	merge_case("mlyls", "|A|", "mlyAs");      /* or not any more */
	merge_case("mlylyls", "A|", NULL);
	merge_case("mls", "A|B|", NULL);
	merge_case("mls", "AB", NULL);            /* cut off */
	merge_case("ms", "A|", NULL);
}

static void test_loops(void **state)
{
	struct virtual_layout l = {0};

	virtual_loop_add(&l, &(struct virtual_loop){0x3000, 0x3100, VIRTUAL_LOOP_PART});
	virtual_loop_add(&l, &(struct virtual_loop){0x1000, 0x1100, VIRTUAL_LOOP});
	virtual_loop_add(&l, &(struct virtual_loop){0x1000, 0x1100, VIRTUAL_LOOP});
	virtual_loop_add(&l, &(struct virtual_loop){0x3110, 0x3200, VIRTUAL_LOOP_PART});
	virtual_loop_add(&l, &(struct virtual_loop){0x1080, 0x1180, VIRTUAL_LOOP_PART});
	virtual_loop_add(&l, &(struct virtual_loop){0x1010, 0x1020, VIRTUAL_LOOP_PART});
	virtual_loop_add(&l, &(struct virtual_loop){0x9000, 0x8000, VIRTUAL_LOOP});
	assert_int_equal(l.loops.count, 3);
	assert_int_equal(virtual_loop_find(&l, 0xfff), VIRTUAL_NO_LOOP);
	assert_int_equal(virtual_loop_find(&l, 0x1000), VIRTUAL_LOOP);
	assert_int_equal(virtual_loop_find(&l, 0x10ff), VIRTUAL_LOOP);
	assert_int_equal(virtual_loop_find(&l, 0x1100), VIRTUAL_LOOP_PART);
	assert_int_equal(virtual_loop_find(&l, 0x1180), VIRTUAL_NO_LOOP);
	assert_int_equal(virtual_loop_find(&l, 0x31ff), VIRTUAL_LOOP_PART);
	virtual_layout_deinit(&l);
}

/* -- walking -- */

static bool read_own(void *ctx, taddr_t addr, void *buf, size_t size)
{
	struct iovec here = {buf, size}, there = {(void *)(uintptr_t)addr, size}; /* NOLINT */

	return process_vm_readv(*(pid_t *)ctx, &here, 1, &there, 1, 0) == (ssize_t)size;
}

/* A list without end, one that leads nowhere, and one that is not aligned. */
static void test_broken_lists(void **state)
{
	pid_t pid = getpid();
	struct language_memory m = {read_own, &pid};
	struct virtual_layout l = {.heads = 1, .next = 8, .position_size = 8, .position = 16,
				   .identity_mask = UINT64_MAX};
	uint64_t frame[3] = {1, (uintptr_t)frame, 3}, head = (uintptr_t)frame;
	struct virtual_frame out[100];

	assert_int_equal(virtual_frames_walk(&l, &m, (uintptr_t)&head, out, 100), -E2BIG);
	assert_int_equal(out[99].identity, 1);
	assert_int_equal(out[99].position, 3);
	frame[1] = 0;
	assert_int_equal(virtual_frames_walk(&l, &m, (uintptr_t)&head, out, 100), 1);
	frame[1] = 0x10000;
	assert_int_equal(virtual_frames_walk(&l, &m, (uintptr_t)&head, out, 100), -EFAULT);
	frame[1] = (uintptr_t)frame + 4;
	assert_int_equal(virtual_frames_walk(&l, &m, (uintptr_t)&head, out, 100), -EFAULT);
	frame[1] = UINT64_MAX - 7;
	assert_int_equal(virtual_frames_walk(&l, &m, (uintptr_t)&head, out, 100), -EFAULT);
	head = 0;
	assert_int_equal(virtual_frames_walk(&l, &m, (uintptr_t)&head, out, 100), 0);
}

/* -- lines -- */

static void line_case(enum python_lines lines, const char *table, size_t size, const int *want)
{
	struct python_layout l = {.lines = lines};
	struct virtual_function c = {.first_line = 10, .table = xmemdup(table, size), .table_size = size};

	for (int i = 0; want[i] >= 0; i++)
		assert_int_equal(python_code_line(&l, &c, 2 * i), want[i]);
	assert_int_equal(python_code_line(&l, &c, -1), 10);
	free(c.table);
}

static void test_lines(void **state)
{
	line_case(PYTHON_LNOTAB, "\0\1\2\1\2\xfe", 6, (int[]){11, 12, 10, 10, -1});
	line_case(PYTHON_LNOTAB, "\2", 1, (int[]){10, 10, -1});
	line_case(PYTHON_LINETABLE, "\2\0\2\x80\2\5\2\xff", 8, (int[]){10, 0, 15, 14, 0, -1});
	/* short form; one line + 1; none; long form: +3; no columns: -2, two instructions */
	line_case(PYTHON_LOCATIONS, "\x80\0\xd8\0\0\xf8\xf0\6\0\0\0\xe9\5", 13,
		  (int[]){10, 11, 0, 14, 12, 12, 0, -1});
	line_case(PYTHON_LOCATIONS, "\xf0\x7f\x7f\x7f\x7f\x7f\x7f\x7f", 8, (int[]){0, 0, -1});
	line_case(PYTHON_LOCATIONS, "\xf0", 1, (int[]){10, 0, -1});
}

/* -- real ones -- */

#define THREADS 64
#define LABEL_SIZE 64

struct result {
	unsigned stops, threads, frames, merged, unmerged, bare;
	char first_unmerged[LABEL_SIZE + 32];
};

struct run {
	pid_t pid;
	FILE *out; /* of the script */
	int in;
	Dwfl *dwfl; /* at a stop */
	struct pythons pythons;
	struct interpreter_thread states[THREADS];
	bool was_found;
	char *text; /* of a stop */
	size_t size;
	struct result result;
};

static struct run start(const char *python, const char *mode)
{
	struct run r = {.pid = -1};
	int out[2], in[2];

	assert_true(pipe2(out, O_CLOEXEC) == 0 && pipe2(in, O_CLOEXEC) == 0);
	r.pid = fork();
	if (r.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(in[0], 0);
		dup2(out[1], 1);
		execlp(python, python, "-X", "utf8", "tests/unit/python_stacks.py", mode, NULL);
		_exit(127);
	}
	close(out[1]);
	close(in[0]);
	r.out = fdopen(out[0], "r");
	r.in = in[1];
	return r;
}

/* Reads what the script says of the next stop, without ".". False: it has ended. */
static bool read_stop(struct run *r)
{
	_cleanup_free_ char *line = NULL;
	size_t capacity = 0;
	ssize_t n;
	FILE *text;

	free(r->text);
	text = open_memstream(&r->text, &r->size);
	while ((n = getline(&line, &capacity, r->out)) > 0 && strcmp(line, ".\n") != 0)
		fwrite(line, 1, (size_t)n, text);
	fclose(text);
	return n > 0;
}

static size_t stop_threads(pid_t pid, pid_t *tid)
{
	DIR *threads = proc_open_threads(pid);
	size_t count = 0;
	int status;

	assert_non_null(threads);
	while ((tid[count] = proc_next_thread(threads)) && count < THREADS - 1) {
		assert_int_equal(ptrace_seize(tid[count], 0), 0);
		assert_int_equal(ptrace_interrupt(tid[count]), 0);
		assert_int_equal(waitpid(tid[count], &status, __WALL), tid[count]);
		count++;
	}
	closedir(threads);
	return count;
}

static void find(struct run *r)
{
	struct maps maps;
	struct language_memory m = {read_own, &r->pid};
	struct interpreter_process in = {.pid = r->pid, .maps = &maps, .memory = m};

	assert_int_equal(maps_read(r->pid, &maps), 0);
	python_find(&in, &r->pythons);
	maps_deinit(&maps);
	r->was_found = true;
}

/* The text that the script has of these frames. */
static char *describe(const struct python *p, const struct language_memory *m,
		      const struct virtual_frame *frame, ssize_t count)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	for (ssize_t i = 0; i < count; i++) {
		struct virtual_function c;

		if (!frame[i].identity)
			continue;
		int rc = python_code_read(p, m, frame[i].identity, &c);

		if (rc < 0) {
			fprintf(f, "? %s\n", strerror(-rc));
			continue;
		}
		int64_t offset = python_code_offset(p, m, &c, frame[i].position);

		if (!c.is_internal)
			fprintf(f, "F\t%s\t%s\t%u\n", c.name, c.file,
				python_code_line(&p->layout, &c, offset));
		if (virtual_stamp(&p->frames, m, frame[i].identity) != c.stamp)
			fprintf(f, "another stamp\n");
		virtual_function_deinit(&c);
	}
	fclose(f);
	return text;
}

/* By libdw, which knows nothing of Python and shares no code with ptmem's unwinder but the tables. */
struct native {
	taddr_t *pc;
	size_t count, max;
};

static int add_native(Dwfl_Frame *frame, void *ctx)
{
	struct native *n = ctx;
	Dwarf_Addr pc;
	bool is_activation;

	if (n->count == n->max || !dwfl_frame_pc(frame, &pc, &is_activation))
		return DWARF_CB_ABORT;
	n->pc[n->count++] = pc - !is_activation;
	return DWARF_CB_OK;
}

static size_t native_stack(Dwfl *dwfl, pid_t tid, taddr_t *pc, size_t max)
{
	struct native n = {pc, 0, max};

	dwfl_getthread_frames(dwfl, tid, add_native, &n);
	return n.count;
}

static Dwfl *open_native(pid_t pid)
{
	static char *no_debug_files;
	static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_linux_proc_find_elf,
						 .find_debuginfo = dwfl_standard_find_debuginfo,
						 .debuginfo_path = &no_debug_files};
	Dwfl *dwfl = dwfl_begin(&callbacks);

	assert_non_null(dwfl);
	assert_int_equal(dwfl_linux_proc_report(dwfl, pid), 0);
	assert_int_equal(dwfl_report_end(dwfl, NULL, NULL), 0);
	assert_int_equal(dwfl_linux_proc_attach(dwfl, pid, true), 0);
	return dwfl;
}

struct stack {
	struct virtual_frame frame[FRAMES];
	ssize_t frames;
	taddr_t pc[FRAMES];
	size_t pcs;
	struct merged_frame merged[2 * FRAMES];
	ssize_t count; /* of merged */
};

/* As at a breakpoint: the states that are known, or all again if that does not merge. */
static void take_stack(struct run *r, pid_t tid, struct interpreter_thread *states, struct stack *out)
{
	const struct python *p = r->pythons.list.data;
	struct language_memory m = {read_own, &r->pid};
	struct arch_regs regs;
	bool is_bare;

	assert_int_equal(ptrace_get_regs(tid, &regs), 0);
	if (states->thread_pointer != regs.word[arch_native->thread_pointer])
		*states = (struct interpreter_thread){
			.thread_pointer = regs.word[arch_native->thread_pointer]};
	out->pcs = native_stack(r->dwfl, tid, out->pc, FRAMES);
	for (int i = 0; i < 2; i++) {
		out->count = out->frames = python_stack(p, &m, states, out->frame, FRAMES);
		if (out->frames < 0)
			continue;
		struct merge_input in = {out->pc, out->pcs, out->frame, (size_t)out->frames};

		out->count = virtual_frames_merge(&p->frames, &in, out->merged, &is_bare);
		if (out->count >= 0 && !is_bare)
			break;
		states->count = 0;
	}
}

static void say_unmerged(struct run *r, const struct stack *s, const char *label)
{
	const struct python *p = r->pythons.list.data;
	size_t loops = 0, runs = 0;

	if (r->result.unmerged++)
		return;
	for (size_t i = 0; i < s->pcs; i++)
		loops += virtual_loop_find(&p->frames, s->pc[i]) == VIRTUAL_LOOP;
	for (ssize_t i = 0; i < s->frames; i++)
		runs += s->frame[i].is_entry;
	snprintf(r->result.first_unmerged, sizeof(r->result.first_unmerged),
		 "%s: %zu loops, %zu runs", label, loops, runs);
}

/* All functions are there, in their order, and all other native frames, too. */
static void check_merged(struct run *r, const struct stack *s)
{
	const struct python *p = r->pythons.list.data;
	ssize_t next = 0;
	size_t natives = 0;

	r->result.merged++;
	for (ssize_t i = 0; i < s->count; i++) {
		uint32_t index = s->merged[i].index;

		if (!s->merged[i].is_virtual) {
			r->result.bare +=
				virtual_loop_find(&p->frames, s->pc[index]) != VIRTUAL_NO_LOOP;
			for (; natives < index; natives++)
				assert_true(virtual_loop_find(&p->frames, s->pc[natives]) !=
					    VIRTUAL_NO_LOOP);
			natives = index + 1;
			continue;
		}
		while (!s->frame[next].identity)
			next++;
		assert_int_equal(index, next++);
	}
	for (; next < s->frames; next++)
		assert_int_equal(s->frame[next].identity, 0);
}

/* What the script says of thread @tid. */
static char *truth_of(const struct run *r, pid_t tid)
{
	char head[32];
	const char *mine, *end;

	snprintf(head, sizeof(head), "T\t%d\n", tid);
	mine = strstr(r->text, head);
	if (!mine)
		return xstrdup("nothing");
	mine += strlen(head);
	end = strstr(mine, "\nT\t");
	return xstrndup(mine, end ? (size_t)(end + 1 - mine) : strlen(mine));
}

static void check_thread(struct run *r, pid_t tid, struct interpreter_thread *states)
{
	static struct stack s;
	struct language_memory m = {read_own, &r->pid};
	char label[LABEL_SIZE] = "";

	take_stack(r, tid, states, &s);
	assert_true(s.frames >= 0);
	_cleanup_free_ char *found = describe(r->pythons.list.data, &m, s.frame, s.frames);
	_cleanup_free_ char *truth = truth_of(r, tid);

	sscanf(r->text, "= %63[^\n]", label);
	if (strcmp(found, truth) != 0)
		fail_msg("at %s, thread %d has\n%sbut these were found:\n%s", label, tid, truth,
			 found);
	r->result.threads++;
	r->result.frames += (unsigned)s.frames;
	if (s.count < 0)
		say_unmerged(r, &s, label);
	else
		check_merged(r, &s);
}

static void check_stop(struct run *r)
{
	pid_t tid[THREADS];
	size_t count = stop_threads(r->pid, tid);
	struct language_memory m = {read_own, &r->pid};
	taddr_t pointer[THREADS];

	if (!r->was_found)
		find(r);
	r->result.stops++;
	r->dwfl = open_native(r->pid);
	for (size_t i = 0; i < count && r->pythons.list.count; i++) {
		check_thread(r, tid[i], &r->states[i]);
		pointer[i] = r->states[i].thread_pointer;
	}
	dwfl_end(r->dwfl);
	if (r->pythons.list.count && count > 1)
		python_find_place(r->pythons.list.data, &m, pointer, count);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(ptrace_detach(tid[i], 0), 0);
}

static void print_result(const struct run *r, const char *name)
{
	const struct python *p = r->pythons.list.data;

	printf("%s: ", name);
	if (!p) {
		printf("not read: %s\n", r->pythons.problem ? r->pythons.problem : "not found");
		return;
	}
	printf("3.%u%s: %u stops, %u stacks, %u frames; merged %u, not %u%s%s, loops without function %u, "
	       "place %s%+ld\n",
	       p->layout.version & 0xff, p->is_free_threaded ? "t" : "", r->result.stops,
	       r->result.threads, r->result.frames, r->result.merged, r->result.unmerged,
	       r->result.unmerged ? " " : "", r->result.first_unmerged, r->result.bare,
	       p->frames.thread.kind == VIRTUAL_STATE_TLS ? "tp" : "",
	       (long)p->frames.thread.place);
}

/*
 * At any instruction, not only where memory is allocated: the list can be half linked for some, while
 * a function is entered or left (3.12 publishes a head that it stores next), and then leads nowhere
 * or to no function, which is noticed. Otherwise the stacks merge.
 */
#define MOMENTS 60u

static void run_busy(const char *python)
{
	struct run r = start(python, "busy");
	static struct stack s;
	unsigned merged = 0, all = 0, bare = 0;
	int status;

	assert_true(read_stop(&r));
	for (unsigned i = 0; i < rounds(MOMENTS); i++) {
		pid_t tid[THREADS];
		size_t count = stop_threads(r.pid, tid);
		struct language_memory m = {read_own, &r.pid};

		if (!r.was_found)
			find(&r);
		r.dwfl = open_native(r.pid);
		for (size_t j = 0; j < count && r.pythons.list.count; j++) {
			take_stack(&r, tid[j], &r.states[j], &s);
			_cleanup_free_ char *text =
				describe(r.pythons.list.data, &m, s.frame, s.frames);

			all++;
			merged += s.count >= 0 && !strstr(text, "? ");
			for (ssize_t k = 0; k < s.count; k++)
				bare += !s.merged[k].is_virtual &&
					virtual_loop_find(&r.pythons.list.data->frames,
							  s.pc[s.merged[k].index]) !=
						VIRTUAL_NO_LOOP;
		}
		dwfl_end(r.dwfl);
		for (size_t j = 0; j < count; j++)
			ptrace_detach(tid[j], 0);
		usleep(1000);
	}
	kill(r.pid, SIGKILL);
	assert_int_equal(waitpid(r.pid, &status, 0), r.pid);
	printf("%s: at any moment %u of %u merged, %u loops without function\n", python, merged, all,
	       bare);
	assert_true(merged >= all - all / 20);
	fclose(r.out);
	close(r.in);
	free(r.text);
	pythons_deinit(&r.pythons);
}

static unsigned run_with(const char *python)
{
	struct run r = start(python, NULL);
	int status;

	while (read_stop(&r)) {
		check_stop(&r);
		assert_int_equal(write(r.in, "", 1), 1);
	}
	assert_int_equal(waitpid(r.pid, &status, 0), r.pid);
	print_result(&r, python);
	if (r.pythons.list.count)
		assert_int_equal(status, 0);
	unsigned threads = r.result.threads;

	if (r.pythons.list.count)
		run_busy(python);

	fclose(r.out);
	close(r.in);
	free(r.text);
	pythons_deinit(&r.pythons);
	return threads;
}

/* Those of one build run all interpreters of the machine: each takes a second. */
#if defined(__clang__) || defined(__SANITIZE_ADDRESS__)
#define RUNS_ALL false
#else
#define RUNS_ALL true
#endif

static void test_real(void **state)
{
	static const char *const wanted[] = {"/usr/bin/python3", "build/allocators/python3.14",
					     "build/allocators/python3.15"};
	const char *more = getenv("PYTHONS"), *home = getenv("HOME");
	char pattern[512];
	unsigned stacks = 0;
	glob_t found;

	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		if (access(wanted[i], X_OK) == 0)
			stacks += run_with(wanted[i]);
		else
			printf("%s: skipped: it is not here\n", wanted[i]);
	}
	snprintf(pattern, sizeof(pattern), "%s/.pyenv/versions/3.*/bin/python3", home ? home : "");
	if ((more || RUNS_ALL) && glob(more ? more : pattern, 0, NULL, &found) == 0) {
		for (size_t i = 0; i < found.gl_pathc; i++)
			stacks += run_with(found.gl_pathv[i]);
		globfree(&found);
	}
	if (!stacks)
		skip();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_merge), cmocka_unit_test(test_loops),
		cmocka_unit_test(test_broken_lists), cmocka_unit_test(test_lines),
		cmocka_unit_test(test_real),
	};

	setvbuf(stdout, NULL, _IOLBF, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
