#!/usr/bin/env python3
"""What is in a screenshot:  png.py FILE X,Y...     its size, and the colours of pixels, a line each
                             png.py FILE --ppm PPM  whether it is the picture that QEMU dumped"""
import os
import struct
import subprocess
import sys

TOOL = os.path.join(os.path.dirname(__file__), "../../support/read_png.py")


def main():
    subprocess.run([sys.executable, "-B", TOOL, sys.argv[1], "rgba"], check=True)
    with open(sys.argv[1], "rb") as picture, open("rgba", "rb") as file:
        width, height = struct.unpack(">II", picture.read(24)[16:])
        rgba = file.read()
    colours = [rgba[i:i + 3] for i in range(0, len(rgba), 4)]
    if sys.argv[2:3] == ["--ppm"]:
        with open(sys.argv[3], "rb") as file:
            _, size, _, pixels = file.read().split(b"\n", 3)
        print(f"{width} {height}".encode() == size, b"".join(colours) == pixels, len(set(colours)) > 1)
        return
    print(width, height)
    for word in sys.argv[2:]:
        x, y = map(int, word.split(","))
        print(word, colours[y * width + x].hex())


main()
