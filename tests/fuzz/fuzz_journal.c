/*
 * A record of what ptmem changed, as a program's memory may hold it, with any numbers: it is refused, or what is
 * left of it is in this process, which has a page with the handler, an area after that, and a breakpoint in
 * its text.
 */
#include "tests/fuzz/fuzz.h"

#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "tracee/guard/guardian.h"
#include "tracee/state/journal.h"
#include "tracee/state/module.h"
#include "tracee/state/space.h"

#define PAGE 0x200000000000ull /* AddressSanitizer maps its shadow below, its heap above */
#define AREA (PAGE + HANDLER_SIZE)
#define AREA_SIZE 4096u
#define AREAS 3
#define TRAPS 4

/* Start of each of its parts. */
struct input {
	uint8_t head[offsetof(struct journal, area)];
	struct journal_area area[AREAS];
	struct journal_trap trap[TRAPS];
};

static const struct {
	struct journal head;
} no_traps = {
	.head = {.pid = 1, .has_handler = 1, .page = PAGE, .area_count = 2, .trap_count = TRAPS}};

/* Filled in by fuzz_one: values of this process are known only then. */
static struct input whole;
const struct fuzz_seed fuzz_seeds[] = {{(const char *)&whole, sizeof(whole)},
				       {(const char *)&no_traps, 256},
				       {0}};

/* Begins with a breakpoint; nothing calls it. */
__attribute__((noinline, used)) static void never_called(void)
{
	__asm__ volatile("int3");
}

static struct address_space *space;

static void set_up(void)
{
	uint8_t *page = mmap((void *)PAGE, HANDLER_SIZE + AREA_SIZE, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	CHECK(page == (void *)PAGE);
	arch_trap_handler_page(PAGE, page);
	CHECK(mprotect(page, HANDLER_SIZE + AREA_SIZE, PROT_READ | PROT_EXEC) == 0);
	memcpy(whole.head, &no_traps.head, sizeof(whole.head));
	whole.area[0] = (struct journal_area){.start = PAGE, .size = HANDLER_SIZE};
	whole.area[1] = (struct journal_area){.start = AREA, .size = AREA_SIZE};
	whole.trap[0] = (struct journal_trap){.addr = AREA + 16,
					      .resume = AREA + 17,
					      .patch_size = 1,
					      .kind = TRAP_RETURN};
	whole.trap[1] = (struct journal_trap){.addr = (taddr_t)(uintptr_t)never_called,
					      .resume = AREA,
					      .patch_size = 1};
	static struct registry registry;

	space = space_new(&registry, getpid());
	CHECK(space_update_modules(space, NULL, NULL, NULL) == 0);
	log_set_level(LOG_ERROR);
}

static bool is_mapped(taddr_t at)
{
	uint8_t byte;
	return space_read(space, at, &byte, 1) == 0;
}

static void check_rest(const struct journal *r)
{
	CHECK(r->page == PAGE && r->shared == 0);
	for (size_t i = 0; i < JOURNAL_INJECTIONS; i++)
		CHECK(r->injection[i] == 0);
	for (uint32_t i = 0; i < r->area_count; i++)
		CHECK(r->area[i].size == 0 || (is_mapped(r->area[i].start) &&
					       is_mapped(r->area[i].start + r->area[i].size - 1)));
	for (uint32_t i = 0; i < r->trap_count; i++)
		CHECK(r->trap[i].patch_size == 0 || is_mapped(r->trap[i].addr));
}

void fuzz_one(const uint8_t *data, size_t size)
{
	static struct journal r;
	struct input in;
	if (!space)
		set_up();
	memset(&in, 0, sizeof(in));
	memcpy(&in, data, MIN(size, sizeof(in)));
	memset(&r, 0, sizeof(r));
	memcpy(&r, in.head, sizeof(in.head));
	memcpy(r.area, in.area, sizeof(in.area));
	memcpy(r.trap, in.trap, sizeof(in.trap));
	if (!journal_find_flaw(&r, PAGE) && !journal_verify(&r, space, arch_native))
		check_rest(&r);
}
