#!/usr/bin/env python3
"""Runs a command on a terminal of its own: what comes through a FIFO is typed, and what the command
writes is written.

    on_terminal.py FIFO COMMAND...

The first line is "pid N". Exits with the status of the command.
"""

import os
import pty
import select
import sys


def main(fifo, *command):
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvp(command[0], command)
    os.write(1, b"pid %d\n" % pid)
    keys = os.open(fifo, os.O_RDONLY)
    watched = [terminal, keys]
    while True:
        for fd in select.select(watched, [], [])[0]:
            try:
                data = os.read(fd, 65536)
            except OSError:  # the terminal's last process has ended
                data = b""
            if data and fd == keys:
                os.write(terminal, data)
            elif data:
                os.write(1, data)
            elif fd == keys:
                watched.remove(keys)
            else:
                return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
