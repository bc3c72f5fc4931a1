/* The recorder as it is copied into targets; built and checked by scripts/make-blob. */
	.section .rodata
	.globl	x86_64_blob, x86_64_blob_end, x86_64_blob_elf, x86_64_blob_elf_end
	.balign	64
x86_64_blob:
	.incbin	BLOB_FILE
x86_64_blob_end:
	.balign	64
x86_64_blob_elf:
	.incbin	BLOB_ELF
x86_64_blob_elf_end:
	.section .note.GNU-stack, "", @progbits
