/*
 * The blob's table and the two templates of a pad. A pad is a copy of a template with
 * its head filled in and the moved instructions at its end; everything in it is
 * reached relative to itself, so nothing has to be corrected in the copy.
 *
 * The recorder's functions keep every register but rdi, rsi and rdx, which
 * carry their arguments, and rax; so these are all that is saved here: callers inside the same
 * library may rely on registers that the original is known not to change.
 */
#include "arch/x86_64/pad_layout.h"

#define OFFSET(label) .long label - blob_start

	.text
	.globl blob_start
	.type blob_start, @object       /* shown as data by objdump */
blob_start:
	.long BLOB_MAGIC
	OFFSET(pad_enter_call)
	OFFSET(pad_enter_plain)
	OFFSET(pad_enter_free)
	OFFSET(pad_enter_throw)
	OFFSET(pad_enter_marker)
	OFFSET(pad_leave)
	OFFSET(pad_leave_plain)
	OFFSET(pad_raw)
	OFFSET(pad_raw_marker)
	OFFSET(pad_finish)
	OFFSET(pad_full_trap)

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
	.size blob_start, . - blob_start

/* CFI for whoever unwinds from a signal handler that interrupted a pad. ptmem reads the return
 * address in the return slot as slot.return_pc while the guard is set. */
.macro pushed register
	push	\register
	.cfi_adjust_cfa_offset 8
.endm

.macro popped register
	pop	\register
	.cfi_adjust_cfa_offset -8
.endm

/* Saves what carries arguments; rsp is then a struct x86_pad_stack. */
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

.macro ask head, function
	mov	%rsp, %rdi
	lea	\head(%rip), %rsi
	mov	%rbp, %rdx
	call	*\head+\function(%rip)
	test	%eax, %eax
.endm

/* A pad that calls the original. */
	.balign	64
	.type	call_head, @object
call_head:
	.skip	PAD_HEAD_SIZE
	.size	call_head, PAD_HEAD_SIZE
	.type	call_entry, @function
call_entry:
	.cfi_startproc
	save
	ask	call_head, PAD_HEAD_ENTER
	restore                         /* leaves the flags */
	js	call_entry_trap
	jz	call_moved
	lea	8(%rsp), %rsp
	.cfi_adjust_cfa_offset -8       /* the return address is in the slot; the call puts its own there */
	call	call_moved
call_after:
	pushed	%rax                    /* room for the return address */
	save
	ask	call_head, PAD_HEAD_LEAVE
	jnz	call_raw
	.cfi_remember_state
call_done:
	restore
call_return:
	ret
call_raw:                               /* the stack itself is needed, with the registers */
	.cfi_restore_state
	pushed	%r15
	pushed	%r14
	pushed	%r13
	pushed	%r12
	pushed	%rbp
	pushed	%rbx
	mov	%rsp, %rdx
	lea	48(%rsp), %rdi
	lea	call_head(%rip), %rsi
	call	*call_head+PAD_HEAD_RAW(%rip)
	lea	48(%rsp), %rsp
	.cfi_adjust_cfa_offset -48
	test	%eax, %eax
	jz	call_done
call_leave_trap:
	int3
	mov	%rsp, %rdi
	lea	call_head(%rip), %rsi
	call	*call_head+PAD_HEAD_FINISH(%rip)
	jmp	call_done
call_entry_trap:
	.cfi_def_cfa_offset 8
	int3
	jmp	call_entry
call_tail:
	ret                             /* while a breakpoint stands at the other one */
call_back:
	.skip	PAD_JUMP_SIZE, 0xcc     /* jmp to the function's entry */
call_moved:
	.skip	PAD_MOVED_ROOM, 0xcc
	.cfi_endproc
call_end:

/* A pad that records, or looks, and jumps to the original. */
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
 * A pad in the midst of a function: what is below its stack pointer is in use, and so are the flags.
 * Not by pushf: that sees the trap flag of a ptmem that steps the thread, and popf would set it when
 * nobody is there any more. rsp is then a struct x86_pad_stack whose rax holds the flags, and whose
 * return_slot holds rax.
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
	call	*marker_head+PAD_HEAD_ENTER(%rip)
	test	%eax, %eax
	js	marker_trap
	jz	marker_done
	push	%r15                    /* the stack itself is needed, with the registers */
	push	%r14
	push	%r13
	push	%r12
	push	%rbp
	push	%rbx
	mov	%rsp, %rdx
	lea	48(%rsp), %rdi
	lea	marker_head(%rip), %rsi
	call	*marker_head+PAD_HEAD_RAW(%rip)
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
	.skip	PAD_JUMP_SIZE, 0xcc     /* jmp behind the marker */
marker_back:
	.skip	PAD_JUMP_SIZE, 0xcc     /* the same */
	.size	marker_entry, . - marker_entry
marker_end:

	.section .note.GNU-stack, "", @progbits
