"""A program that knows its own stacks: at each stop it prints the frames of all its threads, innermost first, and waits for a byte.

    = LABEL
    T THREAD                  its id
    F NAME FILE LINE          separated by tabs
    .

test_python.c runs it with many versions of Python, so it uses nothing that is newer than 3.8.

With "busy" it never stops.
"""
import asyncio
import functools
import os
import signal
import sys
import threading

waiting = {}  # thread: its frames as text
lock = threading.Lock()


def thread_id():
    return threading.get_native_id() if hasattr(threading, "get_native_id") else os.getpid()


def describe(frame):
    out = []
    while frame is not None:
        code = frame.f_code
        out.append("F\t%s\t%s\t%d\n" % (getattr(code, "co_qualname", code.co_name), code.co_filename, frame.f_lineno))
        frame = frame.f_back
    return "".join(out)


def truth(frame, label):
    with lock:
        threads = dict(waiting)
    threads[thread_id()] = describe(frame)
    text = "= %s\n" % label + "".join("T\t%d\n%s" % pair for pair in threads.items()) + ".\n"
    return text.encode("utf-8", "surrogateescape")


def stop(label):
    os.write(1, truth(sys._getframe(), label)) and os.read(0, 1)


def recursion(n):
    if n:
        return recursion(n - 1) + 1
    stop("recursion")
    return 0


def generator(n):
    for i in range(n):
        if i == 2:
            stop("generator")
        yield i


def delegating(n):
    yield from (x for x in generator(n))


async def inner():
    await asyncio.sleep(0)
    stop("coroutine")


async def outer():
    await asyncio.gather(inner())


async def agenerator():
    yield 1
    stop("async generator")


async def aconsumer():
    return [x async for x in agenerator()]


def key(x):
    if x == 3:
        stop("sorted")
    return -x


class Thing:
    def __init__(self, label):
        self.label = label
        if label:
            stop(label)

    def __del__(self):
        stop("finalizer")

    @property
    def value(self):
        stop("property")
        return 1

    @staticmethod
    def static():
        return [stop("comprehension") for _ in range(1)]

    def __getattr__(self, name):
        stop("getattr")
        return name


class Plain:
    def __init__(self, n):
        if n == 20:
            stop("init")


class Meta(type):
    def __call__(cls, *args):
        stop("metaclass")
        return super().__call__(*args)


class Made(metaclass=Meta):
    pass


def specialized():
    for n in range(21):
        Plain(n)


def decorator(fn):
    @functools.wraps(fn)
    def wrapper(*args):
        return fn(*args)
    return wrapper


@functools.lru_cache(maxsize=None)
@decorator
def decorated(n):
    return list(map(lambda x: stop("map"), [n]))


def many_lines():
    a = [
        1,
        stop(
            "many lines"
        ),
        3,
    ]



    #                   a gap in the table of lines
    b = {"x": stop("gap"),
         "y": (lambda:
               stop("lambda"))()}
    return a, b


def handlers():
    try:
        raise ValueError("x")
    except ValueError:
        stop("except")
    finally:
        stop("finally")
    with open(os.devnull) as _:
        stop("with")


def generated():
    exec(compile("def naïve():\n\n  stop('exec')\ndef 名前():\n return naïve()\n名前()", "<größe>", "exec"), {"stop": stop})
    exec(compile("x = lambda: stop('emoji')\nx()", "/tmp/\U0001f600.py", "exec"), {"stop": stop})
    eval("stop('eval')")
    long = "f" * 3000
    exec("def %s(): stop('long name')\n%s()" % (long, long), {"stop": stop})
    exec("\n" * 70000 + "stop('far line')", {"stop": stop})
    exec("x = [" + "1,\n" * 3000 + "stop('large function')]", {"stop": stop})


def on_signal(number, frame):
    stop("signal")


def deep(n):
    if n:
        return max([n], key=lambda x: deep(n - 1)) if n % 10 == 0 else deep(n - 1)
    stop("deep")
    return 0


def worker(started, n, pipe):
    def nested(n):
        if n:
            return nested(n - 1)
        # the frame's line is the same as that of the call which waits
        with lock: waiting[thread_id()] = describe(sys._getframe()); pair = (started.set(), lock.release(), os.read(pipe, 1), lock.acquire())
    return nested(n)


def threads():
    pipe, end = os.pipe()
    all_threads = []
    for i in range(5):
        started = threading.Event()
        t = threading.Thread(target=worker, args=(started, i, pipe))
        t.start()
        all_threads.append(t)
        started.wait()
    stop("threads")
    os.write(end, b"xxxxx")
    for t in all_threads:
        t.join()
    waiting.clear()


SUB = """
import os, sys, threading
def describe(frame):
    out = []
    while frame is not None:
        code = frame.f_code
        out.append("F\\t%s\\t%s\\t%d\\n" % (getattr(code, "co_qualname", code.co_name), code.co_filename, frame.f_lineno))
        frame = frame.f_back
    return "".join(out)
def inside():
    os.write(1, ("= subinterpreter\\nT\\t%d\\n" % threading.get_native_id() + describe(sys._getframe()) + outer + ".\\n").encode()) and os.read(0, 1)
inside()
"""


def subinterpreter():
    try:
        import _interpreters as module
    except ImportError:
        try:
            import _xxsubinterpreters as module
        except ImportError:
            return
    interpreter = module.create()
    run = module.run_string
    run(interpreter, "outer = %r\n" % describe(sys._getframe()) + SUB)
    module.destroy(interpreter)


def imported():
    import tempfile
    with tempfile.TemporaryDirectory() as directory:
        with open(os.path.join(directory, "imported_module.py"), "w") as f:
            f.write("import __main__\n\nclass C:\n    __main__.stop('import')\n")
        sys.path.insert(0, directory)
        sys.dont_write_bytecode = True
        import imported_module
        sys.path.pop(0)


def main():
    stop("main")
    recursion(30)
    list(generator(4))
    list(delegating(4))
    asyncio.run(outer())
    asyncio.run(aconsumer())
    sorted([1, 2, 3, 4], key=key)
    specialized()
    thing = Thing("class")
    thing.value
    thing.missing
    Thing.static()
    del thing
    Made()
    decorated(1)
    many_lines()
    handlers()
    generated()
    signal.signal(signal.SIGUSR1, on_signal)
    os.kill(os.getpid(), signal.SIGUSR1)
    deep(120)
    sys.setrecursionlimit(5000)
    recursion(2500)
    threads()
    subinterpreter()
    imported()


def busy():
    """Allocates and calls without end, in several threads."""
    def work():
        while True:
            sorted(range(50), key=lambda x: str(-x))
            list(delegating(2))
            [Plain(n) for n in range(19)]
            ["%d" % len([n] * n) for n in range(50)]
            try:
                int("x" * 20)
            except ValueError:
                pass
            recursion_only(20)

    def recursion_only(n):
        return [n, recursion_only(n - 1) if n else None]

    for _ in range(2):
        threading.Thread(target=work, daemon=True).start()
    os.write(1, b"= busy\n.\n")
    work()


if __name__ == "__main__":
    busy() if sys.argv[1:] == ["busy"] else main()
