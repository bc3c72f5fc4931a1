/*
 * Stops a program at random moments and compares ptmem's unwinder with
 * libunwind-ptrace: unwind_verify STOPS PROGRAM [ARGS...]
 *
 * libunwind leaves the innermost frame, whose pc may be anywhere; from there both
 * walk. Prints the first stacks that differ and, last, the counts. Exit status 1
 * when a stack differs beyond where libunwind gave up before us.
 *
 * "unwind_verify trap PROGRAM" instead prints the stack of each breakpoint
 * instruction that the program runs into in a function "int3; ret", as names,
 * innermost first: for programs that libunwind cannot walk.
 * Built and run by tests/verify/unwind.sh.
 */
#include <errno.h>
#include <libunwind-ptrace.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/elf_file.h"
#include "tracee/state/module.h"
#include "tracee/state/space.h"
#include "unwind/unwind.h"

#define MAX_PCS 2000
#define STACK_COPY 65536
#define MAX_SHOWN 5

struct verify {
	pid_t pid;
	struct registry registry;
	struct address_space *space;
	struct unwind *unwind;
	unw_addr_space_t reference;
	void *upt;
	size_t stops, same, longer, shorter, differ, skipped;
	size_t frames;
	size_t ends[UNWIND_END_COUNT];
	uint64_t nanoseconds; /* in unwind_walk, rules known */
	size_t timed_frames;
};

static const struct module *find_module(void *ctx, taddr_t pc)
{
	struct verify *v = ctx;
	struct module *m = space_find_module(v->space, pc);

	if (m || space_is_known_miss(v->space, pc))
		return m;
	space_update_modules(v->space, NULL, NULL, NULL);
	return space_find_module(v->space, pc);
}

static int read_target(void *ctx, taddr_t addr, void *buf, size_t size)
{
	struct verify *v = ctx;

	return space_read(v->space, addr, buf, size);
}

static const char *module_name(struct verify *v, taddr_t pc)
{
	const struct module *m = find_module(v, pc);
	const char *slash = m ? strrchr(m->path, '/') : NULL;

	return !m ? "?" : slash ? slash + 1 : m->path;
}

static void show(struct verify *v, const taddr_t *own, size_t own_count, const taddr_t *other, size_t other_count,
		 enum unwind_end end)
{
	if (v->shorter + v->longer + v->differ > MAX_SHOWN)
		return;
	printf("own %zu (%s), libunwind %zu\n", own_count, unwind_end_text[end], other_count);
	for (size_t i = 0; i < own_count || i < other_count; i++) {
		taddr_t a = i < own_count ? own[i] + 1 : 0, b = i < other_count ? other[i] : 0;
		const struct module *ma = find_module(v, a);
		printf("  %c %2zu %#lx %s+%#lx", a == b ? ' ' : '!', i, a, module_name(v, a),
		       ma ? a - ma->bias : 0);
		if (a != b) {
			const struct module *mb = find_module(v, b);
			printf("   %#lx %s+%#lx", b, module_name(v, b), mb ? b - mb->bias : 0);
		}
		printf("\n");
	}
}

static void get_regs(unw_cursor_t *cursor, struct arch_unwind_regs *regs)
{
	for (int i = 0; i < ARCH_DWARF_REGS; i++) {
		unw_word_t word = 0;
		unw_get_reg(cursor, i == 16 ? UNW_X86_64_RIP : i, &word);
		regs->reg[i] = word;
	}
}

static size_t walk_reference(unw_cursor_t *cursor, taddr_t *pcs)
{
	size_t count = 0;
	unw_word_t pc;

	do {
		if (unw_get_reg(cursor, UNW_REG_IP, &pc) != 0 || pc == 0)
			break;
		pcs[count++] = pc;
	} while (count < MAX_PCS && unw_step(cursor) > 0);
	return count;
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void time_walk(struct verify *v, const struct stack_view *view, taddr_t *pcs)
{
	enum unwind_end end;
	uint64_t before = now();

	for (int i = 0; i < 20; i++)
		v->timed_frames += unwind_walk(v->unwind, view, pcs, MAX_PCS, &end);
	v->nanoseconds += now() - before;
}

static void compare(struct verify *v)
{
	static taddr_t own[MAX_PCS], other[MAX_PCS];
	static uint8_t stack[STACK_COPY];
	struct stack_view view = {.read = read_target, .read_ctx = v, .data = stack};
	unw_cursor_t cursor;
	enum unwind_end end;
	size_t n, m, i;

	v->stops++;
	if (unw_init_remote(&cursor, v->reference, v->upt) != 0 || unw_step(&cursor) <= 0 ||
	    unw_is_signal_frame(&cursor) > 0) {
		v->skipped++;
		return;
	}
	get_regs(&cursor, &view.regs);
	view.start = view.regs.reg[7];
	ssize_t got = space_read_some(v->space, view.start, stack, sizeof(stack));
	view.size = got > 0 ? (size_t)got : 0;
	n = unwind_walk(v->unwind, &view, own, MAX_PCS, &end);
	m = walk_reference(&cursor, other);
	v->frames += n;
	v->ends[end]++;
	for (i = 0; i < n && i < m && own[i] + 1 == other[i]; i++)
		;
	size_t *kind = i == n && i == m ? &v->same : i == m ? &v->longer : i == n ? &v->shorter : &v->differ;
	++*kind;
	if (kind != &v->same)
		show(v, own, n, other, m, end);
	time_walk(v, &view, own);
}

struct name_search {
	uint64_t vaddr;
	const char *name;
};

static int match_name(void *ctx, const struct elf_symbol *sym)
{
	struct name_search *search = ctx;

	if (search->vaddr < sym->vaddr || search->vaddr - sym->vaddr >= sym->size || !sym->is_defined)
		return 0;
	search->name = sym->name;
	return 1;
}

static void print_names(struct verify *v, const taddr_t *pcs, size_t count, enum unwind_end end)
{
	for (size_t i = 0; i < count; i++) {
		const struct module *m = find_module(v, pcs[i]);
		struct name_search search = {.name = "?"};
		if (m) {
			search.vaddr = pcs[i] - m->bias;
			elf_file_each_symbol(m->file, match_name, &search);
		}
		if (search.name[0] == '?' && m)
			printf("%s+%#lx ", module_name(v, pcs[i]), search.vaddr);
		else
			printf("%s ", search.name);
	}
	printf("(%s)\n", unwind_end_text[end]);
}

/* The thread is after the first byte of a function that begins with a breakpoint. */
static void print_trap(struct verify *v, pid_t tid)
{
	struct user_regs_struct user;
	struct arch_regs regs;
	struct stack_view view = {.read = read_target, .read_ctx = v};
	taddr_t pcs[200];
	enum unwind_end end;

	ptrace(PTRACE_GETREGS, tid, 0, &user);
	memcpy(&regs, &user, sizeof(regs));
	arch_unwind_regs(arch_native, &regs, &view.regs);
	space_update_modules(v->space, NULL, NULL, NULL);
	if (space_read(v->space, view.regs.reg[7], &view.regs.reg[16], 8) != 0)
		return;
	view.regs.reg[7] += 8;
	size_t count = unwind_walk(v->unwind, &view, pcs, ARRAY_SIZE(pcs), &end);
	print_names(v, pcs, count, end);
}

static void run_traps(struct verify *v)
{
	int status;

	pid_t tid;

	while ((tid = waitpid(-1, &status, __WALL)) > 0) {
		if (!WIFSTOPPED(status))
			continue;
		int event = status >> 16, number = WSTOPSIG(status);
		if (!event && number == SIGTRAP)
			print_trap(v, tid);
		ptrace(PTRACE_CONT, tid, 0, event || number == SIGTRAP ? 0 : number);
	}
}

static bool wait_stop(struct verify *v)
{
	int status;

	while (waitpid(v->pid, &status, __WALL) == v->pid) {
		if (WIFEXITED(status) || WIFSIGNALED(status))
			return false;
		if (status >> 16 == PTRACE_EVENT_STOP)
			return true;
		ptrace(PTRACE_CONT, v->pid, 0, WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status));
	}
	return false;
}

static void run(struct verify *v, size_t stops)
{
	unsigned int seed = 1;

	while (v->stops < stops) {
		usleep(200 + (useconds_t)rand_r(&seed) % 4000);
		if (ptrace(PTRACE_INTERRUPT, v->pid, 0, 0) != 0 || !wait_stop(v))
			return;
		space_update_modules(v->space, NULL, NULL, NULL);
		compare(v);
		ptrace(PTRACE_CONT, v->pid, 0, 0);
	}
	kill(v->pid, SIGKILL);
	while (wait_stop(v))
		;
}

int main(int argc, char **argv)
{
	struct verify v = {0};
	struct unwind_ops ops = {.module = find_module, .ctx = &v};

	if (argc < 3)
		return 2;
	int go[2];
	char byte = 0;
	if (pipe(go) != 0)
		return 2;
	v.pid = fork();
	if (v.pid == 0) {
		if (read(go[0], &byte, 1) == 1)
			execvp(argv[2], argv + 2);
		_exit(127);
	}
	ptrace(PTRACE_SEIZE, v.pid, 0, PTRACE_O_EXITKILL | PTRACE_O_TRACECLONE);
	if (write(go[1], &byte, 1) != 1)
		return 2;
	if (strcmp(argv[1], "trap") != 0)
		usleep(30000); /* the exec; earlier stops would be in this program */
	v.space = space_new(&v.registry, v.pid);
	v.unwind = unwind_new(arch_native, &ops);
	v.reference = unw_create_addr_space(&_UPT_accessors, 0);
	unw_set_caching_policy(v.reference, UNW_CACHE_GLOBAL);
	v.upt = _UPT_create(v.pid);
	if (strcmp(argv[1], "trap") == 0) {
		run_traps(&v);
		return 0;
	}
	run(&v, (size_t)atoi(argv[1]));

	const struct unwind_stats *s = unwind_stats(v.unwind);
	printf("%zu stops: %zu same, %zu own longer, %zu own shorter, %zu differ, %zu without a caller\n", v.stops,
	       v.same, v.longer, v.shorter, v.differ, v.skipped);
	printf("frames %zu, rules %lu, slow %lu, by frame pointer %lu, %.1f ns a frame\n", v.frames, s->rules,
	       s->slow_frames, s->fp_frames, v.timed_frames ? (double)v.nanoseconds / (double)v.timed_frames : 0);
	for (int i = 0; i < UNWIND_END_COUNT; i++)
		if (v.ends[i])
			printf("  %zu %s\n", v.ends[i], unwind_end_text[i]);
	return v.shorter + v.differ != 0;
}
