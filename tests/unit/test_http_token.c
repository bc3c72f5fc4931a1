/* The token of --listen: what its file may hold, and which headers know it. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "listen/http_access.h"

#define TOKEN "0123456789abcdef"

/* What is read from a file of @size bytes; NULL: it is refused. */
static char *read_token(const char *data, size_t size)
{
	int fd = memfd_create("token", 0);
	char path[40], *token = NULL;

	assert_int_equal(fchmod(fd, 0600), 0);
	assert_int_equal(write(fd, data, size), size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	const char *why = http_token_read(path, &token);

	assert_int_equal(!why, token != NULL);
	close(fd);
	return token;
}

static void check_read(const char *data, const char *expected)
{
	_cleanup_free_ char *token = read_token(data, strlen(data));

	if (expected)
		assert_string_equal(token, expected);
	else
		assert_null(token);
}

static void test_read(void **state)
{
	check_read(TOKEN, TOKEN);
	check_read(TOKEN "\n", TOKEN);
	check_read(TOKEN "\r\nmore\n", TOKEN);
	check_read("!\"#$%&'()*+,-./:;<=>?@~\n", "!\"#$%&'()*+,-./:;<=>?@~");
	check_read("", NULL);
	check_read("\n" TOKEN "\n", NULL);
	check_read("0123456789abcde\n", NULL);
	check_read(" " TOKEN, NULL);
	check_read("0123456789abcdef 0123456789abcdef", NULL);
	check_read("0123456789abcdef\t", NULL);
	check_read("0123456789abcde\xc3\xa9", NULL);
	check_read("0123456789abcdef\x7f", NULL);
	assert_null(read_token("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 18));
	char *unused = NULL;

	assert_non_null(http_token_read("/nonexistent", &unused));
	assert_non_null(http_token_read("/", &unused));
	assert_null(unused);
}

static void test_sizes(void **state)
{
	static const size_t sizes[] = {15, 16, 255, 256, 257, 258, 259, 100000};

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		_cleanup_free_ char *line = xmalloc(sizes[i] + 2), *token = NULL;

		memset(line, 'a', sizes[i]);
		strcpy(line + sizes[i], "\n");
		token = read_token(line, sizes[i] + 1);
		assert_int_equal(token != NULL, sizes[i] >= 16 && sizes[i] <= 256);
		assert_true(!token || strlen(token) == sizes[i]);
	}
}

static void test_bearer(void **state)
{
	static const char *const wrong[] = {
		"", "Bearer", "Bearer ", "Bearer  " TOKEN, "Bearer " TOKEN " ", "Bearer " TOKEN "0", "Bearer 0123456789abcde",
		"Bearer 0123456789ABCDEF", "Bearer\t" TOKEN, " Bearer " TOKEN, TOKEN, "Digest " TOKEN, "Token " TOKEN,
		"Bearer 0123456789abcde\xe6", "\xff\xfe",
	};

	assert_true(http_token_is_right("Bearer " TOKEN, TOKEN));
	assert_true(http_token_is_right("bEARER " TOKEN, TOKEN));
	assert_false(http_token_is_right(NULL, TOKEN));
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		if (http_token_is_right(wrong[i], TOKEN))
			fail_msg("%s is taken", wrong[i]);
}

/* "Basic " and the base64 of @pair. */
static char *basic(const char *pair)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	char *out = xmalloc(strlen(pair) * 2 + 20), *end = stpcpy(out, "Basic ");
	uint32_t bits = 0;
	unsigned count = 0;

	for (const char *c = pair; *c || count; count -= MIN(count, 6u)) {
		for (; *c && count < 6; count += 8)
			bits = bits << 8 | (unsigned char)*c++;
		*end++ = digits[(count >= 6 ? bits >> (count - 6) : bits << (6 - count)) & 63];
	}
	*end = '\0';
	return out;
}

static void check_basic(const char *pair, bool is_right)
{
	_cleanup_free_ char *header = basic(pair), *padded = xasprintf("%s==", header);

	assert_int_equal(http_token_is_right(header, TOKEN), is_right);
	assert_int_equal(http_token_is_right(padded, TOKEN), is_right);
}

static void test_basic(void **state)
{
	assert_true(http_token_is_right("Basic OjAxMjM0NTY3ODlhYmNkZWY=", TOKEN)); /* of `base64` */
	check_basic(":" TOKEN, true);
	check_basic("any name:" TOKEN, true);
	check_basic("caf\xc3\xa9:" TOKEN, true);
	check_basic(TOKEN, false);
	check_basic(TOKEN ":", false);
	check_basic("a:b:" TOKEN, false); /* a name has no colon: the password is "b:..." */
	check_basic("a:" TOKEN "x", false);
	check_basic("a:0123456789abcde", false);
	check_basic("", false);
}

/* Whatever is sent is read within its end, and is wrong; under asan a byte too many is seen. */
static void test_hostile(void **state)
{
	static const char *const texts[] = {"Basic ", "Basic !", "Basic =", "Basic ====", "Basic A", "Basic AA=A", "Basic \xff\xff\xff"};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		_cleanup_free_ char *header = xstrdup(texts[i]);

		assert_false(http_token_is_right(header, TOKEN));
	}
	for (size_t n = 0; n < 3000; n++) {
		_cleanup_free_ char *name = xmalloc(n + 1);

		memset(name, 'x', n);
		name[n] = '\0';
		_cleanup_free_ char *pair = xasprintf("%s:" TOKEN, name), *header = basic(pair);

		/* a name that fits is any name, a longer one is no way in */
		if (n < 256)
			assert_true(http_token_is_right(header, TOKEN));
		else if (n > 512)
			assert_false(http_token_is_right(header, TOKEN));
		for (size_t cut = 0; n < 40 && cut < strlen(header); cut++) {
			_cleanup_free_ char *part = xstrndup(header, cut);

			http_token_is_right(part, TOKEN);
		}
	}
}

/* The longest token is no exception. */
static void test_longest(void **state)
{
	char token[257], wrong[300];

	memset(token, 't', 256);
	token[256] = '\0';
	_cleanup_free_ char *pair = xasprintf("user:%s", token), *header = basic(pair), *bearer = xasprintf("Bearer %s", token);

	assert_true(http_token_is_right(header, token));
	assert_true(http_token_is_right(bearer, token));
	snprintf(wrong, sizeof(wrong), "Bearer %.255s", token);
	assert_false(http_token_is_right(wrong, token));
	snprintf(wrong, sizeof(wrong), "Bearer %st", token);
	assert_false(http_token_is_right(wrong, token));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read), cmocka_unit_test(test_sizes), cmocka_unit_test(test_bearer),
		cmocka_unit_test(test_basic), cmocka_unit_test(test_hostile), cmocka_unit_test(test_longest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
