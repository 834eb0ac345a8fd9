#!/bin/sh
# Several processes in one report, and how they are found.
. "$(dirname "$0")/lib.sh"
need unzip jq mkfifo
cd "$scratch" || exit 1
mkfifo forever
cp "$(command -v sh)" "./fake$$"
fake=fake$$

# A server as nginx and PostgreSQL are: workers that were forked, one of which has another name; and a
# helper that runs another file.
cat >server <<'EOF'
for i in 1 2 3; do
    (
        [ "$i" -ne 2 ] || printf renamed >/proc/self/comm
        echo "$i" >>ready
        read -r line <forever
    ) &
done
sleep 300 &
echo $! >helper
echo 4 >>ready
read -r line <forever
EOF

# start_server ARGUMENT...: its id is in `server`.
start_server() {
    rm -f ready
    start "./$fake" server "$@"
    server=$pid
    # shellcheck disable=SC2016 # await expands it
    await '[ -f ready ] && [ "$(wc -l <ready)" = 4 ] && grep -qx sleep "/proc/$(cat helper)/comm"'
    started="$started $(cat helper) $(cat "/proc/$server/task/$server/children")"
}

# taken ARGUMENT...: a capture; the path is in `zip`.
taken() {
    mkdir -p reports
    run capture --window 50ms -o reports "$@"
    zip=$(cat out)
}

# directories ZIP: of the further processes, sorted.
directories() {
    entries "$1" | sed -n 's,^processes/\([^/]*\)/.*,\1,p' | sort -u | tr '\n' ' '
}

start_server
workers=$(tr ' ' '\n' <"/proc/$server/task/$server/children" | grep -vxF "$(cat helper)" | sort)
expected=$(for worker in $workers; do echo "$worker-$(cat "/proc/$worker/comm")"; done | sort | tr '\n' ' ')

fact 'a server is found by its name, with all its workers, whatever they are called'
taken --name "$fake"
expect_status 0
expect_no_err
expect_same 'the first' "$server" "$(value "$zip" metadata.json .target.pid)"
expect_same 'the others' "$expected" "$(directories "$zip")"
expect_like 'what there is' '*-renamed *' "$expected"

fact 'each has the entries that the first has, and the manifest is over all'
for directory in $expected; do
    for entry in metadata.json runtime-metrics.json process.json threads.json; do
        path=processes/$directory/$entry
        expect_same "the status of $path" ok "$(ledger "$zip" "$path" status)"
        case $entry in
            metadata.json) expect_same 'the process' "${directory%%-*}" "$(value "$zip" "$path" .target.pid)" ;;
            process.json | threads.json) expect_same 'the process' "${directory%%-*}" "$(value "$zip" "$path" .pid)" ;;
        esac
    done
done
expect_same 'the list' "$(for directory in $expected; do echo "${directory%%-*}"; done | sort)" \
    "$(value "$zip" metadata.json '.processes[].pid' | sort)"
expect_same 'the order' 'own further manifest.json ' \
    "$(entries "$zip" | sed 's,^processes/.*,further,; /^further$/b; /^manifest.json$/b; s/.*/own/' | uniq | tr '\n' ' ')"
expect_same 'the last' manifest.json "$(entries "$zip" | tail -n 1)"

fact 'their windows are one window'
taken --name "$fake" --window 1
value "$zip" manifest.json '[.artefacts[] | select(.name | endswith("runtime-metrics.json")).covers |
    [.from, .to] | map((.[:19] + "Z" | fromdate) + (.[19:26] | tonumber))] | transpose |
    map(max - min < 0.9) | all' >covers
expect_same 'whether they are close' true "$(cat covers)"

fact 'an entry can be left out of all of them'
taken --name "$fake" --without threads.json
expect_status 0
entries "$zip" | grep -q threads.json && wrong 'it is there'
expect_same 'how many are disabled' 4 \
    "$(value "$zip" manifest.json '[.artefacts[] | select(.status == "disabled")] | length')"

fact 'the descendants come on request, and ids in the order that they were given'
taken --pid "$server" --children
expect_status 0
expect_like 'what there is' '*'"$(cat helper)-sleep "'*' "$(directories "$zip")"
# shellcheck disable=SC2086 # words
set -- $workers
taken --pid "$2" --pid "$server" --pid "$2" --app both
expect_status 0
expect_same 'the first' "$2" "$(value "$zip" metadata.json .target.pid)"
expect_same 'the other' "$server-$fake " "$(directories "$zip")"

fact 'several that are no tree are listed, and nothing is written'
first=$server
start_server
mkdir none
exits 2 capture --name "$fake" -o none
expect_no_out
expect_err 'choose one with --pid'
for root in $first $server; do
    grep -Eq "^ *$root +4  \./$fake server$" err || wrong "$root is not listed"
done
expect_empty none

fact 'what is not there is no process, and nothing is written'
exits 4 capture --name "no-$fake" -o none
expect_err "no process is called 'no-$fake'"
exits 4 capture --unit "no-$fake" -o none
for mounted in '' /sys/fs/cgroup; do
    exits 4 capture --cgroup "$mounted/no-$fake" -o none
    expect_err "no process runs in the cgroup '/no-$fake'"
done
cp "$BUGPACK" "self$$"
"./self$$" capture --name "self$$" -o none >out 2>err
status=$?
expect_status 4 # itself is not meant
exits 4 capture --pid "$server" --pid 999999999 -o none
expect_err 999999999
exits 4 capture --pid 999999999 --children -o none
expect_empty none

fact 'selectors exclude each other'
expect_misuse 'exclude each other' capture --name x --pid "$server"
expect_misuse 'exclude each other' capture --name x --host
expect_misuse '--children needs' capture --children
expect_misuse '--cgroup takes a path' capture --cgroup x

fact 'a cgroup means all that run in it'
cgroup=$(sed -n 's/^0:://p' "/proc/$server/cgroup")
case $cgroup in
    /?*)
        taken --cgroup "$cgroup" --name x 2>/dev/null
        expect_status 2
        ;;
    *) echo 'not tried: this process is in no cgroup of its own' ;;
esac

fact 'secrets in the arguments of a further process are replaced, too'
first=$server
start_server --password=hunter2hunter2
taken --pid "$first" --pid "$server" --app secret
value "$zip" "processes/$server-$fake/process.json" . | grep -q hunter2 && wrong 'there is one'

fact 'nginx is found by its name, with all its workers'
if command -v nginx >/dev/null 2>&1 || not_tried 'nginx is not installed'; then
    cp "$(command -v nginx)" "./ngx$$"
    cat >nginx.conf <<EOF
daemon off; worker_processes 4; error_log $scratch/nginx.log; pid $scratch/nginx.pid;
events { worker_connections 16; }
EOF
    start "./ngx$$" -e "$scratch/nginx.log" -p "$scratch" -c nginx.conf
    await "[ \"\$(wc -w <'/proc/$pid/task/$pid/children')\" = 4 ]"
    server=$pid
    taken --name "ngx$$"
    expect_status 0
    expect_same 'the first' "$server" "$(value "$zip" metadata.json .target.pid)"
    expect_same 'the others' \
        "$(tr ' ' '\n' <"/proc/$server/task/$server/children" | sed -n "s/.$/&-ngx$$/p" | sort | tr '\n' ' ')" \
        "$(directories "$zip")"
    kill -TERM "$server"
fi

fact 'PostgreSQL is found by its name, with all its workers'
bin=$(find /usr/lib/postgresql -name initdb 2>/dev/null | sort | tail -n 1)
if { [ -n "$bin" ] && can_be_nobody && ! pgrep -x postgres >/dev/null; } ||
    not_tried 'PostgreSQL is not installed, or runs already'; then
    bin=$(dirname "$bin")
    chmod 755 .
    mkdir -m 777 theirs
    as_nobody "$bin/initdb" --no-sync -A trust -D "$scratch/theirs/data" >initdb.log 2>&1 ||
        wrong "$(tail -n 2 initdb.log)"
    start_as_nobody "$bin/postgres" -D "$scratch/theirs/data" -k "$scratch/theirs" -c listen_addresses=
    server=$pid
    await "[ \"\$(wc -w <'/proc/$server/task/$server/children')\" -ge 5 ]"
    taken --name postgres
    expect_same 'the first' "$server" "$(value "$zip" metadata.json .target.pid)"
    expect_same 'the others' "$(wc -w <"/proc/$server/task/$server/children" | tr -d ' ')" \
        "$(directories "$zip" | wc -w | tr -d ' ')"
    kill -INT "$server"
    wait "$server"
fi

finish
