/*
 * The handler of arch/trap_handler.h. Copied into targets; all its references are pc-relative.
 * Called by the kernel with (signal, struct siginfo *, struct ucontext *). The pc of a breakpoint
 * is its own address.
 */
#define SI_CODE 8               /* in struct siginfo */
#define SI_PID 16
#define UC_PC 440               /* in struct ucontext */
#define TRAP_TRACE 2
#define HANDLER_DATA 1024       /* as in arch/trap_handler.h */
#define HANDLER_DEFAULT 576
#define RANGES (HANDLER_DATA + 16)
#define TRAPS (RANGES + 62 * 16)

#define NR_rt_sigaction 134
#define NR_rt_sigprocmask 135
#define NR_getpid 172
#define NR_gettid 178
#define NR_rt_tgsigqueueinfo 240
#define SIGTRAP 5

	.section .rodata
	.globl	aarch64_trap_handler, aarch64_trap_handler_end
	.balign	64
aarch64_trap_handler:
	hint	#34                     /* bti c */
	ldr	w3, [x1, #SI_CODE]
	ldr	w5, [x1, #SI_PID]
	ldr	x4, [x2, #UC_PC]
	orr	w5, w5, w3
	cbz	w5, .Lreturn            /* ptmem's own step over a system call */
	cmp	w3, #0
	b.le	.Lforeign               /* sent by a process */
	cmp	w3, #TRAP_TRACE
	b.eq	.Lreturn                /* ptmem's own single step */
	adr	x5, aarch64_trap_handler
	ldr	x6, [x5, #HANDLER_DATA]
	add	x7, x5, #TRAPS
.Lnext_trap:
	subs	x6, x6, #1
	b.lo	.Lranges
	ldp	x8, x9, [x7], #16
	cbz	x9, .Lnext_trap         /* removed */
	cmp	x4, x9
	b.eq	.Lreturn                /* the pc was already moved, into the text after a trap */
	cmp	x4, x8
	b.ne	.Lnext_trap
	str	x9, [x2, #UC_PC]
.Lreturn:
	ret

.Lranges:                               /* or into a stub */
	ldr	x6, [x5, #HANDLER_DATA + 8]
	add	x7, x5, #RANGES
.Lnext_range:
	subs	x6, x6, #1
	b.lo	.Lforeign
	ldp	x8, x9, [x7], #16
	cmp	x4, x8
	b.lo	.Lnext_range
	cmp	x4, x9
	b.hs	.Lnext_range
	ret

/* The default action: the same signal again, delivered when this handler has returned. */
.Lforeign:
	mov	x9, x1                  /* system calls preserve all but x0 */
	mov	x8, #NR_rt_sigaction
	mov	x0, #SIGTRAP
	adr	x1, aarch64_trap_handler + HANDLER_DEFAULT
	mov	x2, #0
	mov	x3, #8
	svc	#0
	mov	x8, #NR_rt_sigprocmask
	mov	x0, #0                  /* SIG_BLOCK */
	adr	x1, .Lmask
	mov	x2, #0
	mov	x3, #8
	svc	#0
	mov	x8, #NR_gettid
	svc	#0
	mov	x1, x0
	mov	x8, #NR_getpid
	svc	#0
	mov	x2, #SIGTRAP
	mov	x3, x9
	mov	x8, #NR_rt_tgsigqueueinfo
	svc	#0
	ret

	.balign	8
.Lmask:	.quad	1 << (SIGTRAP - 1)
aarch64_trap_handler_end:
	.section .note.GNU-stack, "", @progbits
