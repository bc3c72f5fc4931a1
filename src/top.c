/*
 * Refreshing the table of --top: a timer wakes the loop, and between two events the
 * numbers are taken and shown. Symbols are looked up for what is shown alone.
 */
#include "top.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/proc.h"
#include "session_output.h"

#define INTERVAL_DEFAULT 2.0
#define KEY_SECONDS 0.1   /* how long a key may wait */
#define PLAIN_ROWS 20

/* What a run has for --top. */
struct top {
	struct top_view view;
	bool has_screen, has_timer;
	timer_t timer;
	uint64_t interval_ns, next_ns;
	VEC(struct session *) sessions;
};

static void on_timer(int sig)
{
	(void)sig;
	target_wake();
}

static void start_timer(struct top *top, double seconds)
{
	struct sigaction sa = {.sa_handler = on_timer};
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN};
	struct itimerspec when = {
		.it_interval = {(time_t)seconds,
				(long)((seconds - (double)(time_t)seconds) * 1e9)}};

	when.it_value = when.it_interval;
	sigemptyset(&sa.sa_mask);
	sigaction(SIGRTMIN, &sa, NULL);
	top->has_timer = timer_create(CLOCK_MONOTONIC, &event, &top->timer) == 0 &&
			 timer_settime(top->timer, 0, &when, NULL) == 0;
}

void top_start(struct run *run)
{
	double interval = run->options->top;

	if (interval < 0 || run->top)
		return;
	struct top *top = run->top = xcalloc(1, sizeof(*top));

	if (interval == OPTION_ALL)
		interval = INTERVAL_DEFAULT;
	top->interval_ns = (uint64_t)(interval * 1e9);
	top->next_ns = target_clock() + top->interval_ns;
	/* a program of ours shares the terminal: its output and our screen would mix */
	top->has_screen = run->options->pid_count > 0 && top_screen_open();
	start_timer(top, top->has_screen ? MIN(interval, KEY_SECONDS) : interval);
}

void top_stop(struct run *run)
{
	struct top *top = run->top;

	if (!top)
		return;
	if (top->has_screen)
		top_screen_close();
	if (top->has_timer)
		timer_delete(top->timer);
	vec_deinit(&top->sessions);
	free(top);
	run->top = NULL;
}

void top_forget(struct session *s)
{
	if (!s->top_table)
		return;
	top_table_deinit(s->top_table);
	free(s->top_table);
	s->top_table = NULL;
}

/* -- lines -- */

static void put_line(const struct top *top, bool is_reverse, char *text)
{
	for (char *c = text; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	if (top->has_screen)
		top_screen_line(text, is_reverse);
	else
		log_print(LOG_ERROR, "%s", text);
	free(text);
}

static uint64_t resident_bytes(const struct session *s)
{
	unsigned long size = 0, resident = 0;
	_cleanup_fclose_ FILE *f = proc_open(s->space->reader, "statm");
	if (!f || fscanf(f, "%lu %lu", &size, &resident) != 2)
		return 0;
	return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void put_head(const struct top *top, const struct session *s)
{
	static const char *const orders[] = {"live bytes", "growth", "growth since the start",
					     "rate"};
	const struct profile_totals *p = profile_totals(s->profile);
	char live[16], peak[16], resident[16];

	put_line(top, false, xasprintf("process %u, %s", s->pid, s->command));
	put_line(top, false,
		 xasprintf("live %s in %llu blocks, peak %s, resident %s; by %s",
			   top_bytes(live, (double)p->live_bytes, false),
			   (unsigned long long)p->live_blocks,
			   top_bytes(peak, (double)p->peak_bytes, false),
			   top_bytes(resident, (double)resident_bytes(s), false),
			   orders[top->view.order]));
	put_line(top, true,
		 xasprintf("%10s %10s %10s %12s %9s  %s", "live", "growth", "since start", "rate",
			   "blocks", "call site"));
}

static char *frame_text(const struct session *s, uint32_t frame)
{
	if (!frame)
		return xstrdup("???");
	const struct report r = session_report((struct session *)s);
	const struct symbol *symbol = r.symbol(r.symbol_ctx, frame);
	const struct symbol_frame *f = &symbol->frame[0];
	const struct calltree_frame *at = calltree_frame(profile_calltree(s->profile), frame);

	if (!f->name && symbol->object) /* rows of a stripped object must differ */
		return xasprintf("%#llx (in %s)", (unsigned long long)at->pc, symbol->object);

	if (f->file && f->line)
		return xasprintf("%s (%s:%u)", f->name ? f->name : "???", f->file, f->line);
	if (symbol->object)
		return xasprintf("%s (in %s)", f->name ? f->name : "???", symbol->object);
	return xstrdup(f->name ? f->name : "???");
}

static void put_path(const struct top *top, const struct session *s, const struct top_site *site)
{
	const struct calltree *tree = profile_calltree(s->profile);
	uint32_t node = site->leaf ? profile_leaf(s->profile, site->leaf)->node : 0;

	while (node && calltree_node_frame(tree, node) != site->frame)
		node = calltree_parent(tree, node);
	if (node) /* the site has its own line */
		node = calltree_parent(tree, node);
	for (; node; node = calltree_parent(tree, node)) {
		_cleanup_free_ char *text = frame_text(s, calltree_node_frame(tree, node));
		put_line(top, false, xasprintf("%10s by %s", "", text));
	}
}

static void put_site(const struct top *top, const struct session *s, const struct top_site *site,
		     bool is_selected)
{
	char live[16], growth[16], start[16], rate[16];
	_cleanup_free_ char *name = frame_text(s, site->frame);

	put_line(top, is_selected,
		 xasprintf("%10s %10s %10s %10s/s %9llu  %s",
			   top_bytes(live, (double)site->live, false),
			   top_bytes(growth, (double)site->growth, true),
			   top_bytes(start, (double)site->since_start, true),
			   top_bytes(rate, site->rate, false), (unsigned long long)site->blocks,
			   name));
	if (is_selected && top->view.is_expanded)
		put_path(top, s, site);
}

static void put_table(struct top *top, struct session *s)
{
	const struct top_table *t = s->top_table;

	put_head(top, s);
	for (size_t i = 0; i < t->order.count; i++) {
		if (top->has_screen ? top_screen_lines() < 2 : i == PLAIN_ROWS)
			break;
		put_site(top, s, &t->sites.data[t->order.data[i]],
			 top->has_screen && i == top->view.selected);
	}
}

/* -- refreshing -- */

static void note_session(void *ctx, struct space *space)
{
	struct top *top = ctx;

	*vec_add(&top->sessions) = space->user;
}

static void update(struct run *run, struct session *s)
{
	const struct report r = session_report(s);

	if (!s->top_table)
		s->top_table = xcalloc(1, sizeof(*s->top_table));
	top_table_update(s->top_table, &r, target_clock());
	(void)run;
}

static void show(struct top *top)
{
	if (top->has_screen)
		top_screen_begin();
	for (size_t i = 0; i < top->sessions.count; i++) {
		top_table_sort(top->sessions.data[i]->top_table, top->view.order);
		put_table(top, top->sessions.data[i]);
	}
	if (!top->has_screen)
		return;
	put_line(top, false,
		 xasprintf("%s", *top->view.message ? top->view.message :
						      "l live  g growth  s since start  r rate  "
						      "enter path  z restart  w write  q quit"));
	top_screen_end();
}

static void obey(struct run *run, enum top_wish wish)
{
	struct top *top = run->top;

	for (size_t i = 0; i < top->sessions.count; i++) {
		struct session *s = top->sessions.data[i];

		if (wish == TOP_RESTART && s->top_table)
			top_table_restart(s->top_table);
		if (wish == TOP_SNAPSHOT)
			session_write_so_far(s, top->view.message, sizeof(top->view.message));
	}
}

bool top_poll(struct run *run)
{
	struct top *top = run->top;

	if (!top)
		return false;
	uint64_t now = target_clock();
	bool is_due = now >= top->next_ns;

	top->sessions.count = 0;
	target_each(run->target, note_session, top);
	size_t rows = top->sessions.count && top->sessions.data[0]->top_table ?
			      top->sessions.data[0]->top_table->order.count :
			      0;
	enum top_wish wish = top->has_screen ? top_screen_key(&top->view, rows) : TOP_NOTHING;

	if (wish == TOP_QUIT)
		return true;
	obey(run, wish);
	if (is_due)
		top->next_ns = now + top->interval_ns;
	for (size_t i = 0; i < top->sessions.count; i++)
		if (is_due || !top->sessions.data[i]->top_table)
			update(run, top->sessions.data[i]);
	if (is_due || wish != TOP_NOTHING)
		show(top);
	return false;
}
