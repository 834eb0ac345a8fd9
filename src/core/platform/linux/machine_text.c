#include "platform/linux/machine_text.h"

#include <string.h>

#include "platform/linux/proc_text.h"

enum { ns_per_ms = 1000000, ns_digits = 6 };

static const struct {
    bp_machine_group group;
    const char *key; /* in the kernel's file; "" where the place in the file decides */
    bool is_time;    /* "12.345678": milliseconds, with six digits after the point */
} counters[] = {
#define IS_NS(key) ((key)[sizeof(key) - 4] == '_' && (key)[sizeof(key) - 3] == 'n')
#define COUNTER(constant, group, key, kernel_key) {BP_MACHINE_##group, kernel_key, IS_NS(key)},
    BP_MACHINE_COUNTERS(COUNTER)
#undef COUNTER
#undef IS_NS
};

/* The counters of stat, scaled where they count ticks. False when one does not fit. */
static bool take_counter(bp_machine_thread *thread, bp_machine_counter counter, uint64_t value,
                         uint64_t scale) {
    return !__builtin_mul_overflow(value, scale, &thread->counters[counter]);
}

bool bp_machine_parse_stat(const char *text, size_t text_bytes, uint64_t ticks_per_sec,
                           bp_machine_thread *thread) {
    bp_proc_stat stat;
    if (ticks_per_sec == 0 || ticks_per_sec > 1000000000u ||
        !bp_proc_parse_stat(text, text_bytes, &stat) || !stat.has_scheduling) {
        return false;
    }
    uint64_t ns_per_tick = 1000000000u / ticks_per_sec;
    bp_machine_thread read = *thread;
    if (!take_counter(&read, BP_MACHINE_USER_CPU, stat.user_ticks, ns_per_tick) ||
        !take_counter(&read, BP_MACHINE_SYSTEM_CPU, stat.system_ticks, ns_per_tick) ||
        !take_counter(&read, BP_MACHINE_BLOCK_IO_DELAY, stat.block_io_ticks, ns_per_tick)) {
        return false;
    }
    read.counters[BP_MACHINE_MINOR_FAULTS] = stat.minor_faults;
    read.counters[BP_MACHINE_MAJOR_FAULTS] = stat.major_faults;
    read.processor = stat.processor;
    read.rt_priority = stat.rt_priority;
    read.policy = stat.policy;
    read.priority = stat.priority;
    read.nice = stat.nice;
    memcpy(read.name, stat.name, sizeof read.name);
    read.state = stat.state;
    read.is_kernel_thread = stat.is_kernel_thread;
    read.has_start = true;
    read.start_ticks = stat.start_ticks;
    read.measured |= 1u << BP_MACHINE_STAT;
    *thread = read;
    return true;
}

bool bp_machine_parse_schedstat(const char *text, size_t text_bytes, bp_machine_thread *thread) {
    bp_proc_schedstat stat;
    if (!bp_proc_parse_schedstat(text, text_bytes, &stat)) {
        return false;
    }
    thread->counters[BP_MACHINE_RUN] = stat.run_ns;
    thread->counters[BP_MACHINE_RUN_DELAY] = stat.run_delay_ns;
    thread->counters[BP_MACHINE_TIMESLICES] = stat.timeslices;
    thread->measured |= 1u << BP_MACHINE_SCHEDSTAT;
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

/* The counter of these groups that has the key; BP_MACHINE_COUNTER_COUNT when none has. */
static size_t find_key(uint32_t groups, bp_proc_scan key) {
    size_t i = 0;
    while (i < BP_MACHINE_COUNTER_COUNT &&
           ((groups >> counters[i].group & 1u) == 0 || !bp_proc_is(key, counters[i].key))) {
        i++;
    }
    return i;
}

/* Measures those of the groups whose counters are all there, and clears the others. Returns the
 * groups of which a key was found, be its value good or not. */
static uint32_t parse_keyed(bp_proc_scan scan, uint32_t groups, bool has_prefixes,
                            bp_machine_thread *thread) {
    bp_proc_scan line, key;
    uint64_t values[BP_MACHINE_COUNTER_COUNT];
    bool is_good[BP_MACHINE_COUNTER_COUNT] = {false};
    uint32_t found = 0, broken = 0;
    while (bp_proc_take_line(&scan, &line)) {
        size_t i =
            take_key(&line, has_prefixes, &key) ? find_key(groups, key) : BP_MACHINE_COUNTER_COUNT;
        if (i < BP_MACHINE_COUNTER_COUNT) {
            found |= 1u << counters[i].group;
            is_good[i] = take_value(&line, counters[i].is_time, &values[i]);
        }
    }
    for (size_t i = 0; i < BP_MACHINE_COUNTER_COUNT; i++) {
        broken |= is_good[i] ? 0 : groups & 1u << counters[i].group;
    }
    thread->measured = (thread->measured | groups) & ~broken;
    for (size_t i = 0; i < BP_MACHINE_COUNTER_COUNT; i++) {
        if ((groups >> counters[i].group & 1u) != 0) {
            bool is_measured = (thread->measured >> counters[i].group & 1u) != 0;
            thread->counters[i] = is_measured ? values[i] : 0;
        }
    }
    return found;
}

/* One group that has a file of its own. */
static bool parse_group(const char *text, size_t text_bytes, bp_machine_group group,
                        bp_machine_thread *thread) {
    (void)parse_keyed((bp_proc_scan){text, text + text_bytes}, 1u << group, false, thread);
    return (thread->measured & 1u << group) != 0;
}

bool bp_machine_parse_status(const char *text, size_t text_bytes, bp_machine_thread *thread) {
    bp_proc_scan scan = {text, text + text_bytes};
    bp_proc_scan line, list;
    /* A name cannot forge a line: status escapes a newline in it. */
    while (bp_proc_take_line(&scan, &line)) {
        if (bp_proc_take_text(&line, "VmRSS:")) {
            bp_proc_skip_blanks(&line);
            thread->has_rss = bp_proc_take_number(&line, 10, &thread->rss_kb);
        } else if (bp_proc_take_text(&line, "Cpus_allowed_list:")) {
            thread->has_affinity =
                bp_proc_take_word(&line, &list) &&
                bp_machine_parse_cpu_list(list.next, (size_t)(list.end - list.next),
                                          &thread->affinity);
        }
    }
    return parse_group(text, text_bytes, BP_MACHINE_STATUS, thread);
}

bool bp_machine_parse_io(const char *text, size_t text_bytes, bp_machine_thread *thread) {
    return parse_group(text, text_bytes, BP_MACHINE_IO, thread);
}

bool bp_machine_parse_smaps_rollup(const char *text, size_t text_bytes, bp_machine_thread *thread) {
    return parse_group(text, text_bytes, BP_MACHINE_MEMORY, thread);
}

uint32_t bp_machine_parse_sched(const char *text, size_t text_bytes, bp_machine_thread *thread) {
    static const uint32_t groups = 1u << BP_MACHINE_SCHED | 1u << BP_MACHINE_WAKEUPS |
                                   1u << BP_MACHINE_WAITS | 1u << BP_MACHINE_BLOCKS;
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
    return parse_keyed(scan, groups, true, thread);
}

static const uint64_t ns_per_us = 1000;

bool bp_machine_parse_cpu_list(const char *text, size_t text_bytes, bp_cpu_list *ret_list) {
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

/* "12.34" behind `key` and "=", as 1234. */
static bool take_share(bp_proc_scan *line, const char *key, uint64_t *ret_centi) {
    bp_proc_scan word;
    uint64_t whole, part;
    if (!bp_proc_take_word(line, &word) || !bp_proc_take_text(&word, key) ||
        !bp_proc_take_number(&word, 10, &whole) || !bp_proc_take_byte(&word, '.')) {
        return false;
    }
    const char *digits = word.next;
    if (!bp_proc_take_number(&word, 10, &part) || word.next - digits != 2 ||
        word.next != word.end || whole > 100) {
        return false;
    }
    *ret_centi = whole * 100 + part;
    return true;
}

static bool parse_pressure_line(bp_proc_scan line, bp_pressure_line *ret_line) {
    bp_pressure_line read = {.is_known = true};
    bp_proc_scan word;
    if (!take_share(&line, "avg10=", &read.avg10_centi) ||
        !take_share(&line, "avg60=", &read.avg60_centi) ||
        !take_share(&line, "avg300=", &read.avg300_centi) || !bp_proc_take_word(&line, &word) ||
        !bp_proc_take_text(&word, "total=") || !bp_proc_take_number(&word, 10, &read.total_us) ||
        word.next != word.end) {
        return false;
    }
    *ret_line = read;
    return true;
}

bool bp_machine_parse_pressure(const char *text, size_t text_bytes, bp_pressure *ret_pressure) {
    bp_proc_scan scan = {text, text + text_bytes};
    bp_proc_scan line, word;
    bp_pressure pressure = {.some = {.is_known = false}};
    while (bp_proc_take_line(&scan, &line)) {
        if (!bp_proc_take_word(&line, &word)) {
            continue;
        }
        if (bp_proc_is(word, "some")) {
            (void)parse_pressure_line(line, &pressure.some);
        } else if (bp_proc_is(word, "full")) {
            (void)parse_pressure_line(line, &pressure.full);
        }
    }
    if (!pressure.some.is_known && !pressure.full.is_known) {
        return false;
    }
    *ret_pressure = pressure;
    return true;
}

/* A number, or "max", times `scale`. */
static bool read_figure(const bp_proc_scan *word, uint64_t scale, bp_machine_figure *ret_figure) {
    bp_machine_figure figure = {.is_known = true};
    bp_proc_scan rest = *word;
    if (bp_proc_is(*word, "max")) {
        figure.is_unlimited = true;
    } else if (!bp_proc_take_number(&rest, 10, &figure.value) || rest.next != rest.end ||
               figure.value > UINT64_MAX / scale) {
        return false;
    }
    figure.value *= scale;
    *ret_figure = figure;
    return true;
}

bool bp_machine_parse_figure(const char *text, size_t text_bytes, bp_machine_figure *ret_figure) {
    bp_proc_scan scan = {text, text + text_bytes};
    bp_proc_scan line, word;
    return bp_proc_take_line(&scan, &line) && scan.next == scan.end &&
           bp_proc_take_word(&line, &word) && line.next == line.end &&
           read_figure(&word, 1, ret_figure);
}

bool bp_machine_find_figure(const char *text, size_t text_bytes, const char *key, uint64_t scale,
                            bp_machine_figure *ret_figure) {
    bp_proc_scan scan = {text, text + text_bytes};
    bp_proc_scan line, word;
    while (bp_proc_take_line(&scan, &line)) {
        if (bp_proc_take_word(&line, &word) && bp_proc_is(word, key)) {
            return bp_proc_take_word(&line, &word) && read_figure(&word, scale, ret_figure);
        }
    }
    return false;
}

bool bp_machine_parse_cpu_max(const char *text, size_t text_bytes, bp_machine_figure *ret_quota_ns,
                              bp_machine_figure *ret_period_ns) {
    bp_proc_scan scan = {text, text + text_bytes};
    bp_proc_scan line, quota_word, period_word;
    bp_machine_figure quota, period;
    if (!bp_proc_take_line(&scan, &line) || !bp_proc_take_word(&line, &quota_word) ||
        !bp_proc_take_word(&line, &period_word) || !read_figure(&quota_word, ns_per_us, &quota) ||
        !read_figure(&period_word, ns_per_us, &period) || period.is_unlimited) {
        return false;
    }
    *ret_quota_ns = quota;
    *ret_period_ns = period;
    return true;
}
