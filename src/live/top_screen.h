/* The terminal of --top. */
#ifndef PTMEM_TOP_SCREEN_H
#define PTMEM_TOP_SCREEN_H

#include "base/types.h"
#include "live/top.h"

/* What a key requested; other keys only change the view. */
enum top_wish { TOP_NOTHING, TOP_REDRAW, TOP_RESTART, TOP_SNAPSHOT, TOP_QUIT };

struct top_view {
	enum top_order order;
	size_t selected;       /* row */
	bool is_above_wrappers; /* sites are callers of allocator wrappers */
	bool is_expanded;      /* the selected site's largest path is expanded */
	char message[4200];    /* one line for the user, with a path; "" = none */
};

struct top_screen {
	int line; /* the next one */
};

/* False: there is no terminal on which a table can be drawn. */
bool top_screen_open(void);
void top_screen_close(void);
/* Reads at most one key. */
enum top_wish top_screen_key(struct top_view *view, size_t rows);
void top_screen_begin(struct top_screen *screen);
void top_screen_line(struct top_screen *screen, const char *text, bool is_reverse);
int top_screen_lines(const struct top_screen *screen); /* lines left */
int top_screen_columns(void);
void top_screen_end(void);

#endif
