#!/bin/sh
# System calls that fail, by strace: what they cost is told by its errno, and nothing that is merely
# not known is called absent, ended, too large or invalid.
. "$(dirname "$0")/lib.sh"
need unzip jq strace
cd "$scratch" || exit 1
start sleep 300
target=$pid
strace -o /dev/null true 2>/dev/null || skip 'strace may not trace here'
program=$(readlink -f "/proc/$target/exe")

# traced STRACE-OPTION... -- ARGUMENT...: bugpack under strace.
traced() {
    options=
    while [ "$1" != -- ]; do
        options="$options $1"
        shift
    done
    shift
    # shellcheck disable=SC2086 # the options have no blanks
    timeout 60 strace -f -o trace $options "$BUGPACK" "$@" >out 2>err </dev/null
    status=$?
    sed -i '/^strace: Requested path/d' err
}

fact 'a file that cannot be read is not one without a jemalloc'
for when in 1+ 2 9 17; do
    traced -P "$program" -e "inject=pread64:error=EIO:when=$when" -- heap --pid "$target"
    grep -q INJECTED trace || continue
    expect_status 1
    expect_err "cannot look for a jemalloc in \"$program\": Input/output error"
    ! grep -q jemalloc-not-found out err || wrong "EIO at $when is called an absence"
done

# nth PATTERN: which call of its thread the first one with PATTERN in the trace is.
nth() {
    awk -v pattern="$1" '{ n[$1]++ } $0 ~ pattern { print n[$1]; exit }' trace
}

fact 'a file that cannot be opened is not one without a jemalloc either'
traced -e trace=openat -- heap --pid "$target"
reopened=$(nth '"/proc/self/fd/')
separate=$(nth '"/usr/lib/debug/')
[ -n "$reopened" ] || wrong 'no file is opened through its descriptor'
for case in "ENOSPC ${reopened:-1} No space left" "EMFILE ${separate:-0} Too many open files"; do
    # shellcheck disable=SC2086 # words
    set -- $case
    [ "$2" != 0 ] || continue # no debug data are looked for here
    traced -e trace=openat -e "inject=openat:error=$1:when=$2" -- heap --pid "$target"
    expect_status 1
    expect_err 'cannot look for a jemalloc in "'
    expect_err "\": ${case#* * }"
    ! grep -q jemalloc-not-found out err || wrong "$1 at $2 is called an absence"
done

fact 'an open that has to be asked for again is'
# The kernel says so where a file is renamed or mounted anywhere while it follows ".." (openat2(2)).
traced -e trace=openat2 -e inject=openat2:error=EAGAIN:when=1+2 -- \
    capture --pid "$target" --window 0 --output renamed.zip
grep -q INJECTED trace || wrong 'nothing failed'
expect_status 0

fact 'a file that fails is not called too large'
traced -P "/proc/$target/maps" -e inject=read:error=EIO:when=2+ -- \
    capture --pid "$target" --window 0 --output maps.zip
expect_status 3
expect_same 'the reason' 'loaded objects: Input/output error' "$(ledger maps.zip process.json reason)"
expect_same 'the heap' failed "$(ledger maps.zip thread-heap.json status)"
# The first read takes the beginning.
traced -P "/proc/$target/cmdline" -e inject=read:error=EIO:when=2+ -- \
    capture --pid "$target" --window 0 --output cmdline.zip
expect_status 3
expect_same 'the reason' 'the rest of the command line: Input/output error' \
    "$(ledger cmdline.zip process.json reason)"

fact 'a /proc that fails is neither one that is missing nor one of other processes'
for call in fstatfs readlinkat; do
    traced -e "inject=$call:error=EIO" -- sample --pid "$target" --window 0
    expect_status 1
    expect_err 'cannot open /proc: Input/output error'
done

fact 'a system call that is refused by a filter is not a distribution that has no name'
traced -e inject=openat2:error=ENOSYS -- capture --pid "$target" --window 0 --output filtered.zip
if grep -q INJECTED trace; then
    # More in a container.
    expect_same 'the reason' 'files could not be read: Function not implemented' \
        "$(ledger filtered.zip system.json reason | sed 's/^[23] //')"
    expect_same 'the distribution' null "$(value filtered.zip system.json .distribution)"
fi

fact 'a name that may be lost is not called safe, and its report stays'
mkdir named
traced -e inject=fsync:error=EIO:when=2 -- capture --pid "$target" --window 0 -o named
expect_status 1
expect_err 'is written, but its name may be lost when the system stops: Input/output error'
unzip -tqq named/*.zip >/dev/null || wrong 'there is no whole zip'
rm -rf named

fact 'in a capture of the machine only what is gone counts as ended'
run capture --host --output whole.zip
whole=$(unzip -p whole.zip host-threads.json | jq .summary.processes)
for error in EMFILE EIO; do
    for when in 100+7 300+2; do
        rm -f host.zip
        traced -e "inject=openat:error=$error:when=$when" -- capture --host --output host.zip
        [ -e host.zip ] || continue # it could not even begin
        expect_status 3
        expect_same "complete with $error at $when" false "$(value host.zip manifest.json .complete)"
        unzip -p host.zip host-threads.json >host.json 2>/dev/null
        [ -s host.json ] || continue
        expect_same "the errors with $error at $when" true \
            "$(jq '.summary.errors | map(.processes + .threads + .files) | add > 0' host.json)"
        expect_same "those that ended with $error at $when" true \
            "$(jq --argjson whole "$whole" '.summary.vanished_processes < ($whole / 2)' host.json)"
    done
done

fact 'a command whose end the system does not tell is lost, and not waited for'
traced -e inject=waitid:error=EPERM -- run -q -o . -- sh -c 'exit 3'
[ "$status" -ne 124 ] || wrong 'it hangs'
expect_err 'the exit status is not known'

fact 'run goes on where nothing can be waited for, and begins nothing where it could not end it'
mkdir runs
for call in poll fcntl ioctl; do
    for when in 1+ 4+ 20+; do
        traced -e "inject=$call:error=EPERM:when=$when" -- run -o runs -- \
            sh -c 'echo begun; kill -SEGV $$'
        case $status in
            139) expect_same "with $call from $when" 1 "$(find runs -name '*.zip' | wc -l)" ;;
            1 | 126) expect_err 'Operation not permitted' ;;
            *) wrong "with $call from $when: status $status" ;;
        esac
        [ "$call" != poll ] || expect_status 139
        [ "$status" != 1 ] || ! grep -q begun out || wrong "with $call from $when: it was begun"
        rm -f runs/*
    done
done

finish
