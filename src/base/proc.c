/*
 * Reads /proc: "KEY: VALUE" lines, the fields of stat, links and lists of threads; and opens files
 * below the root directory of another process, whose links must not lead out of it. See proc.h.
 */
#include "base/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"

/*
 * Files are read completely before they are parsed: the kernel generates them anew for each reader,
 * and the list of groups can make a line of status arbitrarily long. See proc.h.
 */

enum { NAME_SIZE = 64 }; /* of "/proc/PID/NAME" */

/* Reads the file; the caller frees it. -ESRCH if the process has ended or ends meanwhile. */
static int read_whole(pid_t pid, const char *name, char **text_out, size_t *size_out)
{
	char path[NAME_SIZE];
	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	_cleanup_free_ char *text = NULL;
	size_t size = 0, capacity = 0;
	ssize_t n;
	do {
		text = xgrow(text, &capacity, size + 4096, 1);
		n = read(fd, text + size, capacity - size);
		size += (size_t)MAX(n, 0);
	} while (n > 0 || (n < 0 && errno == EINTR));
	if (n < 0)
		return -errno;
	if (size == 0)
		return -ESRCH;
	*size_out = size;
	*text_out = text;
	text = NULL;
	return 0;
}

/* -- status -- */

static const char *skip_blanks(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == '\t'))
		p++;
	return p;
}

bool proc_next_line(const char **text, const char *end, struct proc_line *line_out)
{
	while (*text < end) {
		const char *line = *text, *feed = memchr(line, '\n', (size_t)(end - line));
		const char *line_end = feed ? feed : end;
		const char *colon = memchr(line, ':', (size_t)(line_end - line));
		*text = feed ? feed + 1 : end;
		if (!colon)
			continue;
		line_out->key = line;
		line_out->key_size = (size_t)(colon - line);
		line_out->value = skip_blanks(colon + 1, line_end);
		line_out->end = line_end;
		return true;
	}
	return false;
}

static unsigned digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return (unsigned)(c - '0');
	return c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10 : UINT_MAX;
}

bool proc_parse_number(const char *text, const char *end, unsigned base, uint64_t *number_out)
{
	uint64_t number = 0;
	const char *p = text;
	for (unsigned d; p < end && (d = digit_value(*p)) < base; p++) {
		if (__builtin_mul_overflow(number, base, &number) ||
		    __builtin_add_overflow(number, d, &number))
			return false;
	}
	if (p == text)
		return false;
	*number_out = number;
	return true;
}

/* Leaves @out unchanged if the line has no number, or one that does not fit. */
static void take_int(const struct proc_line *line, int *out)
{
	uint64_t number;
	if (proc_parse_number(line->value, line->end, 10, &number) && number <= INT_MAX)
		*out = (int)number;
}

/* The ids of a process in nested namespaces, separated by tabs: ours first, its own last. */
static void take_ns_pid(const struct proc_line *line, struct proc_status *out)
{
	const char *last = memrchr(line->value, '\t', (size_t)(line->end - line->value));
	uint64_t pid;
	if (last && proc_parse_number(last + 1, line->end, 10, &pid) && pid <= INT_MAX)
		out->ns_pid = (pid_t)pid;
}

static void take_mask(const struct proc_line *line, uint64_t *out)
{
	proc_parse_number(line->value, line->end, 16, out);
}

/* "123 kB", in bytes. */
static void take_kilobytes(const struct proc_line *line, uint64_t *out)
{
	const char *end = memchr(line->value, ' ', (size_t)(line->end - line->value));
	uint64_t kilobytes;

	if (end && proc_parse_number(line->value, end, 10, &kilobytes) &&
	    kilobytes <= UINT64_MAX >> 10)
		*out = kilobytes << 10;
}

/* Four numbers separated by tabs: real, effective, saved, file system. */
static void take_users(const struct proc_line *line, struct proc_status *out)
{
	const char *last = memrchr(line->value, '\t', (size_t)(line->end - line->value));
	uint64_t uid;
	if (proc_parse_number(line->value, line->end, 10, &uid) && uid <= UINT32_MAX)
		out->uid = (int64_t)uid;
	if (last && proc_parse_number(last + 1, line->end, 10, &uid) && uid <= UINT32_MAX)
		out->fs_uid = (int64_t)uid;
}

static bool is_key(const struct proc_line *line, const char *key)
{
	return strlen(key) == line->key_size && memcmp(key, line->key, line->key_size) == 0;
}

void proc_status_parse(const char *text, size_t size, struct proc_status *out)
{
	struct proc_line line;
	*out = (struct proc_status){
		.uid = -1, .fs_uid = -1, .seccomp_mode = -1, .seccomp_filters = -1};
	for (const char *end = text + size; proc_next_line(&text, end, &line);) {
		if (is_key(&line, "State") && line.value < line.end)
			out->state = *line.value;
		else if (is_key(&line, "Tgid"))
			take_int(&line, &out->process);
		else if (is_key(&line, "PPid"))
			take_int(&line, &out->parent);
		else if (is_key(&line, "TracerPid"))
			take_int(&line, &out->tracer);
		else if (is_key(&line, "NSpid"))
			take_ns_pid(&line, out);
		else if (is_key(&line, "Uid"))
			take_users(&line, out);
		else if (is_key(&line, "CapEff"))
			take_mask(&line, &out->capabilities);
		else if (is_key(&line, "VmSize"))
			out->has_memory = true;
		else if (is_key(&line, "VmHWM"))
			take_kilobytes(&line, &out->peak_resident);
		else if (is_key(&line, "RssFile"))
			take_kilobytes(&line, &out->file_resident);
		else if (is_key(&line, "RssShmem"))
			take_kilobytes(&line, &out->shared_resident);
		else if (is_key(&line, "SigPnd"))
			take_mask(&line, &out->pending);
		else if (is_key(&line, "ShdPnd"))
			take_mask(&line, &out->pending_shared);
		else if (is_key(&line, "SigIgn"))
			take_mask(&line, &out->ignored);
		else if (is_key(&line, "SigCgt"))
			take_mask(&line, &out->caught);
		else if (is_key(&line, "Seccomp"))
			take_int(&line, &out->seccomp_mode);
		else if (is_key(&line, "Seccomp_filters"))
			take_int(&line, &out->seccomp_filters);
		else if (is_key(&line, "voluntary_ctxt_switches"))
			proc_parse_number(line.value, line.end, 10, &out->sleeps);
	}
}

int proc_status_read(pid_t tid, struct proc_status *out)
{
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	int rc = read_whole(tid, "status", &text, &size);
	if (rc == 0)
		proc_status_parse(text, size, out);
	return rc;
}

static bool is_dead_state(char state)
{
	return state == 'Z' || state == 'X';
}

pid_t proc_tracer(pid_t pid)
{
	struct proc_status st;

	return proc_status_read(proc_find_reader(pid), &st) == 0 ? st.tracer : 0;
}

/* -- stat -- */

/* PF_KTHREAD and PF_EXITING among the flags of a task, linux/sched.h */
#define KERNEL_THREAD 0x00200000u
#define EXITING 0x00000004u

/* proc(5) */
enum {
	FIELD_STATE = 3,
	FIELD_FLAGS = 9,
	FIELD_STARTED = 22,
	FIELD_START_STACK = 28,
	FIELD_START_BRK = 47,
};

/* Moves @text past the next space, to the start of a field. False if there is none before @end. */
static bool next_field(const char **text, const char *end)
{
	const char *blank = memchr(*text, ' ', (size_t)(end - *text));
	if (!blank)
		return false;
	*text = blank + 1;
	return true;
}

int proc_stat_parse(const char *text, size_t size, struct proc_stat *out)
{
	const char *end = text + size;
	const char *p = memrchr(text, ')', size); /* the end of field 2 */
	struct proc_stat st = {0};
	uint64_t flags = 0;
	if (!p)
		return -EINVAL;
	for (int field = FIELD_STATE; next_field(&p, end) && field <= FIELD_START_BRK; field++) {
		if (field == FIELD_STATE && p < end)
			st.state = *p;
		else if (field == FIELD_FLAGS)
			proc_parse_number(p, end, 10, &flags);
		else if (field == FIELD_STARTED)
			proc_parse_number(p, end, 10, &st.started);
		else if (field == FIELD_START_STACK)
			proc_parse_number(p, end, 10, &st.start_stack);
		else if (field == FIELD_START_BRK)
			proc_parse_number(p, end, 10, &st.start_brk);
	}
	if (!st.state)
		return -EINVAL;
	st.is_kernel_thread = flags & KERNEL_THREAD;
	st.is_exiting = flags & EXITING;
	*out = st;
	return 0;
}

int proc_stat_read(pid_t tid, struct proc_stat *out)
{
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	int rc = read_whole(tid, "stat", &text, &size);
	return rc != 0 ? rc : proc_stat_parse(text, size, out);
}

bool proc_is_dead(pid_t tid)
{
	struct proc_stat st;
	return proc_stat_read(tid, &st) != 0 || is_dead_state(st.state);
}

bool proc_is_zombie(pid_t tid)
{
	struct proc_stat st;
	int rc = proc_stat_read(tid, &st);
	return rc == 0 ? is_dead_state(st.state) : rc != -ESRCH;
}

bool proc_is_ending(pid_t pid)
{
	const uint64_t kill = 1ull << (SIGKILL - 1);
	struct proc_status status;
	struct proc_stat st;
	/* read first: the signal stays pending until the process exits */
	if (proc_status_read(pid, &status) == 0 && (status.pending | status.pending_shared) & kill)
		return true;
	return proc_stat_read(pid, &st) != 0 || is_dead_state(st.state) || st.is_exiting;
}

/* Whether the link @name of process @pid has the same target as our own. */
static bool has_our_link(pid_t pid, const char *name)
{
	_cleanup_free_ char *its = proc_read_link(pid, name);
	_cleanup_free_ char *ours = proc_read_link(getpid(), name);
	return its && ours && strcmp(its, ours) == 0;
}

bool proc_has_our_rights(pid_t pid)
{
	struct proc_status its, ours;
	return proc_status_read(pid, &its) == 0 && proc_status_read(getpid(), &ours) == 0 &&
	       its.uid == ours.uid && its.fs_uid == ours.fs_uid &&
	       (ours.capabilities & ~its.capabilities) == 0 && has_our_link(pid, "root") &&
	       has_our_link(pid, "ns/mnt") && has_our_link(pid, "ns/user");
}

bool proc_is_ours(void)
{
	char link[32] = "";
	return readlink("/proc/self", link, sizeof(link) - 1) > 0 && atoi(link) == getpid();
}

/* -- files, links, threads -- */

FILE *proc_open(pid_t pid, const char *name)
{
	char path[NAME_SIZE];
	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	return fopen(path, "re");
}

char *proc_read_link(pid_t pid, const char *name)
{
	char path[NAME_SIZE], target[PATH_MAX];
	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	ssize_t n = readlink(path, target, sizeof(target));
	return n > 0 ? xstrndup(target, (size_t)n) : NULL;
}

void proc_read_comm(pid_t pid, char comm_out[PROC_COMM_SIZE])
{
	_cleanup_fclose_ FILE *file = proc_open(pid, "comm");
	size_t n = file ? fread(comm_out, 1, PROC_COMM_SIZE, file) : 0;

	/* a name may contain line feeds; the last one is the file's */
	n = n > 0 && comm_out[n - 1] == '\n' ? n - 1 : n < PROC_COMM_SIZE ? n : PROC_COMM_SIZE - 1;
	comm_out[n] = '\0';
}

DIR *proc_open_threads(pid_t pid)
{
	char path[NAME_SIZE];
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	return opendir(path);
}

pid_t proc_next_thread(DIR *threads)
{
	for (struct dirent *e; (e = readdir(threads));) {
		pid_t tid = (pid_t)strtol(e->d_name, NULL, 10);
		if (tid > 0)
			return tid;
	}
	return 0;
}

pid_t proc_find_reader(pid_t pid)
{
	DIR *threads = proc_open_threads(pid);
	pid_t found = 0;
	for (pid_t tid; threads && !found && (tid = proc_next_thread(threads));) {
		struct proc_status st;
		if (proc_status_read(tid, &st) == 0 && st.has_memory)
			found = tid;
	}
	if (threads)
		closedir(threads);
	return found ? found : pid;
}

/* -- statm -- */

static int read_statm(pid_t tid, struct proc_statm *out)
{
	_cleanup_fclose_ FILE *f = proc_open(tid, "statm");
	uint64_t size, resident, shared, page = (uint64_t)sysconf(_SC_PAGESIZE);
	if (!f || fscanf(f, "%" SCNu64 " %" SCNu64 " %" SCNu64, &size, &resident, &shared) != 3 ||
	    size == 0)
		return -ESRCH;
	*out = (struct proc_statm){size * page, resident * page, shared * page};
	return 0;
}

int proc_statm_read(pid_t pid, struct proc_statm *out)
{
	int rc = read_statm(pid, out);
	return rc == 0 ? 0 : read_statm(proc_find_reader(pid), out);
}

/*
 * /proc/PID/maps prints names in our own root directory, or if the file is not there, in the root
 * of the mount namespace that has it. A process after chroot(2) has another root, so
 *
 *	/proc/PID/root   /srv/jail
 *	/proc/PID/maps   /srv/jail/lib/libc.so.6   is /lib/libc.so.6 in its root
 *	                 /usr/bin/server           was opened before the chroot; it is found by
 *	                                           leaving the root through "..", which only the
 *	                                           process itself may not do
 */

#define FLAGS (O_PATH | O_CLOEXEC)

static bool get_stat(pid_t pid, const char *name, struct stat *out)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	return stat(path, out) == 0;
}

/* What identifies the view of the file system that @pid has. */
static bool identify(pid_t pid, struct root_dir *out)
{
	struct stat root, mounts;

	if (!get_stat(pid, "root", &root) || !get_stat(pid, "ns/mnt", &mounts))
		return false;
	out->dev = root.st_dev;
	out->ino = root.st_ino;
	out->mounts = mounts.st_ino;
	return true;
}

static bool is_same(const struct root_dir *a, const struct root_dir *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->mounts == b->mounts;
}

struct root_dir *root_dir_of(pid_t pid, struct root_dir *known)
{
	struct root_dir its = {.users = 1}, ours;
	char path[64];

	if (!identify(pid, &its) || !identify(getpid(), &ours) || is_same(&its, &ours))
		return NULL;
	if (known && is_same(&its, known))
		return root_dir_hold(known);
	snprintf(path, sizeof(path), "/proc/%d/root", (int)pid);
	its.fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (its.fd < 0)
		return NULL;
	its.prefix = proc_read_link(pid, "root");
	if (!its.prefix || strcmp(its.prefix, "/") == 0) {
		free(its.prefix);
		its.prefix = xstrdup("");
	}
	return xmemdup(&its, sizeof(its));
}

struct root_dir *root_dir_hold(struct root_dir *root)
{
	if (root)
		root->users++;
	return root;
}

void root_dir_release(struct root_dir *root)
{
	if (!root || --root->users > 0)
		return;
	close(root->fd);
	free(root->prefix);
	free(root);
}

/*
 * Opens for reading what @found, which open(2) with FLAGS has returned, refers to, and closes it.
 * Names come from programs: one of a device must not be opened, as that may wait, rewind a tape or
 * start a watchdog.
 */
static int open_regular(int found)
{
	_cleanup_close_ int file = found;
	struct stat st;
	char link[32];

	if (file < 0 || fstat(file, &st) != 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", file);
	int fd = open(link, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int open_in(const struct root_dir *root, const char *path, int flags)
{
	const struct open_how how = {.flags = (uint64_t)flags,
				     .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};

	if (!root)
		return open_regular(open(path, flags));
	long fd = syscall(SYS_openat2, root->fd, path, &how, sizeof(how));
	/* before Linux 5.6, and in containers whose filter does not know it */
	if (fd < 0 && (errno == ENOSYS || errno == EPERM))
		fd = openat(root->fd, path + strspn(path, "/"), flags);
	return open_regular((int)fd);
}

int root_dir_open(const struct root_dir *root, const char *path)
{
	return open_in(root, path, FLAGS);
}

int root_dir_open_itself(const struct root_dir *root, const char *path)
{
	return open_in(root, path, FLAGS | O_NOFOLLOW);
}

/* Whether @path is below the directory @prefix. */
static bool is_below(const char *path, const char *prefix)
{
	size_t n = strlen(prefix);

	return strncmp(path, prefix, n) == 0 && path[n] == '/';
}

const char *root_dir_name(const struct root_dir *root, const char *path)
{
	return root && is_below(path, root->prefix) ? path + strlen(root->prefix) : path;
}

int root_dir_open_mapped(const struct root_dir *root, const char *path)
{
	if (!root || is_below(path, root->prefix))
		return root_dir_open(root, root_dir_name(root, path));
	size_t depth = 0;

	for (const char *p = root->prefix; *p; p++)
		depth += *p == '/';
	_cleanup_free_ char *outside = xmalloc(3 * depth + strlen(path) + 1);

	for (size_t i = 0; i < depth; i++)
		memcpy(outside + 3 * i, "../", 3);
	strcpy(outside + 3 * depth, path + strspn(path, "/"));
	return open_regular(openat(root->fd, outside, FLAGS));
}
