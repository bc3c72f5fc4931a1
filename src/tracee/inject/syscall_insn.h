/* A system call instruction in the text of a space, used for injected calls. */
#ifndef PTMEM_TRACEE_INJECT_SYSCALL_INSN_H
#define PTMEM_TRACEE_INJECT_SYSCALL_INSN_H

struct address_space;
struct target;

/* Fills s->syscalls.insn. 0, or -ENOEXEC if there is none. */
int syscall_insn_find(struct target *t, struct address_space *s);

#endif
