#include "report/ring_entries.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "recorder/history.h"
#include "recorder/log_recorder.h"
#include "recorder/notifications.h"
#include "recorder/traffic.h"

/* The entry being added. The extent is the pcap's, and then the index's too. */
struct adding {
    bp_snapshot *snapshot;
    bp_bundle *bundle;
    const bp_config *config;
    bp_traffic_snapshot *channels; /* those whose traffic is wanted */
    size_t channel_count;
    char traffic_note[160]; /* for the manifest: whose traffic this is; "" when of all channels */
    bp_traffic_extent extent;
};

/* Prints one entry into the writer, and says what it covers. */
typedef bugpack_status print_part(struct adding *adding, bp_ring_kind kind, bugpack_writer *writer,
                                  bugpack_error *error);

/* "; at least 5 records damaged or unreadable"; "" where there is no damage. */
static void describe_damage(const struct adding *adding, const bp_ring_view *view, char *text,
                            size_t text_bytes) {
    const char *restart = adding->snapshot->restart != NULL ? adding->snapshot->restart : "";
    if (view->damaged_count > 0) {
        (void)snprintf(text, text_bytes, "; at least %llu records damaged or unreadable%s",
                       (unsigned long long)view->damaged_count, restart);
    } else {
        (void)snprintf(text, text_bytes, "%s%s",
                       view->is_damaged ? "; a part is damaged or unreadable" : "", restart);
    }
}

/* The manifest's note on records that a ring no longer has, or never took. */
static void tell_view(const struct adding *adding, const bp_ring_view *view,
                      bugpack_writer *writer) {
    char damage[160];
    if (view->record_count > 0) {
        writer->line.covers_from_wall_ns = view->first_ns + adding->snapshot->wall_offset_ns;
        writer->line.covers_to_wall_ns = view->last_ns + adding->snapshot->wall_offset_ns;
    }
    describe_damage(adding, view, damage, sizeof damage);
    uint64_t gone_count = view->evicted_count + view->refused_count;
    if (gone_count > 0) {
        bp_writer_truncate(writer, damage[0] != '\0',
                           "%llu of %llu records; older ones made room for newer ones%s",
                           (unsigned long long)view->record_count,
                           (unsigned long long)(view->record_count + gone_count), damage);
    } else if (damage[0] != '\0') {
        bp_writer_truncate(writer, true, "%llu records%s", (unsigned long long)view->record_count,
                           damage);
    }
}

/* An entry of one ring: the log, the notifications or the history. */
static bugpack_status print_ring(struct adding *adding, bp_ring_kind kind, bugpack_writer *writer,
                                 bugpack_error *error) {
    const bp_snapshot_part *part = &adding->snapshot->parts[kind];
    uint64_t wall_offset_ns = adding->snapshot->wall_offset_ns;
    tell_view(adding, &part->view, writer);
    if (kind == BP_RING_KIND_LOG) {
        return bp_log_print(&part->records, wall_offset_ns, bp_writer_sink, writer, error);
    }
    return kind == BP_RING_KIND_HISTORY
               ? bp_history_print(&part->records, wall_offset_ns, bp_writer_sink, writer, error)
               : bp_notifications_print(&part->records, wall_offset_ns, &writer->content, error);
}

/* "1 by the snap length, 2 by the filter": what shortened messages, into a text that has room. */
static void list_cuts(const bp_traffic_extent *extent, char *text, size_t text_bytes) {
    static const char *const by[BP_TRAFFIC_CUT_COUNT] = {
        [BP_TRAFFIC_CUT_SNAP] = "by the snap length",
        [BP_TRAFFIC_CUT_FILTER] = "by the filter",
        [BP_TRAFFIC_CUT_LIMIT] = "by the size limit",
        [BP_TRAFFIC_CUT_ABSENT] = "given without bytes",
        [BP_TRAFFIC_CUT_PIN] = "among the first of a channel",
        [BP_TRAFFIC_CUT_FLAG] = "of channels without payload"};
    size_t length = 0;
    text[0] = '\0';
    for (unsigned cut = 0; cut < BP_TRAFFIC_CUT_COUNT && length < text_bytes; cut++) {
        if (extent->cut_counts[cut] > 0) {
            length += (size_t)snprintf(text + length, text_bytes - length, "%s%llu %s",
                                       length == 0 ? ": " : ", ",
                                       (unsigned long long)extent->cut_counts[cut], by[cut]);
        }
    }
}

/* `cut_count`: messages without some of their bytes, which the index has all the same. */
static void tell_extent(const struct adding *adding, uint64_t cut_count, bugpack_writer *writer) {
    const bp_traffic_extent *extent = &adding->extent;
    bp_ring_view together = {.is_damaged = false};
    char pinned[96] = "", missing[128] = " messages", cuts[256] = "", damage[160];
    writer->line.covers_from_wall_ns = extent->from_wall_ns;
    writer->line.covers_to_wall_ns = extent->to_wall_ns;
    for (size_t i = 0; i < adding->channel_count; i++) {
        const bp_traffic_snapshot *channel = &adding->channels[i];
        together.is_damaged = together.is_damaged || channel->messages_view.is_damaged ||
                              channel->pins_view.is_damaged;
        together.damaged_count +=
            channel->messages_view.damaged_count + channel->pins_view.damaged_count;
    }
    describe_damage(adding, &together, damage, sizeof damage);
    if (extent->missing_count == 0 && cut_count == 0 && damage[0] == '\0') {
        return;
    }
    if (extent->pinned_count > 0) {
        (void)snprintf(pinned, sizeof pinned,
                       "; %llu of those here are the first of a channel, which are always kept",
                       (unsigned long long)extent->pinned_count);
    }
    if (extent->missing_count > 0) {
        (void)snprintf(missing, sizeof missing, " of %llu messages: %llu %s",
                       (unsigned long long)(extent->message_count + extent->missing_count),
                       (unsigned long long)extent->missing_count,
                       damage[0] != '\0' ? "are missing"
                                         : "were dropped to make room for newer ones");
    }
    if (cut_count > 0) {
        list_cuts(extent, cuts, sizeof cuts);
    }
    bp_writer_truncate(writer, damage[0] != '\0', "%llu%s%s%s",
                       (unsigned long long)extent->message_count, missing, pinned, damage);
    size_t used = strlen(writer->line.reason);
    if (cut_count > 0) {
        (void)snprintf(writer->line.reason + used, sizeof writer->line.reason - used,
                       "; %llu shortened%s", (unsigned long long)cut_count, cuts);
    }
}

static bugpack_status print_pcap(struct adding *adding, bp_ring_kind kind, bugpack_writer *writer,
                                 bugpack_error *error) {
    bugpack_status status = BUGPACK_OK;
    bp_redactor *redactor = bp_bundle_begin_messages(adding->bundle);
    for (size_t i = 0; redactor != NULL && i < adding->channel_count; i++) {
        const bp_traffic_identity *identity = &adding->channels[i].identity;
        if (identity->payload == BUGPACK_PAYLOAD_EXACT && status == BUGPACK_OK) {
            status = bp_bundle_add_exact(adding->bundle, identity->name);
        }
    }
    if (status != BUGPACK_OK) {
        return bp_fail_memory(error, "write the traffic");
    }
    status = bp_traffic_print_pcap(&adding->snapshot->parts[kind].records, adding->channels,
                                   adding->channel_count, redactor, bp_writer_sink, writer,
                                   &adding->extent, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    tell_extent(adding, adding->extent.cut_count, writer);
    return BUGPACK_OK;
}

static bugpack_status print_index(struct adding *adding, bp_ring_kind kind, bugpack_writer *writer,
                                  bugpack_error *error) {
    tell_extent(adding, 0, writer);
    return bp_traffic_print_index(&adding->snapshot->parts[kind].records, adding->channels,
                                  adding->channel_count, bp_writer_sink, writer, error);
}

/* One entry. `failure` is why its records could not be copied, or why it could not be printed. */
static bugpack_status add_part(struct adding *adding, const char *name, print_part *print,
                               bp_ring_kind kind, bugpack_error *failure, bugpack_error *error) {
    const char *loss_reason = adding->snapshot->parts[kind].loss_reason;
    const char *choice = print == print_pcap ? adding->traffic_note : "";
    bp_bundle *bundle = adding->bundle;
    bugpack_writer writer;
    bp_instant began = bp_clock_now();
    if (bp_config_leaves_out(adding->config, name) ||
        (print == print_index && bp_config_leaves_out(adding->config, "traffic.pcap"))) {
        return bp_bundle_leave_out(bundle, name, error);
    }
    bp_writer_init(&writer, SIZE_MAX / 4);
    bugpack_status status = bp_bundle_begin(bundle, name, &writer, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    status = failure->status;
    if (status == BUGPACK_OK) {
        status = print(adding, kind, &writer, failure);
        /* Printing may have failed because of a failure on the way to the zip. */
        bugpack_status flushed = bp_writer_flush(&writer, failure);
        status = status == BUGPACK_OK ? flushed : status;
    }
    if (status == BUGPACK_OK && bp_snapshot_is_lost(adding->snapshot)) {
        status = bp_fail_errno(failure, EBADF, "cannot read a copy of the rings");
    }
    if (status != BUGPACK_OK && status != BUGPACK_ERR_CORRUPT && adding->snapshot->is_recovered) {
        bp_writer_release(&writer);
        *error = *failure;
        return status; /* it may pass: the rings are kept for the next try */
    }
    if (status != BUGPACK_OK) {
        writer.line = (bp_manifest_line){.name = NULL};        /* it covers nothing */
        bool is_in_memory = status == BUGPACK_ERR_UNSUPPORTED; /* of another process */
        bp_writer_refuse(&writer, is_in_memory ? BP_ARTEFACT_OMITTED : BP_ARTEFACT_FAILED, "%s",
                         failure->message);
        writer.line.is_missing = !is_in_memory;
    }
    (void)snprintf(writer.line.note, sizeof writer.line.note, "%s%s%s%s",
                   loss_reason[0] != '\0' ? "a crash would have lost it: " : "", loss_reason,
                   loss_reason[0] != '\0' && choice[0] != '\0' ? "; " : "", choice);
    bp_writer_stamp(&writer, began);
    return bp_bundle_put(bundle, name, BUGPACK_OK, &writer, error);
}

static bool is_chosen(const bp_channel_choice *choice, const char *name) {
    bool is_chosen = choice->only != NULL && strcmp(name, choice->only) == 0;
    for (size_t i = 0; i < choice->other_count && !is_chosen; i++) {
        is_chosen = strcmp(name, choice->others[i]) == 0;
    }
    return is_chosen;
}

/* The traffic of the channels that are chosen, where there are some; else of all. */
static void choose_channels(struct adding *adding, const bp_channel_choice *choice) {
    bp_snapshot *snapshot = adding->snapshot;
    size_t chosen_count = 0;
    adding->channels = snapshot->channels;
    adding->channel_count = snapshot->channel_count;
    for (size_t i = 0; i < snapshot->channel_count; i++) {
        if (is_chosen(choice, snapshot->channels[i].identity.name)) {
            bp_traffic_snapshot chosen = snapshot->channels[i];
            snapshot->channels[i] = snapshot->channels[chosen_count];
            snapshot->channels[chosen_count++] = chosen;
        }
    }
    if (chosen_count > 0) {
        adding->channel_count = chosen_count;
        (void)snprintf(adding->traffic_note, sizeof adding->traffic_note,
                       choice->other_count > 0 ? "the channel \"%.100s\" and others that were lost"
                                               : "the channel \"%.100s\" alone",
                       choice->only);
    } else if (choice->only != NULL) {
        (void)snprintf(adding->traffic_note, sizeof adding->traffic_note,
                       "no channel is called \"%.100s\": these are all", choice->only);
    }
}

bugpack_status bp_ring_entries_add(bp_snapshot *snapshot, const bp_channel_choice *choice,
                                   const bp_config *config, bp_bundle *bundle,
                                   bugpack_error *error) {
    struct adding adding = {.snapshot = snapshot, .bundle = bundle, .config = config};
    static const struct {
        const char *name;
        print_part *print;
        bp_ring_kind kind;
        bool may_be_empty;
    } entries[] = {{"logs.jsonl", print_ring, BP_RING_KIND_LOG, true},
                   {"notifications.json", print_ring, BP_RING_KIND_NOTIFICATIONS, false},
                   {"metrics-history.jsonl", print_ring, BP_RING_KIND_HISTORY, false},
                   {"traffic.pcap", print_pcap, BP_RING_KIND_TRAFFIC, true},
                   {"traffic-index.jsonl", print_index, BP_RING_KIND_TRAFFIC, true}};
    bugpack_error failure = BUGPACK_ERROR_INIT; /* without a pcap there is nothing to index */
    bugpack_status status = BUGPACK_OK;
    choose_channels(&adding, choice);
    for (size_t i = 0; status == BUGPACK_OK && i < sizeof entries / sizeof entries[0]; i++) {
        const bp_snapshot_part *part = &snapshot->parts[entries[i].kind];
        if (entries[i].print != print_index) {
            failure = part->error;
        }
        /* An empty part says nothing, but one that could not be read has to say so, and so has
         * every file of a dead session. */
        bool has_news = entries[i].may_be_empty || part->view.record_count > 0 ||
                        failure.status != BUGPACK_OK || snapshot->is_recovered;
        if (!has_news && entries[i].kind == BP_RING_KIND_HISTORY) {
            has_news = true;
            (void)bp_fail(&failure, BUGPACK_ERR_UNSUPPORTED,
                          "the history did not have two samples yet");
        }
        if (part->is_on && has_news) {
            status = add_part(&adding, entries[i].name, entries[i].print, entries[i].kind, &failure,
                              error);
        }
    }
    return status;
}
