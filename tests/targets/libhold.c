/* A library that holds a pointer in its .bss (leaks.c), and makes a system call itself (sites.c). */
void *held;

/* mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) */
long hold_mapping(long size)
{
	register long r10 __asm__("r10") = 0x22, r8 __asm__("r8") = -1, r9 __asm__("r9") = 0;
	long result;
	__asm__ volatile("syscall" : "=a"(result) : "0"(9l), "D"(0l), "S"(size), "d"(3l), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}
