/*
 * The server. The loop sleeps in waitid or sigtimedwait; a connection raises SIGIO
 * (O_ASYNC on the listening socket), which interrupts it. A signal that comes just
 * before the sleep would be lost, so a timer repeats it until the loop has looked.
 * Nothing here waits for a client: what is said comes in pieces, and what is answered
 * goes in pieces (SIGIO says when there is room), while the loop goes on.
 */
#include "monitor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "growth.h"

#define WAKE_NS     20000000L
#define MAX_CLIENTS 64
#define LAST_NS     2000000000u /* the longest that the end waits for those who read */

/* Somebody whose request has not come whole, or whose answer has not gone whole. */
struct client {
	int fd;
	uint64_t number;    /* the lower, the longer it is here */
	char *answer;       /* NULL: there is none yet */
	size_t size, sent;  /* of the answer */
	size_t used;        /* of the text */
	char text[MONITOR_REQUEST_MAX];
};

struct monitor {
	struct run *run;
	int fd;             /* listening; -1 = none, signals alone */
	char *path;         /* of the socket */
	VEC(struct client *) clients;
	timer_t timer;
	bool has_timer;
	uint64_t client_number;
	bool has_failed;    /* to take a client: that was said */
	bool wants_detach;  /* a client asked for it */
};

/* What the handlers leave behind. */
static volatile sig_atomic_t has_request, wants_snapshots;
static timer_t wake_timer;
static volatile sig_atomic_t has_wake_timer;

/* The loop will look, soon and until it has. */
static void wake_again(void)
{
	const struct itimerspec again = {{0, WAKE_NS}, {0, WAKE_NS}};
	has_request = 1;
	if (has_wake_timer)
		timer_settime(wake_timer, 0, &again, NULL);
	else
		target_wake();
}

static void on_wake(int sig)
{
	int saved = errno;
	if (sig == SIGUSR1) {
		wants_snapshots = 1;
		growth_want_report();
	}
	wake_again();
	target_wake();
	errno = saved;
}

/* From now on a late SIGUSR1 is no reason to die, either. */
static void take_signals(struct monitor *m)
{
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGIO};
	struct sigaction sa = {.sa_handler = on_wake};
	m->has_timer = timer_create(CLOCK_MONOTONIC, &event, &m->timer) == 0;
	wake_timer = m->timer;
	has_wake_timer = m->has_timer;
	sigemptyset(&sa.sa_mask);
	sigaction(SIGIO, &sa, NULL);
	sigaction(SIGUSR1, &sa, NULL);
}

char *monitor_directory(uid_t uid, unsigned i)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	if (!runtime || *runtime != '/')
		i++;
	if (i == 0)
		return xasprintf("%s/ptmem", runtime);
	return i == 1 ? xasprintf("/tmp/ptmem-%u", (unsigned)uid) : NULL;
}

/* A directory that is ours alone, made if it is not there. */
static int make_directory(const char *path)
{
	struct stat st;
	if (mkdir(path, 0700) != 0 && errno != EEXIST)
		return -errno;
	if (lstat(path, &st) != 0)
		return -errno;
	return S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 077) ? 0 : -EPERM;
}

/* What comes at @fd raises SIGIO. */
static int make_async(int fd)
{
	return fcntl(fd, F_SETOWN, getpid()) == 0 && fcntl(fd, F_SETFL, O_NONBLOCK | O_ASYNC) == 0 ? 0 : -errno;
}

/* Listens at @own, which then becomes @path: who finds that can connect. */
static int listen_at(const char *own, const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof(addr.sun_path) || strlen(own) >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	strcpy(addr.sun_path, own);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	unlink(own); /* of a process with our id that was killed */
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) != 0 || chmod(own, 0600) != 0 ||
	    listen(fd, SOMAXCONN) != 0 || make_async(fd) != 0 || rename(own, path) != 0) {
		int err = errno;
		unlink(own);
		close(fd);
		return -err;
	}
	return fd;
}

static int open_socket(struct monitor *m)
{
	int rc = -ENOENT;
	for (unsigned i = 0; rc < 0; i++) {
		_cleanup_free_ char *directory = monitor_directory(geteuid(), i);
		if (!directory)
			break;
		rc = make_directory(directory);
		if (rc < 0) {
			log_verbose("%s: %s", directory, strerror(-rc));
			continue;
		}
		free(m->path);
		m->path = xasprintf("%s/%d.sock", directory, (int)getpid());
		_cleanup_free_ char *own = xasprintf("%s/%d.new", directory, (int)getpid());
		rc = listen_at(own, m->path);
	}
	return rc;
}

struct monitor *monitor_open(struct run *run)
{
	struct monitor *m = xcalloc(1, sizeof(*m));
	m->run = run;
	take_signals(m);
	m->fd = open_socket(m);
	if (m->fd < 0)
		log_verbose("no socket for --monitor: %s", strerror(-m->fd));
	return m;
}

/* Takes client @i out; who has no answer, or not all of it, finds the connection closed. */
static void drop_client(struct monitor *m, size_t i)
{
	struct client *c = m->clients.data[i];
	close(c->fd);
	free(c->answer);
	free(c);
	vec_take_swap(&m->clients, i);
}

static bool is_allowed(int fd)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
		return false;
	return peer.uid == geteuid() || peer.uid == 0;
}

/* The session of process @pid; of ptmem itself (or an unknown one): the first. */
static struct session *find_session(const struct run *run, long pid)
{
	for (size_t i = 0; i < run->sessions.count; i++) {
		if (run->sessions.data[i]->pid == (uint32_t)pid)
			return run->sessions.data[i];
	}
	return run->sessions.count > 0 ? run->sessions.data[0] : NULL;
}

/* Takes what @c has said so far, without waiting: 0 = all it has to say, -EAGAIN, -EMSGSIZE. */
static int take_request(struct client *c)
{
	while (c->used < sizeof(c->text) - 1) {
		ssize_t n = read(c->fd, c->text + c->used, sizeof(c->text) - 1 - c->used);
		if (n < 0 && errno == EINTR)
			continue; /* the next client's SIGIO */
		if (n < 0 && errno == EAGAIN)
			return -EAGAIN;
		if (n <= 0) {
			c->text[c->used] = '\0';
			return 0;
		}
		c->used += (size_t)n;
	}
	return -EMSGSIZE;
}

/* A request is PID, DIRECTORY and LINE, each with its zero byte. False: it is something else. */
static bool split_request(const struct client *c, const char **directory_out, const char **line_out)
{
	const char *end = c->text + c->used, *line = NULL;
	const char *directory = memchr(c->text, '\0', c->used);
	if (directory && ++directory < end)
		line = memchr(directory, '\0', (size_t)(end - directory));
	if (!line || ++line >= end)
		return false;
	*directory_out = directory;
	*line_out = line;
	return true;
}

static int run_line(struct monitor *m, const struct client *c, FILE *reply)
{
	struct monitor_request r = {.run = m->run, .reply = reply};
	const char *line;
	if (!split_request(c, &r.directory, &line))
		return -EBADMSG;
	r.session = find_session(m->run, strtol(c->text, NULL, 10));
	int rc = monitor_run(&r, line);
	m->wants_detach |= r.wants_detach;
	return rc;
}

/* The answer is a digit (0 = well), a text and a zero byte. @rc: what became of the request. */
static void make_answer(struct monitor *m, struct client *c, int rc)
{
	FILE *reply = open_memstream(&c->answer, &c->size);
	CHECK(reply);
	fputc('0', reply);
	if (rc == 0)
		rc = run_line(m, c, reply);
	else
		fprintf(reply, "a request has less than %d bytes\n", MONITOR_REQUEST_MAX);
	fputc('\0', reply);
	fclose(reply);
	if (rc != 0)
		c->answer[0] = '1';
}

/* As much as there is room for: the program may be waiting for us. -EAGAIN: there is more. */
static int send_answer(struct client *c)
{
	while (c->sent < c->size) {
		ssize_t n = send(c->fd, c->answer + c->sent, c->size - c->sent, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 && errno == EAGAIN ? -EAGAIN : -EPIPE;
		c->sent += (size_t)n;
	}
	return 0;
}

/* SIGUSR1: all snapshots so far of each process, in the folder of the start. */
static void write_all_snapshots(struct run *run)
{
	for (size_t i = 0; i < run->sessions.count; i++) {
		struct session *s = run->sessions.data[i];
		_cleanup_free_ char *line =
			run->sessions.count == 1 ?
				xstrdup("all_snapshots") :
				xasprintf("all_snapshots massif.vgdb.out.%u", s->pid);
		_cleanup_free_ char *text = NULL;
		size_t size;
		struct monitor_request r = {
			.run = run,
			.session = s,
			.directory = run->directory,
			.reply = open_memstream(&text, &size),
		};
		CHECK(r.reply);
		int rc = monitor_run(&r, line);
		fclose(r.reply);
		text[strcspn(text, "\n")] = '\0';
		log_print(rc == 0 ? LOG_INFO : LOG_WARN, "%s", text);
	}
}

static bool goes_before(const struct client *a, const struct client *b)
{
	return !a->answer != !b->answer ? !a->answer : a->number < b->number;
}

/* Who comes when there are too many takes the place of who has said nothing for longest. */
static void make_place(struct monitor *m)
{
	size_t first = 0;
	if (m->clients.count < MAX_CLIENTS)
		return;
	for (size_t i = 1; i < m->clients.count; i++) {
		if (goes_before(m->clients.data[i], m->clients.data[first]))
			first = i;
	}
	drop_client(m, first);
}

/* Whether one came. */
static bool accept_client(struct monitor *m)
{
	int fd = m->fd < 0 ? -1 : accept4(m->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0 && m->fd >= 0 && errno != EAGAIN && errno != EINTR) {
		if (!m->has_failed)
			log_warn("a client of --monitor has to wait: %s", strerror(errno));
		m->has_failed = true;
		wake_again(); /* it stands in the queue, and nobody announces it a second time */
		return false;
	}
	if (fd < 0)
		return m->fd >= 0 && errno == EINTR;
	if (!is_allowed(fd) || make_async(fd) != 0) {
		close(fd);
		return true;
	}
	make_place(m);
	struct client *c = xmalloc(sizeof(*c));
	*c = (struct client){.fd = fd, .number = m->client_number++};
	*vec_add(&m->clients) = c;
	return true;
}

/* Whether @c is done with. */
static bool serve_client(struct monitor *m, struct client *c)
{
	if (!c->answer) {
		int rc = take_request(c);
		if (rc == -EAGAIN)
			return false;
		make_answer(m, c, rc);
	}
	return send_answer(c) != -EAGAIN;
}

static void serve_clients(struct monitor *m)
{
	for (size_t i = m->clients.count; i-- > 0;) {
		if (serve_client(m, m->clients.data[i]))
			drop_client(m, i);
	}
}

bool monitor_serve(struct monitor *m)
{
	const struct itimerspec off = {{0, 0}, {0, 0}};
	if (!m || !has_request)
		return false;
	if (m->has_timer)
		timer_settime(m->timer, 0, &off, NULL);
	has_request = 0;
	if (wants_snapshots) {
		wants_snapshots = 0;
		write_all_snapshots(m->run);
	}
	do {
		serve_clients(m);
	} while (accept_client(m));
	return m->wants_detach;
}

/* -- the end -- */

void monitor_stop(struct monitor *m)
{
	for (size_t i = m->clients.count; i-- > 0;) {
		if (!m->clients.data[i]->answer)
			drop_client(m, i);
	}
	if (m->fd >= 0) {
		unlink(m->path);
		close(m->fd);
	}
	signal(SIGUSR1, SIG_IGN); /* too late, but no reason to die */
	signal(SIGIO, SIG_IGN);
	has_wake_timer = 0;
	if (m->has_timer)
		timer_delete(m->timer);
}

/* Sends what there is room for within @ms. */
static void send_some(struct monitor *m, int ms)
{
	struct pollfd room[MAX_CLIENTS];
	size_t count = m->clients.count;
	for (size_t i = 0; i < count; i++)
		room[i] = (struct pollfd){.fd = m->clients.data[i]->fd, .events = POLLOUT};
	if (poll(room, count, ms) <= 0)
		return;
	for (size_t i = count; i-- > 0;) {
		if (room[i].revents && send_answer(m->clients.data[i]) != -EAGAIN)
			drop_client(m, i);
	}
}

void monitor_close(struct monitor *m)
{
	uint64_t now = target_clock(), end = now + LAST_NS;
	for (; m->clients.count > 0 && now < end; now = target_clock())
		send_some(m, (int)((end - now) / 1000000 + 1));
	while (m->clients.count > 0)
		drop_client(m, 0);
	vec_deinit(&m->clients);
	free(m->path);
	free(m);
}
