"""What is tried: one row per subject in SUBJECTS, with its command and what a healthy run of it has.

A subject runs in a Place, a directory of its own for one trial, beside the Assets that all trials
share: processes to look into, files to attach, dead sessions to copy.
"""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import zipfile
from dataclasses import dataclass, field

RECORDS = 120
TARGETS = 12


def user_namespace():
    return [] if os.getuid() == 0 else ["--map-root-user"]


class Assets:
    """What all trials share, made once by programs without a fault."""

    def __init__(self, build):
        self.build = build
        self.bugpack = os.environ.get("BUGPACK") or os.path.join(build, "src/cli/bugpack")
        self.host = os.path.join(build, "tests/faults/faults_host")
        self.preload = os.path.join(build, "tests/faults/libfailing_preload.so")
        if not os.path.exists(self.preload):
            self.preload = os.path.join(build, "tests/faults/failing_preload.so")
        self.dir = tempfile.mkdtemp(prefix="bugpack-faults.")
        self.processes = []
        self.shapes = {}

    def path(self, name):
        return os.path.join(self.dir, name)

    def make(self):
        worker = os.path.join(self.build, "tests/support/alloc_worker_shared")
        self.has_jemalloc = os.path.exists(worker)
        if not self.has_jemalloc:
            worker = worker.replace("shared", "plain")
        self._start([worker, "--bytes", "1000000", "--ready", self.path("ready")], "ready")
        self.target = self.processes[0].pid
        # Where the program under test does nothing, no fault shows it.
        json.loads(subprocess.run([self.bugpack, "sample", "--pid", str(self.target), "--window", "0"],
                                  check=True, capture_output=True, timeout=60).stdout)
        # Always ready to run, of which more is read, and in nobody's way.
        self._start(["nice", "-n", "19", "sh", "-c", ': >"$0"; while :; do :; done',
                     self.path("busy")], "busy")
        self.busy = self.processes[1].pid
        # A machine of a few processes: what a capture of the real one does depends on everybody.
        script = (f'for i in $(seq {TARGETS}); do "$0" --bytes 1000 --ready "$1/ready-$i" & '
                  'echo $! >>"$1/pids"; done; wait')
        self._start(["unshare", *user_namespace(), "--pid", "--fork", "--mount-proc",
                     "--kill-child", "sh", "-c", script, worker, self.dir], f"ready-{TARGETS}")
        with open(self.path("pids"), encoding="ascii") as pids:
            self.machine_pids = {int(pid) for pid in pids}
        with open(self.path("state.json"), "w", encoding="utf-8") as out:
            json.dump({"state": list(range(100))}, out)
        with open(self.path("app.log"), "w", encoding="utf-8") as out:
            out.writelines(f"record {number}.\n" for number in range(RECORDS))
        with open(self.path("attached"), "wb") as out:
            out.write(bytes(range(256)) * 200)
        place = Place(self)
        died = place.run([self.host, "die", place.out, place.count])
        if died.returncode != -signal.SIGKILL or not os.listdir(place.sessions):
            raise RuntimeError(f"no dead session could be made: {died}")
        shutil.move(place.sessions, self.path("dead"))
        for name in ("before.zip", "after.zip"):
            place.run([self.bugpack, "capture", "--host", "--output", self.path(name)])
        place.remove()

    def _start(self, command, sign):
        self.processes.append(subprocess.Popen(command, stdin=subprocess.DEVNULL))
        while not os.path.exists(self.path(sign)):
            if self.processes[-1].poll() is not None:
                raise RuntimeError(f"{command} has ended")
            time.sleep(0.01)

    def enter_machine(self):
        init = subprocess.run(["pgrep", "-P", str(self.processes[2].pid)], check=True,
                              capture_output=True, text=True).stdout.split()[0]
        user = [] if os.getuid() == 0 else ["--user", "--preserve-credentials"]
        return ["nsenter", "--target", init, *user, "--pid", "--mount", "--"]

    def remove(self):
        for process in self.processes:
            process.kill()
            process.wait()
        shutil.rmtree(self.dir, ignore_errors=True)


class Place:
    """The directory of one trial; `disk` below it is what a fault may make small."""

    def __init__(self, assets):
        self.assets = assets
        self.dir = tempfile.mkdtemp(prefix="trial.", dir=assets.dir)
        self.disk = os.path.join(self.dir, "disk")
        self.out = os.path.join(self.disk, "out")
        self.runtime = os.path.join(self.disk, "runtime")
        self.sessions = os.path.join(self.runtime, "bugpack")
        self.count = os.path.join(self.dir, "count")
        self.trace = os.path.join(self.dir, "trace")
        for path in (self.disk, self.out, self.runtime):
            os.mkdir(path, 0o700)
        with open(self.count, "wb") as count:
            count.write(bytes(4))

    def copy_dead(self):
        shutil.copytree(self.assets.path("dead"), self.sessions)

    def environment(self, more=None):
        kept = {name: os.environ[name] for name in ("PATH", "TMPDIR") if name in os.environ}
        return {**kept, "HOME": self.dir, "XDG_RUNTIME_DIR": self.runtime, "LC_ALL": "C",
                **(more or {})}

    def run(self, command, more=None, timeout=30):
        """Runs a command to its end; a hang is a TimeoutExpired, and nothing of it is left."""
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, cwd=self.dir, start_new_session=True,
                                 env=self.environment(more))
        try:
            out, err = child.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()
            raise
        return subprocess.CompletedProcess(command, child.returncode,
                                           out.decode(errors="replace"),
                                           err.decode(errors="replace"))

    def remove(self):
        shutil.rmtree(self.dir, ignore_errors=True)


@dataclass
class Content:
    """Something that a healthy run has: in an entry of the zip, or in "stdout"."""
    entry: str
    what: str
    test: callable = field(repr=False)


def shape(value, path=""):
    """The paths of all keys in a JSON document; elements of arrays are one."""
    paths = {path} if path else set()
    if isinstance(value, dict):
        for key, inner in value.items():
            paths |= shape(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for inner in value:
            paths |= shape(inner, f"{path}[]")
    return paths


# What a thread has or has not, as it happens to be born within the window.
PASSING = ("born_in_window", "age_ms", "cpu_ms")


def keys_of(assets, entry, data):
    """What is compared with healthy runs: of the machine only our own processes, each by itself."""
    document = parse(data)
    if entry == "host-threads.json":
        document = {str(thread["tgid"]): thread for thread in (document or {}).get("threads", ())
                    if thread["tgid"] in assets.machine_pids}
    return {path for path in shape(document) if path.rpartition(".")[2] not in PASSING}


def parse(data):
    try:
        return json.loads(data)
    except ValueError:
        return None


def has_records(data):
    return all(f"record {number}.".encode() in data for number in range(RECORDS))


def has_lines(data, wanted, least):
    return data.count(b"\n") >= least and all(word.encode() in data for word in wanted)


def committed(place):
    with open(place.count, "rb") as count:
        return int.from_bytes(count.read(4), "little")


def recorded(place, count=None):
    """What a host recorded up to `count`, in the report about it."""
    count = committed(place) if count is None else count
    notices = [f"notice {number}." for number in range(0, count, 30)]
    records = [f"record {number}.".encode() for number in range(count)]
    if count == 0:
        return []
    return [Content("logs.jsonl", f"{count} records",
                    lambda data: all(record in data for record in records)),
            Content("traffic.pcap", f"{count} messages",
                    lambda data: all(number.to_bytes(4, "little") in data
                                     for number in range(count))),
            Content("notifications.json", f"{len(notices)} notices",
                    lambda data: all(notice.encode() in data for notice in notices))]


def shaped(assets, subject, entries):
    """Each entry has the keys that it had in healthy runs."""
    found = []
    for entry in entries:
        wanted = assets.shapes.get((subject, entry), set())
        found.append(Content(entry, "the keys of a healthy run",
                             lambda data, entry=entry, wanted=wanted:
                             has_keys(keys_of(assets, entry, data), wanted)))
    return found


def has_keys(keys, wanted):
    """In place of a heap's numbers a thread may say why there are none."""
    return all(path in keys or ".heap" in path and path.partition(".heap")[0] + ".heap_failure" in keys
               for path in wanted)


def machine(place):
    pids = place.assets.machine_pids
    return [Content("host-threads.json", f"all {TARGETS} processes that run", lambda data:
                    pids <= {thread["tgid"] for thread in parse(data)["threads"]})]


def attached(place):
    with open(place.assets.path("attached"), "rb") as file:
        bytes_of_file = file.read()
    return [Content("attached", "the file", lambda data: data == bytes_of_file),
            Content("logs/app.log", "the log", has_records),
            Content("session.json", "the state", lambda data: parse(data) is not None)]


def compared(place):
    wanted = place.assets.shapes.get(("diff", "text"))
    return [Content("stdout", "the comparison", lambda data: wanted is None or data == wanted)]


def relayed():
    even = [f"record {number}.\n".encode() for number in range(0, RECORDS, 2)]
    return [Content("stdout", "what the command printed",
                    lambda data: all(line in data for line in even)),
            Content("logs.jsonl", f"{RECORDS} lines", has_records)]


@dataclass
class Subject:
    name: str
    command: callable            # Place -> arguments
    content: callable            # Place -> [Content]
    shaped: tuple = ()           # entries whose keys are compared with those of healthy runs
    prepare: callable = lambda place: None
    done: int = 0                # the status that says "complete"
    claims: bool = True          # and that status is a claim
    relays: bool = False         # what it records is another's, who may end early
    enter: callable = lambda place: []  # what comes before the command, and before a fault
    makes_zip: bool = True
    small: str = "out"           # the directory of Place that a small disk is below
    has_sessions: bool = False   # records survive in session directories: try `recover` next


def _capture(place, *what):
    place_arguments = ["-o", place.out, "-q"]
    return [place.assets.bugpack, "capture", *what, *place_arguments]


_PROCESS = ("metadata.json", "runtime-metrics.json", "process.json")

SUBJECTS = {subject.name: subject for subject in (
    Subject("capture",
            lambda place: _capture(place, "--pid", str(place.assets.target), "--window", "0",
                                   "--session", place.assets.path("state.json"),
                                   "--log", place.assets.path("app.log"),
                                   "--attach", place.assets.path("attached")),
            attached, (*_PROCESS, "thread-heap.json", "stacks.json")),
    Subject("capture-busy",
            lambda place: _capture(place, "--pid", str(place.assets.busy), "--window", "0"),
            lambda place: [], _PROCESS),
    Subject("capture-host", lambda place: _capture(place, "--host"), machine,
            ("metadata.json", "host-threads.json"),
            enter=lambda place: place.assets.enter_machine()),
    Subject("run",
            lambda place: [place.assets.bugpack, "run", "-o", place.out, "--app", "faulty", "--",
                           place.assets.host, "emit", "-", "-"],
            lambda place: relayed(), ("metadata.json",), done=-signal.SIGFPE, relays=True,
            small="disk", has_sessions=True),
    Subject("recover", lambda place: [place.assets.bugpack, "recover", "-o", place.out],
            lambda place: recorded(place, RECORDS), ("metadata.json",), Place.copy_dead,
            has_sessions=True),
    Subject("reopen", lambda place: [place.assets.host, "reopen", place.out, place.count],
            lambda place: recorded(place, RECORDS), ("metadata.json",), Place.copy_dead,
            has_sessions=True),
    Subject("host", lambda place: [place.assets.host, "report", place.out, place.count],
            recorded, _PROCESS, small="disk", has_sessions=True),
    Subject("die", lambda place: [place.assets.host, "die", place.out, place.count],
            recorded, done=-signal.SIGKILL, claims=False, small="disk",
            has_sessions=True),
    Subject("sample",
            lambda place: [place.assets.bugpack, "sample", "--pid", str(place.assets.target),
                           "--window", "0"],
            lambda place: [], ("stdout",), makes_zip=False),
    Subject("heap",
            lambda place: [place.assets.bugpack, "heap", "--json", "--pid",
                           str(place.assets.target)],
            lambda place: [], ("stdout",), makes_zip=False),
    Subject("diff",
            lambda place: [place.assets.bugpack, "diff", place.assets.path("before.zip"),
                           place.assets.path("after.zip")],
            compared, done=1, makes_zip=False),  # they differ
    Subject("index",
            lambda place: [place.assets.bugpack, "index", place.assets.path("after.zip")],
            lambda place: [], ("stdout",), makes_zip=False),
)}


def expected(subject, place, code, was_killed):
    """What must be there: for a host every record that was committed, however it ended."""
    content = subject.content(place) if code == subject.done or not subject.relays else []
    return content + ([] if was_killed or not content and subject.relays else
                      shaped(place.assets, subject.name, subject.shaped))


def learn_shapes(assets, subject, run):
    """Two healthy runs: what both have, every healthy run has. `run` gives (place, result)."""
    for entry in subject.shaped:
        assets.shapes.pop((subject.name, entry), None)
    for _ in range(2):
        place, result = run(subject)
        found = {"stdout": result.stdout.encode()}
        for name in os.listdir(place.out):
            with zipfile.ZipFile(os.path.join(place.out, name)) as archive:
                found.update({entry: archive.read(entry) for entry in archive.namelist()})
        for entry in subject.shaped:
            key = (subject.name, entry)
            keys = keys_of(assets, entry, found.get(entry, b"null"))
            assets.shapes[key] = assets.shapes.get(key, keys) & keys
        if subject.name == "diff":
            assets.shapes[("diff", "text")] = found["stdout"]
        place.remove()
