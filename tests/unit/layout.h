/*
 * Programs that know their own layout, for tests of what ptmem knows of it by DWARF: compiled here
 * in every way, run, and asked. A program prints facts, a word and its arguments in each line, then
 * "ready", and waits until its input ends.
 *
 *	v ADDRESS SIZE NAME     a variable
 *	t ADDRESS SIZE NAME     a variable of the main thread
 *	u ADDRESS SIZE NAME     a variable of another thread
 *	p POINTER               the other thread's pointer
 *	m OFFSET TYPE PATH      what is at @OFFSET of @TYPE
 *	s SIZE TYPE             the size of a type
 */
#ifndef LAYOUT_H
#define LAYOUT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/elf_file.h"
#include "graph/variables.h"

static char layout_dir[] = "/tmp/ptmem-layout-XXXXXX";

/* A program that was started. */
struct layout {
	pid_t pid;
	FILE *in, *out;         /* its input and output */
	char *facts[4096];
	size_t count;
	struct resident pages;
	struct inspect_memory memory;
	struct elf_files files;
	struct type_table *types;
	struct variables *variables;
};

static inline void layout_write(const char *name, const char *text)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", layout_dir, name);
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

/* Runs shell commands in the tests' directory; false if one fails. */
static inline bool layout_run(const char *commands)
{
	char *line = xasprintf("cd %s && unset CFLAGS LD_PRELOAD && { %s; }", layout_dir, commands);
	bool ok = system(line) == 0;

	free(line);
	return ok;
}

static inline ssize_t layout_read(void *ctx, taddr_t addr, void *buf, size_t size)
{
	struct iovec local = {buf, size}, remote = {(void *)(uintptr_t)addr, size};

	return process_vm_readv(*(pid_t *)ctx, &local, 1, &remote, 1, 0);
}

static inline void layout_start(struct layout *l, const char *program)
{
	int to[2], from[2];
	char path[PATH_MAX], *line = NULL;
	size_t room = 0;
	ssize_t length;

	*l = (struct layout){0};
	snprintf(path, sizeof(path), "%s/%s", layout_dir, program);
	assert_int_equal(pipe(to), 0);
	assert_int_equal(pipe(from), 0);
	l->pid = fork();
	if (l->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* also if a check has failed */
		dup2(to[0], STDIN_FILENO);
		dup2(from[1], STDOUT_FILENO);
		close(to[1]);
		close(from[0]);
		execl(path, program, NULL);
		_exit(127);
	}
	close(to[0]);
	close(from[1]);
	l->in = fdopen(to[1], "w");
	l->out = fdopen(from[0], "r");
	while ((length = getline(&line, &room, l->out)) > 0 && strcmp(line, "ready\n") != 0) {
		line[length - 1] = '\0';
		assert_true(l->count < 4096);
		l->facts[l->count++] = xstrdup(line);
	}
	if (length <= 0)
		fail_msg("%s ended early", program);
	free(line);
}

/* Adds each file that is mapped, where its first segment is. */
static inline void layout_add_objects(struct layout *l)
{
	const char *last = "";

	for (size_t i = 0; i < l->pages.maps.list.count; i++) {
		const struct map *m = &l->pages.maps.list.data[i];
		struct elf_file *file;

		if (*m->path != '/' || strcmp(m->path, last) == 0)
			continue;
		last = m->path;
		if (elf_file_open(&l->files, m->path, NULL, &file) != 0)
			continue;
		taddr_t bias = m->start - m->offset;

		if (file->segment_count)
			bias = m->start - ROUND_DOWN(file->segment[0].vaddr, UINT64_C(4) << 10);
		variables_add_object(l->variables, file, bias);
		elf_file_release(file);
	}
}

static inline void layout_open(struct layout *l)
{
	assert_int_equal(resident_read(l->pid, &l->pages), 0);
	const struct memory_source source = {.read = layout_read, .ctx = &l->pid,
					     .read_file = layout_read, .file_ctx = &l->pid};

	memory_init(&l->memory, &l->pages, &source);
	l->types = type_table_new(layout_dir);
	l->variables = variables_new(l->types);
	layout_add_objects(l);
}

static inline void layout_close(struct layout *l)
{
	variables_free(l->variables);
	type_table_free(l->types);
	elf_files_deinit(&l->files);
	memory_deinit(&l->memory);
	resident_deinit(&l->pages);
	fclose(l->in);
	fclose(l->out);
	kill(l->pid, SIGKILL);
	waitpid(l->pid, NULL, 0);
	for (size_t i = 0; i < l->count; i++)
		free(l->facts[i]);
}

#endif
