#!/bin/sh
# files.json and system.json: the descriptors of a process, beside what the links below /proc say,
# and the machine, beside what uname and df say.
# shellcheck disable=SC2016 # jq and await expand it
. "$(dirname "$0")/lib.sh"
need unzip jq
cd "$scratch" || exit 1
mkdir reports

fact 'every descriptor is listed with its number and its target'
echo text >input
mkfifo fifo
start sh -c 'exec sleep 300 <input 4>>log 5<>fifo 6</'
await '[ -e /proc/$pid/fd/6 ] && grep -q sleep /proc/$pid/comm'
exits 0 capture --pid "$pid" --window 0 -o reports
zip=$(cat out)
expect_same 'the status' ok "$(ledger "$zip" files.json status)"
for number in $(find "/proc/$pid/fd" -mindepth 1 -printf '%f\n' | sort -n); do
    printf '%s %s\n' "$number" "$(readlink "/proc/$pid/fd/$number")"
done >expected
value "$zip" files.json '.files[] | "\(.number) \(.target)"' >listed
cmp -s expected listed || wrong "the descriptors are $(cat listed), not $(cat expected)"
expect_same 'how many' "$(wc -l <expected | tr -d ' ')" "$(value "$zip" files.json .open)"
expect_same 'kinds and access' 'file read|file write|fifo read_write|directory read' \
    "$(value "$zip" files.json '[.files[] | select(.number == (0, 4, 5, 6)) | "\(.kind) \(.access)"] | join("|")')"
expect_same 'the limit' "$(awk '/^Max open files/ { print $4, $5 }' "/proc/$pid/limits")" \
    "$(value "$zip" files.json '"\(.limit.soft) \(.limit.hard)"')"

fact 'the machine and the program are described, and the machine has its name on request'
expect_same 'the kernel' "$(uname -r) $(uname -m)" \
    "$(value "$zip" system.json '"\(.kernel.release) \(.kernel.architecture)"')"
expect_same 'the distribution' "$(. /etc/os-release && echo "$PRETTY_NAME")" \
    "$(value "$zip" system.json .distribution.name)"
if [ "$(stat -c %d "/proc/$pid/root/")" = "$(stat -c %d /)" ]; then
    expect_same 'the size of /' "$(df -B1 --output=size / | tail -n 1 | tr -d ' ')" \
        "$(value "$zip" system.json '.filesystems[] | select(.of | index("root")).total_bytes')"
    # Others write meanwhile.
    available=$(value "$zip" system.json '.filesystems[] | select(.of | index("root")).available_bytes')
    now=$(df -B1 --output=avail / | tail -n 1 | tr -d ' ')
    if [ "$((now / 2))" -gt "$available" ] || [ "$((available / 2))" -gt "$now" ]; then
        wrong "$available bytes were available, and now $now"
    fi
fi
expect_same 'no name' 'null null' "$(value "$zip" system.json .hostname) $(value "$zip" metadata.json .machine)"
run capture --pid "$pid" --window 0 -o reports --hostname
zip=$(cat out)
expect_same 'the name' "$(uname -n) $(uname -n)" "$(value "$zip" system.json .hostname) $(value "$zip" metadata.json .machine)"
run show "$zip"
expect_out "machine    $(uname -n)"
run index "$zip"
expect_same 'the index' "$(uname -n)" "$(jq -r .machine out)"

fact 'what is left out on request is not in the report, and the manifest says so'
exits 0 capture --pid "$pid" --window 0 -o reports --without 'files.json system.json'
zip=$(cat out)
expect_same 'the status' disabled "$(ledger "$zip" files.json status)"
expect_same 'the status' disabled "$(ledger "$zip" system.json status)"
entries "$zip" | grep -q -e files.json -e system.json && wrong 'it is there all the same'

finish
