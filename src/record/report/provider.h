/*
 * A provider: a registered source of an artefact. It is counted by references, as it may hang for
 * ever in a call (report/runner.h), and lives until that returns.
 */
#ifndef BP_REPORT_PROVIDER_H
#define BP_REPORT_PROVIDER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>
#include <bugpack/provide.h>

#include "base/aside.h"
#include "base/lock.h"
#include "report/writer.h"

/* A provider. `name` is copied; `release` (optional) frees `context` after the last call. */
typedef struct bp_provider_spec {
    const char *name;
    bugpack_provider_kind form; /* a screenshot is of bytes */
    bugpack_provider_callback *provide;
    void *context;
    void (*release)(void *context);
    size_t limit_bytes;
    uint32_t timeout_ms;
    bool is_late; /* called when the window of the report has passed */
} bp_provider_spec;

/* The first member is for reading, the rest is private. */
typedef struct bp_provider {
    bp_provider_spec spec; /* with a name of our own */
    atomic_uint reference_count;
    bp_lock lock; /* of what follows */
    pthread_cond_t idle;
    bool is_running, is_retired, is_given_up;
    uint64_t running_since_ns;
} bp_provider;

/* A file to register for the command (sources/source.h). */
typedef struct bp_file_plan {
    const char *name; /* of the entry */
    const char *path;
    size_t found_bytes; /* at the end of `path`, as in base/file.h; 0: all of it was named */
    bugpack_file_kind kind;
    uint64_t limit_bytes; /* 0: of the session */
    /* By a child process, for at most so long in vain; NULL: by us. */
    bp_aside_runner *run_aside;
    uint32_t stall_ms;
} bp_file_plan;

/* A provider with one reference. On failure the context is not released. */
bugpack_status bp_provider_new(const bp_provider_spec *spec, bp_provider **ret_provider,
                               bugpack_error *error);
bp_provider *bp_provider_retain(bp_provider *provider);
void bp_provider_drop(bp_provider *provider);

/*
 * Lets no new call begin, and waits for a running one until it ends or its time limit has passed.
 * True when no call is running any more. Any thread but one that is inside this provider.
 */
bool bp_provider_retire(bp_provider *provider);

/* An attempt to call a provider. */
typedef enum bp_provider_entry {
    BP_PROVIDER_ENTERED,
    BP_PROVIDER_RETIRED,
    BP_PROVIDER_STILL_RUNNING /* an earlier call has not returned yet */
} bp_provider_entry;

/* Claims the provider for one call. After BP_PROVIDER_ENTERED a leave must follow. */
bp_provider_entry bp_provider_enter(bp_provider *provider);
void bp_provider_leave(bp_provider *provider);

/* Its call will not return: a retirement does not wait for it. */
void bp_provider_give_up(bp_provider *provider);

/*
 * Ends what a callback wrote into `given` before it returned `result`: passes on what is left, JSON
 * to `sink` once it is checked. Afterwards `given` has no content, and its line has the outcome.
 * Where that is neither OK nor TRUNCATED, discard what the sink got. `limit_bytes` is the limit of
 * `given`.
 */
void bp_provider_accept(bugpack_provider_kind form, size_t limit_bytes, int result,
                        bugpack_writer *given, bp_sink *sink, void *context);

/*
 * Checks that a file is readable and is one valid JSON document of at most `limit_bytes`, before a
 * report depends on it. CORRUPT, with a sentence that names file, line and column; NO_PROCESS (no
 * such file); DENIED; IO; LIMIT (too large); NO_MEMORY. Any thread.
 */
bugpack_status bp_provider_check_json(const char *path, size_t limit_bytes, bugpack_error *error);

#endif
