/*
 * The soname is read from the dynamic section by libelf; an object without one is called NONE, as
 * in Valgrind. Only the synonym somalloc is supported; others are ignored.
 */
#include "tracee/os/soname.h"

#include <gelf.h>
#include <string.h>

#include "base/wildcard.h"

static const char *soname_in(struct elf_file *file, Elf_Scn *section, const GElf_Shdr *header)
{
	Elf_Data *data = elf_getdata(section, NULL);
	size_t count = data && header->sh_entsize ? data->d_size / header->sh_entsize : 0;
	GElf_Dyn entry;
	for (size_t i = 0; i < count && gelf_getdyn(data, (int)i, &entry); i++) {
		if (entry.d_tag == DT_SONAME)
			return elf_strptr(file->elf, header->sh_link, entry.d_un.d_val);
	}
	return NULL;
}

static const char *soname_of(struct elf_file *file)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	const char *name = NULL;
	while (!name && (section = elf_nextscn(file->elf, section))) {
		if (gelf_getshdr(section, &header) && header.sh_type == SHT_DYNAMIC)
			name = soname_in(file, section, &header);
	}
	return name ? name : "NONE";
}

bool soname_is_standard_cxx(struct elf_file *file)
{
	return wildcard_list_matches("libstdc++.so*,libc++.so*,libc++abi.so*", soname_of(file));
}

bool soname_is_watched(struct elf_file *file, const char *synonyms)
{
	static const char key[] = "somalloc=",
			  always[] = "libc.so*,libc.musl*,libstdc++.so*,libc++.so*";
	const char *soname = NULL;
	for (const char *s = synonyms; s && *s; s += *s == ',') {
		size_t length = strcspn(s, ",");
		if (strncmp(s, key, sizeof(key) - 1) == 0) {
			soname = soname ? soname : soname_of(file);
			const char *pattern = s + sizeof(key) - 1;
			if (wildcard_matches(pattern, length - (sizeof(key) - 1), soname))
				return true;
		}
		s += length;
	}
	return !soname || wildcard_list_matches(always, soname);
}
