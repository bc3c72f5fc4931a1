/*
 * own_malloc [with anything: attached to]: a static program without a C library, so that its thread pointer is 0,
 * with a malloc and a free of its own. Makes 100 blocks of 0 to 99 bytes and releases every other one; if it has an
 * argument, for each byte of its input. Exits with 3.
 */
static long call(long number, long a, long b, long c)
{
	long result;

	__asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
	return result;
}

static char heap[1 << 24];
static unsigned long used;

__attribute__((noinline)) void *malloc(unsigned long size)
{
	void *p = heap + used;

	used = (used + size + 16) / 16 * 16 % (sizeof(heap) / 2);
	return p;
}

__attribute__((noinline)) void free(void *p)
{
	__asm__ volatile("nop; nop; nop; nop" : : "r"(p) : "memory");
}

static void work(void)
{
	for (int i = 0; i < 100; i++) {
		void *p = malloc((unsigned long)i);

		__asm__ volatile("" : "+r"(p));
		if (i & 1)
			free(p);
	}
}

__attribute__((used)) static void run(long count)
{
	char c;

	if (count == 1)
		work();
	while (count > 1 && call(0, 0, (long)&c, 1) > 0) {
		work();
		call(1, 1, (long)&c, 1);
	}
	call(231, 3, 0, 0);
}

__asm__(".globl _start\n"
	"_start: mov (%rsp), %rdi\n"
	"and $-16, %rsp\n"
	"call run\n");
