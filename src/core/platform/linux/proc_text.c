#include "platform/linux/proc_text.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static bool is_blank(char byte) {
    return byte == ' ' || byte == '\t';
}

void bp_proc_skip_blanks(bp_proc_scan *scan) {
    while (scan->next < scan->end && is_blank(*scan->next)) {
        scan->next++;
    }
}

bool bp_proc_take_line(bp_proc_scan *scan, bp_proc_scan *ret_line) {
    if (scan->next == scan->end) {
        return false;
    }
    const char *newline = memchr(scan->next, '\n', (size_t)(scan->end - scan->next));
    *ret_line = (bp_proc_scan){scan->next, newline != NULL ? newline : scan->end};
    scan->next = newline != NULL ? newline + 1 : scan->end;
    return true;
}

bool bp_proc_take_word(bp_proc_scan *scan, bp_proc_scan *ret_word) {
    bp_proc_skip_blanks(scan);
    const char *start = scan->next;
    while (scan->next < scan->end && !is_blank(*scan->next) && *scan->next != '\n') {
        scan->next++;
    }
    if (scan->next == start) {
        return false;
    }
    *ret_word = (bp_proc_scan){start, scan->next};
    return true;
}

bool bp_proc_take_byte(bp_proc_scan *scan, char byte) {
    if (scan->next == scan->end || *scan->next != byte) {
        return false;
    }
    scan->next++;
    return true;
}

bool bp_proc_take_text(bp_proc_scan *scan, const char *text) {
    size_t text_bytes = strlen(text);
    if ((size_t)(scan->end - scan->next) < text_bytes ||
        memcmp(scan->next, text, text_bytes) != 0) {
        return false;
    }
    scan->next += text_bytes;
    return true;
}

bool bp_proc_is(bp_proc_scan scan, const char *text) {
    return bp_proc_take_text(&scan, text) && scan.next == scan.end;
}

/* The value of a digit, or 255. */
static unsigned digit_value(char byte) {
    if (byte >= '0' && byte <= '9') {
        return (unsigned)(byte - '0');
    }
    if (byte >= 'a' && byte <= 'f') {
        return (unsigned)(byte - 'a') + 10;
    }
    if (byte >= 'A' && byte <= 'F') {
        return (unsigned)(byte - 'A') + 10;
    }
    return 255;
}

bool bp_proc_take_number(bp_proc_scan *scan, unsigned base, uint64_t *ret_value) {
    const char *here = scan->next;
    uint64_t value = 0;
    for (; here < scan->end && digit_value(*here) < base; here++) {
        unsigned digit = digit_value(*here);
        if (value > (UINT64_MAX - digit) / base) {
            return false;
        }
        value = value * base + digit;
    }
    if (here == scan->next) {
        return false;
    }
    scan->next = here;
    *ret_value = value;
    return true;
}

bool bp_proc_read_centi(bp_proc_scan scan, uint64_t *ret_centi) {
    uint64_t whole, part;
    if (!bp_proc_take_number(&scan, 10, &whole) || !bp_proc_take_byte(&scan, '.') ||
        scan.end - scan.next != 2 || !bp_proc_take_number(&scan, 10, &part) ||
        scan.next != scan.end || whole > UINT32_MAX) {
        return false;
    }
    *ret_centi = whole * 100 + part;
    return true;
}

/* include/linux/sched.h of the kernel; the values have been part of stat's field 9 since 2.6.27. */
static const uint64_t flag_kernel_thread = 0x00200000, flag_exiting = 0x4;

/* Field numbers of proc(5); 1 and 2 come before the last ')'. */
enum {
    FIELD_STATE = 3,
    FIELD_PARENT = 4,
    FIELD_FLAGS = 9,
    FIELD_MINOR_FAULTS = 10,
    FIELD_WAITED_MINOR_FAULTS = 11,
    FIELD_MAJOR_FAULTS = 12,
    FIELD_WAITED_MAJOR_FAULTS = 13,
    FIELD_USER_TICKS = 14,
    FIELD_SYSTEM_TICKS = 15,
    FIELD_WAITED_USER_TICKS = 16,
    FIELD_WAITED_SYSTEM_TICKS = 17,
    FIELD_PRIORITY = 18,
    FIELD_NICE = 19,
    FIELD_THREADS = 20,
    FIELD_START = 22,
    FIELD_STACK_START = 28,
    FIELD_PROCESSOR = 39,
    FIELD_RT_PRIORITY = 40,
    FIELD_POLICY = 41,
    FIELD_BLOCK_IO_TICKS = 42,
    FIELD_EXIT_STATUS = 52,
    FIELD_COUNT
};

typedef struct stat_fields {
    bool is_negative[FIELD_COUNT];
    uint64_t values[FIELD_COUNT];
} stat_fields;

/* Takes fields from 4 on; returns the last one that is whole. A number that is not followed by a
 * blank may be cut off, and a cut number is a wrong number. */
static int take_fields(bp_proc_scan *scan, stat_fields *fields) {
    int field = FIELD_STATE;
    while (field + 1 < FIELD_COUNT) {
        bp_proc_skip_blanks(scan);
        fields->is_negative[field + 1] = bp_proc_take_byte(scan, '-');
        if (!bp_proc_take_number(scan, 10, &fields->values[field + 1]) || scan->next == scan->end ||
            (*scan->next != ' ' && (*scan->next != '\n' || field < FIELD_START))) {
            break;
        }
        field++;
    }
    return field;
}

/* Fields that the kernel prints signed, of those that every reader needs: terminal, times of
 * children, priority and nice. */
static bool may_be_negative(int field) {
    return (field >= 5 && field <= 8) ||
           (field >= FIELD_WAITED_USER_TICKS && field <= FIELD_NICE) || field > FIELD_START;
}

static bool take_signed(const stat_fields *fields, int field, int64_t *ret_value) {
    if (fields->values[field] > INT64_MAX) {
        return false;
    }
    int64_t value = (int64_t)fields->values[field];
    *ret_value = fields->is_negative[field] ? -value : value;
    return true;
}

/* The fields after the start time, which shorter texts lack. */
static bool take_scheduling(const stat_fields *fields, bp_proc_stat *stat) {
    if (fields->is_negative[FIELD_PROCESSOR] || fields->is_negative[FIELD_RT_PRIORITY] ||
        fields->is_negative[FIELD_POLICY] || fields->is_negative[FIELD_BLOCK_IO_TICKS]) {
        return false;
    }
    stat->processor = fields->values[FIELD_PROCESSOR];
    stat->rt_priority = fields->values[FIELD_RT_PRIORITY];
    stat->policy = fields->values[FIELD_POLICY];
    stat->block_io_ticks = fields->values[FIELD_BLOCK_IO_TICKS];
    return take_signed(fields, FIELD_PRIORITY, &stat->priority) &&
           take_signed(fields, FIELD_NICE, &stat->nice);
}

/* Takes "7 (name)". The name may hold anything, a whole stat line too; the last ')' ends it. */
static bool take_name(bp_proc_scan *scan, bp_proc_stat *stat) {
    if (!bp_proc_take_number(scan, 10, &stat->pid) || !bp_proc_take_text(scan, " (")) {
        return false;
    }
    const char *end = scan->end;
    do {
        if (end == scan->next) {
            return false;
        }
        end--;
    } while (*end != ')');
    size_t name_bytes = (size_t)(end - scan->next);
    memcpy(stat->name, scan->next,
           name_bytes < sizeof stat->name ? name_bytes : sizeof stat->name - 1);
    scan->next = end + 1;
    return true;
}

bool bp_proc_parse_stat(const char *text, size_t text_bytes, bp_proc_stat *ret_stat) {
    bp_proc_scan scan = {text, text + text_bytes};
    bp_proc_scan state;
    bp_proc_stat stat = {0};
    stat_fields fields = {.is_negative = {false}};
    if (!take_name(&scan, &stat) || !bp_proc_take_byte(&scan, ' ') ||
        !bp_proc_take_word(&scan, &state) || state.end - state.next != 1) {
        return false;
    }
    int last = take_fields(&scan, &fields);
    for (int field = FIELD_PARENT; field <= FIELD_START; field++) {
        if (field > last || (fields.is_negative[field] && !may_be_negative(field))) {
            return false;
        }
    }
    uint64_t waited_user = fields.values[FIELD_WAITED_USER_TICKS];
    uint64_t waited_system = fields.values[FIELD_WAITED_SYSTEM_TICKS];
    waited_user = fields.is_negative[FIELD_WAITED_USER_TICKS] ? 0 : waited_user;
    waited_system = fields.is_negative[FIELD_WAITED_SYSTEM_TICKS] ? 0 : waited_system;
    stat.user_ticks = fields.values[FIELD_USER_TICKS];
    stat.system_ticks = fields.values[FIELD_SYSTEM_TICKS];
    if (__builtin_add_overflow(stat.user_ticks, stat.system_ticks, &stat.cpu_ticks)) {
        return false;
    }
    if (__builtin_add_overflow(waited_user, waited_system, &stat.waited_ticks)) {
        stat.waited_ticks = 0;
    }
    stat.state = *state.next;
    stat.parent_pid = fields.values[FIELD_PARENT];
    stat.is_kernel_thread = (fields.values[FIELD_FLAGS] & flag_kernel_thread) != 0;
    stat.is_exiting = (fields.values[FIELD_FLAGS] & flag_exiting) != 0;
    stat.minor_faults = fields.values[FIELD_MINOR_FAULTS];
    stat.major_faults = fields.values[FIELD_MAJOR_FAULTS];
    stat.waited_faults =
        fields.values[FIELD_WAITED_MINOR_FAULTS] + fields.values[FIELD_WAITED_MAJOR_FAULTS];
    stat.thread_count = fields.values[FIELD_THREADS];
    stat.start_ticks = fields.values[FIELD_START];
    stat.stack_start = last >= FIELD_STACK_START ? fields.values[FIELD_STACK_START] : 0;
    stat.has_scheduling = last >= FIELD_BLOCK_IO_TICKS && take_scheduling(&fields, &stat);
    stat.exit_status = last == FIELD_EXIT_STATUS ? fields.values[FIELD_EXIT_STATUS] : 0;
    *ret_stat = stat;
    return true;
}

bool bp_proc_has_thread_ended(const bp_proc_stat *stat) {
    return stat->state == 'Z' || stat->state == 'X';
}

bool bp_proc_has_process_ended(const bp_proc_stat *stat) {
    return bp_proc_has_thread_ended(stat) && stat->thread_count <= 1;
}

size_t bp_proc_trim_title(const char *line, size_t line_bytes, uint64_t argument_count) {
    uint64_t count = 0;
    size_t filled_bytes = 0; /* up to the end of the last string that is not empty */
    uint64_t filled_count = 0;
    for (size_t i = 0; i < line_bytes; i++) {
        if (line[i] == '\0') {
            count++;
            if (i > 0 && line[i - 1] != '\0') {
                filled_bytes = i + 1;
                filled_count = count;
            }
        }
    }
    bool is_padded = argument_count != 0 ? count != argument_count
                                         : filled_count == 1 && count - filled_count > 1;
    return is_padded && filled_count > 0 ? filled_bytes : line_bytes;
}

size_t bp_proc_whole_words(const char *line, size_t line_bytes) {
    size_t length = line_bytes;
    while (length > 0 && line[length - 1] != '\0' && !isspace((unsigned char)line[length - 1])) {
        length--;
    }
    return length > 0 ? length : line_bytes;
}

bool bp_proc_parse_statm(const char *text, size_t text_bytes, uint64_t *ret_size_pages,
                         uint64_t *ret_resident_pages) {
    bp_proc_scan scan = {text, text + text_bytes};
    uint64_t size_pages, resident_pages;
    /* The blank after the second number proves that it is whole. */
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
    while (bp_proc_take_line(&scan, &line)) {
        /* A process cannot forge a line: status escapes a newline in the name. */
        if (!bp_proc_take_text(&line, key) || !bp_proc_take_byte(&line, ':')) {
            continue;
        }
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

/* A limit's value: a number, or "unlimited". */
static bool take_limit(bp_proc_scan *line, bool *ret_unlimited, uint64_t *ret_value) {
    bp_proc_scan word;
    if (!bp_proc_take_word(line, &word)) {
        return false;
    }
    *ret_unlimited = bp_proc_is(word, "unlimited");
    *ret_value = 0;
    return *ret_unlimited || (bp_proc_take_number(&word, 10, ret_value) && word.next == word.end);
}

static bool parse_limit(bp_proc_scan line, size_t name_column_bytes, bp_resource_limit *ret_limit) {
    if ((size_t)(line.end - line.next) <= name_column_bytes) {
        return false;
    }
    bp_resource_limit limit = {0};
    const char *name = line.next;
    line.next += name_column_bytes;
    const char *name_end = line.next;
    while (name_end > name && name_end[-1] == ' ') {
        name_end--;
    }
    (void)snprintf(limit.name, sizeof limit.name, "%.*s", (int)(name_end - name), name);
    if (name_end == name || !take_limit(&line, &limit.soft_unlimited, &limit.soft) ||
        !take_limit(&line, &limit.hard_unlimited, &limit.hard)) {
        return false;
    }
    bp_proc_scan unit;
    if (bp_proc_take_word(&line, &unit)) {
        (void)snprintf(limit.unit, sizeof limit.unit, "%.*s", (int)(unit.end - unit.next),
                       unit.next);
    }
    *ret_limit = limit;
    return true;
}

size_t bp_proc_parse_limits(const char *text, size_t text_bytes, bp_resource_limit *limits,
                            size_t limit_max) {
    bp_proc_scan scan = {text, text + text_bytes};
    bp_proc_scan line;
    /* A name holds spaces, so only the header shows where its column ends. */
    if (!bp_proc_take_line(&scan, &line)) {
        return 0;
    }
    const char *soft = memmem(line.next, (size_t)(line.end - line.next), "Soft Limit", 10);
    if (soft == NULL) {
        return 0;
    }
    size_t name_column_bytes = (size_t)(soft - line.next);
    size_t count = 0;
    while (count < limit_max && bp_proc_take_line(&scan, &line)) {
        count += parse_limit(line, name_column_bytes, &limits[count]);
    }
    return count;
}

/* Ranks a cgroup line by how precisely it places a process: 0 not at all, then better and better.
 */
static int cgroup_rank(bp_proc_scan controllers, size_t path_bytes) {
    if (path_bytes == 1) {
        return 0;
    }
    if (bp_proc_is(controllers, "")) {
        return 3;
    }
    return bp_proc_is(controllers, "name=systemd") ? 2 : 1;
}

/* Takes "4:cpu,cpuacct:/a": the controllers, and the path. False for what is no such line. */
static bool take_cgroup(bp_proc_scan line, bp_proc_scan *ret_controllers, bp_proc_scan *ret_path) {
    uint64_t hierarchy;
    if (!bp_proc_take_number(&line, 10, &hierarchy) || !bp_proc_take_byte(&line, ':')) {
        return false;
    }
    const char *colon = memchr(line.next, ':', (size_t)(line.end - line.next));
    if (colon == NULL || colon + 1 == line.end || colon[1] != '/') {
        return false;
    }
    *ret_controllers = (bp_proc_scan){line.next, colon};
    *ret_path = (bp_proc_scan){colon + 1, line.end};
    return true;
}

bool bp_proc_has_item(bp_proc_scan list, const char *item) {
    while (list.next < list.end) {
        const char *comma = memchr(list.next, ',', (size_t)(list.end - list.next));
        bp_proc_scan one = {list.next, comma != NULL ? comma : list.end};
        if (bp_proc_is(one, item)) {
            return true;
        }
        list.next = comma != NULL ? comma + 1 : list.end;
    }
    return false;
}

bool bp_proc_find_cgroup(const char *text, size_t text_bytes, const char *controller,
                         const char **ret_path, size_t *ret_path_bytes) {
    bp_proc_scan scan = {text, text + text_bytes};
    bp_proc_scan line, controllers, path;
    int best_rank = -1;
    while (bp_proc_take_line(&scan, &line)) {
        if (!take_cgroup(line, &controllers, &path) ||
            (controller != NULL && !bp_proc_has_item(controllers, controller))) {
            continue;
        }
        size_t path_bytes = (size_t)(path.end - path.next);
        int rank = cgroup_rank(controllers, path_bytes);
        if (rank > best_rank) {
            best_rank = rank;
            *ret_path = path.next;
            *ret_path_bytes = path_bytes;
        }
    }
    return best_rank >= 0;
}

static bool parse_map(bp_proc_scan scan, bp_proc_map *ret_map) {
    bp_proc_scan permissions;
    bp_proc_map map = {.path = ""};
    if (!bp_proc_take_number(&scan, 16, &map.start) || !bp_proc_take_byte(&scan, '-') ||
        !bp_proc_take_number(&scan, 16, &map.end) || !bp_proc_take_byte(&scan, ' ') ||
        !bp_proc_take_word(&scan, &permissions) || permissions.end - permissions.next != 4 ||
        !bp_proc_take_byte(&scan, ' ') || !bp_proc_take_number(&scan, 16, &map.offset) ||
        !bp_proc_take_byte(&scan, ' ') || !bp_proc_take_number(&scan, 16, &map.device_major) ||
        !bp_proc_take_byte(&scan, ':') || !bp_proc_take_number(&scan, 16, &map.device_minor) ||
        !bp_proc_take_byte(&scan, ' ') || !bp_proc_take_number(&scan, 10, &map.inode)) {
        return false;
    }
    if (map.end <= map.start || (scan.next < scan.end && *scan.next != ' ')) {
        return false;
    }
    map.is_readable = permissions.next[0] == 'r';
    map.is_writable = permissions.next[1] == 'w';
    map.is_executable = permissions.next[2] == 'x';
    map.is_shared = permissions.next[3] == 's';
    /* The kernel pads to a column; a path of a file begins with '/', so no space of it is lost. */
    bp_proc_skip_blanks(&scan);
    if (scan.next < scan.end) {
        map.path = scan.next;
        map.path_bytes = (size_t)(scan.end - scan.next);
    }
    *ret_map = map;
    return true;
}

bool bp_proc_take_map(bp_proc_scan *scan, bp_proc_map *ret_map) {
    bp_proc_scan line;
    bool is_taken = false;
    while (!is_taken && bp_proc_take_line(scan, &line)) {
        is_taken = parse_map(line, ret_map);
    }
    return is_taken;
}

size_t bp_proc_unescape_path(const char *path, size_t path_bytes, char *out) {
    size_t length = 0;
    for (size_t i = 0; i < path_bytes; i++) {
        if (path_bytes - i >= 4 && memcmp(path + i, "\\012", 4) == 0) {
            out[length++] = '\n';
            i += 3;
        } else {
            out[length++] = path[i];
        }
    }
    out[length] = '\0';
    return length;
}

size_t bp_proc_deleted_path_length(const char *path, size_t path_bytes) {
    static const char suffix[] = " (deleted)";
    const size_t suffix_bytes = sizeof suffix - 1;
    if (path_bytes <= suffix_bytes ||
        memcmp(path + path_bytes - suffix_bytes, suffix, suffix_bytes) != 0) {
        return 0;
    }
    return path_bytes - suffix_bytes;
}
