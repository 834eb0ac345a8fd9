#!/usr/bin/env python3
"""answer.py ANSWER COMMAND...: runs the command on a terminal, answers each question, and prints what it says."""
import os
import pty
import sys

pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.argv[2], sys.argv[2:])
said = b""
while True:
    try:
        piece = os.read(fd, 4096)
    except OSError:
        break
    if not piece:
        break
    said += piece
    if said.endswith(b"[y/N] "):
        os.write(fd, sys.argv[1].encode() + b"\n")
sys.stdout.buffer.write(said)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
