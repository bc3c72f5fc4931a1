/* Where --listen listens, and which Host headers are its own. Both texts come from outside. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "listen/http_access.h"

static void check_url(const char *text, const char *url, bool is_loopback)
{
	struct listen_address a;

	assert_null(listen_address_parse(text, &a));
	_cleanup_free_ char *found = listen_address_url(&a);

	assert_string_equal(found, url);
	assert_int_equal(listen_address_is_loopback(&a), is_loopback);
}

static void test_parse(void **state)
{
	check_url("", "http://127.0.0.1:0/", true);
	check_url("8080", "http://127.0.0.1:8080/", true);
	check_url("0", "http://127.0.0.1:0/", true);
	check_url("00080", "http://127.0.0.1:80/", true);
	check_url("65535", "http://127.0.0.1:65535/", true);
	check_url("localhost:80", "http://127.0.0.1:80/", true);
	check_url("LocalHost", "http://127.0.0.1:0/", true);
	check_url("127.255.255.254:1", "http://127.255.255.254:1/", true);
	check_url("128.0.0.1:1", "http://128.0.0.1:1/", false);
	check_url("0.0.0.0", "http://0.0.0.0:0/", false);
	check_url("10.0.0.7:", "http://10.0.0.7:0/", false);
	check_url("[::1]:80", "http://[::1]:80/", true);
	check_url("[::1]:", "http://[::1]:0/", true);
	check_url("[::]", "http://[::]:0/", false);
	check_url("[::ffff:127.0.0.1]:80", "http://[::ffff:127.0.0.1]:80/", false);
	check_url("[2001:db8::7]:80", "http://[2001:db8::7]:80/", false);
}

static void test_refused(void **state)
{
	static const char *const texts[] = {
		"65536", "99999", "123456", "18446744073709551616", "-1", "+80", " 80", "80 ", "0x50",
		"127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:80x", "127.0.0.1:80:80", "127.0.0.1 :80",
		"::1", "::1:80", "[::1", "[::1]80", "[]:80", "[", "]", ":", ":80", "[127.0.0.1", "[::1]]:80",
		"256.0.0.1:80", "1.2.3:80", "01.2.3.4.5", "example.com", "localhost.:80", "fe80::1%lo", "[fe80::1%lo]:80",
		"\xff\xfe:80", "caf\xc3\xa9:80", "\xd9\xa1\xd9\xa2:80", "a/b:80", "http://127.0.0.1:80",
	};
	struct listen_address a;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		if (!listen_address_parse(texts[i], &a))
			fail_msg("%s is taken", texts[i]);
	}
}

static char *repeat(char c, size_t n)
{
	char *text = malloc(n + 1);

	memset(text, c, n);
	text[n] = '\0';
	return text;
}

/* At the limits of what is kept of a host, and far beyond. */
static void test_long(void **state)
{
	static const size_t sizes[] = {6, 254, 255, 256, 257, 1000, 1 << 20};

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		_cleanup_free_ char *digits = repeat('1', sizes[i]), *letters = repeat('a', sizes[i]),
				    *open = repeat('[', sizes[i]), *dots = repeat('.', sizes[i]);
		struct listen_address a;

		assert_non_null(listen_address_parse(digits, &a));
		assert_non_null(listen_address_parse(letters, &a));
		assert_non_null(listen_address_parse(open, &a));
		assert_non_null(listen_address_parse(dots, &a));
		assert_false(listen_address_is_own_host(digits, "server"));
		assert_false(listen_address_is_own_host(open, "server"));
		/* a name as long as a host name may be is one's own; longer ones are none */
		assert_int_equal(listen_address_is_own_host(letters, letters), sizes[i] < 256);
		assert_false(listen_address_is_own_host(letters, "a"));
	}
}

/* A site that leads a name of its own here sends that name. */
static void test_own_host(void **state)
{
	static const char *const own[] = {
		"localhost", "LOCALHOST:80", "localhost:", "127.0.0.1", "127.0.0.1:8080", "10.1.2.3:1", "[::1]",
		"[::1]:80", "server", "Server:80", "[127.0.0.1]:80",
	};
	static const char *const foreign[] = {
		"", ":", ":80", "evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1.evil.example",
		"127.0.0.1@evil.example", "localhost@evil.example", "evil.example#127.0.0.1", "localhost:80x", "localhost:99999",
		"localhost:80:80", "localhost:-1", "localhost, evil.example", "localhost ", " localhost", "localhost\tx",
		"2130706433", "0x7f.0.0.1", "127.1", "[::1", "[::1]x", "[localhost", "server.example", "serve", "servers",
		"::1", "\xef\xbc\x91\xef\xbc\x92\xef\xbc\x97.0.0.1", "localhos\xc5\xa5", "localhost\xe3\x80\x82",
	};

	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		if (!listen_address_is_own_host(own[i], "server"))
			fail_msg("%s is refused", own[i]);
	for (size_t i = 0; i < ARRAY_SIZE(foreign); i++)
		if (listen_address_is_own_host(foreign[i], "server"))
			fail_msg("%s is taken", foreign[i]);
	assert_false(listen_address_is_own_host("", ""));
	assert_false(listen_address_is_own_host(":80", ""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_long),
		cmocka_unit_test(test_own_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
