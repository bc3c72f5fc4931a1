/* See source_file.h. */
#include "recording/source_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

static void split_lines(struct source_text *s)
{
	char *at = s->data, *end = s->data + s->size;

	while (at < end) {
		char *stop = memchr(at, '\n', (size_t)(end - at));

		*vec_add(&s->line) = at;
		if (!stop)
			break;
		*stop = '\0';
		at = stop + 1;
	}
}

/* @fd is a regular file of @size bytes, or what it is of these by now. 0 or errno. */
static int read_data(struct source_text *s, int fd, size_t size)
{
	s->data = xmalloc(size + 1);
	for (ssize_t n = 1; n > 0 && s->size < size; s->size += (size_t)n) {
		n = read(fd, s->data + s->size, size - s->size);
		if (n < 0)
			return errno;
	}
	s->data[s->size] = '\0';
	return 0;
}

static bool read_source(struct source_text *s, const char *path, size_t most)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0) {
		s->error = errno;
		return false;
	}
	s->error = fstat(fd, &st) || !S_ISREG(st.st_mode) ? EINVAL :
		   (uint64_t)st.st_size > most		  ? EFBIG :
							    read_data(s, fd, (size_t)st.st_size);
	close(fd);
	if (s->error) {
		free(s->data);
		s->data = NULL;
		s->size = 0;
		return false;
	}
	s->path = xstrdup(path);
	s->changed = st.st_mtime;
	split_lines(s);
	return true;
}

void source_file_find(struct source_text *s, const char *path, const struct option_strings *dirs,
		      size_t most)
{
	*s = (struct source_text){0};
	if (read_source(s, path, most))
		return;
	int first_error = s->error;

	for (size_t i = 0; i < dirs->count; i++) {
		for (const char *end = path; end; end = strchr(end, '/')) {
			end += strspn(end, "/");
			_cleanup_free_ char *there = xasprintf("%s/%s", dirs->data[i], end);

			if (*end && read_source(s, there, most))
				return;
		}
	}
	s->error = first_error;
}

const char *source_file_problem(const struct source_text *s)
{
	return s->error == EINVAL ? "not a source file" : strerror(s->error);
}

void source_file_deinit(struct source_text *s)
{
	free(s->path);
	free(s->data);
	vec_deinit(&s->line);
}
