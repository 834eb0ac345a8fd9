#!/usr/bin/env python3
"""What is in a screenshot:  png.py FILE X,Y...     its size, and the colours of pixels, a line each
                             png.py FILE --ppm PPM  whether it is the picture that QEMU dumped"""
import struct
import sys
import zlib


def read(path):
    """(width, height, rows of RGB bytes) of a PNG with 8 bits a sample."""
    with open(path, "rb") as file:
        data = file.read()
    at, packed = 8, b""
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + size]
        if kind == b"IHDR":
            width, height, _, colour = struct.unpack(">IIBB", body[:10])
        packed += body if kind == b"IDAT" else b""
        at += 12 + size
    raw, step = zlib.decompress(packed), {2: 3, 6: 4}[colour]
    stride, rows, above = width * step, [], bytes(width * step)
    for y in range(height):
        how, *line = raw[y * (stride + 1):(y + 1) * (stride + 1)]
        for i in range(stride):
            a, c = (line[i - step], above[i - step]) if i >= step else (0, 0)
            b = above[i]
            p = a + b - c
            paeth = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
            line[i] = (line[i] + (0, a, b, (a + b) // 2, paeth)[how]) & 255
        rows.append(b"".join(bytes(line[x:x + 3]) for x in range(0, stride, step)))
        above = line
    return width, height, rows


def main():
    width, height, rows = read(sys.argv[1])
    if sys.argv[2:3] != ["--ppm"]:
        print(width, height)
        for word in sys.argv[2:]:
            x, y = map(int, word.split(","))
            print(word, rows[y][3 * x:3 * x + 3].hex())
        return
    with open(sys.argv[3], "rb") as file:
        _, size, _, pixels = file.read().split(b"\n", 3)
    ours = b"".join(rows)
    colours = {ours[i:i + 3] for i in range(0, len(ours), 3)}
    print(f"{width} {height}".encode() == size, ours == pixels, len(colours) > 1)


main()
