#include "report/name.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

enum {
    app_max_bytes = 64,
    detail_max_bytes = 96,
    time_bytes = sizeof "2026-11-21T00-36-51Z" - 1,
    number_max = 9999
};

static bool is_plain(char byte) {
    return (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z') ||
           (byte >= '0' && byte <= '9') || byte == '_' || byte == '.' || byte == '-';
}

/* Appends a word that anybody may have chosen, in the few characters that a file name may hold. */
static size_t append_word(char *stem, size_t length, const char *word, size_t max_bytes) {
    for (size_t i = 0; i < max_bytes && word[i] != '\0'; i++) {
        char byte = is_plain(word[i]) ? word[i] : '_';
        if (strchr(":/\\ ", word[i]) != NULL) {
            byte = '-';
        }
        /* A file called ".x" is hidden, and one called "-x" is an option to many commands. */
        bool is_in_front = length == 0 && i == 0;
        stem[length + i] = is_in_front && (byte == '.' || byte == '-') ? '_' : byte;
        stem[length + i + 1] = '\0';
    }
    return strlen(stem);
}

void bp_name_app_word(const char *app, char ret_word[BP_NAME_APP_BYTES]) {
    ret_word[0] = '\0';
    (void)append_word(ret_word, 0, app, app_max_bytes);
}

void bp_name_report_stem(const char *app, bp_report_kind kind, const char *detail, uint64_t wall_ns,
                         char ret_stem[BP_NAME_STEM_BYTES]) {
    char time[BP_CLOCK_NAME_BYTES];
    bp_clock_format_name(wall_ns, time);
    bp_name_app_word(app, ret_stem);
    size_t length = strlen(ret_stem);
    length += (size_t)snprintf(ret_stem + length, BP_NAME_STEM_BYTES - length, "-%s-",
                               bp_report_kind_name(kind));
    if (detail != NULL && detail[0] != '\0') {
        length = append_word(ret_stem, length, detail, detail_max_bytes);
        ret_stem[length++] = '-';
    }
    (void)snprintf(ret_stem + length, BP_NAME_STEM_BYTES - length, "%s", time);
}

static const char extension[] = ".zip";

/* The kinds, each with whether its name holds a detail. */
static const struct {
    bp_report_kind kind;
    bool has_detail;
} kinds[] = {
    {BP_REPORT_BUGREPORT, false},    {BP_REPORT_PEDANTIC, true},       {BP_REPORT_DISCONNECT, true},
    {BP_REPORT_NOTIFICATION, false}, {BP_REPORT_AUTO_SNAPSHOT, false}, {BP_REPORT_HANG, true},
    {BP_REPORT_CONDITION, true},     {BP_REPORT_CRASH, false},         {BP_REPORT_EXIT, false}};

/* Takes "-N" off the end, where it is there; `*length` is then shorter. */
static unsigned take_number(const char *name, size_t *length) {
    unsigned number = 1;
    size_t digits = 0;
    while (digits < 4 && digits < *length && name[*length - digits - 1] >= '0' &&
           name[*length - digits - 1] <= '9') {
        digits++;
    }
    const char *text = name + *length - digits;
    if (digits > 0 && digits < *length && text[-1] == '-' && text[0] != '0' &&
        (number = (unsigned)strtoul(text, NULL, 10)) >= 2 && number <= number_max) {
        *length -= digits + 1;
        return number;
    }
    return 1;
}

/* True if "-<kind>[-<detail>]" fills the text from `at` to the '-' before the time, at `end`. */
static bool is_kind_at(const char *name, size_t at, size_t end, size_t row) {
    const char *word = bp_report_kind_name(kinds[row].kind);
    size_t word_end = at + 1 + strlen(word);
    if (word_end > end || memcmp(name + at + 1, word, word_end - at - 1) != 0) {
        return false;
    }
    if (!kinds[row].has_detail) {
        return word_end == end;
    }
    return word_end + 1 < end && name[word_end] == '-' && end - word_end - 1 <= detail_max_bytes;
}

bool bp_name_parse_report(const char *name, bp_report_name *ret_parsed) {
    size_t length = strlen(name);
    const size_t extension_bytes = sizeof extension - 1;
    if (length <= extension_bytes || strcmp(name + length - extension_bytes, extension) != 0) {
        return false;
    }
    length -= extension_bytes;
    bp_report_name parsed = {.number = take_number(name, &length)};
    uint64_t wall_ns = 0;
    char again[BP_CLOCK_NAME_BYTES];
    if (length <= time_bytes + 1 || name[0] == '.' || name[0] == '-' ||
        name[length - time_bytes - 1] != '-' ||
        !bp_clock_parse(name + length - time_bytes, &wall_ns)) {
        return false;
    }
    /* Only a moment that the clock can show in just these letters. */
    bp_clock_format_name(wall_ns, again);
    if (memcmp(again, name + length - time_bytes, time_bytes) != 0) {
        return false;
    }
    parsed.wall_secs = wall_ns / BP_NS_PER_SEC;
    size_t end = length - time_bytes - 1;
    unsigned readings = 0;
    for (size_t at = 0; at < end; at++) {
        if (!is_plain(name[at])) {
            return false;
        }
        for (size_t row = 0; row < sizeof kinds / sizeof kinds[0]; row++) {
            if (name[at] == '-' && at > 0 && at < BP_NAME_APP_BYTES &&
                is_kind_at(name, at, end, row)) {
                parsed.app_bytes = at;
                parsed.kind = kinds[row].kind;
                readings++;
            }
        }
    }
    if (readings != 1) {
        return false;
    }
    *ret_parsed = parsed;
    return true;
}
