/* Setting one option. */
#ifndef PTMEM_OPTION_VALUE_H
#define PTMEM_OPTION_VALUE_H

struct option_row;
struct options;

/* The options that words are parsed into, and where the words come from. */
struct option_parser {
	struct options *o;
	const char *source; /* for messages: "" for the command line, or a name with ": " after */
};

/*
 * Gives @row's field the value @text, which must live as long as the options (NULL where the option
 * takes none). @arg: the word, for the message. 0, or -EINVAL after a message.
 */
int option_value_set(const struct option_parser *p, const struct option_row *row, const char *arg,
		     const char *text);

#endif
