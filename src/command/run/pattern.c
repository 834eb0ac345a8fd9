#include "run/pattern.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include <bugpack/log.h>

#include "base/status.h"
#include "base/utf8.h"
#include "redact/codes.h"

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

/* A broken string ends where the next sequence begins, any other one at the byte that broke it; or
 * with the line. */
static size_t find_end_of_broken(const char *line, size_t line_bytes, size_t at) {
    size_t end = at + 1;
    if (end < line_bytes && memchr("]PX^_", line[end], 5) != NULL) {
        const char *next = memchr(line + end, '\033', line_bytes - end);
        return next != NULL ? (size_t)(next - line) : line_bytes;
    }
    end += end < line_bytes && line[end] == '[';
    while (end < line_bytes && line[end] >= ' ' && line[end] <= '?') {
        end++; /* parameters */
    }
    return end;
}

/*
 * Copies a line without its escape sequences. Other control characters, also NUL, become a space.
 * `out` has room for `line_bytes` and a NUL.
 */
static void copy_plain(const char *line, size_t line_bytes, char *out) {
    size_t used = 0;
    for (size_t at = 0; at < line_bytes;) {
        if (line[at] != '\033') {
            out[used++] = iscntrl((unsigned char)line[at]) ? ' ' : line[at];
            at++;
            continue;
        }
        size_t end = bp_code_skip_sequence(line, line_bytes, at);
        at = end > at ? end : find_end_of_broken(line, line_bytes, at);
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
