/*
 * Characters of texts that others have written: which bytes are one, and which of them are not
 * seen, or act on what is shown beside them. Needs no memory: the log uses it.
 */
#include "base/utf8.h"

size_t utf8_character(const char *text, size_t size)
{
	const unsigned char *s = (const unsigned char *)text;
	unsigned char c = *s;
	size_t n = c < 0x80 ? 1 : c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;

	if (n > size)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if ((c == 0xe0 && s[1] < 0xa0) || (c == 0xed && s[1] > 0x9f) ||
	    (c == 0xf0 && s[1] < 0x90) || (c == 0xf4 && s[1] > 0x8f))
		return 0;
	/* U+FFFE and U+FFFF are noncharacters: XML forbids them. */
	if (c == 0xef && s[1] == 0xbf && s[2] >= 0xbe)
		return 0;
	return n;
}

/* Decodes the valid character of @n bytes at @s. */
static uint32_t decode(const unsigned char *s, size_t n)
{
	uint32_t c = n == 1 ? *s : *s & (0x7fu >> n);

	for (size_t i = 1; i < n; i++)
		c = c << 6 | (s[i] & 0x3f);
	return c;
}

/*
 * Characters that can make a name look like another one: C1 controls, direction marks (Unicode
 * Standard Annex 9, section 2), characters without width, line ends, and tags.
 */
static bool is_unseen(uint32_t c)
{
	static const uint32_t ranges[][2] = {
		{0x80, 0x9f},	  {0xad, 0xad},	    {0x61c, 0x61c},   {0x180e, 0x180e},
		{0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f}, {0xfeff, 0xfeff},
		{0xfff9, 0xfffb}, {0xe0000, 0xe007f},
	};

	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++)
		if (c >= ranges[i][0] && c <= ranges[i][1])
			return true;
	return false;
}

uint32_t utf8_unseen(const char *s, size_t n)
{
	uint32_t c = decode((const unsigned char *)s, n);

	return is_unseen(c) ? c : 0;
}
