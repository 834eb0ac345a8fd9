#!/usr/bin/env python3
"""Whether RGBA pixels are those of a window dump of 24 or 32 bits a pixel (X11/XWDFile.h):

    same_as_xwd.py DUMP PIXELS

Exits 0 if they are, and have more than one colour.
"""

import struct
import sys


def read_dump(data):
    head = struct.unpack(">25I", data[:100])
    size, width, height, order, bits, line = (head[i] for i in (0, 4, 5, 7, 11, 12))
    if bits not in (24, 32) or order != 0 or head[14:17] != (0xff0000, 0xff00, 0xff):
        raise ValueError(f"{bits} bits, byte order {order}, masks {head[14:17]}")
    start, step = size + 12 * head[19], bits // 8
    pixels = bytearray()
    for y in range(height):
        for at in range(start + y * line, start + y * line + width * step, step):
            blue, green, red = data[at:at + 3]
            pixels += bytes((red, green, blue, 255))
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
