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

/* Continues if this is the outermost call, on the thread's stack. \inside: return_at is set. */
.macro short_outermost slot, inside, other
	cmp	PAD_SLOT_LOW(\slot), %rsp
	jb	\other
	cmp	PAD_SLOT_HIGH(\slot), %rsp
	jae	\other
	cmpq	$0, PAD_SLOT_RETURN_AT(\slot)
	jne	\inside
.endm

/*
 * Continues if the call is inside that of slot.return_at, with at most one frame between them:
 * pad_nesting() without a loop, and one probe of unwind_rule_find(). So operator new calls malloc,
 * and operator delete jumps to free. \control: the control block; uses rcx, rdx and \tmp.
 */
.macro short_nested control, slot, tmp, other
	mov	PAD_SLOT_RETURN_AT(\slot), %rdx
	cmp	%rsp, %rdx
	jb	\other
	je	.Lsame\@
	movabs	$0x9e3779b97f4a7c15, \tmp
	imul	(%rsp), \tmp
	mov	PAD_CONTROL_RULE_BITS(\control), %ecx
	neg	%ecx
	shr	%cl, \tmp
	shl	$5, \tmp                /* sizeof(struct unwind_rule) */
	add	PAD_CONTROL_RULES(\control), \tmp
	mov	PAD_RULE_PC(\tmp), %rcx
	cmp	%rcx, (%rsp)
	jne	\other
	cmpb	$PAD_LAYOUT_RULE_SP, PAD_RULE_KIND(\tmp)
	jne	\other
	movslq	PAD_RULE_OFFSET(\tmp), %rcx
	add	%rsp, %rcx              /* the caller's return slot */
	cmp	%rdx, %rcx
	jne	\other
.Lsame\@:
	mov	(%rdx), %rdx
	cmp	%rdx, PAD_SLOT_RETURN_TO(\slot)
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
	cmp	PAD_RING_SOFT_LIMIT(\ring), %rdx
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

/*
 * Continues if a record of 16 bytes needs no stamp and no wait: before the stack is compared, which
 * the call of a C function would do once more. rcx: the slot; uses rdx and r8.
 */
.macro short_has_room other
	mov	PAD_SLOT_RING(%rcx), %rdx
	mov	PAD_RING_SOFT_LIMIT(%rdx), %r8
	sub	PAD_RING_HEAD(%rdx), %r8
	cmp	$16, %r8
	jl	\other
.endm

/* commit(), with the record's other word in \value. */
.macro short_commit head, ring, value
	shl	$PAD_LAYOUT_MARK_LOW, %rdx
	or	(\head + PAD_HEAD_MARK)(%rip), %rdx
	mov	\value, 8(%r8)
	mov	%rdx, (%r8)
	addq	$16, PAD_RING_HEAD(\ring)
.endm

/* finish() */
.macro short_finish
	movq	$0, PAD_SLOT_RETURN_AT(%rcx)
.endm

/* Begins the call; falls through to it. pad_leave_plain() sets the other fields it needs. */
.macro short_enter head, after, inside, other
	mov	%rdx, SAVED_RDX
	mov	\head(%rip), %rax
	short_is_on %rax, \other
	short_slot \head, %rax, %rdx, \other
	short_outermost %rax, \inside, \other
	lea	-16(%rsp), %rdx                 /* return_at first: pad_enter_plain() */
	mov	%rdx, PAD_SLOT_RETURN_AT(%rax)
	movl	$PAD_LAYOUT_ALLOC, PAD_SLOT_KIND(%rax)
	mov	%rdi, PAD_SLOT_ARG(%rax)
	lea	\after(%rip), %rdx
	mov	%rdx, PAD_SLOT_RETURN_TO(%rax)
	mov	SAVED_RDX, %rdx
.endm

/* short_enter came to \inside: falls through to the original if that is so. */
.macro short_inside head, other
	mov	%rcx, SAVED_RCX
	mov	%rsi, SAVED_RSI
	mov	%rdi, SAVED_RDI
	mov	\head(%rip), %rsi
	short_nested %rsi, %rax, %rdi, .Lno\@
	short_inside_restore
	mov	SAVED_RDX, %rdx
	jmp	.Lyes\@
.Lno\@:
	short_inside_restore
	jmp	\other
.Lyes\@:
.endm

.macro short_inside_restore
	mov	SAVED_RCX, %rcx
	mov	SAVED_RSI, %rsi
	mov	SAVED_RDI, %rdi
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
	testl	$(PAD_LAYOUT_OTHER_WAY | PAD_LAYOUT_COUNT_ONLY | PAD_LAYOUT_HAS_LABELS), \
		PAD_CONTROL_FLAGS(%rsi)
	jnz	.Lflags\@
.Lstack\@:
	short_has_room \other
	short_is_same \other
	mov	\head(%rip), %rsi
.Lreserve\@:
	short_reserve \other, %rdi
	mov	%rax, %rsi
	shl	$16, %rsi
	or	PAD_SLOT_ARG(%rcx), %rsi
	short_commit \head, %rdi, %rsi
	short_finish
	short_restore
	jmp	.Lend\@
.Lflags\@:
	testl	$PAD_LAYOUT_OTHER_WAY, PAD_CONTROL_FLAGS(%rsi)
	jnz	\other
	testl	$PAD_LAYOUT_HAS_LABELS, PAD_CONTROL_FLAGS(%rsi)
	jz	.Lreserve\@
	call	*(\head+PAD_HEAD_SAME_LABELS)(%rip)
	movq	$0, -8(%rsp)            /* as record does */
	je	.Lstack\@
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

/* Begins the release of the block rdi. rcx = the slot, rsi = the control block. */
.macro short_release head, inside, other
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
	short_outermost %rcx, \inside, \other
.endm

/* Records it. \full: there is no room, and return_at is set. */
.macro short_record head, full
	short_reserve \full, %rax
	short_commit \head, %rax, %rdi
.endm

/* After a short_release that came to \inside: continues if the call is nested. */
.macro short_release_inside other
	mov	%rcx, %r8
	short_nested %rsi, %r8, %rax, \other
.endm

/* A free that jumps to the original. */
.macro release_template
	.balign	64
	.type	release_start, @function
release_start:
	.cfi_startproc
	short_release jump_head, release_inside, release_other
	mov	%rsp, PAD_SLOT_RETURN_AT(%rcx)
	short_record jump_head, release_full
	short_finish
release_done:
	short_free_restore
	jmp	jump_moved
release_inside:
	cmpl	$PAD_LAYOUT_DELETE, PAD_SLOT_KIND(%rcx)
	jne	release_other
	short_release_inside release_other
	jmp	release_done
release_full:
	short_finish
release_other:
	short_free_restore
	jmp	jump_entry
	.cfi_endproc
.endm

/* What a call that is tracked until it returns needs in its slot, besides return_at; uses rdx. */
.macro short_track slot, kind
	movl	$\kind, PAD_SLOT_KIND(\slot)
	movq	$0, PAD_SLOT_SAMPLED(\slot)
	lea	tracked_after(%rip), %rdx
	mov	%rdx, PAD_SLOT_RETURN_TO(\slot)
.endm

/* A release that may call other probed functions: operator delete. */
.macro delete_template
	.balign	64
	.type	delete_start, @function
delete_start:
	.cfi_startproc
	short_release tracked_head, delete_inside, delete_other
	lea	-16(%rsp), %rdx         /* return_at first: begin_call() */
	mov	%rdx, PAD_SLOT_RETURN_AT(%rcx)
	short_track %rcx, PAD_LAYOUT_DELETE
	short_record tracked_head, delete_full
	short_free_restore
	jmp	tracked_down
delete_inside:
	short_release_inside delete_other
	short_free_restore
	jmp	tracked_moved
delete_full:
	short_finish
delete_other:
	short_free_restore
	jmp	tracked_entry
	.cfi_endproc
	.balign	64, 0xcc
.endm
