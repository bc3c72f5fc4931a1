/*
 * Calls an allocating function through generated code like an interpreter's: frames with frame
 * pointers, in memory of no file, that push their return addresses by hand and jump. No call
 * precedes such a return address, and no CFI describes the frames.
 *
 *	interpreter DEPTH CALLS: @CALLS blocks of BLOCK bytes, below @DEPTH such frames
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "noinline.h"

#define BLOCK 1000

/* enter(depth, fn): @depth frames, then fn(). Position-independent, so it works where it is copied to. */
extern const char enter[], enter_end[];
__asm__(".text\n"
	"enter:\n"
	"	push %rbp\n"
	"	mov %rsp, %rbp\n"
	"	dec %edi\n"
	"	je 2f\n"
	"	lea 1f(%rip), %rax\n"
	"	push %rax\n"
	"	jmp enter\n"
	"1:	pop %rbp\n"
	"	ret\n"
	"2:	call *%rsi\n"
	"	pop %rbp\n"
	"	ret\n"
	"enter_end:\n");

static void *volatile kept;

static NOINLINE void allocate(void)
{
	kept = malloc(BLOCK);
	memset(kept, 1, BLOCK);
}

int main(int argc, char **argv)
{
	size_t size = (size_t)(enter_end - enter);
	void *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (argc < 3 || code == MAP_FAILED)
		return 2;
	memcpy(code, enter, size);
	if (mprotect(code, 4096, PROT_READ | PROT_EXEC) != 0)
		return 2;
	for (int i = 0; i < atoi(argv[2]); i++)
		((void (*)(int, void (*)(void)))code)(atoi(argv[1]), allocate);
	puts("OK");
	return 0;
}
