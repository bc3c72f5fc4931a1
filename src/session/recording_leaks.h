/* What a recording has of the last leak check. */
#ifndef PTMEM_RECORDING_LEAKS_H
#define PTMEM_RECORDING_LEAKS_H

struct leakcheck;
struct recording;

/* RECORDING_LEAKS alone, of a check that is over; the caller frees it. */
struct recording *recording_leaks_new(const struct leakcheck *c);

/* Adds @from, which is such a recording, to @r. */
void recording_leaks_add(const struct recording *from, struct recording *r);

#endif
