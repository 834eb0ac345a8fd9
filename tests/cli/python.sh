#!/bin/sh
# The functions of Python in stacks.json, beside what the faulthandler of each interpreter prints.
# shellcheck disable=SC2016,SC2094 # await expands it; an entry has the name of its file
. "$(dirname "$0")/lib.sh"
need jq unzip python3
cd "$scratch" || exit 1

cat >app.py <<'END'
import faulthandler, signal, sys, threading, time
dump = open(sys.argv[1] + ".dump", "w")
faulthandler.register(signal.SIGUSR1, file=dump)
class Worker:
    def run(self):
        def inner():
            time.sleep(
                1000)
        inner()
def items():
    yield Worker().run()
def überwachung():
    list(x for x in items())
def deep(n):
    deep(n - 1) if n > 0 else sorted([1], key=lambda n: time.sleep(1000))
def spin():
    n = 0
    while True:
        n += 1
for work in überwachung, lambda: deep(60), spin:
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.2)
open(sys.argv[1] + ".ready", "w").close()
threading.Event().wait()
END

# Without the lines of the thread that spins, whose functions have no line twice.
frames_of_dump() {
    sed -n 's/^Thread .*/-/p; s/^Current thread .*/-/p; s/^  File "\(.*\)", line \([0-9]*\) in .*/\1:\2/p' "$1" |
        awk '$0 == "-" { count = 0 } count++ < 100' | grep -v '^-$' | sort
}

try_python() {
    start "$1" app.py "$version"
    await '[ -e $version.ready ]'
    exits 0 capture --pid "$pid" --quiet --output "$version.zip"
    unzip -p "$version.zip" stacks.json >stacks.json
    holds ".python_version == \"$version\" and .python_reason == null" stacks.json || wrong 'version'
    kill -USR1 "$pid"
    await 'grep -q "Current thread" $version.dump && grep -q "app.py.*module" $version.dump'
    jq -r '.threads[] | .python_frames // [] | .[:100][] | "\(.source):\(.line)"' stacks.json | sort >found
    frames_of_dump "$version.dump" >wanted
    spin=$(grep -n '        n += 1' app.py | cut -d: -f1)
    for list in found wanted; do
        grep -v "app.py:\($spin\|$((spin - 1))\)\$" "$list" >"$list.rest"
    done
    cmp -s found.rest wanted.rest || wrong "$(diff found.rest wanted.rest)"
    holds '[.threads[].python_frames[0].function] | any(. == "Worker.run.<locals>.inner")' stacks.json ||
        wrong 'the qualified name is not there'
    holds '[.threads[] | select(.python_frames[0].function == "spin")] | length == 1' stacks.json ||
        wrong 'the thread that spins has no function'
}

fact 'each thread has the functions, files and lines that faulthandler prints'
tried=0
for python in /usr/bin/python3 "$(python3 -c 'import sys; print(sys.executable)')" ${PYTHONS:-}; do
    version=$("$python" -c 'import platform; print(platform.python_version())') || continue
    case $version in
    3.11.* | 3.12.* | 3.13.* | 3.14.*) ;;
    *) continue ;;
    esac
    [ ! -e "$version.ready" ] || continue
    try_python "$python"
    tried=$((tried + 1))
done
[ "$tried" -gt 0 ] || skip 'there is no Python whose functions are read'
finish
