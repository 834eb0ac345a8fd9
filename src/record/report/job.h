/*
 * A report job: one report on its way from its trigger to its zip.
 *
 * A job does not know its trigger. The differences are a table of functions, its type, and a
 * payload that only those functions use.
 */
#ifndef BP_REPORT_JOB_H
#define BP_REPORT_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/report.h>

#include "base/cancel.h"
#include "base/clock.h"
#include "model/metadata.h"
#include "recorder/snapshot.h"
#include "recorder/window.h"
#include "report/bundle.h"
#include "report/context.h"
#include "report/destination.h"
#include "report/hosted.h"
#include "report/ring_entries.h"
#include "report/runner.h"

typedef struct bp_job bp_job;

/* One kind of job, and what it does differently. Every function is optional. */
typedef struct bp_job_type {
    bp_report_kind kind;
    bool is_manual;  /* a person or the API asked: the option when_busy applies */
    bool is_shared;  /* one report can serve several manual requests */
    bool is_single;  /* a job gets the result of one of this type and limit that has not ended */
    bool is_strict;  /* an entry that cannot be written fails the report */
    bool yields;     /* comes after other jobs, in a queue without bound; hurries at a close */
    bool is_limited; /* limits.per_signature applies: to its kind with its key, or name_detail */
    bool borrows_snapshot; /* the snapshot and the notes belong to somebody else */
    /* Worker: does this instead of writing a report. The job needs no snapshot. The runner is the
     * worker's. */
    void (*run)(bp_job *job, bp_runner *runner);
    /* Worker: after the window, before what the rings hold and the own entries are added; without
     * this one they are added before the window. */
    void (*take_latecomers)(bp_job *job);
    /* Snapshot thread: provides job->snapshot instead of copying the rings. */
    bugpack_status (*take_snapshot)(bp_job *job, bugpack_error *error);
    /* Snapshot thread: the end of a job that was submitted for its snapshot alone; owns it. */
    void (*snapshotted)(bp_job *job);
    /* Worker: whether the job brings this entry itself, instead of the provider of that name. */
    bool (*brings_entry)(const bp_job *job, const char *name);
    /* Worker: adds the job's own entries. Fails only when the bundle cannot take them. */
    bugpack_status (*add_entries)(bp_job *job, bp_bundle *bundle, bugpack_error *error);
    /* Worker: changes what metadata.json says, and its line of the manifest. */
    void (*describe)(const bp_job *job, bp_metadata *metadata, bugpack_writer *writer);
    /* Worker: the report is published, or failed; before the host is told. */
    void (*settled)(const bp_job *job, const bugpack_report_result *result);
    /* Any thread: frees what the payload refers to, and gives back what it borrowed. */
    void (*free)(bp_job *job);
} bp_job_type;

/* The progress of the copy of the rings; under the queue's lock. */
typedef enum bp_job_snapshot_state {
    BP_JOB_SNAPSHOT_DUE,
    BP_JOB_SNAPSHOT_LATE, /* an early copy failed: due once the worker has the job */
    BP_JOB_SNAPSHOT_RUNNING,
    BP_JOB_SNAPSHOT_DONE
} bp_job_snapshot_state;

struct bp_job {
    const bp_job_type *type;
    void *payload;

    /* Fixed at the trigger. Strings are of the payload, or of the session. */
    bp_instant triggered;
    bp_cancel_token token;
    bp_window *window; /* of the metrics; NULL: the worker takes both samples */
    bp_trigger_note *notes[BP_TRIGGER_NOTE_MAX];
    bp_tag_set *tags;          /* NULL for none */
    const char *channel;       /* for metadata.json and the providers; NULL for none */
    bp_channel_choice traffic; /* of which the report has the messages */
    const char *key;           /* its key among the triggers in the manifest; NULL for none */
    const char *name_detail;   /* of the file's name; NULL for none */
    const char *output_path;   /* absolute; NULL for a standard name in `dir` */
    uint64_t max_zip_bytes;    /* smaller than the session's limit; 0: only that holds */
    const bp_report_dir *dir;
    bugpack_report_callback *on_done;
    void *on_done_context;

    /* The queue's. */
    uint64_t ticket; /* 1, 2, … in the session; 0 for none */
    bp_job *next;    /* in the queue, or among those that joined the same job */
    bp_job *joined;  /* get its result too */
    bp_job_snapshot_state snapshot_state;
    uint32_t percent; /* the worker's */

    /* Filled by the snapshot thread, before the state says DONE. */
    bugpack_error snapshot_error;
    bp_destination destination;
    bp_snapshot *snapshot;
    bp_hosted *hosted; /* the target's own session, whose rings the snapshot has; NULL: none */
};

/*
 * A job of this instant. Where there is a metrics history it asks for the window that ends now.
 * Its payload of `payload_bytes` is a part of it and 0; with 0 bytes the caller may set another.
 * NULL without memory. Any thread.
 */
bp_job *bp_job_new(const bp_report_context *context, const bp_job_type *type, size_t payload_bytes);
void bp_job_free(bp_job *job);
/* Frees what is in it, where the job itself is the caller's. */
void bp_job_release(bp_job *job);

/* Frees the notes of the triggers. */
void bp_job_drop_notes(bp_job *job);

/*
 * Opens the destination, copies the rings and fills the snapshot's fields. `spare_bytes` must stay
 * free on the disk besides what the report needs. Snapshot thread.
 */
void bp_job_take_snapshot(const bp_report_context *context, bp_job *job, uint64_t spare_bytes);

/* Undoes it. */
void bp_job_drop_snapshot(bp_job *job);

#endif
