/*
 * --html: the report of a session's recording as a page.
 */
#ifndef PTMEM_SESSION_HTML_RUN_H
#define PTMEM_SESSION_HTML_RUN_H

struct session;
struct recording;

/* Writes and announces the page of @s, which shows @r. Not 0 after a message. */
int html_run_write(struct session *s, const struct recording *r);

#endif
