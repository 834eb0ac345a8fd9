#include "platform/linux/thread_text.h"

#include <errno.h>
#include <string.h>

#include "platform/linux/proc_text.h"

enum { ns_per_ms = 1000000, ns_digits = 6 };

static const struct {
    bp_thread_group group;
    const char *key; /* in the kernel's file; "" where the place in the file decides */
    bool is_time;    /* "12.345678": milliseconds, with six digits after the point */
} counters[] = {
#define IS_NS(key) ((key)[sizeof(key) - 4] == '_' && (key)[sizeof(key) - 3] == 'n')
#define COUNTER(constant, group, key, kernel_key) {BP_GROUP_##group, kernel_key, IS_NS(key)},
    BP_THREAD_COUNTERS(COUNTER)
#undef COUNTER
#undef IS_NS
};

bool bp_thread_parse_stat(const char *text, size_t text_bytes, uint64_t ticks_per_sec,
                          bp_thread_reading *thread) {
    bp_proc_stat stat;
    uint64_t user_ns, system_ns, block_io_ns;
    if (ticks_per_sec == 0 || ticks_per_sec > 1000000000u ||
        !bp_proc_parse_stat(text, text_bytes, &stat) || !stat.has_scheduling) {
        return false;
    }
    uint64_t ns_per_tick = 1000000000u / ticks_per_sec;
    if (__builtin_mul_overflow(stat.user_ticks, ns_per_tick, &user_ns) ||
        __builtin_mul_overflow(stat.system_ticks, ns_per_tick, &system_ns) ||
        __builtin_mul_overflow(stat.block_io_ticks, ns_per_tick, &block_io_ns)) {
        return false;
    }
    thread->stat = stat;
    thread->counters[BP_COUNTER_USER_CPU] = user_ns;
    thread->counters[BP_COUNTER_SYSTEM_CPU] = system_ns;
    thread->counters[BP_COUNTER_BLOCK_IO_DELAY] = block_io_ns;
    thread->counters[BP_COUNTER_MINOR_FAULTS] = stat.minor_faults;
    thread->counters[BP_COUNTER_MAJOR_FAULTS] = stat.major_faults;
    thread->measured |= 1u << BP_GROUP_STAT;
    return true;
}

bool bp_thread_parse_schedstat(const char *text, size_t text_bytes, bp_thread_reading *thread) {
    bp_proc_scan scan = {text, text + text_bytes};
    uint64_t run_ns, run_delay_ns, timeslices;
    if (!bp_proc_take_number(&scan, 10, &run_ns) || !bp_proc_take_byte(&scan, ' ') ||
        !bp_proc_take_number(&scan, 10, &run_delay_ns) || !bp_proc_take_byte(&scan, ' ') ||
        !bp_proc_take_number(&scan, 10, &timeslices) || !bp_proc_take_byte(&scan, '\n')) {
        return false;
    }
    thread->counters[BP_COUNTER_RUN] = run_ns;
    thread->counters[BP_COUNTER_RUN_DELAY] = run_delay_ns;
    thread->counters[BP_COUNTER_TIMESLICES] = timeslices;
    thread->measured |= 1u << BP_GROUP_SCHEDSTAT;
    return true;
}

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

/* The counter of these groups that has the key; BP_COUNTER_COUNT when none has. */
static size_t find_key(uint32_t groups, bp_proc_scan key) {
    size_t i = 0;
    while (i < BP_COUNTER_COUNT &&
           ((groups >> counters[i].group & 1u) == 0 || !bp_proc_is(key, counters[i].key))) {
        i++;
    }
    return i;
}

/* Measures those of the groups whose counters are all there, and clears the others. Returns the
 * groups of which a key was found, be its value good or not. */
static uint32_t parse_keyed(bp_proc_scan scan, uint32_t groups, bool has_prefixes,
                            bp_thread_reading *thread) {
    bp_proc_scan line, key;
    uint64_t values[BP_COUNTER_COUNT];
    bool is_good[BP_COUNTER_COUNT] = {false};
    uint32_t found = 0, broken = 0;
    while (bp_proc_take_line(&scan, &line)) {
        size_t i = take_key(&line, has_prefixes, &key) ? find_key(groups, key) : BP_COUNTER_COUNT;
        if (i < BP_COUNTER_COUNT) {
            found |= 1u << counters[i].group;
            is_good[i] = take_value(&line, counters[i].is_time, &values[i]);
        }
    }
    for (size_t i = 0; i < BP_COUNTER_COUNT; i++) {
        broken |= is_good[i] ? 0 : groups & 1u << counters[i].group;
    }
    thread->measured = (thread->measured | groups) & ~broken;
    for (size_t i = 0; i < BP_COUNTER_COUNT; i++) {
        if ((groups >> counters[i].group & 1u) != 0) {
            bool is_measured = (thread->measured >> counters[i].group & 1u) != 0;
            thread->counters[i] = is_measured ? values[i] : 0;
        }
    }
    return found;
}

/* One group that has a file of its own. */
static bool parse_group(const char *text, size_t text_bytes, bp_thread_group group,
                        bp_thread_reading *thread) {
    (void)parse_keyed((bp_proc_scan){text, text + text_bytes}, 1u << group, false, thread);
    return bp_thread_has(thread, group);
}

bool bp_thread_parse_status(const char *text, size_t text_bytes, bp_thread_reading *thread) {
    bp_proc_scan scan = {text, text + text_bytes};
    bp_proc_scan line, list;
    thread->own_tid = thread->tid; /* without a line: kernels before 4.1 */
    /* A name cannot forge a line: status escapes a newline in it. */
    while (bp_proc_take_line(&scan, &line)) {
        if (bp_proc_take_text(&line, "VmRSS:")) {
            bp_proc_skip_blanks(&line);
            thread->has_rss = bp_proc_take_number(&line, 10, &thread->rss_kb);
        } else if (bp_proc_take_text(&line, "TracerPid:")) {
            bp_proc_skip_blanks(&line);
            (void)bp_proc_take_number(&line, 10, &thread->tracer_pid);
        } else if (bp_proc_take_text(&line, "SigBlk:\t")) {
            (void)bp_proc_take_number(&line, 16, &thread->blocked_signals);
        } else if (bp_proc_take_text(&line, "SigCgt:\t")) {
            thread->has_signals = bp_proc_take_number(&line, 16, &thread->caught_signals);
        } else if (bp_proc_take_text(&line, "NSpid:")) {
            /* The innermost namespace is the last (proc(5)). */
            do {
                bp_proc_skip_blanks(&line);
            } while (bp_proc_take_number(&line, 10, &thread->own_tid));
        } else if (thread->affinity != NULL && bp_proc_take_text(&line, "Cpus_allowed_list:") &&
                   bp_proc_take_word(&line, &list) &&
                   bp_cpu_list_parse(list.next, (size_t)(list.end - list.next), thread->affinity)) {
            thread->measured |= 1u << BP_GROUP_AFFINITY;
        }
    }
    return parse_group(text, text_bytes, BP_GROUP_STATUS, thread);
}

bool bp_thread_parse_io(const char *text, size_t text_bytes, bp_thread_reading *thread) {
    return parse_group(text, text_bytes, BP_GROUP_IO, thread);
}

bool bp_thread_parse_smaps_rollup(const char *text, size_t text_bytes, bp_thread_reading *thread) {
    return parse_group(text, text_bytes, BP_GROUP_MEMORY, thread);
}

bool bp_thread_parse_sched(const char *text, size_t text_bytes, bp_thread_reading *thread) {
    bp_proc_scan scan = {text, text + text_bytes};
    bp_proc_scan line;
    /*
     * The first line of the header holds the thread's name as it is, with any newline in it: a
     * thread called "x\nnr_wakeups:9" would have a line of its own. No name is as long as the rule
     * at the header's end.
     */
    bool is_header = true;
    while (is_header && bp_proc_take_line(&scan, &line)) {
        is_header = !bp_proc_take_text(&line, "--------------------------------");
    }
    uint32_t found = parse_keyed(scan, BP_GROUPS_OF_SCHED, true, thread);
    for (bp_thread_group group = BP_GROUP_SCHED; group <= BP_GROUP_BLOCKS; group++) {
        if ((found >> group & 1u) == 0) {
            thread->errnos[group] = ENODATA;
        }
    }
    return found == BP_GROUPS_OF_SCHED;
}

bool bp_cpu_list_parse(const char *text, size_t text_bytes, bp_cpu_list *ret_list) {
    bp_proc_scan scan = {text, text + text_bytes};
    bp_cpu_list list = {{0}};
    do {
        uint64_t first, last;
        if (!bp_proc_take_number(&scan, 10, &first)) {
            return false;
        }
        last = first;
        if (bp_proc_take_byte(&scan, '-') && !bp_proc_take_number(&scan, 10, &last)) {
            return false;
        }
        if (last < first || last >= BP_CPU_MAX) {
            return false;
        }
        for (uint64_t cpu = first; cpu <= last; cpu++) {
            list.bits[cpu / 64] |= (uint64_t)1 << cpu % 64;
        }
    } while (bp_proc_take_byte(&scan, ','));
    (void)bp_proc_take_byte(&scan, '\n');
    if (scan.next != scan.end) {
        return false;
    }
    *ret_list = list;
    return true;
}
