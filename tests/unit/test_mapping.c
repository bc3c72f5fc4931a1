/*
 * Effects of system calls on mappings (target/mapping.c), how records of page faults are read
 * (target/faults.c), and how the profile counts both.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>

#include "profile/profile.h"
#include "tracee/control/faults.h"
#include "tracee/syscalls/mapping.h"

#define P 4096ull

static void assert_range(struct mapping_range r, taddr_t start, taddr_t end)
{
	if (start == end) {
		assert_true(mapping_is_empty(r));
		return;
	}
	assert_int_equal(r.start, start);
	assert_int_equal(r.end, end);
}

static void assert_change(struct mapping_call c, int64_t result, struct mapping_range gone, struct mapping_range come)
{
	struct mapping_change change = mapping_done(&c, result);
	assert_range(change.gone, gone.start, gone.end);
	assert_range(change.come, come.start, come.end);
}

#define NONE ((struct mapping_range){0})
#define RANGE(start, end) ((struct mapping_range){start, end})

static void test_mmap(void **state)
{
	(void)state;
	struct mapping_call c = {SYS_mmap, {0, 5 * P - 1, 3, MAP_PRIVATE | MAP_ANONYMOUS, (uint64_t)-1, 0}, 0, NONE};
	assert_change(c, 0x10000, NONE, RANGE(0x10000, 0x10000 + 5 * P));
	assert_change(c, -ENOMEM, NONE, NONE);
	assert_range(mapping_removed(&c), 0, 0);
	c.arg[3] |= MAP_HUGETLB;
	assert_change(c, 0x200000, NONE, RANGE(0x200000, 0x400000));
	c.arg[3] |= 30ull << 26;
	assert_change(c, 0x40000000, NONE, RANGE(0x40000000, 0x80000000));
	c.arg[1] = UINT64_MAX;
	assert_change(c, 0x40000000, NONE, NONE); /* the kernel would not */
}

static void test_code(void **state)
{
	(void)state;
	struct mapping_call c = {SYS_mmap, {0, 2 * P, PROT_READ | PROT_EXEC}, 0, NONE};
	assert_true(mapping_makes_code(&c));
	assert_range(mapping_code(&c, 0x10000), 0x10000, 0x10000 + 2 * P);
	assert_range(mapping_code(&c, -ENOMEM), 0, 0);
	c.arg[2] = PROT_READ | PROT_WRITE;
	assert_false(mapping_makes_code(&c));
	c = (struct mapping_call){SYS_mprotect, {0x20000, P, PROT_EXEC}, 0, NONE};
	assert_true(mapping_makes_code(&c));
	assert_range(mapping_code(&c, 0), 0x20000, 0x20000 + P);
	assert_true(mapping_may_make_code(SYS_pkey_mprotect));
	c = (struct mapping_call){SYS_shmat, {1, 0, SHM_EXEC}, 0, NONE};
	assert_true(mapping_makes_code(&c));
	assert_range(mapping_code(&c, 0x30000), 0x30000, 0x30000 + P);
	c = (struct mapping_call){SYS_munmap, {0x20000, P, PROT_EXEC}, 0, NONE};
	assert_false(mapping_makes_code(&c));
}

static void test_munmap(void **state)
{
	(void)state;
	struct mapping_call c = {SYS_munmap, {0x10000, 1}, 0, NONE};
	assert_range(mapping_removed(&c), 0x10000, 0x11000);
	assert_change(c, 0, RANGE(0x10000, 0x11000), NONE);
	assert_change(c, -EINVAL, NONE, NONE);
	c.arg[1] = UINT64_MAX - 5;
	assert_range(mapping_removed(&c), 0, 0);
}

static void test_mremap(void **state)
{
	(void)state;
	struct mapping_call c = {SYS_mremap, {0x10000, 4 * P, 6 * P, MREMAP_MAYMOVE}, 0, NONE};
	assert_range(mapping_removed(&c), 0x10000, 0x14000);
	assert_change(c, 0x10000, NONE, RANGE(0x14000, 0x16000));
	assert_change(c, 0x90000, RANGE(0x10000, 0x14000), RANGE(0x90000, 0x96000));
	assert_change(c, -ENOMEM, NONE, NONE);
	c.arg[2] = P + 1;
	assert_change(c, 0x10000, RANGE(0x12000, 0x14000), NONE);
	c.arg[2] = 4 * P;
	assert_change(c, 0x10000, NONE, NONE);
	c.arg[3] |= 4; /* MREMAP_DONTUNMAP */
	assert_change(c, 0x90000, NONE, RANGE(0x90000, 0x94000));
	assert_range(mapping_removed(&c), 0, 0);
	c.arg[3] = MREMAP_MAYMOVE;
	c.arg[1] = 0; /* a second mapping of the same */
	assert_change(c, 0x90000, NONE, RANGE(0x90000, 0x94000));
}

static void test_brk(void **state)
{
	(void)state;
	struct mapping_call c = {SYS_brk, {0x5001}, 0x5000, NONE};
	assert_change(c, 0x5001, NONE, RANGE(0x5000, 0x5001));
	assert_change(c, 0x5000, NONE, NONE); /* failed: the break stays */
	c.arg[0] = 0x4321;
	assert_range(mapping_removed(&c), 0x4321, 0x5000);
	assert_change(c, 0x4321, RANGE(0x4321, 0x5000), NONE);
	c.arg[0] = 0;
	assert_range(mapping_removed(&c), 0, 0);
	assert_change(c, 0x5000, NONE, NONE);
	c.program_break = 0;
	assert_change(c, 0x7000, NONE, NONE); /* where it was is not known */
}

static void test_objects(void **state)
{
	(void)state;
	struct mapping_call at = {SYS_shmat, {7, 0, 0}, 0, RANGE(0x10000, 0x16000)};
	assert_change(at, 0x10000, NONE, RANGE(0x10000, 0x16000));
	assert_change(at, -EINVAL, NONE, NONE);
	struct mapping_call dt = {SYS_shmdt, {0x10000}, 0, RANGE(0x10000, 0x16000)};
	assert_range(mapping_removed(&dt), 0x10000, 0x16000);
	assert_change(dt, 0, RANGE(0x10000, 0x16000), NONE);
	assert_false(mapping_is_watched(SYS_read));
	size_t count;
	const long *numbers = mapping_watched(&count);
	for (size_t i = 0; i < count; i++)
		assert_true(mapping_is_watched(numbers[i]));
}

/* -- records of page faults -- */

static void test_fault_record(void **state)
{
	(void)state;
	uint64_t words[] = {
		(uint64_t)12 << 32 | 34, 555, 0xabc000, /* tid 12, pid 34; time; address */
		2, 100, 101, 102,                       /* ABI of 64 bits; three registers */
		16, 0x1111, 0x2222, 8,                  /* the stack: 16 bytes, of which 8 were there */
	};
	struct fault_record r;
	assert_int_equal(fault_record_decode((uint8_t *)words, sizeof(words), 3, &r), 0);
	assert_int_equal(r.pid, 34);
	assert_int_equal(r.tid, 12);
	assert_int_equal(r.time_ns, 555);
	assert_int_equal(r.addr, 0xabc000);
	assert_int_equal(r.regs[2], 102);
	assert_int_equal(r.stack_size, 8);
	assert_memory_equal(r.stack, &words[8], 8);
	for (size_t size = 0; size < sizeof(words); size++)
		assert_int_equal(fault_record_decode((uint8_t *)words, size, 3, &r), -EINVAL);
	words[10] = 17;
	assert_int_equal(fault_record_decode((uint8_t *)words, sizeof(words), 3, &r), -EINVAL);
	const uint64_t bare[] = {(uint64_t)1 << 32 | 2, 5, 6, 0, 0}; /* a kernel thread: no registers, no stack */
	assert_int_equal(fault_record_decode((const uint8_t *)bare, sizeof(bare), 3, &r), 0);
	assert_null(r.regs);
	assert_int_equal(r.stack_size, 0);
}

/* -- in the profile -- */

static struct profile *new_profile(uint32_t granule)
{
	const struct profile_options o = {
		.time_unit = TIME_BYTES, .peak_inaccuracy = 1, .detailed_freq = 1, .max_snapshots = 100, .alignment = 16,
		.granule = granule,
	};
	struct profile *p = profile_new(&o, 0);
	profile_start(p, 0);
	return p;
}

static void send(struct profile *p, int kind, uint32_t pc, taddr_t addr, uint64_t size)
{
	struct calltree *t = profile_calltree(p);
	struct event ev = {.kind = (uint8_t)kind, .addr = addr, .size = size};
	if (kind != EVENT_UNMAP)
		ev.node = calltree_get_child(t, 0, calltree_get_frame(t, pc, 0));
	profile_event(p, &ev);
	profile_check(p);
}

static void test_bytes(void **state)
{
	(void)state;
	struct profile *p = new_profile(1);
	send(p, EVENT_MAP, 1, 0x5000, 101);
	send(p, EVENT_MAP, 2, 0x5065, 33);
	assert_int_equal(profile_totals(p)->live_bytes, 134);
	send(p, EVENT_UNMAP, 0, 0x5060, 38); /* 5 of the first, all of the second */
	assert_int_equal(profile_totals(p)->live_bytes, 96);
	assert_int_equal(profile_leaf(p, 1)->live_bytes, 96);
	assert_int_equal(profile_leaf(p, 2)->live_bytes, 0);
	assert_int_equal(profile_leaf(p, 2)->calls, 1);
	profile_free(p);
}

static void test_count(void **state)
{
	(void)state;
	struct profile *p = new_profile(0);
	for (int i = 0; i < 3; i++)
		send(p, EVENT_COUNT, 1, 0x7000, P); /* the same page may fault again */
	send(p, EVENT_COUNT, 2, 0x7000, P);
	assert_int_equal(profile_leaf(p, 1)->live_bytes, 3 * P);
	assert_int_equal(profile_leaf(p, 1)->total_blocks, 3);
	assert_int_equal(profile_totals(p)->live_bytes, 4 * P);
	struct profile *copy = profile_clone(p);
	profile_check(copy);
	profile_free(copy);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mmap), cmocka_unit_test(test_code), cmocka_unit_test(test_munmap), cmocka_unit_test(test_mremap),
		cmocka_unit_test(test_brk), cmocka_unit_test(test_objects), cmocka_unit_test(test_fault_record),
		cmocka_unit_test(test_bytes), cmocka_unit_test(test_count),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
