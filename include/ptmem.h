/*
 * ptmem.h: tells ptmem what an allocator of your own allocates and frees.
 *
 *	PTMEM_ALLOC(ptr, size)            size bytes at ptr are in use from now on
 *	PTMEM_FREE(ptr)                   and no more; before the memory may be given to others
 *	PTMEM_REALLOC(old, ptr, size)     the block at old is now at ptr and has size bytes;
 *	                                  ptr NULL and size not 0: that failed, nothing happens
 *
 * The call path that ptmem shows begins at the function that uses the macro. Use
 * --alloc-fn=FUNCTION where that is your allocator's own. NULL is no block.
 *
 * Without ptmem each costs one instruction without effect and two registers. They are
 * probes as systemtap, bpftrace, perf and gdb know them, too: ptmem:alloc with arguments
 * pointer and size, ptmem:free with a pointer (section .note.stapsdt). Nothing is
 * linked, nothing is called. Where the compiler or the machine is another than gcc or
 * clang for 64-bit x86 Linux, or PTMEM_DISABLE is defined, they are nothing at all.
 *
 * MIT licence, as ptmem itself:
 *
 * Permission is hereby granted, free of charge, to any person obtaining a copy of this
 * file, to deal in it without restriction, including without limitation the rights to
 * use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of it,
 * provided that this notice is kept in all copies or substantial portions of it. It is
 * provided "as is", without warranty of any kind, express or implied; the authors are
 * not liable for any claim, damages or other liability that arises from its use.
 */
#ifndef PTMEM_H
#define PTMEM_H

#if defined(__x86_64__) && defined(__LP64__) && defined(__ELF__) && defined(__GNUC__) && !defined(PTMEM_DISABLE)

/* An instruction that a jump fits into, and the note that says where it is and what its arguments are. */
#define PTMEM_PROBE_(name, arguments)                                      \
	"990:	.byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n"                      \
	"	.pushsection .note.stapsdt, \"?\", \"note\"\n"             \
	"	.balign 4\n"                                               \
	"	.4byte 992f - 991f, 994f - 993f, 3\n"                      \
	"991:	.asciz \"stapsdt\"\n"                                      \
	"992:	.balign 4\n"                                               \
	"993:	.8byte 990b, _.stapsdt.base, 0\n"                          \
	"	.asciz \"ptmem\"\n"                                        \
	"	.asciz \"" name "\"\n"                                     \
	"	.asciz \"" arguments "\"\n"                                \
	"994:	.balign 4\n"                                               \
	"	.popsection\n"                                             \
	"	.ifndef _.stapsdt.base\n"                                  \
	"	.pushsection .stapsdt.base, \"aG\", \"progbits\", .stapsdt.base, comdat\n" \
	"	.weak _.stapsdt.base\n"                                    \
	"	.hidden _.stapsdt.base\n"                                  \
	"_.stapsdt.base:\n"                                                \
	"	.space 1\n"                                                \
	"	.size _.stapsdt.base, 1\n"                                 \
	"	.popsection\n"                                             \
	"	.endif\n"

#define PTMEM_ALLOC(ptr, size)                                             \
	__asm__ __volatile__(PTMEM_PROBE_("alloc", "8@%%rdi 8@%%rsi")      \
			     : : "D"((unsigned long)(ptr)), "S"((unsigned long)(size)) : "memory")

#define PTMEM_FREE(ptr)                                                    \
	__asm__ __volatile__(PTMEM_PROBE_("free", "8@%%rdi")               \
			     : : "D"((unsigned long)(ptr)) : "memory")

#define PTMEM_REALLOC(old, ptr, size)                                      \
	do {                                                               \
		unsigned long ptmem_old_ = (unsigned long)(old);           \
		unsigned long ptmem_ptr_ = (unsigned long)(ptr);           \
		unsigned long ptmem_size_ = (unsigned long)(size);         \
		if (ptmem_ptr_ || !ptmem_size_)                            \
			PTMEM_FREE(ptmem_old_);                            \
		if (ptmem_ptr_)                                            \
			PTMEM_ALLOC(ptmem_ptr_, ptmem_size_);              \
	} while (0)

#else

#define PTMEM_ALLOC(ptr, size) ((void)(ptr), (void)(size))
#define PTMEM_FREE(ptr) ((void)(ptr))
#define PTMEM_REALLOC(old, ptr, size) ((void)(old), (void)(ptr), (void)(size))

#endif

#endif
