/*
 * The entries of a report: what they are called, and one row for what is known of each.
 */
#ifndef BP_MODEL_ENTRY_H
#define BP_MODEL_ENTRY_H

#include <stdbool.h>
#include <stddef.h>

typedef enum bp_entry_form {
    BP_ENTRY_ANY, /* whatever it is */
    BP_ENTRY_TEXT,
    BP_ENTRY_JSON,      /* one document */
    BP_ENTRY_JSON_LINES /* one document a line */
} bp_entry_form;

/* OPTIONAL: `without_entries` may name it. HOSTS: a host may provide it itself. LATE: ours is made
 * when the window of the report has passed. */
enum {
    BP_ENTRY_FIXED = 0,
    BP_ENTRY_OPTIONAL = 1,
    BP_ENTRY_HOSTS = 2,
    BP_ENTRY_LATE = 4,
    BP_ENTRY_OPTIONAL_LATE = BP_ENTRY_OPTIONAL | BP_ENTRY_LATE,
    BP_ENTRY_HOSTS_LATE = BP_ENTRY_HOSTS | BP_ENTRY_LATE
};

/* How an entry gives way to a limit of the whole report (model/fit.h): it goes whole, or loses its
 * oldest lines or frames first. */
typedef enum bp_entry_cut {
    BP_ENTRY_WHOLE,
    BP_ENTRY_LINES,
    BP_ENTRY_FRAMES,
    BP_ENTRY_INDEX /* lines that count the frames */
} bp_entry_cut;

/*
 * In the order of docs/REPORT_FORMAT.md, which is that of the zip:
 *
 *     ROW(id, name, form, flag, worth, cut, what it may hold that is personal)
 *     SOURCE(… , provider, when it applies, its limit in KiB, its turn)
 *
 * A report of limited size loses the entries with the largest `worth` first, after those that have
 * no row, and never one of worth 0. A name that ends in '/' stands for all below it. What is a
 * SOURCE is made by the provider bp_source_<provider> (sources/register.c); what changes fast has
 * the first turns.
 */
/* clang-format off */
#define BP_ENTRIES(ROW, SOURCE) \
    ROW(METADATA, "metadata.json", JSON, FIXED, 0, WHOLE, "description, tags, names of programs and, on request, the machine") \
    ROW(CRASH, "crash.json", JSON, FIXED, 1, WHOLE, "numbers in registers, paths of files") \
    ROW(HANG, "hang.json", JSON, FIXED, 1, WHOLE, "name of the thread") \
    ROW(METRICS, "runtime-metrics.json", JSON, FIXED, 1, WHOLE, "names of threads") \
    ROW(HISTORY, "metrics-history.jsonl", JSON_LINES, OPTIONAL, 4, LINES, "names of threads") \
    SOURCE(PROCESS, "process.json", JSON, OPTIONAL, 2, WHOLE, "command line, paths, user id", \
           process, has_sampler, 16 << 10, 3) \
    SOURCE(THREADS, "threads.json", JSON, OPTIONAL, 2, WHOLE, \
           "names of threads, numbers and paths passed to system calls, addresses of peers", \
           threads, has_process, 256 << 10, 4) \
    SOURCE(FILES, "files.json", JSON, OPTIONAL, 3, WHOLE, "paths of open files, addresses of peers", \
           open_files, has_process, 128 << 10, 5) \
    SOURCE(SYSTEM, "system.json", JSON, OPTIONAL_LATE, 2, WHOLE, "distribution, path of the program", \
           system, is_first, 4 << 10, 8) \
    SOURCE(HEAP_STATE, "heap-state.json", JSON, OPTIONAL, 2, WHOLE, "numbers alone", \
           heap_state, is_own, 64, 7) \
    SOURCE(STACKS_TEXT, "stacks.txt", TEXT, OPTIONAL, 9, WHOLE, "names of threads and functions, paths", \
           stacks_text, has_stacks, 64 << 10, 2) \
    SOURCE(STACKS, "stacks.json", JSON, OPTIONAL, 2, WHOLE, "names of threads and functions, paths", \
           stacks_json, has_stacks, 64 << 10, 1) \
    ROW(PROFILE, "profile.folded", TEXT, OPTIONAL, 4, WHOLE, "names of threads and functions") \
    ROW(SESSION, "session.json", JSON, HOSTS, 4, WHOLE, "what the program says of itself") \
    ROW(CHANNEL_STATE, "channel-state.json", JSON, HOSTS, 4, WHOLE, "what the program says of itself") \
    ROW(LOGS, "logs.jsonl", JSON_LINES, OPTIONAL, 5, LINES, "log messages: addresses, paths, names") \
    ROW(LOG_FILES, "logs/", ANY, HOSTS_LATE, 8, LINES, "log files: addresses, paths, names") \
    ROW(NOTIFICATIONS, "notifications.json", JSON, OPTIONAL, 4, WHOLE, "what the user was shown") \
    ROW(TRAFFIC, "traffic.pcap", ANY, OPTIONAL, 6, FRAMES, "TRAFFIC with its payload") \
    ROW(TRAFFIC_INDEX, "traffic-index.jsonl", JSON_LINES, OPTIONAL, 6, INDEX, "names of channels and messages") \
    ROW(SCREENSHOT, "screenshot.png", ANY, FIXED, 7, WHOLE, "SCREENSHOT") \
    ROW(SCREENSHOT_REGION, "screenshot-region.png", ANY, FIXED, 5, WHOLE, "SCREENSHOT") \
    ROW(DISCONNECT, "disconnect-cause.json", JSON, FIXED, 1, WHOLE, "error texts") \
    SOURCE(THREAD_HEAP, "thread-heap.json", JSON, OPTIONAL, 3, WHOLE, "names of threads", \
           thread_heap, is_other, 256 << 10, 6) \
    ROW(COMMANDS, "commands/", ANY, HOSTS, 8, LINES, "what commands printed: addresses, paths, names") \
    ROW(HOST_THREADS, "host-threads.json", JSON, FIXED, 3, WHOLE, \
        "names and command lines of all processes") \
    ROW(MANIFEST, "manifest.json", JSON, FIXED, 0, WHOLE, "names of entries, paths in reasons")
/* clang-format on */

#define BP_ENTRY_ID(id, ...) BP_ENTRY_##id,
typedef enum bp_entry_id { BP_ENTRIES(BP_ENTRY_ID, BP_ENTRY_ID) BP_ENTRY_COUNT } bp_entry_id;
#undef BP_ENTRY_ID

typedef struct bp_entry_row {
    const char *name;
    bp_entry_form form;
    unsigned flags;
    unsigned worth; /* smaller is worth more */
    bp_entry_cut cut;
    const char *holds;
} bp_entry_row;

extern const bp_entry_row bp_entries[BP_ENTRY_COUNT];

/* The row of a name, or BP_ENTRY_COUNT: what a host provides under a name of its own. Upper and
 * lower case are alike. The directory of a further process in front does not count. */
bp_entry_id bp_entry_find(const char *name);

/* True if the row of a name says LATE. */
bool bp_entry_is_late(const char *name);

/*
 * The place of an entry in a report. Entries without a row share one, after those with one; then
 * come further processes, one after the other, and the manifest.
 */
unsigned bp_entry_rank(const char *name);

/* Checks the name of a host's artefact: the end of a sentence that says what is wrong, or NULL. */
const char *bp_entry_refuse(const char *name);

/* True if a list, separated by spaces, has this name. */
bool bp_entry_is_in_list(const char *list, const char *name);

/* Checks that each name in such a list is of an entry that can be left out: a sentence with the
 * first wrong one, and the one that was probably meant; or NULL. */
enum { BP_ENTRY_MISTAKE_BYTES = 256 };
const char *bp_entry_refuse_list(const char *list, char out[BP_ENTRY_MISTAKE_BYTES]);

/* The directory of the further processes of a report, each in one of its own; the bytes of
 * "processes/<pid>-<name>/" at the front of an entry's name, 0 for any other; and the name without
 * them. */
#define BP_ENTRY_PROCESSES "processes/"
size_t bp_entry_folder_bytes(const char *name);
const char *bp_entry_in_process(const char *name);

/* True if two entry names would be one file where case does not count (ASCII). */
bool bp_entry_is_same(const char *one, const char *other);

/*
 * True if two entries cannot both be extracted: they are the same one, or one would have to be a
 * directory for the other ("a" and "a/b").
 */
bool bp_entry_is_in_the_way(const char *one, const char *other);

#endif
