#!/bin/sh
# bugpack run's reports by the clock, and when reports that take themselves are told.
. "$(dirname "$0")/lib.sh"
need unzip jq
cd "$scratch" || exit 1
mkdir reports

# told N: until so many reports are told.
told() {
    await "[ \"\$(grep -c 'report written: ' err)\" -ge $1 ]"
}

fact 'snapshots are taken by the clock, told while the command runs, and the oldest go'
"$BUGPACK" run -o reports --on-failure none --auto-snapshot-interval 1 --auto-snapshot-cap 2 -- \
    sh -c 'echo begun; while [ ! -e stop ]; do sleep 0.1; done; exit 4' >out 2>err </dev/null &
pid=$!
started="$started $pid"
told 4
kill -0 "$pid" 2>/dev/null || wrong 'the command has ended already'
touch stop
wait "$pid"
expect_same 'the status' 4 $?
set -- reports/auto-snapshots/*.zip
expect_same 'the number of snapshots that are kept' 2 $#
expect_same 'the kind' auto-snapshot "$(value "$1" metadata.json .report_type)"
expect_same 'the log' begun "$(unzip -p "$1" logs.jsonl | jq -r 'select(.channel == "stdout").message')"
# Not by name: two of the same second differ in a number.
newest=$(for zip in "$@"; do echo "$(value "$zip" metadata.json .sequence) $zip"; done | sort -n |
    tail -n 1)
expect_same 'what was told last' "bugpack: report written: $scratch/${newest#* }" \
    "$(grep 'report written: ' err | tail -n 1)"

fact 'a report of a gap is told while the command runs'
rm -f stop
"$BUGPACK" run -o reports --gap-pattern 'opcode ([0-9]+)' -- \
    sh -c 'echo opcode 7; while [ ! -e stop ]; do sleep 0.1; done' >out 2>err </dev/null &
pid=$!
started="$started $pid"
told 1
kill -0 "$pid" 2>/dev/null || wrong 'the command has ended already'
touch stop
wait "$pid"
expect_same 'the status' 0 $?
zip=$(sed -n 's/^bugpack: report written: //p' err)
expect_same 'the key' stdout:line:7 "$(value "$zip" metadata.json .gap_key)"

fact 'an interval of 0 takes none, and what is no number is refused'
exits 0 run -o reports --auto-snapshot-interval 0 -- true
expect_no_err
for value in -1 x 99999999999; do
    expect_misuse "not '$value'" run --auto-snapshot-interval "$value" -- true
done
for value in -1 x 1.5 99999999999; do
    expect_misuse "not '$value'" run --auto-snapshot-cap "$value" -- true
done

finish
