/*
 * The reading of one process of a report, for facts/facts.c.
 */
#ifndef BP_FACTS_PROCESS_READER_H
#define BP_FACTS_PROCESS_READER_H

#include <bugpack/log.h>

#include "base/buffer.h"
#include "diagnose/evidence.h"
#include "entries/call_tree.h"
#include "facts/thread_facts.h"

enum {
    BP_READER_RECORD_MAX = 12,
    BP_READER_CHANNEL_MAX = 64,
    BP_READER_TAIL_BYTES = 64 << 10, /* of a text log */
    BP_READER_LEVELS = BUGPACK_LEVEL_FATAL + 1
};

typedef struct bp_log_row {
    uint64_t wall_ns; /* 0: not known */
    int level;
    char channel[64], message[512];
} bp_log_row;

typedef struct bp_channel_row {
    char name[64];
    uint64_t messages[2], bytes[2];       /* sent, received */
    uint64_t recorded_count;              /* with those that are not in the report; 0: not known */
    uint64_t first_wall_ns, last_wall_ns; /* the earliest and the latest; 0: not known */
} bp_channel_row;

/* The reading of one process of a report; what is of the report is not filled for a further one. */
typedef struct bp_process_reader {
    bp_evidence evidence;
    bool is_interesting;   /* the first, and one with a finding or a thread of interest */
    uint64_t *left_bytes;  /* what may still be read of the report; borrowed */
    bp_thread_names names; /* of all threads that have one; busiest first */
    bp_sample *samples;    /* oldest first */
    size_t sample_count, sample_capacity;
    bp_buffer log_tail; /* the end of the first text log, where there are no log records */
    char log_name[64];
    bool wants_output; /* of the process, as it failed */
    uint64_t level_counts[BP_READER_LEVELS];
    bp_log_row records[BP_READER_RECORD_MAX]; /* the newest warnings and errors, a ring */
    uint64_t record_count;                    /* of all; the newest is at count - 1 */
    bp_channel_row channels[BP_READER_CHANNEL_MAX];
    size_t channel_count;
    uint64_t other_message_count; /* of channels beyond the maximum */
    bp_call_tree profile;         /* empty without a profile.folded that can be read */
    bp_machine *machine;          /* NULL: there is no host-threads.json that can be read */
} bp_process_reader;

/* Reads and judges a process, whose evidence names the report, the folder and the findings; with
 * `is_brief`, and where a further process is of no interest, without stacks and profile. NO_MEMORY.
 * The caller releases it, whatever is returned. */
bugpack_status bp_process_read(bp_process_reader *reader, bool is_brief, bugpack_error *error);
void bp_process_release(bp_process_reader *reader);

/* The number of the oldest record that is kept. */
uint64_t bp_reader_first_record(const bp_process_reader *reader);

#endif
