/*
 * selfread: reads its own code and maps while it allocates. The code of the executable, which
 * defines no function of the malloc family, must equal the file.
 */
#include "truth.h"

#include <elf.h>
#include <sys/auxv.h>

static unsigned char image[1 << 20];

static size_t load(const char *name)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	size_t n = 0;
	ssize_t got;

	CHECK(fd >= 0);
	while ((got = read(fd, image + n, sizeof(image) - n)) > 0)
		n += (size_t)got;
	CHECK(!got && n < sizeof(image));
	close(fd);
	return n;
}

static void compare_text(void)
{
	const Elf64_Ehdr *eh = (const void *)image;
	const Elf64_Phdr *ph, *running = (const void *)getauxval(AT_PHDR);
	const unsigned char *base;

	CHECK(load("/proc/self/exe") > sizeof(*eh));
	ph = (const void *)(image + eh->e_phoff);
	base = (const unsigned char *)running - eh->e_phoff; /* the headers lie in the first segment */
	for (int i = 0; i < eh->e_phnum; i++)
		if (ph[i].p_type == PT_LOAD && ph[i].p_flags & PF_X)
			CHECK(!memcmp(base + ph[i].p_vaddr - ph[0].p_vaddr + ph[0].p_offset,
				      image + ph[i].p_offset, ph[i].p_filesz) ||
			      eh->e_type != ET_DYN);
}

int main(void)
{
	for (int i = 0; i < 20; i++) {
		void *p = t_malloc(1000);

		compare_text();
		CHECK(load("/proc/self/maps") > 100);
		t_free(p, 1000);
	}
	truth_report();
	print_ok();
	return 0;
}
