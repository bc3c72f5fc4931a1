/* The modules of an address space. */
#ifndef PTMEM_TRACEE_STATE_SPACE_MODULES_H
#define PTMEM_TRACEE_STATE_SPACE_MODULES_H

#include "base/types.h"
#include "base/vec.h"
#include "tracee/os/maps.h"

struct address_space;
struct module;

/* A VEC of the modules (held), and what else is executable. */
struct module_list {
	struct module **data; /* mapped now, ascending */
	size_t count, capacity;
	VEC(struct map) code; /* executable maps that belong to no module (JIT) */
	uint64_t code_hash;   /* of all that was executable at the last update */
	/* pages that were looked up in vain since code was mapped or unmapped */
	taddr_t miss[1024];
};

/* Adds what @from has to the empty list @to of a fork. */
void module_list_copy(struct module_list *to, const struct module_list *from);
/* Forgets all: another program runs. */
void module_list_clear(struct module_list *list);
void module_list_deinit(struct module_list *list);

/*
 * Compares the maps with what is known. @loaded and @unloaded are called for each
 * difference. Unloaded modules lose their traps.
 */
typedef void space_module_fn(void *ctx, struct address_space *s, struct module *m);
int space_update_modules(struct address_space *s, space_module_fn *loaded,
			 space_module_fn *unloaded, void *ctx);

/* The module at @pc by what is known, NULL if none. */
struct module *space_find_module(const struct address_space *s, taddr_t pc);
/*
 * Whether @addr of the file of @m is in another module: one file can have several segments of code.
 */
bool space_in_other_module(const struct address_space *s, const struct module *m, taddr_t addr);
/* Whether @pc lies in known code without a module, or was already looked up in vain. */
bool space_is_known_miss(struct address_space *s, taddr_t pc);
/* Whether @pc may be mapped as code now, by what the kernel says; true where it cannot be asked. */
bool space_may_be_code(const struct address_space *s, taddr_t pc);

/* Code may be mapped or unmapped: looks pages up again. */
void space_forget_misses(struct address_space *s);

#endif
