/*
 * The log records of a report, and the lines of its log files, merged in one time line.
 *
 * All logs are read at once, each up to the line that is next, so memory depends on the number of
 * logs and not on their size: under 1 MiB for each.
 */
#ifndef BP_PRINT_LOGS_H
#define BP_PRINT_LOGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "entries/line_time.h"
#include "entries/report_file.h"

enum {
    BP_LOG_SOURCE_MAX = 48,           /* further logs are not read */
    BP_LOG_LINE_MAX_BYTES = 64 * 1024 /* a longer line is cut */
};

/* A log, and what is to be said of it when all is read. */
typedef struct bp_log_source {
    const char *entry; /* the report's */
    bool is_ring;      /* log records of bugpack, and not a text */
    bool has_times, lacks_zone, lacks_date, lacks_year;
    uint64_t line_count, cut_count;
    bugpack_error error; /* why it was not read to its end; the status is OK if it was */
} bp_log_source;

/* A record or a line; the texts are valid until the next one is read, and end in a NUL, which may
 * also be within them. */
typedef struct bp_log_line {
    const bp_log_source *source;
    uint64_t wall_ns; /* 0: not known. That of the line before for one that continues it. */
    int level;        /* likewise */
    bool continues;   /* a line of a text without a time, behind one that has it */
    bool is_cut;
    const char *channel; /* "" for none */
    const char *message; /* without the time at its start */
    size_t message_bytes;
} bp_log_line;

typedef struct bp_logs bp_logs;

/*
 * Opens the logs of a report: logs.jsonl and what is below logs/, also of each process. Of them at
 * most `max_bytes` are read, and of a log that is longer nothing. The report outlives it.
 * NO_MEMORY.
 */
bugpack_status bp_logs_open(const bp_report_file *report, const bp_line_clock *clock,
                            uint64_t max_bytes, bp_logs **ret_logs, bugpack_error *error);
/* NULL is fine. */
void bp_logs_close(bp_logs *logs);

/*
 * The next line by its time; false when there is none. The order within one log is never changed;
 * lines of one time are in the order of the logs. Lines before the first time of their log come
 * first, so a log without times comes first as a whole.
 */
bool bp_logs_next(bp_logs *logs, bp_log_line *ret_line);

/* The logs of the report, in the order of the archive. */
size_t bp_logs_count(const bp_logs *logs);
const bp_log_source *bp_logs_source(const bp_logs *logs, size_t index);

/* Appends a line as JSON (docs/schema/log-line.schema.json), with its newline. `trigger_ns`: 0
 * where it is not known. */
void bp_log_line_print(const bp_log_line *line, uint64_t trigger_ns, bp_buffer *out);

#endif
