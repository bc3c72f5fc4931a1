/*
 * The recorder's table and the two templates of a pad. A pad is a copy of a template with its head
 * filled in and the moved instruction at its end; all its references are pc-relative, so the copy
 * needs no fix-ups.
 *
 * The recorder's functions preserve all registers except x0, their arguments x0 to x2, and x16 and
 * x17, which any call may change on its way; so only these are saved here. Pages of pads are not
 * guarded (PROT_BTI).
 */
#include "arch/aarch64/pad_layout.h"
#include "arch/recorder/pad_head.h"

#define OFFSET(label) .long label - recorder_start
#define OF_RECORDER(name) OFFSET(pad_##name);

	.text
	.globl recorder_start
	.type recorder_start, %object
recorder_start:
	.long RECORDER_MAGIC
	RECORDER_NAMES(OF_RECORDER)

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
	.size recorder_start, . - recorder_start

/* Saves the argument registers; sp is then a struct pad_stack. */
.macro save
	stp	x0, x1, [sp, #-PAD_SAVE_SIZE]!
	.cfi_adjust_cfa_offset PAD_SAVE_SIZE
	str	x2, [sp, #16]
.endm

.macro restore
	ldr	x2, [sp, #16]
	ldp	x0, x1, [sp], #PAD_SAVE_SIZE
	.cfi_adjust_cfa_offset -PAD_SAVE_SIZE
.endm

/* The return address of the function that was called, and @mark below it. */
.macro push_link mark
	stp	\mark, x30, [sp, #-PAD_PUSHED_SIZE]!
	.cfi_adjust_cfa_offset PAD_PUSHED_SIZE
	.cfi_offset 30, -8
.endm

.macro pop_link
	ldr	x30, [sp, #8]
	add	sp, sp, #PAD_PUSHED_SIZE
	.cfi_adjust_cfa_offset -PAD_PUSHED_SIZE
	.cfi_restore 30
.endm

.macro record head, function
	ldr	x16, \head + \function
	blr	x16
.endm

.macro ask head, function
	mov	x0, sp
	adr	x1, \head
	mov	x2, x29
	record	\head, \function
	mov	w17, w0
.endm

/* A pad that calls the original. */
	.balign	64
	.type	call_head, %object
call_head:
	.skip	PAD_HEAD_SIZE
	.size	call_head, PAD_HEAD_SIZE
	.type	call_entry, %function
call_entry:
	.cfi_startproc
	adr	x16, call_after
	push_link x16
	save
	ask	call_head, PAD_HEAD_ENTER
	restore
	.cfi_remember_state
	tbnz	w17, #31, call_trap
	cbz	w17, call_straight
	bl	call_moved
call_after:
	save
	ask	call_head, PAD_HEAD_LEAVE
	cbnz	w17, call_raw
call_done:
	restore
	pop_link
call_return:
	ret
call_straight:
	.cfi_restore_state
	.cfi_remember_state
	pop_link
	b	call_moved
call_trap:
	.cfi_restore_state
	.cfi_remember_state
	pop_link
call_entry_trap:
	brk	#0
	b	call_entry
call_raw:                               /* needs the stack itself, and the registers */
	.cfi_restore_state
	.cfi_adjust_cfa_offset PAD_SAVE_SIZE
	stp	x19, x20, [sp, #-PAD_RAW_SIZE]!
	.cfi_adjust_cfa_offset PAD_RAW_SIZE
	stp	x21, x22, [sp, #16]
	stp	x23, x24, [sp, #32]
	stp	x25, x26, [sp, #48]
	stp	x27, x28, [sp, #64]
	str	x29, [sp, #80]
	mov	x2, sp
	add	x0, sp, #PAD_RAW_SIZE
	adr	x1, call_head
	record	call_head, PAD_HEAD_RAW
	add	sp, sp, #PAD_RAW_SIZE
	.cfi_adjust_cfa_offset -PAD_RAW_SIZE
	cbz	w0, call_done
	ldr	x30, [sp, #PAD_SAVE_SIZE + 8]   /* the caller, for ptmem */
call_leave_trap:
	brk	#0
	mov	x0, sp
	adr	x1, call_head
	record	call_head, PAD_HEAD_FINISH
	b	call_done
call_tail:
	.cfi_def_cfa_offset 0
	.cfi_restore 30
	ret                             /* while a breakpoint is at the other one */
call_back:
	.skip	4                       /* b to the function's entry */
call_moved:
	.skip	PAD_MOVED_ROOM
	.cfi_endproc
call_end:

/* A pad that records, or only checks, and jumps to the original. */
	.balign	64
	.type	jump_head, %object
jump_head:
	.skip	PAD_HEAD_SIZE
	.size	jump_head, PAD_HEAD_SIZE
	.type	jump_entry, %function
jump_entry:
	.cfi_startproc
	push_link xzr
	save
	ask	jump_head, PAD_HEAD_ENTER
	restore
	pop_link
	cbz	w17, jump_moved
jump_entry_trap:
	brk	#0
	b	jump_entry
jump_back:
	.skip	4
jump_moved:
	.skip	PAD_MOVED_ROOM
	.cfi_endproc
jump_end:
	.section .note.GNU-stack, "", %progbits
