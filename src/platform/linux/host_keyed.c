/*
 * Files with a key and a number on each line.
 */
#include <string.h>

#include "platform/linux/host_text.h"
#include "platform/linux/proc_scan.h"

enum { ns_per_ms = 1000000, ns_digits = 6 };

/* Which counter a key is. */
typedef struct keyed {
    const char *key;
    bp_host_counter counter;
    bool is_time; /* "12.345678": milliseconds, with six digits behind the point */
} keyed;

static const struct {
    bp_host_group group;
} counters[] = {
#define GROUP_OF(constant, group, key) {BP_HOST_##group},
    BP_HOST_COUNTERS(GROUP_OF)
#undef GROUP_OF
};

static bool take_time(bp_proc_scan *scan, uint64_t *ret_ns) {
    uint64_t whole_ms, part_ns;
    if (!bp_proc_take_number(scan, 10, &whole_ms) || !bp_proc_take_byte(scan, '.')) {
        return false;
    }
    const char *digits = scan->next;
    if (!bp_proc_take_number(scan, 10, &part_ns) || scan->next - digits != ns_digits ||
        whole_ms > (UINT64_MAX - part_ns) / ns_per_ms) {
        return false;
    }
    *ret_ns = whole_ms * ns_per_ms + part_ns;
    return true;
}

/* "key : 12", "Rss:   12 kB". A number that ends in the middle of a word is none. */
static bool take_value(bp_proc_scan *line, bool is_time, uint64_t *ret_value) {
    uint64_t value;
    bp_proc_skip_blanks(line);
    if (!(is_time ? take_time(line, &value) : bp_proc_take_number(line, 10, &value)) ||
        (line->next < line->end && *line->next != ' ' && *line->next != '\t')) {
        return false;
    }
    *ret_value = value;
    return true;
}

/* Splits at the colon. Kernels have put "se." and "se.statistics." before the same names. */
static bool take_key(bp_proc_scan *line, bool has_prefixes, bp_proc_scan *ret_key) {
    const char *colon = memchr(line->next, ':', (size_t)(line->end - line->next));
    if (colon == NULL) {
        return false;
    }
    bp_proc_scan key = {line->next, colon};
    while (key.end > key.next && (key.end[-1] == ' ' || key.end[-1] == '\t')) {
        key.end--;
    }
    for (const char *at = key.next; has_prefixes && at < key.end; at++) {
        if (*at == '.') {
            key.next = at + 1;
        }
    }
    line->next = colon + 1;
    *ret_key = key;
    return true;
}

static const keyed *find_key(const keyed *table, size_t table_count, const bp_proc_scan *key) {
    size_t key_bytes = (size_t)(key->end - key->next);
    for (size_t i = 0; i < table_count; i++) {
        if (strlen(table[i].key) == key_bytes && memcmp(table[i].key, key->next, key_bytes) == 0) {
            return &table[i];
        }
    }
    return NULL;
}

/* Measures the groups of a table whose counters are all there, and clears the others. Returns the
 * groups of which a key was found, be its value good or not. */
static uint32_t parse_keyed(bp_proc_scan scan, const keyed *table, size_t table_count,
                            bool has_prefixes, bp_host_thread *thread) {
    bp_proc_scan line, key;
    uint64_t values[BP_HOST_COUNTER_COUNT];
    bool is_good[BP_HOST_COUNTER_COUNT] = {false};
    uint32_t found = 0, broken = 0;
    while (bp_proc_take_line(&scan, &line)) {
        const keyed *row =
            take_key(&line, has_prefixes, &key) ? find_key(table, table_count, &key) : NULL;
        if (row != NULL) {
            found |= 1u << counters[row->counter].group;
            is_good[row->counter] = take_value(&line, row->is_time, &values[row->counter]);
        }
    }
    for (size_t i = 0; i < table_count; i++) {
        uint32_t group = 1u << counters[table[i].counter].group;
        broken |= is_good[table[i].counter] ? 0 : group;
        thread->measured |= group;
    }
    thread->measured &= ~broken;
    for (size_t i = 0; i < table_count; i++) {
        bool is_measured = (thread->measured >> counters[table[i].counter].group & 1u) != 0;
        thread->counters[table[i].counter] = is_measured ? values[table[i].counter] : 0;
    }
    return found;
}

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

bool bp_host_parse_status(const char *text, size_t text_bytes, bp_host_thread *thread) {
    static const keyed table[] = {
        {"voluntary_ctxt_switches", BP_HOST_VOLUNTARY_SWITCHES, false},
        {"nonvoluntary_ctxt_switches", BP_HOST_INVOLUNTARY_SWITCHES, false}};
    static const char affinity_key[] = "Cpus_allowed_list";
    bp_proc_scan scan = {text, text + text_bytes};
    bp_proc_scan rest = scan;
    bp_proc_scan line, key, list;
    /* A name cannot forge a line: status escapes a newline in it. */
    while (bp_proc_take_line(&rest, &line)) {
        if (take_key(&line, false, &key) &&
            (size_t)(key.end - key.next) == sizeof affinity_key - 1 &&
            memcmp(key.next, affinity_key, sizeof affinity_key - 1) == 0) {
            thread->has_affinity = bp_proc_take_word(&line, &list) &&
                                   bp_host_parse_cpu_list(list.next, (size_t)(list.end - list.next),
                                                          &thread->affinity);
        }
    }
    (void)parse_keyed(scan, table, COUNT(table), false, thread);
    return (thread->measured & 1u << BP_HOST_STATUS) != 0;
}

bool bp_host_parse_io(const char *text, size_t text_bytes, bp_host_thread *thread) {
    static const keyed table[] = {{"rchar", BP_HOST_READ_CHARS, false},
                                  {"wchar", BP_HOST_WRITTEN_CHARS, false},
                                  {"syscr", BP_HOST_READ_CALLS, false},
                                  {"syscw", BP_HOST_WRITE_CALLS, false},
                                  {"read_bytes", BP_HOST_READ_BYTES, false},
                                  {"write_bytes", BP_HOST_WRITTEN_BYTES, false},
                                  {"cancelled_write_bytes", BP_HOST_CANCELLED_BYTES, false}};
    bp_proc_scan scan = {text, text + text_bytes};
    (void)parse_keyed(scan, table, COUNT(table), false, thread);
    return (thread->measured & 1u << BP_HOST_IO) != 0;
}

bool bp_host_parse_smaps_rollup(const char *text, size_t text_bytes, bp_host_thread *thread) {
    static const keyed table[] = {{"Rss", BP_HOST_RSS, false},
                                  {"Pss", BP_HOST_PSS, false},
                                  {"Shared_Clean", BP_HOST_SHARED_CLEAN, false},
                                  {"Shared_Dirty", BP_HOST_SHARED_DIRTY, false},
                                  {"Private_Clean", BP_HOST_PRIVATE_CLEAN, false},
                                  {"Private_Dirty", BP_HOST_PRIVATE_DIRTY, false},
                                  {"Referenced", BP_HOST_REFERENCED, false},
                                  {"Anonymous", BP_HOST_ANONYMOUS, false},
                                  {"AnonHugePages", BP_HOST_ANON_HUGE, false},
                                  {"Swap", BP_HOST_SWAP, false},
                                  {"SwapPss", BP_HOST_SWAP_PSS, false},
                                  {"Locked", BP_HOST_LOCKED, false}};
    bp_proc_scan scan = {text, text + text_bytes};
    (void)parse_keyed(scan, table, COUNT(table), false, thread);
    return (thread->measured & 1u << BP_HOST_MEMORY) != 0;
}

/*
 * Steps behind the header. Its first line holds the thread's name as it is, with any newline in it:
 * a thread called "x\nnr_wakeups:9" would have a line of its own. No name is as long as the rule
 * that follows.
 */
static bool skip_sched_header(bp_proc_scan *scan) {
    static const char rule[] = "--------------------------------";
    bp_proc_scan line;
    while (bp_proc_take_line(scan, &line)) {
        if ((size_t)(line.end - line.next) >= sizeof rule - 1 &&
            memcmp(line.next, rule, sizeof rule - 1) == 0) {
            return true;
        }
    }
    return false;
}

uint32_t bp_host_parse_sched(const char *text, size_t text_bytes, bp_host_thread *thread) {
    static const keyed table[] = {
        {"sum_exec_runtime", BP_HOST_EXEC_RUNTIME, true},
        {"nr_switches", BP_HOST_SWITCHES, false},
        {"nr_migrations", BP_HOST_MIGRATIONS, false},
        {"nr_wakeups", BP_HOST_WAKEUPS_ALL, false},
        {"nr_wakeups_sync", BP_HOST_WAKEUPS_SYNC, false},
        {"nr_wakeups_migrate", BP_HOST_WAKEUPS_MIGRATE, false},
        {"nr_wakeups_local", BP_HOST_WAKEUPS_LOCAL, false},
        {"nr_wakeups_remote", BP_HOST_WAKEUPS_REMOTE, false},
        {"nr_wakeups_affine", BP_HOST_WAKEUPS_AFFINE, false},
        {"nr_wakeups_affine_attempts", BP_HOST_WAKEUPS_AFFINE_ATTEMPTS, false},
        {"wait_sum", BP_HOST_WAIT_SUM, true},
        {"wait_max", BP_HOST_WAIT_MAX, true},
        {"wait_count", BP_HOST_WAIT_COUNT, false},
        {"sum_sleep_runtime", BP_HOST_SLEEP_SUM, true},
        {"sleep_max", BP_HOST_SLEEP_MAX, true},
        {"iowait_sum", BP_HOST_IOWAIT_SUM, true},
        {"iowait_count", BP_HOST_IOWAIT_COUNT, false},
        {"sum_block_runtime", BP_HOST_BLOCK_SUM, true},
        {"block_max", BP_HOST_BLOCK_MAX, true}};
    bp_proc_scan scan = {text, text + text_bytes};
    if (!skip_sched_header(&scan)) {
        scan.next = scan.end;
    }
    return parse_keyed(scan, table, COUNT(table), true, thread);
}
