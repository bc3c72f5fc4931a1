/*
 * The short ways of sampling pads: a call that is not sampled, and a free of a block that is not a
 * sample. Each precedes a template of recorder_template.S, shares its head, and falls through to it
 * in all other cases: no slot yet, inside another call, sampled. By then nothing has been changed.
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

/* A leaf whose first argument is the size. */
.macro sample_alloc_template
	.balign	64
	.type	sample_alloc_start, @function
sample_alloc_start:
	.cfi_startproc
	push	%rdx
	.cfi_adjust_cfa_offset 8
	sample_find_slot call_head, sample_alloc_other
	mov	PAD_SLOT_LEFT(%rax), %rdx
	sub	%rdi, %rdx
	jb	sample_alloc_other
	mov	%rdx, PAD_SLOT_LEFT(%rax)
	movzbl	(call_head + PAD_HEAD_FUNCTION)(%rip), %edx
	shl	$4, %edx
	incq	PAD_SLOT_COUNT(%rax, %rdx)
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
	mov	%rdi, %rdx              /* pad_filter_hash */
	shr	$4, %rdx
	mov	%rdx, %rax
	shr	$PAD_LAYOUT_FILTER_BITS, %rax
	xor	%rax, %rdx
	and	$((1 << PAD_LAYOUT_FILTER_BITS) - 1), %edx
	mov	jump_head(%rip), %rax
	cmpl	$0, PAD_LAYOUT_FILTER(%rax, %rdx, 4)
	jne	sample_free_other
	sample_find_slot jump_head, sample_free_other
	movzbl	(jump_head + PAD_HEAD_FUNCTION)(%rip), %edx
	shl	$4, %edx
	incq	PAD_SLOT_COUNT(%rax, %rdx)
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
