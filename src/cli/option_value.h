/* Sets one option. */
#ifndef PTMEM_OPTION_VALUE_H
#define PTMEM_OPTION_VALUE_H

struct option_row;
struct options;

/* The options being parsed, and the origin of the words. */
struct option_parser {
	struct options *o;
	const char *source; /* for messages: "" for the command line, or a name with ": " after */
};

/*
 * Sets @row's field to the value @text, which must live as long as the options (NULL if the option
 * takes none). @arg: the word, for the message. 0, or -EINVAL after a message.
 */
int option_value_set(const struct option_parser *p, const struct option_row *row, const char *arg,
		     const char *text);

#endif
