# Sourced by what shows bugpack at work: demo, demo-delivery.
# shellcheck shell=sh disable=SC2034 # most names are for these

heading() {
    printf '\n== %s\n\n' "$*"
}
fail() {
    echo "${0##*/}: $*" >&2
    exit 1
}
# quiet COMMAND...: shows the end of its output when it fails.
quiet() {
    "$@" >"$work/log" 2>&1 || {
        tail -n 40 "$work/log" >&2
        fail "$1 failed"
    }
}
clean_up() {
    for child in $children; do
        kill "$child" 2>/dev/null || true
        wait "$child" 2>/dev/null || true
    done
    rm -rf "$work"
}

# begin SETS [DIR]: installs these sets of install-deps and builds. Reports go to DIR, or to a new directory.
# What is in $work, and the processes in $children, go at the end.
begin() {
    root=$(cd "$(dirname "$0")/../.." && pwd)
    case ${2:-} in
    -*)
        sed -n '2,/^set -eu/{/^#/s/^# \{0,1\}//p;}' "$0"
        [ "$2" = --help ] || [ "$2" = -h ] || exit 2
        exit 0
        ;;
    esac
    work=$(mktemp -d "${TMPDIR:-/tmp}/bugpack-demo-work.XXXXXX") children=''
    trap clean_up EXIT
    trap 'exit 129' HUP
    trap 'exit 130' INT
    trap 'exit 143' TERM
    heading 'Build'
    # shellcheck disable=SC2086 # a list of words
    "$root/src/scripts/install-deps" $1
    build=$root/build-demo
    quiet cmake -S "$root" -B "$build"
    quiet cmake --build "$build" -j "$(nproc 2>/dev/null || echo 2)"
    bugpack=$build/src/cli/bugpack
    echo "$("$bugpack" --version | head -n 1), built in $build"
    if [ $# -gt 1 ]; then
        mkdir -p "$2"
        reports=$(cd "$2" && pwd)
    else
        reports=$(mktemp -d "${TMPDIR:-/tmp}/bugpack-demo.XXXXXX")
    fi
    export PAGER=cat # a page would wait for a key
}
