/*
 * Conditions: what of a process leads to a report, as text (bugpack/condition.h has the language).
 *
 * A condition is judged by samples of the process, whose times are given, and by lines of its log.
 */
#ifndef BP_MODEL_CONDITION_H
#define BP_MODEL_CONDITION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/condition.h>
#include <bugpack/error.h>

#include "json/json.h"
#include "platform/process_facts.h"

/* Samples that a condition needs beside the counters of every sample. */
enum {
    BP_CONDITION_NEEDS_FILES = 1,
    BP_CONDITION_NEEDS_STATE = 2,
    BP_CONDITION_NEEDS_LOG = 4, /* its lines, or whether there were any */
    BP_CONDITION_NEEDS_SAMPLES = 8
};

typedef struct bp_condition bp_condition;

/* Errors: INVALID, with what is wrong and what may have been meant; NO_MEMORY. */
bugpack_status bp_condition_new(const char *text, bp_condition **ret_condition,
                                bugpack_error *error);
void bp_condition_free(bp_condition *condition); /* NULL is fine */

unsigned bp_condition_needs(const bp_condition *condition);
const char *bp_condition_text(const bp_condition *condition);

/* The first word of its text: "rss". Static. */
const char *bp_condition_subject(const bp_condition *condition);

/* One sample. What is not known changes no condition about it. */
typedef struct bp_condition_sample {
    uint64_t taken_ns; /* monotonic */
    uint64_t due_ns;   /* when it was to be taken: what comes much later was time without anybody
                          who looked, and does not count */
    uint64_t cpu_ns;   /* used in all */
    bp_known_uint rss_bytes, thread_count, file_count;
    char state;     /* as in proc(5); 0: not known */
    bool is_active; /* it has printed or logged something since the last sample */
    bool is_shared; /* bugpack has used the process since the last sample: cpu_ns says little */
} bp_condition_sample;

/* The values at which a condition became true. */
typedef struct bp_condition_truth {
    char text[BUGPACK_CONDITION_MAX_BYTES + 1];
    const char *unit;      /* of the value: "percent", "bytes", "count"; NULL: it has none */
    double value;          /* at that sample; of a condition that grows, by how much it did */
    bool grows;            /* within `lasted_ns` */
    uint64_t lasted_ns;    /* for how long it was seen to hold; 0: at that sample alone */
    uint64_t log_sequence; /* of the record in the log; 0: none */
} bp_condition_truth;

/*
 * Looks at the next sample. True when the condition becomes true by it: it must have been false
 * since it was true last. A sample that follows the last one within a quarter of a second is passed
 * over.
 */
bool bp_condition_look(bp_condition *condition, const bp_condition_sample *sample,
                       bp_condition_truth *ret_truth);

/* The same for a record of the log. A pattern that needs too many steps for it does not match. */
bool bp_condition_look_at_line(bp_condition *condition, const char *line, size_t line_bytes,
                               uint64_t sequence, bp_condition_truth *ret_truth);

/* For who wants to know that one has become true, and whether it leads to a report. */
typedef void bp_condition_callback(const bp_condition_truth *truth, bool has_report, void *context);

/* The value in words: "2.1 GiB", "99.6 % of a CPU; true for 10.0 s". */
enum { BP_CONDITION_VALUE_BYTES = 96 };
void bp_condition_print_value(const bp_condition_truth *truth, char out[BP_CONDITION_VALUE_BYTES]);

/* Adds the member `condition` of metadata.json; NULL adds none. */
void bp_condition_add(bp_json *json, const bp_condition_truth *truth);

#endif
