/* See my_code.h. */
#include "symbols/my_code.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "base/wildcard.h"

void my_code_add(struct my_code *m, const char *rule)
{
	if ((*rule == '+' || *rule == '-') && rule[1])
		*vec_add(&m->rule) = xstrdup(rule);
}

void my_code_deinit(struct my_code *m)
{
	for (size_t i = 0; i < m->rule.count; i++)
		free(m->rule.data[i]);
	vec_deinit(&m->rule);
}

static bool matches(const char *pattern, const char *path)
{
	if (!path || !*path)
		return false;
	return wildcard_matches(pattern, strlen(pattern),
				strchr(pattern, '/') ? path : text_base_name(path));
}

enum my_code_owner my_code_find(const struct my_code *m, const char *source, const char *object)
{
	for (size_t i = m ? m->rule.count : 0; i-- > 0;) {
		const char *rule = m->rule.data[i];

		if (matches(rule + 1, source) || matches(rule + 1, object))
			return *rule == '+' ? MY_CODE_MINE : MY_CODE_NOT_MINE;
	}
	return MY_CODE_UNKNOWN;
}
