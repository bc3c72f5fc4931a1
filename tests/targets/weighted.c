/*
 * weighted BLOCKS: an allocator that samples its own blocks. It hands out BLOCKS blocks of 100 bytes
 * each, of an area that it maps, and releases the first half of them. One of 64 is a sample, which
 * is announced by a probe of OpenTelemetry's convention: otel_memory:alloc(pointer, size, bytes that
 * it stands for), and otel_memory:free(pointer). With a second argument all have two arguments only.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define SIZE 100
#define EVERY 64

/* A note of SystemTap's format, version 3, beside a nop; @arguments: of the assembler. */
#define PROBE(name, arguments, ...)                                             \
	__asm__ volatile("990: nop\n"                                          \
			 ".pushsection .note.stapsdt,\"\",\"note\"\n"           \
			 ".balign 4\n"                                          \
			 ".4byte 992f-991f, 994f-993f, 3\n"                     \
			 "991: .asciz \"stapsdt\"\n"                            \
			 "992: .balign 4\n"                                     \
			 "993: .8byte 990b, 0, 0\n"                             \
			 ".asciz \"otel_memory\", \"" name "\", \"" arguments "\"\n" \
			 "994: .balign 4\n"                                     \
			 ".popsection\n" : : __VA_ARGS__ : "memory")

__attribute__((noinline)) static void announce(void *p, uint64_t size, uint64_t weighted)
{
	PROBE("alloc", "8@%0 8@%1 8@%2", "D"(p), "S"(size), "d"(weighted));
}

__attribute__((noinline)) static void announce_plain(void *p, uint64_t size)
{
	PROBE("alloc", "8@%0 8@%1", "D"(p), "S"(size));
}

__attribute__((noinline)) static void retire(void *p)
{
	PROBE("free", "8@%0", "D"(p));
}

int main(int argc, char **argv)
{
	long blocks = argc > 1 ? atol(argv[1]) : 6400;
	char *area = mmap(NULL, (size_t)blocks * SIZE + 1, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (long i = 0; i < blocks; i += EVERY) {
		if (argc > 2)
			announce_plain(area + i * SIZE, SIZE);
		else
			announce(area + i * SIZE, SIZE, SIZE * EVERY);
	}
	for (long i = 0; i < blocks / 2; i += EVERY)
		retire(area + i * SIZE);
	return area == MAP_FAILED;
}
