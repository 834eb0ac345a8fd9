# Sourced by what builds packages: build-debs, build-rpms. It builds a copy of the source in TMPDIR.
# shellcheck shell=sh disable=SC2034

# begin SET [DIR]: goes to the copy of the source, below $work. Sets $dir, where packages go. SET is one
# of install-deps.
begin() {
    root=$(cd "$(dirname "$0")/../.." && pwd)
    case ${2:--} in
    -*)
        sed -n '2,/^set -eu/{/^#/s/^# \{0,1\}//p;}' "$0"
        [ "${2:-}" = --help ] || [ "${2:-}" = -h ] || exit 2
        exit 0
        ;;
    esac
    "$root/src/scripts/install-deps" build "$1"
    mkdir -p "$2"
    dir=$(cd "$2" && pwd) || exit
    work=$(mktemp -d "${TMPDIR:-/tmp}/bugpack-packages.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    trap 'exit 129' HUP
    trap 'exit 130' INT
    trap 'exit 143' TERM
    mkdir "$work/source"
    cd "$root" || exit
    cp -R CMakeLists.txt LICENSE README.md docs include src "$work/source"
    cd "$work/source" || exit
    version=$(sed -n 's/^#define BUGPACK_VERSION "\(.*\)"/\1/p' include/bugpack/version.h)
    sed -i "s/@VERSION@/$version/" src/packaging/debian/changelog src/packaging/bugpack.spec
}

# build COMMAND...: shows the end of its output when it fails.
build() {
    "$@" >"$work/log" 2>&1 || {
        tail -n 40 "$work/log" >&2
        exit 1
    }
}
