#include "send/configuration.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "base/status.h"

typedef struct reader {
    char *at;
    unsigned line;
    const char *section, *subsection;
} reader;

static void skip_blanks(reader *it) {
    it->at += strspn(it->at, " \t\r");
}

/* Letters, digits and "-", which become lower-case; NULL without one. The caller ends it by a NUL
 * once what follows was read. */
static char *take_name(reader *it) {
    char *start = it->at;
    while (isalnum((unsigned char)*it->at) || *it->at == '-') {
        *it->at = (char)tolower((unsigned char)*it->at);
        it->at++;
    }
    return it->at > start ? start : NULL;
}

/* [section] or [section "subsection"], from behind the bracket. */
static bool take_section(reader *it) {
    char *name = take_name(it), *name_end = it->at;
    it->subsection = "";
    skip_blanks(it);
    if (*it->at == '"') {
        char *out = ++it->at;
        it->subsection = out;
        while (*it->at != '"') {
            it->at += *it->at == '\\';
            if (*it->at == '\0' || *it->at == '\n') {
                return false;
            }
            *out++ = *it->at++;
        }
        it->at++;
        *out = '\0';
    }
    if (name == NULL || *it->at != ']') {
        return false;
    }
    it->at++;
    *name_end = '\0';
    it->section = name;
    return true;
}

/* The character that `\` and this one mean; 0 for none. */
static char unescape(char letter) {
    static const char letters[] = "nt\"\\", values[] = "\n\t\"\\";
    const char *found = letter != '\0' ? strchr(letters, letter) : NULL;
    return found != NULL ? values[found - letters] : '\0';
}

/* Up to the end of the line, without the blanks at its end that are outside quotes. */
static char *take_value(reader *it) {
    char *start = it->at, *out = it->at, *end = it->at;
    bool is_quoted = false;
    for (; *it->at != '\0' && *it->at != '\n'; it->at++) {
        char byte = *it->at;
        bool is_comment = !is_quoted && (byte == '#' || byte == ';');
        if (is_comment) {
            it->at += strcspn(it->at, "\n");
            break;
        }
        if (byte == '"') {
            is_quoted = !is_quoted;
            end = out;
            continue;
        }
        if (byte == '\\') {
            it->at++;
            if (*it->at == '\n') {
                it->line++;
                continue;
            }
            byte = unescape(*it->at);
            if (byte == '\0') {
                return NULL;
            }
        }
        *out++ = byte;
        bool is_blank = byte == ' ' || byte == '\t' || byte == '\r';
        end = is_quoted || !is_blank ? out : end;
    }
    bool is_last = *it->at == '\0';
    it->at += !is_last;
    *end = '\0';
    return is_quoted ? NULL : start;
}

/* A line with a key, from its first letter. */
static bool take_row(reader *it, bp_configuration_row *row) {
    char *name = take_name(it), *name_end = it->at;
    *row = (bp_configuration_row){it->section, it->subsection, name, NULL, it->line};
    skip_blanks(it);
    if (name == NULL || it->section == NULL) {
        return false;
    }
    bool has_value = *it->at == '=';
    if (has_value) {
        it->at++;
        skip_blanks(it);
        row->value = take_value(it);
        if (row->value == NULL) {
            return false;
        }
    } else if (strchr("\n#;", *it->at) != NULL) { /* or the end of the text */
        it->at += strcspn(it->at, "\n");
        it->at += *it->at == '\n';
    } else {
        return false;
    }
    it->line++;
    *name_end = '\0';
    return true;
}

bugpack_status bp_configuration_read(char *text, const char *path, bp_configuration_taker *take,
                                     void *context, bugpack_error *error) {
    reader it = {.at = text, .line = 1};
    bugpack_status status = BUGPACK_OK;
    bool is_well_formed = true;
    while (status == BUGPACK_OK && is_well_formed && *it.at != '\0') {
        bp_configuration_row row;
        skip_blanks(&it);
        switch (*it.at) {
        case '\0':
            break;
        case '\n':
            it.line++;
            it.at++;
            break;
        case '#':
        case ';':
            it.at += strcspn(it.at, "\n");
            break;
        case '[':
            it.at++;
            is_well_formed = take_section(&it);
            break;
        default:
            is_well_formed = take_row(&it, &row);
            status = is_well_formed ? take(context, &row, error) : BUGPACK_OK;
        }
    }
    return is_well_formed ? status
                          : bp_fail(error, BUGPACK_ERR_INVALID,
                                    "%s:%u: not a section, a key or a comment", path, it.line);
}
