#include "inspect/line_time.h"

#include <string.h>
#include <strings.h>

#include <bugpack/log.h>

#include "base/clock.h"

/* What is left of a line. Each take_… moves on only if it succeeds. */
typedef struct scan {
    const char *at, *end;
} scan;

static char peek(const scan *in) {
    return in->at < in->end ? *in->at : '\0';
}

static bool is_digit(char byte) {
    return byte >= '0' && byte <= '9';
}

static bool is_letter(char byte) {
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
}

static bool take_any(scan *in, const char *bytes) {
    char byte = peek(in);
    bool is_one = byte != '\0' && strchr(bytes, byte) != NULL;
    in->at += is_one;
    return is_one;
}

/* A number of exactly so many digits. */
static bool take_number(scan *in, size_t digits, unsigned min, unsigned max, unsigned *ret_value) {
    unsigned value = 0;
    if ((size_t)(in->end - in->at) < digits) {
        return false;
    }
    for (size_t i = 0; i < digits; i++) {
        if (!is_digit(in->at[i])) {
            return false;
        }
        value = value * 10 + (unsigned)(in->at[i] - '0');
    }
    if (value < min || value > max) {
        return false;
    }
    in->at += digits;
    *ret_value = value;
    return true;
}

/* One of names of three letters, counted from 1. */
static bool take_name(scan *in, const char *names, unsigned *ret_value) {
    for (unsigned i = 0; in->end - in->at >= 3 && names[3 * i] != '\0'; i++) {
        if (memcmp(in->at, names + 3 * i, 3) == 0) {
            in->at += 3;
            *ret_value = i + 1;
            return true;
        }
    }
    return false;
}

static bool take_month(scan *in, unsigned *ret_month) {
    return take_name(in, "JanFebMarAprMayJunJulAugSepOctNovDec", ret_month);
}

static bool take_year(scan *in, bp_civil_time *civil) {
    return take_number(in, 4, 1970, 2553, &civil->year);
}

/* A day of the month, after a blank where it has one digit. */
static bool take_day(scan *in, bp_civil_time *civil) {
    return take_number(in, 2, 1, 31, &civil->day) ||
           (take_any(in, " "), take_number(in, 1, 1, 9, &civil->day));
}

/* The fraction of a second, which may be missing. */
static uint64_t take_fraction(scan *in) {
    uint64_t fraction_ns = 0;
    if (in->end - in->at >= 2 && (*in->at == '.' || *in->at == ',') && is_digit(in->at[1])) {
        in->at++;
        for (uint64_t unit = BP_NS_PER_SEC / 10; is_digit(peek(in)); unit /= 10) {
            fraction_ns += (uint64_t)(*in->at++ - '0') * unit;
        }
    }
    return fraction_ns;
}

static bool take_clock(scan *in, bp_civil_time *civil, uint64_t *ret_fraction_ns) {
    if (!take_number(in, 2, 0, 23, &civil->hour) || !take_any(in, ":") ||
        !take_number(in, 2, 0, 59, &civil->minute) || !take_any(in, ":") ||
        !take_number(in, 2, 0, 60, &civil->second)) {
        return false;
    }
    *ret_fraction_ns = take_fraction(in);
    return true;
}

/* A zone, after a blank only in a form that is nothing else. */
static bool take_zone(scan *in, int32_t *ret_secs) {
    scan next = *in;
    unsigned hours, minutes = 0;
    bool has_blank = take_any(&next, " ");
    bool is_utc = !has_blank && take_any(&next, "Zz");
    if (!is_utc && next.end - next.at >= 3 &&
        (memcmp(next.at, "UTC", 3) == 0 || memcmp(next.at, "GMT", 3) == 0)) {
        next.at += 3;
        is_utc = true;
    }
    if (is_utc) {
        *ret_secs = 0;
    } else {
        bool is_west = peek(&next) == '-';
        if (!take_any(&next, "+-") || !take_number(&next, 2, 0, 14, &hours)) {
            return false;
        }
        bool has_colon = take_any(&next, ":");
        if (!take_number(&next, 2, 0, 59, &minutes) && (has_colon || has_blank)) {
            return false;
        }
        *ret_secs = (int32_t)(hours * 3600 + minutes * 60) * (is_west ? -1 : 1);
    }
    if (is_digit(peek(&next)) || is_letter(peek(&next))) {
        return false;
    }
    *in = next;
    return true;
}

/* A time as far as a line has it. */
typedef struct parts {
    bp_civil_time civil;
    uint64_t fraction_ns;
    int32_t zone_secs;
    bool has_year, has_date, has_zone;
} parts;

static bool take_iso(scan *in, parts *out) {
    if (!take_year(in, &out->civil)) {
        return false;
    }
    char between = peek(in);
    if (!take_any(in, "-/.") || !take_number(in, 2, 1, 12, &out->civil.month) ||
        peek(in) != between || !take_any(in, "-/.") ||
        !take_number(in, 2, 1, 31, &out->civil.day) || !take_any(in, "Tt _")) {
        return false;
    }
    out->has_year = out->has_date = true;
    return take_clock(in, &out->civil, &out->fraction_ns);
}

static bool take_syslog(scan *in, parts *out) {
    unsigned weekday;
    if (take_name(in, "MonTueWedThuFriSatSun", &weekday) && !take_any(in, " ")) {
        return false;
    }
    if (!take_month(in, &out->civil.month) || !take_any(in, " ") || !take_day(in, &out->civil) ||
        !take_any(in, " ") || !take_clock(in, &out->civil, &out->fraction_ns)) {
        return false;
    }
    scan next = *in;
    out->has_date = true;
    out->has_year = take_any(&next, " ") && take_year(&next, &out->civil) &&
                    !is_digit(peek(&next)) && !is_letter(peek(&next));
    *in = out->has_year ? next : *in;
    return true;
}

static bool take_web(scan *in, parts *out) {
    out->has_year = out->has_date = true;
    return take_number(in, 2, 1, 31, &out->civil.day) && take_any(in, "/") &&
           take_month(in, &out->civil.month) && take_any(in, "/") && take_year(in, &out->civil) &&
           take_any(in, ":") && take_clock(in, &out->civil, &out->fraction_ns);
}

/* The letter is the level, and stays in the line. */
static bool take_glog(scan *in, parts *out) {
    out->has_date = true;
    return take_any(in, "DIWEF") && take_number(in, 2, 1, 12, &out->civil.month) &&
           take_number(in, 2, 1, 31, &out->civil.day) && take_any(in, " ") &&
           take_clock(in, &out->civil, &out->fraction_ns);
}

static bool take_android(scan *in, parts *out) {
    out->has_date = true;
    return take_number(in, 2, 1, 12, &out->civil.month) && take_any(in, "-") &&
           take_number(in, 2, 1, 31, &out->civil.day) && take_any(in, " ") &&
           take_clock(in, &out->civil, &out->fraction_ns);
}

static bool take_clock_alone(scan *in, parts *out) {
    return take_clock(in, &out->civil, &out->fraction_ns);
}

/* Seconds since 1970, or a smaller unit of which they have so many digits. */
static bool take_epoch(scan *in, uint64_t *ret_wall_ns) {
    static const uint64_t units[] = {[10] = 1000000000, [13] = 1000000, [16] = 1000, [19] = 1};
    uint64_t value = 0;
    size_t digits = 0;
    for (; is_digit(peek(in)) && digits < 20; digits++) {
        value = value * 10 + (uint64_t)(*in->at++ - '0');
    }
    if (digits >= sizeof units / sizeof units[0] || units[digits] == 0 || value == 0 ||
        value > UINT64_MAX / 2 / units[digits]) {
        return false;
    }
    *ret_wall_ns = value * units[digits] + (digits == 10 ? take_fraction(in) : 0);
    return true;
}

/* Nanoseconds since 1970, with what the line leaves out from the clock; 0 for none. */
static uint64_t complete(parts *out, const bp_line_clock *clock) {
    static const uint64_t day_secs = 86400;
    uint64_t until_secs = clock->until_ns / BP_NS_PER_SEC;
    int32_t zone_secs = out->has_zone ? out->zone_secs : clock->zone_secs;
    if (!out->has_year) {
        if (until_secs < 400 * day_secs) {
            return 0; /* the year before must be one of the clock's */
        }
        uint64_t latest_secs = until_secs + (out->has_date ? day_secs : 3600);
        bp_civil_time latest =
            bp_clock_civil((uint64_t)((int64_t)latest_secs + zone_secs) * BP_NS_PER_SEC);
        out->civil.year = latest.year;
        if (!out->has_date) {
            out->civil.month = latest.month;
            out->civil.day = latest.day;
        }
        if ((int64_t)bp_clock_secs(out->civil) - zone_secs > (int64_t)latest_secs) {
            if (out->has_date) {
                out->civil.year--;
            } else {
                zone_secs += (int32_t)day_secs;
            }
        }
    }
    int64_t secs = (int64_t)bp_clock_secs(out->civil) - zone_secs;
    return secs <= 0 ? 0 : (uint64_t)secs * BP_NS_PER_SEC + out->fraction_ns;
}

static bool take_parts(scan *in, const bp_line_clock *clock, bp_line_time *ret_time) {
    static bool (*const forms[])(scan *, parts *) = {take_iso,  take_syslog,  take_web,
                                                     take_glog, take_android, take_clock_alone};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        scan next = *in;
        parts out = {0};
        if (!forms[i](&next, &out)) {
            continue;
        }
        out.has_zone = take_zone(&next, &out.zone_secs);
        uint64_t wall_ns = complete(&out, clock);
        if (wall_ns == 0) {
            return false;
        }
        /* A letter of glog stays, to be read as a level. */
        in->at = forms[i] == take_glog ? in->at : next.at;
        *ret_time =
            (bp_line_time){wall_ns, !out.has_zone, !out.has_date, out.has_date && !out.has_year};
        return true;
    }
    return take_epoch(in, &ret_time->wall_ns);
}

bool bp_line_time_read(const char *line, size_t line_bytes, const bp_line_clock *clock,
                       bp_line_time *ret_time, size_t *ret_used) {
    scan in = {line, line + line_bytes};
    bp_line_time time = {0};
    if (take_any(&in, "<")) {
        while (is_digit(peek(&in))) {
            in.at++;
        }
        if (!take_any(&in, ">")) {
            return false;
        }
        if (in.end - in.at > 2 && memcmp(in.at, "1 ", 2) == 0) {
            in.at += 2;
        }
    }
    bool is_bracketed = take_any(&in, "[(");
    const char *start = in.at;
    if (!take_parts(&in, clock, &time) || (is_bracketed && !take_any(&in, "])"))) {
        return false;
    }
    if (in.at > start && !is_bracketed && (is_digit(peek(&in)) || is_letter(peek(&in)))) {
        return false;
    }
    while (in.at > start && take_any(&in, " \t")) {}
    *ret_time = time;
    *ret_used = (size_t)(in.at - line);
    return true;
}

bool bp_line_zone_read(const char *text, int32_t *ret_secs) {
    scan in = {text, text + strlen(text)};
    int32_t secs;
    if (text[0] == ' ' || !take_zone(&in, &secs) || in.at != in.end) {
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
    const char *letter = line_bytes == 0 ? NULL : memchr(letters, line[0], sizeof letters - 1);
    scan in = {line + (letter != NULL), line + line_bytes};
    unsigned day;
    return letter != NULL && take_number(&in, 4, 101, 1231, &day) && peek(&in) == ' '
               ? levels[letter - letters]
               : 0;
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
