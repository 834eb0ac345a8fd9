/*
 * What every report of a session has in common. The session owns all of it, and it outlives the
 * queue.
 */
#ifndef BP_REPORT_CONTEXT_H
#define BP_REPORT_CONTEXT_H

#include "base/clock.h"
#include "base/id.h"
#include "platform/machine.h"
#include "profile/profile_ring.h"
#include "recorder/recorder.h"
#include "report/config.h"
#include "report/events.h"
#include "report/provider_list.h"
#include "report/redaction.h"
#include "report/subject.h"
#include "report/tags.h"
#include "report/trigger_list.h"

typedef struct bp_identity {
    char id[BP_ID_BYTES];
    bp_instant opened;
    bp_machine_identity machine; /* its name is "" unless a report may have it */
} bp_identity;

typedef struct bp_report_context {
    const bp_config *config;
    const bp_identity *identity;
    bp_recorder *recorder;
    bp_provider_list *providers;
    bp_subject *subject;
    bp_events *events;
    bp_redaction *redaction;
    bp_profile_ring *profile_ring; /* NULL: profiles are taken when they are asked for, or not */
    bp_tags *tags;                 /* NULL: none can be set */
    struct bp_job_queue *jobs;     /* this and the next for the triggers */
    bp_monitor *monitor;           /* calls the tick of each */
    /* The triggers' rows for the manifest. */
    bp_note_triggers *note_triggers;
    bp_list_triggers *list_triggers;
    void *triggers;
} bp_report_context;

#endif
