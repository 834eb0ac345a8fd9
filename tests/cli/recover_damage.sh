#!/bin/sh
# bugpack recover: what the files have lost is told, and what only fails now is kept for later.
. "$(dirname "$0")/lib.sh"

need unzip jq
[ -x "${BUGPACK_MINIMAL:-}" ] || skip 'the minimal host is not built'
mkdir -m 700 "$scratch/runtime"
XDG_RUNTIME_DIR=$scratch/runtime
export XDG_RUNTIME_DIR
cd "$scratch" || exit 1
sessions=runtime/bugpack
mkfifo keys
start sleep 300

# die: a host that was killed; `session` is its directory.
die() {
    "$BUGPACK_MINIMAL" --report-dir "$scratch/reports" <keys >/dev/null 2>&1 &
    host=$!
    started="$started $host"
    exec 9>keys
    await "serves $host"
    kill -KILL "$host"
    wait "$host" 2>/dev/null
    session=$(echo runtime/bugpack/minimal-"$host"-*)
}

# expect_incomplete ENTRY TEXT: one report was written, and its manifest says that of the entry.
expect_incomplete() {
    expect_status 3
    zip=$(cat out)
    expect_same 'complete' false "$(value "$zip" manifest.json .complete)"
    expect_like "the reason of $1" '*'"$2"'*' "$(ledger "$zip" "$1" reason)"
    expect_empty $sessions
}

# expect_kept: no report, and the session waits for the next try, which succeeds.
expect_kept() {
    expect_status 1
    expect_no_out
    [ -s "$session/log.ring" ] || wrong 'the rings are gone'
    expect_same 'the number of reports' "$1" "$(find reports -type f 2>/dev/null | wc -l | tr -d ' ')"
    expect_err "it is kept in \"$session\""
    exits 0 recover $sessions
    unzip -p "$(cat out)" logs.jsonl | grep -q serving || wrong 'the log is lost'
    rm -f "$(cat out)"
    expect_empty $sessions
}

fact 'every ring file has its line in the manifest'
die
exits 0 recover $sessions
zip=$(cat out)
for entry in logs.jsonl notifications.json metrics-history.jsonl; do
    expect_same "the status of $entry" ok "$(ledger "$zip" "$entry" status)"
done
rm -f "$zip"

fact 'a ring that was cut off is told with what it lost'
die
truncate -s 4096 "$session/log.ring"
run recover $sessions
expect_incomplete logs.jsonl 'records damaged or unreadable'

fact 'a ring that was cut to nothing is told'
for ring in log history notifications; do
    die
    : >"$session/$ring.ring"
    run recover $sessions
    case $ring in
    log) entry=logs.jsonl ;;
    history) entry=metrics-history.jsonl ;;
    *) entry=notifications.json ;;
    esac
    expect_incomplete "$entry" 'does not begin like a ring'
done

fact 'each report in which something is missing is named'
die
first=$session
mv "$first" aside # the next host would recover it
die
mv aside "$first"
: >"$first/log.ring"
: >"$session/log.ring"
exits 3 recover $sessions
expect_same 'how many are named' 2 "$(grep -c 'something is missing' err)"
xargs rm -f <out

fact 'a ring whose file is gone is told'
die
rm "$session/log.ring"
run recover $sessions
expect_incomplete logs.jsonl 'its file was removed'

fact 'zeros in the middle are no evicted records'
die
dd if=/dev/zero of="$session/log.ring" bs=1 seek=20480 count=64 conv=notrunc 2>/dev/null # the first chunk
run recover $sessions
expect_incomplete logs.jsonl 'at least 1 records damaged or unreadable'

fact 'a ring in the place of another is not taken for it'
die
cp "$session/history.ring" "$session/log.ring"
run recover $sessions
expect_incomplete logs.jsonl 'the file is another ring'

fact 'a session whose own file is damaged is recovered, and says so'
die
dd if=/dev/zero of="$session/session" bs=1 seek=64 count=200 conv=notrunc 2>/dev/null
run recover -o "$scratch/reports" $sessions
expect_incomplete metadata.json 'damaged'
expect_same 'the app' minimal "$(value "$zip" metadata.json .app.name)"
expect_same 'the pid' "$host" "$(value "$zip" metadata.json .pid)"
unzip -p "$zip" logs.jsonl | grep -q serving || wrong 'the log is not in it'
expect_like 'the reason' '*may have been restarted: the newest may be missing' "$(ledger "$zip" logs.jsonl reason)"

fact 'rings without a lock are recovered'
die
rm "$session/lock"
exits 0 recover $sessions
unzip -p "$(cat out)" logs.jsonl | grep -q serving || wrong 'the log is not in it'
expect_empty $sessions

fact 'what an interrupted open or close left is removed'
mkdir -m 700 $sessions/minimal-4194305-0123456789abcdef0123456789abcdef
mkdir -m 700 $sessions/minimal-4194305-0123456789abcdef0123456789abcdee
: >$sessions/minimal-4194305-0123456789abcdef0123456789abcdee/lock
mkdir -m 700 $sessions/minimal-4194305-0123456789abcdef0123456789abcded.done
: >$sessions/minimal-4194305-0123456789abcdef0123456789abcded.done/log.ring
exits 0 recover $sessions
expect_no_out
expect_empty $sessions

rm -rf reports
mkdir reports
fact 'a limit on the size of files keeps the session'
die
(
    ulimit -f 1
    run recover $sessions
    exit "$status"
)
status=$?
expect_kept 0

fact 'a report directory that is gone keeps the session'
rm -rf reports
die
mv reports moved
exits 1 recover $sessions
expect_err "it is kept in \"$session\""
mv moved reports
exits 0 recover $sessions

fact 'a directory or session that cannot be looked at is told'
if { can_be_nobody && [ "$(id -u)" -eq 0 ]; } ||
    not_tried 'a session of another user that is closed to us (needs root and setpriv)'; then
    mkdir -m 700 closed
    chown 65534:65534 closed
    chmod 711 "$scratch"
    as_nobody mkdir -m 000 closed/minimal-4194305-0123456789abcdef0123456789abcdef
    as_nobody timeout 60 "$(reachable "$BUGPACK")" recover "$scratch/closed" >out 2>err </dev/null
    expect_status 1 $?
    expect_no_out
    expect_err 'could not look at the session "minimal-4194305'
fi

# refuses WORD ARGUMENT...: it says so, writes nothing, and leaves the files in `theirs` as they are.
refuses() {
    word=$1
    shift
    list_theirs >before
    run recover "$@"
    expect_no_out
    expect_err "$word"
    list_theirs | diff before - >diff.out || wrong "$(cat diff.out)"
    expect_same 'the reports' "$reports_before" "$(ls reports)"
}
list_theirs() {
    find "$theirs" -printf '%p %m %u %g %s %i %T@\n' | sort
}

if [ "$(id -u)" -eq 0 ] || not_tried 'directories and sessions of another user (needs root)'; then
    fact 'the directory of another user is not touched'
    mkdir -m 700 "$scratch/foreign"
    theirs=$scratch/foreign/bugpack
    reports_before=$(ls reports)
    die
    cp -a $sessions "$theirs"
    mv "$session" kept_session
    mkdir -m 700 "$theirs/minimal-4194305-0123456789abcdef0123456789abcded.done"
    chown -R 65534:65534 "$theirs"
    refuses "cannot use the directory \"$theirs\": it is not this user's alone" "$theirs"
    expect_status 1
    XDG_RUNTIME_DIR=$scratch/foreign
    refuses "not searched: cannot use the directory \"$theirs\": it is another user's" \
        --app "viewer-$$" # not those of this user's programs
    expect_status 0
    XDG_RUNTIME_DIR=$scratch/runtime

    fact 'nor is a session of another user in a directory of this one'
    chown 0:0 "$theirs"
    refuses "could not look at the session \"minimal-$host-" "$theirs"
    expect_status 1

    fact 'and with its owner it is recovered'
    chown -R 0:0 "$theirs"
    exits 0 recover "$theirs"
    unzip -p "$(cat out)" logs.jsonl | grep -q serving || wrong 'the log is not in it'
    rm -rf kept_session
fi

fact 'sessions that cannot be recovered are bounded, the newest stay, and what was dropped is told'
die
cp -a "$session" template
for ring in template/*.ring; do
    : >"$ring" # so that the times are those of the files
done
rm -rf "${sessions:?}"/*
i=0
while [ $i -lt 20 ]; do
    id=$(printf '%032x' $i)
    cp -a template "$sessions/minimal-4194305-$id"
    : >"$sessions/minimal-4194305-$id/session"
    touch -d "2026-01-01 00:00:$(printf '%02d' $i)" "$sessions/minimal-4194305-$id"/*
    i=$((i + 1))
done
sh -c "ulimit -n 8; exec \"\$BUGPACK\" recover -o reports $sessions" >out 2>err </dev/null
expect_status 1 $?
expect_same 'how many stay' 16 "$(find $sessions -mindepth 1 -maxdepth 1 | wc -l | tr -d ' ')"
expect_same 'how many were told' 4 "$(grep -c 'was removed without a report' err)"
[ -d "$sessions/minimal-4194305-$(printf '%032x' 19)" ] || wrong 'the newest is gone'
[ ! -d "$sessions/minimal-4194305-$(printf '%032x' 0)" ] || wrong 'the oldest is there'

finish
