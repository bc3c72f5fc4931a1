/* The table of requests: code, kind, and the meaning of each argument. */
#include "tracee/calls/client_request.h"

#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arch/pad.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "tracee/calls/calls.h"
#include "tracee/calls/confirm.h"
#include "tracee/calls/pools.h"
#include "tracee/os/ptrace.h"
#include "tracee/pads/heap_sampling.h"
#include "tracee/pads/pads.h"
#include "tracee/state/heap_event.h"
#include "tracee/state/journal.h"
#include "tracee/state/module.h"
#include "tracee/state/probe.h"
#include "tracee/state/space.h"
#include "tracee/state/target_state.h"
#include "tracee/state/thread.h"
#include "tracee/state/trap_table.h"
#include "unwind/unwind.h"

/* Arguments are numbered from 1; 0: not present. */
static const struct request_code {
	uint32_t code;
	uint8_t kind, addr, size, old_addr, pool, flags, text;
} rows[] = {
	{.code = 0x1001, .kind = REQUEST_IS_RUNNING},
	{.code = 0x1202, .kind = REQUEST_MONITOR, .text = 1},
	{.code = 0x1301, .kind = REQUEST_ALLOC, .addr = 1, .size = 2},
	{.code = 0x1302, .kind = REQUEST_FREE, .addr = 1},
	{.code = 0x130b, .kind = REQUEST_RESIZE, .addr = 1, .size = 3},
	{.code = 0x1303, .kind = REQUEST_POOL_CREATE, .pool = 1, .flags = 4},
	{.code = 0x1304, .kind = REQUEST_POOL_DESTROY, .pool = 1},
	{.code = 0x1305, .kind = REQUEST_POOL_ALLOC, .pool = 1, .addr = 2, .size = 3},
	{.code = 0x1306, .kind = REQUEST_POOL_FREE, .pool = 1, .addr = 2},
	{.code = 0x1307, .kind = REQUEST_POOL_TRIM, .pool = 1, .addr = 2, .size = 3},
	{.code = 0x1308, .kind = REQUEST_POOL_MOVE, .pool = 1, .addr = 2},
	{.code = 0x1309,
	 .kind = REQUEST_POOL_CHANGE,
	 .pool = 1,
	 .old_addr = 2,
	 .addr = 3,
	 .size = 4},
	{.code = 0x130a, .kind = REQUEST_POOL_EXISTS, .pool = 1},
};

static uint64_t argument(const uint64_t *word, uint8_t i)
{
	return i ? word[i] : 0;
}

struct request request_decode(const uint64_t word[REQUEST_WORDS])
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct request_code *r = &rows[i];
		if (r->code != word[0])
			continue;
		return (struct request){
			.kind = r->kind,
			.addr = argument(word, r->addr),
			.size = argument(word, r->size),
			.old_addr = argument(word, r->old_addr),
			.pool = argument(word, r->pool),
			.flags = argument(word, r->flags),
			.text = argument(word, r->text),
		};
	}
	return (struct request){.kind = REQUEST_NONE};
}

/*
 * Finds markers in files, and parses their notes. Files are untrusted: invalid entries are
 * skipped.
 */

#define NOTE_PROBE 3 /* the type of a note, version 3 of the format */
#define CHUNK (64u << 10) /* of a larger buffer each page would be new for each file */

/* -- client requests -- */

void marker_scan(const struct arch *arch, const uint8_t *data, size_t size,
		 void (*fn)(void *ctx, size_t offset), void *ctx)
{
	const uint8_t *at = data, *end = data + size;
	while ((at = memmem(at, (size_t)(end - at), arch->marker, arch->marker_size))) {
		fn(ctx, (size_t)(at - data));
		at += arch->marker_size;
	}
}

struct text_scan {
	struct marker_list *out;
	uint64_t vaddr; /* offset of the chunk's first byte */
};

static void add_request(void *ctx, size_t offset)
{
	struct text_scan *scan = ctx;
	*vec_add(&scan->out->list) =
		(struct marker){.vaddr = scan->vaddr + offset, .kind = MARKER_REQUEST};
}

/* Chunks overlap by less than a marker, so each is found once. */
static void scan_segment(const struct elf_file *file, const struct arch *arch,
			 const struct elf_segment *seg, struct marker_list *out)
{
	size_t overlap = arch->marker_size - 1u;
	_cleanup_free_ uint8_t *buf = xmalloc(MIN(seg->filesz, (uint64_t)CHUNK));
	for (uint64_t done = 0; done < seg->filesz; done += CHUNK - overlap) {
		size_t want = MIN(seg->filesz - done, (uint64_t)CHUNK);
		ssize_t n = pread(file->fd, buf, want, (off_t)(seg->offset + done));
		if (n <= 0)
			return;
		struct text_scan scan = {out, seg->vaddr + done};
		marker_scan(arch, buf, (size_t)n, add_request, &scan);
	}
}

/* -- notes -- */

/* The zero-terminated text at *@at of @size bytes; advances *@at. NULL if it is not terminated. */
static const char *take_text(const uint8_t *desc, size_t size, size_t *at)
{
	const char *text = (const char *)desc + *at;
	const uint8_t *zero = *at < size ? memchr(desc + *at, 0, size - *at) : NULL;
	if (!zero)
		return NULL;
	*at = (size_t)(zero - desc) + 1;
	return text;
}

static bool find_kind(const char *provider, const char *name, uint8_t *out)
{
	if (strcmp(provider, "ptmem") != 0 && strcmp(provider, "otel_memory") != 0)
		return false;
	*out = strcmp(name, "alloc") == 0 ? MARKER_ALLOC : MARKER_FREE;
	return *out == MARKER_ALLOC || strcmp(name, "free") == 0;
}

/* Bytes of the argument at @text: to a space that is not in brackets, as in 8@[sp, 16]. */
static size_t argument_size(const char *text)
{
	size_t size = strcspn(text, " ["), inside;
	while (text[size] == '[') {
		inside = strcspn(text + size, "]");
		size += inside;
		size += strcspn(text + size, " [");
	}
	return size;
}

static size_t count_arguments(const char *text)
{
	size_t count = 0;
	for (text += strspn(text, " "); *text; text += strspn(text, " "), count++)
		text += argument_size(text);
	return count;
}

/* Parses the first @count arguments, which are separated by spaces; there may be more. */
static int read_arguments(const struct arch *arch, const char *text,
			  struct arch_operand *const out[], size_t count)
{
	for (size_t i = 0; i < count; i++) {
		text += strspn(text, " ");
		size_t size = argument_size(text);
		if (size == 0)
			return -EINVAL;
		int rc = arch->parse_operand(text, size, out[i]);
		if (rc != 0)
			return rc;
		text += size;
	}
	return 0;
}

int marker_read_note(const struct arch *arch, const uint8_t *desc, size_t size, uint64_t base,
		     struct marker *out)
{
	uint64_t word[3];
	size_t at = sizeof(word);
	struct marker m = {0};
	if (size < sizeof(word))
		return -EINVAL;
	memcpy(word, desc, sizeof(word));
	const char *provider = take_text(desc, size, &at);
	const char *name = provider ? take_text(desc, size, &at) : NULL;
	const char *arguments = name ? take_text(desc, size, &at) : NULL;
	if (!arguments)
		return -EINVAL;
	if (!find_kind(provider, name, &m.kind))
		return -ENOENT;
	uint64_t moved = base && word[1] ? base - word[1] : 0;
	m.vaddr = word[0] + moved;
	m.semaphore = word[2] ? word[2] + moved : 0;
	struct arch_operand *const operands[] = {&m.block, &m.size, &m.weighted};
	m.has_weight = m.kind == MARKER_ALLOC && strcmp(provider, "otel_memory") == 0 &&
		       count_arguments(arguments) >= 3;
	if (read_arguments(arch, arguments, operands,
			   m.has_weight ? 3 : m.kind == MARKER_ALLOC ? 2 : 1) != 0)
		return -ENOTSUP;
	*out = m;
	return 0;
}

static bool has_name(const struct elf_file *file, const GElf_Shdr *sh, const char *wanted)
{
	size_t index;
	if (elf_getshdrstrndx(file->elf, &index) != 0)
		return false;
	const char *name = elf_strptr(file->elf, index, sh->sh_name);
	return name && strcmp(name, wanted) == 0;
}

/* State for reading the notes of one file. */
struct note_reader {
	const struct elf_file *file;
	const struct arch *arch;
	uint64_t base;           /* address of .stapsdt.base; 0 = the file has none */
	struct marker_list *out;
};

static void add_note(const struct note_reader *r, const uint8_t *desc, size_t size)
{
	struct marker m;
	int rc = marker_read_note(r->arch, desc, size, r->base, &m);
	if (rc == -ENOTSUP || (rc == 0 && !elf_file_is_code(r->file, m.vaddr)))
		r->out->unknown++;
	else if (rc == 0)
		*vec_add(&r->out->list) = m;
}

static void read_notes(const struct note_reader *r, Elf_Scn *scn)
{
	static const char owner[] = "stapsdt";
	Elf_Data *d = elf_getdata(scn, NULL);
	size_t pos = 0, name, desc;
	GElf_Nhdr note;
	while (d && d->d_buf && pos < d->d_size &&
	       (pos = gelf_getnote(d, pos, &note, &name, &desc)) > 0) {
		const uint8_t *bytes = d->d_buf;
		if (note.n_type == NOTE_PROBE && note.n_namesz == sizeof(owner) &&
		    memcmp(bytes + name, owner, sizeof(owner)) == 0)
			add_note(r, bytes + desc, note.n_descsz);
	}
}

static void find_notes(const struct elf_file *file, const struct arch *arch,
		       struct marker_list *out)
{
	struct note_reader r = {.file = file, .arch = arch, .out = out};
	GElf_Shdr sh;
	if (!elf_file_may_have_section(file->elf, ".note.stapsdt"))
		return;
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(file->elf, scn));) {
		if (gelf_getshdr(scn, &sh) && sh.sh_type == SHT_PROGBITS &&
		    has_name(file, &sh, ".stapsdt.base"))
			r.base = sh.sh_addr;
	}
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(file->elf, scn));) {
		if (gelf_getshdr(scn, &sh) && sh.sh_type == SHT_NOTE &&
		    has_name(file, &sh, ".note.stapsdt"))
			read_notes(&r, scn);
	}
}

/* -- both -- */

/* Symbols may overlap: the largest function is used, since all its branches matter. */
static int note_function(void *ctx, const struct elf_symbol *sym)
{
	struct marker_list *out = ctx;
	if (!sym->is_defined || sym->type != STT_FUNC || sym->size == 0)
		return 0;
	for (size_t i = vec_search(&out->list, e, e->vaddr < sym->vaddr); i < out->list.count;
	     i++) {
		struct marker *m = &out->list.data[i];
		if (m->vaddr - sym->vaddr >= sym->size)
			break;
		if (sym->size > m->function_size) {
			m->function = sym->vaddr;
			m->function_size = sym->size;
		}
	}
	return 0;
}

void marker_find(struct elf_file *file, const struct arch *arch, struct marker_list *out)
{
	*out = (struct marker_list){0};
	for (size_t i = 0; i < file->segment_count && file->fd >= 0; i++) {
		if (file->segment[i].is_exec)
			scan_segment(file, arch, &file->segment[i], out);
	}
	find_notes(file, arch, out);
	vec_sort(&out->list, taddr_compare);
	vec_merge(&out->list, !taddr_compare);
	if (out->list.count)
		elf_file_each_symbol(file, note_function, out);
}

bool marker_is_argument(const struct arch_operand *o, const struct arch *arch, unsigned i)
{
	return o->kind == OPERAND_REGISTER && o->base == arch->arg[i] && o->size == 8 &&
	       o->shift == 0;
}

int marker_value(const struct arch_operand *o, const struct arch_regs *regs, marker_read_fn *read,
		 void *ctx, uint64_t *out)
{
	uint64_t value = 0;
	if (o->kind == OPERAND_CONSTANT) {
		value = (uint64_t)o->value;
	} else if (o->kind == OPERAND_REGISTER) {
		value = regs->word[o->base] >> o->shift;
	} else {
		taddr_t addr = (uint64_t)o->value;
		if (o->base != ARCH_NO_REG)
			addr += regs->word[o->base];
		if (o->index != ARCH_NO_REG)
			addr += regs->word[o->index] * o->scale;
		int rc = read(ctx, addr, &value, o->size);
		if (rc != 0)
			return rc;
	}
	unsigned unused = 64 - 8u * o->size;
	value <<= unused;
	*out = o->is_signed ? (uint64_t)((int64_t)value >> unused) : value >> unused;
	return 0;
}

/*
 * Handles stops at markers; see client_request.h, and client_request.h for their kinds.
 *
 * The breakpoint of a client request is at the marker's first instruction, and the thread continues
 * after the last one: the skipped code has no effect (doc/massif.md 3). So a thread that was
 * inside a marker when ptmem attached made its request before. Frame 0 of an event is the marker's
 * own function, at the address after the marker.
 */

#define MONITOR_TEXT_MAX 4096u
#define FUNCTION_MAX (1u << 20)
/*
 * Maximum part of the guardian's record: it must have room for the breakpoints of functions found
 * later.
 */
#define JOURNAL_RESERVE 256u

static const struct probe marker_probe[MARKER_KIND_COUNT] = {
	[MARKER_REQUEST] = {.symbol = "a client request", .kind = PROBE_REQUEST},
	[MARKER_ALLOC] = {.symbol = "an alloc probe", .kind = PROBE_MARKED_ALLOC},
	[MARKER_FREE] = {.symbol = "a free probe", .kind = PROBE_MARKED_FREE},
};

/* -- events -- */

/* One stop at a marker. */
struct visit {
	struct target *target;
	struct thread *thread;
	struct address_space *space;
	taddr_t behind;               /* address of the marker */
	uint64_t weighted;            /* weighted bytes of the allocated block; 0 = its size */
	const struct arch_regs *regs;
};

static void fill_view(const struct visit *v, struct stack_view *view)
{
	stack_window_at_stop(v->target, v->thread, v->regs, view);
	/*
	 * walks subtract one from a return address: frame 0 must be the address after the marker
	 * itself
	 */
	view->regs.reg[v->target->arch->dwarf_pc] = v->behind + 1;
	view->is_stopped = false;
}

static struct heap_event new_event(const struct visit *v, enum heap_event_kind kind, taddr_t addr)
{
	const struct target *t = v->target;
	return (struct heap_event){
		.time_ns = t->now_ns, .thread = (uint32_t)v->thread->tid, .kind = (uint8_t)kind,
		.function = FUNCTION_REQUEST, .addr = addr,
		.sp = t->options.events.stack_pointers ? v->regs->word[t->arch->sp] : 0,
	};
}

static void emit(const struct visit *v, struct heap_event *ev, bool has_stack)
{
	const struct target *t = v->target;
	struct stack_view view;
	if (!v->space->watch.is_profiled || !v->space->watch.is_ready || t->is_abandoned)
		return;
	if (has_stack) {
		fill_view(v, &view);
		ev->stack = &view;
	}
	if (heap_sampling_see(v->target, v->space, ev))
		t->sink.event(t->sink.ctx, v->space, ev);
	ev->stack = NULL; /* the view must not be used any more */
}

static void on_block_added(void *ctx, taddr_t addr, uint64_t size)
{
	const struct visit *v = ctx;
	struct heap_event ev = new_event(v, HEAP_ALLOC, addr);
	ev.size = size;
	ev.weighted = v->weighted;
	emit(v, &ev, !v->target->options.events.no_stacks);
}

static void on_block_removed(void *ctx, taddr_t addr)
{
	const struct visit *v = ctx;
	struct heap_event ev = new_event(v, HEAP_FREE, addr);
	emit(v, &ev, v->target->options.events.free_stacks);
}

/* -- requests -- */

static void answer(const struct visit *v, uint64_t result)
{
	ptrace_set_word(v->thread->tid, v->target->arch->request_result, result);
}

/*
 * The text at @addr, truncated to MONITOR_TEXT_MAX; NULL if it cannot be read. The caller frees
 * it.
 */
static char *read_text(const struct address_space *s, taddr_t addr)
{
	_cleanup_free_ char *text = xcalloc(MONITOR_TEXT_MAX + 1, 1);
	size_t size = 0;
	while (size < MONITOR_TEXT_MAX) {
		ssize_t n = space_read_some(s, addr + size, text + size, MONITOR_TEXT_MAX - size);
		if (n <= 0)
			return NULL;
		size += (size_t)n;
		if (memchr(text, '\0', size)) {
			char *whole = text;
			text = NULL;
			return whole;
		}
	}
	return NULL;
}

/* 0: a known command; 1: an unknown one. */
static void serve_monitor(const struct visit *v, taddr_t addr)
{
	const struct event_sink *sink = &v->target->sink;
	if (!v->space->sink.user || !sink->monitor)
		return;
	_cleanup_free_ char *text = read_text(v->space, addr);
	answer(v, !text || !sink->monitor(sink->ctx, v->space, text));
}

static void serve_blocks(struct visit *v, const struct request *r)
{
	const struct pool_ops ops = {.come = on_block_added, .gone = on_block_removed, .ctx = v};
	struct address_space *s = v->space;
	if (!v->target->options.watch.mempools && request_is_of_pool(r))
		return;
	if (!s->heap.pools)
		s->heap.pools = xcalloc(1, sizeof(*s->heap.pools));
	bool exists = pools_apply(s->heap.pools, r, &ops);
	if (s->heap.pools->has_auto_free)
		pads_answer_blocks(s);
	if (r->kind == REQUEST_POOL_EXISTS)
		answer(v, exists);
}

/* Whether a call of an allocation function is in progress, which reports its blocks itself. */
static bool is_inside_call(const struct visit *v)
{
	struct target *t = v->target;
	struct thread *th = v->thread;
	struct pad_slot *slot = pads_slot(th);
	struct stack_view view;
	uint64_t word = 0;
	if (call_state_innermost(&th->calls)) {
		fill_view(v, &view);
		return call_is_nested(t, th, v->regs, &view);
	}
	if (!slot || !slot->return_at || v->regs->word[t->arch->sp] > slot->return_at ||
	    space_read(v->space, slot->return_at, &word, sizeof(word)) != 0 ||
	    word != slot->return_to)
		return false; /* none, or one that was left by a longjmp, or is being recorded */
	fill_view(v, &view);
	return !unwind_in_signal(v->space->sink.unwind, &view, pad_call_end(slot));
}

static void serve_request(struct visit *v)
{
	uint64_t word[REQUEST_WORDS];
	if (space_read(v->space, v->regs->word[v->target->arch->request_arg], word, sizeof(word)) !=
	    0)
		return;
	const struct request r = request_decode(word);
	if (r.kind == REQUEST_IS_RUNNING && v->target->options.running_on_valgrind)
		answer(v, 1);
	else if (r.kind == REQUEST_MONITOR)
		serve_monitor(v, r.text);
	else if (r.kind >= REQUEST_ALLOC && !is_inside_call(v))
		serve_blocks(v, &r);
}

/* -- probes of notes -- */

static int read_target(void *ctx, taddr_t addr, void *buf, size_t size)
{
	return space_read(ctx, addr, buf, size);
}

static void serve_note(struct visit *v, const struct marker *m)
{
	struct request r = {.kind = m->kind == MARKER_ALLOC ? REQUEST_ALLOC : REQUEST_FREE};
	if (marker_value(&m->block, v->regs, read_target, v->space, &r.addr) != 0 ||
	    (m->kind == MARKER_ALLOC &&
	     marker_value(&m->size, v->regs, read_target, v->space, &r.size) != 0) ||
	    (m->has_weight &&
	     marker_value(&m->weighted, v->regs, read_target, v->space, &v->weighted) != 0))
		return;
	if (!is_inside_call(v))
		serve_blocks(v, &r);
}

/* Reports the events and sets the result. */
static enum trap_answer serve_marker(struct target *t, struct thread *th, struct trap *trap,
				     struct arch_regs *regs)
{
	taddr_t behind = trap->stub.jump;
	struct visit v = {.target = t,
			  .thread = th,
			  .space = th->process->space,
			  .behind = behind,
			  .regs = regs};
	const struct module *m = space_find_module(v.space, trap->addr);
	if (trap->probe->kind == PROBE_REQUEST)
		serve_request(&v);
	else if (m && m->markers && trap->marker < m->markers->list.count)
		serve_note(&v, &m->markers->list.data[trap->marker]);
	call_continue_at(t, th, regs, behind);
	return TRAP_RESUME;
}

/* -- pads -- */

bool requests_may_jump(const struct target *t, const struct address_space *s,
		       const struct trap *trap, const char **why_out)
{
	const struct module *m = space_find_module(s, trap->addr);
	const struct arch *arch = t->arch;
	if (!m || !m->markers || trap->marker >= m->markers->list.count)
		return false;
	const struct marker *marker = &m->markers->list.data[trap->marker];
	if (marker->kind != MARKER_REQUEST) {
		/*
		 * one instruction that is entered only at its beginning; the pad reads the first
		 * arguments
		 */
		bool is_plain =
			marker_is_argument(&marker->block, arch, 0) && !marker->has_weight &&
			(marker->kind == MARKER_FREE || marker_is_argument(&marker->size, arch, 1));
		*why_out = is_plain ? "it has no room for a jump" :
				      "its arguments are in other places";
		return is_plain && trap->code_size == arch->long_nop_size;
	}
	*why_out = "its function is not known";
	if (!marker->function_size || marker->function_size > FUNCTION_MAX)
		return false;
	taddr_t start = m->bias + marker->function;
	_cleanup_free_ uint8_t *code = xmalloc(marker->function_size);
	*why_out = "a branch enters it";
	return space_read(s, start, code, marker->function_size) == 0 &&
	       !arch->is_entered(code, marker->function_size, start, trap->addr, trap->code_size);
}

uint32_t requests_pad_flags(const struct target *t, const struct address_space *s)
{
	const struct target_options *o = &t->options;
	return (o->running_on_valgrind ? PAD_ANSWER_RUNNING : 0) |
	       (o->watch.mempools ? PAD_ANSWER_POOLS : 0) |
	       (s->heap.pools && s->heap.pools->has_auto_free ? PAD_ANSWER_BLOCKS : 0);
}

/* -- installation -- */

static void free_markers(void *user)
{
	struct marker_list *list = user;

	vec_deinit(&list->list);
	free(list);
}

/* Those of the file, which takes a tenth of a second to search if it has 200 MB of code: once. */
static const struct marker_list *markers_of(struct target *t, const struct module *m)
{
	struct elf_file *file = m->file;
	struct marker_list *list = file->marker_user;

	if (list)
		return list;
	list = xcalloc(1, sizeof(*list));
	marker_find(file, t->arch, list);
	file->marker_user = list;
	file->marker_user_free = free_markers;
	if (list->unknown > 0)
		log_verbose("%s: %u probes have arguments that cannot be read", m->path,
			    list->unknown);
	return list;
}

void requests_find_markers(struct target *t, struct module *m)
{
	if (!m->markers && m->file && !m->is_vdso)
		m->markers = markers_of(t, m);
}

static bool code_is_at(const struct address_space *s, taddr_t addr, const uint8_t *bytes,
		       size_t size)
{
	uint8_t code[32];
	return size <= sizeof(code) && space_read(s, addr, code, size) == 0 &&
	       memcmp(code, bytes, size) == 0;
}

/* The size of the marker at @addr; 0 if there is not code without effect. */
static uint32_t marker_size(const struct arch *arch, const struct address_space *s,
			    const struct marker *m, taddr_t addr)
{
	if (m->kind == MARKER_REQUEST)
		return code_is_at(s, addr, arch->marker, arch->marker_size) ? arch->marker_size :
										0;
	if (code_is_at(s, addr, arch->long_nop, arch->long_nop_size))
		return arch->long_nop_size;
	return code_is_at(s, addr, arch->nop_insn, arch->trap_size) ? arch->trap_size : 0;
}

static unsigned count_users(const struct address_space *s, taddr_t semaphore)
{
	unsigned users = 0;
	for (size_t i = 0; i < s->traps.count; i++)
		users += s->traps.data[i].semaphore == semaphore;
	return users;
}

/*
 * The 16-bit semaphore counts the tracers of a marker. A guardian would restore the value from
 * before our first increment.
 */
static void raise_semaphore(struct address_space *s, const struct arch *arch, struct trap *trap,
			    taddr_t semaphore)
{
	struct trap as_was = {.addr = semaphore, .kind = TRAP_ENTRY, .stub = {.jump = semaphore}};
	uint16_t count;
	if (space_read(s, semaphore, &count, sizeof(count)) != 0)
		return;
	memcpy(as_was.original, &count, sizeof(count));
	as_was.patch_size = sizeof(count);
	if (count_users(s, semaphore) == 0)
		journal_add_trap(s, arch, &as_was);
	count++;
	if (space_write(s, semaphore, &count, sizeof(count)) == 0)
		trap->semaphore = semaphore;
}

static int install_marker(struct target *t, struct address_space *s, const struct module *m,
			  uint32_t index)
{
	const struct marker *marker = &m->markers->list.data[index];
	taddr_t addr = m->bias + marker->vaddr;
	if (space_trap_find(s, addr) || space_in_other_module(s, m, addr))
		return 0;
	uint32_t size = marker_size(t->arch, s, marker, addr);
	if (size == 0)
		return -ENOEXEC;
	const struct journal *journal = s->recovery.journal;
	if (journal && journal->trap_count > JOURNAL_TRAPS - JOURNAL_RESERVE)
		return -ENOSPC;
	struct trap trap = {
		.kind = TRAP_ENTRY,
		.serve = serve_marker,
		.addr = addr,
		.entry = addr,
		.probe = &marker_probe[marker->kind],
		.module = m->id,
		.marker = index,
		.code_size = size,
		.stub = {.jump = addr + size, .patch = addr},
	};
	int rc = space_trap_put(s, t->arch, &trap);
	if (rc == 0 &&
	    marker->semaphore) /* from now on the program may execute the probe */
		raise_semaphore(s, t->arch, space_trap_find(s, addr), m->bias + marker->semaphore);
	return rc;
}

void requests_install(struct target *t, struct address_space *s, struct module *m)
{
	requests_find_markers(t, m);
	for (uint32_t i = 0; m->markers && i < m->markers->list.count; i++) {
		int rc = install_marker(t, s, m, i);
		if (rc == -ESRCH)
			return;
		if (rc != 0)
			log_verbose("%s at %#lx in %s is not watched: %s",
				    marker_probe[m->markers->list.data[i].kind].symbol,
				    (unsigned long)m->markers->list.data[i].vaddr, m->path,
				    rc == -ENOEXEC ? "its code is not the file's" : strerror(-rc));
		t->stats.unprobed += rc != 0;
		s->watch.markers += rc == 0;
	}
}

void requests_removed(struct address_space *s, struct trap *trap)
{
	taddr_t semaphore = trap->semaphore;
	uint16_t count;
	trap->semaphore = 0;
	if (!semaphore || space_read(s, semaphore, &count, sizeof(count)) != 0)
		return;
	count--;
	space_write(s, semaphore, &count, sizeof(count));
	if (count_users(s, semaphore) == 0)
		journal_remove_trap(s, semaphore);
}

void requests_fork(const struct address_space *from, struct address_space *to)
{
	to->watch.markers = from->watch.markers;
	if (!from->heap.pools)
		return;
	to->heap.pools = xcalloc(1, sizeof(*to->heap.pools));
	pools_copy(to->heap.pools, from->heap.pools);
}

void requests_free(struct address_space *s)
{
	confirm_forget(s);
	if (!s->heap.pools)
		return;
	pools_deinit(s->heap.pools);
	free(s->heap.pools);
	s->heap.pools = NULL;
}
