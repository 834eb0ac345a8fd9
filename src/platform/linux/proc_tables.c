/*
 * The texts under /proc that have one thing a line: limits and cgroup.
 */
#include <string.h>

#include "platform/linux/proc_scan.h"
#include "platform/linux/proc_text.h"

/* A limit's value: a number, or "unlimited". */
static bool take_limit(bp_proc_scan *line, bool *ret_unlimited, uint64_t *ret_value) {
    static const char unlimited[] = "unlimited";
    bp_proc_scan word;
    if (!bp_proc_take_word(line, &word)) {
        return false;
    }
    *ret_unlimited = (size_t)(word.end - word.next) == sizeof unlimited - 1 &&
                     memcmp(word.next, unlimited, sizeof unlimited - 1) == 0;
    *ret_value = 0;
    return *ret_unlimited || (bp_proc_take_number(&word, 10, ret_value) && word.next == word.end);
}

/* Copies a word, cut when it is too long. */
static void copy_text(char *out, size_t out_bytes, const char *from, const char *end) {
    size_t length = (size_t)(end - from);
    length = length < out_bytes ? length : out_bytes - 1;
    memcpy(out, from, length);
    out[length] = '\0';
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
    copy_text(limit.name, sizeof limit.name, name, name_end);
    if (name_end == name || !take_limit(&line, &limit.soft_unlimited, &limit.soft) ||
        !take_limit(&line, &limit.hard_unlimited, &limit.hard)) {
        return false;
    }
    bp_proc_scan unit;
    if (bp_proc_take_word(&line, &unit)) {
        copy_text(limit.unit, sizeof limit.unit, unit.next, unit.end);
    }
    *ret_limit = limit;
    return true;
}

size_t bp_proc_parse_limits(const char *text, size_t text_bytes, bp_resource_limit *limits,
                            size_t limit_max) {
    bp_proc_scan scan = {text, text + text_bytes};
    bp_proc_scan line;
    /* A name holds spaces, so only the header tells where its column ends. */
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

/* How much a cgroup line says about where a process belongs: 0 nothing, then more and more. */
static int cgroup_rank(const char *controllers, size_t controllers_bytes, size_t path_bytes) {
    static const char systemd[] = "name=systemd";
    if (path_bytes == 1) {
        return 0;
    }
    if (controllers_bytes == 0) {
        return 3;
    }
    bool is_systemd = controllers_bytes == sizeof systemd - 1 &&
                      memcmp(controllers, systemd, sizeof systemd - 1) == 0;
    return is_systemd ? 2 : 1;
}

bool bp_proc_find_cgroup(const char *text, size_t text_bytes, const char **ret_path,
                         size_t *ret_path_bytes) {
    bp_proc_scan scan = {text, text + text_bytes};
    bp_proc_scan line;
    int best_rank = -1;
    while (bp_proc_take_line(&scan, &line)) {
        uint64_t hierarchy;
        if (!bp_proc_take_number(&line, 10, &hierarchy) || !bp_proc_take_byte(&line, ':')) {
            continue;
        }
        const char *colon = memchr(line.next, ':', (size_t)(line.end - line.next));
        if (colon == NULL || colon + 1 == line.end || colon[1] != '/') {
            continue;
        }
        size_t path_bytes = (size_t)(line.end - colon - 1);
        int rank = cgroup_rank(line.next, (size_t)(colon - line.next), path_bytes);
        if (rank > best_rank) {
            best_rank = rank;
            *ret_path = colon + 1;
            *ret_path_bytes = path_bytes;
        }
    }
    return best_rank >= 0;
}
