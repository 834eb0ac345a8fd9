#!/bin/sh
# bugpack run on pipes: bytes, statuses, signals, reports.
# shellcheck disable=SC2016 # await and the commands expand it
. "$(dirname "$0")/lib.sh"
need unzip jq python3
cd "$scratch" || exit 1
mkdir reports

# run_command ARGUMENT...: with the reports in reports/.
run_command() {
    run run -o reports "$@"
}

only_zip() {
    set -- reports/*.zip
    if [ $# -ne 1 ] || [ ! -e "$1" ]; then
        wrong "there are these reports: $*"
    fi
    zip=$1
}

forget() {
    rm -rf reports && mkdir reports
}

fact 'standard output and standard error stay apart, and the status is the command s own'
run_command --on-failure=none -- sh -c 'printf "out\n\000\377"; echo err >&2; exit 7'
expect_status 7
printf 'out\n\000\377' >wanted
cmp -s wanted out || wrong 'standard output is not what was written'
expect_same 'standard error' err "$(cat err)"
expect_empty reports

fact 'where both streams are one file they are one stream, in the order of what was written'
both='i=0; while [ $i -lt 200 ]; do echo "out $i"; echo "err $i" >&2; i=$((i + 1)); done; kill -SEGV $$'
sh -c "${both%; kill*}" >wanted 2>&1
"$BUGPACK" run -q -o reports -- sh -c "$both" >mixed 2>&1
# The shell may add what it thinks of the signal.
head -n 400 mixed | cmp -s wanted - || wrong 'the order of the lines is another one'
only_zip
expect_same 'the channel' '["output"]' \
    "$(unzip -p "$zip" logs.jsonl | jq -sc 'map(.channel) - ["bugpack"] | unique')"
unzip -p "$zip" logs.jsonl | jq -r 'select(.channel == "output").message' | cmp -s wanted - ||
    wrong 'the order of the records is another one'
forget
"$BUGPACK" run -q -o reports -- sh -c 'echo out; echo err >&2; kill -SEGV $$' >/dev/null 2>&1
only_zip
expect_same 'the channels of two files' '["stderr","stdout"]' \
    "$(unzip -p "$zip" logs.jsonl | jq -sc 'map(.channel) - ["bugpack"] | unique')"
forget

if [ -w /dev/full ] || not_tried 'a full disk (there is no /dev/full)'; then
    fact 'a full disk behind standard output ends nothing, and what was lost is said'
    "$BUGPACK" run -q -o reports --on-failure signal -- sh -c 'echo four; echo five >&2; exit 5' >/dev/full 2>err
    expect_status 5 $?
    expect_err five
    expect_err 'bugpack: 5 bytes could not be written to standard output: No space left on device'
    expect_empty reports
fi

fact 'a limit on the size of files costs what is over it, and not the command'
(
    ulimit -f 8
    "$BUGPACK" run -q -o reports --on-failure signal -- sh -c 'head -c 10000 /dev/zero; exit 5' >limited 2>err
)
expect_status 5 $?
expect_same 'all bytes' 10000 "$(($(stat -c %s limited) + $(sed -n 's/^bugpack: \([0-9]*\) bytes could not be written to standard output: File too large$/\1/p' err)))"

fact 'options of the command are its own'
run_command sh -c 'echo "$0 $1"' --quiet -o
expect_out '--quiet -o'

fact 'standard input is the command s own'
echo typed >input
"$BUGPACK" run -o reports -- cat <input >out 2>err
expect_out typed

fact 'what cannot be run is told'
run_command -- ./no-such-command
expect_status 127
expect_err "cannot run './no-such-command': No such file or directory"
run_command -- ./input
expect_status 126
expect_err 'Permission denied'
expect_empty reports

fact 'what is there and cannot be executed leaves a report that says why, and no shell is tried'
printf '\177ELF\002\001\001\000\000\000\000\000\000\000\000\000\002\000\026\000\001\000\000\000' >other
head -c 100 /dev/zero >>other
printf '#!/nosuch/python\n' >script
chmod +x other script
for command in ./other ./script; do
    why='its interpreter "/nosuch/python" does not exist'
    [ "$command" = ./script ] || why="it is a program for s390x, and this machine is $(uname -m)"
    run_command --description seen -- "$command"
    expect_status 126
    expect_err "cannot run '$command': $why"
    only_zip
    expect_same 'the kind' exit "$(value "$zip" metadata.json .report_type)"
    expect_same 'the reason' "$why" "$(value "$zip" metadata.json .exit.not_executed)"
    expect_same 'the description' "cannot run '$command': seen" "$(value "$zip" metadata.json .description)"
    entries "$zip" | grep -q process.json && wrong 'it is about a process'
    "$BUGPACK" show "$zip" | grep -qF "the command could not be executed: $why" || wrong 'it is not shown'
    forget
done
run_command --on-failure=signal -- ./script
expect_status 126
echo 'echo a script' >script
run_command -- ./script
expect_out 'a script'
expect_empty reports

fact 'a command line that makes no sense is refused'
expect_misuse 'a command is missing' run
expect_misuse "not 'F13'" run --hotkey F13 -- true
expect_misuse "the pattern 'a(' is not acceptable" run --gap-pattern 'a(' -- true
expect_misuse "not 'crash'" run --on-failure crash -- true
expect_misuse 'not '"'0'" run --auto-snapshot-cap 0 -- true
expect_misuse '--auto-snapshot-cap needs --auto-snapshot-interval' run --auto-snapshot-cap 3 -- true
exits 1 run -o no-such-directory -- touch started
expect_err no-such-directory
[ ! -e started ] || wrong 'the command was started'

fact 'ten megabytes arrive whole'
head -c 10000000 /dev/urandom >noise
run_command -- cat noise
cmp -s noise out || wrong 'they do not'

fact 'a command whose reader goes away ends by SIGPIPE'
"$BUGPACK" run -o reports -- sh -c 'yes; kill -0 $$; echo "$?" >after' 2>err | head -n 1 >out
expect_out y
"$BUGPACK" run -o reports -- sh -c 'trap "" PIPE; seq 1000000; exit 4' 2>err | head -n 1 >out
expect_out 1
expect_empty reports

fact 'a command ignores SIGPIPE only where we were told to'
for before in '' 'trap "" PIPE; '; do
    look="exec sed -n 's/^SigIgn:.*\\(.\\)...\$/\\1/p' /proc/self/status"
    expect_same "the signals after <$before>" "$(sh -c "$before$look")" \
        "$(sh -c "$before"'exec "$0" run -q -o reports -- sh -c "$1"' "$BUGPACK" "$look")"
done

fact 'a command that dies by a signal leaves a crash report, and so do we'
run_command -- sh -c 'echo first; printf "last words"; kill -SEGV $$'
expect_status 139
only_zip
case $zip in reports/sh-crash-*) ;; *) wrong "its name is $zip" ;; esac
expect_same 'the kind' crash "$(value "$zip" metadata.json .report_type)"
expect_same 'the last line' 'last words' "$(unzip -p "$zip" logs.jsonl | tail -n 1 | jq -r .message)"
expect_err "report written: $scratch/$zip"
expect_same 'the end' '11 SIGSEGV boolean null' \
    "$(value "$zip" metadata.json '.exit | "\(.signal) \(.name) \(.core_dumped | type) \(.status)"')"
forget

fact 'a status other than 0 leaves a report that has it and is no crash, where that is wanted'
run_command --description seen -- sh -c 'echo last words; exit 3'
expect_status 3
only_zip
case $zip in reports/sh-exit-*) ;; *) wrong "its name is $zip" ;; esac
expect_same 'the kind' exit "$(value "$zip" metadata.json .report_type)"
expect_same 'the end' '{"status":3}' "$(unzip -p "$zip" metadata.json | jq -c '.exit | del(.cpu_ms)')"
expect_same 'the description' 'exited with status 3: seen' "$(value "$zip" metadata.json .description)"
forget
run_command --on-failure=signal -- sh -c 'exit 3'
expect_status 3
run_command --on-failure=none -- sh -c 'kill -SEGV $$'
expect_status 139
run_command -- true
expect_status 0
expect_empty reports
run_command --on-failure=signal -- sh -c 'kill -INT $$'
expect_status 130
only_zip
expect_same 'a SIGINT that nobody passed on' SIGINT "$(value "$zip" metadata.json .exit.name)"
forget

fact 'a command that crashes in its first second has the metrics of what passed'
run_command -- python3 -c 'import os, time
while time.process_time() < 0.4: pass
os.abort()'
only_zip
expect_same 'the status' truncated "$(ledger "$zip" runtime-metrics.json status)"
expect_same 'the CPU' true "$(value "$zip" runtime-metrics.json '.process.cpu_percent > 5')"
forget

fact 'the window of a command that ended at once is its life, and the CPU time what it was charged'
run_command -- python3 -c 'import os, time
while time.process_time() < 0.055: pass
open("used", "w").write(str(time.process_time() * 1000))
os._exit(3)'
only_zip
expect_same 'the end' "$(value "$zip" metadata.json .triggered_at)" \
    "$(unzip -p "$zip" manifest.json | jq -r '.artefacts[] | select(.name == "runtime-metrics.json") | .covers.to')"
expect_same 'the window' true "$(value "$zip" runtime-metrics.json ".sample_window_ms <= .process.uptime_secs * 1000")"
# In ticks it might be 20 ms less.
expect_same 'the CPU' true "$(value "$zip" runtime-metrics.json \
    ".process.cpu_percent * (.sample_window_ms + 1) / 100 >= $(cat used) - 0.1")"
forget

fact 'a crash report tells what the command was when it began'
"$BUGPACK" run -o reports -- sh -c 'echo ready >&2; while [ ! -e go ]; do sleep 0.05; done; kill -SEGV $$' \
    >out 2>err </dev/null &
pid=$!
started="$started $pid"
await 'grep -q ready err'
touch go
wait "$pid"
only_zip
expect_same 'the command line' 'sh -c' \
    "$(value "$zip" process.json '.command_line[0:2] | join(" ")')"
expect_same 'the status' truncated "$(ledger "$zip" process.json status)"
ledger "$zip" process.json reason | grep -q 'has ended; this is how it was at 20' ||
    wrong 'the ledger does not tell the time'
forget

fact 'a signal that is sent to us is passed on, and is no crash'
start "$BUGPACK" run -o reports -- sh -c 'trap "echo got >told; exit 9" TERM; touch ready; while :; do sleep 0.1; done'
await "[ -e ready ]"
kill -TERM "$pid"
wait "$pid"
expect_same 'the status' 9 $?
await "[ -s told ]"
rm -f ready
start "$BUGPACK" run -o reports -- sh -c 'touch ready; exec sleep 60'
await "[ -e ready ]"
kill -TERM "$pid"
wait "$pid"
expect_same 'the status' 143 $?
expect_empty reports
rm -f ready

fact 'SIGUSR1 takes a report with the unfinished line and the descendants in it'
"$BUGPACK" run -o reports -- sh -c 'printf "a line\nhalf"; sleep 60 & echo $! >sleeper; wait' \
    >relayed 2>/dev/null </dev/null &
pid=$!
started="$started $pid"
await 'grep -qsx sleep "/proc/$(cat sleeper)/comm"'
# What was passed on has been recorded.
await 'grep -q half relayed'
kill -USR1 "$pid"
await '[ -n "$(ls reports)" ]'
kill -TERM "$pid"
wait "$pid"
only_zip
expect_same 'the messages' 'a line half' \
    "$(unzip -p "$zip" logs.jsonl | jq -r 'select(.channel == "stdout").message' | tr '\n' ' ' | sed 's/ $//')"
expect_same 'the threads' 'sh sleep' \
    "$(value "$zip" runtime-metrics.json '[.threads[].name] | sort | join(" ")')"
case $(ledger "$zip" stacks.json status) in
    # The shell may not wait yet.
    ok | truncated) expect_same 'the stacks' true "$(value "$zip" stacks.json '.threads | length >= 1')" ;;
    omitted) ;; # no libdw, or it may not be read
    *) wrong "the stacks are $(ledger "$zip" stacks.json status)" ;;
esac
forget

fact 'files are taken into the report'
echo '{"a": 1}' >session.json
run_command --session session.json --log input --attach x=noise --app named --description seen -- sh -c 'kill -ABRT $$'
expect_status 134
only_zip
case $zip in reports/named-crash-*) ;; *) wrong "its name is $zip" ;; esac
for entry in session.json logs/input x; do
    entries "$zip" | grep -qxF "$entry" || wrong "$entry is not in it"
done
expect_same 'the description' 'killed by signal 6 (Aborted): seen' "$(value "$zip" metadata.json .description | sed 's/, core dumped//')"
run show "$zip"
if grep -q stacks.txt out; then wrong "what an ended process cannot have is a finding: $(cat out)"; fi
grep -q ' omitted: ' out && wrong "what it cannot have is said one by one: $(cat out)"
run index "$zip"
holds 'has("deadlock") | not' out || wrong 'it says whether the dead process had a deadlock'
forget

fact 'a directory that takes no report is told before the command starts'
exits 1 run -o /proc -- touch started
expect_err '"/proc"'
[ ! -e started ] || wrong 'the command was started'

fact 'a crash report that cannot be written leaves the records, and a command that writes it'
mkdir -m 700 runtime
mkdir lost
XDG_RUNTIME_DIR=$scratch/runtime
export XDG_RUNTIME_DIR
exits 134 run -q -o lost -- sh -c 'echo last words; rmdir lost; kill -ABRT $$'
expect_err 'no report: '
expect_err "the records of the crash were kept in $scratch/runtime/bugpack/sh-"
expect_err 'bugpack recover -o DIR --app sh'
exits 0 recover --app sh -o reports "$scratch/runtime/bugpack" # others run a sh that dies, too
zip=$(cat out)
expect_same 'the last line' 'last words' "$(unzip -p "$zip" logs.jsonl | jq -r 'select(.channel == "stdout").message')"
expect_same 'the process' "$(value "$zip" metadata.json .target.pid)" "$(value "$zip" metadata.json .pid)"
expect_empty runtime/bugpack
unset XDG_RUNTIME_DIR
forget

fact 'with --quiet a written report is not told'
run_command -q -- sh -c 'kill -ABRT $$'
! grep -q report err || wrong 'it is told'
only_zip

finish
