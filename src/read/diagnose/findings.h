/*
 * Diagnoses of a report: one row for each diagnosis, and the findings.
 * docs/DIAGNOSES.md has a row for each; docs/ARCHITECTURE.md says how to add one.
 */
#ifndef BP_DIAGNOSE_FINDINGS_H
#define BP_DIAGNOSE_FINDINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "diagnose/sentence.h"
#include "model/signature.h"

struct bp_evidence; /* diagnose/evidence.h */

/* Most severe first. */
typedef enum bp_severity {
    BP_SEVERITY_CRITICAL,
    BP_SEVERITY_WARNING,
    BP_SEVERITY_INFO,
    BP_SEVERITY_COUNT
} bp_severity;
const char *bp_severity_name(bp_severity severity);

/*
 * ROW(constant, id, severity, function, scope, entry, path, next). An id never changes. `function`
 * is bp_diagnose_… of one of the files of its class. One with several rows asks which of them is
 * `running`; `none` is for findings made while entries are read. `scope`: PROCESS for each process
 * of a report, REPORT for the first alone, which has the entries of the whole report. `entry` is
 * where the evidence is ("": the finding names it), `path` is its path there for jq, `next` names
 * the next thing to look at ("": nothing more); it is left out where it begins with the name of an
 * entry that is not in the report. Findings of one severity are in the order of the
 * rows.
 */
/* clang-format off */
#define BP_DIAGNOSES(ROW) \
    ROW(CONDITION, "condition", CRITICAL, condition, REPORT, "metadata.json", ".condition", \
        "metrics-history.jsonl shows how it came to that") \
    ROW(CRASH, "crash", CRITICAL, crash, PROCESS, "crash.json", ".summary", \
        "crash.json has the backtrace and the registers") \
    ROW(OOM_KILLED, "out-of-memory-killed", CRITICAL, oom_killed, REPORT, "system.json", \
        ".memory, .cgroups[].memory", "the kernel's log names the process and its memory") \
    ROW(KILLED, "killed-by-signal", CRITICAL, killed, REPORT, "metadata.json", ".exit", \
        "bugpack run --stacks shows where a crash was") \
    ROW(DIED, "died-unseen", CRITICAL, died, REPORT, "metadata.json", ".session_end", \
        "logs.jsonl has what it did last") \
    ROW(NOT_FOUND, "command-not-found", CRITICAL, not_found, REPORT, "metadata.json", \
        ".exit.status", "check the name of the command, and PATH") \
    ROW(NOT_EXECUTED, "command-not-executed", CRITICAL, not_executed, REPORT, "metadata.json", \
        ".exit.not_executed", "file(1) names the format of a program") \
    ROW(LIBRARY, "library-missing", CRITICAL, library, REPORT, "logs.jsonl", ".message", \
        "ldd shows which libraries are found, and where") \
    ROW(CHILD_KILLED, "child-killed", CRITICAL, child_killed, REPORT, "metadata.json", \
        ".exit.status", "bugpack run --stacks of the child itself shows where") \
    ROW(LAST_WORDS, "last-words", CRITICAL, last_words, REPORT, "logs.jsonl", ".message", \
        "logs.jsonl has all that it wrote; bugpack logs prints it") \
    ROW(HANG, "hang", CRITICAL, hang, REPORT, "hang.json", ".since_last_beat_ms", \
        "stacks.txt has all its functions") \
    ROW(DEADLOCK, "deadlock", CRITICAL, deadlock, PROCESS, "threads.json", ".deadlocks[]", \
        "stacks.txt shows where each of them waits for the lock of the next") \
    ROW(STOPPED, "stopped", CRITICAL, stopped, PROCESS, "threads.json", ".threads[].state", \
        "kill -CONT lets it go on; a debugger or a shell may have stopped it") \
    ROW(PEER_STOPPED, "peer-stopped", CRITICAL, peer_stopped, PROCESS, "threads.json", \
        ".threads[].waits_for.other_end", "capture the other process") \
    ROW(TRACED, "traced", CRITICAL, traced, PROCESS, "threads.json", ".traced_by", \
        "a debugger that holds a process up has to let it go on, or to detach") \
    ROW(PAUSED, "frozen", CRITICAL, paused, PROCESS, "threads.json", ".threads[].wait_channel", \
        "what paused its control group has to resume it, as docker unpause does") \
    ROW(PEER_WAITS, "peer-waits", CRITICAL, peer_waits, PROCESS, "threads.json", \
        ".threads[].waits_for.chain", "capture the process at the end of the chain") \
    ROW(CHILD_WAITS, "child-waits", CRITICAL, child_waits, PROCESS, "threads.json", \
        ".threads[].waits_for.chain", "capture the process at the end of the chain") \
    ROW(FILE_LOCK, "file-lock-held", CRITICAL, file_lock_held, PROCESS, "threads.json", \
        ".threads[].waits_for.holder", "capture the process that holds it") \
    ROW(FILE_LOCK_ASKED, "file-lock-held", CRITICAL, file_lock_asked, PROCESS, "files.json", \
        ".files[].locked_by", "capture the process that holds it") \
    ROW(PROCESS_LOCK, "lock-held-by-process", CRITICAL, process_lock_held, PROCESS, \
        "threads.json", ".threads[].waits_for.process", "capture the process that holds it") \
    ROW(DATABASE_LOCK, "database-lock", CRITICAL, none, REPORT, "process.json", \
        ".command_line[0]", \
        "SELECT pid, pg_blocking_pids(pid) FROM pg_stat_activity names who holds it, and the queue") \
    ROW(OWNER_ENDED, "lock-owner-ended", CRITICAL, owner_ended, PROCESS, "threads.json", \
        ".threads[].waits_for", "look for what returns or ends a thread without an unlock") \
    ROW(CONNECT, "connect-pending", CRITICAL, connect_pending, PROCESS, "threads.json", \
        ".threads[].waits_for.socket", "check the server, and that no firewall drops packets") \
    ROW(UNINTERRUPTIBLE, "uninterruptible", CRITICAL, uninterruptible, PROCESS, "threads.json", \
        ".threads[].kernel_stack", \
        "the kernel stack, which root may read, names the file system or the driver") \
    ROW(CALL_UNANSWERED, "call-blocked", CRITICAL, call_blocked, PROCESS, "threads.json", \
        ".threads[].syscall", "look at the server, and at the network on the way to it") \
    ROW(LOCK_HELD, "lock-held", CRITICAL, lock_held, PROCESS, "threads.json", \
        ".threads[].waits_for", "look in stacks.txt for the thread that holds it") \
    ROW(NOBODY_WAKES, "nobody-can-wake", CRITICAL, nobody_wakes, PROCESS, "threads.json", \
        ".threads[].syscall", "stacks.txt has all functions of each thread") \
    ROW(DISCONNECT, "disconnect", CRITICAL, disconnect, PROCESS, "disconnect-cause.json", \
        ".error", "") \
    ROW(FD_LIMIT, "fd-limit", CRITICAL, fd_limit, PROCESS, "process.json", ".open_files", \
        "files.json lists what they are") \
    ROW(THREAD_LIMIT, "thread-limit", CRITICAL, thread_limit, PROCESS, "process.json", \
        ".user_threads, .threads", "ps -L -u shows the threads of a user") \
    ROW(MAP_LIMIT, "map-limit", CRITICAL, map_limit, PROCESS, "process.json", ".mappings", \
        "look for what maps memory, or protects parts of it, without an end") \
    ROW(INOTIFY_LIMIT, "inotify-limit", CRITICAL, inotify_limit, PROCESS, "files.json", ".inotify", \
        "look for what watches files, or opens inotify, without an end") \
    ROW(MEMORY_LIMIT, "memory-limit", CRITICAL, memory_limit, PROCESS, "process.json", ".memory", \
        "") \
    ROW(CGROUP_LIMIT, "cgroup-limit", CRITICAL, cgroup_limit, PROCESS, "system.json", \
        ".cgroups[]", "") \
    ROW(DISK_FULL, "disk-full", CRITICAL, disks, PROCESS, "system.json", ".filesystems[]", \
        "du -x shows what fills it") \
    ROW(LOG_DISK_FULL, "disk-full", CRITICAL, full_log, REPORT, "manifest.json", \
        ".artefacts[].disk_full", "du -x shows what fills it") \
    ROW(INODES_FULL, "inodes-exhausted", CRITICAL, inodes, PROCESS, "system.json", \
        ".filesystems[].free_inodes", "du -x --inodes shows where they are") \
    ROW(DISK_READ_ONLY, "disk-read-only", CRITICAL, disk_read_only, PROCESS, "system.json", \
        ".filesystems[].read_only", "the kernel's log says why: dmesg, journalctl -k") \
    ROW(ACCEPT_QUEUE, "accept-queue-full", CRITICAL, accept_queue, PROCESS, "files.json", \
        ".files[].socket", "stacks.txt shows where the thread is that should accept") \
    ROW(CLOSED, "descriptor-closed", CRITICAL, closed_descriptor, PROCESS, "threads.json", \
        ".threads[].syscall", "shutdown(2), or a byte in a pipe, wakes such a thread; close(2) does not") \
    ROW(SPIN, "spin", WARNING, spin, PROCESS, "runtime-metrics.json", ".threads[].cpu_ms", \
        "a long computation in memory looks the same; capture --stacks=all shows where it is") \
    ROW(SPIN_CALLS, "spin-in-system-calls", WARNING, spin, PROCESS, "runtime-metrics.json", \
        ".threads[].system_ms", "strace -c -f -p names the call; capture --stacks=all the caller") \
    ROW(IDLE_WAKEUPS, "idle-wakeups", WARNING, idle_wakeups, PROCESS, "runtime-metrics.json", \
        ".threads[].voluntary_switches", \
        "let it wait for what it looks for, or look less often") \
    ROW(GARBAGE, "garbage-collection", WARNING, garbage_collection, PROCESS, \
        "runtime-metrics.json", ".threads[].cpu_ms", \
        "for Java, jstat -gcutil and jcmd GC.class_histogram show what fills the heap") \
    ROW(CONTENDED, "lock-contended", WARNING, lock_contended, PROCESS, "threads.json", \
        ".threads[].syscall", "hold the lock for less, or split it") \
    ROW(EXIT_STATUS, "exit-status", WARNING, exit_status, REPORT, "metadata.json", ".exit.status", \
        "") \
    ROW(GAP, "gap", WARNING, gap, REPORT, "metadata.json", ".gap_key", "") \
    ROW(TRIGGERS, "earlier-triggers", WARNING, triggers, REPORT, "manifest.json", ".triggers[]", \
        "") \
    ROW(INPUT_NOT_READ, "input-not-read", WARNING, input_not_read, PROCESS, "files.json", \
        ".files[].socket", "stacks.txt shows where its threads sleep instead") \
    ROW(NO_ANSWER, "no-answer", WARNING, no_answer, PROCESS, "threads.json", ".threads[].waits_for", \
        "look at what the other end does; capture it, if it is on this machine") \
    ROW(UPSTREAM, "no-answer", WARNING, upstream, PROCESS, "files.json", \
        ".files[].socket.unanswered_ms", \
        "look at what the other end does; capture it, if it is on this machine") \
    ROW(CLOSE_WAIT, "close-wait", WARNING, close_wait, PROCESS, "files.json", \
        ".files[].socket.state", \
        "the program does not close connections that its peers have closed") \
    ROW(CALL_BLOCKED, "call-blocked", WARNING, call_blocked, PROCESS, "threads.json", \
        ".threads[].syscall", "files.json has what else is open") \
    ROW(PIPE_FULL, "pipe-full", WARNING, pipe_full, PROCESS, "threads.json", \
        ".threads[].waits_for.other_end", "capture the process that should read") \
    ROW(MANY_ZOMBIES, "many-zombies", WARNING, many_zombies, PROCESS, "process.json", \
        ".zombie_children", "the program does not wait for children that have ended") \
    ROW(MANY_THREADS, "many-threads", WARNING, many_threads, PROCESS, "runtime-metrics.json", \
        ".threads[].name", "look for what starts threads of this name without an end") \
    ROW(ENDED_THREADS, "threads-come-and-go", WARNING, ended_threads, PROCESS, \
        "runtime-metrics.json", ".process.ended_threads_cpu_ms", \
        "look for what starts a thread for each piece of work; perf trace -s -p shows them") \
    ROW(ENDED_CHILDREN, "children-come-and-go", WARNING, ended_children, PROCESS, \
        "runtime-metrics.json", ".process.children", \
        "start it by itself, as by bugpack run --stacks, to see why it ends") \
    ROW(THROTTLED, "cpu-throttled", WARNING, throttled, PROCESS, "system.json", \
        ".cgroups[].cpu.session_throttled_periods", "") \
    ROW(STARVED, "cpu-starved", WARNING, starved, PROCESS, "runtime-metrics.json", \
        ".threads[].run_delay_ms", "") \
    ROW(MEMORY_GROWTH, "memory-growth", WARNING, memory_growth, REPORT, "metrics-history.jsonl", \
        ".rss_kb", "") \
    ROW(THREAD_GROWTH, "thread-growth", WARNING, thread_growth, PROCESS, "metrics-history.jsonl", \
        ".thread_count", "look for what starts threads and does not end them") \
    ROW(CHILD_GROWTH, "child-growth", WARNING, child_growth, PROCESS, "runtime-metrics.json", \
        ".process.rss_samples[].child_count", "pstree -p shows them") \
    ROW(FILE_GROWTH, "file-growth", WARNING, file_growth, PROCESS, "metrics-history.jsonl", \
        ".file_count", "files.json lists what is open") \
    ROW(SWAPPED, "swapped", WARNING, swapped, PROCESS, "process.json", ".memory.swap_kb", "") \
    ROW(CGROUP_KILLS, "cgroup-oom-kill", WARNING, cgroup_kills, PROCESS, "system.json", \
        ".cgroups[].memory.session_oom_kills", "the kernel's log names the process and its memory") \
    ROW(DISK_LOW, "disk-nearly-full", WARNING, disks, PROCESS, "system.json", \
        ".filesystems[]", "") \
    ROW(INODES_LOW, "inodes-low", WARNING, inodes, PROCESS, "system.json", \
        ".filesystems[].free_inodes", "") \
    ROW(MEMORY_LOW, "machine-memory-low", WARNING, memory_low, PROCESS, "system.json", \
        ".memory.available_kb", "") \
    ROW(DELETED_CODE, "deleted-executable", WARNING, deleted_code, PROCESS, "process.json", \
        ".loaded_objects[].deleted", \
        "restart it: it runs what is no longer on the disk, as after an update") \
    ROW(DELETED_FILE, "deleted-file-open", WARNING, deleted_file, PROCESS, "files.json", \
        ".files[].target", "its space is free when the program closes it") \
    ROW(LOG_STORM, "log-storm", WARNING, log_storm, REPORT, "logs.jsonl", ".message", \
        "look for the loop that tries again without a pause") \
    ROW(LOG_ERRORS, "log-errors", WARNING, log_errors, REPORT, "logs.jsonl", ".message", "") \
    ROW(NOT_READ, "entry-not-read", WARNING, none, REPORT, "", "", "") \
    ROW(MISSING, "entry-missing", WARNING, missing, REPORT, "", "", "") \
    ROW(ADDRESS_SPACE_GROWTH, "address-space-growth", INFO, address_space_growth, PROCESS, \
        "metrics-history.jsonl", ".vm_size_kb", \
        "look for what maps memory and does not unmap it; strace -e mmap,munmap -k names the caller") \
    ROW(SPIN_PROGRESS, "spin", INFO, spin, PROCESS, "runtime-metrics.json", ".threads[].cpu_ms", \
        "it writes as it goes: a computation that says how far it is looks the same") \
    ROW(PAUSING_CHILDREN, "children-come-and-go", INFO, ended_children, PROCESS, \
        "runtime-metrics.json", ".process.children", \
        "start it by itself, as by bugpack run --stacks, to see why it ends") \
    ROW(NO_ANSWER_YET, "no-answer", INFO, no_answer, PROCESS, "threads.json", \
        ".threads[].waits_for", "look at what the other end does") \
    ROW(UPSTREAM_YET, "no-answer", INFO, upstream, PROCESS, "files.json", \
        ".files[].socket.unanswered_ms", "look at what the other end does") \
    ROW(CALL_WAITS, "call-blocked", INFO, call_blocked, PROCESS, "threads.json", \
        ".threads[].syscall", "look at what the other process does") \
    ROW(NO_MANIFEST, "no-manifest", INFO, no_manifest, REPORT, "manifest.json", "", "")
/* clang-format on */

#define BP_DIAGNOSIS_CONSTANT(constant, ...) BP_DIAGNOSIS_##constant,
typedef enum bp_diagnosis { BP_DIAGNOSES(BP_DIAGNOSIS_CONSTANT) BP_DIAGNOSIS_COUNT } bp_diagnosis;
#undef BP_DIAGNOSIS_CONSTANT

/* Adds what it finds in the evidence, by bp_find. Of what is not known it finds nothing. */
typedef void bp_diagnose_function(struct bp_evidence *evidence);

#define BP_DIAGNOSIS_FUNCTION(constant, id, severity, function, ...)                               \
    bp_diagnose_function bp_diagnose_##function;
BP_DIAGNOSES(BP_DIAGNOSIS_FUNCTION)
#undef BP_DIAGNOSIS_FUNCTION

typedef struct bp_diagnosis_row {
    const char *id;
    bp_severity severity;
    const char *entry, *path, *next;
} bp_diagnosis_row;
extern const bp_diagnosis_row bp_diagnoses[BP_DIAGNOSIS_COUNT];

/* Something about the bug, and the entry that says so. */
typedef struct bp_finding {
    bp_diagnosis diagnosis;
    char entry[128];
    bool lacks_next;      /* the report has no entry that the next thing to look at begins with */
    bp_sentence sentence; /* its threads: those in stacks.json */
    /* For the signature: the first thread that it names, or those of a deadlock, and its name. */
    uint64_t tids[BP_SIGNATURE_STACK_MAX];
    size_t tid_count;
    char thread_name[64]; /* "": not known */
} bp_finding;

/* The path of the evidence for jq, and the next thing to look at; "" for none. */
const char *bp_finding_path(const bp_finding *finding);
const char *bp_finding_next(const bp_finding *finding);
bp_severity bp_finding_severity(const bp_finding *finding);

enum { BP_FINDING_MAX = 48 };

/* The findings of a report, and how many more there are, the least severe. */
typedef struct bp_findings {
    bp_finding rows[BP_FINDING_MAX];
    size_t count;
    uint64_t other_counts[BP_SEVERITY_COUNT];
} bp_findings;

uint64_t bp_findings_other_count(const bp_findings *findings);

/* The number of findings of a severity, with those beyond the maximum. */
uint64_t bp_findings_severity_count(const bp_findings *findings, bp_severity severity);

/* Adds one. Beyond the maximum, the newest of the least severe ones is only counted. */
void bp_findings_add(bp_findings *findings, const bp_finding *finding);

/* The same, but "" if the finding behind it has the same. */
const char *bp_findings_next(const bp_findings *findings, size_t place);

/* Most severe first, and by the order of the rows; stable. */
void bp_findings_sort(bp_findings *findings);

#endif
