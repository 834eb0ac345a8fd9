#!/bin/sh
# bugpack watch and run --hang-after, with a process that becomes what it is told to.
. "$(dirname "$0")/lib.sh"
: "${WATCH_TARGET:?name the process to watch}"
need jq
cd "$scratch" || exit 1
mkdir reports
events=$scratch/events
mkfifo orders

# tell WORDS: what the target is to become.
tell() {
    echo "$*" >orders
}

begin_target() {
    start "$WATCH_TARGET" orders
    target=$pid
}

end_target() {
    kill -KILL "$target" 2>/dev/null
    wait "$target" 2>/dev/null
    rm -f reports/*
}

# watch ARGUMENT...: in the background; its events are in $events.
watch() {
    : >"$events"
    "$BUGPACK" watch --json --output-dir reports "$@" >"$events" 2>err </dev/null &
    watcher=$!
    started="$started $watcher"
}

# event FILTER: the first event for which it is true.
event() {
    jq -c "select($1)" "$events" 2>/dev/null | head -n 1
}

await_event() {
    await "[ -n \"\$(event '$1')\" ]"
}

# end_watch [SIGNAL]: waits for its end.
end_watch() {
    [ $# -eq 0 ] || kill "-$1" "$watcher"
    [ "$failures" -eq 0 ] || kill -KILL "$watcher" # it may wait for ever
    wait "$watcher"
    status=$?
}

# The report of the first event: its path is in `zip`.
take_report() {
    await_event '.event == "report"'
    zip=$(event '.event == "report"' | jq -r .path)
    [ -f "$zip" ] || wrong "there is no report $zip"
}

# becomes CONDITION SUBJECT ORDERS: nothing is reported before, and one report after.
becomes() {
    begin_target
    watch --pid "$target" --max 1 --when "$1"
    await_event '.event == "target-found"'
    told=$(date -u +%Y-%m-%dT%H:%M:%S.%6NZ)
    tell "$3"
    take_report
    end_watch
    expect_status 0
    seen=$(event '.event == "true"' | jq -r .time)
    expect_same 'the order' "$told" "$(printf '%s\n' "$told" "$seen" | sort | head -n 1)"
    expect_same 'the condition' "$1" "$(value "$zip" metadata.json .condition.text)"
    expect_same 'the kind' condition "$(value "$zip" metadata.json .report_type)"
    [ "$(value "$zip" manifest.json '.artefacts[] | select(.name == "metrics-history.jsonl")
        | .status == "ok" or (.reason | length > 0)')" = true ] || wrong 'nothing says why there is no history'
    expect_like 'the name' '*/watch_target-condition-'"$2"'-20*.zip' "$zip"
    exits 0 show "$zip"
    grep -A2 '^Findings' out | grep -qF "the condition \"$1\" became true: " ||
        wrong "show does not begin with it: $(head -n 12 out)"
    expect_same 'the events' 'watching target-found true report done' \
        "$(jq -r .event "$events" | tr '\n' ' ' | sed 's/ $//')"
}

fact 'CPU time'
becomes 'cpu > 5' cpu spin
found=$(value "$zip" metadata.json .condition.value)
awk "BEGIN { exit !($found > 5 && $found < 110) }" || wrong "it is $found per cent"
end_target

fact 'CPU time for a while, and the history before it'
becomes 'cpu > 2 for 3s' cpu spin
[ "$(value "$zip" metadata.json '.condition.lasted_ms >= 3000')" = true ] || wrong 'it was too short'
[ "$(value "$zip" metrics-history.jsonl .cpu_percent | wc -l)" -ge 1 ] || wrong 'there is no history'
end_target

fact 'memory'
becomes 'rss > 100M' rss 'hold 120'
found=$(value "$zip" metadata.json .condition.value)
awk "BEGIN { exit !($found > 104857600 && $found < 209715200) }" || wrong "it is $found bytes"
end_target

fact 'memory that grows, from the first look on'
begin_target
watch --pid "$target" --max 2 --cooldown 0 --when 'threads > 0' --when 'rss grows 50M in 1min'
take_report
tell hold 60
end_watch
expect_status 0
zip=$(find reports -name '*-condition-rss-*.zip')
expect_same 'the time' 60000 "$(value "$zip" metadata.json .condition.within_ms)"
end_target

fact 'threads'
becomes 'threads > 40' threads 'threads 50'
expect_same 'the value' 51 "$(value "$zip" metadata.json .condition.value)"
end_target

fact 'descriptors, which the history counts each second'
becomes 'fds > 100 for 2s' fds 'open 150'
[ "$(value "$zip" metrics-history.jsonl 'select(.threads == null and .file_count > 150) | .interval_ms' | wc -l)" -ge 2 ] ||
    wrong "the history is $(unzip -p "$zip" metrics-history.jsonl)"
found=$(value "$zip" metadata.json .condition.value)
expect_same 'the value' "$(find "/proc/$target/fd" -type l | wc -l)" "$found"
end_target

fact 'a process that was stopped'
becomes 'state = T for 1s' state stop
end_target

fact 'one that does not answer to signals'
becomes 'state = D for 1s' state fork
kill "$(cat "/proc/$target/task/$target/children")"
end_target

fact 'one that does nothing any more'
begin_target
tell spin
watch --pid "$target" --max 1 --when 'idle for 1s'
await_event '.event == "target-found"'
tell rest
take_report
end_watch
expect_status 0
end_target

fact 'a line of a log, also after its rotation and a truncation'
begin_target
echo 'PANIC 1: long ago' >log
watch --pid "$target" --cooldown 0 --max 3 --when 'log /PANIC \d/' --log log
await_event '.event == "target-found"'
echo 'PANIC 2: now' >>log
await "[ \$(jq -r 'select(.event == \"report\").path' '$events' | wc -l) -ge 1 ]"
mv log log.1
echo 'PANIC 3: rotated' >log
await "[ \$(jq -r 'select(.event == \"report\").path' '$events' | wc -l) -ge 2 ]"
echo 'PANIC 4' >log
end_watch
expect_status 0
take_report
expect_same 'the record' 'PANIC 2: now' \
    "$(value "$zip" logs.jsonl 'select(.seq == '"$(value "$zip" metadata.json .condition.log_seq)"').message')"
expect_same 'the records' 3 "$(jq -r 'select(.event == "true").found' "$events" | sort -u | wc -l | tr -d ' ')"
end_target

fact 'the history has a sample a second also where the log alone is watched'
: >log
begin_target
watch --pid "$target" --cooldown 0 --max 1000 --when 'log /PANIC \d/' --log log
await_event '.event == "target-found"'
await "echo 'PANIC 5' >>log
    newest=\$(jq -r 'select(.event == \"report\").path' '$events' | tail -n 1) && [ -n \"\$newest\" ] &&
    [ \$(unzip -p \"\$newest\" metrics-history.jsonl | jq 'select(.threads == null) | .rss_kb' | wc -l) -ge 2 ]"
end_watch TERM
expect_status 0
rm -rf reports/*
end_target

fact 'what is true within the cool-down is said and leads to no report'
begin_target
watch --pid "$target" --when 'threads > 40' --when 'fds > 100'
await_event '.event == "target-found"'
tell threads 50
take_report
tell open 150
await_event '.event == "true" and .reported == false'
end_watch TERM
expect_status 0
expect_same 'the reports' 1 "$(find reports -type f | wc -l | tr -d ' ')"
end_target

fact 'a signal ends it at once, and leaves nothing'
for signal in INT TERM; do
    begin_target
    # In the background a shell lets a program ignore SIGINT.
    : >"$events"
    env --default-signal=INT "$BUGPACK" watch --json --output-dir reports --pid "$target" \
        --when 'threads > 40' >"$events" 2>err </dev/null &
    watcher=$!
    started="$started $watcher"
    await_event '.event == "target-found"'
    end_watch $signal
    expect_status 0
    expect_same 'the last event' 'done' "$(jq -r .event "$events" | tail -n 1)"
    expect_empty reports
    end_target
done

fact 'the end of a process by id ends the watch'
begin_target
watch --pid "$target" --when 'threads > 40'
await_event '.event == "target-found"'
end_target
end_watch
expect_status 4
expect_same 'the events' 'watching target-found target-ended done' \
    "$(jq -r .event "$events" | tr '\n' ' ' | sed 's/ $//')"

fact 'a report that could not be written is said, and counts as none'
: >log
begin_target
watch --pid "$target" --cooldown 0 --max 1 --when 'log /PANIC \d/' --log log
await_event '.event == "target-found"'
mv reports away
echo 'PANIC 1' >>log
await_event '.event == "report-failed"'
mv away reports
echo 'PANIC 2' >>log
take_report
end_watch
expect_status 0
watch --pid "$target" --cooldown 0 --max 1 --when 'log /PANIC \d/' --log log
await_event '.event == "target-found"'
mv reports away
echo 'PANIC 3' >>log
await_event '.event == "report-failed"'
mv away reports
end_watch TERM
expect_status 1
end_target

fact 'a process by name is waited for, and again after each end'
cp "$WATCH_TARGET" "named$$"
WATCH_TARGET_BEFORE=$WATCH_TARGET
WATCH_TARGET=$scratch/named$$
watch --name "named$$" --max 2 --cooldown 0 --when 'threads > 40'
await_event '.event == "watching"'
for turn in 1 2; do
    begin_target
    await_event ".event == \"target-found\" and .pid == $target"
    tell threads 50
    await "[ \$(jq -r 'select(.event == \"report\").path' '$events' | wc -l) -ge $turn ]"
    kill -KILL "$target"
    wait "$target" 2>/dev/null
done
end_watch
expect_status 0
WATCH_TARGET=$WATCH_TARGET_BEFORE
rm -f reports/*

fact 'conditions that come true at once lead to no more reports than asked for, over all targets'
WATCH_TARGET=$scratch/named$$
watch --name "named$$" --max 3 --cooldown 0 --when 'threads > 0' --when 'fds > 0'
for turn in 2 3; do
    begin_target
    await "[ \$(jq -r 'select(.event == \"report\").path' '$events' | wc -l) -ge $turn ]"
    kill -KILL "$target"
    wait "$target" 2>/dev/null
done
end_watch
expect_status 0
expect_same 'the reports' 3 "$(find reports -type f | wc -l | tr -d ' ')"
rm -f reports/*

fact 'the cool-down holds for the next process of the name'
watch --name "named$$" --max 2 --when 'threads > 0'
begin_target
take_report
kill -KILL "$target"
wait "$target" 2>/dev/null
begin_target
await_event ".event == \"target-found\" and .pid == $target"
exits 0 watch --pid "$target" --max 1 --when 'threads > 0 for 2s' --output-dir . # we would have looked by then
kill -KILL "$target"
wait "$target" 2>/dev/null
await_event ".event == \"target-ended\" and .pid == $target" # then all its reports are written
end_watch TERM
expect_same 'the reports' 1 "$(find reports -type f | wc -l | tr -d ' ')"
rm -f reports/*
WATCH_TARGET=$WATCH_TARGET_BEFORE

fact 'lines of the journal are followed, and a report without its entry is incomplete'
mkdir bin
cat >bin/journalctl <<'EOF'
#!/bin/sh
case "$*" in
*--follow*'--unit nginx'*) echo 'PANIC 7' && exec sleep 1000 ;;
*) echo 'no such unit' >&2 && exit 1 ;;
esac
EOF
chmod +x bin/journalctl
begin_target
old_path=$PATH
PATH=$scratch/bin:$PATH
watch --pid "$target" --max 1 --when 'log /PANIC \d/' --journal nginx
PATH=$old_path
end_watch
expect_status 3
take_report
expect_same 'the record' 'PANIC 7' \
    "$(value "$zip" logs.jsonl 'select(.seq == '"$(value "$zip" metadata.json .condition.log_seq)"').message')"
end_target

fact 'without --json the path is printed, and what happens is said'
begin_target
tell threads 50
exits 0 watch --pid "$target" --max 1 --when 'threads > 40' --output-dir reports
expect_err 'threads > 40: 51'
[ -f "$(cat out)" ] || wrong "there is no report $(cat out)"
run watch --pid "$target" --max 1 --when 'threads > 40' --output-dir reports --quiet
expect_no_err
end_target

fact 'a process and its children are counted together'
begin_target
# shellcheck disable=SC2016 # it is the script of another shell
start sh -c 'while :; do :; done & echo $! >spinner; wait'
await '[ -s spinner ]'
exits 0 watch --pid "$pid" --children --max 1 --when 'cpu > 5' --output-dir reports
kill "$(cat spinner)"
end_target

fact 'refuses what it does not understand'
expect_misuse "condition 'memory > 2G' does not begin with cpu, rss" watch --pid $$ --when 'memory > 2G'
expect_misuse "'lots' is no number of bytes; write it as rss > 2G" watch --pid $$ --when 'rss > lots'
expect_misuse "option '--when' is missing" watch --pid $$
expect_misuse 'a target is missing: --pid, --name, --unit or --cgroup' watch --when 'rss > 2G'
expect_misuse 'needs --log FILE, --journal UNIT or --unit' watch --pid $$ --when 'log /x/'
expect_misuse 'exclude each other' watch --pid $$ --name x --when 'rss > 2G'
expect_misuse '--max takes a number from 1' watch --pid $$ --when 'rss > 2G' --max 0
exits 4 watch --pid 2147483647 --when 'rss > 2G'
exits 1 watch --pid $$ --when 'rss > 2G' --output-dir /nowhere/at/all
exits 1 watch --pid $$ --when 'log /x/' --log orders

fact 'run --hang-after reports a command that does nothing, and lets it go on'
mkdir hangs
"$BUGPACK" run --hang-after 1s --output-dir hangs -- "$WATCH_TARGET" orders >ran 2>err </dev/null &
runner=$!
started="$started $runner"
tell say begun
await 'grep -q begun ran'
# shellcheck disable=SC2016 # await expands it
await '[ -n "$(find hangs -name "*-condition-idle-*.zip")" ]'
tell say still here
await 'grep -q "still here" ran'
tell end
wait $runner
expect_same 'the exit status' 0 $?
zip=$(find hangs -name '*-condition-idle-*.zip')
expect_same 'the condition' 'idle for 1000ms' "$(value "$zip" metadata.json .condition.text)"
expect_err 'report written: '

fact 'output without an end of line is no silence'
rm -f hangs/*
"$BUGPACK" run --hang-after 2s --output-dir hangs -- \
    sh -c "for i in $(seq -s ' ' 35); do printf .; sleep 0.1; done" >ran 2>err </dev/null
expect_same 'the exit status' 0 $?
expect_empty hangs

if { [ -d "${UNITS:-}" ] && command -v systemd-analyze >/dev/null 2>&1; } ||
    not_tried 'systemd-analyze is not installed'; then
    fact 'systemd accepts the units, and finds little that they may do'
    cp -R "$UNITS" units
    # Where the command would be installed; an instance of each template.
    sed -i "s|=[^ ]*/bugpack |=$BUGPACK |" units/*.service
    for unit in units/*@.*; do
        cp "$unit" "$(echo "$unit" | sed 's/@/@machine/')"
        rm "$unit"
    done
    systemd-analyze verify --man=no units/*.service units/*.timer >out 2>&1 || wrong "$(cat out)"
    ! grep -F bugpack- out || wrong "$(cat out)"
    for unit in units/*.service; do
        systemd-analyze security --offline=true --threshold=20 "$unit" >out 2>&1 ||
            wrong "$(tail -n 1 out)"
    done
fi

finish
