# Completion of bugpack(1) for fish.

set -l counters stat.user_cpu_ns stat.system_cpu_ns stat.minor_faults stat.major_faults \
    stat.block_io_delay_ns schedstat.run_ns schedstat.run_delay_ns schedstat.timeslices \
    status.voluntary_switches status.involuntary_switches io.read_chars io.written_chars \
    io.read_calls io.write_calls io.read_bytes io.written_bytes io.cancelled_bytes \
    sched.exec_runtime_ns sched.switches sched.migrations wakeups.wakeups wakeups.sync \
    wakeups.migrate wakeups.local wakeups.remote wakeups.affine wakeups.affine_attempts \
    waits.wait_sum_ns waits.wait_max_ns waits.wait_count waits.sleep_sum_ns waits.sleep_max_ns \
    waits.iowait_sum_ns waits.iowait_count blocks.block_sum_ns blocks.block_max_ns \
    smaps_rollup.rss_kb smaps_rollup.pss_kb smaps_rollup.shared_clean_kb \
    smaps_rollup.shared_dirty_kb smaps_rollup.private_clean_kb smaps_rollup.private_dirty_kb \
    smaps_rollup.referenced_kb smaps_rollup.anonymous_kb smaps_rollup.anonymous_huge_kb \
    smaps_rollup.swap_kb smaps_rollup.swap_pss_kb smaps_rollup.locked_kb heap.allocated_bytes \
    heap.deallocated_bytes
set -l commands capture diff heap html index logs prune recover redact run sample show trigger verify watch help

complete -c bugpack -f
complete -c bugpack -n "not __fish_seen_subcommand_from $commands" -a capture -d 'Write a report about a process, or the machine'
complete -c bugpack -n "not __fish_seen_subcommand_from $commands" -a diff -d 'Show what changed from one report to another'
complete -c bugpack -n "not __fish_seen_subcommand_from $commands" -a heap -d 'Print what the threads of a jemalloc process allocated'
complete -c bugpack -n "not __fish_seen_subcommand_from $commands" -a html -d 'Write a report as one page for a browser'
complete -c bugpack -n "not __fish_seen_subcommand_from $commands" -a index -d 'Print one line of JSON for each report'
complete -c bugpack -n "not __fish_seen_subcommand_from $commands" -a logs -d 'Show the logs of a report in one time line'
complete -c bugpack -n "not __fish_seen_subcommand_from $commands" -a prune -d 'Remove old reports from a directory'
complete -c bugpack -n "not __fish_seen_subcommand_from $commands" -a recover -d 'Write crash reports for sessions that died'
complete -c bugpack -n "not __fish_seen_subcommand_from $commands" -a redact -d 'Replace secrets in a report that was taken'
complete -c bugpack -n "not __fish_seen_subcommand_from $commands" -a run -d 'Run a command under a recorder'
complete -c bugpack -n "not __fish_seen_subcommand_from $commands" -a sample -d 'Print what a process and its threads cost'
complete -c bugpack -n "not __fish_seen_subcommand_from $commands" -a show -d 'Show what a report says, on one screen'
complete -c bugpack -n "not __fish_seen_subcommand_from $commands" -a verify -d 'Check that reports are whole'
complete -c bugpack -n "not __fish_seen_subcommand_from $commands" -a help -d 'Show the help of a command'
complete -c bugpack -n "not __fish_seen_subcommand_from $commands" -l version -d 'Show the version'
complete -c bugpack -s h -l help -d 'Show the help'
complete -c bugpack -n '__fish_seen_subcommand_from help' -a 'capture diff heap html index logs prune recover redact run sample show trigger verify watch'

complete -c bugpack -n "not __fish_seen_subcommand_from $commands" -a trigger -d 'Ask a running command or host for a report'
complete -c bugpack -n "not __fish_seen_subcommand_from $commands" -a watch -d 'Wait for a condition of a process, then capture'
complete -c bugpack -n '__fish_seen_subcommand_from watch' -l when -x -a 'cpu rss threads fds state log idle' -d 'What leads to a report'
complete -c bugpack -n '__fish_seen_subcommand_from watch' -l max -x -d 'End after so many reports'
complete -c bugpack -n '__fish_seen_subcommand_from watch' -l cooldown -x -d 'No further report for so many seconds'
complete -c bugpack -n '__fish_seen_subcommand_from trigger' -x -a '(__fish_complete_pids)' -d 'The process to ask'
complete -c bugpack -n '__fish_seen_subcommand_from capture heap sample watch' -l pid -x -a '(__fish_complete_pids)' -d 'The process to look at'
complete -c bugpack -n '__fish_seen_subcommand_from capture sample' -l window -x -d 'How long to look, in milliseconds'

complete -c bugpack -n '__fish_seen_subcommand_from capture watch' -l stacks -x -a 'blocked all none' -d 'Which stacks to take'
complete -c bugpack -n '__fish_seen_subcommand_from capture watch' -l name -x -a '(ps -e -o comm= | sort -u)' -d 'A process with its workers'
complete -c bugpack -n '__fish_seen_subcommand_from capture watch' -l unit -x -d 'The processes of a systemd unit'
complete -c bugpack -n '__fish_seen_subcommand_from capture watch' -l cgroup -x -d 'The processes of a cgroup'
complete -c bugpack -n '__fish_seen_subcommand_from capture watch' -l children -d 'And all their descendants'
complete -c bugpack -n '__fish_seen_subcommand_from capture' -l host -d 'Look at the whole machine'
complete -c bugpack -n '__fish_seen_subcommand_from capture run watch' -l log -r -F -d 'Take the end of a log file'
complete -c bugpack -n '__fish_seen_subcommand_from capture run watch' -l log-limit -x -d 'How much of each log file'
complete -c bugpack -n '__fish_seen_subcommand_from capture run watch' -l session -r -F -d 'JSON that the program says of itself'
complete -c bugpack -n '__fish_seen_subcommand_from capture run watch' -l attach -r -F -d 'Take a whole file'
complete -c bugpack -n '__fish_seen_subcommand_from capture run watch' -l attach-limit -x -d 'Leave out a larger attachment'
complete -c bugpack -n '__fish_seen_subcommand_from capture watch' -l journal -x -d 'The newest lines of a unit'
complete -c bugpack -n '__fish_seen_subcommand_from capture watch' -l command -x -d 'What a command prints'
complete -c bugpack -n '__fish_seen_subcommand_from capture watch' -l shell -d 'Let sh run the commands'
complete -c bugpack -n '__fish_seen_subcommand_from capture watch' -l input-timeout -x -d 'How many seconds each may take'
complete -c bugpack -n '__fish_seen_subcommand_from capture run watch' -l without -x -a 'process.json threads.json files.json system.json stacks.txt stacks.json profile.folded thread-heap.json logs.jsonl notifications.json metrics-history.jsonl traffic.pcap traffic-index.jsonl' -d 'Leave out these entries'
complete -c bugpack -n '__fish_seen_subcommand_from capture recover run watch' -l hostname -d 'Name the machine in the report'
complete -c bugpack -n '__fish_seen_subcommand_from capture' -l stop-threads -d 'With --host, where only that shows what they allocate'
complete -c bugpack -n '__fish_seen_subcommand_from capture' -l no-hostname -d 'Do not name the machine'
complete -c bugpack -n '__fish_seen_subcommand_from capture redact run watch' -l redact -r -F -d 'Replace also what these rules match'
complete -c bugpack -n '__fish_seen_subcommand_from capture run watch' -l no-redact -d 'Leave passwords and tokens in the report'
complete -c bugpack -n '__fish_seen_subcommand_from capture recover run' -l review -d 'Print what is in the report, and ask'
complete -c bugpack -n '__fish_seen_subcommand_from capture recover run watch' -l app -x -d 'Name the report after this'
complete -c bugpack -n '__fish_seen_subcommand_from capture run' -l description -x -d 'What you saw'
complete -c bugpack -n '__fish_seen_subcommand_from capture recover run watch' -s o -l output-dir -x -a '(__fish_complete_directories)' -d 'Where the zip goes'
complete -c bugpack -n '__fish_seen_subcommand_from capture html redact' -l output -r -F -d 'Write this file'
complete -c bugpack -n '__fish_seen_subcommand_from capture trigger' -l timeout -x -d 'Give up after so many seconds'
complete -c bugpack -n '__fish_seen_subcommand_from capture run watch' -s q -l quiet -d 'No progress and no warnings'
complete -c bugpack -n '__fish_seen_subcommand_from capture watch' -l json -d 'Print a JSON object instead of the path'

complete -c bugpack -n '__fish_seen_subcommand_from html index logs show' -F
complete -c bugpack -n '__fish_seen_subcommand_from show' -l all -d 'Also every frame, and the threads of bugpack'
complete -c bugpack -n '__fish_seen_subcommand_from logs show' -l json -d 'Print JSON instead of text'
complete -c bugpack -n '__fish_seen_subcommand_from html logs show' -l max-bytes -x -d 'Read at most this much content'
complete -c bugpack -n '__fish_seen_subcommand_from logs' -l level -x -a 'trace debug info warn error fatal' -d 'Only this level and above'
complete -c bugpack -n '__fish_seen_subcommand_from logs' -l channel -x -d 'Only log records of this channel'
complete -c bugpack -n '__fish_seen_subcommand_from logs' -l grep -x -d 'Only messages that match'
complete -c bugpack -n '__fish_seen_subcommand_from logs' -l since -x -d 'Only from this time on'
complete -c bugpack -n '__fish_seen_subcommand_from logs' -l around -x -a 'trigger trigger=1min' -d 'Only around the trigger'
complete -c bugpack -n '__fish_seen_subcommand_from logs' -l zone -x -d 'The zone of times that name none'

complete -c bugpack -n '__fish_seen_subcommand_from prune' -x -a '(__fish_complete_directories)'
complete -c bugpack -n '__fish_seen_subcommand_from index' -l since-index -r -F -d 'Leave out the reports that this index has'
complete -c bugpack -n '__fish_seen_subcommand_from prune' -l keep -x -d 'Keep so many'
complete -c bugpack -n '__fish_seen_subcommand_from prune' -l max-bytes -x -d 'Keep so many bytes'
complete -c bugpack -n '__fish_seen_subcommand_from prune' -l older-than -x -d 'Remove what is older'
complete -c bugpack -n '__fish_seen_subcommand_from prune' -l app -x -d 'Only the reports of this program'
complete -c bugpack -n '__fish_seen_subcommand_from prune' -l dry-run -d 'Print what would be removed'

complete -c bugpack -n '__fish_seen_subcommand_from run' -l hotkey -x -a 'F1 F2 F3 F4 F5 F6 F7 F8 F9 F10 F11 F12 none' -d 'The key that takes a report'
complete -c bugpack -n '__fish_seen_subcommand_from run' -l on-failure -x -a 'any signal none' -d 'Which failures lead to a report'
complete -c bugpack -n '__fish_seen_subcommand_from run' -l stacks -d 'Trace the command, for the backtrace of a crash'
complete -c bugpack -n '__fish_seen_subcommand_from run' -l profile-hz -x -d 'Keep so many samples a second'
complete -c bugpack -n '__fish_seen_subcommand_from run' -l gap-pattern -x -d 'A line that matches is a gap'
complete -c bugpack -n '__fish_seen_subcommand_from run' -l pedantic -d 'Report gaps'
complete -c bugpack -n '__fish_seen_subcommand_from run' -l pedantic-dir -x -a '(__fish_complete_directories)' -d 'Where reports of gaps go'
complete -c bugpack -n '__fish_seen_subcommand_from run' -l auto-snapshot-interval -x -d 'A report every so many seconds'
complete -c bugpack -n '__fish_seen_subcommand_from run' -l auto-snapshot-cap -x -d 'Keep so many of these'
complete -c bugpack -n '__fish_seen_subcommand_from run' -l hang-after -x -d 'Report a command that is idle for so many seconds'
complete -c bugpack -n '__fish_seen_subcommand_from html redact' -s o -r -F -d 'Write this file'
complete -c bugpack -n '__fish_seen_subcommand_from redact' -l list -d 'Print what is in the report'
complete -c bugpack -n '__fish_seen_subcommand_from diff heap redact' -F
complete -c bugpack -n '__fish_seen_subcommand_from diff' -l by -x -a 'process cgroup thread' -d 'What to put threads together by'
complete -c bugpack -n '__fish_seen_subcommand_from diff' -l counter -x -a "$counters" -d 'What to compare'
complete -c bugpack -n '__fish_seen_subcommand_from diff' -l limit -x -d 'Show only so many changes'
complete -c bugpack -n '__fish_seen_subcommand_from diff' -l bytes -d 'Print numbers without units'
complete -c bugpack -n '__fish_seen_subcommand_from diff' -l json -d 'Print JSON instead of text'
complete -c bugpack -n '__fish_seen_subcommand_from heap' -l snapshots -x -d 'How often to look'
complete -c bugpack -n '__fish_seen_subcommand_from heap' -l interval-ms -x -d 'From one look to the next'
complete -c bugpack -n '__fish_seen_subcommand_from heap sample' -l follow -d 'Print changes each interval'
complete -c bugpack -n '__fish_seen_subcommand_from sample' -l count -x -d 'End after so many lines'
complete -c bugpack -n '__fish_seen_subcommand_from html prune recover redact run sample trigger verify' -l json -d 'JSON, an object each line'
complete -c bugpack -n '__fish_seen_subcommand_from heap' -l state -d 'Print the heap state of a file or report'
complete -c bugpack -n '__fish_seen_subcommand_from heap' -l json -d 'Print JSON instead of text'
complete -c bugpack -n '__fish_seen_subcommand_from verify' -l max-bytes -x -d 'Read so many bytes of a report'
complete -c bugpack -n '__fish_seen_subcommand_from verify' -F
