#!/usr/bin/env python3
"""A VNC server (RFB 3.8) for one viewer, which does what it is told:

    server.py PORT_FILE STEP...

Listens on a free port of 127.0.0.1 and writes its number to PORT_FILE. The steps follow the
handshake, but for those that say when they begin. It writes "did STEP" when a step is done.
"""

import os
import socket
import struct
import sys

WIDTH, HEIGHT = 40, 30
FRAME = 1920, 1080
CHALLENGE = bytes(range(16))


def pixel(x, y):
    """Red, green, blue and padding, as the viewer asks for them; no two neighbours are alike."""
    return bytes(((x * 5) & 255, (y * 7) & 255, (x * y) & 255, 0))


def rect(x, y, width, height, encoding, body=b""):
    return struct.pack(">HHHHi", x, y, width, height, encoding) + body


def update(*rects):
    return struct.pack(">BxH", 0, len(rects)) + b"".join(rects)


def picture():
    return b"".join(pixel(x, y) for y in range(HEIGHT) for x in range(WIDTH))


class Viewer:
    def __init__(self, connection):
        self.socket = connection

    def send(self, data):
        self.socket.sendall(data)

    def take(self, count):
        data = b""
        while len(data) < count:
            part = self.socket.recv(count - len(data))
            if not part:
                raise EOFError
            data += part
        return data

    def take_message(self):
        kind = self.take(1)[0]
        if kind == 2:
            head = self.take(3)
            return kind, head + self.take(4 * struct.unpack(">xH", head)[0])
        return kind, self.take({0: 19, 3: 9, 4: 7, 5: 5}[kind])

    def shake_hands(self, steps):
        width, height = WIDTH, HEIGHT
        if "huge" in steps:
            width, height = 65535, 65535
        if "frames" in steps:
            width, height = FRAME
        if "refuse" in steps:
            self.send(b"RFB 003.008\n")
            self.take(12)
            reason = b"no \x1b[31mroom"
            self.send(struct.pack(">BI", 0, len(reason)) + reason)
            return
        if "http" in steps:
            self.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            return
        self.send(b"RFB 003.008\n")
        self.take(12)
        security = 2 if "password" in steps else 1
        self.send(bytes((1, security)))
        self.take(1)
        if security == 2:
            self.send(CHALLENGE)
            with open("response", "wb") as file:
                file.write(self.take(16))
        self.send(struct.pack(">I", 0))
        self.take(1)
        name = b"desk\x1b[31mtop"
        self.send(struct.pack(">HH", width, height) +
                  struct.pack(">BBBBHHHBBB3x", 32, 24, 0, 1, 255, 255, 255, 16, 8, 0) +
                  struct.pack(">I", len(name)) + name)
        if "huge" not in steps:
            while self.take_message()[0] != 3:
                pass

    def play(self, step):
        if step == "draw":
            self.send(update(rect(0, 0, WIDTH, HEIGHT, 0, picture())))
            while self.take_message()[0] != 3:  # the viewer has it
                pass
        elif step == "clipboard":
            text = b"the user's secret"
            self.send(struct.pack(">B3xI", 3, len(text)) + text)
        elif step == "type":
            self.send(b"\xc8" + b"\x01\x02\x03")
        elif step == "encoding":
            self.send(update(rect(1, 2, 3, 4, 12345)))
        elif step == "outside":
            self.send(update(rect(30, 20, 40, 40, 0)))
        elif step == "grow":
            self.send(update(rect(0, 0, 65535, 65535, -223)))
        elif step == "half":
            self.send(update(rect(0, 0, WIDTH, HEIGHT, 0, picture()[:100])))
        elif step == "reset":
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.socket.close()
        elif step == "wait":
            try:
                while True:
                    self.take(1)
            except (EOFError, OSError):
                pass
        elif step == "frames":  # as fast as they are asked for
            frame = update(rect(0, 0, *FRAME, 0, os.urandom(FRAME[0] * 4) * FRAME[1]))
            for _ in range(60):
                self.send(frame)
                while self.take_message()[0] != 3:
                    pass
        elif step not in ("huge", "refuse", "http", "password"):
            raise ValueError(step)


def main(port_file, *steps):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        with open(port_file + ".new", "w", encoding="ascii") as file:
            file.write(str(listening.getsockname()[1]))
        os.rename(port_file + ".new", port_file)
        viewer = Viewer(listening.accept()[0])
    viewer.shake_hands(steps)
    for step in steps:
        viewer.play(step)
        print("did", step, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
