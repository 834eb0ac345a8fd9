#!/bin/sh
# show: what a report says, and nothing that it does to the terminal.
. "$(dirname "$0")/lib.sh"
need unzip jq python3 script
cd "$scratch" || exit 1

python3 "$here/make_reports"

fact 'the findings come first, each with its entry, the most severe on top'
LC_ALL=C run show bad.zip
expect_status 0
sed -n '/^Findings/,/^$/p' out >findings
for line in '!! deadlock: a (1) and b (2) wait for each other.*\[threads.json\]' \
    '!! 1000 of at most 1024 file descriptors are open .*\[process.json\]' \
    ' ! 1 other gap, disconnect or hang in the 10 s before the trigger, the last 5.0 s before: "display:unimpl:9.*"  \[manifest.json\]' \
    ' ! thread 60 "t20.*" used 100 % of one CPU for 2.0 s  \[runtime-metrics.json\]' \
    ' ! resident memory grew from 97 to 190 MiB in 19 s  \[metrics-history.jsonl\]' \
    ' ! 1 error in the 10 s before the trigger, the last: no answer.*\[logs.jsonl\]' \
    ' ! thread 9 "cat.*" used 97 % of one CPU for 2.0 s  \[processes/9-cat/runtime-metrics.json\]' \
    ' ! timed_out: late  \[session.json\]'; do
    grep -q "^$line" findings || wrong "no finding '$line' in: $(cat findings)"
done
expect_same 'what to look at next' 1 "$(grep -c '^   next: stacks.txt shows where each of them waits for the lock of the next$' findings)"
if grep -q 'next: files.json' findings; then wrong 'it points to an entry that is not in the report'; fi
[ "$(grep -n '^ !' findings | head -n 1 | cut -d : -f 1)" -gt "$(grep -n '^!!' findings | tail -n 1 | cut -d : -f 1)" ] ||
    wrong 'a warning is above what is critical'
grep -q '^  99.8 %  *60 t20.*sleeping, waits for thread 7 (mutex), in futex$' out || wrong 'no busiest thread'
grep -q '^  97.0 %    2.0 MiB        9 cat.* \[processes/9-cat/\]$' out || wrong 'no further process'
grep -q '^     ? %          ?       10 dd ' out || wrong 'what is not known of a process is not told as such'
grep -q '^machine    desk-17' out || wrong 'no machine'
grep -q 'sent 20 (2.0 KiB), received 10 (1000 B)' out || wrong 'no traffic'
grep -q -- '-1.000 s  error net: no answer' out || wrong 'no error'

fact 'no byte of a report reaches a terminal as a control'
if LC_ALL=C grep -q '[^ -~]' out; then wrong 'there are control or foreign bytes in a pipe'; fi
env LC_ALL=C TERM=xterm script -qec "stty cols 60; '$BUGPACK' show bad.zip" /dev/null </dev/null >typed 2>&1
# The styles are ours: what is left after them must be text.
sed 's/\x1b\[[0-9]*m//g; s/\r//g' typed >text
if LC_ALL=C grep -q '[^ -~]' text; then wrong 'there are control bytes on a terminal'; fi
[ "$(awk '{ if (length($0) > n) n = length($0) } END { print n }' text)" -le 60 ] || wrong 'a line is over 60 columns'
grep -q "$(printf '\033')\[31m" typed || wrong 'there is no colour on a terminal'
env LC_ALL=C TERM=xterm NO_COLOR=1 script -qec "'$BUGPACK' show bad.zip" /dev/null </dev/null >typed 2>&1
if grep -q "$(printf '\033')" typed; then wrong 'NO_COLOR is not honoured'; fi

fact '--json is one document with the same'
exits 0 show --json bad.zip
holds '(.findings | length) == 9 and .findings[0].entry == "threads.json" and .findings[0].id == "deadlock"
    and .findings[0].path == ".deadlocks[]" and (.findings | all(.id)) and (.history | length) == 20
    and .log.counts.error == 2 and .process.open_files_limit == 1024 and .complete == false
    and .busiest_threads[0].waits_for == "7 (mutex)"
    and (.busiest_threads[1].waits_for | test("^pipe 4 of cat.* \\(9\\) and 1 more$"))
    and (.busiest_threads[2].waits_for | test("^socket 5 of 10.0.0.9:5900"))
    and (.further_processes | map(.pid, .cpu_percent) == [9, 97, 10, null])
    and (.report.machine | startswith("desk-17")) and .busiest_threads[3].waits_for == "socket 6" and .traffic[0].sent.messages == 20' out ||
    wrong "it is $(cat out)"

for zip in bad plain; do
    "$BUGPACK" show --json $zip.zip >$zip.json
    expect_schema show.json $zip.json
done

fact 'of several disconnects the first is the cause, three further ones are named, and the others counted'
python3 -c 'import json, zipfile
with zipfile.ZipFile("lost.zip", "w") as report:
    report.writestr("metadata.json", "{}")
    report.writestr("disconnect-cause.json", json.dumps({"channel": "main", "error": "reset",
        "others": [{"channel": f"c{i}", "error": f"e{i}"} if i else {"channel": "c0"} for i in range(5)]}))'
run show lost.zip
expect_out 'the channel "main" was lost: reset; then "c0": no error was given; then "c1": e1; then "c2": e2; and 2 others  [disconnect-cause.json]'
rm lost.zip # without a manifest

fact 'a thread that was born in the window is ranked by what it used'
python3 -c 'import json, zipfile
with zipfile.ZipFile("born.zip", "w") as report:
    report.writestr("metadata.json", "{}")
    report.writestr("runtime-metrics.json", json.dumps({"sample_window_ms": 2000, "process": {"cpu_percent": 80},
        "threads": [{"tid": 1, "name": "main", "cpu_percent": 30, "cpu_ms": 600},
            {"tid": 2, "name": "w", "cpu_percent": 0, "cpu_ms": 700, "born_in_window": True, "age_ms": 750},
            {"tid": 3, "name": "w", "cpu_percent": 0, "cpu_ms": 200, "born_in_window": True, "age_ms": 200},
            {"tid": 4, "name": "w", "cpu_percent": 5, "cpu_ms": 100},
            {"tid": 5, "name": "missed", "cpu_percent": 0}]}))'
run show born.zip
grep -q '^ ! thread 2 "w", born in the window, used 93 % of one CPU for 0.8 s  ' out || wrong "it is $(cat out)"
[ "$(grep -c ' used .* of one CPU for' out)" = 1 ] || wrong 'an age of 0.2 s says something'
sed -n '/^Busiest/,$p' out | sed -n '2,6s/ *$//p' >busiest
cat >expected <<'END'
  35.0 %        2 w                born in the window
  30.0 %        1 main
  10.0 %        3 w                born in the window
   5.0 %        4 w
   0.0 %        5 missed
END
cmp -s busiest expected || wrong "it is $(diff expected busiest)"
run index born.zip
holds '.busiest_thread == "w" and .busiest_thread_cpu_percent == 35 and .thread_names == ["w", "main", "missed"]
    and .thread_cpu_percents == [50, 30, 0]' out || wrong "it is $(cat out)"
run html -o born.html born.zip
grep -q '35.0 %.*born in the window' born.html || wrong 'the page does not say so'
rm born.zip # without a manifest

fact "bugpack's own threads are neither ranked nor found"
python3 -c 'import json, zipfile
with zipfile.ZipFile("own.zip", "w") as report:
    report.writestr("metadata.json", "{}")
    report.writestr("runtime-metrics.json", json.dumps({"sample_window_ms": 2000, "process": {"cpu_percent": 99},
        "threads": [{"tid": 1, "name": "main", "cpu_percent": 3, "cpu_ms": 60},
            {"tid": 2, "name": "bugpack-provide", "cpu_percent": 96, "cpu_ms": 1920, "own": True}]}))
still = {"cpu_percent": 0, "cpu_ms": 0, "voluntary_switches": 0, "involuntary_switches": 0}
for name, own in ("theirs", False), ("stuck", True):
    with zipfile.ZipFile(name + ".zip", "w") as report:
        report.writestr("metadata.json", "{}")
        report.writestr("runtime-metrics.json", json.dumps({"sample_window_ms": 2000, "process": {"cpu_percent": 0},
            "threads": [{"tid": 1, "name": "bugpack-minimal", **still},
                *({"tid": i, "name": "bugpack-worker", "own": own, **still} for i in (2, 3))]}))
        report.writestr("threads.json", json.dumps({"pid": 1, "other_ends": {"searched_processes": 12,
            "denied_processes": 0, "complete": own, **({} if own else {"cut": True})}, "threads": [{"tid": 1, "state": "sleeping"},
            {"tid": 2, "state": "uninterruptible sleep"}, {"tid": 3, "state": "sleeping", "syscall": {"name": "write"},
                "waits_for": {"kind": "pipe", "fd": 3, "other_end": [{"pid": 9, "name": "cat", "fd": 0}]}}]}))'
run show --json own.zip
holds '.busiest_threads | length == 1 and .[0].name == "main"' out || wrong "they are $(jq -c .busiest_threads out)"
holds '.findings | all(.id != "spin")' out || wrong "it finds $(jq -c .findings out)"
run show own.zip
grep -q '^ *96.0 %.*bugpack-provide' out && wrong "it is ranked: $(cat out)"
run index own.zip
holds '.busiest_thread == "main" and .thread_names == ["main"]' out || wrong "it is $(cat out)"
run show --json theirs.zip
holds '.findings | map(.id) | contains(["uninterruptible", "pipe-full"])' out || wrong "it finds $(jq -c .findings out)"
run show --json stuck.zip
holds '.findings | map(.id) | (contains(["uninterruptible"]) or contains(["pipe-full"])) | not' out ||
    wrong "it finds $(jq -c .findings out)"
run show stuck.zip
grep -q '^ *0.0 %  *1 bugpack-minimal' out || wrong "a host is not ranked: $(cat out)"
grep -q 'are not all known' out && wrong "a search that was complete is called short: $(cat out)"
run show theirs.zip
grep -q 'are not all known: 12 processes were' out || wrong "a search that was cut is not told: $(cat out)"
rm own.zip theirs.zip stuck.zip

fact 'the title is what happened: a status is no crash, and the last sign of life no death'
python3 -c 'import json, zipfile
for name, metadata, entries in (
        ("status", {"report_type": "exit", "exit": {"status": 1}}, {}), ("unseen", {"report_type": "crash", "session_end": "died"}, {}),
        ("seen", {"report_type": "crash", "session_end": "died"}, {"crash.json": {"summary": "SIGSEGV"}})):
    with zipfile.ZipFile(name + ".zip", "w") as report:
        report.writestr("metadata.json", json.dumps({"app": {"name": "sh"}, "pid": 7, "process_name": "sh7",
            "triggered_at": "2026-11-22T10:00:30.000Z", **metadata}))
        for entry, document in entries.items(): report.writestr(entry, json.dumps(document))'
run show status.zip
expect_same 'the title' 'sh: exited with status 1' "$(head -n 1 out)"
grep -q '^process    sh7 7, started' out || wrong "it is $(cat out)"
run html status.zip -o status.html
grep -q '<h1>sh: exited with status 1</h1>' status.html || wrong 'the page has another title'
run show unseen.zip
expect_same 'the title' 'sh: crash' "$(head -n 1 out)"
grep -q '^triggered  2026-11-22T10:00:30.000Z, the last sign of life: ' out || wrong "it is $(cat out)"
grep -q '^!! the process ended without closing its session, and no handler saw why: it exited, or was killed; what it had recorded was recovered  \[metadata.json\]$' out ||
    wrong "it is $(cat out)"
run show seen.zip
grep -q '^triggered  2026-11-22T10:00:30.000Z$' out || wrong "it is $(cat out)"
rm status.zip unseen.zip seen.zip # without a manifest

fact 'what bugpack grew by is no growth of the host'
python3 -c 'import json, zipfile
for name, own in ("host", 0), ("own", 1000), ("both", 400):
    with zipfile.ZipFile(name + "-grows.zip", "w") as report:
        report.writestr("metadata.json", "{}")
        report.writestr("metrics-history.jsonl", "".join(json.dumps({"time": f"2026-11-22T10:00:{i:02}Z", "cpu_percent": 1,
            "rss_kb": 4096 + 3000 * i, "bugpack_kb": i * own * 3}) + "\n" for i in range(20)))'
run show own-grows.zip
if grep -q 'resident memory grew' out; then wrong "it is $(cat out)"; fi
run show host-grows.zip
grep -q 'resident memory grew from 4 to 59 MiB in 19 s  ' out || wrong "it is $(cat out)"
run show both-grows.zip
grep -q "resident memory grew from 4 to 59 MiB in 19 s, 22 MiB of it bugpack's  " out || wrong "it is $(cat out)"
rm ./*-grows.zip # without a manifest

fact 'the thread that makes memory grow is named'
python3 -c 'import json, zipfile
def heap(second, *counters): return {"monotonic_ns": second * 10 ** 9, "threads": [
    {"tid": tid, "name": "t", "allocated_bytes": made << 20, "deallocated_bytes": freed << 20} for tid, made, freed in counters]}
def write(name, faults, *snapshots):
    with zipfile.ZipFile(name + "-greedy.zip", "w") as report:
        report.writestr("metadata.json", "{}")
        report.writestr("runtime-metrics.json", json.dumps({"sample_window_ms": 2000, "process": {"uptime_secs": 99, "rss_samples": [
            {"at_ms": i * 200, "rss_kb": 100000 + 9000 * i} for i in range(10)]}, "threads": [
            {"tid": i + 1, "name": f"t{i}", "cpu_percent": 1, "page_faults": faults[i]} for i in range(len(faults))]}))
        report.writestr("thread-heap.json", json.dumps({"snapshots": snapshots}))
write("allocates", [900, 0, 0], heap(1, (1, 9, 9), (2, 50, 10)), heap(3, (1, 9, 9), (2, 90, 12), (3, 30, 0)))
write("neither", [0, 0, 0], heap(1, (1, 9, 9), (2, 50, 10), (3, 0, 0)), heap(3, (1, 29, 9), (2, 70, 10), (3, 20, 0)))
write("restarted", [0, 9], heap(1, (1, 9, 9), (2, 50, 10)), heap(3, (1, 2, 2), (2, 5, 1)))
write("faults", [256, 256, 0], heap(1, (1, 9, 9)))
write("share", [256, 257, 256])
write("few", [255, 0])
write("alone", [900])'
while IFS=: read -r name thread; do
    run show "$name-greedy.zip"
    expect_same "what is said of $name" "$thread" "$(sed -n 's/^ ! resident memory grew .* to 176 MiB\(.*\)  \[runtime-metrics.json\]$/\1/p' out)"
done <<'END'
allocates:; thread 2 "t1" allocated 20.0 MiB/s and freed 1.0
neither:
restarted:
faults:; thread 1 "t0" had 50 % of the page faults in the window
share:
few:
alone:
END
rm ./*-greedy.zip # without a manifest

fact 'a diagnosis of CPU, of memory and of limits has its bounds'
python3 - <<'END' >bounds || wrong 'not all reports were written'
import json, zipfile
busy = {"tid": 1, "name": "w", "cpu_percent": 100, "cpu_ms": 2000, "system_ms": 0, "page_faults": 0, "voluntary_switches": 0,
        "involuntary_switches": 9, "run_delay_ms": 0, "read_chars": 0, "written_chars": 0, "write_calls": 0}
slow = {"cpu_percent": 5, "cpu_ms": 100, "voluntary_switches": 300, "run_delay_ms": 1500}


def thread(name, finding, process={}, metadata={}, system={}, words="", **members):
    yield name, finding, {
        "metadata.json": metadata, "system.json": system, "runtime-metrics.json": {
            "sample_window_ms": 2000, "process": {"cpu_percent": 100, **process}, "threads": [{**busy, **members}]}}, words


def history(name, finding, *kb):
    yield name, finding, {"metadata.json": {}, "metrics-history.jsonl": [
        {"time": f"2026-11-22T10:00:{i:02}Z", "cpu_percent": 1, "rss_kb": kb[i]} for i in range(len(kb))]}


def counts(name, finding, key, *values, uptime=100):
    yield name, finding, {"metadata.json": {}, "runtime-metrics.json": {
        "sample_window_ms": 1000, "process": {"uptime_secs": uptime}, "threads": []}, "metrics-history.jsonl": [
        {"time": f"2026-11-22T10:00:{i:02}Z", "cpu_percent": 1, key: values[i]} for i in range(len(values))]}


def mapped(name, finding, grown, rss=16000, threads=0, children=0):
    yield name, finding, {"metadata.json": {}, "runtime-metrics.json": {"sample_window_ms": 2000, "threads": [], "process": {"uptime_secs": 99,
        "rss_samples": [{"at_ms": i * 250, "rss_kb": 9000 + rss * i // 8, "vm_size_kb": 10000 + grown * i // 8, "thread_count": 9 + threads * (i > 3), "child_count": children * i // 8} for i in range(9)]}}}


def python(name, finding, other_switches=400, executable="/usr/bin/python3.11", **members):
    yield name, finding, {"metadata.json": {}, "process.json": {"executable": executable}, "runtime-metrics.json": {
        "sample_window_ms": 2000, "process": {"cpu_percent": 100}, "threads": [
            {**busy, "voluntary_switches": 400, **members},
            {"tid": 2, "name": "o", "cpu_percent": 1, "cpu_ms": 20, "voluntary_switches": other_switches}]}}


def wakes(name, finding, call, *arguments, policy="other", handlers=[], object="/lib/libc.so.6", others=99, count=1, stack=[], **members):
    yield name, finding, {
        "metadata.json": {}, "process.json": {"loaded_objects": [{"path": object}]},
        "threads.json": {"signal_handlers": handlers, "threads": [{"tid": i, "state": "sleeping", "scheduling": {"policy": policy}, "kernel_stack": stack,
                                      "syscall": {"name": call, "arguments": arguments}} for i in range(1, count + 1)]},
        "runtime-metrics.json": {"sample_window_ms": 2000, "process": {"cpu_percent": 5}, "threads": [
            *({"tid": i, "name": "w", "cpu_percent": 5, "cpu_ms": 100, "voluntary_switches": 1000, **members} for i in range(1, count + 1)),
            {"tid": 9, "name": "o", "cpu_percent": 0, "cpu_ms": 9, "voluntary_switches": others}]}}


def own_pipe(name, finding, pid=7, complete=True, handlers=[], call="read", device="/dev/null", process={"mappings": 9}, **members):
    wait = {"kind": "pipe", "fd": 3, "other_end": [{"pid": 7, "name": "p"}, {"pid": pid, "name": "p"}], **members}
    yield name, finding, {
        "metadata.json": {}, "process.json": process, "files.json": {"files": [{"number": 4, "kind": "character_device", "target": device}]}, "threads.json": {"pid": 7, "signal_handlers": handlers, "other_ends": {"complete": complete},
            "threads": [{"tid": 7, "state": "sleeping", "syscall": {"name": call}, "waits_for": wait}]},
        "runtime-metrics.json": {"sample_window_ms": 2000, "process": {"cpu_percent": 0}, "threads": [
            {"tid": 7, "name": "p", "cpu_percent": 0, "cpu_ms": 0, "voluntary_switches": 0, "involuntary_switches": 0}]}}


def threads(name, finding, *states, files=[], words="", traced={}, **rest):
    """Each of (name, call, its arguments, switches in 2 s, members)."""
    yield name, finding, {
        "metadata.json": {}, "process.json": {"loaded_objects": [{"path": "/lib/libc.so.6"}]}, "files.json": {"files": files, "closed_meanwhile": 0, **rest}, "threads.json": {"pid": 1, **traced, "threads": [
            {"tid": i, "name": states[i - 1][0], "state": "sleeping", "scheduling": {"policy": "other"}, "syscall": {
                "name": states[i - 1][1], "arguments": states[i - 1][2]}, **states[i - 1][4]} for i in range(1, len(states) + 1)]},
        "runtime-metrics.json": {"sample_window_ms": 2000, "process": {"cpu_percent": 0}, "threads": [
            {"tid": i, "name": states[i - 1][0], "cpu_percent": 0, "cpu_ms": 0, "voluntary_switches": states[i - 1][3],
             "involuntary_switches": 0} for i in range(1, len(states) + 1)]}}, words


def main(call="pause"): return "a", call, [], 0, {}
def wants(tid, kind="mutex", name="worker", switches=0): return name, "futex", ["0x7f", "0x80", "0x2", "0x0"], switches, {"waits_for": {"tid": tid, "kind": kind}}
def listener(waiting): return {"number": 3, "kind": "socket", "inode": 9, "socket": {"protocol": "tcp", "state": "listening", "local": "a:1", "waiting_connections": waiting, "backlog": 9}}
def polls(call, waiting): return {"states": [("a", call, ["0x4"], 0, {"wait_channel": "ep_poll", "polled": [{"fd": 3, "inode": 9}]})], "files": [listener(waiting)]}
def datagrams(drops): return {"number": 3, "kind": "socket", "socket": {"protocol": "udp", "state": "unconnected", "local": "a:1", "receive_queue_bytes": 99, "drops": drops}}
def writes_to(reader): return "a", "write", ["0x1"], 0, {"waits_for": {"kind": "pipe", "fd": 1, "other_end": [{"pid": 9, "name": reader, "state": "sleeping"}]}}
def deleted(path): return {"number": 3, "kind": "file", "target": path, "access": "write", "deleted": True, "size_bytes": 64 << 20}


def asks(name, finding, call, limit):
    wait = {"kind": "socket", "socket": {"protocol": "tcp", "state": "established", "accepted": False, "remote": "10.0.0.1:80", "sent_ms_ago": 3000}}
    yield name, finding, {
        "metadata.json": {}, "threads.json": {"threads": [{"tid": 1, "state": "sleeping", "waits_for": wait, "syscall": {
            "name": call, "arguments": ["0x3", "0x7f", "0x1", limit]}}]},
        "runtime-metrics.json": {"sample_window_ms": 2000, "process": {"cpu_percent": 0}, "threads": [
            {"tid": 1, "name": "a", "cpu_percent": 0, "cpu_ms": 0, "voluntary_switches": 1, "involuntary_switches": 0}]}}


def children(name, finding, words="", kind="character_device", state="established", ended=10, window=2000, others=[], more=False, reads=0, files=None, **members):
    command = {"name": "job", "count": 2, "failed": 2, "succeeded": 0, "longest_ms": 500, "status": 3, **members}
    yield name, finding, {"metadata.json": {}, "files.json": {"files": [{"number": 0, "kind": kind, "socket": {"state": state}}]} if files is None else files,
        "runtime-metrics.json": {"sample_window_ms": window, "threads": [], "process": {"children": {
            "ended_at_least": ended, "parent_read_chars": reads, "has_more_commands": more, "commands": [command, *others]}}}}, words


def shared_futex(name, finding, executable="/bin/a", **call):
    yield name, finding, {
        "metadata.json": {}, "process.json": {"executable": executable}, "threads.json": {"pid": 7, "signal_handlers": [],
            "threads": [{"tid": 7, "state": "sleeping", "syscall": {"name": "futex", "arguments": ["0x7f", "0x109", "0x0", "0x0"], **call}}]},
        "runtime-metrics.json": {"sample_window_ms": 2000, "process": {"cpu_percent": 0}, "threads": [
            {"tid": 7, "name": "p", "cpu_percent": 0, "cpu_ms": 0, "voluntary_switches": 0, "involuntary_switches": 0}]}}


def pair(name, finding, kind="pipe", executable="/usr/bin/python3.11", third=0, **members):
    half = {"cpu_percent": 45, "cpu_ms": 900, "system_ms": 0, "voluntary_switches": 520, **members}
    yield name, finding, {
        "metadata.json": {}, "process.json": {"executable": executable}, "files.json": {"files": [{"number": 0, "kind": kind}]},
        "runtime-metrics.json": {"sample_window_ms": 2000, "process": {"cpu_percent": 90}, "threads": [
            {"tid": 1, "name": "a", **half}, {"tid": 2, "name": "b", **half},
            {"tid": 3, "name": "c", "cpu_percent": third / 20, "cpu_ms": third, "voluntary_switches": 900}]}}


def logs(name, finding, message, level="info", other=250, count=500):
    yield name, finding, {"metadata.json": {"triggered_at": "2026-11-22T10:00:30Z"}, "logs.jsonl": [
        {"time": f"2026-11-22T10:00:29.{i * 1998:06}Z", "level": level, "channel": "c",
         "message": message.format(n=i) if i >= other else f"line {'x' * (i % 100)}{'y' * (i // 100)}"} for i in range(count)]}


def collects(name, finding, percent, whole, thread="GC Thread#1"):
    yield name, finding, {"metadata.json": {}, "runtime-metrics.json": {
        "sample_window_ms": 1000, "process": {"cpu_percent": whole}, "threads": [
            {"tid": 1, "name": thread, "cpu_percent": percent}, {"tid": 2, "name": "G1 Conc#0", "cpu_percent": 5}]}}


def throttled(name, finding, **cpu):
    yield name, finding, {"metadata.json": {}, "system.json": {"cgroups": [{"path": "/a", "cpu": cpu}]}}


def group(name, finding, words, parent={}, **memory):
    def scale(figures): return {key: value << 20 if key.endswith("bytes") else value for key, value in figures.items()}
    groups = [{"path": "/a", "memory": scale(memory)}, {"path": "/", "memory": scale(parent)}]
    yield name, finding, {"metadata.json": {}, "system.json": {"cgroups": groups}}, words


def process(name, finding, limit=None, **members):
    limits = [{"name": limit, "soft": 1000}]
    yield name, finding, {"metadata.json": {}, "process.json": {"name": "p", "limits": limits, **members}}


rows = [
    *thread("busy", "spin"),
    *thread("born", "spin", born_in_window=True, age_ms=250, cpu_ms=240, cpu_percent=0),
    *thread("young", "", born_in_window=True, age_ms=249, cpu_ms=249, cpu_percent=0),
    *thread("kernel", "spin-in-system-calls", system_ms=500),
    *thread("own", "spin", system_ms=499),
    *thread("lines", "spin", written_chars=400000, write_calls=4000),
    *thread("blocks", "", written_chars=400000, write_calls=400),
    *thread("progress", "spin", words="says how far", written_chars=16, write_calls=8),
    *thread("progress-seldom", "spin", words="long computation", written_chars=14, write_calls=7),
    *thread("progress-often", "spin", words="long computation", written_chars=20002, write_calls=10001),
    *thread("progress-bits", "spin", words="long computation", written_chars=15, write_calls=8),
    *thread("shared", "spin", cpu_percent=50, cpu_ms=1000),
    *thread("sleeps", "", cpu_percent=50, cpu_ms=1000, voluntary_switches=1),
    *thread("pinned", "cpu-starved", system={"cpus": {"online": 4, "usable": 1}}, **slow),
    *thread("two", "", system={"cpus": {"online": 4, "usable": 2}}, **slow),
    *thread("most", "threads-come-and-go", {"ended_threads_cpu_ms": 1500}, **slow),
    *thread("part", "", {"ended_threads_cpu_ms": 1480}, **slow),
    *thread("command", "", {"ended_threads_cpu_ms": 1500}, {"exit": {"status": 0}}, **slow),
    *history("grows", "memory-growth", *range(100000, 130000, 1500)),
    *history("little", "", *range(100000, 124000, 1200)),
    *counts("files", "file-growth", "file_count", *range(10, 90, 4)),
    *counts("threads", "thread-growth", "thread_count", *range(10, 90, 4)),
    *mapped("maps-grow", "address-space-growth", 32000),
    *mapped("children-grow", "child-growth", 0, children=64),
    *mapped("children-few", "", 0, children=63),
    *mapped("maps-used", "", 32000, rss=16008),
    *mapped("maps-threads", "", 32000, threads=1),
    *mapped("maps-little", "", 16376, rss=8),
    *counts("few", "", "thread_count", *range(10, 70, 3)),
    *counts("falls", "", "file_count", *range(10, 82, 4), 70, 90),
    *counts("once", "", "thread_count", *(10 + 80 * (i > 15) for i in range(20))),
    *counts("over", "", "thread_count", *(min(10 + 10 * i, 90) for i in range(20))),
    *counts("fresh", "", "thread_count", *range(10, 90, 4), uptime=28),
    *counts("steps", "memory-growth", "rss_kb", 60000, 60000, 70000, 70000, 80000, 90000),
    *counts("two", "", "rss_kb", 60000, 60000, 60000, 80000, 80000, 90000),
    *python("yields", "spin"),
    *python("ruby", "", executable="/usr/bin/ruby"),
    *python("alone", "", other_switches=399),
    *python("calls", "", system_ms=200),
    *python("serves", "", voluntary_switches=521, other_switches=600),
    *python("faults", "", page_faults=32),
    *python("reads", "", read_chars=8192),
    *python("waiting", "spin", cpu_percent=50, cpu_ms=1000, voluntary_switches=200, run_delay_ms=800),
    *python("asleep", "", cpu_percent=50, cpu_ms=1000, voluntary_switches=200, run_delay_ms=799),
    *wakes("naps", "idle-wakeups", "clock_nanosleep"),
    *wakes("beside-work", "", "clock_nanosleep", others=500),
    *wakes("beside-rest", "idle-wakeups", "clock_nanosleep", others=499),
    *wakes("few-sleep", "", "clock_nanosleep", count=7),
    *wakes("many-sleep", "idle-wakeups", "clock_nanosleep", count=8),
    *wakes("seldom", "", "clock_nanosleep", voluntary_switches=999),
    *wakes("toils", "", "clock_nanosleep", cpu_ms=101),
    *wakes("realtime", "", "clock_nanosleep", policy="fifo"),
    *wakes("go", "", "clock_nanosleep", object="/bin/go"),
    *wakes("polls", "idle-wakeups", "epoll_wait", "0x3", "0x7f", "0x1", "0x2"),
    *wakes("served", "", "epoll_wait", "0x3", "0x7f", "0x1", "0x2", voluntary_switches=1101),
    *wakes("blocks-2", "", "poll", "0x7f", "0x1", "0xffffffff"),
    *wakes("timed", "idle-wakeups", "futex", "0x7f", "0x189", "0x0", "0x7f", others=100),
    *wakes("woken", "", "futex", "0x7f", "0x189", "0x0", "0x7f", others=101),
    *wakes("alarmed", "idle-wakeups", "pause", handlers=["SIGTERM", "SIGALRM"]),
    *wakes("kept-busy", "idle-wakeups", "", handlers=["SIGALRM"], stack=["__do_sys_pause+0x2a/0x50"], cpu_ms=900, system_ms=450, cpu_percent=45),
    *wakes("kept-working", "", "", handlers=["SIGALRM"], stack=["__do_sys_pause+0x2a/0x50"], cpu_ms=900, system_ms=449, cpu_percent=45),
    *wakes("kept-elsewhere", "", "", handlers=["SIGALRM"], stack=["ep_poll+0x2a/0x50"], cpu_ms=900, system_ms=450, cpu_percent=45),
    *wakes("signalled", "", "pause", handlers=["SIGTERM", 7, "SIGUSR1"]),
    *threads("timer", "idle-wakeups", ("a", "read", ["0x3"], 1000, {}), files=[{"number": 3, "kind": "timerfd"}]),
    *threads("timer-traced", "", ("a", "read", ["0x3"], 1000, {}), files=[{"number": 3, "kind": "timerfd"}], traced={"traced_by": {"pid": 9, "name": "strace"}}),
    *threads("not-timer", "", ("a", "read", ["0x3"], 1000, {}), files=[{"number": 3, "kind": "pipe"}]),
    *threads("closed", "descriptor-closed", ("a", "accept", ["0x3"], 0, {"descriptor_closed": True})),
    *threads("not-closed", "", ("a", "accept", ["0x3"], 0, {}), files=[listener(0) | {"number": 4}]),
    *threads("closed-ran", "", ("a", "accept", ["0x3"], 1, {"descriptor_closed": True})),
    *threads("turn", "", main(), ("worker", "accept", ["0x3"], 0, {}), wants(2), files=[listener(0)]),
    *threads("no-turn", "lock-held", main(), ("server", "accept", ["0x3"], 0, {}), wants(2), files=[listener(0)]),
    *threads("turn-of-main", "lock-held", main("accept"), wants(1, name="a"), files=[listener(0)]),
    *threads("monitor", "lock-held", main(), main(), wants(2, "monitor", switches=4)),
    *threads("monitor-looks", "", main(), main(), wants(2, "monitor", switches=5)),
    *threads("monitor-moves", "", main(), ("a", "pause", [], 1, {}), wants(2, "monitor", switches=4)),
    *threads("mutex-looks", "", main(), main(), wants(2, switches=1)),
    *threads("drained-not", "input-not-read", *polls("epoll_wait", 1)["states"], files=polls("epoll_wait", 1)["files"], words="epoll says once"),
    *threads("drained", "", *polls("epoll_wait", 0)["states"], files=polls("epoll_wait", 0)["files"]),
    *threads("drained-later", "frozen", ("a", "epoll_wait", ["0x4"], 0, {"polled": [{"fd": 3, "inode": 9}], "wait_channel": "do_freezer_trap"}), files=[listener(1)]),
    *threads("poll-drains", "", *polls("poll", 1)["states"], files=polls("poll", 1)["files"]),
    *threads("datagrams", "input-not-read", main(), files=[datagrams(1)]),
    *threads("datagrams-fit", "", main(), files=[datagrams(0)]),
    *threads("pager", "", writes_to("less")),
    *threads("no-pager", "pipe-full", writes_to("lesser")),
    *threads("temporary", "", main(), files=[deleted("/var/tmp/etilqs_84a7"), deleted("/tmp/#99")]),
    *threads("temporary-not", "deleted-file-open", main(), files=[deleted("/var/tmp/a.log")]),
    *shared_futex("shared-futex", "nobody-can-wake", executable="/bin/python3", own_futex=True, shared_futex=True),
    *shared_futex("own-futex", "", executable="/bin/python3", own_futex=True),
    *shared_futex("named-futex", "call-blocked", shared_futex=True, semaphore="sem.jobs"),
    *shared_futex("misnamed-futex", "", shared_futex=True, semaphore=7),
    *asks("asks-again", "no-answer", "epoll_wait", "0x3e8"),
    *asks("asks-pointer", "", "epoll_pwait2", "0x3e8"),
    *children("crash-loop", "children-come-and-go", 'again and again: at least 10 of its children ended in 2.0 s; those that were seen lived for at most 500 ms, and the last that failed had the status 3'),
    *children("crash-killed", "children-come-and-go", "the last that failed was killed by SIGSEGV", signal="SIGSEGV", kind="pipe", reads=99, status=0),
    *children("crash-stopped", "", signal="SIGTERM", status=0),
    *children("crash-unseen", "", files={}),
    *children("crash-slow", "", ended=9),
    *children("crash-short", "", window=999),
    *children("crash-lives", "", longest_ms=501),
    *children("crash-once", "", count=1, failed=1),
    *children("crash-fork", "children-come-and-go", "children of its own program", own=True),
    *children("crash-beside", "children-come-and-go", 'job', others=[{"name": "date", "count": 9, "succeeded": 9}]),
    *children("crash-many", "", others=[{"name": "a", "count": 1}, {"name": "b", "count": 1}]),
    *children("crash-more", "", more=True),
    *children("crash-fed", "", kind="pipe", reads=10),
    *children("crash-captured", "children-come-and-go", 'job', reads=10),
    *children("crash-served", "", state="listening"),
    *children("crash-works", "", failed=0, ended=40),
    *children("crash-answers", "", status=1, own=True),
    *children("crash-reads", "", status=1, reads=10),
    *children("crash-not-found", "children-come-and-go", "had the status 127, as of a command that was not found", status=127),
    *own_pipe("own-pipe", "nobody-can-wake"),
    *own_pipe("own-event", "nobody-can-wake", kind="eventfd"),
    *own_pipe("event-of-two", "", kind="eventfd", pid=8),
    *own_pipe("event-polled", "nobody-can-wake", kind="eventfd", call="ppoll", timed=False),
    *own_pipe("event-timed", "", kind="eventfd", call="poll", timed=True),
    *own_pipe("event-of-kernel", "", kind="eventfd", device="/dev/kvm"),
    *own_pipe("event-of-aio", "", kind="eventfd", process={"mappings": 9, "asynchronous_io": True}),
    *own_pipe("event-unknown", "", kind="eventfd", process={}),
    *own_pipe("pipe-of-python", "nobody-can-wake", process={"mappings": 9, "executable": "/usr/bin/python3"}),
    *own_pipe("pipe-polled", "", call="poll", timed=False),
    *own_pipe("pipe-of-two", "", pid=8),
    *own_pipe("pipe-of-some", "", complete=False),
    *own_pipe("pipe-of-more", "", other_end_has_more=True),
    *own_pipe("pipe-handled", "", handlers=["SIGTERM"]),
    *wakes("for-ever", "", "futex", "0x7f", "0x189", "0x0", "0x0"),
    *pair("pair", "spin"),
    *pair("pair-serves", "", kind="socket"),
    *pair("pair-perl", "", executable="/usr/bin/perl"),
    *pair("pair-third", "", third=451),
    *pair("pair-asked", "", voluntary_switches=521),
    *pair("pair-kernel", "", system_ms=90),
    *pair("pair-faults", "", page_faults=15),
    *pair("pair-waits", "spin", cpu_ms=600, voluntary_switches=180),
    *pair("pair-idle", "", cpu_ms=600, voluntary_switches=179),
    *pair("pair-starved", "spin", cpu_ms=100, voluntary_switches=20, run_delay_ms=800),
    *pair("pair-asleep", "", cpu_ms=100, voluntary_switches=20, run_delay_ms=799),
    *logs("storm", "log-storm", "connecting again"),
    *logs("storm-part", "", "connecting again", other=251),
    *logs("storm-few", "", "connecting again", count=499),
    *logs("storm-rows", "", "x = {n}"),
    *logs("storm-warns", "log-storm", "cannot open channel {n} of 9", "warn"),
    *logs("storm-access", "", '"GET / HTTP/1.1" 200'),
    *logs("storm-short", "", "waiting"),
    *collects("garbage", "garbage-collection", 25, 40),
    *collects("half", "", 25, 40.1),
    *collects("light", "", 9.9, 15),
    *collects("code", "", 80, 85, "G1"),
    *throttled("now", "cpu-throttled", periods=1000, throttled_periods=10, session_periods=20, session_throttled_periods=5),
    *throttled("before", "", periods=1000, throttled_periods=900, session_periods=20, session_throttled_periods=4),
    *throttled("window", "cpu-throttled", periods=1000, throttled_periods=2, session_periods=5, session_throttled_periods=2, quota_ns=None),
    *throttled("host", "", periods=1000, throttled_periods=1000),
    *throttled("short", "", periods=1000, throttled_periods=1000, session_periods=4, session_throttled_periods=4),
    *group("memory", "cgroup-limit", "uses 90 of at most 100 MiB of memory", current_bytes=120, file_bytes=40, shmem_bytes=10, max_bytes=100),
    *group("pages", "", "", current_bytes=120, file_bytes=41, shmem_bytes=10, max_bytes=100),
    *group("high", "cgroup-limit", "uses 90 of at most 100 MiB of memory", current_bytes=90, high_bytes=100, max_bytes=200),
    *group("swaps", "cgroup-limit", "of memory, and 30 MiB of swap, of which it may use 50", current_bytes=90, max_bytes=100, swap_bytes=30, swap_max_bytes=50),
    *group("swapless", "cgroup-limit", "of memory, and may not swap", current_bytes=90, max_bytes=100, swap_max_bytes=0),
    *group("binds", "cgroup-limit", "uses 99 of", parent={"current_bytes": 99, "max_bytes": 100}, current_bytes=90, max_bytes=100),
    *group("killed", "cgroup-oom-kill", "while it was observed: the kernel killed 2 processes", oom_kills=9, session_oom_kills=2),
    *group("long-ago", "", "", oom_kills=9, session_oom_kills=0),
    *process("full", "fd-limit", "Max open files", open_files=900),
    *process("open", "", "Max open files", open_files=899),
    *process("user", "thread-limit", "Max processes", uid=1, threads=900),
    *process("users", "thread-limit", "Max processes", uid=1, threads=1, user_threads=900),
    *process("fewer", "", "Max processes", uid=1, threads=1, user_threads=899),
    *process("root", "", "Max processes", uid=0, threads=900),
    *process("maps", "map-limit", mappings=90, mappings_max=100),
    *process("mapped", "", mappings=89, mappings_max=100),
    ("instances", "inotify-limit", {"metadata.json": {}, "files.json": {"inotify": {"instances": 90, "instances_max": 100, "watches": 1}}}),
    ("watches", "inotify-limit", {"metadata.json": {}, "files.json": {"inotify": {"instances": 1, "watches": 90, "watches_max": 100}}}),
    ("watched", "", {"metadata.json": {}, "files.json": {"inotify": {"instances": 89, "instances_max": 100, "watches": 89, "watches_max": 100}}}),
    *process("swap", "swapped", memory={"swap_kb": 65536, "rss_kb": 196608}),
    *process("resident", "", memory={"swap_kb": 65536, "rss_kb": 196611}),
    *process("zombies", "many-zombies", zombie_children=20),
    *process("children", "", zombie_children=19),
    *history("start", "", *(100000 + 5000 * min(i, 11) + 100 * i for i in range(20))),
]
for name, finding, documents, *words in rows:
    with zipfile.ZipFile(f"{name}-bound.zip", "w") as report:
        for entry, text in documents.items():
            report.writestr(entry, "".join(json.dumps(line) + "\n" for line in text) if isinstance(text, list) else json.dumps(text))
    print(name, finding, *words, sep="|")
END
while IFS='|' read -r name finding words; do
    run show --json "$name-bound.zip" </dev/null
    expect_same "what is found in $name" "$finding" "$(jq -r '.findings[].id | select(. != "no-manifest")' out | tr '\n' ' ' | sed 's/ $//')"
    grep -qF "$words" out || wrong "of $name there is: $(cat out)"
done <bounds
rm ./*-bound.zip # without a manifest

fact 'the messages of a channel are counted, at least where some are not there'
python3 -c 'import json, zipfile
def message(number, channel, way, second):
    return json.dumps({"seq": number, "time": f"2026-11-22T10:00:0{second}Z", "channel": channel, "direction": way, "bytes": 7}) + "\n"
with zipfile.ZipFile("traffic.zip", "w") as report:
    report.writestr("metadata.json", "{}")
    report.writestr("traffic-index.jsonl", message(5, "cut", "sent", 4) + message(4, "cut", "received", 2) +
        message(3, "cut", "received", 3) + message(1, "whole", "sent", 1) + message(2, "whole", "received", 1))'
run show --json traffic.zip
holds '.traffic[0] | .at_least and .recorded == 5 and .sent.messages == 1 and .received == {"messages": 2, "bytes": 14}' out ||
    wrong "it is $(jq -c .traffic out)"
holds '.traffic[1] | .at_least == null and .recorded == null' out || wrong "it is $(jq -c .traffic out)"
run show traffic.zip
grep -q '^cut  *sent at least 1 (7 B), received at least 2 (14 B)$' out || wrong "it is $(cat out)"
grep -q '^whole  *sent 1 (7 B), received 1 (7 B)$' out || wrong "it is $(cat out)"
rm traffic.zip # without a manifest

fact 'of many warnings the newest are shown'
python3 -c 'import json, zipfile
with zipfile.ZipFile("warnings.zip", "w") as report:
    report.writestr("metadata.json", "{}")
    report.writestr("logs.jsonl", "".join(json.dumps({"level": "warn", "message": f"{i}"}) + "\n" for i in range(100)))'
run show --json warnings.zip
holds '.log | .counts.warn == 100 and (.newest_warnings | map(.message) == [range(100 - 12; 100) | tostring])' out ||
    wrong "it is $(jq -c .log out)"
rm warnings.zip # without a manifest

fact 'Markdown has the findings, the screen and what is attached, and nothing in the report is markup'
python3 - <<'END'
import json, zipfile
with zipfile.ZipFile("markup.zip", "w") as report:
    report.writestr("metadata.json", json.dumps({
        "schema": 2, "app": {"name": "view`er @root", "version": "1"}, "report_type": "bugreport",
        "description": "`" * 200 + "\n" + "`" * 80 + "\n@root #1 <b>", "exit": {"status": 1}}))
    report.writestr("manifest.json", json.dumps({"artefacts": [
        {"name": "metadata.json", "status": "ok"}, {"name": "a`b.txt", "status": "truncated"},
        {"name": "gone.txt", "status": "failed", "missing": True}]}))
END
exits 0 show --markdown markup.zip
# shellcheck disable=SC2016 # backticks are text here
expect_same 'the title' '## `` view`er @root 1 ``: exited with status 1' "$(head -n 1 out)"
# shellcheck disable=SC2016
expect_same 'the fences' 2 "$(grep -cE '^ {0,3}`{80}' out)"
# shellcheck disable=SC2016
grep -q '^- \*\*warning\*\*: `.*exit' out || wrong "it is $(cat out)"
# shellcheck disable=SC2016
expect_same 'what is attached' 'Attached: `markup.zip`: `metadata.json`, `` a`b.txt ``' "$(tail -n 1 out)"
expect_misuse '--markdown is of the whole report' show --markdown --json markup.zip
mv out issue
exits 0 send --print issue markup.zip
rm markup.zip

fact 'a crash names its signal and its functions, and the machine its limits'
exits 0 show crash.zip
for line in '!! crash in draw: SIGSEGV at 0x8 in thread worker (7).*, in draw < main  \[crash.json\]' \
    '!! the control group "/a" uses 95 of at most 100 MiB of memory  \[system.json\]' \
    ' ! the machine has 4 MiB of memory left, of 1024 MiB  \[system.json\]' \
    ' ! the file system of / and /tmp is 97 % full: 1.2 GiB are left  \[system.json\]' \
    '!! the file system of / and /tmp has 0 of 9 inodes left  \[system.json\]' \
    '!! the file system of the working directory is 100 % full: 0.0 KiB are left  \[system.json\]'; do
    grep -q "^$line" out || wrong "no finding '$line' in: $(cat out)"
done
if grep -q 'ended without closing' out; then wrong 'it has its crash'; fi
[ "$(grep -c 'the file system of' out)" = 3 ] || wrong "it is $(cat out)"

fact 'idle processes with the same title are one row, and those beyond twelve rows are counted'
grep -q '^     ? %          ?        1 70 x a  *\[processes/1-a/\]$' out || wrong "it is $(cat out)"
python3 -c 'import json, zipfile
with zipfile.ZipFile("many.zip", "w") as report:
    report.writestr("metadata.json", "{}")
    for i in range(1, 601):
        report.writestr(f"processes/{i}-a/process.json", json.dumps({"pid": i, "name": f"a{i}"}))'
exits 0 show many.zip
[ "$(grep -c '\[processes/[0-9]*-a/\]$' out)" = 12 ] || wrong "it is $(cat out)"
grep -q '^and 588 more$' out || wrong "it is $(cat out)"
run show --json many.zip
holds '.group.processes == 600 and .group.at_least == true and (.further_processes | length) == 512' out || wrong "it is $(cat out)"
rm many.zip

fact 'a report about several processes leads with their sums, and the busiest of all of them'
python3 -c 'import json, zipfile
def write(folder, pid, title, cpu, rss, **thread):
    def add(name, value): report.writestr(folder + name, json.dumps(value))
    add("process.json", {"pid": pid, "name": "postgres", "command_line": [title]})
    add("runtime-metrics.json", {"sample_window_ms": 2000, "process": {"cpu_percent": cpu, "rss_kb": rss}, "threads": [
        {"tid": pid, "name": "postgres", "cpu_percent": cpu}]})
    add("threads.json", {"threads": [{"tid": pid, "state": "sleeping", **thread}]})
    add("stacks.json", {"threads": [{"tid": pid, "name": "postgres", "frames": [{"symbol": f"f{pid}"}]}]})
with zipfile.ZipFile("group.zip", "w") as report:
    report.writestr("metadata.json", json.dumps({"pid": 1, "process_name": "postgres"}))
    write("", 1, "postgres", 0, 1024)
    write("processes/2-postgres/", 2, "postgres: checkpointer", 0.5, 2048)
    write("processes/3-postgres/", 3, "postgres: app db [local] SELECT of the slow report", 92, 4096)
    report.writestr("processes/3-postgres/profile.folded", "postgres;main;exec_sort 90\npostgres;main 10\n")'
LC_ALL=C.UTF-8 run show group.zip
for line in 'group      92.5 % of one CPU, 7.0 MiB resident, counting shared pages in each, 3 threads of 3 processes' \
    '  92.0 %    4.0 MiB        3 postgres: app db [local] SELECT of the slow report' '100 samples' \
    '   postgres of 3 100 %: 90 % in exec_sort < main' \
    '  92.0 %        3 postgres         of postgres: app db [local] SELECT of the …: sleeping in f3'; do
    grep -qxF -- "$line" out || wrong "no '$line' in $(cat out)"
done
expect_same 'the first process' 3 "$(sed -n '/^Processes by CPU/,/^$/p' out | awk 'NR == 2 { print $5 }')"
expect_same 'the first thread' 3 "$(sed -n '/^Busiest threads/,/^$/p' out | awk 'NR == 2 { print $3 }')"
run show --all group.zip
grep -qxF 'process 3 postgres: app db [local] SELECT of the slow report' out || wrong "it is $(cat out)"
grep -q ' f3$' out || wrong 'the stacks of the busy process are not there'
if grep -q 'f2$' out; then wrong 'the stacks of an idle one are there'; fi
run show --json group.zip
holds '.group == {"processes": 3, "threads": 3, "cpu_percent": 92.5, "rss_kb": 7168}
    and .further_processes[1].profile.threads[0].path == ["exec_sort", "main"]' out || wrong "it is $(cat out)"
expect_schema show.json out
run html group.zip
grep -q 'id="stack-3"' out || wrong 'the page has no stacks of the busy process'
grep -q '<li>postgres of 3 100 %: 90 % in exec_sort' out || wrong 'the page has no profile of it'
grep -q '<title>postgres of 3: 100, 100.0 %</title>' out || wrong 'its thread is not in the flame graph'
grep -q '<title>exec_sort: 90, 90.0 %</title>' out || wrong 'its function is not in the flame graph'
if grep -q 'id="stack-2"' out; then wrong 'the page has the stacks of an idle one'; fi
rm group.zip

fact 'idle threads that a runtime has for itself are one row, and those with a frame of another file are not'
python3 -c 'import json, zipfile
library = "/usr/lib/jvm/libjvm.so"
rows = [(1, "java", 0, [library]), (2, "GC Thread#0", 0, ["/lib/libc.so.6", library]), (3, "GC Thread#1", 0, [library]),
        (4, "VM Thread", 0, [library]), (5, "worker", 0, ["/lib/libc.so.6", None, library]), (6, "C2 Compiler", 50, [library]),
        (7, "native", 0, ["/lib/libc.so.6"])]
with zipfile.ZipFile("idle.zip", "w") as report:
    def add(name, value): report.writestr(name, json.dumps(value))
    add("metadata.json", {"pid": 1, "process_name": "java"})
    add("process.json", {"pid": 1, "name": "java"})
    add("runtime-metrics.json", {"sample_window_ms": 2000, "process": {"cpu_percent": 50}, "threads": [
        {"tid": tid, "name": name, "cpu_percent": cpu} for tid, name, cpu, _ in rows]})
    add("threads.json", {"threads": [{"tid": tid, "state": "sleeping"} for tid, _, _, _ in rows]})
    add("stacks.json", {"threads": [{"tid": tid, "name": name, "frames": [
        {"symbol": "f", **({"module": module} if module else {})} for module in modules]} for tid, name, _, modules in rows]})'
LC_ALL=C.UTF-8 run show idle.zip
grep -qx ' *3 idle threads of the runtime: GC Thread ×2, VM Thread' out || wrong "it is $(cat out)"
expect_same 'the others' '6 1 5 7' "$(sed -n '/^Busiest threads/,/^$/p' out | awk '$2 == "%" { print $3 }' | paste -sd ' ')"
run html idle.zip
grep -q '<p>3 idle threads of the runtime: GC Thread' out || wrong 'they are not on the page'
rm idle.zip

fact 'findings beyond the maximum are counted, and never hide a worse one'
python3 -c 'import json, zipfile
metadata = json.dumps({"exit": {"signal": 11, "name": "SIGSEGV"}})
with zipfile.ZipFile("busy.zip", "w") as report:
    report.writestr("metadata.json", metadata)
    for i in range(1, 61):
        report.writestr(f"processes/{i}-w/runtime-metrics.json", json.dumps({"sample_window_ms": 2000, "process": {"cpu_percent": 100},
            "threads": [{"tid": i, "name": "w", "cpu_percent": 100}]}))
with zipfile.ZipFile("both.zip", "w") as report:
    report.writestr("metadata.json", "{}")
    for i, folder in (9, "processes/9-w/"), (1, ""):
        report.writestr(folder + "runtime-metrics.json", json.dumps({"sample_window_ms": 2000, "process": {"cpu_percent": 100},
            "threads": [{"tid": i, "name": "w", "cpu_percent": 100}]}))
with zipfile.ZipFile("places.zip", "w") as report:
    report.writestr("metadata.json", metadata)
    report.writestr("system.json", json.dumps({"filesystems": [
        {"of": ["root"], "available_bytes": i, "used_percent": 99, "total_inodes": 100, "free_inodes": 5} for i in range(60)]}))'
exits 0 show busy.zip
sed -n '/^Findings/,/^$/p' out | grep -v '^   next: ' >findings
[ "$(sed -n 2p findings)" = '!! it died of SIGSEGV  [metadata.json]' ] || wrong "it is $(cat findings)"
[ "$(sed -n 3p findings)" = ' ! thread 1 "w" used 100 % of one CPU for 2.0 s  [processes/1-w/runtime-metrics.json]' ] ||
    wrong "it is $(cat findings)"
grep -q '^   and 14 more, 0 of them critical$' findings || wrong "it is $(cat findings)"
run show --json busy.zip
holds '(.findings | length) == 48 and .other_findings == 14' out || wrong "it is $(cat out)"
run show places.zip
[ "$(grep -c '^!! the file system' out)" = 47 ] || wrong "it is $(cat out)"
grep -q '^   and 74 more, 13 of them critical$' out || wrong "it is $(cat out)"
run html places.zip
grep -q '<p>And 74 more, 13 of them critical.</p>' out || wrong 'the page does not count them'
run index places.zip
holds '.finding_count == 122 and .critical_findings == 61 and (.findings | length) == 48
    and (.finding_ids | unique) == ["disk-full", "killed-by-signal"]' out || wrong "it is $(cat out)"
run show both.zip
[ "$(sed -n 's/^ ! thread \([0-9]*\) .*/\1/p' out | tr '\n' ' ')" = '1 9 ' ] || wrong "a further process comes first: $(cat out)"
rm both.zip busy.zip places.zip # they are not ours

fact 'threads that do the same are one row, and those that are not listed are counted'
python3 -c 'import json, zipfile
def thread(i, name, cpu): return {"tid": i, "name": name, "cpu_percent": cpu}
with zipfile.ZipFile("alike.zip", "w") as report:
    report.writestr("runtime-metrics.json", json.dumps({"sample_window_ms": 2000, "process": {"cpu_percent": 3},
        "threads": [thread(1, "main", 2), *(thread(i, "pool", 0) for i in range(2, 20))]}))'
exits 0 show alike.zip
grep -q '^   2.0 %        1 main *$' out || wrong "it is $(cat out)"
grep -q '^   0.0 %        2 18 x pool *$' out || wrong "it is $(cat out)"
python3 -c 'import json, zipfile
def thread(i, name, cpu): return {"tid": i, "name": name, "cpu_percent": cpu}
with zipfile.ZipFile("alike.zip", "w") as report:
    report.writestr("runtime-metrics.json", json.dumps({"sample_window_ms": 2000, "process": {"cpu_percent": 3},
        "threads": [thread(i, f"t{i}", 0) for i in range(1, 20)]}))'
run show alike.zip
grep -q '^and 7 more$' out || wrong "it is $(cat out)"
rm alike.zip

fact 'busy threads, those that wait for a thread or hold it up, and those in the kernel come first; of the C library is one word'
python3 -c 'import json, zipfile
libc = "/lib/x86_64-linux-gnu/libc.so.6"
def thread(i, name, cpu=0): return {"tid": i, "name": name, "cpu_percent": cpu}
def listed(i, syscall, **keys): return {"tid": i, "state": "sleeping", "syscall": {"name": syscall}, **keys}
def stack(i, *names): return {"tid": i, "frames": [{"symbol": n, "module": libc if n[0] == "_" else "/bin/app"} for n in names]}
with zipfile.ZipFile("order.zip", "w") as report:
    report.writestr("runtime-metrics.json", json.dumps({"sample_window_ms": 2000, "process": {"cpu_percent": 3},
        "threads": [thread(1, "idle", 0.5), *(thread(i, "worker") for i in range(2, 20)), thread(20, "busy", 90),
            thread(21, "waiter"), thread(22, "holder"), thread(23, "stuck"), {**thread(24, "bugpack-monitor"), "own": True}, thread(25, "raw"),
            {**thread(26, "bugpack-worker", 42.5), "own": True}]}))
    report.writestr("threads.json", json.dumps({"threads": [*(listed(i, "poll") for i in range(2, 20)),
        listed(21, "futex", waits_for={"tid": 22, "kind": "mutex"}), listed(22, "clock_nanosleep"),
        {"tid": 23, "state": "uninterruptible sleep"}, listed(24, "ppoll"), listed(25, "read")]}))
    report.writestr("stacks.json", json.dumps({"threads": [*(stack(i, "__poll", "serve", "main") for i in range(2, 20)),
        stack(21, "__lll_lock_wait", "__pthread_mutex_lock", "want", "main"), stack(22, "__nanosleep", "hold"),
        {"tid": 25, "frames": [{"module": "/bin/raw", "offset": f"0x{i}"} for i in (1, 2, 2)]}]}))
    report.writestr("metadata.json", json.dumps({"triggered_at": "2026-11-22T10:00:00.5Z"}))
    report.writestr("manifest.json", json.dumps({"artefacts": [{"name": "threads.json", "captured_at": "2026-11-22T10:00:04Z"}]}))'
LC_ALL=C.UTF-8 run show order.zip
expect_same 'the rows' 'busy waiter holder stuck idle worker raw' \
    "$(sed -n '/^Busiest/,/^and/s/^ .\{17\}\([0-9]* x \)*\([a-z-]*\).*/\2/p' out | tr '\n' ' ' | sed 's/ $//')"
for line in 'waiter           sleeping, waits for thread 22 (mutex), in futex… < want < main' \
    'holder           sleeping in clock_nanosleep… < hold' '18 x worker      sleeping in poll < serve < main' \
    'raw              sleeping in raw+0x1 < +0x2 ×2' 'and 2 of bugpack itself, 42.5 %' 'states and functions: 3.5 s after the trigger'; do
    grep -qF "$line" out || wrong "no '$line' in $(cat out)"
done
LC_ALL=C.UTF-8 run show --all order.zip
grep -q 'bugpack-monitor  sleeping in ppoll' out || wrong "it is $(cat out)"
grep -q '^  #0 .* in __lll_lock_wait ' out || wrong "it is $(cat out)"
rm order.zip

fact 'who waits for whom is a line from the waiter to the cause, and on the page a picture'
python3 -c 'import json, zipfile
def lock(i, name, tid): return {"tid": i, "name": name, "state": "sleeping", "waits_for": {"tid": tid, "kind": "mutex"}}
with zipfile.ZipFile("waits.zip", "w") as report:
    report.writestr("process.json", json.dumps({"pid": 12, "name": "reader"}))
    report.writestr("threads.json", json.dumps({"threads": [
        {"tid": 12, "name": "reader", "state": "sleeping", "waits_for": {"kind": "pipe", "fd": 3,
            "other_end": [{"pid": 13, "name": "child", "state": "sleeping"}],
            "chain": [{"pid": 13, "name": "child", "state": "sleeping", "waits_for": "its child"},
                {"pid": 14, "name": "<last>", "state": "stopped"}]}},
        lock(15, "one", 16), lock(16, "two", 15), *(lock(i, "pool", 12) for i in range(20, 60))]}))
    report.writestr("stacks.json", json.dumps({"threads": [{"tid": 15, "frames": [{"symbol": "take"}]}]}))
    report.writestr("logs.jsonl", "")'
run show waits.zip
for line in '   one (15) -> mutex -> two (16) -> mutex -> one (15) in a circle' \
    '   40 x pool -> mutex -> reader (12) -> pipe 3 -> child (13) -> its child -> <last> (14) stopped'; do
    grep -qxF "$line" out || wrong "no '$line' in $(cat out)"
done
run html waits.zip
[ "$(grep -o 'rect class="cause"' out | wc -l)" = 3 ] || wrong 'the causes are not marked'
grep -q '>&#60;last&#62; (14)</text>' out || wrong 'a name is not escaped'
rm waits.zip

fact 'a long chain of waits names its first two processes, how many follow, and the last'
python3 -c 'import json, zipfile
def report(zip, *chain):
    with zipfile.ZipFile(zip, "w") as report:
        report.writestr("metadata.json", "{}")
        report.writestr("runtime-metrics.json", json.dumps({"sample_window_ms": 2000, "process": {"cpu_percent": 0},
            "threads": [{"tid": 12, "name": "make", "cpu_percent": 0, "cpu_ms": 0, "voluntary_switches": 0, "involuntary_switches": 0}]}))
        report.writestr("threads.json", json.dumps({"pid": 12, "threads": [{"tid": 12, "name": "make", "state": "sleeping",
            "waits_for": {"kind": "child", "chain": chain}}]}))
def link(pid, name): return {"pid": pid, "name": name, "kind": "child", "waits_for": "the end of its child"}
report("chain.zip", link(13, "make"), link(14, "sh"), link(15, "make"), link(16, "sh"), {"pid": 17, "name": "cc", "state": "stopped"})
report("circle.zip", link(13, "a"), link(14, "b"), {"pid": 13, "name": "a", "state": "sleeping"})'
run show chain.zip
expect_out 'waits for the end of its child make (13), which waits for the end of its child sh (14), and so on through 2 more processes to cc (17), which is stopped  ['
run show circle.zip
expect_out 'which waits for the end of its child b (14), which waits for the end of its child a (13): they wait in a circle  ['
rm chain.zip circle.zip

fact 'a call that waits for one object has it named, and what looks like a worker without work is information'
python3 -c 'import json, zipfile
def report(name, call, *arguments, channel="", path=None, window=1000, switches=0, target="/dev/pts/3", wait=None):
    with zipfile.ZipFile(name + ".zip", "w") as report:
        thread = {"tid": 7, "name": "app", "state": "sleeping", "wait_channel": channel,
            "syscall": {"name": call, "number": 1, "arguments": [hex(a) for a in arguments], **({"path": path} if path else {})},
            **({"waits_for": wait} if wait else {})}
        report.writestr("metadata.json", json.dumps({"pid": 7}))
        report.writestr("process.json", json.dumps({"pid": 7, "name": "app"}))
        report.writestr("threads.json", json.dumps({"pid": 7, "name": "app", "threads": [thread]}))
        report.writestr("files.json", json.dumps({"files": [{"number": 4, "kind": "file", "target": target}]}))
        report.writestr("runtime-metrics.json", json.dumps({"sample_window_ms": window, "threads": [
            {"tid": 7, "name": "app", "cpu_ms": 0, "voluntary_switches": switches, "involuntary_switches": 0}]}))
fifo = {"channel": "wait_for_partner", "path": "/run/app/commands"}
report("write", "openat", 0xffffff9c, 0x7000, 0x80001, **fifo)
report("read", "open", 0x7000, 0x80000, **fifo)
report("moment", "openat", 0xffffff9c, 0x7000, 0x80001, **fifo, window=999)
report("ran", "openat", 0xffffff9c, 0x7000, 0x80001, **fifo, switches=1)
report("other", "openat2", 0xffffff9c, 0x7000, 0x80001, **fifo)
report("elsewhere", "openat", 0xffffff9c, 0x7000, 0x80001, channel="d_alloc_parallel", path="/srv/a")
report("terminal", "write", 4, 0x7000, 9)
report("file", "write", 4, 0x7000, 9, target="/srv/app.log")
report("queue", "mq_timedsend", 4, target="/jobs")
report("idle", "mq_timedreceive", 4, target="/jobs")
def semaphore(name, state, chain=None, **more):
    holder = {"pid": 9, "name": "store", **({"state": state} if state else {})}
    report(name, "semtimedop", 5, wait={"kind": "semaphore", "set": 5, "number": 1, "holder": holder, "chain": [chain or holder], **more})
semaphore("held", "sleeping")
semaphore("stopped", "stopped")
semaphore("ended", "", holder_ended=True)
semaphore("pool", "sleeping", {"pid": 9, "name": "store", "kind": "semaphore", "waits_for": "semaphore 1 of set 5"})
share = {"kind": "filesystem", "path": "/mnt/nas", "type": "nfs4", "source": "10.0.0.1:/export"}
report("share", "fdatasync", 4, target="/mnt/nas/a", wait=share)'
while read -r name wanted; do
    run show "$name.zip"
    expect_same "of $name" "$wanted" "$(sed -n 's/ thread 7 "app" waits in / /; s/^ *\(.*\); for all of the 1.0 s measured  \[threads.json\]$/\1/p' out)"
    rm "$name.zip"
done <<'EOF'
write ! openat until another process opens the FIFO /run/app/commands for reading
read open until another process opens the FIFO /run/app/commands for writing
moment
ran
other
elsewhere
terminal ! write for the terminal /dev/pts/3, which takes no output: it was stopped, as by Ctrl-S, which Ctrl-Q ends, or the program that shows it does not read
file
queue ! mq_timedsend for room in the message queue /jobs, which is full
idle
held semtimedop for semaphore 1 of set 5 of System V; the last that changed it was store (9), which is sleeping
stopped ! semtimedop for semaphore 1 of set 5 of System V; the last that changed it was store (9), which is stopped
ended ! semtimedop for semaphore 1 of set 5 of System V; the last that changed it, and has ended, was store (9)
pool
share !! fdatasync of a file for an answer of the file system at /mnt/nas (nfs4 10.0.0.1:/export)
EOF

fact 'a server whose clients have no answer names the upstream that was asked since they asked, and no other connection'
python3 -c 'import json, zipfile
def client(ms): return {"protocol": "tcp", "state": "established", "accepted": True, **({"unanswered_ms": ms} if ms else {})}
def asked(sent, received=None, remote="10.0.0.1:5432"): return {"protocol": "tcp", "state": "established", "accepted": False,
    "remote": remote, "sent_ms_ago": sent, **({} if received is None else {"received_ms_ago": received})}
def report(name, *sockets, **members):
    with zipfile.ZipFile(name + ".zip", "w") as report:
        report.writestr("metadata.json", json.dumps({"pid": 7}))
        report.writestr("files.json", json.dumps({"files": [{"number": i, "kind": "socket", "socket": s, **members}
            for i, s in enumerate(sockets)]}))
report("asked", client(5000), client(2000), asked(4000), asked(3000), asked(2500, remote="10.0.0.2:80"), asked(9000, 100))
report("unread", client(5000), {**asked(4000), "peer_unread_bytes": 9})
report("shared", client(5000), asked(4000), shared=True)
report("heartbeat", client(2000), asked(9000))
report("answered", client(None), asked(4000, 4000))
report("no-client", client(None), asked(4000))
report("short", client(900), asked(800))'
for name in asked unread shared heartbeat answered no-client short; do
    run show "$name.zip"
    echo "$name $(sed -n 's/^ *\(.*got nothing for.*\)  \[files.json\]$/\1/p' out)"
    rm "$name.zip"
done >found
expect_same 'what is said' 'asked 2 clients sent data, probably wait for an answer, and got nothing for 2.0 s or more since; meanwhile the other end sent nothing on 2 connections to 10.0.0.1:5432 since data last went there, or since it was connected
unread ! 1 client sent data and got nothing for 5.0 s or more since; meanwhile the other end sent nothing on 1 connection to 10.0.0.1:5432 since data last went there, or since it was connected, and left 9 bytes unread
shared 
heartbeat 
answered 
no-client 
short ' "$(cat found)"

fact 'sessions of PostgreSQL that wait for a lock are one finding for a database, with who may have it'
python3 -c 'import json, zipfile
def report(name, *titles, switches=0):
    with zipfile.ZipFile(name, "w") as report:
        report.writestr("metadata.json", json.dumps({"pid": 1, "process_name": "postgres"}))
        for pid, title in enumerate(titles, 1):
            folder = f"processes/{pid}-postgres/" if pid > 1 else ""
            report.writestr(folder + "process.json", json.dumps({"pid": pid, "command_line": [title]}))
            report.writestr(folder + "runtime-metrics.json", json.dumps({"sample_window_ms": 2000, "threads": [
                {"tid": pid, "name": "postgres", "cpu_ms": 0, "voluntary_switches": switches, "involuntary_switches": 0}]}))
report("queue.zip", "postgres", "postgres: 15/main: app shop [local] idle in transaction", *6 * ["postgres: 15/main: app shop 10.0.0.1(4711) UPDATE waiting"],
    "postgres: 15/main: app other [local] idle in transaction", "postgres: 15/main: app stock [local] DELETE waiting", "postgres: app stock [local] SELECT")
report("two.zip", "postgres: app shop [local] idle in transaction", "postgres: app shop [local] idle in transaction (aborted)", "postgres: app shop [local] ALTER TABLE waiting")
report("advisory.zip", "postgres: app shop [local] idle in transaction", "postgres: app shop [local] idle", "postgres: app shop [local] SELECT waiting")
report("none.zip", "postgres: app shop [local] idle in transaction", "postgres: 15/main: walwriter ", "postgres: waiting", "postgres: a b waiting", "psql: a b c d waiting")
report("crowd.zip", *64 * ["postgres: app busy [local] SELECT"], "postgres: app shop [local] idle in transaction", "postgres: app shop [local] UPDATE waiting")
report("ran.zip", "postgres: app shop [local] DELETE waiting", switches=1)'
database_locks() {
    run show "$1"
    grep ' for a lock, by ' out
}
expect_same 'the queue' '!! 6 sessions of the database "shop" wait for a lock, by their titles: 3 (UPDATE), 4 (UPDATE), 5 (UPDATE), 6 (UPDATE) and 2 more; none of them ran in the 2.0 s measured; 2 is idle in a transaction, and may hold it  [processes/3-postgres/process.json]
!! 1 session of the database "stock" waits for a lock, by its title: 10 (DELETE); it never ran in the 2.0 s measured; 11 (SELECT) may hold it  [processes/10-postgres/process.json]' \
    "$(database_locks queue.zip)"
expect_same 'two that may have it' '!! 1 session of the database "shop" waits for a lock, by its title: 3 (ALTER TABLE); it never ran in the 2.0 s measured; one of 1, 2, which are idle in a transaction, may hold it  [processes/3-postgres/process.json]' \
    "$(database_locks two.zip)"
expect_same 'an idle one may have what a function asks for' '!! 1 session of the database "shop" waits for a lock, by its title: 3 (SELECT); it never ran in the 2.0 s measured; 1 is idle in a transaction, and may hold it  [processes/3-postgres/process.json]' \
    "$(database_locks advisory.zip)"
expect_same 'behind more of them that work than are remembered' '!! at least 1 session of the database "shop" waits for a lock, by its title: 66 (UPDATE); it never ran in the 2.0 s measured; 65 is idle in a transaction, and may hold it  [processes/66-postgres/process.json]' \
    "$(database_locks crowd.zip)"
expect_same 'of others there is' ' ' "$(database_locks none.zip) $(database_locks ran.zip)"
rm queue.zip two.zip advisory.zip crowd.zip none.zip ran.zip

fact 'a crash has its frames one a line, a failed command its last lines, and a further process its title'
python3 -c 'import json, zipfile
with zipfile.ZipFile("end.zip", "w") as report:
    report.writestr("metadata.json", json.dumps({"exit": {"signal": 6, "name": "SIGABRT"}}))
    report.writestr("crash.json", json.dumps({"summary": "SIGABRT", "thread": {"tid": 7, "name": "worker"}, "backtrace": {"frames": [
        {"symbol": n, "module": "/lib/libc.so.6"} for n in ("raise", "abort")] + [
        {"symbol": "check", "source": "/src/check.c", "line": 12}] + 3 * [{"symbol": "walk", "module": "/bin/app"}]}}))
    report.writestr("logs.jsonl", "".join(json.dumps({"channel": "stderr", "message": f"line {i}"}) + "\n" for i in range(20)))
    report.writestr("processes/9-postgres/process.json", json.dumps({"pid": 9, "name": "postgres", "command_line": ["postgres: app UPDATE waiting"]}))
    report.writestr("processes/10-cat/process.json", json.dumps({"pid": 10, "name": "cat", "command_line": ["/bin/cat", "-n"]}))'
LC_ALL=C.UTF-8 run show end.zip
for line in 'thread worker (7)' '   abort…  libc.so.6' '   check  check.c:12' '   walk x3  app' '  line 12' '  line 19' \
    '     ? %          ?        9 postgres: app UPDATE waiting' '     ? %          ?       10 cat -n'; do
    grep -qxF "$line" out || wrong "no '$line' in $(cat out)"
done
if grep -q 'line 11' out; then wrong "it is $(cat out)"; fi
run html end.zip
grep -q '<li><code>check</code> <span class="entry">check.c:12</span></li><li><code>walk</code> &#215;3 ' out || wrong 'the page has no stack of it'
rm end.zip

fact 'a signal without a name ended a process as well'
python3 -c 'import json, zipfile
with zipfile.ZipFile("signal.zip", "w") as report:
    report.writestr("metadata.json", json.dumps({"exit": {"signal": 36, "core_dumped": False}}))'
run show signal.zip
grep -q '^!! it died of signal 36  \[metadata.json\]$' out || wrong "it is $(cat out)"
run index signal.zip
holds '.signal == "signal 36"' out || wrong "it is $(cat out)"
rm signal.zip # it is not ours

fact 'what is missing of one further process is one finding, and what was not there is none'
python3 -c 'import json, zipfile
def report(name, missing, *lines):
    keys = ("name", "status", "reason", "missing")
    rows = [dict(zip(keys, line), bytes=0, duration_ms=1) for line in lines]
    with zipfile.ZipFile(name + ".loss.zip", "w") as out:
        out.writestr("metadata.json", "{}")
        out.writestr("manifest.json", json.dumps({"complete": False, "missing": missing, "artefacts": rows}))
gone = [("processes/9-cat/process.json", "failed", "process 9 has ended"),
        ("processes/9-cat/stacks.json", "failed", "cannot look at process 9")]
absent = ("thread-heap.json", "omitted", "it has no jemalloc")
report("gone", 1, absent, *gone)
report("limit", 3, absent, *gone, ("logs/a.log", "omitted", "larger than 1 byte", True), ("processes/10-dd/files.json", "timed_out", "late"))'
for case in gone:1 limit:3; do
    run show "${case%:*}.loss.zip"
    sed -n '/^Findings/,/^$/p' out | grep '^ ! ' >found
    expect_same "the findings of ${case%:*}" "${case#*:}" "$(wc -l <found | tr -d ' ')"
done
sed -n '1s/^ ! //p' found >first
expect_same 'the first' 'failed, and 1 more entry: process 9 has ended  [processes/9-cat/process.json]' "$(cat first)"
grep -q 'omitted: larger than 1 byte  \[logs/a.log\]' found || wrong "they are $(cat found)"
rm ./*.loss.zip # they are not ours

fact 'memory that rises through the window grows, however few the samples'
python3 -c 'import json, zipfile
def report(name, uptime, *samples):
    rows = [{"at_ms": at, "rss_kb": mib << 10} for at, mib in samples]
    with zipfile.ZipFile(name + ".grown.zip", "w") as out:
        out.writestr("metadata.json", "{}")
        out.writestr("manifest.json", json.dumps({"complete": True, "missing": 0, "artefacts": []}))
        out.writestr("runtime-metrics.json", json.dumps({"sample_window_ms": 2000, "threads": [],
            "process": {"rss_kb": rows[-1]["rss_kb"], "uptime_secs": uptime, "rss_samples": rows}}))
report("few", 14, (0, 78), (1907, 104), (2003, 107))
report("late", 14, (0, 40), (250, 60), (700, 60), (1000, 70), (2000, 90))
report("pause", 14, (0, 40), (250, 60), (800, 60), (1000, 60), (2000, 90))
report("steps", 14, (0, 40), (250, 60), (800, 60), (1000, 70), (2000, 90))
report("falls", 14, (0, 40), (1000, 90), (2000, 89))
report("little", 14, (0, 40), (1000, 50), (2000, 55))
report("begun", 11, (0, 40), (1000, 60), (2000, 80))'
for case in few:1 late:1 pause:0 steps:1 falls:0 little:0 begun:0; do
    run show "${case%:*}.grown.zip"
    expect_same "the findings of ${case%:*}" "${case#*:}" "$(grep -c '^ ! resident memory grew by' out)"
done
rm ./*.grown.zip # nor are these

fact 'an end is named by what the command said before it'
python3 -c 'import json, zipfile
def report(name, end, lines, channel="stderr", program="viewer", **documents):
    with zipfile.ZipFile(name + ".end.zip", "w") as out:
        out.writestr("metadata.json", json.dumps({"exit": end, "process_name": program}))
        out.writestr("logs.jsonl", "".join(json.dumps({"time": "2026-01-01T00:00:00Z", "level": "info",
            "channel": line[0] if type(line) is tuple else channel, "message": line[1] if type(line) is tuple else line})
            + "\n" for line in lines))
        for entry, document in documents.items():
            out.writestr(entry + ".json", json.dumps(document))
report("library", {"status": 127}, ["./a: error while loading shared libraries: libx.so.1: cannot open shared object file: No such file or directory"])
report("command", {"status": 127}, ["begin", "sh: 1: frobnicate: not found"])
report("other", {"status": 127}, ["all is well"])
report("long-ago", {"status": 127}, ["cc: x.h: No such file or directory"] + 8 * ["all is well"])
report("shell", {"status": 127}, ["all is well"], program="bash")
report("refused", {"status": 126}, ["sh: 1: ./a: Permission denied"])
report("own-126", {"status": 126}, ["all is well"])
report("child", {"status": 139}, ["Segmentation fault (core dumped)"])
report("own", {"status": 139}, ["too many rows"])
a = {"tid": 1, "name": "a"}
report("abort", {"signal": 6, "name": "SIGABRT"}, ["free(): double free detected in tcache 2"],
    crash={"name": "SIGABRT", "summary": "SIGABRT in thread a (1): sent", "thread": a, "cause": "the program aborted itself"})
groups = {"cgroups": [{"path": "/web", "memory": {"current_bytes": 5, "max_bytes": 100 << 20, "oom_kills": 3, "session_oom_kills": 1}}]}
report("killed", {"signal": 9, "name": "SIGKILL"}, [], system=groups)
report("child-killed", {"status": 137}, ["Killed"], system=groups)
report("make-killed", {"status": 2}, ["make: *** [Makefile:2: all] Killed"], system=groups)
for name, used in ("limit", 2004), ("early", 1590), ("late", 3100):
    report(name, {"signal": 9, "name": "SIGKILL", "cpu_ms": used}, [],
        process={"limits": [{"name": "Max cpu time", "soft": 1, "hard": 2}]})
report("machine-killed", {"signal": 9, "name": "SIGKILL"}, [], system={"memory": {"oom_kills_in_session": 2}, "cgroups": groups["cgroups"][:0]})
report("other-killed", {"signal": 9, "name": "SIGKILL"}, [], system={"memory": {"oom_kills_in_session": 0}, "cgroups": [
    {"path": "/web", "memory": {"oom_kills": 3, "session_oom_kills": 0}}]})
report("term", {"signal": 15, "name": "SIGTERM"}, [], system=groups)
report("host", {"signal": 6, "name": "SIGABRT"}, [],
    crash={"name": "SIGABRT", "summary": "SIGABRT in thread a (1): sent", "thread": a, "abort_message": "a: Assertion failed"})
source = ["x.c:1:24: error: y undeclared", "    1 | return y;", "      | ^", "x.c:1:24: note: once"]
report("made", {"status": 2}, source + ["make[1]: *** [Makefile:2: all] Error 1", "make: *** [Makefile:2: all] Error 2"])
report("caret", {"status": 1}, ["\x1b[1mX.java:1: \x1b[31merror:\x1b[0m missing", "class X {", "   ^", "1 error"])
report("java", {"status": 1}, ["Exception in thread \"main\" E: cannot load", "\tat X.main", "Caused by: F: disk on fire", "\t... 1 more"])
report("rust", {"status": 1}, ["error[E1]: mismatched", " --> x.rs:1:26", "  |", "1 | fn main()", "  | ^", "error: aborting due to 1 previous error"])
report("advice", {"status": 128}, ["fatal: it is locked", "", "Another git process seems to be running"])
report("past", {"status": 1}, ["fatal: no names found"] + 9 * ["building"] + ["ld: cannot find -lx"])
report("trailer", {"status": 2}, ["make: *** [Makefile:2: all] Error 1"])
report("long", {"status": 134}, ["a.c:1: f: Assertion `b\x27 failed."] + 100 * ["  at g"])
report("stdout", {"status": 1}, ["[1/1] cat x", "FAILED: x", "cat: x: No such file", "ninja: build stopped: subcommand failed."], "stdout")
report("rows", {"status": 1}, ["row 1", "row 2"], "stdout")
report("trouble", {"status": 3}, ["Error: of a try", "connected"] + 8 * ["row"] + ["ERROR: cannot open channel 7", "Bye"], "stdout")
report("port", {"status": 1}, ["# Warning: bind: Address already in use", "# Failed listening, aborting."], "stdout")
report("node", {"signal": 6, "name": "SIGABRT"}, ["<--- JS stacktrace --->", "FATAL ERROR: Reached heap limit",
    "----- Native stack trace -----", " 1: 0xb78db3 node::f() [node]", "10: 0x195e476  [node]"])
report("event", {"status": 1}, ["node:events:502", "      throw er;", "      ^", "Error: ENOENT: x", "    at f",
    "Emitted \x27error\x27 event on Server instance at:", "    at g", "  code: 1", "}", "Node.js v20.20.2"])
report("hostile-trace", {"status": 1}, ["  File \"", "  File \"a\", line ", "  File \"b.py\", line 99999999999999999999999, in ", "E"])
report("go-trace", {"status": 2}, ["panic: x", "\t:", "goroutine 1 [running]:", "panic(0)", "\t/go/panic.go:1", "main.work(0x1)", "\t/srv/x.go:12 +0x1"])
report("no-trace", {"status": 2}, ["panic: x", "goroutine", "goroutine 1 [running]:", "\t", "("])
report("log", {"status": 1}, ["level=error msg=\"no route to db1\"", "level=info msg=stopped"])
report("calm-log", {"status": 1}, ["INFO: all is well", "INFO: shutting down"])
report("colon", {"status": 1}, ["AssertionError: Expected to be equal:", "1 !== 2"])
report("mark", {"status": 1}, ["*** FATAL CONFIG FILE ERROR ***", "at line 2", ">>> \x27bogus yes\x27", "Bad directive"])
report("lld", {"status": 1}, ["ld.lld: error: undefined symbol: f", ">>> referenced by x.c", ">>>               x.o:(main)",
    "clang: error: linker command failed with exit code 1 (use -v to see invocation)"])
report("stopped-by", {"status": 1}, ["cannot open cache, continuing without", "worker 3 stopped: out of file descriptors"])
report("schema", {"status": 1}, ["cannot open cache, continuing without", "INFORMATION_SCHEMA is unknown here"])
report("calm-end", {"status": 1}, ["cannot open cache", "[info] all is well", "Received SIGTERM, exiting..."])
report("ran-out", {"status": 1}, ["quota exceeded", "INFO: connected", "Stopped."])
report("leak", {"status": 9}, ["==1== 24 bytes in 1 blocks are definitely lost",
    "==1==    at 0x48: malloc (in /usr/libexec/valgrind/vgpreload_memcheck-amd64-linux.so)", "==1==    by 0x10: keep (app.c:5)"])
report("bad-free", {"status": 9}, ["==1== Invalid free() / delete / delete[] / realloc()", "==1==    at 0x48: free (vg_replace_malloc.c:538)",
    "==1==  Address 0x4a is 0 bytes inside a block", "==1==    at 0x49: free (vg_replace_malloc.c:538)", "==1==    by 0x11: other (app.c:7)"])
report("string-leak", {"status": 9}, ["==1== 2 bytes in 1 blocks are definitely lost", "==1==    at 0x48: malloc (in /x/vgpreload_memcheck.so)",
    "==1==    by 0x49: strdup (in /usr/lib/libc.so.6)", "==1==    by 0x10: keep (app.c:5)"])
report("dotnet", {"status": 134}, ["Unhandled exception. System.Exception: E", "   at Viewer.Load() in /srv/x.cs:line 12"])
report("clock", {"status": 1}, ["backup: cannot reach db1", "  at 10:32:11 the next try was planned"])
report("address", {"status": 1}, ["backup: cannot reach db1", "  at db1:5432"])
report("bare-node", {"status": 1}, ["Error: E", "    at node:internal/x:1:2", "    at /srv/x.js:1:7"])
report("packages", {"status": 1}, ["Error: E", "    at Layer.handle (/srv/node_modules/a.js:1:7)", "    at load (/srv/x.js:2:7) {", "}"])
report("one-package", {"status": 1}, ["Error: E", "    at inner (/srv/node_modules/a.js:1:7)", "    at outer (/srv/node_modules/a.js:2:7)"])
go = ["panic: strings: negative Repeat count", "goroutine 1 [running]:", "strings.Repeat(0x1)", "\t/usr/lib/go/src/strings/strings.go:538 +0x1"]
report("go-own", {"status": 2}, go + ["app/work.(*T).Do(0x1)", "\t/usr/src/app/work/x.go:12 +0x1"])
report("go-main", {"status": 2}, go + ["main.main()", "\t/usr/src/main/x.go:12 +0x1"])
report("go-created", {"status": 2}, go + ["created by main.(*T).Do", "\t/srv/x.go:12 +0x1", "goroutine 2 [running]:", "main.idle()", "\t/srv/x.go:9 +0x1"])
library = ["Traceback (most recent call last):", "  File \"/usr/lib/python3.11/json/decoder.py\", line 355, in raw_decode"]
report("library-alone", {"status": 1}, library + ["ValueError: x"])
report("python-colon", {"status": 1}, library[:1] + ["  File \"app.py\", line 3, in work"] + library[1:] + ["ValueError: these are missing:", "a.yaml"])
report("own-warning", {"status": 1}, ["reading configuration", "app: warning: no such host, giving up"])
report("time-warning", {"status": 1}, ["reading configuration", "2026-01-01 12:30:45: warning: giving up"])
report("host-warning", {"status": 1}, ["reading configuration", "db1:5432: warning: giving up"])
report("own-note", {"status": 1}, ["reading configuration", "app: note: giving up"])
report("lint", {"status": 1}, ["reading configuration", "lint: file a.yaml contains errors"])
report("logins", {"status": 1}, ["reading configuration", "2 failed logins in the last hour"])
report("no-records", {"status": 1}, ["reading configuration", "found no records in users"])
report("warnings", {"status": 1}, ["x.c:2: error: y undeclared", "x.c:4:5: warning: unused", "x.c:(.text+0x1a): warning: dangerous",
    "/usr/bin/ld: warning: x.o: no .note", "cc1: warning: unknown option", "X.java:3: warning: removal", "make[1]: warning:  Clock skew"])
report("pytest", {"status": 1}, ["FAILED x.py::test_sum - assert 3 == 4", "assert 3 == 4", "1 failed, 2 passed in 61.03s (0:01:01)"])
report("postgres", {"status": 1}, ["LOG:  unrecognized parameter \"nosuch\"", "FATAL:  configuration file \"/a.conf\" contains errors",
    "LOG:  database system is shut down"])
report("virtual", {"status": 134}, ["pure virtual method called", "terminate called without an active exception"])
report("nginx", {"status": 1}, ["nginx: [emerg] bind() to 0.0.0.0:80 failed (98: in use)", "nginx: [emerg] still could not bind()"])
report("trace", {"status": 9}, ["FATAL: bad checksum", "./bt(main+0x54)[0x557a7a76d1ed]", "/lib/libc.so.6(+0x2724a) [0x7f1a]"])
report("merged", {"status": 1}, ["cat: x: No such file"], "output")
stack = ["goroutine 1 [running]:", "runtime/debug.Stack()", "\t/go/stack.go:24 +0x5e", "main.work.func1()", "\t/srv/x.go:4 +0x1",
    "panic({0x1, 0x2})", "\t/go/panic.go:7 +0x1", "main.work()", "\t/srv/x.go:9 +0x1"]
report("go-recovered", {"status": 2}, ["panic: job 1 bad"] + stack + ["upload is gone"])
report("go-recovered-last", {"status": 2}, ["panic: job 1 bad"] + stack)
report("go-logged", {"status": 2}, ["level=error msg=\"panic: recovered\"", "panic: nil map", "goroutine 1 [running]:", "main.main()", "\t/srv/x.go:12 +0x1"])
report("go-verbose", {"status": 1}, ["=== RUN   TestA", "    a_test.go:3: sum is 3", "--- FAIL: TestA (0.00s)", "=== RUN   TestB", "--- PASS: TestB (0.00s)",
    "FAIL", "FAIL\tsums\t0.1s", "FAIL"], "stdout")
report("node-deep", {"status": 1}, ["AssertionError [ERR_ASSERTION]: Expected to be deep-equal:", "+ actual - expected", "  {", "+   3", "-   2", "  }",
    "    at check (/srv/x.js:2:27)", "Node.js v20.20.2"])
report("node-brace", {"status": 1}, ["Error: E", "    at async load (/a6.js:2:38) {", "  [cause]: F: f", "      at async find (/a7.js:1:9) {", "    code: 1"])
report("peer", {"status": 1}, ["backup: cannot reach db1", "    at node1 (10.0.0.1:80)"])
report("full-stop", {"status": 1}, ["Traceback (most recent call last):", "  File \"app.py\", line 3, in work", "E: exit status 1."])
report("ctest", {"status": 8}, ["2 - b (Failed)", "Errors while running CTest"])
report("initdb", {"status": 2}, ["could not access \"/a\"", "Run initdb or pg_basebackup to initialize a PostgreSQL data directory."])
report("info", {"status": 1}, ["cannot connect to db1", "INFO cleanup done: no errors, 0 failed"])
report("info-later", {"status": 1}, ["cannot connect to db1", "ERROR: no table INFO"])
report("info-alone", {"status": 1}, ["reading configuration", "INFO: no errors"])
report("tests", {"status": 1}, ["FAIL b: 3 is not 4", "PASS c", "1 failed, 2 passed in 0.12s"], "stdout")
valgrind = ["==1== Conditional jump or move", "==1==    at 0x10: main (val.c:3)"]
report("valgrind-before", {"status": 2}, valgrind + ["config: missing key port"])
report("valgrind-last", {"status": 2}, ["config: missing key port"] + valgrind)
report("group", {"status": 1}, ["  + Exception Group Traceback (most recent call last):", "  |   File \"x.py\", line 6, in <module>",
    "  | ExceptionGroup: in a TaskGroup (1 sub-exception)", "  +-+---------------- 1 ----------------", "    | Traceback (most recent call last):",
    "    |     raise ValueError()", "    | ValueError: cannot load", "    +------------------------------------"])
report("side-thread", {"status": 9}, ["Exception in thread \"pool-1\" E: e", "\tat X.run", "Caused by: F: f", "\t... 1 more", "server unreachable"])
report("side-thread-last", {"status": 9}, ["Exception in thread T-1:", "Traceback (most recent call last):", "  File \"a.py\", line 2, in f", "KeyError: 1"])
report("main-thread", {"status": 1}, ["Exception in thread \"main\" E: e", "\tat X.run", "shut down"])
report("ninja-more", {"status": 1}, ["[1/2] f", "FAILED: a", "do f", "a: cannot frob", "[2/2] g", "built b", "ninja: build stopped: subcommand failed."], "stdout")
report("ninja-silent", {"status": 1}, ["[1/1] f", "FAILED: a", "do f", "ninja: build stopped: subcommand failed."], "stdout")
report("pipe", {"status": 2}, ["curl: (7) Failed to connect", "", "gzip: stdin: unexpected end of file", "tar: Child returned status 1"])
report("survived", {"status": 2}, ["cannot reach db1, ignored", "cannot reach db2"])
report("before-calm", {"status": 2}, ["cannot reach db1", "[info] connected to db2", "cannot write"])
report("speaker", {"status": 2}, ["tar: this is not an archive", "tar: next header", "tar: cannot go on"])
report("others", {"status": 2}, ["backup: not an archive", "next header", "tar: cannot go on"])
report("label", {"status": 2}, ["error: no package x", "searched: y", "needed by z", "perhaps not without a network"])
report("clean-up", {"status": 3}, ["error: no channel"] + 20 * ["removing a file"] + ["done"])
report("calm-clean-up", {"status": 3}, ["ERROR no channel"] + 60 * ["INFO stopping a worker"])
report("json-log", {"status": 3}, ["{\"level\":\"fatal\",\"msg\":\"no channel\"}", "{\"level\":\"info\",\"msg\":\"done\"}"])
report("progress", {"status": 5}, ["error: connection reset"] + ["\rcopied 1 %\rcopied 49 %\rcopied 50 %\r"])
report("box", {"status": 1}, ["\u2577", "\u2502 Error: no channel", "\u2502", "\u2502   on a.tf line 2", "\u2575"])
report("usage", {"status": 64}, ["server: unknown option", "Usage: server [OPTION]...", "Serve channels.", "  -h  help", "Report bugs."])
report("usage-first", {"status": 2}, ["usage: x.py [-h]", "x.py: error: unrecognized arguments: --prot"])
report("usage-alone", {"status": 2}, ["Usage: server PORT", "Serve channels."])
report("errors", {"status": 1}, ["a.c:1:1: error: unknown type", "    1 | x a;", "      | ^", "a.c: In function \u2018f\u2019:", "a.c:2:2: error: undeclared"])
report("cause-of-child", {"status": 1}, ["dd: writing to x: No space left", "Traceback (most recent call last):", "  File \"x.py\", line 2, in f",
    "E.CalledProcessError: Command x returned non-zero exit status 1."])
report("not-of-child", {"status": 1}, ["error: no cache", "Traceback (most recent call last):", "  File \"x.py\", line 2, in f", "KeyError: 1"])
report("chained", {"status": 1}, ["OSError: refused", "", "The above exception was the direct cause of the following exception:", "",
    "Traceback (most recent call last):", "  File \"x.py\", line 2, in f", "RuntimeError: cannot start"])
report("linker", {"status": 1}, ["error: linking with \x60cc\x60 failed: exit status: 1", "  |", "  = note: ld: error: no library", "error: aborting due to"])
report("pytest-error", {"status": 1}, ["E       fixture x not found", "/a.py:1", "== short test summary info ==", "ERROR a.py::test_a", "== 1 error in 0.11s =="], "stdout")
report("googletest", {"status": 1}, ["[ RUN      ] Sum", "sum.cc:7: Failure", "Expected equality of these values:", "  sum(1, 2)", "  4",
    "[  FAILED  ] Sum (0 ms)", "[=====] 1 test", "[  PASSED  ] 0 tests.", " 1 FAILED TEST"], "stdout")
report("tap", {"status": 1}, ["not ok 1 - sums"] + 20 * ["  at x"] + ["# fail 1", "# todo 0"], "stdout")
report("difference", {"status": 1}, ["< a", "> error: cannot open"], "stdout")
report("last-of-many", {"status": 1}, ["tape 1: not found", "tape 2: not found", "tape 3 is torn"])
report("parts-of-words", {"status": 7}, ["The Terror of it", "failover is on", "scan: errors=0 failed=0", "no errors found, 0 failed", "rotating error.log", "out of tapes"])
report("none-failed", {"status": 1}, ["all passed, 0 failed", "{\"error\": null, \"failed\": 0}"], "stdout")
report("survived-by-another", {"status": 1}, ["error: cannot load the theme", "falling back to the default", "no license"])
report("retried", {"status": 1}, ["error: cannot reach db1", "trying again", "error: cannot write"])
report("of-a-library", {"status": 1}, ["libGL error: failed to load driver: iris", "app: cannot open display"])
report("remark", {"status": 1}, ["server does not support compression", "vault: cannot open x"])
report("connections", {"status": 1}, ["error: null pointer in x", "exit code: 0 of step 1"] + 20 * ["releasing connection 1"] + ["finished"])
report("box-closed", {"status": 2}, ["Usage: app.py NAME", "\u256d\u2500 Error \u2500\u2500\u256e", "\u2502 No such option: --prot    \u2502", "\u2570\u2500\u2500\u256f"])
report("anyhow", {"status": 1}, ["Error: cannot read it", "", "Caused by:", "    0: cannot open x", "    1: No such file"])
report("tsc", {"status": 2}, ["a.ts:12:5 - error TS2322: wrong type", "12   const a = 1;", "     ~~~~~", "Found 1 error in a.ts:12"], "stdout")
report("maven", {"status": 1}, ["[ERROR] Failed to execute goal g: Compilation failure", "[ERROR] /A.java:[3,9] cannot find symbol", "[ERROR]   symbol:   y",
    "[ERROR] -> [Help 1]", "[ERROR] Re-run Maven using -X", "[ERROR] [Help 1] http://x"], "stdout")
report("gradle", {"status": 1}, ["FAILURE: Build failed with an exception.", "* What went wrong:", "> Could not resolve x.", "* Try:", "> Run with --info", "BUILD FAILED in 1s"])
report("more-information", {"status": 1}, ["starting up", "cannot start; see the log for more information"])
report("both-outputs", {"status": 8}, [("stdout", "a_test: error: 3 is not 4"), ("stdout", "1 of 2 passed"), "Errors while running CTest", ("stdout", "bye")])
report("script", {"status": 127}, ["x.sh: line 2: ./tool: cannot execute: required file not found"])
report("null", {"signal": 11, "name": "SIGSEGV"}, ["free(): not the cause"],
    crash={"name": "SIGSEGV", "summary": "SIGSEGV at 0x0 in thread a (1): nothing", "address": "0x0", "thread": a, "cause": "use through a null pointer"})'
while IFS='|' read -r name line; do
    run show "$name.end.zip"
    grep -Eq "^.. $line  \[" out || wrong "$name: $(cat out)"
done <<'END'
library|the library "libx.so.1" could not be loaded: cannot open shared object file: No such file or directory
command|a command was not found: sh: 1: frobnicate: not found
other|it ended with exit status 127
long-ago|it ended with exit status 127
shell|it ended with exit status 127, a shell's word for a command that was not found
refused|it ended with exit status 126, a shell's word for a command that cannot be executed
own-126|it ended with exit status 126
other|its last words: all is well
child|a child of it died, probably of SIGSEGV: its exit status is 139, and its output has "Segmentation fault"
abort|crash: free\(\): double free detected in tcache 2: SIGABRT in thread a \(1\)
abort|its last words: free\(\): double free detected in tcache 2
host|crash: a: Assertion failed: SIGABRT in thread a \(1\)
killed|it was probably killed for lack of memory: meanwhile the kernel killed 1 process for it in the control group "/web", which may use 100 MiB
make-killed|a child of it was probably killed for lack of memory.*
limit|it died of SIGKILL: probably at its hard limit of 2 s of CPU time, of which it used 2.0 s
early|it died of SIGKILL
late|it died of SIGKILL
child-killed|a child of it was probably killed for lack of memory.*
child-killed|a child of it died, probably of SIGKILL: .*
null|crash: use through a null pointer: SIGSEGV at 0x0 in thread a \(1\)
machine-killed|it was probably killed for lack of memory: meanwhile the kernel killed 2 processes of this machine for it
made|its last words: x.c:1:24: error: y undeclared
caret|its last words: X.java:1: error: missing
java|its last words: Exception in thread "main" E: cannot load Caused by: F: disk on fire
rust|its last words: error\[E1\]: mismatched --> x.rs:1:26
advice|its last words: fatal: it is locked
past|its last words: ld: cannot find -lx
trailer|its last words: make: \*\*\* \[Makefile:2: all\] Error 1
long|its last words: a.c:1: f: Assertion `b' failed.
stdout|its last words: cat: x: No such file
merged|its last words: cat: x: No such file
trouble|its last words: ERROR: cannot open channel 7
port|its last words: # Warning: bind: Address already in use
node|its last words: FATAL ERROR: Reached heap limit
event|its last words: Error: ENOENT: x
log|its last words: level=error msg="no route to db1"
calm-log|its last words: INFO: shutting down
colon|its last words: AssertionError: Expected to be equal: 1 !== 2
hostile-trace|its last words: E
go-trace|its last words: panic: x; in main.work \(x.go:12\)
no-trace|its last words: panic: x
mark|its last words: >>> 'bogus yes' Bad directive
lld|its last words: ld.lld: error: undefined symbol: f
stopped-by|its last words: worker 3 stopped: out of file descriptors
schema|its last words: INFORMATION_SCHEMA is unknown here
calm-end|its last words: cannot open cache
ran-out|its last words: quota exceeded
leak|its last words: ==1== 24 bytes in 1 blocks are definitely lost; in keep \(app.c:5\)
bad-free|its last words: ==1== Invalid free\(\) / delete / delete\[\] / realloc\(\)
string-leak|its last words: ==1== 2 bytes in 1 blocks are definitely lost; in keep \(app.c:5\)
dotnet|its last words: Unhandled exception. System.Exception: E; in Viewer.Load\(\) in /srv/x.cs:line 12
clock|its last words: backup: cannot reach db1
address|its last words: backup: cannot reach db1
bare-node|its last words: Error: E; in /srv/x.js:1:7
packages|its last words: Error: E; in load \(/srv/x.js:2:7\)
one-package|its last words: Error: E; in inner \(/srv/node_modules/a.js:1:7\)
go-own|its last words: panic: strings: negative Repeat count; in app/work.\(\*T\).Do \(x.go:12\)
go-main|its last words: panic: strings: negative Repeat count; in main.main \(x.go:12\)
go-created|its last words: panic: strings: negative Repeat count
library-alone|its last words: ValueError: x
python-colon|its last words: ValueError: these are missing: a.yaml; in work \(app.py:3\)
own-warning|its last words: app: warning: no such host, giving up
time-warning|its last words: 2026-01-01 12:30:45: warning: giving up
host-warning|its last words: db1:5432: warning: giving up
own-note|its last words: app: note: giving up
lint|its last words: lint: file a.yaml contains errors
logins|its last words: 2 failed logins in the last hour
no-records|its last words: found no records in users
warnings|its last words: x.c:2: error: y undeclared
pytest|its last words: FAILED x.py::test_sum - assert 3 == 4
go-recovered|its last words: upload is gone
go-recovered-last|its last words: panic: job 1 bad; in main.work \(x.go:9\)
go-logged|its last words: panic: nil map; in main.main \(x.go:12\)
go-verbose|its last words: --- FAIL: TestA \(0.00s\) a_test.go:3: sum is 3
node-deep|its last words: AssertionError \[ERR_ASSERTION\]: .*; in check \(/srv/x.js:2:27\)
node-brace|its last words: Error: E \[cause\]: F: f; in async find \(/a7.js:1:9\)
peer|its last words: backup: cannot reach db1
full-stop|its last words: E: exit status 1; in work \(app.py:3\)
ctest|its last words: 2 - b \(Failed\)
initdb|its last words: could not access "/a"
info|its last words: cannot connect to db1
info-later|its last words: ERROR: no table INFO
info-alone|its last words: INFO: no errors
tests|its last words: FAIL b: 3 is not 4
valgrind-before|its last words: config: missing key port
valgrind-last|its last words: ==1== Conditional jump or move; in main \(val.c:3\)
group|its last words: ValueError: cannot load
side-thread|its last words: server unreachable
side-thread-last|its last words: Exception in thread T-1: KeyError: 1; in f \(a.py:2\)
main-thread|its last words: Exception in thread "main" E: e
ninja-more|its last words: a: cannot frob
ninja-silent|its last words: do f
postgres|its last words: LOG:  unrecognized parameter "nosuch"
virtual|its last words: pure virtual method called
nginx|its last words: nginx: \[emerg\] bind\(\) to 0.0.0.0:80 failed \(98: in use\)
trace|its last words: FATAL: bad checksum
pipe|its last words: curl: \(7\) Failed to connect; then gzip: stdin: unexpected end of file
survived|its last words: cannot reach db2
before-calm|its last words: cannot write
speaker|its last words: tar: this is not an archive; then tar: cannot go on
others|its last words: tar: cannot go on
label|its last words: error: no package x; then perhaps not without a network
clean-up|its last words: error: no channel; then done
calm-clean-up|its last words: ERROR no channel
json-log|its last words: \{"level":"fatal","msg":"no channel"\}
progress|its last words: error: connection reset; then copied 50 %
box|its last words: Error: no channel
usage|its last words: server: unknown option
usage-first|its last words: x.py: error: unrecognized arguments: --prot
usage-alone|its last words: Usage: server PORT
errors|its last words: a.c:1:1: error: unknown type; then a.c:2:2: error: undeclared
cause-of-child|its last words: dd: writing to x: No space left; then E.CalledProcessError: .*; in f \(x.py:2\)
not-of-child|its last words: KeyError: 1; in f \(x.py:2\)
chained|its last words: OSError: refused; then RuntimeError: cannot start; in f \(x.py:2\)
linker|its last words: error: linking with .cc. failed: exit status: 1 = note: ld: error: no library
pytest-error|its last words: fixture x not found; then ERROR a.py::test_a
googletest|its last words: sum.cc:7: Failure Expected equality of these values: sum\(1, 2\)
tap|its last words: not ok 1 - sums
difference|it ended with exit status 1
last-of-many|its last words: tape 1: not found; then tape 2: not found; then tape 3 is torn
parts-of-words|its last words: out of tapes
none-failed|it ended with exit status 1
survived-by-another|its last words: no license
retried|its last words: error: cannot write
of-a-library|its last words: app: cannot open display
remark|its last words: vault: cannot open x
connections|its last words: error: null pointer in x; then finished
box-closed|its last words: No such option: --prot
anyhow|its last words: Error: cannot read it; then Caused by: 1: No such file
tsc|its last words: a.ts:12:5 - error TS2322: wrong type
maven|its last words: \[ERROR\] Failed to .*: Compilation failure; then \[ERROR\] /A.java:\[3,9\] cannot find symbol
gradle|its last words: > Could not resolve x\.
more-information|its last words: cannot start; see the log for more information
both-outputs|its last words: a_test: error: 3 is not 4
script|the interpreter or loader of a command was not found: x.sh: .*
END
for name in difference none-failed; do
    run show "$name.end.zip"
    ! grep -q 'its last words' out || wrong "$name: $(cat out)"
done
for name in library other long-ago shell own term other-killed; do
    run show "$name.end.zip"
    if grep -q -e 'a command was not found' -e 'a child of it' -e 'probably killed' out; then wrong "$name: $(cat out)"; fi
done
run show rows.end.zip
if grep -q 'last words' out; then wrong "it is $(cat out)"; fi
run show null.end.zip
if grep -q 'it died of' out; then wrong "it is $(cat out)"; fi
rm ./*.end.zip # they are not ours

fact 'nobody can wake a process if nothing from outside can'
python3 -c 'import json, zipfile
def call(name, limit, own): return {"name": name, "number": 202, "arguments": ["0x1000", "0x189", "0x0", hex(limit), "0x0", "0x0"], "own_futex": own}
forever, limited, shared = call("futex", 0, True), call("futex", 8192, True), call("futex", 0, False)
read = call("read", 0, False)
def report(name, executable, handlers, *calls, **more):
    threads = [{"tid": i + 7, "name": "viewer", "state": "sleeping", "syscall": call} for i, call in enumerate(calls)]
    measured = [{"tid": thread["tid"], "name": "viewer", "cpu_ms": 0, "cpu_percent": 0, "voluntary_switches": 0,
                 "involuntary_switches": 0} for thread in threads]
    waits = {"pid": 7, "threads": threads, **({"signal_handlers": handlers} if handlers is not None else {}), **more}
    with zipfile.ZipFile(name + ".wait.zip", "w") as out:
        out.writestr("metadata.json", "{}")
        out.writestr("runtime-metrics.json", json.dumps({"sample_window_ms": 2000, "threads": measured}))
        out.writestr("process.json", json.dumps({"pid": 7, "executable": executable}))
        out.writestr("threads.json", json.dumps(waits))
report("all", "/usr/bin/viewer", ["SIGSEGV", "33"], forever, forever, forever)
report("one", "/usr/bin/viewer", [], forever)
report("python", "/usr/bin/python3.11", ["SIGINT"], forever, forever)
report("interrupt", "/usr/bin/python3.11", ["SIGINT"], forever)
report("daemon", "/usr/bin/python3.11", ["SIGINT", "SIGTERM"], forever, forever)
report("handler", "/usr/bin/viewer", ["SIGUSR1"], forever, forever)
report("unknown", "/usr/bin/viewer", None, forever, forever)
report("hostile", "/usr/bin/viewer", [7, None], forever, forever)
report("traced", "/usr/bin/viewer", [], forever, forever, traced_by={"pid": 9, "name": "gdb"})
report("reads", "/usr/bin/viewer", [], read, forever, forever)
report("sleeps", "/usr/bin/viewer", [], limited, forever, forever)
report("shared", "/usr/bin/viewer", [], shared, forever)'
run show all.wait.zip
grep -q '^!! nobody can wake this process: its 3 threads wait for each other alone, .*: thread 7 "viewer" and 2 more there  \[threads.json\]' out ||
    wrong "all: $(cat out)"
run show one.wait.zip
grep -q '^!! nobody can wake this process: its 1 thread waits' out || wrong "one: $(cat out)"
run show python.wait.zip
grep -q 'py-spy dump --pid 7 shows the functions of Python' out || wrong "python: $(cat out)"
for name in interrupt daemon handler unknown hostile traced reads sleeps shared; do
    run show "$name.wait.zip"
    if grep -q 'nobody can wake' out; then wrong "$name: $(cat out)"; fi
done
rm ./*.wait.zip # they are not ours

fact 'what is not known is neither shown as 0, nor hides what is known'
python3 -c 'import json, zipfile
def at(second): return f"2026-11-22T10:00:{second:02}Z"
def write(path, **entries):
    with zipfile.ZipFile(path, "w") as report:
        report.writestr("metadata.json", json.dumps({"schema": 2, "report_id": "1", "triggered_at": at(30)}))
        for name, text in entries.items():
            report.writestr(name.replace("_", "-") + ".json", json.dumps(text))
        if path == "unlimited.zip":
            report.writestr("metrics-history.jsonl", "".join(json.dumps(
                {"time": at(i), "cpu_percent": 4, **({"rss_kb": 2048} if i % 2 else {})}) + "\n" for i in range(10)))
        if path == "keys.zip":
            report.writestr("logs.jsonl", "{\"time\":1,\"time\":2,\"level\":\"error\",\"message\":\"twice\"}\n{\"level\"\t:\t\"error\",\"message\":\"tab\"}\n")
        if path == "power.zip":
            report.writestr("logs/a.log", b"one\n" + 4096 * b"\0" + b"2026-11-22T10:00:25Z ERROR after\nlast\n")
infinite, beyond = float("inf"), (1 << 53) + 1
write("hidden.zip", process={"limits": [{"name": "Max open files", "soft": 1}]}, heap_state={"allocator": "glibc", "allocated_bytes": 1 << 20})
write("unlimited.zip", process={"open_files": 12})
write("keys.zip")
with zipfile.ZipFile("nameless.zip", "w") as report:
    report.writestr("processes/9-a/threads.json", json.dumps({"threads": [{"tid": 9, "state": "stopped"}]}))
write("power.zip")
write("euro.zip", manifest={"schema": 2, "report_id": "1", "complete": True, "artefacts": [], "triggers": [
    {"report_type": "pedantic", "key": 118 * "a" + 50 * "\u20ac", "count": 1, "last": at(25)}]})
write("huge.zip", system={"load": {"avg1": 1, "avg5": 1, "avg15": 1}}, host_threads={"threads": [{"tgid": 1, "tid": 1}]},
    runtime_metrics={"sample_window_ms": 12345e300, "process": {"cpu_percent": -12345e300, "rss_kb": beyond, "uptime_secs": 1e300},
    "threads": [{"tid": 1, "name": "a", "cpu_percent": 12345e300}, {"tid": beyond, "name": "b", "cpu_percent": 1}, {"tid": 2, "name": "c", "cpu_percent": 5}]})'
python3 -c 'import zipfile
with zipfile.ZipFile("huge.zip") as report:
    entries = {name: report.read(name).replace(b"e+304", b"e+999") for name in report.namelist()}
with zipfile.ZipFile("huge.zip", "w") as report:
    for name, text in entries.items():
        report.writestr(name, text)'
unzip -p huge.zip runtime-metrics.json | grep -q 'e+999' || wrong 'there is no number beyond a double'
run show --json hidden.zip
holds '.process == {open_files_limit: 1}' out || wrong "it is $(cat out)"
run index hidden.zip
holds 'has("open_files") | not' out || wrong "it is $(cat out)"
run show hidden.zip
grep -q '^heap       1.0 MiB allocated, glibc$' out || wrong "a heap without metrics is not shown: $(cat out)"
run html hidden.zip
grep -q 'Heap: 1024 KiB allocated, glibc' out || wrong 'a heap without metrics is not on the page'
run index unlimited.zip
holds '.open_files == 12' out || wrong "it is $(cat out)"
LC_ALL=C run show unlimited.zip
grep -q '^memory      # # # # #  2 to 2 MiB$' out || wrong "memory that is not known has a bar: $(cat out)"
env LC_ALL=C TERM=xterm script -qec "stty cols 30; '$BUGPACK' show unlimited.zip" /dev/null </dev/null 2>&1 |
    sed 's/\x1b\[[0-9]*m//g; s/\r//g' >typed
awk '/^CPU  |^memory/ && length($0) > 30' typed >wide
grep -q '^CPU  ' typed || wrong "there is no history: $(cat typed)"
[ ! -s wide ] || wrong "these are over 30 columns: $(cat wide)"
for command in 'show --json' index; do
    # shellcheck disable=SC2086 # an option
    exits 0 $command huge.zip
    if grep -q '900719925474099\|e+' out; then wrong "a number that is not exact is printed: $(cat out)"; fi
done
run show huge.zip
grep -q '^   5.0 %        2 c' out || wrong "it is $(cat out)"
grep -q '^load       1.00 over 1 min, 1.00 over 5 min, 1.00 over 15 min  \[system.json\]$' out || wrong "it is $(cat out)"
run show --json keys.zip
holds '.log.counts.error == 2' out || wrong "it is $(cat out)"
run show nameless.zip
grep -q '^     ? %          ?        ?  *\[processes/9-a/\]$' out || wrong "it is $(cat out)"
run html nameless.zip
grep -q '<th scope="row"></th><td></td>' out || wrong 'a process whose id is not known has one on the page'
run show power.zip
grep -q '^ ! 1 error in the 10 s before the trigger, the last: .*ERROR after  ' out || wrong "it is $(cat out)"
printf '  one\n  %s\n  last\n' '\x002026-11-22T10:00:25Z ERROR after' >expected
tail -n 3 out >end
cmp -s expected end || wrong "it is $(cat out)"
run show euro.zip
grep -q '^ ! 1 other gap, .*: "a\{39\}…€\{26\}"  ' out || wrong "a character is cut: $(cat out)"
rm hidden.zip unlimited.zip huge.zip keys.zip nameless.zip power.zip euro.zip # they are not ours

fact 'a byte of a name that is no UTF-8 is escaped once, in the report'
python3 -c 'import json, zipfile
name = "a\uefff\uef00b"
for side in "one", "two":
    with zipfile.ZipFile(side + ".zip", "w") as report:
        report.writestr("metadata.json", json.dumps({"schema": 2, "report_id": side, "app": {"name": name}, "tags": {name: side}}))
        report.writestr("runtime-metrics.json", json.dumps({"process": {"cpu_percent": 1}, "threads": [
            {"tid": 1, "name": name, "cpu_percent": 99}]}))
        report.writestr("host-threads.json", json.dumps({"summary": {}, "threads": [{"tgid": 1, "tid": 1, "process": name, "name": name,
            "start_ticks": 1, "schedstat_measured": True, "schedstat": {"run_ns": 5 if side == "one" else 7}}]}))
        report.writestr("logs.jsonl", json.dumps({"level": "error", "channel": name, "message": name}) + "\n")
        report.writestr("logs/a.log", b"raw \xff\n")
        report.writestr("manifest.json", json.dumps({"schema": 2, "report_id": side, "complete": True, "artefacts": [], "triggers": [
            {"report_type": "pedantic", "key": name, "count": 1}]}))'
unzip -p one.zip runtime-metrics.json | jq '.threads[0].name' >name
has_names() { # COUNT: so many texts of the output are the name, and none is another form of it
    jq --slurpfile name name '[.. | strings | select(test("^a.*b$"))] | [length, all(. == $name[0])]' -c out | sort -u >found
    [ "$(cat found)" = "[$1,true]" ] || wrong "it is $(cat found): $(cat out)"
}
run show --json one.zip
has_names 8
run index one.zip
has_names 4
run diff --json one.zip two.zip
has_names 2
run logs --json one.zip
# shellcheck disable=SC2016 # jq expands it
holds --slurpfile name name 'if .source == "logs.jsonl" then .message == $name[0] and .channel == $name[0] else .message == "raw \uefff" end' out ||
    wrong "it is $(cat out)"
rm one.zip two.zip # they are not ours

fact 'one entry is printed as it is into a pipe, and escaped on a terminal'
exits 0 show plain.zip logs/ryll.log
[ "$(od -An -c out | tr -d ' \n')" = 'one\ntwo033[31m\nthree' ] || wrong "it is $(od -An -c out)"
script -qec "'$BUGPACK' show plain.zip logs/ryll.log" /dev/null </dev/null 2>&1 | tr -d '\r' >typed
[ "$(cat typed)" = "$(printf 'one\ntwo\\x1b[31m\nthree')" ] || wrong "on a terminal it is $(od -An -c typed)"
exits 1 show plain.zip nothing
expect_err 'there is no "nothing" in "plain.zip"'

fact 'a report of another program is read as far as it goes'
exits 0 show plain.zip
grep -q '101.5 % of one CPU' out || wrong 'no metrics'
grep -q '^  two\\x1b\[31m$' out || wrong 'no end of the log'

fact 'what is damaged costs itself, what is too large is not read, and what is no zip is refused'
exits 0 show broken.zip
grep -q 'cannot be read: .*line 1, column.*\[threads.json\]' out || wrong "it is $(cat out)"
exits 0 show --max-bytes 2M bomb.zip
grep -q 'not read: its 3145728 bytes are over the limit  \[logs/a.log\]' out || wrong "it is $(cat out)"
run show --max-bytes 1 bad.zip
grep -q 'over the limit' out || wrong 'the limit is not kept'
# Of 100,000 threads all are counted, and what is busy and what waits is known, too.
python3 -c 'import json, zipfile
count = 100000
frames = 8 * [{"symbol": "draw"}] + [{"symbol": "main"}]
with zipfile.ZipFile("threads.zip", "w", zipfile.ZIP_DEFLATED) as report:
    report.writestr("metadata.json", "{}")
    report.writestr("runtime-metrics.json", json.dumps({"sample_window_ms": 2000, "threads": [
        {"tid": i, "name": f"t{i}", "cpu_percent": 7 if i == count - 1 else 0} for i in range(count)],
        "process": {"cpu_percent": 7}}))
    report.writestr("threads.json", json.dumps({"deadlocks": [{"tids": [count - 2, 9] + [count] * 90000}], "threads": [
        {"tid": i, "name": f"t{i}", "state": "sleeping", "syscall": {"name": "futex"},
        "waits_for": {"tid": i + 1, "kind": "mutex"}} for i in range(count)]}))
    report.writestr("stacks.json", json.dumps({"threads": [{"tid": i, "frames": frames} for i in range(count - 35000, count)]}))'
exits 0 show threads.zip
grep -q 'deadlock: of threads that are not named  \[threads.json\]' out || wrong "it is $(cat out)"
grep -q '^now .* 100000 threads$' out || wrong "it is $(cat out)"
grep -q '^   7.0 %    99999 t99999 .*, waits for thread 100000 (mutex), in draw ×8 < main$' out || wrong "it is $(cat out)"
if grep -q 'cannot be read' out; then wrong "it is $(cat out)"; fi
run index threads.zip
holds '(.thread_names | length) == 1000 and (.thread_counts | length) == 1000 and .thread_names[0] == "t99999"
    and (.thread_cpu_percents | length) == 1000 and .thread_names_left_out == 99000 and .busiest_thread == "t99999"
    and .deadlocked_threads == ["t9", "t99998"]' out || wrong "it is $(cut -c 1-300 out)"
python3 -c 'import json, zipfile
def at(second): return f"2026-11-22T10:00:{second:02}Z"
with zipfile.ZipFile("many.zip", "w") as report:
    report.writestr("metadata.json", json.dumps({"timestamp": at(31), "triggered_at": at(30), "pid": 7, "report_id": "1", "schema": 2}))
    report.writestr("manifest.json", json.dumps({"schema": 2, "report_id": "1", "complete": True, "artefacts": [], "triggers": [
        {"report_type": "pedantic", "key": f"net:{i}", "count": 1, "last": at(25)} for i in range(60)]}))
    report.writestr("process.json", json.dumps({"open_files": 9, "limits": [{"name": "Max open files", "soft": 9}]}))
    report.writestr("runtime-metrics.json", json.dumps({"sample_window_ms": 500, "process": {"cpu_percent": 1}}))
    report.writestr("traffic-index.jsonl", "".join(json.dumps({"channel": f"c{i}", "direction": "sent", "seq": 1 if i else 9}) + "\n" for i in range(70)))
with zipfile.ZipFile("machine.zip", "w") as report:
    report.writestr("metadata.json", json.dumps({"timestamp": at(31), "pid": 7, "collector": {"pid": 7}}))
for path, states in ("stopped.zip", ["zombie", "stopped", "stopped"]), ("half.zip", ["stopped", "sleeping"]):
    with zipfile.ZipFile(path, "w") as report:
        report.writestr("threads.json", json.dumps({"threads": [{"tid": i + 1, "name": "t", "state": state} for i, state in enumerate(states)]}))
for name, use in ("brief", {"rss_kb": 2048, "uptime_secs": 3}), ("ended", {"uptime_secs": 0.01}):
    with zipfile.ZipFile(name + ".zip", "w") as report:
        report.writestr("runtime-metrics.json", json.dumps({"sample_window_ms": 99, "process": {"cpu_percent": 1, **use}}))
with zipfile.ZipFile("left.zip", "w") as report:
    report.writestr("threads.json", json.dumps({"deadlocks": [{"description": "a and b"}]}))
    report.writestr("manifest.json", json.dumps({"schema": 2, "report_id": "1", "complete": False, "artefacts": [
        {"name": "metadata.json", "status": "failed", "reason": "lost"}]}))'
run show brief.zip
grep -q '^now  *2.0 MiB resident, 0 threads, up 3 s$' out || wrong "a brief window has a rate: $(cat out)"
run show ended.zip
if grep -q -e '^now' -e '^CPU and memory' out; then wrong "of an ended process there is: $(cat out)"; fi
run show many.zip
grep -q '^!! 9 of at most 9 file descriptors are open' out || wrong "many gaps hide what is critical: $(cat out)"
grep -q '^ ! 60 other gaps, disconnects or hangs in the 10 s before the trigger, the last 5.0 s before: "net:59"  \[manifest.json\]$' out || wrong "it is $(cat out)"
grep -q '^process    7, ' out || wrong 'a process without a name has two blanks'
grep -q '^now  *1.0 % of one CPU over 0.50 s, 0 threads$' out || wrong "what is not known is shown: $(cat out)"
grep -q '^and 6 more messages$' out || wrong 'messages of further channels are not counted'
grep -q '^c0  *sent at least 1 (0 B), received at least 0 (0 B)$' out || wrong "the missing messages are not told: $(cat out)"
grep -q '^c1  *sent 1 (0 B), received 0 (0 B)$' out || wrong "it is $(cat out)"
run show --json many.zip
holds '[.traffic[] | select(.at_least) | [.channel, .recorded]] == [["c0", 9]]' out || wrong "it is $(cat out)"
run show stopped.zip
grep -q '^!! the process is stopped by a signal (SIGSTOP or the like), with 2 threads  \[threads.json\]$' out || wrong "it is $(cat out)"
run show half.zip
if grep -q 'stopped by' out; then wrong "one of two threads is the process: $(cat out)"; fi
run show machine.zip
grep -q '^written    2026-11-22T10:00:31Z$' out || wrong 'a report without a trigger does not say when it was written'
if grep -q '^process' out; then wrong 'what captured the machine is shown as its process'; fi
python3 -c 'import json, zipfile
with zipfile.ZipFile("logs.zip", "w") as report:
    report.writestr("metadata.json", "{\"triggered_at\": \"2026-11-22T10:00:30Z\"}")
    report.writestr("logs/a.log", "2026-11-22T10:00:19Z ERROR early\n2026-11-22 12:00:21+0200 ERROR a\n2026-11-22T10:00:31Z ERROR late\nERROR\n")
    report.writestr("logs/b.log", 9000 * "2026-11-22 10:00:29 ERROR b\n")
with zipfile.ZipFile("window.zip", "w") as report:
    report.writestr("metadata.json", "{\"triggered_at\": \"2026-11-22T10:00:30Z\"}")
    report.writestr("manifest.json", json.dumps({"artefacts": [{"name": "runtime-metrics.json",
        "covers": {"from": "2026-11-22T10:00:30Z", "to": "2026-11-22T10:00:32Z"}}]}))
    report.writestr("logs/a.log", "2026-11-22T10:00:31.9Z ERROR in time\n2026-11-22T10:00:33Z ERROR late\n")'
run show logs.zip
grep -q '^ ! 1 error in the 10 s before the trigger, the last: ERROR a  \[logs/a.log\]$' out || wrong "it is $(cat out)"
grep -q '^ ! at least 234[01] errors in the 10 s before the trigger (its times have no zone, and were read as UTC), the last: ERROR b  \[logs/b.log\]$' out ||
    wrong "it is $(cat out)"
grep -q '^End of the log  \[logs/a.log\]$' out || wrong 'the end of the first log is missing'
run show window.zip
grep -q '^ ! 1 error in the 10 s before the trigger and the 2.0 s after it, the last: ERROR in time  \[logs/a.log\]$' out ||
    wrong "it is $(cat out)"
rm window.zip # it has what this needs alone
# What is read stays within the memory that is meant for it.
python3 -c 'import zipfile
with zipfile.ZipFile("values.zip", "w", zipfile.ZIP_DEFLATED) as report:
    report.writestr("process.json", "[" + 300000 * "1," + "1]")
    report.writestr("threads.json", "{\"deadlocks\": [{\"tids\": [" + 110000 * "1," + "1]}]}")
    report.writestr("runtime-metrics.json", "{\"threads\": [" + ",".join(
        f"{{\"tid\": {i}, \"name\": \"{i}\", \"cpu_percent\": 1}}" for i in range(1000)) + "]")
    report.writestr("stacks.json", "{\"threads\": [{\"frames\": [" + 110000 * "1," + "1]}]}")
with zipfile.ZipFile("gone.zip", "w", zipfile.ZIP_DEFLATED) as report:
    report.writestr("manifest.json", "{\"artefacts\": [" + 130000 * "1," + "1]}")'
exits 0 show values.zip
grep -q 'it would take over 20 MiB of memory  \[process.json\]' out || wrong "it is $(cat out)"
grep -q 'it would take over 8 MiB of memory  \[threads.json\]' out || wrong "it is $(cat out)"
grep -q 'cannot be read: .*  \[runtime-metrics.json\]' out || wrong "it is $(cat out)"
if grep -q '^Busiest' out; then wrong 'some threads of a document that was not read to its end are shown as the busiest'; fi
grep -q 'it would take over 8 MiB of memory  \[stacks.json\]' out || wrong "it is $(cat out)"
exits 1 show gone.zip
expect_err 'manifest.json: it would take over 10 MiB of memory'
exits 0 show left.zip
grep -q '^!! deadlock: a and b' out || wrong 'what is left of a report, without its metadata, is not shown'
exits 0 show empty.zip
# Entries of over a MiB are read at once.
python3 -c 'import zipfile
def write(path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as report:
        report.writestr("metadata.json", "{}")
        report.writestr("logs.jsonl", 20000 * ("{\"level\":\"info\",\"message\":\"" + 60 * "x" + "\"}\n"))
        report.writestr("traffic-index.jsonl", 20000 * ("{\"channel\":\"net\",\"direction\":\"sent\"," + 40 * " " + "\"bytes\":2}\n"))
    return report.getinfo("traffic-index.jsonl")
write("long.zip")
entry = write("damaged.zip")
with open("damaged.zip", "r+b") as file:
    file.seek(entry.header_offset + entry.compress_size // 2 + 49)
    file.write(b"damage")'
run show --json long.zip
holds '.log.counts.info == 20000 and .traffic == [.traffic[0]] and .traffic[0].sent == {messages: 20000, bytes: 40000}' out || wrong "it is $(cat out)"
run show --json damaged.zip
holds '.log.counts.info == 20000 and .findings[0].entry == "traffic-index.jsonl"' out ||
    wrong "it is $(cat out)"
exits 1 show out
exits 2 show

fact 'of a capture of the machine the processes and threads are shown that were busy or large'
python3 -c 'import json, zipfile
def thread(tgid, tid, start, run_ms, state, **more):
    return {"tgid": tgid, "tid": tid, "process": f"p{tgid}", "name": f"t{tid}", "start_ticks": start, "kernel_thread": tgid == 2,
        "scheduling_measured": True, "scheduling": {"state": state}, "schedstat_measured": True,
        "schedstat": {"run_ns": run_ms * 1000000}, "smaps_rollup_measured": "smaps_rollup" in more, **more}
def write(path, document):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as report:
        report.writestr("metadata.json", "{}")
        report.writestr("system.json", json.dumps({"load": {"avg1": 3.5, "avg5": 2, "avg15": 1}, "cpus": {"online": 2},
            "memory": {"total_kb": 4194304, "available_kb": 2097152},
            "pressure": {"cpu": {"some": {"avg10_percent": 12.5}}, "io": {"some": {"avg10_percent": 0}}}}))
        report.writestr("host-threads.json", document if isinstance(document, str) else json.dumps(document))
summary = {"captured_at": "2026-11-22T10:00:00Z", "machine_uptime_secs": 999.5, "duration_ms": 500.0, "ticks_per_sec": 100,
    "denied_processes": 3}
threads = [thread(1, 1, 0, 10000, "S"), thread(2, 2, 0, 1000, "I"),
    thread(7, 7, 90000, 40000, "R", smaps_rollup={"rss_kb": 2048}), thread(7, 8, 90000, 50000, "D"),
    thread(9, 9, 99999, 5, "R", smaps_rollup={"rss_kb": 1048576}), thread(9, 10, 99900, 500, "R")]
old = thread(11, 11, 0, 999999, "S", smaps_rollup={"rss_kb": 0})
exits = thread(12, 12, 0, 999999, "R", status_measured=True) # its status has no line of memory any more
del old["schedstat"], exits["schedstat"]
write("host.zip", {"schema": 2, "summary": summary, "processes": [{"command_line": ["x" * 4096]}] * 9000, "threads": threads + [old, exits]})
write("last.zip", {"threads": threads, "summary": summary})
write("order.zip", {"summary": summary, "threads": threads[::-1]})
write("none.zip", {"summary": summary, "threads": {"tgid": 1, "tid": 1}})
write("cut.zip", json.dumps({"summary": summary, "threads": threads})[:-9])
write("tid.zip", {"summary": summary, "threads": threads + [{"tgid": 99}]})'
exits 0 show host.zip
sed -n '/^Machine/,$p' out >machine
cat >expected <<'END'
Machine  [host-threads.json]
captured   2026-11-22T10:00:00Z
threads    8 of 6 processes, 1 of the kernel; 4 running or ready, 1 blocked
refused    3 more processes
load       3.50 over 1 min, 2.00 over 5 min, 1.00 over 15 min; 2 CPUs  [system.json]
memory     2.0 GiB of 4.0 GiB available  [system.json]
waiting    for CPUs 12.5 %, for memory ?, for I/O 0.0 % of the last 10 s  [system.json]

Processes by CPU since they began  [host-threads.json]
  90.0 %       90.00 s    2.0 MiB        7 p7               2 threads, 1 running
   1.0 %       10.00 s          ?        1 p1               1 thread
   0.1 %        1.00 s          -        2 p2               1 thread
     ? %        0.51 s    1.0 GiB        9 p9               2 threads, 2 running

Processes by resident memory  [host-threads.json]
     ? %        0.51 s    1.0 GiB        9 p9               2 threads, 2 running
  90.0 %       90.00 s    2.0 MiB        7 p7               2 threads, 1 running
and 1 whose memory is not known

Threads by CPU since they began  [host-threads.json]
  50.0 %       50.00 s        8 t8               uninterruptible sleep, of 7 p7
  50.0 %        0.50 s       10 t10              running, of 9 p9
  40.0 %       40.00 s        7 t7               running, of 7 p7
   1.0 %       10.00 s        1 t1               sleeping, of 1 p1
   0.1 %        1.00 s        2 t2               idle, of 2 p2
     ? %        0.01 s        9 t9               running, of 9 p9
END
cmp -s expected machine || wrong "it is $(diff expected machine)"
run show --json host.zip
holds '.machine | (.busiest_processes[0] | .pid == 7 and .cpu_percent == 90) and .largest_processes[0].rss_kb == 1048576
    and .threads == 8 and .busiest_threads[0].tid == 8 and .pressure_avg10_percent == {cpu: 12.5, io: 0}' out ||
    wrong "it is $(cat out)"
expect_schema show.json out
run html host.zip
grep -q '<h3>Processes by resident memory</h3>.*p9' out || wrong 'the page has no machine'
grep -q '<p>3 more processes could not be read.</p>.*<p>And 1 whose memory is not known.</p>' out ||
    wrong 'the page does not say which processes are missing'
# Without an uptime in front of the threads no share is known.
run show last.zip
grep -q '^     ? %       90.00 s .* p7 ' out || wrong "it is $(cat out)"
for case in 'order its threads are not sorted by process' 'none there are no threads in it' 'cut line 1, column' \
    'tid a thread of it has no tgid or no tid'; do
    exits 0 show "${case%% *}.zip"
    grep -q "cannot be read: ${case#* }.*\[host-threads.json\]" out || wrong "it is $(cat out)"
    if grep -q '^Machine' out; then wrong "a part of ${case%% *} is shown"; fi
done

# typed PAGER ARGUMENT...: show on a terminal, into `typed`.
typed() {
    wanted_pager=$1
    shift
    env TERM=xterm LC_ALL=C PAGER="$wanted_pager" script -qec "'$BUGPACK' show bad.zip $*" \
        /dev/null </dev/null >typed 2>&1
    expect_status 0 $?
}

cat >pager <<'EOF'
#!/bin/sh
echo "$LESS $LV $*" >with
cat >paged
EOF
chmod +x pager
coloured=$(printf '\033\\[31m')

fact 'on a terminal the page goes to the pager, with the options that git gives to less'
typed './pager -x 4'
expect_same 'what the pager was given' 'FRX -c -x 4' "$(cat with)"
grep -q Findings paged || wrong "it got: $(cat paged)"
grep -q "$coloured" paged || wrong 'the colours are lost'

fact 'a pager that is left early is no failure'
typed 'head -n 1'
grep -q 'bugreport' typed || wrong "the pager showed nothing: $(cat typed)"
if grep -q 'Broken pipe' typed; then wrong "it says so: $(cat typed)"; fi

fact 'no pager, one that is not installed and --no-pager leave the page on the terminal'
rm -f with
for case in "''" ./not-there './pager --no-pager'; do
    # shellcheck disable=SC2086 # words
    eval "typed $case"
    grep -q Findings typed || wrong "the page is not there for PAGER=$case"
done
PAGER=./pager run show bad.zip
grep -q '^Findings' out || wrong 'nothing comes into a pipe'
[ ! -e with ] || wrong 'a pager was started'

fact '--color decides, and else the terminal and NO_COLOR'
run show bad.zip --color always
grep -q "$coloured" out || wrong 'always has no colour'
run show bad.zip
if grep -q "$coloured" out; then wrong 'a pipe has colours'; fi
NO_COLOR=1 typed cat
if grep -q "$coloured" typed; then wrong 'NO_COLOR is not honoured'; fi
typed cat --color never
if grep -q "$coloured" typed; then wrong 'never has colours'; fi

# They are not ours.
rm -f values.zip gone.zip many.zip stopped.zip half.zip logs.zip machine.zip brief.zip ended.zip left.zip long.zip damaged.zip threads.zip host.zip last.zip order.zip none.zip cut.zip tid.zip bad.zip everywhere.zip plain.zip broken.zip bomb.zip crash.zip empty.zip

fact 'a real report is shown'
start sleep 300
run capture --pid "$pid" --output real.zip
exits 0 show real.zip
grep -q "^process    sleep $pid, started 20" out || wrong "it is $(cat out)"

finish
