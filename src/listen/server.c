/*
 * Starts the server and runs its loop. States of a job:
 *
 *	NEW       it waits for the next question to ptmem
 *	ASKED     it waits for ptmem's answer
 *	RESTING   ?seconds=: it has its base profile, and becomes NEW again later
 *
 * Once ptmem is gone, jobs are answered immediately from its final state. So they are while it
 * detaches or writes its files: that may take long, and it answers nothing then.
 */
#include "listen/server.h"

#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/own_process.h"
#include "listen/answer.h"
#include "listen/http.h"
#include "listen/listen_message.h"
#include "listen/served.h"
#include "tracee/os/own_settings.h"

#define NAME "heap-listen"
#define ASK_NS 100000000ull      /* minimum time between questions about the history */
#define TOTALS_NS 1000000ull     /* the same about totals only, which take ptmem microseconds */
#define ANSWER_NS 10000000000ull /* maximum time for an answer of ptmem */
#define GRAPH_NS 120000000000ull /* the same with a new heap graph */
#define MAX_DELTAS 64            /* requests with seconds= at a time */
#define SECOND_NS 1000000000ull
/* bytes: an answer about LISTEN_PROCESSES takes more than the default, if the server is slow */
#define ANSWER_ROOM (1 << 20)
#define CLOSING_NS 5000000000ull /* maximum time for open connections after the end */
#define CHECK_NS 100000000ull    /* between checks whether there are any */
#define LARGE (256 << 10)         /* buffers that the kernel gets back as soon as they are freed */

enum job_state { NEW, ASKED, RESTING };

struct waiting {
	struct http_job *job;
	enum job_state state;
	uint64_t due_ns;           /* NEW, ASKED: deadline; RESTING: when it becomes NEW */
	struct answer_base *base;  /* owned; NULL = none yet */
};

struct server {
	int fd, wake_fd;           /* connected to ptmem; signals new jobs */
	uint32_t ptmem;            /* ptmem's pid */
	struct http *http;
	struct served_table table;
	VEC(struct waiting) jobs;
	uint32_t number;           /* of the last question */
	bool wants_history;        /* it does */
	uint64_t asked_ns;         /* when it was asked */
	uint64_t next_ask_ns;      /* until the answer, when it counts as lost */
	uint64_t next_history_ns;  /* no earlier question wants the history */
	double linger;             /* seconds */
	uint64_t end_ns;           /* when the server ends, once ptmem is gone; 0 = ptmem runs */
};

/* -- jobs -- */

static void finish(struct server *s, size_t i)
{
	answer_base_free(s->jobs.data[i].base);
	http_finish(s->jobs.data[i].job);
	vec_take_swap(&s->jobs, i);
}

static bool is_delta(const struct http_job *job)
{
	return job->seconds && (job->path == HTTP_HEAP || job->path == HTTP_ALLOCS);
}

/* Those that wait for seconds= must not be all that there is room for. */
static bool is_too_many(const struct server *s, const struct http_job *job)
{
	size_t count = 0;

	for (size_t i = 0; i < s->jobs.count; i++)
		count += is_delta(s->jobs.data[i].job);
	return is_delta(job) && count >= MAX_DELTAS;
}

/* Ends those for seconds= whose clients wait no more, to make room. */
static void drop_abandoned(struct server *s)
{
	for (size_t i = s->jobs.count; i-- > 0;) {
		struct http_job *job = s->jobs.data[i].job;

		if (!is_delta(job) || !http_is_abandoned(job))
			continue;
		http_answer(job, 503, "another client needed the place\n");
		finish(s, i);
	}
}

static bool is_making_graph(const struct server *s)
{
	for (size_t i = 0; i < s->jobs.count; i++)
		if (s->jobs.data[i].job->is_post)
			return true;
	return false;
}

static void take_jobs(struct server *s, uint64_t now)
{
	struct http_job *job;

	while ((job = http_take(s->http))) {
		if (job->is_post && is_making_graph(s)) {
			http_answer(job, 409, "a heap graph is being made: wait for that\n");
			http_finish(job);
			continue;
		}
		if (is_too_many(s, job))
			drop_abandoned(s);
		if (!is_too_many(s, job)) {
			*vec_add(&s->jobs) = (struct waiting){
				.job = job, .state = NEW,
				.due_ns = now + (job->is_post ? GRAPH_NS : ANSWER_NS)};
			continue;
		}
		http_answer(job, 503, "too many requests with seconds= at a time\n");
		http_finish(job);
	}
}

/* For seconds=: the difference begins here. False if it has begun, or there is no profile. */
static bool begin_delta(struct server *s, struct waiting *w)
{
	if (!is_delta(w->job) || w->base)
		return false;
	w->base = answer_base_new(&s->table, w->job);
	return w->base;
}

static void answer(struct server *s, size_t i)
{
	struct waiting *w = &s->jobs.data[i];

	answer_write(w->job, &s->table, w->base, s->ptmem);
	finish(s, i);
}

/* ptmem's answer is complete. */
static void go_on(struct server *s, size_t i, uint64_t now)
{
	struct waiting *w = &s->jobs.data[i];

	if (!begin_delta(s, w)) {
		answer(s, i);
		return;
	}
	w->state = RESTING;
	w->due_ns = now + w->job->seconds * SECOND_NS;
}

/* Whether jobs are answered without asking ptmem. */
static bool answers_alone(const struct server *s)
{
	return s->end_ns || s->table.is_finishing;
}

static void check_times(struct server *s, uint64_t now)
{
	for (size_t i = s->jobs.count; i-- > 0;) {
		struct waiting *w = &s->jobs.data[i];

		if (answers_alone(s)) {
			begin_delta(s, w);
			answer(s, i);
			continue;
		}
		if (w->due_ns > now)
			continue;
		if (w->state == RESTING) {
			w->state = NEW;
			w->due_ns = now + ANSWER_NS;
			continue;
		}
		http_answer(w->job, 503, "ptmem did not answer in time\n");
		finish(s, i);
	}
}

/* -- ptmem -- */

/* When @w, which is NEW, may be asked for. */
static uint64_t ask_time(const struct server *s, const struct waiting *w)
{
	bool needs_history = answer_needs_history(w->job);

	return needs_history ? MAX(s->next_ask_ns, s->next_history_ns) : s->next_ask_ns;
}

static void ask(struct server *s, uint64_t now)
{
	struct listen_ask a = {.kind = LISTEN_ASK, .number = s->number + 1};
	bool is_needed = false;

	if (answers_alone(s))
		return;
	for (size_t i = 0; i < s->jobs.count; i++) {
		struct waiting *w = &s->jobs.data[i];

		if (w->state != NEW || now < ask_time(s, w))
			continue;
		w->state = ASKED;
		is_needed = true;
		a.wants_history |= answer_needs_history(w->job);
		if (w->job->is_post) {
			a.wants_graph = true;
			a.graph_of = w->job->pid;
		}
	}
	if (!is_needed)
		return;
	if (send(s->fd, &a, sizeof(a), MSG_NOSIGNAL) != (ssize_t)sizeof(a))
		return; /* ptmem is gone; poll reports it */
	s->number = a.number;
	s->wants_history = a.wants_history;
	s->asked_ns = now;
	s->next_ask_ns = now + (a.wants_graph ? GRAPH_NS : ANSWER_NS);
	served_begin(&s->table);
}

static void take_done(struct server *s, const struct listen_done *done)
{
	uint64_t now = clock_now_ns();

	if (done->number != s->number)
		return;
	s->next_ask_ns = s->asked_ns + TOTALS_NS;
	if (s->wants_history)
		s->next_history_ns = s->asked_ns + ASK_NS;
	served_end(&s->table, done);
	memcpy(s->table.why, done->why, sizeof(s->table.why) - 1);
	for (size_t i = s->jobs.count; i-- > 0;) {
		if (s->jobs.data[i].state == ASKED)
			go_on(s, i, now);
	}
	served_rest(&s->table);
}

union message {
	uint32_t kind;
	struct listen_process process;
	struct listen_done done;
	struct listen_finishing finishing;
};

/* The files received with @m, which the caller owns; -1 = none. */
static void take_files(struct msghdr *m, struct served_files *out)
{
	const struct cmsghdr *c = CMSG_FIRSTHDR(m);
	int fd[LISTEN_FILES] = {-1, -1, -1};

	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
	    c->cmsg_len >= CMSG_LEN(0))
		memcpy(fd, CMSG_DATA(c), MIN(c->cmsg_len - CMSG_LEN(0), sizeof(fd)));
	*out = (struct served_files){fd[0], fd[1], fd[2]};
}

/* False: ptmem has ended. */
static bool take_message(struct server *s)
{
	union message m = {0};
	char control[CMSG_SPACE(LISTEN_FILES * sizeof(int))];
	struct served_files files;
	struct iovec part = {&m, sizeof(m)};
	struct msghdr head = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control,
			      .msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(s->fd, &head, MSG_CMSG_CLOEXEC);

	if (n <= 0)
		return n < 0 && errno == EINTR;
	metrics_note_cpu(&s->table, s->ptmem);
	take_files(&head, &files);
	if (m.kind == LISTEN_PROCESS || m.kind == LISTEN_LAST)
		served_add(&s->table, &m.process, files);
	else if (m.kind == LISTEN_DONE)
		take_done(s, &m.done);
	else if (m.kind == LISTEN_FINISHING)
		s->table.is_finishing = m.finishing.begins;
	return true;
}

/* -- the end -- */

/* Signals sent while ptmem ran were meant for that; now the server is all there is to end. */
static void restore_signals(void)
{
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	signal(SIGHUP, SIG_DFL);
}

/* ptmem is gone. It was killed if it sent no final state. */
static void begin_end(struct server *s, uint64_t now)
{
	bool has_final_state = false;

	for (size_t i = 0; i < s->table.list.count; i++)
		has_final_state |= s->table.list.data[i].info.state >= LISTEN_ENDED;
	if (!has_final_state)
		_exit(0);
	restore_signals();
	s->table.is_over = true;
	s->end_ns = now + (s->linger > 0 ? (uint64_t)(s->linger * SECOND_NS) : CLOSING_NS);
	if (s->linger <= 0)
		http_stop_listening(s->http);
}

/* -- the loop -- */

/* Milliseconds until the next deadline; -1 = there is none. */
static int time_left_ms(const struct server *s, uint64_t now)
{
	uint64_t next = s->end_ns ? MIN(s->end_ns, now + CHECK_NS) : UINT64_MAX;

	for (size_t i = 0; i < s->jobs.count; i++) {
		next = MIN(next, s->jobs.data[i].due_ns);
		if (s->jobs.data[i].state == NEW)
			next = MIN(next, ask_time(s, &s->jobs.data[i]));
	}
	if (next == UINT64_MAX)
		return -1;
	return next <= now ? 0 : (int)((next - now) / 1000000 + 1);
}

ATTR_NORETURN static void serve(struct server *s)
{
	uint64_t count;

	for (;;) {
		uint64_t now = clock_now_ns();
		/* no descriptor is ignored */
		struct pollfd fds[] = {{.fd = s->end_ns ? -1 : s->fd, .events = POLLIN},
				       {.fd = s->wake_fd, .events = POLLIN}};

		take_jobs(s, now);
		check_times(s, now);
		ask(s, now);
		bool is_idle = s->linger <= 0 && !s->jobs.count && !http_connections(s->http);

		if (s->end_ns && (is_idle || now >= s->end_ns))
			_exit(0);
		if (poll(fds, ARRAY_SIZE(fds), time_left_ms(s, now)) < 0)
			continue;
		if (fds[1].revents && read(s->wake_fd, &count, sizeof(count)) < 0)
			continue;
		if (fds[0].revents && !take_message(s))
			begin_end(s, clock_now_ns());
	}
}

/* -- start -- */

int server_socket(struct listen_address *a)
{
	int fd = socket(a->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1;
	socklen_t size = sizeof(a->v6);

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, &a->any, a->size) == 0 && listen(fd, SOMAXCONN) == 0 &&
	    getsockname(fd, &a->any, &size) == 0)
		return fd;
	int err = errno;

	close(fd);
	return -err;
}

/*
 * Closes all files of ptmem but two, leaves its terminal and directory, and ignores signals meant
 * for ptmem, as long as that runs.
 */
static void leave_environment(int fd, int listening)
{
	daemon_ignore_signals();
	setsid();
	prctl(PR_SET_NAME, NAME);
	daemon_leave_files(fd, listening);
	if (chdir("/") != 0)
		return;
}

/* What a new server knows. */
struct inherited {
	const struct server_options *o;
	int fd;
	pid_t ptmem;
};

static void run_server(void *ctx)
{
	const struct inherited *i = ctx;
	const struct server_options *o = i->o;
	struct listen_greeting g = {.kind = LISTEN_FAILED};
	struct server s = {.fd = STDIN_FILENO, .ptmem = (uint32_t)i->ptmem, .linger = o->linger};

	log_set_check_hook(NULL, NULL); /* the tracees are ptmem's */
	limit_raise(RLIMIT_NOFILE, NULL);
	mallopt(M_MMAP_THRESHOLD, LARGE); /* it grows otherwise */
	s.table.lines = name_resolver_new(o->symbols, o->filter);
	leave_environment(i->fd, o->listening);
	s.wake_fd = eventfd(0, EFD_CLOEXEC);
	const struct http_options http = {.fd = DAEMON_KEPT, .token = o->token,
					  .is_open = o->is_open, .wake_fd = s.wake_fd};
	const char *why = http_start(&http, &s.http);

	if (why)
		strncpy(g.why, why, sizeof(g.why) - 1);
	else
		g.kind = LISTEN_READY;
	if (send(STDIN_FILENO, &g, sizeof(g), MSG_NOSIGNAL) != (ssize_t)sizeof(g) || why)
		_exit(0);
	serve(&s);
}

char *server_wait(int fd)
{
	struct listen_greeting g;
	ssize_t n;

	while ((n = recv(fd, &g, sizeof(g), 0)) < 0 && errno == EINTR)
		;
	if (n != (ssize_t)sizeof(g))
		return xstrdup("the server ended at once");
	return g.kind == LISTEN_READY ? NULL : xstrndup(g.why, sizeof(g.why));
}

int server_start(const struct server_options *o)
{
	const int room = ANSWER_ROOM;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		return -errno;
	setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	int rc = daemon_start(run_server, &(struct inherited){o, pair[1], getpid()});

	close(pair[1]);
	if (rc == 0)
		return pair[0];
	close(pair[0]);
	return rc;
}
