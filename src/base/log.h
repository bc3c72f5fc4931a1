/*
 * Messages on stderr, each line with the prefix "ptmem: " (or the name set by
 * log_set_name), and CHECK, an assertion that stays on in release builds.
 *
 * What would not be visible, or acts on a terminal, is printed as \n or \x1b, also in results.
 *
 * Levels: results (what the user asked to see), errors and warnings always print; info is
 * silenced by -q; verbose needs -v; debug needs -v -v. A closed or full stderr is ignored.
 */
#ifndef PTMEM_BASE_LOG_H
#define PTMEM_BASE_LOG_H

#include <stdio.h>

#include "base/types.h"

enum log_level { LOG_RESULT, LOG_ERROR, LOG_WARN, LOG_INFO, LOG_VERBOSE, LOG_DEBUG };
enum color_mode { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

void log_set_name(const char *name);       /* @name is kept, not copied */
void log_set_fd(int fd);                   /* replaces standard error; owned by the caller */
void log_set_level(enum log_level level);  /* the most verbose level that prints */
void log_set_color(enum color_mode mode);  /* honours NO_COLOR, CLICOLOR_FORCE, TERM=dumb */
bool log_is_on(enum log_level level);

/* Whether escape sequences may be written to descriptor @fd in the current mode. */
bool log_use_color(int fd);

void log_print(enum log_level level, const char *fmt, ...) ATTR_PRINTF(2, 3);
/* @text as a message shows it. The caller frees it; NULL = no memory. */
char *log_visible(const char *text);
/* Prints each non-empty line of @text after @prefix. Modifies @text. */
void log_print_lines(enum log_level level, const char *prefix, char *text);

/*
 * @hook is called before each line is printed, so that code that draws on the terminal can restore
 * it. NULL = none.
 */
void log_set_line_hook(void (*hook)(void));
/* Calls the hook. For code that writes to standard error itself. */
void log_before_line(void);

/*
 * Messages of level LOG_INFO go to @to, the caller's, instead of being printed; NULL: they are
 * printed. Returns what it was before.
 */
FILE *log_collect_info(FILE *to);
/* Prints what was collected. */
void log_print_collected(const char *text);

#define log_error(...) log_print(LOG_ERROR, __VA_ARGS__)
#define log_warn(...) log_print(LOG_WARN, __VA_ARGS__)
#define log_info(...) log_print(LOG_INFO, __VA_ARGS__)
#define log_verbose(...) \
	do { if (log_is_on(LOG_VERBOSE)) log_print(LOG_VERBOSE, __VA_ARGS__); } while (0)
#define log_debug(...) do { if (log_is_on(LOG_DEBUG)) log_print(LOG_DEBUG, __VA_ARGS__); } while (0)

/*
 * @hook is called by a failed CHECK before the process aborts. main sets it to detach from the
 * traced program. NULL = none.
 */
void log_set_check_hook(void (*hook)(void *ctx), void *ctx);

ATTR_NORETURN void check_failed(const char *cond, const char *file, int line);

#define CHECK(cond) ((cond) ? (void)0 : check_failed(#cond, __FILE__, __LINE__))

#ifdef PTMEM_DEBUG
#define CHECK_DEBUG(cond) CHECK(cond)
#else
#define CHECK_DEBUG(cond) ((void)0)
#endif

#endif
