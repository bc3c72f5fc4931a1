/*
 * Makes the completions of bash, fish and zsh from the tables of options: copies a template from
 * standard input, in which a line "@SHELL PROGRAM@" is replaced by the options of PROGRAM.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/option_row.h"

/* In cli/command_line.h and report/show.h, which cannot be included together. */
extern const struct option_table options_table, report_options;

static bool is_value(const struct option_row *row, const char *words)
{
	size_t n = row->value ? strlen(row->value) : 0;

	for (const char *s = words; *s; s += strcspn(s, " "), s += *s == ' ')
		if (strcspn(s, " ") == n && strncmp(s, row->value, n) == 0)
			return true;
	return false;
}

static bool is_file(const struct option_row *row)
{
	return is_value(row, "FILE OUT FILE.svg [=CORE]");
}

/* The values of @row that can be listed, with blanks between; NULL: there are none. */
static char *choices_of(const struct option_row *row)
{
	char *text = NULL;

	if (row->type == OPT_YES_NO)
		return xstrdup("yes no");
	if (row->flags & OPT_OR_NO)
		return xstrdup("no");
	for (size_t i = 0; row->choices && option_choice(row, i); i++) {
		char *longer = xasprintf("%s%s%s", text ? text : "", text ? " " : "",
					 option_choice(row, i));

		free(text);
		text = longer;
	}
	return text;
}

/* A letter's value would be the next word, so with one an optional value is none. */
static bool takes_value(const struct option_row *row)
{
	return row->value && !(option_is_optional(row) && row->letter);
}

/* Writes @text up to ';' or a default, in one line, with a backslash before each of @special. */
static void put_text(const char *text, const char *special)
{
	for (const char *s = text; *s && *s != ';' && strncmp(s, " [", 2) != 0; s++) {
		if (strchr(special, *s))
			putchar('\\');
		if (*s == '\'' && !strchr(special, *s)) /* within '' */
			fputs("'\\'", stdout);
		putchar(*s == '\n' ? ' ' : *s);
	}
}

static const char *brief_of(const struct option_row *row)
{
	return row->brief ? row->brief : row->text;
}

/* -- zsh -- */

static void put_zsh_value(const struct option_row *row)
{
	_cleanup_free_ char *choices = choices_of(row);

	fputs(option_is_optional(row) ? "::" : ":", stdout);
	for (const char *s = row->value + strspn(row->value, "[="); *s && *s != ']'; s++)
		printf("%s%c", *s == ':' ? "\\" : "", tolower((unsigned char)*s));
	putchar(':');
	if (is_file(row))
		fputs("_files", stdout);
	else if (is_value(row, "DIRECTORY"))
		fputs("_files -/", stdout);
	else if (is_value(row, "PID"))
		fputs("_pids", stdout);
	else if (row->type == OPT_SET)
		printf("_values -s , %s %s", row->name, choices);
	else if (choices)
		printf("(%s)", choices);
}

static void put_zsh(const struct option_row *row, const char *program)
{
	bool has_value = takes_value(row);
	const char *equals = !has_value ? "" : option_is_optional(row) ? "=-" : "=";
	bool is_last = strcmp(row->name, "help") == 0 || strcmp(row->name, "version") == 0;

	printf("\t'");
	if (is_last)
		fputs("(- *)", stdout);
	else if (row->type == OPT_TEXTS || row->flags & OPT_REPEATABLE)
		putchar('*');
	else if (row->letter)
		printf("(-%c --%s)", row->letter, row->name);
	if (row->letter)
		printf("'{-%c%s,--%s%s}'", row->letter, has_value ? "+" : "", row->name, equals);
	else
		printf("--%s%s", row->name, equals);
	putchar('[');
	put_text(brief_of(row), ":[]\\");
	putchar(']');
	if (has_value)
		put_zsh_value(row);
	fputs("' \\\n", stdout);
}

/* -- fish -- */

static void put_fish_value(const struct option_row *row)
{
	_cleanup_free_ char *choices = choices_of(row);

	if (option_is_optional(row))
		fputs(is_file(row) ? " -F" : "", stdout);
	else if (is_file(row))
		fputs(" -r -F", stdout);
	else if (is_value(row, "DIRECTORY"))
		fputs(" -r -a '(__fish_complete_directories)'", stdout);
	else if (is_value(row, "PID"))
		fputs(" -x -a '(__fish_complete_pids)'", stdout);
	else if (is_value(row, "NAME|UNIT|/CGROUP"))
		fputs(" -x -a '(__fish_complete_proc)'", stdout);
	else if (choices)
		printf(" -x -a '%s'", choices);
	else
		fputs(" -x", stdout);
}

static void put_fish(const struct option_row *row, const char *program)
{
	bool has_program = strcmp(program, "ptmem") == 0;

	printf("complete -c %s%s", program, has_program ? " -n __ptmem_no_program" : "");
	if (row->letter)
		printf(" -s %c", row->letter);
	printf(" -l %s", row->name);
	if (takes_value(row))
		put_fish_value(row);
	printf(" -d '%c", toupper((unsigned char)*brief_of(row)));
	put_text(brief_of(row) + 1, "'\\");
	fputs("'\n", stdout);
}

/* -- bash -- */

static void put_bash(const struct option_row *row, const char *program)
{
	if (!row->value || option_is_optional(row))
		printf("\t--%s\n", row->name);
	if (takes_value(row))
		printf("\t--%s=\n", row->name);
	if (row->letter)
		printf("\t-%c\n", row->letter);
}

/* A branch of _ptmem_values: what follows the option, and what of it is in the word so far. */
static void put_bash_value(const struct option_row *row, const char *program)
{
	_cleanup_free_ char *choices = takes_value(row) ? choices_of(row) : NULL;
	bool is_path = is_file(row) || is_value(row, "DIRECTORY"), is_pid = is_value(row, "PID");

	if (!is_path && !is_pid && !choices)
		return;
	printf("\t--%s", row->name);
	if (row->letter)
		printf(" | -%c", row->letter);
	if (is_path)
		printf(") compgen -f -- \"$2\" ;;\n");
	else
		printf(") compgen -W \"%s\" -- \"$2\" ;;\n",
		       is_pid ? "$(command ps -eo pid= 2>/dev/null)" : choices);
}

static const struct {
	const char *name;
	void (*put)(const struct option_row *row, const char *program);
} shells[] = {
	{"bash", put_bash}, {"bash-values", put_bash_value}, {"fish", put_fish}, {"zsh", put_zsh},
};

static void put_table(const char *shell, const char *program)
{
	const struct option_table *t =
		strcmp(program, "ptmem") == 0 ? &options_table : &report_options;

	for (size_t i = 0; i < ARRAY_SIZE(shells); i++)
		for (size_t k = 0; k < t->count && strcmp(shell, shells[i].name) == 0; k++)
			if (t->row[k].name)
				shells[i].put(&t->row[k], program);
}

int main(void)
{
	_cleanup_free_ char *line = NULL;
	char shell[16], program[16], end;
	size_t size = 0;

	while (getline(&line, &size, stdin) > 0) {
		if (sscanf(line, "@%15s %15[^@]%c", shell, program, &end) == 3 && end == '@')
			put_table(shell, program);
		else
			fputs(line, stdout);
	}
	return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
