/* See http_token.h. */
#include "listen/http_token.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/log.h"

#define MIN_TOKEN 16
#define MAX_TOKEN 256

static void warn_if_open(const char *path, FILE *file)
{
	struct stat st;

	if (fstat(fileno(file), &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 077))
		log_warn("--listen-token: %s: others may read it (mode %03o); it should be 600",
			 path, st.st_mode & 0777);
}

const char *http_token_read(const char *path, char **token_out)
{
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	char line[MAX_TOKEN + 2];

	if (!file)
		return strerror(errno);
	if (!fgets(line, sizeof(line), file))
		return ferror(file) ? strerror(errno) : "it is empty";
	line[strcspn(line, "\r\n")] = '\0';
	if (strlen(line) < MIN_TOKEN || strlen(line) > MAX_TOKEN)
		return "its first line, the token, must have 16 to 256 characters";
	for (const char *s = line; *s; s++)
		if (*s <= ' ' || *s > '~')
			return "a token has printable ASCII characters and no spaces";
	warn_if_open(path, file);
	*token_out = xstrdup(line);
	return NULL;
}

static int digit(char c)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* Decodes @base64 up to the first character that is not a base64 digit. */
static void decode(const char *base64, char *out, size_t size)
{
	uint32_t bits = 0;
	unsigned count = 0;
	size_t used = 0;

	for (; digit(*base64) >= 0 && used + 1 < size; base64++) {
		bits = bits << 6 | (uint32_t)digit(*base64);
		count += 6;
		if (count < 8)
			continue;
		count -= 8;
		out[used++] = (char)(bits >> count);
	}
	out[used] = '\0';
}

static bool is_equal(const char *given, const char *token)
{
	size_t n = strlen(given), size = strlen(token);
	unsigned differs = n != size;

	for (size_t i = 0; i < size; i++)
		differs |= (unsigned)(token[i] ^ (i < n ? given[i] : 0));
	return !differs;
}

bool http_token_is_right(const char *header, const char *token)
{
	char pair[2 * MAX_TOKEN];

	if (!header)
		return false;
	if (strncasecmp(header, "Bearer ", 7) == 0)
		return is_equal(header + 7, token);
	if (strncasecmp(header, "Basic ", 6) != 0)
		return false;
	decode(header + 6, pair, sizeof(pair));
	const char *colon = strchr(pair, ':');

	return colon && is_equal(colon + 1, token);
}
