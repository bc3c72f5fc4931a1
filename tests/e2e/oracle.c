/*
 * The oracle: a shim that counts what ptmem should count, from inside.
 *
 * It is called before the malloc family and the operators new and delete (by
 * LD_PRELOAD, or in a static program by ld --wrap), forwards to the next
 * definition and counts the outermost call of a thread. It never calls the
 * allocator for itself: its table of live blocks and its file are mapped.
 * The counters stand in private memory and are copied to the shared file after each
 * event, so that a forked child can continue from what it inherited; a page that the
 * kernel wipes on fork tells it that it is one. A vfork child shares the page:
 * its calls belong to the address space, as ptmem sees it.
 *
 * Must not know: how ptmem counts, but for the definitions in oracle.h.
 */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "oracle.h"

#ifdef ORACLE_STATIC
#define SHIM(name) __wrap_##name
#define REAL(name) ((__typeof__(&__real_##name))__real_##name)
#define DECLARE_REAL(ret, name, args) extern ret __real_##name args
#else
#define SHIM(name) name
#define DECLARE_REAL(ret, name, args) static ret(*next_##name) args
#define REAL(name) ((__typeof__(next_##name))find_next((void **)&next_##name, #name))
#endif

struct block {
	uintptr_t addr; /* 0 = free slot */
	uint64_t size;
	bool is_own;
	uint64_t mark; /* of the time when it was made */
};

static struct {
	struct oracle_page *page;    /* the shared file */
	struct oracle_page now;      /* the truth; page is its copy */
	struct block *blocks;
	size_t capacity, used;
	uintptr_t exe_start, exe_end;
	unsigned *generation;        /* 0 after a fork */
	int lock;
	char dir[1024];
} oracle;

#define TLS __thread __attribute__((tls_model("initial-exec")))
static TLS unsigned depth;
static TLS unsigned suspended; /* the depth at which an exception was made that was not caught yet; 0 = none */
static TLS bool is_locked;

/* ---- the table of live blocks ---- */

static void *map(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		_exit(99);
	return p;
}

static size_t slot_of(uintptr_t addr)
{
	return (addr >> 4) * 0x9e3779b97f4a7c15ull >> 20 & (oracle.capacity - 1);
}

static struct block *find(uintptr_t addr)
{
	size_t i;

	if (!oracle.capacity)
		return NULL;
	for (i = slot_of(addr); oracle.blocks[i].addr; i = (i + 1) & (oracle.capacity - 1))
		if (oracle.blocks[i].addr == addr)
			return &oracle.blocks[i];
	return NULL;
}

static void insert(struct block b)
{
	size_t i = slot_of(b.addr);

	while (oracle.blocks[i].addr)
		i = (i + 1) & (oracle.capacity - 1);
	oracle.blocks[i] = b;
	oracle.used++;
}

static void grow(void)
{
	struct block *old = oracle.blocks;
	size_t i, n = oracle.capacity;

	oracle.capacity = n ? 2 * n : 1 << 14;
	oracle.blocks = map(oracle.capacity * sizeof(*old));
	oracle.used = 0;
	for (i = 0; i < n; i++)
		if (old[i].addr)
			insert(old[i]);
	if (n)
		munmap(old, n * sizeof(*old));
}

static void take_out(struct block *b)
{
	size_t mask = oracle.capacity - 1, hole = b - oracle.blocks, i = hole;

	for (;;) {
		size_t home;

		i = (i + 1) & mask;
		if (!oracle.blocks[i].addr)
			break;
		home = slot_of(oracle.blocks[i].addr);
		if (((i - home) & mask) < ((i - hole) & mask))
			continue;
		oracle.blocks[hole] = oracle.blocks[i];
		hole = i;
	}
	oracle.blocks[hole].addr = 0;
	oracle.used--;
}

/* ---- the file ---- */

/* environ may not be set yet when the dynamic linker allocates. */
static void read_environment(void)
{
	size_t size = 1 << 20, n = 0, key_size = strlen("ORACLE_DIR=");
	char *buf = map(size), *s;
	int fd = open("/proc/self/environ", O_RDONLY | O_CLOEXEC);
	ssize_t got;

	while (fd >= 0 && n < size - 1 && (got = read(fd, buf + n, size - 1 - n)) > 0)
		n += got;
	close(fd);
	for (s = buf; s < buf + n; s += strlen(s) + 1)
		if (!strncmp(s, "ORACLE_DIR=", key_size) && strlen(s) - key_size < sizeof(oracle.dir) - 40)
			strcpy(oracle.dir, s + key_size);
	munmap(buf, size);
}

static void append_number(char *s, unsigned long n)
{
	char digits[24];
	int i = sizeof(digits) - 1;

	digits[i] = 0;
	do
		digits[--i] = '0' + n % 10;
	while (n /= 10);
	strcat(s, digits + i);
}

static void open_file(void)
{
	unsigned n;
	int fd = -1;

	for (n = 0; oracle.dir[0] && n < 1000 && fd < 0; n++) {
		char name[sizeof(oracle.dir) + 64];

		strcpy(name, oracle.dir);
		strcat(name, "/oracle.");
		append_number(name, getpid());
		strcat(name, ".");
		append_number(name, n);
		fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (fd < 0 && errno != EEXIST)
			break;
	}
	oracle.page = NULL;
	if (fd >= 0 && !ftruncate(fd, 4096)) {
		oracle.page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (oracle.page == MAP_FAILED)
			oracle.page = NULL;
	}
	close(fd);
	oracle.now.magic = ORACLE_MAGIC;
	oracle.now.pid = getpid();
	if (oracle.page)
		*oracle.page = oracle.now;
}

static void find_executable(void)
{
	const Elf64_Phdr *ph = (const void *)getauxval(AT_PHDR);
	unsigned long i, n = getauxval(AT_PHNUM);
	uintptr_t bias = 0;

	for (i = 0; i < n; i++)
		if (ph[i].p_type == PT_PHDR)
			bias = (uintptr_t)ph - ph[i].p_vaddr;
	for (i = 0; i < n; i++)
		if (ph[i].p_type == PT_LOAD && ph[i].p_flags & PF_X) {
			oracle.exe_start = bias + ph[i].p_vaddr;
			oracle.exe_end = oracle.exe_start + ph[i].p_memsz;
		}
}

/* First call of this address space, or first one after a fork. */
static void start(void)
{
	int saved = errno;

	if (!oracle.generation) {
		oracle.generation = map(4096);
		madvise(oracle.generation, 4096, MADV_WIPEONFORK);
		read_environment();
		find_executable();
		grow();
	}
	open_file();
	*oracle.generation = 1;
	errno = saved;
}

static void before_fork(void)
{
	while (__atomic_exchange_n(&oracle.lock, 1, __ATOMIC_ACQUIRE))
		sched_yield();
}

static void in_parent(void)
{
	__atomic_store_n(&oracle.lock, 0, __ATOMIC_RELEASE);
}

static void in_child(void)
{
	start();
	in_parent();
}

__attribute__((constructor)) static void construct(void)
{
	before_fork();
	if (!oracle.generation)
		start();
	in_parent();
	pthread_atfork(before_fork, in_parent, in_child);
}

/* ---- counting ---- */

static bool lock(void)
{
	if (is_locked) {
		__atomic_fetch_add(&oracle.now.missed, 1, __ATOMIC_RELAXED);
		return false;
	}
	is_locked = true;
	before_fork();
	if (!oracle.generation || !*oracle.generation)
		start();
	if (oracle.page && oracle.page->mark != oracle.now.mark) {
		oracle.now.mark = oracle.page->mark;
		oracle.now.since = (struct oracle_counts){ 0 };
	}
	return true;
}

static void unlock(void)
{
	if (oracle.page)
		memcpy(oracle.page, &oracle.now, offsetof(struct oracle_page, mark));
	in_parent();
	is_locked = false;
}

static void account(struct oracle_counts *c, int64_t bytes, int blocks)
{
	c->live_bytes += bytes;
	c->live_blocks += blocks;
	if (bytes > 0)
		c->allocated_bytes += bytes;
	if (c->live_bytes > c->peak_bytes)
		c->peak_bytes = c->live_bytes;
}

/* Whether the counts since the mark know it. */
static bool is_new(const struct block *b)
{
	return b->mark == oracle.now.mark;
}

static void add_block(void *p, uint64_t size, bool is_own)
{
	struct block *old = find((uintptr_t)p);

	if (old) { /* freed behind our back */
		account(&oracle.now.all, -(int64_t)old->size, -1);
		if (is_new(old))
			account(&oracle.now.since, -(int64_t)old->size, -1);
		take_out(old);
	}
	if (oracle.used * 2 >= oracle.capacity)
		grow();
	insert((struct block){ (uintptr_t)p, size, is_own, oracle.now.mark });
	account(&oracle.now.all, size, 1);
	oracle.now.all.allocations++;
	account(&oracle.now.since, size, 1);
	oracle.now.since.allocations++;
	if (!is_own)
		return;
	account(&oracle.now.own, size, 1);
	oracle.now.own.allocations++;
}

/* The block is out of the table, or about to be. */
static void count_removed(const struct block *b)
{
	account(&oracle.now.all, -(int64_t)b->size, -1);
	oracle.now.all.frees++;
	if (is_new(b)) {
		account(&oracle.now.since, -(int64_t)b->size, -1);
		oracle.now.since.frees++;
	} else {
		oracle.now.since.unknown_frees++;
	}
	if (!b->is_own)
		return;
	account(&oracle.now.own, -(int64_t)b->size, -1);
	oracle.now.own.frees++;
}

static bool is_own_call(void *caller)
{
	return (uintptr_t)caller >= oracle.exe_start && (uintptr_t)caller < oracle.exe_end;
}

static void count_alloc(void *p, uint64_t size, void *caller)
{
	bool is_own;

	if (depth > 1 || !lock())
		return;
	is_own = is_own_call(caller);
	if (p) {
		add_block(p, size, is_own);
	} else {
		oracle.now.all.failed++;
		oracle.now.since.failed++;
		oracle.now.own.failed += is_own;
	}
	unlock();
}

/* Before the real free: another thread may get the address at once. */
static void count_free(void *p, void *caller)
{
	struct block *b;

	if (!p || !lock())
		return;
	b = find((uintptr_t)p);
	if (depth > 1 && !b) { /* operator delete calls free; but a new-handler may free what it had kept */
		unlock();
		return;
	}
	if (b) {
		count_removed(b);
		take_out(b);
	} else {
		oracle.now.all.unknown_frees++;
		oracle.now.since.unknown_frees++;
		oracle.now.own.unknown_frees += is_own_call(caller);
	}
	unlock();
}

/* The old block leaves the table before the real realloc, its bytes after it. */
static bool realloc_begin(void *p, struct block *out)
{
	struct block *b;

	out->addr = 0;
	if (depth > 1 || !lock())
		return false;
	b = p ? find((uintptr_t)p) : NULL;
	if (b) {
		*out = *b;
		take_out(b);
	}
	unlock();
	return true;
}

static void count_moved(const struct block *old, struct block new)
{
	struct oracle_counts *all = &oracle.now.all, *own = &oracle.now.own;
	int64_t grown = new.size - old->size;

	if (find(new.addr)) /* freed behind our back */
		take_out(find(new.addr));
	insert(new);
	account(all, grown, 0);
	all->reallocations++;
	if (is_new(old)) {
		account(&oracle.now.since, grown, 0);
		oracle.now.since.reallocations++;
	} else {
		oracle.now.since.unknown_frees++;
	}
	if (old->is_own && new.is_own)
		account(own, grown, 0);
	own->reallocations += new.is_own;
}

/* @given: the address that realloc was called with; @old: its block, addr 0 if unknown. */
static void realloc_end(void *given, const struct block *old, void *p, uint64_t size, void *caller)
{
	bool is_own = is_own_call(caller);

	if (!lock())
		return;
	if (!p && size) {
		oracle.now.all.failed++;
		oracle.now.since.failed++;
		oracle.now.own.failed += is_own;
		if (old->addr)
			insert(*old);
	} else if (!given) {
		add_block(p, size, is_own);
	} else if (!old->addr) {
		oracle.now.all.unknown_frees++;
		oracle.now.since.unknown_frees++;
	} else if (p) {
		count_moved(old, (struct block){ (uintptr_t)p, size, is_own, old->mark });
	} else {
		count_removed(old);
	}
	unlock();
}

/* ---- the functions ---- */

#define CALLER __builtin_return_address(0)

/* Left on every way out, an exception through operator new included: that call has failed. */
struct scope {
	unsigned before;
	bool has_returned;
	void *caller;
};

#define ENTER() \
	struct scope scope __attribute__((cleanup(leave_scope))) = { depth, false, CALLER }; \
	depth++
static void leave_scope(struct scope *s)
{
	depth = s->before;
	if (s->has_returned)
		return;
	suspended = s->before;
	depth = 1; /* as in the call */
	if (s->before == 0)
		count_alloc(NULL, 0, s->caller);
	depth = 0; /* the exception is on its way */
}

#ifndef ORACLE_STATIC
static void *find_next(void **slot, const char *name)
{
	if (!*slot)
		*slot = dlsym(RTLD_NEXT, name);
	if (!*slot)
		_exit(98);
	return *slot;
}
#endif

DECLARE_REAL(void *, malloc, (size_t));
DECLARE_REAL(void *, calloc, (size_t, size_t));
DECLARE_REAL(void *, realloc, (void *, size_t));
DECLARE_REAL(void *, reallocarray, (void *, size_t, size_t));
DECLARE_REAL(void *, memalign, (size_t, size_t));
DECLARE_REAL(int, posix_memalign, (void **, size_t, size_t));
DECLARE_REAL(void *, aligned_alloc, (size_t, size_t));
DECLARE_REAL(void *, valloc, (size_t));
DECLARE_REAL(void *, pvalloc, (size_t));
DECLARE_REAL(void, free, (void *));

void *SHIM(malloc)(size_t size)
{
	ENTER();
	void *p = REAL(malloc)(size);

	count_alloc(p, size, CALLER);
	scope.has_returned = true;
	return p;
}

void *SHIM(calloc)(size_t n, size_t size)
{
	ENTER();
	void *p = REAL(calloc)(n, size);

	count_alloc(p, n * size, CALLER);
	scope.has_returned = true;
	return p;
}

void *SHIM(realloc)(void *old, size_t size)
{
	ENTER();
	struct block block;
	bool is_outer = realloc_begin(old, &block);
	void *p = REAL(realloc)(old, size);

	if (is_outer)
		realloc_end(old, &block, p, size, CALLER);
	scope.has_returned = true;
	return p;
}

void *SHIM(reallocarray)(void *old, size_t n, size_t size)
{
	ENTER();
	struct block block;
	bool is_outer = realloc_begin(old, &block);
	void *p = REAL(reallocarray)(old, n, size);
	size_t total;

	if (__builtin_mul_overflow(n, size, &total))
		total = SIZE_MAX;
	if (is_outer)
		realloc_end(old, &block, p, total, CALLER);
	scope.has_returned = true;
	return p;
}

void *SHIM(memalign)(size_t align, size_t size)
{
	ENTER();
	void *p = REAL(memalign)(align, size);

	count_alloc(p, size, CALLER);
	scope.has_returned = true;
	return p;
}

int SHIM(posix_memalign)(void **out, size_t align, size_t size)
{
	ENTER();
	int error = REAL(posix_memalign)(out, align, size);

	count_alloc(error ? NULL : *out, size, CALLER);
	scope.has_returned = true;
	return error;
}

void *SHIM(aligned_alloc)(size_t align, size_t size)
{
	ENTER();
	void *p = REAL(aligned_alloc)(align, size);

	count_alloc(p, size, CALLER);
	scope.has_returned = true;
	return p;
}

void *SHIM(valloc)(size_t size)
{
	ENTER();
	void *p = REAL(valloc)(size);

	count_alloc(p, size, CALLER);
	scope.has_returned = true;
	return p;
}

void *SHIM(pvalloc)(size_t size)
{
	ENTER();
	void *p = REAL(pvalloc)(size);

	count_alloc(p, size, CALLER);
	scope.has_returned = true;
	return p;
}

void SHIM(free)(void *p)
{
	ENTER();
	count_free(p, CALLER);
	REAL(free)(p);
	scope.has_returned = true;
}

#ifndef ORACLE_NO_CXX
/* The operators by their mangled names; A, B: further arguments, passed on. */
#define OPERATOR_NEW(name, params, args) \
	DECLARE_REAL(void *, name, params); \
	void *SHIM(name) params; \
	void *SHIM(name) params \
	{ \
		ENTER(); \
		void *p = REAL(name) args; \
\
		count_alloc(p, size, CALLER); \
		scope.has_returned = true; \
		return p; \
	}
#define OPERATOR_DELETE(name, params, args) \
	DECLARE_REAL(void, name, params); \
	void SHIM(name) params; \
	void SHIM(name) params \
	{ \
		ENTER(); \
		count_free(p, CALLER); \
		REAL(name) args; \
		scope.has_returned = true; \
	}

OPERATOR_NEW(_Znwm, (size_t size), (size))
OPERATOR_NEW(_Znam, (size_t size), (size))
OPERATOR_NEW(_ZnwmRKSt9nothrow_t, (size_t size, void *a), (size, a))
OPERATOR_NEW(_ZnamRKSt9nothrow_t, (size_t size, void *a), (size, a))
OPERATOR_NEW(_ZnwmSt11align_val_t, (size_t size, size_t a), (size, a))
OPERATOR_NEW(_ZnamSt11align_val_t, (size_t size, size_t a), (size, a))
OPERATOR_NEW(_ZnwmSt11align_val_tRKSt9nothrow_t, (size_t size, size_t a, void *b), (size, a, b))
OPERATOR_NEW(_ZnamSt11align_val_tRKSt9nothrow_t, (size_t size, size_t a, void *b), (size, a, b))
OPERATOR_DELETE(_ZdlPv, (void *p), (p))
OPERATOR_DELETE(_ZdaPv, (void *p), (p))
OPERATOR_DELETE(_ZdlPvm, (void *p, size_t a), (p, a))
OPERATOR_DELETE(_ZdaPvm, (void *p, size_t a), (p, a))
OPERATOR_DELETE(_ZdlPvRKSt9nothrow_t, (void *p, void *a), (p, a))
OPERATOR_DELETE(_ZdaPvRKSt9nothrow_t, (void *p, void *a), (p, a))
OPERATOR_DELETE(_ZdlPvSt11align_val_t, (void *p, size_t a), (p, a))
OPERATOR_DELETE(_ZdaPvSt11align_val_t, (void *p, size_t a), (p, a))
OPERATOR_DELETE(_ZdlPvmSt11align_val_t, (void *p, size_t a, size_t b), (p, a, b))
OPERATOR_DELETE(_ZdaPvmSt11align_val_t, (void *p, size_t a, size_t b), (p, a, b))
OPERATOR_DELETE(_ZdlPvSt11align_val_tRKSt9nothrow_t, (void *p, size_t a, void *b), (p, a, b))
OPERATOR_DELETE(_ZdaPvSt11align_val_tRKSt9nothrow_t, (void *p, size_t a, void *b), (p, a, b))

/*
 * From here on what is allocated belongs to an exception, which outlives the call that it is made in: it is no longer
 * inside that. Until the exception is caught there, or has left it (leave_scope).
 */
DECLARE_REAL(void *, __cxa_allocate_exception, (size_t));
void *SHIM(__cxa_allocate_exception)(size_t);
void *SHIM(__cxa_allocate_exception)(size_t size)
{
	if (depth > 0) {
		suspended = depth;
		depth = 0;
	}
	return REAL(__cxa_allocate_exception)(size);
}

DECLARE_REAL(void *, __cxa_begin_catch, (void *));
void *SHIM(__cxa_begin_catch)(void *);
void *SHIM(__cxa_begin_catch)(void *exception)
{
	if (suspended > 0)
		depth = suspended;
	suspended = 0;
	return REAL(__cxa_begin_catch)(exception);
}
#endif
