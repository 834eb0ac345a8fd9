#!/bin/sh
# Allocation counters from outside, alone and in a report.
# shellcheck disable=SC2016 # await and the commands expand it
. "$(dirname "$0")/lib.sh"
need jq unzip python3
plain=${ALLOC_WORKER_PLAIN:?the worker without a jemalloc}
cd "$scratch" || exit 1

# start_ready FILE COMMAND...: like start, and waits until the command has written FILE.
start_ready() {
    ready=$1
    shift
    start "$@"
    await "[ -s $ready ] || ! kill -0 $pid 2>/dev/null"
    [ -s "$ready" ] || skip "$1 does not run here"
}

fact 'a state of the heap is printed from a file and from standard input, as text and as JSON'
printf '{"narenas": 4, "allocated_bytes": 18446744073709551614, "later": 1}' >state.json
exits 0 heap --state state.json
expect_no_err
expect_same 'the text' 'allocated_bytes: 18446744073709551614
active_bytes: (unknown)
resident_bytes: (unknown)
mapped_bytes: (unknown)
narenas: 4' "$(cat out)"
exits 1 heap --state --json state.json
expect_no_out
expect_err 'names no allocator'
printf '{"narenas": 4, "allocator": "glibc"}' >named.json
exits 0 heap --state --json named.json
printf '{\n  "narenas": 4,\n  "allocator": "glibc"\n}\n' >wanted
cmp -s wanted out || wrong "it is $(cat out)"
for operand in '' -; do
    # shellcheck disable=SC2086 # there may be none
    printf '{}' | timeout 60 "$BUGPACK" heap --state $operand >out 2>err || wrong "status $?"
    expect_no_err
    expect_same 'what is not known' 5 "$(grep -c ': (unknown)$' out)"
done

fact 'what is no state is refused with its place, and what is no file by what it is'
printf '{"allocated_bytes": 1,\n "narenas": -1}' >bad.json
mkfifo fifo
mkdir directory
for case in 'bad.json:line 2, column 13: "narenas"' '/nowhere:No such file' 'fifo:it is a FIFO' \
    'directory:it is a directory'; do
    exits 1 heap --state "${case%%:*}"
    expect_no_out
    expect_err "${case#*:}"
done
expect_misuse '--state and --pid exclude each other' heap --state --pid 1
expect_misuse "unexpected argument 'more'" heap --state state.json more
expect_misuse "unexpected argument 'state.json'" heap --pid 1 state.json

fact 'a missing process is status 4 and no JSON'
start sleep 0
wait "$pid"
exits 4 heap --pid "$pid" --json
expect_no_out
expect_err "no process with id $pid"

fact 'a process without jemalloc has no counters, is not measured, and is no failure'
start_ready plain_ready "$plain" --bytes 1048576 --ready plain_ready
target=$pid
exits 0 heap --pid "$target" --json
expect_err 'jemalloc-not-found'
expect_same 'the document' "false jemalloc-not-found $target false null null" "$(jq -r \
    '"\(.measured) \(.failure) " + (.snapshots[0].threads[0]
    | "\(.tid) \(.measured) \(.allocated_bytes) \(.deallocated_bytes)")' out)"
expect_schema thread-heap.json out
exits 0 heap --pid "$target"
expect_out 'not measured: jemalloc-not-found'

fact 'its report is complete, and the ledger says why the counters are not there'
captures 0 --description 'its heap'
expect_no_err
expect_same 'the status' omitted "$(ledger "$zip" thread-heap.json status)"
expect_like 'the reason' 'jemalloc-not-found:*' "$(ledger "$zip" thread-heap.json reason)"
entries "$zip" | grep -q thread-heap && wrong 'the entry is there'

fact 'a kernel thread is no failure either'
if [ "$(ps -o comm= -p 2 2>/dev/null)" = kthreadd ] || not_tried 'there is no kthreadd'; then
    run heap --pid 2 --json
    if [ "$(id -u)" -eq 0 ]; then
        expect_status 0
        expect_same 'the failure' readlink-failure "$(jq -r .failure out)"
        expect_same 'both counters' 'null null' \
            "$(jq -r '.snapshots[0].threads[0] | "\(.allocated_bytes) \(.deallocated_bytes)"' out)"
    fi
fi

fact 'the command line is checked'
expect_misuse "option '--pid' is missing" heap
expect_misuse '--snapshots takes a number from 1 to 100000' heap --pid 1 --snapshots 0
expect_misuse '--snapshots takes' heap --pid 1 --snapshots 100001
expect_misuse '--interval takes seconds from 0 to 600' heap --pid 1 --interval 601
expect_misuse '--pid takes' heap --pid x

fact 'the calibration is a command that people are not shown, and that does nothing for them'
run --help
grep -q calibrate out && wrong 'the help lists it'
exits 2 calibrate-jemalloc 3 zz -
expect_no_out

if [ -n "${TELL_CAPABILITIES:-}" ] && [ "$(id -u)" -eq 0 ] && can_be_nobody; then
    fact 'a library is run without the capabilities that bugpack was given'
    cp "$TELL_CAPABILITIES" tell.so
    chmod 755 . && chmod 644 tell.so
    setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps +sys_ptrace \
        --ambient-caps +sys_ptrace "$(reachable "$BUGPACK")" calibrate-jemalloc 3 10 - 3<tell.so 2>err | cat >out
    if [ -s out ] || not_tried 'this user has no CAP_SYS_PTRACE to give'; then
        expect_same 'its capabilities' 'CapEff 0000000000000000 CapPrm 0000000000000000' "$(cat out)"
    fi
    chmod 700 .
fi

# exact DIR PROGRAM: the stand-in's counters are read to the byte.
exact() {
    rm -f stand_in_ready
    start_ready stand_in_ready "$1" stand_in_ready 2
    exits 0 heap --pid "$pid" --json
    expect_no_err
    expect_same 'the counters' '[[1000,500],[1001,501],[1002,502]]' "$(jq -c \
        '[.snapshots[0].threads[] | [.allocated_bytes, .deallocated_bytes]] | sort' out)"
    expect_same 'how they were found' 'executable debug-information' \
        "$(jq -r '.jemalloc | "\(.place) \(.offsets_from)"' out)"
    kill "$pid"
}

if { [ -n "${TSD_STAND_IN:-}" ] &&
    command -v objcopy >/dev/null 2>&1; } || not_tried 'debug data (no objcopy)'; then
    fact 'a jemalloc inside the executable is read with its debug data'
    exact "$TSD_STAND_IN"
    fact 'also when the debug data lie in a file beside it, or in .debug'
    objcopy --only-keep-debug "$TSD_STAND_IN" stand_in.debug
    objcopy --strip-debug --add-gnu-debuglink=stand_in.debug "$TSD_STAND_IN" stand_in
    exact ./stand_in
    mkdir .debug
    mv stand_in.debug .debug
    exact ./stand_in
    fact 'debug data of another build are not believed'
    objcopy --update-section .note.gnu.build-id="$source_dir/LICENSE" .debug/stand_in.debug 2>err
    rm -f stand_in_ready
    start_ready stand_in_ready ./stand_in stand_in_ready
    exits 1 heap --pid "$pid" --json
    expect_err dwarf-parse-failure
    expect_same 'the failure' dwarf-parse-failure "$(jq -r .failure out)"
    kill "$pid"
    fact 'without symbols there is no jemalloc to be seen'
    objcopy --strip-all "$TSD_STAND_IN" stand_in_bare
    rm -f stand_in_ready
    start_ready stand_in_ready ./stand_in_bare stand_in_ready
    exits 0 heap --pid "$pid" --json
    expect_same 'the failure' jemalloc-not-found "$(jq -r .failure out)"
    kill "$pid"
fi

if [ -n "${ALLOC_WORKER_UNDESCRIBED:-}" ] || not_tried 'a static jemalloc without debug data (no libjemalloc.a)'; then
    # The program has debug data of its own.
    fact 'a jemalloc in the executable that no debug data describe is named, also stripped, and breaks no report'
    strip -o undescribed_bare "$ALLOC_WORKER_UNDESCRIBED"
    for case in "describes struct tsd_s:$ALLOC_WORKER_UNDESCRIBED" 'no symbols:./undescribed_bare'; do
        rm -f undescribed_ready
        start_ready undescribed_ready "${case#*:}" --bytes 1048576 --ready undescribed_ready
        target=$pid
        exits 1 heap --pid "$target" --json
        expect_err "${case%%:*}"
        expect_same 'the failure' dwarf-parse-failure "$(jq -r .failure out)"
        captures 0 --window 0
        expect_same 'the report' 'true omitted' \
            "$(value "$zip" manifest.json .complete) $(ledger "$zip" thread-heap.json status)"
        kill "$target"
    done
fi

if [ -n "${TSD_STAND_IN_ALONE:-}" ]; then
    fact 'a capture of the machine stops a thread for its counters only where it is told to'
    rm -f alone_ready
    start_ready alone_ready "$TSD_STAND_IN_ALONE" alone_ready
    for case in 'null:--quiet' '1000:--stop-threads'; do
        exits 0 capture --host --window 0 --without process.json "${case#*:}" --output machine.zip
        expect_same 'the counter' "${case%%:*}" "$(value "$(tail -n 1 out)" host-threads.json \
            "first(.threads[] | select(.tid == $pid)).heap.allocated_bytes")"
    done
    expect_misuse '--stop-threads needs --host' capture --stop-threads --pid "$pid"
    kill "$pid"
fi

# counted FOUND WORKER: 16 MiB are read as 16 to 20, and three snapshots never decrease.
counted() {
    rm -f counted_ready
    start_ready counted_ready "$2" --bytes 16777216 --ready counted_ready
    target=$pid
    exits 0 heap --pid "$target" --json --snapshots 3 --interval 50ms
    expect_no_err
    expect_same 'three snapshots of one thread' '3 1' \
        "$(jq -r '"\(.snapshots | length) \([.snapshots[].threads | length] | unique[0])"' out)"
    expect_same 'the counters' true "$(jq '[.snapshots[].threads[0]] | all(.[];
        .allocated_bytes >= 16777216 and .allocated_bytes <= 20971520 and .deallocated_bytes < 16777216)
        and . == sort_by(.allocated_bytes) and . == sort_by(.deallocated_bytes)' out)"
    expect_same 'how they were found' "$1" "$(jq -r '.jemalloc | "\(.place) \(.offsets_from)"' out)"
}

if [ -n "${ALLOC_WORKER_STATIC:-}" ] ||
    not_tried 'a static jemalloc with debug data (src/scripts/build-jemalloc makes one)'; then
    fact 'the counters of a real jemalloc inside the executable'
    counted 'executable debug-information' "$ALLOC_WORKER_STATIC"
    kill "$target"
fi

if [ -z "${ALLOC_WORKER_SHARED:-}" ]; then
    echo 'not tried: a shared jemalloc (libjemalloc-dev was not there when this was built)'
    finish
fi

fact 'the counters of a shared jemalloc, by a calibration'
counted 'library calibration' "$ALLOC_WORKER_SHARED"

fact 'a report about a wrapper has the counters of what it runs, and its own failure'
rm -f shared_ready
mkdir wrapped
start "$BUGPACK" run -q -o wrapped -- sh -c '"$0" --bytes 16777216 --ready shared_ready; :' \
    "$ALLOC_WORKER_SHARED"
await '[ -s shared_ready ]'
kill -USR1 "$pid"
await 'ls wrapped/*.zip >/dev/null 2>&1'
zip=$(echo wrapped/*.zip)
expect_same 'the wrapper' 'sh false jemalloc-not-found' \
    "$(value "$zip" thread-heap.json '"\(.name) \(.measured) \(.failure)"')"
expect_same 'its one descendant' 'true true' "$(value "$zip" thread-heap.json '.descendants[] |
    "\(.measured) \(.snapshots[0].threads[0].allocated_bytes | . >= 16777216 and . <= 20971520)"')"
expect_same 'the status' ok "$(ledger "$zip" thread-heap.json status)"
kill "$(value "$zip" thread-heap.json '.descendants[0].pid')"
wait "$pid"

fact 'where no process of a report has a jemalloc, the reason is that of the command'
mkdir plain
start "$BUGPACK" run -q -o plain -- sh -c 'sleep 600 & echo $! >sleeper; wait'
await '[ -s sleeper ]'
kill -USR1 "$pid"
await 'ls plain/*.zip >/dev/null 2>&1'
zip=$(echo plain/*.zip)
expect_same 'the status' omitted "$(ledger "$zip" thread-heap.json status)"
expect_like 'the reason' 'jemalloc-not-found:*' "$(ledger "$zip" thread-heap.json reason)"
kill "$(cat sleeper)"
wait "$pid"

fact 'a library that others may write to is not run'
exits 0 heap --pid "$target" --json
library=$(jq -r .jemalloc.path out)
cp "$library" libjemalloc.so.2
chmod 666 libjemalloc.so.2
rm -f shared_ready
LD_LIBRARY_PATH=. start_ready shared_ready "$ALLOC_WORKER_SHARED" --bytes 1 --ready shared_ready
exits 1 heap --pid "$pid" --json
expect_same 'the failure' calibration-refused "$(jq -r .failure out)"
expect_err 'others may write to it'
kill "$pid"

fact 'nor one of a process with another root, be it at our path and ours'
chmod 644 libjemalloc.so.2
cp "$ALLOC_WORKER_SHARED" worker
mkdir jail
jailed='mount -t tmpfs none jail && mkdir -p jail/usr jail/proc "jail$1" &&
    mount --rbind /usr jail/usr && mount --rbind /proc jail/proc && ln -s usr/lib usr/lib64 jail && mount --bind "$1" "jail$1" && cd jail && pivot_root . . && umount -l . && exec /usr/bin/env \
    "LD_LIBRARY_PATH=$1" "$1/worker" --bytes 1 --ready "$1/jail_ready"'
if [ "$(id -u)" -eq 0 ] && [ -L /lib ] && unshare -m sh -c 'mount -t tmpfs none jail' 2>/dev/null
then
    start_ready jail_ready unshare -m sh -c "$jailed" sh "$scratch"
    exits 1 heap --pid "$pid" --json
    expect_same 'the library' "$scratch/libjemalloc.so.2" "$(jq -r .jemalloc.path out)"
    expect_same 'the failure' calibration-refused "$(jq -r .failure out)"
    expect_err 'another root directory'
    kill "$pid"
else
    echo 'not tried: another root (nobody may mount here)'
fi

fact 'SIGINT ends it with what was read so far'
# A shell without job control starts background commands with SIGINT ignored.
python3 -c 'import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])' "$BUGPACK" heap --pid "$target" --json --snapshots 1000 \
    --interval 60 >out 2>err </dev/null &
child=$!
started="$started $child"
# Until it, and no longer Python, catches the signal. It takes one snapshot in any case.
await '! grep -q python "/proc/$child/comm" && [ "$((0x0$(awk "/^SigCgt/ { print \$2 }" "/proc/$child/status") & 2))" -ne 0 ]'
kill -s INT "$child"
wait "$child"
expect_same 'the document' 'true true true' "$(jq -r \
    '"\(.interrupted) \(.snapshots | length > 0) \(.snapshots | length < 1000)"' out)"

fact 'the report of such a process has the counters'
captures 0 --description 'its heap'
expect_no_err
expect_same 'the status' ok "$(ledger "$zip" thread-heap.json status)"
expect_same 'the counters' true \
    "$(value "$zip" thread-heap.json '.snapshots[0].threads[0].allocated_bytes >= 16777216')"
captures 0 --window 400ms
expect_same 'the snapshots' 'true true' "$(value "$zip" thread-heap.json '"\(.snapshots | length == 2) \(
    .snapshots[1].monotonic_ns - .snapshots[0].monotonic_ns >= 300000000)"')"

if [ "$(id -u)" -eq 0 ] && can_be_nobody; then
    fact 'who may not look is told what to do about it'
    as_nobody timeout 60 "$(reachable "$BUGPACK")" heap --pid "$target" --json >out 2>err </dev/null
    expect_status 1 $?
    expect_err 'run as its user or as root'
    expect_same 'the failure' readlink-failure "$(jq -r .failure out)"
fi

finish
