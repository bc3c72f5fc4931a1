/*
 * Candidates are tried in the order of gdb and Valgrind. Each is opened and verified, since debug
 * packages may not match the installed binaries.
 */
#include "symbols/debuglink.h"

#include <elfutils/libdwelf.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/log.h"

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

struct elf_file *debuglink_find_alt(const struct elf_file *file, Dwarf *dwarf, const char *dirs)
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
