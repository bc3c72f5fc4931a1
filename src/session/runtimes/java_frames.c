/*
 * What is kept:
 *
 *	blobs     code that was met, with its stamp; looked at again every CHECK_NS
 *	sites     return addresses in it; worthless when their blob's stamp has changed
 *	running   interpreted frames; as long as all methods are there
 *	methods   names and lines by Method*, with a stamp; looked at again every CHECK_NS
 *	chains    distinct lists of keys
 */
#include "session/runtimes/java_frames.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "languages/java.h"
#include "symbols/symbols.h"
#include "tracee/state/module.h"
#include "tracee/state/space.h"

#define CHECK_NS UINT64_C(200000000)
#define RETRY_NS UINT64_C(50000000)
#define CHAIN_BASE (UINT64_C(0x81) << 56) /* neither an address nor the key of a name */
#define BLOB_NAME 64u

struct kept_blob {
	struct java_blob blob;
	uint32_t serial;          /* 0 = it is gone: other code may be there */
};

struct kept_site {
	taddr_t pc;               /* exact, a return address */
	uint32_t blob, serial;    /* in blobs; it holds while that has this serial */
	uint32_t chain;           /* 0 = depends on the frame */
};

struct kept_method {
	taddr_t at;
	struct java_method method;
};

struct java_chain {
	uint32_t first, count;    /* in keys */
};

/* An interpreted frame, as long as its method is kept. */
struct kept_running {
	struct java_running running;
	uint32_t chain;
};

struct java_frames {
	const struct module *module; /* referenced by the space while it is mapped */
	struct address_space *space;
	struct symbols *symbols;
	struct java_ops ops;
	struct java java;
	bool is_open, has_failed;
	uint64_t next_open, next_check;
	VEC(struct kept_blob) blobs;
	uint32_t last_serial;
	HASH(struct kept_site) sites;
	HASH(struct kept_method) methods;
	HASH(struct kept_running) running;
	VEC(struct java_chain) chains;  /* [0] is none */
	HASH(uint32_t) chain_index;
	VEC(uint64_t) keys;
};

/* Memory as it was when a stack was copied, for words of that stack. */
struct view_memory {
	struct address_space *space;
	const struct stack_view *view; /* NULL = only what is there now */
};

static bool read_memory(void *ctx, taddr_t addr, void *buf, size_t size)
{
	const struct view_memory *v = ctx;

	if (v->view && addr >= v->view->start && addr - v->view->start < v->view->size &&
	    v->view->size - (addr - v->view->start) >= size) {
		memcpy(buf, v->view->data + (addr - v->view->start), size);
		return true;
	}
	return space_read(v->space, addr, buf, size) == 0;
}

struct java_frames *java_frames_new(const struct module *m, struct address_space *space,
				    struct symbols *symbols, const struct java_ops *ops)
{
	struct java_frames *f = xcalloc(1, sizeof(*f));

	f->module = m;
	f->space = space;
	f->symbols = symbols;
	f->ops = *ops;
	*vec_add(&f->chains) = (struct java_chain){0};
	return f;
}

void java_frames_free(struct java_frames *f)
{
	if (!f)
		return;
	for (size_t i = 0; hash_next(&f->methods.index, &i); i++)
		java_method_deinit(&f->methods.slot[i].method);
	hash_deinit(&f->methods);
	hash_deinit(&f->sites);
	hash_deinit(&f->running);
	hash_deinit(&f->chain_index);
	vec_deinit(&f->blobs);
	vec_deinit(&f->chains);
	vec_deinit(&f->keys);
	free(f);
}

/* Whether the virtual machine is known; tries again until it is initialized. */
static bool is_open(struct java_frames *f, const struct language_memory *m)
{
	uint64_t now;

	if (f->is_open || f->has_failed)
		return f->is_open;
	now = clock_now_ns();
	if (now < f->next_open)
		return false;
	f->next_open = now + RETRY_NS;
	int rc = f->module->file ? java_open(f->module->file, f->module->bias, m, &f->java) :
				   -ENOENT;

	f->is_open = rc == 0;
	f->has_failed = rc != 0 && rc != -EAGAIN;
	if (f->has_failed)
		log_verbose("%s: %s; Java frames are not shown", f->module->path, strerror(-rc));
	else if (f->is_open)
		log_verbose("%s: Java %u, code in %u parts", f->module->path, f->java.version,
			    f->java.heaps);
	return f->is_open;
}

/* -- what has gone -- */

static void drop_blob(struct java_frames *f, struct kept_blob *b)
{
	b->serial = 0;
	if (f->ops.forget)
		f->ops.forget(f->ops.ctx, b->blob.start, b->blob.end);
}

static void check(struct java_frames *f, const struct language_memory *m)
{
	uint64_t now = clock_now_ns();

	if (now < f->next_check)
		return;
	for (size_t i = 0; i < f->blobs.count; i++) {
		struct kept_blob *b = &f->blobs.data[i];

		if (b->serial && b->blob.stamp &&
		    java_blob_stamp(&f->java, m, b->blob.at) != b->blob.stamp)
			drop_blob(f, b);
	}
	for (size_t i = 0; hash_next(&f->methods.index, &i);) {
		struct kept_method *x = &f->methods.slot[i];

		if (java_method_stamp(&f->java, m, x->at) == x->method.stamp) {
			i++;
			continue;
		}
		java_method_deinit(&x->method);
		hash_remove(&f->methods, x);
		hash_deinit(&f->running);
	}
	f->next_check = clock_now_ns() + CHECK_NS;
}

/* -- chains -- */

static uint64_t name_key(struct java_frames *f, const char *name, const char *file, uint32_t line)
{
	struct symbol_frame frame = {.name = name, .file = file, .line = line};
	const struct symbol sym = {.frame = &frame, .count = 1};
	uint64_t key = symbols_name(f->symbols, &sym);

	if (f->ops.named)
		f->ops.named(f->ops.ctx, key, name, file, line);
	return key;
}

static const struct java_method *get_method(struct java_frames *f, const struct language_memory *m,
					    taddr_t at)
{
	struct java_method method;
	struct kept_method *x = hash_find(&f->methods, hash_u64(at), e, e->at == at);

	if (x)
		return &x->method;
	if (java_method_read(&f->java, m, at, &method) != 0)
		return NULL;
	x = hash_add(&f->methods, hash_u64(at));
	*x = (struct kept_method){at, method};
	return &x->method;
}

static uint64_t frame_key(struct java_frames *f, const struct language_memory *m,
			  const struct java_frame *frame)
{
	const struct java_method *x = get_method(f, m, frame->method);
	uint32_t line = x ? java_method_line(x, frame->bci) : 0;

	return x ? name_key(f, x->name, line ? x->file : NULL, line) :
		   name_key(f, "[unknown Java method]", NULL, 0);
}

/* The number of the chain of the last keys in the list, from @first on. */
static uint32_t intern_chain(struct java_frames *f, uint32_t first)
{
	uint32_t count = (uint32_t)f->keys.count - first;
	const uint64_t *keys = f->keys.data + first;
	uint64_t hash = hash_bytes((const char *)keys, count * sizeof(*keys));
	const uint32_t *known = hash_find(&f->chain_index, hash, e,
					  f->chains.data[*e].count == count &&
					  memcmp(f->keys.data + f->chains.data[*e].first, keys,
						 count * sizeof(*keys)) == 0);

	if (known) {
		f->keys.count = first;
		return *known;
	}
	uint32_t chain = (uint32_t)f->chains.count;

	*vec_add(&f->chains) = (struct java_chain){first, count};
	*hash_add(&f->chain_index, hash) = chain;
	return chain;
}

static void add_stub(struct java_frames *f, const struct language_memory *m,
		     const struct java_blob *b)
{
	char name[BLOB_NAME], shown[BLOB_NAME + 2];

	java_blob_name(&f->java, m, b, name, sizeof(name));
	snprintf(shown, sizeof(shown), "[%s]", *name ? name : "generated code");
	*vec_add(&f->keys) = name_key(f, shown, NULL, 0);
}

/* The chain of what runs in @place. */
static uint32_t make_chain(struct java_frames *f, const struct language_memory *m,
			   const struct java_blob *b, const struct java_place *place)
{
	struct java_frame frame[JAVA_FRAMES_MAX];
	uint32_t n = java_frames(&f->java, m, b, place, frame), first = (uint32_t)f->keys.count;

	if (!n)
		add_stub(f, m, b);
	for (; n > 0; n--)
		*vec_add(&f->keys) = frame_key(f, m, &frame[n - 1]);
	return intern_chain(f, first);
}

static uint64_t hash_running(const struct java_running *r)
{
	return hash_u64(hash_u64(r->method) ^ r->bytecode);
}

/* The same for an interpreted frame: mostly without reading more than its words. */
static uint32_t running_chain(struct java_frames *f, const struct language_memory *m,
			      const struct java_blob *b, const struct java_place *place)
{
	struct java_running r;

	if (!java_running(&f->java, m, place, &r))
		return make_chain(f, m, b, place);
	const struct kept_running *known = hash_find(&f->running, hash_running(&r), e,
						     e->running.method == r.method &&
						     e->running.bytecode == r.bytecode);

	if (known)
		return known->chain;
	uint32_t chain = make_chain(f, m, b, place);

	if (hash_find(&f->methods, hash_u64(r.method), e, e->at == r.method))
		*hash_add(&f->running, hash_running(&r)) = (struct kept_running){r, chain};
	return chain;
}

/* -- code -- */

static bool find_blob(struct java_frames *f, const struct language_memory *m, taddr_t pc,
		      struct java_blob *out)
{
	int rc = java_blob_find(&f->java, m, pc, out);

	/* a heap may have grown */
	if (rc == -ENOENT && java_read_heaps(&f->java, m))
		rc = java_blob_find(&f->java, m, pc, out);
	return rc == 0;
}

/* Remembers @blob; its number. */
static uint32_t keep_blob(struct java_frames *f, const struct java_blob *blob)
{
	size_t place = f->blobs.count;

	for (size_t i = 0; i < f->blobs.count; i++) {
		struct kept_blob *b = &f->blobs.data[i];

		if (b->serial && b->blob.at == blob->at && b->blob.stamp == blob->stamp)
			return (uint32_t)i;
		if (b->serial && b->blob.end > blob->start && b->blob.start < blob->end)
			drop_blob(f, b);
		if (!b->serial)
			place = i;
	}
	if (place == f->blobs.count)
		vec_add(&f->blobs);
	f->blobs.data[place] = (struct kept_blob){*blob, ++f->last_serial};
	return (uint32_t)place;
}

/*
 * The return address @pc, if what is there is known and still holds, or can be found; valid until
 * the next one is added.
 */
static const struct kept_site *get_site(struct java_frames *f, const struct language_memory *m,
					taddr_t pc)
{
	struct java_blob blob;
	struct kept_site *site = hash_find(&f->sites, hash_u64(pc), e, e->pc == pc);

	if (site && f->blobs.data[site->blob].serial == site->serial)
		return site;
	if (!find_blob(f, m, pc - 1, &blob))
		return NULL;
	uint32_t number = keep_blob(f, &blob), chain = 0;
	const struct java_place place = {.pc = pc, .is_return = true};

	if (blob.kind != JAVA_INTERPRETER && pc != blob.deopt && pc != blob.deopt_mh)
		chain = make_chain(f, m, &blob, &place);
	if (!site)
		site = hash_add(&f->sites, hash_u64(pc));
	*site = (struct kept_site){pc, number, f->blobs.data[number].serial, chain};
	return site;
}

static void fill_code(const struct java_blob *b, const struct java_step *step,
		      struct generated_code *out)
{
	static const enum generated_kind kinds[] = {
		[JAVA_BY_SIZE] = GENERATED_SP, [JAVA_BY_FP] = GENERATED_FP,
		[JAVA_UNKNOWN] = GENERATED_RANGE,
	};

	*out = (struct generated_code){
		.kind = kinds[step->kind], .start = b->start, .end = b->end,
		.size = (uint32_t)step->size, .caller_sp = step->caller_sp,
		.is_fixed = step->is_fixed};
}

bool java_frames_find(struct java_frames *f, const struct generated_place *place,
		      struct generated_code *out)
{
	struct view_memory v = {f->space, place->view};
	const struct language_memory m = {read_memory, &v};
	const struct java_place at = {.pc = place->pc, .is_return = !place->is_exact,
				      .sp = place->sp, .fp = place->fp};
	const struct kept_site *site = NULL;
	struct java_blob blob;
	struct java_step step;

	if (!is_open(f, &m))
		return false;
	check(f, &m);
	if (place->is_exact ? !find_blob(f, &m, place->pc, &blob) :
			      !(site = get_site(f, &m, place->pc)))
		return false;
	if (site)
		blob = f->blobs.data[site->blob].blob;
	uint32_t chain = site && site->chain		? 0 :
			 blob.kind == JAVA_INTERPRETER	? running_chain(f, &m, &blob, &at) :
							  make_chain(f, &m, &blob, &at);

	java_step(&f->java, &m, &blob, &at, &step);
	fill_code(&blob, &step, out);
	if (chain)
		out->shown_pc = CHAIN_BASE | chain;
	return true;
}

size_t java_frames_of(struct java_frames *f, taddr_t pc, const uint64_t **keys_out)
{
	struct view_memory v = {.space = f->space};
	const struct language_memory m = {read_memory, &v};
	uint64_t chain = pc - CHAIN_BASE;

	if (pc < CHAIN_BASE) {
		if (!is_open(f, &m))
			return 0;
		check(f, &m);
		const struct kept_site *site = get_site(f, &m, pc + 1);

		chain = site ? site->chain : 0;
	}
	if (!chain || chain >= f->chains.count)
		return 0;
	*keys_out = f->keys.data + f->chains.data[chain].first;
	return f->chains.data[chain].count;
}
