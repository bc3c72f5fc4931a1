/* The recorder to be copied into targets; built and checked by scripts/make-recorder. */
	.section .rodata
	.globl	aarch64_recorder, aarch64_recorder_end
	.globl	aarch64_recorder_elf, aarch64_recorder_elf_end
	.balign	64
aarch64_recorder:
	.incbin	RECORDER_FILE
aarch64_recorder_end:
	.balign	64
aarch64_recorder_elf:
	.incbin	RECORDER_ELF
aarch64_recorder_elf_end:
	.section .note.GNU-stack, "", %progbits
