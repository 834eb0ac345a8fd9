#!/bin/sh
# Where reports go, and what is left when that does not work.
. "$(dirname "$0")/lib.sh"
need unzip jq mkfifo python3
start sleep 300
target=$pid
cd "$scratch" || exit 1

# refused TEXT: nothing was written, and one sentence says why.
refused() {
    expect_status 1
    expect_err "$1"
    expect_no_out
    expect_same 'the number of lines of the message' 1 "$(wc -l <err | tr -d ' ')"
}

fact 'a report is readable by its owner only, whatever the umask'
mkdir open
(umask 000 && timeout 60 "$BUGPACK" capture --pid "$target" --window 0 -o open >out 2>err)
expect_status 0 $?
expect_same 'the mode' 600 "$(stat -c %a "$(cat out)")"

fact 'a limit on the size of files is a sentence, not a signal'
for verb in sample capture; do
    (ulimit -f 0 && timeout 60 "$BUGPACK" "$verb" --pid "$target" --window 0 2>&1 >out
        echo "status $?") | cat >err
    expect_err 'File too large'
    expect_err 'status 1'
done
run run -o open -- sh -c 'kill -XFSZ $$'
expect_status $((128 + 25))

fact 'reports of the same second have names of their own'
mkdir same
for _ in 1 2 3 4; do
    exits 0 capture --pid "$target" --window 0 -o same
done
expect_same 'the number of reports' 4 "$(find same -name '*.zip' | wc -l | tr -d ' ')"

fact '--output takes the name that it is given, and a number when it is taken'
mkdir named
for wanted in r.zip r-2.zip r-3.zip; do
    exits 0 capture --pid "$target" --window 0 --output named/r.zip
    expect_same 'the name' "$wanted" "$(basename "$(cat out)")"
    unzip -tqq "named/$wanted" >/dev/null || wrong "$wanted is no zip"
done

fact 'whatever stands at the name stays as it is'
mkdir taken
echo keep >taken/victim
ln -s victim taken/link.zip
ln -s nowhere taken/dangling.zip
mkfifo taken/fifo.zip
mkdir taken/dir.zip
for name in link dangling fifo dir; do
    exits 0 capture --pid "$target" --window 0 --output "taken/$name.zip"
    expect_same 'the name' "$name-2.zip" "$(basename "$(cat out)")"
done
expect_same 'the victim' keep "$(cat taken/victim)"
[ ! -e taken/nowhere ] || wrong 'the dangling link was followed'
[ -p taken/fifo.zip ] || wrong 'the FIFO is gone'

fact 'a link to a directory is refused however it is written, and a path is shown without its end'
mkdir real
ln -s real link
for written in link link/ link/. link//; do
    run capture --pid "$target" --window 0 -o "$written"
    refused 'symbolic link'
done
run capture --pid "$target" --window 0 --output link//r.zip
refused 'symbolic link'
expect_empty real
exits 0 capture --pid "$target" --window 0 --output-dir real//./
expect_same 'the directory' "$(pwd -P)/real" "$(dirname "$(cat out)")"

fact 'an output that names a directory is no file, and nothing is written beside it'
mkdir parent parent/child
for written in . .. ./ ../child/. ../child/..; do
    (cd parent/child && timeout 60 "$BUGPACK" capture --pid "$target" --window 0 \
        --output "$written" >"$scratch/out" 2>"$scratch/err")
    expect_status 2 $?
    expect_err 'it names no file'
done
expect_same 'what is there' child "$(ls -A parent)"
expect_empty parent/child

fact 'a path that is too long is told by what is wrong with it'
long=$(printf '%09000d' 0)
run capture --pid "$target" --window 0 -o "$long"
refused 'File name too long'
exits 3 capture --pid "$target" --window 0 -o real --log "$long"
expect_err 'File name too long'

fact 'directories that are not there, or are none, are refused by name'
run capture --pid "$target" --window 0 -o missing
refused 'missing'
echo >file
run capture --pid "$target" --window 0 -o file
refused 'file'
ln -s open linked
run capture --pid "$target" --window 0 -o linked
refused 'symbolic link'
run capture --pid "$target" --window 0 --output missing/r.zip
refused 'missing'
[ ! -e missing ] || wrong 'the directory was made'

fact 'a name that is too long is refused'
mkdir long
exits 1 capture --pid "$target" --window 0 --output "long/$(printf '%0254d' 0).zip"
expect_empty long

if can_be_nobody || not_tried 'a directory that may not be written (no setpriv)'; then
    fact 'a directory that may not be written is refused by name'
    chmod 755 .
    mkdir -m 555 readonly
    start_as_nobody sleep 300
    as_nobody "$(reachable "$BUGPACK")" capture --pid "$pid" --window 0 -o "$scratch/readonly" >out 2>err
    status=$?
    refused 'readonly'
    expect_empty readonly
fi

fact 'an interrupted capture leaves nothing'
mkdir broken
for signal in INT:130 TERM:143 KILL:137; do
    ended=${signal#*:}
    signal=${signal%:*}
    # A shell without job control starts background commands with SIGINT ignored, and nohup all with SIGHUP.
    python3 -c 'import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])' "$BUGPACK" capture --pid "$target" --window 60 -o broken \
        >out 2>err &
    child=$!
    started="$started $child"
    # It catches SIGHUP and SIGINT while it samples; so does the shell that it was forked from.
    await "grep -qx '$(basename "$BUGPACK")' /proc/$child/comm &&
        grep -q '^SigCgt:.*[37bf]\$' /proc/$child/status"
    kill -s "$signal" $child
    wait $child 2>/dev/null
    expect_status "$ended" $?
    expect_no_out
    expect_empty broken
    if [ "$signal" != KILL ]; then
        expect_same 'what is said' 'bugpack: interrupted; nothing was written' "$(cat err)"
    fi
done

fact 'a time is in seconds, or in its unit'
for window in 300ms 0.5 1; do
    exits 0 capture --pid "$target" --window "$window" --timeout 1h --output timed.zip
    measured=$(value "$(cat out)" runtime-metrics.json '.sample_window_ms | floor')
    case $window in
        300ms) [ "$measured" -ge 300 ] || wrong "300ms are $measured" ;;
        0.5) [ "$measured" -ge 500 ] || wrong "half a second is $measured" ;;
        1) [ "$measured" -ge 1000 ] || wrong "a second is $measured" ;;
    esac
done
exits 5 capture --pid "$target" --window 1min --timeout 300ms --output timed.zip

fact '--output - writes the zip to standard output, and leaves nothing'
mkdir temporary
TMPDIR=$scratch/temporary timeout 60 "$BUGPACK" capture --pid "$target" --window 0 --output - >streamed.zip 2>err
expect_status 0 $?
expect_no_err
expect_same 'the target' "$target" "$(value streamed.zip metadata.json .target.pid)"
unzip -tqq streamed.zip || wrong 'it is not whole'
TMPDIR=$scratch/temporary timeout 60 "$BUGPACK" capture --pid "$target" --window 0 --output - --log nowhere \
    >streamed.zip 2>err
expect_status 3 $?
expect_err 'logs/nowhere'
TMPDIR=$scratch/temporary timeout 60 "$BUGPACK" redact streamed.zip --output - >again.zip 2>err
expect_status 0 $?
expect_same 'whether it is redacted' true "$(value again.zip manifest.json .redacted_again)"
TMPDIR=$scratch/temporary timeout 60 "$BUGPACK" capture --pid "$target" --window 0 --output - >/dev/full 2>err
expect_status 1 $?
expect_err 'cannot write the report to standard output: No space left on device'
TMPDIR=$scratch/temporary timeout 60 "$BUGPACK" capture --pid 999999999 --output - >none.zip 2>err
expect_status 4 $?
expect_same 'the size' 0 "$(stat -c %s none.zip)"
# shellcheck disable=SC2016
TMPDIR=$scratch/temporary timeout 60 sh -c 'ulimit -n 4; exec "$BUGPACK" capture --pid "$1" --output -' sh "$target" \
    >none.zip 2>err </dev/null
expect_status 1 $?
expect_err 'cannot prepare a report: Too many open files'
expect_empty temporary
expect_misuse 'exclude each other' capture --pid "$target" --output - --json

fact 'what is encrypted in a pipe is written below TMPDIR alone before'
if { command -v strace >/dev/null && command -v age >/dev/null; } || not_tried 'strace or age is not installed'; then
    age-keygen -o key 2>err
    TMPDIR=$scratch/temporary strace -f -y -o trace -e trace=open,openat,mkdir,mkdirat,memfd_create,link,linkat,rename,renameat2 \
        "$BUGPACK" capture --pid "$target" --window 0 --output - 2>err |
        age -r "$(sed -n 's/^# public key: //p' key)" >piped.zip.age
    grep -q O_TMPFILE trace || wrong 'nothing is seen of it'
    expect_same 'what was written elsewhere' '' \
        "$(grep -E 'O_(WRONLY|RDWR)|^[0-9]+ +(mkdir|memfd|link|rename)' trace | grep -vF -e temporary/ -e '"/dev/null"')"
    age -d -i key piped.zip.age >piped.zip
    unzip -tqq piped.zip || wrong 'it is not whole'
fi

if [ "$(id -u)" -eq 0 ] || not_tried 'who owns a report under sudo (needs root)'; then
    fact 'under sudo the report belongs to who called it, and only root gives it away'
    for caller in 65534:65534 0:0 x:1 -1:1 65534x:1 4294967296:1 65534:; do
        SUDO_UID=${caller%:*} SUDO_GID=${caller#*:} timeout 60 "$BUGPACK" capture --pid "$target" \
            --window 0 --output owned.zip >out 2>err
        expect_status 0 $?
        wanted=0:0
        if [ "$caller" = 65534:65534 ]; then wanted=$caller; fi
        expect_same "the owner with $caller" "$wanted" "$(stat -c %u:%g "$(cat out)")"
        expect_same 'the mode' 600 "$(stat -c %a "$(cat out)")"
    done
    SUDO_UID=65534 SUDO_GID=65534 timeout 60 "$BUGPACK" run -o . --app owned -- sh -c 'exit 3' >out 2>err
    expect_same 'the owner of a failure' 65534:65534 "$(stat -c %u:%g owned-exit-*)"
fi


finish
