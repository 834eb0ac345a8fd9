#!/bin/sh
# The profile of a process over the window of a capture.
# shellcheck disable=SC2016 # await and jq expand it
. "$(dirname "$0")/lib.sh"
need unzip jq awk
cd "$scratch" || exit 1
unset DEBUGINFOD_URLS
chmod 711 "$scratch"

# take [OPTION...]: a report about `target`, in `zip`.
take() {
    exits 0 capture --pid "$target" --window 300ms -o . "$@"
    zip=$(cat out)
    manifest=$(unzip -p "$zip" manifest.json)
}

# take_many: as `take`, with 60 samples or more, however little of a processor the target gets. Of more
# than 10 s there would be fewer a second.
take_many() {
    for window in 1s 4s 9s; do
        take --window "$window"
        [ "$(of '.samples // 0')" -lt 60 ] || break
    done
}

# outside COMMAND...: as `run`, of another command that runs bugpack.
outside() {
    timeout 60 "$@" </dev/null >out 2>err
    status=$?
}

# of FILTER: of the profile in the manifest.
of() {
    printf '%s' "$manifest" | jq -r ".profile | $1"
}

# share PATTERN: percent of the samples whose stack has it.
share() {
    unzip -p "$zip" profile.folded | awk -v "pattern=$1" '{ all += $NF; if ($0 ~ pattern) some += $NF }
        END { print (all > 0 ? int(100 * some / all + 0.5) : 0) }'
}

start "$SPIN" serve
spinner=$pid

refusal=$("$SYSTEM_ALLOWS" profile "$spinner") || [ $? -ne 1 ] || skip "profiles cannot be taken here: $refusal"
target=$spinner
take_many

fact 'the function that spins has most samples, with its callers from the thread on'
[ "$(share '^spin;.*main;serve;price_all;count_primes ')" -ge 70 ] ||
    wrong "$(unzip -p "$zip" profile.folded | head)"
expect_same 'lines that are no stack with a count' 0 \
    "$(unzip -p "$zip" profile.folded | grep -vcE '^spin(;[^;]+)* [1-9][0-9]*$')"
expect_same 'the samples' "$(of .samples)" \
    "$(unzip -p "$zip" profile.folded | awk '{ all += $NF } END { print all }')"

fact 'the manifest says how it was taken'
expect_same 'rate' '99 0 1' "$(of '"\(.rate_hz) \(.lost) \(.threads)"')"
expect_same 'the window' true "$(of '.window_ms >= 900 and .window_ms < 30000')"
expect_same 'no more samples than the window has' true "$(of '.samples <= .window_ms * .rate_hz / 1000 + 2')"
ledger "$zip" profile.folded note | grep -q ' samples of 1 thread, 99 a second' ||
    wrong "$(ledger "$zip" profile.folded note)"
expect_same 'complete' true "$(printf '%s' "$manifest" | jq .complete)"

fact 'the entry stands before what a host provides, and is redacted and shown as text'
expect_same 'its place' 'stacks.json profile.folded manifest.json ' \
    "$(entries "$zip" | tail -n 3 | tr '\n' ' ')"
exits 0 show "$zip" profile.folded
grep -q count_primes out || wrong "$(head -n 3 out)"
exits 0 verify "$zip"

fact 'it is left out on request, and there is none without a window'
take --without profile.folded
expect_same 'the status' disabled "$(ledger "$zip" profile.folded status)"
expect_same 'in the manifest' null "$(printf '%s' "$manifest" | jq .profile)"
exits 0 capture --pid "$target" --window 0 -o .
expect_same 'no line' 0 "$(unzip -p "$(cat out)" manifest.json | grep -c profile.folded)"
kill -STOP "$spinner" # others want the processor

fact 'an idle process has no entry, and its report is complete'
start "$SPIN" idle
target=$pid
take
expect_same 'the status' omitted "$(ledger "$zip" profile.folded status)"
ledger "$zip" profile.folded reason | grep -q '^no thread ran ' || wrong "$(ledger "$zip" profile.folded reason)"
expect_same 'samples' 0 "$(of .samples)"
expect_same 'complete' true "$(printf '%s' "$manifest" | jq .complete)"

fact 'threads have roots of their own, whose names cannot end a frame'
start "$SPIN" threads
target=$pid
take_many
expect_same 'the roots' 'pricer: "a" rounder ' \
    "$(unzip -p "$zip" profile.folded | sed 's/;.*//' | sort -u | tr '\n' ' ')"
expect_same 'threads' 2 "$(of .threads)"
kill "$target"

fact 'threads that begin in the window are in it'
start "$SPIN" short-threads
target=$pid
take_many
[ "$(of .threads)" -ge 2 ] || wrong "$manifest"
[ "$(share ';price_once;price_all')" -ge 70 ] || wrong "$(unzip -p "$zip" profile.folded | head)"
kill "$target"

fact 'a stack that is deeper than what is copied says so'
start "$SPIN" deep
target=$pid
take_many
[ "$(share '^spin;[[][.][.][.][]];walk;')" -ge 70 ] || wrong "$(unzip -p "$zip" profile.folded | head -n 3)"
kill "$target"

fact 'functions of a library without names are one frame each'
start "$SPIN" library
target=$pid
take_many
expect_same 'innermost functions of the library' true \
    "$(unzip -p "$zip" profile.folded | sed -n 's/.*;\(\[libspin_nameless.so+0x[0-9a-f]*\]\) [0-9]*$/\1/p' | sort -u |
        awk 'END { print (NR >= 1 && NR <= 2) ? "true" : NR }')"
kill "$target"

fact 'code that was made at run time is a frame'
start "$SPIN" made
target=$pid
take_many
[ "$(share ';[[]jit[]] ')" -ge 90 ] || wrong "$(unzip -p "$zip" profile.folded | head -n 3)"
kill "$target"

fact 'each process of a report has its own'
start "$SPIN" threads
target=$spinner
kill -CONT "$spinner"
take --pid "$pid"
kill -STOP "$spinner"
expect_same 'its line' ok "$(ledger "$zip" "processes/$pid-spin/profile.folded" status)"
unzip -p "$zip" "processes/$pid-spin/profile.folded" | grep -q '^rounder;' || wrong 'no thread of it'
kill "$pid"

fact 'without descriptors it says which limit, and the report is complete'
start "$SPIN" crowd
target=$pid
await '[ "$(find /proc/$target/task -maxdepth 1 | wc -l)" -gt 100 ]'
outside sh -c 'ulimit -n 200 && exec "$@"' sh "$BUGPACK" capture --pid "$target" --window 200ms -o .
expect_status 0
zip=$(cat out)
expect_same 'the status' omitted "$(ledger "$zip" profile.folded status)"
ledger "$zip" profile.folded reason | grep -q 'RLIMIT_NOFILE' || wrong "$(ledger "$zip" profile.folded reason)"
expect_same 'complete' true "$(unzip -p "$zip" manifest.json | jq .complete)"

fact 'the command raises its own limit'
outside sh -c 'ulimit -S -n 200 && exec "$@"' sh "$BUGPACK" capture --pid "$target" --window 500ms -o .
expect_same 'the status' ok "$(ledger "$(cat out)" profile.folded status)"
kill "$target"

if [ "$(id -u)" = 0 ] && can_be_nobody; then
    fact 'a user without privileges gets it of an own process, but for what is in the kernel'
    reachable "${SPIN%/*}/libspin_nameless.so" >/dev/null
    setpriv --reuid=65534 --regid=65534 --clear-groups "$(reachable "$SPIN")" serve </dev/null >/dev/null 2>&1 &
    target=$!
    started="$started $target"
    install -d -m 700 -o 65534 for-nobody
    outside setpriv --reuid=65534 --regid=65534 --clear-groups \
        "$(reachable "$BUGPACK")" capture --pid "$target" --window 1s -o for-nobody
    zip=$(cat out)
    manifest=$(unzip -p "$zip" manifest.json)
    if [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -le 2 ]; then
        expect_same 'the status' ok "$(ledger "$zip" profile.folded status)"
        [ "$(share ';price_all;(count_primes|round_up) ')" -ge 70 ] || wrong "$(unzip -p "$zip" profile.folded | head -n 3)"
    else
        ledger "$zip" profile.folded reason | grep -q perf_event_paranoid || wrong "$manifest"
    fi
    [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -le 1 ] || expect_same 'without the kernel' true "$(of .without_kernel)"
    kill "$target"
fi

fact 'a filter that refuses it is named, and the report is complete'
target=$spinner
outside "$REFUSE" EPERM "$BUGPACK" capture --pid "$target" --window 500ms -o .
expect_status 0
zip=$(cat out)
expect_same 'the status' omitted "$(ledger "$zip" profile.folded status)"
ledger "$zip" profile.folded reason | grep -q '^perf_event_open is refused' || wrong "$(ledger "$zip" profile.folded reason)"
expect_same 'complete' true "$(unzip -p "$zip" manifest.json | jq .complete)"

if { [ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null; } ||
    not_tried 'a kernel that asks for CAP_PERFMON (needs root and unshare)'; then
    fact 'a kernel that asks for CAP_PERFMON is named: perf_event_paranoid of 3, as Debian has it'
    echo 3 >three
    outside unshare -m sh -c 'mount --bind three /proc/sys/kernel/perf_event_paranoid && exec "$@"' sh \
        "$REFUSE" EACCES "$BUGPACK" capture --pid "$target" --window 500ms -o .
    expect_status 0
    zip=$(cat out)
    ledger "$zip" profile.folded reason | grep -q 'perf_event_paranoid is 3.* no CAP_PERFMON' ||
        wrong "$(ledger "$zip" profile.folded reason)"
fi

fact 'a command and its children have a profile of the seconds before a report'
mkdir runs
"$BUGPACK" run --profile-hz 97 -o runs -- sh -c 'echo begun; "$1" serve & echo $! >spin.pid; wait' sh "$SPIN" \
    </dev/null >run.out 2>run.err &
runner=$!
started="$started $runner"
await '[ -s spin.pid ] && [ "$(cut -d" " -f14 "/proc/$(cat spin.pid)/stat")" -gt 50 ]'
exits 0 trigger "$runner"
zip=$(cat out)
manifest=$(unzip -p "$zip" manifest.json)
started="$started $(cat spin.pid)"
kill "$(cat spin.pid)"
expect_same 'rate' 97 "$(of .rate_hz)"
[ "$(share '^spin;.*main;serve;price_all')" -ge 70 ] || wrong "$(unzip -p "$zip" profile.folded | head -n 3)"
wait "$runner"

fact 'where it is refused, a message says so, and the report is complete'
outside "$REFUSE" EPERM "$BUGPACK" run --profile-hz 19 -o runs -- sh -c 'exit 3'
expect_status 3
grep -q 'there are no profiles: perf_event_open is refused' err || wrong "$(cat err)"
exits 2 run --profile-hz 1001 -- true
exits 2 run --profile-hz 0 -- true

finish
