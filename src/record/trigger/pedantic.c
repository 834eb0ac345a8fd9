#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/status.h"
#include "model/entry.h"
#include "recorder/recorder.h"
#include "report/context.h"
#include "report/provider.h"
#include "report/quota.h"
#include "trigger/gap_summary.h"
#include "trigger/trigger.h"

static const char state_name[] = "channel-state.json";

/* So much of a message is searched for secrets: one that begins in what is shown may go on. */
enum { message_look_bytes = 4 * BUGPACK_GAP_DUMP_MAX_BYTES };

/* The report of a gap also has channel-state.json, as the host gave it at the gap, and the
 * message. */
struct gap_report {
    bp_pedantic *pedantic;
    bp_gap *gap;
    bool has_message, is_exact;
    unsigned char message[message_look_bytes];
    size_t message_bytes, kept_bytes;            /* all of it, and what is here */
    char channel[BUGPACK_CHANNEL_MAX_BYTES + 1]; /* which it came on; the row may be another one */
    char row_channel[BUGPACK_GAP_KEY_MAX_BYTES + 1];
    char *description; /* of the message; NULL: none */
    bool has_state;
    bugpack_writer given; /* checked by the worker, not on the host's thread */
    int result;
    bp_instant asked;
    uint64_t duration_ns;
};

static bugpack_status open_trigger(const bp_report_context *context, void **ret_self,
                                   bugpack_error *error) {
    const bp_config *config = context->config;
    const bp_gaps_options gaps_options = {.cap = config->pedantic.cap,
                                          .channel_cap = config->pedantic.channel_cap};
    bugpack_status status = BUGPACK_OK;
    if (config->pedantic.is_enabled) {
        const bp_report_dir *dir = &config->pedantic.dir;
        int dir_fd = -1;
        status = bp_file_open_directory(dir->path, dir->may_create, &dir_fd, error);
        bp_file_close(dir_fd);
    }
    if (status != BUGPACK_OK) {
        return status;
    }
    bp_pedantic *pedantic = calloc(1, sizeof *pedantic);
    if (pedantic == NULL) {
        return bp_fail_memory(error, "open a session");
    }
    status = bp_gaps_new(&gaps_options, &pedantic->gaps, error);
    if (status != BUGPACK_OK) {
        free(pedantic);
        return status;
    }
    pedantic->context = context;
    atomic_init(&pedantic->is_enabled, config->pedantic.is_enabled);
    atomic_init(&pedantic->is_stopped, false);
    *ret_self = pedantic;
    return BUGPACK_OK;
}

static void stop(void *self) {
    bp_pedantic *pedantic = self;
    atomic_store(&pedantic->is_stopped, true);
}

static void close_trigger(void *self) {
    bp_pedantic *pedantic = self;
    bp_gap_summary_write(pedantic->context, pedantic->gaps);
}

static void free_trigger(void *self) {
    bp_pedantic *pedantic = self;
    bp_gaps_free(pedantic->gaps);
    free(pedantic);
}

static bool brings_entry(const bp_job *job, const char *name) {
    const struct gap_report *report = job->payload;
    return report->has_state && bp_entry_is_same(name, state_name);
}

/* "a message of 123 bytes without a handler; the first 64: 0a 0b …" */
static bool describe_message(const struct gap_report *report, char **ret_description) {
    bp_buffer text;
    size_t shown = report->kept_bytes < BUGPACK_GAP_DUMP_MAX_BYTES ? report->kept_bytes
                                                                   : BUGPACK_GAP_DUMP_MAX_BYTES;
    bp_buffer_init(&text, 1024);
    (void)bp_buffer_printf(&text, "a message of %zu bytes without a handler",
                           report->message_bytes);
    if (shown == 0 && report->message_bytes > 0) {
        (void)bp_buffer_printf(
            &text, "; reports do not have the payload of channel \"%s\" as it is", report->channel);
    } else if (shown < report->message_bytes) {
        (void)bp_buffer_printf(&text, "; the first %zu", shown);
    }
    if (shown > 0) {
        (void)bp_buffer_append_text(&text, ":");
    }
    for (size_t i = 0; i < shown; i++) {
        (void)bp_buffer_printf(&text, " %02x", report->message[i]);
    }
    *ret_description = text.status == BUGPACK_OK ? strdup(bp_buffer_text(&text)) : NULL;
    bp_buffer_release(&text);
    return *ret_description != NULL;
}

static bugpack_status add_entries(bp_job *job, bp_bundle *bundle, bugpack_error *error) {
    struct gap_report *report = job->payload;
    bugpack_writer writer;
    if (report->has_message) {
        /* Secrets go before the bytes become digits, where no rule would find them. */
        bugpack_status status =
            report->is_exact ? BUGPACK_OK
                             : bp_bundle_overwrite(bundle, report->message, report->kept_bytes);
        if (status != BUGPACK_OK || !describe_message(report, &report->description)) {
            return bp_fail_memory(error, "describe a message");
        }
    }
    if (!report->has_state) {
        return BUGPACK_OK;
    }
    bp_writer_init(&writer, SIZE_MAX / 4);
    bp_provider_accept(BUGPACK_PROVIDE_JSON, report->given.content.max_size, report->result,
                       &report->given, bp_writer_sink, &writer);
    writer.line = report->given.line;
    writer.line.captured_wall_ns = report->asked.wall_ns;
    writer.line.duration_ns = report->duration_ns;
    return bp_bundle_put(bundle, state_name, BUGPACK_OK, &writer, error);
}

static void describe(const bp_job *job, bp_metadata *metadata, bugpack_writer *writer) {
    const struct gap_report *report = job->payload;
    (void)writer;
    metadata->gap_key = bp_gap_text(report->gap);
    metadata->description = report->description;
}

static void settled(const bp_job *job, const bugpack_report_result *result) {
    const struct gap_report *report = job->payload;
    bool is_written = result->status == BUGPACK_OK;
    if (!is_written) {
        bp_note_log(report->pedantic->context->recorder, BUGPACK_LEVEL_WARN,
                    "no report of gap %s: %s", bp_gap_text(report->gap), result->error.message);
    }
    if (result->status == BUGPACK_ERR_LIMIT) {
        bp_gaps_give_up(report->pedantic->gaps, report->gap, bp_quota_reason);
    } else {
        bp_gaps_settle(report->pedantic->gaps, report->gap, is_written);
    }
}

static void free_payload(bp_job *job) {
    struct gap_report *report = job->payload;
    if (report->has_state) {
        bp_writer_release(&report->given);
    }
    free(report->description);
}

/* It yields: a burst of gaps loses none, and leaves room for a person's report. */
static const bp_job_type job_type = {.kind = BP_REPORT_PEDANTIC,
                                     .yields = true,
                                     .is_limited = true,
                                     .brings_entry = brings_entry,
                                     .add_entries = add_entries,
                                     .describe = describe,
                                     .settled = settled,
                                     .free = free_payload};

/* Keeps what the report may have of a message: nothing that traffic.pcap would not have. */
static void keep_message(struct gap_report *report, const bp_occurrence *occurrence) {
    const bp_report_context *context = report->pedantic->context;
    size_t max =
        bp_channels_plain_max(&context->recorder->channels, occurrence->channel, &report->is_exact);
    if (bp_config_leaves_out(context->config, "traffic.pcap")) {
        max = 0;
    }
    max = max < message_look_bytes ? max : message_look_bytes;
    (void)snprintf(report->channel, sizeof report->channel, "%s", occurrence->channel);
    report->has_message = true;
    report->message_bytes = occurrence->byte_count;
    report->kept_bytes = max < occurrence->byte_count ? max : occurrence->byte_count;
    memcpy(report->message, occurrence->bytes, report->kept_bytes);
}

/* NULL without memory. */
static bp_job *make_job(bp_pedantic *pedantic, bp_gap *gap, const bp_occurrence *occurrence) {
    bp_job *job = bp_job_new(pedantic->context, &job_type, sizeof(struct gap_report));
    if (job == NULL) {
        return NULL;
    }
    struct gap_report *report = job->payload;
    report->pedantic = pedantic;
    report->gap = gap;
    job->dir = &pedantic->context->config->pedantic.dir;
    job->name_detail = bp_gap_text(gap);
    memcpy(report->row_channel, bp_gap_text(gap), bp_gap_channel_bytes(gap));
    if (report->row_channel[0] != '\0') {
        job->channel = job->traffic.only = report->row_channel;
    }
    if (occurrence->bytes != NULL) {
        keep_message(report, occurrence);
    }
    if (occurrence->state != NULL) { /* asked here, on the host's thread */
        report->has_state = true;
        report->asked = bp_clock_now();
        bp_writer_init(&report->given, pedantic->context->config->artefact_limit_bytes);
        bp_writer_set_channel(&report->given, job->channel);
        report->result = occurrence->state(&report->given, occurrence->context);
        report->duration_ns = bp_clock_monotonic_ns() - report->asked.monotonic_ns;
    }
    return job;
}

/* At a cap nothing is silent: the log and the notifications say so, once. */
static void note_cap(bp_pedantic *pedantic, const char *what, const char *channel,
                     size_t channel_bytes, uint32_t cap) {
    static const char format[] = "%s%.*s has its %u reports of gaps: further ones are only counted";
    bp_recorder *recorder = pedantic->context->recorder;
    bp_note_log(recorder, BUGPACK_LEVEL_WARN, format, what, (int)channel_bytes, channel,
                (unsigned)cap);
    bp_note_notify(recorder, BUGPACK_LEVEL_WARN, format, what, (int)channel_bytes, channel,
                   (unsigned)cap);
}

bp_gap_occurrence bp_pedantic_see(bp_pedantic *pedantic, const bp_gap_key *key, bp_gap **ret_gap) {
    bool is_on = atomic_load_explicit(&pedantic->is_enabled, memory_order_relaxed) &&
                 !atomic_load_explicit(&pedantic->is_stopped, memory_order_relaxed);
    return bp_gaps_see(pedantic->gaps, key, is_on, ret_gap);
}

void bp_pedantic_act(bp_pedantic *pedantic, bp_gap_occurrence seen, bp_gap *gap,
                     const bp_occurrence *occurrence) {
    const bp_config *config = pedantic->context->config;
    if (seen == BP_GAP_REPORT) {
        bp_note_log(pedantic->context->recorder, BUGPACK_LEVEL_INFO, "gap %s: a report is taken",
                    bp_gap_text(gap));
        bp_job *job = make_job(pedantic, gap, occurrence);
        if (job == NULL ||
            bp_job_queue_submit(pedantic->context->jobs, job, NULL, NULL) != BUGPACK_OK) {
            bp_gaps_settle(pedantic->gaps, gap, false);
        }
    } else if (seen == BP_GAP_CAP) {
        note_cap(pedantic, "the session", "", 0, config->pedantic.cap);
    } else if (seen == BP_GAP_CHANNEL_CAP) {
        note_cap(pedantic, "channel ", bp_gap_text(gap), bp_gap_channel_bytes(gap),
                 config->pedantic.channel_cap);
    }
}

void bp_pedantic_get(bp_pedantic *pedantic, bugpack_pedantic_state *ret_state) {
    bp_gaps_count(pedantic->gaps, ret_state);
    ret_state->is_enabled = atomic_load(&pedantic->is_enabled);
    uint32_t cap = pedantic->context->config->pedantic.cap;
    ret_state->cap = cap == UINT32_MAX ? BUGPACK_OFF : cap;
}

static bp_trigger_note *note(void *self) {
    bp_pedantic *pedantic = self;
    bugpack_pedantic_state totals;
    bp_gaps_count(pedantic->gaps, &totals);
    bp_trigger_note *made = bp_trigger_note_new(totals.distinct_count);
    if (made != NULL) {
        bp_gaps_tallies(pedantic->gaps, made->rows, made->count);
    }
    return made;
}

static bugpack_status list_entries(void *self, const bp_trigger_note *noted, const bp_job *job,
                                   bp_trigger_list *list, bugpack_error *error) {
    bp_pedantic *pedantic = self;
    bp_pedantic_gap *rows = NULL;
    size_t count = 0;
    const struct gap_report *own = job->type == &job_type ? job->payload : NULL;
    bugpack_status status =
        bp_gaps_list(pedantic->gaps, own == NULL ? NULL : own->gap, &rows, &count, error);
    for (size_t i = 0; status == BUGPACK_OK && i < count; i++) {
        bp_trigger_entry entry = {.kind = BP_REPORT_PEDANTIC,
                                  .key = rows[i].key,
                                  .count = rows[i].count,
                                  .written_count = rows[i].is_written,
                                  .first_wall_ns = rows[i].first_wall_ns,
                                  .last_wall_ns = rows[i].last_wall_ns,
                                  .reason = rows[i].reason};
        if (bp_trigger_note_apply(noted, i, &entry)) {
            bp_trigger_list_add(list, &entry);
        }
    }
    free(rows);
    return status;
}

const bp_trigger bp_trigger_pedantic = {.open = open_trigger,
                                        .note = note,
                                        .list = list_entries,
                                        .stop = stop,
                                        .close = close_trigger,
                                        .free = free_trigger};
