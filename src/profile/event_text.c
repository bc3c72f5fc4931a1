/* The encoding is that of events.c. */
#include "profile/event_text.h"

#include <limits.h>

int event_text_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return INT_MAX;
}

int event_text_unescape(const char **at)
{
	char c = *(*at)++;
	if (c == '\\')
		return '\\';
	if (c == 'n')
		return '\n';
	if (c == 't')
		return '\t';
	if (c != 'x' || event_text_digit((*at)[0]) > 15 || event_text_digit((*at)[1]) > 15)
		return -1;
	int value = event_text_digit((*at)[0]) * 16 + event_text_digit((*at)[1]);
	*at += 2;
	return value ? value : -1;
}
