/*
 * Each ELF file is opened once and shared. A list of open files is searched by device and inode,
 * so that a hundred processes share one libc. A file owns its descriptor, the libelf handle and the
 * data that other stages attach. Symbol tables are read in place.
 */
#include "base/elf_file.h"

#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"

static void read_segments(struct elf_file *f)
{
	size_t count = 0;
	if (elf_getphdrnum(f->elf, &count) != 0)
		return;
	f->segment = xcalloc(count, sizeof(*f->segment));
	for (size_t i = 0; i < count; i++) {
		GElf_Phdr ph;
		if (!gelf_getphdr(f->elf, (int)i, &ph))
			break;
		if (ph.p_type == PT_INTERP)
			f->has_interp = true;
		if (ph.p_type != PT_LOAD)
			continue;
		f->segment[f->segment_count++] = (struct elf_segment){
			.vaddr = ph.p_vaddr, .offset = ph.p_offset, .filesz = ph.p_filesz,
			.memsz = ph.p_memsz, .is_exec = ph.p_flags & PF_X,
			.is_readable = ph.p_flags & PF_R,
		};
	}
}

static void read_dynamic(struct elf_file *f)
{
	uint64_t fini = 0;
	bool is_pie = false;
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(f->elf, scn));) {
		GElf_Shdr sh;
		if (!gelf_getshdr(scn, &sh) || sh.sh_type != SHT_DYNAMIC || sh.sh_entsize == 0)
			continue;
		Elf_Data *data = elf_getdata(scn, NULL);
		for (size_t i = 0; data && i < data->d_size / sh.sh_entsize; i++) {
			GElf_Dyn dyn;
			if (!gelf_getdyn(data, (int)i, &dyn))
				continue;
			if (dyn.d_tag == DT_FLAGS_1)
				is_pie = dyn.d_un.d_val & DF_1_PIE;
			else if (dyn.d_tag == DT_FINI)
				fini = dyn.d_un.d_ptr;
		}
	}
	f->is_static_pie = is_pie && !f->has_interp;
	f->fini = f->has_interp && (is_pie || f->type == ET_EXEC) ? fini : 0;
}

static void read_build_id(struct elf_file *f)
{
	size_t count = 0;
	if (elf_getphdrnum(f->elf, &count) != 0)
		return;
	for (size_t i = 0; i < count; i++) {
		GElf_Phdr ph;
		if (!gelf_getphdr(f->elf, (int)i, &ph) || ph.p_type != PT_NOTE)
			continue;
		Elf_Data *d =
			elf_getdata_rawchunk(f->elf, (int64_t)ph.p_offset, ph.p_filesz, ELF_T_NHDR);
		size_t pos = 0, name, desc;
		GElf_Nhdr note;
		while (d && pos < d->d_size &&
		       (pos = gelf_getnote(d, pos, &note, &name, &desc)) > 0) {
			if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != 4 ||
			    memcmp((char *)d->d_buf + name, "GNU", 4) != 0)
				continue;
			f->build_id = (uint8_t *)d->d_buf + desc;
			f->build_id_size = note.n_descsz;
			f->build_id_vaddr = ph.p_vaddr + desc;
			return;
		}
	}
}

/* Frees what other stages attached. */
static void free_users(struct elf_file *f)
{
	if (f->user_free)
		f->user_free(f->user);
	if (f->cfi_user_free)
		f->cfi_user_free(f->cfi_user);
	if (f->go_user_free)
		f->go_user_free(f->go_user);
	if (f->marker_user_free)
		f->marker_user_free(f->marker_user);
	f->user = f->cfi_user = f->go_user = f->marker_user = NULL;
	f->user_free = f->cfi_user_free = f->go_user_free = f->marker_user_free = NULL;
}

static void destroy(struct elf_file *f)
{
	free_users(f);
	if (f->elf)
		elf_end(f->elf);
	if (f->fd >= 0)
		close(f->fd);
	root_dir_release(f->root);
	free(f->image);
	free(f->segment);
	free(f->path);
	free(f);
}

/* Reads the headers of @f, whose elf handle is set. Releases @f on failure. */
static int finish_open(struct elf_file *f, struct elf_file **file_out)
{
	GElf_Ehdr eh;
	if (!f->elf || elf_kind(f->elf) != ELF_K_ELF || !gelf_getehdr(f->elf, &eh)) {
		destroy(f);
		return -EINVAL;
	}
	f->machine = eh.e_machine;
	f->type = eh.e_type;
	f->elf_class = (uint8_t)gelf_getclass(f->elf);
	f->entry = eh.e_entry;
	read_segments(f);
	read_dynamic(f);
	read_build_id(f);
	f->users = 1;
	*file_out = f;
	return 0;
}

static struct elf_file *new_file(const char *name)
{
	elf_version(EV_CURRENT);
	struct elf_file *f = xcalloc(1, sizeof(*f));
	f->path = xstrdup(name);
	f->fd = -1;
	return f;
}

static struct elf_file *find_open(const struct elf_files *files, const struct stat *st)
{
	for (size_t i = 0; files && i < files->open.count; i++) {
		const struct open_elf *e = &files->open.data[i];
		if (e->ino == st->st_ino && e->dev == st->st_dev && e->file->fd >= 0)
			return e->file;
	}
	return NULL;
}

static void add_open(struct elf_files *files, struct elf_file *f)
{
	f->files = files;
	*vec_add(&files->open) = (struct open_elf){f->dev, f->ino, f};
}

/* The file that was released last, if it is the one of @st: opened again as @name of @root. */
static struct elf_file *take_last(struct elf_files *files, const struct stat *st, const char *name,
				  struct root_dir *root)
{
	struct elf_file *f = files ? files->last : NULL;

	if (!f || f->ino != st->st_ino || f->dev != st->st_dev ||
	    memcmp(&f->changed, &st->st_ctim, sizeof(f->changed)) != 0)
		return NULL;
	files->last = NULL;
	free(f->path);
	root_dir_release(f->root);
	f->path = xstrdup(name);
	f->root = root_dir_hold(root);
	f->users = 1;
	add_open(files, f);
	return f;
}

int elf_file_open(struct elf_files *files, const char *path, const char *name,
		  struct elf_file **file_out)
{
	int fd = root_dir_open(NULL, path);
	return fd < 0 ? fd : elf_file_open_fd(files, fd, name ? name : path, NULL, file_out);
}

int elf_file_open_fd(struct elf_files *files, int fd, const char *name, struct root_dir *root,
		     struct elf_file **file_out)
{
	struct stat st;
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
		close(fd);
		return -EINVAL;
	}
	struct elf_file *f = find_open(files, &st);
	if (f) {
		close(fd);
		*file_out = elf_file_hold(f);
		return 0;
	}
	f = take_last(files, &st, name, root);
	if (f) {
		close(fd);
		*file_out = f;
		return 0;
	}
	f = new_file(name);
	f->root = root_dir_hold(root);
	f->fd = fd;
	f->changed = st.st_ctim;
	f->dev = st.st_dev;
	f->ino = st.st_ino;
	elf_version(EV_CURRENT);
	f->elf = elf_begin(fd, ELF_C_READ, NULL);
	int rc = finish_open(f, file_out);
	if (rc == 0 && files)
		add_open(files, f);
	return rc;
}

int elf_file_open_memory(uint8_t *image, size_t size, const char *name, struct elf_file **file_out)
{
	struct elf_file *f = new_file(name);
	f->image = image;
	f->image_size = size;
	elf_version(EV_CURRENT);
	f->elf = elf_memory((char *)image, size);
	return finish_open(f, file_out);
}

int elf_file_open_image(struct elf_files *files, uint8_t *image, size_t size, const char *name,
			struct elf_file **file_out)
{
	for (size_t i = 0; i < files->open.count; i++) {
		struct elf_file *f = files->open.data[i].file;

		if (f->image_size != size || memcmp(f->image, image, size) != 0)
			continue;
		free(image);
		*file_out = elf_file_hold(f);
		return 0;
	}
	int rc = elf_file_open_memory(image, size, name, file_out);

	if (rc == 0)
		add_open(files, *file_out);
	return rc;
}

struct elf_file *elf_file_hold(struct elf_file *file)
{
	file->users++;
	return file;
}

void elf_file_release(struct elf_file *file)
{
	if (!file || --file->users > 0)
		return;
	struct elf_files *files = file->files;
	struct elf_file *gone = file;
	for (size_t i = 0; files && i < files->open.count; i++) {
		if (files->open.data[i].file == file) {
			vec_take_swap(&files->open, i);
			break;
		}
	}
	if (files && files->keeps_last && file->fd >= 0) {
		free_users(file);
		gone = files->last;
		files->last = file;
	}
	if (gone)
		destroy(gone);
}

bool elf_file_is_same(const struct elf_file *a, const struct elf_file *b)
{
	return a == b || (a->fd >= 0 && b->fd >= 0 && a->dev == b->dev && a->ino == b->ino);
}

void elf_files_deinit(struct elf_files *files)
{
	vec_release(&files->open, e, e->file->files = NULL);
	if (files->last)
		destroy(files->last);
	files->last = NULL;
	files->keeps_last = false;
	root_dir_release(files->root);
	files->root = NULL;
}

/* A string table, up to the end of its last whole string. */
struct string_table {
	const char *text;
	size_t size;
};

static struct string_table read_names(Elf *elf, size_t section)
{
	Elf_Scn *scn = elf_getscn(elf, section);
	GElf_Shdr header;
	Elf_Data *data = scn && gelf_getshdr(scn, &header) && header.sh_type == SHT_STRTAB ?
				 elf_getdata(scn, NULL) :
				 NULL;
	struct string_table n = {0};

	if (data && data->d_buf)
		n = (struct string_table){data->d_buf, data->d_size};
	while (n.size > 0 && n.text[n.size - 1])
		n.size--;
	return n;
}

/* elf_strptr would look for the section again at each symbol. */
static int each_in_section(struct elf_file *f, Elf_Scn *scn, const GElf_Shdr *sh,
			   int (*fn)(void *ctx, const struct elf_symbol *sym), void *ctx)
{
	Elf_Data *data = elf_getdata(scn, NULL);
	if (!data || sh->sh_entsize == 0)
		return 0;
	const struct string_table names = read_names(f->elf, sh->sh_link);
	size_t count = data->d_size / sh->sh_entsize;
	for (size_t i = 1; i < count; i++) {
		GElf_Sym s;
		if (!gelf_getsym(data, (int)i, &s))
			break;
		if (s.st_name >= names.size || !names.text[s.st_name])
			continue;
		struct elf_symbol sym = {
			.name = names.text + s.st_name, .vaddr = s.st_value, .size = s.st_size,
			.type = GELF_ST_TYPE(s.st_info), .bind = GELF_ST_BIND(s.st_info),
			.is_defined = s.st_shndx != SHN_UNDEF,
		};
		int rc = fn(ctx, &sym);
		if (rc != 0)
			return rc;
	}
	return 0;
}

bool elf_symbol_is_local(const struct elf_symbol *sym)
{
	return sym->bind == STB_LOCAL;
}

bool elf_symbol_is_function(const struct elf_symbol *sym)
{
	return sym->type == STT_FUNC;
}

int elf_file_each_symbol(struct elf_file *file, int (*fn)(void *ctx, const struct elf_symbol *sym),
			 void *ctx)
{
	static const uint32_t kinds[] = {SHT_DYNSYM, SHT_SYMTAB};
	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
		for (Elf_Scn *scn = NULL; (scn = elf_nextscn(file->elf, scn));) {
			GElf_Shdr sh;
			if (!gelf_getshdr(scn, &sh) || sh.sh_type != kinds[k])
				continue;
			int rc = each_in_section(file, scn, &sh, fn, ctx);
			if (rc != 0)
				return rc;
		}
	}
	return 0;
}

/* The names of sections, if one of them is, or ends with, @name; else none. */
static struct string_table section_names(Elf *elf, const char *name)
{
	size_t section;
	struct string_table n = {0};

	if (elf_getshdrstrndx(elf, &section) == 0)
		n = read_names(elf, section);
	if (n.size > 0 && !memmem(n.text, n.size, name, strlen(name) + 1))
		n.size = 0;
	return n;
}

bool elf_file_may_have_section(Elf *elf, const char *name)
{
	return section_names(elf, name).size > 0;
}

Elf_Scn *elf_file_section(Elf *elf, const char *name, GElf_Shdr *header_out)
{
	/* most are looked for in vain: libelf would go through all sections for that */
	const struct string_table names = section_names(elf, name);
	GElf_Shdr header;
	Elf_Scn *scn = NULL;

	while (names.size > 0 && (scn = elf_nextscn(elf, scn))) {
		if (!gelf_getshdr(scn, &header) || header.sh_type == SHT_NOBITS ||
		    header.sh_name >= names.size || strcmp(names.text + header.sh_name, name) != 0)
			continue;
		if (header_out)
			*header_out = header;
		return scn;
	}
	return NULL;
}

const struct elf_segment *elf_file_segment(const struct elf_file *file, uint64_t vaddr)
{
	for (size_t i = 0; i < file->segment_count; i++) {
		const struct elf_segment *s = &file->segment[i];
		if (vaddr >= s->vaddr && vaddr - s->vaddr < s->memsz)
			return s;
	}
	return NULL;
}

bool elf_file_is_code(const struct elf_file *file, uint64_t vaddr)
{
	const struct elf_segment *seg = elf_file_segment(file, vaddr);

	return seg && seg->is_exec && vaddr - seg->vaddr < seg->filesz;
}

#define SHORT_READ 65536u /* bytes */

uint8_t *elf_file_read(const struct elf_file *file, uint64_t offset, uint64_t size)
{
	struct stat st;
	uint8_t *copy;

	if (file->image) {
		size_t whole = 0;
		const char *image = elf_rawfile(file->elf, &whole);
		return image && offset <= whole && size <= whole - offset ?
			       xmemdup(image + offset, size) :
			       NULL;
	}
	/* what is short is allocated at once */
	if (size > SHORT_READ && (fstat(file->fd, &st) != 0 || offset > (uint64_t)st.st_size ||
				  size > (uint64_t)st.st_size - offset))
		return NULL;
	copy = xmalloc(size);
	if (pread(file->fd, copy, size, (off_t)offset) == (ssize_t)size)
		return copy;
	free(copy);
	return NULL;
}

/*
 * Merges the starts and ends of functions from three sources into one sorted list. The table of
 * .eh_frame_hdr is read only in the form that linkers write: sorted pairs of 32-bit distances from
 * the section's start.
 */

#define HEADER_SIZE 12       /* version, three encodings, pointer to .eh_frame, count */
#define COUNT_UDATA4 0x03    /* DW_EH_PE_udata4 */
#define TABLE_DATAREL 0x3b   /* DW_EH_PE_datarel | DW_EH_PE_sdata4 */
#define FRAME_PCREL 0x1b     /* DW_EH_PE_pcrel | DW_EH_PE_sdata4 */
#define FDE_START 8          /* after its length and the pointer to its CIE */

/* @f->end: 0 = unknown; equal to the start: a gap begins there. */
static void add_kind(struct elf_file *file, struct elf_functions *out, struct elf_function f)
{
	uint64_t start = f.start, end = f.end;
	const struct elf_segment *seg = elf_file_segment(file, start);

	if (!seg || !seg->is_exec || start - seg->vaddr >= seg->filesz)
		return;
	if (end > seg->vaddr + seg->filesz || end < start)
		f.end = 0;
	*vec_add(&out->list) = f;
}

static void add(struct elf_file *file, struct elf_functions *out, uint64_t start, uint64_t end)
{
	add_kind(file, out, (struct elf_function){start, end, ELF_FUNCTION});
}

/* The bytes of a segment; owned. */
struct bytes {
	const struct elf_segment *seg;
	uint8_t *data;
};

static const uint8_t *bytes_at(const struct bytes *b, uint64_t vaddr, uint64_t size)
{
	uint64_t at = vaddr - b->seg->vaddr;

	return at <= b->seg->filesz && size <= b->seg->filesz - at ? b->data + at : NULL;
}

/* The size of the function at @start, from the FDE at @fde; 0 if it cannot be read. */
static uint32_t fde_length(const struct bytes *b, uint64_t fde, uint64_t start)
{
	uint64_t at = fde + FDE_START;
	uint32_t word[2];
	const uint8_t *p = bytes_at(b, at, sizeof(word));

	if (!p)
		return 0;
	memcpy(word, p, sizeof(word));
	return at + (uint64_t)(int64_t)(int32_t)word[0] == start ? word[1] : 0;
}

static void read_table(struct elf_file *file, struct elf_functions *out, const struct bytes *b,
		       uint64_t vaddr)
{
	const uint8_t *p = bytes_at(b, vaddr, HEADER_SIZE);
	uint32_t count;

	if (!p || p[0] != 1 || p[1] != FRAME_PCREL || p[2] != COUNT_UDATA4 || p[3] != TABLE_DATAREL)
		return;
	memcpy(&count, p + HEADER_SIZE - sizeof(count), sizeof(count));
	for (uint64_t i = 0; i < count; i++) {
		int32_t entry[2];
		p = bytes_at(b, vaddr + HEADER_SIZE + i * sizeof(entry), sizeof(entry));
		if (!p)
			return;
		memcpy(entry, p, sizeof(entry));
		uint64_t start = vaddr + (uint64_t)(int64_t)entry[0];
		uint32_t length = fde_length(b, vaddr + (uint64_t)(int64_t)entry[1], start);
		add(file, out, start, length ? start + length : 0);
	}
}

/*
 * Whether @cie, of @size bytes, says that its FDEs have FRAME_PCREL addresses: augmentation "zR" or
 * "zRS" (LSB Core, 10.6.1.1), factors and register of one byte each.
 */
static bool is_pcrel_cie(const uint8_t *cie, uint64_t size)
{
	static const char augmentation[] = "zR";
	const uint64_t text = FDE_START + 1, factors = 3;

	if (size < text + sizeof(augmentation) + 1 + factors + 2 ||
	    memcmp(cie + text, augmentation, sizeof(augmentation) - 1) != 0)
		return false;
	uint64_t end = text + sizeof(augmentation) - 1;

	end += cie[end] == 'S';
	return cie[end] == '\0' && cie[end + 1 + factors + 1] == FRAME_PCREL;
}

/* The FDEs of a program without a table, as static ones that are not relocated. */
static void read_frames(struct elf_file *file, struct elf_functions *out, const struct bytes *b,
			const GElf_Shdr *section)
{
	uint64_t at = section->sh_addr, end = at + section->sh_size;
	uint32_t head[2];

	while (at + sizeof(head) <= end) {
		const uint8_t *p = bytes_at(b, at, sizeof(head));
		if (!p)
			return;
		memcpy(head, p, sizeof(head));
		uint64_t size = head[0] + sizeof(head[0]), cie = at + sizeof(head[0]) - head[1];
		if (!head[0] || head[0] == UINT32_MAX || !bytes_at(b, at, size))
			return;
		uint32_t of_cie, of_fde[2];
		const uint8_t *c = head[1] ? bytes_at(b, cie, sizeof(of_cie)) : NULL;
		if (c && size >= FDE_START + sizeof(of_fde)) {
			memcpy(&of_cie, c, sizeof(of_cie));
			memcpy(of_fde, p + FDE_START, sizeof(of_fde));
			uint64_t start = at + FDE_START + (uint64_t)(int64_t)(int32_t)of_fde[0];
			if (bytes_at(b, cie, of_cie) && is_pcrel_cie(c, of_cie))
				add(file, out, start, start + of_fde[1]);
		}
		at += size;
	}
}

static void add_without_table(struct elf_file *file, struct elf_functions *out)
{
	GElf_Shdr header;
	Elf_Scn *section = elf_file_section(file->elf, ".eh_frame", &header);
	struct bytes b = {.seg = section ? elf_file_segment(file, header.sh_addr) : NULL};

	b.data = b.seg ? elf_file_read(file, b.seg->offset, b.seg->filesz) : NULL;
	if (b.data)
		read_frames(file, out, &b, &header);
	free(b.data);
}

/* Linkers place header and frames in the same segment. */
static void add_frames(struct elf_file *file, struct elf_functions *out)
{
	size_t segments = 0;
	GElf_Phdr ph;
	bool has_table = false;

	if (elf_getphdrnum(file->elf, &segments) != 0)
		return;
	for (size_t i = 0; i < segments; i++) {
		if (!gelf_getphdr(file->elf, (int)i, &ph) || ph.p_type != PT_GNU_EH_FRAME)
			continue;
		has_table = true;
		struct bytes b = {.seg = elf_file_segment(file, ph.p_vaddr)};
		b.data = b.seg ? elf_file_read(file, b.seg->offset, b.seg->filesz) : NULL;
		if (b.data)
			read_table(file, out, &b, ph.p_vaddr);
		free(b.data);
	}
	if (!has_table)
		add_without_table(file, out);
}

struct function_search {
	struct elf_file *file;
	struct elf_functions *out;
};

static int add_symbol(void *ctx, const struct elf_symbol *sym)
{
	struct function_search *search = ctx;

	if (sym->is_defined && (sym->type == STT_FUNC || sym->type == STT_GNU_IFUNC))
		add(search->file, search->out, sym->vaddr, sym->size ? sym->vaddr + sym->size : 0);
	return 0;
}

/*
 * Adds gaps: parts of a code section that no symbol describes (.plt, .init). Without a section
 * table all of it may be code.
 */
static void add_sections(struct elf_file *file, struct elf_functions *out)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	bool has_any = false;

	while ((section = elf_nextscn(file->elf, section))) {
		if (!gelf_getshdr(section, &header) || !(header.sh_flags & SHF_ALLOC))
			continue;
		bool is_code = header.sh_flags & SHF_EXECINSTR;
		has_any |= is_code;
		add_kind(file, out,
			 (struct elf_function){header.sh_addr, is_code ? header.sh_addr : 0,
					       is_code ? ELF_GAP : ELF_NO_CODE});
	}
	for (size_t i = 0; i < file->segment_count && has_any; i++)
		add_kind(file, out, (struct elf_function){file->segment[i].vaddr, 0, ELF_NO_CODE});
}

static int compare(const void *a, const void *b)
{
	const struct elf_function *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind > y->kind ? -1 : 1;
	return (x->end > y->end) - (x->end < y->end);
}

/*
 * If several functions have the same start, the longest is kept. Each ends where the next begins,
 * at the latest.
 */
static void lay_out(struct elf_file *file, struct elf_functions *out)
{
	struct elf_functions all = *out;

	*out = (struct elf_functions){0};
	for (size_t i = 0; i < all.list.count; i++) {
		struct elf_function f = all.list.data[i];
		const struct elf_segment *seg = elf_file_segment(file, f.start);
		uint64_t next = seg->vaddr + seg->filesz;

		if (i + 1 < all.list.count && all.list.data[i + 1].start < next)
			next = all.list.data[i + 1].start;
		if (next == f.start)
			continue;
		if (f.end == 0 || f.end > next)
			f.end = next;
		if (f.end > f.start)
			*vec_add(&out->list) = f;
		if (f.end < next)
			*vec_add(&out->list) = (struct elf_function){f.end, next, ELF_GAP};
	}
	vec_deinit(&all.list);
}

void elf_functions_find(struct elf_file *file, struct elf_functions *out)
{
	struct function_search search = {file, out};

	*out = (struct elf_functions){0};
	add_frames(file, out);
	add_sections(file, out);
	elf_file_each_symbol(file, add_symbol, &search);
	vec_sort(&out->list, compare);
	lay_out(file, out);
}

#define INTERPRETER_MAX 4096

char *elf_read_interpreter(const char *path)
{
	struct elf_file *f;
	GElf_Phdr part;
	size_t count = 0;
	char *name = NULL;

	if (elf_file_open(NULL, path, NULL, &f) != 0)
		return NULL;
	elf_getphdrnum(f->elf, &count);
	for (size_t i = 0; i < count && !name; i++) {
		if (!gelf_getphdr(f->elf, (int)i, &part) || part.p_type != PT_INTERP)
			continue;
		size_t size = MIN(part.p_filesz, INTERPRETER_MAX);
		const Elf_Data *data =
			elf_getdata_rawchunk(f->elf, (int64_t)part.p_offset, size, ELF_T_BYTE);

		if (data && data->d_buf)
			name = xstrndup(data->d_buf, data->d_size);
	}
	elf_file_release(f);
	return name;
}
