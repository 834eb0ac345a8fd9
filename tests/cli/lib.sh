# What every test of the command line begins with. Source it: . "$(dirname "$0")/lib.sh"
# shellcheck shell=sh disable=SC2016,SC2034,SC2154 # await runs texts; some names are for the tests, some are from them
#
# BUGPACK is the program to test. `scratch` is a directory of this test's own that goes at the end,
# together with every process that `start` began. A test tells each fact with `fact`, and ends with
# `finish`, whose status is 1 when one fact was wrong. With FIRST_WRONG_ENDS it ends at the first one,
# which is all that tests/lint/check-failing wants to know.

set -u
: "${BUGPACK:?name the bugpack program to test}"
umask 022
unset NO_COLOR POSIXLY_CORRECT LESS
PAGER="cat" # a pager would wait for a key
export PAGER
# Descriptors of whoever runs the tests would count against the limits that some tests set.
exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-
here=$(cd "$(dirname "$0")" && pwd)
source_dir=${here%/tests/*}
scratch=$(mktemp -d "${TMPDIR:-/tmp}/bugpack-cli.XXXXXX") || exit 1
# Sessions are this test's own, too: what another one left dead is not to be recovered by ours.
XDG_RUNTIME_DIR=$(mktemp -d "${XDG_RUNTIME_DIR:-$scratch}/XXXXXX") || exit 1
export XDG_RUNTIME_DIR
own_runtime=$XDG_RUNTIME_DIR
started=
facts=0
failures=0
current='before the first fact'
status=
export here source_dir
# shellcheck source=tests/support/holds.sh
. "$source_dir/tests/support/holds.sh"

clean_up() {
    for pid in $started; do
        kill -KILL "$pid" 2>/dev/null
    done
    chmod -R u+rwX "$scratch" 2>/dev/null
    rm -rf "$scratch" "$own_runtime"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# start COMMAND...: runs it in the background until the end of the test; its id is in `pid`. A program
# has begun when it returns, and is not the shell any more that has forked it. A python3 that is a script
# would begin the interpreter later.
start() {
    if [ "$1" = python3 ]; then
        shift
        set -- "$(python3 -c 'import sys; print(sys.executable)')" "$@"
    fi
    "$@" </dev/null >/dev/null 2>&1 &
    pid=$!
    started="$started $pid"
    case $(command -v "$1") in
    */*) await '! cmp -s "/proc/$pid/cmdline" "/proc/$$/cmdline"' ;;
    esac
}

# await COMMAND: runs it until it succeeds. A test waits for a sign, and never for a time: the
# limit is for a sign that never comes.
await() {
    tries=0
    until eval "$1"; do
        tries=$((tries + 1))
        if [ "$tries" -gt "${AWAIT_TRIES:-1200}" ]; then
            wrong "this never came true: $1"
            return 1
        fi
        sleep 0.05
    done
}

# serves PID: the minimal host has logged "serving", and waited for its client since. Its rings are
# not to be opened while it runs.
serves() {
    for task in /proc/"$1"/task/*; do
        if [ "$(cat "$task/comm" 2>/dev/null)" = minimal-server ] &&
            [ "$(sed -n 's/^voluntary_ctxt_switches:[[:space:]]*//p' "$task/status")" -gt 5 ]; then
            return 0
        fi
    done
    return 1
}

# skip REASON: ends the whole test as one that cannot run here.
skip() {
    echo "skipped: $1"
    [ "$failures" -eq 0 ] || finish
    exit 77
}

need() {
    for tool in "$@"; do
        command -v "$tool" >/dev/null 2>&1 || skip "$tool is not installed"
    done
}

# not_tried WHAT: says so, and is false: if command -v tool || not_tried 'that (there is no tool)'; then
not_tried() {
    echo "not tried: $1"
    return 1
}

fact() {
    facts=$((facts + 1))
    current=$1
}

wrong() {
    failures=$((failures + 1))
    printf 'FAIL: %s: %s\n' "$current" "$1"
    if [ -s "$scratch/err" ]; then
        sed 's/^/    stderr: /' "$scratch/err"
    fi
    [ -z "${FIRST_WRONG_ENDS:-}" ] || exit 1
}

# Every report that the test has left must match the published schemas. Node and the validator are
# tests/run's to install; without them this is said, and tests/schema/check skips itself.
check_schemas() {
    find "$scratch" -name '*.zip' -type f -size +0 >"$scratch/zips"
    [ -s "$scratch/zips" ] || return 0
    fact 'every report matches the published schemas'
    if [ -z "${BUGPACK_SCHEMA_NODE_MODULES:-}" ] || ! command -v node >/dev/null 2>&1; then
        echo 'not tried: the schemas (BUGPACK_SCHEMA_NODE_MODULES is not set, or there is no node)'
        return
    fi
    : >"$scratch/err"
    while IFS= read -r path; do
        set -- "$@" "$path"
    done <"$scratch/zips"
    node "$source_dir/tests/schema/validate.mjs" "$@" >"$scratch/out" 2>"$scratch/err" ||
        wrong "$(cat "$scratch/out")"
}

# expect_schema NAME FILE...: each is what tests/schema/validate.mjs knows as NAME. Tries nothing where
# check_schemas says that it does not.
expect_schema() {
    schema_name=$1
    shift
    if [ -z "${BUGPACK_SCHEMA_NODE_MODULES:-}" ] || ! command -v node >/dev/null 2>&1; then
        echo "not tried: the schema of $schema_name"
        return
    fi
    mkdir -p "$scratch/schema.d"
    for schema_file in "$@"; do
        cp "$schema_file" "$scratch/schema.d/$schema_name"
        schema_said=$(node "$source_dir/tests/schema/validate.mjs" "$scratch/schema.d/$schema_name" 2>&1) ||
            wrong "$schema_file: $schema_said"
    done
}

# expect_page PAGE...: a browser shows each as check_page.mjs asks, where the test is told to start one
# (WITH_BROWSER).
expect_page() {
    [ -n "${WITH_BROWSER:-}" ] || return 0
    if [ -z "${BUGPACK_SCHEMA_NODE_MODULES:-}" ] || ! command -v node >/dev/null || ! command -v chromium >/dev/null; then
        echo 'not tried: pages in a browser (there is no chromium, no node, or BUGPACK_SCHEMA_NODE_MODULES is not set)'
        return
    fi
    timeout 500 node "$here/check_page.mjs" "$@" >"$scratch/out" 2>"$scratch/err" ||
        wrong "status $?: $(cat "$scratch/out" "$scratch/err")"
}

finish() {
    check_schemas
    printf '%s facts, %s wrong\n' "$facts" "$failures"
    [ "$failures" -eq 0 ] && [ "$facts" -gt 0 ]
    exit
}

# run ARGUMENT...: bugpack with its output in scratch/out, its messages in scratch/err. A test must
# not hang with the program that it tests.
run() {
    timeout 60 "$BUGPACK" "$@" >"$scratch/out" 2>"$scratch/err" </dev/null
    status=$?
}

# expect_host_status ZIP: a capture of the machine lacks nothing that this user may have. What is
# refused, as in a container even to root, is in the note of the manifest.
expect_host_status() {
    expect_status 0
    expect_no_err
    expect_same 'the manifest' true "$(value "$1" manifest.json .complete)"
    if [ "$(value "$1" host-threads.json .summary.complete)" = false ]; then
        expect_like 'the note' 'this user may not read: *(denied)*' "$(ledger "$1" host-threads.json note)"
    fi
}

# capture ARGUMENT...: a short one of `target`, into scratch/reports; the path is in `zip`.
capture() {
    mkdir -p "$scratch/reports"
    run capture --pid "$target" --window 50ms --output-dir "$scratch/reports" "$@"
    zip=$(cat "$scratch/out")
}

# expect_status WANTED [STATUS]: STATUS, or that of the last `run`.
expect_status() {
    status=${2:-$status}
    [ "$status" -eq "$1" ] || wrong "the exit status is $status and not $1"
}

# captures STATUS ARGUMENT...: as capture, and the exit status is that.
captures() {
    wanted_status=$1
    shift
    capture "$@"
    expect_status "$wanted_status"
}

# exits STATUS ARGUMENT...: as run, and the exit status is that.
exits() {
    wanted_status=$1
    shift
    run "$@"
    expect_status "$wanted_status"
}

# expect_err TEXT: standard error holds it.
expect_err() {
    grep -qF -e "$1" "$scratch/err" || wrong "standard error does not say: $1"
}

expect_out() {
    grep -qF -e "$1" "$scratch/out" || wrong "standard output does not say: $1"
}

expect_no_out() {
    [ ! -s "$scratch/out" ] || wrong "standard output is not empty"
}

expect_no_err() {
    [ ! -s "$scratch/err" ] || wrong "standard error is not empty"
}

# expect_same WHAT WANTED GOT
expect_same() {
    [ "$2" = "$3" ] || wrong "$1 is <$3> and not <$2>"
}

# expect_like WHAT PATTERN GOT: a pattern of the shell.
expect_like() {
    # shellcheck disable=SC2254 # it is one
    case $3 in
    $2) ;;
    *) wrong "$1 is <$3> and not like <$2>" ;;
    esac
}

# expect_usage TEXT: the command line was refused with it, in a sentence and a pointer to the help.
expect_usage() {
    expect_status 2
    expect_err "$1"
    expect_err '--help'
    expect_same 'the number of lines of the message' 2 "$(wc -l <"$scratch/err" | tr -d ' ')"
    expect_no_out
}

# expect_misuse TEXT ARGUMENT...: as run, and expect_usage TEXT.
expect_misuse() {
    wanted_text=$1
    shift
    run "$@"
    expect_usage "$wanted_text"
}

# expect_empty DIR: nothing is in it, not even a hidden file.
expect_empty() {
    left=$(ls -A "$1")
    [ -z "$left" ] || wrong "$1 holds: $left"
}

# entries ZIP: their names in the order of the archive, a line each.
entries() {
    unzip -Z1 "$1"
}

# value ZIP ENTRY FILTER: what jq makes of a JSON entry.
value() {
    unzip -p "$1" "$2" | jq -r "$3"
}

# ledger ZIP ENTRY KEY: what the manifest says of an entry.
ledger() {
    unzip -p "$1" manifest.json |
        jq -r --arg name "$2" --arg key "$3" '.artefacts[] | select(.name == $name) | .[$key]'
}

# as_nobody COMMAND...: without any privilege. Only when `can_be_nobody`.
as_nobody() {
    if [ "$(id -u)" -eq 0 ]; then
        setpriv --reuid 65534 --regid 65534 --clear-groups "$@"
    else
        "$@"
    fi
}

# start_as_nobody COMMAND...: like start. Not `as_nobody … &`, which would run the function in a shell
# of its own: its id, and not the command's, would be the one that is ended.
start_as_nobody() {
    if [ "$(id -u)" -eq 0 ]; then
        start setpriv --reuid 65534 --regid 65534 --clear-groups "$@"
    else
        start "$@"
    fi
}

can_be_nobody() {
    [ "$(id -u)" -ne 0 ] ||
        { command -v setpriv >/dev/null 2>&1 && as_nobody test -x "$(reachable "$BUGPACK")"; }
}

# reachable PROGRAM: its path, or that of a copy where it lies below a directory that nobody may not enter,
# as root's home is.
reachable() {
    if as_nobody test -x "$1"; then
        echo "$1"
    else
        mkdir -p "$scratch/.reachable"
        cp "$1" "$scratch/.reachable"
        chmod a+x "$scratch"
        echo "$scratch/.reachable/${1##*/}"
    fi
}
