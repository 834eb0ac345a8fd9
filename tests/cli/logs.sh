#!/bin/sh
# logs: the log records and log files of a report in one time line.
. "$(dirname "$0")/lib.sh"
need unzip jq python3 script
cd "$scratch" || exit 1

python3 - <<'END'
import json, zipfile

BAD = "\x1b]0;owned\x07\u202e"


def at(seconds):
    return "2026-11-22T10:00:%09.6fZ" % seconds


def record(seconds, level, message, channel=None):
    return json.dumps({"seq": 1, "time": at(seconds), "level": level, **({"channel": channel} if channel else {}),
                       "message": message}, separators=(",", ":")) + "\n"


def write(path, entries, trigger=at(30)):
    metadata = {"app": {"name": "a"}, **({"triggered_at": trigger} if trigger else {})}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as report:
        for name, text in {"metadata.json": json.dumps(metadata), **entries}.items():
            report.writestr(name, text)


LOGS = {
    "logs.jsonl": record(10, "info", "ten", "net") + record(20, "error", "twenty" + BAD, "net" + BAD) +
    record(29, "warn", "29\nand\tmore") + record(31, "debug", "31"),
    "logs/app.log": "header\n2026-11-22T11:00:15+01:00 ERROR failed:\n  at f\n\n  at g\n"
                    "2026-11-22T10:00:12Z INFO late\r\n2026-11-22T10:00:25Z plain \x9b" + BAD + "\n",
    "logs/local.log": "Nov 22 12:00:14 host app[1]: warning: one\nNov 22 12:00:26 host app[1]: two",
    "logs/app.jsonl": '{"ts":1795341618.5,"severity":"warn","t":0,"lvl":"error"}\nstack\n',
    "logs/none.log": b"free\ntext \xff" + BAD.encode() + b"\n",
    "logs/empty.log": "",
    "processes/7-child/logs.jsonl": record(11, "info", "of the child"),
    "processes/7-child/logs/c.log": "10:00:13.5 [trace] c\n",
    "notlogs/x.log": "2026-11-22T10:00:15Z no\n",
}
write("all.zip", LOGS)
write("ring.zip", {"logs.jsonl": LOGS["logs.jsonl"]})
write("untold.zip", LOGS, None)
write("nothing.zip", {"a.txt": ""})
write("odd.zip", {"logs.jsonl": b"}\n\xff\n[1]\n" + b'{"time":"' + at(1).encode() + b'","message":"x\n', "logs/nul.log": "a\0b\n\n"})
write("long.zip", {"logs/long.log": "x" * 65536 + "\n" + "y" * 65537 + "\n" + at(1) + " " + "z" * (5 << 20) + "\nend"})
write("many.zip", {f"logs/{i:02}.log": f"{at(i)} of {i}\n" for i in range(50)})
write("most.zip", {f"logs/{i:05}.log": "" if i else "x\n" * 1000000 for i in range(16000)})
write("bomb.zip", {f"logs/{i:02}.log": "x" * (5 << 20) for i in range(48)})
whole = open("ring.zip", "rb").read()
data = bytearray(whole)
data[data.index(b"logs.jsonl") + 30] ^= 0x10
open("damaged.zip", "wb").write(data)
END

fact 'logs are merged by time, and each line names its source'
exits 0 logs all.zip
for line in '2026-11-22T10:00:10.000000Z      -20.000 s info  logs.jsonl                   net: ten' \
    '2026-11-22T10:00:11.000000Z      -19.000 s info  processes/7-child/logs.jsonl of the child' \
    '2026-11-22T10:00:15.000000Z      -15.000 s error logs/app.log                 ERROR failed:' \
    '                                                 logs/app.log                   at f' \
    '2026-11-22T10:00:12.000000Z      -18.000 s info  logs/app.log                 INFO late' \
    '2026-11-22T12:00:14.000000Z    +7184.000 s warn  logs/local.log               host app[1]: warning: one' \
    '2026-11-22T10:00:18.500000Z      -11.500 s warn  logs/app.jsonl               {"ts":1795341618.5,"severity":"warn","t":0,"lvl":"error"}' \
    '2026-11-22T10:00:13.500000Z      -16.500 s trace processes/7-child/logs/c.log [trace] c'; do
    grep -qxF -e "$line" out || wrong "there is no '$line' in: $(cat out)"
done
if grep -q notlogs out; then wrong 'an entry beside logs/ is a log'; fi
expect_err '"logs/none.log" has no times: its lines come first'
expect_err 'times in "logs/local.log" have no year, and are taken to be of the year before the trigger'
expect_err 'times in "processes/7-child/logs/c.log" have no date'
expect_err 'times in "logs/local.log" have no zone, and are taken as UTC; see --zone'
if grep -q 'app.log\|empty' err; then wrong 'it says something of a log that is complete'; fi

fact 'the order is that of the times, and within one log that of the log'
exits 0 logs --json --zone +02:00 all.zip
if grep -q zone err; then wrong 'it still says that there is no zone'; fi
expect_same 'the messages' 'header free text [trace] ten of host ERROR at at INFO {"ts":1795341618.5,"severity":"warn","t":0,"lvl":"error"} stack twenty plain host 29 31 ' \
    "$(jq -r '.message | split("\n")[0] // "" | ltrimstr("  ") | split("\u001b")[0] // "" | split(" ")[0] // empty' out | tr '\n' ' ')"
expect_same 'the seconds' '-7216.5 -20 -19' \
    "$(jq -r 'select(.message | test("trace|^ten|child")) | .from_trigger_secs' out | tr '\n' ' ' | sed 's/ $//')"
expect_same 'what continues' '3 1' "$(jq -s -r '[map(select(.continues)) | group_by(.source)[] | length] | sort | reverse | map(tostring) | join(" ")' out)"
expect_same 'the level of what continues' error "$(jq -r 'select(.continues and .source == "logs/app.log") | .level' out | sort -u)"
expect_same 'a message' '"29\nand\tmore"' "$(jq -c 'select(.message | startswith("29")) | .message' out)"

fact '--json matches its schema'
cp out lines
timeout 60 "$BUGPACK" logs --json long.zip >>lines 2>/dev/null
expect_schema log-lines.jsonl lines

fact 'lines are chosen by level, channel, expression and time'
messages() {
    timeout 60 "$BUGPACK" logs --json "$@" 2>err | jq -r '.message | split("\n")[0] // "" | split("\u001b")[0] // ""' | tr '\n' '|'
}
expect_same 'the level' 'twenty|29|' "$(messages --level warn ring.zip)"
expect_same 'the channel' 'ten|' "$(messages --channel net ring.zip)"
expect_same 'the expression' 'ten|twenty|' "$(messages --grep '^t(en|w)' ring.zip)"
expect_same 'the time' '29|31|' "$(messages --since 2026-11-22T10:00:21Z ring.zip)"
expect_same 'the time in a zone' '29|31|' "$(messages --since 2026-11-22T12:00:21+02:00 ring.zip)"
expect_same 'the time in the zone that is given' '29|31|' \
    "$(messages --since 2026-11-22T12:00:21 --zone +02:00 ring.zip)"
expect_same 'what is later than 1970' "$(messages --since 9000d ring.zip)" "$(messages --since 9000000d ring.zip)"
expect_same 'the duration' 'twenty|29|31|' "$(messages --since 10s ring.zip)"
expect_same 'all of it' '29|' "$(messages --since 5s --level warn --grep 9 ring.zip)"
expect_same 'lines that continue' 'ERROR failed:|  at f||  at g|' "$(messages --grep failed all.zip)"
expect_same 'a line that continues' '  at g|' "$(messages --grep 'at g' all.zip)"
messages --since 5s all.zip >/dev/null
expect_err '3 lines without a time were left out'
messages --level trace all.zip >/dev/null
expect_err '5 lines without a level were left out'

fact 'no byte of a log reaches a terminal as a control, and levels have colours there'
run logs all.zip
if LC_ALL=C grep -q '[^ -~]' out; then wrong 'there are control bytes in a pipe'; fi
for arguments in '' --json; do
    TERM=xterm script -qec "'$BUGPACK' logs $arguments all.zip" /dev/null </dev/null 2>&1 >typed
    sed 's/\x1b\[[0-9;]*m//g; s/\r//g; s/\xe2\x80\xae//g; s/\xee\xbf\xbf//g' typed >text
    if LC_ALL=C grep -q '[^ -~]' text; then wrong "there are control bytes on a terminal: $(cat -v text)"; fi
done
TERM=xterm script -qec "'$BUGPACK' logs all.zip" /dev/null </dev/null >typed 2>&1
grep -q "$(printf '\033')\[31m2026-11-22T10:00:20" typed || wrong 'there is no colour'
TERM=xterm NO_COLOR=1 script -qec "'$BUGPACK' logs all.zip" /dev/null </dev/null >typed 2>&1
if grep -q "$(printf '\033')" typed; then wrong 'NO_COLOR is not honoured'; fi

fact 'without a time of the trigger, what does not need it works'
exits 0 logs untold.zip
grep -qF '2026-11-22T10:00:10.000000Z info  logs.jsonl' out || wrong "it is $(cat out)"
expect_err '"logs/local.log" has no times'
exits 1 logs --since 5s untold.zip
expect_err '"untold.zip" does not say when it was triggered'
exits 1 logs nothing.zip
expect_err 'there is no log in "nothing.zip"'

fact 'what is no record is shown as it is'
exits 0 logs odd.zip
expect_same 'the lines' '}|\xff|[1]|a\x00b||{"time":"2026-11-22T10:00:01.000000Z","message":"x|' \
    "$(sed 's/^.*logs[./][a-z.]* *//' out | tr '\n' '|')"

fact 'a long line is cut, and said'
exits 0 logs --json long.zip
expect_same 'the lengths' '65536 65536 cut 65536 cut 3' \
    "$(jq -r '[(.message | length), (if .cut then "cut" else empty end)] | map(tostring) | join(" ")' out | sed 's/^655[0-9]*/65536/' | tr '\n' ' ' | sed 's/ $//')"
expect_err '2 lines of "logs/long.log" are over 65536 bytes, and were cut'

fact 'a damaged, a large and a further log is named, and the others are shown'
exits 3 logs damaged.zip
expect_err '"damaged.zip" is damaged: entry "logs.jsonl"'
exits 3 logs --max-bytes 400 all.zip
expect_err '"logs.jsonl" is not read: its'
grep -q 'ERROR failed' out || wrong "the others are not shown: $(cat out)"
exits 3 logs many.zip
expect_err '"logs/48.log" is not read: at most 48 logs are'
expect_same 'the lines' 48 "$(wc -l <out | tr -d ' ')"
exits 3 logs --max-bytes 100 many.zip
expect_same 'the lines of three logs of 33 bytes' 3 "$(wc -l <out | tr -d ' ')"
exits 3 logs --level info most.zip
exits 1 logs out

fact 'the memory is that of a line for each log'
# shellcheck disable=SC2016
kb=$(python3 -c '
import os, sys
child = os.spawnvp(os.P_NOWAIT, "sh", ["sh", "-c", "exec \"$0\" logs bomb.zip >/dev/null 2>&1", sys.argv[1]])
_, status, usage = os.wait4(child, 0)
print(usage.ru_maxrss if status == 0 else status)' "$BUGPACK")
# Sanitizers take more.
if [ "$kb" -lt 1000 ] || { [ "$kb" -gt 65536 ] && [ -z "${LSAN_OPTIONS:-}" ]; }; then
    wrong "it takes $kb KiB"
fi

fact 'the command line is checked'
expect_misuse 'a report is missing' logs
expect_misuse "--level takes trace, debug, info, warn, error or fatal, not 'loud'" logs --level loud ring.zip
expect_misuse "--grep '('" logs --grep '(' ring.zip
since='--since takes a date and time such as 2026-11-21T00:36:51Z, or how long before the trigger, such as 500ms, 30s or 2h'
expect_misuse "$since, not 'yesterday'" logs --since yesterday ring.zip
expect_misuse "$since, not '-5s'" logs --since -5s ring.zip
expect_misuse "--zone takes a zone such as Z or +01:00, not 'CET'" logs --zone CET ring.zip

fact 'a reader that goes away ends it'
{ timeout 60 "$BUGPACK" logs long.zip 2>err; echo $? >status; } | head -c 1 >/dev/null
expect_same 'the status' 1 "$(cat status)"

# They are not ours.
rm -f ./*.zip
finish
