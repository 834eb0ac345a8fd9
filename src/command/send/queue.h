/*
 * Reports that wait to be sent: a directory of mode 0700 with one for each destination, where
 * ID-NAME.zip is a report and ID-NAME.zip.json says what became of it so far. A report is in the
 * queue exactly as long as its zip is there, so whatever is interrupted loses none.
 */
#ifndef BP_SEND_QUEUE_H
#define BP_SEND_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "send/destination.h"
#include "send/report.h"

typedef struct bp_send_queue {
    int fd, lock_fd; /* -1: closed */
    const char *path;
} bp_send_queue;

/* Makes the directory if it is missing, and syncs it; DENIED if others can look into it. Close it
 * also after a failure, which unlocks it. */
bugpack_status bp_send_queue_open(const char *path, bp_send_queue *queue, bugpack_error *error);
void bp_send_queue_close(bp_send_queue *queue);

/* Becomes the one sender. `ret_is_locked` is false if another process is. */
bugpack_status bp_send_queue_lock(bp_send_queue *queue, bool *ret_is_locked, bugpack_error *error);

/*
 * Adds a report, by a hard link to `path` or a copy; it is on the disk then. One that is there
 * already is not added again, but gets the consent. INVALID where the queue has another file with
 * the id of the report. LIMIT where the destination has `max_count` reports or `max_bytes` bytes of
 * them.
 */
bugpack_status bp_send_queue_add(const bp_send_queue *queue, const bp_send_settings *settings,
                                 const char *destination, const char *path,
                                 const bp_send_report *report, bool has_consent,
                                 bugpack_error *error);

/* A report there and its state. Times are since 1970. */
typedef struct bp_send_item {
    char name[256]; /* of the zip */
    uint64_t bytes, queued_us;
    uint64_t attempt_count;
    uint64_t next_secs; /* not before */
    bool has_consent, is_stopped;
    char answer[512]; /* the last one, or why it is stopped */
} bp_send_item;

/* The state of a destination. */
typedef struct bp_send_state {
    uint64_t next_secs;
    uint64_t day, day_bytes; /* what was sent since 1970 + `day` days */
} bp_send_state;

/* The reports of a destination, oldest first; a malloc'ed array. None where it has no directory. */
bugpack_status bp_send_queue_list(const bp_send_queue *queue, const char *destination,
                                  bp_send_item **ret_items, size_t *ret_count,
                                  bugpack_error *error);
/* All zero where nothing is known. */
void bp_send_queue_load(const bp_send_queue *queue, const char *destination,
                        bp_send_state *ret_state);

/* Replace what is known, in one step. The item gets the consent that was given since it was listed.
 */
bugpack_status bp_send_queue_save_item(const bp_send_queue *queue, const char *destination,
                                       bp_send_item *item, bugpack_error *error);
bugpack_status bp_send_queue_save(const bp_send_queue *queue, const char *destination,
                                  const bp_send_state *state, bugpack_error *error);

/* Removes a report that has arrived. */
bugpack_status bp_send_queue_remove(const bp_send_queue *queue, const char *destination,
                                    const bp_send_item *item, bugpack_error *error);

#endif
