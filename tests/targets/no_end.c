/*
 * no_end ENDLESS ENDED: allocates on stacks of its own whose outermost function has no return
 * address, as some languages' run-time systems do: ENDLESS times by a function without CFI, above
 * which the stack is zero, and ENDED times by one whose CFI says that it is the outermost.
 */
#include <stdlib.h>


void on_endless_stack(void *top), on_ended_stack(void *top);

__asm__(".text\n"
	".p2align 4\n"
	".type on_endless_stack, @function\n"
	"on_endless_stack:\n"
	"	push %rbx\n"
	"	push %rbp\n"
	"	mov %rsp, %rbx\n"
	"	mov %rdi, %rsp\n"
	"	mov $1, %ebp\n"
	"	jmp endless\n"
	".size on_endless_stack, . - on_endless_stack\n"
	".p2align 4\n"
	".type endless, @function\n"
	"endless:\n"
	"	sub $8, %rsp\n"
	"	call allocate\n"
	"	add $8, %rsp\n"
	"	jmp back\n"
	".size endless, . - endless\n"
	".p2align 4\n"
	".type back, @function\n"
	"back:\n"
	"	mov %rbx, %rsp\n"
	"	pop %rbp\n"
	"	pop %rbx\n"
	"	ret\n"
	".size back, . - back\n"
	".p2align 4\n"
	".type on_ended_stack, @function\n"
	"on_ended_stack:\n"
	"	push %rbx\n"
	"	push %rbp\n"
	"	mov %rsp, %rbx\n"
	"	mov %rdi, %rsp\n"
	"	mov $1, %ebp\n"
	"	jmp ended\n"
	".size on_ended_stack, . - on_ended_stack\n"
	".p2align 4\n"
	".type ended, @function\n"
	"ended:\n"
	"	.cfi_startproc\n"
	"	.cfi_undefined rip\n"
	"	sub $8, %rsp\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	call allocate\n"
	"	add $8, %rsp\n"
	"	jmp back\n"
	"	.cfi_endproc\n"
	".size ended, . - ended\n");

static _Alignas(16) char stack[65536];
static void *volatile kept;

/* Called by the code above. */
__attribute__((used)) void allocate(void)
{
	kept = malloc(100);
	free(kept);
}

int main(int argc, char **argv)
{
	unsigned long endless = argc > 1 ? strtoul(argv[1], NULL, 10) : 10;
	unsigned long ended = argc > 2 ? strtoul(argv[2], NULL, 10) : 10;

	for (unsigned long i = 0; i < endless; i++)
		on_endless_stack(stack + sizeof(stack) - 4096 - 8);
	for (unsigned long i = 0; i < ended; i++)
		on_ended_stack(stack + sizeof(stack) - 4096 - 8);
	return 0;
}
