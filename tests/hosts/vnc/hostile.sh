#!/bin/sh
# bugpack-vnc against server.py: what each thing that a server may do leaves behind.
# shellcheck disable=SC2016,SC2317 # await expands texts, and calls functions
. "$(dirname "$0")/../../cli/lib.sh"
need python3 unzip jq
server=$here/server.py
[ -x "${BUGPACK_VNC:-}" ] || skip 'bugpack-vnc is not built'
cd "$scratch" || exit 1
mkdir -m 700 runtime
XDG_RUNTIME_DIR=$scratch/runtime
export XDG_RUNTIME_DIR
unset DISPLAY

# serve STEP...: a server in a directory of its own, `where`, and its port in `port`.
served=0
serve() {
    served=$((served + 1))
    where=$scratch/$served
    mkdir "$where"
    (cd "$where" && exec python3 -B "$server" port "$@" >log 2>&1) &
    server_pid=$!
    started="$started $server_pid"
    await '[ -s "$where/port" ]'
    port=$(cat "$where/port")
}

# view: bugpack-vnc on that server, in the background; its id is in `viewer`.
view() {
    "$BUGPACK_VNC" "127.0.0.1:$port" "$where/reports" </dev/null >"$where/out" 2>&1 &
    viewer=$!
    started="$started $viewer"
}

# leaves STATUS: the viewer ends, with that status and whole reports.
leaves() {
    wait "$viewer"
    expect_same 'the exit status' "$1" "$?"
    cp "$where/out" err
    for zip in "$where"/reports/*.zip; do
        [ ! -e "$zip" ] || "$BUGPACK" verify "$zip" >verified 2>&1 || wrong "$(cat verified)"
    done
}

# only KIND: the one report of that kind, in `zip`.
only() {
    set -- "$where/reports/vnc-$1"*.zip
    expect_same "the number of reports" 1 "$#"
    zip=$1
    [ -f "$zip" ] || wrong "there is no report: $zip"
}

# lost KIND TEXT: there is one report of the connection's end, with that cause.
lost() {
    only disconnect
    expect_same 'the kind of the error' "$1" "$(value "$zip" disconnect-cause.json .error_kind)"
    case $(value "$zip" disconnect-cause.json .error) in
    *"$2"*) ;;
    *) wrong "the error is $(value "$zip" disconnect-cause.json .error)" ;;
    esac
    expect_err "connection lost: "
}

fact 'a bad command line, and a server that is not there'
for arguments in '' localhost '-listen reports' 'localhost reports window more'; do
    # shellcheck disable=SC2086 # a list of words
    "$BUGPACK_VNC" $arguments >out 2>err
    expect_same "the status of '$arguments'" 2 "$?"
    expect_err 'usage: bugpack-vnc'
done
serve wait
kill -KILL "$server_pid"
await '! kill -0 "$server_pid" 2>/dev/null'
view
leaves 1
expect_err 'connection lost: Unable to connect to VNC server'
expect_same 'the reports' 0 "$(find "$where/reports" -name '*.zip' | wc -l | tr -d ' ')"

fact 'SIGUSR1 and trigger give a report with the framebuffer, pixel for pixel'
serve draw clipboard wait
view
await 'grep -q "did clipboard" "$where/log"'
kill -USR1 "$viewer"
await 'grep -q "^bugreport report: " "$where/out"'
only bugreport
run trigger "$viewer"
expect_status 0
first=$zip second=$(cat out)
kill -TERM "$viewer"
leaves 0
python3 - "$here" "$first" "$second" <<'END' || wrong 'the screenshot is not what the server drew'
import importlib.util, os, subprocess, sys, zipfile
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import server
tools = os.path.join(sys.argv[1], "../../support/read_png.py")
wanted = b"".join(server.pixel(x, y)[:3] + b"\xff" for y in range(server.HEIGHT)
                  for x in range(server.WIDTH))
for path in sys.argv[2:]:
    with open("shot.png", "wb") as file:
        file.write(zipfile.ZipFile(path).read("screenshot.png"))
    subprocess.run([sys.executable, "-B", tools, "shot.png", "rgba"], check=True)
    with open("rgba", "rb") as file:
        if file.read() != wanted:
            sys.exit(1)
END
for zip in "$first" "$second"; do
    expect_same 'missing' 0 "$(value "$zip" manifest.json .missing)"
    expect_same 'the size' '40x30' "$(value "$zip" session.json '"\(.width)x\(.height)"')"
    expect_same 'the updates' 1 "$(value "$zip" session.json .updates)"
done

fact 'both directions are recorded as they were, but for the clipboard and a password'
expect_same 'what was received' '256 256 256 256 0 3' "$(unzip -p "$first" traffic-index.jsonl |
    jq -r 'select(.direction == "received") | .type' | tr '\n' ' ' | sed 's/ $//')"
expect_same 'what was sent' '256 256 256 0 2 3 3' "$(unzip -p "$first" traffic-index.jsonl |
    jq -r 'select(.direction == "sent") | .type' | tr '\n' ' ' | sed 's/ $//')"
unzip -p "$first" traffic.pcap >pcap
grep -qa 'RFB 003.008' pcap || wrong 'the version is not in the pcap'
! grep -qa "user's secret" pcap || wrong 'the clipboard is in the pcap'
grep -qa '\*\*\*\*\*' pcap || wrong 'the text of the clipboard has gone'
unzip -p "$first" logs.jsonl | jq -r .message | grep -q '^VNC server supports protocol version 3.8' ||
    wrong "the log of libvncclient is missing"

fact 'a password is asked for on the terminal, and neither it nor its proof is in a report'
serve password draw wait
mkfifo keys
python3 -B "$here/on_terminal.py" keys "$BUGPACK_VNC" "127.0.0.1:$port" "$where/reports" >"$where/out" 2>&1 &
started="$started $!"
exec 9<>keys
await 'grep -q "Password: " "$where/out"'
printf 'hunter22\n' >&9
await 'grep -q "did draw" "$where/log"'
printf '\033[24~' >&9
await 'grep -q "bugreport report: " "$where/out"'
printf q >&9
only bugreport
expect_same 'the version' '3.8, security 2' "$(value "$zip" metadata.json .tags.rfb)"
python3 - "$here" "$zip" "$where/response" <<'END' || wrong 'the password or the answer to the challenge is in the report'
import sys, zipfile
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import server
with open(sys.argv[3], "rb") as file:
    response = file.read()
archive = zipfile.ZipFile(sys.argv[2])
texts = [archive.read(name) for name in archive.namelist()]
pcap = archive.read("traffic.pcap")
is_hidden = not any(b"hunter22" in text or response in text for text in texts)
sys.exit(0 if is_hidden and len(response) == 16 and server.CHALLENGE in pcap and bytes(16) in pcap else 1)
END

fact 'a message of an unknown type is a gap with its bytes, and an unknown encoding is one too'
serve draw type wait
view
leaves 1
lost protocol 'Unknown message type 200'
only pedantic-rfb-unknown-200
value "$zip" metadata.json .description | grep -q 'a message of 4 bytes.*: c8 01 02 03' ||
    wrong "$(value "$zip" metadata.json .description)"
unzip -tq "$zip" screenshot.png >unzipped 2>&1 || wrong 'it has no screenshot'
serve draw encoding wait
view
leaves 1
lost protocol 'Unknown rect encoding 12345'
only pedantic-rfb-encoding-12345

fact 'a connection that is reset, closed or left by the server says so'
serve draw reset
view
leaves 1
lost io ECONNRESET
serve draw
view
leaves 1
lost io 'VNC server closed connection'
expect_same 'the channel' rfb "$(value "$zip" disconnect-cause.json .channel)"
unzip -tq "$zip" screenshot.png >unzipped 2>&1 || wrong 'it has no screenshot'

fact 'what makes no sense ends the connection, and costs no memory'
for case in 'outside:Rect too large: 40x40 at (30, 20)' 'huge:is too large' 'grow:is too large' \
    'http:Not a valid VNC server' 'refuse:VNC connection failed: no '; do
    serve "${case%%:*}" wait
    view
    leaves 1
    lost protocol "${case#*:}"
    ! grep -q "$(printf '\033')" "$where/out" || wrong 'an escape sequence reached the terminal'
done

fact 'a server that stops inside a message is a hang of the thread that receives'
serve draw half wait
view
await 'grep -q "^hang report: " "$where/out"'
only hang
expect_same 'the thread' vnc-receive "$(value "$zip" hang.json .thread.name)"
kill -INT "$viewer"
leaves 0
expect_same 'the reports' 1 "$(find "$where/reports" -name '*.zip' | wc -l | tr -d ' ')"

finish
