/* See json_text.h. */
#include "base/json_text.h"

#include "base/cleanup.h"
#include "base/text.h"

void json_put_text(FILE *out, const char *s, size_t size)
{
	_cleanup_free_ char *clean = text_clean(s, size);

	putc('"', out);
	for (const char *p = clean; *p; p++) {
		if (*p == '"' || *p == '\\')
			fprintf(out, "\\%c", *p);
		else if (*p == '<')
			fputs("\\u003c", out);
		else
			putc(*p, out);
	}
	putc('"', out);
}
