/* Single characters of event files. */
#ifndef PTMEM_PROFILE_EVENT_TEXT_H
#define PTMEM_PROFILE_EVENT_TEXT_H

/* The value of a decimal or hexadecimal digit; INT_MAX if it is none. */
int event_text_digit(char c);
/* Decodes one escape; returns the byte or -1. Advances *at, which is after the backslash. */
int event_text_unescape(const char **at);

#endif
