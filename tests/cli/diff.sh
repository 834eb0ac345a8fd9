#!/bin/sh
# diff: what changed from one report to another.
. "$(dirname "$0")/lib.sh"
need unzip jq python3
cd "$scratch" || exit 1
mkdir cache
export XDG_CACHE_HOME="$scratch/cache"

# What burns CPU has a name that no other process has, also when this test runs twice at once. The
# kernel keeps 15 bytes of a name.
busy=bp$$
cp "$(command -v dd)" "./$busy" || exit 1

# What is in both captures, by name: [threads, before, after]. A worker of the kernel is one group,
# whatever it works on.
# shellcheck disable=SC2016 # jq's
join='def group: sub("^(?<worker>kworker/[u0-9:H]+)[-+].*"; .worker);
    def id: "\(.tgid) \(.tid) \(.start_ticks)";
    (.[0].threads | map({(id): .}) | add) as $old |
    [.[1].threads[] | {name: (.[$key] // "" | group), old: $old[id], new: .} | select(.old) |
        {name, known: (.old[$measured] and .new[$measured]), b: .old[$group][$counter],
            a: .new[$group][$counter]}] |
    group_by(.name) | map({(.[0].name): ([length] + (map(select(.known)) | if . == [] then [null, null]
        else [(map(.b) | add), (map(.a) | add)] end))}) | add'
# join_of KEY GROUP COUNTER
join_of() {
    jq -Sc -s --arg key "$1" --arg group "$2" --arg measured "$2_measured" --arg counter "$3" "$join" \
        before.json after.json
}
# What the JSON of diff says of them.
compared() {
    jq -Sc '[.host_threads.groups[] | select(.threads_in_both > 0) |
        {(.name): [.threads_in_both, .before, .after]}] | add' out
}

fact 'a process that burns CPU between two captures of the machine is found, with what it took'
start "./$busy" if=/dev/zero of=/dev/null
burner=$pid
cp "$busy" "./$busy-old"
cp "$busy" "./$busy-new"
start "./$busy-old" if=/dev/zero of=/dev/null
old=$pid
until [ "$(cat "/proc/$burner/comm" "/proc/$old/comm" | tr '\n' ' ')" = "$busy $busy-old " ]; do sleep 0.01; done
run capture --host --output before.zip
expect_host_status before.zip
kill -KILL "$old"
wait "$old" 2>/dev/null
start "./$busy-new" if=/dev/zero of=/dev/null
until [ "$(cat "/proc/$pid/comm")" = "$busy-new" ]; do sleep 0.01; done
# Both have had a CPU since.
unzip -p before.zip host-threads.json >before.json
for burning in "$burner" "$pid"; do
    until awk -v past="$(jq --argjson pid "$burning" \
        '[.threads[] | select(.tid == $pid) | .schedstat.run_ns] | add // 0' before.json)" \
        '$1 <= past { exit 1 }' "/proc/$burning/schedstat"; do sleep 0.01; done
done
run capture --host --output after.zip
expect_host_status after.zip
kill -STOP "$burner" "$pid" # what follows has the processors
unzip -p after.zip host-threads.json >after.json
run_ns() {
    jq --arg name "$2" '.threads[] | select(.process == $name) | .schedstat.run_ns' "$1"
}
run diff before.zip after.zip
expect_status 1
expect_no_err
expect_out 'schedstat.run_ns by process'
expect_same 'its line' \
    "$(run_ns before.json "$busy") $(run_ns after.json "$busy") +$(($(run_ns after.json "$busy") - $(run_ns before.json "$busy")))" \
    "$(awk -v busy="$busy" '$NF == busy { print $1, $2, $3 }' out)"

fact 'what ended and what was born is listed as such, and nothing has taken back CPU time'
grep -q " $(run_ns before.json "$busy-old") (1)  *$busy-old\$" out || wrong 'the one that ended'
grep -q " $(run_ns after.json "$busy-new") (1)  *$busy-new\$" out || wrong 'the one that was born'
run diff --json before.zip after.zip
expect_same 'ended' "[1,$(run_ns before.json "$busy-old"),null,false]" "$(jq -c --arg name "$busy-old" \
    '.host_threads.groups[] | select(.name == $name) | [.threads_ended, .ended, .born, has("delta")]' out)"
expect_same 'born' "[1,$(run_ns after.json "$busy-new"),null,false]" "$(jq -c --arg name "$busy-new" \
    '.host_threads.groups[] | select(.name == $name) | [.threads_born, .born, .ended, has("delta")]' out)"
expect_same 'negative times' 0 "$(jq '[.host_threads.groups[] | select(.delta and .delta < 0)] | length' out)"

fact 'it says which side is which'
run diff before.zip after.zip
grep -q '^before  before.zip  20' out || wrong 'not the first'
grep -q '^after   after.zip  20' out || wrong 'not the second'

fact 'the JSON has every group, the largest change first'
run diff --json before.zip after.zip
expect_status 1
expect_no_err
expect_same 'sorted' true "$(jq '[.host_threads.groups[] | (.delta // 0 | fabs) + (.born // 0)] | . == (sort | reverse)' out)"
expect_same 'the groups' "$(join_of process schedstat run_ns)" "$(compared)"
expect_same 'the number of them' true "$(jq '.host_threads | .group_count == (.groups | length)' out)"
expect_same 'the report' "$(value after.zip metadata.json .report_id)" "$(jq -r .after.report_id out)"
cp out full.json

fact 'by cgroup and by thread the sums are those of the captures'
for key in cgroup thread; do
    member=$([ "$key" = thread ] && echo name || echo cgroup)
    run diff --json --by "$key" --counter stat.minor_faults before.zip after.zip
    expect_status 1
    expect_same "by $key" "$(join_of "$member" stat minor_faults)" "$(compared)"
done

fact 'the artefacts by themselves compare like the reports'
run diff --json before.json after.json
expect_status 1
expect_same 'the groups' "$(jq -c .host_threads full.json)" "$(jq -c .host_threads out)"
expect_same 'the side' '{"path":"before.json"}' "$(jq -c .before out)"
run diff before.zip after.json
expect_status 1
ln -s after.zip link.zip
run diff before.zip link.zip
expect_status 1

fact 'a limit cuts the groups, and the rest is counted'
run diff --limit 1 before.zip after.zip
expect_status 1
expect_same 'the lines' 1 "$(sed '1,/  process$/d; /^  (/,$d' out | wc -l)"
expect_out 'more did)'
run diff --limit 2 --json before.zip after.zip
expect_same 'the groups' 2 "$(jq '.host_threads.groups | length' out)"

fact 'every counter of a capture is one that the help names, and is compared'
run diff --help
sed -n '/^Counters:/,/^$/p' out | grep -oE '[a-z_]+\.[a-z_]+' | sort >named
jq -r '.threads[] | to_entries[] | select(.value | type == "object") | select(.key != "scheduling" and .key != "window") |
    .key as $group | .value | keys[] | "\($group).\(.)"' after.json | sort -u >counters
[ -s counters ] || wrong 'there are none'
[ -z "$(comm -13 named counters)" ] || wrong "not named: $(comm -13 named counters | tr '\n' ' ')"
while read -r counter; do
    timeout 60 "$BUGPACK" diff --counter "$counter" --json before.json after.json >out 2>err </dev/null
    status=$?
    [ $status -le 1 ] || grep -q "$counter was not measured for any thread" err || wrong "$counter: $(cat err)"
done <counters

# thread TID START VALUE... made of all counters that a document needs here
thread() {
    printf '{"tgid":%s,"tid":%s,"start_ticks":%s,"process":"made","kernel_thread":false,' "$1" "$1" "$2"
    printf '"waits_measured":true,"waits":{"wait_max_ns":%s,"wait_sum_ns":%s},"io_measured":false}' "$3" "$3"
}
document() {
    printf '{"summary":{"machine_uptime_secs":10.00,"ticks_per_sec":100,"captured_at":"2026-11-22T00:00:0%sZ"' "$1"
    printf ',"complete":true},"threads":[%s]}' "$2"
}
document 1 "$(thread 1 5 300),$(thread 2 5 200),$(thread 3 5 9000)" >made-before.json
document 2 "$(thread 1 5 300),$(thread 2 5 700),$(thread 4 1200 80)" >made-after.json

fact 'a maximum is compared as one, and never added up'
run diff --counter waits.wait_max_ns made-before.json made-after.json
expect_status 1
expect_same 'the table' 'max before max after delta percent threads in both ended (threads) born (threads) process
300 700 +400 +133.33 % 2 9000 (1) 80 (1) made' \
    "$(sed -n '/  process$/,/  made$/p' out | sed 's/^ *//; s/  */ /g')"
run diff --counter waits.wait_sum_ns made-before.json made-after.json
expect_same 'the sums' '500 1000 +500' "$(awk '$NF == "made" { print $1, $2, $3 }' out)"

fact 'a counter that was not measured is named, with the side, and is a failure'
for json in '' --json; do
    # shellcheck disable=SC2086 # there may be none
    run diff $json --counter io.read_chars made-before.json made-after.json
    expect_status 2
    expect_no_out
    expect_err '"made-before.json": io.read_chars was not measured for any thread'
    expect_err '"made-after.json": io.read_chars was not measured for any thread'
    grep -q 'in common' err && wrong 'they have threads in common'
done
run diff --counter io.read_chars,waits.wait_max_ns made-before.json made-after.json
expect_status 2
grep -q 'cannot compare io.read_chars$' err || wrong "it says: $(cat err)"
run diff made-before.json made-after.json
expect_status 2
expect_err 'schedstat.run_ns was not measured'

fact 'a group of which nothing is known is counted and not shown'
jq '.threads += [{tgid: 9, tid: 9, start_ticks: 1, process: "hidden", waits_measured: false}]' made-before.json >more-before.json
jq '.threads += [{tgid: 9, tid: 9, start_ticks: 1, process: "hidden", waits_measured: false}]' made-after.json >more-after.json
run diff --counter waits.wait_sum_ns more-before.json more-after.json
expect_out '(1 not measured, 0 did not change)'
grep -q hidden out && wrong 'it is shown'

fact 'a capture that missed threads, and one of another boot, are told'
jq '.summary.complete = false' made-after.json >cut.json
run diff --counter waits.wait_sum_ns made-before.json cut.json
expect_status 1
expect_err 'the capture of "cut.json" missed threads'
expect_same 'ended' '0 1' "$(timeout 60 "$BUGPACK" diff --json --counter waits.wait_sum_ns made-before.json cut.json 2>err |
    jq -r '.host_threads.groups[] | "\(.threads_ended) \(.threads_not_compared)"')"
jq '.summary.machine_uptime_secs = 5' made-after.json >reboot.json
run diff --counter waits.wait_sum_ns made-before.json reboot.json
expect_status 1
expect_err 'are not of one boot'

fact 'the same report twice has no change'
run diff after.zip after.zip
expect_status 0
expect_same 'the deltas' 0 "$(timeout 60 "$BUGPACK" diff --json after.zip after.zip | jq '[.host_threads.groups[].delta // 0 | fabs] | add')"
expect_out 'did not change)'

fact 'the wrong order is told'
run diff after.zip before.zip
expect_status 1
expect_err '"before.zip" is older than "after.zip"'

fact 'two reports of one process compare what it cost'
target=$burner
kill -CONT "$burner"
for name in one two; do
    capture --app burner
    mv "$zip" $name.zip
done
kill -KILL "$burner"
run diff one.zip two.zip
expect_status 1
unzip -p one.zip runtime-metrics.json >one.json
jq '.process |= (.cpu_percent += 1.5 | .vm_size_kb += 4)' one.json >two.json
run diff one.json two.json
expect_same 'what changed' 'cpu_percent vm_size_kb ' "$(sed -n '/percent  process/,/^$/p' out | awk 'NR > 1 && NF { printf "%s ", $NF }')"
run diff one.zip one.zip
expect_status 0
expect_same 'no change' '(no change)' "$(tail -n 1 out)"
run diff --json one.zip two.zip
expect_same 'cpu before' "$(value one.zip runtime-metrics.json .process.cpu_percent)" "$(jq .runtime_metrics.cpu_percent.before out)"
expect_same 'rss after' "$(value two.zip runtime-metrics.json .process.rss_kb)" "$(jq .runtime_metrics.rss_kb.after out)"
expect_same 'the delta' true "$(jq '.runtime_metrics.vm_size_kb | .after - .before == .delta' out)"

fact 'states of the heap compare in lines, of what changed alone'
printf '{"allocated_bytes": 5, "active_bytes": 4096, "allocator": "glibc"}' >a.json
printf '{"allocated_bytes": 7, "active_bytes": 4096, "narenas": 2, "allocator": "je\\nm\\u001b[31malloc"}' >b.json
run diff a.json b.json
expect_status 1
expect_no_err
expect_same 'the lines' 'allocated_bytes: 5 → 7
narenas: (unknown) → 2
allocator: glibc → je?m?[31malloc' "$(cat out)"
printf '{"active_bytes":2,"allocated_bytes":1,"resident_bytes":3,"mapped_bytes":4,"narenas":5}' >five.json
printf '{}' >none.json
run diff none.json five.json
expect_status 1
expect_no_err
expect_same 'the five lines' 'allocated_bytes: (unknown) → 1
active_bytes: (unknown) → 2
resident_bytes: (unknown) → 3
mapped_bytes: (unknown) → 4
narenas: (unknown) → 5' "$(cat out)"
run diff --json a.json b.json
expect_same 'the JSON' '{"before":5,"after":7,"delta":2,"percent":40} {"after":2}' \
    "$(jq -c '.heap_state.allocated_bytes' out) $(jq -c '.heap_state.narenas' out)"
run diff a.json a.json
expect_status 0
expect_no_err
expect_no_out

fact 'what two reports are of, and where their documents differ, is told'
python3 - <<'END'
import json, zipfile


def write(path, entries, app="viewer", version="1.2", build="aa", **metadata):
    metadata = {"schema": 2, "report_id": path, "session_id": "s1", "pid": 7, "timestamp": "2026-11-22T10:00:00Z",
                "app": {"name": app, "version": version, **({"build_id": build} if build else {})}, **metadata}
    manifest = {"schema": 2, "report_id": path, "artefacts": [], "triggers": entries.pop("triggers", [])}
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
write("rebuilt.zip", dict(old), build="bb", session_id="s2")
write("other.zip", dict(old), app="server", build=None, version="7")
secret = json.loads(json.dumps(old))
secret["session.json"]["token"] = "REDACTED-bearer-ffffffffffff"
write("secret.zip", dict(secret))
secret["session.json"]["token"] = "plain"
write("plain.zip", dict(secret))
del secret["session.json"]
write("less.zip", dict(secret))
for path in "old.zip", "rebuilt.zip":
    process = {"pid": 7, "executable": "/v", "loaded_objects": [{"path": "/v", "build_id": path}]}
    write("plain-" + path, {"process.json": process}, build=None, session_id=None)
END
run diff old.zip new.zip
expect_status 1
expect_no_err
for line in 'same program, same build, same session' 'runtime-metrics.json' 'process.json' 'manifest.json' 'session.json' \
    '  triggers[a].count: 1 → 3 (+2)' '  triggers[b]: new, {"report_type":"pedantic","key":"b","count":2}' \
    '  io.read_bytes: 1.0 MiB → 3.0 MiB (+2.0 MiB)' '  limits[Max open files].soft: 1024 → 4096 (+3072)' \
    '  limits[Max stack size].soft: 8.0 MiB → 16.0 MiB (+8.0 MiB)' '  open_files: 10 → 900 (+890)' \
    '  loaded_objects[/a.so].build_id: "x1" → "x2"' '  loaded_objects[/new.so]: new, {"path":"/new.so","build_id":"n"}' \
    '  loaded_objects[/old.so]: gone, was {"path":"/old.so","build_id":"o"}' \
    '  threads[main 1].cpu_percent: 1 % → 99 % (+98 points)' '  threads[io 2]: gone, was {"tid":2,"name":"io","cpu_percent":3}' \
    '  threads[render 3]: new, {"tid":3,"name":"render","cpu_percent":7}' \
    '  state: "open" → "lost"' '  big: 18446744073709551614 → 18446744073709551615 (+1)' '  list[1].b: 2 → [3]' \
    '  ratio: 0.500 → 0.125 (-0.375)' '  gone: gone, was null' '  token: redacted on both sides' \
    '  url: redacted on both sides'; do
    grep -qxF -e "$line" out || wrong "there is no '$line' in: $(cat out)"
done
expect_same 'the lines about a pool, an address, what is the same, a first time' '' "$(grep -E 'pool|address|same\[|first' out)"
sed 's/\xe2\x86\x92//g' out | LC_ALL=C tr -d '\n\040-\176' >rest
[ ! -s rest ] || wrong 'there are control characters'
run diff --bytes old.zip new.zip
expect_out '  io.read_bytes: 1048576 → 3145728 (+2097152)'
expect_out '  threads[main 1].cpu_percent: 1 → 99 (+98)'
run diff --limit 1 old.zip new.zip
expect_out '  (6 more)'
run diff --json old.zip new.zip
expect_status 1
expect_out '"after": "\u001b]0;x\u0007\u009b\u202e"'
expect_same 'the lines with a control' 0 "$(LC_ALL=C grep -c "$(printf '\302\233\|\342\200\256')" out)"
holds '.equal == false and .same_program and .same_build and .same_session and .changes_complete
    and ([.changes[] | select(.redacted) | .path] == ["token", "url"])
    and (.changes[] | select(.path == "io.read_bytes") | .delta == 2097152 and .entry == "process.json")
    and (.changes[] | select(.path == "loaded_objects[/new.so]") | .after.build_id == "n" and (has("before") | not))
    and (.changes[] | select(.path == "gone") | has("before") and .before == null)
    and (.changes[] | select(.path == "list[1].b") | .before == 2 and .after == [3])' out || wrong "it is $(cat out)"
cp out documents.json

fact 'another build, program and session are told, and secrets are no difference'
run diff old.zip rebuilt.zip
expect_status 1
expect_out 'same program, another build, another session'
expect_out '  app.build_id: "aa" → "bb"'
run diff old.zip other.zip
expect_status 1
expect_out 'another program, another build, same session'
expect_err '"old.zip" and "other.zip" are of different programs: viewer and server'
run diff --json plain-old.zip plain-rebuilt.zip
expect_status 1 # of the documents: there are no metrics
run diff old.zip secret.zip
expect_status 0
expect_out '  token: redacted on both sides'
run diff old.zip plain.zip
expect_status 1
expect_out '  token: "REDACTED-bearer-0123456789ab" → "plain"'
run diff old.zip less.zip
expect_status 1
expect_out '  the entry: gone, was "present"'
rm -f old.zip new.zip rebuilt.zip other.zip secret.zip plain.zip less.zip plain-old.zip plain-rebuilt.zip

fact 'several counters of two captures are compared at once, with cgroups and pressure'
jq '.cgroups = [{path: "/a", memory: {current_bytes: 1048576}}, {path: "/b"}] | .pressure = {cpu: {some: {total_us: 5}}}' before.json >several-before.json
jq '.cgroups = [{path: "/c"}, {path: "/a", memory: {current_bytes: 2097152}}] | .pressure = {cpu: {some: {total_us: 1500005}}}' after.json >several-after.json
run diff --counter schedstat.run_ns,stat.minor_faults,waits.wait_sum_ns several-before.json several-after.json
expect_status 1
for line in 'schedstat.run_ns by process' 'stat.minor_faults by process' '  cgroups[/a].memory.current_bytes: 1.0 MiB → 2.0 MiB (+1.0 MiB)' \
    '  cgroups[/b]: gone, was {"path":"/b"}' '  cgroups[/c]: new, {"path":"/c"}' '  pressure.cpu.some.total_us: 5.000 us → 1.500 s (+1.500 s)'; do
    grep -qxF -e "$line" out || wrong "there is no '$line' in: $(cat out)"
done
if grep -q 'waits.wait_sum_ns by' out; then
    expect_no_err
else
    expect_err 'waits.wait_sum_ns was not measured on both sides'
fi
run diff --json --counter schedstat.run_ns,stat.minor_faults several-before.json several-after.json
expect_same 'the counters' 'schedstat.run_ns stat.minor_faults' "$(jq -r '"\(.host_threads.counter) \(.host_counters[0].counter)"' out)"
cp out several.json
run diff --counter stat.minor_faults, several-before.json several-after.json
expect_usage "there is no counter ''"

fact 'names cannot steer the terminal'
jq '.threads[0] |= (.process = "a\u001b]0;x\u0007\u009b31m\nb" | .start_ticks = 99999999999 |
    .schedstat_measured = true | .schedstat.run_ns = 5)' after.json >hostile.json
run diff before.json hostile.json
expect_status 1
expect_out 'a\x1b]0;x\x07\xc2\x9b31m\x0ab'
sed 's/\xe2\x86\x92//g' out | tr -d '\n\040-\176' >rest # without the arrows
[ ! -s rest ] || wrong 'there are control characters'
run diff --json before.json hostile.json
expect_out 'a\u001b]0;x\u0007\u009b31m\nb'
cp before.json "$(printf 'n\033[31m.json')"
run diff "$(printf 'n\033[31m.json')" after.json
expect_out 'n\x1b[31m.json'

fact 'headings are bold on a terminal, unless NO_COLOR says otherwise'
if command -v script >/dev/null 2>&1; then
    TERM=xterm script -qec "'$BUGPACK' diff before.json after.json" typed </dev/null >/dev/null 2>&1
    grep -q "$(printf '\033')\[1m" typed || wrong 'they are not'
    TERM=xterm NO_COLOR=1 script -qec "'$BUGPACK' diff before.json after.json" typed </dev/null >/dev/null 2>&1
    ! grep -q "$(printf '\033')" typed || wrong 'they are with NO_COLOR'
else
    echo 'not tried: script is not installed'
fi

fact 'reports without metrics, heap and capture, as of processes that died, are compared by their documents'
for side in 1 2; do
    mkdir "dead$side"
    cat >"dead$side/metadata.json" <<END
{"schema": 2, "report_id": "$side", "app": {"name": "viewer"}, "tags": {"gpu": "card $side"}, "timestamp": "2026-11-22T10:00:0${side}Z"}
END
    cat >"dead$side/manifest.json" <<END
{"schema": 2, "report_id": "$side", "complete": true, "missing": 0, "artefacts": []}
END
    echo '{"available": false, "reason": "the process had ended"}' >"dead$side/runtime-metrics.json"
    (cd "dead$side" && python3 -m zipfile -c "../dead$side.zip" metadata.json runtime-metrics.json manifest.json)
done
run diff dead1.zip dead1.zip
expect_status 0
expect_out 'same program'
run diff dead1.zip dead2.zip
expect_status 1
expect_out 'tags.gpu: "card 1"'
run diff --json dead1.zip dead2.zip
expect_status 1
holds '.equal == false and .changes[0].path == "tags.gpu"' out || wrong "it is $(cat out)"
rm dead1.zip dead2.zip # they are not ours

fact 'nothing in common is said, and is a failure'
run diff before.zip one.zip
expect_status 2
expect_no_out
expect_err 'no host-threads.json to compare in "one.zip"'
expect_err 'nothing to compare'
run diff --json a.json before.json
expect_status 2
expect_no_out
run diff --counter io.read_chars one.zip two.zip
expect_status 2
expect_no_out
expect_err 'cannot compare io.read_chars'

fact 'what is no report is refused, with the file and the reason, and nothing hangs'
mkfifo fifo
mkdir directory
: >empty
echo '{"a": 1}' >other.json
head -c 300 before.zip >cut.zip
refuses() {
    run diff "$1" after.zip
    expect_status 2
    expect_no_out
    expect_err "$2"
    run diff before.zip "$1"
    expect_status 2
    expect_err "$2"
}
refuses fifo 'it is a FIFO'
refuses directory 'it is a directory'
refuses /dev/null 'it is a device'
refuses missing.zip 'No such file'
refuses empty '"empty" is neither a report nor JSON'
refuses other.json 'is neither a report nor a host-threads.json'
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
write('mixed.zip', skip=['manifest.json'], add=[('manifest.json', '{"schema": 1, "report_id": "x", "artefacts": []}')])
write('bomb.zip', skip=['host-threads.json'], add=[('host-threads.json', b' ' * (300 << 20))])
END
refuses traversal.zip 'entry "../x"'
refuses twice.zip 'two entries are called'
refuses no-manifest.zip 'manifest.json: it is not there'
refuses later.zip 'written by a later bugpack'
refuses mixed.zip 'it belongs to another report'
refuses bomb.zip 'is over the limit of 268435456 bytes'

fact 'a report that another program has packed again is one'
run diff before.zip copied.zip
expect_status 1

fact 'the command line is checked'
run diff
expect_usage 'two files are needed'
run diff before.zip
expect_usage 'two files are needed'
run diff before.zip after.zip more
expect_usage "unexpected argument 'more'"
run diff --by mood before.zip after.zip
expect_usage "--by takes process, cgroup or thread, not 'mood'"
run diff --counter nothing before.zip after.zip
expect_usage "there is no counter 'nothing'"
for limit in 0 -1 x 99999999999; do
    run diff --limit $limit before.zip after.zip
    expect_usage "--limit takes a number from 1 to 4294967295, not '$limit'"
done

# They are broken on purpose.
rm -f traversal.zip twice.zip no-manifest.zip later.zip mixed.zip bomb.zip cut.zip

fact 'the JSON matches its published schema'
timeout 60 "$BUGPACK" diff --json one.zip two.zip >two.json
expect_schema diff.json full.json two.json documents.json several.json

finish
