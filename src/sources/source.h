/*
 * The entries that bugpack collects itself: each is a provider in a file of its own.
 */
#ifndef BP_SOURCES_SOURCE_H
#define BP_SOURCES_SOURCE_H

#include <bugpack/capture_host.h>
#include <bugpack/provide.h>

#include "report/context.h"

/* A source registers its provider, or nothing where it does not apply to the session. */
typedef bugpack_status bp_source(const bp_report_context *context, bugpack_error *error);

/* Every session asks these, in this order. A new source is a file and one row. */
#define BP_SOURCES(ROW)                                                                            \
    ROW(stacks)      /* stacks.json and stacks.txt */                                              \
    ROW(process)     /* process.json */                                                            \
    ROW(threads)     /* threads.json */                                                            \
    ROW(open_files)  /* files.json */                                                              \
    ROW(system)      /* system.json */                                                             \
    ROW(thread_heap) /* thread-heap.json, of another process */                                    \
    ROW(heap_state)  /* heap-state.json, of our own process */

#define BP_DECLARE_SOURCE(name) bp_source bp_source_##name;
BP_SOURCES(BP_DECLARE_SOURCE)
#undef BP_DECLARE_SOURCE

/* Registers a provider for an entry about the context's process: below the directory of a further
 * one. */
bugpack_status bp_source_add(const bp_report_context *context, const bp_provider_spec *spec,
                             bugpack_error *error);

/* What a provider of such an entry returns. An entry is omitted, and not missed, where there is
 * nothing to read, or not for us. */
int bp_source_end(bugpack_writer *writer, bugpack_status status, const bugpack_error *error);

/* Opens a further process, and registers the sources that apply to it. */
bugpack_status bp_sources_add_process(const bp_report_context *context, pid_t pid,
                                      bugpack_error *error);

/* Registers the sources that apply to the session. */
bugpack_status bp_sources_register(const bp_report_context *context, bugpack_error *error);

/* The host asks for these. Strings are copied. */
bugpack_status bp_source_file(const bp_report_context *context, const char *name, const char *path,
                              bugpack_file_kind kind, uint64_t limit_bytes, bugpack_error *error);
bugpack_status bp_source_host_threads(const bp_report_context *context,
                                      const bugpack_host_options *options, bugpack_error *error);

#endif
