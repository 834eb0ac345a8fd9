#include "platform/linux/proc_text.h"

#include <string.h>

#include "platform/linux/proc_scan.h"

/* include/linux/sched.h of the kernel; the value has been part of stat's field 9 since 2.6.27. */
static const uint64_t flag_kernel_thread = 0x00200000;

/* Field numbers of proc(5); 1 and 2 stand before the last ')'. */
enum {
    FIELD_STATE = 3,
    FIELD_PARENT = 4,
    FIELD_FLAGS = 9,
    FIELD_MINOR_FAULTS = 10,
    FIELD_MAJOR_FAULTS = 12,
    FIELD_USER_TICKS = 14,
    FIELD_SYSTEM_TICKS = 15,
    FIELD_WAITED_USER_TICKS = 16,
    FIELD_WAITED_SYSTEM_TICKS = 17,
    FIELD_THREADS = 20,
    FIELD_START = 22
};

/* Reads fields 4 to 22. Those that can be negative (tty, priority, nice) are ones we do not use,
 * but for the times of children, where the kernel prints a signed number: a negative one counts as
 * 0. */
static bool take_stat_fields(bp_proc_scan *scan, uint64_t fields[FIELD_START + 1]) {
    for (int field = FIELD_PARENT; field <= FIELD_START; field++) {
        bp_proc_skip_blanks(scan);
        bool is_negative = bp_proc_take_byte(scan, '-');
        if (!bp_proc_take_number(scan, 10, &fields[field])) {
            return false;
        }
        /* A number that stops in the middle of a word is garbage; one at the very end may be cut
         * off, and a cut number is a wrong number. */
        if (scan->next == scan->end || *scan->next != ' ') {
            return false;
        }
        bool may_be_negative = (field >= 5 && field <= 8) || (field >= 16 && field <= 19);
        if (is_negative && !may_be_negative) {
            return false;
        }
        if (is_negative) {
            fields[field] = 0;
        }
    }
    return true;
}

bool bp_proc_parse_stat(const char *text, size_t text_bytes, bp_proc_stat *ret_stat) {
    bp_proc_scan scan = {text, text + text_bytes};
    bp_proc_stat stat = {0};
    if (!bp_proc_take_number(&scan, 10, &stat.pid) || !bp_proc_take_byte(&scan, ' ') ||
        !bp_proc_take_byte(&scan, '(')) {
        return false;
    }
    /* The name may hold anything, a whole stat line too; behind it there is never a ')'. */
    const char *name_end = scan.end;
    do {
        if (name_end == scan.next) {
            return false;
        }
        name_end--;
    } while (*name_end != ')');
    size_t name_bytes = (size_t)(name_end - scan.next);
    if (name_bytes >= sizeof stat.name) {
        name_bytes = sizeof stat.name - 1;
    }
    memcpy(stat.name, scan.next, name_bytes);
    scan.next = name_end + 1;
    bp_proc_scan state;
    uint64_t fields[FIELD_START + 1] = {0};
    if (!bp_proc_take_byte(&scan, ' ') || !bp_proc_take_word(&scan, &state) ||
        state.end - state.next != 1 || !take_stat_fields(&scan, fields)) {
        return false;
    }
    if (fields[FIELD_USER_TICKS] > UINT64_MAX - fields[FIELD_SYSTEM_TICKS]) {
        return false;
    }
    stat.state = *state.next;
    stat.parent_pid = fields[FIELD_PARENT];
    stat.is_kernel_thread = (fields[FIELD_FLAGS] & flag_kernel_thread) != 0;
    stat.minor_faults = fields[FIELD_MINOR_FAULTS];
    stat.major_faults = fields[FIELD_MAJOR_FAULTS];
    stat.cpu_ticks = fields[FIELD_USER_TICKS] + fields[FIELD_SYSTEM_TICKS];
    if (fields[FIELD_WAITED_USER_TICKS] <= UINT64_MAX - fields[FIELD_WAITED_SYSTEM_TICKS]) {
        stat.waited_ticks = fields[FIELD_WAITED_USER_TICKS] + fields[FIELD_WAITED_SYSTEM_TICKS];
    }
    stat.thread_count = fields[FIELD_THREADS];
    stat.start_ticks = fields[FIELD_START];
    *ret_stat = stat;
    return true;
}

bool bp_proc_parse_statm(const char *text, size_t text_bytes, uint64_t *ret_size_pages,
                         uint64_t *ret_resident_pages) {
    bp_proc_scan scan = {text, text + text_bytes};
    uint64_t size_pages, resident_pages;
    /* The blank behind the second number shows that it is whole. */
    if (!bp_proc_take_number(&scan, 10, &size_pages) || !bp_proc_take_byte(&scan, ' ') ||
        !bp_proc_take_number(&scan, 10, &resident_pages) || !bp_proc_take_byte(&scan, ' ')) {
        return false;
    }
    *ret_size_pages = size_pages;
    *ret_resident_pages = resident_pages;
    return true;
}

bool bp_proc_find_number(const char *text, size_t text_bytes, const char *key, size_t index,
                         uint64_t *ret_value) {
    bp_proc_scan scan = {text, text + text_bytes};
    bp_proc_scan line;
    size_t key_bytes = strlen(key);
    while (bp_proc_take_line(&scan, &line)) {
        /* A process cannot forge a line: status escapes a newline in the name. */
        if ((size_t)(line.end - line.next) <= key_bytes || memcmp(line.next, key, key_bytes) != 0 ||
            line.next[key_bytes] != ':') {
            continue;
        }
        line.next += key_bytes + 1;
        uint64_t value = 0;
        for (size_t i = 0; i <= index; i++) {
            bp_proc_skip_blanks(&line);
            if (!bp_proc_take_number(&line, 10, &value)) {
                return false;
            }
        }
        *ret_value = value;
        return true;
    }
    return false;
}

bool bp_proc_parse_number(const char *text, size_t text_bytes, int64_t *ret_value) {
    bp_proc_scan scan = {text, text + text_bytes};
    uint64_t magnitude;
    bool is_negative = bp_proc_take_byte(&scan, '-');
    if (!bp_proc_take_number(&scan, 10, &magnitude) || magnitude > INT64_MAX) {
        return false;
    }
    bp_proc_skip_blanks(&scan);
    (void)bp_proc_take_byte(&scan, '\n');
    if (scan.next != scan.end) {
        return false;
    }
    *ret_value = is_negative ? -(int64_t)magnitude : (int64_t)magnitude;
    return true;
}
