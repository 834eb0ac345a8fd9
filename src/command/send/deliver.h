/*
 * One attempt to bring one report to one destination.
 */
#ifndef BP_SEND_DELIVER_H
#define BP_SEND_DELIVER_H

#include <stdbool.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "send/destination.h"
#include "send/http.h"
#include "send/report.h"

typedef enum bp_send_outcome {
    BP_SEND_SENT,     /* the destination has it */
    BP_SEND_LATER,    /* it may take it another time */
    BP_SEND_REFUSED,  /* it will not take it */
    BP_SEND_CANCELLED /* by `progress` */
} bp_send_outcome;

typedef struct bp_send_result {
    bp_send_outcome outcome;
    long http_status;          /* 0: none */
    uint64_t retry_after_secs; /* 0: not said */
    bool is_down;              /* another report would not arrive now either */
    char text[512];            /* why it was not sent; where it was, for a directory: its path */
} bp_send_result;

/* It has no limits of its own: bp_send_destination's are the caller's to keep. */
void bp_send_deliver(const bp_send_destination *destination, const bp_send_report *report,
                     bp_send_progress *progress, void *context, bp_send_result *ret_result);

#endif
