/*
 * The facts of a report: one document, which `show`, the page, `show --json` and an index render.
 * Its root has the members of docs/schema/show.schema.json, and others for those that render, which
 * are not printed. Everything in it may be hostile: texts are valid UTF-8 at most, and are to be
 * escaped where they are shown.
 */
#ifndef BP_FACTS_FACTS_H
#define BP_FACTS_FACTS_H

#include <stdbool.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "base/buffer.h"
#include "entries/report_file.h"
#include "facts/process_reader.h"
#include "facts/waits.h"
#include "json/tree.h"

typedef struct bp_facts {
    const char *path; /* borrowed */
    bp_report_file *report;
    bp_frame_finder finder;                  /* of what frames lack */
    const bp_json_tree *metadata, *manifest; /* the report's; NULL where there is none */
    uint64_t triggered_wall_ns;              /* 0: not known */
    uint64_t ended_wall_ns; /* the end of the window, or the trigger where that is later */
    bp_json_tree *document;
    bp_findings findings;
    bp_signature signature;
    uint64_t left_bytes; /* what may still be read */
    uint64_t unread_process_count;

    bp_process_reader first; /* without its evidence: the lists that are not in the document */
    bp_waits waits;
} bp_facts;

/*
 * Opens the report at `path` as bp_report_file_open_any does, and reads what it holds, entry by
 * entry, as far as it is there and well-formed: what is not becomes a finding; with `is_brief` its
 * documents alone, without stacks, history, log and traffic. Memory: under 64 MiB, whatever the
 * report declares. The facts own the report and `finder`, also where this fails. NO_MEMORY.
 */
bugpack_status bp_facts_open(const char *path, uint64_t max_bytes, bool is_brief,
                             bp_frame_finder finder, bp_facts **ret_facts, bugpack_error *error);
/* NULL is fine. */
void bp_facts_close(bp_facts *facts);

/* A busy thread in words, for print/fill.h: its state, and what it waits for. */
#define BP_FILL_STATE                                                                              \
    "{[{born_in_window:!}born in the window]}{[{born_in_window:!}{state:!}, ]}{state|}"
#define BP_FILL_WAIT                                                                               \
    "{[{waits_for_thread:!}, waits for thread {waits_for}]}{[{waits_for_thread:~}, waits on "      \
    "{waits_for}]}"

/* A profile, and behind its share of all samples where a thread of it was. */
#define BP_FILL_PROFILE                                                                            \
    "{profile_samples:u} sample{profile_samples:p}{[ in {profile.window_ms:.2t} s]}"               \
    "{[{profile_without_kernel:!}, not of the kernel]}"                                            \
    "{[{profile.lost:+}; {profile.lost:u} more were lost]}"
/* The sums of a report about several processes. */
#define BP_FILL_GROUP                                                                              \
    "{[{at_least:!}at least ]}{cpu_percent:.1f|?} % of one CPU, {rss_kb:k|?} resident, counting "  \
    "shared pages in each{[, {threads:u} thread{threads:p}]} of {processes:u} processes"

#define BP_FILL_PATH "{[: {share:.0h} % in {path}]}{[{path:~}: no function has half of them]}"

/* The values of a sample for a chart: percent, and MiB; negative if not known. */
double bp_sample_cpu(const bp_sample *sample);
double bp_sample_memory(const bp_sample *sample);

/* The facts as JSON (docs/schema/show.schema.json). NO_MEMORY. */
bugpack_status bp_facts_print(const bp_facts *facts, bp_buffer *out, bugpack_error *error);

/*
 * Appends the line of a report: a JSON object without nested ones (docs/schema/index.schema.json),
 * and a newline. Reads only its small documents, so that a line takes less than a millisecond.
 * Errors of bp_report_file_open_any; NO_MEMORY.
 */
bugpack_status bp_index_line(const char *path, uint64_t byte_count, bp_buffer *out,
                             bugpack_error *error);

#endif
