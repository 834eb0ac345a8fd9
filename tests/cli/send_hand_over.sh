#!/bin/sh
# --send of the commands that write reports: they arrive, and nobody waits for that.
# shellcheck disable=SC2016,SC2317 # what await runs
. "$(dirname "$0")/lib.sh"
need python3 jq unzip
cd "$scratch" || exit 1
unset http_proxy https_proxy HTTPS_PROXY all_proxy ALL_PROXY no_proxy NO_PROXY
export HOME="$scratch" XDG_CONFIG_HOME="$scratch/config" XDG_STATE_HOME="$scratch/state"
export XDG_RUNTIME_DIR="$scratch/runtime"
mkdir -p config/bugpack inbox server reports
mkdir -m 700 runtime
queue=state/bugpack/queue
start sleep 1000
target=$pid

# configure URL [LINE]: the destination s.
configure() {
    printf '[destination "s"]\nurl = %s\nmethod = POST\n%s\n' "$1" "${2:-consent = always}" >config/bugpack/send.conf
    chmod 600 config/bugpack/send.conf
}
# arrived NUMBER: so many reports are there, and the queue is empty.
arrived() {
    [ "$(find inbox -name '*.zip' | wc -l)" = "$1" ] && [ -z "$(find "$queue" -name '*.zip')" ]
}
configure "$scratch/inbox"

fact 'capture hands its report over, and it stays where it is'
captures 0 --window 0 --send s
await 'arrived 1'
cmp -s "$zip" inbox/*.zip || wrong 'it differs'

fact 'run hands over the report of a failure'
exits 3 run --send s --output-dir reports -- sh -c 'exit 3'
await 'arrived 2'
expect_err 'report written'

fact 'watch hands over what it reports'
exits 0 watch --pid "$target" --when 'threads > 0' --max 1 --send s --output-dir reports
await 'arrived 3'

fact 'recover hands over the report of a session that died'
mkfifo held
"$BUGPACK" run --app died --output-dir reports -- sh -c 'echo up >up; read -r _ <held' >out 2>err </dev/null &
host=$!
started="$started $host"
await '[ -s up ] && ls runtime/bugpack/*/log.ring >/dev/null'
kill -KILL "$host"
wait "$host" 2>/dev/null
exits 0 recover --send s --output-dir reports runtime/bugpack
await 'arrived 4'

fact 'nobody waits for a server that does not answer, or for the end of its output'
start python3 "$source_dir/tests/support/report_server.py" "$scratch/server"
server=$pid
await '[ -s server/port ]'
configure "http://127.0.0.1:$(cat server/port)/stall"
"$BUGPACK" capture --pid "$target" --window 0 --send s --output-dir reports 2>err | cat >out
expect_same 'the queue' 1 "$(find $queue/s -name '*.zip' | wc -l)"
if "$BUGPACK" send -y --to "http://127.0.0.1:$(cat server/port)/put/x" "$(cat out)" >/dev/null 2>err ||
    not_tried "the wait (there is no libcurl)"; then
    await 'holds "select(.path == \"/stall\")" server/requests'
    exits 0 send --queue
    expect_err 'another process sends'
fi
kill -KILL "$server"
await '! "$BUGPACK" send --queue 2>&1 | grep -q "another process"'
configure "$scratch/inbox"
exits 0 send --queue --retry
await 'arrived 5'

fact 'without consent reports wait, and this is said'
configure "$scratch/inbox" 'consent = ask'
captures 0 --window 0 --send s
expect_err 'wait in the queue for consent'
expect_same 'the queue' 1 "$(find $queue/s -name '*.zip' | wc -l)"
exits 0 send --queue --yes
await 'arrived 6'

fact 'a destination that is not there is refused before anything begins'
exits 1 capture --pid "$target" --send t --output-dir reports
expect_err 'has no destination "t"'
exits 1 run --send t -- touch began
[ ! -e began ] || wrong 'the command has run'
exits 1 watch --pid "$target" --when 'threads > 0' --send t
exits 1 recover --send t runtime/bugpack
expect_misuse '--send and --output - exclude each other' capture --pid "$target" --send s --output -

fact 'a report that the queue does not take is written, and this is said'
chmod 755 $queue
captures 1 --window 0 --send s
expect_err 'the report is written, but not sent'
[ -f "$zip" ] || wrong 'it is not there'
chmod 700 $queue

rm -r inbox reports # check_schemas would look at copies
finish
