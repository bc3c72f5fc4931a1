/*
 * The recorder's table and the two templates of a pad. A pad is a copy of a template with
 * its head filled in and the moved instructions at its end; all its references are pc-relative, so
 * the copy needs no fix-ups.
 *
 * The recorder's functions preserve all registers except rax and their arguments, rdi, rsi and rdx;
 * so only these are saved here. Callers inside the same library may rely on registers that the
 * original is known not to change.
 */
#include "arch/x86_64/pad_layout.h"
#include "arch/x86_64/short_template.h"
#include "arch/x86_64/sample_template.h" /* after that */
#include "arch/recorder/pad_head.h"

#define OFFSET(label) .long label - recorder_start
#define OF_RECORDER(name) OFFSET(pad_##name);

	.text
	.globl recorder_start
	.type recorder_start, @object       /* shown as data by objdump */
recorder_start:
	.long RECORDER_MAGIC
	RECORDER_NAMES(OF_RECORDER)
	OFFSET(pad_same_labels)
	OFFSET(pad_short_label_load)
	OFFSET(pad_short_label_end)

	OFFSET(call_head)
	OFFSET(call_entry)
	OFFSET(call_entry_trap)
	OFFSET(call_after)
	OFFSET(call_leave_trap)
	OFFSET(call_moved)
	OFFSET(call_end)
	OFFSET(call_back)
	OFFSET(call_return)
	OFFSET(call_tail)
	OFFSET(call_down)
	OFFSET(sample_alloc_start)
	.long 0
	.long 0

	OFFSET(tracked_head)
	OFFSET(tracked_entry)
	OFFSET(tracked_entry_trap)
	OFFSET(tracked_after)
	OFFSET(tracked_leave_trap)
	OFFSET(tracked_moved)
	OFFSET(tracked_end)
	OFFSET(tracked_back)
	OFFSET(tracked_return)
	OFFSET(tracked_tail)
	OFFSET(tracked_down)
	OFFSET(tracked_alloc_start)
	OFFSET(tracked_free_start)
	OFFSET(delete_start)

	OFFSET(plain_head)
	OFFSET(plain_entry)
	OFFSET(plain_entry_trap)
	OFFSET(plain_after)
	OFFSET(plain_leave_trap)
	OFFSET(plain_moved)
	OFFSET(plain_end)
	OFFSET(plain_back)
	OFFSET(plain_return)
	OFFSET(plain_tail)
	OFFSET(plain_down)
	.long 0
	.long 0
	.long 0

	OFFSET(jump_head)
	OFFSET(jump_entry)
	OFFSET(jump_entry_trap)
	.long 0
	.long 0
	OFFSET(jump_moved)
	OFFSET(jump_end)
	OFFSET(jump_back)
	.long 0
	.long 0
	.long 0
	.long 0
	OFFSET(sample_free_start)
	OFFSET(release_start)

	OFFSET(marker_head)
	OFFSET(marker_entry)
	OFFSET(marker_entry_trap)
	.long 0
	.long 0
	OFFSET(marker_moved)
	OFFSET(marker_end)
	OFFSET(marker_back)
	.long 0
	.long 0
	.long 0
	.long 0
	.long 0
	.long 0
	.size recorder_start, . - recorder_start

/*
 * ZF: the words from which the thread's labels follow are as they were, like pad_take_labels().
 * Calls with -8(%rsp) alone in use below the stack pointer. rcx: the slot; rsi: the control block;
 * uses rdx, rdi and r8. Where a word is not there ptmem sends the thread on to the end: the flags
 * are those of the loop then, without ZF.
 */
	.type	pad_same_labels, @function
pad_same_labels:
	.cfi_startproc
	mov	PAD_SLOT_LABEL_EPOCH(%rcx), %rdx
	cmp	PAD_CONTROL_LABEL_EPOCH(%rsi), %rdx
	jne	pad_short_label_end
	mov	PAD_SLOT_LABEL_CHECKS(%rcx), %edx
	lea	PAD_SLOT_LABEL_CHECK(%rcx), %rdi
	shl	$4, %rdx
	add	%rdi, %rdx
	jmp	2f
1:	mov	(%rdi), %r8
pad_short_label_load:
	mov	(%r8), %r8
	cmp	8(%rdi), %r8
	jne	pad_short_label_end
	add	$16, %rdi
2:	cmp	%rdx, %rdi
	jne	1b
pad_short_label_end:
	ret
	.cfi_endproc
	.size	pad_same_labels, . - pad_same_labels

/* CFI for ptmem, which unwinds from signal handlers that interrupted a pad. */
.macro pushed register
	push	\register
	.cfi_adjust_cfa_offset 8
.endm

.macro popped register
	pop	\register
	.cfi_adjust_cfa_offset -8
.endm

/* Saves the argument registers; rsp is then a struct pad_stack. */
.macro save
	pushed	%rax
	pushed	%rdi
	pushed	%rsi
	pushed	%rdx
.endm

.macro restore
	popped	%rdx
	popped	%rsi
	popped	%rdi
	popped	%rax
.endm

/*
 * Calls the recorder. If a later frame does not overwrite the return address left below the stack,
 * a ptmem without an unwinder (recovery_run.c) would take the thread to be still inside the pad.
 */
.macro record head, function
	call	*\head+\function(%rip)
	movq	$0, -8(%rsp)
.endm

.macro ask head, function
	mov	%rsp, %rdi
	lea	\head(%rip), %rsi
	mov	%rbp, %rdx
	record	\head, \function
	test	%eax, %eax
.endm

/*
 * A pad that calls the original. \ways: EXACT with the short ways of an allocation, SAMPLING with
 * the short way of leaving a call that needs no record, or 0.
 */
.set EXACT, 1
.set SAMPLING, 2
.macro call_template name, ways
	.balign	64
	.type	\name\()_head, @object
\name\()_head:
	.skip	PAD_HEAD_SIZE
	.size	\name\()_head, PAD_HEAD_SIZE
	.type	\name\()_entry, @function
\name\()_entry:
	.cfi_startproc
.if \ways == EXACT
	short_enter \name\()_head, \name\()_after, \name\()_inside, \name\()_other
	jmp	\name\()_down
\name\()_inside:
	short_inside \name\()_head, \name\()_other
	jmp	\name\()_moved
\name\()_other:
	mov	SAVED_RDX, %rdx
.endif
	save
	ask	\name\()_head, PAD_HEAD_ENTER
	restore                         /* preserves the flags */
	js	\name\()_entry_trap
	jz	\name\()_moved
\name\()_down:
	.byte	0x40, 0x53              /* push %rbx, or what pad.c replaces it by */
	.cfi_adjust_cfa_offset 8        /* with the call's 8 bytes the stack is aligned again */
	call	\name\()_moved
\name\()_after:
	lea	8(%rsp), %rsp
	.cfi_adjust_cfa_offset -8
.if \ways == EXACT
	short_leave \name\()_head, \name\()_long
	jmp	\name\()_return
\name\()_long:
	short_restore
.endif
.if \ways == SAMPLING
	tracked_leave \name\()_head, \name\()_long
	jmp	\name\()_return
\name\()_long:
	tracked_restore
.endif
	save
	ask	\name\()_head, PAD_HEAD_LEAVE
	jnz	\name\()_raw
	.cfi_remember_state
\name\()_done:
	restore
\name\()_return:
	ret
\name\()_raw:                               /* needs the stack itself, and the registers */
	.cfi_restore_state
	pushed	%r15
	pushed	%r14
	pushed	%r13
	pushed	%r12
	pushed	%rbp
	pushed	%rbx
	mov	%rsp, %rdx
	lea	48(%rsp), %rdi
	lea	\name\()_head(%rip), %rsi
	record	\name\()_head, PAD_HEAD_RAW
	lea	48(%rsp), %rsp
	.cfi_adjust_cfa_offset -48
	test	%eax, %eax
	jz	\name\()_done
\name\()_leave_trap:
	int3
	mov	%rsp, %rdi
	lea	\name\()_head(%rip), %rsi
	record	\name\()_head, PAD_HEAD_FINISH
	jmp	\name\()_done
\name\()_entry_trap:
	.cfi_def_cfa_offset 8
	int3
	jmp	\name\()_entry
\name\()_tail:
	ret                             /* while a breakpoint is at the other one */
\name\()_back:
	.skip	PAD_JUMP_SIZE, 0xcc     /* jmp to the function's entry */
\name\()_moved:
	.skip	PAD_MOVED_ROOM, 0xcc
	.cfi_endproc
\name\()_end:
.endm

sample_alloc_template
call_template call, 0
tracked_free_template
tracked_alloc_template
delete_template
call_template tracked, SAMPLING
call_template plain, EXACT

/* Short ways of the template after them. */
release_template
sample_free_template
/* A pad that records, or only checks, and jumps to the original. */
	.balign	64
	.type	jump_head, @object
jump_head:
	.skip	PAD_HEAD_SIZE
	.size	jump_head, PAD_HEAD_SIZE
	.type	jump_entry, @function
jump_entry:
	.cfi_startproc
	save
	ask	jump_head, PAD_HEAD_ENTER
	restore
	jz	jump_moved
jump_entry_trap:
	int3
	jmp	jump_entry
jump_back:
	.skip	PAD_JUMP_SIZE, 0xcc
jump_moved:
	.skip	PAD_MOVED_ROOM, 0xcc
	.cfi_endproc
jump_end:

.macro restore_marker
	pop	%rdx
	pop	%rsi
	pop	%rdi
	pop	%rax
	add	$0x7f, %al              /* overflows if there was an overflow */
	sahf
	pop	%rax
	lea	PAD_RED_ZONE(%rsp), %rsp
.endm

/*
 * A pad in the middle of a function: the memory below the stack pointer and the flags are in use.
 * Flags are not saved by pushf, which would include the trap flag of a ptmem that steps the thread:
 * popf would set it even when the tracer is gone. rsp is then a struct pad_stack whose rax holds
 * the flags, and whose return_slot holds rax.
 */
	.balign	64
	.type	marker_head, @object
marker_head:
	.skip	PAD_HEAD_SIZE
	.size	marker_head, PAD_HEAD_SIZE
	.type	marker_entry, @function
marker_entry:
	lea	-PAD_RED_ZONE(%rsp), %rsp
	push	%rax
	lahf
	seto	%al
	push	%rax
	push	%rdi
	push	%rsi
	push	%rdx
	mov	%rsp, %rdi
	lea	marker_head(%rip), %rsi
	mov	%rbp, %rdx
	record	marker_head, PAD_HEAD_ENTER
	test	%eax, %eax
	js	marker_trap
	jz	marker_done
	push	%r15                    /* needs the stack itself, and the registers */
	push	%r14
	push	%r13
	push	%r12
	push	%rbp
	push	%rbx
	mov	%rsp, %rdx
	lea	48(%rsp), %rdi
	lea	marker_head(%rip), %rsi
	record	marker_head, PAD_HEAD_RAW
	lea	48(%rsp), %rsp
	test	%eax, %eax
	jnz	marker_trap
marker_done:
	restore_marker
	jmp	marker_moved
marker_trap:
	restore_marker
marker_entry_trap:
	int3
	jmp	marker_entry
marker_moved:
	.skip	PAD_JUMP_SIZE, 0xcc     /* jmp after the marker */
marker_back:
	.skip	PAD_JUMP_SIZE, 0xcc     /* the same */
	.size	marker_entry, . - marker_entry
marker_end:

	.section .note.GNU-stack, "", @progbits
