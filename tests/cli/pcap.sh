#!/bin/sh
# What Wireshark makes of a traffic.pcap: whole streams, its own dissectors, nothing to complain of.
# Here BUGPACK is write_pcap.c, which records and writes what is looked at.
. "$(dirname "$0")/lib.sh"
need tshark capinfos xxd jq
# Nothing of the user's, and no look at the network.
export HOME="$scratch" XDG_CONFIG_HOME="$scratch/config"
mkdir "$scratch/pcap"
exits 0 "$scratch/pcap"
cd "$scratch/pcap" || exit 1

# look FILE ARGUMENT...: tshark with checksums looked at, into scratch/out.
look() {
    file=$1
    shift
    tshark -n -r "$file" -o ip.check_checksum:TRUE -o tcp.check_checksum:TRUE "$@" \
        >"$scratch/out" 2>"$scratch/err" </dev/null || wrong "tshark fails on $file"
}

# count FILE FILTER: how many frames it matches.
count() {
    look "$1" -Y "$2"
    wc -l <"$scratch/out" | tr -d ' '
}

# follow FILE STREAM NODE: the payload of one side; node 0 is the client.
followed=
follow() {
    if [ "$followed" != "$1 $2" ]; then # else it has both sides already
        look "$1" -q -z "follow,tcp,raw,$2"
        mv "$scratch/out" "$scratch/followed"
        followed="$1 $2"
    fi
    tab=$(printf '\t')
    if [ "$3" = 0 ]; then
        sed -n "s/^\([0-9a-f][0-9a-f]*\)\$/\1/p" "$scratch/followed"
    else
        sed -n "s/^$tab\([0-9a-f][0-9a-f]*\)\$/\1/p" "$scratch/followed"
    fi | tr -d '\n' | xxd -r -p
}

fact 'tshark finds no frame malformed, lost, out of order or with a wrong checksum'
for file in *.pcap; do
    look "$file" -Y '_ws.malformed || (tcp.analysis.flags && !tcp.analysis.window_update) ||
        ip.checksum.status == 0 || tcp.checksum.status == 0 || _ws.expert.severity >= 4194304'
    expect_no_out
done

fact 'that filter would find a lost segment, and a wrong checksum'
{
    head -c 250 redis.pcap  # the file's header, and a handshake of 78, 78 and 70 bytes
    tail -c +346 redis.pcap # without the 95 bytes of the first request
} >"$scratch/hole.pcap"
[ "$(count "$scratch/hole.pcap" tcp.analysis.lost_segment)" -gt 0 ] ||
    wrong 'a missing frame goes unnoticed'
sed 's/hello/jello/' redis.pcap >"$scratch/changed.pcap"
[ "$(count "$scratch/changed.pcap" 'tcp.checksum.status == 0')" -gt 0 ] ||
    wrong 'a changed byte goes unnoticed'

fact 'each side of a stream is byte by byte what was recorded'
for what in lengths,0,0,0.sent lengths,0,1,0.received lengths,1,1,1.sent lengths,1,0,1.received \
    http,0,0,0.sent http,0,1,0.received redis,0,0,0.sent redis,0,1,0.received \
    dns,0,0,0.sent dns,0,1,0.received wrap,0,0,0.sent wrap,0,1,0.received; do
    IFS=, read -r name stream node expected <<END
$what
END
    follow "$name.pcap" "$stream" "$node" >"$scratch/stream"
    cmp -s "$scratch/stream" "$name.$expected" || wrong "$name.$expected differs"
done

fact 'the dissector that the port stands for does its work'
look http.pcap -Y 'http.request.method == "GET"' -T fields -e http.request.uri
expect_out /large
look http.pcap -q --export-objects "http,$scratch/objects"
tail -c 300000 http.0.received >"$scratch/body"
cmp -s "$scratch/objects/large" "$scratch/body" || wrong 'the body of the response differs'
expect_same 'the frames of Redis' 200 "$(count redis.pcap resp)"

look dns.pcap -Y 'dns.flags.response == 0' -T fields -e dns.qry.name
expect_same 'the queries of DNS over TCP' 50 "$(grep -cx example.org "$scratch/out")"
look dns.pcap -Y 'dns.flags.response == 1' -T fields -e dns.a
expect_same 'the answers of DNS over TCP' 50 "$(grep -cx 192.0.2.7 "$scratch/out")"

fact 'a pinned opening is enough for the dissector after the ring has turned over'
expect_same 'the upgrade' 1 "$(count websocket.pcap 'http.response.code == 101')"
messages=$(sed -n 's/messages=\([0-9]*\) .*/\1/p' websocket.extent)
pinned=$(sed -n 's/.*pinned=\([0-9]*\) .*/\1/p' websocket.extent)
missing=$(sed -n 's/.*missing=\([0-9]*\) .*/\1/p' websocket.extent)
expect_same 'all messages' 20002 $((messages + missing))
if [ "$pinned" -lt 3 ] || [ "$missing" -lt 10000 ]; then
    wrong 'the ring has not turned over'
fi
# The last pinned one may be cut.
frames=$(count websocket.pcap 'websocket.payload.text && websocket.fin == 1')
[ "$frames" -ge $((messages - 3)) ] || wrong "only $frames of $messages are frames of WebSocket"
look websocket.pcap -Y 'websocket.payload.text == "019999"'
[ -s "$scratch/out" ] || wrong 'the newest message is not there'

fact 'a message that was not kept whole is cut by a snap length, not lost'
# Of each eight messages five are longer than 100 bytes, and make nine frames.
expect_same 'frames of channel 0 that were cut' 36 \
    "$(count snapped.pcap 'ip.addr == 10.0.0.1 && frame.cap_len < frame.len')"
# One ends inside of a segment, and what is missing goes on into another.
expect_same 'frames of channel 1 that were cut' 2 \
    "$(count snapped.pcap 'ip.addr == 10.0.1.1 && frame.cap_len < frame.len')"
look snapped.pcap -Y 'ip.src == 10.0.1.1' -T fields -e tcp.len
expect_same 'the real bytes that channel 1 sent' "$(wc -c <snapped.1.sent | tr -d ' ')" \
    "$(awk '{ sum += $1 } END { printf "%d", sum }' "$scratch/out")"

fact 'a stream whose secrets were replaced is dissected as before'
grep -q -a 5ecre7 redacted.0.sent || wrong 'nothing to find was sent'
! grep -q -a 5ecre7 redacted.pcap || wrong 'a secret is left'
look redacted.pcap -Y 'ip.src == 10.0.0.1 && http.request.method == "POST"' -T fields -e http.content_length
expect_same 'the requests' '69000 27' "$(uniq "$scratch/out" | tr '\n' ' ' | sed 's/ $//')"
expect_same 'their number' 20 "$(wc -l <"$scratch/out" | tr -d ' ')"
expect_same 'the answers' 20 "$(count redacted.pcap 'http.response.code == 200')"
expect_same 'the tags' 20 "$(count redacted.pcap 'http.authorization contains "REDACTED-"')"
follow redacted.pcap 0 0 >"$scratch/stream"
expect_same 'the bytes' "$(wc -c <redacted.0.sent | tr -d ' ')" "$(wc -c <"$scratch/stream" | tr -d ' ')"

fact 'a stream without payload has its times and lengths'
look redacted.pcap -Y 'ip.src == 10.0.1.1 && tcp.len > 0' -T fields -e frame.cap_len -e tcp.len
expect_same 'its frames, all of headers alone' 20 "$(grep -c '^54' "$scratch/out")"
expect_same 'the real bytes' "$(wc -c <redacted.1.sent | tr -d ' ')" \
    "$(awk '{ sum += $2 } END { printf "%d", sum }' "$scratch/out")"

fact 'each line of the index is of the frame that it names, and each payload has a line'
for name in lengths http dns redis websocket snapped redacted; do
    look $name.pcap -T fields -E separator=' ' -E occurrence=f -e frame.number -e tcp.len \
        -e tcp.flags.push -e frame.cap_len -e frame.len -e tcp.seq_raw -e ip.src
    cp "$scratch/out" "$scratch/frames"
    jq -r '[.frame, .bytes, .kept_bytes, .direction, .channel] | join(" ")' $name.index.jsonl \
        >"$scratch/lines"
    messages=$(sed -n 's/messages=\([0-9]*\) .*/\1/p' $name.extent)
    expect_same "the lines of $name" "$messages" "$(wc -l <"$scratch/lines" | tr -d ' ')"
    # A message's frames are its first and those behind it, until there are enough bytes.
    awk -v name=$name '
        NR == FNR { bytes[$1] = $2; kept[$1] = $3; side[$1] = $4; next }
        $1 in bytes {
            if (left > 0) { print "frame " $1 " begins inside of a message"; exit }
            left = bytes[$1]; keep = kept[$1]; sent = side[$1] == "sent"; found++
        }
        !($1 in bytes) && $2 > 0 && left == 0 { print "frame " $1 " has no line"; exit }
        {
            from_host = $7 ~ /\.1$|:1$/
            if ($2 > 0 && sent != from_host) { print "frame " $1 " is of the other side"; exit }
            here = $2 - ($5 - $4)
            if (here != (keep < $2 ? keep : $2)) { print "frame " $1 " keeps " here; exit }
            left -= $2; keep -= here
        }
        END { if (left != 0 || found == 0) print "the last of " found " messages lacks " left }
    ' "$scratch/lines" "$scratch/frames" >"$scratch/joined"
    [ ! -s "$scratch/joined" ] || wrong "$name: $(head -n 1 "$scratch/joined")"
done

fact 'the index says what was pinned, and what shortened a message'
expect_same 'pinned lines' "$pinned" "$(jq -s 'map(select(.pinned)) | length' websocket.index.jsonl)"
expect_same 'what shortened the last pinned one' '["pin"]' \
    "$(jq -c 'select(.pinned and .kept_bytes < .bytes) | .cut_by' websocket.index.jsonl)"
expect_same 'cut by the snap length' '20 100' "$(jq -s -r 'map(select(.cut_by == ["snap_length"])) |
    "\(length) \(map(.kept_bytes) | max)"' snapped.index.jsonl)"
expect_same 'cut by the limit' 1 \
    "$(jq -s 'map(select(.cut_by == ["size_limit"])) | length' snapped.index.jsonl)"
expect_same 'the type and its name' '7 message' \
    "$(jq -r '"\(.type) \(.type_name)"' redis.index.jsonl | sort -u)"

fact 'capinfos agrees on times, to the nanosecond, and on the number of frames'
for name in redis websocket; do
    messages=$(sed -n 's/messages=\([0-9]*\) .*/\1/p' $name.extent)
    capinfos -T -r -m -c -a -e -S -o $name.pcap >"$scratch/out" 2>"$scratch/err" </dev/null
    wanted=$(sed -n 's/^from=\(.*\)\(.........\)$/\1.\2/p' $name.extent)
    wanted="$name.pcap,$((messages + 3)),$wanted"
    wanted="$wanted,$(sed -n 's/^to=\(.*\)\(.........\)$/\1.\2/p' $name.extent),True"
    expect_same "what capinfos says of $name" "$wanted" "$(tr -d '"' <"$scratch/out")"
done
finish
