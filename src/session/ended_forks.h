/*
 * Sessions of forked children that have ended, while their parent may still execute another
 * program, whose profile takes the place of its own: then the children of the former program, such
 * as the subshells of a wrapper script, are no result either. They are kept until the program of
 * the parent ends or is replaced, but not for long: the files of a server's workers are wanted when
 * these end.
 */
#ifndef PTMEM_ENDED_FORKS_H
#define PTMEM_ENDED_FORKS_H

#include "base/types.h"

struct run;
struct session;

/*
 * Whether @s, a forked child that has ended, is to be kept. Its program, as any wrapper script,
 * began not long ago.
 */
bool ended_forks_wants(const struct session *s);
/* Takes @s over; it is no longer among the run's sessions. */
void ended_forks_keep(struct session *s);
/* Program @program (session_image.serial) has ended: what its children had is a result. */
void ended_forks_finish(struct run *run, uint32_t program);
/* It was superseded: they are not profiled. Those that live are marked (is_abandoned). */
void ended_forks_drop(struct run *run, uint32_t program);
/* @s, which is abandoned and has ended, is dropped. */
void ended_forks_abandon(struct session *s);
/* Finishes those that have waited long enough. Returns when the next one will have. */
uint64_t ended_forks_tick(struct run *run, uint64_t now_ns);

#endif
