"""container.py ROOT PROGRAM [ARGUMENT...]: executes PROGRAM with ROOT as the root directory of its mount namespace,
which has no other file system, as container runtimes do. The caller has made the namespace, by unshare --mount."""

import ctypes
import os
import sys

MS_BIND, MS_REC, MS_PRIVATE, MNT_DETACH, SYS_PIVOT_ROOT = 1 << 12, 1 << 14, 1 << 18, 2, 155
LIBC = ctypes.CDLL(None, use_errno=True)


def check(result, what):
    if result != 0:
        sys.exit("%s: %s" % (what, os.strerror(ctypes.get_errno())))


def enter(root):
    name = root.encode()
    check(LIBC.mount(None, b"/", None, ctypes.c_ulong(MS_REC | MS_PRIVATE), None), "making mounts private")
    check(LIBC.mount(name, name, None, ctypes.c_ulong(MS_BIND | MS_REC), None), "mount")
    os.chdir(root)
    check(LIBC.syscall(SYS_PIVOT_ROOT, b".", b"."), "pivot_root")
    check(LIBC.umount2(b".", MNT_DETACH), "umount")
    os.chdir("/")


if __name__ == "__main__":
    enter(sys.argv[1])
    os.execv(sys.argv[2], sys.argv[2:])
