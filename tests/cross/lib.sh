# Sourced by what builds and runs for another system, which names $source, $dir and $bugpack.
# shellcheck shell=sh disable=SC2154

. "$source/tests/support/skip.sh"
# shellcheck source=tests/support/holds.sh
. "$source/tests/support/holds.sh"

# quietly NAME COMMAND...: its output goes to $dir/NAME.log, and is shown when it fails.
quietly() {
    log=$dir/$1.log
    shift
    "$@" >"$log" 2>&1 || {
        tail -n 60 "$log" >&2
        return 1
    }
}
# expect_whole REPORT: as $bugpack, unzip and jq see it.
expect_whole() {
    unzip -tq "$1" || fail "unzip does not read the report"
    "$bugpack" verify "$1" || fail "the report is not whole"
    unzip -p "$1" manifest.json | holds .artefacts || fail "jq does not read its manifest"
}
# expect_reason REPORT PATTERN: why it has no stacks.
expect_reason() {
    reason=$(unzip -p "$1" manifest.json | jq -r '.artefacts[] | select(.name == "stacks.json") | .reason')
    # shellcheck disable=SC2254 # a pattern
    case $reason in
    $2) ;;
    *) fail "stacks.json: $reason" ;;
    esac
}
