#!/usr/bin/env python3
"""Whether RGBA pixels are those of a window dump of 32 bits a pixel (X11/XWDFile.h):

    same_as_xwd.py DUMP PIXELS

Exits 0 if they are, and have more than one colour.
"""

import struct
import sys


def read_dump(data):
    head = struct.unpack(">25I", data[:100])
    size, width, height, order, bits, line = (head[i] for i in (0, 4, 5, 7, 11, 12))
    if bits != 32 or head[14:17] != (0xff0000, 0xff00, 0xff):
        raise ValueError(f"{bits} bits, masks {head[14:17]}")
    start = size + 12 * head[19]
    pixels = bytearray()
    for y in range(height):
        row = data[start + y * line:start + y * line + width * 4]
        for (word,) in struct.iter_unpack("<I" if order == 0 else ">I", row):
            pixels += bytes((word >> 16 & 255, word >> 8 & 255, word & 255, 255))
    return bytes(pixels)


def main(dump, pixels):
    with open(dump, "rb") as file:
        wanted = read_dump(file.read())
    with open(pixels, "rb") as file:
        got = file.read()
    if len(got) != len(wanted):
        print(f"{len(got)} bytes of pixels, and not {len(wanted)}", file=sys.stderr)
        return 1
    wrong = sum(got[i:i + 4] != wanted[i:i + 4] for i in range(0, len(got), 4))
    colours = len({got[i:i + 4] for i in range(0, len(got), 4)})
    print(f"{wrong} pixels differ, {colours} colours", file=sys.stderr)
    return 0 if wrong == 0 and colours > 1 else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
