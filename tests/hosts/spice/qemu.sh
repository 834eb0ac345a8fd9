#!/bin/sh
# bugpack-spice against a real QEMU, without KVM: a boot sector that draws.
# shellcheck disable=SC2016,SC2154 # await runs texts; lib.sh sets names
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/hosts/spice/qemu_lib.sh
. "$here/qemu_lib.sh"

fact 'a wrong password gives the reason of the server'
start_qemu image-compression=off
echo wrong >wrong
timeout 60 "$BUGPACK_SPICE" --password-file wrong --report-dir reports "spice://127.0.0.1:$port" \
    >out 2>err </dev/null
expect_same 'the status' 1 $?
expect_err 'the server refuses: permission denied'

fact 'it draws what QEMU shows, to the pixel'
start_client --password-file password --pedantic --pedantic-dir "$scratch/none"
sign '^inputs is up'
sign '^[1-9][0-9]* draws' 3
monitor stop
: >client.out
sign '^0 draws' 2
monitor screendump "{\"filename\": \"$scratch/qemu.ppm\"}"
kill -USR1 "$client"
next_report bugreport
unzip -p "$zip" screenshot.png >shot.png
expect_same 'the size, the pixels, more than one colour' 'True True True' \
    "$(python3 "$here/png.py" shot.png --ppm qemu.ppm)"
[ -z "${KEEP:-}" ] || cp "$zip" shot.png qemu.ppm "$KEEP"
expect_same 'gaps without compression' 0 \
    "$(value "$zip" manifest.json '[.triggers[] | select(.key | startswith("display:"))] | length')"

fact 'tshark finds as many drawing messages as the client'
if command -v tshark >/dev/null 2>&1 || not_tried 'tshark is not installed'; then
    unzip -p "$zip" traffic.pcap >recorded.pcap
    expect_same 'DRAW_COPY' "$(value "$zip" session.json .display.draws)" \
        "$(tshark -r recorded.pcap -Y spice -T fields -e _ws.col.Info 2>/dev/null |
            grep -o DRAW_COPY | wc -l)"
fi

fact 'a client that is stopped is captured from outside, with its traffic'
kill -STOP "$client"
run capture --pid "$client" --window 50ms --output outside.zip
kill -CONT "$client"
[ "$(unzip -p outside.zip traffic.pcap | wc -c)" -gt 10000 ] || wrong 'there is no traffic'
end_client TERM

monitor cont

fact 'with compression each kind of image is one report'
kill -KILL "$qemu"
start_qemu image-compression=auto_glz
start_client --password-file password --pedantic --pedantic-dir "$scratch/gaps"
sign 'draws, [1-9][0-9]* bytes in' 5
sign '^pedantic report'
tell_gaps() {
    for each in gaps/*.zip; do value "$each" metadata.json .gap_key; done | sort
}
kill -USR1 "$client"
next_report bugreport
tell_gaps >keys
expect_same 'distinct keys' "$(sort -u keys)" "$(cat keys)"
grep -q '^display:image:glz_rgb$' keys || wrong "the gaps are $(cat keys)"

fact 'without QEMU there is one disconnect report, with the pings, and it comes back'
kill -KILL "$qemu"
next_report disconnect
unzip -p "$zip" disconnect-cause.json | jq -c . >cause
[ -z "${KEEP:-}" ] || cp cause "$zip" "$KEEP"
# Without unread data QEMU's kernel ends the connection; else it resets it.
case $(jq -r '"\(.channel) \(.error_kind) \(.error)"' cause) in
'main io ECONNRESET' | 'display io ECONNRESET' | 'inputs io ECONNRESET') ;;
'main closed '* | 'display closed '* | 'inputs closed '*) ;;
*) wrong "the cause is $(cat cause)" ;;
esac
expect_same 'the channels with their pings' 3 "$(value "$zip" session.json '[.channels[].ping.count] | length')"
: >client.out
run_qemu image-compression=off
sign '^inputs is up'
expect_same 'disconnect reports' 1 "$(find reports -name '*-disconnect-*' | wc -l)"
end_client TERM
kill -KILL "$qemu"
finish
