/*
 * The settings of a session: checked, with each default filled in and each path absolute. It is
 * made from the host's options where a session opens (session/options.c), and is all that the code
 * below knows of them.
 */
#ifndef BP_REPORT_CONFIG_H
#define BP_REPORT_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <bugpack/session.h>

#include "model/entry.h"
#include "platform/staged_file.h"
#include "recorder/recorder.h"

/* Bounds of some reports of a directory. 0: no bound. */
typedef struct bp_report_bounds {
    uint32_t max_count;
    uint64_t max_bytes;
} bp_report_bounds;

/* A directory that reports are written to. */
typedef struct bp_report_dir {
    const char *path;
    const char *parent;      /* made first if it is missing; NULL for none */
    bool may_create;         /* the last component */
    bool is_private;         /* the library's choice: bp_file_check_private */
    bp_report_bounds bounds; /* of the reports of one kind in it */
} bp_report_dir;

/* Bounds of the reports of a trigger. */
typedef struct bp_report_rate {
    uint32_t cooldown_ms; /* after a report was written; 0: none */
    uint32_t cap;         /* of the whole session; 0: none */
} bp_report_rate;

/* The entries kept in the session's directory for the report about a crash. */
typedef struct bp_stored_scope {
    bool has_process; /* process.json */
    bool has_session; /* the tags, and session.json up to 256 KiB */
    bool has_hosts;   /* whatever the host provides as text or JSON */
} bp_stored_scope;

/* Strings are owned, except those of the host that say so. */
typedef struct bp_config {
    /* The subject of the reports. */
    const char *app_name;                   /* NULL until the session has it from its target */
    const char *app_version, *app_build_id; /* NULL: not given */
    pid_t target_pid;                       /* 0: our own process */
    bool with_descendants;
    bool without_process;

    /* The recorder. */
    const char *recorder_dir; /* NULL: the library chooses */
    bool is_in_memory;
    size_t log_ring_bytes; /* 0: no log */
    bugpack_level log_level;
    uint64_t traffic_budget_bytes; /* 0: no traffic */
    uint32_t history_interval_ms;  /* 0: no history */
    uint32_t profile_hz;           /* 0: no profile */

    /* Entries. */
    uint32_t sample_window_ms;
    uint32_t provider_timeout_ms;
    size_t artefact_limit_bytes;
    bugpack_stacks stacks;
    bool with_hostname;
    const char *calibrator_path; /* NULL: not given */
    const char *without_entries; /* names separated by spaces; NULL: none */

    /* Where reports go. */
    bp_report_dir report_dir;
    bp_report_bounds all_reports; /* of the app in a directory */
    uint64_t min_free_bytes;      /* 0: no check */
    uint64_t max_zip_bytes;       /* of one report; 0: no limit */

    /* Triggers. */
    bugpack_when_busy when_busy;
    bool answers_trigger;
    bp_report_rate disconnect, hang, condition;
    uint32_t max_per_signature; /* 0: any number */
    struct {
        bool is_enabled;
        bp_report_dir dir;
        uint32_t cap, channel_cap; /* as bp_gaps_options */
    } pedantic;
    struct {
        uint64_t interval_ns; /* 0: never */
        bp_report_dir dir;
    } auto_snapshot;
    struct {
        uint64_t interval_ns;  /* UINT64_MAX: only when a crash handler is installed */
        bp_stored_scope scope; /* process.json is decided later */
    } crash;

    /* Redaction. */
    bool without_redaction;
    bool redacts_at_call;
    const char *redaction_rules; /* the host's, for the opening alone; NULL: none */

    /* Callbacks. */
    bugpack_event_callback *on_event;
    void *on_event_context;
    bp_diagnostics on_diagnostic;
    bp_publish_hook before_publish;
} bp_config;

/* True if reports leave this entry out on request. */
static inline bool bp_config_leaves_out(const bp_config *config, const char *entry) {
    return config->without_entries != NULL && bp_entry_is_in_list(config->without_entries, entry);
}

#endif
