/*
 * The memory of a forked child with a used heap, as it is and with words of its arenas, chunks and
 * lists changed at random: nothing crashes or hangs, and the rows always add up.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "inspect/inspect.h"
#include "rounds.h"

#define MUTATIONS 80u
#define BLOCKS 3000u
#define LARGE 3u /* blocks with mappings of their own */
#define LARGE_SIZE (40u << 20)

/* A copy of the child's pages that count. */
struct image {
	struct inspect_input in;
	uint8_t **part;         /* by range of in.resident */
};

/* glibc's own, where a sanitizer takes the place of malloc */
void *__libc_malloc(size_t size);
void __libc_free(void *block);

static void *block[BLOCKS], *volatile large[LARGE];

/* As the heap of a Java program can be: what begins like a chunk of its own mapping at some pages. */
static void add_false_chunks(void)
{
	const size_t size = 64u << 20, page = 4096;
	uint8_t *p = mmap((void *)0x200000000000, size, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

	if (p == MAP_FAILED || mprotect(p, size / 4, PROT_READ | PROT_WRITE) != 0)
		_exit(2);
	memcpy(p + 3 * page, &(uint64_t[2]){0, (size / 2) | 2}, 16);
	memcpy(p + 5 * page, &(uint64_t[2]){0, (17 * page) | 2}, 16);
	memcpy(p + 9 * page, &(uint64_t[2]){0, 0x200000002}, 16);
}

static void use_heap(void)
{
	add_false_chunks();
	for (size_t i = 0; i < LARGE; i++)
		large[i] = __libc_malloc(LARGE_SIZE);
	for (size_t i = 0; i < BLOCKS; i++)
		block[i] = __libc_malloc(24 + i * 37 % 2000);
	for (size_t i = 0; i < BLOCKS; i++)
		if (i % 5)
			__libc_free(block[i]);
}

static ssize_t read_image(void *ctx, taddr_t addr, void *buf, size_t size)
{
	const struct image *image = ctx;
	size_t i = resident_find(&image->in.resident, addr);
	const struct page_run *r = &image->in.resident.list.data[i];

	if (i == image->in.resident.list.count || r->start > addr || !image->part[i])
		return -1;
	size = MIN(size, r->end - addr);
	memcpy(buf, image->part[i] + (addr - r->start), size);
	return (ssize_t)size;
}

static void gather_image(void *ctx, const taddr_t *addr, size_t count, size_t each, void *buf)
{
	memset(buf, 0, count * each);
	for (size_t i = 0; i < count; i++)
		read_image(ctx, addr[i], (uint8_t *)buf + i * each, each);
}

static void copy_pages(struct image *image, pid_t pid)
{
	image->part = calloc(image->in.resident.list.count, sizeof(*image->part));
	for (size_t i = 0; i < image->in.resident.list.count; i++) {
		const struct page_run *r = &image->in.resident.list.data[i];
		struct iovec there = {(void *)(uintptr_t)r->start, r->end - r->start};
		struct iovec here = {malloc(there.iov_len), there.iov_len};

		image->part[i] = here.iov_base;
		if (process_vm_readv(pid, &here, 1, &there, 1, 0) != (ssize_t)here.iov_len) {
			free(here.iov_base);
			image->part[i] = NULL;
		}
	}
}

static void take_image(struct image *image)
{
	int ready[2];
	char letter;

	*image = (struct image){.in.wants_types = true};
	assert_int_equal(pipe(ready), 0);
	pid_t pid = fork();

	if (pid == 0) {
		use_heap();
		if (write(ready[1], "x", 1) == 1)
			pause();
		_exit(1);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &letter, 1), 1);
	assert_int_equal(resident_read(pid, &image->in.resident), 0);
	copy_pages(image, pid);
	image->in.source = (struct memory_source){
		.read = read_image, .gather = gather_image, .ctx = image};
	for (size_t i = 0; i < image->in.resident.maps.list.count; i++) {
		const struct map *m = &image->in.resident.maps.list.data[i];

		if (m->is_write && !m->is_shared && *m->path == '/')
			*vec_add(&image->in.segments) =
				(struct inspect_segment){m->start, m->end, true};
	}
	/* its thread pointer is as ours, which fork leaves alone */
	*vec_add(&image->in.threads) = (struct glibc_thread){
		.tid = pid, .sp = (taddr_t)(uintptr_t)&letter,
		.thread_pointer = (taddr_t)(uintptr_t)__builtin_thread_pointer()};
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(ready[0]);
}

static void free_image(struct image *image)
{
	for (size_t i = 0; i < image->in.resident.list.count; i++)
		free(image->part[i]);
	free(image->part);
	inspect_input_deinit(&image->in);
}

static void check_sums(const struct image *image, const struct inspect_report *r)
{
	assert_int_equal(r->all.resident, image->in.resident.resident);
	assert_int_equal(r->all.swapped, image->in.resident.swapped);
	uint64_t blocks = r->mmapped_blocks;

	for (size_t i = 0; i < r->heaps.arenas.count; i++)
		blocks += r->heaps.arenas.data[i].live_blocks;
	for (size_t i = 0; i < r->types.list.count; i++)
		blocks -= r->types.list.data[i].blocks;
	assert_int_equal(blocks, 0);
}

static void test_whole(void **state)
{
	struct image image;
	struct inspect_report r;

	(void)state;
	take_image(&image);
	inspect_run(&image.in, &r);
	check_sums(&image, &r);
	assert_true(r.heaps.arenas.count >= 1);
	assert_true(r.heaps.arenas.data[0].live_blocks >= BLOCKS / 5);
	assert_true(inspect_is_consistent(&r));
	assert_true(r.is_mmapped_complete);
	assert_true(r.mmapped_blocks >= LARGE);
	assert_true(r.mmapped_bytes >= LARGE * (uint64_t)LARGE_SIZE);
	assert_true(r.mmapped_bytes < (LARGE + 1) * (uint64_t)LARGE_SIZE);
	inspect_report_deinit(&r);
	free_image(&image);
}

/* A word of the heap, or of the range with the main arena. */
static uint64_t *pick_word(struct image *image, taddr_t arena)
{
	for (;;) {
		size_t i = (size_t)rand() % image->in.resident.list.count;
		const struct page_run *r = &image->in.resident.list.data[i];
		const struct map *m = maps_find(&image->in.resident.maps, r->start);

		if (!image->part[i])
			continue;
		if (rand() % 2 && arena >= r->start && arena < r->end)
			return (uint64_t *)(image->part[i] + (arena - r->start) +
					    8 * ((size_t)rand() % 270));
		if (strcmp(m->path, "[heap]") == 0)
			return (uint64_t *)(image->part[i] +
					    8 * ((size_t)rand() % ((r->end - r->start) / 8)));
	}
}

static uint64_t pick_value(uint64_t old)
{
	switch (rand() % 7) {
	case 0: return 0;
	case 1: return UINT64_MAX;
	case 2: return old + 16;
	case 3: return old ^ UINT64_C(1) << rand() % 64;
	case 4: return old - 16;
	case 5: return (uint64_t)rand() << 4;
	default: return old ^ 1;
	}
}

static void mutate(struct image *image, taddr_t arena)
{
	struct { uint64_t *word, old; } changed[16];
	size_t count = 1 + (size_t)rand() % ARRAY_SIZE(changed);
	struct inspect_report r;

	for (size_t i = 0; i < count; i++) {
		uint64_t *word = pick_word(image, arena);

		changed[i].word = word;
		changed[i].old = *word;
		*word = pick_value(*word);
	}
	inspect_run(&image->in, &r);
	check_sums(image, &r);
	inspect_report_deinit(&r);
	while (count-- > 0)
		*changed[count].word = changed[count].old;
}

static void test_mutations(void **state)
{
	struct image image;
	struct inspect_report r;

	(void)state;
	take_image(&image);
	inspect_run(&image.in, &r);
	taddr_t arena = r.heaps.arenas.data[0].addr;

	inspect_report_deinit(&r);
	srand(1);
	for (unsigned i = 0; i < rounds(MUTATIONS); i++)
		mutate(&image, arena);
	free_image(&image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),
		cmocka_unit_test(test_mutations),
	};

	(void)setrlimit(RLIMIT_CPU, &(struct rlimit){ 120, 120 }); /* an infinite loop fails */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
