/* A system call instruction of the text of a space, for calls that are injected. */
#ifndef PTMEM_TRACEE_INJECT_SYSCALL_INSN_H
#define PTMEM_TRACEE_INJECT_SYSCALL_INSN_H

struct address_space;
struct target;

/* Fills s->syscalls.insn. 0, or -ENOEXEC: there is none. */
int syscall_insn_find(struct target *t, struct address_space *s);

#endif
