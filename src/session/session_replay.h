/* --replay: profiles an event file instead of a target. */
#ifndef PTMEM_SESSION_REPLAY_H
#define PTMEM_SESSION_REPLAY_H

struct run;

/* Makes a profile from the events in @path and writes its files. 0, or -errno after a message. */
int session_replay(struct run *run, const char *path);

#endif
