/*
 * A trigger makes report jobs without a person asking.
 */
#ifndef BP_TRIGGER_TRIGGER_H
#define BP_TRIGGER_TRIGGER_H

#include <stdatomic.h>
#include <stdint.h>

#include <bugpack/gap.h>
#include <bugpack/watchdog.h>

#include "model/condition.h"
#include "model/disconnect.h"
#include "platform/task.h"
#include "report/queue.h"
#include "trigger/gaps.h"

/* All functions but `open` are optional. */
typedef struct bp_trigger {
    /* The context is there until the trigger is freed. Leaves `*ret_self` NULL where nothing else
     * is to be called, as when the settings turn the trigger off. */
    bugpack_status (*open)(const bp_report_context *context, void **ret_self, bugpack_error *error);
    /* Notes its counts as they are now; NULL without memory. Any thread. */
    bp_trigger_note *(*note)(void *self);
    /* Lists its occurrences for the manifest of `job`, with the counts of the note. Worker. */
    bugpack_status (*list)(void *self, const bp_trigger_note *note, const bp_job *job,
                           bp_trigger_list *list, bugpack_error *error);
    /* Does what is due and returns when it wants to be called again; UINT64_MAX: after a wake. */
    uint64_t (*tick)(void *self, uint64_t now_ns);
    /* The session closes: no job must be made from now on. */
    void (*stop)(void *self);
    /* The queue has stopped. Frees the trigger, unless it has a `free`. One of both is there. */
    void (*close)(void *self);
    /* Frees what calls on a closed session still look at. */
    void (*free)(void *self);
} bp_trigger;

/* The triggers of every session. A new one is a file and one row. */
#define BP_TRIGGERS(ROW)                                                                           \
    ROW(disconnect)                                                                                \
    ROW(watchdog)                                                                                  \
    ROW(condition)                                                                                 \
    ROW(auto_snapshot)                                                                             \
    ROW(retained)                                                                                  \
    ROW(pedantic)                                                                                  \
    ROW(crash)                                                                                     \
    ROW(recovery)                                                                                  \
    ROW(ask)

#define BP_DECLARE_TRIGGER(name) extern const bp_trigger bp_trigger_##name;
BP_TRIGGERS(BP_DECLARE_TRIGGER)
#undef BP_DECLARE_TRIGGER

/*
 * The triggers of a session together.
 */

#define BP_COUNT_TRIGGER(name) +1
enum { BP_TRIGGER_COUNT = BP_TRIGGERS(BP_COUNT_TRIGGER) };
#undef BP_COUNT_TRIGGER

/* The object of each, by its name and by its row; NULL: it is off, or not open yet. */
#define BP_TRIGGER_OBJECT(name) void *name;
typedef union bp_triggers {
    struct {
        BP_TRIGGERS(BP_TRIGGER_OBJECT)
    };
    void *selves[BP_TRIGGER_COUNT];
} bp_triggers;
#undef BP_TRIGGER_OBJECT

/* Opens all of them, or some on a failure: the end follows in any case. */
bugpack_status bp_triggers_open(bp_triggers *triggers, const bp_report_context *context,
                                bugpack_error *error);

/* The three steps of an end, as bp_trigger has them. */
void bp_triggers_stop(bp_triggers *triggers);
void bp_triggers_close(bp_triggers *triggers);
void bp_triggers_free(bp_triggers *triggers);

/* A bp_note_triggers. */
void bp_triggers_note(void *triggers, bp_trigger_note *ret_notes[BP_TRIGGER_NOTE_MAX]);

/* A bp_list_triggers. */
bugpack_status bp_triggers_list(void *triggers, const bp_job *job, bp_trigger_list *list,
                                bugpack_error *error);

/* A bp_monitor_task: calls each trigger's tick, and returns the earliest time that one wants. */
uint64_t bp_triggers_tick(void *triggers, uint64_t now_ns);

/*
 * The crash handler of a session, and what is kept beside it for the report about a crash.
 */

typedef struct bp_crash_trigger bp_crash_trigger;

/*
 * Makes the page and installs the handler; once is enough. Errors: UNSUPPORTED (another system, a
 * session without a directory), INVALID (about another process), BUSY (another session has the
 * handler), IO, NO_MEMORY. Any thread.
 */
bugpack_status bp_crash_trigger_install(bp_crash_trigger *trigger, bugpack_error *error);

/* Notes what the process is about to die of; nothing without the handler. Any thread. */
void bp_crash_trigger_explain(bp_crash_trigger *trigger, const char *type, const char *message);

/* The tags or the providers have changed: what is kept is stored now, or a second after the last
 * time. Any thread. */
void bp_crash_trigger_note_change(bp_crash_trigger *trigger);

/*
 * Disconnects: one report, and then a cool-down.
 */

/* Counts a disconnect, and makes a report of it unless another one was made shortly before: then
 * BUSY. `self` is the trigger's object; the strings are copied. NO_MEMORY, CLOSED. Any thread. */
bugpack_status bp_disconnect_see(void *self, const bp_loss *cause, bugpack_error *error);

/*
 * Watchdogs: threads that hang (bugpack/watchdog.h, which says what the calls do).
 */

bugpack_status bp_watchdog_open(void *self, bugpack_session *session, const char *name,
                                uint64_t limit_ms, bugpack_watchdog **ret_watchdog,
                                bugpack_error *error);
bugpack_session *bp_watchdog_session(const bugpack_watchdog *watchdog);
void bp_watchdog_close(void *self, bugpack_watchdog *watchdog);

/*
 * Conditions (bugpack/condition.h, which says what the calls do). `self` is the trigger's object.
 */

bugpack_status bp_conditions_add(void *self, const char *text, bugpack_error *error);

/* The monitor: when the next sample of the history is due, and that it was taken; NULL: the process
 * has ended. */
void bp_conditions_expect(void *self, uint64_t due_ns);
void bp_conditions_look(void *self, const bp_task_snapshot *snapshot);

/* The process has printed something that is not in the log. Any thread. */
void bp_conditions_note_output(void *self);

/* Tells who has opened the session, on the monitor's thread: `callback` must not wait. Before a
 * condition is added. */
void bp_conditions_tell(void *self, bp_condition_callback *callback, void *callback_context);

/*
 * Retained snapshots: the rings as they were when the host notified its user, for a report that the
 * user may file a while later.
 *
 * A retained snapshot is a job that is submitted for its snapshot alone. A report borrows it; one
 * that fails gives it back, so that the user can try again until it expires.
 */

/* One snapshot that is on loan to a report. */
typedef struct bp_retained bp_retained;

/* Retains a snapshot of now; its number, or 0. `self` is the trigger's object. Any thread. */
uint64_t bp_retained_add(void *self);

/*
 * Lends the snapshot `number` to `job`, which gets its instant and window. The caller then gives it
 * a type that borrows its snapshot. NO_TICKET when it is not retained any more, or lent already.
 * The job calls the other functions from its type. Any thread.
 */
bugpack_status bp_retained_lend(void *self, uint64_t number, bp_job *job, bp_retained **ret_loan,
                                bugpack_error *error);

/* Gives the job the rings; the reason where there are none. Snapshot thread. */
bugpack_status bp_retained_take_snapshot(bp_retained *loan, bp_job *job, bugpack_error *error);

/* The report is written: the snapshot is used up. Or it failed, and may be tried again. */
void bp_retained_settled(bp_retained *loan, const bugpack_report_result *result);

/* Ends the loan: `job` does not look at the snapshot any more. */
void bp_retained_give_back(bp_retained *loan, const bp_job *job);

/*
 * Pedantic mode: the first occurrence of a gap becomes a report.
 */

/* The table of gaps is also there on a closed session. */
typedef struct bp_pedantic {
    const bp_report_context *context;
    bp_gaps *gaps;
    atomic_bool is_enabled; /* the mode is on. Any thread. */
    atomic_bool is_stopped; /* no gap leads to a report any more */
} bp_pedantic;

/* The host's arguments of one occurrence. */
typedef struct bp_occurrence {
    bugpack_provider_callback *state; /* NULL: nothing */
    void *context;
    const void *bytes; /* of a message without a handler; NULL: none */
    size_t byte_count;
    const char *channel; /* what the message came on; the row may be one of overflow. Of `bytes` */
} bp_occurrence;

/*
 * Counts an occurrence. What comes back and is not BP_GAP_COUNTED has to be followed by
 * bp_pedantic_act or, for BP_GAP_REPORT, by bp_gaps_settle. Also on a closed session. Any thread.
 */
bp_gap_occurrence bp_pedantic_see(bp_pedantic *pedantic, const bp_gap_key *key, bp_gap **ret_gap);

/* Makes the report, or notes that a cap is reached. Any thread, while the session is open. */
void bp_pedantic_act(bp_pedantic *pedantic, bp_gap_occurrence seen, bp_gap *gap,
                     const bp_occurrence *occurrence);

/* Fills all of the state but its size. */
void bp_pedantic_get(bp_pedantic *pedantic, bugpack_pedantic_state *ret_state);

#endif
