/* /proc/PID/maps, proc(5). Newlines in paths are printed as \012 and not converted. */
#include "tracee/os/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>

#include "base/cleanup.h"
#include "base/proc.h"

#define DELETED " (deleted)"
#define MAIN_STACK "[stack]"

/* Space kept free below a mapping that grows down, and above the heap. */
#define STACK_ROOM (256ull << 20)
#define HEAP_ROOM (1ull << 30)
#define MMAP_REGION 0x700000000000ull
#define MIN_ADDRESS 0x10000ull
#define READ_SIZE 4096u /* the kernel's for this file; stdio would read 1 KiB at a time */
#define KERNEL_START (1ull << 63) /* [vsyscall] is there */

/* The argument of ioctl PROCMAP_QUERY: linux/fs.h since 6.11. */
struct map_query {
	uint64_t size;  /* of this struct */
	uint64_t flags; /* which kinds of maps to return */
	uint64_t addr;
	uint64_t start, end, map_flags, page_size, offset, ino;
	uint32_t dev_major, dev_minor, name_size, build_id_size;
	uint64_t name, build_id;
};
#define MAP_QUERY _IOWR('f', 17, struct map_query)
#define MAP_QUERY_CODE 4
#define MAP_QUERY_NEXT 0x10 /* if no map contains the address, the next one above it */

/*
 * Moves @text past the number there and the character @behind, which must follow. sscanf takes
 * three times as long.
 */
static bool take_number(const char **text, int base, char behind, uint64_t *out)
{
	char *end;
	*out = strtoull(*text, &end, base);
	if (end == *text || *end != behind)
		return false;
	*text = end + 1;
	return true;
}

int maps_parse_line(const char *line, struct map *out)
{
	struct map m = {0};
	const char *p = line;
	uint64_t major_dev, minor_dev;
	char *path;
	if (!take_number(&p, 16, '-', &m.start) || !take_number(&p, 16, ' ', &m.end))
		return -EINVAL;
	const char *perms = p;
	if (strcspn(perms, " ") != 4 || perms[4] != ' ')
		return -EINVAL;
	p = perms + 5;
	if (!take_number(&p, 16, ' ', &m.offset) || !take_number(&p, 16, ':', &major_dev) ||
	    !take_number(&p, 16, ' ', &minor_dev))
		return -EINVAL;
	m.ino = strtoull(p, &path, 10);
	if (path == p || m.start >= m.end)
		return -EINVAL;
	path += strspn(path, " ");
	m.is_read = perms[0] == 'r';
	m.is_write = perms[1] == 'w';
	m.is_exec = perms[2] == 'x';
	m.is_shared = perms[3] == 's';
	m.dev = makedev((unsigned)major_dev, (unsigned)minor_dev);
	size_t n = strlen(path), d = strlen(DELETED);
	m.is_deleted = n > d && strcmp(path + n - d, DELETED) == 0;
	m.path = xstrndup(path, m.is_deleted ? n - d : n);
	*out = m;
	return 0;
}

int maps_open(pid_t pid)
{
	char name[64];
	snprintf(name, sizeof(name), "/proc/%d/maps", (int)pid);
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int ask(int fd, struct map_query *q)
{
	if (ioctl(fd, MAP_QUERY, q) == 0)
		return 1;
	return errno == ENOENT ? 0 : -errno;
}

int maps_query(int fd, taddr_t addr)
{
	struct map_query q = {.size = sizeof(q), .flags = MAP_QUERY_CODE, .addr = addr};
	return ask(fd, &q);
}

int maps_query_bounds(int fd, taddr_t addr, struct map_bounds *out)
{
	char name[PATH_MAX + sizeof(DELETED)] = "";
	struct map_query q = {.size = sizeof(q), .addr = addr, .name = (uint64_t)(uintptr_t)name,
			      .name_size = sizeof(name)};
	int rc = ask(fd, &q);
	if (rc == 1)
		*out = (struct map_bounds){q.start, q.end, strcmp(name, MAIN_STACK) == 0};
	return rc;
}

int maps_query_free(int fd, taddr_t addr, uint64_t size)
{
	struct map_query q = {.size = sizeof(q), .flags = MAP_QUERY_NEXT, .addr = addr};
	int rc = ask(fd, &q);

	return rc < 0 ? rc : rc == 0 || (q.start >= addr && q.start - addr >= size);
}

bool maps_take_bytes(const char *line, const char *key, uint64_t *bytes_out)
{
	size_t n = strlen(key);

	if (strncmp(line, key, n) != 0)
		return false;
	*bytes_out = strtoull(line + n, NULL, 10) * 1024;
	return true;
}

int maps_read(pid_t pid, struct maps *out)
{
	char buffer[READ_SIZE];
	_cleanup_fclose_ FILE *f = proc_open(pid, "maps");
	if (!f)
		return errno == ENOENT ? -ESRCH : -errno;
	setvbuf(f, buffer, _IOFBF, sizeof(buffer));
	struct maps maps = {0};
	_cleanup_free_ char *line = NULL;
	size_t size = 0;
	ssize_t n;
	while ((n = getline(&line, &size, f)) > 0) {
		if (line[n - 1] == '\n')
			line[n - 1] = '\0';
		struct map m;
		if (maps_parse_line(line, &m) == 0)
			*vec_add(&maps.list) = m;
	}
	if (maps.list.count == 0) {
		maps_deinit(&maps);
		return -ESRCH;
	}
	*out = maps;
	return 0;
}

void maps_deinit(struct maps *m)
{
	vec_release(&m->list, e, free(e->path));
}

bool map_is_main_stack(const struct map *m)
{
	return strcmp(m->path, MAIN_STACK) == 0;
}

bool map_is_text(const struct map *m)
{
	return m->is_exec && (m->path[0] == '/' || strcmp(m->path, "[vdso]") == 0);
}

bool map_has_no_file(const struct map *m)
{
	static const char *const names[] = {"/dev/zero", "/dev/shm/", "/memfd:", "/SYSV",
					    "[anon_shmem"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strncmp(m->path, names[i], strlen(names[i])) == 0)
			return true;
	return !*m->path;
}

bool map_is_anonymous(const struct map *m)
{
	return !m->is_shared && (!*m->path || strncmp(m->path, "[anon", 5) == 0);
}

const struct map *maps_find(const struct maps *m, taddr_t addr)
{
	size_t i = vec_search(&m->list, e, e->end <= addr);
	return i < m->list.count && m->list.data[i].start <= addr ? &m->list.data[i] : NULL;
}

/* An unmapped range. */
struct gap {
	taddr_t start, end;
};

/* The usable part of the gap between the maps @below (or NULL) and @above it. */
static struct gap get_gap(const struct map *below, const struct map *above)
{
	struct gap gap = {
		.start = below ? below->end + PAGE_SIZE_MIN : MIN_ADDRESS,
		.end = above->start > PAGE_SIZE_MIN ? above->start - PAGE_SIZE_MIN : 0,
	};
	/* the heap grows from the end of the executable, even before it has a map */
	if (below && below->start < MMAP_REGION)
		gap.start += HEAP_ROOM;
	if (map_is_main_stack(above))
		gap.end = gap.end > STACK_ROOM ? gap.end - STACK_ROOM : 0;
	return gap;
}

/*
 * Where @size bytes in @gap and within @reach of @near are as far as possible from the maps around
 * the gap. *room_out: how far. 0: they do not fit.
 */
static taddr_t place_in_gap(struct gap gap, taddr_t near, uint64_t reach, uint64_t size,
			    uint64_t *room_out)
{
	taddr_t low = ROUND_UP(MAX(gap.start, near > reach ? near - reach : 0),
			       (taddr_t)PAGE_SIZE_MIN);
	taddr_t high = ROUND_DOWN(MIN(gap.end, near + reach), (taddr_t)PAGE_SIZE_MIN);
	if (low >= high || high - low < size)
		return 0;
	taddr_t middle = gap.start + (gap.end - gap.start - size) / 2;
	taddr_t at = ROUND_DOWN(MIN(MAX(middle, low), high - size), (taddr_t)PAGE_SIZE_MIN);
	*room_out = MIN(at - MIN(gap.start, at), gap.end - at - size);
	return at;
}

int maps_find_gap(const struct maps *m, taddr_t near, uint64_t reach, uint64_t size, taddr_t *out)
{
	uint64_t best = 0;
	taddr_t best_at = 0;
	for (size_t i = 0; i < m->list.count; i++) {
		const struct map *above = &m->list.data[i], *below = i > 0 ? above - 1 : NULL;
		if (above->start >= KERNEL_START)
			break; /* most of the gap below it is no address of a program */
		uint64_t room = 0;
		taddr_t at = place_in_gap(get_gap(below, above), near, reach, size, &room);
		if (at && (!best_at || room > best)) {
			best = room;
			best_at = at;
		}
	}
	*out = best_at;
	return best_at ? 0 : -ENOMEM;
}
