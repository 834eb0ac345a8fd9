#include "report/name_parse.h"

#include <string.h>

#include "base/clock.h"
#include "report/name.h"

enum { time_bytes = sizeof "2026-11-21T00-36-51Z" - 1, detail_max_bytes = 96, number_max = 9999 };

static const char extension[] = ".zip";

/* Which kinds there are, and whether the name of one holds a detail. */
static const struct {
    bp_report_kind kind;
    bool has_detail;
} kinds[] = {{BP_REPORT_BUGREPORT, false},     {BP_REPORT_PEDANTIC, true},
             {BP_REPORT_DISCONNECT, true},     {BP_REPORT_NOTIFICATION, false},
             {BP_REPORT_AUTO_SNAPSHOT, false}, {BP_REPORT_CRASH, false}};

static bool is_plain(char byte) {
    return (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z') ||
           (byte >= '0' && byte <= '9') || byte == '_' || byte == '.' || byte == '-';
}

/* `count` digits as a number; false when one of them is none. */
static bool read_digits(const char *text, size_t count, unsigned *ret_value) {
    unsigned value = 0;
    for (size_t i = 0; i < count; i++) {
        if (text[i] < '0' || text[i] > '9') {
            return false;
        }
        value = value * 10 + (unsigned)(text[i] - '0');
    }
    *ret_value = value;
    return true;
}

/* Days since 1970-01-01 of a date in the Gregorian calendar, from 1970 on. */
static uint64_t days_since_1970(unsigned year, unsigned month, unsigned day) {
    static const unsigned before_month[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
    uint64_t past = year - 1;
    uint64_t leap_days = past / 4 - past / 100 + past / 400 - (1969 / 4 - 1969 / 100 + 1969 / 400);
    bool is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return (uint64_t)(year - 1970) * 365 + leap_days + before_month[month - 1] +
           (is_leap && month > 2) + day - 1;
}

/* "2026-11-21T00-36-51Z", and only a moment that the clock can show in just these letters. */
static bool read_time(const char *text, uint64_t *ret_secs) {
    static const struct {
        size_t at, count;
    } fields[] = {{0, 4}, {5, 2}, {8, 2}, {11, 2}, {14, 2}, {17, 2}};
    unsigned values[6];
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        if (!read_digits(text + fields[i].at, fields[i].count, &values[i])) {
            return false;
        }
    }
    if (values[0] < 1970 || values[0] > 2554 || values[1] < 1 || values[1] > 12) {
        return false;
    }
    uint64_t secs = days_since_1970(values[0], values[1], values[2]) * 86400 + values[3] * 3600 +
                    values[4] * 60 + values[5];
    char again[BP_CLOCK_NAME_BYTES];
    bp_clock_format_name(secs * BP_NS_PER_SEC, again);
    if (memcmp(again, text, time_bytes) != 0) {
        return false;
    }
    *ret_secs = secs;
    return true;
}

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
        read_digits(text, digits, &number) && number >= 2 && number <= number_max) {
        *length -= digits + 1;
        return number;
    }
    return 1;
}

/* Whether "-<kind>[-<detail>]" fills the text from `at` to the '-' before the time, at `end`. */
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
    if (length <= time_bytes + 1 || name[0] == '.' || name[0] == '-' ||
        name[length - time_bytes - 1] != '-' ||
        !read_time(name + length - time_bytes, &parsed.wall_secs)) {
        return false;
    }
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
