"""Two threads make functions in turns, at the same address: what allocates 3003 bytes is in line 4, 5005 and 7007 in line 7,
all in functions called `made`. Prints how often the address came back. Environment: no caches of threads and one arena in
malloc, so that another thread gets the memory of a function."""
import ctypes
import threading

malloc = ctypes.PyDLL(None).malloc
malloc.restype, malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
SOURCE = "def made(size):\n    allocate(size)\n    return 0\n"


def allocate(size):
    return malloc(size)


def make(lines):
    space = {"allocate": allocate}
    exec(compile("\n" * lines + SOURCE, "made.py", "exec"), space)
    return space["made"]


def call_at(address, lines, size):
    """Calls a function whose code is at @address; False: there is none after many tries."""
    kept = []
    for _ in range(2000):
        made = make(lines)
        if id(made.__code__) == address:
            made(size)
            return True
        kept.append(made)
    return False


class Other(threading.Thread):
    address = 0  # 0: the end

    def __init__(self):
        super().__init__()
        self.turn, self.answer, self.is_done = threading.Semaphore(0), threading.Semaphore(0), False

    def run(self):
        while self.turn.acquire() and self.address:
            self.is_done = call_at(self.address, 5, 5005)
            self.answer.release()

    def take(self, address):
        self.address = address
        self.turn.release()
        return not address or self.answer.acquire() and self.is_done


def first():
    made = make(2)
    made(3003)
    return id(made.__code__)


def main():
    other, again = Other(), 0
    other.start()
    for _ in range(300):
        address = first()
        if other.take(address):
            again += call_at(address, 5, 7007)
        if again == 3:
            break
    other.take(0)
    other.join()
    print(again)


main()
