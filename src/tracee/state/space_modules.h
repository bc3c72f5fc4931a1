/* The modules of an address space. */
#ifndef PTMEM_TRACEE_STATE_SPACE_MODULES_H
#define PTMEM_TRACEE_STATE_SPACE_MODULES_H

#include "base/types.h"
#include "base/vec.h"
#include "tracee/os/maps.h"

struct address_space;
struct module;

/* A VEC of the modules (referenced), and other executable maps. */
struct module_list {
	struct module **data; /* currently mapped, ascending */
	size_t count, capacity;
	/* unmapped ones, referenced: an object that is mapped there again gets the same id */
	VEC(struct module *) earlier;
	VEC(struct map) code; /* executable maps that belong to no module (JIT) */
	uint64_t code_hash;   /* checksum of all executable maps at the last update */
	/* pages not found in a module since code was last mapped or unmapped */
	taddr_t miss[1024];
};

/* Adds the modules of @from to the empty list @to of a fork. */
void module_list_copy(struct module_list *to, const struct module_list *from);
/* Drops everything: another program runs. */
void module_list_clear(struct module_list *list);
void module_list_deinit(struct module_list *list);

/*
 * Compares the maps with the known modules. Calls @loaded and @unloaded for each difference.
 * Unloaded modules lose their traps.
 */
typedef void space_module_fn(void *ctx, struct address_space *s, struct module *m);
int space_update_modules(struct address_space *s, space_module_fn *loaded,
			 space_module_fn *unloaded, void *ctx);

/* The known module at @pc, or NULL. */
struct module *space_find_module(const struct address_space *s, taddr_t pc);
/* Whether @addr of the file of @m is in another module: a file can have several code segments. */
bool space_in_other_module(const struct address_space *s, const struct module *m, taddr_t addr);
/* Whether @pc is in known code without a module, or was already not found. */
bool space_is_known_miss(struct address_space *s, taddr_t pc);
/* Whether @pc may be in executable memory now, according to the kernel; true if it cannot tell. */
bool space_may_be_code(const struct address_space *s, taddr_t pc);

/* Code may have been mapped or unmapped: look up pages again. */
void space_forget_misses(struct address_space *s);

#endif
