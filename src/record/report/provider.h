/*
 * Providers: registered sources of artefacts, asked under a time limit.
 *
 * A provider is the host's code and may hang for ever. It is called on a thread that can be
 * detached; what such a call touches is counted by references and lives until the call returns.
 */
#ifndef BP_REPORT_PROVIDER_H
#define BP_REPORT_PROVIDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>
#include <bugpack/provide.h>

#include "base/aside.h"
#include "base/cancel.h"
#include "report/writer.h"

/* How the bytes of a provider become an artefact. */
typedef enum bp_content_form {
    BP_CONTENT_BYTES, /* as they are */
    BP_CONTENT_TEXT,  /* made valid UTF-8 */
    BP_CONTENT_JSON   /* checked, and indented by two spaces */
} bp_content_form;

typedef struct bp_provider bp_provider;

/* What to register. `name` is copied; `release` (optional) frees `context` after the last call. */
typedef struct bp_provider_spec {
    const char *name;
    bp_content_form form;
    bugpack_provider_callback *provide;
    void *context;
    void (*release)(void *context);
    size_t limit_bytes;
    uint32_t timeout_ms;
} bp_provider_spec;

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

const bp_provider_spec *bp_provider_spec_of(const bp_provider *provider);

/*
 * Ends what a callback wrote into `given` before it returned `result`: passes on what is left, JSON
 * to `sink` once it is checked. Afterwards `given` has no content, and its line has the outcome.
 * Where that is neither OK nor TRUNCATED, discard what the sink got. `limit_bytes` is the limit of
 * `given`.
 */
void bp_provider_accept(bp_content_form form, size_t limit_bytes, int result, bugpack_writer *given,
                        bp_sink *sink, void *context);

typedef struct bp_runner bp_runner;

/* A runner; its first thread starts with the first call. One report at a time uses it. */
bugpack_status bp_runner_new(bp_runner **ret_runner, bugpack_error *error);

/* Makes a running call look at its cancel token again. Any thread, also while there is no call. */
void bp_runner_wake(bp_runner *runner);

/* What the waiting thread does after each such wake, without a lock. Before the first call. */
void bp_runner_on_wake(bp_runner *runner, void (*on_wake)(void *context), void *context);

/*
 * The calling thread is about to wait for whoever calls providers. A call that waits for a mutex of
 * this thread then has no more time, as it would never get it.
 */
void bp_runner_expect_close(bp_runner *runner);

/* Ends its thread. One that hangs inside a provider is detached, and frees itself later. */
void bp_runner_free(bp_runner *runner);

/*
 * Calls the provider on the runner's thread, where its content is also checked and converted, and
 * waits until that is done, its own time limit passes or `token` (NULL for none) is due. Fills
 * `writer`, which must be fresh, with the artefact or with the reason why there is none. False when
 * the provider was retired before: then there is nothing to report.
 */
bool bp_runner_call(bp_runner *runner, bp_provider *provider, const bp_cancel_token *token,
                    bugpack_writer *writer);

/* Whether the calling thread is inside a provider: then it must not wait for a report. */
bool bp_runner_is_inside_provider(void);

/*
 * Checks that a file is readable and is one valid JSON document of at most `limit_bytes`, before a
 * report depends on it. CORRUPT, with a sentence that names file, line and column; NO_PROCESS (no
 * such file); DENIED; IO; LIMIT (too large); NO_MEMORY. Any thread.
 */
bugpack_status bp_provider_check_json(const char *path, size_t limit_bytes, bugpack_error *error);

typedef struct bp_provider_list bp_provider_list;

/* An empty list. Every function may be called on any thread. */
bugpack_status bp_provider_list_new(bp_provider_list **ret_list, bugpack_error *error);

/* Nobody may be inside, nor come later. NULL is fine. */
void bp_provider_list_free(bp_provider_list *list);

/*
 * Registers a provider. The spec's context is taken over in any case: on a failure it is released
 * as the spec says. INVALID (a name that cannot be used, or is taken), LIMIT, NO_MEMORY.
 */
bugpack_status bp_provider_list_add(bp_provider_list *list, const bp_provider_spec *spec,
                                    bugpack_error *error);

/* Removes the provider of this name. True when it was there and no call is inside it any more. */
bool bp_provider_list_remove(bp_provider_list *list, const char *name);

/* A copy of the list; each provider has a reference that bp_provider_list_drop gives back. */
bugpack_status bp_provider_list_get(bp_provider_list *list, bp_provider ***ret_providers,
                                    size_t *ret_count, bugpack_error *error);
void bp_provider_list_drop(bp_provider **providers, size_t count);

/* Lets no new call begin, and waits for those that a cancelled report left running, each until its
 * time limit: the host frees afterwards what they may touch. */
void bp_provider_list_retire(bp_provider_list *list);

#endif
