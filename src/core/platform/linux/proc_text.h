/*
 * Parsers of the texts under /proc, and the cursor that they use. Pure, tested everywhere. The
 * bytes may be anything, and be cut off anywhere: each function returns false and leaves its
 * outputs alone when they are malformed.
 *
 * Layouts: proc(5) and fs/proc/array.c, fs/proc/base.c of the kernel.
 */
#ifndef BP_PLATFORM_LINUX_PROC_TEXT_H
#define BP_PLATFORM_LINUX_PROC_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "platform/process_facts.h"

/* The rest of a text. Borrowed. */
typedef struct bp_proc_scan {
    const char *next;
    const char *end;
} bp_proc_scan;

/* Steps over spaces and tabs. */
void bp_proc_skip_blanks(bp_proc_scan *scan);

/* Takes one line, without its newline. False at the end of the text. */
bool bp_proc_take_line(bp_proc_scan *scan, bp_proc_scan *ret_line);

/* Takes the bytes up to the next space, tab, newline or the end. False when there are none. */
bool bp_proc_take_word(bp_proc_scan *scan, bp_proc_scan *ret_word);

/* Takes one given byte, or nothing. */
bool bp_proc_take_byte(bp_proc_scan *scan, char byte);

/* Takes a given text, or nothing. */
bool bp_proc_take_text(bp_proc_scan *scan, const char *text);

/* True if all that is left is this text. */
bool bp_proc_is(bp_proc_scan scan, const char *text);

/* True if a list such as "cpu,cpuacct" has this item. */
bool bp_proc_has_item(bp_proc_scan list, const char *item);

/* Takes an unsigned number of base 10 or 16 that fits in 64 bits, or nothing. */
bool bp_proc_take_number(bp_proc_scan *scan, unsigned base, uint64_t *ret_value);

/* Reads "0.50", which must be all that is left, as 50. */
bool bp_proc_read_centi(bp_proc_scan scan, uint64_t *ret_centi);

/* The fields of <pid>/stat, or task/<tid>/stat, that we use. */
typedef struct bp_proc_stat {
    uint64_t pid, parent_pid;
    char name[64]; /* any bytes; longer ones are cut */
    char state;    /* 'R', 'S', 'Z', … */
    bool is_kernel_thread;
    bool is_exiting; /* it may take long until it is a zombie */
    uint64_t minor_faults, major_faults;
    uint64_t user_ticks, system_ticks;
    uint64_t cpu_ticks;     /* both */
    uint64_t waited_ticks;  /* that of ended children that were waited for */
    uint64_t waited_faults; /* the page faults of these */
    uint64_t thread_count;
    uint64_t start_ticks; /* since boot */
    uint64_t stack_start; /* where execve put the number of arguments; 0: not known */
    bool has_scheduling;  /* the text reaches as far as what follows */
    int64_t priority, nice;
    uint64_t processor, rt_priority, policy, block_io_ticks;
    uint64_t exit_status; /* of a zombie, as waitpid(2) has it; 0 also where we may not see it */
} bp_proc_stat;

bool bp_proc_parse_stat(const char *text, size_t text_bytes, bp_proc_stat *ret_stat);

/* True if the thread has ended, and is still listed. */
bool bp_proc_has_thread_ended(const bp_proc_stat *stat);
/* The same of a process, by its first thread: others may go on without that. */
bool bp_proc_has_process_ended(const bp_proc_stat *stat);

/*
 * The bytes of a command line, whose strings each end in NUL, without the padding of a title: a
 * program that writes a title over its arguments fills the rest with NUL (setproctitle(3)). Empty
 * strings at the end are arguments where there are as many strings as execve passed;
 * `argument_count` is 0 where that is not known, and then so is a single empty string, or one after
 * several that are not.
 */
size_t bp_proc_trim_title(const char *line, size_t line_bytes, uint64_t argument_count);

/* The bytes of a command line that is cut there, without the word that the cut may have divided: no
 * rule of redaction knows half a token. A line of one word is kept whole. */
size_t bp_proc_whole_words(const char *line, size_t line_bytes);

/* The first two fields of statm, in pages. */
bool bp_proc_parse_statm(const char *text, size_t text_bytes, uint64_t *ret_size_pages,
                         uint64_t *ret_resident_pages);

/*
 * The number after `key` and ":" at the start of a line, as in status and io. `index` counts the
 * numbers of that line: "Uid: 1 2 3 4". A unit after it ("kB") is ignored.
 */
bool bp_proc_find_number(const char *text, size_t text_bytes, const char *key, size_t index,
                         uint64_t *ret_value);

/* A signed decimal number, followed by white space only: oom_score. */
bool bp_proc_parse_number(const char *text, size_t text_bytes, int64_t *ret_value);

/* The lines of `limits`, at most `limit_max`. Returns how many; malformed lines are skipped. */
size_t bp_proc_parse_limits(const char *text, size_t text_bytes, bp_resource_limit *limits,
                            size_t limit_max);

/*
 * The most specific path, as a slice of `text`: that of the unified hierarchy (v2), else systemd's,
 * else the first that is not the root. With a controller, as "memory": that of the version 1
 * hierarchy which has it.
 */
bool bp_proc_find_cgroup(const char *text, size_t text_bytes, const char *controller,
                         const char **ret_path, size_t *ret_path_bytes);

/* A mapping: a line of maps. */
typedef struct bp_proc_map {
    uint64_t start, end;
    uint64_t offset; /* in the file */
    bool is_readable, is_writable, is_executable, is_shared;
    uint64_t device_major, device_minor, inode;
    const char *path; /* a slice of the text, as the kernel wrote it; "" when it has none */
    size_t path_bytes;
} bp_proc_map;

/* Takes the next line of maps that is well-formed. False at the end of the text. */
bool bp_proc_take_map(bp_proc_scan *scan, bp_proc_map *ret_map);

/*
 * Writes the unescaped path with a NUL: the kernel writes a newline as \012 and escapes nothing
 * else (show_map_vma in fs/proc/task_mmu.c), so those four characters in a name are
 * indistinguishable from a newline. `out` holds path_bytes + 1 bytes. Returns the length.
 */
size_t bp_proc_unescape_path(const char *path, size_t path_bytes, char *out);

/*
 * The length of the path without the " (deleted)" that the kernel appends to the name of a removed
 * file, or 0 when it does not end so. A file may really have that name.
 */
size_t bp_proc_deleted_path_length(const char *path, size_t path_bytes);

#endif
