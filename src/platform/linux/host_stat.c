/*
 * stat and schedstat of a thread.
 */
#include <string.h>

#include "platform/linux/host_text.h"
#include "platform/linux/proc_scan.h"
#include "platform/linux/proc_text.h"

/* Field numbers of proc(5); the first behind the name is 3. */
enum {
    FIELD_STATE = 3,
    FIELD_MINOR_FAULTS = 10,
    FIELD_MAJOR_FAULTS = 12,
    FIELD_USER_TICKS = 14,
    FIELD_SYSTEM_TICKS = 15,
    FIELD_PRIORITY = 18,
    FIELD_NICE = 19,
    FIELD_PROCESSOR = 39,
    FIELD_RT_PRIORITY = 40,
    FIELD_POLICY = 41,
    FIELD_BLOCK_IO_TICKS = 42
};

typedef struct stat_fields {
    bool is_negative[FIELD_BLOCK_IO_TICKS + 1];
    uint64_t values[FIELD_BLOCK_IO_TICKS + 1];
} stat_fields;

/* Takes fields 4 to 42. All are numbers, and each is whole only when something follows. */
static bool take_fields(bp_proc_scan *scan, stat_fields *fields) {
    for (int i = FIELD_STATE + 1; i <= FIELD_BLOCK_IO_TICKS; i++) {
        bp_proc_skip_blanks(scan);
        fields->is_negative[i] = bp_proc_take_byte(scan, '-');
        if (!bp_proc_take_number(scan, 10, &fields->values[i]) || scan->next == scan->end ||
            (*scan->next != ' ' && *scan->next != '\n')) {
            return false;
        }
    }
    return true;
}

static bool take_signed(const stat_fields *fields, int field, int64_t *ret_value) {
    if (fields->values[field] > INT64_MAX) {
        return false;
    }
    int64_t value = (int64_t)fields->values[field];
    *ret_value = fields->is_negative[field] ? -value : value;
    return true;
}

static bool take_counter(const stat_fields *fields, int field, uint64_t scale,
                         uint64_t *ret_value) {
    if (fields->is_negative[field] || fields->values[field] > UINT64_MAX / scale) {
        return false;
    }
    *ret_value = fields->values[field] * scale;
    return true;
}

bool bp_host_parse_stat(const char *text, size_t text_bytes, uint64_t ticks_per_sec,
                        bp_host_thread *thread) {
    bp_proc_stat stat;
    stat_fields fields;
    if (ticks_per_sec == 0 || ticks_per_sec > 1000000000u ||
        !bp_proc_parse_stat(text, text_bytes, &stat)) {
        return false;
    }
    /* The last ')' ends the name, as bp_proc_parse_stat has made sure; then comes " S ". */
    const char *name_end = text + text_bytes - 1;
    while (*name_end != ')') {
        name_end--;
    }
    bp_proc_scan scan = {name_end + 3, text + text_bytes};
    uint64_t ns_per_tick = 1000000000u / ticks_per_sec;
    bp_host_thread read = *thread;
    if (!take_fields(&scan, &fields) ||
        !take_counter(&fields, FIELD_USER_TICKS, ns_per_tick, &read.counters[BP_HOST_USER_CPU]) ||
        !take_counter(&fields, FIELD_SYSTEM_TICKS, ns_per_tick,
                      &read.counters[BP_HOST_SYSTEM_CPU]) ||
        !take_counter(&fields, FIELD_MINOR_FAULTS, 1, &read.counters[BP_HOST_MINOR_FAULTS]) ||
        !take_counter(&fields, FIELD_MAJOR_FAULTS, 1, &read.counters[BP_HOST_MAJOR_FAULTS]) ||
        !take_counter(&fields, FIELD_BLOCK_IO_TICKS, ns_per_tick,
                      &read.counters[BP_HOST_BLOCK_IO_DELAY]) ||
        !take_counter(&fields, FIELD_PROCESSOR, 1, &read.processor) ||
        !take_counter(&fields, FIELD_RT_PRIORITY, 1, &read.rt_priority) ||
        !take_counter(&fields, FIELD_POLICY, 1, &read.policy) ||
        !take_signed(&fields, FIELD_PRIORITY, &read.priority) ||
        !take_signed(&fields, FIELD_NICE, &read.nice)) {
        return false;
    }
    memcpy(read.name, stat.name, sizeof read.name);
    read.state = stat.state;
    read.is_kernel_thread = stat.is_kernel_thread;
    read.has_start = true;
    read.start_ticks = stat.start_ticks;
    read.measured |= 1u << BP_HOST_STAT;
    *thread = read;
    return true;
}

bool bp_host_parse_schedstat(const char *text, size_t text_bytes, bp_host_thread *thread) {
    static const bp_host_counter order[] = {BP_HOST_RUN, BP_HOST_RUN_DELAY, BP_HOST_TIMESLICES};
    enum { order_count = sizeof order / sizeof order[0] };
    bp_proc_scan scan = {text, text + text_bytes};
    uint64_t values[order_count];
    for (size_t i = 0; i < order_count; i++) {
        bp_proc_skip_blanks(&scan);
        char behind = i + 1 < order_count ? ' ' : '\n';
        if (!bp_proc_take_number(&scan, 10, &values[i]) || !bp_proc_take_byte(&scan, behind)) {
            return false;
        }
    }
    for (size_t i = 0; i < order_count; i++) {
        thread->counters[order[i]] = values[i];
    }
    thread->measured |= 1u << BP_HOST_SCHEDSTAT;
    return true;
}
