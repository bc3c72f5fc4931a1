/*
 * A system call from code without symbols and CFI, after data, like all code of a stripped program
 * whose compiler generates no CFI (Go, Free Pascal):
 *
 *	bare_syscall [-w] ACTION      -w: waits for a byte on standard input first; ACTION: bare
 *
 * Prints "mmap FUNCTION BYTES" for the mappings at the end, like mappings.c.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096l
#define CHECK(cond) ((cond) ? (void)0 : _exit(90))

__asm__(".text\n"
	".type before, @function\n" /* whose end is known */
	"before: ret\n"
	".size before, . - before\n"
	".fill 16, 1, 0x06\n" /* no instruction */
	".Lbare: .rept 25\n"
	"mov %rcx, %r10; xor %r9d, %r9d; nop\n"
	".endr\n"
	"mov $-1, %r8; mov $9, %eax; syscall; ret\n" /* mmap */
	".section .data.rel.local, \"aw\"\n"
	".balign 8\n"
	"bare_call: .quad .Lbare\n"
	".text\n");
extern long (*bare_call)(long a, long b, long c, long d) __attribute__((visibility("hidden")));

int main(int argc, char **argv)
{
	char c;

	if (argc > 1 && strcmp(argv[1], "-w") == 0) {
		CHECK(write(1, "ready\n", 6) == 6);
		CHECK(read(0, &c, 1) == 1);
	}
	CHECK(bare_call(0, 11 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS) > 0);
	printf("mmap main %ld\n", 11 * PAGE);
	return 0;
}
