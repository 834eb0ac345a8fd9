#!/bin/sh
# bugpack-spice against a server that does what a script tells: reports, gaps, disconnects.
# shellcheck disable=SC2016,SC2154 # await runs texts; lib.sh sets names
. "$(dirname "$0")/lib.sh"

fact 'a wrong command line is refused'
for words in '' 'vnc://a' 'spice://' 'spice://a:0' 'spice://a:70000' 'spice://a:1x' 'spice://a/b' \
    '--password-file /nowhere spice://a' 'spice://a spice://b' '--bad'; do
    # shellcheck disable=SC2086 # a list of words
    "$BUGPACK_SPICE" $words >out 2>err </dev/null
    expect_same "the status of <$words>" 2 $?
    expect_err '--help'
done
"$BUGPACK_SPICE" --pedantic-dir gaps spice://a >out 2>err </dev/null
expect_same 'the status of a directory for gaps that are not reported' 2 $?
expect_err '--pedantic-dir needs --pedantic'

fact 'what is no server is said'
for each in 'error:the server refuses: permission denied' 'secured:this channel needs TLS' \
    'strange:the server refuses: an unknown error' 'magic:the server does not speak SPICE' \
    'major:the server has version 9 of the protocol' "short:the server's reply has 20 bytes" \
    "huge:the server's reply has 4294967295 bytes" "caps:the server's reply is malformed" \
    'mini:no mini headers' 'key:is no RSA key' 'ticket:the server refuses: permission denied' \
    'cut:the server closed the connection'; do
    start_server --link "${each%%:*}"
    timeout 60 "$BUGPACK_SPICE" --report-dir reports "spice://127.0.0.1:$port" >out 2>err </dev/null
    expect_same "the status with ${each%%:*}" 1 $?
    expect_err "${each#*:}"
    stop_server
done
timeout 60 "$BUGPACK_SPICE" --report-dir reports "spice://127.0.0.1:$port" >out 2>err </dev/null
expect_err 'Connection refused'

fact 'it links all channels, with the password'
echo wrong >wrong
echo 'open sesame' >password
start_server --password 'open sesame' --offer display,inputs,cursor,usbredir
timeout 60 "$BUGPACK_SPICE" --password-file wrong --report-dir reports "spice://127.0.0.1:$port" \
    >out 2>err </dev/null
expect_err 'the server refuses: permission denied'
start_client --password-file password --pedantic --pedantic-dir "$scratch/gaps"
all_up
expect_same 'connection ids' '0 0 77 77' \
    "$(awk '$1 == "link" { print $5 }' server.out | tr '\n' ' ' | sed 's/ $//')"

fact 'a channel that it does not know is a gap'
next_report pedantic
expect_same 'the key' main:channel:not_supported "$(value "$zip" metadata.json .gap_key)"

fact 'it acknowledges windows and answers pings'
tell send display 3 0700000002000000
heard '^received display 1 07000000$'
tell send display 108
tell send display 108
heard '^received display 2 $'
tell ping main 250000
heard '^received main 3 050000000900000000000000$'

fact 'what it draws is in the screenshot of a report'
tell surface 0 64 48
tell fill 0 0 64 48 0000ff
tell bitmap 0 0 16 16 ff0000
tell bitmap 32 32 40 40 ff0000
tell fill 60 44 64 48 ffffff
tell ping display 0
heard '^received display 3 '
kill -USR1 "$client"
next_report bugreport
unzip -p "$zip" screenshot.png >shot.png
python3 "$here/png.py" shot.png 0,0 15,15 16,16 32,32 39,39 40,40 47,47 63,47 >pixels
expect_same 'the pixels' '64 48
0,0 ff0000
15,15 ff0000
16,16 0000ff
32,32 ff0000
39,39 ff0000
40,40 0000ff
47,47 0000ff
63,47 ffffff' "$(cat pixels)"
expect_same 'the surface' '64x48' \
    "$(value "$zip" session.json '.display | "\(.width)x\(.height)"')"
expect_same 'the draws' 4 "$(value "$zip" session.json .display.draws)"
expect_same 'the pings of main' '1 250012' \
    "$(value "$zip" session.json '.channels[0].ping | "\(.count) \(.last_bytes)"')"
expect_same 'the opcodes' '{"set_ack":1,"ping":1,"inval_all_palettes":2,"draw_fill":2,"draw_copy":2,"surface_create":1}' \
    "$(value "$zip" channel-state.json '.channels[1].received.messages | tojson')"
for thread in main display inputs; do
    expect_same "the thread of $thread" 1 "$(value "$zip" runtime-metrics.json \
        "[.threads[] | select(.name == \"spice-$thread\")] | length")"
done

fact 'bugpack trigger gets a report'
run trigger "$client"
expect_status 0

fact 'each kind of gap gives one report, of its own channel'
for type in 1 100 101 102 103 104 105 106 107 108 109; do
    tell image 0 0 8 8 "$type"
    tell image 0 0 8 8 "$type"
done
tell send display 122 00000000
tell send display 309 00
tell send display 314 00
tell send display 4711 000102
tell send inputs 111
sign '^pedantic report' 17
tell ping display 0
heard '^received display 3 ' 2
expect_same 'the keys' 'display:decode:surface_create
display:image:from_cache
display:image:from_cache_lossless
display:image:glz_rgb
display:image:jpeg
display:image:jpeg_alpha
display:image:lz4
display:image:lz_plt
display:image:lz_rgb
display:image:quic
display:image:surface
display:image:zlib_glz_rgb
display:unimpl:draw_rop3
display:unimpl:stream_create
display:unknown:4711
inputs:unimpl:mouse_motion_ack
main:channel:not_supported' "$(for each in gaps/*.zip; do value "$each" metadata.json .gap_key; done | sort)"
for each in gaps/*.zip; do
    key=$(value "$each" metadata.json .gap_key)
    expect_same "the state with $key" "${key%%:*}" "$(value "$each" channel-state.json .channel)"
    case $key in
    *:unknown:* | main:*) ;;
    *) expect_same "the result of $key" 1 \
        "$(value "$each" channel-state.json '[.recent[-1] | select(.result != "ok")] | length')" ;;
    esac
done

fact 'tshark dissects the traffic, the link too when the ring has wrapped; the ticket in it is zeros'
tell send display 315 00000000
tell surface 0 1024 1024
for color in 000001 000002 000003 000004 000005 000006 000007 000008 000009 00000a; do
    tell bitmap 0 0 1024 1024 "$color" # 4 MiB each, of a ring of 30
done
tell ping display 0
heard '^received display 3 ' 3
kill -USR1 "$client"
next_report bugreport 3
if command -v tshark >/dev/null 2>&1 || not_tried 'tshark is not installed'; then
    unzip -p "$zip" traffic.pcap >recorded.pcap
    tshark -r recorded.pcap -Y spice -T fields -e _ws.col.Info >info 2>tshark.err
    for words in 'Client link message' 'Server link message' 'Client ticket' 'DRAW_COPY' 'CHANNELS_LIST'; do
        grep -qi -e "$words" info || wrong "tshark does not find $words: $(sort info | uniq -c | head -n 40)"
    done
    size=$(wc -c <recorded.pcap)
    case $size in
    2[4-9]?????? | 3[0-5]??????) ;;
    *) wrong "of 40 MiB it has $size bytes" ;;
    esac
    tshark -r recorded.pcap -Y 'tcp.len == 128' -T fields -e tcp.payload 2>/dev/null >tickets
    expect_same 'tickets' "2 $(printf '00%.0s' $(seq 128))" "$(grep . tickets | sort | uniq -c | sed 's/^ *//')"
fi

fact 'what is typed is recorded without payload, and F12 is a report'
end_client TERM
: >client.out
expect_same 'the status' 0 "$status"
mkfifo keys
"$BUGPACK_SPICE" --report-dir "$scratch/reports" --password-file password \
    "spice://127.0.0.1:$port" <keys >>client.out 2>client.err &
client=$!
started="$started $client"
exec 9>keys
all_up
heard 'up inputs' 2
tell send inputs 102 0000
tell ping inputs 0
heard '^received inputs 3 '
printf '\033[24~' >&9
next_report bugreport
expect_same 'payload of inputs' 0 "$(value "$zip" manifest.json \
    '[.. | objects | select(.name? == "inputs" and (.payload_bytes? // 0) > 0)] | length')"
expect_same 'its messages' 1 "$(value "$zip" channel-state.json '.channels[2].received.messages.key_modifiers')"

fact 'a lost server is one disconnect report, and the client comes back'
stop_server KILL
next_report disconnect
cause=$(value "$zip" disconnect-cause.json '"\(.channel) \(.error_kind)"')
case $cause in
'main '* | 'display '* | 'inputs '*) ;;
*) wrong "the cause is $cause" ;;
esac
old_port=$port
sign '^trying again' 2
: >client.out
start_server --password 'open sesame' --port "$old_port"
all_up
expect_same 'disconnect reports' 1 "$(find reports -name '*-disconnect-*' | wc -l)"

fact 'a server that reads nothing is a hang of the thread that sends, and then a disconnect'
tell flood inputs 1000000
next_report hang
expect_same 'the watchdog' inputs "$(value "$zip" hang.json .name)"
sign 'is disconnected'

fact 'sizes that a server only names cost nothing, and end the connection'
: >client.out
stop_server
start_server --password 'open sesame' --port "$old_port"
all_up
before=$(awk '/^VmRSS/ { print $2 }' "/proc/$client/status")
tell header display 304 60000000
tell bytes display 00
tell header main 103 4294967295
sign '^main is disconnected: protocol'
after=$(awk '/^VmRSS/ { print $2 }' "/proc/$client/status")
[ "$after" -lt $((before + 16384)) ] || wrong "it has $before kB and then $after"

fact 'what kills it leaves a crash report with its traffic'
: >client.out
all_up
tell surface 0 32 32
tell fill 0 0 32 32 00ff00
tell ping display 0
heard '^received display 3 '
end_client KILL
mkdir recovered
"$BUGPACK" recover --output-dir recovered runtime/bugpack >out 2>err
zip=$(ls recovered/spice-crash-*.zip)
[ "$(unzip -p "$zip" traffic.pcap | wc -c)" -gt 1000 ] || wrong 'there is no traffic'

fact 'a server that says nothing is given up'
stop_server
start_server --link silent
timeout 60 "$BUGPACK_SPICE" --report-dir reports "spice://127.0.0.1:$port" >out 2>err </dev/null
expect_same 'the status' 1 $?
expect_err 'the server does not answer in time'
finish
