#include "platform/linux/system_text.h"

#include <stdio.h>

#include "platform/linux/proc_text.h"

static void copy(bp_proc_scan text, char *out, size_t out_bytes) {
    (void)snprintf(out, out_bytes, "%.*s", (int)(text.end - text.next), text.next);
}

bool bp_os_release_find(const char *text, size_t text_bytes, const char *key, char *out,
                        size_t out_bytes) {
    bp_proc_scan scan = {text, text + text_bytes};
    bp_proc_scan line;
    while (bp_proc_take_line(&scan, &line)) {
        if (!bp_proc_take_text(&line, key) || !bp_proc_take_byte(&line, '=')) {
            continue;
        }
        char quote = line.next < line.end ? *line.next : '\0';
        bool is_quoted = quote == '"' || quote == '\'';
        size_t length = 0;
        for (line.next += is_quoted ? 1 : 0;
             line.next < line.end && length + 1 < out_bytes && !(is_quoted && *line.next == quote);
             line.next++) {
            bool is_escape = *line.next == '\\' && quote != '\'' && line.next + 1 < line.end;
            line.next += is_escape ? 1 : 0;
            out[length++] = *line.next;
        }
        out[length] = '\0';
        return true;
    }
    return false;
}

static bool take_centi(bp_proc_scan *line, uint64_t *ret_centi) {
    bp_proc_scan word;
    return bp_proc_take_word(line, &word) && bp_proc_read_centi(word, ret_centi);
}

bool bp_load_parse(const char *text, size_t text_bytes, bp_load *ret_load) {
    bp_proc_scan scan = {text, text + text_bytes};
    bp_proc_scan word;
    bp_load load;
    if (!take_centi(&scan, &load.centi[0]) || !take_centi(&scan, &load.centi[1]) ||
        !take_centi(&scan, &load.centi[2]) || !bp_proc_take_word(&scan, &word) ||
        !bp_proc_take_number(&word, 10, &load.runnable_count) || !bp_proc_take_byte(&word, '/') ||
        !bp_proc_take_number(&word, 10, &load.thread_count) || word.next != word.end) {
        return false;
    }
    *ret_load = load;
    return true;
}

bool bp_cpu_model_find(const char *text, size_t text_bytes, char *out, size_t out_bytes) {
    bp_proc_scan scan = {text, text + text_bytes};
    bp_proc_scan line;
    while (bp_proc_take_line(&scan, &line)) {
        if (bp_proc_take_text(&line, "model name")) {
            bp_proc_skip_blanks(&line);
            if (bp_proc_take_byte(&line, ':')) {
                bp_proc_skip_blanks(&line);
                copy(line, out, out_bytes);
                return true;
            }
        }
    }
    return false;
}

/* "107 87 7:1 / /mnt rw,relatime shared:1 - ext4 /dev/loop1 rw,emergency_ro" */
bool bp_mount_is_read_only(const char *text, size_t text_bytes, unsigned major, unsigned minor) {
    enum { device_word = 2 };
    bp_proc_scan rest = {text, text + text_bytes}, line, word;
    char device[32];
    (void)snprintf(device, sizeof device, "%u:%u", major, minor);
    while (bp_proc_take_line(&rest, &line)) {
        bool is_wanted = false;
        word = (bp_proc_scan){line.next, line.next};
        for (size_t i = 0; bp_proc_take_word(&line, &word); i++) {
            is_wanted = is_wanted || (i == device_word && bp_proc_is(word, device));
        }
        if (is_wanted && (bp_proc_has_item(word, "ro") || bp_proc_has_item(word, "emergency_ro"))) {
            return true; /* the options of the file system are the last word */
        }
    }
    return false;
}

/* The next byte of a word: the kernel writes blanks, newlines and backslashes of a name as "\040"
 * (mangle, fs/proc_namespace.c). */
static char take_escaped(bp_proc_scan *word) {
    const char *at = word->next++;
    if (*at != '\\' || word->end - at < 4) {
        return *at;
    }
    word->next = at + 4;
    return (char)((at[1] - '0') << 6 | (at[2] - '0') << 3 | (at[3] - '0'));
}

static bool is_below(const char *path, bp_proc_scan point) {
    bool is_root = point.end - point.next == 1;
    while (point.next < point.end) {
        if (*path == '\0' || *path++ != take_escaped(&point)) {
            return false;
        }
    }
    return is_root || *path == '/' || *path == '\0';
}

static void copy_escaped(bp_proc_scan word, char *out, size_t out_bytes) {
    size_t length = 0;
    while (word.next < word.end && length + 1 < out_bytes) {
        out[length++] = take_escaped(&word);
    }
    out[length] = '\0';
}

bool bp_mount_find(const char *text, size_t text_bytes, const char *path, bp_mount *ret_mount) {
    enum { device_word = 2, point_word = 4 };
    bp_proc_scan rest = {text, text + text_bytes}, line, word, point, device;
    size_t best = 0;
    while (bp_proc_take_line(&rest, &line)) {
        point = device = (bp_proc_scan){NULL, NULL};
        for (size_t i = 0; bp_proc_take_word(&line, &word) && !bp_proc_is(word, "-"); i++) {
            point = i == point_word ? word : point;
            device = i == device_word ? word : device;
        }
        if (point.next == NULL || !is_below(path, point) ||
            (size_t)(point.end - point.next) < best) {
            continue;
        }
        best = (size_t)(point.end - point.next);
        *ret_mount = (bp_mount){.minor = 0};
        copy_escaped(point, ret_mount->point, sizeof ret_mount->point);
        if (bp_proc_take_word(&line, &word)) {
            copy(word, ret_mount->type, sizeof ret_mount->type);
        }
        if (bp_proc_take_word(&line, &word)) {
            copy_escaped(word, ret_mount->source, sizeof ret_mount->source);
        }
        uint64_t major;
        (void)(bp_proc_take_number(&device, 10, &major) && bp_proc_take_byte(&device, ':') &&
               bp_proc_take_number(&device, 10, &ret_mount->minor));
    }
    return best > 0;
}
