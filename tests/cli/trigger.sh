#!/bin/sh
# bugpack trigger: asking a running command for a report.
# shellcheck disable=SC2016 # await expands it
. "$(dirname "$0")/lib.sh"
need unzip jq
cd "$scratch" || exit 1
mkdir reports
mkdir -m 700 runtime
XDG_RUNTIME_DIR=$scratch/runtime
export XDG_RUNTIME_DIR

fact 'where nobody answers it says so'
exits 4 trigger 1
expect_err 'process 1 has no session that answers'
expect_misuse "'one' is no process id" trigger one

# What waits for it begins no other program, which would cut the window of a report.
mkfifo silent
start "$BUGPACK" run -q -o reports --app asked -- sh -c 'echo $$ >command; read -r _ <>silent'
asked=$pid
await '[ -s command ]'
[ "$(find runtime -name trigger -type s | wc -l)" -eq 1 ] || skip 'sessions have no directories here'

fact 'a process, or the command that it runs, writes a report, and its path is printed'
expect_same 'the mode' 600 "$(stat -c %a runtime/bugpack/asked-*/trigger)"
for who in "$asked" "$(cat command)"; do
    exits 0 trigger "$who"
    expect_no_err
    unzip -tq "$(cat out)" >unzipped 2>&1 || wrong "it is no zip: $(cat out)"
    expect_same 'the kind' bugreport "$(value "$(cat out)" metadata.json .report_type)"
done
expect_same 'the reports' 2 "$(find reports -name '*.zip' | wc -l | tr -d ' ')"

if [ -w /dev/full ] || not_tried 'a full disk (there is no /dev/full)'; then
    fact 'a path that could not be printed is no success'
    "$BUGPACK" trigger "$asked" >/dev/full 2>err
    expect_status 1 $?
    expect_err 'the report is written: '
fi

fact 'those who ask while a report is waited for share it'
before=$(find reports -name '*.zip' | wc -l)
kill -STOP "$asked"
for i in $(seq 20); do
    {
        "$BUGPACK" trigger "$asked" >"shared.$i" 2>&1
        echo $? >"shared.$i.status"
    } &
done
kill -CONT "$asked"
await '[ "$(cat shared.*.status 2>/dev/null | wc -l)" -eq 20 ]'
expect_same 'the statuses' 0 "$(sort -u shared.*.status)"
sort -u $(seq -f shared.%g 20) >paths
made=$(($(find reports -name '*.zip' | wc -l) - before))
expect_same 'the paths' "$made" "$(wc -l <paths | tr -d ' ')"
[ "$made" -lt 10 ] || wrong "$made reports for 20 who asked"

fact 'who does not wait long enough gets no path'
kill -STOP "$asked"
exits 5 trigger --timeout 1 "$asked"
expect_no_out

fact 'nor does who finds others waiting, as many as may'
python3 - runtime/bugpack/asked-*/trigger <<'END'
import os, socket, sys
os.chdir(os.path.dirname(sys.argv[1]))
while True:
    waiting = socket.socket(socket.AF_UNIX)
    waiting.setblocking(False)
    try:
        waiting.connect("trigger")
    except BlockingIOError:
        break
    os.dup(waiting.fileno())
END
exits 5 trigger --timeout 1 "$asked"
expect_err 'it has not answered those before us'
kill -CONT "$asked"

fact 'one whose session is where nobody looks is found by what it has mapped'
mkdir -m 700 elsewhere
XDG_RUNTIME_DIR=$scratch/elsewhere
exits 0 trigger "$asked"
unzip -tq "$(cat out)" >unzipped 2>&1 || wrong "it is no zip: $(cat out)"
exits 4 trigger 1
# Others run meanwhile, or none does.
run trigger
if [ "$status" -ne 0 ]; then
    expect_status 1
    expect_err "  $asked  asked, about process $(cat command) (sh)"
fi

fact 'a process that has mapped a file of a session is not the one that is asked'
cat >decoy.py <<'END'
import glob, mmap, time
[name] = glob.glob("runtime/bugpack/asked-*/session")
with open(name, "rb") as file:
    kept = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
open("mapped", "w").close()
time.sleep(1000)
END
start python3 decoy.py
await '[ -e mapped ]'
exits 4 trigger "$pid"
expect_err "process $pid has no session that answers"
chmod 750 runtime/bugpack/asked-*
exits 4 trigger "$asked"
chmod 700 runtime/bugpack/asked-*
XDG_RUNTIME_DIR=$scratch/runtime

if { can_be_nobody && [ "$(id -u)" -eq 0 ]; } || not_tried 'a request of another user, and of root (needs root)'; then
    fact 'another user is not heard'
    chmod 755 "$scratch" runtime runtime/bugpack runtime/bugpack/asked-*
    chmod 666 runtime/bugpack/asked-*/trigger
    python3 - runtime/bugpack/asked-*/trigger <<'END' >out 2>err
import os, socket, sys
os.setuid(65534)
asking = socket.socket(socket.AF_UNIX)
os.chdir(os.path.dirname(sys.argv[1]))
asking.connect("trigger")
print(len(asking.recv(100)))
END
    expect_same 'the answer' 0 "$(cat out)"
    chmod 700 runtime runtime/bugpack runtime/bugpack/asked-*

    fact 'root is heard by the process of another user that it names, or by the command that this runs'
    mkdir -m 700 theirs
    mkdir -m 755 theirs/reports
    mkdir -m 700 theirs/runtime
    mkfifo theirs/silent
    chown -R 65534:65534 theirs
    chmod 755 theirs
    XDG_RUNTIME_DIR=$scratch/theirs/runtime
    start_as_nobody "$(reachable "$BUGPACK")" run -q -o theirs/reports --app theirs -- sh -c 'echo $$ >theirs/reports/command; read -r _ <>theirs/silent'
    await '[ -s theirs/reports/command ]'
    XDG_RUNTIME_DIR=$scratch/runtime
    started="$started $(cat theirs/reports/command)"
    for who in "$pid" "$(cat theirs/reports/command)"; do
        exits 0 trigger "$who"
        expect_same 'the owner' 65534 "$(stat -c %u "$(cat out)")"
    done
    run trigger
    grep -q '  theirs' err && wrong 'without a process id another user is listed'
fi

fact 'a dead process does not answer, and the next session removes its socket'
before=$(find reports -name '*.zip' | wc -l)
kill -KILL "$asked" "$(cat command)"
await '! kill -0 "$asked" 2>/dev/null'
exits 4 trigger "$asked"
run run -q -o reports --app asked -- true
[ "$(find reports -name 'asked-crash-*.zip' | wc -l)" -eq 1 ] || wrong "$(ls reports), before $before"
expect_empty runtime/bugpack

finish
