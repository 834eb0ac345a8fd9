# shellcheck shell=bash
# Completion of bugpack(1) for bash.

# Fills COMPREPLY with the words of $1 that begin with $2.
_bugpack_words() {
    mapfile -t COMPREPLY < <(compgen -W "$1" -- "$2")
}

# Fills COMPREPLY with file names, or with directories when $1 is -d.
_bugpack_files() {
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen "$1" -- "$2")
}

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
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
    local command=${COMP_WORDS[1]-}
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        _bugpack_words 'capture diff heap html index logs prune recover redact run sample show trigger verify watch help --help --version' "$current"
        return
    fi
    case $previous in
        --pid)
            _bugpack_pids "$current"
            return
            ;;
        --name)
            _bugpack_words "$(ps -e -o comm= 2>/dev/null | grep -v '[^[:alnum:]_.:/-]')" "$current"
            return
            ;;
        --log | --session | --attach | --redact | --output | --since-index)
            _bugpack_files -f "$current"
            return
            ;;
        -o)
            case $command in
                html | redact) _bugpack_files -f "$current" ;;
                *) _bugpack_files -d "$current" ;;
            esac
            return
            ;;
        --output-dir | --pedantic-dir)
            _bugpack_files -d "$current"
            return
            ;;
        --hotkey)
            _bugpack_words 'F1 F2 F3 F4 F5 F6 F7 F8 F9 F10 F11 F12 none' "$current"
            return
            ;;
        --on-failure)
            _bugpack_words 'any signal none' "$current"
            return
            ;;
        --level)
            _bugpack_words 'trace debug info warn error fatal' "$current"
            return
            ;;
        --around)
            _bugpack_words 'trigger trigger=1min' "$current"
            return
            ;;
        --without)
            _bugpack_words 'process.json threads.json files.json system.json stacks.txt stacks.json profile.folded thread-heap.json logs.jsonl notifications.json metrics-history.jsonl traffic.pcap traffic-index.jsonl' "$current"
            return
            ;;
        --stacks)
            if [[ $command != run ]]; then
                _bugpack_words 'blocked all none' "$current"
                return
            fi
            ;;
        --profile-hz | --gap-pattern | --auto-snapshot-interval | --auto-snapshot-cap) return ;;
        --channel | --grep | --since | --zone) return ;;
        --unit | --cgroup | --journal | --command | --input-timeout) return ;;
        --max | --cooldown | --hang-after) return ;;
        --when)
            _bugpack_words 'cpu rss threads fds state log idle' "$current"
            return
            ;;
        --window | --log-limit | --attach-limit | --app | --description | --timeout | --snapshots | \
            --interval-ms | --count | --limit | --max-bytes | --keep | --older-than) return ;;
    esac
    case $command in
        capture)
            _bugpack_words '--pid --name --unit --cgroup --children --host --stop-threads --window --stacks --log --log-limit --session --attach --attach-limit --journal --command
                --shell --input-timeout --without --hostname --no-hostname --redact --no-redact --review --app --description --output-dir --output --timeout --quiet --json --help' "$current"
            ;;
        run)
            if [[ $current == -* ]]; then
                _bugpack_words '--hotkey --on-failure --stacks --profile-hz --review --gap-pattern --pedantic --pedantic-dir
                    --auto-snapshot-interval --auto-snapshot-cap --hang-after --log --log-limit --session --attach
                    --attach-limit --without --hostname --redact --no-redact --app
                    --description --output-dir --quiet --json --help' "$current"
            else
                mapfile -t COMPREPLY < <(compgen -c -- "$current")
            fi
            ;;
        diff)
            if [[ $current == -* ]]; then
                _bugpack_words '--limit --bytes --json --help' "$current"
            else
                _bugpack_files -f "$current"
            fi
            ;;
        heap)
            if [[ $current == -* ]]; then
                _bugpack_words '--pid --snapshots --interval-ms --state --json --help' "$current"
            else
                _bugpack_files -f "$current"
            fi
            ;;
        sample) _bugpack_words '--pid --window --follow --count --json --help' "$current" ;;
        html)
            if [[ $current == -* ]]; then
                _bugpack_words '--output --max-bytes --json --help' "$current"
            else
                _bugpack_files -f "$current"
            fi
            ;;
        index)
            if [[ $current == -* ]]; then
                _bugpack_words '--since-index --help' "$current"
            else
                _bugpack_files -f "$current"
            fi
            ;;
        logs)
            if [[ $current == -* ]]; then
                _bugpack_words '--level --channel --grep --since --around --zone --json --max-bytes --help' "$current"
            else
                _bugpack_files -f "$current"
            fi
            ;;
        prune)
            if [[ $current == -* ]]; then
                _bugpack_words '--keep --max-bytes --older-than --app --dry-run --json --help' "$current"
            else
                _bugpack_files -d "$current"
            fi
            ;;
        show)
            if [[ $current == -* ]]; then
                _bugpack_words '--all --json --max-bytes --help' "$current"
            else
                _bugpack_files -f "$current"
            fi
            ;;
        recover)
            if [[ $current == -* ]]; then
                _bugpack_words '--app --output-dir --hostname --review --json --help' "$current"
            else
                _bugpack_files -d "$current"
            fi
            ;;
        redact)
            if [[ $current == -* ]]; then
                _bugpack_words '--output --list --redact --json --help' "$current"
            else
                _bugpack_files -f "$current"
            fi
            ;;
        trigger)
            if [[ $current == -* ]]; then
                _bugpack_words '--timeout --json --help' "$current"
            else
                _bugpack_pids "$current"
            fi
            ;;
        verify)
            if [[ $current == -* ]]; then
                _bugpack_words '--max-bytes --json --help' "$current"
            else
                _bugpack_files -f "$current"
            fi
            ;;
        watch)
            _bugpack_words '--pid --name --unit --cgroup --children --when --max --cooldown --stacks --log --log-limit --session --attach --attach-limit
                --journal --command --shell --input-timeout --without --hostname --redact --no-redact --app --output-dir --quiet --json --help' "$current"
            ;;
        help) _bugpack_words 'capture diff heap html index logs prune recover redact run sample show trigger verify watch' "$current" ;;
    esac
}

complete -F _bugpack bugpack
