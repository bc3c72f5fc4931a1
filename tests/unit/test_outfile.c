/*
 * outfile: the file is complete or absent, for any disk, directory and name. Every test has a
 * working directory of its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/types.h"
#include "output/outfile.h"

static char dir[64];

static int setup(void **state)
{
	strcpy(dir, "/tmp/test_outfile.XXXXXX");
	umask(022);
	return mkdtemp(dir) && !chdir(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	return chdir("/") || system(command);
}

static size_t count_files(void)
{
	size_t n = 0;
	FILE *p = popen("ls -A | wc -l", "r");

	assert_int_equal(fscanf(p, "%zu", &n), 1);
	pclose(p);
	return n;
}

static void put_file(const char *path, const char *text)
{
	_cleanup_fclose_ FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
}

static void assert_file(const char *path, const char *text)
{
	_cleanup_fclose_ FILE *f = fopen(path, "r");
	char buf[256];

	assert_non_null(f);
	buf[fread(buf, 1, sizeof(buf) - 1, f)] = '\0';
	assert_string_equal(buf, text);
}

static mode_t mode_of(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_mode & 07777;
}

static int write_text(const char *path, const char *text)
{
	struct outfile out;
	int err = outfile_open(path, &out);

	if (err)
		return err;
	fputs(text, out.file);
	return outfile_commit(&out);
}

static void test_appears_whole(void **state)
{
	struct outfile out;

	assert_int_equal(outfile_open("new", &out), 0);
	fputs("text\n", out.file);
	fflush(out.file);
	assert_int_equal(access("new", F_OK), -1);
	assert_int_equal(outfile_commit(&out), 0);
	assert_null(out.file);
	assert_file("new", "text\n");
	assert_int_equal(mode_of("new"), 0644);
	assert_int_equal(count_files(), 1);
}

/* A writer that dies leaves no file, whatever the signal. */
static void test_killed(void **state)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGKILL};

	for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
		int status = 0;
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (pid == 0) {
			struct outfile out;

			signal(signals[i], SIG_DFL);
			if (outfile_open("new", &out))
				_exit(1);
			fputs("text", out.file);
			fflush(out.file);
			raise(signals[i]);
			_exit(2);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == signals[i]);
		assert_int_equal(count_files(), 0);
	}
}

static void test_umask(void **state)
{
	umask(077);
	assert_int_equal(write_text("private", "x"), 0);
	umask(022);
	assert_int_equal(mode_of("private"), 0600);
}

static void test_abort_keeps_old(void **state)
{
	struct outfile out;

	put_file("f", "old");
	assert_int_equal(outfile_open("f", &out), 0);
	fputs("new", out.file);
	outfile_abort(&out);
	outfile_abort(&out); /* twice is harmless */
	assert_file("f", "old");
	assert_int_equal(count_files(), 1);
}

static void test_replaces_and_keeps_mode(void **state)
{
	put_file("f", "a longer text than the new one");
	chmod("f", 0640);
	assert_int_equal(write_text("f", "new"), 0);
	assert_file("f", "new");
	assert_int_equal(mode_of("f"), 0640);
}

static void test_symlink_stays(void **state)
{
	struct stat st;

	mkdir("sub", 0755);
	put_file("sub/real", "old");
	assert_int_equal(symlink("sub/real", "link"), 0);
	assert_int_equal(write_text("link", "new"), 0);
	assert_int_equal(lstat("link", &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_file("sub/real", "new");
	assert_int_equal(symlink("sub/later", "dangling"), 0);
	assert_int_equal(write_text("dangling", "made"), 0);
	assert_file("sub/later", "made");
}

static void test_stale_temporary(void **state)
{
	char name[64];

	snprintf(name, sizeof(name), ".ptmem.%d.0", (int)getpid());
	put_file(name, "left by another");
	assert_int_equal(write_text("f", "new"), 0);
	assert_file("f", "new");
	assert_file(name, "left by another");
}

static void test_two_at_once(void **state)
{
	struct outfile a, b;

	assert_int_equal(outfile_open("a", &a), 0);
	assert_int_equal(outfile_open("b", &b), 0);
	fputs("a", a.file);
	fputs("b", b.file);
	assert_int_equal(outfile_commit(&b), 0);
	assert_int_equal(outfile_commit(&a), 0);
	assert_file("a", "a");
	assert_file("b", "b");
}

static void test_longest_name(void **state)
{
	char name[256];

	memset(name, 'n', 255);
	name[255] = '\0';
	assert_int_equal(write_text(name, "x"), 0);
	assert_file(name, "x");
}

/* User id 65534, to which permissions apply even if the test runs as root. */
static bool become_nobody(void)
{
	return geteuid() != 0 || (!setegid(65534) && !seteuid(65534));
}

static int as_nobody(const char *path)
{
	pid_t child = fork();
	int status;

	if (child == 0)
		_exit(become_nobody() ? -write_text(path, "new") & 0xff : 255);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return -WEXITSTATUS(status);
}

/* As user nobody: root would replace the device for the whole machine. */
static void test_device_full(void **state)
{
	assert_int_equal(as_nobody("/dev/full"), -ENOSPC);
	assert_int_equal(as_nobody("/dev/null"), 0);
}

/* The stream has seen ENOSPC long before the commit. */
static void test_device_full_early(void **state)
{
	struct outfile out;
	pid_t child = fork();
	int status;

	if (child == 0) {
		if (!become_nobody() || outfile_open("/dev/full", &out))
			_exit(2);
		for (int i = 0; i < 100000; i++)
			fputs("0123456789", out.file);
		_exit(outfile_commit(&out) < 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void test_size_limit(void **state)
{
	struct rlimit old, small = {.rlim_cur = 4096, .rlim_max = RLIM_INFINITY};
	struct outfile out;

	put_file("f", "old");
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &old);
	small.rlim_max = old.rlim_max;
	assert_int_equal(outfile_open("f", &out), 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	for (int i = 0; i < 5000; i++)
		fputc('x', out.file);
	int err = outfile_commit(&out);

	setrlimit(RLIMIT_FSIZE, &old);
	assert_int_equal(err, -EFBIG);
	assert_file("f", "old");
	assert_int_equal(count_files(), 1);
}

static void test_no_such_folder(void **state)
{
	struct outfile out = {0};

	put_file("plain", "");
	assert_int_equal(outfile_open("absent/f", &out), -ENOENT);
	assert_int_equal(outfile_open("plain/f", &out), -ENOTDIR);
	assert_int_equal(outfile_open(".", &out), -EISDIR);
	assert_int_equal(outfile_open("", &out), -ENOENT);
	assert_int_equal(outfile_open("later/", &out), -EISDIR);
	assert_null(out.file);
}

static void test_permissions(void **state)
{
	chmod(dir, 0755);
	mkdir("closed", 0555);
	mkdir("open", 0777);
	chmod("open", 0777);
	put_file("open/readonly", "old");
	chmod("open/readonly", 0444);
	assert_int_equal(as_nobody("closed/f"), -EACCES);
	assert_int_equal(as_nobody("open/f"), 0);
	assert_int_equal(as_nobody("open/readonly"), -EACCES);
	assert_file("open/readonly", "old");
}

static void test_fifo(void **state)
{
	struct stat st;
	char buf[16] = "";

	assert_int_equal(mkfifo("fifo", 0600), 0);
	alarm(100); /* without a writer, read would block forever */
	pid_t child = fork();

	if (child == 0)
		_exit(write_text("fifo", "through") ? 1 : 0);
	int fd = open("fifo", O_RDONLY);

	assert_int_equal(read(fd, buf, sizeof(buf) - 1), 7);
	alarm(0);
	assert_string_equal(buf, "through");
	close(fd);
	int status;

	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
	assert_int_equal(lstat("fifo", &st), 0);
	assert_true(S_ISFIFO(st.st_mode));
	assert_int_equal(count_files(), 1);
}

/* "-" writes to standard output and leaves it open. */
static void test_stdout(void **state)
{
	pid_t child = fork();

	if (child == 0) {
		if (!freopen("captured", "w", stdout) || write_text("-", "first ") || write_text("-", "second"))
			_exit(1);
		_exit(0);
	}
	int status;

	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
	assert_file("captured", "first second");
	assert_int_equal(access("-", F_OK), -1);
}

static void test_stdout_full(void **state)
{
	pid_t child = fork();

	if (child == 0)
		_exit(!freopen("/dev/full", "w", stdout) ? 255 : -write_text("-", "x"));
	int status;

	waitpid(child, &status, 0);
	assert_int_equal(WEXITSTATUS(status), ENOSPC);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_appears_whole), T(test_killed), T(test_umask), T(test_abort_keeps_old), T(test_replaces_and_keeps_mode),
		T(test_symlink_stays), T(test_stale_temporary), T(test_two_at_once), T(test_longest_name),
		T(test_device_full), T(test_device_full_early), T(test_size_limit), T(test_no_such_folder),
		T(test_permissions), T(test_fifo), T(test_stdout), T(test_stdout_full),
	};

	return cmocka_run_group_tests_name("outfile", tests, NULL, NULL);
}
