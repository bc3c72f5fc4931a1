/*
 *	caller                      child
 *	                            for each request:
 *	shows progress         <--    PROGRESS: bytes so far, of how many
 *	calls found()          <--    FOUND: the path in the client's cache; or MISSING
 *	its pipe has ended     <--  exits
 *
 * The child is killed when the caller gives up, and when the caller dies.
 */
#include "symbols/debuginfod.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/amount.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/daemon.h"
#include "base/log.h"

#define LIBRARY "libdebuginfod.so.1"
#define POLL_MS 100
#define TIMEOUT_S 10

enum kind { PROGRESS, FOUND, MISSING, NO_LIBRARY };

/* About the first request without an answer. At most PIPE_BUF bytes: written at once. */
struct message {
	enum kind kind;
	long done, whole;        /* PROGRESS: bytes; whole <= 0: no bytes yet */
	char path[PIPE_BUF - 64]; /* FOUND */
};

bool debuginfod_is_configured(void)
{
	const char *urls = getenv("DEBUGINFOD_URLS");

	return urls && urls[strspn(urls, " ")];
}

/* -- the child -- */

/* elfutils/debuginfod.h */
typedef struct debuginfod_client client;
typedef int progress_fn(client *c, long done, long whole);

struct library {
	client *(*begin)(void);
	void (*set_progressfn)(client *c, progress_fn *fn);
	int (*find_debuginfo)(client *c, const unsigned char *id, int size, char **path);
};

/* It is never unloaded. Its limits stop a server whose answer never ends. */
static bool load(struct library *lib)
{
	setenv("DEBUGINFOD_MAXSIZE", "4294967296", false); /* bytes of a file */
	setenv("DEBUGINFOD_MAXTIME", "300", false);        /* seconds for a file */
	void *handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

	if (!handle)
		return false;
	*(void **)&lib->begin = dlsym(handle, "debuginfod_begin");
	*(void **)&lib->set_progressfn = dlsym(handle, "debuginfod_set_progressfn");
	*(void **)&lib->find_debuginfo = dlsym(handle, "debuginfod_find_debuginfo");
	return lib->begin && lib->set_progressfn && lib->find_debuginfo;
}

static void tell(const struct message *m)
{
	if (write(STDIN_FILENO, m, sizeof(*m)) != (ssize_t)sizeof(*m))
		_exit(1); /* the caller is gone */
}

static int on_progress(client *c, long done, long whole)
{
	const struct message m = {.kind = PROGRESS, .done = done, .whole = whole};

	(void)c;
	tell(&m);
	return 0;
}

static void fetch_one(const struct library *lib, client *c, const struct debuginfod_request *r)
{
	struct message m = {.kind = MISSING};
	char *path = NULL;
	int fd = lib->find_debuginfo(c, r->build_id, (int)r->build_id_size, &path);

	if (fd >= 0 && path && strlen(path) < sizeof(m.path)) {
		m.kind = FOUND;
		strcpy(m.path, path);
	}
	tell(&m);
	if (fd >= 0)
		close(fd);
	free(path);
}

/* It keeps no file of its caller open, and dies with it. */
static void leave_environment(int fd)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	daemon_ignore_signals();
	daemon_leave_files(fd, -1);
}

ATTR_NORETURN static void run_child(int fd, const struct debuginfod_request *request, size_t count)
{
	struct library lib = {0};
	client *c;

	leave_environment(fd);
	c = load(&lib) ? lib.begin() : NULL;
	if (!c)
		tell(&(struct message){.kind = NO_LIBRARY});
	else
		lib.set_progressfn(c, on_progress);
	for (size_t i = 0; c && i < count; i++)
		fetch_one(&lib, c, &request[i]);
	_exit(0);
}

/* -- the caller -- */

struct fetch {
	const struct debuginfod_request *request;
	size_t count, at;        /* number of requests, and of answers */
	const struct debuginfod_ops *ops;
	long done;               /* bytes of the current one */
	uint64_t news_ns;        /* when something arrived */
	bool has_line;           /* on the terminal */
};

static void show_progress(struct fetch *f, long whole)
{
	char done[AMOUNT_SIZE], all[AMOUNT_SIZE];

	if (!isatty(STDERR_FILENO) || !log_is_on(LOG_INFO))
		return;
	_cleanup_free_ char *name = log_visible(f->request[f->at].name);

	fprintf(stderr, "\r\x1b[Kptmem: debuginfod: %zu of %zu: %s", f->at + 1, f->count,
		name ? name : "");
	if (whole > 0)
		fprintf(stderr, ", %s of %s", amount_bytes((double)f->done, done),
			amount_bytes((double)whole, all));
	fflush(stderr);
	f->has_line = true;
}

static void clear_line(struct fetch *f)
{
	if (f->has_line)
		fputs("\r\x1b[K", stderr);
	f->has_line = false;
}

static void take(struct fetch *f, struct message *m)
{
	/* while the size is unknown, only the attempts are counted */
	if (m->kind == PROGRESS && (m->whole <= 0 || m->done == f->done)) {
		if (!f->has_line)
			show_progress(f, 0);
		return;
	}
	f->news_ns = clock_now_ns();
	f->done = m->done;
	if (m->kind == PROGRESS) {
		show_progress(f, m->whole);
		return;
	}
	if (m->kind == NO_LIBRARY) {
		log_info("hint: DEBUGINFOD_URLS is set, but libdebuginfod is not installed "
			 "(package libdebuginfod1): stripped objects have no names");
		f->at = f->count;
		return;
	}
	m->path[sizeof(m->path) - 1] = '\0';
	if (m->kind == FOUND)
		f->ops->found(f->ops->ctx, f->at, m->path);
	f->at++;
	f->done = 0;
}

static uint64_t timeout_ns(void)
{
	const char *text = getenv("DEBUGINFOD_TIMEOUT");
	long seconds = text ? strtol(text, NULL, 10) : 0;

	return (uint64_t)(seconds > 0 && seconds < 86400 ? seconds : TIMEOUT_S) * 1000000000;
}

/* False at the end, or if it is time to give up. */
static bool go_on(struct fetch *f, int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	struct message m;

	if (f->ops->should_stop(f->ops->ctx))
		return false;
	if (poll(&p, 1, POLL_MS) > 0) {
		if (read(fd, &m, sizeof(m)) != (ssize_t)sizeof(m))
			return false;
		take(f, &m);
	}
	if (clock_now_ns() - f->news_ns < timeout_ns())
		return f->at < f->count;
	clear_line(f);
	log_warn("debuginfod: nothing has arrived for %llu s: the debug information of %s%s is "
		 "missing; --debuginfod=no does not ask for it",
		 (unsigned long long)timeout_ns() / 1000000000, f->request[f->at].name,
		 f->at + 1 < f->count ? " and others" : "");
	return false;
}

void debuginfod_fetch(const struct debuginfod_request *request, size_t count,
		      const struct debuginfod_ops *ops)
{
	struct fetch f = {.request = request, .count = count, .ops = ops,
			  .news_ns = clock_now_ns()};
	int end[2];

	if (count == 0 || pipe2(end, O_CLOEXEC) != 0)
		return;
	pid_t pid = fork();

	if (pid == 0)
		run_child(end[1], request, count);
	close(end[1]);
	while (pid > 0 && go_on(&f, end[0]))
		;
	clear_line(&f);
	if (pid > 0) {
		kill(pid, SIGKILL);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	close(end[0]);
}
