"""What must hold after every fault, in one function.

Exit 0 and `complete: true` imply that the zip verifies and holds every record that was committed.
Otherwise the reason is in the manifest or on standard error, and what was not written is still
where the next try finds it. And never: a command or host killed by a signal of its own, a torn zip,
anything else beside the reports, a hang.
"""

import hashlib
import json
import os
import signal
import zipfile

from subjects import expected


class Report:
    """A zip in the output directory: its entries, and the lines of its manifest by name."""

    def __init__(self, path):
        self.path = path
        with zipfile.ZipFile(path) as archive:
            if archive.testzip() is not None:
                raise ValueError("an entry has a wrong checksum")
            self.entries = {name: archive.read(name) for name in archive.namelist()}
        manifest = json.loads(self.entries["manifest.json"])
        self.is_complete = manifest["complete"]
        self.lines = {line["name"]: line for line in manifest["artefacts"]}
        for name, line in self.lines.items():
            data = self.entries.get(name)
            if data is None and line["status"] in ("ok", "truncated"):
                raise ValueError(f"{name} is {line['status']} in the manifest, and not there")
            if line["status"] != "ok" and not line.get("reason"):
                raise ValueError(f"{name} is {line['status']} without a reason")
            if data is not None and "sha256" in line and name != "manifest.json" and \
                    hashlib.sha256(data).hexdigest() != line["sha256"]:
                raise ValueError(f"{name} has another sha256 than the manifest says")


def read_reports(place, problems, may_litter):
    reports = []
    for name in sorted(os.listdir(place.out)):
        path = os.path.join(place.out, name)
        if not name.endswith(".zip"):
            if not may_litter:
                problems.append(f"litter: {name}")
            continue
        try:
            reports.append(Report(path))
        except (zipfile.BadZipFile, ValueError, KeyError, EOFError, OSError) as error:
            problems.append(f"torn: {name}: {error}")
    return reports


def holds(content, reports, printed):
    sources = [printed] if content.entry == "stdout" else [
        report.entries[content.entry] for report in reports if content.entry in report.entries]
    for data in sources:
        try:
            if content.test(data):
                return True
        except (TypeError, KeyError, AttributeError):
            pass
    return False


def has_no_heap(content, reports):
    """A heap whose allocator cannot be calibrated is omitted with its reason, and the report is complete."""
    return content.entry == "thread-heap.json" and any(
        "calibration-failure" in (report.lines.get(content.entry, {}).get("reason") or "") for report in reports)


def is_told_in_manifest(content, reports):
    """The entry's line is not ok, and so the report is not complete."""
    return any(report.lines.get(content.entry, {}).get("status", "ok") != "ok"
               and not report.is_complete for report in reports)


def said(result):
    """Standard error without what the recorded command itself printed there."""
    return [line for line in result.stderr.splitlines()
            if line.strip() and not line.startswith("record ")]


def judge(subject, place, fault, result, next_try):
    """Yields nothing, or a sentence for each promise that is broken.

    `result` is how the command with the fault ended (None: it hung); `next_try` runs `bugpack
    recover` without a fault and returns its result.
    """
    problems = []
    if result is None:
        return [] if fault.may_crawl else ["hang"]
    reports = read_reports(place, problems, fault.may_litter)
    code, printed = result.returncode, result.stdout.encode()
    was_killed = -code in fault.signals
    if code < 0 and code != subject.done and not was_killed:
        problems.append(f"killed by {signal.Signals(-code).name}")
    if fault.only_lives:
        return problems
    wanted = expected(subject, place, code, was_killed)
    lost = [content for content in wanted
            if not fault.is_answer and not holds(content, reports, printed)
            and not has_no_heap(content, reports)]
    told = said(result)

    # Other errors say that a directory has no such sync (fsync(2)).
    if code == 0 and fault.name.startswith("fsync@") and \
            fault.name.endswith(("EIO", "ENOSPC", "EDQUOT")):
        problems.append("a sync has failed, and the status is 0")

    # Success is said: all is there. Less is said: why, in the manifest or on standard error.
    if code == subject.done and subject.claims and not told:
        if subject.makes_zip and not reports and wanted and not fault.is_answer:
            problems.append(f"status {code}, no report, and not a word")
        for report in reports:
            if code == 0 and not report.is_complete:
                problems.append("status 0, and the report is not complete")
        problems += [f"status {code} and not a word, but not {content.what} in {content.entry}"
                     for content in lost if not is_told_in_manifest(content, reports)]
    elif code == 0 and lost:
        # A line on standard error beside status 0 is a reason only where the manifest agrees.
        problems += [f"status 0, but not {content.what} in {content.entry}: {told[0]}"
                     for content in lost if not is_told_in_manifest(content, reports)
                     and not subject.has_sessions]
    elif code > 0 and not told and not fault.mutes and \
            all(report.is_complete for report in reports):
        problems.append(f"status {code}, and not a word")
    for report in reports:
        if report.is_complete:
            problems += [f"complete, but not {content.what} in {content.entry}"
                         for content in lost if content.entry != "stdout"]

    # What was not written is still there for the next try.
    if subject.has_sessions and lost and not fault.harms_records:
        again = next_try()
        if again is None:
            return problems + ["the next try hangs"]
        reports = read_reports(place, problems, fault.may_litter)
        told += said(again)
        for content in lost:
            if content.entry != "stdout" and not holds(content, reports, b"") and \
                    not is_told_in_manifest(content, reports) and not told:
                problems.append(f"lost without a word: {content.what} in {content.entry}")
            elif content.entry != "stdout" and not holds(content, reports, b"") and \
                    subject.name in ("recover", "reopen"):
                problems.append(f"lost for good: {content.what} in {content.entry}: "
                                + " | ".join(told[:2]))
    return problems
