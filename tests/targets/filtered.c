/*
 * filtered FILTER [-x PROGRAM ARGUMENT...]: adds a seccomp filter, and executes a program with it or
 * obeys what it reads, one letter each:
 *
 *	r  ROUNDS blocks, one at a time, in each thread; then it writes "done"
 *	f  adds the filter, if it is `later` or `later-files`
 *	d  opens the library LIBRARY of the environment, which has its own malloc, and uses that
 *
 * Before it writes "ready". At the end of its input it reports what was allocated.
 *
 *	list         allows nearly all calls, one by one; the others fail
 *	log          logs memfd_create
 *	wx           refuses memory to be written and executed, as systemd's MemoryDenyWriteExecute
 *	trap-other   SIGSYS for getppid, which it calls now and then
 *	trap         the same, and for memfd_create
 *	file         memfd_create fails
 *	trace        memfd_create, which it calls now and then, is left to a tracer: it has none
 *	ask          memfd_create is left to another process
 *	code         new code that is not from a file kills
 *	all          what is injected kills: memfd_create, mmap, munmap, rt_sigaction
 *	later        the same, but added by `f`
 *	later-files  added by `f`: memfd_create and rt_sigaction kill
 *	thread       `all`, in a second thread only
 *	leader       `all`, in the first thread only; there is a second
 */
#include "truth.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define ROUNDS 3000
#define LAST_CALL 470u

static struct sock_filter code[2048];
static unsigned short count;
static const char *kind;
static int has_trap;
static volatile sig_atomic_t traps;

static int is(const char *name)
{
	return strcmp(kind, name) == 0;
}

static void add(struct sock_filter insn)
{
	code[count++] = insn;
}

#define STATEMENT(op, k) add((struct sock_filter)BPF_STMT(op, k))
#define LOAD(offset) STATEMENT(BPF_LD | BPF_W | BPF_ABS, offset)
#define ANSWER(k) STATEMENT(BPF_RET | BPF_K, k)
#define IF_EQUAL(k, otherwise) \
	add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, k, 0, otherwise))

static void on_call(uint32_t nr, uint32_t action)
{
	LOAD(offsetof(struct seccomp_data, nr));
	IF_EQUAL(nr, 1);
	ANSWER(action);
}

/* For a call whose argument @arg has the bits @bits of @mask. */
static void on_bits(uint32_t nr, unsigned arg, const uint32_t bits[2], uint32_t action)
{
	LOAD(offsetof(struct seccomp_data, nr));
	IF_EQUAL(nr, 4);
	LOAD(offsetof(struct seccomp_data, args) + 8 * arg);
	STATEMENT(BPF_ALU | BPF_AND | BPF_K, bits[0]);
	IF_EQUAL(bits[1], 1);
	ANSWER(action);
}

static void list_calls(void)
{
	LOAD(offsetof(struct seccomp_data, arch));
	IF_EQUAL(AUDIT_ARCH_X86_64, 1);
	add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JA, 1, 0, 0));
	ANSWER(SECCOMP_RET_KILL_PROCESS);
	LOAD(offsetof(struct seccomp_data, nr));
	for (uint32_t nr = 0; nr < LAST_CALL; nr++) {
		if (nr == SYS_reboot || nr == SYS_swapon || nr == SYS_kexec_load)
			continue;
		IF_EQUAL(nr, 1);
		ANSWER(SECCOMP_RET_ALLOW);
	}
	ANSWER(SECCOMP_RET_ERRNO | ENOSYS);
}

static void write_filter(void)
{
	const uint32_t writable[2] = {PROT_WRITE | PROT_EXEC, PROT_WRITE | PROT_EXEC},
		       anonymous[2] = {MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
				       MAP_ANONYMOUS | MAP_FIXED_NOREPLACE};
	const uint32_t kill = SECCOMP_RET_KILL_PROCESS;
	if (is("list"))
		list_calls();
	if (is("log"))
		on_call(SYS_memfd_create, SECCOMP_RET_LOG);
	if (is("wx"))
		on_bits(SYS_mmap, 2, writable, SECCOMP_RET_ERRNO | EPERM);
	if (is("trap") || is("trap-other"))
		on_call(SYS_getppid, SECCOMP_RET_TRAP);
	if (is("trap"))
		on_call(SYS_memfd_create, SECCOMP_RET_TRAP);
	if (is("file"))
		on_call(SYS_memfd_create, SECCOMP_RET_ERRNO | EPERM);
	if (is("trace"))
		on_call(SYS_memfd_create, SECCOMP_RET_TRACE);
	if (is("ask"))
		on_call(SYS_memfd_create, SECCOMP_RET_USER_NOTIF);
	if (is("code"))
		on_bits(SYS_mmap, 3, anonymous, kill);
	if (is("all") || is("later") || is("thread") || is("leader")) {
		on_call(SYS_mmap, kill);
		on_call(SYS_munmap, kill);
	}
	if (is("all") || strncmp(kind, "later", 5) == 0 || is("thread") || is("leader")) {
		on_call(SYS_memfd_create, kill);
		on_call(SYS_rt_sigaction, kill);
	}
	CHECK(count > 0 || is("none"));
	ANSWER(SECCOMP_RET_ALLOW);
}

static void on_trap(int sig)
{
	(void)sig;
	traps++;
}

static void add_filter(void)
{
	const struct sock_fprog program = {count, code};
	const struct sigaction action = {.sa_handler = on_trap};
	unsigned flags = is("ask") ? SECCOMP_FILTER_FLAG_NEW_LISTENER : 0;
	has_trap = is("trap") || is("trap-other");
	CHECK(!has_trap || sigaction(SIGSYS, &action, NULL) == 0);
	if (is("none"))
		return;
	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	long fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
	if (fd < 0)
		_exit(77); /* this kernel cannot */
	CHECK(flags == 0 || fcntl((int)fd, F_SETFD, 0) == 0);
}

NOINLINE static void use(uint64_t size)
{
	t_free(t_malloc(size), size);
}

static void run(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		use((uint64_t)(50 + i % 50));
		int before = traps;
		if (has_trap && i % 100 == 0) {
			syscall(SYS_getppid);
			CHECK(traps == before + 1);
		}
		if (is("trace") && i % 100 == 0)
			CHECK(syscall(SYS_memfd_create, "", 0) == -1 && errno == ENOSYS);
	}
}

static int to_thread[2], from_thread[2];

static void *thread(void *arg)
{
	char c;

	void *p = malloc(1); /* maps its arena */
	__asm__ volatile("" : "+r"(p) : : "memory");
	free(p);
	if (is("thread"))
		add_filter();
	CHECK(write(from_thread[1], "a", 1) == 1);
	while (read(to_thread[0], &c, 1) == 1) {
		run();
		CHECK(write(from_thread[1], "a", 1) == 1);
	}
	return arg;
}

static void start_thread(void)
{
	pthread_t id;
	char c;

	truth.has_threads = 1;
	CHECK(pipe(to_thread) == 0 && pipe(from_thread) == 0);
	CHECK(pthread_create(&id, NULL, thread, NULL) == 0);
	CHECK(read(from_thread[0], &c, 1) == 1);
}

static void run_all(void)
{
	char c;

	CHECK(!truth.has_threads || write(to_thread[1], "a", 1) == 1);
	run();
	CHECK(!truth.has_threads || read(from_thread[0], &c, 1) == 1);
	CHECK(write(STDOUT_FILENO, "done\n", 5) == 5);
}

static void use_library(void)
{
	void *lib = dlopen(getenv("LIBRARY"), RTLD_NOW);
	CHECK(lib);
	void *(*make)(uint64_t) = (void *(*)(uint64_t))dlsym(lib, "library_make");
	void (*drop)(void *) = (void (*)(void *))dlsym(lib, "library_drop");
	CHECK(make && drop);
	for (int i = 0; i < ROUNDS / 20; i++) {
		void *p = truth_made(make(200), 200);
		truth_gone(200);
		drop(p);
	}
	CHECK(write(STDOUT_FILENO, "done\n", 5) == 5);
}

int main(int argc, char **argv)
{
	char c;

	CHECK(argc > 1);
	kind = argv[1];
	write_filter();
	if (argc > 3 && strcmp(argv[2], "-x") == 0) {
		add_filter();
		execv(argv[3], argv + 3);
		return 99;
	}
	if (is("thread") || is("leader"))
		start_thread();
	if (!is("thread") && strncmp(kind, "later", 5) != 0)
		add_filter();
	CHECK(write(STDOUT_FILENO, "ready\n", 6) == 6);
	while (read(STDIN_FILENO, &c, 1) == 1) {
		if (c == 'r')
			run_all();
		if (c == 'f')
			add_filter();
		if (c == 'd')
			use_library();
	}
	truth_report();
	syscall(SYS_exit_group, 0);
}
