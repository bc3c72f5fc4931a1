/*
 * A timer wakes the loop; the tables are updated and drawn between events. Symbols are looked up
 * only for lines that are shown.
 */
#include "live/top.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/amount.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/proc.h"
#include "base/text.h"
#include "live/top_screen.h"
#include "output/report_tree.h"
#include "session/observer.h"
#include "session/run.h"
#include "session/session.h"
#include "session/session_output.h"
#include "session/signals.h"
#include "tracee/control/target.h"

#define INTERVAL_DEFAULT 2.0
#define KEY_SECONDS 0.1   /* maximum delay of a key */
#define PLAIN_ROWS 20
#define HEAD_LINES 3

/* A process with its table; NULL: not updated yet. */
struct shown {
	struct session *session;
	struct top_table *table;
};

struct top {
	struct run *run;
	struct observer observer;
	struct top_view view;
	struct top_screen *screen; /* NULL: tables are messages */
	bool has_timer;
	timer_t timer;
	uint64_t interval_ns, next_ns;
	VEC(struct shown *) tables;  /* of all processes that ever had one; owned */
	VEC(struct shown *) shown;   /* of the current processes, in the target's order */
	VEC(char *) written; /* results of each `w`: logged again after the screen is closed */
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

static void drop_table(struct top *top, size_t i)
{
	struct shown *p = top->tables.data[i];

	if (p->table)
		top_table_deinit(p->table);
	free(p->table);
	free(p);
	vec_take_swap(&top->tables, i);
}

static void on_session_end(void *ctx, const struct session *s, bool is_exec)
{
	struct top *top = ctx;

	(void)is_exec;
	for (size_t i = top->tables.count; i-- > 0;) {
		if (top->tables.data[i]->session == s)
			drop_table(top, i);
	}
}

static bool poll(void *ctx);

struct top *top_start(struct run *run)
{
	double interval = run->options->top;

	if (interval < 0)
		return NULL;
	struct top *top = xcalloc(1, sizeof(*top));

	if (interval == OPTION_ALL)
		interval = INTERVAL_DEFAULT;
	top->run = run;
	top->interval_ns = (uint64_t)(interval * 1e9);
	top->next_ns = clock_now_ns() + top->interval_ns;
	/* a program of ours shares the terminal: its output and our screen would mix */
	if (options_attach(run->options) && top_screen_open())
		top->screen = xcalloc(1, sizeof(*top->screen));
	else
		log_info("hint: --top prints a table every %g s here; with -p PID in a terminal it "
			 "is one that is updated in its place", interval);
	start_timer(top, top->screen ? MIN(interval, KEY_SECONDS) : interval);
	top->observer = (struct observer){
		.ctx = top, .session_ended = on_session_end, .poll = poll};
	observers_add(run, &top->observer);
	return top;
}

void top_stop(struct top *top)
{
	if (!top)
		return;
	observers_remove(top->run, &top->observer);
	if (top->screen)
		top_screen_close();
	if (top->has_timer)
		timer_delete(top->timer);
	for (size_t i = 0; i < top->written.count; i++) {
		log_info("%s", top->written.data[i]);
		free(top->written.data[i]);
	}
	while (top->tables.count > 0)
		drop_table(top, 0);
	vec_deinit(&top->written);
	vec_deinit(&top->tables);
	vec_deinit(&top->shown);
	free(top->screen);
	free(top);
}

/* -- lines -- */

static void put_line(const struct top *top, bool is_reverse, char *text)
{
	_cleanup_free_ char *clean = text_clean(text, strlen(text));

	if (top->screen)
		top_screen_line(top->screen, clean, is_reverse);
	else
		log_print(LOG_RESULT, "%s", clean);
	free(text);
}

/* @site in what is left of a line after @used columns. */
static char *fit_site(const struct top *top, const char *site, size_t used)
{
	size_t columns = top->screen ? (size_t)MAX(top_screen_columns(), 0) : 0;

	if (!top->screen)
		return text_site_label(site);
	return text_for_locale(text_shorten_site(site, columns > used ? columns - used : 0));
}

static uint64_t resident_bytes(const struct session *s)
{
	struct proc_statm m;
	return proc_statm_read(s->space->processes.reader, &m) == 0 ? m.resident : 0;
}

/* " +- 10 %", or "" if all blocks are known. */
static const char *print_error(const struct profile *p, uint64_t bytes, uint64_t variance,
			       char out[static AMOUNT_SIZE])
{
	*out = '\0';
	if (profile_options(p)->sample_interval)
		amount_error((double)bytes, profile_error(p, variance), out);
	return out;
}

static void put_head(const struct top *top, const struct session *s)
{
	static const char *const orders[] = {"live bytes", "growth", "growth since the start",
					     "rate"};
	const struct profile_totals *p = profile_totals(s->heap.profile);
	char live[AMOUNT_SIZE], peak[AMOUNT_SIZE], resident[AMOUNT_SIZE];
	char live_error[AMOUNT_SIZE], peak_error[AMOUNT_SIZE];
	uint64_t blocks = profile_count(s->heap.profile, p->live_blocks);

	_cleanup_free_ char *title = session_title(s);
	put_line(top, false, xasprintf("process %u, %s", s->process.pid, title));
	put_line(top, false,
		 xasprintf("live %s%s in %llu block%s, peak %s%s, resident %s; by %s%s",
			   amount_bytes((double)p->live_bytes, live),
			   print_error(s->heap.profile, p->live_bytes, p->live_variance,
				       live_error),
			   (unsigned long long)blocks, plural(blocks),
			   amount_bytes((double)p->peak_bytes, peak),
			   print_error(s->heap.profile, p->peak_bytes, p->peak_variance,
				       peak_error),
			   amount_bytes((double)resident_bytes(s), resident),
			   orders[top->view.order],
			   top->view.is_above_wrappers ? ", callers of wrappers" : ""));
	put_line(top, true,
		 xasprintf("%10s%s %10s %10s %12s %9s  %s", "live",
			   top->run->options->tracing.heap_sample > 1 ? "    error" : "",
			   "growth", "since start", "rate", "blocks", "call site"));
}

/*
 * Prints the callers of @site, up to main, along the largest path. Stops when @end lines of the
 * screen are left. The site itself has its own line.
 */
static void put_path(const struct top *top, const struct report *r, const struct top_site *site,
		     int end)
{
	struct shown_stack s = {.report = r};
	uint32_t node = site->leaf ? profile_leaf(r->profile, site->leaf)->node : 0;
	bool is_shown = node && shown_stack_fill(&s, node);
	size_t i = s.first, stop = is_shown ? s.first + s.count : 0;

	while (i < stop && s.frame.data[i] != site->at.frame)
		i++;
	for (uint32_t inlined = site->at.inlined + 1; i < stop; i++, inlined = 0) {
		const struct symbol *symbol = shown_stack_symbol(&s, i);
		struct call_site at = {.frame = s.frame.data[i]};

		for (; inlined < symbol->count && top_screen_lines(top->screen) > end; inlined++) {
			at.inlined = inlined;
			_cleanup_free_ char *text = call_site_text(r, at);
			_cleanup_free_ char *label = fit_site(top, text, 14);

			put_line(top, false, xasprintf("%10s by %s", "", label));
		}
	}
	shown_stack_deinit(&s);
}

static void put_site(const struct top *top, const struct top_site *site, const char *label,
		     bool is_selected)
{
	char error[AMOUNT_SIZE] = "", column[AMOUNT_SIZE] = "", live[AMOUNT_SIZE];
	char growth[AMOUNT_SIZE], start[AMOUNT_SIZE], rate[AMOUNT_SIZE];

	if (top->run->options->tracing.heap_sample > 1 && site->live > 0)
		amount_error((double)site->live, site->error, error);
	if (top->run->options->tracing.heap_sample > 1)
		snprintf(column, sizeof(column), "%9s", error);
	_cleanup_free_ char *numbers =
		xasprintf("%10s%s %10s %10s %10s/s %9llu  ",
			  amount_bytes((double)site->live, live), column,
			  amount_change((double)site->growth, growth),
			  amount_change((double)site->since_start, start),
			  amount_bytes(site->rate, rate), (unsigned long long)site->blocks);
	_cleanup_free_ char *shown = fit_site(top, label, strlen(numbers));

	put_line(top, is_selected, xasprintf("%s%s", numbers, shown));
}

/* The first row to show, so that the selected one and its path fit in @lines. */
static size_t first_row(const struct top_view *view, size_t before, size_t lines)
{
	size_t row = view->selected - before, room = view->is_expanded ? lines / 2 : lines - 1;

	return row > room ? row - room : 0;
}

/*
 * Prints rows from @first on. @before: number of rows of the tables above; @end: lines of the
 * screen to leave free.
 */
static void put_rows(const struct top *top, const struct shown *p, size_t first, size_t before,
		     int end)
{
	const struct report r = session_report(p->session);
	const struct top_table *t = p->table;
	size_t room = top->screen ? (size_t)MAX(top_screen_lines(top->screen) - end, 0) :
				    PLAIN_ROWS;
	size_t count = MIN(room, t->order.count - first);
	char **label = xcalloc(MAX(count, (size_t)1), sizeof(*label));

	top_table_labels(t, &r, first, count, label);
	for (size_t i = 0; i < count; i++) {
		const struct top_site *site = &t->sites.data[t->order.data[first + i]];
		bool is_selected = top->screen && before + first + i == top->view.selected;

		if (!top->screen || top_screen_lines(top->screen) > end) {
			put_site(top, site, label[i], is_selected);
			if (is_selected && top->view.is_expanded)
				put_path(top, &r, site, end);
		}
		free(label[i]);
	}
	free(label);
	if (t->unresolved.live > 0 && first + count == t->order.count &&
	    (!top->screen || top_screen_lines(top->screen) > end))
		put_site(top, &t->unresolved, "sites below resolution", false);
}

/* @before: number of rows of the tables above, for the selection; @lines: of the screen. */
static void put_table(const struct top *top, const struct shown *p, size_t before, int lines)
{
	const struct top_table *t = p->table;
	int end = top->screen ? top_screen_lines(top->screen) - lines : 0;
	size_t first = 0;

	put_head(top, p->session);
	if (top->screen && top->view.selected >= before &&
	    top->view.selected < before + t->order.count && lines > HEAD_LINES)
		first = first_row(&top->view, before, (size_t)(lines - HEAD_LINES));
	put_rows(top, p, first, before, end);
}

/* -- refreshing -- */

/* The entry of @s, added if it is new. */
static struct shown *find_shown(struct top *top, struct session *s)
{
	for (size_t i = 0; i < top->tables.count; i++) {
		if (top->tables.data[i]->session == s)
			return top->tables.data[i];
	}
	struct shown *p = xcalloc(1, sizeof(*p));

	p->session = s;
	return *vec_add(&top->tables) = p;
}

static void note_session(void *ctx, struct address_space *space)
{
	struct top *top = ctx;

	*vec_add(&top->shown) = find_shown(top, space->sink.user);
}

static void sort_tables(struct top *top)
{
	size_t before = 0, selected = top->view.selected;

	for (size_t i = 0; i < top->shown.count; i++) {
		struct top_table *t = top->shown.data[i]->table;
		bool has_selected = selected >= before && selected - before < t->order.count;
		uint32_t site = has_selected ? t->order.data[selected - before] : 0;

		if (t->is_above_wrappers != top->view.is_above_wrappers) {
			const struct report r = session_report(top->shown.data[i]->session);

			top_table_group(t, &r, top->view.is_above_wrappers);
			top_table_update(t, &r, clock_now_ns());
		}
		top_table_sort(t, top->view.order);
		/* an expanded path remains expanded when its row moves */
		for (size_t k = 0; has_selected && top->view.is_expanded && k < t->order.count; k++)
			if (t->order.data[k] == site)
				top->view.selected = before + k;
		before += t->order.count;
	}
}

/* The longest line that fits, or the last message. */
static void put_keys(const struct top *top)
{
	static const char *const keys[] = {
		"l live  g growth  s start  r rate  a caller  enter path  z zero  w write  q quit",
		"lgsr order  a caller  enter path  z zero  w write  q quit",
		"lgsr order  w write  q quit",
		"q quit",
	};
	const char *text = top->view.message;

	for (size_t i = 0; !*top->view.message && i < ARRAY_SIZE(keys); i++) {
		text = keys[i];
		if (strlen(text) <= (size_t)top_screen_columns())
			break;
	}
	put_line(top, false, xstrdup(text));
}

/* On a screen the lines are divided among the processes. */
static void show(struct top *top)
{
	size_t before = 0;

	sort_tables(top);
	if (top->screen)
		top_screen_begin(top->screen);
	for (size_t i = 0; i < top->shown.count; i++) {
		const struct shown *p = top->shown.data[i];
		int left = top->screen ? top_screen_lines(top->screen) - 1 : 0;

		put_table(top, p, before, left / (int)(top->shown.count - i));
		before += p->table->order.count;
	}
	if (!top->screen)
		return;
	put_keys(top);
	top_screen_end();
}

static void obey(struct top *top, enum top_wish wish)
{
	for (size_t i = 0; i < top->shown.count; i++) {
		const struct shown *p = top->shown.data[i];

		if (wish == TOP_RESTART && p->table)
			top_table_restart(p->table);
		if (wish == TOP_SNAPSHOT) {
			session_output_so_far(p->session, top->view.message,
					      sizeof(top->view.message));
			*vec_add(&top->written) =
				xasprintf("process %u: %s", p->session->process.pid,
					  top->view.message);
		}
	}
}

/* Draws when due and handles keys. True: the user wants to quit. */
static bool poll(void *ctx)
{
	struct top *top = ctx;

	if (signals_leave_request())
		return false;
	uint64_t now = clock_now_ns();
	bool is_due = now >= top->next_ns;

	top->shown.count = 0;
	target_each(top->run->target, note_session, top);
	size_t rows = 0;
	for (size_t i = 0; i < top->shown.count; i++)
		rows += top->shown.data[i]->table ? top->shown.data[i]->table->order.count : 0;
	if (top->view.selected >= rows) /* a process has ended */
		top->view.selected = rows > 0 ? rows - 1 : 0;
	enum top_wish wish = top->screen ? top_screen_key(&top->view, rows) : TOP_NOTHING;

	if (wish == TOP_QUIT)
		return true;
	obey(top, wish);
	if (is_due)
		top->next_ns = now + top->interval_ns;
	for (size_t i = 0; i < top->shown.count; i++) {
		struct shown *p = top->shown.data[i];
		const struct report r = session_report(p->session);

		if (p->table && !is_due)
			continue;
		if (!p->table)
			p->table = xcalloc(1, sizeof(*p->table));
		top_table_update(p->table, &r, clock_now_ns());
	}
	if (is_due || wish != TOP_NOTHING)
		show(top);
	return false;
}
