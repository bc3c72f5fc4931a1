/*
 * Candidates are tried in the order of gdb and Valgrind. Each is opened and verified, since debug
 * packages may not match the installed binaries.
 */
#include "symbols/debug_files.h"

#include <dlfcn.h>
#include <dwarf.h>
#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include "base/alloc.h"
#include "base/amount.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/own_process.h"

/* What a candidate must match. */
struct wanted {
	const struct elf_file *file; /* the file whose debug file is wanted: not a candidate */
	const uint8_t *build_id;     /* NULL: unknown */
	size_t build_id_size;
	bool has_crc;
	uint32_t crc;                /* of the candidate's contents */
};

/* The longest build-id accepted; real ones have 8 to 32 bytes. */
#define BUILD_ID_MAX 64

/* Whether one of the notes in @data is the build-id @w. */
static bool is_build_id_note(Elf_Data *data, const struct wanted *w)
{
	size_t name, id;
	GElf_Nhdr note;
	for (size_t pos = 0; (pos = gelf_getnote(data, pos, &note, &name, &id)) > 0;) {
		const uint8_t *bytes = data->d_buf;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
		    memcmp(bytes + name, "GNU", 4) == 0)
			return note.n_descsz == w->build_id_size &&
			       memcmp(bytes + id, w->build_id, w->build_id_size) == 0;
	}
	return false;
}

/* Uses sections: in a debug file the program headers refer to contents that were removed. */
static bool has_build_id(struct elf_file *f, const struct wanted *w)
{
	if (!w->build_id)
		return false;
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(f->elf, scn));) {
		GElf_Shdr header;
		if (!gelf_getshdr(scn, &header) || header.sh_type != SHT_NOTE)
			continue;
		Elf_Data *data = elf_getdata(scn, NULL);
		if (data && data->d_buf && is_build_id_note(data, w))
			return true;
	}
	return false;
}

static bool has_crc(const struct elf_file *f, uint32_t wanted)
{
	size_t size;
	const char *data = elf_rawfile(f->elf, &size);
	if (!data)
		return false;
	uLong crc = crc32_z(0, (const Bytef *)data, size);
	return crc == wanted;
}

static struct elf_file *try_in(const struct wanted *w, struct root_dir *root, const char *path)
{
	struct elf_file *f;
	int fd = root_dir_open(root, path);
	if (fd < 0 || elf_file_open_fd(w->file->files, fd, path, root, &f) != 0)
		return NULL;
	if (!elf_file_is_same(f, w->file) &&
	    (has_build_id(f, w) || (w->has_crc && has_crc(f, w->crc))))
		return f;
	log_debug("%s is not the debug file of %s", path, w->file->path);
	elf_file_release(f);
	return NULL;
}

/* In the root directory that has the file, then in ours. */
static struct elf_file *try_open(const struct wanted *w, const char *path)
{
	struct elf_file *f = w->file->root ? try_in(w, w->file->root, path) : NULL;
	return f ? f : try_in(w, NULL, path);
}

/* ROOT/.build-id/xx/yyyy.debug */
static struct elf_file *try_build_id(const struct wanted *w, const char *root)
{
	char hex[2 * BUILD_ID_MAX + 1];
	if (!w->build_id || w->build_id_size < 2 || w->build_id_size > BUILD_ID_MAX)
		return NULL;
	for (size_t i = 0; i < w->build_id_size; i++)
		snprintf(hex + 2 * i, 3, "%02x", w->build_id[i]);
	_cleanup_free_ char *path = xasprintf("%s/.build-id/%.2s/%s.debug", root, hex, hex + 2);
	return try_open(w, path);
}

/* The directory of @path including the final '/', malloc'ed; "" if there is none. */
static char *directory_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? xstrndup(path, (size_t)(slash - path) + 1) : xstrdup("");
}

/* Calls @try for each root of @dirs until one finds a file. */
typedef struct elf_file *try_root_fn(const struct wanted *w, const char *root, const char *tail);

static struct elf_file *each_root(const struct wanted *w, const char *dirs, try_root_fn *try,
				  const char *tail)
{
	while (*dirs) {
		size_t length = strcspn(dirs, ":");
		_cleanup_free_ char *root = xstrndup(dirs, length);
		struct elf_file *f = length ? try(w, root, tail) : NULL;
		if (f)
			return f;
		dirs += length + (dirs[length] == ':');
	}
	return NULL;
}

static struct elf_file *try_root_build_id(const struct wanted *w, const char *root,
					  const char *tail)
{
	return try_build_id(w, root);
}

static struct elf_file *try_root_path(const struct wanted *w, const char *root, const char *tail)
{
	_cleanup_free_ char *path = xasprintf("%s%s%s", root, tail[0] == '/' ? "" : "/", tail);
	return try_open(w, path);
}

/* The debug file @name of a file in @directory (which ends in '/'). */
static struct elf_file *try_link(const struct wanted *w, const char *dirs, const char *directory,
				 const char *name)
{
	_cleanup_free_ char *beside = xasprintf("%s%s", directory, name);
	_cleanup_free_ char *hidden = xasprintf("%s.debug/%s", directory, name);
	struct elf_file *f = try_open(w, beside);
	if (!f)
		f = try_open(w, hidden);
	return f ? f : each_root(w, dirs, try_root_path, beside);
}

struct elf_file *debuglink_find(struct elf_file *file, const char *dirs)
{
	struct wanted w = {
		.file = file, .build_id = file->build_id, .build_id_size = file->build_id_size,
	};
	struct elf_file *f = each_root(&w, dirs, try_root_build_id, "");
	if (f)
		return f;
	GElf_Word crc;
	const char *name = dwelf_elf_gnu_debuglink(file->elf, &crc);
	if (!name || !*name || strchr(name, '/'))
		return NULL;
	w.has_crc = true;
	w.crc = crc;
	_cleanup_free_ char *directory = directory_of(file->path);
	f = try_link(&w, dirs, directory, name);
	if (f)
		return f;
	/* /lib may be a link to /usr/lib: packages use either name */
	_cleanup_free_ char *real = file->root ? NULL : realpath(file->path, NULL);
	_cleanup_free_ char *real_directory = real ? directory_of(real) : NULL;
	if (!real || strcmp(real_directory, directory) == 0)
		return NULL;
	return try_link(&w, dirs, real_directory, name);
}

struct elf_file *debuglink_open(struct elf_file *file, const char *path)
{
	const struct wanted w = {
		.file = file, .build_id = file->build_id, .build_id_size = file->build_id_size,
	};
	return try_in(&w, NULL, path);
}

/* The file that .gnu_debugaltlink of @dwarf, read from @file, refers to; NULL: none is found. */
static struct elf_file *find_alt(const struct elf_file *file, Dwarf *dwarf, const char *dirs)
{
	const char *name;
	const void *id;
	ssize_t size = dwelf_dwarf_gnu_debugaltlink(dwarf, &name, &id);
	if (size <= 0 || !*name)
		return NULL;
	struct wanted w = {.file = file, .build_id = id, .build_id_size = (size_t)size};
	struct elf_file *f;
	if (name[0] == '/') {
		f = try_open(&w, name);
	} else {
		_cleanup_free_ char *directory = directory_of(file->path);
		_cleanup_free_ char *path = xasprintf("%s%s", directory, name);
		f = try_open(&w, path);
	}
	return f ? f : each_root(&w, dirs, try_root_build_id, "");
}

/* -- files that libdw opens by itself -- */

/* Whether @name, of @directory, which may be below @base, is a file or nothing. */
static bool is_plain(const char *base, const char *directory, const char *name)
{
	bool is_absolute = *name == '/', is_below = !is_absolute && *directory == '/';
	_cleanup_free_ char *path = xasprintf("%s%s%s%s", is_absolute || is_below ? "" : base,
					      is_absolute ? "" : directory,
					      is_absolute || !*directory ? "" : "/", name);
	struct stat st;

	return stat(path, &st) != 0 || S_ISREG(st.st_mode);
}

/* As libdw names the directory of a file: by the kernel. Malloc'ed. */
static char *base_of(const struct elf_file *file)
{
	char path[PATH_MAX], *slash;
	_cleanup_free_ char *link = xasprintf("/proc/self/fd/%d", file->fd);
	ssize_t size = file->fd >= 0 ? readlink(link, path, sizeof(path) - 1) : -1;

	path[MAX(size, (ssize_t)0)] = '\0';
	slash = strrchr(path, '/');
	path[slash ? slash + 1 - path : 0] = '\0';
	return xstrdup(path);
}

/* Whether libdw may look for the common file of @dwarf, read from @file. */
static bool may_find_alt(const struct elf_file *file, Dwarf *dwarf)
{
	const char *name;
	const void *id;

	if (dwelf_dwarf_gnu_debugaltlink(dwarf, &name, &id) <= 0)
		return true;
	_cleanup_free_ char *base = base_of(file);

	return is_plain(base, "", name);
}

Dwarf *debuglink_begin(const struct elf_file *file, const char *dirs, struct elf_file **alt_file,
		       Dwarf **alt_out)
{
	Dwarf *dwarf = dwarf_begin_elf(file->elf, DWARF_C_READ, NULL);

	if (!dwarf)
		return NULL;
	if (!*alt_file)
		*alt_file = find_alt(file, dwarf, dirs);
	if (*alt_file)
		*alt_out = dwarf_begin_elf((*alt_file)->elf, DWARF_C_READ, NULL);
	if (*alt_out) {
		dwarf_setalt(dwarf, *alt_out);
	} else if (!may_find_alt(file, dwarf)) {
		dwarf_end(dwarf);
		return NULL;
	}
	return dwarf;
}

static const char *unit_string(Dwarf_Die *cu_die, unsigned attribute)
{
	Dwarf_Attribute attr;
	const char *text = dwarf_attr(cu_die, attribute, &attr) ? dwarf_formstring(&attr) : NULL;

	return text ? text : "";
}

bool debuglink_find_split(const struct elf_file *file, Dwarf_Die *cu_die, Dwarf_Die *split_out)
{
	const char *directory = unit_string(cu_die, DW_AT_comp_dir);
	const char *name = unit_string(cu_die, DW_AT_dwo_name);
	uint8_t type = 0;

	if (!*name)
		name = unit_string(cu_die, DW_AT_GNU_dwo_name);
	if (!*name)
		return false; /* as nearly all units */
	_cleanup_free_ char *base = base_of(file);

	return is_plain(base, "", name) && is_plain(base, directory, name) &&
	       dwarf_cu_info(cu_die->cu, NULL, &type, NULL, split_out, NULL, NULL, NULL) == 0 &&
	       type == DW_UT_skeleton && split_out->addr &&
	       dwarf_tag(split_out) == DW_TAG_compile_unit;
}

/*
 *	caller                      child
 *	                            for each request:
 *	shows progress         <--    PROGRESS: bytes so far, of how many
 *	calls found()          <--    FOUND: the path in the client's cache; or MISSING
 *	its pipe has ended     <--  exits
 *
 * The child is killed when the caller gives up, and when the caller dies.
 */

#define LIBRARY "libdebuginfod.so.1"
#define POLL_MS 100
#define TIMEOUT_S 10

enum kind { PROGRESS, FOUND, MISSING, NO_LIBRARY };

/* About the first request without an answer. At most PIPE_BUF bytes: written at once. */
struct fetch_message {
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

static void tell(const struct fetch_message *m)
{
	if (write(STDIN_FILENO, m, sizeof(*m)) != (ssize_t)sizeof(*m))
		_exit(1); /* the caller is gone */
}

static int on_progress(client *c, long done, long whole)
{
	const struct fetch_message m = {.kind = PROGRESS, .done = done, .whole = whole};

	(void)c;
	tell(&m);
	return 0;
}

static void fetch_one(const struct library *lib, client *c, const struct debuginfod_request *r)
{
	struct fetch_message m = {.kind = MISSING};
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
		tell(&(struct fetch_message){.kind = NO_LIBRARY});
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

static void take(struct fetch *f, struct fetch_message *m)
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
	struct fetch_message m;

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
