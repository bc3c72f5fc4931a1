/*
 * Perf maps and jitdump files (tools/perf/Documentation/jitdump-specification.txt and
 * jit-interface.txt in Linux). See perf_map.h for what they are and who writes them.
 *
 * The functions are an interval tree within a sorted array: the middle element of a part is its
 * root, and knows the last end in it. New ones follow unsorted, and are merged when there are too
 * many to look at one by one.
 */
#include "languages/perf_map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/text.h"

#define UNSORTED_MIN 1024u
#define UNSORTED_PART 64u  /* of the sorted ones: as many may be unsorted */
#define VISITS_MAX 65536u  /* functions that contain one address */
#define BUFFER (1u << 20)
#define LINE_MAX_SIZE (64u << 10)
#define REFRESH_MAX (UINT64_C(256) << 20) /* bytes at once; the next refresh reads on */
#define FILES_MAX 16u

/* -- the functions -- */

void code_map_deinit(struct code_map *m)
{
	vec_deinit(&m->entries);
	vec_deinit(&m->reach);
	vec_deinit(&m->text);
	vec_deinit(&m->lines);
	vec_deinit(&m->changes);
	*m = (struct code_map){0};
}

/* Appends @size bytes and a NUL. 0 if there is too much text. */
static uint32_t add_text(struct code_map *m, const char *s, size_t size)
{
	size_t start = MAX(m->text.count, (size_t)1);

	if (size >= CODE_TEXT_MAX - start)
		return 0;
	vec_reserve(&m->text, start + size + 1);
	m->text.data[0] = '\0';
	memcpy(m->text.data + start, s, size);
	m->text.data[start + size] = '\0';
	m->text.count = start + size + 1;
	return (uint32_t)start;
}

static int compare_entries(const void *a, const void *b)
{
	const struct code_entry *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* Stores the last end in [@low, @high), which has at least one element. */
static taddr_t store_reach(struct code_map *m, size_t low, size_t high)
{
	size_t middle = low + (high - low) / 2;
	taddr_t reach = m->entries.data[middle].end;

	if (low < middle)
		reach = MAX(reach, store_reach(m, low, middle));
	if (middle + 1 < high)
		reach = MAX(reach, store_reach(m, middle + 1, high));
	return m->reach.data[middle] = reach;
}

static void sort(struct code_map *m)
{
	size_t old = m->sorted, added = m->entries.count - old, to = m->entries.count;

	if (!added)
		return;
	qsort(m->entries.data + old, added, sizeof(*m->entries.data), compare_entries);
	_cleanup_free_ struct code_entry *fresh =
		xmemdup(m->entries.data + old, added * sizeof(*fresh));

	while (added > 0) {
		struct code_entry *e = m->entries.data;

		if (old > 0 && compare_entries(&e[old - 1], &fresh[added - 1]) > 0)
			e[--to] = e[--old];
		else
			e[--to] = fresh[--added];
	}
	m->sorted = m->entries.count;
	vec_reserve(&m->reach, m->sorted);
	m->reach.count = m->sorted;
	store_reach(m, 0, m->sorted);
}

bool code_map_add(struct code_map *m, const struct code_entry *e, const char *name, size_t size)
{
	const char *nul = memchr(name, '\0', size);
	uint32_t text;

	size = MIN(nul ? (size_t)(nul - name) : size, CODE_NAME_MAX);
	if (e->start == 0 || e->end <= e->start || e->end - e->start > CODE_SIZE_MAX ||
	    m->entries.count >= CODE_ENTRIES_MAX || size == 0 ||
	    !(text = add_text(m, name, size))) {
		m->rejected++;
		return false;
	}
	struct code_entry *added = vec_add(&m->entries);

	*added = *e;
	added->name = text;
	added->order = m->next_order++;
	*vec_add(&m->changes) = (struct code_change){e->start, e->end, e->from};
	return true;
}

struct search {
	const struct code_map *map;
	taddr_t addr;
	uint64_t time;
	const struct code_entry *best;
	uint32_t visits;
};

static void consider(struct search *s, const struct code_entry *e)
{
	const struct code_entry *best = s->best;

	if (s->addr < e->start || s->addr >= e->end)
		return;
	s->visits++;
	if (e->from > s->time)
		return;
	if (!best || e->from > best->from || (e->from == best->from && e->order > best->order))
		s->best = e;
}

static void search_part(struct search *s, size_t low, size_t high)
{
	while (low < high && s->visits < VISITS_MAX) {
		size_t middle = low + (high - low) / 2;
		const struct code_entry *e = &s->map->entries.data[middle];

		if (s->map->reach.data[middle] <= s->addr)
			return;
		if (e->start <= s->addr) {
			consider(s, e);
			search_part(s, middle + 1, high);
		}
		high = middle;
	}
}

const struct code_entry *code_map_find(struct code_map *m, taddr_t addr, uint64_t time)
{
	struct search s = {.map = m, .addr = addr, .time = time};

	if (m->entries.count - m->sorted > UNSORTED_MIN + m->sorted / UNSORTED_PART)
		sort(m);
	for (size_t i = m->sorted; i < m->entries.count; i++)
		consider(&s, &m->entries.data[i]);
	search_part(&s, 0, m->sorted);
	return s.best;
}

static char *text_of(const struct code_map *m, uint32_t at)
{
	return text_clean(&m->text.data[at], strlen(&m->text.data[at]));
}

char *code_map_name(const struct code_map *m, const struct code_entry *e)
{
	return text_of(m, e->name);
}

bool code_map_line(const struct code_map *m, const struct code_entry *e, taddr_t addr,
		   char **file_out, uint32_t *line_out)
{
	const struct code_line *best = NULL;

	/* not sorted: compilers move code, and write what belongs together */
	for (uint32_t i = 0; i < e->lines; i++) {
		const struct code_line *l = &m->lines.data[e->line + i];

		if (l->offset <= addr - e->start && (!best || l->offset >= best->offset))
			best = l;
	}
	if (!best)
		return false;
	*file_out = text_of(m, best->file);
	*line_out = best->line;
	return true;
}

/* -- perf maps -- */

/* Whether it is in the sorted part of @m, and nothing there has replaced it. */
static bool is_known(struct code_map *m, const struct code_entry *e, const char *name, size_t size)
{
	struct search s = {.map = m, .addr = e->start, .time = UINT64_MAX};
	const struct code_entry *old;

	search_part(&s, 0, m->sorted);
	old = s.best;
	size = MIN(size, CODE_NAME_MAX);
	return old && old->start == e->start && old->end == e->end &&
	       strlen(&m->text.data[old->name]) == size &&
	       memcmp(&m->text.data[old->name], name, size) == 0;
}

/* A number in base 16, after blanks, with or without "0x", followed by a blank. */
static bool take_hex(const char **at, const char *end, uint64_t *out)
{
	const char *s = *at, *digits;

	while (s < end && (*s == ' ' || *s == '\t'))
		s++;
	if (end - s > 2 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X'))
		s += 2;
	for (digits = s; s < end && *s != ' ' && *s != '\t'; s++)
		;
	*at = s;
	return s < end && proc_parse_number(digits, s, 16, out);
}

static void parse_line(struct perf_file *f, struct code_map *m, const char *line, const char *end)
{
	struct code_entry e = {.from = f->seen};
	uint64_t size;

	while (end > line && (end[-1] == '\r' || end[-1] == ' '))
		end--;
	if (line == end)
		return;
	if (!take_hex(&line, end, &e.start) || !take_hex(&line, end, &size) || size == 0 ||
	    size > CODE_SIZE_MAX || e.start + size < e.start) {
		f->bad++;
		return;
	}
	while (line < end && (*line == ' ' || *line == '\t'))
		line++;
	e.end = e.start + size;
	if (!f->is_again || !is_known(m, &e, line, (size_t)(end - line)))
		f->bad += !code_map_add(m, &e, line, (size_t)(end - line));
}

static uint64_t parse_map(struct perf_file *f, struct code_map *m, const struct perf_data *d)
{
	const char *start = (const char *)d->data, *end = start + d->size, *at = start;

	for (;;) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));

		if (!newline)
			break;
		if (!f->is_in_line)
			parse_line(f, m, at, newline);
		f->is_in_line = false;
		at = newline + 1;
	}
	if (f->is_in_line || (size_t)(end - at) >= LINE_MAX_SIZE) {
		f->bad += !f->is_in_line;
		f->is_in_line = true;
		at = end;
	}
	return (uint64_t)(at - start);
}

/* -- jitdump -- */

#define JIT_MAGIC 0x4A695444u
#define JIT_HEADER_MAX 4096u
#define JIT_TICKS 1u       /* flag: times are of the CPU's counter */

enum jit_record { JIT_LOAD, JIT_MOVE, JIT_DEBUG_INFO, JIT_CLOSE };

struct jit_header {
	uint32_t magic, version, size, machine, padding, pid;
	uint64_t time, flags;
};
_Static_assert(sizeof(struct jit_header) == 40, "as in the file");

struct jit_prefix {
	uint32_t id, size; /* of the whole record */
	uint64_t time;
};

struct jit_load {
	uint32_t pid, tid;
	uint64_t vma, addr, size, index; /* then the name and the code */
};

struct jit_move {
	uint32_t pid, tid;
	uint64_t vma, from, to, size, index;
};

struct jit_debug {
	uint64_t addr, count; /* then as many lines */
};

struct jit_line {
	uint64_t addr;
	uint32_t line, discriminator; /* then the file's name; "\xff" = the one before */
};
#define JIT_LINE_SIZE 16u

/* A record of which @size bytes, or all, are at @data, after the prefix. */
struct jit_part {
	const uint8_t *data;
	size_t size;
	uint64_t time;
};

static bool take_part(struct jit_part *p, void *out, size_t size)
{
	if (p->size < size)
		return false;
	memcpy(out, p->data, size);
	p->data += size;
	p->size -= size;
	return true;
}

/* A text with its NUL; NULL if that is missing. */
static const char *take_text(struct jit_part *p)
{
	const char *text = (const char *)p->data;
	size_t size = strnlen(text, p->size);

	if (size == p->size)
		return NULL;
	p->data += size + 1;
	p->size -= size + 1;
	return text;
}

static bool jit_debug(struct perf_file *f, struct code_map *m, struct jit_part *p)
{
	struct jit_debug head;
	struct jit_line l;
	uint32_t file = 0;
	const char *name;

	if (!take_part(p, &head, sizeof(head)))
		return false;
	f->pending_code = head.addr;
	f->pending = (uint32_t)m->lines.count;
	f->pending_count = 0;
	for (uint64_t i = 0; i < head.count && m->lines.count < CODE_LINES_MAX; i++) {
		if (!take_part(p, &l, JIT_LINE_SIZE) || !(name = take_text(p)))
			return false;
		if (strcmp(name, "\xff") != 0 && (!file || strcmp(name, &m->text.data[file]) != 0))
			file = add_text(m, name, MIN(strlen(name), CODE_NAME_MAX));
		if (!file || l.addr < head.addr || l.addr - head.addr > CODE_SIZE_MAX)
			continue;
		*vec_add(&m->lines) =
			(struct code_line){(uint32_t)(l.addr - head.addr), file, l.line};
		f->pending_count++;
	}
	return true;
}

/*
 * V8 adds the size of an ELF header to the addresses of lines, for a tool that writes an ELF file
 * of each function (src/diagnostics/perf-jit.cc: kElfHeaderSize). Then none in the file is smaller,
 * where others have lines for the first instruction of nearly every function.
 */
#define V8_SHIFT 0x40u

static void unshift_lines(struct perf_file *f, struct code_map *m, const struct code_entry *e)
{
	for (uint32_t i = 0; i < e->lines; i++)
		f->has_low_lines |= m->lines.data[e->line + i].offset < V8_SHIFT;
	for (uint32_t i = 0; i < e->lines && !f->has_low_lines; i++)
		m->lines.data[e->line + i].offset -= V8_SHIFT;
}

static bool jit_load(struct perf_file *f, struct code_map *m, struct jit_part *p)
{
	struct jit_load load;
	const char *name;
	struct code_entry e = {.from = p->time};

	if (!take_part(p, &load, sizeof(load)) || !(name = take_text(p)) ||
	    load.addr + load.size < load.addr)
		return false;
	e.start = load.addr;
	e.end = load.addr + load.size;
	if (f->pending_count && f->pending_code == load.addr) {
		e.line = f->pending;
		e.lines = f->pending_count;
		f->pending_count = 0;
		unshift_lines(f, m, &e);
	}
	if (f->is_again && !e.lines && is_known(m, &e, name, strlen(name)))
		return true;
	return code_map_add(m, &e, name, strlen(name));
}

static bool jit_move(struct code_map *m, struct jit_part *p)
{
	struct jit_move move;
	const struct code_entry *old;

	if (!take_part(p, &move, sizeof(move)) || move.to + move.size < move.to ||
	    !(old = code_map_find(m, move.from, p->time)) || old->start != move.from)
		return false;
	struct code_entry e = {.start = move.to, .end = move.to + move.size, .from = p->time,
			       .line = old->line, .lines = old->lines};
	/* a copy: adding it may move the text */
	_cleanup_free_ char *name = xstrdup(&m->text.data[old->name]);

	return code_map_add(m, &e, name, strlen(name));
}

static bool jit_record(struct perf_file *f, struct code_map *m, uint32_t id, struct jit_part *p)
{
	switch (id) {
	case JIT_LOAD:
		return jit_load(f, m, p);
	case JIT_MOVE:
		return jit_move(m, p);
	case JIT_DEBUG_INFO:
		return jit_debug(f, m, p);
	case JIT_CLOSE:
		f->is_broken = true; /* nothing follows */
	}
	return true; /* a kind that is not needed: tables for unwinding */
}

/* Bytes of the header; 0 if it is not whole. */
static uint64_t parse_header(struct perf_file *f, const struct perf_data *d)
{
	struct jit_header h;

	if (d->size < sizeof(h))
		return 0;
	memcpy(&h, d->data, sizeof(h));
	if (h.magic != JIT_MAGIC || h.version == 0 || h.size < sizeof(h) ||
	    h.size > JIT_HEADER_MAX) {
		f->is_broken = true;
		return 0;
	}
	if (h.size > d->available)
		return 0;
	f->has_ticks = h.flags & JIT_TICKS;
	f->has_header = true;
	return h.size;
}

static uint64_t parse_jitdump(struct perf_file *f, struct code_map *m, const struct perf_data *d)
{
	uint64_t at = f->has_header ? 0 : parse_header(f, d);

	while (f->has_header && !f->is_broken && at < d->size &&
	       d->size - at >= sizeof(struct jit_prefix)) {
		struct jit_prefix prefix;
		struct jit_part part;

		memcpy(&prefix, d->data + at, sizeof(prefix));
		if (prefix.size < sizeof(prefix)) {
			f->is_broken = true;
			break;
		}
		/* a part of it will do only if it can never be read at once */
		if (prefix.size > d->available - at || (prefix.size > d->size - at && at > 0))
			break;
		part.data = d->data + at + sizeof(prefix);
		part.size = MIN(prefix.size, d->size - at) - sizeof(prefix);
		part.time = f->has_ticks ? f->seen : MIN(prefix.time, d->now);
		f->bad += !jit_record(f, m, prefix.id, &part);
		at += prefix.size;
	}
	return at;
}

/* -- files -- */

void perf_file_init(struct perf_file *f, enum perf_file_kind kind, const char *path)
{
	*f = (struct perf_file){.kind = kind, .path = xstrdup(path), .fd = -1};
}

void perf_file_deinit(struct perf_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
	free(f->path);
	f->path = NULL;
}

uint64_t perf_file_parse(struct perf_file *f, struct code_map *m, const struct perf_data *d)
{
	return f->kind == PERF_MAP ? parse_map(f, m, d) : parse_jitdump(f, m, d);
}

/* Whether @fd is the file that was read before, and begins with the same bytes. */
static bool is_continued(const struct perf_file *f, int fd, const struct stat *st)
{
	uint8_t tail[PERF_FILE_TAIL];

	return f->ino == st->st_ino && f->dev == st->st_dev &&
	       f->offset <= (uint64_t)st->st_size &&
	       pread(fd, tail, f->tail_size, (off_t)(f->offset - f->tail_size)) ==
		       (ssize_t)f->tail_size &&
	       memcmp(tail, f->tail, f->tail_size) == 0;
}

static void start_again(struct perf_file *f, struct code_map *m, const struct stat *st)
{
	if (f->offset)
		sort(m);
	f->is_again = f->offset > 0;
	f->is_in_line = f->has_header = f->has_low_lines = f->is_broken = false;
	f->pending_count = 0;
	f->offset = f->tail_size = 0;
	f->dev = st->st_dev;
	f->ino = st->st_ino;
}

static void keep_tail(struct perf_file *f, int fd)
{
	size_t size = (size_t)MIN(f->offset, PERF_FILE_TAIL);
	ssize_t n = pread(fd, f->tail, size, (off_t)(f->offset - size));

	f->tail_size = n == (ssize_t)size ? size : 0;
}

int perf_file_refresh(struct perf_file *f, struct code_map *m, int fd, uint64_t now)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return -errno;
	if (!is_continued(f, fd, &st))
		start_again(f, m, &st);
	_cleanup_free_ uint8_t *buffer = xmalloc(BUFFER);
	uint64_t size = (uint64_t)st.st_size, end = MIN(size, f->offset + REFRESH_MAX);

	while (f->offset < end && !f->is_broken) {
		ssize_t n = pread(fd, buffer, BUFFER, (off_t)f->offset);

		if (n <= 0)
			break;
		uint64_t used = perf_file_parse(f, m, &(struct perf_data){
			buffer, (size_t)n, MAX(size - f->offset, (uint64_t)n), now});
		if (!used)
			break;
		f->offset += used;
	}
	keep_tail(f, fd);
	f->seen = now;
	f->size_seen = size;
	f->mtime = st.st_mtim;
	return 0;
}

/* -- a process -- */

/* When the process began, by the clock of files. Zero = unknown: no file is too old. */
static struct timespec start_time(pid_t pid)
{
	struct proc_stat st;
	struct timespec now, boot, start = {0};
	long ticks = sysconf(_SC_CLK_TCK);

	if (proc_stat_read(pid, &st) != 0 || ticks <= 0 ||
	    clock_gettime(CLOCK_REALTIME, &now) != 0 || clock_gettime(CLOCK_BOOTTIME, &boot) != 0)
		return start;
	/* two seconds too early: both are rounded, and a file's time is that of a coarse clock */
	start.tv_sec = now.tv_sec - boot.tv_sec + (time_t)(st.started / (uint64_t)ticks) - 2;
	return start;
}

static void see_owner(struct perf_maps *p)
{
	struct proc_status st;

	if (proc_status_read(p->pid, &st) != 0 || st.uid < 0)
		return;
	p->uid = st.uid;
	p->fs_uid = st.fs_uid;
}

void perf_maps_init(struct perf_maps *p, pid_t pid, struct root_dir *root)
{
	struct proc_status st;
	pid_t own = proc_status_read(pid, &st) == 0 && st.ns_pid ? st.ns_pid : pid;
	_cleanup_free_ char *path = xasprintf("/tmp/perf-%d.map", own);

	*p = (struct perf_maps){.pid = pid, .root = root_dir_hold(root), .uid = getuid(),
				.fs_uid = getuid(), .started = start_time(pid)};
	perf_file_init(vec_add(&p->files), PERF_MAP, path);
	see_owner(p);
}

void perf_maps_deinit(struct perf_maps *p)
{
	vec_release(&p->files, e, perf_file_deinit(e));
	code_map_deinit(&p->code);
	root_dir_release(p->root);
}

void perf_maps_add_mapped(struct perf_maps *p, const char *path)
{
	unsigned pid;
	int end = 0;

	if (sscanf(text_base_name(path), "jit-%9u.dump%n", &pid, &end) != 1 ||
	    text_base_name(path)[end] || p->files.count >= FILES_MAX || end == 0)
		return;
	for (size_t i = 0; i < p->files.count; i++)
		if (strcmp(p->files.data[i].path, path) == 0)
			return;
	perf_file_init(vec_add(&p->files), PERF_JITDUMP, path);
}

/* Why the file open as @fd is not read; NULL = it is. */
static const char *find_fault(const struct perf_maps *p, int fd)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return "it cannot be read";
	if (st.st_uid != 0 && st.st_uid != p->uid && st.st_uid != p->fs_uid)
		return "its owner is neither root nor the user of the process";
	if (st.st_mtim.tv_sec < p->started.tv_sec)
		return "it is older than the process";
	return NULL;
}

/* Opens the file unless what is open is still it. Whether there is one to be read. */
static bool open_file(struct perf_maps *p, struct perf_file *f)
{
	int fd = f->kind == PERF_MAP ? root_dir_open_itself(p->root, f->path) :
				       root_dir_open_mapped(p->root, f->path);
	const char *fault = fd >= 0 ? find_fault(p, fd) : NULL;

	if (fault && !f->is_refused)
		log_info("%s is not read: %s", f->path, fault);
	f->is_refused = fault;
	if (fd < 0)
		return f->fd >= 0; /* it was deleted: what was open is still right */
	if (f->fd >= 0)
		close(f->fd);
	if (fault)
		close(fd);
	f->fd = fault ? -1 : fd;
	return !fault;
}

size_t perf_maps_refresh(struct perf_maps *p, uint64_t now)
{
	uint32_t before = p->code.next_order;

	see_owner(p);
	for (size_t i = 0; i < p->files.count; i++) {
		struct perf_file *f = &p->files.data[i];

		if (open_file(p, f))
			perf_file_refresh(f, &p->code, f->fd, now);
	}
	return p->code.next_order - before;
}

static bool has_changed(const struct perf_file *f)
{
	struct stat st;

	return f->fd >= 0 && fstat(f->fd, &st) == 0 &&
	       ((uint64_t)st.st_size != f->size_seen || st.st_mtim.tv_sec != f->mtime.tv_sec ||
		st.st_mtim.tv_nsec != f->mtime.tv_nsec);
}

size_t perf_maps_poll(struct perf_maps *p, uint64_t now)
{
	uint32_t before = p->code.next_order;

	for (size_t i = 0; i < p->files.count; i++) {
		struct perf_file *f = &p->files.data[i];

		if (has_changed(f))
			perf_file_refresh(f, &p->code, f->fd, now);
		else if (f->fd >= 0)
			f->seen = now;
	}
	return p->code.next_order - before;
}

#define copy_vec(to, from) do { \
	vec_reserve(to, (from)->count); \
	if ((from)->count) \
		memcpy((to)->data, (from)->data, (from)->count * sizeof(*(from)->data)); \
	(to)->count = (from)->count; \
} while (0)

/* Adds all functions of @from to the empty @to, without the changes. */
static void copy_map(struct code_map *to, const struct code_map *from)
{
	copy_vec(&to->entries, &from->entries);
	copy_vec(&to->reach, &from->reach);
	copy_vec(&to->text, &from->text);
	copy_vec(&to->lines, &from->lines);
	to->sorted = from->sorted;
	to->next_order = from->next_order;
	to->rejected = from->rejected;
}

void perf_maps_fork(struct perf_maps *p, const struct perf_maps *parent, pid_t pid,
		    struct root_dir *root)
{
	perf_maps_init(p, pid, root);
	copy_map(&p->code, &parent->code);
}
