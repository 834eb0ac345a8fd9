#!/usr/bin/env python3
"""Judges the reports on a disk after a power cut, and those recovered from the rings on it.

    power_cut.py CONSOLE DISK RECOVERED

Every report is whole. What the kernel had written of the rings is there: each record in order, and
one that the host made. What is missing is told. Prints a sentence for each promise that is broken,
and at the end how many plain copies are torn and how many records were recovered. Exits 0 when all
was kept.
"""

import glob
import json
import os
import re
import sys
import zipfile
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../faults"))
from oracle import Report  # noqa: E402


def read_announced(console):
    """By process id: the host has recorded nothing from this number on."""
    with open(console, encoding="utf-8", errors="replace") as lines:
        found = re.findall(r"counting (\d+) (\d+)\r*\n", lines.read())
    return {int(pid): int(end) for pid, end in found}


def read_logs(data):
    """The number, and the place in the ring, of each record; the session logs one or two itself."""
    for line in data.splitlines():
        record = json.loads(line)
        is_counted = record["channel"] == "count"
        yield (int(re.fullmatch(r"record (\d+)\.", record["message"])[1]) if is_counted else None,
               record["seq"])


def read_traffic(data):
    for line in data.splitlines():
        record = json.loads(line)
        yield record["type"], record["seq"]


def read_notices(data):
    for entry in json.loads(data)["notifications"]:
        number = int(re.fullmatch(r"notice (\d+)\.", entry["text"])[1])
        yield number, number // 30 + 1 if number % 30 == 0 else 0


RINGS = {"logs.jsonl": read_logs, "traffic-index.jsonl": read_traffic,
         "notifications.json": read_notices, "metrics-history.jsonl": None, "traffic.pcap": None}


def check_records(name, records, end, reason):
    sequences = [sequence for _, sequence in records]
    numbers = [number for number, _ in records if number is not None]
    if sequences != sorted(set(sequences)) or numbers != sorted(set(numbers)):
        yield f"{name}: out of order"
    if any(number is not None and number >= sequence for number, sequence in records
           if name != "notifications.json") or 0 in sequences:
        yield f"{name}: a record has another's number"
    if numbers and numbers[-1] >= end:
        yield f"{name}: {numbers[-1]} was never recorded, the host came to {end}"
    holes = sequences[-1] + 1 - sequences[0] - len(sequences) if sequences else 0
    told = re.search(r"at least (\d+) records damaged", reason)
    if name == "logs.jsonl" and holes > (int(told[1]) if told else 0):
        yield f"{name}: {holes} records are missing in between: {reason}"


def check(path, announced, is_restarted):
    """The sentences, and the number of records."""
    try:
        report = Report(path)
    except Exception as error:  # pylint: disable=broad-except # whatever it is, it is not a report
        return [f"torn: {error}"], 0
    metadata = json.loads(report.entries["metadata.json"])
    if metadata["report_type"] != "crash":
        return [] if report.is_complete else ["not complete"], 0
    problems, count = [], 0
    if is_restarted and report.is_complete:
        problems.append("complete, after a restart")
    for name, read in RINGS.items():
        line = report.lines.get(name, {"status": "absent"})
        reason = line.get("reason") or ""
        is_told = "newest may be missing" in reason or line["status"] in ("absent", "failed")
        if is_restarted and not is_told and name != "traffic-index.jsonl":
            problems.append(f"{name} is {line['status']} after a restart: {reason}")
        if read and name in report.entries:
            records = list(read(report.entries[name]))
            problems += check_records(name, records, announced.get(metadata["pid"], 0), reason)
            count += len(records)
    return problems, count


def is_torn(path):
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.testzip() is not None
    except (zipfile.BadZipFile, EOFError, OSError, zlib.error):
        return True


def main():
    console, disk, recovered = sys.argv[1:]
    announced, total, is_wrong = read_announced(console), 0, False
    for folder in disk, os.path.join(disk, "queue/d"), os.path.join(disk, "inbox"), recovered:
        for path in glob.glob(os.path.join(folder, "*.zip")):
            problems, count = check(path, announced, folder == recovered)
            total += count if folder == recovered else 0
            is_wrong = is_wrong or bool(problems)
            for problem in problems:
                print(f"{path}: {problem}")
    print(sum(map(is_torn, glob.glob(os.path.join(disk, "copy-*")))), total)
    return 1 if is_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
