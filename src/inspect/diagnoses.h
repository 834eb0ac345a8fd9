/*
 * What a report can be found to say: one row for each diagnosis. docs/DIAGNOSES.md has a section
 * for each.
 */
#ifndef BP_INSPECT_DIAGNOSES_H
#define BP_INSPECT_DIAGNOSES_H

/* Most severe first. */
typedef enum bp_severity {
    BP_SEVERITY_CRITICAL,
    BP_SEVERITY_WARNING,
    BP_SEVERITY_INFO,
    BP_SEVERITY_COUNT
} bp_severity;
const char *bp_severity_name(bp_severity severity);

/*
 * ROW(constant, id, severity, entry, path, next): an id never changes. `entry` is where the
 * evidence is ("": the finding names it), `path` what jq finds it by there, `next` what to look at
 * next ("": nothing more). Findings of one severity are in the order of the rows.
 */
/* clang-format off */
#define BP_DIAGNOSES(ROW) \
    ROW(CRASH, "crash", CRITICAL, "crash.json", ".summary", \
        "crash.json has the backtrace and the registers") \
    ROW(KILLED, "killed-by-signal", CRITICAL, "metadata.json", ".exit", "") \
    ROW(DIED, "died-unseen", CRITICAL, "metadata.json", ".session_end", \
        "the newest log records say what it did last") \
    ROW(LAST_WORDS, "last-words", CRITICAL, "", ".message", "") \
    ROW(DEADLOCK, "deadlock", CRITICAL, "threads.json", ".deadlocks[]", \
        "stacks.txt shows where each of them took its first lock") \
    ROW(STOPPED, "stopped", CRITICAL, "threads.json", ".threads[].state", \
        "kill -CONT lets it go on; a debugger or a shell may have stopped it") \
    ROW(PEER_STOPPED, "peer-stopped", CRITICAL, "threads.json", ".threads[].waits_for.other_end", \
        "capture the other process") \
    ROW(UNINTERRUPTIBLE, "uninterruptible", CRITICAL, "threads.json", ".threads[].kernel_stack", \
        "the kernel stack names the file system or the driver") \
    ROW(LOCK_HELD, "lock-held", CRITICAL, "threads.json", ".threads[].waits_for", \
        "the stack of the thread that holds it") \
    ROW(DISCONNECT, "disconnect", CRITICAL, "disconnect-cause.json", ".error", "") \
    ROW(FD_LIMIT, "fd-limit", CRITICAL, "process.json", ".open_files", \
        "files.json lists what they are") \
    ROW(CGROUP_LIMIT, "cgroup-limit", CRITICAL, "system.json", ".cgroups[]", "") \
    ROW(DISK_FULL, "disk-full", CRITICAL, "system.json", ".filesystems[]", "") \
    ROW(INODES_FULL, "inodes-exhausted", CRITICAL, "system.json", ".filesystems[].free_inodes", "") \
    ROW(ACCEPT_QUEUE, "accept-queue-full", CRITICAL, "files.json", ".files[].socket", \
        "the thread that should accept") \
    ROW(SPIN, "spin", WARNING, "runtime-metrics.json", ".threads[].cpu_ms", \
        "capture --stacks=all shows where a running thread is") \
    ROW(SPIN_CALLS, "spin-in-system-calls", WARNING, "runtime-metrics.json", \
        ".threads[].system_ms", "strace -c -f -p names the call; capture --stacks=all the caller") \
    ROW(EXIT_STATUS, "exit-status", WARNING, "metadata.json", ".exit.status", "") \
    ROW(GAP, "gap", WARNING, "metadata.json", ".gap_key", "") \
    ROW(TRIGGERS, "earlier-triggers", WARNING, "manifest.json", ".triggers[]", "") \
    ROW(CLOSE_WAIT, "close-wait", WARNING, "files.json", ".files[].socket.state", \
        "the program does not close connections that its peers have closed") \
    ROW(MANY_THREADS, "many-threads", WARNING, "runtime-metrics.json", ".threads[].name", \
        "what starts threads of this name without an end") \
    ROW(THROTTLED, "cpu-throttled", WARNING, "system.json", ".cgroups[].cpu.throttled_periods", "") \
    ROW(MEMORY_GROWTH, "memory-growth", WARNING, "metrics-history.jsonl", ".rss_kb", "") \
    ROW(CGROUP_KILLS, "cgroup-oom-kill", WARNING, "system.json", ".cgroups[].memory.oom_kills", "") \
    ROW(DISK_LOW, "disk-nearly-full", WARNING, "system.json", ".filesystems[]", "") \
    ROW(INODES_LOW, "inodes-low", WARNING, "system.json", ".filesystems[].free_inodes", "") \
    ROW(MEMORY_LOW, "machine-memory-low", WARNING, "system.json", ".memory.available_kb", "") \
    ROW(DELETED_CODE, "deleted-executable", WARNING, "process.json", ".loaded_objects[].deleted", \
        "it was replaced, as by an update: the program runs what is no longer on the disk") \
    ROW(DELETED_FILE, "deleted-file-open", WARNING, "files.json", ".files[].target", \
        "its space is free when the program closes it") \
    ROW(LOG_ERRORS, "log-errors", WARNING, "logs.jsonl", ".message", "") \
    ROW(NOT_READ, "entry-not-read", WARNING, "", "", "") \
    ROW(MISSING, "entry-missing", WARNING, "", "", "") \
    ROW(NO_MANIFEST, "no-manifest", INFO, "manifest.json", "", "")
/* clang-format on */

#define BP_DIAGNOSIS_CONSTANT(constant, ...) BP_DIAGNOSIS_##constant,
typedef enum bp_diagnosis { BP_DIAGNOSES(BP_DIAGNOSIS_CONSTANT) BP_DIAGNOSIS_COUNT } bp_diagnosis;
#undef BP_DIAGNOSIS_CONSTANT

typedef struct bp_diagnosis_row {
    const char *id;
    bp_severity severity;
    const char *entry, *path, *next;
} bp_diagnosis_row;
extern const bp_diagnosis_row bp_diagnoses[BP_DIAGNOSIS_COUNT];

#endif
