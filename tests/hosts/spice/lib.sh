# What the tests of bugpack-spice begin with. Source it: . "$(dirname "$0")/lib.sh"
# shellcheck shell=sh disable=SC2016,SC2034,SC2154 # await runs texts; some names are for the tests
: "${BUGPACK_SPICE:?name the bugpack-spice program to test}"
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/../../cli/lib.sh"
need python3 openssl jq unzip
cd "$scratch" || exit 1
mkdir reports
mkdir -m 700 runtime
XDG_RUNTIME_DIR=$scratch/runtime
export XDG_RUNTIME_DIR
openssl genrsa -out key.pem 1024 2>/dev/null
openssl rsa -in key.pem -pubout -outform DER -out public.der 2>/dev/null

# start_server ARGUMENT...: its port is in `port`, its lines in server.out. `tell` gives it commands.
start_server() {
    exec 8>&-
    rm -f commands server.out
    mkfifo commands
    python3 "$here/server.py" --key key.pem --public public.der "$@" <commands >>server.out 2>server.err &
    server=$!
    started="$started $server"
    exec 8>commands
    await 'grep -q "^listening" server.out' || cat server.err
    port=$(sed -n 's/^listening //p' server.out)
}

# stop_server [SIGNAL]: returns when its port is free.
stop_server() {
    kill "-${1:-TERM}" "$server"
    wait "$server" 2>/dev/null
}

tell() {
    echo "$*" >&8
}

# start_client ARGUMENT...: the address is the server's; its lines are in client.out, its id in
# `client`.
start_client() {
    : >client.out
    "$BUGPACK_SPICE" --report-dir "$scratch/reports" "$@" "spice://127.0.0.1:$port" \
        </dev/null >>client.out 2>client.err &
    client=$!
    started="$started $client"
}

# sign PATTERN [COUNT]: until so many lines (1) of the client have it.
sign() {
    pattern=$1
    wanted=${2:-1}
    await '[ "$(grep -c -e "$pattern" client.out)" -ge "$wanted" ]' || {
        wrong "the client's last lines: $(tail -n 5 client.out)"
        return 1
    }
}

# heard PATTERN [COUNT]: the same of the server.
heard() {
    pattern=$1
    wanted=${2:-1}
    await '[ "$(grep -c -e "$pattern" server.out)" -ge "$wanted" ]' ||
        wrong "the server's last lines: $(tail -n 5 server.out) $(cat server.err)"
}

all_up() {
    for name in main display inputs; do
        sign "^$name is up"
    done
    heard '^received display 101 '
}

# end_client SIGNAL: the status that it ends with is in `status`.
end_client() {
    kill "-$1" "$client"
    wait "$client" 2>/dev/null
    status=$?
}

# next_report TYPE: the path of the newest report of the type, when there is one more than before.
next_report() {
    sign "^$1 report: " "${2:-1}"
    zip=$(sed -n "s/^$1 report: //p" client.out | tail -n 1)
}
