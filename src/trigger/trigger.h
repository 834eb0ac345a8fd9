/*
 * What a trigger is: something that makes report jobs without a person asking.
 */
#ifndef BP_TRIGGER_TRIGGER_H
#define BP_TRIGGER_TRIGGER_H

#include <stdint.h>

#include "recorder/monitor.h"
#include "report/queue.h"

/* What a trigger works with; borrowed, and there until the trigger is freed. */
typedef struct bp_trigger_context {
    const bp_report_context *report;
    bp_job_queue *jobs;
    bp_monitor *monitor; /* calls every trigger's tick */
} bp_trigger_context;

/* All functions but `open` are optional. */
typedef struct bp_trigger {
    /* Leaves `*ret_self` NULL where nothing else is to be called, as when the settings turn the
     * trigger off. */
    bugpack_status (*open)(const bp_trigger_context *context, void **ret_self,
                           bugpack_error *error);
    /* Notes what it has come to so far; NULL without memory. Any thread. */
    bp_trigger_note *(*note)(void *self);
    /* Lists that for the manifest of `job`, as of the note. Worker. */
    bugpack_status (*list)(void *self, const bp_trigger_note *note, const bp_job *job,
                           bp_trigger_list *list, bugpack_error *error);
    /* Does what is due and returns when it wants to be called again; UINT64_MAX: after a wake. */
    uint64_t (*tick)(void *self, uint64_t now_ns);
    /* The session closes: no job must be made from now on. */
    void (*stop)(void *self);
    /* The queue has stopped. Frees the trigger, unless it has a `free`; not optional then. */
    void (*close)(void *self);
    /* Frees what calls on a closed session still look at. */
    void (*free)(void *self);
} bp_trigger;

/* The triggers of every session. A new one is a file and one row. */
#define BP_TRIGGERS(ROW)                                                                           \
    ROW(disconnect)                                                                                \
    ROW(auto_snapshot)                                                                             \
    ROW(retained)                                                                                  \
    ROW(pedantic)                                                                                  \
    ROW(crash)                                                                                     \
    ROW(recovery)                                                                                  \
    ROW(ask)                                                                                       \
    ROW(ring_loss)

#define BP_DECLARE_TRIGGER(name) extern const bp_trigger bp_trigger_##name;
BP_TRIGGERS(BP_DECLARE_TRIGGER)
#undef BP_DECLARE_TRIGGER

#endif
