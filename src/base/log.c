/*
 * Each message is one formatted line and one write, so that lines of several processes on one
 * terminal do not mix. See log.h for the levels.
 */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/globals.h"
#include "base/utf8.h"

void log_set_name(const char *name)
{
	globals.log.name = name;
}

void log_set_fd(int fd)
{
	globals.log.fd = fd;
}

void log_set_level(enum log_level level)
{
	globals.log.max = level;
}

void log_set_color(enum color_mode mode)
{
	globals.log.color = mode;
}

void log_set_line_hook(void (*hook)(void))
{
	globals.log.line_hook = hook;
}

void log_before_line(void)
{
	if (globals.log.line_hook)
		globals.log.line_hook();
}

bool log_is_on(enum log_level level)
{
	return level <= globals.log.max;
}

bool log_use_color(int fd)
{
	if (globals.log.color != COLOR_AUTO)
		return globals.log.color == COLOR_ALWAYS;
	const char *no = getenv("NO_COLOR"), *force = getenv("CLICOLOR_FORCE");
	if (no && *no)
		return false;
	if (force && *force && strcmp(force, "0") != 0)
		return true;
	const char *term = getenv("TERM");
	return isatty(fd) && (!term || strcmp(term, "dumb") != 0);
}

static int write_all(int fd, const char *p, size_t n)
{
	while (n > 0) {
		ssize_t k = write(fd, p, n);
		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return k < 0 ? -errno : -EIO;
		p += k;
		n -= (size_t)k;
	}
	return 0;
}

/*
 * If the log cannot be written, that is reported on standard error, where the rest goes, too.
 * Errors of standard error are ignored.
 */
static void write_line(const char *line, size_t size)
{
	int rc = write_all(globals.log.fd, line, size);
	if (rc == 0 || globals.log.fd == STDERR_FILENO)
		return;
	globals.log.fd = STDERR_FILENO;
	log_warn("the log cannot be written: %s; it continues here", strerror(-rc));
	write_all(globals.log.fd, line, size);
}

/* A control character of ASCII; tabs are none here. */
static bool is_control(char c)
{
	return ((unsigned char)c < ' ' && c != '\t') || c == 0x7f;
}

/*
 * Names of files and programs may hold anything: in a message nothing of it reaches a terminal as a
 * command, looks like another line, or is not seen.
 */
char *log_visible(const char *text)
{
	size_t left = strlen(text);
	char *out = malloc(4 * left + 1), *p = out;

	for (size_t n; out && left; text += n, left -= n) {
		size_t size = is_control(*text) ? 0 : utf8_character(text, left);

		if (size > 1 && utf8_unseen(text, size))
			size = 0; /* its bytes follow one by one: none of them begins another */
		if (size)
			p = mempcpy(p, text, size);
		else if (*text == '\n')
			p = stpcpy(p, "\\n");
		else
			p += sprintf(p, "\\x%02x", (unsigned char)*text);
		n = MAX(size, (size_t)1);
	}
	if (out)
		*p = '\0';
	return out;
}

static void print_line(enum log_level level, const char *text)
{
	bool color = (level == LOG_ERROR || level == LOG_WARN) && log_use_color(globals.log.fd);
	const char *on = !color ? "" : level == LOG_ERROR ? "\033[1;31m" : "\033[1;33m";
	char *line;
	int n = asprintf(&line, "%s: %s%s%s%s\n", globals.log.name, on,
			 level == LOG_WARN ? "warning: " : "", text, color ? "\033[0m" : "");

	if (n < 0)
		return;
	if (level == LOG_INFO && globals.log.collected) {
		fputs(line, globals.log.collected);
		free(line);
		return;
	}
	log_before_line();
	write_line(line, (size_t)n);
	free(line);
}

FILE *log_collect_info(FILE *to)
{
	FILE *before = globals.log.collected;

	globals.log.collected = to;
	return before;
}

void log_print_collected(const char *text)
{
	if (!*text)
		return;
	log_before_line();
	write_line(text, strlen(text));
}

void log_print(enum log_level level, const char *fmt, ...)
{
	if (!log_is_on(level))
		return;
	int saved = errno;
	char *text;
	va_list ap;
	va_start(ap, fmt);
	int n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n >= 0) {
		char *visible = log_visible(text);

		if (visible)
			print_line(level, visible);
		free(visible);
		free(text);
	}
	errno = saved;
}

void log_print_lines(enum log_level level, const char *prefix, char *text)
{
	for (char *line; (line = strsep(&text, "\n"));) {
		if (*line)
			log_print(level, "%s%s", prefix, line);
	}
}

void log_set_check_hook(void (*hook)(void *ctx), void *ctx)
{
	globals.log.check_hook = hook;
	globals.log.check_ctx = ctx;
}

void check_failed(const char *cond, const char *file, int line)
{
	log_print(LOG_ERROR, "internal error: %s is false (%s:%d); please report this", cond, file,
		  line);
	void (*hook)(void *ctx) = globals.log.check_hook;
	globals.log.check_hook = NULL;
	if (hook)
		hook(globals.log.check_ctx);
	abort();
}
