#!/bin/sh
# bugpack symbolize: functions and lines for the report of a stripped program; see tests/support/crash_target.c.
# shellcheck disable=SC2016 # await expands it
. "$(dirname "$0")/lib.sh"

need unzip jq objcopy strip readelf
[ -x "${CRASH_TARGET:-}" ] || skip 'the program that crashes is not built'
cd "$scratch" || exit 1
export XDG_CACHE_HOME="$scratch/cache"
mkdir debug wrong bad empty
cp "$CRASH_TARGET" target && cp target whole
objcopy --only-keep-debug target debug/target.debug && strip target
build_id=$(readelf -n target | sed -n 's/.*Build ID: //p')

fact 'a stripped program crashes'
run run --stacks -o . ./target thread
expect_status 139
[ "$failures" -eq 0 ] || finish
mv target-crash-*.zip taken.zip 2>/dev/null || skip 'a command cannot be traced here'
unzip -p taken.zip crash.json | jq -r '.backtrace.frames[0].module' >module.out
grep -q /target module.out || skip 'stacks cannot be read here'
mv target gone # as on another machine
cp taken.zip before.zip

# functions ZIP: of the crash, in the program, the innermost four.
functions() {
    unzip -p "$1" crash.json |
        jq -r '[.backtrace.frames[] | select(.module | endswith("/target")) | .symbol][:4] | join(" ")'
}

fact 'what is refused'
expect_misuse 'a report from standard input needs --output' symbolize -
expect_misuse '--json excludes --output -' symbolize --json -o - taken.zip
exits 1 symbolize nowhere.zip
expect_err 'cannot read "nowhere.zip"'

fact 'without debug files nothing is written, and which are missing is said'
expect_same 'functions' '   ' "$(functions taken.zip)"
exits 1 symbolize --debug-dir empty taken.zip
expect_err 'nothing of the report would change'
expect_err "target (build id $build_id): functions of it have no names yet"
[ ! -e taken-symbolized.zip ] || wrong 'a report is written'

fact 'a debug file of another build is not believed'
cp "$(command -v cat)" wrong/target.debug
exits 1 symbolize --debug-dir wrong taken.zip
expect_err "target (build id $build_id): the debug file of that name is of another build"

fact 'nor is one that is damaged'
head -c "$(($(wc -c <debug/target.debug) / 3))" debug/target.debug >bad/target.debug
exits 1 symbolize --debug-dir bad taken.zip
expect_err "target (build id $build_id): its debug file is damaged"

fact 'with its debug file, functions and lines are in a new report, and the old one is as it was'
exits 0 symbolize --debug-dir debug taken.zip
expect_same 'the path' "$scratch/taken-symbolized.zip" "$(cat out)"
expect_same 'the old one' same "$(cmp -s taken.zip before.zip && echo same)"
exits 0 verify taken-symbolized.zip
wanted='crash_inner crash_middle crash_outer crash_thread'
expect_same 'functions' "$wanted" "$(functions taken-symbolized.zip)"
expect_same 'a line' true "$(unzip -p taken-symbolized.zip crash.json |
    jq '.backtrace.frames[0] | (.source | endswith("/crash_target.c")) and .line > 0')"
unzip -p taken-symbolized.zip stacks.txt >lines
expect_same 'the text' 1 "$(grep -c ' in crash_inner () at .*/crash_target\.c:[0-9]*$' lines)"
expect_same 'its other lines' "$(unzip -p taken.zip stacks.txt | grep -vc '^#')" "$(grep -vc '^#' lines)"
run show taken-symbolized.zip
grep -q '^!! crash in crash_inner: .*crash_inner < crash_middle < crash_outer < crash_thread' out || wrong "$(cat out)"

fact 'the manifest counts what has changed, and has the other lines as they were'
unzip -p taken-symbolized.zip manifest.json >listed
expect_same 'what changed' 'crash.json stacks.json' \
    "$(jq -r '[.artefacts[] | select(.symbolized_frames > 0).name] | sort | join(" ")' listed)"
others='del(.artefacts[] | select(.name | test("^(crash.json|stacks.*)$")))'
expect_same 'the rest' "$(unzip -p taken.zip manifest.json | jq -cS "$others")" "$(jq -cS "$others" listed)"

fact 'a second time there is nothing to add'
exits 1 symbolize --debug-dir debug taken-symbolized.zip
expect_err 'nothing of the report would change'

fact 'debug files by build id, the program itself, standard input and output, and JSON'
mkdir -p "by-id/.build-id/$(echo "$build_id" | cut -c 1-2)" program
cp debug/target.debug "by-id/.build-id/$(echo "$build_id" | cut -c 1-2)/$(echo "$build_id" | cut -c 3-).debug"
cp whole program/target
exits 0 symbolize --debug-dir by-id -o id.zip taken.zip
expect_same 'by id' "$wanted" "$(functions id.zip)"
"$BUGPACK" symbolize --debug-dir program -o - - <taken.zip >piped.zip 2>err || wrong 'the exit status is not 0'
expect_same 'the program' "$wanted" "$(functions piped.zip)"
exits 0 symbolize --json --debug-dir debug -o json.zip taken.zip
expect_same 'the event' "symbolized $scratch/json.zip taken.zip true" \
    "$(jq -r '"\(.event) \(.path) \(.from) \(.frames > 0)"' out)"

if command -v gdb >/dev/null 2>&1 || not_tried 'gdb is not installed'; then
    fact 'gdb names the same functions'
    gdb -nx -batch -iex 'set debuginfod enabled off' -ex run -ex bt --args ./whole thread </dev/null 2>/dev/null |
        sed -n 's/^#[0-9]* *\(0x[0-9a-f]* in \)\{0,1\}\([a-z_]*\) (.*/\2/p' | sed '/^crash_thread$/q' >gdb.out
    [ ! -s gdb.out ] || expect_same 'functions' "$(tr '\n' ' ' <gdb.out)" "$wanted "
fi

# asks STATUS MODE: of a server that behaves so.
asks() {
    start python3 "$here/debug_server" debug/target.debug "$build_id" "$2" "$scratch/port.$2"
    await '[ -s "$scratch/port.'"$2"'" ]'
    url=http://127.0.0.1:$(cat "port.$2")
    exits "$1" symbolize --debuginfod "$url" -o "asked-$2.zip" taken.zip
}

if ! command -v python3 >/dev/null 2>&1 || ! ldconfig -p 2>/dev/null | grep -q 'libdebuginfod\.so\.1'; then
    not_tried 'servers (there is no python3 or no libdebuginfod)'
    finish
fi

fact 'a server gives the debug file'
asks 0 good
expect_same 'functions' "$wanted" "$(functions asked-good.zip)"
rm -rf cache

fact 'an answer that is cut off is none'
asks 1 cut
expect_err "functions of it have no names yet"
rm -rf cache

fact 'a server that hangs is given up, and not asked again'
asks 1 hang
expect_err "$url gives nothing, and is not asked again: Timer expired"
[ ! -e asked-hang.zip ] || wrong 'a report is written'

if command -v debuginfod >/dev/null 2>&1 || not_tried 'debuginfod is not installed'; then
    fact 'debuginfod of Debian gives it'
    port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    debuginfod -F -d :memory: -p "$port" -t 0 debug </dev/null >server.log 2>&1 &
    started="$started $!"
    await 'grep -q "traversed source paths\|cannot\|failed" server.log'
    exits 0 symbolize --debuginfod "http://127.0.0.1:$port" -o served.zip taken.zip
    expect_same 'functions' "$wanted" "$(functions served.zip)"
fi

finish
