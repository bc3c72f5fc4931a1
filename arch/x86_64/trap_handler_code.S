/*
 * The handler of arch/trap_handler.h. Copied into targets; all its references are pc-relative.
 * Called by the kernel with (signal, struct siginfo *, struct ucontext *).
 */
#define SI_CODE 8               /* in struct siginfo */
#define UC_RIP 168              /* in struct ucontext */
#define UC_EFLAGS 176
#define TRAP_TRACE 2
#define FLAG_STEP 0x100
#define HANDLER_DATA 1024         /* as in arch/trap_handler.h */
#define RANGES (HANDLER_DATA + 16)
#define TRAPS (RANGES + 62 * 16)

#define NR_rt_sigaction 13
#define NR_rt_sigprocmask 14
#define NR_rt_sigreturn 15
#define NR_getpid 39
#define NR_gettid 186
#define NR_rt_tgsigqueueinfo 297
#define SIGTRAP 5

	.section .rodata
	.globl	x86_64_trap_handler, x86_64_trap_handler_restorer, x86_64_trap_handler_end
	.balign	64
x86_64_trap_handler:
	endbr64
	mov	SI_CODE(%rsi), %eax
	mov	UC_RIP(%rdx), %r8
	test	%eax, %eax
	jle	.Lforeign               /* sent by a process */
	cmp	$TRAP_TRACE, %eax
	je	.Lstep
	lea	-1(%r8), %r10
	mov	x86_64_trap_handler+HANDLER_DATA(%rip), %rcx
	lea	x86_64_trap_handler+TRAPS(%rip), %r9
.Lnext_trap:
	sub	$1, %rcx
	jb	.Lranges
	mov	(%r9), %rdi
	mov	8(%r9), %rax
	lea	16(%r9), %r9
	test	%rax, %rax
	jz	.Lnext_trap             /* removed */
	cmp	%rax, %r8
	je	.Lgo_on                 /* the pc was already moved, into the text after a trap */
	cmp	%rdi, %r10
	jne	.Lnext_trap
	mov	%rax, UC_RIP(%rdx)
.Lgo_on:
	ret

.Lranges:                               /* or into a stub or a pad */
	mov	x86_64_trap_handler+HANDLER_DATA+8(%rip), %rcx
	lea	x86_64_trap_handler+RANGES(%rip), %r9
.Lnext_range:
	sub	$1, %rcx
	jb	.Lforeign
	mov	8(%r9), %r10
	cmp	(%r9), %r8
	lea	16(%r9), %r9
	jb	.Lnext_range
	cmp	%r10, %r8
	jae	.Lnext_range
	ret

.Lstep: /* ptmem's own single step; for one of the program's the flag is still set */
	testl	$FLAG_STEP, UC_EFLAGS(%rdx)
	jnz	.Lforeign
	ret

/* The default action: the same signal again, delivered when this handler has returned. */
.Lforeign:
	push	%rbx
	mov	%rsi, %rbx
	mov	$NR_rt_sigaction, %eax
	mov	$SIGTRAP, %edi
	lea	x86_64_trap_handler+576(%rip), %rsi    /* HANDLER_DEFAULT */
	xor	%edx, %edx
	mov	$8, %r10d
	syscall
	mov	$NR_rt_sigprocmask, %eax
	xor	%edi, %edi              /* SIG_BLOCK */
	lea	.Lmask(%rip), %rsi
	xor	%edx, %edx
	mov	$8, %r10d
	syscall
	mov	$NR_gettid, %eax
	syscall
	mov	%eax, %esi
	mov	$NR_getpid, %eax
	syscall
	mov	%eax, %edi
	mov	$SIGTRAP, %edx
	mov	%rbx, %r10
	mov	$NR_rt_tgsigqueueinfo, %eax
	syscall
	pop	%rbx
	ret

	.balign	8
.Lmask:	.quad	1 << (SIGTRAP - 1)
x86_64_trap_handler_restorer:
	mov	$NR_rt_sigreturn, %eax
	syscall
x86_64_trap_handler_end:
	.section .note.GNU-stack, "", @progbits
