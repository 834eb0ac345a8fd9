#!/bin/sh
# An uncaught exception of C++ is named, of a command, a core and a host; see tests/support/throw_host.cpp.
# shellcheck disable=SC3045 # every sh on Linux has ulimit -c
. "$(dirname "$0")/lib.sh"

need unzip jq
[ -x "${THROW_HOST:-}" ] || skip 'there is no compiler of C++'
cd "$scratch" || exit 1
ulimit -S -c 0
mkdir -m 700 traced host told
torn='viewer::torn the picture is torn true'
cat >wanted <<END
abort null
again $torn
beside viewer::beside the second base true
handled null
memory std::bad_alloc null true
noexcept $torn
number int null true
own-words viewer::own_words null true
pointer $torn
quiet $torn
silent viewer::silent null true
string std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > a string true
system std::system_error cannot open x: No such file or directory true
text char const* a text true
thread $torn
END

# compare DIRECTORY: of its crashes, the exceptions.
compare() {
    for zip in "$1"/*-crash-*.zip; do
        mode=${zip##*/}
        echo "${mode%%-crash-*} $(unzip -p "$zip" crash.json | jq -r '.exception |
            if . then "\(.type) \(.message) \(.uncaught)" else null end')"
    done >got
    diff wanted got >diff.out || wrong "$1: $(cat diff.out)"
}

fact 'of a command that is traced'
while read -r mode _; do
    cp "$THROW_HOST" "$mode"
    run run --stacks -o traced "./$mode" "$mode"
    expect_same "$mode" 134 "$status"
done <wanted
[ -e "$(echo traced/text-crash-*.zip)" ] || skip 'a command cannot be traced here'
unzip -p traced/text-crash-*.zip crash.json | jq -r '.backtrace.frames | length' >frames.out
[ "$(cat frames.out)" -gt 0 ] || skip 'stacks cannot be read here'
compare traced

fact 'the first screen says it in one sentence'
run show traced/thread-crash-*.zip
grep -q '^!! crash in viewer::fail: uncaught exception viewer::torn: the picture is torn: SIGABRT in thread ' out ||
    wrong "$(cat out)"
run show traced/own-words-crash-*.zip
grep -q '^!! crash in viewer::fail: uncaught exception viewer::own_words: words of its own: ' out || wrong "$(cat out)"
grep -q '^!! its last words: uncaught exception viewer::own_words: words of its own  ' out || wrong "$(cat out)"

if [ "$(cat /proc/sys/kernel/core_pattern)" = core ] || not_tried 'cores (another program takes them here)'; then
    fact 'of a core, which has no names of types: the files have them'
    (ulimit -S -c unlimited && exec ./thread thread) >/dev/null 2>&1
    mv core* dumped
    run capture --core dumped --output core.zip
    expect_same 'the exception' "$torn" "$(unzip -p core.zip crash.json |
        jq -r '.exception | "\(.type) \(.message) \(.uncaught)"')"
    cp "$(command -v cat)" thread
    run capture --core dumped --output other.zip
    expect_same 'of a program that is not there any more' null "$(unzip -p other.zip crash.json | jq .exception)"
fi

fact 'of a host'
while read -r mode _; do
    "$THROW_HOST" "$mode" "$scratch/host" 2>err
done <wanted
run recover "$scratch/host"
expect_same 'the type' viewer::torn "$(unzip -p host/quiet-crash-*.zip crash.json | jq -r .exception.type)"
unzip -p host/beside-crash-*.zip crash.json | jq -r '.exception.message' >message.out
expect_same 'the message' 'the second base' "$(cat message.out)"
expect_same 'of what was handled' null "$(unzip -p host/handled-crash-*.zip crash.json | jq .exception)"

fact 'a host that records what std::terminate ends has the words of any exception'
for mode in own-words thread abort; do
    "$THROW_HOST" "$mode" "$scratch/told" said 2>err
    [ "$mode" = abort ] || grep -q 'terminate called after' err || wrong 'the handler before it was not called'
done
run recover "$scratch/told"
expect_same 'its own' 'words of its own true' \
    "$(unzip -p told/own-words-crash-*.zip crash.json | jq -r '.exception | "\(.message) \(.uncaught)"')"
expect_same 'of a thread' 'the picture is torn true' \
    "$(unzip -p told/thread-crash-*.zip crash.json | jq -r '.exception | "\(.message) \(.uncaught)"')"
expect_same 'without one' null "$(unzip -p told/abort-crash-*.zip crash.json | jq .exception)"

finish
