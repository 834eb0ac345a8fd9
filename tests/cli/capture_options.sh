#!/bin/sh
# What each option of capture brings into the report.
. "$(dirname "$0")/lib.sh"
need unzip jq
start sleep 300
target=$pid
cd "$scratch" || exit 1

fact 'a plain capture holds exactly what it should, in order, the ledger last'
captures 0 --window 50ms
expect_no_err
expect_same 'the list of entries' 'metadata.json runtime-metrics.json process.json threads.json files.json system.json manifest.json ' \
    "$(entries "$zip" | grep -v "^stacks" | tr '\n' ' ')"
expect_same 'the number of lines on standard output' 1 "$(wc -l <out | tr -d ' ')"

fact 'a report is named after the process, what it is and the time in UTC'
echo "$zip" |
    grep -Eq '/reports/sleep-bugreport-[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}-[0-9]{2}-[0-9]{2}Z(-[0-9]+)?\.zip$' ||
    wrong "it is called $zip"

fact 'the metadata say what was captured'
expect_same 'the target' "$target sleep" \
    "$(value "$zip" metadata.json '"\(.target.pid) \(.target.name)"')"
expect_same 'the process' "$target" "$(value "$zip" metadata.json .pid)"
own=$(value "$zip" metadata.json .collector.pid)
[ "$own" != "$target" ] || wrong "the collector is the target"
expect_same 'the type' bugreport "$(value "$zip" metadata.json .report_type)"
expect_same 'a description that nobody gave' null "$(value "$zip" metadata.json .description)"

fact 'the uptimes are those of the target, as ps tells them'
# ps cuts the time since boot, and the time of boot, to seconds.
started=$(ps -o lstart= -p "$target")
stated=$(value "$zip" metadata.json '.started_at[:19] + "Z" | fromdate')
apart=$((stated - $(date -d "$started" +%s)))
case $apart in
    -1 | 0 | 1) ;;
    *) wrong "it started $apart s after what ps says" ;;
esac
elapsed=$(ps -o etimes= -p "$target" | tr -d ' ')
expect_same 'the uptimes' true \
    "$(value "$zip" metadata.json ".session_uptime_secs <= $elapsed + 1 and
        .session_uptime_secs > .collector.session_uptime_secs and
        .triggered_uptime_secs <= .session_uptime_secs")"
expect_same 'the start in process.json' "$stated" \
    "$(value "$zip" process.json '.started_at[:19] + "Z" | fromdate')"
capture_old=$(value "$zip" metadata.json .session_uptime_secs)
capture --window 50ms
expect_same 'the uptime grows' true \
    "$(value "$zip" metadata.json ".session_uptime_secs > $capture_old")"

fact 'the ledger has a line for each entry and each one left out, and calls the report complete'
expect_same 'complete' true "$(value "$zip" manifest.json .complete)"
expect_same 'the names' "$(entries "$zip" | grep -v '^manifest' | tr '\n' ' ')" \
    "$(value "$zip" manifest.json '.artefacts[] | select(.status != "omitted").name' |
        tr '\n' ' ')"

fact 'logs, session and attachments take their places'
echo 'one line' >a.log
printf '{"b":[1,2],"a":"x"}' >state.json
echo note >note.txt
captures 0 --attach note.txt --attach deep/er.txt=note.txt --log a.log --session state.json
expect_no_err
expect_same 'the list of entries' 'metadata.json runtime-metrics.json process.json threads.json files.json system.json session.json logs/a.log note.txt deep/er.txt manifest.json ' \
    "$(entries "$zip" | grep -v "^stacks" | tr '\n' ' ')"
expect_same 'the log' 'one line' "$(unzip -p "$zip" logs/a.log)"
expect_same 'the attachment' note "$(unzip -p "$zip" deep/er.txt)"
expect_same 'the session' '{"b":[1,2],"a":"x"}' "$(unzip -p "$zip" session.json | jq -c .)"

fact 'names that are taken get a number before the extension'
mkdir -p one two
echo 1 >one/a.log
echo 2 >two/A.log
captures 0 --log a.log --log one/a.log --log two/A.log --attach x.y=note.txt --attach x.y=note.txt \
    --attach plain=note.txt --attach PLAIN=note.txt
expect_same 'the list of entries' 'logs/a.log logs/a-2.log logs/A-3.log x.y x-2.y plain PLAIN-2 ' \
    "$(entries "$zip" | grep -v -e json -e "^stacks" | tr '\n' ' ')"
expect_same 'the second log' 1 "$(unzip -p "$zip" logs/a-2.log)"

fact 'a path with an equals sign is attached by giving it a name'
echo odd >'a=b'
captures 0 --attach "odd=a=b"
expect_same 'the attachment' odd "$(unzip -p "$zip" odd)"

fact '--app names the report, and keeps it a plain file name'
captures 0 --app 'my app/../x:y'
expect_like 'the name' 'my-app-..-x-y-bugreport-*' "$(basename "$zip")"
expect_same 'the name in the metadata' 'my app/../x:y' "$(value "$zip" metadata.json .app.name)"

fact '--description is kept to the byte'
text=$(printf 'hangs, "badly"\n\ttwice \303\274')
captures 0 --description "$text"
expect_same 'the description' "$text" "$(value "$zip" metadata.json .description)"

fact '--json prints one object, and nothing else'
captures 0 --json
expect_no_err
expect_same 'the keys' 'path complete missing bytes ' "$(jq -r 'keys_unsorted[]' out | tr '\n' ' ')"
zip=$(jq -r .path out)
expect_same 'the size' "$(stat -c %s "$zip")" "$(jq .bytes out)"
expect_same 'complete and missing' 'true 0' "$(jq -r '"\(.complete) \(.missing)"' out)"
captures 3 --json --log nowhere.log
expect_same 'complete and missing' 'false 1' "$(jq -r '"\(.complete) \(.missing)"' out)"

fact '--quiet keeps warnings back, and the exit status tells all the same'
captures 3 --quiet --log nowhere.log
expect_no_err
captures 4 -q --pid 999999999
expect_err 'bugpack: '

fact 'the window is as long as was asked for'
exits 0 capture --pid "$target" -o reports --window 0
# Over the default, so that it cannot be that.
exits 0 capture --pid "$target" -o reports --window 2100ms
window=$(value "$(cat out)" runtime-metrics.json .sample_window_ms)
[ "$window" -ge 2100 ] || wrong "it was $window ms"

fact 'long options may be shortened and joined to their value, and the last one counts'
exits 0 capture --pi="$target" --win=600 --win=1ms --output-d=reports
expect_same 'the target' "$target" "$(value "$(cat out)" metadata.json .target.pid)"

fact 'without a directory the report goes to the current one'
mkdir current
(cd current && timeout 60 "$BUGPACK" capture --pid "$target" --window 0 >../out 2>../err)
expect_status 0 $?
[ -f "current/$(basename "$(cat out)")" ] || wrong "it is not there: $(cat out)"

fact 'a report that is not done in time is given up, with a status of its own'
mkdir late
exits 5 capture --pid "$target" -o late --window 20 --timeout 1
expect_no_out
expect_err 'bugpack: '
expect_empty late

finish
