/* Counts of /proc/PID/smaps. */
#include "tracee/os/accessed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/proc.h"
#include "tracee/os/maps.h"

int accessed_clear(pid_t pid)
{
	char name[64];
	int fd, rc;

	snprintf(name, sizeof(name), "/proc/%d/clear_refs", (int)pid);
	fd = open(name, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	rc = write(fd, "1", 1) == 1 ? 0 : -errno;
	close(fd);
	return rc;
}

/* Huge pages of hugetlbfs, devices and other kinds of which the kernel has no plain page tables. */
static void take_flags(const char *line, struct access_count *c)
{
	static const char *const others[] = {" ht", " io", " pf", " mm", " de"};

	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		c->is_anonymous &= !strstr(line, others[i]);
	c->advice = strstr(line, " rr") ? ADVICE_RANDOM :
		    strstr(line, " sr") ? ADVICE_SEQUENTIAL : ADVICE_NORMAL;
}

static void take_line(const char *line, struct access_count *c)
{
	if (maps_take_bytes(line, "Rss:", &c->resident) ||
	    maps_take_bytes(line, "Referenced:", &c->accessed) ||
	    maps_take_bytes(line, "AnonHugePages:", &c->huge))
		return;
	if (strncmp(line, "VmFlags:", strlen("VmFlags:")) == 0)
		take_flags(line, c);
}

int accessed_read(pid_t pid, struct access_counts *out)
{
	_cleanup_fclose_ FILE *file = proc_open(pid, "smaps");
	_cleanup_free_ char *line = NULL;
	size_t size = 0;
	ssize_t n;

	*out = (struct access_counts){0};
	if (!file)
		return -errno;
	while ((n = getline(&line, &size, file)) > 0) {
		struct map m;

		if (line[n - 1] == '\n')
			line[n - 1] = '\0';
		if (*line >= 'A' && *line <= 'Z') {
			if (out->list.count > 0)
				take_line(line, &out->list.data[out->list.count - 1]);
		} else if (maps_parse_line(line, &m) == 0) {
			*vec_add(&out->list) = (struct access_count){
				.start = m.start, .end = m.end,
				.is_anonymous = m.is_write &&
						(map_is_anonymous(&m) ||
						 strcmp(m.path, "[heap]") == 0)};
			free(m.path);
		}
	}
	return out->list.count > 0 ? 0 : -ESRCH;
}

void touched_pages_deinit(struct touched_pages *p)
{
	vec_deinit(&p->list);
}
