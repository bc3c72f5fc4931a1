/*
 * The terminal of --top, with ncurses; independent of profiles.
 *
 *	l g s r     order by live bytes, growth, growth since the start, rate
 *	a           attribute to callers of allocator wrappers, or to callers of malloc
 *	up down     select a site        enter  its largest call path
 *	z           growth since the start restarts
 *	w           write a massif file  q      leave
 *
 * Messages go to the same terminal: before each one the screen is closed, so that the message
 * remains visible after the end, and the next refresh opens it again.
 */
#include "live/top_screen.h"

#include <ncurses.h>
#include <signal.h>
#include <term.h>
#include <unistd.h>

#include "base/log.h"

/* "dumb" is a terminal, too; but drawing needs cursor positioning. */
static bool can_place_cursor(void)
{
	int error;

	return setupterm(NULL, STDOUT_FILENO, &error) == OK && cursor_address && *cursor_address &&
	       clear_screen;
}

static void leave_screen(void)
{
	if (!isendwin())
		endwin();
}

bool top_screen_open(void)
{
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || !can_place_cursor() ||
	    !newterm(NULL, stdout, stdin))
		return false;
	log_set_line_hook(leave_screen);
	cbreak();
	noecho();
	nodelay(stdscr, true);
	keypad(stdscr, true);
	curs_set(0);
	return true;
}

void top_screen_close(void)
{
	log_set_line_hook(NULL);
	leave_screen();
}

static enum top_wish set_order(struct top_view *view, enum top_order order)
{
	view->order = order;
	return TOP_REDRAW;
}

enum top_wish top_screen_key(struct top_view *view, size_t rows)
{
	int key = getch();

	if (key == ERR)
		return TOP_NOTHING;
	view->message[0] = '\0';
	switch (key) {
	case 'l':
		return set_order(view, TOP_LIVE);
	case 'g':
		return set_order(view, TOP_GROWTH);
	case 's':
		return set_order(view, TOP_SINCE_START);
	case 'r':
		return set_order(view, TOP_RATE);
	case 'a':
		view->is_above_wrappers = !view->is_above_wrappers;
		return TOP_REDRAW;
	case KEY_UP:
		view->selected -= view->selected > 0;
		return TOP_REDRAW;
	case KEY_DOWN:
		view->selected += view->selected + 1 < rows;
		return TOP_REDRAW;
	case '\n':
	case KEY_ENTER:
		view->is_expanded = !view->is_expanded;
		return TOP_REDRAW;
	case 'z':
		return TOP_RESTART;
	case 'w':
		return TOP_SNAPSHOT;
	case 'q':
		return TOP_QUIT;
	}
	return TOP_REDRAW;
}

void top_screen_begin(struct top_screen *screen)
{
	erase();
	screen->line = 0;
}

void top_screen_line(struct top_screen *screen, const char *text, bool is_reverse)
{
	if (screen->line >= LINES)
		return;
	if (is_reverse)
		attron(A_REVERSE);
	mvaddnstr(screen->line++, 0, text, COLS);
	if (is_reverse)
		attroff(A_REVERSE);
}

int top_screen_lines(const struct top_screen *screen)
{
	return LINES - screen->line;
}

int top_screen_columns(void)
{
	return COLS;
}

/* curses ignores SIGTSTP while it draws: a blocked one is delivered afterwards and not lost. */
void top_screen_end(void)
{
	sigset_t suspend, before;
	sigemptyset(&suspend);
	sigaddset(&suspend, SIGTSTP);
	sigprocmask(SIG_BLOCK, &suspend, &before);
	refresh();
	sigprocmask(SIG_SETMASK, &before, NULL);
}
