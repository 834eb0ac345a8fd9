/*
 * metadata.json: which report this is.
 */
#ifndef BP_MODEL_METADATA_H
#define BP_MODEL_METADATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <bugpack/error.h>
#include <bugpack/report.h>
#include <bugpack/session.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/id.h"
#include "model/signature.h"

/* Rises when a published key is renamed, removed or changes meaning. */
#define BP_SCHEMA_NUMBER 2

/* The <kind> of a report's file name and the report_type of its metadata. */
typedef enum bp_report_kind {
    BP_REPORT_BUGREPORT,
    BP_REPORT_PEDANTIC,
    BP_REPORT_DISCONNECT,
    BP_REPORT_NOTIFICATION,
    BP_REPORT_AUTO_SNAPSHOT,
    BP_REPORT_HANG,
    BP_REPORT_CONDITION,
    BP_REPORT_CRASH,
    BP_REPORT_EXIT
} bp_report_kind;
const char *bp_report_kind_name(bp_report_kind kind);

/* The process a report is about. */
typedef struct bp_metadata_target {
    pid_t pid;                    /* 0: it is the one that writes the report, or none */
    char name[64];                /* "": not known */
    char session_id[BP_ID_BYTES]; /* of its own session, whose records these are; "": none */
} bp_metadata_target;

/* The end of a process. */
typedef struct bp_exit {
    int32_t status;         /* its exit status; without meaning if there is a signal */
    int32_t signal;         /* the number of the signal that ended it; 0: none did */
    bool has_core;          /* the signal made the system write a core */
    char not_executed[256]; /* why there was no process: the command could not be executed; "" */
    /* The CPU time of the process, user and system, and of the children that it waited for, as
     * wait4(2) has it; 0: not known. It is exact, where the rest of an ended process has only clock
     * ticks. */
    uint64_t cpu_ns;
} bp_exit;

/* A tag of a session (bugpack_set_tag); the value may hold any bytes but NUL. */
typedef struct bp_tag {
    char key[BUGPACK_TAG_KEY_MAX_BYTES + 1];
    char value[BUGPACK_TAG_VALUE_MAX_BYTES + 1];
} bp_tag;

/* Strings are borrowed; NULL and "" leave the key out. */
typedef struct bp_metadata {
    char report_id[BP_ID_BYTES];
    char session_id[BP_ID_BYTES];
    uint64_t sequence; /* 1 for the first report of a session; 0 leaves the key out */
    const char *app_name, *app_version, *app_build_id;
    const char *platform, *arch, *kernel;
    const char *machine; /* its name, where it was asked for */
    pid_t pid;           /* of the process that writes the report */
    /* Of the process that the report is about; 0 leaves it out. */
    uint64_t started_wall_ns;
    uint64_t target_uptime_ns; /* of a target, at `written` */
    bp_report_kind kind;
    const char *session_end; /* "died": the session was not closed */
    const char *gap_key, *channel, *description;
    const struct bp_condition_truth *condition; /* model/condition.h; NULL: none */
    const bugpack_region *region;               /* of the screenshot; NULL for none */
    const bp_exit *exit;                        /* NULL: not known */
    bool is_core_unknown;                       /* whether `exit` dumped one */
    /* Without a session, session_opened is all zero, and its uptimes are left out. */
    bp_instant session_opened, triggered, written;
    bp_metadata_target target;
    bool is_about_none;               /* about no process at all */
    const bp_metadata_target *others; /* further processes that the report is about */
    size_t other_count;
    const bp_tag *tags;
    size_t tag_count;
    uint64_t suppressed_count;     /* reports of the same that limits.per_signature kept back */
    const bp_signature *signature; /* NULL: that of the gap or the condition */
} bp_metadata;

/* Appends metadata.json. A session id of "" is left out. */
bugpack_status bp_metadata_print(const bp_metadata *metadata, bp_buffer *out, bugpack_error *error);

#endif
