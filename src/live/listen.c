/*
 * The server's question raises SIGIO, which wakes the loop as that of a client of --monitor does
 * (monitor.c). Answers are sent without waiting: a server that does not read them gets none. The
 * final state has a profile only if a client has seen one, or still can because of --listen-linger.
 */
#include "live/live.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "listen/http_access.h"
#include "listen/listen_message.h"
#include "listen/server.h"
#include "session/inspect/inspect_session.h"
#include "session/labels.h"
#include "session/observer.h"
#include "session/record/recording_run.h"
#include "session/record/recording_values.h"
#include "session/session.h"
#include "session/signals.h"

struct listen {
	struct run *run;
	struct listen_address address;
	struct server_options server;
	int fd;                 /* connected to the server; -1: there is none (any more) */
	unsigned kills;         /* of servers */
	bool is_lost;           /* the server died and was not replaced */
	struct observer observer;
	char *token;            /* NULL = none */
	bool was_asked;         /* for a profile, not only for totals */
	bool is_leaving;        /* sessions end since ptmem detaches */
	unsigned left;          /* number of those whose final state was sent */
};

#define MAX_KILLS 10

static void end_server(struct listen *l)
{
	if (l->fd >= 0)
		close(l->fd);
	if (l->server.listening >= 0)
		close(l->server.listening);
	l->fd = l->server.listening = -1;
}

/* -- answers -- */

static void fill_totals(const struct session *s, struct listen_totals *out)
{
	const struct profile_totals *t = profile_totals(s->heap.profile);
	const struct space_pauses *p = s->space ? &s->space->pauses : &s->end.pauses;
	const struct call_totals calls = recording_calls_now(s);
	const struct call_sums sums = call_totals_sums(&calls);

	*out = (struct listen_totals){
		.live_bytes = t->live_bytes,
		.live_blocks = profile_count(s->heap.profile, t->live_blocks),
		.peak_bytes = t->peak_bytes,
		.allocated_bytes = t->allocated_bytes,
		.allocations = profile_count(s->heap.profile, t->allocations),
		.frees = profile_count(s->heap.profile, t->frees),
		.failed = t->failed,
		.interval = s->heap.sample.now,
		.stacks = s->stacks.counts.taken,
		.complete_stacks = s->stacks.counts.complete,
		.stopped_ns = p->stopped_ns,
		.longest_stop_ns = p->longest_ns,
		.trap_stops = p->trap_stops,
		.trap_ns = p->trap_ns,
		.longest_trap_ns = p->longest_trap_ns,
	};
	if (!s->heap.sample.interval)
		return;
	out->allocated_bytes = sums.bytes;
	out->allocations = sums.allocations;
	out->frees = sums.frees;
}

/* Files that are sent along with a message. */
struct files {
	int fd[LISTEN_FILES];
	size_t count;
};

/* @files: NULL = none. False: nothing was sent. */
static bool send_message(const struct listen *l, const void *data, size_t size,
			 const struct files *files)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(LISTEN_FILES * sizeof(int))];
	} control = {0};
	struct iovec part = {(void *)(uintptr_t)data, size};
	struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};

	if (files && files->count) {
		size_t bytes = files->count * sizeof(files->fd[0]);

		control.head = (struct cmsghdr){.cmsg_len = CMSG_LEN(bytes),
						.cmsg_level = SOL_SOCKET,
						.cmsg_type = SCM_RIGHTS};
		memcpy(CMSG_DATA(&control.head), files->fd, bytes);
		m.msg_control = &control;
		m.msg_controllen = CMSG_SPACE(bytes);
	}
	return sendmsg(l->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)size;
}

/* The one of @p with the name and text of @l, which is behind them; or @l. */
static struct listen_label *find_label(struct listen_process *p, struct listen_label *l)
{
	struct listen_label *known = p->label;

	while (known < l &&
	       (strcmp(known->name, l->name) != 0 || strcmp(known->text, l->text) != 0))
		known++;
	return known;
}

/* Texts that are the same as far as they are sent, or "other" of the program's own, are one. */
static void fill_labels(const struct session *s, struct listen_process *p)
{
	struct label_amount amount[LISTEN_LABELS];
	size_t count = labels_live(s, amount, LISTEN_LABELS);

	for (size_t i = 0; i < count; i++) {
		struct listen_label *new = &p->label[p->labels];

		*new = (struct listen_label){0};
		strncpy(new->name, amount[i].name, sizeof(new->name) - 1);
		strncpy(new->text, amount[i].text, sizeof(new->text) - 1);
		struct listen_label *l = find_label(p, new);

		l->live_bytes += amount[i].live_bytes;
		l->allocated_bytes += amount[i].allocated_bytes;
		p->labels += l == new;
	}
}

static bool send_process(const struct listen *l, struct session *s, enum listen_state state,
			 bool wants_history)
{
	struct listen_process p = {.kind = state == LISTEN_RUNS ? LISTEN_PROCESS : LISTEN_LAST,
				   .pid = s->process.pid, .state = state,
				   .is_attached = s->process.name != NULL,
				   .start_ns = s->process.start_ns};
	_cleanup_close_ int journal = wants_history ? recording_run_update(s, &p.journal_size) : -1;
	const struct last_inspection *found = &s->end.inspection;
	struct files files = {{journal}, journal >= 0};

	/* its call paths are in the journal */
	if (journal >= 0 && found->size) {
		files.fd[files.count++] = fileno(found->file);
		p.inspection_size = found->size;
		p.inspection = found->number;
	}
	if (p.inspection_size && found->graph_size) {
		files.fd[files.count++] = fileno(found->graph);
		p.graph_size = found->graph_size;
		p.graph = found->graph_number;
	}
	fill_totals(s, &p.totals);
	fill_labels(s, &p);
	strncpy(p.command, s->process.command, sizeof(p.command) - 1);
	if (s->process.name)
		strncpy(p.name, s->process.name, sizeof(p.name) - 1);
	if (s->process.cgroup)
		strncpy(p.cgroup, s->process.cgroup, sizeof(p.cgroup) - 1);
	return send_message(l, &p, listen_process_size(&p), &files);
}

/* Says in @why, of @size bytes, why there is none. */
static void make_graph(const struct listen *l, uint32_t pid, char *why, size_t size)
{
	FILE *file = fmemopen(why, size, "w");

	if (!file)
		return;
	for (size_t i = 0; i < l->run->sessions.count; i++) {
		struct session *s = l->run->sessions.data[i];

		if (s->space && (!pid || s->process.pid == pid)) {
			inspect_session_keep_graph(s, file);
			fclose(file);
			return;
		}
	}
	fputs("the process has ended\n", file);
	fclose(file);
}

static void answer(const struct listen *l, const struct listen_ask *a)
{
	struct listen_done done = {.kind = LISTEN_DONE, .number = a->number};
	unsigned sent = 0;

	if (a->wants_graph)
		make_graph(l, a->graph_of, done.why, sizeof(done.why) - 1);
	for (size_t i = 0; i < l->run->sessions.count; i++) {
		struct session *s = l->run->sessions.data[i];

		if (!s->space)
			continue;
		if (sent < LISTEN_PROCESSES && send_process(l, s, LISTEN_RUNS, a->wants_history))
			sent++;
		else
			done.left_out++;
	}
	send_message(l, &done, sizeof(done), NULL);
}

static void watch(const struct listen *l)
{
	fcntl(l->fd, F_SETOWN, getpid());
	fcntl(l->fd, F_SETFL, O_NONBLOCK | O_ASYNC);
	signals_raise_io(); /* for requests already made */
}

/* No server ends before ptmem closes its connection, except by a signal, or one of its faults. */
static void replace_server(struct listen *l)
{
	_cleanup_free_ char *url = listen_address_url(&l->address);

	close(l->fd);
	l->fd = l->kills++ < MAX_KILLS ? server_start(&l->server) : -1;
	if (l->fd >= 0) {
		watch(l);
		log_warn("--listen: the server at %s was killed; another one takes its place", url);
		return;
	}
	l->is_lost = true;
	end_server(l);
	log_warn("--listen: the server at %s was killed%s; nothing is served from now on", url,
		 l->kills > MAX_KILLS ? " too often" : ", and no other one can be started");
}

union from_server {
	uint32_t kind;
	struct listen_ask ask;
	struct listen_greeting greeting; /* of one that takes another's place */
};

static bool poll_server(void *ctx)
{
	struct listen *l = ctx;
	union from_server m;

	while (l->fd >= 0) {
		ssize_t n = recv(l->fd, &m, sizeof(m), MSG_DONTWAIT);

		if (n == (ssize_t)sizeof(m.ask) && m.kind == LISTEN_ASK) {
			l->was_asked |= m.ask.wants_history;
			answer(l, &m.ask);
		} else if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
			replace_server(l);
		} else if (n < 0) {
			break;
		}
	}
	return false;
}

/* -- the final state -- */

static void say_finishing(const struct listen *l, bool begins)
{
	const struct listen_finishing f = {.kind = LISTEN_FINISHING, .begins = begins};

	send_message(l, &f, sizeof(f), NULL);
}

/* Whether no session but @ended goes on. */
static bool is_last(const struct listen *l, const struct session *ended)
{
	for (size_t i = 0; i < l->run->sessions.count; i++) {
		const struct session *s = l->run->sessions.data[i];

		if (s != ended && s->space)
			return false;
	}
	return true;
}

/*
 * Unless ptmem leaves all, only for the last process to end: requests about one that ended earlier
 * are answered with an error.
 */
static void on_end(void *ctx, const struct session *s, bool is_exec)
{
	struct listen *l = ctx;

	if (is_exec)
		return;
	bool is_sent = l->is_leaving ? l->left++ < LISTEN_PROCESSES : is_last(l, s);

	for (size_t i = 0; is_sent && i < l->run->sessions.count; i++) {
		if (l->run->sessions.data[i] == s)
			send_process(l, l->run->sessions.data[i],
				     s->process.was_left ? LISTEN_LEFT : LISTEN_ENDED,
				     l->was_asked || l->run->options->listen.linger > 0);
	}
	if (is_last(l, s))
		say_finishing(l, true);
}

/* A program that runs on may do so with ptmem, which would keep the server. */
static void on_finished(void *ctx, const struct session *s)
{
	struct listen *l = ctx;

	if (!is_last(l, s))
		return;
	if (l->is_leaving)
		end_server(l);
	else
		say_finishing(l, false);
}

/* -- life -- */

static int start(struct listen *l)
{
	const struct options *o = l->run->options;
	_cleanup_free_ char *why = NULL;

	listen_address_parse(o->listen.at, &l->address); /* options were checked */
	int rc = server_socket(&l->address);

	l->server = (struct server_options){
		.listening = rc, .token = l->token, .is_open = o->listen.is_open,
		.linger = o->listen.linger, .symbols = l->run->fresh_symbols,
		.filter = l->run->filter};
	if (rc >= 0)
		rc = l->fd = server_start(&l->server);
	if (rc < 0)
		why = xstrdup(strerror(-rc));
	else
		why = server_wait(l->fd);
	_cleanup_free_ char *url = listen_address_url(&l->address);

	if (why)
		log_error("--listen: cannot serve %s: %s", url, why);
	else
		log_info("listening at %s", url);
	return why ? -EIO : 0;
}

int listen_open(struct run *run, struct listen **out)
{
	const struct options *o = run->options;
	const char *why = NULL;

	if (!o->listen.at)
		return 0;
	struct listen *l = xcalloc(1, sizeof(*l));

	l->run = run;
	l->fd = l->server.listening = -1;
	if (o->listen.token)
		why = http_token_read(o->listen.token, &l->token);
	if (why)
		log_error("--listen-token: %s: %s", o->listen.token, why);
	int rc = why ? -EINVAL : start(l);

	if (rc != 0)
		listen_close(l);
	else
		*out = l;
	return rc;
}

void listen_begin(struct listen *l)
{
	if (!l)
		return;
	l->observer = (struct observer){.ctx = l, .poll = poll_server, .session_ended = on_end,
					.session_finished = on_finished};
	observers_add(l->run, &l->observer);
	watch(l);
}

void listen_leave(struct listen *l)
{
	unsigned count = 0;

	if (!l)
		return;
	l->is_leaving = true;
	for (size_t i = 0; i < l->run->sessions.count && count < LISTEN_PROCESSES; i++) {
		struct session *s = l->run->sessions.data[i];

		if (s->space)
			count += send_process(l, s, LISTEN_LEAVES, false);
	}
	say_finishing(l, true);
}

void listen_close(struct listen *l)
{
	if (!l)
		return;
	observers_remove(l->run, &l->observer);
	if (l->is_lost)
		log_warn("--listen: its server was killed; nothing was served after that");
	end_server(l);
	free(l->token);
	free(l);
}
