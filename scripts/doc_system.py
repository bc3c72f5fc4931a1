"""Runs the examples that would change the system, or that build and test the source tree.

    ```console needs=root       as root, in a namespace where /proc/sys/kernel is a copy; without root in a user namespace
    ```console needs=source     in a copy of the source tree with its build; what it installs is below a directory
    ```console needs=docker     Docker parses the options (docker run ... --help); no container is started

Only their commands are shown: they must succeed. What would take minutes is not run here, but must be run by
`make check` (CHECKED), which also runs this. `make TARGET` and `scripts/NAME` in a sentence must exist; a target is run
by `make check`, or here, or is named in NOT_RUN.
"""
import os
import pathlib
import re
import shlex
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
KINDS = ("root", "source", "docker")
# command: the line of scripts/check that runs it
CHECKED = {
    "make check": r"^begin docs \$MAKE docs$",  # this very run
    "scripts/install-deps build test": r"^scripts/install-deps build test ",
    "make MODE=asan": r"^suite unit-asan \$MAKE \$jobs MODE=asan unit$",
    "make MODE=asan unit": r"^suite unit-asan \$MAKE \$jobs MODE=asan unit$",
}
NOT_RUN = {"quick": "a part of make check", "peers": "make check runs these tests, with answers that are kept",
           "bench": "takes minutes, and its figures are the machine's", "cross": "downloads packages of another CPU"}
IN_TEXT = re.compile(r"`(make|scripts/[\w.-]+)((?: [^`\n]*)?)`")
SUDO = 'set -e -o pipefail\nsudo() { "$@"; }\n'
KERNEL_SETTINGS = "mkdir -p kernel/yama; echo 1 >kernel/yama/ptrace_scope; mount --bind kernel /proc/sys/kernel\n"
IS_SET = '\ntest "$(cat /proc/sys/kernel/yama/ptrace_scope)" = 0'
RUNNING = "test -x orders || gcc -g -o orders doc/orders.c\n./orders 100 50 >/dev/null 2>&1 &\nP=$!; pidof() { echo $P; }\n"


def namespace():
    """The command that makes one in which we are root."""
    return ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-Urm"]


def may_be_root():
    try:
        return subprocess.run([*namespace(), "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0
    except OSError:
        return False


def copy_tree(directory):
    """What is built and installed, and build/release, which make finds up to date, as directory/tree."""
    tree = directory / "tree"
    if tree.exists():
        return tree
    shutil.copytree(ROOT, tree, symlinks=True, ignore=lambda path, names:
                    {"__pycache__", *(("build", ".git", "tests") if pathlib.Path(path) == ROOT else ())})
    shutil.copytree(ROOT / "build/release", tree / "build/release", symlinks=True)
    return tree


def targets():
    return re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)[1].split()


def is_checked(pattern):
    return re.search(pattern, (ROOT / "scripts/check").read_text(encoding="utf-8"), re.M) is not None


def quoted(script):
    return "'" + script.replace("'", "'\\''") + "'"


def root_script(command, _):
    if not may_be_root():
        return None, "needs root, or user namespaces"
    if "sysctl" in command:
        if not shutil.which("sysctl"):
            return None, "needs sysctl"
        command = KERNEL_SETTINGS + command + IS_SET
    elif "pidof" in command:
        command = RUNNING + re.sub(r"--duration=\d+", "--duration=0.2", command)
    return "%s bash -c %s" % (" ".join(namespace()), quoted(SUDO + command)), None


def docker_script(command, _):
    if not shutil.which("docker"):
        return None, "needs Docker"
    return command.replace(" ...", " --help"), None


def source_script(command, directory):
    if not (ROOT / "build/release/ptmem").exists():
        return None, "needs build/release"
    parts = [part for part in command.split(" && ") if part not in CHECKED]
    missing = [part for part in command.split(" && ") if part in CHECKED and not is_checked(CHECKED[part])]
    if missing:
        return "echo make check does not run: %s; false" % missing[0], None
    script = "cd %s\nexport DESTDIR=$PWD/root\n" % copy_tree(directory)
    return SUDO + script + " &&\n".join(parts or ["true"]), None


def script_of(kind, command, directory):
    """(how to run it in @directory, None), or (None, why it cannot be run here)."""
    command = re.sub(r"\s+# .*", "", command.strip())
    return {"root": root_script, "source": source_script, "docker": docker_script}[kind](command, directory)


def text_examples(text):
    """[(offset, command)] of make and scripts in sentences."""
    return [(match.start(), match[1] + match[2]) for match in IN_TEXT.finditer(text)]


def check_text(command, directory):
    """(how to run it here, None, None); without that: (None, what is wrong or None, why it is not run or None)."""
    words = shlex.split(command)
    if words[0] != "make":
        return None, None if (ROOT / words[0]).exists() else "there is no " + words[0], None
    for name in (word for word in words[1:] if "=" not in word and not word.startswith("-")):
        if name not in targets():
            return None, "make has no target " + name, None
        if name in NOT_RUN:
            return None, None, NOT_RUN[name]
        if command not in CHECKED and not is_checked(r"\$MAKE\b.* %s\b" % name):
            script, excuse = source_script(command, directory)
            return script, None, excuse
    return None, None, None
