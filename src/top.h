/*
 * --top: the table of call sites, refreshed while the program runs. On a terminal and
 * with -p it is a screen with keys; else a table goes to stderr at each interval.
 */
#ifndef PTMEM_TOP_H
#define PTMEM_TOP_H

#include "output/top_table.h"
#include "session.h"

/* Begins the waking of the loop, and the screen if there can be one. */
void top_start(struct run *run);
void top_stop(struct run *run);

/* From the loop: shows what is due and obeys keys. True: the user wants to leave. */
bool top_poll(struct run *run);

/* A session is about to go: its table too. */
void top_forget(struct session *s);

/* -- top_screen.c -- */

/* What the user asked for by a key; the others change the view alone. */
enum top_wish { TOP_NOTHING, TOP_REDRAW, TOP_RESTART, TOP_SNAPSHOT, TOP_QUIT };

struct top_view {
	enum top_order order;
	size_t selected;       /* row */
	bool is_expanded;      /* the selected site's largest path is shown */
	char message[160];     /* one line for the user; "" = none */
};

bool top_screen_open(void);
void top_screen_close(void);
/* Reads at most one key. */
enum top_wish top_screen_key(struct top_view *view, size_t rows);
void top_screen_begin(void);
void top_screen_line(const char *text, bool is_reverse);
int top_screen_lines(void); /* that are left */
void top_screen_end(void);

#endif
