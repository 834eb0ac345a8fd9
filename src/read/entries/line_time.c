#include "entries/line_time.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include <bugpack/log.h>

#include "base/clock.h"

/* Times without their fraction and zone. Each has one length, so that no digit is missing. */
static const struct time_form {
    const char *format, *example;
} forms[] = {
    {"%Y-%m-%dT%H:%M:%S", "2026-11-21T00:36:51"}, {"%Y-%m-%d %H:%M:%S", "2026-11-21 00:36:51"},
    {"%Y/%m/%d %H:%M:%S", "2026/11/21 00:36:51"}, {"%b %d %H:%M:%S", "Nov 21 00:36:51"},
    {"%a %b %d %H:%M:%S", "Sat Nov 21 00:36:51"}, {"%d/%b/%Y:%H:%M:%S", "21/Nov/2026:00:36:51"},
    {"%m%d %H:%M:%S", "1121 00:36:51"}, /* of glog, without its letter */
    {"%m-%d %H:%M:%S", "11-21 00:36:51"},         {"%H:%M:%S", "00:36:51"}};

/* Beyond the longest time with its priority and zone. */
enum { text_bytes = 96 };

static bool is_digit(char byte) {
    return byte >= '0' && byte <= '9';
}

static bool is_letter(char byte) {
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
}

/* The fraction of a second, which may be missing. */
static uint64_t take_fraction(const char **at) {
    uint64_t fraction_ns = 0;
    if ((**at == '.' || **at == ',') && is_digit((*at)[1])) {
        ++*at;
        for (uint64_t unit = BP_NS_PER_SEC / 10; is_digit(**at); unit /= 10) {
            fraction_ns += (uint64_t)(*(*at)++ - '0') * unit;
        }
    }
    return fraction_ns;
}

/* A zone, after a blank only in a form that is nothing else; strptime knows no colon in it
 * everywhere. */
static bool take_zone(const char **at, int32_t *ret_secs) {
    bool has_blank = **at == ' ';
    const char *zone = *at + has_blank, *next = zone + 1;
    unsigned digits = 0, value = 0;
    if (strncmp(zone, "UTC", 3) == 0 || strncmp(zone, "GMT", 3) == 0) {
        next = zone + 3;
    } else if (*zone == '+' || *zone == '-') {
        for (; digits < 4 && is_digit(*next); digits++) {
            value = value * 10 + (unsigned)(*next++ - '0');
            next += digits == 1 && *next == ':' && is_digit(next[1]);
        }
        value *= digits == 2 ? 100 : 1;
        bool is_whole = digits == 4 || (digits == 2 && !has_blank);
        if (!is_whole || value > 1459 || value % 100 > 59) {
            return false;
        }
    } else if (has_blank || (*zone != 'Z' && *zone != 'z')) {
        return false;
    }
    if (is_digit(*next) || is_letter(*next)) {
        return false;
    }
    *ret_secs = (int32_t)(value / 100 * 3600 + value % 100 * 60) * (*zone == '-' ? -1 : 1);
    *at = next;
    return true;
}

/* Nanoseconds since 1970, with what the line leaves out from the clock; 0 for none. */
static uint64_t complete(const struct tm *read, uint64_t fraction_ns, int32_t zone_secs,
                         uint64_t until_ns, bp_line_time *time) {
    static const uint64_t day_secs = 86400;
    uint64_t until_secs = until_ns / BP_NS_PER_SEC;
    bp_civil_time civil = {.year = (unsigned)read->tm_year + 1900,
                           .month = (unsigned)read->tm_mon + 1,
                           .day = (unsigned)read->tm_mday,
                           .hour = (unsigned)read->tm_hour,
                           .minute = (unsigned)read->tm_min,
                           .second = (unsigned)read->tm_sec};
    if (time->lacks_date || time->lacks_year) {
        if (until_secs < 400 * day_secs) {
            return 0; /* the year before must be one of the clock's */
        }
        uint64_t latest_secs = until_secs + (time->lacks_date ? 3600 : day_secs);
        bp_civil_time latest =
            bp_clock_civil((uint64_t)((int64_t)latest_secs + zone_secs) * BP_NS_PER_SEC);
        civil.year = latest.year;
        if (time->lacks_date) {
            civil.month = latest.month;
            civil.day = latest.day;
        }
        if ((int64_t)bp_clock_secs(civil) - zone_secs > (int64_t)latest_secs) {
            civil.year -= time->lacks_year;
            zone_secs += time->lacks_date ? (int32_t)day_secs : 0;
        }
    }
    int64_t secs = (int64_t)bp_clock_secs(civil) - zone_secs;
    return civil.year < 1970 || civil.year > 2553 || secs <= 0
               ? 0
               : (uint64_t)secs * BP_NS_PER_SEC + fraction_ns;
}

/* A time in one of the forms. */
static bool take_form(const char **at, const struct time_form *form, const bp_line_clock *clock,
                      bp_line_time *time) {
    struct tm read = {.tm_mday = 1};
    int32_t zone_secs = clock->zone_secs;
    const char *next = strptime(*at, form->format, &read);
    if (next == NULL || (size_t)(next - *at) != strlen(form->example)) {
        return false;
    }
    uint64_t fraction_ns = take_fraction(&next);
    time->lacks_date = strstr(form->format, "%d") == NULL;
    time->lacks_year = !time->lacks_date && strstr(form->format, "%Y") == NULL;
    const char *year = strstr(form->format, "%b %d") != NULL ? strptime(next, " %Y", &read) : NULL;
    if (year == next + 5 && !is_letter(*year) && !is_digit(*year)) {
        time->lacks_year = false;
        next = year;
    }
    time->lacks_zone = !take_zone(&next, &zone_secs);
    time->wall_ns = complete(&read, fraction_ns, zone_secs, clock->until_ns, time);
    *at = next;
    return time->wall_ns != 0;
}

/* Seconds since 1970, or a smaller unit of which they have so many digits. */
static bool take_epoch(const char **at, bp_line_time *time) {
    static const uint64_t units[] = {[10] = 1000000000, [13] = 1000000, [16] = 1000, [19] = 1};
    size_t digits = strspn(*at, "0123456789");
    if (digits >= sizeof units / sizeof units[0] || units[digits] == 0) {
        return false;
    }
    uint64_t value = strtoull(*at, NULL, 10);
    if (value == 0 || value > UINT64_MAX / 2 / units[digits]) {
        return false;
    }
    *at += digits;
    *time = (bp_line_time){value * units[digits] + (digits == 10 ? take_fraction(at) : 0), false,
                           false, false};
    return true;
}

static bool take_time(const char **at, const bp_line_clock *clock, bp_line_time *time) {
    if (!is_digit(**at) && !is_letter(**at)) {
        return false; /* strptime would skip blanks */
    }
    bool is_glog = strchr("DIWEF", **at) != NULL && is_digit((*at)[1]);
    const char *start = *at + is_glog;
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        const char *next = start;
        if (is_digit(*start) == is_digit(forms[i].example[0]) &&
            take_form(&next, &forms[i], clock, time)) {
            *at = is_glog ? *at : next; /* the letter is a level */
            return true;
        }
    }
    return take_epoch(at, time);
}

bool bp_line_time_read(const char *line, size_t line_bytes, const bp_line_clock *clock,
                       bp_line_time *ret_time, size_t *ret_used) {
    char text[text_bytes];
    size_t length = line_bytes < sizeof text - 1 ? line_bytes : sizeof text - 1;
    const char *at = text;
    bp_line_time time = {0};
    memcpy(text, line, length);
    text[length] = '\0';
    if (*at == '<') {
        at += 1 + strspn(at + 1, "0123456789");
        if (*at++ != '>') {
            return false;
        }
        at += strncmp(at, "1 ", 2) == 0 ? 2 : 0;
    }
    bool is_bracketed = *at == '[' || *at == '(';
    at += is_bracketed;
    const char *start = at;
    if (!take_time(&at, clock, &time)) {
        return false;
    }
    bool ends = is_bracketed ? *at == ']' || *at == ')'
                             : at == start || (!is_digit(*at) && !is_letter(*at));
    if (!ends) {
        return false;
    }
    at += is_bracketed;
    at += at > start ? strspn(at, " \t") : 0;
    *ret_time = time;
    *ret_used = (size_t)(at - text);
    return true;
}

bool bp_line_zone_read(const char *text, int32_t *ret_secs) {
    int32_t secs;
    if (text[0] == ' ' || !take_zone(&text, &secs) || *text != '\0') {
        return false;
    }
    *ret_secs = secs;
    return true;
}

int bp_line_level_of(const char *name, size_t name_bytes) {
    static const struct {
        const char *name;
        int level;
    } names[] = {{"trace", BUGPACK_LEVEL_TRACE}, {"debug", BUGPACK_LEVEL_DEBUG},
                 {"info", BUGPACK_LEVEL_INFO},   {"notice", BUGPACK_LEVEL_INFO},
                 {"warn", BUGPACK_LEVEL_WARN},   {"warning", BUGPACK_LEVEL_WARN},
                 {"error", BUGPACK_LEVEL_ERROR}, {"err", BUGPACK_LEVEL_ERROR},
                 {"fatal", BUGPACK_LEVEL_FATAL}, {"critical", BUGPACK_LEVEL_FATAL},
                 {"crit", BUGPACK_LEVEL_FATAL},  {"alert", BUGPACK_LEVEL_FATAL},
                 {"emerg", BUGPACK_LEVEL_FATAL}, {"panic", BUGPACK_LEVEL_FATAL}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strlen(names[i].name) == name_bytes &&
            strncasecmp(name, names[i].name, name_bytes) == 0) {
            return names[i].level;
        }
    }
    return 0;
}

/* "I1121 " of glog. */
static int glog_level(const char *line, size_t line_bytes) {
    static const int levels[] = {BUGPACK_LEVEL_DEBUG, BUGPACK_LEVEL_INFO, BUGPACK_LEVEL_WARN,
                                 BUGPACK_LEVEL_ERROR, BUGPACK_LEVEL_FATAL};
    static const char letters[] = "DIWEF";
    const char *letter = line_bytes < 6 ? NULL : memchr(letters, line[0], sizeof letters - 1);
    bool is_glog = letter != NULL && line[5] == ' ';
    for (size_t i = 1; i < 5 && is_glog; i++) {
        is_glog = is_digit(line[i]);
    }
    return is_glog ? levels[letter - letters] : 0;
}

int bp_line_level(const char *line, size_t line_bytes) {
    enum { word_max = 8 };
    const char *at = line, *end = line + line_bytes;
    int level = glog_level(line, line_bytes);
    for (int words = 0; level == 0 && words < word_max && at < end; words++) {
        while (at < end && !is_letter(*at)) {
            at++;
        }
        const char *word = at;
        bool is_capital = true;
        for (; at < end && is_letter(*at); at++) {
            is_capital &= *at <= 'Z';
        }
        char before = word > line ? word[-1] : ' ', after = at < end ? *at : ' ';
        bool is_marked = after == ':' || before == '=' ||
                         ((before == '[' || before == ':') && after == ']') ||
                         (before == '<' && after == '>') || (before == '(' && after == ')');
        if (is_marked || (is_capital && strchr(" \t:[]|-", before) != NULL)) {
            level = bp_line_level_of(word, (size_t)(at - word));
        }
    }
    return level;
}
