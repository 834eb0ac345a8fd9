# Completion of bugpack(1) for fish. The command knows its words.

function __bugpack_complete
    set -l words (commandline -opc)
    set -l lines ($words[1] --complete $words[2..-1] (commandline -ct) 2>/dev/null)
    switch "$lines[1]"
        case :file :dir
            __fish_complete_path (commandline -ct)
        case :pid
            __fish_complete_pids
        case :name
            ps -e -o comm= | sort -u
        case :command
            complete -C (commandline -ct)
        case '*'
            printf '%s\n' $lines
    end
end

complete -c bugpack -f -a '(__bugpack_complete)'
