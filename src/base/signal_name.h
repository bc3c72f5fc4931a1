/* Names of signals for messages. */
#ifndef PTMEM_BASE_SIGNAL_NAME_H
#define PTMEM_BASE_SIGNAL_NAME_H

#define SIGNAL_NAME_SIZE 32

/* "SIGSEGV", or "signal 40"; fills @out and returns it. */
const char *signal_name(int number, char out[static SIGNAL_NAME_SIZE]);

#endif
