#!/bin/sh
# index: one line for each report.
. "$(dirname "$0")/lib.sh"
need python3 jq
cd "$scratch" || exit 1
mkdir -p fleet/a/b
(cd fleet/a/b && python3 "$here/make_reports")
mv fleet/a/b/broken.zip fleet/second.zip
printf 'no zip' >fleet/torn.zip
ln -s a fleet/loop
ln -s a/b/bad.zip fleet/link.zip

fact 'each report is one line, flat but for its findings, in the order of the paths'
exits 3 index fleet
expect_err 'torn.zip'
jq -r .path out >paths
printf 'fleet/a/b/%s\n' bad.zip bomb.zip crash.zip empty.zip everywhere.zip plain.zip >wanted
echo fleet/second.zip >>wanted
cmp -s paths wanted || wrong "the paths are $(cat paths)"
holds 'del(.findings) | all(.[]; type != "object" and (type != "array" or all(.[]; type == "string" or type == "number")))' out || wrong 'a line is not flat'
expect_same 'lines' 7 "$(wc -l <out | tr -d ' ')"
head -n 1 out | holds '.deadlock and .critical_findings == 2 and .cpu_percent == 101.5 and .open_files == 1000
    and (.gap_keys[0] | startswith("display:unimpl:9")) and .gap_key_count == 1 and .version == "1.2"
    and (.tags[0] | startswith("gpu=soft")) and (.busiest_thread | startswith("t20")) and .triggered_at == "2026-11-22T10:00:30.000Z"
    and (.machine | startswith("desk-17"))' ||
    wrong "the first line is $(head -n 1 out)"
if LC_ALL=C grep -q "$(printf '[\001-\011\013-\037\177]')" out; then wrong 'there are control bytes'; fi

cp out before

fact 'a line has the signature that show prints, and says where it names no place'
head -n 1 out | holds '.signature == "deadlock" and .weak_signature' || wrong "it is $(head -n 1 out | jq -c .signature)"
grep /crash.zip out | holds '.signature == "crash: draw < main" and (has("weak_signature") | not)' ||
    wrong "it is $(grep /crash.zip out | jq -c .signature)"
run show fleet/a/b/crash.zip
grep -q '^signature  crash: draw < main$' out || wrong "show prints $(grep signature out)"
run show fleet/a/b/bad.zip
grep -q '^signature  deadlock, which names no place$' out || wrong "show prints $(grep signature out)"
cp before out

fact 'what another program does not say is absent'
grep /plain.zip out |
    holds 'has("deadlock") or has("gap_keys") or has("gap_key_count") or has("machine") or has("tags") | not' ||
    wrong "the line is $(grep /plain.zip out)"

fact 'a process has the same key in each report, and each process its name, memory and CPU'
mkdir keyed
python3 - <<'END'
import json, zipfile
def add(report, folder, pid, rss, **more):
    report.writestr(folder + "process.json", json.dumps({"pid": pid, "name": f"p{pid}", "start_ticks": 7, **more}))
    report.writestr(folder + "runtime-metrics.json", json.dumps({"process": {"cpu_percent": pid / 2, "rss_kb": rss}}))
for i in 1, 2:
    with zipfile.ZipFile(f"keyed/{i}.zip", "w") as report:
        report.writestr("metadata.json", json.dumps({"pid": 3}))
        add(report, "", 3, 100, boot_id="b-1")
        add(report, "processes/4-p4/", 4, 200 * i, boot_id="b-1")
        add(report, "processes/5-p5/", 5, 300)
END
exits 0 index keyed
jq -s . out >lines
holds 'length == 2 and .[0].process_keys == .[1].process_keys and (.[0] | .pid == 3 and .process_key == "b-1:3:7"
    and .process_keys == ["b-1:3:7", "b-1:4:7"] and .process_names == ["p3", "p4"] and .process_rss_kb == [100, 200]
    and .process_cpu_percents == [1.5, 2] and .processes_left_out == 1) and .[1].process_rss_kb == [100, 400]' lines ||
    wrong "they are $(cat out)"
rm -r keyed # its reports are not ours

fact 'threads are added up by name, and those in a deadlock are named'
mkdir named
python3 - <<'END'
import json, zipfile
with zipfile.ZipFile("named/a.zip", "w") as report:
    report.writestr("metadata.json", '{"app": {"name": "a"}}')
    report.writestr("runtime-metrics.json", json.dumps({"process": {"cpu_percent": 60}, "threads": [
        {"tid": tid, "name": name, "cpu_percent": cpu} for tid, name, cpu in (
            (1, "main", 20.25), (2, "worker", 10.5), (3, "worker", 20), (4, "io", 0), (5, "io", 0), (6, "é" * 40, 9))]}))
    report.writestr("threads.json", json.dumps({
        "deadlocks": [{"tids": [3, 1, 2, 99]}], "threads": [{"tid": 1, "name": "main"}, {"tid": 2, "name": "worker"},
                                                             {"tid": 3, "name": "worker"}]}))
    report.writestr("processes/9-b/threads.json", json.dumps({
        "deadlocks": [{"tids": [9]}], "threads": [{"tid": 9, "name": "io"}]}))
END
python3 - <<'END'
import json, zipfile
def state(name, **more):
    return {"tid": 1, "name": "a", "state": name, **more}
for name, threads in {"call": [state("sleeping", syscall={"name": "poll"}), state("zombie")],
                      "go": [state("running"), state("sleeping", syscall={"name": "futex"})],
                      "owned": [state("sleeping", syscall={"name": "futex"}, waits_for={"tid": 2, "kind": "mutex"}), state("running")],
                      "lock": [state("sleeping", syscall={"name": "flock"})], "number": [state("sleeping", syscall={"number": 4})],
                      "runs": [state("running"), state("zombie")],
                      "dead": [state("zombie"), state("dead")], "hidden": [state("running"), state("sleeping")]}.items():
    with zipfile.ZipFile(f"named/{name}.zip", "w") as report:
        report.writestr("metadata.json", "{}")
        report.writestr("threads.json", json.dumps({"deadlocks": [], "threads": threads}))
run = [state("running")]
for name, line, entries in ("cut", "truncated", {"": {"threads": run}}), ("whole", "ok", {"": {"threads": run}}), (
        "tree", "ok", {"": {"threads": run, "descendants": [{}]}}), ("two", "ok", {"": {"threads": run}, "processes/9-b/": {"threads": run}}), (
        "unread", "ok", {"": {"threads": run}, "processes/9-b/": None}):
    with zipfile.ZipFile(f"named/{name}.zip", "w") as report:
        report.writestr("metadata.json", '{"report_id": "1"}')
        report.writestr("manifest.json", json.dumps({"schema": 2, "report_id": "1", "complete": True, "artefacts": [
            {"name": "threads.json", "status": line}]}))
        for folder, document in entries.items():
            if document is None:
                report.writestr(folder + "process.json", "{}")
            else:
                report.writestr(folder + "threads.json", json.dumps({"deadlocks": [], **document}))
END
exits 0 index named
expect_same 'who was looked at' 'a true call false cut null dead null go null hidden null lock null number null owned false runs false tree null two false unread null whole false' \
    "$(jq -r '"\(.path | ltrimstr("named/") | rtrimstr(".zip")) \(.deadlock)"' out | tr '\n' ' ' | sed 's/ $//')"
run index named/a.zip
holds '.deadlock and .deadlocked_threads == ["io", "main", "worker", "worker"]
    and .thread_names == ["worker", "main", "é" * 31, "io"] and .thread_counts == [2, 1, 1, 2]
    and .thread_cpu_percents == [30.5, 20.25, 9, 0]' out || wrong "the line is $(cat out)"
rm -r named

fact 'what is named has to be a directory or a report'
mkfifo pipe pipe.zip
for name in pipe pipe.zip /dev/null "$here/lib.sh"; do
    exits 1 index fleet "$name"
    expect_no_out
    expect_err "\"$name\" is neither a directory nor a report (*.zip)"
done
run index fleet/a
mv out named_so
run index fleet/loop
expect_same 'what a named link leads to' "$(jq -r .bytes named_so)" "$(jq -r .bytes out)"
ln -s nowhere dead.zip
exits 1 index dead.zip
expect_err 'cannot read "dead.zip": No such file or directory'
mv pipe pipe.zip fleet
exits 3 index fleet
expect_same 'lines' 7 "$(wc -l <out | tr -d ' ')"
rm fleet/pipe fleet/pipe.zip
if can_be_nobody || not_tried 'directories that may not be read (nobody may not run the program from here)'; then
    mkdir -p theirs/closed
    chmod 755 . theirs
    chmod 700 theirs/closed
    [ "$(id -u)" -eq 0 ] || chmod 0 theirs/closed
    for name in theirs theirs/closed; do
        as_nobody "$(reachable "$BUGPACK")" index "$name" >out 2>err
        expect_status "$([ "$name" = theirs ] && echo 3 || echo 1)" $?
        expect_err 'cannot read the directory "theirs/closed"'
    done
fi

fact 'a report on standard input has its size'
"$BUGPACK" index - <fleet/a/b/bad.zip >from_file 2>err || wrong "status $?: $(cat err)"
# shellcheck disable=SC2002 # a pipe is what is tried
cat fleet/a/b/bad.zip | "$BUGPACK" index - >out 2>err || wrong "status $?: $(cat err)"
cmp -s from_file out || wrong "it is $(cat out)"
run index fleet/a/b/bad.zip
expect_same 'but for the path' "$(jq -c 'del(.path)' out)" "$(jq -c 'del(.path)' from_file)"
"$BUGPACK" index - - <fleet/a/b/bad.zip >out 2>err && wrong 'it is read twice'
expect_err 'named twice'

fact 'of many reports each has its line'
mkdir many
for i in $(seq 513); do ln fleet/a/b/plain.zip "many/$i.zip"; done
run index many
expect_same 'lines' 513 "$(jq -r .path out | sort -u | wc -l | tr -d ' ')"
rm -r many

fact 'what find names as new is added to an index, as docs/ADMINISTRATION.md does'
touch -d '1 hour ago' last
find fleet -name '*.zip' -exec touch -d '2 hours ago' {} +
cp fleet/a/b/bad.zip fleet/third.zip
rm fleet/torn.zip
find fleet -type f -name '*.zip' -newer last -exec timeout 60 "$BUGPACK" index {} + >out 2>err || wrong "status $?: $(cat err)"
expect_same 'the new one' 'fleet/third.zip' "$(jq -r .path out)"
cp fleet/third.zip "$(printf 'fleet/\377\033\n"\302\233.zip')"
exits 0 index fleet
holds .path out || wrong 'a line is no JSON'

fact 'each hostile zip has its line, or is named'
mkdir hostile
"$source_dir/fixtures/hostile/make" "$scratch/hostile" >reasons || wrong 'they are not made'
exits 3 index hostile
holds .path out || wrong 'a line is no JSON'
expect_same 'the number of files' "$(find hostile -name '*.zip' | wc -l)" "$(cat out err | wc -l)"
rm -r hostile

fact 'what cannot be read is a failure'
exits 1 index nowhere
expect_err 'cannot read "nowhere": No such file or directory'
expect_misuse 'a directory is missing' index
exits 0 index fleet/a/b/bad.zip
expect_same 'lines' 1 "$(wc -l <out | tr -d ' ')"
expect_schema index.jsonl out
rm -rf fleet
finish
