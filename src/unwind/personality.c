/*
 * Looks up a function's CIE by the search table of .eh_frame_hdr (LSB Core, 10.6), as the program's
 * own unwinder does. All offsets are untrusted.
 */
#include "unwind/personality.h"

#include <string.h>

#include "base/elf_file.h"

#define HDR_TABLE 12 /* offset of the first row, in the form that linkers generate */
#define ROW_SIZE 8   /* code, entry: both relative to the section */

struct bytes {
	const uint8_t *data;
	uint64_t size, vaddr;
};

static bool find_bytes(Elf *elf, const char *name, struct bytes *out)
{
	GElf_Shdr header;
	Elf_Scn *section = elf_file_section(elf, name, &header);
	Elf_Data *data = section ? elf_getdata(section, NULL) : NULL;

	if (!data || !data->d_buf)
		return false;
	*out = (struct bytes){data->d_buf, data->d_size, header.sh_addr};
	return true;
}

static bool read_word(const struct bytes *b, uint64_t at, uint32_t *out)
{
	if (b->size < sizeof(*out) || at > b->size - sizeof(*out))
		return false;
	memcpy(out, b->data + at, sizeof(*out));
	return true;
}

/* The address stored in word @at of @hdr, which is relative to the section. */
static uint64_t read_address(const struct bytes *hdr, uint64_t at)
{
	uint32_t word = 0;

	read_word(hdr, at, &word);
	return hdr->vaddr + (uint64_t)(int64_t)(int32_t)word;
}

/* The address of the last entry that begins at or before @vaddr; 0 = none. */
static uint64_t find_entry(const struct bytes *hdr, uint64_t vaddr)
{
	static const uint8_t form[4] = {1, 0x1b, 0x03, 0x3b};
	uint32_t rows = 0, low = 0;

	if (hdr->size < HDR_TABLE || memcmp(hdr->data, form, sizeof(form)) != 0 ||
	    !read_word(hdr, 8, &rows) || rows > (hdr->size - HDR_TABLE) / ROW_SIZE)
		return 0;
	for (uint32_t high = rows; low < high;) {
		uint32_t middle = low + (high - low) / 2;
		if (read_address(hdr, HDR_TABLE + (uint64_t)middle * ROW_SIZE) <= vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 ? read_address(hdr, HDR_TABLE + (uint64_t)(low - 1) * ROW_SIZE + 4) : 0;
}

bool personality_is_absent(Elf *elf, uint64_t vaddr)
{
	struct bytes hdr, frame;
	uint32_t back = 0, id = 1;

	if (!find_bytes(elf, ".eh_frame_hdr", &hdr) || !find_bytes(elf, ".eh_frame", &frame))
		return false;
	uint64_t entry = find_entry(&hdr, vaddr), at = entry - frame.vaddr + 4;
	if (!entry || !read_word(&frame, at, &back) || back > at)
		return false;
	/* CIE: length, 0, version, augmentation */
	uint64_t cie = at - back, text = cie + 9;
	if (!read_word(&frame, cie + 4, &id) || id != 0 || text >= frame.size)
		return false;
	const char *letters = (const char *)frame.data + text;
	size_t length = strnlen(letters, frame.size - text);
	return length < frame.size - text && !memchr(letters, 'P', length);
}
