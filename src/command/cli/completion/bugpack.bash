# shellcheck shell=bash
# Completion of bugpack(1) for bash. The command knows its words.

# Ids of processes; several are shown with their names, and a name finds its ids.
_bugpack_pids() {
    mapfile -t COMPREPLY < <(ps -e -o pid= -o comm= 2>/dev/null | awk -v word="$1" '
        index($1, word) == 1 || (word != "" && index($2, word) == 1) {
            pids[++count] = $1
            sub(/^ *[0-9]+ */, "")
            names[count] = $0
        }
        END {
            for (i = 1; i <= count; i++) print pids[i] (count > 1 ? " (" names[i] ")" : "")
        }')
}

_bugpack() {
    local current=${COMP_WORDS[COMP_CWORD]} words
    mapfile -t words < <("${COMP_WORDS[0]}" --complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f 1)
    case ${words[0]-} in
        :file) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
        :dir) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "$current") ;;
        :pid) _bugpack_pids "$current" ;;
        :name) mapfile -t COMPREPLY < <(compgen -W "$(ps -e -o comm= | grep -v '[^[:alnum:]_.:/-]')" -- "$current") ;;
        :command) mapfile -t COMPREPLY < <(compgen -c -- "$current") ;;
        *) mapfile -t COMPREPLY < <(compgen -W "${words[*]}" -- "$current") ;;
    esac
}

complete -F _bugpack bugpack
