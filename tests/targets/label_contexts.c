/*
 * Threads with OpenTelemetry's thread contexts (OTEP 4947), and a process context that has the keys
 * of their attributes (OTEP 4719), written by these documents. Prints a line for each route, and
 * for memory of none: "ROUTE BYTES CALLS", of all allocations. Prints "ready" first, and begins once
 * it has read a byte.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "noinline.h"

#define THREADS 4
#define REQUESTS 600

struct context {
	uint8_t trace_id[16], span_id[8];
	uint8_t valid, reserved;
	uint16_t size;
	uint8_t attributes[100];
};

struct process_context {
	char signature[8];
	uint32_t version, size;
	uint64_t published_ns;
	const uint8_t *payload;
};

__attribute__((visibility("default"))) _Thread_local struct context *otel_thread_ctx_v1;

static const char *const routes[] = {"/orders", "/users/{id}", "/"};
static unsigned long bytes[4], calls[4];
static void *volatile sink;
static uint8_t payload[300];
static size_t payload_size;

static void put(uint8_t **at, uint8_t tag, const void *data, size_t size)
{
	*(*at)++ = tag;
	*(*at)++ = (uint8_t)size;
	memcpy(*at, data, size);
	*at += size;
}

/* A value that is text, as a message. */
static size_t text_value(uint8_t *out, const char *text)
{
	uint8_t *at = out;

	put(&at, 0x0a, text, strlen(text));
	return (size_t)(at - out);
}

/* KeyValue, with the field 2 of the process context. */
static void put_attribute(const char *key, const uint8_t *value, size_t size)
{
	uint8_t pair[150], *at = pair, *end = payload + payload_size;

	put(&at, 0x0a, key, strlen(key));
	put(&at, 0x12, value, size);
	put(&end, 0x12, pair, (size_t)(at - pair));
	payload_size = (size_t)(end - payload);
}

static void publish(void)
{
	static const char *const keys[] = {"http.method", "http.route"};
	uint8_t array[100], value[100], *at = array, *all = value;
	struct process_context *c;
	int fd = memfd_create("OTEL_CTX", 0);

	put_attribute("threadlocal.schema_version", value, text_value(value, "tlsdesc_v1_dev"));
	for (int i = 0; i < 2; i++) {
		uint8_t text[40];

		put(&at, 0x0a, text, text_value(text, keys[i]));
	}
	put(&all, 0x2a, array, (size_t)(at - array));
	put_attribute("threadlocal.attribute_key_map", value, (size_t)(all - value));
	if (fd < 0 || ftruncate(fd, 4096) != 0)
		exit(1);
	c = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	close(fd);
	*c = (struct process_context){"", 2, (uint32_t)payload_size, 1, payload};
	memcpy(c->signature, "OTEL_CTX", sizeof(c->signature));
}

NOINLINE static void keep(unsigned whose, size_t size)
{
	sink = malloc(size);
	__atomic_fetch_add(&bytes[whose], size, __ATOMIC_RELAXED);
	__atomic_fetch_add(&calls[whose], 1, __ATOMIC_RELAXED);
}

/* A record that is changed in place is not valid meanwhile. */
static void *run(void *arg)
{
	struct context c = {.valid = 0};

	for (unsigned long n = (uintptr_t)arg; n < REQUESTS; n += THREADS) {
		unsigned whose = (unsigned)(n % 3);
		uint8_t *at = c.attributes;

		c.valid = 0;
		otel_thread_ctx_v1 = &c;
		keep(3, 5);
		put(&at, 0, "GET", 3);
		put(&at, 1, routes[whose], strlen(routes[whose]));
		c.size = (uint16_t)(at - c.attributes);
		c.span_id[0] = (uint8_t)n;
		c.valid = 1;
		keep(whose, n % 50 + 1);
		keep(whose, 3);
		otel_thread_ctx_v1 = NULL;
		keep(3, 1);
	}
	return NULL;
}

int main(void)
{
	pthread_t thread[THREADS];
	char byte;

	setvbuf(stdout, NULL, _IONBF, 0);
	publish();
	puts("ready");
	if (read(0, &byte, 1) != 1)
		return 1;
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, run, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	for (unsigned i = 0; i < 4; i++)
		printf("%s %lu %lu\n", i < 3 ? routes[i] : "none", bytes[i], calls[i]);
	return 0;
}
