/*
 * ptmem --monitor=PID COMMAND [FILE]: finds the ptmem with that pid, or that traces PID, and prints
 * its answer.
 */
#include "live/monitor_client.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/proc.h"
#include "live/monitor_directory.h"

enum { EXIT_REFUSED = 1, EXIT_NO_ANSWER = 125 };

static pid_t tracer_of(pid_t pid)
{
	struct proc_status st;
	return proc_status_read(proc_find_reader(pid), &st) == 0 ? st.tracer : 0;
}

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
	pid_t tracer = fd < 0 ? tracer_of(pid) : 0;
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
