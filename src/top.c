/*
 * Refreshing the table of --top: a timer wakes the loop, and between two events the
 * numbers are taken and shown. Symbols are looked up for what is shown alone.
 */
#include "top.h"

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
#define HEAD_LINES 3

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
		log_print(LOG_RESULT, "%s", text);
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
	const struct symbol *symbol = r.symbol(r.symbol_ctx, frame, SYMBOL_ALL);
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

/* Ends where @end lines of the screen are left. */
static void put_path(const struct top *top, const struct session *s, const struct top_site *site,
		     int end)
{
	const struct calltree *tree = profile_calltree(s->profile);
	uint32_t node = site->leaf ? profile_leaf(s->profile, site->leaf)->node : 0;

	while (node && calltree_node_frame(tree, node) != site->frame)
		node = calltree_parent(tree, node);
	if (node) /* the site has its own line */
		node = calltree_parent(tree, node);
	for (; node && top_screen_lines() > end; node = calltree_parent(tree, node)) {
		_cleanup_free_ char *text = frame_text(s, calltree_node_frame(tree, node));
		put_line(top, false, xasprintf("%10s by %s", "", text));
	}
}

static void put_site(const struct top *top, const struct session *s, const struct top_site *site,
		     bool is_selected, int end)
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
		put_path(top, s, site, end);
}

/* The first row that is shown, so that the selected one is among @lines, with room for its path. */
static size_t first_row(const struct top_view *view, size_t before, size_t lines)
{
	size_t row = view->selected - before, room = view->is_expanded ? lines / 2 : lines - 1;

	return row > room ? row - room : 0;
}

/* @before: rows of the tables above, which the selection counts, too; @lines: of the screen. */
static void put_table(const struct top *top, struct session *s, size_t before, int lines)
{
	const struct top_table *t = s->top_table;
	int end = top->has_screen ? top_screen_lines() - lines : 0;
	size_t i = 0;

	put_head(top, s);
	if (top->has_screen && top->view.selected >= before &&
	    top->view.selected < before + t->order.count && lines > HEAD_LINES)
		i = first_row(&top->view, before, (size_t)(lines - HEAD_LINES));
	for (; i < t->order.count; i++) {
		if (top->has_screen ? top_screen_lines() <= end : i == PLAIN_ROWS)
			break;
		put_site(top, s, &t->sites.data[t->order.data[i]],
			 top->has_screen && before + i == top->view.selected, end);
	}
}

/* -- refreshing -- */

static void note_session(void *ctx, struct space *space)
{
	struct top *top = ctx;

	*vec_add(&top->sessions) = space->user;
}

static void update(struct session *s)
{
	const struct report r = session_report(s);

	if (!s->top_table)
		s->top_table = xcalloc(1, sizeof(*s->top_table));
	top_table_update(s->top_table, &r, target_clock());
}

static size_t count_rows(const struct top *top)
{
	size_t rows = 0;

	for (size_t i = 0; i < top->sessions.count; i++)
		if (top->sessions.data[i]->top_table) /* there is one from its first update on */
			rows += top->sessions.data[i]->top_table->order.count;
	return rows;
}

/*
 * A path that is shown stays shown when its row moves: finds the row of @site of the @table that
 * has it.
 */
static void follow_site(struct top_view *view, const struct top_table *table, size_t before,
			uint32_t site)
{
	for (size_t i = 0; i < table->order.count; i++)
		if (table->order.data[i] == site)
			view->selected = before + i;
}

static void sort_tables(struct top *top)
{
	size_t before = 0, selected = top->view.selected;

	for (size_t i = 0; i < top->sessions.count; i++) {
		struct top_table *t = top->sessions.data[i]->top_table;
		bool has_selected = selected >= before && selected - before < t->order.count;
		uint32_t site = has_selected ? t->order.data[selected - before] : 0;

		top_table_sort(t, top->view.order);
		if (has_selected && top->view.is_expanded)
			follow_site(&top->view, t, before, site);
		before += t->order.count;
	}
}

/* On a screen each process has its share of the lines. */
static void show(struct top *top)
{
	size_t before = 0;

	sort_tables(top);
	if (top->has_screen)
		top_screen_begin();
	for (size_t i = 0; i < top->sessions.count; i++) {
		struct session *s = top->sessions.data[i];
		int left = top->has_screen ? top_screen_lines() - 1 : 0;

		put_table(top, s, before, left / (int)(top->sessions.count - i));
		before += s->top_table->order.count;
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
	size_t rows = count_rows(top);
	if (top->view.selected >= rows) /* a process has ended */
		top->view.selected = rows > 0 ? rows - 1 : 0;
	enum top_wish wish = top->has_screen ? top_screen_key(&top->view, rows) : TOP_NOTHING;

	if (wish == TOP_QUIT)
		return true;
	obey(run, wish);
	if (is_due)
		top->next_ns = now + top->interval_ns;
	for (size_t i = 0; i < top->sessions.count; i++)
		if (is_due || !top->sessions.data[i]->top_table)
			update(top->sessions.data[i]);
	if (is_due || wish != TOP_NOTHING)
		show(top);
	return false;
}
