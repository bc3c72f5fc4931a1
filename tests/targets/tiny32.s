# A 32-bit program that needs no library: exits with 7.
	.globl _start
_start:
	movl $1, %eax
	movl $7, %ebx
	int $0x80
