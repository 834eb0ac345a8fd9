#!/bin/sh
# diff: what changed from one report to another.
. "$(dirname "$0")/lib.sh"
need unzip jq python3
cd "$scratch" || exit 1

# What burns CPU has a name that no other process has, also when this test runs twice at once. The
# kernel keeps 15 bytes of a name.
busy=bp$$
cp "$(command -v dd)" "./$busy" || exit 1

fact 'a process that burns CPU between two captures of the machine is found, with what it took'
start "./$busy" if=/dev/zero of=/dev/null
burner=$pid
until [ "$(cat "/proc/$burner/comm")" = "$busy" ]; do sleep 0.01; done
run capture --host --output before.zip
expect_host_status before.zip
unzip -p before.zip host-threads.json >before.json
until awk -v past="$(jq --argjson pid "$burner" '[.threads[] | select(.tid == $pid) | .schedstat.run_ns] | add // 0' before.json)" \
    '$1 <= past { exit 1 }' "/proc/$burner/schedstat"; do sleep 0.01; done
run capture --host --output after.zip
expect_host_status after.zip
unzip -p after.zip host-threads.json >after.json
exits 1 diff --json before.zip after.zip
expect_no_err
run_ns() {
    jq --argjson pid "$burner" '.threads[] | select(.tid == $pid) | .schedstat.run_ns' "$1"
}
expect_same 'its row' "$(run_ns before.json) $(run_ns after.json) $(($(run_ns after.json) - $(run_ns before.json)))" \
    "$(jq -r --arg path "threads[$busy $burner].schedstat.run_ns" '.changes[] | select(.path == $path) | "\(.before) \(.after) \(.delta)"' out)"
expect_same 'sorted' true "$(jq '[.changes[] | select(.path | endswith(".schedstat.run_ns")) | .delta | fabs] | length > 0 and . == (sort | reverse)' out)"
expect_same 'the report' "$(value after.zip metadata.json .report_id)" "$(jq -r .after.report_id out)"
cp out machine.json

fact 'it says which side is which, and in lines of 80 columns'
exits 1 diff before.zip after.zip
grep -q '^before  before.zip  20' out || wrong 'not the first'
grep -q '^after   after.zip  20' out || wrong 'not the second'
grep -q "^  threads\[$busy $burner\].schedstat.run_ns:" out || wrong 'the thread is missing'

fact 'a limit cuts each kind of rows, and the rest is counted'
exits 1 diff --limit 1 before.zip after.zip
expect_same 'the threads' 1 "$(grep -c '^  threads\[.*schedstat.run_ns' out)"
expect_out ' more)'
run diff --limit 2 --json before.zip after.zip
expect_same 'the threads' 2 "$(jq '[.changes[] | select(.path | endswith(".schedstat.run_ns"))] | length' out)"

fact 'the same report twice has no change'
exits 0 diff after.zip after.zip
expect_out 'no difference'
exits 0 diff --json after.zip after.zip
holds '.equal and .changes == []' out || wrong "it is $(cat out)"

fact 'two reports of one process compare what it cost'
target=$burner
for name in one two; do
    capture --app burner
    mv "$zip" $name.zip
done
kill -KILL "$burner"
exits 1 diff --json one.zip two.zip
cpu() {
    value "$1" runtime-metrics.json '.threads[0].cpu_percent'
}
# shellcheck disable=SC2016 # jq's
[ "$(cpu one.zip)" = "$(cpu two.zip)" ] || holds --argjson before "$(cpu one.zip)" --argjson after "$(cpu two.zip)" \
    '.changes[] | select(.path | test("^threads.*cpu_percent$")) | .before == $before and .after == $after' out ||
    wrong "it is $(cat out)"
cp out process.json

fact 'two documents by themselves are compared'
printf '{"allocated_bytes": 5, "active_bytes": 4096, "allocator": "glibc"}' >a.json
printf '{"allocated_bytes": 7, "active_bytes": 4096, "narenas": 2, "allocator": "je\\nm\\u001b[31malloc"}' >b.json
exits 1 diff a.json b.json
expect_no_err
expect_same 'the lines' 'before  a.json
after   b.json

document
  allocated_bytes: 5 B → 7 B (+2 B)
  allocator: "glibc" → "je\nm\u001b[31malloc"
  narenas: added 2' "$(cat out)"
run diff --json a.json b.json
expect_same 'the JSON' '{"entry":"document","path":"allocated_bytes","before":5,"after":7,"delta":2} {"entry":"document","path":"narenas","after":2}' \
    "$(jq -c '.changes[0]' out) $(jq -c '.changes[2]' out)"
exits 0 diff a.json a.json
ln -s b.json link.json
"$BUGPACK" diff a.json - <link.json >out 2>err
expect_same 'of standard input' 'after   -' "$(sed -n 2p out)"

fact 'where two reports differ is told, entry by entry'
python3 - <<'END'
import json, zipfile


def write(path, entries, app="viewer", version="1.2", build="aa", **metadata):
    metadata = {"schema": 2, "report_id": path, "session_id": "s1", "pid": 7, "timestamp": "2026-11-22T10:00:00Z",
                "app": {"name": app, "version": version, **({"build_id": build} if build else {})}, **metadata}
    manifest = {"schema": 2, "report_id": path, "artefacts": [
        {"name": "session.json", **({"status": "ok", "bytes": len(path)} if "session.json" in entries else
                                    {"status": "disabled", "reason": "by the host"})}], "triggers": entries.pop("triggers", [])}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as report:
        for name, document in {"metadata.json": metadata, "manifest.json": manifest, **entries}.items():
            report.writestr(name, json.dumps(document, indent=2, ensure_ascii=False))


def threads(*rows):
    return {"process": {"cpu_percent": 1, "rss_kb": 2048}, "threads": [
        {"tid": tid, "name": name, "cpu_percent": cpu} for tid, name, cpu in rows]}


BAD = "\x1b]0;x\x07\u009b\u202e"
old = {
    "runtime-metrics.json": threads((1, "main", 1), (2, "io", 3), (4, "pool", 1), (5, "pool", 2)),
    "process.json": {"pid": 7, "executable": "/v", "open_files": 10, "io": {"read_bytes": 1 << 20},
                     "page_faults": {"major": 1},
                     "limits": [{"name": "Max open files", "soft": 1024}, {"name": "Max stack size", "soft": 8388608}],
                     "loaded_objects": [{"path": "/v", "build_id": "v1", "address": "0x1"},
                                        {"path": "/a.so", "build_id": "x1"}, {"path": "/old.so", "build_id": "o"}]},
    "session.json": {"token": "REDACTED-bearer-0123456789ab", "url": "http://REDACTED-user-0123456789ab@h/",
                     "state": "open", "big": 18446744073709551614, "list": [1, {"b": 2}], "same": [1, 2],
                     "ratio": 0.5, "gone": None},
    "channel-state.json": {"display" + BAD: {"queue": 1}},
    "triggers": [{"report_type": "pedantic", "key": "a", "count": 1, "first": "x"}],
}
new = json.loads(json.dumps(old))
new["runtime-metrics.json"] = threads((1, "main", 99), (3, "render", 7), (4, "pool", 1), (5, "pool", 2))
new["process.json"].update(open_files=900, pid=7)
new["process.json"]["io"]["read_bytes"] = 3 << 20
new["process.json"]["limits"][0]["soft"] = 4096
new["process.json"]["limits"][1]["soft"] = 16777216
new["process.json"]["loaded_objects"] = [{"path": "/new.so", "build_id": "n"}, {"path": "/a.so", "build_id": "x2"},
                                         {"path": "/v", "build_id": "v1", "address": "0x2"}]
new["session.json"].update(token="REDACTED-bearer-ba9876543210", url="http://REDACTED-user-ba9876543210@h/",
                           state="lost", big=18446744073709551615, list=[1, {"b": [3]}, BAD], ratio=0.125)
del new["session.json"]["gone"]
new["channel-state.json"]["display" + BAD]["queue"] = 5
new["triggers"] = [{"report_type": "pedantic", "key": "b", "count": 2}, {"report_type": "pedantic", "key": "a", "count": 3}]
write("old.zip", dict(old))
write("new.zip", dict(new))
another = json.loads(json.dumps(old))
another["runtime-metrics.json"] = threads((11, "main", 1), (12, "io", 3), (14, "pool", 1), (15, "pool", 2))
write("rebuilt.zip", dict(another), build="bb", session_id="s2")
write("other.zip", dict(old), app="server", build=None, version="7")
secret = json.loads(json.dumps(old))
secret["session.json"]["token"] = "REDACTED-bearer-ffffffffffff"
write("secret.zip", dict(secret))
secret["session.json"]["token"] = "plain"
write("plain.zip", dict(secret))
del secret["session.json"]
write("less.zip", dict(secret))


def group(path, *rows):
    """The first row is the first process."""
    entries = {}
    for i, (pid, name, ticks, rss) in enumerate(rows):
        folder = f"processes/{pid}-{name}/" if i > 0 else ""
        entries[folder + "process.json"] = {"pid": pid, "name": name, "boot_id": "b", "start_ticks": ticks}
        entries[folder + "runtime-metrics.json"] = {
            "process": {"rss_kb": rss}, "threads": [{"tid": pid, "name": name, "cpu_percent": 0}]}
    write(path, entries)


group("group-a.zip", (7, "master", 1, 10), (8, "worker", 2, 20), (9, "worker", 3, 30), (10, "cache", 4, 40))
group("group-b.zip", (7, "master", 1, 10), (9, "worker", 3, 31), (10, "cache", 5, 41), (11, "worker", 6, 22))
group("group-c.zip", (9, "worker", 3, 39), (12, "other", 7, 12))
END
exits 1 diff old.zip new.zip
expect_no_err
cat >wanted <<'END'
before  old.zip  2026-11-22T10:00:00Z  viewer
after   new.zip  2026-11-22T10:00:00Z  viewer

manifest.json
  triggers[b]: added {"report_type":"pedantic","key":"b","count":2}
  triggers[a].count: 1 → 3 (+2)

runtime-metrics.json
  threads[io 2]: gone, was {"tid":2,"name":"io","cpu_percent":3}
  threads[render 3]: added {"tid":3,"name":"render","cpu_percent":7}
  threads[main 1].cpu_percent: 1 % → 99 % (+98 points)

process.json
  loaded_objects[/new.so]: added {"path":"/new.so","build_id":"n"}
  loaded_objects[/old.so]: gone, was {"path":"/old.so","build_id":"o"}
  loaded_objects[/a.so].build_id: "x1" → "x2"
  limits[Max stack size].soft: 8388608 → 16777216 (+8388608)
  limits[Max open files].soft: 1024 → 4096 (+3072)
  io.read_bytes: 1.0 MiB → 3.0 MiB (+2.0 MiB)
  open_files: 10 → 900 (+890)

session.json
  list[2]: added "\x1b]0;x\x07\xc2\x9b\xe2\x80\xae"
  list[1].b: 2 → [3]
  big: 18446744073709551614 → 18446744073709551615 (+1)
  gone: gone, was null
  ratio: 0.5 → 0.125 (-0.375)
  state: "open" → "lost"

channel-state.json
  display\x1b]0;x\x07\xc2\x9b\xe2\x80\xae.queue: 1 → 5 (+4)
END
sed 's/\\u001b/\\x1b/g; s/\\u0007/\\x07/g' out | cmp -s wanted - || wrong "it is $(cat out)"
run diff --bytes old.zip new.zip
expect_out '  io.read_bytes: 1048576 → 3145728 (+2097152)'
expect_out '  threads[main 1].cpu_percent: 1 → 99 (+98)'
run diff --limit 1 old.zip new.zip
expect_out '  (1 more)'
exits 1 diff --json old.zip new.zip
expect_out '"after": "\u001b]0;x\u0007\u009b\u202e"'
expect_same 'the lines with a control' 0 "$(LC_ALL=C grep -c "$(printf '\302\233\|\342\200\256')" out)"
holds '.equal == false and .changes_complete
    and (.changes[] | select(.path == "io.read_bytes") | .delta == 2097152 and .entry == "process.json")
    and (.changes[] | select(.path == "loaded_objects[/new.so]") | .after.build_id == "n" and (has("before") | not))
    and (.changes[] | select(.path == "gone") | has("before") and .before == null)
    and (.changes[] | select(.path == "ratio") | .delta == -0.375)
    and (.changes[] | select(.path == "list[1].b") | .before == 2 and .after == [3])' out || wrong "it is $(cat out)"
cp out documents.json

fact 'another build and program are told, threads of another process match by name, and secrets are no difference'
exits 1 diff old.zip rebuilt.zip
expect_out '  app.build_id: "aa" → "bb"'
expect_same 'the threads' '' "$(grep threads out)"
run diff old.zip other.zip
expect_out '  app.name: "viewer" → "server"'
exits 0 diff old.zip secret.zip
exits 1 diff old.zip plain.zip
expect_out '"REDACTED-bearer-0123456789ab" → "plain"'
exits 1 diff old.zip less.zip
expect_out '  artefacts[session.json].status: "ok" → "disabled"'
expect_out '  artefacts[session.json].reason: added "by the host"'

fact 'processes match by pid and start, and otherwise by name'
exits 1 diff --json group-a.zip group-b.zip
expect_same 'the changes' 'processes/11-worker/runtime-metrics.json 20 22
processes/9-worker/runtime-metrics.json 30 31
processes/10-cache/runtime-metrics.json 40 41' \
    "$(jq -r '.changes[] | select(.path == "process.rss_kb") | "\(.entry) \(.before) \(.after)"' out)"
expect_same 'threads of an equal process' 0 "$(jq '[.changes[] | select(.path | startswith("threads"))] | length' out)"
run diff --json group-b.zip group-c.zip
expect_same 'a process that is the first of one report alone' 'runtime-metrics.json 31 39' \
    "$(jq -r '.changes[] | select(.path == "process.rss_kb") | "\(.entry) \(.before) \(.after)"' out)"
rm group-?.zip # they have what this needs alone

fact 'a long row is divided, and no line is over 80 columns'
python3 - <<'END'
import json
name, text = '/usr/lib/x86_64-linux-gnu/libsomething-long.so.6', 'ä' * 500
json.dump([{'path': name, 'build_id': text, 'more_bytes': 1}], open('long-a.json', 'w'), ensure_ascii=False)
json.dump([{'path': name, 'build_id': 'b' + text, 'more_bytes': 2 ** 40}, {'path': 'x', 'text': text}],
          open('long-b.json', 'w'), ensure_ascii=False)
END
exits 1 diff long-a.json long-b.json
python3 -c 'import sys
lines = open("out", encoding="utf-8").read().splitlines()
sys.exit(max(map(len, lines)) > 80 or len(lines) < 9)' || wrong "it is $(cat out)"

fact 'twenty thousand threads are compared, in little memory'
python3 - <<'END'
import json, zipfile
for side in 1, 2:
    with zipfile.ZipFile(f'many{side}.zip', 'w', zipfile.ZIP_DEFLATED) as report:
        for name, document in {
                'metadata.json': {'schema': 2, 'report_id': str(side), 'session_id': 's'},
                'manifest.json': {'schema': 2, 'report_id': str(side), 'artefacts': []},
                'runtime-metrics.json': {'process': {}, 'threads': [
                    {'tid': i, 'name': f'pool-{i % 7}', 'cpu_percent': side * i / 10, 'cpu_ms': i, 'age_ms': 5, 'user_ms': i,
                     'system_ms': 0, 'page_faults': 1, 'run_delay_ms': 0.5, 'read_chars': 7, 'written_chars': 8,
                     'write_calls': 9, 'voluntary_switches': 10, 'involuntary_switches': 11} for i in range(20000)]}}.items():
            report.writestr(name, json.dumps(document, indent=2))
END
peak=$(python3 -c 'import os, sys
pid = os.spawnv(os.P_NOWAIT, sys.argv[1], ["bugpack", "diff", "--json", "many1.zip", "many2.zip"])
_, status, usage = os.wait4(pid, 0)
print(os.waitstatus_to_exitcode(status), usage.ru_maxrss, file=sys.stderr)' "$BUGPACK" 2>&1 >many.json)
[ "${peak% *}" = 1 ] || wrong "it exits with ${peak% *}"
[ "${peak#* }" -lt 65536 ] || [ -n "${LSAN_OPTIONS:-}" ] || wrong "it takes ${peak#* } KiB"
expect_same 'the changes' '19999 threads[pool-0 19999].cpu_percent' "$(jq -r '"\(.changes | length) \(.changes[0].path)"' many.json | sed 's/pool-[0-6]/pool-0/')"
rm old.zip new.zip rebuilt.zip other.zip secret.zip plain.zip less.zip many?.zip # they are not ours

fact 'headings are bold on a terminal, unless NO_COLOR says otherwise'
if command -v script >/dev/null 2>&1 || not_tried 'script is not installed'; then
    TERM=xterm script -qec "'$BUGPACK' diff a.json b.json" typed </dev/null >/dev/null 2>&1
    grep -q "$(printf '\033')\[1m" typed || wrong 'they are not'
    TERM=xterm NO_COLOR=1 script -qec "'$BUGPACK' diff a.json b.json" typed </dev/null >/dev/null 2>&1
    ! grep -q "$(printf '\033')" typed || wrong 'they are with NO_COLOR'
fi

fact 'what is no report is refused, with the file and the reason, and nothing hangs'
mkfifo fifo
mkdir directory
: >empty
head -c 300 before.zip >cut.zip
refuses() {
    exits 2 diff "$1" after.zip
    expect_no_out
    expect_err "$2"
    exits 2 diff before.zip "$1"
    expect_err "$2"
}
refuses fifo 'it is a FIFO'
refuses directory 'it is a directory'
refuses /dev/null 'it is a device'
refuses missing.zip 'No such file'
refuses empty '"empty" is no report, and "'
exits 2 diff empty empty
expect_err '"empty" is neither a report nor JSON'
refuses a.json '"a.json" is no report, and "'
refuses cut.zip 'it is no zip, or its end is missing'
python3 - after.zip <<'END'
import sys, zipfile
source = zipfile.ZipFile(sys.argv[1])
def write(path, skip=(), add=()):
    with zipfile.ZipFile(path, 'w', zipfile.ZIP_DEFLATED) as out:
        for info in source.infolist():
            if info.filename not in skip:
                out.writestr(info.filename, source.read(info))
        for name, content in add:
            out.writestr(name, content)
write('copied.zip')
write('traversal.zip', add=[('../x', 'y')])
write('twice.zip', add=[('Manifest.json', 'y')])
write('no-manifest.zip', skip=['manifest.json'])
write('later.zip', skip=['metadata.json'], add=[('metadata.json', '{"schema": 3, "report_id": "x"}')])
write('mixed.zip', skip=['manifest.json'], add=[('manifest.json', '{"schema": 2, "report_id": "x", "artefacts": []}')])
write('bomb.zip', skip=['host-threads.json'], add=[('host-threads.json', b' ' * (300 << 20))])
END
refuses traversal.zip 'entry "../x"'
refuses twice.zip 'two entries are called'
refuses no-manifest.zip 'manifest.json: it is not there'
refuses later.zip 'written by a later bugpack'
refuses mixed.zip 'it belongs to another report'
refuses bomb.zip 'is over the limit of 268435456 bytes'

fact 'a report that another program has packed again is one'
exits 1 diff before.zip copied.zip

fact 'the command line is checked'
expect_misuse 'two files are needed' diff
expect_misuse 'two files are needed' diff before.zip
expect_misuse "unexpected argument 'more'" diff before.zip after.zip more
for limit in 0 -1 x 99999999999; do
    expect_misuse "--limit takes a number from 1 to 4294967295, not '$limit'" diff --limit $limit before.zip after.zip
done

# They are broken on purpose.
rm -f traversal.zip twice.zip no-manifest.zip later.zip mixed.zip bomb.zip cut.zip

fact 'the JSON matches its published schema'
expect_schema diff.json machine.json process.json documents.json

finish
