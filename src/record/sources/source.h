/*
 * The entries that bugpack collects itself: each is a provider.
 */
#ifndef BP_SOURCES_SOURCE_H
#define BP_SOURCES_SOURCE_H

#include <stdatomic.h>

#include <bugpack/provide.h>

#include "machine/machine_capture.h"
#include "machine/system.h"
#include "model/entry.h"
#include "report/context.h"
#include "report/provider.h"

/* stacks.txt, and what the manifest says of both entries. */
typedef struct bp_stacks_text {
    bp_buffer text;
    bp_manifest_line line;
} bp_stacks_text;

/* The context of the providers about one process. Each has a reference to it: one that hangs
 * outlives the session. */
typedef struct bp_source {
    atomic_uint references;
    bp_subject *subject;
    char *helper_path;     /* of the command; NULL: not given */
    uint32_t timeout_ms;   /* of each provider */
    uint32_t window_ms;    /* of the metrics; 0: the shortest */
    bugpack_stacks stacks; /* this and what follows as in bp_config */
    bool with_hostname, without_process, without_stacks_json;
    bp_known_uint oom_kills_before; /* the session; of another process alone, as the next */
    bp_system groups_before;
    _Atomic(bp_stacks_text *) stacks_left; /* by stacks.json, for stacks.txt; NULL: nothing */
} bp_source;

/* Their context is a bp_source. A new one is a file, and a row in model/entry.h. */
#define BP_NO_SOURCE(...)
#define BP_SOURCE(id, name, form, flag, worth, cut, holds, provider, ...)                          \
    bugpack_provider_callback bp_source_##provider;
BP_ENTRIES(BP_NO_SOURCE, BP_SOURCE)
#undef BP_NO_SOURCE
#undef BP_SOURCE

/* The share of a provider's time within which a source reads; the rest is for printing. */
enum { BP_SOURCE_READING_PERCENT = 50 };

/* When this share of the provider's time has passed. */
uint64_t bp_source_deadline_ns(const bp_source *source, unsigned percent);

/* The result of such a provider. An entry is omitted, and not missed, where there is nothing to
 * read, or not for us. */
int bp_source_end(bugpack_writer *writer, bugpack_status status, const bugpack_error *error);

/* NULL is fine. */
void bp_source_free_stacks(bp_stacks_text *stacks);

/* Registers the sources that apply to the session, or to a further process: each of these below its
 * directory. Once the subject has a crash, those of its stacks alone. */
bugpack_status bp_sources_register(const bp_report_context *context, bugpack_error *error);

/* The host asks for a file, the command also for all threads of the machine. Strings are copied. */
bugpack_status bp_source_file(const bp_report_context *context, const bp_file_plan *plan,
                              bugpack_error *error);
bugpack_status bp_source_host_threads(const bp_report_context *context, const bp_machine_plan *plan,
                                      bugpack_error *error);

#endif
