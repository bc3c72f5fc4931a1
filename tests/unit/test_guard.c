/*
 * The handler that keeps a program alive without its tracer, called as the kernel calls it;
 * and what is made of the copy of a record that a dead ptmem left in a program.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/log.h"
#include "target/guard.h"

extern const uint8_t x86_64_guard[], x86_64_guard_end[];

typedef void handler_fn(int number, siginfo_t *info, ucontext_t *context);

#define TRAP 0x10000u   /* where a breakpoint stands, and where it leads */
#define RESUME 0x20000u
#define RANGE 0x30000u  /* a page of ours */

static uint8_t *map_page(void)
{
	uint8_t *page = mmap(NULL, GUARD_SIZE, PROT_READ | PROT_WRITE | PROT_EXEC,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(page, MAP_FAILED);
	arch_guard_page((taddr_t)(uintptr_t)page, page);
	return page;
}

static void test_fits(void **state)
{
	assert_in_range(x86_64_guard_end - x86_64_guard, 1, GUARD_ACTION);
}

/* Where a thread goes on that got a SIGTRAP of @code at @pc; *is_foreign_out: and gets it once more. */
static uint64_t handle(int code, uint64_t pc, bool *is_foreign_out)
{
	uint8_t *page = map_page();
	struct guard_data *data = (struct guard_data *)(page + GUARD_DATA);
	data->trap[0].addr = TRAP + 100; /* was taken out */
	data->trap[1].addr = TRAP;
	data->trap[1].resume = RESUME;
	data->trap_count = 2;
	data->range[0].start = RANGE;
	data->range[0].end = RANGE + 4096;
	data->range_count = 1;
	siginfo_t info = {.si_signo = SIGTRAP, .si_code = code};
	ucontext_t context = {0};
	sigset_t was, pending, traps;
	struct sigaction action;
	context.uc_mcontext.gregs[REG_RIP] = (greg_t)pc;
	sigprocmask(SIG_SETMASK, NULL, &was);
	sigaction(SIGTRAP, NULL, &action);

	handler_fn *handler = (handler_fn *)(uintptr_t)page;
	handler(SIGTRAP, &info, &context);

	sigpending(&pending);
	*is_foreign_out = sigismember(&pending, SIGTRAP);
	sigemptyset(&traps);
	sigaddset(&traps, SIGTRAP);
	if (*is_foreign_out)
		assert_int_equal(sigwaitinfo(&traps, &info), SIGTRAP);
	sigprocmask(SIG_SETMASK, &was, NULL);
	sigaction(SIGTRAP, &action, NULL);
	munmap(page, GUARD_SIZE);
	return (uint64_t)context.uc_mcontext.gregs[REG_RIP];
}

static void test_handler(void **state)
{
	static const struct {
		int code;
		uint64_t pc, goes_on;
		bool is_foreign;
	} cases[] = {
		{SI_KERNEL, TRAP + 1, RESUME, false},
		{SI_KERNEL, RESUME, RESUME, false},         /* moved there already */
		{SI_KERNEL, RANGE + 5, RANGE + 5, false},   /* likewise, into a stub */
		{SI_KERNEL, RANGE - 1, RANGE - 1, true},
		{SI_KERNEL, RANGE + 4096, RANGE + 4096, true},
		{SI_KERNEL, TRAP + 101, TRAP + 101, true},
		{SI_KERNEL, TRAP, TRAP, true},              /* the program's own */
		{SI_USER, TRAP + 1, TRAP + 1, true},        /* sent by somebody, there by chance */
		{SI_TKILL, RESUME, RESUME, true},
		{TRAP_TRACE, TRAP, TRAP, false},            /* ptmem's single step */
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		bool is_foreign;
		assert_int_equal(handle(cases[i].code, cases[i].pc, &is_foreign), cases[i].goes_on);
		assert_int_equal(is_foreign, cases[i].is_foreign);
	}
}

/* -- the copy -- */

__attribute__((noinline, aligned(16))) static int answer(void)
{
	__asm__ volatile(""); /* is called */
	return 42;
}

/* A child of this process, in which somebody put a breakpoint at answer() and left a record as @spoil
 * makes it; it ends with what answer() returns, by SIGTRAP if nobody put that back. */
static pid_t start_child(void (*spoil)(struct guard_copy *head, struct guard_record *r), int *go_out)
{
	int ready[2], go[2];
	char c = 0;
	assert_int_equal(pipe(ready) | pipe(go), 0);
	pid_t child = fork();
	if (child == 0) {
		uint8_t *page = map_page(),
			*text = (uint8_t *)((uintptr_t)answer & ~(uintptr_t)4095);
		struct guard_copy *head = (struct guard_copy *)(page + GUARD_COPY);
		struct guard_record *r = (struct guard_record *)(head + 1);
		prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
		mprotect(text, 8192, PROT_READ | PROT_WRITE | PROT_EXEC);
		memcpy(head->magic, guard_copy_magic, sizeof(head->magic));
		head->head_size = sizeof(*head);
		head->record_size = sizeof(*r);
		*r = (struct guard_record){.pid = 1, .page = (taddr_t)(uintptr_t)page, .trap_count = 1};
		r->trap[0] = (struct guard_trap){.addr = (taddr_t)(uintptr_t)answer, .patch_size = 1};
		r->trap[0].original[0] = *(volatile uint8_t *)answer;
		*(volatile uint8_t *)answer = 0xcc;
		mprotect(text, 8192, PROT_READ | PROT_EXEC);
		spoil(head, r);
		mprotect(page, GUARD_SIZE, PROT_READ | PROT_EXEC);
		close(go[1]);
		_exit(write(ready[1], &c, 1) == 1 && read(go[0], &c, 1) == 0 ? answer() : 1);
	}
	close(ready[1]);
	close(go[0]);
	assert_int_equal(read(ready[0], &c, 1), 1);
	close(ready[0]);
	*go_out = go[1];
	return child;
}

static int recover_from(void (*spoil)(struct guard_copy *head, struct guard_record *r))
{
	int go, status;
	pid_t child = start_child(spoil, &go);
	guard_await(child);
	guard_recover(child);
	close(go);
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static void leave_whole(struct guard_copy *head, struct guard_record *r)
{
	(void)head, (void)r;
}

static void spoil_magic(struct guard_copy *head, struct guard_record *r)
{
	head->magic[6]++;
}

static void spoil_size(struct guard_copy *head, struct guard_record *r)
{
	head->record_size += 8;
}

static void spoil_place(struct guard_copy *head, struct guard_record *r)
{
	r->page += GUARD_SIZE;
}

static void spoil_count(struct guard_copy *head, struct guard_record *r)
{
	r->trap_count = GUARD_RECORD_TRAPS + 1;
}

static void spoil_area_count(struct guard_copy *head, struct guard_record *r)
{
	r->area_count = ~0u;
}

static void spoil_patch(struct guard_copy *head, struct guard_record *r)
{
	r->trap[0].patch_size = 9;
}

static void test_recover(void **state)
{
	assert_int_equal(recover_from(leave_whole), 42);
}

/* What no ptmem of this kind wrote is left alone. */
static void test_garbage(void **state)
{
	assert_int_equal(recover_from(spoil_magic), -SIGTRAP);
	assert_int_equal(recover_from(spoil_size), -SIGTRAP);
	assert_int_equal(recover_from(spoil_place), -SIGTRAP);
	assert_int_equal(recover_from(spoil_count), -SIGTRAP);
	assert_int_equal(recover_from(spoil_area_count), -SIGTRAP);
	assert_int_equal(recover_from(spoil_patch), -SIGTRAP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fits),
		cmocka_unit_test(test_handler),
		cmocka_unit_test(test_recover),
		cmocka_unit_test(test_garbage),
	};
	log_set_level(LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
