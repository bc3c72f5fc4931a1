/* Numbers with commas and units, and names of signals. See amount.h. */
#include "base/amount.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

const char *amount_commas(uint64_t n, char out[static AMOUNT_SIZE])
{
	char digits[24];
	int size = snprintf(digits, sizeof(digits), "%" PRIu64, n), k = 0;
	for (int i = 0; i < size; i++) {
		if (i > 0 && (size - i) % 3 == 0)
			out[k++] = ',';
		out[k++] = digits[i];
	}
	out[k] = '\0';
	return out;
}

static const char *print_bytes(const char *sign, double bytes, char *out)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	size_t unit = 0;
	/* 1023.95 KiB would be rounded to 1024.0 */
	while (bytes >= (unit ? 1023.95 : 1024) && unit + 1 < ARRAY_SIZE(units)) {
		bytes /= 1024;
		unit++;
	}
	snprintf(out, AMOUNT_SIZE, unit ? "%s%.1f %s" : "%s%.0f %s", sign, bytes, units[unit]);
	return out;
}

const char *amount_bytes(double bytes, char out[static AMOUNT_SIZE])
{
	return print_bytes(bytes < 0 ? "-" : "", fabs(bytes), out);
}

const char *amount_change(double bytes, char out[static AMOUNT_SIZE])
{
	return print_bytes(bytes < 0 ? "-" : bytes > 0 ? "+" : "", fabs(bytes), out);
}

const char *amount_error(double bytes, double error, char out[static AMOUNT_SIZE])
{
	double percent = bytes > 0 ? 100 * error / bytes : 0;

	out[0] = '\0';
	if (percent > 0 && percent < 0.05)
		snprintf(out, AMOUNT_SIZE, " +- <0.1 %%");
	else if (percent > 0)
		snprintf(out, AMOUNT_SIZE, percent < 9.95 ? " +- %.1f %%" : " +- %.0f %%", percent);
	return out;
}

char *amount_exact(double bytes)
{
	char text[AMOUNT_SIZE], exact[AMOUNT_SIZE];

	amount_commas((uint64_t)bytes, exact);
	return bytes < 1024 ? xasprintf("%s byte%s", exact, plural((size_t)bytes)) :
			      xasprintf("%s (%s bytes)", amount_bytes(bytes, text), exact);
}

const char *amount_parse(const char *text, double *out)
{
	char *end;

	*out = strtod(text, &end);
	/* strtod takes 1e3 and 0x10 */
	return end == &text[strspn(text, "0123456789.")] ? end : NULL;
}

bool amount_parse_age(const char *text, struct amount_age *out)
{
	static const struct {
		const char *name;
		double seconds;
	} units[] = {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"m", 60}, {"h", 3600}, {"d", 86400}};
	double number;
	const char *end = isdigit((unsigned char)*text) ? amount_parse(text, &number) : NULL;

	*out = (struct amount_age){0};
	if (end && strcmp(end, "%") == 0) {
		out->percent = number;
		return number <= 100;
	}
	for (size_t i = 0; end && i < ARRAY_SIZE(units); i++)
		if (strcmp(end, units[i].name) == 0) {
			out->seconds = number * units[i].seconds;
			return true;
		}
	return false;
}

const char *amount_parse_unit(const char *text, double base, double *value)
{
	static const char units[] = "KMGT";
	const char *unit = *text ? strchr(units, toupper((unsigned char)*text)) : NULL;

	if (!unit)
		return text;
	*value *= pow(base, (double)(unit - units + 1));
	return text + 1;
}

const char *signal_name(int number, char out[static SIGNAL_NAME_SIZE])
{
	const char *name = sigabbrev_np(number);

	if (name)
		snprintf(out, SIGNAL_NAME_SIZE, "SIG%s", name);
	else
		snprintf(out, SIGNAL_NAME_SIZE, "signal %d", number);
	return out;
}
