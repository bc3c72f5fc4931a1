"""Allocates by libc's malloc, and knows the chain of Python functions of each call: writes {chain: [calls, bytes]} as
JSON to the file argv[1], and for a forked child to argv[1] + ".child". A chain is "function:line<function:line...",
the innermost first. argv[2:] may have "wait": then it begins when a line comes on standard input; "greenlets" or
"interpreters" or "deep": what is done instead; "programs": those that python_random.py makes of the numbers that follow."""
import asyncio
import ctypes
import json
import os
import random
import sys
import threading

CHAINS = {}
LOCK = threading.Lock()
# the first releases the interpreter's lock around a call, the second does not
WITHOUT_LOCK, WITH_LOCK = ctypes.CDLL(None), ctypes.PyDLL(None)
for library in (WITHOUT_LOCK, WITH_LOCK):
    library.malloc.restype = ctypes.c_void_p
    library.malloc.argtypes = [ctypes.c_size_t]


def note(frame, size):
    names = []
    while frame:
        code = frame.f_code
        names.append("%s:%d" % (getattr(code, "co_qualname", code.co_name), frame.f_lineno))
        frame = frame.f_back
    with LOCK:
        entry = CHAINS.setdefault("<".join(names), [0, 0])
        entry[0] += 1
        entry[1] += size
    return size


def allocate(size, library=WITH_LOCK):
    return library.malloc(note(sys._getframe(), size))


def recurse(depth, size):
    if depth == 0:
        return allocate(size)
    return recurse(depth - 1, size)


def count(n):
    for i in range(n):
        allocate(100 + i)
        yield i
    allocate(77)


def throws(depth):
    if depth == 0:
        allocate(300)
        raise ValueError
    try:
        throws(depth - 1)
    except ValueError:
        allocate(301)
        raise
    finally:
        allocate(302)


COMPARE_TYPE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))


@COMPARE_TYPE
def compare(a, b):
    allocate(400)
    return a[0] - b[0]


class Shop:
    def __init__(self, n):
        self.goods = [allocate(500 + i) for i in range(n)]

    def __len__(self):
        return allocate(510) and 1

    @property
    def price(self):
        return (lambda: allocate(520))()

    def __del__(self):
        allocate(530)


def callbacks():
    sorted([3, 1, 2], key=lambda i: allocate(600 + i))
    list(map(allocate, [610, 611]))
    numbers = (ctypes.c_int * 4)(3, 1, 4, 2)
    WITHOUT_LOCK.qsort(numbers, 4, ctypes.sizeof(ctypes.c_int), compare)
    shop = Shop(2)
    len(shop)
    shop.price
    del shop


def short_lived():
    """Functions whose objects have the same addresses, one after the other."""
    for i in range(40):
        scope = {"allocate": allocate}
        exec(compile("\n" * (i % 7) + "def f%d(n):\n    allocate(700 + n)\nf%d(%d)\n" % (i, i, i % 3), "file%d" % i,
                     "exec"), scope)
        del scope


async def inner(n):
    allocate(800 + n)
    await asyncio.sleep(0)
    allocate(810 + n)


async def outer():
    await asyncio.gather(*[inner(i) for i in range(3)])
    async for i in numbers():
        allocate(820 + i)


async def numbers():
    for i in range(2):
        allocate(830)
        yield i


def work(seed):
    state = random.Random(seed)
    for i in range(150):
        if state.random() < 0.3:
            recurse(state.randrange(40), 1000)
        elif state.random() < 0.5:
            allocate(1001, WITHOUT_LOCK)
        else:
            for _ in count(state.randrange(4)):
                recurse(state.randrange(5), 1002)


def greenlets():
    """Each has a list of functions of its own; their parts of the native stack take each other's place."""
    import greenlet

    def child(depth, n):
        for i in range(3):
            recurse(depth, 2000 + n)
            for _ in count(1):
                greenlet.getcurrent().parent.switch()
            sorted([2, 1], key=lambda k: allocate(2100 + k))

    def start(depth, n):
        allocate(2200)
        return greenlet.greenlet(child).switch(depth, n) if n else recurse(depth, 2300)

    children = [greenlet.greenlet(start if i % 2 else child) for i in range(8)]
    for turn in range(6):
        for i, one in enumerate(children):
            if not one.dead:
                one.switch(i * (turn + 1), i)
            recurse(turn, 2400 + i)


IN_INTERPRETER = """
import json, sys
sys.argv = [%r, "none"]
CALLED_FROM = %r
exec(compile(open(%r).read(), "python_chains.py", "exec"))
for i in range(120):
    recurse(i %% 20, 3000 + i)
    for _ in count(i %% 3):
        sorted([2, 1], key=lambda k: allocate(3200 + k))
with open(sys.argv[0], "w") as file:
    json.dump({chain + "<" + CALLED_FROM: value for chain, value in CHAINS.items()}, file)
"""


def interpreters():
    """Functions of an inner interpreter are called by those of the outer one. Their own chains end before."""
    import _xxsubinterpreters as inner
    interpreter, name = inner.create(), sys.argv[1] + ".inner"
    run_inner(inner, interpreter, name)
    recurse(3, 3300)
    inner.destroy(interpreter)
    with open(name) as file:
        CHAINS.update(json.load(file))


def run_inner(inner, interpreter, name):
    frame, outer = sys._getframe(), []
    while frame:  # the line of this function is that of the call
        line = frame.f_lineno if outer else RUN_INNER_LINE
        outer.append("%s:%d" % (getattr(frame.f_code, "co_qualname", frame.f_code.co_name), line))
        frame = frame.f_back
    text = IN_INTERPRETER % (name, "<".join(outer), __file__)
    inner.run_string(interpreter, text)


class Deep:
    """Calls itself thousands of times, and allocates on the way, above and below: each time another part of the chain is new."""

    def __init__(self, seed):
        self.state = random.Random(seed)

    def down(self, depth):
        if depth % 1500 == 7:
            allocate(4000)
        if depth:
            (self.down if self.state.random() < 0.7 else self.again)(depth - 1)
        else:
            for i in range(6):
                (self.one if i % 3 else self.other)(i % 2)
            recurse(60, 4200)
        if depth % 997 == 5:
            allocate(4001)
            recurse(depth % 40, 4300)

    def again(self, depth):
        self.down(depth)

    def one(self, way):
        return self.last(1) if way else self.last(2)

    def other(self, way):
        return self.last(1) if way else self.last(2)

    def last(self, n):
        return allocate(4100 + n)


def deep():
    """More frames than a slot has room for, in the thread more than a record of its ring."""
    sys.setrecursionlimit(100000)
    Deep(1).down(2000)
    thread = threading.Thread(target=Deep(2).down, args=(9000,))
    thread.start()
    thread.join()
    for seed in (3, 4):
        Deep(seed).down(5000)


def programs():
    """Each of them in this thread, and another one beside it."""
    import gc
    import python_random
    sys.setrecursionlimit(5000)
    gc.disable()  # it would run the destructors of one thread in another

    def qsort(f):
        numbers = (ctypes.c_int * 3)(3, 1, 2)
        WITH_LOCK.qsort(numbers, 3, ctypes.sizeof(ctypes.c_int), COMPARE_TYPE(f))

    for seed in map(int, sys.argv[sys.argv.index("programs") + 1:]):
        thread = threading.Thread(target=python_random.run, args=(seed + 1000000, 150, allocate, qsort, False))
        thread.start()
        python_random.run(seed, 300, allocate, qsort, True)
        thread.join()


RUN_INNER_LINE = run_inner.__code__.co_firstlineno + 7


def main():
    recurse(3, 10)
    for _ in count(3):
        allocate(20)
    for i in (0, 5):
        try:
            throws(i)
        except ValueError:
            allocate(30)
    callbacks()
    short_lived()
    asyncio.new_event_loop().run_until_complete(outer())
    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    work(9)
    for thread in threads:
        thread.join()
    sys.setrecursionlimit(5000)
    recurse(900, 40)
    recurse(899, 41)
    pid = os.fork()
    name = sys.argv[1]
    if pid == 0:
        name += ".child"
        CHAINS.clear()  # a recording of a forked child has what it allocates itself
        recurse(2, 50)
        work(10)
    else:
        recurse(2, 60)
        os.waitpid(pid, 0)
    with open(name, "w") as file:
        json.dump(CHAINS, file)
    if pid == 0:
        os._exit(0)


if "wait" in sys.argv:
    print("ready", flush=True)
    sys.stdin.readline()
others = [f for f in (greenlets, interpreters, deep, programs) if f.__name__ in sys.argv]
if others:
    others[0]()
    with open(sys.argv[1], "w") as output:
        json.dump(CHAINS, output)
    os._exit(0)  # without what generators and greenlets do when they are dropped
elif "none" not in sys.argv:
    main()
