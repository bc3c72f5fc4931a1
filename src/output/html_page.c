/*
 * See html_page.h. The page may load nothing and send nothing: its Content-Security-Policy says so
 * to the browser.
 */
#include "output/html_page.h"

#include <stdlib.h>
#include <zlib.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/types.h"

#define GZIP_WINDOW (15 + 16) /* of deflateInit2: the largest window, and gzip's header */
#define BASE64_LINE 120       /* characters, a multiple of 4 */

/* The parts of the page; their paths are relative to the directory where make runs. */
__asm__(".pushsection .rodata\n"
	"html_style_start: .incbin \"src/output/html/style.css\"\n"
	"html_style_end:\n"
	"html_body_start: .incbin \"src/output/html/page.html\"\n"
	"html_body_end:\n"
	"html_script_start: .incbin \"src/output/shorten.js\"\n"
	".incbin \"src/output/html/dom.js\"\n"
	".incbin \"src/output/html/format.js\"\n"
	".incbin \"src/output/html/profile.js\"\n"
	".incbin \"src/output/html/trie.js\"\n"
	".incbin \"src/output/html/state.js\"\n"
	".incbin \"src/output/html/selection.js\"\n"
	".incbin \"src/output/html/timeline.js\"\n"
	".incbin \"src/output/html/flame_view.js\"\n"
	".incbin \"src/output/html/tables.js\"\n"
	".incbin \"src/output/html/table_view.js\"\n"
	".incbin \"src/output/html/header.js\"\n"
	".incbin \"src/output/html/reports.js\"\n"
	".incbin \"src/output/html/controls.js\"\n"
	".incbin \"src/output/html/app.js\"\n"
	"html_script_end:\n"
	".popsection\n");
extern const char html_style_start[], html_style_end[], html_body_start[], html_body_end[];
extern const char html_script_start[], html_script_end[];

static void put_between(FILE *out, const char *start, const char *end)
{
	fwrite(start, 1, (size_t)(end - start), out);
}

/* Three bytes as four characters; of the last group @n may be less than 3. */
static void put_group(FILE *out, const uint8_t *at, size_t n)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	uint32_t bits = (uint32_t)at[0] << 16 | (n > 1 ? (uint32_t)at[1] << 8 : 0) |
			(n > 2 ? at[2] : 0);

	putc(digits[bits >> 18], out);
	putc(digits[bits >> 12 & 63], out);
	putc(n > 1 ? digits[bits >> 6 & 63] : '=', out);
	putc(n > 2 ? digits[bits & 63] : '=', out);
}

static void put_base64(FILE *out, const uint8_t *data, size_t size)
{
	for (size_t i = 0; i < size; i += 3) {
		if (i && i % (BASE64_LINE / 4 * 3) == 0)
			putc('\n', out);
		put_group(out, data + i, MIN(size - i, 3));
	}
}

/* @json in gzip's format; the caller frees *@out. deflate counts in unsigned int: by pieces. */
static size_t compress_json(const char *json, size_t size, uint8_t **out)
{
	z_stream z = {0};

	CHECK(deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, 8,
			   Z_DEFAULT_STRATEGY) == Z_OK);
	size_t room = deflateBound(&z, size), done = 0, used = 0;

	*out = xmalloc(room);
	do {
		size_t part = MIN(size - used, (size_t)1 << 30);
		size_t space = MIN(room - done, (size_t)1 << 30);
		bool is_last = used + part == size;

		z.next_in = (Bytef *)(uintptr_t)json + used;
		z.avail_in = (uInt)part;
		z.next_out = *out + done;
		z.avail_out = (uInt)space;
		CHECK(deflate(&z, is_last ? Z_FINISH : Z_NO_FLUSH) != Z_STREAM_ERROR);
		used += part - z.avail_in;
		done += space - z.avail_out;
		if (is_last && z.avail_out)
			break;
	} while (done < room);
	deflateEnd(&z);
	return done;
}

static void put_profile(FILE *out, const char *json, size_t size)
{
	uint8_t *compressed;
	size_t count = compress_json(json, size, &compressed);

	fputs("<script type=\"text/plain\" id=\"profile\">\n", out);
	put_base64(out, compressed, count);
	fputs("\n</script>\n", out);
	free(compressed);
}

void html_page_write(FILE *out, const char *json, size_t size)
{
	fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
	      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
	      "style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; "
	      "form-action 'none'\">\n"
	      "<title>ptmem</title>\n<style>\n",
	      out);
	put_between(out, html_style_start, html_style_end);
	fputs("</style>\n</head>\n<body>\n", out);
	put_between(out, html_body_start, html_body_end);
	put_profile(out, json, size);
	fputs("<script>\n", out);
	put_between(out, html_script_start, html_script_end);
	fputs("</script>\n</body>\n</html>\n", out);
}
