#!/bin/sh
# An unmodified program of Debian's, redis, whose log lines become gaps: one report a distinct key.
# shellcheck disable=SC2016 # await and the commands expand it
. "$(dirname "$0")/lib.sh"
need unzip jq redis-server redis-cli
cd "$scratch" || exit 1
mkdir reports # gaps is made by the first run

fact 'a server under bugpack run answers, and each distinct line that matches gives one report'
start "$BUGPACK" run -o reports --pedantic-dir gaps --gap-pattern 'Accepted 127[.]0[.]0[.]1:([0-9])' \
    --gap-pattern '(Bad directive)' --gap-pattern '(Client closed) connection' -- \
    redis-server --port 0 --unixsocket "$scratch/socket" --save '' --loglevel verbose --daemonize no
await '[ "$(redis-cli -s socket ping 2>/dev/null)" = PONG ]'
for _ in 1 2 3 4 5; do
    expect_same 'the answer' PONG "$(redis-cli -s socket ping)"
done
redis-cli -s socket shutdown nosave >/dev/null 2>&1
wait "$pid"
expect_same 'the status' 0 $?
expect_same 'the mode of the directory' 700 "$(stat -c %a gaps)"
set -- gaps/*.zip
expect_same 'the number of reports' 1 $#
expect_same 'the key' 'stdout:line:Client closed' "$(value "$1" metadata.json .gap_key)"
unzip -p "$1" logs.jsonl | jq -r .message | grep -q 'Client closed connection' ||
    wrong 'the line is not in the log'

fact 'two keys give two reports, however often'
rm -f gaps/*
exits 0 run -o reports --pedantic-dir gaps --gap-pattern 'gap ([a-z:]+)' -- \
    sh -c 'for i in 1 2 3 4 5; do echo "gap display:unimpl:rop"; echo "gap b" >&2; done'
expect_same 'the keys' 'display:unimpl:rop stderr:line:b' \
    "$(for zip in gaps/*.zip; do value "$zip" metadata.json .gap_key; done | sort | tr '\n' ' ' | sed 's/ $//')"

fact 'with --pedantic alone, the reports are among the others'
exits 0 run -o reports --pedantic -- echo 'unsupported: x'
expect_same 'the key' 'stdout:line:unsupported: x' "$(value reports/*-pedantic-stdout*.zip metadata.json .gap_key)"

fact 'a directory for gaps does not say that they are reported'
expect_misuse '--pedantic-dir needs --pedantic' run -o reports --pedantic-dir gaps -- true

finish
