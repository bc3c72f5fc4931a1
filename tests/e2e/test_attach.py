"""Attach and detach: exact while attached, and without traces afterwards.

PTMEM_ATTACH_ROUNDS says how many rounds the long tests make (12); by hand: 100.
"""

import os
import pathlib
import random
import re
import signal
import subprocess
import time

import harness
import oracle
from harness import test
from process_lib import Attached, Server, catches, check_left_alone, difference, guardians, rounds, wait_state, waits_in

ROUNDS = int(os.environ.get("PTMEM_ATTACH_ROUNDS", "12"))
LIMIT = 120 + 4 * ROUNDS


@test("attach/once-more")
def once_more(t):
    """The profile of an earlier attach is not overwritten, unless the name has no process id."""
    server, cwd = Server(t), t.subdirectory()
    plain = "massif.out.%d" % server.pid

    def attach(*options):
        run = t.run([t.ptmem(), "--duration=0.1", *options, "-p", str(server.pid)], cwd=cwd)
        t.equal("status (%r)" % run.err, run.status, 0)
        texts = {}
        for name in os.listdir(cwd):
            if name.startswith(("massif.", "fixed")):
                with open(os.path.join(cwd, name), encoding="utf-8") as file:
                    texts[name] = file.read()
        return texts, run.err.decode()

    first, _ = attach("--threshold=1")
    second, said = attach("--threshold=2")
    t.equal("files", sorted(second), [plain, plain + ".earlier.1"])
    t.equal("the first profile", second[plain + ".earlier.1"], first[plain])
    t.check(re.search(r"%s, of an earlier ptmem, is now \S+%s.earlier.1\n" % (plain, plain), said), said)
    third, _ = attach("--threshold=3")
    t.equal("the others", (third[plain + ".earlier.1"], third[plain + ".earlier.2"]), (first[plain], second[plain]))
    attach("--threshold=4", "-o", "fixed")
    last, _ = attach("--threshold=5", "-o", "fixed")
    t.equal("files", sorted(last), ["fixed", *sorted(third)])
    t.check("--threshold=5" in last["fixed"], "the file with a fixed name was not replaced")
    server.end()


@test("attach/parked", limit=300)
def parked(t):
    """All threads parked at attach and detach: the numbers between are exact."""
    server = Server(t)
    maps = server.maps()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        before = server.say("p")
        # events are read once: how ptmem is asked to end changes nothing before that
        events = ["--events=events"] if number == signal.SIGINT else []
        attached = Attached(t, server.pid, [*events, "--detailed-freq=1"]).wait_attached()
        for letter in "cllt":  # without a pause: each millisecond is thousands of events to be read below
            server.say(letter)
        server.say("p")
        after = server.say("s")
        profile = attached.detach(number)
        text = "\n".join(profile.messages)
        t.check(re.search(r"attached to process \d+ \(\d+ threads? paused for \d+\.\d ms\)", text) and
                re.search(r"detached \(paused for \d+\.\d ms\)", text), "the pauses are not reported: " + text)
        check_left_alone(t, server, maps)
        t.equal("profiles", sorted(profile.files), [server.pid])
        stats, want = profile.only_stats(), difference(after, before)
        if events:
            found = profile.events("/server")
            t.counts("ptmem and its events", stats, found.all, ("allocations", "reallocations", "frees", "bytes"))
            # Blocks from before are unknown: their frees and reallocs are no events.
            t.equal("allocations", found.own["allocations"], want["allocations"])
        else:  # with those of the C library
            t.check(stats["allocations"] >= want["allocations"] > 0, "%s allocations, not %s" % (stats["allocations"], want["allocations"]))
        leaked = sum(n for p, n in profile.only_massif().snapshots[-1]["tree"].paths().items() if "server_leak" in p)
        t.check(leaked > 0, "server_leak is not in the tree")
        server.say("c")
    server.end()


@test("attach/single-stepping")
def single_stepping(t):
    """A program that stops at each instruction leaves a pad only after hundreds of stops."""
    program = subprocess.Popen([t.target("gcc-O2-pie", "stepping")], cwd=t.subdirectory(), stdin=subprocess.PIPE)

    def executable():
        with open("/proc/%d/maps" % program.pid, encoding="utf-8") as file:
            return [line for line in file if " r-x" in line or "rwx" in line or "r-xs" in line or " rw-s" in line]

    t.wait_until("the program to run", lambda: catches(program.pid, signal.SIGTRAP))  # which it does when all is loaded
    maps = executable()
    for i in range(30):
        attached = Attached(t, program.pid, ["--probes=jump"]).wait_attached()
        attached.detach()
        t.equal("mappings after detach %d" % i, executable(), maps)
    program.stdin.close()
    t.equal("status", program.wait(timeout=200), 0)


@test("attach/with-oracle")
def oracle_inside(t):
    """With the oracle inside: its counts since the mark, set while all stand still, are ptmem's."""
    server = Server(t, env={"LD_PRELOAD": t.oracle_library()})
    server.say("p")
    attached = Attached(t, server.pid).wait_attached()
    oracle.set_mark(server.cwd, server.pid, 1)
    for letter in "crtlrp" * 5:
        server.say(letter)
        time.sleep(0.05)
    page, = oracle.read_pages(server.cwd)[server.pid]
    stats = attached.detach().only_stats()
    t.counts("ptmem and the oracle", stats, page.since, SINCE)
    server.end()


# A free of an older block may be met twice, in the oracle's free and in the C library's; the peak is a
# matter of the order of threads.
SINCE = ("allocations", "reallocations", "frees", "bytes", "live", "blocks")


@test("attach/rounds", limit=LIMIT)
def long_rounds(t):
    server = Server(t)
    rounds(t, server, ROUNDS, 0.1)
    truth = server.end()
    t.equal("blocks that the server itself misses", truth["blocks"], 0)


@test("attach/rounds-at-once", limit=LIMIT)
def quick_rounds(t):
    """Detached as soon as it is attached."""
    server = Server(t, variant="clang-O0-nopie")
    rounds(t, server, ROUNDS * 3 // 4, 0.0)
    server.end()


@test("attach/killed-while-attaching", limit=LIMIT)
def early_signals(t):
    """A signal to ptmem at any moment of its start: the server continues unharmed."""
    server = Server(t)
    maps = server.maps()
    for i in range(ROUNDS // 2):
        attached = Attached(t, server.pid)
        time.sleep(0.3 * i / ROUNDS)
        attached.process.send_signal(signal.SIGTERM)
        attached.process.wait(timeout=200)
        check_left_alone(t, server, maps)
        server.say("r")
    server.end()


@test("attach/threads-created-meanwhile", limit=LIMIT)
def threads_created_meanwhile(t):
    """Threads are created and exit while ptmem attaches."""
    server = Server(t)
    for _ in range(ROUNDS // 8):
        attached = Attached(t, server.pid)
        created = 0
        while created < 40 or not attached.is_attached():
            server.say("t")
            created += 1
        for _ in range(10):
            server.say("t")
        attached.detach()
    server.end()


CROWD = """
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
static pthread_barrier_t all;
static void *live(void *arg)
{
	for (int i = 0; i < 20; i++) {
		if (i % 5 == 0)
			pthread_barrier_wait(&all);
		void *volatile p = malloc(100);
		free(p);
	}
	pthread_barrier_wait(&all);
	return arg;
}
int main(int argc, char **argv)
{
	static pthread_t thread[4000];
	int n = atoi(argv[1]);
	char c;
	pthread_attr_t attr;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 65536);
	pthread_barrier_init(&all, NULL, (unsigned)n);
	while (write(1, "\\n", 1) == 1 && read(0, &c, 1) == 1) {
		int count = c == 'a' ? n : 0;
		for (int i = 0; c == 'm' && i < 1000; i++) {
			void *volatile p = malloc(10);
			free(p);
		}
		for (int i = 0; i < count; i++)
			if (pthread_create(&thread[i], &attr, live, NULL))
				return 2;
		for (int i = 0; i < count; i++)
			pthread_join(thread[i], NULL);
	}
	return 0;
}
"""


def shared_memory(pid):
    with open("/proc/%d/maps" % pid, encoding="utf-8") as file:
        return [line for line in file if "memfd:" in line]


@test("attach/many-new-threads", limit=120)
def threads_to_come(t):
    """Many more threads than when jumps were placed: all use pads, and nothing is left of what that
    took, whether ptmem leaves or dies."""
    path = os.path.join(t.directory, "contention")
    t.equal("compiler", t.run([t.program("gcc"), "-pthread", "-o", path, t.file("crowd.c", CROWD)]).status, 0)
    program = subprocess.Popen([path, "700"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def say(letter):
        program.stdin.write(letter)
        program.stdin.flush()
        t.equal("its answer", program.stdout.read(1), b"\n")

    program.stdout.read(1)
    for is_killed in (False, True, False):
        attached = Attached(t, program.pid).wait_attached()
        say(b"m")
        say(b"m")
        t.wait_until("jumps", lambda: harness.MORE_OPTIONS or shared_memory(program.pid))
        say(b"a")
        if not harness.MORE_OPTIONS:
            t.check(len(shared_memory(program.pid)) > 2, "no slots were added: %s" % shared_memory(program.pid))
        if is_killed:
            attached.process.kill()
            attached.process.wait()
            t.wait_until("the guardian to clean up", lambda: not shared_memory(program.pid))
        else:
            stats = attached.detach().only_stats()
            t.check(stats["bytes"] >= 700 * 20 * 100, "bytes: %d" % stats["bytes"])
            stops = stats["breakpoint stops"] - stats["stops at a full ring"]
            t.check(harness.MORE_OPTIONS or stops < 10000, "stops: %d" % stops)
        t.equal("memory of ptmem in it", shared_memory(program.pid), [])
        say(b"a")
    program.communicate()
    t.equal("its status", program.returncode, 0)


BUSY = """
#include <stdlib.h>
#include <unistd.h>
int main(void)
{
	char c;
	if (write(1, "\\n", 1) != 1)
		return 1;
	for (;;) {
		for (int i = 0; i < 20; i++) {
			void *volatile p = malloc(1000);
			for (volatile int k = 0; k < 2000; k++)
				;
			free(p);
		}
		usleep(200);
	}
}
"""


@test("attach/detach-inside-a-call")
def left_in_a_call(t):
    """A thread that was inside malloc at the detach has returned long since: nothing stays because of it."""
    path = os.path.join(t.directory, "busy")
    t.equal("compiler", t.run([t.program("gcc"), "-w", "-O1", "-fno-builtin", "-o", path, t.file("busy.c", BUSY)]).status, 0)
    program = subprocess.Popen([path], stdout=subprocess.PIPE)
    program.stdout.read(1)
    for _ in range(30):
        run = t.run([t.ptmem(), "--stats", "--probes=break", "--duration=0.03", "-p", str(program.pid)])
        t.check(b"pages left mapped: 0\n" in run.err, run.err.decode())
    program.kill()
    program.wait()


@test("attach/duration")
def duration(t):
    server = Server(t)
    start = time.monotonic()
    attached = Attached(t, server.pid, ["--duration=1.5"])
    profile = attached.ended()
    took = time.monotonic() - start
    t.check(1.5 <= took, "took %.1f s" % took)
    profile.only_massif()
    server.say("r")
    server.end()


@test("attach/target-exits")
def target_ends(t):
    """The end of the target ends the profile; ptmem's status is 0."""
    server = Server(t)
    attached = Attached(t, server.pid).wait_attached()
    server.end()
    profile = attached.ended()
    profile.only_massif()
    profile.only_stats()


@test("attach/target-killed")
def target_killed(t):
    server = Server(t)
    attached = Attached(t, server.pid).wait_attached()
    time.sleep(0.1)
    server.process.kill()
    t.equal("status of the server", server.process.wait(timeout=200), -signal.SIGKILL)
    attached.ended().only_massif()


@test("attach/pause-reported")
def pause(t):
    server = Server(t)
    attached = Attached(t, server.pid).wait_attached()
    profile = attached.detach()
    text = "\n".join(profile.messages)
    t.check(re.search(r"\d+(\.\d+)? ms", text), "no pause in: " + text)
    server.end()


@test("attach/files-are-read-first")
def files_are_read_first(t):
    """No thread waits at its first breakpoint, or stopped, while ptmem reads the program's symbols and unwind rules."""
    server, calls = Server(t), os.path.join(t.subdirectory(), "calls")
    strace = [t.program("strace"), "-f", "-y", "-qq", "-o", calls, "-e", "trace=ptrace,pread64,read", "-e", "signal=none"]
    with open(calls + "-stderr", "wb") as err:
        process = subprocess.Popen([*strace, t.ptmem(), "--heap-sample=64K", "-p", str(server.pid)], cwd=os.path.dirname(calls), stdout=subprocess.DEVNULL,
                                   stderr=err, env=t.environment(os.path.dirname(calls)))
    t.wait_until("ptmem to attach", lambda: b"attached" in pathlib.Path(calls + "-stderr").read_bytes())
    server.check_progress()
    with open("/proc/%d/task/%d/children" % (process.pid, process.pid), encoding="ascii") as file:
        os.kill(int(file.read().split()[0]), signal.SIGTERM)
    t.equal("status", process.wait(timeout=200), 0)
    lines = pathlib.Path(calls).read_text(encoding="utf-8").splitlines()
    reads = re.compile(r" (pread64|read)\(\d+<.*/(server|libc\.so\.6)>")
    seized = next(i for i, line in enumerate(lines) if "PTRACE_SEIZE" in line)
    left = max(i for i, line in enumerate(lines) if "PTRACE_DETACH" in line)
    t.check(any(reads.search(line) for line in lines[:seized]), "nothing is read before")
    t.equal("reads while attached", [line for line in lines[seized:left] if reads.search(line)], [])
    server.end()


@test("attach/twice")
def twice(t):
    """A second ptmem is refused with the name of the first, which is not disturbed."""
    server = Server(t)
    first = Attached(t, server.pid).wait_attached()
    second = Attached(t, server.pid)
    t.equal("status of the second", second.process.wait(timeout=200), 125)
    t.check("ptmem" in second.errors() and str(first.process.pid) in second.errors(), second.errors())
    first.detach()
    server.end()


@test("attach/ptmem-killed")
def ptmem_killed(t):
    """SIGKILL of ptmem: the program that it had attached to lives on."""
    server = Server(t)
    attached = Attached(t, server.pid).wait_attached()
    time.sleep(0.1)
    attached.process.kill()
    attached.process.wait()
    for _ in range(20):
        server.say("r")
    t.wait_until("the guardian to end", lambda: not guardians(t))
    t.equal("files whose text differs", server.text(), [])
    server.end()


@test("attach/stopped-target")
def stopped_target(t):
    """Attached while it is stopped by SIGSTOP: stays stopped, continues with SIGCONT; its parent
    sees each stop once. Detached while stopped: stays stopped."""
    server = Server(t)
    os.kill(server.pid, signal.SIGSTOP)
    t.equal("stop", os.waitpid(server.pid, os.WUNTRACED)[1], 0x137f)
    attached = Attached(t, server.pid).wait_attached()
    t.equal("a second report", os.waitpid(server.pid, os.WUNTRACED | os.WNOHANG), (0, 0))
    wait_state(t, server.pid, "Tt")
    os.kill(server.pid, signal.SIGCONT)
    t.check(os.WIFCONTINUED(os.waitpid(server.pid, os.WCONTINUED)[1]), "no report of SIGCONT")
    server.say("r")
    os.kill(server.pid, signal.SIGSTOP)
    t.equal("stop", os.waitpid(server.pid, os.WUNTRACED)[1], 0x137f)
    attached.detach()
    wait_state(t, server.pid, "T")
    time.sleep(0.05)
    wait_state(t, server.pid, "T")
    t.equal("files whose text differs", server.text(), [])
    os.kill(server.pid, signal.SIGCONT)
    server.say("r")
    server.end()


@test("attach/stopped-and-continued", limit=LIMIT)
def stopped_and_continued(t):
    """SIGSTOP and SIGCONT at any moment of attach, promotion and detach: the final SIGCONT takes effect."""
    server = Server(t, threads=2)
    maps = server.maps()
    chance = random.Random(8)
    for i in range(ROUNDS // 3):
        attached = Attached(t, server.pid, ["--probes=" + ("auto", "break", "jump")[i % 3]])
        end = time.monotonic() + 0.1 + chance.random() * 0.2
        is_leaving = False
        while attached.process.poll() is None:
            os.kill(server.pid, signal.SIGSTOP)
            time.sleep(chance.choice((0, 0, chance.random() * 0.001)))
            os.kill(server.pid, signal.SIGCONT)
            time.sleep(chance.random() * 0.002)
            if not is_leaving and time.monotonic() > end and "attached" in attached.errors():
                server.check_progress()
                attached.process.send_signal(signal.SIGINT)
                is_leaving = True
        t.equal("status of ptmem (%s)" % attached.errors(), attached.process.returncode, 0)
        server.check_progress()
    t.wait_until("no thread to be stopped", lambda: not [s for s in server.status("State").values() if s in "tT"])
    check_left_alone(t, server, maps)
    server.end()


def is_waiting_in(pid, names):
    numbers = {"epoll_wait": 232, "epoll_pwait": 281, "poll": 7, "wait4": 61, "read": 0, "nanosleep": 230}
    return waits_in(pid, *(numbers[n] for n in names))


def stop_while_waiting(t, pid):
    """SIGSTOPs the process at a moment when its main thread waits for events, outside the allocator."""
    def is_stopped_there():
        os.kill(pid, signal.SIGSTOP)
        wait_state(t, pid, "Tt")
        if is_waiting_in(pid, ("epoll_wait", "epoll_pwait")):
            return True
        os.kill(pid, signal.SIGCONT)
        return False
    t.wait_until("the process to wait", is_stopped_there)


@test("programs/redis-attached", limit=120)
def redis(t):
    """redis-server under redis-benchmark, attached while it runs; the oracle is inside, and both ends
    of the count are taken while the server is stopped between two events."""
    server_path, benchmark = t.program("redis-server"), t.program("redis-benchmark")
    client = t.program("redis-cli")
    cwd = t.subdirectory()
    socket = os.path.join(cwd, "socket")
    server = subprocess.Popen([server_path, "--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no",
                               "--dir", cwd, "--io-threads", "1"], cwd=cwd,
                              env=t.environment(cwd, LD_PRELOAD=t.oracle_library()),
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    cli = [client, "-s", socket]
    t.wait_until("redis to answer", lambda: t.run([*cli, "ping"]).out == b"PONG\n")
    stop_while_waiting(t, server.pid)
    attached = Attached(t, server.pid).wait_attached()
    oracle.set_mark(cwd, server.pid, 1)
    os.kill(server.pid, signal.SIGCONT)
    run = t.run([benchmark, "-s", socket, "-n", "2000", "-c", "10", "-q", "-t", "set,get,lpush,lrange_100,mset"])
    t.equal("status of the benchmark", run.status, 0)
    t.equal("answer", t.run([*cli, "set", "key", "value"]).out, b"OK\n")
    t.equal("answer", t.run([*cli, "get", "key"]).out, b"value\n")
    stop_while_waiting(t, server.pid)
    (page,) = oracle.read_pages(cwd)[server.pid]
    profile = attached.detach()
    os.kill(server.pid, signal.SIGCONT)
    t.counts("ptmem and the oracle", profile.only_stats(), page.since, SINCE)
    profile.only_massif()
    t.equal("answer after detach", t.run([*cli, "get", "key"]).out, b"value\n")
    t.run([*cli, "shutdown", "nosave"])
    t.equal("status of redis", server.wait(timeout=200), 0)


@test("attach/queued-signals", limit=LIMIT)
def queued_signals(t):
    """Signals with values and SIGTRAPs of the program's own, through attach, promotion and detach."""
    target = subprocess.Popen([t.target("gcc-O2-pie", "queued"), str(ROUNDS // 4)], cwd=t.directory, env=t.environment(t.directory),
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    chance = random.Random(4)
    while target.poll() is None:
        attached = Attached(t, target.pid, ["--probes=" + chance.choice(("auto", "jump", "break"))])
        time.sleep(0.1 + chance.random() * 0.2)
        if target.poll() is not None or attached.process.poll() is not None:
            attached.process.kill()
            attached.process.wait()
            break
        attached.process.send_signal(signal.SIGINT)
        attached.process.wait(timeout=200)
    out = target.communicate(timeout=200)[0]
    t.equal("what it says", out, b"OK\n")
    t.equal("status", target.returncode, 0)


@test("attach/target-killed-at-once", limit=LIMIT)
def target_killed_at_once(t):
    """The target dies by SIGKILL at any moment of attach, promotion or detach: ptmem reports it, and ends."""
    chance = random.Random(7)
    for i in range(ROUNDS):
        target = subprocess.Popen([t.target("gcc-O2-pie", "queued"), "3600"], cwd=t.directory,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        attached = Attached(t, target.pid, ["--probes=" + ("jump", "auto", "break")[i % 3]])
        if i % 2:
            attached.wait_attached()
            attached.process.send_signal(signal.SIGINT)
            time.sleep(chance.random() * 0.01)
        else:
            time.sleep(chance.random() * 0.06)
        target.kill()
        target.wait()
        status = attached.process.wait(timeout=200)
        t.check(status in (0, 125), "status of ptmem: %s, %s" % (status, attached.errors()))
        t.check("internal error" not in attached.errors(), attached.errors())


def says(cwd, text):
    with open(os.path.join(cwd, "err"), encoding="utf-8", errors="replace") as err:
        return text in err.read()


def is_shell(pid):
    return os.path.basename(os.path.realpath("/proc/%d/exe" % pid)) == os.path.basename(os.path.realpath("/bin/sh"))


@test("attach/during-execve", limit=120)
def while_it_executes(t):
    """At any moment of its execve, and after it: the new program is profiled, or the old one was, which is reported."""
    ptmem = t.ptmem()
    for i in range(21):
        cwd = t.subdirectory()
        read_end, write_end = os.pipe()
        end_read, end_write = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(write_end)
            os.close(end_write)
            os.read(read_end, 1)
            os.dup2(end_read, 0)
            os.execve("/bin/sh", ["sh", "-c", "x=$(true); read x; true | true"], t.environment(cwd))
        os.close(read_end)
        os.close(end_read)
        if i == 20:
            os.close(write_end)
            t.wait_until("the shell", lambda p=pid: is_shell(p))
        with open(os.path.join(cwd, "err"), "wb") as err:
            tracer = subprocess.Popen([ptmem, "--stats", "-p", str(pid)], cwd=cwd, env=t.environment(cwd), stderr=err)
        if i < 20:
            time.sleep(i / 20 * 0.012)
            os.close(write_end)
        t.wait_until("ptmem to attach", lambda: tracer.poll() is not None or says(cwd, "attached"))
        os.write(end_write, b"\n")
        os.close(end_write)
        t.equal("status of the program", os.waitpid(pid, 0)[1], 0)
        t.equal("status of ptmem", tracer.wait(timeout=200), 0)
        with open(os.path.join(cwd, "err"), encoding="utf-8", errors="replace") as err:
            text = err.read()
        is_watched = "watched functions: 0\n" not in text and "watched functions: " in text
        t.check(is_watched or i < 20 and "it executed /" in text, "nothing is watched: " + text)
