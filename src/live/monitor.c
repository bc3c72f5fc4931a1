/*
 * Both ends of the socket of --monitor: the directory of sockets, which only the user may enter;
 * the client, which sends a command and prints the answer; the server, part of ptmem's loop. The
 * commands are in monitor_command.c.
 */
#include "live/monitor.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/proc.h"
#include "session/observer.h"
#include "session/record/recording_now.h"
#include "session/run.h"
#include "session/session.h"
#include "session/session_output.h"
#include "session/signals.h"
#include "tracee/control/target.h"

/*
 * Removes the sockets of ptmems that were killed. A file in the directory is removed if
 *
 *	its name is PID.sock or PID.new,
 *	it is a socket of our own, and
 *	no process has it open: a connect() with another socket type then fails with
 *	ECONNREFUSED, otherwise with EPROTOTYPE, unnoticed by its owner.
 *
 * So reused process ids, and those of other pid namespaces, do not matter. bind() creates PID.new a
 * moment before connect() works, so such a file must also be old. A ptmem may get the process id of
 * a dead one: it replaces PID.sock with the directory locked.
 */

#define LOCK_TRIES 100
/* short: a ptmem that was stopped while holding the lock must not block all others */
#define LOCK_PAUSE_NS 10000000l
#define NEW_AGE_S 60

/* The @i-th directory to try for user @uid; NULL: no more. The caller frees it. */
static char *monitor_directory(uid_t uid, unsigned i)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	if (!runtime || *runtime != '/')
		i++;
	if (i == 0)
		return xasprintf("%s/ptmem", runtime);
	return i == 1 ? xasprintf("/tmp/ptmem-%u", (unsigned)uid) : NULL;
}

/* Creates @directory if it does not exist: 0 or -errno. -EPERM: others have access to it. */
static int monitor_directory_make(const char *path)
{
	struct stat st;
	if (mkdir(path, 0700) != 0 && errno != EEXIST)
		return -errno;
	if (lstat(path, &st) != 0)
		return -errno;
	return S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 077) ? 0 : -EPERM;
}

/* -- sockets without an owner -- */

/* Whether @name is a number followed by @end. */
static bool is_number_and(const char *name, const char *end)
{
	size_t digits = strspn(name, "0123456789");

	return digits > 0 && strcmp(name + digits, end) == 0;
}

static bool has_owner(const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || strlen(path) >= sizeof(addr.sun_path))
		return true;
	strcpy(addr.sun_path, path);
	return connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0 || errno != ECONNREFUSED;
}

static bool is_left_over(const char *path, const char *name)
{
	struct stat st;
	bool is_new = is_number_and(name, ".new");

	if (!is_new && !is_number_and(name, ".sock"))
		return false;
	if (lstat(path, &st) != 0 || !S_ISSOCK(st.st_mode) || st.st_uid != geteuid())
		return false;
	return (!is_new || st.st_mtime + NEW_AGE_S < time(NULL)) && !has_owner(path);
}

/* Removes sockets without a living owner from @directory, which is locked. */
static void monitor_directory_sweep(const char *directory)
{
	DIR *dir = opendir(directory);

	for (const struct dirent *e; dir && (e = readdir(dir));) {
		_cleanup_free_ char *path = xasprintf("%s/%s", directory, e->d_name);
		if (is_left_over(path, e->d_name))
			unlink(path);
	}
	if (dir)
		closedir(dir);
}

/* A descriptor that holds the lock of @directory; negative: another process holds it. */
static int monitor_directory_lock(const char *directory)
{
	const struct timespec pause = {0, LOCK_PAUSE_NS};
	int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (int i = 0; fd >= 0 && i < LOCK_TRIES; i++) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
			return fd;
		nanosleep(&pause, NULL);
	}
	if (fd >= 0)
		close(fd);
	return -EAGAIN;
}

/*
 * ptmem --monitor=PID COMMAND [FILE]: finds the ptmem with that pid, or that traces PID, and prints
 * its answer.
 */

enum { EXIT_REFUSED = 1, EXIT_NO_ANSWER = 125 };

/* Connects to the socket of @pid, and checks that no other process created it. */
static int connect_to(pid_t pid, const char *directory)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct ucred peer;
	socklen_t size = sizeof(peer);
	int n = snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/%d.sock", directory, (int)pid);
	if (n >= (int)sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0 &&
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.pid == pid)
		return fd;
	int err = errno ? errno : EPERM;
	close(fd);
	return -err;
}

static int connect_ptmem(pid_t pid)
{
	char name[64];
	struct stat st;
	int rc = -ESRCH;
	snprintf(name, sizeof(name), "/proc/%d", (int)pid);
	if (stat(name, &st) != 0)
		return -ESRCH;
	for (unsigned i = 0; rc < 0; i++) {
		_cleanup_free_ char *directory = monitor_directory(st.st_uid, i);
		if (!directory)
			break;
		rc = connect_to(pid, directory);
	}
	return rc;
}

static void send_text(int fd, const char *text)
{
	for (size_t left = strlen(text) + 1; left > 0;) {
		ssize_t n = send(fd, text, left, MSG_NOSIGNAL);
		if (n <= 0)
			return; /* no answer will arrive either */
		text += n;
		left -= (size_t)n;
	}
}

static void send_request(int fd, pid_t pid, char *const words[])
{
	char number[16];
	_cleanup_free_ char *directory = getcwd(NULL, 0);
	_cleanup_free_ char *line = xasprintf("%s %s", words[0], words[1] ? words[1] : "");
	snprintf(number, sizeof(number), "%d", (int)pid);
	send_text(fd, number);
	send_text(fd, directory ? directory : "/");
	send_text(fd, line);
	shutdown(fd, SHUT_WR);
}

static void explain_no_ptmem(pid_t pid, int err)
{
	char name[64];
	struct stat st;
	snprintf(name, sizeof(name), "/proc/%d", (int)pid);
	if (stat(name, &st) != 0)
		log_error("process %d: no such process", (int)pid);
	else if (geteuid() != 0 && st.st_uid != geteuid())
		log_error("process %d belongs to another user: its ptmem answers that user and "
			  "root alone",
			  (int)pid);
	else if (err == -ENOENT || err == -ECONNREFUSED) /* no socket, or a stale one */
		log_error("process %d is neither a ptmem nor traced by one", (int)pid);
	else
		log_error("cannot ask process %d: %s", (int)pid, strerror(-err));
}

/* Prints the rest of an answer. Returns whether it was complete: zero-terminated. */
static bool print_answer(int fd)
{
	char text[4096];
	bool is_whole = false;
	for (ssize_t n; (n = read(fd, text, sizeof(text))) > 0;) {
		is_whole = text[n - 1] == '\0';
		fwrite(text, 1, (size_t)n - is_whole, stdout);
	}
	return is_whole;
}

/* The same for an error: one line. */
static bool print_error(int fd)
{
	_cleanup_fclose_ FILE *file = fdopen(dup(fd), "r");
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	ssize_t n = file ? getdelim(&text, &size, '\0', file) : -1;
	if (n <= 0 || text[n - 1] != '\0')
		return false;
	log_error("%.*s", (int)strcspn(text, "\n"), text);
	return true;
}

int monitor_client_run(pid_t pid, char *const words[])
{
	int fd = connect_ptmem(pid);
	pid_t tracer = fd < 0 ? proc_tracer(pid) : 0;
	if (fd < 0 && tracer > 0)
		fd = connect_ptmem(tracer);
	if (fd < 0) {
		explain_no_ptmem(pid, fd);
		return EXIT_NO_ANSWER;
	}
	send_request(fd, pid, words);
	char status = 0;
	bool has_answer = read(fd, &status, 1) == 1;
	bool is_whole = has_answer && (status == '0' ? print_answer(fd) : print_error(fd));
	bool is_printed = fflush(stdout) == 0 && !ferror(stdout);
	close(fd);
	if (!is_whole) {
		log_error("%sprocess %d %s", has_answer ? "the answer of " : "", (int)pid,
			  has_answer ? "is incomplete" : "does not answer");
		return EXIT_NO_ANSWER;
	}
	return is_printed && status == '0' ? EXIT_SUCCESS : EXIT_REFUSED;
}

/*
 * The server. The loop sleeps in waitid or sigtimedwait; a connection raises SIGIO
 * (O_ASYNC on the listening socket), which interrupts it. A signal just before the sleep would be
 * lost, so a timer repeats it until the loop has polled. The server never waits for a client:
 * requests are read and answers written piecewise (SIGIO signals that there is room), while the
 * loop continues.
 */

#define REQUEST_MAX 65536 /* bytes */
#define MAX_CLIENTS 64
#define LAST_NS     2000000000u /* how long monitor_close waits for clients to read */

/* A client whose request has not arrived, or whose answer has not been sent, completely. */
struct client {
	int fd;
	uint64_t number;    /* lower = connected earlier */
	FILE *reply;        /* writes the answer */
	char *answer;       /* NULL: none yet */
	size_t size, sent;  /* of the answer */
	size_t used;        /* of the text */
	char text[REQUEST_MAX];
};

struct monitor {
	struct run *run;
	int fd;             /* listening; -1 = none, signals only */
	char *path;         /* of the socket */
	VEC(struct client *) clients;
	struct observer observer;
	uint64_t client_number;
	bool has_failed;    /* accept failed, which was reported */
	bool wants_detach;  /* a client requested to detach */
};

/* Makes input at @fd raise SIGIO. */
static int make_async(int fd)
{
	bool is_set = fcntl(fd, F_SETOWN, getpid()) == 0 &&
		      fcntl(fd, F_SETFL, O_NONBLOCK | O_ASYNC) == 0;
	return is_set ? 0 : -errno;
}

/* Listens at @own, which is then renamed to @path, so that a client that finds it can connect. */
static int listen_at(const char *own, const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof(addr.sun_path) || strlen(own) >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	strcpy(addr.sun_path, own);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	unlink(own); /* of a killed process with the same pid */
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
		rc = monitor_directory_make(directory);
		if (rc < 0) {
			log_verbose("%s: %s", directory, strerror(-rc));
			continue;
		}
		free(m->path);
		m->path = xasprintf("%s/%d.sock", directory, (int)getpid());
		_cleanup_free_ char *own = xasprintf("%s/%d.new", directory, (int)getpid());
		_cleanup_close_ int lock = monitor_directory_lock(directory);
		if (lock >= 0)
			monitor_directory_sweep(directory);
		rc = listen_at(own, m->path);
	}
	return rc;
}

/* Removes client @i; an incomplete answer ends with the connection closed. */
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

/* The session of process @pid; for ptmem's own pid (or an unknown one) the first. */
static struct session *find_session(const struct run *run, long pid)
{
	for (size_t i = 0; i < run->sessions.count; i++) {
		if (run->sessions.data[i]->process.pid == (uint32_t)pid)
			return run->sessions.data[i];
	}
	return run->sessions.count > 0 ? run->sessions.data[0] : NULL;
}

/* Reads the request of @c as far as it has arrived: 0 = complete, -EAGAIN, -EMSGSIZE. */
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

/* Splits a request into PID, DIRECTORY and LINE, each zero-terminated. False if it is malformed. */
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

/*
 * Sends as much as there is room for, since the program may be waiting for us. -EAGAIN: there is
 * more.
 */
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

/* An answer is a digit (0 = success), a text and a zero byte. */
static void finish_answer(struct client *c, int rc)
{
	fputc('\0', c->reply);
	fclose(c->reply);
	if (rc != 0)
		c->answer[0] = '1';
}

/* In a copy of ptmem: nothing else waits. */
static void answer_from_copy(void *ctx, int rc)
{
	struct client *c = ctx;
	struct pollfd room = {.fd = c->fd, .events = POLLOUT};

	finish_answer(c, rc);
	while (send_answer(c) == -EAGAIN)
		poll(&room, 1, -1);
}

/* -EINPROGRESS: a copy of ptmem answers. */
static int run_line(struct monitor *m, struct client *c)
{
	struct monitor_request r = {.run = m->run, .reply = c->reply, .client = c->fd,
				    .answer = answer_from_copy, .answer_ctx = c};
	const char *line;
	if (!split_request(c, &r.directory, &line))
		return -EBADMSG;
	r.session = find_session(m->run, strtol(c->text, NULL, 10));
	int rc = monitor_command_run(&r, line);
	m->wants_detach |= r.wants_detach;
	return r.is_deferred ? -EINPROGRESS : rc;
}

/* @rc: result of reading the request. Whether @c gets its answer from here. */
static bool make_answer(struct monitor *m, struct client *c, int rc)
{
	c->reply = open_memstream(&c->answer, &c->size);
	CHECK(c->reply);
	fputc('0', c->reply);
	if (rc == 0)
		rc = run_line(m, c);
	else
		fprintf(c->reply, "a request has less than %d bytes\n", REQUEST_MAX);
	finish_answer(c, rc);
	return rc != -EINPROGRESS;
}

/* Makes room for a new client: drops the one that has been silent for longest. */
static void make_room(struct monitor *m)
{
	size_t first = 0;
	if (m->clients.count < MAX_CLIENTS)
		return;
	for (size_t i = 1; i < m->clients.count; i++) {
		const struct client *a = m->clients.data[i], *b = m->clients.data[first];

		if (!a->answer != !b->answer ? !a->answer : a->number < b->number)
			first = i;
	}
	drop_client(m, first);
}

/* Returns whether there was one. */
static bool accept_client(struct monitor *m)
{
	int fd = m->fd < 0 ? -1 : accept4(m->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0 && m->fd >= 0 && errno != EAGAIN && errno != EINTR) {
		if (!m->has_failed)
			log_warn("a client of --monitor must wait: %s", strerror(errno));
		m->has_failed = true;
		signals_raise_io(); /* it stays in the queue, and SIGIO is not raised again */
		return false;
	}
	if (fd < 0)
		return m->fd >= 0 && errno == EINTR;
	if (!is_allowed(fd) || make_async(fd) != 0) {
		close(fd);
		return true;
	}
	make_room(m);
	struct client *c = xmalloc(sizeof(*c));
	*c = (struct client){.fd = fd, .number = m->client_number++};
	*vec_add(&m->clients) = c;
	return true;
}

/* Returns whether @c is finished. */
static bool serve_client(struct monitor *m, struct client *c)
{
	if (!c->answer) {
		int rc = take_request(c);
		if (rc == -EAGAIN)
			return false;
		if (!make_answer(m, c, rc))
			return true;
	}
	return send_answer(c) != -EAGAIN;
}

static bool serve(void *ctx)
{
	struct monitor *m = ctx;
	if (!signals_take_io())
		return false;
	/* SIGUSR1: all snapshots and the recording so far of each process */
	bool is_asked = signals_take_snapshots();
	for (size_t i = 0; is_asked && i < m->run->sessions.count; i++) {
		struct session *s = m->run->sessions.data[i];
		unsigned number = ++run_process(m->run, s->process.pid)->numbers;

		session_output_snapshots(s, number);
		recording_now_write(s, number);
	}
	do {
		for (size_t i = m->clients.count; i-- > 0;) {
			if (serve_client(m, m->clients.data[i]))
				drop_client(m, i);
		}
	} while (accept_client(m));
	return m->wants_detach;
}

static bool run_from_program(void *ctx, struct session *s, const char *line)
{
	(void)ctx;
	return monitor_command_run_from_program(s, line);
}

struct monitor *monitor_open(struct run *run)
{
	struct monitor *m = xcalloc(1, sizeof(*m));
	m->run = run;
	signals_catch_io();
	m->fd = open_socket(m);
	if (m->fd < 0)
		log_verbose("no socket for --monitor: %s", strerror(-m->fd));
	m->observer = (struct observer){.ctx = m, .poll = serve, .monitor = run_from_program};
	observers_add(run, &m->observer);
	return m;
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
	m->fd = -1;
	signals_ignore_io();
}

/* Sends as much as possible within @ms. */
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
	uint64_t now = clock_now_ns(), end = now + LAST_NS;
	for (; m->clients.count > 0 && now < end; now = clock_now_ns())
		send_some(m, (int)((end - now) / 1000000 + 1));
	while (m->clients.count > 0)
		drop_client(m, 0);
	vec_deinit(&m->clients);
	observers_remove(m->run, &m->observer);
	free(m->path);
	free(m);
}
