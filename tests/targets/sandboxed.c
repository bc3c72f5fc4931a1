/*
 * Allocates after it has disabled system calls for itself: ROUNDS blocks of 50 to 99 bytes, one at
 * a time, and one of 100 before. A forbidden call ends it. Prints OK. In mode `space` its address
 * space is limited to 200 MB, and most of that must be there for one block at the end. With -w in
 * place of ROUNDS it prints "ready" first, and makes one each millisecond until its input ends.
 *
 *	sandboxed none|strict|filter|mdwe|space [ROUNDS|-w]
 */
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#define PR_MDWE_REFUSE_EXEC_GAIN 1
#endif

static int forbid_mapping(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 4, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_munmap, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigaction, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = {sizeof(code) / sizeof(*code), code};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

#define SPACE 200000000u

static int lock_in(const char *mode)
{
	if (strcmp(mode, "strict") == 0)
		return prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
	if (strcmp(mode, "filter") == 0)
		return forbid_mapping();
	if (strcmp(mode, "mdwe") == 0)
		return prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0);
	if (strcmp(mode, "space") == 0)
		return setrlimit(RLIMIT_AS, &(struct rlimit){SPACE, SPACE});
	return 0;
}

static void use(size_t size)
{
	void *p = malloc(size);
	__asm__ volatile("" : "+r"(p) : : "memory");
	free(p);
}

int main(int argc, char **argv)
{
	int waits = argc > 2 && strcmp(argv[2], "-w") == 0;
	int rounds = argc > 2 ? atoi(argv[2]) : 3000;
	const struct timespec pause = {0, 1000000};
	char c;
	if (waits && fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK) != 0)
		return 1;
	use(100);
	if (argc < 2 || lock_in(argv[1]) != 0)
		return 77; /* this kernel cannot */
	if (waits && write(1, "ready\n", 6) != 6)
		return 1;
	for (int i = 0; i < rounds || (waits && read(0, &c, 1) != 0); i++) {
		use((size_t)(50 + i % 50));
		if (waits)
			nanosleep(&pause, NULL);
	}
	if (strcmp(argv[1], "space") == 0 && mmap(NULL, SPACE / 10 * 9, PROT_READ | PROT_WRITE,
						  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
		return 2;
	if (write(1, "OK\n", 3) != 3)
		return 1;
	syscall(SYS_exit, 0); /* exit_group is forbidden, too */
}
