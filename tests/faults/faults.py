"""What goes wrong: one function per family in FAMILIES, which lists the faults of one subject.

A fault wraps the command of a subject, or changes its environment or its place.
"""

import errno
import os
import random
import re
import shutil
import signal
import struct
import subprocess
from dataclasses import dataclass

from errnos import ERRNOS, NEVER_FAIL, errnos_of
from subjects import user_namespace

PAGE = 4096
KIB = 1024


@dataclass
class Fault:
    name: str
    wrap: callable = lambda place, command: command
    environment: dict = None
    damage: callable = lambda place: None
    signals: tuple = ()          # what may kill the command
    harms_records: bool = False  # a second try cannot find what the fault has destroyed
    may_litter: bool = False
    may_crawl: bool = False      # slower than anybody would wait
    mutes: bool = False          # standard error does not work
    only_lives: bool = False     # whatever is lost, the command ends, by no signal
    timeout_secs: int = 30
    is_answer: bool = False      # what was looked for is not there, or not to be seen here

    def settle(self, place):
        """After the run: whether the fault happened, and what it excuses."""
        return True


class InjectedError(Fault):
    """The N-th call of each thread fails, by strace."""

    def settle(self, place):
        if not os.path.exists(place.trace):
            return False  # strace did not start, as where no more processes can be had
        hits, begun = [], {}
        with open(place.trace, encoding="utf-8", errors="replace") as trace:
            for thread, text in (line.rstrip().split(None, 1) for line in trace):
                if text.endswith("<unfinished ...>"):
                    begun[thread] = text.replace("<unfinished ...>", "")
                elif "(INJECTED)" in text:
                    start, resumed, end = text.partition(" resumed>")
                    hits.append(begun.get(thread, "") + end if resumed else start)
        self.hit = "\n     ".join(hits)
        self.may_litter = "unlink" in self.hit or "rmdir" in self.hit
        self.mutes = any(re.match(r"writev?\(2<", hit) for hit in hits)
        denied = self.name.endswith(("EPERM", "EACCES")) and re.search(
            "/proc>?|process_vm_readv|ptrace", self.hit)
        denied = denied or self.name.endswith("ENOSYS") and "process_vm_readv" in self.hit
        self.harms_records = self.name.endswith(
            ("ELOOP", "ENAMETOOLONG", "ENXIO", "EISDIR", "ENOTDIR"))
        self.is_answer = self.name.endswith(("ENOENT", "ESRCH")) or bool(denied)
        call, error = re.split("@.*=", self.name)
        return error == "KILL" or bool(hits) and all(
            error in errnos_of(call, hit) for hit in hits)


def traced(place, *options):
    return ["strace", "-f", "-qq", "-y", "-s", "60", "-o", place.trace, *options]


def list_calls(run, subject):
    """{call: [what the threads' first ones look like, their second ones, …]} of a healthy run.

    Without as many of each call as the loader makes: when one of these fails, nothing is loaded.
    """
    place, _ = run(subject, Fault("count", lambda place, command: traced(place) + command))
    calls, counts, loading, has_begun = {}, {}, {}, False
    with open(place.trace, encoding="utf-8", errors="replace") as trace:
        for line in trace:
            match = re.match(r"(\d+) +((\w+)\(.*)", line)
            if match:
                thread, text, call = match.groups()
                nth = counts[thread, call] = counts.get((thread, call), 0) + 1
                if not has_begun:
                    loading[call] = nth
                elif nth > loading.get(call, 0):
                    calls.setdefault(call, {}).setdefault(nth, []).append(text)
                has_begun = has_begun or call == "munmap"  # the loader has read ld.so.cache
    place.remove()
    return calls


def system_calls(subject, run, _):
    """Every system call fails at every N with each errno of its manual page, and is the last."""
    def inject(call, nth, error, how, **more):
        options = ("--seccomp-bpf", "-e", f"trace={call}", "-e", f"inject={call}:{how}:when={nth}")
        return InjectedError(f"{call}@{nth}={error}",
                             lambda place, command: traced(place, *options) + command, **more)
    for call, occurrences in sorted(list_calls(run, subject).items()):
        if call not in ERRNOS and call not in NEVER_FAIL:
            print(f"note: errnos.py has no row for {call}, which {subject.name} calls")
        for nth, texts in sorted(occurrences.items()):
            for error in sorted({error for text in texts for error in errnos_of(call, text)}):
                yield inject(call, nth, error, f"error={error}")
            yield inject(call, nth, "KILL", "signal=KILL", signals=(signal.SIGKILL,))


def allocations(subject, run, assets):
    """Every allocation fails: once, six in a row, and from N on."""
    def failing(place, command, first=0, count=1):
        return ["env", f"LD_PRELOAD={assets.preload}", f"FAULTS_MALLOC={first},{count}",
                f"FAULTS_MALLOC_TOLD={place.trace}", *command]
    place, _ = run(subject, Fault("count", failing))
    try:
        with open(place.trace, encoding="ascii") as told:
            tried = int(told.read())
    except OSError:
        tried = 400 # a command that ends by a signal cannot say
    place.remove()
    for first in range(1, tried + 1):
        for word, count in (("once", 1), ("six", 6), ("on", 1 << 40)):
            yield Fault(f"malloc@{first}={word}",
                        lambda place, command, first=first, count=count:
                        failing(place, command, first, count))


def rings(subject, run, assets):
    """The files of a dead session are truncated, zeroed, flipped, swapped; others are planted."""
    if subject.name not in ("recover", "reopen"):
        return
    names = [os.path.basename(path) for path in ring_files(assets.path("dead"))]
    for number, path in enumerate(ring_files(assets.path("dead"))):
        with open(path, "rb") as file:
            data = file.read()
        # The rest of a ring is zeros, all alike.
        used = len(data.rstrip(b"\0"))
        for at in [*range(0, used, 512), *range(used + 512 & -512, len(data), len(data) // 4 + 1)]:
            zeros = bytes(min(512, len(data) - at))
            for word, change in (("truncate", lambda file, at=at: file.truncate(at)),
                                 ("zero", lambda file, at=at, zeros=zeros: _put(file, at, zeros)),
                                 ("flip", lambda file, at=at: _flip(file, at))):
                yield _at_ring(f"{names[number]}:{word}@{at}", number, _changed, change)
        yield _at_ring(f"{names[number]}:grow", number, _changed, lambda file: file.truncate(1 << 40))
        gone = _at_ring(f"{names[number]}:remove", number, os.remove)
        gone.is_answer = names[number].endswith(".ring")  # a session may record nothing of a kind
        yield gone
        for other in range(number):
            yield Fault(f"{names[number]}:swap-{names[other]}", harms_records=True,
                        damage=lambda place, one=number, two=other:
                        _swap(*(ring_files(place.sessions)[at] for at in (one, two))))
        for kind, plant in PLANTED.items():
            yield _at_ring(f"{names[number]}:{kind}", number, _replaced, plant)
    for kind, plant in PLANTED.items():
        yield Fault(f"beside:{kind}", damage=lambda place, plant=plant: plant(
            os.path.join(place.sessions, "faulty-1-" + "0" * 32)))


def ring_files(sessions):
    return sorted(os.path.join(folder, name) for folder, _, names in os.walk(sessions)
                  for name in names)


def _at_ring(name, number, damage, *more):
    return Fault(name, damage=lambda place: damage(ring_files(place.sessions)[number], *more),
                 harms_records=True)


def _changed(path, change):
    with open(path, "r+b") as file:
        change(file)


def _replaced(path, plant):
    os.remove(path)
    plant(path)


def _put(file, at, data):
    file.seek(at)
    file.write(data)


def _flip(file, at):
    file.seek(at)
    data = bytearray(file.read(512))
    where = random.Random(at).randrange(len(data) * 8)
    data[where // 8] ^= 1 << where % 8
    _put(file, at, data)


def _swap(one, two):
    os.rename(one, one + ".swap")
    os.rename(two, one)
    os.rename(one + ".swap", two)


def _sparse(path):
    with open(path, "wb") as file:
        os.fchmod(file.fileno(), 0o600)
        file.truncate(1 << 42)


def _foreign(path):
    with open(path, "wb") as file:
        file.write(bytes(KIB))
    if os.getuid() == 0:
        os.chown(path, 65534, 65534)


PLANTED = {"link": lambda path: os.symlink("/etc/passwd", path),
           "link-to-nothing": lambda path: os.symlink("/nonexistent", path),
           "fifo": os.mkfifo,
           "directory": lambda path: os.mkdir(path, 0o700),
           "sparse": _sparse,
           "foreign": _foreign}


# A program cannot end without the first three, and glibc ends a process without the others.
UNREFUSED = ("exit", "exit_group", "rt_sigreturn", "futex", "rseq")


def sandboxes(subject, run, assets):
    """Each system call of a host is refused for ever, before its session is opened and after."""
    headers = [path for path in (f"/usr/include/{os.uname().machine}-linux-gnu/asm/unistd_64.h",
                                 "/usr/include/asm-generic/unistd.h") if os.path.exists(path)]
    if subject.name != "host" or not headers:
        return
    with open(headers[0], encoding="utf-8") as header:
        numbers = dict(re.findall(r"#define __NR_(\w+) (\d+)", header.read()))
    command = {"FAULTS_COMMAND": assets.bugpack}
    place, _ = run(subject, Fault("count", lambda place, command: traced(place) + command,
                                  environment={**command, "FAULTS_SANDBOX": "none"}))
    with open(place.trace, encoding="utf-8", errors="replace") as trace:
        calls = set(re.findall(r"^\d+ +(\w+)\(", trace.read(), re.MULTILINE))
    place.remove()
    for call in sorted(calls & numbers.keys() - set(UNREFUSED)):
        for refusal in (errno.EPERM, errno.ENOSYS):
            for when in ("before", "after"):
                yield Fault(f"{call}:{errno.errorcode[refusal]}:{when}", only_lives=True,
                            may_litter=True, timeout_secs=120, environment={
                                **command, "FAULTS_SANDBOX": f"{numbers[call]} {refusal} {when}"})


def limits(subject, run, assets):
    """Descriptors, file sizes, inodes, memory, and disks of every size to twice what is needed."""
    def limited(name, option, **more):
        return Fault(name, lambda place, command: ["prlimit", option, "--", *command], **more)
    place, _ = run(subject, Fault("measure"))
    needed = sum(os.path.getsize(os.path.join(folder, name))
                 for folder, _, names in os.walk(place.disk) for name in names) + 256 * KIB
    largest = max([os.path.getsize(os.path.join(folder, name))
                   for folder, _, names in os.walk(place.disk) for name in names], default=0)
    place.remove()
    for count in range(3, 65):
        yield limited(f"nofile={count}", f"--nofile={count}:{count}")
    if subject.makes_zip:
        for size in sizes_to(2 * largest, 512):
            yield limited(f"fsize={size}", f"--fsize={size}:{size}")
        # From a user namespace of its own a command may not look into processes outside.
        sees_less = subject.name == "capture-host" and bool(user_namespace())
        for size in sizes_to(2 * needed, PAGE):
            yield Fault(f"disk={size}", lambda place, command, size=size:
                        on_small_disk(getattr(place, subject.small), f"size={size}", command),
                        is_answer=sees_less)
        first = 2 if subject.small == "out" else 4  # what is on it already has an inode each
        for count in range(first, first + 10):
            yield Fault(f"disk-inodes={count}", lambda place, command, count=count:
                        on_small_disk(getattr(place, subject.small), f"nr_inodes={count}", command),
                        is_answer=sees_less)
    for size in range(4 << 20, 160 << 20, 1 << 20):
        yield limited(f"as={size >> 20}M", f"--as={size}:{size}")
    group = memory_group(assets)
    for size in range(1 << 20, 24 << 20, 512 * KIB) if group else ():
        yield Fault(f"cgroup={size // KIB}K", lambda place, command, size=size:
                    in_group(group, place, command, size), signals=(signal.SIGKILL,),
                    may_crawl=True)


def sizes_to(most, unit):
    """From 0 on: each of the first hundred units, then in steps of a hundredth of all."""
    step = most // 100 // unit * unit + unit
    return [size for size in [*range(0, 100 * unit, unit), *range(100 * unit, most, step)]
            if size <= most]


# The disk is mounted where only the command sees it, and copied out before it goes.
ON_DISK = """
mv "$1" "$1.before" && mkdir -m 700 "$1" && mount -t tmpfs -o "$2,mode=700" faults "$1" &&
    cp -a "$1.before/." "$1/" || exit 97
disk=$1
shift 2
"$@"
status=$?
mkdir -m 700 "$disk.after" && cp -a "$disk/." "$disk.after/"
exit $status
"""


def on_small_disk(path, limit, command):
    return ["unshare", *user_namespace(), "--mount", "sh", "-c", ON_DISK, "sh", path, limit, *command]


def can_mount():
    return subprocess.run(["unshare", *user_namespace(), "--mount", "mount", "-t", "tmpfs",
                           "faults", "/mnt"], check=False, capture_output=True).returncode == 0


def take_disk(place):
    """Puts what was on the small disk where it was for the command."""
    for path in (place.out, place.disk):
        if os.path.isdir(path + ".after"):
            shutil.rmtree(path)
            os.rename(path + ".after", path)


def memory_group(assets):
    """A directory below which memory groups can be made, and the names of its files; or None."""
    for root, limit in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
                        ("/sys/fs/cgroup", "memory.max")):
        path = os.path.join(root, os.path.basename(assets.dir))
        try:
            os.mkdir(path)
        except OSError:
            continue
        if os.path.exists(os.path.join(path, limit)):
            os.rmdir(path)
            return path, limit
        os.rmdir(path)
    return None


def in_group(group, place, command, size):
    path, limit = group
    path += os.path.basename(place.dir)
    script = ('mkdir "$1" && echo "$2" >"$1/$3" && (echo 0 >"$1/cgroup.procs"; shift 3; exec "$@")\n'
              'status=$?; rmdir "$1"; exit $status')
    return ["sh", "-c", script, "sh", path, str(size), limit, *command]


def meddling(subject, run, assets):
    """Others read or remove the rings of a living host."""
    if subject.name not in ("die", "host"):
        return
    acts = {"read": 'cat "$XDG_RUNTIME_DIR"/bugpack/*/* >/dev/null',
            "recover": f'{assets.bugpack} recover -o "$HOME/disk/out" 2>/dev/null >&2',
            "remove-ring": 'rm "$XDG_RUNTIME_DIR"/bugpack/*/log.ring'}
    for name, act in acts.items():
        yield Fault(name, environment={"FAULTS_BETWEEN": act}, harms_records=name.startswith("remove"))


FAMILIES = {family.__name__: family
            for family in (system_calls, allocations, rings, sandboxes, limits, meddling)}
