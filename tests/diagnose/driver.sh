# How a row of the corpus is run and judged. Source it from run: a row is a program, how it is
# captured, and what the report has to say.
# shellcheck shell=sh disable=SC2013,SC2015,SC2016,SC2030,SC2031,SC2034,SC2046,SC2086,SC2154 # words; a row is a subshell
#
#   living NAME ID [PATTERN]              captured by its process id
#   ended NAME ID PATTERN COMMAND...      under `bugpack run`
#   traced_end NAME ID PATTERN COMMAND... the same with --stacks
#   hosted NAME ID [PATTERN]              reports by itself, through the library
#   healthy NAME [COMMAND...]             has no finding at all
#   wanted ROW...                         not named yet: this is said, and is no failure
#   share=N; ROW...; share=               is not judged where it gets less than N % of a processor
#   wakes=N; ROW...; wakes=               is not judged where its threads wake less than N times a second
#   looks=N; ROW...; looks=               is not judged where bugpack can look at its children less often
#
# The finding ID has to be the first or the second, and its text to match PATTERN, in which @holder@ is
# what the program told as `holder=123`. A program is `begin_NAME` where there is such a function
# (which sets pid, or skips), or else a sick one of this name. `witness_NAME` asks another instrument
# while the program lives; where it fails, the program is not as sick as it should be.

rows=$scratch/rows
places=$scratch/places
padding=$scratch/padding
mkdir "$rows"
running=
row_count=0
mark=
kind=sick

# tree PID...: these and all their descendants.
tree() {
    for member in "$@"; do
        echo "$member"
        tree $(cat /proc/"$member"/task/*/children 2>/dev/null)
    done
}

# began PID: when, in clock ticks since boot; nothing if it is gone. An id is used again, a time with it is not.
began() {
    sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20
}

# end_session PID TIME: the session that began so, and all that descend from it. Where its first process
# has ended and the id is another's now, nothing is touched.
end_session() {
    now=$(began "$1")
    if [ "$now" = "$2" ]; then
        members=$(tree "$1")
        kill -CONT $members
        kill -KILL $members
        pkill -KILL -s "$1"
    elif [ -z "$now" ]; then
        pkill -KILL -s "$1" # those that are left: their session keeps the id from being used again
    fi
}

# The programs of a row are a session each, and go with it, as do what it has mounted and its group.
end_row() {
    while read -r session time; do
        end_session "$session" "$time"
    done <sessions
    if [ -e group ]; then
        remove_group "$(cat group)"
        rm group
    fi
    if grep -q " $PWD/mounted " /proc/self/mountinfo; then # whose server may be gone
        [ ! -e frozen ] || fsfreeze --unfreeze mounted
        umount -l mounted
    fi
    for set in $(told set); do
        ipcrm -s "$set"
    done
    for name in $(told semaphore); do
        rm -f "/dev/shm/$name"
    done
    : >sessions
}

end_all() {
    for folder in "$rows"/*/; do
        [ ! -e "$folder/sessions" ] || (cd "$folder" && end_row)
    done
}
trap 'end_all 2>/dev/null; clean_up' EXIT

# room COUNT: so many rows at a time. Waits for those that run; one that was killed gives no place back.
room() {
    [ -z "$running" ] || wait $running # without an id it waits for what runs beside the rows, too
    running=
    for folder in "$rows"/*/; do
        [ ! -d "$folder" ] || [ -e "$folder/result" ] ||
            printf 'wrong\t%s\t%s\t-\tit was killed\n' "$kind" "${folder#"$rows/"}" >"$folder/result"
    done
    rm -f "$places"
    mkfifo "$places"
    exec 8<>"$places"
    place_count=0
    while [ "$place_count" -lt "$1" ]; do
        echo >&8
        place_count=$((place_count + 1))
    done
}

function_name() {
    printf '%s_%s' "$1" "$(printf %s "$2" | tr -c 'A-Za-z0-9' _)"
}

# part NAME: the rows that follow, which run only where they are wanted.
part() {
    part=$1
}
in_part() {
    [ "${wanted_part:-$part}" = "$part" ]
}

# row HOW NAME ID...: in a process and a folder of its own, as soon as there is room.
row() {
    row_count=$((row_count + 1))
    in_part || return 0
    case "$kind $2" in
    *${ONLY:-}*) ;;
    *) return 0 ;;
    esac
    read -r _ <&8
    (
        scratch=$rows/$(printf %03d "$row_count")
        mkdir "$scratch"
        cd "$scratch" || exit 1
        : >sessions
        failures=0 name=$2 expected=$3 current=$2
        ("$@") >log 2>&1 8>&-
        # What a busy machine hid from one capture is looked for in another, and a program that was not
        # ready in time begins again; who is accused once is accused.
        if [ -e unready ] || { [ "$kind" = sick ] && grep -q ^wrong result 2>/dev/null; }; then
            [ ! -e unready ] || echo "$kind $name begins again: $(cat unready)"
            rm -rf "$scratch" && mkdir "$scratch" && cd "$scratch" || exit 1
            : >sessions
            ("$@") >log 2>&1 8>&-
        fi
        [ -e result ] || verdict wrong 'there is no result'
        echo >&8
    ) &
    running="$running $!"
}

# verdict WORD TEXT: what the table says of this row.
verdict() {
    printf '%s\t%s\t%s\t%s\t%s\n' "$1" "$kind" "$name" "$expected" "$2" >result
}

# leave_out REASON: this row cannot be tried here.
leave_out() {
    verdict skipped "$1"
    end_row
    exit 0
}

needs() {
    for tool in "$@"; do
        command -v "$tool" >/dev/null || leave_out "$tool is not installed"
    done
}

# Root of this system, and not of a container that may not mount.
needs_root() {
    [ "$(id -u)" = 0 ] && [ -n "${SICK_MOUNTS:-}" ] || leave_out 'needs root, and a mount namespace'
}

# own PID: it goes with this row.
own() {
    echo "$1 $(began "$1")" >>sessions
}

# begin COMMAND...: in a session of its own; its id is in pid. Output goes to `said`.
begin() {
    case $1 in
    "$sick"* | ./*) ;;
    *) needs "$1" ;;
    esac
    setsid "$@" >>said 2>&1 <"${input:-/dev/null}" &
    pid=$!
    own "$pid"
}

# begin_ready COMMAND...: and it has printed "ready".
begin_ready() {
    begin "$@"
    await "grep -q '^ready' said"
}

# begin_waiting COMMAND...: for input that has a writer, this shell, and no bytes.
# shellcheck disable=SC2094
begin_waiting() {
    mkfifo input
    exec 7<>input
    input=input
    begin "$@"
    input=
}

# told KEY: what the program said of itself.
told() {
    sed -n "s/^$1=//p" said
}

tell() {
    echo "$1" >>said
}

living() {
    row living_row "$@"
}

living_row() {
    : >said
    begin=$(function_name begin "$1")
    witness=$(function_name witness "$1")
    if command -v "$begin" >/dev/null; then
        "$begin"
    else
        begin "$sick" "$1"
        await "grep -q '^ready' said || ! kill -0 $pid"
    fi
    [ -z "$(told subject)" ] || pid=$(told subject)
    if command -v "$witness" >/dev/null && ! "$witness" >witnessed 2>&1; then
        cat witnessed
        unready 'another instrument does not see it'
    fi
    kill -0 "$pid" || unready 'the program has ended'
    # One that is ready is not yet in the call that it waits in.
    [ "$part" != waits ] || await "grep -q '^State:.[SDTt]' /proc/$pid/status"
    take_report
    judge "${3:-}"
    end_row
}

# under_run OPTIONS NAME ID PATTERN COMMAND...
under_run() {
    options=$1
    pattern=$4
    : >said
    shift 4
    case $1 in ./*) ;; *) needs "$1" ;; esac
    needs $(printf '%s' "$*" | sed -n 's/.*exec \([a-z0-9\/][^ ]*\).*/\1/p')
    prepare=$(function_name prepare "$name")
    if command -v "$prepare" >/dev/null; then
        "$prepare"
    fi
    mkdir reports
    timeout 300 "$BUGPACK" run $options --quiet -o reports -- "$@" >/dev/null 2>&1 </dev/null
    mv reports/*.zip report.zip
    judge "$pattern"
    end_row
}

ended_row() {
    under_run '' "$@"
}

ended() {
    row ended_row "$@"
}

traced_row() {
    under_run --stacks "$@"
}

traced_end() {
    row traced_row "$@"
}

hosted_row() {
    mkdir reports
    "${sick%/*}/diagnose_host" "$1" "$PWD/reports" >said 2>&1 </dev/null
    "$BUGPACK" recover -o reports reports/rings >/dev/null 2>&1
    mv reports/*.zip report.zip
    judge "${3:-}"
}

hosted() {
    row hosted_row "$@"
}

wanted() {
    mark=wanted
    "$@"
    mark=
}

# healthy NAME [COMMAND...]: waits for input that never comes, or does what its begin_NAME has it do.
healthy() {
    healthy_name=$1
    shift
    row healthy_row "$healthy_name" - "$@"
}

healthy_row() {
    healthy_name=$1
    shift 2
    if [ $# -gt 0 ]; then
        : >said
        begin_waiting "$@"
        await "! grep -q '^setsid' /proc/$pid/comm && ! cmp -s /proc/$pid/cmdline /proc/$$/cmdline &&
            grep -q '^State:.S' /proc/$pid/status"
        take_report
        judge
        end_row
    else
        living_row "$healthy_name" -
    fi
}

# stop_row TEXT: this row has failed.
stop_row() {
    verdict wrong "$1"
    end_row
    exit 1
}

# unready TEXT: its program is not as the row wants it, which is not for bugpack to answer for.
unready() {
    echo "$1" >unready
    cat said 2>/dev/null
    stop_row "$1"
}

await() {
    tries=0
    until eval "$1"; do
        tries=$((tries + 1))
        [ "$tries" -le 1200 ] || unready "this never came true: $1"
        sleep 0.05
    done
}

# used_ticks: what `pid` has used of the processors, with its threads that have ended, in hundredths of a
# second; and now_ticks, the time.
used_ticks() { echo $(($(sed 's/.*) //' "/proc/$pid/stat" | cut -d' ' -f12,13 | tr ' ' +))); }
now_ticks() { cut -d' ' -f1 /proc/uptime | tr -d .; }

# woken: how often the threads of `pid` have woken.
woken() { awk '$1 == "voluntary_ctxt_switches:" { sum += $2 } END { print sum + 0 }' "/proc/$pid/task/"*/status; }

# take_report: of `pid`; 3 is a report that is not complete (bugpack-capture(1)).
take_report() {
    if [ -n "${share:-}${wakes:-}" ]; then
        used=$(used_ticks) wakes_before=$(woken) began=$(now_ticks)
    fi
    "$BUGPACK" capture --pid "$pid" --window "${window:-2s}" ${log:+--log "$log"} --quiet --output report.zip >/dev/null
    captured=$?
    if [ -n "${share:-}${wakes:-}" ]; then
        ticks=$(($(now_ticks) - began + 1))
        got=$((100 * ($(used_ticks) - used) / ticks)) wakes_got=$((100 * ($(woken) - wakes_before) / ticks))
    fi
    case $captured in
    0 | 3) [ -s report.zip ] || stop_row 'capture wrote no report' ;;
    *) stop_row "capture ended with status $captured" ;;
    esac
    grep -q '^State:.[^ZX]' "/proc/$pid/status" || unready 'the program ended while it was captured'
}

# looked: how often a second the report's window has looked at the children; nothing where it has not.
looked() {
    unzip -p report.zip runtime-metrics.json |
        jq '(.process.children.looks // empty) * 1000 / .sample_window_ms | floor'
}

# shrink: with SHRINK, report.zip is made one of 60 MB whose padding does not compress, and that one to
# fit each of the sizes. Its first two findings and its signature stay the same.
shrink() {
    first='{signature, findings: [.findings[] | select(.id != "entry-missing")][:2] | map({id, text})}'
    [ -n "${SHRINK:-}" ] || return 0
    "$BUGPACK" show --json report.zip | jq -S "$first" >whole.json
    cp report.zip padded.zip
    (cd "$padding" && zip -q -D -0 -r "$OLDPWD/padded.zip" logs padding.bin) || stop_row 'the report cannot be padded'
    for size in $SHRINK; do
        "$BUGPACK" redact padded.zip --max-size "$size" -o fits.zip >/dev/null 2>&1 ||
            stop_row "it does not become $size"
        "$BUGPACK" verify fits.zip >/dev/null || stop_row "at $size it is not whole"
        "$BUGPACK" show --json fits.zip | jq -S "$first" >shrunk.json
        cmp -s whole.json shrunk.json || stop_row "at $size it is $(jq -c . shrunk.json)"
        [ "$(wc -c <fits.zip)" -le "$((${size%M} << 20))" ] || stop_row "it is larger than $size"
        rm fits.zip
    done
    rm padded.zip
}

# judge PATTERN: the first two findings of report.zip; none at all for what is healthy.
judge() {
    pattern=${1:-}
    shrink
    "$BUGPACK" show --json report.zip >found.json || stop_row "show ended with status $?"
    holds '.findings | type == "array"' found.json || stop_row 'show printed no findings'
    "$BUGPACK" index report.zip >line.json
    [ "$(jq .signature found.json)" = "$(jq .signature line.json)" ] ||
        stop_row "the signature of index is $(jq .signature line.json), and that of show $(jq .signature found.json)"
    ids=$(jq -r '[.findings[].id] | join(" ")' found.json)
    jq -r '.findings[] | "    \(.id): \(.text)"' found.json
    for entry in $(jq -r '.findings[].next // ""' found.json | grep -Eo '[a-z-]+\.(jsonl?|txt|folded|pcap)'); do
        unzip -Z1 report.zip | grep -Eq "(^|/)$entry\$" || stop_row "the hint names $entry, which is not there"
    done
    if [ "$expected" = - ]; then
        # It inherited the priority and the processors of this test, and what others take from it then is true.
        [ "$ids" != cpu-starved ] || { [ "$(nice)" -le 0 ] && [ "$(nproc)" = "$(nproc --all)" ]; } ||
            leave_out "the tests have a nice value of $(nice) and $(nproc) of the processors, and the machine is busy"
        [ -z "$ids" ] && verdict named none || verdict "${mark:-wrong}" "accused: $ids"
        return
    fi
    while IFS='=' read -r key value; do
        case $key in
        *[!a-z0-9]* | '') ;;
        *) pattern=$(printf %s "$pattern" | sed "s|@$key@|$value|g") ;;
        esac
    done <<END
$(grep -E '^[a-z0-9]+=[A-Za-z0-9_./-]*$' said 2>/dev/null)
END
    text=$(jq -r --arg id "$expected" '.findings[:2][] | select(.id == $id) | .text' found.json)
    if [ -z "$text" ] && [ "${got:-100}" -lt "${share:-0}" ]; then
        leave_out "the machine let it have $got % of a processor, and not $share"
    elif [ -z "$text" ] && [ "${wakes_got:-0}" -lt "${wakes:-0}" ]; then
        leave_out "the machine let it wake $wakes_got times a second, and not $wakes"
    elif [ -z "$text" ] && [ -n "${looks:-}" ] && looks_got=$(looked) && [ "${looks_got:-$looks}" -lt "$looks" ]; then
        leave_out "the machine let bugpack look at its children $looks_got times a second, and not $looks"
    elif [ -z "$text" ]; then
        unzip -p report.zip threads.json 2>/dev/null |
            jq -c '.threads[:20][] | [.name, .state, .syscall, .wait_channel, .since_start]'
        verdict "${mark:-wrong}" "named: ${ids:-nothing}"
    elif ! printf '%s\n' "$text" | grep -Eq -e "$pattern"; then
        echo "    does not match: $pattern"
        verdict "${mark:-wrong}" "named, without: $pattern"
    else
        verdict named "$ids"
    fi
}

# --- control groups -------------------------------------------------------------------------------

# make_group CONTROLLER: a new one; its folder is in `group`.
make_group() {
    [ "$(id -u)" = 0 ] || leave_out 'needs root'
    group=/sys/fs/cgroup/$1/bugpack-sick-$$-$row_count
    if [ ! -d "/sys/fs/cgroup/$1" ]; then
        group=/sys/fs/cgroup/bugpack-sick-$$-$row_count
        grep -qw "$1" /sys/fs/cgroup/cgroup.subtree_control 2>/dev/null ||
            [ "$1" = freezer ] || leave_out "there is no control group with $1"
    fi
    mkdir "$group" 2>/dev/null || leave_out 'no control group can be made'
    echo "$group" >group
}

# set_group VALUE FILE...: the first of the files that there is, as the two versions name it.
set_group() {
    value=$1
    shift
    for file in "$@"; do
        if [ -e "$group/$file" ]; then
            echo "$value" >"$group/$file" && return 0
        fi
    done
    leave_out "the control group has no $1"
}

# begin_in_group COMMAND...
begin_in_group() {
    begin sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" "$@"
}

remove_group() {
    for file in freezer.state cgroup.freeze; do
        if [ -e "$1/$file" ]; then
            case $file in freezer.state) echo THAWED ;; *) echo 0 ;; esac >"$1/$file"
        fi
    done
    while read -r member; do
        kill -KILL "$member"
    done <"$1/cgroup.procs" # what is in our group now is ours
    tries=0
    until rmdir "$1" 2>/dev/null || [ "$tries" -gt 100 ]; do
        tries=$((tries + 1))
        sleep 0.02
    done
}

# --- the table -----------------------------------------------------------------------------------

# report KIND: a line for each row of this kind; counts in `named`, `tried`, `not_yet`.
report() {
    named=0 tried=0 not_yet=0 skipped=0
    for folder in "$rows"/*/; do
        IFS='	' read -r word of name expected text <"$folder/result" || continue
        [ "$of" = "$1" ] || continue
        case $word in
        named) named=$((named + 1)) tried=$((tried + 1)) ;;
        wanted) not_yet=$((not_yet + 1)) tried=$((tried + 1)) word='not yet' ;;
        skipped) skipped=$((skipped + 1)) ;;
        *)
            tried=$((tried + 1)) current=$name
            : >"$scratch/err"
            wrong "$text"
            cat "$folder/log"
            ;;
        esac
        printf '%-8s %-26s %-22s %s\n' "$word" "$name" "$expected" "$text"
        case $word in
        skipped) echo "not tried: the $of program $name: $text" ;;
        'not yet') echo "not tried: the $of program $name, which is not named yet" ;;
        esac
        if [ -n "${VERBOSE:-}" ]; then
            cat "$folder/log"
        fi
    done
}
