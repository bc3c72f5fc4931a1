/*
 * See html_page.h. The page must not load or send anything, except that a live one requests updates
 * from its server: its Content-Security-Policy enforces that.
 */
#include "output/html_page.h"

#include <stdlib.h>

#include "base/gzip.h"
#include "base/types.h"

#define BASE64_LINE 120       /* characters, a multiple of 4 */
#define OTHER_SIZE 1024u      /* bytes, at most: what is between the parts */

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
	".incbin \"src/output/html/processes.js\"\n"
	".incbin \"src/output/html/my_code.js\"\n"
	".incbin \"src/output/html/trie.js\"\n"
	".incbin \"src/output/html/state.js\"\n"
	".incbin \"src/output/html/selection.js\"\n"
	".incbin \"src/output/html/timeline.js\"\n"
	".incbin \"src/output/html/flame_view.js\"\n"
	".incbin \"src/output/html/tables.js\"\n"
	".incbin \"src/output/html/table_view.js\"\n"
	".incbin \"src/output/html/memory_view.js\"\n"
	".incbin \"src/output/html/source_view.js\"\n"
	".incbin \"src/output/html/process_table.js\"\n"
	".incbin \"src/output/html/graph.js\"\n"
	".incbin \"src/output/html/graph_tables.js\"\n"
	".incbin \"src/output/html/graph_view.js\"\n"
	".incbin \"src/output/html/graph_page.js\"\n"
	".incbin \"src/output/html/graph_request.js\"\n"
	".incbin \"src/output/html/header.js\"\n"
	".incbin \"src/output/html/reports.js\"\n"
	".incbin \"src/output/html/controls.js\"\n"
	".incbin \"src/output/html/live.js\"\n"
	".incbin \"src/output/html/app.js\"\n"
	"html_script_end:\n"
	".popsection\n");
extern const char html_style_start[], html_style_end[], html_body_start[], html_body_end[];
extern const char html_script_start[], html_script_end[];

static void put_between(FILE *out, const char *start, const char *end)
{
	fwrite(start, 1, (size_t)(end - start), out);
}

/* Encodes three bytes as four characters; @n may be less than 3 for the last group. */
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

static void put_profile(FILE *out, const char *json, size_t size)
{
	char *packed;
	size_t count = gzip_pack(json, size, &packed);

	fputs("<script type=\"text/plain\" id=\"profile\">\n", out);
	put_base64(out, (const uint8_t *)packed, count);
	fputs("\n</script>\n", out);
	free(packed);
}

size_t html_page_size(size_t packed)
{
	size_t characters = (packed + 2) / 3 * 4;

	return characters + characters / BASE64_LINE + OTHER_SIZE +
	       (size_t)(html_style_end - html_style_start) +
	       (size_t)(html_body_end - html_body_start) +
	       (size_t)(html_script_end - html_script_start);
}

void html_page_write(FILE *out, const char *json, size_t size, bool is_live)
{
	fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
	      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
	      "style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; "
	      "form-action 'none'",
	      out);
	fputs(is_live ? "; connect-src 'self'\">\n" : "\">\n", out);
	fputs("<title>ptmem</title>\n<style>\n",
	      out);
	put_between(out, html_style_start, html_style_end);
	fputs("</style>\n</head>\n<body>\n", out);
	put_between(out, html_body_start, html_body_end);
	put_profile(out, json, size);
	fputs("<script>\n", out);
	put_between(out, html_script_start, html_script_end);
	fputs("</script>\n</body>\n</html>\n", out);
}
