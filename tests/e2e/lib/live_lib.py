"""Programs with a monitor or an address at which they answer."""

import http.client
import json
import os
import re
import socket
import subprocess

import massif
from harness import BUILD


class Monitored:
    """targets/monitored under ptmem, at its first line."""

    def __init__(self, t, options=(), attach=False, before=(), **env):
        self.t, self.cwd = t, t.subdirectory()
        self.env = t.environment(self.cwd, XDG_RUNTIME_DIR=self.cwd, **env)
        program, own = [t.target("gcc-O2-pie", "monitored")], [*before, t.ptmem(), "--time-unit=B", *options]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self.program = None
        if attach:
            self.program = subprocess.Popen(program, cwd=self.cwd, env=self.env, **pipes)
            self.expect(self.program, b"ready\n")
            self.ptmem = subprocess.Popen([*own, "-p", str(self.program.pid)], cwd=self.cwd, env=self.env, **pipes)
            t.wait_until("attached", self.has_socket)
        else:
            self.ptmem = subprocess.Popen([*own, "--", *program], cwd=self.cwd, env=self.env, **pipes)
            self.expect(self.ptmem, b"ready\n")

    def has_socket(self):
        directory = os.path.join(self.cwd, "ptmem")
        return os.path.isdir(directory) and any(name.endswith(".sock") for name in os.listdir(directory))

    def expect(self, process, line):
        self.t.equal("the program's line", process.stdout.readline(), line)

    def more(self, letter=b"x"):
        process = self.program or self.ptmem
        process.stdin.write(letter)
        process.stdin.flush()
        self.expect(process, b"more\n")

    def target_pid(self):
        if self.program:
            return self.program.pid
        with open("/proc/%d/task/%d/children" % (self.ptmem.pid, self.ptmem.pid), encoding="ascii") as file:
            return int(file.read().split()[0])

    def say(self, *words, pid=None, cwd=None):
        return self.t.run([self.t.ptmem(), "--monitor=%d" % (pid or self.ptmem.pid), *words], cwd=cwd or self.cwd,
                          env={"XDG_RUNTIME_DIR": self.cwd}, timeout=200)

    def end(self, status=5):
        """The program's input ends; returns ptmem's messages."""
        (self.program or self.ptmem).stdin.close()
        err = self.ptmem.stderr.read()
        self.t.equal("status", self.ptmem.wait(), status)
        return err.decode()

    def read(self, name, cwd=None):
        return massif.Massif(os.path.join(cwd or self.cwd, name))


def comm(pid):
    with open("/proc/%s/comm" % pid, "rb") as file:
        return file.read().rstrip(b"\n")


class Listening(Monitored):
    """targets/monitored under ptmem --listen, at its first line."""

    def __init__(self, t, options=(), listen="--listen", **how):
        super().__init__(t, [listen, "--log-file=log", *options], **how)
        t.wait_until("listening", lambda: self.url() is not None)
        self.server_pid = self.server()

    def log(self):
        with open(os.path.join(self.cwd, "log"), encoding="utf-8") as file:
            return file.read()

    def url(self):
        if not os.path.exists(os.path.join(self.cwd, "log")):
            return None
        found = re.search(r"listening at (http://\S+/)\n", self.log())
        return found and found[1]

    def address(self):
        host, port = re.fullmatch(r"http://(.*):(\d+)/", self.url()).groups()
        return host.strip("[]"), int(port)

    def connect(self):
        return socket.create_connection(self.address(), timeout=200)

    def ask(self, path, **headers):
        """(status, body)"""
        connection = http.client.HTTPConnection(*self.address(), timeout=200)
        connection.request("GET", path, headers={k.replace("_", "-"): v for k, v in headers.items()})
        answer = connection.getresponse()
        body = answer.read()
        self.headers = dict(answer.getheaders())
        connection.close()
        return answer.status, body

    def get(self, path, status=200, **headers):
        """The body."""
        found, body = self.ask(path, **headers)
        self.t.equal("status of %s (%r)" % (path, body[:100]), found, status)
        return body

    def metrics(self, **headers):
        """{name: value} of the samples of one process."""
        return {m[1]: float(m[2]) for m in re.finditer(r"^(\w+)(?:\{.*\})? (\S+)$", self.get("/metrics", **headers).decode(), re.M)}

    def live(self):
        return self.metrics()["ptmem_heap_live_bytes"]

    def report(self, *options):
        """What ptmem-report reads from /recording."""
        path = os.path.join(self.cwd, "fetched")
        with open(path, "wb") as file:
            file.write(self.get("/recording"))
        result = self.t.run([os.path.join(BUILD, "ptmem-report"), *options, path])
        self.t.equal("status of ptmem-report (%s)" % result.err.decode()[:300], result.status, 0)
        return result.out

    def is_over(self):
        connection = http.client.HTTPConnection(*self.address(), timeout=200)
        connection.request("GET", "/healthz")
        status = connection.getresponse().status
        connection.close()
        return status == 503

    def server(self):
        """The pid of the server: the owner of the listening socket."""
        port = "%04X" % self.address()[1]
        for table in ("tcp", "tcp6"):
            with open("/proc/net/" + table, encoding="ascii") as file:
                for line in file.readlines()[1:]:
                    fields = line.split()
                    if fields[1].endswith(":" + port) and fields[3] == "0A":
                        return self.owner("socket:[%s]" % fields[9])
        return None

    def owner(self, link):
        """ptmem has the socket, too, for the case that its server is killed."""
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                if comm(pid) == b"heap-listen" and any(os.readlink("/proc/%s/fd/%s" % (pid, fd)) == link for fd in os.listdir("/proc/%s/fd" % pid)):
                    return int(pid)
            except OSError:
                continue
        return None

    def is_unharmed(self):
        """The program still runs, and ptmem still counts and answers."""
        before = self.live()
        self.more()
        self.t.equal("live bytes after one more block", self.live() - before, 1000)

    def has_no_server(self):
        """It has ended: a zombie has no descriptors. (Another test may have its port by now.)"""
        return not os.path.lexists("/proc/%d/fd/0" % self.server_pid)


def values(json_bytes):
    data = json.loads(json_bytes)
    return [data["timeline"]["live_bytes"][-1], data["timeline"]["live_blocks"][-1], sum(data["leaves"]["bytes"])]


def stacks(json_bytes):
    """{stack: bytes allocated} of JSON; frames as (function, file, line, kind, inlined)."""
    data = json.loads(json_bytes)
    frames, nodes, out = data["frames"], data["nodes"], {}
    for node, size in zip(data["leaves"]["node"], data["leaves"]["bytes"]):
        stack = []
        while node >= 0:
            stack.append(tuple(frames[column][nodes["frame"][node]] for column in ("function", "file", "line", "kind", "inlined")))
            node = nodes["parent"][node]
        out[tuple(stack)] = out.get(tuple(stack), 0) + size
    return out
