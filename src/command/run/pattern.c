#include "run/pattern.h"

#include <stdio.h>
#include <string.h>

#include <bugpack/log.h>

#include "base/status.h"
#include "base/utf8.h"

void bp_run_patterns_release(bp_run_patterns *patterns) {
    for (size_t i = 0; i < patterns->count; i++) {
        regfree(&patterns->compiled[i]);
    }
}

bugpack_status bp_run_patterns_add(bp_run_patterns *patterns, const char *expression,
                                   bugpack_error *error) {
    if (patterns->count == BP_RUN_PATTERN_MAX) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "there are more than %d patterns",
                       BP_RUN_PATTERN_MAX);
    }
    regex_t *compiled = &patterns->compiled[patterns->count];
    int result = regcomp(compiled, expression, REG_EXTENDED);
    if (result != 0) {
        char reason[128];
        (void)regerror(result, compiled, reason, sizeof reason);
        return bp_fail(error, result == REG_ESPACE ? BUGPACK_ERR_NO_MEMORY : BUGPACK_ERR_INVALID,
                       "the pattern '%s' is not acceptable: %s", expression, reason);
    }
    patterns->count++;
    return BUGPACK_OK;
}

static bool is_between(char byte, unsigned char first, unsigned char last) {
    return (unsigned char)byte >= first && (unsigned char)byte <= last;
}

/* Where a control string (OSC, DCS, …) ends: after its BEL or ESC \, or with the line. */
static size_t end_of_string(const char *line, size_t line_bytes, size_t at) {
    for (; at < line_bytes; at++) {
        if (line[at] == '\a') {
            return at + 1;
        }
        if (line[at] == '\033') {
            return at + 1 < line_bytes && line[at + 1] == '\\' ? at + 2 : at;
        }
    }
    return at;
}

/* Where the sequence whose ESC is at `at` ends; a truncated one ends with the line. */
static size_t end_of_sequence(const char *line, size_t line_bytes, size_t at) {
    at++;
    if (at == line_bytes) {
        return at;
    }
    if (memchr("]PX^_", line[at], 5) != NULL) {
        return end_of_string(line, line_bytes, at + 1);
    }
    bool is_csi = line[at] == '[';
    at += is_csi ? 1 : 0;
    while (at < line_bytes && is_between(line[at], 0x20, is_csi ? 0x3f : 0x2f)) {
        at++;
    }
    return at < line_bytes && is_between(line[at], is_csi ? 0x40 : 0x30, 0x7e) ? at + 1 : at;
}

/*
 * Copies a line without its escape sequences (ECMA-48: CSI, OSC and other strings, short ones).
 * Other control characters, also NUL, become a space. `out` has room for `line_bytes` and a NUL.
 */
static void copy_plain(const char *line, size_t line_bytes, char *out) {
    size_t used = 0;
    for (size_t at = 0; at < line_bytes;) {
        if (line[at] == '\033') {
            at = end_of_sequence(line, line_bytes, at);
            continue;
        }
        out[used++] = is_between(line[at], 0, 0x1f) || line[at] == 0x7f ? ' ' : line[at];
        at++;
    }
    out[used] = '\0';
}

/* True if a text that ends at `end` begins with two words and something, separated by ':'. */
static bool is_whole_key(const char *text, const char *end) {
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "_.-";
    for (int part = 0; part < 2; part++) {
        size_t length = strspn(text, allowed);
        if (length == 0 || end - text <= (ptrdiff_t)length + 1 || text[length] != ':') {
            return false;
        }
        text += length + 1;
    }
    return true;
}

static void make_key(const char *stream, const char *text, size_t text_bytes,
                     char ret_key[BP_RUN_KEY_BYTES]) {
    char prefix[64] = "";
    if (!is_whole_key(text, text + text_bytes)) {
        (void)snprintf(prefix, sizeof prefix, "%s:line:", stream);
    }
    size_t prefix_bytes = strlen(prefix);
    text_bytes = bp_utf8_cut(text, text_bytes, BP_RUN_KEY_BYTES - 1 - prefix_bytes);
    memcpy(ret_key, prefix, prefix_bytes);
    memcpy(ret_key + prefix_bytes, text, text_bytes);
    ret_key[prefix_bytes + text_bytes] = '\0';
}

bool bp_run_patterns_match(const bp_run_patterns *patterns, const char *stream, const char *line,
                           size_t line_bytes, char ret_key[BP_RUN_KEY_BYTES]) {
    char plain[BUGPACK_LOG_MESSAGE_MAX_BYTES + 1];
    if (patterns->count == 0 || line_bytes >= sizeof plain) {
        return false;
    }
    copy_plain(line, line_bytes, plain);
    for (size_t i = 0; i < patterns->count; i++) {
        regmatch_t parts[2];
        if (regexec(&patterns->compiled[i], plain, 2, parts, 0) != 0) {
            continue;
        }
        const regmatch_t *part =
            patterns->compiled[i].re_nsub > 0 && parts[1].rm_so >= 0 ? &parts[1] : &parts[0];
        if (part->rm_eo > part->rm_so) {
            make_key(stream, plain + part->rm_so, (size_t)(part->rm_eo - part->rm_so), ret_key);
            return true;
        }
    }
    return false;
}
