/*
 * The handler that keeps a program alive without its tracer, called as the kernel calls it;
 * and the use of a record that a dead ptmem left in a program.
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
#include "tracee/control/attach.h"
#include "tracee/guard/guardian.h"
#include "tracee/state/journal.h"
#include "tracee/state/space.h"
#include "tracee/state/trap_table.h"

extern const uint8_t x86_64_trap_handler[], x86_64_trap_handler_end[];

typedef void handler_fn(int number, siginfo_t *info, ucontext_t *context);

#define TRAP 0x10000u   /* where a breakpoint is, and where it leads */
#define RESUME 0x20000u
#define RANGE 0x30000u  /* a page of ours */

static uint8_t *map_page(void)
{
	uint8_t *page = mmap(NULL, HANDLER_SIZE, PROT_READ | PROT_WRITE | PROT_EXEC,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(page, MAP_FAILED);
	arch_trap_handler_page((taddr_t)(uintptr_t)page, page);
	return page;
}

static void test_fits(void **state)
{
	assert_in_range(x86_64_trap_handler_end - x86_64_trap_handler, 1, HANDLER_ACTION);
}

/*
 * pc at which a thread continues after SIGTRAP with @code at @pc; *is_foreign_out: signal passed
 * on.
 */
static uint64_t handle(int code, uint64_t pc, bool *is_foreign_out)
{
	uint8_t *page = map_page();
	struct handler_data *data = (struct handler_data *)(page + HANDLER_DATA);
	data->trap[0].addr = TRAP + 100; /* was removed */
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
	munmap(page, HANDLER_SIZE);
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
		{SI_USER, TRAP + 1, TRAP + 1, true},        /* sent by another process, at such a pc by chance */
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

static bool is_checked; /* by the child, before it ends */
static bool is_untouched(void);

/* A child of this process, with a breakpoint at answer() and a record as @spoil makes it; it ends
 * with what answer() returns, by SIGTRAP if it was not restored. */
static pid_t start_child(void (*spoil)(struct journal_copy *head, struct journal *r), int *go_out)
{
	int ready[2], go[2];
	char c = 0;
	assert_int_equal(pipe(ready) | pipe(go), 0);
	pid_t child = fork();
	if (child == 0) {
		uint8_t *page = map_page(),
			*text = (uint8_t *)((uintptr_t)answer & ~(uintptr_t)4095);
		struct journal_copy *head = (struct journal_copy *)(page + HANDLER_COPY);
		struct journal *r = (struct journal *)(head + 1);
		prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
		mprotect(text, 8192, PROT_READ | PROT_WRITE | PROT_EXEC);
		memcpy(head->magic, journal_copy_magic, sizeof(head->magic));
		head->head_size = sizeof(*head);
		head->record_size = sizeof(*r);
		*r = (struct journal){.pid = 1, .page = (taddr_t)(uintptr_t)page, .trap_count = 1};
		r->trap[0] =
			(struct journal_trap){.addr = (taddr_t)(uintptr_t)answer, .patch_size = 1};
		r->trap[0].original[0] = *(volatile uint8_t *)answer;
		*(volatile uint8_t *)answer = 0xcc;
		mprotect(text, 8192, PROT_READ | PROT_EXEC);
		spoil(head, r);
		mprotect(page, HANDLER_SIZE, PROT_READ | PROT_EXEC);
		close(go[1]);
		if (write(ready[1], &c, 1) != 1 || read(go[0], &c, 1) != 0)
			_exit(1);
		_exit(is_untouched() ? answer() : 2);
	}
	close(ready[1]);
	close(go[0]);
	assert_int_equal(read(ready[0], &c, 1), 1);
	close(ready[0]);
	*go_out = go[1];
	return child;
}

static int recover_from(void (*spoil)(struct journal_copy *head, struct journal *r))
{
	int go, status;
	pid_t child = start_child(spoil, &go);
	recovery_await(child);
	recovery_run(child, cleanup_run);
	close(go);
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static void leave_whole(struct journal_copy *head, struct journal *r)
{
	(void)head, (void)r;
}

static void spoil_magic(struct journal_copy *head, struct journal *r)
{
	head->magic[6]++;
}

static void spoil_size(struct journal_copy *head, struct journal *r)
{
	head->record_size += 8;
}

static void spoil_place(struct journal_copy *head, struct journal *r)
{
	r->page += HANDLER_SIZE;
}

static void spoil_count(struct journal_copy *head, struct journal *r)
{
	r->trap_count = JOURNAL_TRAPS + 1;
}

static void spoil_area_count(struct journal_copy *head, struct journal *r)
{
	r->area_count = ~0u;
}

static void spoil_patch(struct journal_copy *head, struct journal *r)
{
	r->trap[0].patch_size = 9;
}

static void test_recover(void **state)
{
	assert_int_equal(recover_from(leave_whole), 42);
}

static void spoil_flag(struct journal_copy *head, struct journal *r)
{
	r->area_count = 1;
	r->area[0] = (struct journal_area){.start = r->page, .size = HANDLER_SIZE, .is_slack = 3};
}

static void spoil_end(struct journal_copy *head, struct journal *r)
{
	r->area_count = 1;
	r->area[0] = (struct journal_area){.start = ~(taddr_t)0 - 4095, .size = 1u << 20};
}

static void spoil_kind(struct journal_copy *head, struct journal *r)
{
	r->trap[0].kind = ~0u;
}

static void spoil_handler(struct journal_copy *head, struct journal *r)
{
	*(uint8_t *)(uintptr_t)r->page ^= 1;
}

/* Other bytes than in the program's file: it is unknown what they would do. */
static void spoil_original(struct journal_copy *head, struct journal *r)
{
	r->trap[0].original[0] = 0x90;
}

static void spoil_way(struct journal_copy *head, struct journal *r)
{
	r->trap[0].resume = 1;
}

/* A record that was not written by this version of ptmem is ignored. */
static void test_garbage(void **state)
{
	assert_int_equal(recover_from(spoil_flag), -SIGTRAP);
	assert_int_equal(recover_from(spoil_end), -SIGTRAP);
	assert_int_equal(recover_from(spoil_kind), -SIGTRAP);
	assert_int_equal(recover_from(spoil_handler), -SIGTRAP);
	assert_int_equal(recover_from(spoil_original), -SIGTRAP);
	assert_int_equal(recover_from(spoil_way), -SIGTRAP);
	assert_int_equal(recover_from(spoil_magic), -SIGTRAP);
	assert_int_equal(recover_from(spoil_size), -SIGTRAP);
	assert_int_equal(recover_from(spoil_place), -SIGTRAP);
	assert_int_equal(recover_from(spoil_count), -SIGTRAP);
	assert_int_equal(recover_from(spoil_area_count), -SIGTRAP);
	assert_int_equal(recover_from(spoil_patch), -SIGTRAP);
}

/* -- records that name memory other than ptmem's -- */

static const uint8_t untouched[8] = {0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88};
static uint8_t words[8];   /* writable: may be a semaphore */
static uint8_t *anonymous; /* mapped, of no file */

static void claim(struct journal *r, const void *at, uint32_t size, bool leads_to_itself)
{
	taddr_t addr = (taddr_t)(uintptr_t)at;
	r->trap[1] = (struct journal_trap){.addr = addr,
					   .patch_size = size,
					   .resume = leads_to_itself ? addr : 0};
	r->trap_count = 2;
}

static void claim_data(struct journal_copy *head, struct journal *r)
{
	claim(r, words, 8, false);
}

static void claim_word(struct journal_copy *head, struct journal *r)
{
	claim(r, words, 2, true);
	r->trap[1].original[0] = 1; /* now - was is no valid count */
}

static void claim_constant(struct journal_copy *head, struct journal *r)
{
	claim(r, untouched, 8, false);
}

static void claim_text(struct journal_copy *head, struct journal *r)
{
	claim(r, (const void *)recover_from, 8, false);
}

static void claim_area(struct journal_copy *head, struct journal *r)
{
	r->area_count = 1;
	r->area[0] = (struct journal_area){.start = (taddr_t)(uintptr_t)anonymous, .size = 4096};
	r->shared = (taddr_t)(uintptr_t)anonymous;
	r->shared_size = 4096;
	r->injection[0] = (taddr_t)(uintptr_t)anonymous;
}

static bool is_untouched(void)
{
	return !is_checked || (memcmp(words, untouched, sizeof(untouched)) == 0 &&
			       memcmp(anonymous, untouched, sizeof(untouched)) == 0);
}

/* Only the breakpoint that is ptmem's is removed. */
static void test_claims(void **state)
{
	void (*const claims[])(struct journal_copy *, struct journal *) = {
		claim_data, claim_word, claim_constant, claim_text, claim_area};
	anonymous = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(words, untouched, sizeof(words));
	memcpy(anonymous, untouched, sizeof(untouched));
	is_checked = true;
	for (size_t i = 0; i < ARRAY_SIZE(claims); i++)
		assert_int_equal(recover_from(claims[i]), 42);
	is_checked = false;
	munmap(anonymous, 4096);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fits),
		cmocka_unit_test(test_handler),
		cmocka_unit_test(test_recover),
		cmocka_unit_test(test_garbage),
		cmocka_unit_test(test_claims),
	};
	log_set_level(LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
