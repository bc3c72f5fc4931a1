/*
 * Finding system call instructions in files, and breakpoints at them.
 *
 *	bytes that look like one -> the function around -> decoded from its start
 *	   nothing known, or does not decode:    the result is incomplete
 *	   a gap between functions, or code      if it decodes, it must be an irrelevant call;
 *	   nothing is known about:               if not, code around it must not lead there
 *	   in the middle of an instruction:      ignored
 *	   a system call:                        a site, with its number if that is known
 *
 * The second pass, only over functions with sites, knows where other functions branch into them
 * (parts that a compiler moved elsewhere jump back), and follows numbers that callers pass
 * (syscall_sites.h).
 */
#include "tracee/syscalls/syscall_sites.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "tracee/inject/stub_area.h"
#include "tracee/os/maps.h"
#include "tracee/os/ptrace.h"
#include "tracee/state/module.h"
#include "tracee/state/space.h"
#include "tracee/state/target_state.h"
#include "tracee/state/thread.h"
#include "tracee/state/trap_table.h"
#include "tracee/syscalls/mapping.h"

#define STUB_ROOM 32u
#define SITES_MAX 1024 /* of one function */

/* -- in a file -- */

struct site_search {
	struct syscall_text text;
	struct syscall_known known;
	VEC(size_t) holders;   /* functions, ascending */
	size_t last;           /* the last function considered */
	bool is_unread;        /* a gap that does not decode */
	struct syscall_sites *out;
};

static bool is_gap(const struct site_search *s, size_t function)
{
	return s->text.functions.list.data[function].kind == ELF_GAP;
}

static void consider_function(struct site_search *s, size_t function)
{
	const struct arch_code code = syscall_text_code(&s->text, function);
	ssize_t n = code.bytes ? s->text.arch->find_syscalls(&code, NULL, 0) : -EINVAL;

	s->last = function;
	s->is_unread = is_gap(s, function) && n < 0;
	if (!is_gap(s, function) && n < 0)
		s->out->is_whole = false;
	if (n > 0)
		*vec_add(&s->holders) = function;
}

/* Bytes at @vaddr in a gap that does not decode: data, or code that follows data. */
static void consider_unread(struct site_search *s, uint64_t vaddr)
{
	const struct arch_code code = syscall_text_code(&s->text, s->last);

	if (!code.bytes || s->text.arch->is_likely_syscall(&code, vaddr - code.at))
		s->out->is_whole = false;
}

static void find_holders(struct site_search *s, size_t segment)
{
	const struct arch *a = s->text.arch;
	const struct elf_segment *seg = &s->text.file->segment[segment];
	const uint8_t *bytes = s->text.bytes[segment], *p = bytes;

	if (!bytes) {
		s->out->is_whole = false;
		return;
	}
	while (s->out->is_whole && (p = memmem(p, (size_t)(bytes + seg->filesz - p),
					       a->syscall_insn,
			   a->syscall_insn_size))) {
		uint64_t vaddr = seg->vaddr + (uint64_t)(p - bytes);
		size_t function = syscall_text_function(&s->text, vaddr);
		const struct elf_function *f = syscall_text_holder(&s->text, vaddr);
		if (!f)
			s->out->is_whole = false;
		else if (function != s->last && f->kind != ELF_NO_CODE)
			consider_function(s, function);
		if (f && function == s->last && s->is_unread)
			consider_unread(s, vaddr);
		p++;
	}
}

/* The numbers that the callers of @function pass for @found; none: unknown. */
static void add_numbers(struct site_search *s, size_t function, const struct arch_syscall *found,
			struct syscall_site *site)
{
	struct syscall_numbers numbers = {0};

	if (found->number == ARCH_SYSCALL_ANY &&
	    syscall_callers_numbers(&s->text, &s->known, function, found->value, &numbers)) {
		site->first = s->out->numbers.count;
		site->count = numbers.list.count;
		vec_append(&s->out->numbers, &numbers.list);
	}
	vec_deinit(&numbers.list);
}

static void take_site(struct site_search *s, size_t function, taddr_t vaddr,
		      const struct arch_syscall *found)
{
	struct syscall_site site = {.vaddr = vaddr, .number = found->number};

	/* it may be data, where a breakpoint would do harm */
	if (is_gap(s, function) &&
	    (site.number == ARCH_SYSCALL_ANY || mapping_is_watched(site.number) ||
	     mapping_may_make_code(site.number))) {
		s->out->is_whole = false;
		return;
	}
	add_numbers(s, function, found, &site);
	*vec_add(&s->out->list) = site;
}

static void take_holder(struct site_search *s, size_t function)
{
	const struct elf_function *f = &s->text.functions.list.data[function];
	struct arch_code code = syscall_text_code(&s->text, function);
	_cleanup_free_ uint32_t *entries = syscall_text_entries(&s->text, &code);
	_cleanup_free_ struct arch_syscall *found = xcalloc(SITES_MAX, sizeof(*found));
	ssize_t n = s->text.arch->find_syscalls(&code, found, SITES_MAX);

	(void)entries;
	if ((n < 0 && !is_gap(s, function)) || n > SITES_MAX)
		s->out->is_whole = false;
	for (ssize_t i = 0; i < MIN(n, SITES_MAX); i++) {
		if (code.at + found[i].offset >= f->start)
			take_site(s, function, code.at + found[i].offset, &found[i]);
	}
}

void syscall_sites_find(const struct arch *arch, struct elf_file *file, struct syscall_sites *out)
{
	struct site_search s = {.last = SIZE_MAX, .out = out};

	*out = (struct syscall_sites){.is_whole = true};
	syscall_text_init(arch, file, &s.text);
	for (size_t i = 0; i < file->segment_count; i++) {
		if (file->segment[i].is_exec)
			find_holders(&s, i);
	}
	if (s.holders.count > 0 && out->is_whole)
		syscall_text_link(&s.text);
	for (size_t i = 0; i < s.holders.count && out->is_whole; i++)
		take_holder(&s, s.holders.data[i]);
	vec_deinit(&s.holders);
	syscall_known_deinit(&s.known);
	syscall_text_deinit(&s.text);
}

void syscall_sites_deinit(struct syscall_sites *s)
{
	vec_deinit(&s->list);
	vec_deinit(&s->numbers);
}

bool syscall_site_may_call(const struct syscall_sites *s, const struct syscall_site *site,
			   bool (*is_wanted)(const void *ctx, long number), const void *ctx)
{
	if (site->number != ARCH_SYSCALL_ANY)
		return is_wanted(ctx, site->number);
	for (size_t i = 0; i < site->count; i++) {
		if (is_wanted(ctx, s->numbers.data[site->first + i]))
			return true;
	}
	return site->count == 0;
}

/* -- in a space -- */

static void free_sites(struct syscall_sites *s)
{
	syscall_sites_deinit(s);
	free(s);
}

void syscall_sites_prepare(const struct target *t, struct module *m)
{
	if (!m->file || m->is_vdso || m->syscalls)
		return;
	m->syscalls = xcalloc(1, sizeof(*m->syscalls));
	m->free_syscalls = free_sites;
	syscall_sites_find(t->arch, m->file, m->syscalls);
	log_debug("%s: %zu system call instructions%s", m->path, m->syscalls->list.count,
		  m->syscalls->is_whole ? "" : ", and perhaps more");
}

/* Watches every call of @s from now on: running threads do so from their next stop on. */
static void watch_all(struct target *t, struct address_space *s, const char *why)
{
	if (s->syscalls.stops_at_all)
		return;
	log_verbose("process %d stops at every system call: %s may hold system call instructions "
		    "that cannot be distinguished from data",
		    s->processes.pid, why);
	s->syscalls.stops_at_all = true;
	t->loop.must_restart = true;
}

static int install_site(struct target *t, struct thread *th, struct address_space *s,
			const struct module *m, taddr_t addr)
{
	const struct stub_place place = {t, th, s, m};
	struct trap trap = {
		.kind = TRAP_SYSCALL,
		.serve = t->hooks.serve_site,
		.addr = addr,
		.module = m->id,
		.entry = addr,
	};
	uint8_t bytes[sizeof(t->arch->syscall_insn)], stub[STUB_ROOM];
	int rc = space_read(s, addr, bytes, t->arch->syscall_insn_size);

	if (rc == 0 && memcmp(bytes, t->arch->syscall_insn, t->arch->syscall_insn_size) != 0)
		rc = -ENOEXEC; /* differs from the file */
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

static bool is_wanted(const void *target, long number)
{
	const struct target *t = target;
	return mapping_is_wanted(&t->options, number) || mapping_may_make_code(number);
}

void syscall_sites_install(struct target *t, struct thread *th, struct address_space *s,
			   struct module *m)
{
	if (m->is_vdso || s->syscalls.stops_at_all)
		return;
	syscall_sites_prepare(t, m);
	if (!m->syscalls || !m->syscalls->is_whole)
		watch_all(t, s, m->path);
	size_t count = m->syscalls ? m->syscalls->list.count : 0;
	for (size_t i = 0; i < count && !s->syscalls.stops_at_all; i++) {
		const struct syscall_site *site = &m->syscalls->list.data[i];
		taddr_t addr = m->bias + site->vaddr;
		if (!syscall_site_may_call(m->syscalls, site, is_wanted, t))
			continue;
		if (space_trap_find(s, addr) || space_in_other_module(s, m, addr))
			continue;
		int rc = install_site(t, th, s, m, addr);
		if (rc != 0) {
			log_verbose("the system call at %#lx in %s gets no breakpoint: %s",
				    (unsigned long)addr, m->path, strerror(-rc));
			watch_all(t, s, m->path);
		}
	}
}

static bool has_syscall_insn(const struct target *t, const struct address_space *s, taddr_t start,
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

static bool is_ours(const struct address_space *s, const struct map *m)
{
	for (size_t i = 0; i < s->own.areas.count; i++) {
		if (s->own.areas.data[i].start >= m->start && s->own.areas.data[i].start < m->end)
			return true;
	}
	return false;
}

/*
 * @m belongs to no object. Memory that can be written, here or through another mapping, may hold
 * anything later.
 */
static void check_map(struct target *t, struct address_space *s, const struct map *m)
{
	if (!is_ours(s, m) && strcmp(m->path, "[vsyscall]") != 0 &&
	    (m->is_write || m->is_shared || has_syscall_insn(t, s, m->start, m->end)))
		watch_all(t, s, *m->path ? m->path : "code that it made itself");
}

void syscall_sites_check_code(struct target *t, struct address_space *s)
{
	for (size_t i = 0; i < s->modules.code.count && !s->syscalls.stops_at_all; i++)
		check_map(t, s, &s->modules.code.data[i]);
}

/*
 * A file that may be an object: code in a memfd (memfd_create(2)) is generated by the program,
 * too.
 */
static bool is_object(const struct map *m)
{
	return m->path[0] == '/' && !m->is_shared && !m->is_write && !m->is_deleted;
}

void syscall_sites_check_made(struct target *t, struct address_space *s, struct mapping_range made)
{
	struct maps maps;

	if (mapping_is_empty(made) || maps_read(s->processes.reader, &maps) != 0)
		return;
	for (size_t i = 0; i < maps.list.count && !s->syscalls.stops_at_all; i++) {
		const struct map *m = &maps.list.data[i];
		if (!m->is_exec || m->start >= made.end || m->end <= made.start)
			continue;
		if (space_find_module(s, m->start))
			watch_all(t, s, m->path); /* its text may differ from its file */
		else if (!is_object(m))
			check_map(t, s, m);
	}
	maps_deinit(&maps);
}

void syscall_sites_leave(struct target *t, struct address_space *s)
{
	struct arch_regs regs;
	struct thread *th;

	for_each_thread_in(t, s, th) {
		if (ptrace_get_regs(th->tid, &regs) != 0)
			continue;
		taddr_t pc = regs.word[t->arch->pc], real = space_original_pc(s, t->arch, pc);
		syscall_state(th)->site = 0;
		if (real != pc)
			ptrace_set_word(th->tid, t->arch->pc, real);
	}
}
