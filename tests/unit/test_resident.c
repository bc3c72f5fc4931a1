/*
 * The pages of a process by its page tables: of each mapping as many as smaps counts, with and
 * without the kernel's search for them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/proc.h"
#include "tracee/os/pagemap.h"

#define PAGE ((size_t)PAGE_SIZE_MIN)
#define PAGES 64u
#define WRITTEN 10u
#define SHARED 3u

/* What a child has, at the same addresses as its parent. */
struct child {
	pid_t pid;
	uint8_t *own, *shared, *file;
};

static uint8_t *map_pages(int flags, int fd)
{
	uint8_t *p = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, flags, fd, 0);

	assert_true(p != MAP_FAILED);
	madvise(p, PAGES * PAGE, MADV_NOHUGEPAGE);
	return p;
}

static void touch(const struct child *c)
{
	struct timespec now;
	volatile uint8_t byte = c->own[20 * PAGE]; /* the zero page */

	memset(c->own, 1, WRITTEN * PAGE);
	memset(c->own + 40 * PAGE, 1, PAGE);
	memset(c->shared + PAGE, 1, SHARED * PAGE);
	byte = c->file[0];
	c->file[PAGE] = byte;
	clock_gettime(CLOCK_MONOTONIC, &now); /* reads a page of the kernel's */
}

/* Unmaps this process's mappings of a gigabyte and more, AddressSanitizer's terabytes, then
 * waits: it may run no instrumented code any more. Without the kernel's search, each of their
 * pages would be read. */
__attribute__((no_sanitize("address", "undefined"))) static void wait_without_shadow(int ready)
{
	struct range {
		unsigned long start, end;
	} large[32];
	size_t count = 0;
	char line[4096];
	FILE *f = fopen("/proc/self/maps", "re");

	while (f && count < ARRAY_SIZE(large) && fgets(line, sizeof(line), f)) {
		struct range *r = &large[count];

		if (sscanf(line, "%lx-%lx ", &r->start, &r->end) == 2)
			count += r->end - r->start >= 1ul << 30;
	}
	for (size_t i = 0; i < count; i++)
		syscall(SYS_munmap, large[i].start, large[i].end - large[i].start);
	syscall(SYS_write, ready, "x", 1);
	for (;;)
		syscall(SYS_ppoll, NULL, 0, NULL, NULL, 0);
}

/* Until @pid has reached its last page: what it still touches would be counted once only. */
static void wait_asleep(pid_t pid)
{
	const struct timespec ms = {0, 1000000};
	struct proc_stat st;

	while (proc_stat_read(pid, &st) == 0 && st.state != 'S')
		nanosleep(&ms, NULL);
}

static void start(struct child *c, bool has_shadow)
{
	int ready[2], file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	char letter;

	assert_true(file >= 0);
	c->own = map_pages(MAP_PRIVATE | MAP_ANONYMOUS, -1);
	c->shared = map_pages(MAP_SHARED | MAP_ANONYMOUS, -1);
	c->file = map_pages(MAP_PRIVATE, file);
	assert_int_equal(pipe(ready), 0);
	c->pid = fork();
	if (c->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		touch(c);
		if (!has_shadow)
			wait_without_shadow(ready[1]);
		if (write(ready[1], "x", 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(ready[0], &letter, 1), 1);
	wait_asleep(c->pid);
	close(file);
	close(ready[0]);
	close(ready[1]);
}

static void end(const struct child *c)
{
	kill(c->pid, SIGKILL);
	assert_int_equal(waitpid(c->pid, NULL, 0), c->pid);
	munmap(c->own, PAGES * PAGE);
	munmap(c->shared, PAGES * PAGE);
	munmap(c->file, PAGES * PAGE);
}

/* Of [@start, @end), bytes with all of @flags and none of @others. */
static uint64_t count(const struct resident *p, taddr_t start, taddr_t end, uint32_t flags,
		      uint32_t others)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < p->list.count; i++) {
		const struct page_run *r = &p->list.data[i];

		if (r->start >= start && r->end <= end && (r->flags & flags) == flags &&
		    !(r->flags & others))
			bytes += r->end - r->start;
	}
	return bytes;
}

static void check_pages(const struct resident *p, const struct child *c)
{
	const taddr_t own = (taddr_t)(uintptr_t)c->own, shared = (taddr_t)(uintptr_t)c->shared,
		      file = (taddr_t)(uintptr_t)c->file;

	/* the page that was only read is resident, too, if the kernel has no zero page */
	assert_in_range(count(p, own, own + PAGES * PAGE, PAGE_RESIDENT, PAGE_OF_FILE),
			(WRITTEN + 1) * PAGE, (WRITTEN + 2) * PAGE);
	assert_int_equal(count(p, own, own + WRITTEN * PAGE, PAGE_RESIDENT, 0), WRITTEN * PAGE);
	assert_int_equal(count(p, own, own + PAGES * PAGE, PAGE_OF_FILE, 0), 0);
	assert_int_equal(count(p, shared, shared + PAGES * PAGE, PAGE_RESIDENT | PAGE_OF_FILE, 0),
			 SHARED * PAGE);
	assert_int_equal(count(p, file, file + PAGES * PAGE, PAGE_RESIDENT, PAGE_OF_FILE), PAGE);
	assert_true(count(p, file, file + PAGES * PAGE, PAGE_OF_FILE, 0) >= PAGE);
}

/* Each mapping against smaps. */
static void check_maps(const struct resident *p, pid_t pid)
{
	char name[64], line[4096];
	const struct map *m = p->maps.list.data;
	size_t maps = 0;
	uint64_t sum = 0;
	unsigned long start, end, kilobytes;

	snprintf(name, sizeof(name), "/proc/%d/smaps", (int)pid);
	FILE *f = fopen(name, "re");

	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2) {
			assert_true(maps < p->maps.list.count);
			assert_int_equal(m[maps].start, start);
			assert_int_equal(m[maps++].end, end);
		} else if (sscanf(line, "Rss: %lu", &kilobytes) == 1) {
			uint64_t bytes = count(p, m[maps - 1].start, m[maps - 1].end,
					       PAGE_RESIDENT, 0);

			if (bytes != kilobytes * 1024)
				print_error("%s", m[maps - 1].path);
			assert_int_equal(bytes, kilobytes * 1024);
			sum += bytes;
		}
	}
	fclose(f);
	assert_int_equal(maps, p->maps.list.count);
	assert_int_equal(sum, p->resident);
	assert_int_equal(p->differing, 0);
}

static void test_each_mapping_has_its_pages(void **state)
{
	struct resident p;
	struct child c;

	(void)state;
	start(&c, true);
	assert_int_equal(resident_read(c.pid, &p), 0);
	check_pages(&p, &c);
	check_maps(&p, c.pid);
	resident_deinit(&p);
	end(&c);
}

/* As before Linux 6.7. */
static void refuse_scans(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)_IOWR('f', 16, uint64_t[12]), 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOTTY),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog filter = {.len = ARRAY_SIZE(code), .filter = code};

	assert_int_equal(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	assert_int_equal(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter), 0);
}

static void test_without_the_search(void **state)
{
	struct resident p;
	struct child c;

	(void)state;
	start(&c, false);
	refuse_scans();
	assert_int_equal(resident_read(c.pid, &p), 0);
	check_pages(&p, &c);
	resident_deinit(&p);
	end(&c);
}

static void test_no_process(void **state)
{
	struct resident p;
	pid_t pid = fork();

	(void)state;
	if (pid == 0)
		_exit(0);
	siginfo_t info;

	/* a dead one has no memory */
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_true(resident_read(pid, &p) < 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_mapping_has_its_pages),
		cmocka_unit_test(test_no_process),
		cmocka_unit_test(test_without_the_search), /* for the rest of this process */
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
