/*
 * The server. The loop sleeps in waitid or sigtimedwait; a connection raises SIGIO
 * (O_ASYNC on the listening socket), which interrupts it. A signal that comes just
 * before the sleep would be lost, so a timer repeats it until the loop has looked.
 */
#include "monitor.h"

#include <errno.h>
#include <fcntl.h>
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

/* Somebody whose request has not come whole. */
struct client {
	int fd;
	size_t used;
	char text[MONITOR_REQUEST_MAX];
};

struct monitor {
	struct run *run;
	int fd;             /* listening; -1 = none, signals alone */
	char *path;         /* of the socket */
	VEC(struct client *) clients;
	timer_t timer;
	bool has_timer;
};

/* What the handlers leave behind. */
static volatile sig_atomic_t has_request, wants_snapshots;
static timer_t wake_timer;
static volatile sig_atomic_t has_wake_timer;

static void on_wake(int sig)
{
	const struct itimerspec again = {{0, WAKE_NS}, {0, WAKE_NS}};
	int saved = errno;
	if (sig == SIGUSR1) {
		wants_snapshots = 1;
		growth_want_report();
	}
	has_request = 1;
	if (has_wake_timer)
		timer_settime(wake_timer, 0, &again, NULL);
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

/* Takes client @i out; whose request has not been served finds the connection closed. */
static void drop_client(struct monitor *m, size_t i)
{
	close(m->clients.data[i]->fd);
	free(m->clients.data[i]);
	vec_take_swap(&m->clients, i);
}

void monitor_close(struct monitor *m)
{
	if (!m)
		return;
	while (m->clients.count > 0)
		drop_client(m, 0);
	vec_deinit(&m->clients);
	if (m->fd >= 0) {
		unlink(m->path);
		close(m->fd);
	}
	signal(SIGUSR1, SIG_IGN); /* too late, but no reason to die */
	signal(SIGIO, SIG_IGN);
	has_wake_timer = 0;
	if (m->has_timer)
		timer_delete(m->timer);
	free(m->path);
	free(m);
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

/* Takes what @c has said so far, without waiting; whether it has no more to say. */
static bool has_whole_request(struct client *c)
{
	while (c->used < sizeof(c->text) - 1) {
		ssize_t n = read(c->fd, c->text + c->used, sizeof(c->text) - 1 - c->used);
		if (n < 0 && errno == EINTR)
			continue; /* the next client's SIGIO */
		if (n < 0 && errno == EAGAIN)
			return false;
		if (n <= 0)
			break;
		c->used += (size_t)n;
	}
	c->text[c->used] = '\0';
	return true;
}

static int send_all(int fd, const char *text, size_t size)
{
	while (size > 0) {
		ssize_t n = send(fd, text, size, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -EPIPE;
		text += n;
		size -= (size_t)n;
	}
	return 0;
}

/*
 * A request is PID, DIRECTORY and LINE, each with its
 * zero byte; the answer a digit (0 = well) and a text.
 */
static bool serve_client(struct monitor *m, const struct client *c)
{
	const struct timeval limit = {.tv_usec = 500000}; /* the program may be waiting for us */
	_cleanup_free_ char *answer = NULL;
	const char *text = c->text;
	size_t size = 0, n = c->used;
	const char *directory = memchr(text, '\0', n), *line = NULL;
	if (directory && ++directory < text + n)
		line = memchr(directory, '\0', (size_t)(text + n - directory));
	if (!line || ++line >= text + n)
		return false;
	struct monitor_request r = {
		.run = m->run,
		.session = find_session(m->run, strtol(text, NULL, 10)),
		.directory = directory,
		.reply = open_memstream(&answer, &size),
	};
	CHECK(r.reply);
	int rc = monitor_run(&r, line);
	fclose(r.reply);
	fcntl(c->fd, F_SETFL, 0);
	setsockopt(c->fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	if (send_all(c->fd, rc == 0 ? "0" : "1", 1) == 0)
		send_all(c->fd, answer, size);
	return r.wants_detach;
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

/* Whether one came. */
static bool accept_client(struct monitor *m)
{
	int fd = m->fd < 0 ? -1 : accept4(m->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0)
		return m->fd >= 0 && errno == EINTR;
	if (!is_allowed(fd) || make_async(fd) != 0) {
		close(fd);
		return true;
	}
	if (m->clients.count == MAX_CLIENTS)
		drop_client(m, 0);
	struct client *c = xmalloc(sizeof(*c));
	c->fd = fd;
	c->used = 0;
	*vec_add(&m->clients) = c;
	return true;
}

/* Whether one wants that the program is left. */
static bool serve_clients(struct monitor *m)
{
	bool wants_detach = false;
	for (size_t i = m->clients.count; i-- > 0;) {
		if (!has_whole_request(m->clients.data[i]))
			continue;
		wants_detach |= serve_client(m, m->clients.data[i]);
		drop_client(m, i);
	}
	return wants_detach;
}

bool monitor_serve(struct monitor *m)
{
	const struct itimerspec off = {{0, 0}, {0, 0}};
	bool wants_detach = false;
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
		wants_detach |= serve_clients(m);
	} while (accept_client(m));
	return wants_detach;
}
