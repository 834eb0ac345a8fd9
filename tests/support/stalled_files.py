"""stalled_files.py DIRECTORY STAGE: a file system with the file `log`, which stops to answer.

STAGE is `read` (names are found, and no byte is read) or `look` (nothing is found), which SIGUSR1 makes it. Prints
`ready` when it is mounted, `read` when somebody reads, `look` after the signal, and unmounts when it is killed: the
kernel then ends what waits for it.
"""
import ctypes
import os
import signal
import struct
import sys

LOOKUP, GETATTR, OPEN, READ, RELEASE, FLUSH, INIT = 1, 3, 14, 15, 18, 25, 26
NO_ANSWER = {2, 36, 42}  # FORGET, INTERRUPT, BATCH_FORGET
ENOENT, ENOSYS = 2, 38

directory, stage = sys.argv[1:]
fuse = os.open("/dev/fuse", os.O_RDWR)
libc = ctypes.CDLL(None, use_errno=True)
options = f"fd={fuse},rootmode=40000,user_id=0,group_id=0"
if libc.mount(b"stalled", directory.encode(), b"fuse", 0, options.encode()) != 0:
    sys.exit(os.strerror(ctypes.get_errno()))


def stop(number, frame):
    global stage
    stage = "look"
    print("look", flush=True)


signal.signal(signal.SIGUSR1, stop)
# Nobody finds it any more by the name when this process has ended.
print("ready", flush=True)


def attributes(node):
    mode, size = (0o40755, 0) if node == 1 else (0o100644, 100000)
    return struct.pack("<6Q10I", node, size, 200, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


def answer(operation, node, body):
    if operation == INIT:
        return struct.pack("<4I2H2I2H8I", 7, 31, 65536, 0, 1, 1, 65536, 1, 0, 0, *[0] * 8)
    if operation == READ:
        print("read", flush=True)
    if operation == READ or stage == "look":
        return None
    if operation == LOOKUP:
        name = body.rstrip(b"\0")
        return struct.pack("<4Q2I", 2, 0, 60, 60, 0, 0) + attributes(2) if name == b"log" else ENOENT
    if operation == GETATTR:
        return struct.pack("<Q2I", 60, 0, 0) + attributes(node)
    if operation == OPEN:
        return struct.pack("<Q2I", 1, 0, 0)
    return b"" if operation in (RELEASE, FLUSH) else ENOSYS


while True:
    request = os.read(fuse, 135168)
    length, operation, unique, node = struct.unpack_from("<2I2Q", request)
    if operation in NO_ANSWER:
        continue
    given = answer(operation, node, request[40:length])
    if given is not None:
        error, data = (-given, b"") if isinstance(given, int) else (0, given)
        os.write(fuse, struct.pack("<IiQ", 16 + len(data), error, unique) + data)
