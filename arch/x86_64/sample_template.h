/*
 * The short ways of sampling pads: a call that is not sampled, and a free of a block that is not a
 * sample. Each precedes a template of recorder_template.S, shares its head, and falls through to it
 * in all other cases: no slot yet, inside another call, sampled. By then nothing has been changed.
 *
 * Leaves jump to the original. Other functions, such as operator new and those of an unknown
 * allocator, are tracked until they return.
 *
 * Registers: as in recorder_template.S, but rax is free where the original returns a value in it.
 */

/*
 * rax = the thread's slot, like find_slot(); uses rdx. Jumps to @other unless it is found at
 * once.
 */
.macro sample_find_slot head, other
	mov	%fs:0, %rdx
	movabs	$0x9e3779b97f4a7c15, %rax
	imul	%rdx, %rax
	shr	$(64 - PAD_LAYOUT_DIRECTORY_BITS), %rax
	shl	$4, %rax
	add	\head(%rip), %rax
	cmp	%rdx, PAD_LAYOUT_DIRECTORY(%rax)
	mov	(PAD_LAYOUT_DIRECTORY + 8)(%rax), %rax
	jne	\other
	cmpq	$0, PAD_SLOT_RETURN_AT(%rax)
	jne	\other
.endm

/* rax = the control block; uses rdx. Jumps to @other if the block rdi may be a sample. */
.macro sample_filter head, other
	mov	%rdi, %rdx              /* pad_filter_hash */
	shr	$4, %rdx
	mov	%rdx, %rax
	shr	$PAD_LAYOUT_FILTER_BITS, %rax
	xor	%rax, %rdx
	and	$((1 << PAD_LAYOUT_FILTER_BITS) - 1), %edx
	shr	$PAD_LAYOUT_CELL_SHIFT, %edx
	mov	\head(%rip), %rax
	cmpb	$0, PAD_LAYOUT_CELLS(%rax, %rdx)
	jne	\other
.endm

/* Counts the call. rax: the slot; rdx = the function's count, relative to it. */
.macro sample_count head
	movzbl	(\head + PAD_HEAD_FUNCTION)(%rip), %edx
	shl	$4, %edx
	incq	PAD_SLOT_COUNT(%rax, %rdx)
.endm

/* Advances over rdi bytes; jumps to @other if the next mark is in them. rax: the slot; uses rdx. */
.macro sample_advance other
	mov	PAD_SLOT_LEFT(%rax), %rdx
	sub	%rdi, %rdx
	jb	\other
	mov	%rdx, PAD_SLOT_LEFT(%rax)
.endm

/* A leaf whose first argument is the size. */
.macro sample_alloc_template
	.balign	64
	.type	sample_alloc_start, @function
sample_alloc_start:
	.cfi_startproc
	push	%rdx
	.cfi_adjust_cfa_offset 8
	sample_find_slot call_head, sample_alloc_other
	sample_advance sample_alloc_other
	sample_count call_head
	add	%rdi, (PAD_SLOT_COUNT + 8)(%rax, %rdx)
	.cfi_remember_state
	pop	%rdx
	.cfi_adjust_cfa_offset -8
	jmp	call_moved
sample_alloc_other:
	.cfi_restore_state
	pop	%rdx
	.cfi_adjust_cfa_offset -8
	jmp	call_entry
	.cfi_endproc
	.balign	64, 0xcc
.endm

/* A leaf whose first argument is the block. */
.macro sample_free_template
	.balign	64
	.type	sample_free_start, @function
sample_free_start:
	.cfi_startproc
	push	%rax
	.cfi_adjust_cfa_offset 8
	push	%rdx
	.cfi_adjust_cfa_offset 8
	sample_filter jump_head, sample_free_other
	sample_find_slot jump_head, sample_free_other
	sample_count jump_head
	.cfi_remember_state
	pop	%rdx
	.cfi_adjust_cfa_offset -8
	pop	%rax
	.cfi_adjust_cfa_offset -8
	jmp	jump_moved
sample_free_other:
	.cfi_restore_state
	pop	%rdx
	.cfi_adjust_cfa_offset -8
	pop	%rax
	.cfi_adjust_cfa_offset -8
	jmp	jump_entry
	.cfi_endproc
	.balign	64, 0xcc
.endm

/* rax = the slot, where this call is the outermost one, and now in progress; uses rdx. */
.macro tracked_enter other
	mov	tracked_head(%rip), %rax
	short_is_on %rax, \other
	short_slot tracked_head, %rax, %rdx, \other
	short_outermost %rax, \other, \other
	lea	-16(%rsp), %rdx         /* return_at first: begin_call() */
	mov	%rdx, PAD_SLOT_RETURN_AT(%rax)
.endm

/* The rest of begin_call(), and the counts. */
.macro tracked_begin kind
	short_track %rax, \kind
	sample_count tracked_head
.endm

/* Not a leaf: the first argument is the size. */
.macro tracked_alloc_template
	.balign	64
	.type	tracked_alloc_start, @function
tracked_alloc_start:
	.cfi_startproc
	mov	%rdx, SAVED_RDX
	tracked_enter tracked_alloc_other
	sample_advance tracked_alloc_undo
	tracked_begin PAD_LAYOUT_ALLOC
	add	%rdi, (PAD_SLOT_COUNT + 8)(%rax, %rdx)
	mov	SAVED_RDX, %rdx
	jmp	tracked_down
tracked_alloc_undo:
	movq	$0, PAD_SLOT_RETURN_AT(%rax)
tracked_alloc_other:
	mov	SAVED_RDX, %rdx
	jmp	tracked_entry
	.cfi_endproc
	.balign	64, 0xcc
.endm

/* Not a leaf: the first argument is the block. */
.macro tracked_free_template
	.balign	64
	.type	tracked_free_start, @function
tracked_free_start:
	.cfi_startproc
	mov	%rax, SAVED_RAX
	mov	%rdx, SAVED_RDX
	sample_filter tracked_head, tracked_free_other
	tracked_enter tracked_free_other
	tracked_begin PAD_LAYOUT_DELETE
	mov	SAVED_RAX, %rax
	mov	SAVED_RDX, %rdx
	jmp	tracked_down
tracked_free_other:
	mov	SAVED_RAX, %rax
	mov	SAVED_RDX, %rdx
	jmp	tracked_entry
	.cfi_endproc
	.balign	64, 0xcc
.endm

.macro tracked_restore
	mov	SAVED_RCX, %rcx
	mov	SAVED_RDX, %rdx
.endm

/* The original has returned; falls through to the return to the caller, unless it is a sample. */
.macro tracked_leave head, other
	mov	%rcx, SAVED_RCX
	mov	%rdx, SAVED_RDX
	short_leaving_slot \head, \other
	cmpq	$0, PAD_SLOT_SAMPLED(%rcx)
	jne	\other
	movq	$0, PAD_SLOT_RETURN_AT(%rcx)
	tracked_restore
.endm
