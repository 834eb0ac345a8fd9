"""Reads every entry of a zip, checks the checksums, and prints one line for each:
name|method|general purpose flags|Unix mode|DOS time|extra field|size"""
import sys
import zipfile

with zipfile.ZipFile(sys.argv[1]) as archive:
    for entry in archive.infolist():
        size = len(archive.read(entry))
        year, month, day, hour, minute, second = entry.date_time
        time = f"{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}"
        line = [entry.filename, entry.compress_type, entry.flag_bits,
                oct(entry.external_attr >> 16), time, entry.extra.hex(), size]
        sys.stdout.buffer.write(("|".join(map(str, line)) + "\n").encode())
