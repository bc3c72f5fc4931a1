/* The recorder to be copied into targets; built and checked by scripts/make-recorder. */
	.section .rodata
	.globl	x86_64_recorder, x86_64_recorder_end, x86_64_recorder_elf, x86_64_recorder_elf_end
	.balign	64
x86_64_recorder:
	.incbin	RECORDER_FILE
x86_64_recorder_end:
	.balign	64
x86_64_recorder_elf:
	.incbin	RECORDER_ELF
x86_64_recorder_elf_end:
	.section .note.GNU-stack, "", @progbits
