#include "print/sections.h"

#include "facts/facts.h"

static const bp_section_line crash[] = {
    {.screen = "thread{[ {name}]}{[ ({tid:u})]}",
     .page = "<p>Thread{[ {name}]}{[ ({tid:u})]}, innermost first:</p><ol class=\"frames\">"},
    {.list = "frames",
     .screen = "   {name}{[ x{count:u}]}{[  {place}]}",
     .page = "<li><code>{name}</code>{[ &#215;{count:u}]}{[ <span class=\"entry\">{place}</span>]}"
             "</li>"},
    {.page = "</ol>"},
    {.screen = "   and {other_frames:u} more frames",
     .page = "<p>And {other_frames:u} more frames.</p>"},
    {.screen = "   what called it was not found: {reason}",
     .indent = 5,
     .page = "<p>What called it was not found: {reason}</p>"},
    {.page = NULL}};

static const bp_section_line output[] = {
    {.page = "<pre>"},
    {.list = "output", .screen = "  {text}", .page = "{text}\n"},
    {.page = "</pre>"},
    {.page = NULL}};

#define THREAD_ON_SCREEN                                                                           \
    "{cpu_percent:6.1f} %  {tid:7u} {label:-16s} {[of {process}: ]}" BP_FILL_STATE BP_FILL_WAIT    \
    "{[{waits_for:!}{place:!},]}{[ in {place}]}"

static const bp_section_line threads[] = {
    {.list = "threads",
     .screen = THREAD_ON_SCREEN,
     .indent = 28,
     .columns = "Thread|CPU|State and functions",
     .page = "<tr><th scope=\"row\">{label} <span class=\"entry\">{tid:u}{[ of "
             "{process}]}</span></th>"
             "<td>{cpu_percent:.1f} %<svg class=\"cpu\" viewBox=\"0 0 100 8\" "
             "preserveAspectRatio=\"none\" aria-hidden=\"true\"><rect "
             "width=\"{cpu_percent:.1c}\" height=\"8\"/></svg></td>"
             "<td>" BP_FILL_STATE "{[ in {syscall}]}" BP_FILL_WAIT
             "{[<br><code>{frames}</code>]}</td></tr>"},
    {.list = "idle_threads", .screen = "         {text}", .indent = 9, .page = "<p>{text}.</p>"},
    {.screen = "and {other_threads:u} more", .page = "<p>And {other_threads:u} more.</p>"},
    {.screen = "states and functions: {late_secs:.1f} s after the trigger  [threads.json]",
     .page = "<p>States and functions: {late_secs:.1f} s after the trigger.</p>"},
    {.screen = "other ends of pipes and sockets are not all known: {searched:u} processes were "
               "searched before the time was up",
     .indent = 3,
     .page = "<p>Other ends of pipes and sockets are not all known: {searched:u} processes were "
             "searched before the time was up.</p>"},
    {.list = "own_threads", .screen = THREAD_ON_SCREEN, .when = BP_IF_ALL, .indent = 28},
    {.screen = "and {own_count:u} of bugpack itself{[, {own_cpu_percent:.1f} %]}",
     .when = BP_UNLESS_ALL,
     .page = "<p>And {own_count:u} of bugpack itself{[, {own_cpu_percent:.1f} %]}.</p>"},
    {.page = NULL}};

/* The page has a chart instead. */
static const bp_section_line profile[] = {
    {.screen = BP_FILL_PROFILE},
    {.list = "profile_threads",
     .screen = "   {name}{[ of {pid:u}]} {percent:.0f %}" BP_FILL_PATH,
     .indent = 5},
    {.screen = "   and {other_profile_threads:u} more"},
    {.page = NULL}};

static const bp_section_line processes[] = {
    {.list = "processes",
     .screen = "{cpu_percent:6.1f|?} %  {rss_kb:9k|?}  {pid:7u|?} {[{count:u} x ]}{[{title}]}"
               "{[{title:~}{name:-16s|}]}{[{title:~} [{folder}]]}",
     .columns = "Process|CPU|Resident|Entries",
     .page = "<tr><th scope=\"row\">{[{count:u} x ]}{[{title}]}{[{title:~}{name|}]}{[ <span "
             "class=\"entry\">{pid:u}</span>]}</th><td>{[{cpu_percent:.1f} %]}</td>"
             "<td>{[{rss_kb:.1m} MiB]}</td><td class=\"entry\">{folder|}</td></tr>"},
    {.screen = "and {other_processes:u} more", .page = "<p>And {other_processes:u} more.</p>"},
    {.page = NULL}};

#define PROCESS_ON_SCREEN                                                                          \
    "{cpu_percent:6.1f|?} %  {cpu_ns:10.2n|?} s  {[{rss_kb:9k}]}{[{no_rss:9s}]}  {pid:7u} "        \
    "{name:-16s|} {thread_count:u} thread{thread_count:p}{[{running_threads:+}, "                  \
    "{running_threads:u} running]}{[{born_in_window:!}, born in the window]}"                      \
    "{[, ended children used {children_cpu_ms:.0f} ms]}"
#define PROCESS_COLUMNS "Process|CPU|CPU time|Resident"
#define PROCESS_ON_PAGE                                                                            \
    "<tr><th scope=\"row\">{name|} <span class=\"entry\">{pid:u} </span></th>"                     \
    "<td>{[{cpu_percent:.1f} %]}</td><td>{[{cpu_ns:.1n} s]}</td>"                                  \
    "<td>{[{born_in_window:!} (born in the window) ]}{[{rss_kb:.1m} MiB]}</td></tr>"

#define PERIOD "{[over {window_ms:.2t} s]}{[{window_ms:~}since they began]}"

static const bp_section_line machine[] = {
    {.screen = "captured   {captured_at}"},
    {.screen = "threads    {threads:u} of {processes:u} processes, {kernel_threads:u} of the "
               "kernel; {running_threads:u} running or ready, {blocked_threads:u} blocked",
     .page = "<p>{threads:u} threads of {processes:u} processes: {running_threads:u} running or "
             "ready to run, {blocked_threads:u} blocked.</p>"},
    {.screen = "{denied_processes:+}refused    {denied_processes:u} more processes",
     .page = "{denied_processes:+}<p>{denied_processes:u} more processes could not be read.</p>"},
    {.screen = "load       {load.avg1:.2f} over 1 min, {load.avg5:.2f} over 5 min, "
               "{load.avg15:.2f} over 15 min{[; {cpus:u} CPU{cpus:p}]}  [system.json]",
     .page = "<p>Load: {load.avg1:.2f} over 1 min, {load.avg5:.2f} over 5 min, {load.avg15:.2f} "
             "over 15 min{[; {cpus:u} CPU{cpus:p}]}.</p>"},
    {.screen = "memory     {memory_available_kb:k} of {memory_total_kb:k} available  [system.json]",
     .page = "<p>Memory: {memory_available_kb:k} of {memory_total_kb:k} available.</p>"},
    {.screen = "{pressure_avg10_percent:*}waiting    for CPUs {pressure_avg10_percent.cpu:.1f %|?},"
               " for memory {pressure_avg10_percent.memory:.1f %|?}, for I/O "
               "{pressure_avg10_percent.io:.1f %|?} of the last 10 s  [system.json]",
     .page = "{pressure_avg10_percent:*}<p>Waiting in the last 10 s: for CPUs "
             "{pressure_avg10_percent.cpu:.1f %|?}, for memory {pressure_avg10_percent.memory:.1f "
             "%|?}, for I/O {pressure_avg10_percent.io:.1f %|?}.</p>"},
    {.list = "busiest_processes",
     .title = "Processes by CPU " PERIOD,
     .screen = PROCESS_ON_SCREEN,
     .columns = PROCESS_COLUMNS,
     .page = PROCESS_ON_PAGE},
    {.screen = "bugpack itself is left out: {collector_cpu_percent:.1f} %",
     .page = "<p>bugpack itself is left out: {collector_cpu_percent:.1f} %.</p>"},
    {.list = "largest_processes",
     .title = "Processes by resident memory",
     .screen = PROCESS_ON_SCREEN,
     .columns = PROCESS_COLUMNS,
     .page = PROCESS_ON_PAGE},
    {.screen = "{unknown_rss_processes:+}and {unknown_rss_processes:u} whose memory is not known",
     .page = "{unknown_rss_processes:+}<p>And {unknown_rss_processes:u} whose memory is not known."
             "</p>"},
    {.list = "busiest_threads",
     .title = "Threads by CPU " PERIOD,
     .screen = "{cpu_percent:6.1f|?} %  {cpu_ns:10.2n|?} s  {tid:7u} {name:-16s|} {state}, of "
               "{pid:u} {process|}{[{born_in_window:!}, born in the window]}",
     .columns = "Thread|CPU|CPU time|State",
     .page = "<tr><th scope=\"row\">{name|} <span class=\"entry\">{tid:u} {process|}</span></th>"
             "<td>{[{cpu_percent:.1f} %]}</td><td>{[{cpu_ns:.1n} s]}</td>"
             "<td>{state}{[{born_in_window:!} (born in the window) ]}</td></tr>"},
    {.page = NULL}};

static const bp_section_line triggers[] = {
    {.list = "triggers",
     .screen = "{count:9u}  {report_type|?} {key|}",
     .columns = "Kind|Key|Count|Last",
     .page = "<tr><td>{report_type|}</td><td>{key|}</td><td class=\"number\">{count:u}</td>"
             "<td>{last|}</td></tr>"},
    {.page = NULL}};

/* In notifications.json. */
static const bp_section_line notifications[] = {
    {.page = "<ul>"},
    {.list = "notifications",
     .page = "<li><span class=\"entry\">{last|} {level|}</span> {text|}</li>"},
    {.page = "</ul>"},
    {.page = NULL}};

/* The page counts messages by their time and type. */
static const bp_section_line traffic[] = {
    {.list = "traffic",
     .screen = "{channel:-16s} sent {[{at_least:!}at least ]}{sent.messages:u} ({sent.bytes:b}), "
               "received {[{at_least:!}at least ]}{received.messages:u} ({received.bytes:b})"},
    {.screen = "and {other_messages:u} more messages"},
    {.page = NULL}};

const bp_section bp_sections[] = {
    [BP_SECTION_FINDINGS] = {"findings", "Findings", "", NULL, NULL, NULL},
    [BP_SECTION_CRASH] = {"crash", "Where it crashed", ", innermost first  [crash.json]", "crash",
                          "frames", crash},
    [BP_SECTION_OUTPUT] = {"output", "Last lines of its output", "  [logs.jsonl]", "", "output",
                           output},
    [BP_SECTION_WAITS] = {"waits", "Who waits for whom", "  [threads.json]", NULL, NULL, NULL},
    [BP_SECTION_PICTURES] = {"screenshots", "Screenshots", "", NULL, NULL, NULL},
    [BP_SECTION_METRICS] = {"metrics", "CPU and memory", "", NULL, NULL, NULL},
    [BP_SECTION_PROCESSES] = {"processes", "Processes by CPU", "  [processes/PID-NAME/]", "",
                              "processes", processes},
    [BP_SECTION_PROFILE] = {"profile", "Where the CPU time went", "  [profile.folded]", "",
                            "profile_threads", profile},
    [BP_SECTION_THREADS] = {"threads", "Busiest threads", "", "", "threads", threads},
    [BP_SECTION_MACHINE] = {"machine", "Machine", "  [host-threads.json]", "machine_on_screen",
                            NULL, machine},
    [BP_SECTION_STACKS] = {"stacks", "Stacks", "  [stacks.json]", NULL, NULL, NULL},
    [BP_SECTION_TRIGGERS] = {"triggers", "Gaps and other automatic triggers", "", "", "triggers",
                             triggers},
    [BP_SECTION_LOG] = {"log", "Log", "", NULL, NULL, NULL},
    [BP_SECTION_NOTIFICATIONS] = {"notifications", "Notifications", "", "", "notifications",
                                  notifications},
    [BP_SECTION_TRAFFIC] = {"traffic", "Traffic", "  [traffic-index.jsonl]", "", "traffic",
                            traffic},
    [BP_SECTION_ENTRIES] = {"entries", "Entries", "", NULL, NULL, NULL},
    [BP_SECTION_DOCUMENTS] = {"documents", "Documents", "", NULL, NULL, NULL}};

bool bp_section_is_end(const bp_section_line *line) {
    return line->screen == NULL && line->page == NULL;
}

const bp_json_tree *bp_section_facts(const bp_section *section, const bp_json_tree *document) {
    if (section->lines == NULL) {
        return NULL;
    }
    const bp_json_tree *facts =
        section->path[0] != '\0' ? bp_json_tree_object(document, section->path) : document;
    bool is_there = section->list == NULL || bp_json_tree_rows(facts, section->list) != NULL;
    return is_there ? facts : NULL;
}
