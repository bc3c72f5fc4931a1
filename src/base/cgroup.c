/* Reads /proc/PID/cgroup, mountinfo and the files of both versions of control groups. */
#include "base/cgroup.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"

struct cgroup_line {
	const char *controllers, *path; /* up to the end of the line */
	size_t controllers_size, path_size;
};

/* Takes the next line of *@text that names a group. False at the end. */
static bool next_line(const char **text, struct cgroup_line *out)
{
	while (**text) {
		const char *line = *text, *end = line + strcspn(line, "\n");
		const char *first = memchr(line, ':', (size_t)(end - line));
		const char *second =
			first ? memchr(first + 1, ':', (size_t)(end - first - 1)) : NULL;

		*text = *end ? end + 1 : end;
		if (!second || second[1] != '/')
			continue;
		*out = (struct cgroup_line){first + 1, second + 1, (size_t)(second - first - 1),
				     (size_t)(end - second - 1)};
		return true;
	}
	return false;
}

/* Whether the comma-separated list [@s, @end) has @word. */
static bool has_word(const char *s, const char *end, const char *word)
{
	size_t n = strlen(word);

	while (s < end) {
		size_t size = strcspn(s, ",: \n");

		if (size == n && strncmp(s, word, n) == 0)
			return true;
		s += size + 1;
	}
	return false;
}

static bool has_controller(const struct cgroup_line *l, const char *name)
{
	return has_word(l->controllers, l->controllers + l->controllers_size, name);
}

/* How well a line names the group of a process; 0 is best. */
static unsigned rank(const struct cgroup_line *l)
{
	if (l->path_size == 1) /* the root: the other version is in use, or another controller */
		return l->controllers_size ? 5 : 4;
	if (!l->controllers_size)
		return 0;
	return has_controller(l, "memory") ? 1 : has_controller(l, "name=systemd") ? 2 : 3;
}

char *cgroup_parse(const char *text)
{
	struct cgroup_line l, best = {0};

	while (next_line(&text, &l)) {
		if (!best.path || rank(&l) < rank(&best))
			best = l;
	}
	return best.path ? xstrndup(best.path, best.path_size) : NULL;
}

#define TEXT_SIZE 65536u

/* The beginning of a file; the caller frees it. NULL if it cannot be read. */
static char *read_text(const char *path)
{
	_cleanup_fclose_ FILE *f = path ? fopen(path, "re") : NULL;

	if (!f)
		return NULL;
	char *text = xmalloc(TEXT_SIZE);

	text[fread(text, 1, TEXT_SIZE - 1, f)] = '\0';
	return text;
}

char *cgroup_read_text(pid_t pid)
{
	_cleanup_free_ char *path = xasprintf("/proc/%d/cgroup", (int)pid);

	return read_text(path);
}

char *cgroup_read(pid_t pid)
{
	_cleanup_free_ char *text = cgroup_read_text(pid);

	return text ? cgroup_parse(text) : NULL;
}

static bool ends_component(char c)
{
	return c == '\0' || c == '\n' || c == '/';
}

bool cgroup_is_within(const char *text, const char *group)
{
	size_t n = strlen(group);
	struct cgroup_line l;

	while (n > 0 && group[n - 1] == '/')
		n--;
	while (next_line(&text, &l)) {
		if (n <= l.path_size && memcmp(l.path, group, n) == 0 &&
		    ends_component(l.path[n]))
			return true;
	}
	return false;
}

static bool has_component(const struct cgroup_line *l, const char *name)
{
	size_t n = strlen(name);

	for (const char *s = l->path, *end = s + l->path_size; s < end; s++) {
		if (*s == '/' && n < (size_t)(end - s) && memcmp(s + 1, name, n) == 0 &&
		    ends_component(s[1 + n]))
			return true;
	}
	return false;
}

bool cgroup_has_component(const char *text, const char *name)
{
	struct cgroup_line l;

	while (next_line(&text, &l)) {
		if (has_component(&l, name))
			return true;
	}
	return false;
}

void cgroup_container(const char *path, char id_out[CONTAINER_ID_SIZE])
{
	const size_t size = CONTAINER_ID_SIZE - 1;

	*id_out = '\0';
	for (const char *s = path; *s;) {
		size_t digits = 0;

		while (isxdigit((unsigned char)s[digits]))
			digits++;
		if (digits == size) {
			memcpy(id_out, s, size);
			id_out[size] = '\0';
		}
		s += digits ? digits : 1;
	}
}

/* -- files -- */

static char *read_file(const char *directory, const char *name)
{
	_cleanup_free_ char *path = directory ? xasprintf("%s/%s", directory, name) : NULL;

	return read_text(path);
}

static const char *line_after(const char *s)
{
	const char *end = strchr(s, '\n');

	return end ? end + 1 : NULL;
}

/* The number after "@key " at the beginning of a line. */
static bool find_number(const char *text, const char *key, uint64_t *out)
{
	size_t n = strlen(key);

	for (const char *s = text; s && *s; s = line_after(s)) {
		if (strncmp(s, key, n) == 0 && s[n] == ' ')
			return sscanf(s + n, "%" SCNu64, out) == 1;
	}
	return false;
}

/* -- where it is -- */

/* The path in the hierarchy of @controller, "" = version 2; the caller frees it. NULL = none. */
static char *path_of(const char *cgroup, const char *controller)
{
	struct cgroup_line l;

	while (cgroup && next_line(&cgroup, &l))
		if (*controller ? has_controller(&l, controller) : !l.controllers_size)
			return xstrndup(l.path, l.path_size);
	return NULL;
}

/* A line of mountinfo: of a cgroup2 if @controller is "". */
static bool is_mount_of(const char *line, const char *controller)
{
	size_t size = strcspn(line, "\n");
	const char *dash = memmem(line, size, " - ", 3);
	char type[16], source[256], options[1024];

	if (!dash || sscanf(dash, " - %15s %255s %1023s", type, source, options) != 3)
		return false;
	if (!*controller)
		return strcmp(type, "cgroup2") == 0;
	return strcmp(type, "cgroup") == 0 &&
	       has_word(options, options + strlen(options), controller);
}

/* @path below a mount of @root at @point; NULL if it is not there. */
static char *join(const char *root, const char *point, const char *path)
{
	size_t n = strcmp(root, "/") == 0 ? 0 : strlen(root);

	if (strncmp(path, root, n) != 0 || (path[n] && path[n] != '/') ||
	    strncmp(path, "/..", 3) == 0)
		return NULL;
	char *joined = xasprintf("%s%s", point, strcmp(path + n, "/") == 0 ? "" : path + n);

	if (access(joined, X_OK) == 0)
		return joined;
	free(joined);
	return NULL;
}

/* *@top_out: where the hierarchy is mounted, if the result is not NULL. */
static char *find_directory(const char *cgroup, const char *mountinfo, const char *controller,
			    char **top_out)
{
	_cleanup_free_ char *path = path_of(cgroup, controller);
	char root[1024], point[1024];

	for (const char *s = path ? mountinfo : NULL; s && *s; s = line_after(s)) {
		if (!is_mount_of(s, controller) ||
		    sscanf(s, "%*s %*s %*s %1023s %1023s", root, point) != 2)
			continue;
		char *found = join(root, point, path);

		if (found && top_out)
			*top_out = xstrdup(point);
		if (found)
			return found;
	}
	return NULL;
}

void memory_cgroup_find(const char *cgroup, const char *mountinfo, struct memory_cgroup *out)
{
	*out = (struct memory_cgroup){0};
	out->unified = find_directory(cgroup, mountinfo, "", &out->unified_top);
	out->memory = find_directory(cgroup, mountinfo, "memory", NULL);
}

void memory_cgroup_find_of(pid_t pid, struct memory_cgroup *out)
{
	_cleanup_free_ char *cgroup = cgroup_read_text(pid);
	_cleanup_free_ char *mounts = read_text("/proc/self/mountinfo");

	memory_cgroup_find(cgroup, mounts, out);
}

void memory_cgroup_deinit(struct memory_cgroup *c)
{
	free(c->unified);
	free(c->unified_top);
	free(c->memory);
	*c = (struct memory_cgroup){0};
}

/* -- values -- */

static bool read_number(const char *directory, const char *name, uint64_t *out)
{
	_cleanup_free_ char *text = read_file(directory, name);

	return text && sscanf(text, "%" SCNu64, out) == 1;
}

/* 0: it has none. */
static uint64_t stat_of(const char *stat, const char *key)
{
	uint64_t bytes = 0;

	return stat && find_number(stat, key, &bytes) ? bytes : 0;
}

static uint64_t read_limit(const char *directory)
{
	uint64_t limit;

	/* "max" is no number */
	return read_number(directory, "memory.max", &limit) ? limit : UINT64_MAX;
}

/* The least of @read's values of the group and all its ancestors, whose limits hold, too. */
static uint64_t least_of_unified(const struct memory_cgroup *c, uint64_t (*read)(const char *))
{
	_cleanup_free_ char *at = c->unified ? xstrdup(c->unified) : NULL;
	uint64_t least = UINT64_MAX;

	while (at && strlen(at) >= strlen(c->unified_top)) {
		least = MIN(least, read(at));
		char *slash = strrchr(at, '/');

		if (!slash || slash == at)
			break;
		*slash = '\0';
	}
	return least;
}

uint64_t memory_cgroup_limit(const struct memory_cgroup *c)
{
	_cleanup_free_ char *text = read_file(c->memory, "memory.stat");
	uint64_t limit = UINT64_MAX;

	if (text && !find_number(text, "hierarchical_memory_limit", &limit))
		limit = UINT64_MAX;
	return MIN(limit, least_of_unified(c, read_limit));
}

/* Of @limit, when @used bytes are in use, of which @files can be dropped at once. */
static uint64_t left_of(uint64_t limit, uint64_t used, uint64_t files)
{
	return limit - MIN(limit, used - MIN(used, files));
}

static uint64_t read_left(const char *directory)
{
	uint64_t used, limit = read_limit(directory);
	_cleanup_free_ char *stat = read_file(directory, "memory.stat");

	if (limit == UINT64_MAX || !read_number(directory, "memory.current", &used))
		return UINT64_MAX;
	return left_of(limit, used, stat_of(stat, "inactive_file"));
}

uint64_t memory_cgroup_left(const struct memory_cgroup *c)
{
	_cleanup_free_ char *stat = read_file(c->memory, "memory.stat");
	uint64_t limit, used, left = UINT64_MAX;

	if (stat && find_number(stat, "hierarchical_memory_limit", &limit) &&
	    read_number(c->memory, "memory.usage_in_bytes", &used))
		left = left_of(limit, used, stat_of(stat, "total_inactive_file"));
	return MIN(left, least_of_unified(c, read_left));
}

uint64_t memory_available(void)
{
	_cleanup_free_ char *text = read_text("/proc/meminfo");
	struct memory_cgroup own;
	uint64_t kib;

	if (!text || !find_number(text, "MemAvailable:", &kib))
		return 0;
	memory_cgroup_find_of(getpid(), &own);
	uint64_t left = memory_cgroup_left(&own);

	memory_cgroup_deinit(&own);
	return MIN(kib << 10, left);
}

bool memory_cgroup_limit_hits(const struct memory_cgroup *c, uint64_t *out)
{
	static const char *const keys[] = {"high", "max", "oom"};
	_cleanup_free_ char *events = read_file(c->unified, "memory.events");
	_cleanup_free_ char *count = events ? NULL : read_file(c->memory, "memory.failcnt");
	uint64_t n;

	if (!events)
		return count && sscanf(count, "%" SCNu64, out) == 1;
	*out = 0;
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		*out += find_number(events, keys[i], &n) ? n : 0;
	return true;
}

bool memory_cgroup_pressure(const struct memory_cgroup *c, double *out)
{
	_cleanup_free_ char *text = read_file(c->unified, "memory.pressure");
	unsigned whole, hundredths;

	/* not a floating-point number: its point does not depend on the locale */
	if (!text || sscanf(text, "some avg10=%u.%2u", &whole, &hundredths) != 2)
		return false;
	*out = whole + hundredths / 100.0;
	return true;
}

/* -- what its memory is -- */

static void add_part(struct memory_cgroup_usage *u, const char *name, const char *text,
		     uint64_t bytes)
{
	uint64_t left = u->all;

	for (size_t i = 0; i < u->count; i++)
		left -= u->part[i].bytes;
	u->excess += bytes - MIN(bytes, left);
	u->part[u->count++] = (struct memory_cgroup_part){name, text, MIN(bytes, left)};
}

static void add_memory(struct memory_cgroup_usage *u, uint64_t own, uint64_t anonymous,
		       uint64_t files, uint64_t shared)
{
	uint64_t mine = MIN(own, anonymous);

	add_part(u, "anonymous", "anonymous memory of this process", mine);
	add_part(u, "others", "anonymous memory of other processes", anonymous - mine);
	add_part(u, "page_cache", "page cache of files", files - MIN(files, shared));
	add_part(u, "shared", "shared memory and files in tmpfs", shared);
}

bool memory_cgroup_usage(const struct memory_cgroup *c, uint64_t own,
			 struct memory_cgroup_usage *out)
{
	static const struct {
		const char *key, *text;
	} kernel[] = {{"slab", "the kernel's objects (slab)"}, {"sock", "sockets"},
		      {"pagetables", "page tables"}, {"kernel_stack", "kernel stacks"},
		      {"percpu", "the kernel's data for each CPU"}};
	uint64_t all, kmem = 0;
	bool is_unified = read_number(c->unified, "memory.current", &all);
	_cleanup_free_ char *stat = read_file(is_unified ? c->unified : c->memory, "memory.stat");

	if (!is_unified && !read_number(c->memory, "memory.usage_in_bytes", &all))
		return false;
	*out = (struct memory_cgroup_usage){.all = all};
	if (is_unified) {
		add_memory(out, own, stat_of(stat, "anon"), stat_of(stat, "file"),
			   stat_of(stat, "shmem"));
		for (size_t i = 0; i < ARRAY_SIZE(kernel); i++)
			add_part(out, kernel[i].key, kernel[i].text, stat_of(stat, kernel[i].key));
	} else {
		add_memory(out, own, stat_of(stat, "total_rss"), stat_of(stat, "total_cache"),
			   stat_of(stat, "total_shmem"));
		if (read_number(c->memory, "memory.kmem.usage_in_bytes", &kmem))
			add_part(out, "kernel", "the kernel's objects, stacks and page tables",
				 kmem);
	}
	add_part(out, "rest", "the rest, and what is reserved for CPUs", UINT64_MAX);
	out->excess -= UINT64_MAX - out->part[out->count - 1].bytes;
	return true;
}
