/*
 * Finding system call instructions in files, and breakpoints at them.
 *
 *	bytes that look like one -> the function around -> decoded from its start
 *	   nothing known, or does not decode:    the file is not whole
 *	   a gap between functions:              data if it does not decode; if it does, it must
 *	                                         be a call of no interest
 *	   in the middle of an instruction:      nothing
 *	   a system call:                        a site, with its number if that is known
 *
 * The second pass, only over functions with sites, knows where branches of others
 * enter them (parts that a compiler moved elsewhere jump back).
 */
#include "target/syscall_sites.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/elf_functions.h"
#include "base/log.h"
#include "target/ptrace.h"
#include "target/stub_area.h"
#include "target/thread.h"

#define STUB_ROOM 32u
#define SITES_MAX 1024 /* of one function */

/* -- in a file -- */

struct holder {
	size_t function;       /* index into starts */
	VEC(uint32_t) entries; /* where branches of others enter it */
};

struct search {
	const struct arch *arch;
	struct elf_file *file;
	struct elf_functions functions;
	uint8_t **bytes;       /* by segment, of those with code; owned */
	VEC(struct holder) holders; /* ascending */
	size_t current;        /* the function whose branches are looked at */
	struct syscall_sites *out;
};

/* The last function that starts at or before @vaddr; SIZE_MAX if none. */
static size_t find_function(const struct search *s, uint64_t vaddr)
{
	size_t low = 0, high = s->functions.list.count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		if (s->functions.list.data[mid].start <= vaddr)
			low = mid + 1;
		else
			high = mid;
	}
	return low - 1;
}

static bool is_gap(const struct search *s, size_t function)
{
	return s->functions.list.data[function].kind == ELF_GAP;
}

/*
 * A gap is read together with the function before it:
 * its end may have been said too early (glibc's clone3).
 */
static struct arch_code code_of(const struct search *s, size_t function)
{
	const struct elf_function *f = &s->functions.list.data[function];
	uint64_t start = f->start, end = f->end;
	const struct elf_segment *seg = elf_file_segment(s->file, start);
	const uint8_t *bytes = s->bytes[seg - s->file->segment];

	if (function > 0 && is_gap(s, function) && f[-1].end == start && f[-1].start >= seg->vaddr)
		start = f[-1].start;
	return (struct arch_code){.bytes = bytes ? bytes + (start - seg->vaddr) : NULL,
				  .size = bytes ? end - start : 0, .at = start};
}

static void consider_function(struct search *s, size_t function)
{
	const struct arch_code code = code_of(s, function);
	ssize_t n = code.bytes ? s->arch->find_syscalls(&code, NULL, 0) : -EINVAL;


	if (!is_gap(s, function) && n < 0)
		s->out->is_whole = false;
	if (n > 0)
		*vec_add(&s->holders) = (struct holder){.function = function};
}

static void find_holders(struct search *s, const struct elf_segment *seg)
{
	const struct arch *a = s->arch;
	const uint8_t *bytes = s->bytes[seg - s->file->segment], *p = bytes;
	size_t last = SIZE_MAX;

	if (!bytes) {
		s->out->is_whole = false;
		return;
	}
	while ((p = memmem(p, (size_t)(bytes + seg->filesz - p), a->syscall_insn,
			   a->syscall_insn_size))) {
		uint64_t vaddr = seg->vaddr + (uint64_t)(p - bytes);
		size_t function = find_function(s, vaddr);
		if (function == SIZE_MAX || s->functions.list.data[function].end <= vaddr)
			s->out->is_whole = false;
		else if (function != last && s->functions.list.data[function].kind != ELF_NO_CODE)
			consider_function(s, function);
		last = function;
		p++;
	}
}

static void note_entry(void *ctx, taddr_t target)
{
	struct search *s = ctx;
	size_t function = find_function(s, target), low = 0, high = s->holders.count;

	if (function == SIZE_MAX || s->functions.list.data[function].start == target)
		return;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		if (s->holders.data[mid].function < function)
			low = mid + 1;
		else
			high = mid;
	}
	if (low < s->holders.count && s->holders.data[low].function == function)
		*vec_add(&s->holders.data[low].entries) =
			(uint32_t)(target - code_of(s, function).at);
}

static void find_entries(struct search *s)
{
	for (size_t i = 0; i < s->functions.list.count; i++) {
		const struct arch_code code = code_of(s, i);
		if (code.bytes)
			s->arch->each_branch_out(&code, note_entry, s);
	}
}

static void take_holder(struct search *s, const struct holder *h)
{
	struct arch_code code = code_of(s, h->function);
	_cleanup_free_ struct arch_syscall *found = xcalloc(SITES_MAX, sizeof(*found));

	code.entry = h->entries.data;
	code.entry_count = h->entries.count;
	ssize_t n = s->arch->find_syscalls(&code, found, SITES_MAX);
	if ((n < 0 && !is_gap(s, h->function)) || n > SITES_MAX)
		s->out->is_whole = false;
	for (ssize_t i = 0; i < MIN(n, SITES_MAX); i++) {
		uint64_t vaddr = code.at + found[i].offset;
		bool may_matter = found[i].number == ARCH_SYSCALL_ANY ||
				  mapping_is_watched(found[i].number);
		if (vaddr < s->functions.list.data[h->function].start)
			continue;
		if (is_gap(s, h->function) && may_matter)
			s->out->is_whole =
				false; /* it may be data, where a breakpoint would do harm */
		else
			*vec_add(&s->out->list) = (struct syscall_site){vaddr, found[i].number};
	}
}

void syscall_sites_find(const struct arch *arch, struct elf_file *file, struct syscall_sites *out)
{
	struct search s = {.arch = arch, .file = file, .out = out};

	*out = (struct syscall_sites){.is_whole = true};
	elf_functions_find(file, &s.functions);
	s.bytes = xcalloc(file->segment_count + 1, sizeof(*s.bytes));
	for (size_t i = 0; i < file->segment_count; i++) {
		const struct elf_segment *seg = &file->segment[i];
		if (!seg->is_exec)
			continue;
		s.bytes[i] = elf_file_read(file, seg->offset, seg->filesz);
		find_holders(&s, seg);
	}
	if (s.holders.count > 0)
		find_entries(&s);
	for (size_t i = 0; i < s.holders.count; i++) {
		take_holder(&s, &s.holders.data[i]);
		vec_deinit(&s.holders.data[i].entries);
	}
	vec_deinit(&s.holders);
	for (size_t i = 0; i < file->segment_count; i++)
		free(s.bytes[i]);
	free(s.bytes);
	vec_deinit(&s.functions.list);
}

/* -- in a space -- */

void syscall_sites_prepare(const struct target *t, struct module *m)
{
	if (!m->file || m->is_vdso || m->syscalls)
		return;
	m->syscalls = xcalloc(1, sizeof(*m->syscalls));
	syscall_sites_find(t->arch, m->file, m->syscalls);
	log_debug("%s: %zu system call instructions%s", m->path, m->syscalls->list.count,
		  m->syscalls->is_whole ? "" : ", and perhaps more");
}

/* Watches every call of @s from now on: threads that run do so from their next stop on. */
static void watch_all(struct target *t, struct space *s, const char *why)
{
	if (s->stops_at_all)
		return;
	log_verbose("process %d stops at every system call: %s holds system call instructions that "
		    "nobody can tell from "
		    "data",
		    s->pid, why);
	s->stops_at_all = true;
	t->must_restart = true;
}

static int install_site(struct target *t, struct thread *th, struct space *s,
			const struct module *m, taddr_t addr)
{
	const struct stub_place place = {t, th, s, m};
	struct trap trap = {.kind = TRAP_SYSCALL, .addr = addr, .module = m->id, .entry = addr};
	uint8_t bytes[sizeof(t->arch->syscall_insn)], stub[STUB_ROOM];
	int rc = space_read(s, addr, bytes, t->arch->syscall_insn_size);

	if (rc == 0 && memcmp(bytes, t->arch->syscall_insn, t->arch->syscall_insn_size) != 0)
		rc = -ENOEXEC; /* not what the file says */
	if (rc == 0)
		rc = stub_area_take(&place, addr, sizeof(stub), &trap.stub.jump);
	if (rc == 0) {
		trap.stub.size = (uint32_t)t->arch->make_syscall_stub(addr, trap.stub.jump, stub,
								      sizeof(stub));
		rc = trap.stub.size > 0 ? space_write(s, trap.stub.jump, stub, trap.stub.size) :
					  -ERANGE;
	}
	return rc != 0 ? rc : space_trap_put(s, t->arch, &trap);
}

void syscall_sites_install(struct target *t, struct thread *th, struct space *s, struct module *m)
{
	if (m->is_vdso || s->stops_at_all)
		return;
	syscall_sites_prepare(t, m);
	if (!m->syscalls || !m->syscalls->is_whole)
		watch_all(t, s, m->path);
	for (size_t i = 0; m->syscalls && i < m->syscalls->list.count && !s->stops_at_all; i++) {
		const struct syscall_site *site = &m->syscalls->list.data[i];
		taddr_t addr = m->bias + site->vaddr;
		if (site->number != ARCH_SYSCALL_ANY && !syscalls_is_wanted(t, site->number))
			continue;
		if (space_trap_find(s, addr))
			continue;
		int rc = install_site(t, th, s, m, addr);
		if (rc != 0) {
			log_verbose("the system call at %#lx in %s gets no breakpoint: %s",
				    (unsigned long)addr, m->path, strerror(-rc));
			watch_all(t, s, m->path);
		}
	}
}

static bool has_syscall_insn(const struct target *t, const struct space *s, taddr_t start,
			     taddr_t end)
{
	enum { CHUNK = 65536 };
	_cleanup_free_ uint8_t *buf = xmalloc(CHUNK);
	size_t overlap = t->arch->syscall_insn_size - 1u;

	for (taddr_t at = start; at < end; at += CHUNK - overlap) {
		ssize_t n = space_read_some(s, at, buf, MIN((uint64_t)CHUNK, end - at));
		if (n > 0 &&
		    memmem(buf, (size_t)n, t->arch->syscall_insn, t->arch->syscall_insn_size))
			return true;
	}
	return false;
}

static bool is_ours(const struct space *s, const struct map *m)
{
	for (size_t i = 0; i < s->areas.count; i++) {
		if (s->areas.data[i].start >= m->start && s->areas.data[i].start < m->end)
			return true;
	}
	return false;
}

void syscall_sites_check_code(struct target *t, struct space *s)
{
	for (size_t i = 0; i < s->code.count && !s->stops_at_all; i++) {
		const struct map *m = &s->code.data[i];
		if (!is_ours(s, m) && strcmp(m->path, "[vsyscall]") != 0 &&
		    has_syscall_insn(t, s, m->start, m->end))
			watch_all(t, s, *m->path ? m->path : "code that it made itself");
	}
}

/* Where the code that a thread at @pc runs really stands: @pc, but in a stub of a site. */
static taddr_t real_pc(const struct target *t, const struct space *s, taddr_t pc)
{
	for (size_t i = 0; i < s->traps.count; i++) {
		const struct trap *trap = &s->traps.data[i];
		if (trap->kind == TRAP_SYSCALL &&
		    pc - trap->stub.jump <= t->arch->syscall_insn_size)
			return trap->addr + (pc - trap->stub.jump);
	}
	return pc;
}

void syscall_sites_leave(struct target *t, struct space *s)
{
	struct arch_regs regs;

	for (size_t i = 0; i < t->threads.capacity; i++) {
		struct thread *th = t->threads.data[i];
		if (!th || th->process->space != s || ptrace_get_regs(th->tid, &regs) != 0)
			continue;
		taddr_t pc = regs.word[t->arch->pc], real = real_pc(t, s, pc);
		th->syscall.site = 0;
		if (real != pc)
			ptrace_set_word(th->tid, t->arch->pc, real);
	}
}
