#include "platform/linux/proc_maps.h"

#include <string.h>

#include "platform/linux/proc_scan.h"

bool bp_proc_parse_map(const char *line, size_t line_bytes, bp_proc_map *ret_map) {
    bp_proc_scan scan = {line, line + line_bytes};
    bp_proc_scan permissions;
    bp_proc_map map = {.path = ""};
    uint64_t offset;
    if (!bp_proc_take_number(&scan, 16, &map.start) || !bp_proc_take_byte(&scan, '-') ||
        !bp_proc_take_number(&scan, 16, &map.end) || !bp_proc_take_byte(&scan, ' ') ||
        !bp_proc_take_word(&scan, &permissions) || permissions.end - permissions.next != 4 ||
        !bp_proc_take_byte(&scan, ' ') || !bp_proc_take_number(&scan, 16, &offset) ||
        !bp_proc_take_byte(&scan, ' ') || !bp_proc_take_number(&scan, 16, &map.device_major) ||
        !bp_proc_take_byte(&scan, ':') || !bp_proc_take_number(&scan, 16, &map.device_minor) ||
        !bp_proc_take_byte(&scan, ' ') || !bp_proc_take_number(&scan, 10, &map.inode)) {
        return false;
    }
    if (map.end <= map.start || (scan.next < scan.end && *scan.next != ' ')) {
        return false;
    }
    map.is_executable = permissions.next[2] == 'x';
    /* The kernel pads to a column; a path of a file begins with '/', so no space of it is lost. */
    bp_proc_skip_blanks(&scan);
    if (scan.next < scan.end) {
        map.path = scan.next;
        map.path_bytes = (size_t)(scan.end - scan.next);
    }
    *ret_map = map;
    return true;
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
