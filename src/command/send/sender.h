/*
 * Sends what is in the queue and may be sent now.
 */
#ifndef BP_SEND_SENDER_H
#define BP_SEND_SENDER_H

#include <stdbool.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "send/deliver.h"
#include "send/destination.h"
#include "send/queue.h"

/* How far a report has come. */
typedef enum bp_sender_outcome {
    BP_SENDER_BEGUN, /* `progress` is about this one from here on */
    BP_SENDER_SENT,
    BP_SENDER_DEFERRED, /* it is tried again at `next_secs` of the item */
    BP_SENDER_HELD,     /* until somebody changes something */
    BP_SENDER_STOPPED   /* it was refused, waited too long or is too large */
} bp_sender_outcome;

typedef struct bp_sender_event {
    bp_sender_outcome outcome;
    const bp_send_destination *destination;
    const char *name, *text; /* of the report's file; why, or where it is */
    const bp_send_item *item;
    const char *report_id; /* "" if the report was not opened */
    uint64_t http_status;  /* 0: none */
    bool is_news;          /* it was tried now */
} bp_sender_event;

typedef struct bp_sender {
    const bp_send_settings *settings;
    const char *only; /* the one destination; NULL: all */
    bool has_consent; /* a person has agreed to everything that is sent now */
    bool tries_all;   /* also what waits for its time, or was stopped */
    void (*say)(void *context, const bp_sender_event *event);
    bp_send_progress *progress; /* with the same context */
    void *context;
} bp_sender;

/* Nobody else may send meanwhile (bp_send_queue_lock). A report is removed when its destination has
 * it, and in no other case. CANCELLED by `progress`; IO of the queue. */
bugpack_status bp_sender_run(const bp_sender *sender, const bp_send_queue *queue,
                             bugpack_error *error);

#endif
