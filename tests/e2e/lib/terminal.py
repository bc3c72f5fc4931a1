"""A terminal of our own: a pty with a size, and the contents of its screen, for TERM=vt100."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time

ESCAPE = re.compile(r"\x1b(?:\[([?0-9;]*)([A-Za-z])|[()][0-9A-Za-z]|[=>78M])")


class Terminal:
    """Runs @argv as the leader of a session on a terminal of its own."""

    def __init__(self, argv, environment, cwd, rows=24, columns=80, term="vt100"):
        self.master, self.slave = pty.openpty()
        self.resize(rows, columns)
        self.modes = termios.tcgetattr(self.slave)
        environment = dict(environment, TERM=term) if term is not None else environment
        self.process = subprocess.Popen(argv, stdin=self.slave, stdout=self.slave, stderr=self.slave, cwd=cwd,
                                        env=environment, preexec_fn=self.own)
        self.raw = b""

    def own(self):
        os.setsid()
        fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)

    def resize(self, rows, columns):
        self.rows, self.columns = rows, columns
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self):
        while select.select([self.master], [], [], 0)[0]:
            self.raw += os.read(self.master, 65536)

    def type(self, keys):
        os.write(self.master, keys)

    def is_as_before(self):
        return termios.tcgetattr(self.slave) == self.modes

    def text(self):
        """All that was written, escapes removed."""
        self.read()
        return re.sub(r"\r+\n", "\n", ESCAPE.sub("", self.raw.decode(errors="replace")))

    def wait(self, signal_number=None, seconds=200):
        """Its exit status."""
        if signal_number:
            self.process.send_signal(signal_number)
        end = time.monotonic() + seconds
        while self.process.poll() is None and time.monotonic() < end:
            self.read()
            time.sleep(0.01)
        self.read()
        return self.process.poll()

    def screen(self):
        """Lines as a vt100 shows them now, right ends stripped."""
        self.read()
        screen = [[" "] * 400 for _ in range(100)]
        row = column = at = 0
        saved = row, column
        first, last = 0, self.rows - 1  # what scrolls
        text = self.raw.decode(errors="replace")
        while at < len(text):
            match = ESCAPE.match(text, at)
            if match:
                at = match.end()
                if match.group(0) == "\x1bM":
                    if row == first:
                        screen.insert(first, screen.pop(last))
                        screen[first] = [" "] * 400
                    else:
                        row -= 1
                    continue
                if match.group(0) == "\x1b7":
                    saved = row, column
                elif match.group(0) == "\x1b8":
                    row, column = saved
                numbers = [int(n) if n.isdigit() else 0 for n in (match.group(1) or "").split(";")]
                if match.group(2) == "r":
                    first, last = max(numbers[0], 1) - 1, (numbers[1] if len(numbers) > 1 else self.rows) - 1
                    row = column = 0
                    continue
                row, column = self.obey(match.group(2), numbers, screen, row, column)
                continue
            c, at = text[at], at + 1
            if c == "\n" and row == last:
                screen.insert(last, screen.pop(first))
                screen[last] = [" "] * 400
            elif c == "\n":
                row += 1
            elif c == "\r":
                column = 0
            elif c == "\b":
                column = max(column - 1, 0)
            elif c == "\t":
                column = column // 8 * 8 + 8
            elif c >= " ":
                screen[row][min(column, 399)] = c
                column += 1
        return ["".join(line[: self.columns]).rstrip() for line in screen[: self.rows]]

    @staticmethod
    def obey(letter, numbers, screen, row, column):
        n = numbers[0] if numbers else 0
        if letter == "H":
            return max(n, 1) - 1, max(numbers[1] if len(numbers) > 1 else 1, 1) - 1
        if letter in ("A", "B", "C", "D"):
            step = max(n, 1)
            row += {"A": -step, "B": step}.get(letter, 0)
            column += {"C": step, "D": -step}.get(letter, 0)
        elif letter in ("K", "J"):
            first, last = (0, column + 1) if n == 1 else (column, 400)
            screen[row][first:last] = [" "] * (last - first)
            for other in range(len(screen)) if letter == "J" else ():
                if (n == 0 and other > row) or (n == 1 and other < row) or n == 2:
                    screen[other] = [" "] * 400
        return max(row, 0), max(column, 0)
