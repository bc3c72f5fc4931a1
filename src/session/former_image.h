/*
 * The session of a program that another one has replaced by exec. Which of them is the result is
 * known only when the new one's profile begins, or when the process ends without that: until then
 * it is kept, with all its data, and no longer among the run's sessions.
 */
#ifndef PTMEM_FORMER_IMAGE_H
#define PTMEM_FORMER_IMAGE_H

#include "base/types.h"
#include "tracee/state/event_sink.h"

struct address_space;
struct run;
struct session;

/* @s has ended by exec (image.is_superseded). Takes it over. */
void former_image_keep(struct session *s);
/* The profile of the program that @pid executed begins, and takes the place of the kept one. */
void former_image_supersede(struct run *run, pid_t pid);

/* For event_sink; @ctx is the run. */
void former_image_refused(void *ctx, struct address_space *space, const char *why);
/* What is kept for @pid is the result, unless it executes one more program. */
void former_image_process_left(void *ctx, pid_t pid, enum space_end why);

#endif
