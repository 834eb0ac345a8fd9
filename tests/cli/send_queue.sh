#!/bin/sh
# bugpack send --queue: reports that wait, what is tried again and when, consent, bounds, one sender.
# shellcheck disable=SC2016,SC2034 # what await runs; names for lib.sh
. "$(dirname "$0")/lib.sh"
need python3 jq unzip
cd "$scratch" || exit 1
unset http_proxy https_proxy HTTPS_PROXY all_proxy ALL_PROXY no_proxy NO_PROXY
export HOME="$scratch" XDG_CONFIG_HOME="$scratch/config" XDG_STATE_HOME="$scratch/state"
mkdir -p config/bugpack inbox server
queue=state/bugpack/queue
start sleep 1000
target=$pid
for name in one two three; do
    capture --window 0
    mv "$zip" $name.zip
done
id=$(value one.zip metadata.json .report_id)
start python3 "$source_dir/tests/support/report_server.py" "$scratch/server"
await '[ -s server/port ]'
http=http://127.0.0.1:$(cat server/port)
"$BUGPACK" send -y --to "$http/put/x" one.zip >out 2>err || ! grep -q libcurl err || skip "$(cat err)"

# configure TEXT: the configuration.
configure() {
    printf '%s\n' "$1" >config/bugpack/send.conf
    chmod 600 config/bugpack/send.conf
}
# destination NAME URL [LINE...]: one that needs no question, unless a line says so.
destination() {
    printf '[destination "%s"]\nurl = %s\nconsent = always\n' "$1" "$2"
    shift 2
    printf '%s\n' "$@"
}
# posts_to PATH [LINE...]: the destination s is this path of the server.
posts_to() {
    post_path=$1
    shift
    configure "$(destination s "$http/$post_path" 'method = POST' "$@")"
}
# queued NAME: how many reports wait for it.
queued() {
    find "$queue/$1" -name '*.zip' | wc -l
}
# sidecar NAME FILTER: of the one report that waits for it.
sidecar() {
    jq -r "$2" "$queue/$1"/*.zip.json
}
# expect_wait SHORTEST LONGEST TIME: the time is so many seconds from now.
expect_wait() {
    wait=$(($3 - $(date +%s)))
    if [ "$wait" -le "$1" ] || [ "$wait" -gt "$2" ]; then
        wrong "it waits for $wait seconds"
    fi
}
# requests: how many the server has had.
requests() {
    wc -l <server/requests
}

fact 'a report is sent at once, and leaves the queue, not its place'
configure "$(destination dir "$scratch/inbox")"
exits 0 send --queue --to dir one.zip
expect_same 'what is printed' "$scratch/inbox/one.zip" "$(cat out)"
cmp -s one.zip inbox/one.zip || wrong 'it differs'
expect_same 'the queue' 0 "$(queued dir)"
[ -f one.zip ] || wrong 'the report has gone'
expect_same 'the modes' '700 700' "$(stat -c %a $queue $queue/dir | tr '\n' ' ' | sed 's/ $//')"

fact 'on a terminal a bar names the report that is sent, also where the command names none'
configure "$(destination dir "$scratch/inbox" 'consent = ask')"
exits 3 send --queue --to dir one.zip two.zip
TERM=xterm timeout 60 python3 "$source_dir/tests/support/answer.py" n "$BUGPACK" send --queue --yes >out 2>err </dev/null
expect_status 0 $?
expect_out 'one.zip: 100 % of '
expect_out 'two.zip: 100 % of '
expect_same 'the queue' 0 "$(queued dir)"

fact 'what does not arrive waits, from a quarter of an hour on, and is in the queue once'
posts_to status/500
exits 3 send --queue --to s one.zip
expect_err 's: one.zip: the server answered 500; again after '
expect_same 'the sidecar' '1 the server answered 500 false' "$(sidecar s '"\(.attempts) \(.last_answer) \(.stopped)"')"
expect_wait 840 1800 "$(sidecar s .next_time)"
count=$(requests)
exits 3 send --queue --to s one.zip
expect_err '1 report in the queue waits for another attempt'
exits 3 send --queue --json
expect_same 'the event' 'deferred one.zip s 1 the server answered 500' \
    "$(jq -r '"\(.event) \(.path) \(.destination) \(.attempts) \(.error)"' out)"
cat out >>events.jsonl
expect_same 'the requests' "$count" "$(requests)"
expect_same 'the queue' 1 "$(queued s)"
exits 3 send --queue --retry
expect_same 'the attempts' 2 "$(sidecar s .attempts)"
expect_wait 1740 3600 "$(sidecar s .next_time)"

fact 'it arrives when the server is back, with the same key'
posts_to post
exits 0 send --queue --retry --json
expect_same 'the event' "sent one.zip s $id 200" "$(jq -r '"\(.event) \(.path) \(.destination) \(.report_id) \(.status)"' out)"
cat out >>events.jsonl
expect_same 'the keys' "$id $id $id" \
    "$(tail -n 3 server/requests | jq -r '.headers["idempotency-key"]' | tr '\n' ' ' | sed 's/ $//')"
expect_same 'the queue' 0 "$(find $queue/s -name '*.zip*' | wc -l)"

fact 'Retry-After decides when, and for the whole destination'
posts_to status/429/3600
exits 3 send --queue --to s one.zip two.zip
count=$(requests)
expect_wait 3500 3600 "$(jq -s 'map(.next_time) | max' $queue/s/*.json)"
exits 3 send --queue --to s three.zip
expect_same 'the requests' "$count" "$(requests)"
expect_same 'the queue' 3 "$(queued s)"
rm -r "$queue/s"
posts_to "status/503/$(LC_ALL=C date -u -d '2 hours' '+%a,%%20%d%%20%b%%20%Y%%20%H:%M:%S%%20GMT')"
exits 3 send --queue --to s one.zip
expect_wait 7000 7200 "$(jq -s 'map(.next_time) | max' $queue/s/*.json)"
rm -r "$queue/s"

fact 'a status of 4xx stops it, and is said until somebody retries'
posts_to status/403
exits 1 send --queue --to s one.zip
expect_err 's: one.zip: kept: the server answered 403'
count=$(requests)
exits 1 send --queue --json
expect_same 'the event' 'kept one.zip the server answered 403' "$(jq -r '"\(.event) \(.path) \(.error)"' out)"
cat out >>events.jsonl
expect_same 'the requests' "$count" "$(requests)"
posts_to post
exits 0 send --queue --retry

fact 'without consent it waits in the queue, and consent can come later'
posts_to post 'consent = ask'
count=$(requests)
exits 3 send --queue --to s one.zip
expect_err 'nobody has consented'
exits 3 send --queue
expect_same 'the requests' "$count" "$(requests)"
exits 0 send --queue --yes
expect_same 'the requests' $((count + 1)) "$(requests)"
posts_to status/503 'consent = ask'
exits 3 send --queue --yes --to s one.zip
posts_to post 'consent = never'
exits 3 send --queue --retry --yes
expect_err 's: one.zip: kept: its destination has consent = never'
posts_to post 'consent = ask'
exits 0 send --queue --retry

fact 'the consent of a person is to the report that waits, and to no other version of it'
posts_to post 'consent = ask'
exits 3 send --queue --to s one.zip
"$BUGPACK" redact one.zip -o redacted.zip >out 2>err || wrong "$(cat err)"
count=$(requests)
posts_to status/503 'consent = ask'
# agrees STATUS REPORT: a person on a terminal queues it, and agrees.
agrees() {
    TERM=xterm timeout 60 python3 "$source_dir/tests/support/answer.py" y "$BUGPACK" send --queue --to s "$2" \
        >out 2>err </dev/null
    expect_status "$1" $?
    expect_out 'Send this report to'
}
agrees 1 redacted.zip
expect_out 'another version of the report waits in the queue'
expect_same 'the requests' "$count" "$(requests)"
agrees 3 one.zip
expect_out 'the server answered 503'
expect_same 'the state' true "$(sidecar s .consent)"
posts_to post 'consent = ask'
exits 0 send --queue --retry
expect_same 'the requests' $((count + 2)) "$(requests)"

fact 'what is left of an earlier report is nothing to the next'
count=$(requests)
for left in consent stopped; do
    printf '{"attempts":9,"next_time":0,"last_answer":"x","%s":true}\n' $left >"$queue/s/$id-one.zip.json"
    posts_to post 'consent = ask'
    exits 3 send --queue --to s one.zip
    expect_err 'nobody has consented'
    expect_same 'the requests' "$count" "$(requests)"
    expect_same 'the state' '0 false false' "$(sidecar s '"\(.attempts) \(.consent) \(.stopped)"')"
    rm "$queue"/s/*.zip
done

fact 'the queue has bounds: of count, bytes, size, age and bytes a day; nothing is deleted'
posts_to status/503 '[queue]' 'maxCount = 1'
exits 3 send --queue --to s one.zip
exits 1 send --queue --to s two.zip
expect_err 'two.zip: the queue is full: it has 1 reports'
posts_to post '[queue]' "maxBytes = $(($(wc -c <one.zip) + 10))"
exits 1 send --queue --to s two.zip
expect_err 'the queue is full'
posts_to post 'maxBytes = 10'
exits 1 send --queue --retry
expect_err 'larger than maxBytes'
posts_to post '[queue]' 'maxAge = 1h'
jq -c '.queued_us -= 7200e6' "$queue"/s/*.zip.json >aged.json
cp aged.json "$(echo "$queue"/s/*.zip.json)"
exits 1 send --queue
expect_err 'it has waited for longer than maxAge'
expect_same 'the queue' 1 "$(queued s)"
posts_to post "maxBytesPerDay = $(($(stat -c %s one.zip two.zip | sort -n | tail -n 1) + 10))"
exits 3 send --queue --retry --to s two.zip
expect_same 'the queue' 1 "$(queued s)"
exits 3 send --queue --retry --json
expect_same 'the reason' 'deferred maxBytesPerDay is reached' "$(jq -r '"\(.event) \(.error)"' out)"
cat out >>events.jsonl
posts_to post
exits 0 send --queue --retry

fact 'the age of a report begins when it is queued, as a link or a copy of an older file'
posts_to post '[queue]' 'maxAge = 1h'
touch -d '20 days ago' three.zip
exits 0 send --queue --to s three.zip
"$BUGPACK" send --queue --to s - <three.zip >out 2>err || wrong "a copy is not sent: $(cat err)"

fact 'a network that is down costs one attempt, not one for each report'
configure "$(destination s http://127.0.0.1:1/ 'method = POST')"
exits 3 send --queue --to s one.zip two.zip three.zip
expect_same 'the attempts' 1 "$(jq -s 'map(.attempts) | add' $queue/s/*.zip.json)"
posts_to flaky/1
exits 3 send --queue --retry
posts_to post
exits 0 send --queue --retry
expect_same 'the queue' 0 "$(queued s)"

fact 'there is one sender at a time, and whoever adds a report waits for it'
posts_to stall
start "$BUGPACK" send --queue --to s one.zip
first=$pid
await 'holds "select(.path == \"/stall\")" server/requests'
posts_to post
exits 0 send --queue
expect_err 'another process sends from this queue'
start "$BUGPACK" send --queue --to s two.zip
second=$pid
await '[ "$(queued s)" = 2 ]'
kill -KILL "$first"
wait "$second" || wrong 'the second has failed'
expect_same 'the queue' 0 "$(queued s)"

fact 'a queue that others can read, and a destination that it cannot have, are refused'
chmod 755 $queue
exits 1 send --queue
expect_err "it is not this user's alone"
chmod 700 $queue
expect_misuse 'needs the name of a destination' send --queue --to "$http/put/" one.zip
configure "$(destination s "$http/put/x")"
exits 1 send --queue --to s one.zip
expect_err 'a PUT to one URL replaces the report before'
expect_misuse '--retry needs --queue' send --retry --to s one.zip
expect_misuse 'it excludes options of a request' send --queue --dry-run --to s one.zip

fact 'what is in the queue and not a report, or of a destination that is gone, is said and stays'
posts_to status/503
exits 3 send --queue --to s one.zip
configure "$(destination t "$http/post" 'method = POST')"
exits 3 send --queue
expect_err 's: one.zip: kept: the configuration has no such destination'
posts_to post
cp "$(echo "$queue"/s/*.zip)" link.zip
for file in "$queue"/s/*.zip; do
    rm "$file"
    echo nonsense >"$file"
done
echo '{' >"$(echo "$queue"/s/*.zip.json)"
exits 1 send --queue
expect_err 's: one.zip: kept: '
expect_same 'the queue' 1 "$(queued s)"
state=$(echo "$queue"/s/*.zip.json)
rm "$state"
mkfifo "$state"
exits 1 send --queue
rm "$queue"/s/*.zip
mkfifo "${state%.json}"
ln -s "$scratch/link.zip" "$queue/s/1b6f24b4d4bd6dfa6256bdfd8aafc70f-two.zip"
exits 0 send --queue
expect_no_out
expect_same 'the pipes' 2 "$(find "$queue/s" -type p | wc -l | tr -d ' ')"
expect_same 'the link' 1 "$(find "$queue/s" -type l | wc -l | tr -d ' ')"
rm -r "$queue/s"

fact 'events match the schema'
exits 0 send --queue --json --to s one.zip
cat out >>events.jsonl
expect_same 'the events' 'deferred sent kept deferred queued sent' "$(jq -r .event events.jsonl | tr '\n' ' ' | sed 's/ $//')"
expect_schema events.jsonl events.jsonl

finish
