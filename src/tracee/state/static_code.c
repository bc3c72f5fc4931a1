/*
 * The code is decoded twice: for the starts of functions, and for what is in each. Where no table
 * has functions, one begins wherever a call leads to, and where a function jumps to that does
 * nothing else; it ends where the next begins.
 *
 * A compiler may move unlikely code out of a function to a part of its own (.cold), which has its
 * own entry in the tables. What is in a part belongs to its function:
 *
 *	function   ... jne part+5 ...      <- one of these branches leads into the middle,
 *	part       ... jmp function+40        or all to the part are conditional
 */
#include "tracee/state/static_code.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/elf_file.h"
#include "base/log.h"

struct branch {
	uint64_t at, to;
	uint8_t kind;          /* enum arch_fact_kind */
};

struct code_reader {
	struct elf_file *file;
	struct static_code *code;
	const struct static_wanted *wanted;
	uint64_t value[STATIC_WANTED_MAX]; /* the texts' addresses, too; 0 = it is not there */
	size_t count;
	uint32_t current;      /* function of the instruction before */
	VEC(struct branch) branches;
};

/* -- texts -- */

bool static_code_has_text(struct elf_file *file, const char *text, uint64_t *vaddr_out)
{
	for (size_t i = 0; i < file->segment_count; i++) {
		const struct elf_segment *seg = &file->segment[i];
		_cleanup_free_ uint8_t *data =
			elf_file_read(file, seg->offset, seg->filesz);
		const uint8_t *at =
			data ? memmem(data, seg->filesz, text, strlen(text) + 1) : NULL;

		if (!at)
			continue;
		if (vaddr_out)
			*vaddr_out = seg->vaddr + (uint64_t)(at - data);
		return true;
	}
	return false;
}

/* -- functions -- */

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* The index of the function that contains @vaddr, or STATIC_NONE. */
static int find_function(const struct static_code *c, uint64_t vaddr)
{
	size_t i = vec_search(&c->functions, f, f->end <= vaddr);

	return i < c->functions.count && c->functions.data[i].start <= vaddr ? (int)i :
									      STATIC_NONE;
}

static void each_fact(const struct elf_file *file, void (*fn)(void *, const struct arch_fact *),
		      void *ctx)
{
	for (size_t i = 0; i < file->segment_count; i++) {
		const struct elf_segment *seg = &file->segment[i];
		_cleanup_free_ uint8_t *bytes =
			seg->is_exec ? elf_file_read(file, seg->offset, seg->filesz) : NULL;
		const struct arch_code code = {.bytes = bytes, .size = seg->filesz,
					       .at = seg->vaddr};

		if (bytes)
			arch_native->each_fact(&code, fn, ctx);
	}
}

struct addresses {
	uint64_t *data;
	size_t count, capacity;
};

/* A jump with nothing but padding before it, from @first on. */
struct lone_jump {
	uint64_t first, at, to;
};

/* Where functions may begin, besides what tables say. */
struct starts {
	struct addresses list; /* targets of calls; then ascending, each once */
	VEC(struct lone_jump) jumps;
	uint64_t padding;      /* where the padding before this instruction began; 0 = none */
};

static void note_start(void *ctx, const struct arch_fact *fact)
{
	struct starts *s = ctx;

	if (fact->kind == ARCH_FACT_CALL)
		*vec_add(&s->list) = fact->value;
	else if (fact->kind == ARCH_FACT_JUMP)
		*vec_add(&s->jumps) = (struct lone_jump){
			s->padding ? s->padding : fact->at, fact->at, fact->value};
	if (fact->kind != ARCH_FACT_PADDING)
		s->padding = 0;
	else if (!s->padding)
		s->padding = fact->at;
}

static void sort_addresses(struct addresses *a)
{
	size_t kept = 0;

	if (a->count > 1)
		qsort(a->data, a->count, sizeof(*a->data), compare_u64);
	for (size_t i = 0; i < a->count; i++) {
		if (!kept || a->data[kept - 1] != a->data[i])
			a->data[kept++] = a->data[i];
	}
	a->count = kept;
}

/* The first of the ascending @list that is in [@first, @last]; 0 = none. */
static uint64_t first_within(const struct addresses *list, uint64_t first, uint64_t last)
{
	size_t i = vec_search(list, at, *at < first);

	return i < list->count && list->data[i] <= last ? list->data[i] : 0;
}

/*
 * A function that only jumps is called, or another jumps to it, as no jump leads to another within
 * a function: what it jumps to is one, too.
 */
static void follow_jumps(struct starts *s)
{
	struct addresses called = {0}, jumped = {0};

	for (size_t i = 0; i < s->list.count; i++)
		*vec_add(&called) = s->list.data[i];
	for (size_t i = 0; i < s->jumps.count; i++)
		*vec_add(&jumped) = s->jumps.data[i].to;
	sort_addresses(&jumped);
	for (size_t i = 0; i < s->jumps.count; i++) {
		const struct lone_jump *j = &s->jumps.data[i];
		uint64_t start = first_within(&called, j->first, j->at);

		start = start ? start : first_within(&jumped, j->first, j->at);
		if (start) {
			*vec_add(&s->list) = start;
			*vec_add(&s->list) = j->to;
		}
	}
	sort_addresses(&s->list);
	vec_deinit(&called);
	vec_deinit(&jumped);
}

static void add_function(struct static_code *c, uint64_t start, uint64_t end)
{
	if (start < end)
		*vec_add(&c->functions) = (struct static_function){.start = start, .end = end};
}

static void add_gap(struct static_code *c, const struct elf_function *gap, const struct starts *s)
{
	uint64_t start = gap->start;
	size_t i = vec_search(&s->list, at, *at <= start);

	for (; i < s->list.count && s->list.data[i] < gap->end; i++) {
		add_function(c, start, s->list.data[i]);
		start = s->list.data[i];
	}
	add_function(c, start, gap->end);
}

/* What precedes the first known function of a segment: all of it, if the file has no sections. */
static void add_beginnings(struct code_reader *r, const struct elf_functions *known,
			   const struct starts *s)
{
	for (size_t i = 0; i < r->file->segment_count; i++) {
		const struct elf_segment *seg = &r->file->segment[i];
		size_t k = vec_search(&known->list, f, f->start < seg->vaddr);
		struct elf_function gap = {seg->vaddr, seg->vaddr + seg->filesz, ELF_GAP};

		if (k < known->list.count && known->list.data[k].start < gap.end)
			gap.end = known->list.data[k].start;
		if (seg->is_exec)
			add_gap(r->code, &gap, s);
	}
}

static int compare_functions(const void *a, const void *b)
{
	const struct static_function *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

static void read_functions(struct code_reader *r)
{
	struct elf_functions known;
	struct starts s = {0};

	elf_functions_find(r->file, &known);
	each_fact(r->file, note_start, &s);
	sort_addresses(&s.list);
	follow_jumps(&s);
	for (size_t i = 0; i < known.list.count; i++) {
		const struct elf_function *f = &known.list.data[i];

		if (f->kind == ELF_FUNCTION)
			add_function(r->code, f->start, f->end);
		else if (f->kind == ELF_GAP)
			add_gap(r->code, f, &s);
	}
	add_beginnings(r, &known, &s);
	if (r->code->functions.count > 1)
		qsort(r->code->functions.data, r->code->functions.count,
		      sizeof(*r->code->functions.data), compare_functions);
	vec_deinit(&known.list);
	vec_deinit(&s.list);
	vec_deinit(&s.jumps);
}

/* -- what they do -- */

static uint32_t wanted_by(const struct code_reader *r, const struct arch_fact *fact)
{
	uint32_t has = 0;

	for (size_t i = 0; i < r->count; i++) {
		const struct static_wanted *w = &r->wanted[i];
		bool is_it = w->is_store ? fact->kind == ARCH_FACT_STORE &&
						    fact->offset == w->offset :
					   fact->kind == ARCH_FACT_VALUE && r->value[i];

		if (is_it && fact->value == r->value[i])
			has |= 1u << i;
	}
	return has;
}

static void note_address(struct static_code *c, uint64_t value)
{
	int i = find_function(c, value);

	if (i >= 0 && c->functions.data[i].start == value)
		c->functions.data[i].is_taken = true;
}

static void note_fact(void *ctx, const struct arch_fact *fact)
{
	struct code_reader *r = ctx;
	struct static_code *c = r->code;
	struct static_function *f;

	while (r->current < c->functions.count &&
	       c->functions.data[r->current].end <= fact->at)
		r->current++;
	f = r->current < c->functions.count ? &c->functions.data[r->current] : NULL;
	if (!f || f->start > fact->at)
		return;
	if (fact->kind == ARCH_FACT_JUMP && !f->instructions)
		f->jumps_to = fact->value;
	f->instructions += fact->kind != ARCH_FACT_PADDING;
	f->stops += fact->kind == ARCH_FACT_STOP;
	f->products += fact->kind == ARCH_FACT_PRODUCT;
	f->has |= wanted_by(r, fact);
	if (fact->kind == ARCH_FACT_VALUE)
		note_address(c, fact->value);
	if (fact->kind >= ARCH_FACT_CALL && fact->kind <= ARCH_FACT_BRANCH &&
	    (fact->value < f->start || fact->value >= f->end))
		*vec_add(&r->branches) = (struct branch){fact->at, fact->value, fact->kind};
}

/* -- parts -- */

struct code_part {
	int of;                /* function that branches to it */
	bool is_called, is_always; /* by an unconditional jump to its start */
	bool is_entered;       /* not at its start; or it leads into the middle of @of */
};

static void note_part_branch(const struct static_code *c, struct code_part *parts,
			     const struct branch *b)
{
	int from = find_function(c, b->at), to = find_function(c, b->to);

	if (from < 0 || to < 0)
		return;
	bool is_start = c->functions.data[to].start == b->to;

	parts[to].is_called |= b->kind == ARCH_FACT_CALL;
	parts[to].is_always |= b->kind == ARCH_FACT_JUMP && is_start;
	parts[to].is_entered |= !is_start;
	if (b->kind != ARCH_FACT_CALL) {
		static_only(&parts[to].of, from);
	}
}

/* Which function each belongs to: itself, or what it is a part of. Freed by the caller. */
static int *find_owners(const struct code_reader *r)
{
	const struct static_code *c = r->code;
	_cleanup_free_ struct code_part *parts = xcalloc(c->functions.count + 1, sizeof(*parts));
	int *owner = xcalloc(c->functions.count + 1, sizeof(*owner));

	for (size_t i = 0; i < c->functions.count; i++)
		parts[i].of = STATIC_NONE;
	for (size_t i = 0; i < r->branches.count; i++)
		note_part_branch(c, parts, &r->branches.data[i]);
	for (size_t i = 0; i < c->functions.count; i++) {
		const struct code_part *p = &parts[i];
		bool is_part = p->of >= 0 && !p->is_called && (p->is_entered || !p->is_always);
		/* a function that its own part leads back to is entered, too */
		is_part = is_part && (parts[p->of].of != (int)i || parts[p->of].is_called);
		owner[i] = is_part ? p->of : (int)i;
	}
	return owner;
}

static void merge_parts(struct code_reader *r, const int *owner)
{
	for (size_t i = 0; i < r->code->functions.count; i++) {
		const struct static_function *part = &r->code->functions.data[i];
		struct static_function *f = &r->code->functions.data[owner[i]];

		if (f == part)
			continue;
		f->has |= part->has;
		f->stops += part->stops;
		f->products += part->products;
	}
}

/* -- edges -- */

static int compare_edges(const void *a, const void *b)
{
	const struct static_edge *x = a, *y = b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return (x->to > y->to) - (x->to < y->to);
}

static int compare_targets(const void *a, const void *b)
{
	const struct static_edge *x = a, *y = b;

	if (x->to != y->to)
		return x->to < y->to ? -1 : 1;
	return (x->from > y->from) - (x->from < y->from);
}

static void add_edges(struct code_reader *r, const int *owner)
{
	struct static_code *c = r->code;
	size_t kept = 0;

	for (size_t i = 0; i < r->branches.count; i++) {
		const struct branch *b = &r->branches.data[i];
		int from = find_function(c, b->at), to = find_function(c, b->to);

		if (from < 0 || to < 0 || c->functions.data[to].start != b->to ||
		    owner[to] != to)
			continue;
		c->functions.data[to].is_called |= b->kind == ARCH_FACT_CALL;
		if (owner[from] != to)
			*vec_add(&c->out) = (struct static_edge){(uint32_t)owner[from],
								 (uint32_t)to};
	}
	if (c->out.count > 1)
		qsort(c->out.data, c->out.count, sizeof(*c->out.data), compare_edges);
	for (size_t i = 0; i < c->out.count; i++) {
		if (!kept || compare_edges(&c->out.data[kept - 1], &c->out.data[i]) != 0)
			c->out.data[kept++] = c->out.data[i];
	}
	c->out.count = kept;
	for (size_t i = 0; i < kept; i++)
		*vec_add(&c->in) = c->out.data[i];
	if (kept > 1)
		qsort(c->in.data, kept, sizeof(*c->in.data), compare_targets);
}

void static_code_read(struct elf_file *file, const struct static_wanted *wanted, size_t count,
		      struct static_code *out)
{
	struct code_reader r = {.file = file, .code = out, .wanted = wanted, .count = count};

	CHECK(count <= STATIC_WANTED_MAX);
	*out = (struct static_code){0};
	for (size_t i = 0; i < count; i++) {
		r.value[i] = wanted[i].value;
		if (wanted[i].text)
			static_code_has_text(file, wanted[i].text, &r.value[i]);
	}
	read_functions(&r);
	each_fact(file, note_fact, &r);
	_cleanup_free_ int *owner = find_owners(&r);
	merge_parts(&r, owner);
	add_edges(&r, owner);
	vec_deinit(&r.branches);
}

void static_code_deinit(struct static_code *c)
{
	vec_deinit(&c->functions);
	vec_deinit(&c->out);
	vec_deinit(&c->in);
}

/* -- questions -- */

int static_code_find(const struct static_code *c, uint32_t has)
{
	int found = STATIC_NONE;

	for (size_t i = 0; i < c->functions.count && has; i++) {
		if ((c->functions.data[i].has & has) == has)
			static_only(&found, (int)i);
	}
	return found;
}

size_t static_code_out(const struct static_code *c, int i, size_t *first_out)
{
	size_t first = vec_search(&c->out, e, (int)e->from < i);
	size_t end = vec_search(&c->out, e, (int)e->from <= i);

	*first_out = first;
	return i < 0 ? 0 : end - first;
}

size_t static_code_in(const struct static_code *c, int i, size_t *first_out)
{
	size_t first = vec_search(&c->in, e, (int)e->to < i);
	size_t end = vec_search(&c->in, e, (int)e->to <= i);

	*first_out = first;
	return i < 0 ? 0 : end - first;
}

bool static_code_calls(const struct static_code *c, int from, int to)
{
	size_t first, count = static_code_out(c, from, &first);

	for (size_t i = first; i < first + count; i++) {
		if ((int)c->out.data[i].to == to)
			return true;
	}
	return false;
}

bool static_code_reaches(const struct static_code *c, int from, int to)
{
	size_t first, count = static_code_out(c, from, &first);

	for (size_t i = first; i < first + count; i++) {
		if ((int)c->out.data[i].to == to ||
		    static_code_calls(c, (int)c->out.data[i].to, to))
			return true;
	}
	return false;
}

size_t static_code_callers(const struct static_code *c, int to)
{
	size_t first;

	return static_code_in(c, to, &first);
}
