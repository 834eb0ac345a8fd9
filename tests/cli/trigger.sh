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
run trigger 1
expect_status 4
expect_err 'process 1 has no session that answers'
run trigger one
expect_usage "'one' is no process id"

start "$BUGPACK" run -q -o reports --app asked -- sh -c 'echo $$ >command; exec sleep 1000'
asked=$pid
await '[ -s command ]'
[ "$(find runtime -name trigger -type s | wc -l)" -eq 1 ] || skip 'sessions have no directories here'

fact 'a process, or the command that it runs, writes a report, and its path is printed'
expect_same 'the mode' 600 "$(stat -c %a runtime/bugpack/asked-*/trigger)"
for who in "$asked" "$(cat command)"; do
    run trigger "$who"
    expect_status 0
    expect_no_err
    unzip -tq "$(cat out)" >unzipped 2>&1 || wrong "it is no zip: $(cat out)"
    expect_same 'the kind' bugreport "$(value "$(cat out)" metadata.json .report_type)"
done
expect_same 'the reports' 2 "$(find reports -name '*.zip' | wc -l | tr -d ' ')"

fact 'who does not wait long enough gets no path'
kill -STOP "$asked"
run trigger --timeout 1 "$asked"
expect_status 5
expect_no_out
kill -CONT "$asked"

if can_be_nobody && [ "$(id -u)" -eq 0 ]; then
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
fi

fact 'a dead process does not answer, and the next session removes its socket'
before=$(find reports -name '*.zip' | wc -l)
kill -KILL "$asked" "$(cat command)"
await '! kill -0 "$asked" 2>/dev/null'
run trigger "$asked"
expect_status 4
run run -q -o reports --app asked -- true
[ "$(find reports -name 'asked-crash-*.zip' | wc -l)" -eq 1 ] || wrong "$(ls reports), before $before"
expect_empty runtime/bugpack

finish
