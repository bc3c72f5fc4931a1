/*
 * The short ways of exact pads, without a call of the recorder: an allocation whose first argument
 * is the size, with the stack of the thread's last record, and a free of the first argument. In all
 * other cases they continue, before changing anything, with the calls of C functions.
 *
 * The cost of pads, in ns per malloc and free at depths 5 and 20 (a micro-benchmark with empty
 * originals, one thread, no reader, AMD EPYC):
 *
 *	three entries into C        21.3   26.7
 *	short ways                  13.8   18.8
 *
 * They use what is below the stack pointer, the red zone: no push, and nothing that looks like a
 * return address. Registers: as in recorder_template.S.
 */
#define SAVED_RAX -48(%rsp)
#define SAVED_RCX -16(%rsp)
#define SAVED_RDX -24(%rsp)
#define SAVED_RSI -32(%rsp)
#define SAVED_RDI -40(%rsp)
#define SAVED_R8 -56(%rsp)

/* Continues if recording is on; \control: the control block. */
.macro short_is_on control, other
	testl	$PAD_LAYOUT_DIED, (\control)    /* is_off() */
	jnz	\other
	cmpl	$0, 4(\control)
	jne	\other
.endm

/* \slot = the thread's slot, like find_slot(); uses 	p. */
.macro short_slot head, slot, tp, other
	mov	%fs:0, \tp
	movabs	$0x9e3779b97f4a7c15, \slot
	imul	\tp, \slot
	shr	$(64 - PAD_LAYOUT_DIRECTORY_BITS), \slot
	shl	$4, \slot
	add	\head(%rip), \slot
	cmp	\tp, PAD_LAYOUT_DIRECTORY(\slot)
	mov	(PAD_LAYOUT_DIRECTORY + 8)(\slot), \slot
	jne	\other
.endm

/* Continues if this is the outermost call, on the thread's stack. */
.macro short_outermost slot, other
	cmp	PAD_SLOT_LOW(\slot), %rsp
	jb	\other
	cmp	PAD_SLOT_HIGH(\slot), %rsp
	jae	\other
	cmpq	$0, PAD_SLOT_RETURN_AT(\slot)
	jne	\other
.endm

/*
 * reserve() for a record of 16 bytes: r8 = its address, rdx = its number, \ring = the ring. rcx:
 * the slot; rsi: the control block.
 */
.macro short_reserve full, ring
	mov	PAD_SLOT_RING(%rcx), \ring
	mov	PAD_RING_HEAD(\ring), %r8
	lea	16(%r8), %rdx
	cmp	PAD_RING_LIMIT(\ring), %rdx
	ja	\full
	and	PAD_RING_MASK(\ring), %r8
	add	PAD_RING_AT(\ring), %r8
	mov	$1, %edx
	cmpl	$0, PAD_CONTROL_SHARED(%rsi)
	je	.Lalone\@
	lock
.Lalone\@:
	xadd	%rdx, PAD_CONTROL_NUMBER(%rsi)
	prefetchw 512(%r8)
.endm

/* commit(), with the record's other word in \value; and finish(). */
.macro short_commit head, ring, value
	shl	$PAD_LAYOUT_MARK_LOW, %rdx
	or	(\head + PAD_HEAD_MARK)(%rip), %rdx
	mov	\value, 8(%r8)
	mov	%rdx, (%r8)
	addq	$16, PAD_RING_HEAD(\ring)
	movq	$0, PAD_SLOT_RETURN_AT(%rcx)
.endm

/* Begins the call; falls through to it. pad_leave_plain() sets the other fields it needs. */
.macro short_enter head, after, other
	mov	%rdx, SAVED_RDX
	mov	\head(%rip), %rax
	short_is_on %rax, \other
	short_slot \head, %rax, %rdx, \other
	short_outermost %rax, \other
	lea	-16(%rsp), %rdx                 /* return_at first: pad_enter_plain() */
	mov	%rdx, PAD_SLOT_RETURN_AT(%rax)
	movl	$PAD_LAYOUT_ALLOC, PAD_SLOT_KIND(%rax)
	mov	%rdi, PAD_SLOT_ARG(%rax)
	lea	\after(%rip), %rdx
	mov	%rdx, PAD_SLOT_RETURN_TO(%rax)
	mov	SAVED_RDX, %rdx
.endm

.macro short_check at, other
	mov	(\at)(%rdi), %rsi
	mov	(%rsi), %rsi
	cmp	(\at + 8)(%rdi), %rsi
	jne	\other
.endm

/* is_same_stack(); uses rdx, rsi, rdi. rcx: the slot. */
.macro short_is_same other
	mov	PAD_SLOT_CHECK_COUNT(%rcx), %edx
	mov	PAD_SLOT_CHECK(%rcx), %rdi
	shl	$4, %rdx
	jz	\other
	add	%rdi, %rdx
	cmp	%rsp, -16(%rdx)
	jne	\other
	cmpl	$0, PAD_SLOT_NEEDS_FP(%rcx)
	je	.Lfour\@
	cmp	%rbp, PAD_SLOT_FP(%rcx)
	jne	\other
	jmp	.Lfour\@
.Lmore\@:
	short_check 0, \other
	short_check 16, \other
	short_check 32, \other
	short_check 48, \other
	add	$64, %rdi
.Lfour\@:
	lea	64(%rdi), %rsi
	cmp	%rdx, %rsi
	jbe	.Lmore\@
	cmp	%rdx, %rdi
	je	.Ldone\@
.Lone\@:
	short_check 0, \other
	add	$16, %rdi
	cmp	%rdx, %rdi
	jne	.Lone\@
.Ldone\@:
.endm

/* Restores what short_leave changed, except for rax. */
.macro short_restore
	mov	SAVED_RCX, %rcx
	mov	SAVED_RDX, %rdx
	mov	SAVED_RSI, %rsi
	mov	SAVED_RDI, %rdi
	mov	SAVED_R8, %r8
.endm

/* rcx = the thread's slot if this call set its return_at, like leaving_slot(); uses rdx. */
.macro short_leaving_slot head, other
	short_slot \head, %rcx, %rdx, \other
	lea	-16(%rsp), %rdx
	cmp	%rdx, PAD_SLOT_RETURN_AT(%rcx)
	jne	\other
.endm

/*
 * The original has returned; falls through to the return to the caller. Whether recording is off
 * does not matter: it was on when the call began.
 */
.macro short_leave head, other
	mov	%rcx, SAVED_RCX
	mov	%rdx, SAVED_RDX
	mov	%rsi, SAVED_RSI
	mov	%rdi, SAVED_RDI
	mov	%r8, SAVED_R8
	short_leaving_slot \head, \other
	mov	%rax, %rdx
	shr	$48, %rdx
	jnz	\other
	test	%rax, %rax
	jz	\other
	cmpq	$0xffff, PAD_SLOT_ARG(%rcx)
	ja	\other
	mov	\head(%rip), %rsi
	testl	$(PAD_LAYOUT_LONG_WAY | PAD_LAYOUT_COUNT_ONLY), PAD_CONTROL_FLAGS(%rsi)
	jnz	.Lflags\@
	short_is_same \other
	mov	\head(%rip), %rsi
.Lreserve\@:
	short_reserve \other, %rdi
	mov	%rax, %rsi
	shl	$16, %rsi
	or	PAD_SLOT_ARG(%rcx), %rsi
	short_commit \head, %rdi, %rsi
	short_restore
	jmp	.Lend\@
.Lflags\@:
	testl	$PAD_LAYOUT_LONG_WAY, PAD_CONTROL_FLAGS(%rsi)
	jz	.Lreserve\@
	jmp	\other
.Lend\@:
.endm

/* Restores what short_free changed. */
.macro short_free_restore
	mov	SAVED_RAX, %rax
	mov	SAVED_RCX, %rcx
	mov	SAVED_RDX, %rdx
	mov	SAVED_RSI, %rsi
	mov	SAVED_R8, %r8
.endm

/* Records the free; falls through to the original. Where the ring is full return_at is set. */
.macro short_free head, full, other
	mov	%rax, SAVED_RAX
	mov	%rcx, SAVED_RCX
	mov	%rdx, SAVED_RDX
	mov	%rsi, SAVED_RSI
	mov	%r8, SAVED_R8
	mov	\head(%rip), %rsi
	short_is_on %rsi, \other
	testl	$PAD_LAYOUT_LONG_WAY, PAD_CONTROL_FLAGS(%rsi)
	jnz	\other
	short_slot \head, %rcx, %rdx, \other
	short_outermost %rcx, \other
	mov	%rsp, PAD_SLOT_RETURN_AT(%rcx)
	short_reserve \full, %rax
	short_commit \head, %rax, %rdi
	short_free_restore
.endm
