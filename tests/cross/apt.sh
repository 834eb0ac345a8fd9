# Sourced: an apt with directories of its own, below the current one, that asks the places of the system's
# packages. The system's lists and settings stay as they are, and it needs no root.
# shellcheck shell=sh

# private_apt_begin TYPE [OPTION...]: for packages of a TYPE, deb or deb-src.
private_apt_begin() {
    rm -rf apt
    mkdir -p apt/parts apt/lists/partial apt/archives/partial
    : >apt/status
    for list in /etc/apt/sources.list.d/*.sources; do
        [ ! -f "$list" ] || sed "s/^Types:.*/Types: $1/" "$list" >"apt/parts/${list##*/}"
    done
    for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
        [ ! -f "$list" ] || sed -n "s/^deb\( .*\)/$1\1/p" "$list" >"apt/parts/${list##*/}.list"
    done
    shift
    private_apt_base=$PWD private_apt_options=$*
    # A list that cannot be had may be one of no concern: what counts is whether the packages are found.
    private_apt update || echo "going on with the lists that there are" >&2
}

private_apt() {
    # shellcheck disable=SC2086 # a list of words
    apt-get -q -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$private_apt_base/apt/parts" \
        -o Dir::State::lists="$private_apt_base/apt/lists" -o Dir::Cache="$private_apt_base/apt" \
        -o APT::Sandbox::User= -o Acquire::Languages=none $private_apt_options "$@" </dev/null
}
