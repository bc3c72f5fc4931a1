/* The options of the server that go together. */
#ifndef PTMEM_OPTION_LISTEN_H
#define PTMEM_OPTION_LISTEN_H

struct options;

/* 0, or -EINVAL after a message. */
int option_check_listen(const struct options *o);

#endif
