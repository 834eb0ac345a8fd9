#!/usr/bin/env python3
"""A SPICE server that does what it is told, to be the other side of bugpack-spice.

  server.py --key FILE --public FILE [--password TEXT] [--offer KINDS] [--link NAME]
            [--port PORT]

Prints "listening PORT", then a line for each thing that happens, and takes a command a line from
standard input until that ends:

  send CHANNEL TYPE HEX      a message with this body; CHANNEL is main, display, …
  header CHANNEL TYPE SIZE   only the header of a message
  bytes CHANNEL HEX          bytes as they are
  surface ID W H             surface_create; the primary one
  fill L T R B RRGGBB        draw_fill on surface 0
  bitmap L T R B RRGGBB      draw_copy of a bitmap of 32 bits in one colour
  image L T R B TYPE         draw_copy of an image of a type without bytes
  ping CHANNEL BYTES         a ping of so many bytes
  flood CHANNEL COUNT        pings that nobody reads the answers of
  close CHANNEL; drop        the end of a channel; a reset of all
"""
import argparse
import socket
import struct
import subprocess
import sys
import threading

KINDS = {"main": 1, "display": 2, "inputs": 3, "cursor": 4, "playback": 5, "record": 6, "usbredir": 9}
NAMES = {number: name for name, number in KINDS.items()}
PRINTING = threading.Lock()


def say(*words):
    with PRINTING:
        print(*words, flush=True)


def rect(left, top, right, bottom):
    return struct.pack("<4i", top, left, bottom, right)


def box(surface, edges):
    return struct.pack("<I", surface) + rect(*edges) + b"\0"


MASK = struct.pack("<BiiI", 0, 0, 0, 0)


def fill(edges, color):
    return box(0, edges) + struct.pack("<BIH", 1, color, 8) + MASK


def copy_image(edges, image, surface=0, operation=8):
    """draw_copy of all of an image as large as the box; the image stands at the end."""
    width, height = edges[2] - edges[0], edges[3] - edges[1]
    start = box(surface, edges)
    rest = rect(0, 0, width, height) + struct.pack("<HB", operation, 0) + MASK
    return start + struct.pack("<I", len(start) + 4 + len(rest)) + rest + image


def descriptor(kind, width, height):
    return struct.pack("<QBBII", 1, kind, 0, width, height)


def bitmap(width, height, color):
    data = struct.pack("<BBIIII", 8, 4, width, height, width * 4, 0)
    return descriptor(0, width, height) + data + struct.pack("<I", color) * (width * height)


class Server:
    def __init__(self, options):
        self.options = options
        with open(options.public, "rb") as file:
            self.public = file.read()
        self.channels = {}
        self.lock = threading.Lock()
        self.deaf = set()
        self.listener = socket.create_server(("127.0.0.1", options.port), reuse_port=False)
        # Less than a window of pings is answered by: see flood.
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        say("listening", self.listener.getsockname()[1])

    def accept(self):
        while True:
            connection, _ = self.listener.accept()
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    @staticmethod
    def receive(connection, count):
        data = b""
        while len(data) < count:
            part = connection.recv(count - len(data))
            if not part:
                raise ConnectionError("closed")
            data += part
        return data

    def serve(self, connection):
        name = "?"
        try:
            name = self.link(connection)
            if name is None:
                connection.close()
                return
            with self.lock:
                self.channels[name] = connection
            say("up", name)
            if name == "main":
                self.send("main", 103, struct.pack("<8I", 77, 1, 3, 1, 0, 10, 0, 0))
            while name not in self.deaf:
                kind, size = struct.unpack("<HI", self.receive(connection, 6))
                body = self.receive(connection, size)
                say("received", name, kind, body.hex())
                if name == "main" and kind == 104:
                    offered = [KINDS[word] for word in self.options.offer.split(",")]
                    self.send("main", 104, struct.pack("<I", len(offered)) +
                              b"".join(struct.pack("<BB", number, 0) for number in offered))
        except OSError as error:
            say("gone", name, type(error).__name__)

    def reply(self, error=0, caps=0xb, key=None, size=None, magic=b"REDQ", major=2, offset=178):
        body = struct.pack("<I", error) + (key or self.public) + struct.pack("<3I", 1, 0, offset)
        body += struct.pack("<I", caps)
        return magic + struct.pack("<3I", major, 2, size if size is not None else len(body)) + body

    def link(self, connection):
        header = self.receive(connection, 16)
        size = struct.unpack("<I", header[12:])[0]
        message = self.receive(connection, size)
        name = NAMES[message[4]]
        say("link", name, header[:4].decode(), size, struct.unpack("<I", message[:4])[0])
        replies = {
            "none": {}, "error": {"error": 7}, "secured": {"error": 5}, "strange": {"error": 4711},
            "magic": {"magic": b"HTTP"}, "major": {"major": 9}, "short": {"size": 20},
            "huge": {"size": 0xffffffff}, "caps": {"offset": 0xfffffff0}, "mini": {"caps": 3},
            "key": {"key": bytes(162)}, "ticket": {}, "silent": None, "cut": {}}
        chosen = replies[self.options.link]
        if chosen is None:
            self.receive(connection, 1)
        data = self.reply(**chosen)
        connection.sendall(data[:40] if self.options.link == "cut" else data)
        if self.options.link not in ("none", "ticket"):
            return None
        mechanism = struct.unpack("<I", self.receive(connection, 4))[0]
        ticket = self.receive(connection, 128)
        verdict = 7 if self.options.link == "ticket" else self.check(ticket)
        say("ticket", name, mechanism, verdict)
        connection.sendall(struct.pack("<I", verdict))
        return name if verdict == 0 else None

    def check(self, ticket):
        if self.options.password is None:
            return 0
        done = subprocess.run(
            ["openssl", "pkeyutl", "-decrypt", "-inkey", self.options.key, "-pkeyopt",
             "rsa_padding_mode:oaep"], input=ticket, capture_output=True, check=False)
        return 0 if done.stdout == self.options.password.encode() + b"\0" else 7

    def send(self, name, kind, body):
        self.channels[name].sendall(struct.pack("<HI", kind, len(body)) + body)

    def flood(self, name, count):
        """The first window of TCP has 64 KiB of pings. Their answers have to be more than this
        side's buffer and the client's hold: a kernel whose buffer is full may drop segments with
        the acknowledgements in them, and then sends the next window after seconds, or minutes."""
        self.deaf.add(name)
        ping = struct.pack("<HI", 4, 12) + struct.pack("<IQ", 1, 1)
        try:
            self.channels[name].sendall(ping * count)
        except OSError:
            pass
        say("flooded", name)

    def obey(self, words):
        verb, rest = words[0], words[1:]
        numbers = [int(word, 16 if len(word) == 6 else 10) for word in rest
                   if word.lstrip("-").isalnum() and verb in ("surface", "fill", "bitmap", "image")]
        if verb == "send":
            self.send(rest[0], int(rest[1]), bytes.fromhex(rest[2] if len(rest) > 2 else ""))
        elif verb == "header":
            self.channels[rest[0]].sendall(struct.pack("<HI", int(rest[1]), int(rest[2])))
        elif verb == "bytes":
            self.channels[rest[0]].sendall(bytes.fromhex(rest[1]))
        elif verb == "surface":
            self.send("display", 314, struct.pack("<5I", *numbers[:3], 32, 1))
        elif verb == "fill":
            self.send("display", 302, fill(numbers[:4], numbers[4]))
        elif verb == "bitmap":
            left, top, right, bottom, color = numbers
            self.send("display", 304, copy_image(numbers[:4], bitmap(right - left, bottom - top, color)))
        elif verb == "image":
            left, top, right, bottom, kind = numbers
            image = descriptor(kind, right - left, bottom - top) + struct.pack("<I", 0)
            self.send("display", 304, copy_image(numbers[:4], image))
        elif verb == "ping":
            self.send(rest[0], 4, struct.pack("<IQ", 5, 9) + bytes(int(rest[1])))
        elif verb == "flood":
            threading.Thread(target=self.flood, args=(rest[0], int(rest[1])), daemon=True).start()
        elif verb == "close":
            self.channels[rest[0]].shutdown(socket.SHUT_RDWR)
        elif verb == "drop":
            for connection in self.channels.values():
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                connection.shutdown(socket.SHUT_RD)  # its thread lets go of it
                connection.close()
        else:
            raise ValueError(f"no command: {words}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--key")
    parser.add_argument("--public", required=True)
    parser.add_argument("--password")
    parser.add_argument("--offer", default="display,inputs")
    parser.add_argument("--link", default="none")
    parser.add_argument("--port", type=int, default=0)
    server = Server(parser.parse_args())
    threading.Thread(target=server.accept, daemon=True).start()
    for line in sys.stdin:
        if line.split():
            try:
                server.obey(line.split())
                say("done", line.strip())
            except (OSError, KeyError) as error:
                say("failed", line.strip(), repr(error))


main()
