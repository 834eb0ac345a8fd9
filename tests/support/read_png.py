#!/usr/bin/env python3
"""Reads a PNG with nothing but zlib, checks every chunk, and writes its pixels as RGBA bytes:

    read_png.py FILE OUT
"""

import struct
import sys
import zlib


def chunks(data):
    """Yields (type, body) and checks length, checksum and that nothing follows IEND."""
    if data[:8] != b"\x89PNG\r\n\x1a\n":
        raise ValueError("no signature")
    at = 8
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + length]
        (checksum,) = struct.unpack(">I", data[at + 8 + length:at + 12 + length])
        if len(body) != length or zlib.crc32(kind + body) != checksum:
            raise ValueError(f"bad chunk {kind} at {at}")
        yield kind, body
        at += 12 + length


def paeth(left, up, corner):
    guess = left + up - corner
    distance = (abs(guess - left), abs(guess - up), abs(guess - corner))
    return (left, up, corner)[distance.index(min(distance))]


def unfilter(kind, row, above, step):
    for i, byte in enumerate(row):
        left = row[i - step] if i >= step else 0
        up = above[i]
        corner = above[i - step] if i >= step else 0
        add = (0, left, up, (left + up) // 2, paeth(left, up, corner))[kind]
        row[i] = (byte + add) & 255
    return row


def pixels(data):
    parts = list(chunks(data))
    if parts[0][0] != b"IHDR" or parts[-1] != (b"IEND", b""):
        raise ValueError("IHDR first, IEND last")
    width, height, depth, color, *rest = struct.unpack(">IIBBBBB", parts[0][1])
    if depth != 8 or color not in (2, 6) or rest != [0, 0, 0]:
        raise ValueError(f"depth {depth}, colour {color}, {rest}")
    step = 4 if color == 6 else 3
    raw = zlib.decompress(b"".join(body for kind, body in parts if kind == b"IDAT"))
    if len(raw) != height * (1 + width * step):
        raise ValueError("wrong number of bytes")
    above = bytearray(width * step)
    for start in range(0, len(raw), 1 + width * step):
        above = unfilter(raw[start], bytearray(raw[start + 1:start + 1 + width * step]), above,
                         step)
        for x in range(0, len(above), step):
            yield bytes(above[x:x + step]) + (b"" if step == 4 else b"\xff")


with open(sys.argv[1], "rb") as file, open(sys.argv[2], "wb") as out:
    out.write(b"".join(pixels(file.read())))
