#include "report/recorded.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "recorder/history.h"
#include "recorder/log_recorder.h"
#include "recorder/notifications.h"
#include "recorder/traffic.h"

static const size_t json_limit_bytes = (size_t)16 << 20;

/* Prints one part's records into the writer's spool or content. */
typedef bugpack_status print_part(const bp_snapshot *snapshot, bugpack_writer *writer,
                                  bugpack_error *error);

static bugpack_status print_log(const bp_snapshot *snapshot, bugpack_writer *writer,
                                bugpack_error *error) {
    return bp_log_print(&snapshot->log.records, snapshot->wall_offset_ns, &writer->temp_file,
                        error);
}

static bugpack_status print_history(const bp_snapshot *snapshot, bugpack_writer *writer,
                                    bugpack_error *error) {
    uint64_t count = 0;
    return bp_history_print(&snapshot->history.records, snapshot->wall_offset_ns,
                            &writer->temp_file, &count, error);
}

static bugpack_status print_notifications(const bp_snapshot *snapshot, bugpack_writer *writer,
                                          bugpack_error *error) {
    uint32_t count = 0;
    return bp_notifications_print(&snapshot->notifications.records, snapshot->wall_offset_ns,
                                  &writer->content, &count, error);
}

/* What the ledger says of records that a ring no longer has, or never took. */
static void tell_view(const bp_ring_view *view, uint64_t wall_offset_ns, bugpack_writer *writer) {
    if (view->record_count > 0) {
        writer->line.covers_from_wall_ns = view->first_ns + wall_offset_ns;
        writer->line.covers_to_wall_ns = view->last_ns + wall_offset_ns;
    }
    uint64_t gone_count = view->evicted_count + view->refused_count;
    if (gone_count > 0) {
        bp_writer_truncate(writer, false,
                           "the newest %llu of %llu records; older ones made room for them",
                           (unsigned long long)view->record_count,
                           (unsigned long long)(view->record_count + gone_count));
    }
}

static void note_loss(const char *loss_reason, bugpack_writer *writer) {
    if (loss_reason[0] != '\0') {
        (void)snprintf(writer->line.note, sizeof writer->line.note,
                       "a crash would have lost it: %s", loss_reason);
    }
}

static bugpack_status add_part(const bp_snapshot *snapshot, const bp_snapshot_part *part,
                               const char *name, print_part *print, int dir_fd, bp_bundle *bundle,
                               bugpack_error *error) {
    bugpack_writer writer;
    bugpack_error detail = part->error;
    bp_instant began = bp_clock_now();
    bp_writer_init(&writer, json_limit_bytes);
    bugpack_status status = detail.status;
    if (status == BUGPACK_OK) {
        status = bp_temp_file_open(&writer.temp_file, dir_fd, UINT64_MAX, &detail);
        writer.temp_file.token = snapshot->token;
    }
    if (status == BUGPACK_OK) {
        status = print(snapshot, &writer, &detail);
    }
    if (status == BUGPACK_OK && writer.content.size > 0) {
        bp_temp_file_release(&writer.temp_file); /* it was printed into memory */
    }
    if (status == BUGPACK_OK) {
        tell_view(&part->view, snapshot->wall_offset_ns, &writer);
    } else {
        bp_writer_refuse(&writer, BP_ARTEFACT_FAILED, "%s", detail.message);
    }
    note_loss(part->loss_reason, &writer);
    bp_writer_stamp(&writer, began);
    return bp_bundle_put(bundle, name, BUGPACK_OK, &writer, error);
}

/* "1 by the snap length, 2 by the filter": what shortened messages, into a text that has room. */
static void list_cuts(const bp_traffic_extent *extent, char *text, size_t text_bytes) {
    static const char *const by[BP_TRAFFIC_CUT_COUNT] = {
        [BP_TRAFFIC_CUT_SNAP] = "by the snap length",
        [BP_TRAFFIC_CUT_FILTER] = "by the filter",
        [BP_TRAFFIC_CUT_LIMIT] = "by the size limit",
        [BP_TRAFFIC_CUT_ABSENT] = "given without bytes",
        [BP_TRAFFIC_CUT_PIN] = "by what was pinned"};
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

static void tell_extent(const bp_traffic_extent *extent, bugpack_writer *writer) {
    char pinned[64] = "", missing[128] = "", cuts[256] = "";
    writer->line.covers_from_wall_ns = extent->from_wall_ns;
    writer->line.covers_to_wall_ns = extent->to_wall_ns;
    if (extent->missing_count == 0 && extent->cut_count == 0) {
        return;
    }
    if (extent->pinned_count > 0) {
        (void)snprintf(pinned, sizeof pinned, ", %llu of them only pinned",
                       (unsigned long long)extent->pinned_count);
    }
    if (extent->missing_count > 0) {
        (void)snprintf(missing, sizeof missing, "; %llu %s made room for others",
                       (unsigned long long)extent->missing_count,
                       extent->pinned_count > 0 ? "between the pinned ones and the rest"
                                                : "older ones");
    }
    if (extent->cut_count > 0) {
        list_cuts(extent, cuts, sizeof cuts);
        bp_writer_truncate(writer, false, "%llu messages%s%s; %llu were cut%s",
                           (unsigned long long)extent->message_count, pinned, missing,
                           (unsigned long long)extent->cut_count, cuts);
    } else {
        bp_writer_truncate(writer, false, "%llu messages%s%s",
                           (unsigned long long)extent->message_count, pinned, missing);
    }
}

/* The index has a spool of its own, and may fail alone. */
static bugpack_status print_traffic(bp_snapshot *snapshot, int dir_fd, bugpack_writer *pcap,
                                    bugpack_writer *index, bugpack_error *error) {
    bp_traffic_extent extent = {0};
    bugpack_error index_error = BUGPACK_ERROR_INIT;
    bugpack_status indexed = bp_temp_file_open(&index->temp_file, dir_fd, UINT64_MAX, &index_error);
    bugpack_status status = bp_temp_file_open(&pcap->temp_file, dir_fd, UINT64_MAX, error);
    index->temp_file.token = pcap->temp_file.token = snapshot->token;
    if (status == BUGPACK_OK) {
        status =
            bp_traffic_print_pcap(snapshot->channels, snapshot->channel_count, &pcap->temp_file,
                                  indexed == BUGPACK_OK ? &index->temp_file : NULL, &extent, error);
    }
    if (status != BUGPACK_OK) {
        return status;
    }
    tell_extent(&extent, pcap);
    index->line.covers_from_wall_ns = extent.from_wall_ns;
    index->line.covers_to_wall_ns = extent.to_wall_ns;
    if (indexed == BUGPACK_OK) {
        indexed = bp_temp_file_flush(&index->temp_file, &index_error);
    }
    if (indexed != BUGPACK_OK) {
        bp_writer_refuse(index, BP_ARTEFACT_FAILED, "%s", index_error.message);
    }
    return BUGPACK_OK;
}

/* Whose traffic it is, behind what the note says already. */
static void tell_choice(const bp_snapshot *snapshot, bugpack_writer *writer) {
    if (snapshot->traffic_note[0] != '\0') {
        size_t length = strlen(writer->line.note);
        (void)snprintf(writer->line.note + length, sizeof writer->line.note - length, "%s%s",
                       length > 0 ? "; " : "", snapshot->traffic_note);
    }
}

static bugpack_status add_traffic(bp_snapshot *snapshot, int dir_fd, bp_bundle *bundle,
                                  bugpack_error *error) {
    bugpack_writer pcap, index;
    bugpack_error detail = snapshot->traffic_error;
    bp_instant began = bp_clock_now();
    bp_writer_init(&pcap, json_limit_bytes);
    bp_writer_init(&index, json_limit_bytes);
    bugpack_status status = detail.status;
    if (status == BUGPACK_OK) {
        status = print_traffic(snapshot, dir_fd, &pcap, &index, &detail);
    }
    if (status != BUGPACK_OK) {
        bp_writer_refuse(&pcap, BP_ARTEFACT_FAILED, "%s", detail.message);
        bp_writer_refuse(&index, BP_ARTEFACT_FAILED, "%s", detail.message);
    }
    note_loss(snapshot->traffic_loss_reason, &pcap);
    tell_choice(snapshot, &pcap);
    bp_writer_stamp(&pcap, began);
    note_loss(snapshot->traffic_loss_reason, &index);
    bp_writer_stamp(&index, began);
    status = bp_bundle_put(bundle, "traffic.pcap", BUGPACK_OK, &pcap, error);
    return bp_bundle_put(bundle, "traffic-index.jsonl", status, &index, error);
}

/* An empty part says nothing, but one that could not be read has to say so. */
static bool is_worth_telling(const bp_snapshot_part *part) {
    return part->is_on && (part->view.record_count > 0 || part->error.status != BUGPACK_OK);
}

bugpack_status bp_recorded_add(bp_snapshot *snapshot, int dir_fd, bp_bundle *bundle,
                               bugpack_error *error) {
    bugpack_status status = BUGPACK_OK;
    if (snapshot->log.is_on) {
        status = add_part(snapshot, &snapshot->log, "logs.jsonl", print_log, dir_fd, bundle, error);
    }
    if (status == BUGPACK_OK && is_worth_telling(&snapshot->notifications)) {
        status = add_part(snapshot, &snapshot->notifications, "notifications.json",
                          print_notifications, dir_fd, bundle, error);
    }
    if (status == BUGPACK_OK && is_worth_telling(&snapshot->history)) {
        status = add_part(snapshot, &snapshot->history, "metrics-history.jsonl", print_history,
                          dir_fd, bundle, error);
    }
    if (status == BUGPACK_OK && snapshot->has_traffic) {
        status = add_traffic(snapshot, dir_fd, bundle, error);
    }
    return status;
}
