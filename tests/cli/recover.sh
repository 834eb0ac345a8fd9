#!/bin/sh
# bugpack recover: a host that was killed becomes a crash report, and one that lives is left alone.
. "$(dirname "$0")/lib.sh"

need unzip jq
[ -x "${BUGPACK_MINIMAL:-}" ] || skip 'the minimal host is not built'
mkdir -m 700 "$scratch/runtime"
XDG_RUNTIME_DIR=$scratch/runtime
export XDG_RUNTIME_DIR
cd "$scratch" || exit 1
# shellcheck disable=SC2016 # await evaluates it
sessions_are='[ "$(ls runtime/bugpack/*/log.ring | wc -l)" -eq'

# A host whose standard input never ends.
mkfifo keys
start sleep 300
"$BUGPACK_MINIMAL" --report-dir "$scratch/reports" <keys >/dev/null 2>&1 &
host=$!
started="$started $host"
exec 9>keys
current='the host starts'
await "serves $host"

fact 'a living session is left alone, and told with its process'
exits 0 recover "$scratch/runtime/bugpack"
expect_no_out
expect_err "minimal: still running, as process $host; left alone"
expect_same 'the number of lines' 1 "$(grep -c 'minimal' "$scratch/err")"
run recover --app minimal "$scratch/runtime/bugpack"
expect_err "process $host"

fact 'a living session of another program than the one that is named is not told'
exits 0 recover --app viewer "$scratch/runtime/bugpack"
expect_no_out
expect_same 'standard error' "bugpack: no dead session in $scratch/runtime/bugpack" "$(cat err)"

if unshare -p -f true 2>/dev/null; then
    fact 'a living session in a child pid namespace is told as well'
    mkfifo other_keys
    unshare -p -f --kill-child "$BUGPACK_MINIMAL" --report-dir "$scratch/reports" <other_keys \
        >/dev/null 2>&1 &
    inner=$!
    started="$started $inner"
    exec 8>other_keys
    await "$sessions_are 2 ]"
    exits 0 recover "$scratch/runtime/bugpack"
    expect_no_out
    expect_same 'how many are told' 2 "$(grep -c 'minimal: still running' err)"
    exec 8>&-
    wait "$inner" 2>/dev/null
    await "$sessions_are 1 ]"
fi

kill -KILL "$host"
wait "$host" 2>/dev/null

fact 'another program'\''s sessions are left alone where a name is given'
exits 0 recover --app "viewer-$$" # not those of this user's programs
expect_no_out

fact 'a directory for the reports that is not there fails at once, and the sessions stay'
exits 1 recover -o "$scratch/nowhere"
expect_no_out
expect_same 'standard error' \
    "bugpack: cannot use the directory \"$scratch/nowhere\": No such file or directory" "$(cat err)"

fact 'a dead session becomes a crash report where it put its own'
exits 0 recover "$scratch/runtime/bugpack"
zip=$(cat out)
expect_like 'the name' "$scratch/reports/minimal-crash-"'*.zip' "$zip"
expect_same 'how it ended' died "$(value "$zip" metadata.json .session_end)"
expect_same 'the pid' "$host" "$(value "$zip" metadata.json .pid)"
expect_same 'the machine' null "$(value "$zip" metadata.json .machine)"
unzip -p "$zip" logs.jsonl | holds -s 'any(.message == "serving")' ||
    wrong 'the log is not in it'
expect_empty runtime/bugpack

fact 'the machine is named where the session was asked for it, and where the recovery is'
killed() {
    mkfifo more_keys
    "$@" <more_keys >/dev/null 2>&1 &
    host=$!
    started="$started $host"
    exec 7>more_keys
    await "$sessions_are 1 ]"
    kill -KILL "$host"
    wait "$host" 2>/dev/null
    exec 7>&-
    rm more_keys
}
killed "$BUGPACK" run --hostname -o reports -- cat
run recover "$scratch/runtime/bugpack"
expect_same 'asked by the session' "$(uname -n)" "$(value "$(cat out)" metadata.json .machine)"
killed "$BUGPACK_MINIMAL" --report-dir "$scratch/reports"
run recover --hostname "$scratch/runtime/bugpack"
expect_same 'asked by the recovery' "$(uname -n)" "$(value "$(cat out)" metadata.json .machine)"
expect_empty runtime/bugpack

fact 'there is nothing to recover twice, and what was searched is named'
exits 0 recover --app "viewer-$$"
expect_no_out
expect_err "no dead session in $scratch/runtime/bugpack, "
expect_err /dev/shm/bugpack-

fact 'a directory that is not there is an error'
exits 1 recover "$scratch/nowhere"
expect_err "$scratch/nowhere"
expect_no_out

fact 'a directory that others may write to is not believed'
mkdir -m 777 shared
chmod 777 shared
exits 1 recover "$scratch/shared"
expect_err shared

fact 'usage'
expect_misuse "'two'" recover one two

finish
