/* The results of the last leak check in a recording. */
#ifndef PTMEM_RECORDING_LEAKS_H
#define PTMEM_RECORDING_LEAKS_H

struct leakcheck;
struct recording;

/* RECORDING_LEAKS only, of a finished check; the caller frees it. */
struct recording *recording_leaks_new(const struct leakcheck *c);

/* Adds @from, such a recording, to @r. */
void recording_leaks_add(const struct recording *from, struct recording *r);

#endif
