/* Doubles quotes (RFC 4180). See csv_text.h. */
#include "base/csv_text.h"

void csv_put_quoted(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '"')
			putc('"', out);
		putc(*text, out);
	}
}
