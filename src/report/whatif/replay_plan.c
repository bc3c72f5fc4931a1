/* See replay_plan.h. Operations are written as they come; turns, which are fewer, at the end. */
#include "report/whatif/replay_plan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "profile/events.h"
#include "report/whatif/block_sites.h"
#include "report/whatif/what_if_files.h"

#define MOST_BLOCKS (UINT32_MAX - 1)
#define NO_BLOCK UINT32_MAX
#define NO_OP UINT32_MAX
#define MOST_THREADS 16384u /* at a time */
#define RECORD_SHARE 50 /* a sample is taken where live bytes are 1/50 above the last record */
#define FIRST_RECORD 65536u

struct live_block {
	taddr_t addr;
	uint32_t block;
};

/* What is known of a block, whether live or not. */
struct block_use {
	uint64_t size;
	uint32_t node;        /* of the call tree */
	uint32_t window, thread; /* its last use: in which, and by which */
};

struct window_op {
	uint32_t thread, next; /* the thread's next one; NO_OP: none */
	struct replay_op op;
};

struct plan_thread {
	uint32_t moving;      /* block + 1 that realloc is moving; 0: none */
	uint32_t window;      /* the last one that has operations of it */
	uint32_t first, last; /* of them there */
};

/* A thread that has not ended. */
struct running_thread {
	uint32_t id;          /* the system's */
	uint32_t number;
};

/*
 * The time of the replay. Where a program allocates without a pause, ptmem may slow it down: it
 * waits while the buffers are full. In seconds with more than BUSY_EVENTS, an event therefore takes
 * BUSY_EVENT_NS at most; in all others the time is that of the file.
 */
#define BUSY_EVENTS 50000u
#define BUSY_EVENT_NS 1000u

struct replay_clock {
	uint64_t now, last_ns;   /* of the replay, and of the file */
	uint64_t second;         /* of the file: which is counted */
	uint64_t events, before; /* in that one, and in the one before */
};

struct planner {
	struct replay_plan *plan;
	FILE *file;
	struct block_sites *sites;
	HASH(struct live_block) live;
	VEC(struct block_use) use;
	VEC(uint32_t) free_block;     /* can be used again */
	VEC(uint32_t) freed;          /* in this window */
	VEC(struct plan_thread) thread;
	HASH(struct running_thread) running;
	VEC(struct window_op) window;
	VEC(struct replay_turn) turn;
	uint32_t window_number;
	uint64_t live_bytes, live_blocks, record_bytes;
	uint64_t events, interval, until_sample; /* between samples */
	uint64_t start_ns, last_ns;
	struct replay_clock clock;
	const struct my_code *my_code; /* the caller's */
	bool is_of_samples;
	int write_error;              /* -errno of the plan */
	const char *refused;          /* NULL: it can be replayed */
};

/* -- time -- */

static void advance(struct replay_clock *c, uint64_t ns)
{
	uint64_t gap = ns > c->last_ns ? ns - c->last_ns : 0, second = ns / 1000000000;

	if (second > c->second) {
		c->before = second == c->second + 1 ? c->events : 0;
		c->events = 0;
		c->second = second;
	}
	c->events++;
	c->last_ns = MAX(c->last_ns, ns);
	c->now += MAX(c->events, c->before) > BUSY_EVENTS ? MIN(gap, BUSY_EVENT_NS) : gap;
}

/* -- turns -- */

static void put(struct planner *p, const void *data, size_t size, size_t count)
{
	if (!p->write_error && fwrite(data, size, count, p->file) != count)
		p->write_error = -errno;
}

static void rewind_plan(struct planner *p, off_t to)
{
	if (!p->write_error && fseeko(p->file, to, SEEK_SET) != 0)
		p->write_error = -errno;
}

static void put_op(struct planner *p, uint32_t thread, const struct replay_op *op)
{
	struct replay_turn *last = p->turn.count ? &p->turn.data[p->turn.count - 1] : NULL;

	if (!last || last->thread != thread || last->ops == UINT32_MAX) {
		last = vec_add(&p->turn);
		*last = (struct replay_turn){.thread = thread};
	}
	last->ops++;
	p->plan->head.ops++;
	put(p, op, sizeof(*op), 1);
}

/* Each thread's operations together, the threads in the order of their first one. */
static void end_window(struct planner *p)
{
	for (uint32_t i = 0; i < p->window.count; i++) {
		uint32_t thread = p->window.data[i].thread;

		if (p->thread.data[thread].first != i)
			continue;
		for (uint32_t k = i; k != NO_OP; k = p->window.data[k].next)
			put_op(p, thread, &p->window.data[k].op);
	}
	p->window.count = 0;
	p->window_number++;
	vec_append(&p->free_block, &p->freed);
	p->freed.count = 0;
}

static void add_to_window(struct planner *p, uint32_t thread, const struct replay_op *op)
{
	struct plan_thread *t = &p->thread.data[thread];
	uint32_t i = (uint32_t)p->window.count;

	*vec_add(&p->window) = (struct window_op){thread, NO_OP, *op};
	if (t->window == p->window_number)
		p->window.data[t->last].next = i;
	else
		t->first = i;
	t->window = p->window_number;
	t->last = i;
}

static void take_sample(struct planner *p)
{
	struct replay_op op = {.time_ns = p->clock.now, .kind = REPLAY_SAMPLE,
			       .block = (uint32_t)p->plan->samples.count};

	end_window(p);
	put_op(p, p->turn.count ? p->turn.data[p->turn.count - 1].thread : 0, &op);
	*vec_add(&p->plan->samples) = (struct plan_sample){
		p->last_ns - p->start_ns, p->live_bytes};
	p->until_sample = p->interval;
	p->record_bytes = MAX(p->record_bytes, p->live_bytes);
}

static void add_op(struct planner *p, uint32_t thread, const struct replay_op *op)
{
	struct block_use *use = &p->use.data[op->block];

	if (p->window.count >= REPLAY_WINDOW ||
	    (use->window == p->window_number && use->thread != thread))
		end_window(p);
	use->window = p->window_number;
	use->thread = thread;
	add_to_window(p, thread, op);
	p->plan->calls++;
	p->plan->peak_blocks = MAX(p->plan->peak_blocks, p->live_blocks);
	p->plan->peak_bytes = MAX(p->plan->peak_bytes, p->live_bytes);
	uint64_t next_record = p->record_bytes + p->record_bytes / RECORD_SHARE + FIRST_RECORD;

	if (p->live_bytes > next_record || --p->until_sample == 0)
		take_sample(p);
}

/* The number of thread @id, which begins here if it is new. */
static uint32_t find_thread(struct planner *p, uint32_t id)
{
	const struct running_thread *known = hash_find(&p->running, hash_u64(id), e, e->id == id);
	uint32_t number = known ? known->number : (uint32_t)p->thread.count;

	if (known)
		return number;
	if (p->running.index.count >= MOST_THREADS) {
		p->refused = "it has more than 16,384 threads at a time";
		return 0;
	}
	end_window(p);
	*vec_add(&p->thread) = (struct plan_thread){0};
	*hash_add(&p->running, hash_u64(id)) = (struct running_thread){id, number};
	return number;
}

/* -- blocks -- */

static struct live_block *find_live(struct planner *p, taddr_t addr)
{
	return hash_find(&p->live, hash_u64(addr), e, e->addr == addr);
}

static void make_live(struct planner *p, taddr_t addr, uint32_t block)
{
	*hash_add(&p->live, hash_u64(addr)) = (struct live_block){addr, block};
	p->live_bytes += p->use.data[block].size;
	p->live_blocks++;
}

/* Takes it out of the table: its block + 1, or 0. */
static uint32_t take_live(struct planner *p, taddr_t addr)
{
	struct live_block *e = find_live(p, addr);

	if (!e)
		return 0;
	uint32_t block = e->block;

	hash_remove(&p->live, e);
	p->live_bytes -= p->use.data[block].size;
	p->live_blocks--;
	return block + 1;
}

static void release(struct planner *p, uint32_t thread, uint32_t block)
{
	const struct replay_op op = {.time_ns = p->clock.now, .block = block, .kind = REPLAY_FREE};

	add_op(p, thread, &op);
	*vec_add(&p->freed) = block;
}

static void free_live(struct planner *p, uint32_t thread, taddr_t addr)
{
	uint32_t block = take_live(p, addr);

	if (block)
		release(p, thread, block - 1);
}

/* NO_BLOCK: there are too many. */
static uint32_t new_block(struct planner *p)
{
	if (p->free_block.count)
		return p->free_block.data[--p->free_block.count];
	if (p->use.count >= MOST_BLOCKS) {
		p->refused = "it has more than 4 billion blocks at a time";
		return NO_BLOCK;
	}
	*vec_add(&p->use) = (struct block_use){0};
	return (uint32_t)(p->use.count - 1);
}

static uint8_t log2_of(uint64_t align)
{
	return align > 16 && align < UINT64_C(1) << 40 && !(align & (align - 1)) ?
		       (uint8_t)__builtin_ctzll(align) : 0;
}

static void allocate(struct planner *p, const struct event *ev, uint32_t thread)
{
	free_live(p, thread, ev->addr); /* its release is missing */
	uint32_t block = new_block(p);
	struct replay_op op = {.time_ns = p->clock.now, .size = ev->size, .block = block,
			       .kind = ev->function == FUNCTION_CALLOC ? REPLAY_CALLOC :
								       REPLAY_MALLOC,
			       .shift = log2_of(ev->align)};

	if (block == NO_BLOCK)
		return;
	if (op.shift)
		op.kind = REPLAY_ALIGNED;
	p->use.data[block].size = ev->size;
	p->use.data[block].node = ev->node;
	make_live(p, ev->addr, block);
	add_op(p, thread, &op);
}

/* A realloc that does not end: the file is wrong, or the thread was ended in it. */
static void drop_moving(struct planner *p, uint32_t thread)
{
	uint32_t moving = p->thread.data[thread].moving;

	p->thread.data[thread].moving = 0;
	if (moving)
		release(p, thread, moving - 1);
}

/* The address is another thread's as soon as realloc has released it. */
static void begin_realloc(struct planner *p, const struct event *ev, uint32_t thread)
{
	drop_moving(p, thread);
	p->thread.data[thread].moving = take_live(p, ev->old_addr);
}

static void end_realloc(struct planner *p, const struct event *ev, uint32_t thread)
{
	uint32_t moving = p->thread.data[thread].moving, block = moving - 1;
	const struct replay_op op = {.time_ns = p->clock.now, .size = ev->size, .block = block,
				     .kind = REPLAY_REALLOC};

	p->thread.data[thread].moving = 0;
	if (!moving && ev->addr)
		allocate(p, ev, thread);
	if (!moving)
		return;
	if (!ev->addr && ev->size == 0) { /* realloc(p, 0) */
		release(p, thread, block);
		return;
	}
	if (!ev->addr) { /* failed: the block is what it was */
		make_live(p, ev->old_addr, block);
		return;
	}
	free_live(p, thread, ev->addr);
	p->use.data[block].size = ev->size;
	p->use.data[block].node = ev->node;
	make_live(p, ev->addr, block);
	add_op(p, thread, &op);
}

/* -- the file -- */

static void on_header(void *ctx, const char *command, uint32_t pid, uint64_t start_ns)
{
	struct planner *p = ctx;

	free(p->plan->command);
	p->plan->command = xstrdup(command);
	p->plan->pid = pid;
	p->start_ns = p->last_ns = p->clock.last_ns = start_ns;
	find_thread(p, pid);
}

static bool is_of_malloc(const struct event *ev)
{
	return ev->function != FUNCTION_REQUEST && ev->function != FUNCTION_RELEASE;
}

static void on_event(void *ctx, const struct event *ev)
{
	struct planner *p = ctx;

	p->last_ns = MAX(p->last_ns, ev->time_ns);
	advance(&p->clock, ev->time_ns);
	if (!is_of_malloc(ev)) {
		p->plan->other_calls++;
		return;
	}
	switch ((enum event_kind)ev->kind) {
	case EVENT_EARLIER:
		p->plan->earlier_blocks++;
		allocate(p, ev, 0);
		break;
	case EVENT_ALLOC:
		if (ev->addr)
			allocate(p, ev, find_thread(p, ev->thread));
		break;
	case EVENT_FREE:
		if (ev->addr)
			free_live(p, find_thread(p, ev->thread), ev->addr);
		break;
	case EVENT_REALLOC_BEGIN:
		begin_realloc(p, ev, find_thread(p, ev->thread));
		break;
	case EVENT_REALLOC_END:
		end_realloc(p, ev, find_thread(p, ev->thread));
		break;
	default:
		break;
	}
}

/* The first thread's stays: its end is that of the process, or it waits. */
static void on_thread_exit(void *ctx, uint32_t id)
{
	struct planner *p = ctx;
	const struct replay_op op = {.time_ns = p->clock.now, .kind = REPLAY_EXIT};

	struct running_thread *t = hash_find(&p->running, hash_u64(id), e, e->id == id);

	if (!t || t->number == 0)
		return;
	drop_moving(p, t->number);
	end_window(p);
	put_op(p, t->number, &op);
	hash_remove(&p->running, t);
}

static void on_module(void *ctx, const struct events_module *m)
{
	struct planner *p = ctx;

	block_sites_add_module(p->sites, m);
}

static void on_name(void *ctx, const struct events_name *n)
{
	struct planner *p = ctx;

	block_sites_add_name(p->sites, n);
}

static void on_end(void *ctx, uint64_t time_ns)
{
	struct planner *p = ctx;

	p->last_ns = MAX(p->last_ns, time_ns);
}

static void on_sampling(void *ctx, uint64_t interval, uint64_t seed)
{
	struct planner *p = ctx;

	p->is_of_samples = true;
}

static void on_cut(void *ctx, unsigned line)
{
	struct planner *p = ctx;

	p->plan->cut_line = line;
}

/* -- the whole -- */

static void planner_begin(struct planner *p, uint64_t interval)
{
	p->interval = p->until_sample = interval;
	p->sites = block_sites_new(p->my_code);
	p->window_number = 1;
}

static void planner_deinit(struct planner *p)
{
	hash_deinit(&p->live);
	vec_deinit(&p->use);
	vec_deinit(&p->free_block);
	vec_deinit(&p->freed);
	vec_deinit(&p->thread);
	hash_deinit(&p->running);
	vec_deinit(&p->window);
	vec_deinit(&p->turn);
	block_sites_free(p->sites);
}

/* Only the last program that the process executed is repeated. */
static struct calltree *on_restart(void *ctx)
{
	struct planner *p = ctx;
	struct replay_plan *plan = p->plan;
	struct planner kept = {.plan = plan, .file = p->file, .my_code = p->my_code,
			       .write_error = p->write_error};
	uint64_t interval = p->interval;
	struct replay_plan of_new = {.fd = plan->fd, .command = plan->command};

	planner_deinit(p);
	vec_deinit(&plan->samples);
	*plan = of_new;
	*p = kept;
	rewind_plan(p, REPLAY_OPS_AT);
	planner_begin(p, interval);
	return block_sites_calltree(p->sites);
}

/* How many events there are, about: nearly all lines are events. */
static uint64_t count_lines(FILE *f)
{
	_cleanup_free_ char *buffer = xmalloc(1 << 16);
	uint64_t lines = 0;
	size_t n;

	while ((n = fread(buffer, 1, 1 << 16, f)) > 0)
		for (const char *at = buffer; (at = memchr(at, '\n', n - (size_t)(at - buffer)));
		     at++)
			lines++;
	rewind(f);
	return lines;
}

static void name_sites(struct planner *p)
{
	struct replay_plan *plan = p->plan;

	plan->site = xcalloc(MAX(p->use.count, 1), sizeof(*plan->site));
	for (size_t i = 0; hash_next(&p->live.index, &i); i++) {
		uint32_t block = p->live.slot[i].block;

		plan->site[block] = block_sites_find(p->sites, p->use.data[block].node);
	}
	block_sites_take_names(p->sites, &plan->site_name, &plan->site_count);
}

static int write_rest(struct planner *p, char **why_out)
{
	struct replay_head *h = &p->plan->head;

	take_sample(p);
	h->turns = p->turn.count;
	h->blocks = MAX(p->use.count, 1);
	h->samples = p->plan->samples.count;
	h->threads = p->thread.count;
	put(p, p->turn.data, sizeof(*p->turn.data), p->turn.count);
	rewind_plan(p, 0);
	put(p, h, sizeof(*h), 1);
	if (!p->write_error && fflush(p->file) != 0)
		p->write_error = -errno;
	if (p->write_error)
		return temporary_describe(p->write_error, why_out);
	p->plan->end_bytes = p->live_bytes;
	p->plan->end_blocks = p->live_blocks;
	p->plan->duration_ns = p->last_ns - p->start_ns;
	name_sites(p);
	return 0;
}

static char *refuse(const struct planner *p, const char *why, unsigned line)
{
	if (p->is_of_samples)
		return xstrdup("it has samples: --what-if needs all calls, of ptmem --events=FILE "
			       "without --heap-sample");
	if (p->refused)
		return xstrdup(p->refused);
	return why ? xasprintf("line %u: %s", line, why) : NULL;
}

static int read_events(struct planner *p, FILE *in, char **why_out)
{
	const struct events_reader_ops ops = {
		.header = on_header, .module = on_module, .name = on_name, .event = on_event,
		.thread_exit = on_thread_exit, .end = on_end, .sampling = on_sampling,
		.cut = on_cut, .restart = on_restart, .ctx = p,
	};
	unsigned line = 0;
	const char *why = NULL;

	int rc = events_read(in, block_sites_calltree(p->sites), &ops, &line, &why);

	*why_out = refuse(p, rc ? why : NULL, line);
	return *why_out ? -EINVAL : rc ?: write_rest(p, why_out);
}

/* Descriptor of @f for the replay, and room for the head. */
static int begin_file(FILE *f)
{
	int fd = fcntl(fileno(f), F_DUPFD_CLOEXEC, 3);

	if (fd >= 0 && fseeko(f, REPLAY_OPS_AT, SEEK_SET) == 0)
		return fd;
	int err = -errno;

	if (fd >= 0)
		close(fd);
	return err;
}

int replay_plan_make(const char *path, const struct my_code *my_code, struct replay_plan *out,
		     char **why_out)
{
	FILE *opened = NULL;
	int err = events_file_open(path, &opened, why_out);
	_cleanup_fclose_ FILE *in = opened;

	if (err)
		return err;
	_cleanup_fclose_ FILE *file = temporary_open();
	struct replay_plan plan = {.fd = file ? begin_file(file) : -errno};

	if (plan.fd < 0)
		return temporary_describe(plan.fd, why_out);
	struct planner p = {.plan = &plan, .file = file, .my_code = my_code};

	planner_begin(&p, count_lines(in) / REPLAY_SAMPLES + 1);
	err = read_events(&p, in, why_out);
	planner_deinit(&p);
	if (err)
		replay_plan_deinit(&plan);
	else
		*out = plan;
	return err;
}

void replay_plan_deinit(struct replay_plan *plan)
{
	if (plan->fd >= 0)
		close(plan->fd);
	for (size_t i = 0; i < plan->site_count; i++)
		free(plan->site_name[i]);
	free(plan->site_name);
	free(plan->site);
	free(plan->command);
	vec_deinit(&plan->samples);
}
