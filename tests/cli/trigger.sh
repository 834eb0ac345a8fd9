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

fact 'a report that is asked for has the size that is asked for'
start "$BUGPACK" run -q -o reports --app noisy --max-size 128K --log-limit 64M -- sh -c \
    'echo $$ >noisy; seq 400000 | awk "{ print \$1, \$1 * 7919 % 65537, \$1 * 104729 % 99991 }"; : >said; read -r _ <>silent'
noisy=$pid
await '[ -e said ]'
for row in 64K:65536 1M:131072; do
    exits 0 trigger --max-size "${row%:*}" "$noisy"
    expect_same "the limit in the manifest with ${row%:*}" "${row#*:}" "$(value "$(cat out)" manifest.json .max_zip_bytes)"
    bytes=$(stat -c %s "$(cat out)")
    [ "$bytes" -le "${row#*:}" ] || wrong "$bytes bytes with ${row%:*}"
    [ "$bytes" -gt $((${row#*:} / 3)) ] || wrong "only $bytes bytes with ${row%:*}"
done
exits 0 trigger --max-size 64M "$asked"
expect_same 'the limit in the manifest' 67108864 "$(value "$(cat out)" manifest.json .max_zip_bytes)"
expect_misuse '--max-size takes at least 64K' trigger --max-size 65535 "$asked"

fact 'what is no such request gets no report, and who names nothing gets one'
before=$(find reports -name '*.zip' | wc -l)
python3 - runtime/bugpack/asked-*/trigger <<'END' || wrong "it is $(cat answers)"
import os, socket, sys
out = open("answers", "w")
mine = os.path.join(os.environ["XDG_RUNTIME_DIR"], "mine").encode()
os.chdir(os.path.dirname(sys.argv[1]))
def ask(name):
    asking = socket.socket(socket.AF_UNIX)
    if name is not None:
        asking.bind(name)
    asking.connect("trigger")
    answer = b""
    while more := asking.recv(9000):
        answer += more
    print(name, answer, file=out)
    return answer
size = b"max_zip_bytes="
bad = [size, b"max_bytes=65536", b"?", b"x" * 48] + [size + value for value in (
    b"0", b"1", b"65535", b"-65536", b"+65536", b" 65536", b"0x10000", b"65536K", b"65536 ", b"6553\0006", b"9" * 34)]
good = ask(b"\0bugpack-trigger/%d" % os.getpid()).startswith(b"-10 0 ")
for number, request in enumerate(bad):
    answer = ask(b"\0bugpack-trigger/%s/%d-%d" % (request, os.getpid(), number))
    good = good and answer.startswith(b"-10 0 it does not know") and answer.endswith(b"\nlimit 0\n")
for name in None, b"\0%d" % os.getpid(), mine:
    answer = ask(name)
    good = good and answer.startswith(b"0 0 /") and answer.endswith(b".zip\nlimit 0\n")
os.unlink(mine)
sys.exit(not good)
END
expect_same 'the reports' 3 "$(($(find reports -name '*.zip' | wc -l) - before))"

fact 'an earlier version that does not know the size is said to be one'
mv runtime/bugpack/noisy-*/trigger away
start python3 -c '
import os, socket, sys
os.chdir(sys.argv[1])
answering = socket.socket(socket.AF_UNIX)
answering.bind("trigger")
answering.listen()
while True:
    asking, _ = answering.accept()
    asking.sendall(b"0 0 /whole.zip\n")
    asking.close()
' "$(echo runtime/bugpack/noisy-*)"
await '[ -S runtime/bugpack/noisy-*/trigger ]'
exits 0 trigger "$noisy"
expect_same 'the path' /whole.zip "$(cat out)"
exits 1 trigger --max-size 64K "$noisy"
expect_no_out
expect_err 'it does not know a limit of size, and has written the whole report: /whole.zip'
kill -KILL "$noisy" "$(cat noisy)"
await '! kill -0 "$noisy" 2>/dev/null'
rm -rf runtime/bugpack/noisy-*

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
