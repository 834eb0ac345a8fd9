/*
 * The time and the level that a line of a text log begins with, in the forms that are common.
 */
#ifndef BP_ENTRIES_LINE_TIME_H
#define BP_ENTRIES_LINE_TIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Completes times of lines. */
typedef struct bp_line_clock {
    uint64_t until_ns; /* no line is later by over a day; 0: not known */
    int32_t zone_secs; /* east of UTC, of times that name no zone */
} bp_line_clock;

/* `lacks_…`: it was taken from the clock. */
typedef struct bp_line_time {
    uint64_t wall_ns;
    bool lacks_zone, lacks_date, lacks_year;
} bp_line_time;

/*
 * Reads a time at the start of a line, after an RFC 5424 priority or an opening bracket. `ret_used`
 * gets the length of what it took, with a closing bracket and the blanks after it.
 *
 *   2026-11-21T00:36:51.123456Z    RFC 3339; also with a blank, '/' and ',', "+0100", no zone
 *   Nov 21 00:36:51                syslog; also with a weekday before it or a year behind it
 *   21/Nov/2026:00:36:51 +0000     web servers
 *   I1121 00:36:51.123456          glog
 *   11-21 00:36:51.123             Android
 *   1795221411.123456              seconds since 1970; also 13, 16 or 19 digits of a smaller unit
 *   00:36:51.123
 *
 * A time without its year or date is the last such time that is at most a day (of a time without
 * its date: an hour) after `until_ns`; without that it is none. False for what is none, and the
 * outputs are untouched.
 */
bool bp_line_time_read(const char *line, size_t line_bytes, const bp_line_clock *clock,
                       bp_line_time *ret_time, size_t *ret_used);

/* "Z", "+01", "+0100" or "-01:30", all of the text. */
bool bp_line_zone_read(const char *text, int32_t *ret_secs);

/*
 * The level that one of the first words of a line names: in capitals, or before a colon, in
 * brackets or after '='. "WARNING", "[warn]", "error:", "level=debug". 0 for none.
 */
int bp_line_level(const char *line, size_t line_bytes);

/* The level of a name in any case, as loggers write it: "err", "NOTICE", "critical". 0 for none. */
int bp_line_level_of(const char *name, size_t name_bytes);

#endif
