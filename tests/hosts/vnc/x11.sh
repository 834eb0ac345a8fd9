#!/bin/sh
# bugpack-vnc against x11vnc, which serves an Xvfb where a program draws.
# shellcheck disable=SC2016,SC2317 # await expands texts, and calls functions
. "$(dirname "$0")/../../cli/lib.sh"
need python3 unzip jq Xvfb x11vnc xwd ico
[ -x "${BUGPACK_VNC:-}" ] || skip 'bugpack-vnc is not built'
cd "$scratch" || exit 1
mkdir -m 700 runtime
XDG_RUNTIME_DIR=$scratch/runtime
export XDG_RUNTIME_DIR
unset DISPLAY

# start_display FILE SIZE: a display of its own. Its number, which Xvfb chooses, is in `display`.
start_display() {
    Xvfb -displayfd 3 -screen 0 "$2x24" -nolisten tcp 3>"$1" >/dev/null 2>&1 &
    started="$started $!"
    await "[ -s '$1' ]"
    display=:$(cat "$1")
}

# serve: x11vnc on that display, on a port that it chooses; in `port` and `x11vnc`.
serve() {
    rm -f vnc.log
    x11vnc -display "$display" -localhost -autoport 20000 -forever -shared -nopw -nocursor -noxdamage \
        >vnc.log 2>&1 &
    x11vnc=$!
    started="$started $x11vnc"
    await 'grep -q "^PORT=" vnc.log'
    port=$(sed -n 's/^PORT=//p' vnc.log)
}

# same_as_screen ZIP: the screenshot is what xwd sees now.
same_as_screen() {
    unzip -p "$1" screenshot.png >shot.png
    xwd -silent -root -display "$display" >screen.xwd
    python3 -B "$source_dir/tests/support/read_png.py" shot.png shot.rgba &&
        python3 -B "$here/same_as_xwd.py" screen.xwd shot.rgba
}

# asks: `bugpack trigger` gives a report that shows the screen as it is.
asks() {
    run trigger "$viewer"
    zip=$(cat out)
    same_as_screen "$zip" 2>err
}

start_display number 320x240
# Smaller than the screen: there is more than one colour also where it is stopped before it draws.
start ico -display "$display" -geometry 240x180+40+20 -faces -bg '#204080'
ico=$pid
serve

fact 'F12 in its terminal, also in two parts, gives a report with what the screen shows'
mkfifo keys
python3 -B "$here/on_terminal.py" keys "$BUGPACK_VNC" "localhost:$port" reports >typed 2>&1 &
started="$started $!"
exec 9<>keys
await 'grep -q "updates/s" typed'
viewer=$(sed -n 's/^pid \([0-9]*\).*/\1/p' typed)
started="$started $viewer"
printf '\033[2' >&9
printf '4~' >&9
await 'grep -q "bugreport report: " typed'
zip=$(echo reports/vnc-bugreport-*.zip)
expect_same 'missing' 0 "$(value "$zip" manifest.json .missing)"
expect_same 'the size' 320x240 "$(value "$zip" session.json '"\(.width)x\(.height)"')"
expect_same 'the version' '3.8, security 1' "$(value "$zip" metadata.json .tags.rfb)"

fact 'once nothing moves the screenshot is what xwd shows, pixel for pixel'
kill -STOP "$ico"
await asks
[ "$(sort -u <shot.rgba | wc -c)" -gt 0 ] || wrong 'the picture is empty'

fact 'its window on another display shows the same'
screen=$display
start_display number2 800x600
SDL_VIDEODRIVER=x11 DISPLAY=$display "$BUGPACK_VNC" "localhost:$port" window-reports window \
    </dev/null >window.out 2>&1 &
window=$!
started="$started $window"
await 'grep -q -e "updates/s" -e "^no window" window.out'
if grep -q '^no window' window.out; then
    echo "not tried: $(cat window.out)"
else
    await 'xwd -silent -name "localhost:$port" -display "$display" >window.xwd 2>err &&
        python3 -B "$here/same_as_xwd.py" window.xwd shot.rgba 2>err'
fi
kill -KILL "$window"
display=$screen

fact 'it measures what the kernel counts'
kill -CONT "$ico"
await 'run trigger "$viewer"
    [ "$(value "$(cat out)" session.json .bytes_received)" -gt 20000 ]'
if command -v ss >/dev/null || not_tried 'bytes as the kernel counts them (ss is not installed)'; then
    await 'run trigger "$viewer"
        ss -tinp "sport = :$port or dport = :$port" | grep -A1 "pid=$viewer," >kernel
        counted=$(sed -n "s/.*bytes_received:\([0-9]*\).*/\1/p" kernel)
        said=$(value "$(cat out)" session.json .bytes_received)
        [ $((counted - said)) -ge 0 ] && [ $((counted - said)) -lt 2000000 ]'
fi

if command -v tshark >/dev/null || not_tried 'tshark is not installed'; then
    fact 'tshark dissects what was recorded, from the handshake on'
    unzip -p "$zip" traffic.pcap >recorded
    tshark -r recorded >dissected 2>/dev/null
    for word in 'Server protocol version: 003.008' 'Client protocol version: 003.008' \
        'Server framebuffer parameters' 'Client set encodings' 'Client framebuffer update request' \
        'Server framebuffer update'; do
        grep -qi "VNC.*$word" dissected || wrong "tshark does not show: $word"
    done
    ! grep -q 'Malformed' dissected || wrong "$(grep Malformed dissected | head -n 3)"
fi

fact 'a server that is killed leaves a disconnect'
kill -KILL "$x11vnc"
await 'grep -q "disconnect report: " typed'
await '! kill -0 "$viewer" 2>/dev/null'
zip=$(echo reports/vnc-disconnect-*.zip)
case $(value "$zip" disconnect-cause.json .error) in
ECONNRESET | 'VNC server closed connection') ;;
*) wrong "the error is $(value "$zip" disconnect-cause.json .error)" ;;
esac
unzip -tq "$zip" screenshot.png >unzipped 2>&1 || wrong 'it has no screenshot'
for zip in reports/*.zip; do
    "$BUGPACK" verify "$zip" >verified 2>&1 || wrong "$(cat verified)"
done

finish
