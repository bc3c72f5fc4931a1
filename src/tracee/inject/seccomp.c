/*
 * Runs a filter on values of which some are unknown. A jump that depends on an unknown value goes
 * both ways. Jumps only go forward, so one pass over the program suffices: when it comes to an
 * instruction, all paths to it have been joined. What differs between these paths is unknown.
 *
 * In case of doubt the answer is no. The rules are those of seccomp_check_filter and
 * bpf_check_classic in the kernel.
 */
#include "tracee/inject/seccomp.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/proc.h"
#include "base/types.h"
#include "tracee/os/ptrace.h"
#include "tracee/state/target_state.h"
#include "tracee/state/thread.h"

_Static_assert(sizeof(struct seccomp_data) == FILTER_WORDS * sizeof(uint32_t), "all words");

/* The registers: scratch memory, accumulator, index. */
enum { REG_A = BPF_MEMWORDS, REG_X, REGISTERS };

/* The state before an instruction. */
struct bpf_state {
	bool is_reached;
	uint32_t known; /* bit N: value[N] */
	uint32_t value[REGISTERS];
};

struct operand {
	uint32_t value;
	bool is_known;
};

/* How an instruction leaves. */
enum outcome { OUTCOME_NEXT, OUTCOME_ALLOWED, OUTCOME_REFUSED };

static struct operand get(const struct bpf_state *s, unsigned reg)
{
	return (struct operand){s->value[reg], s->known >> reg & 1};
}

static enum outcome set(struct bpf_state *s, unsigned reg, struct operand from)
{
	s->value[reg] = from.is_known ? from.value : 0;
	s->known = (s->known & ~(1u << reg)) | (uint32_t)from.is_known << reg;
	return OUTCOME_NEXT;
}

static struct operand constant(uint32_t value)
{
	return (struct operand){value, true};
}

/* @to: a state of which the paths so far are known. */
static void join(struct bpf_state *to, const struct bpf_state *from)
{
	if (!to->is_reached) {
		*to = *from;
		return;
	}
	to->known &= from->known;
	for (unsigned i = 0; i < REGISTERS; i++) {
		if (to->value[i] != from->value[i])
			to->known &= ~(1u << i);
	}
}

static enum outcome load(struct bpf_state *s, const struct filter_input *input, uint32_t offset)
{
	uint32_t i = offset / sizeof(uint32_t);
	if (offset % sizeof(uint32_t) != 0 || i >= FILTER_WORDS)
		return OUTCOME_REFUSED;
	return set(s, REG_A, (struct operand){input->word[i], input->known >> i & 1});
}

static enum outcome compute(struct bpf_state *s, unsigned op, struct operand with)
{
	struct operand a = get(s, REG_A);
	uint32_t value = 0;
	bool is_known = a.is_known && with.is_known;
	switch (op) {
	case BPF_ADD: value = a.value + with.value; break;
	case BPF_SUB: value = a.value - with.value; break;
	case BPF_MUL: value = a.value * with.value; break;
	case BPF_AND: value = a.value & with.value; break;
	case BPF_OR: value = a.value | with.value; break;
	case BPF_XOR: value = a.value ^ with.value; break;
	case BPF_NEG: value = 0 - a.value; break;
	case BPF_LSH:
	case BPF_RSH:
		is_known &= with.value < 32;
		if (is_known)
			value = op == BPF_LSH ? a.value << with.value : a.value >> with.value;
		break;
	case BPF_DIV: /* the kernel ends the filter with 0, which kills, at a division by zero */
		if (!with.is_known || with.value == 0)
			return OUTCOME_REFUSED;
		value = a.value / with.value;
		break;
	default: return OUTCOME_REFUSED;
	}
	return set(s, REG_A, (struct operand){value, is_known});
}

/* The instructions that go on with the next one, or end the program. */
static enum outcome execute(struct bpf_state *s, const struct sock_filter *insn,
			    const struct filter_input *input)
{
	struct operand source =
		BPF_SRC(insn->code) == BPF_X ? get(s, REG_X) : constant(insn->k);
	switch (insn->code) {
	case BPF_LD | BPF_W | BPF_ABS: return load(s, input, insn->k);
	case BPF_LD | BPF_W | BPF_LEN: return set(s, REG_A, constant(sizeof(input->word)));
	case BPF_LDX | BPF_W | BPF_LEN: return set(s, REG_X, constant(sizeof(input->word)));
	case BPF_LD | BPF_IMM: return set(s, REG_A, constant(insn->k));
	case BPF_LDX | BPF_IMM: return set(s, REG_X, constant(insn->k));
	case BPF_MISC | BPF_TAX: return set(s, REG_X, get(s, REG_A));
	case BPF_MISC | BPF_TXA: return set(s, REG_A, get(s, REG_X));
	case BPF_RET | BPF_K:
		return (insn->k & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ALLOW ||
				       (insn->k & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_LOG
			       ? OUTCOME_ALLOWED
			       : OUTCOME_REFUSED;
	case BPF_LD | BPF_MEM:
	case BPF_LDX | BPF_MEM:
	case BPF_ST:
	case BPF_STX:
		if (insn->k >= BPF_MEMWORDS)
			return OUTCOME_REFUSED;
		if (BPF_CLASS(insn->code) == BPF_ST || BPF_CLASS(insn->code) == BPF_STX)
			return set(s, insn->k, get(s, insn->code == BPF_ST ? REG_A : REG_X));
		return set(s, insn->code == (BPF_LD | BPF_MEM) ? REG_A : REG_X, get(s, insn->k));
	default:
		return insn->code <= 0xff && BPF_CLASS(insn->code) == BPF_ALU
			       ? compute(s, BPF_OP(insn->code), source)
			       : OUTCOME_REFUSED;
	}
}

static bool compare(unsigned op, uint32_t a, uint32_t b)
{
	return op == BPF_JEQ ? a == b : op == BPF_JGT ? a > b : op == BPF_JGE ? a >= b : a & b;
}

/* Joins @s into the states at which the jump @code[@at] may arrive. False: it is not valid. */
static bool jump(struct bpf_state *states, const struct sock_filter *code, size_t at, size_t count)
{
	const struct sock_filter *insn = &code[at];
	const struct bpf_state *s = &states[at];
	unsigned op = BPF_OP(insn->code);
	struct operand a = get(s, REG_A),
		       b = BPF_SRC(insn->code) == BPF_X ? get(s, REG_X) : constant(insn->k);
	size_t left = count - at - 1;
	if (insn->code == (BPF_JMP | BPF_JA)) {
		if (insn->k >= left)
			return false;
		join(&states[at + 1 + insn->k], s);
		return true;
	}
	if (insn->code > 0xff || insn->jt >= left || insn->jf >= left ||
	    (op != BPF_JEQ && op != BPF_JGT && op != BPF_JGE && op != BPF_JSET))
		return false;
	bool is_known = a.is_known && b.is_known, is_true = compare(op, a.value, b.value);
	if (!is_known || is_true)
		join(&states[at + 1 + insn->jt], s);
	if (!is_known || !is_true)
		join(&states[at + 1 + insn->jf], s);
	return true;
}

bool filter_allows(const struct sock_filter *code, size_t count, const struct filter_input *input)
{
	if (count == 0 || count > BPF_MAXINSNS)
		return false;
	_cleanup_free_ struct bpf_state *states = xcalloc(count, sizeof(*states));
	states[0].is_reached = true;
	states[0].known = 1u << REG_A | 1u << REG_X; /* they are 0 */
	for (size_t i = 0; i < count; i++) {
		struct bpf_state *s = &states[i];
		if (!s->is_reached)
			continue;
		if (BPF_CLASS(code[i].code) == BPF_JMP) {
			if (!jump(states, code, i, count))
				return false;
			continue;
		}
		enum outcome outcome = execute(s, &code[i], input);
		if (outcome == OUTCOME_REFUSED || (outcome == OUTCOME_NEXT && i + 1 == count))
			return false;
		if (outcome == OUTCOME_NEXT)
			join(&states[i + 1], s);
	}
	return true;
}

/* linux/memfd.h; without it the kernel logs a warning, and vm.memfd_noexec=2 may forbid the call */
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x8u
#endif

#define ARG(n) (1u << (n))
#define CODE (PROT_READ | PROT_EXEC)
#define DATA (PROT_READ | PROT_WRITE)
#define CODE_FLAGS (MAP_PRIVATE | MAP_ANONYMOUS)
#define DATA_FLAGS (MAP_SHARED | MAP_NORESERVE)
#define NO_FILE ((uint64_t)-1)
#define FILE_FLAGS (MFD_CLOEXEC | MFD_ALLOW_SEALING)
#define ANONYMOUS (ARG(2) | ARG(3) | ARG(4) | ARG(5))
#define OF_FILE (ARG(2) | ARG(3) | ARG(5))

const struct injected_call injected_calls[INJECTED_CALLS] = {
	[CALL_MAP_HANDLER] = {"mmap", SYS_mmap, ANONYMOUS,
			      {0, 0, CODE, CODE_FLAGS | MAP_NORESERVE, NO_FILE, 0}},
	[CALL_UNMAP] = {"munmap", SYS_munmap, 0, {0}},
	[CALL_MAP_AREA] = {"mmap", SYS_mmap, ANONYMOUS,
			   {0, 0, CODE, CODE_FLAGS | MAP_FIXED_NOREPLACE, NO_FILE, 0}},
	[CALL_MAP_CODE] = {"mmap", SYS_mmap, ANONYMOUS, {0, 0, CODE, CODE_FLAGS, NO_FILE, 0}},
	[CALL_CREATE_FILE] = {"memfd_create", SYS_memfd_create, ARG(1),
			      {0, FILE_FLAGS | MFD_NOEXEC_SEAL}},
	[CALL_CREATE_FILE_OLD] = {"memfd_create", SYS_memfd_create, ARG(1), {0, FILE_FLAGS}},
	[CALL_MAP_FILE] = {"mmap", SYS_mmap, OF_FILE, {0, 0, DATA, DATA_FLAGS, 0, 0}},
	[CALL_MAP_FILE_OVER] = {"mmap", SYS_mmap, OF_FILE,
				{0, 0, DATA, DATA_FLAGS | MAP_FIXED, 0, 0}},
	[CALL_CLOSE] = {"close", SYS_close, 0, {0}},
	[CALL_BRK] = {"brk", SYS_brk, ARG(0), {0}},
	[CALL_SET_ACTION] = {"rt_sigaction", SYS_rt_sigaction, ARG(0) | ARG(3), {SIGTRAP, 0, 0, 8}},
	[CALL_SET_MASK] = {"rt_sigprocmask", SYS_rt_sigprocmask, ARG(2) | ARG(3), {0, 0, 0, 8}},
	[CALL_GET_PROCESS] = {"getpid", SYS_getpid, 0, {0}},
	[CALL_GET_THREAD] = {"gettid", SYS_gettid, 0, {0}},
	[CALL_SEND_SIGNAL] = {"rt_tgsigqueueinfo", SYS_rt_tgsigqueueinfo, ARG(2), {0, 0, SIGTRAP}},
	[CALL_END_SIGNAL] = {"rt_sigreturn", SYS_rt_sigreturn, 0, {0}},
	[CALL_WATCH_WRITES] = {"userfaultfd", SYS_userfaultfd, ARG(0), {WATCH_WRITES_FLAGS}},
	[CALL_MAP_SCRATCH] = {"mmap", SYS_mmap, ANONYMOUS,
			      {0, 0, DATA, SCRATCH_FLAGS, NO_FILE, 0}},
	[CALL_OPEN_SELF] = {"pidfd_open", SYS_pidfd_open, 0, {0}},
	[CALL_ADVISE] = {"madvise", SYS_madvise, 0, {0}},
	[CALL_ADVISE_MANY] = {"process_madvise", SYS_process_madvise, 0, {0}},
};

static bool is_call(const struct injected_call *c, long number, const uint64_t args[6])
{
	bool is_same = c->number == number;
	for (unsigned i = 0; i < 6 && is_same; i++)
		is_same = !(c->known & ARG(i)) || c->arg[i] == args[i];
	return is_same;
}

bool injected_calls_has(long number, const uint64_t args[6])
{
	for (unsigned i = 0; i < INJECTED_CALLS; i++) {
		if (is_call(&injected_calls[i], number, args))
			return true;
	}
	return false;
}

static void set_known(struct filter_input *input, size_t offset, size_t size)
{
	for (size_t i = offset; i < offset + size; i += sizeof(uint32_t))
		input->known |= 1u << (i / sizeof(uint32_t));
}

static struct filter_input make_input(const struct injected_call *c, uint32_t audit_arch)
{
	struct seccomp_data data = {.nr = (int)c->number, .arch = audit_arch};
	struct filter_input input = {0};
	set_known(&input, offsetof(struct seccomp_data, nr), sizeof(data.nr));
	set_known(&input, offsetof(struct seccomp_data, arch), sizeof(data.arch));
	for (unsigned i = 0; i < 6; i++) {
		data.args[i] = c->arg[i];
		if (c->known & ARG(i))
			set_known(&input, offsetof(struct seccomp_data, args[i]), sizeof(uint64_t));
	}
	memcpy(input.word, &data, sizeof(data));
	return input;
}

const struct injected_call *injected_calls_find_forbidden(const struct sock_filter *filter,
							  size_t count, uint32_t audit_arch)
{
	for (unsigned i = 0; i < CALLS_WITH_FILTERS; i++) {
		struct filter_input input = make_input(&injected_calls[i], audit_arch);
		if (!filter_allows(filter, count, &input))
			return &injected_calls[i];
	}
	return NULL;
}

/*
 * A filter may kill the program for a system call that it does not expect. So each filter must be
 * known to allow the calls that ptmem injects. It is
 *
 *	of        known by
 *	ptmem     having installed it, in a program that it started (syscalls/syscalls.c): it stops
 *	          calls, but only for ptmem
 *	ptmem's   a trial in a child process (seccomp.h), for programs that ptmem started;
 *	parents   such a filter is inherited, and filters are only ever added: with as many filters
 *	          as ptmem has, these are the same
 *	others    reading and evaluating it (seccomp.h), for which the kernel requires that
 *	          ptmem has CAP_SYS_ADMIN and no filter itself
 *
 * Nothing is remembered: a thread may add a filter at any time, for all threads of its process. An
 * evaluation of the 1158 instructions of Podman's filter takes 70 us.
 */

#define MAX_FILTERS 64
#define MAX_ASKED 16 /* threads, to find one */

int seccomp_count_filters(pid_t tid)
{
	struct proc_status st;
	if (proc_status_read(tid, &st) != 0)
		return -1;
	return st.seccomp_mode == 0 ? 0 : st.seccomp_mode == 2 ? st.seccomp_filters : -1;
}

static struct seccomp_refusal refusal(const char *reason)
{
	return (struct seccomp_refusal){reason, ""};
}

/* Why a filter could not be read. */
static struct seccomp_refusal unreadable(int rc)
{
	if (rc == -EACCES && seccomp_count_filters(getpid()) != 0)
		return refusal("ptmem cannot read its seccomp filter, since it has one itself");
	if (rc == -EACCES)
		return refusal("ptmem cannot read its seccomp filter without CAP_SYS_ADMIN");
	return refusal("its seccomp filter cannot be read");
}

/* Reads and evaluates @count filters of @tid, but for number @own. */
static bool evaluate(const struct target *t, pid_t tid, int count, int own,
		     struct seccomp_refusal *why)
{
	_cleanup_free_ struct sock_filter *code = xcalloc(BPF_MAXINSNS, sizeof(*code));
	for (int i = 0; i < count; i++) {
		if (i == own)
			continue;
		int n = ptrace_get_filter(tid, (unsigned)i, code);
		const struct injected_call *c = NULL;
		if (n >= 0)
			c = injected_calls_find_forbidden(code, (size_t)n, t->arch->audit_arch);
		if (n < 0 || c) {
			*why = c ? (struct seccomp_refusal){SECCOMP_FORBIDS, c->name}
				 : unreadable(n);
			return false;
		}
	}
	*why = refusal("its seccomp filters have changed"); /* another thread has added one */
	return ptrace_get_filter(tid, (unsigned)count, NULL) == -ENOENT;
}

static bool allows(const struct target *t, pid_t tid, struct seccomp_refusal *why)
{
	const struct inherited_filters *f = &t->inherited;
	bool has_own = t->syscalls.way == SYSCALLS_FILTER;
	int count = seccomp_count_filters(tid);
	if (count == 0)
		return true;
	if (count < 0 || count > MAX_FILTERS) {
		*why = refusal("seccomp may forbid to map pads");
		return false;
	}
	if (f->count >= 0 && count == f->count + has_own) {
		*why = f->refusal;
		return !f->refusal.reason;
	}
	return evaluate(t, tid, count, has_own ? f->count : -1, why);
}

bool seccomp_allows_injection(const struct target *t, pid_t tid, struct seccomp_refusal *why_out)
{
	struct seccomp_refusal why = refusal("");
	bool is_allowed = allows(t, tid, &why);
	if (!is_allowed && why_out)
		*why_out = why;
	return is_allowed;
}

struct thread *seccomp_pick_thread(struct target *t, struct address_space *s)
{
	struct thread *th, *first = thread_pick(t, s);
	if (!first || seccomp_allows_injection(t, first->tid, NULL))
		return first;
	unsigned asked = 0;
	for_each_thread_in(t, s, th) {
		if (th == first || th->is_exiting || !th->is_held || th->vfork.is_waiting)
			continue;
		if (asked++ == MAX_ASKED)
			break;
		if (seccomp_allows_injection(t, th->tid, NULL))
			return th;
	}
	return first;
}

/*
 * Makes the calls of seccomp.h in a child process, in the order in which a target would make
 * them. A filter that forbids one kills the child or makes the call fail.
 *
 * A filter may also ask another process (SECCOMP_RET_USER_NOTIF), whose answer may be another one
 * the next time. Such filters have a listener. The kernel accepts one listener for all filters of a
 * thread (EBUSY), so the child knows whether there is one by adding a filter with a listener.
 */

#define SIZE 4096u
#define MAX_SECONDS 10u

/* How far the child is, in memory shared with it: a call, or one of these. */
enum { STEP_BEGIN = INJECTED_CALLS, STEP_LISTENER, STEP_DONE };

/* In the child: makes a call, with @args where they are not the same each time. */
static long try(volatile int *step, enum injected_call_id id, const uint64_t args[6])
{
	const struct injected_call *c = &injected_calls[id];
	uint64_t a[6];
	*step = (int)id;
	for (unsigned i = 0; i < 6; i++)
		a[i] = c->known >> i & 1 ? c->arg[i] : args[i];
	return syscall(c->number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static bool has_listener(void)
{
	struct sock_filter code[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	const struct sock_fprog program = {1, code};
	const unsigned op = SECCOMP_SET_MODE_FILTER, flags = SECCOMP_FILTER_FLAG_NEW_LISTENER;
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	long rc = syscall(SYS_seccomp, op, flags, &program);
	return rc < 0 && errno != EINVAL; /* before Linux 5.0 */
}

static bool try_mappings(volatile int *step)
{
	const uint64_t none[6] = {0, SIZE};
	long at = try(step, CALL_MAP_HANDLER, none);
	const uint64_t code[6] = {(uint64_t)at, SIZE}, name[6] = {(uint64_t)(uintptr_t) ""};
	if (at < 0 || try(step, CALL_UNMAP, code) != 0 || try(step, CALL_MAP_AREA, code) != at ||
	    try(step, CALL_MAP_CODE, none) < 0)
		return false;
	long fd = try(step, CALL_CREATE_FILE, name);
	if (fd < 0 && errno == EINVAL)
		fd = try(step, CALL_CREATE_FILE_OLD, name);
	const uint64_t file[6] = {0, SIZE, 0, 0, (uint64_t)fd};
	at = fd < 0 ? -1 : try(step, CALL_MAP_FILE, file);
	const uint64_t over[6] = {(uint64_t)at, SIZE, 0, 0, (uint64_t)fd},
		       close_args[6] = {(uint64_t)fd};
	return at >= 0 && try(step, CALL_MAP_FILE_OVER, over) == at &&
	       try(step, CALL_CLOSE, close_args) == 0 && try(step, CALL_BRK, none) > 0;
}

static void on_signal(int sig)
{
	(void)sig;
}

/* The handler of ptmem's ends with rt_sigreturn, as this one does. */
static bool try_signals(volatile int *step)
{
	const struct sigaction action = {.sa_handler = on_signal};
	siginfo_t info = {.si_signo = SIGTRAP, .si_code = SI_QUEUE};
	const uint64_t mask = SIGTRAP_BIT;
	sigset_t empty;
	*step = CALL_SET_ACTION;
	if (sigaction(SIGTRAP, &action, NULL) != 0)
		return false;
	const uint64_t block[6] = {SIG_SETMASK, (uint64_t)(uintptr_t)&mask}, none[6] = {0};
	if (try(step, CALL_SET_MASK, block) != 0)
		return false;
	long pid = try(step, CALL_GET_PROCESS, none);
	long tid = pid > 0 ? try(step, CALL_GET_THREAD, none) : -1;
	const uint64_t to[6] = {(uint64_t)pid, (uint64_t)tid, 0, (uint64_t)(uintptr_t)&info};
	if (tid < 0 || try(step, CALL_SEND_SIGNAL, to) != 0)
		return false;
	*step = CALL_END_SIGNAL;
	sigemptyset(&empty);
	return sigprocmask(SIG_SETMASK, &empty, NULL) == 0;
}

ATTR_NORETURN static void run_child(volatile int *step)
{
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* a filter that kills must not leave a core file */
	signal(SIGALRM, SIG_DFL);
	alarm(MAX_SECONDS);
	*step = STEP_LISTENER;
	if (!has_listener() && try_mappings(step) && try_signals(step))
		*step = STEP_DONE;
	_exit(0);
}

/* Where the child ended. */
static int run(void)
{
	int *step = mmap(NULL, sizeof(*step), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			 -1, 0);
	if (step == MAP_FAILED)
		return STEP_BEGIN;
	*step = STEP_BEGIN;
	pid_t pid = fork();
	if (pid == 0)
		run_child(step);
	int status = -1;
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	int end = *step;
	munmap(step, sizeof(*step));
	return end == STEP_DONE && status != 0 ? STEP_BEGIN : end;
}

void seccomp_trial_run(struct target *t)
{
	struct inherited_filters *f = &t->inherited;
	*f = (struct inherited_filters){.count = seccomp_count_filters(gettid())};
	f->refusal.call = "";
	if (f->count <= 0)
		return;
	int end = run();
	if (end == STEP_LISTENER)
		f->refusal.reason = "a seccomp filter may ask another process";
	else if (end >= 0 && end < INJECTED_CALLS)
		f->refusal = (struct seccomp_refusal){SECCOMP_FORBIDS, injected_calls[end].name};
	else if (end != STEP_DONE)
		f->refusal.reason = "its seccomp filter could not be tried";
}
