/*
 * The keys of attributes in OpenTelemetry's thread contexts, as a process publishes them in its
 * process context (OTEP 4719, version 2): a mapping named OTEL_CTX whose header leads to a message
 * of Protocol Buffers. Hides both formats.
 */
#ifndef PTMEM_SESSION_OTEL_KEYS_H
#define PTMEM_SESSION_OTEL_KEYS_H

#include <stddef.h>
#include <stdint.h>

struct address_space;

/*
 * The number, from 0 to 255, by which attributes with the key @key are marked; below 0: @space
 * publishes none so far, or no such key.
 */
int otel_keys_find(const struct address_space *space, const char *key);
/* The same in a message of @size bytes, a copy of what the process publishes. */
int otel_keys_find_in(const uint8_t *payload, size_t size, const char *key);

#endif
