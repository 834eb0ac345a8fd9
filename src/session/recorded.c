#include "session/recorded.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/status.h"
#include "recorder/history.h"
#include "recorder/log_recorder.h"
#include "recorder/notifications.h"
#include "recorder/traffic.h"

static const size_t json_limit_bytes = (size_t)16 << 20;

/* Prints one part's records into the writer's spool or content. */
typedef bugpack_status print_part(const bp_frozen *frozen, bugpack_writer *writer,
                                  bugpack_error *error);

static bugpack_status print_log(const bp_frozen *frozen, bugpack_writer *writer,
                                bugpack_error *error) {
    return bp_log_print(&frozen->log.records, frozen->wall_offset_ns, &writer->spool, error);
}

static bugpack_status print_history(const bp_frozen *frozen, bugpack_writer *writer,
                                    bugpack_error *error) {
    uint64_t count = 0;
    return bp_history_print(&frozen->history.records, frozen->wall_offset_ns, &writer->spool,
                            &count, error);
}

static bugpack_status print_notifications(const bp_frozen *frozen, bugpack_writer *writer,
                                          bugpack_error *error) {
    uint32_t count = 0;
    return bp_notifications_print(&frozen->notifications.records, frozen->wall_offset_ns,
                                  &writer->content, &count, error);
}

/* What the ledger says of records that a ring no longer has, or never took. */
static void tell_view(const bp_ring_view *view, uint64_t wall_offset_ns, bugpack_writer *writer) {
    if (view->record_count > 0) {
        writer->ledger.covers_from_wall_ns = view->first_ns + wall_offset_ns;
        writer->ledger.covers_to_wall_ns = view->last_ns + wall_offset_ns;
    }
    uint64_t gone_count = view->evicted_count + view->refused_count;
    if (gone_count > 0) {
        bp_writer_truncate(writer, false,
                           "the newest %llu of %llu records; older ones made room for them",
                           (unsigned long long)view->record_count,
                           (unsigned long long)(view->record_count + gone_count));
    }
}

static void stamp(const char *loss_reason, bugpack_writer *writer, bp_instant began) {
    if (loss_reason[0] != '\0') {
        (void)snprintf(writer->ledger.note, sizeof writer->ledger.note,
                       "a crash would have lost it: %s", loss_reason);
    }
    writer->ledger.captured_wall_ns = began.wall_ns;
    writer->ledger.duration_ns = bp_clock_monotonic_ns() - began.monotonic_ns;
}

static bugpack_status add(bp_bundle *bundle, const char *name, bugpack_writer *writer,
                          bugpack_error *error) {
    bugpack_status status = bp_bundle_add(bundle, name, writer, error);
    bp_writer_release(writer);
    return status;
}

static bugpack_status add_part(const bp_frozen *frozen, const bp_frozen_part *part,
                               const char *name, print_part *print, int dir_fd, bp_bundle *bundle,
                               bugpack_error *error) {
    bugpack_writer writer;
    bugpack_error detail = part->error;
    bp_instant began = bp_clock_now();
    bp_writer_init(&writer, json_limit_bytes);
    bugpack_status status = detail.status;
    if (status == BUGPACK_OK) {
        status = bp_spool_open(&writer.spool, dir_fd, UINT64_MAX, &detail);
    }
    if (status == BUGPACK_OK) {
        status = print(frozen, &writer, &detail);
    }
    if (status == BUGPACK_OK && writer.content.size > 0) {
        bp_spool_release(&writer.spool); /* it was printed into memory */
    }
    if (status == BUGPACK_OK) {
        tell_view(&part->view, frozen->wall_offset_ns, &writer);
    } else {
        bp_writer_refuse(&writer, BP_ARTEFACT_FAILED, "%s", detail.message);
    }
    stamp(part->loss_reason, &writer, began);
    return add(bundle, name, &writer, error);
}

static void tell_extent(const bp_traffic_extent *extent, bugpack_writer *writer) {
    writer->ledger.covers_from_wall_ns = extent->from_wall_ns;
    writer->ledger.covers_to_wall_ns = extent->to_wall_ns;
    if (extent->missing_count > 0 || extent->cut_count > 0) {
        bp_writer_truncate(
            writer, false,
            "%llu messages, %llu of them pinned; %llu made room for others, %llu "
            "were cut",
            (unsigned long long)extent->message_count, (unsigned long long)extent->pinned_count,
            (unsigned long long)extent->missing_count, (unsigned long long)extent->cut_count);
    }
}

static bugpack_status add_traffic(bp_frozen *frozen, int dir_fd, bp_bundle *bundle,
                                  bugpack_error *error) {
    bugpack_writer writer;
    bp_traffic_extent extent = {0};
    bugpack_error detail = frozen->traffic_error;
    bp_instant began = bp_clock_now();
    bp_writer_init(&writer, json_limit_bytes);
    bugpack_status status = detail.status;
    if (status == BUGPACK_OK) {
        status = bp_spool_open(&writer.spool, dir_fd, UINT64_MAX, &detail);
    }
    if (status == BUGPACK_OK) {
        status = bp_traffic_print_pcap(frozen->channels, frozen->channel_count, &writer.spool,
                                       &extent, &detail);
    }
    if (status == BUGPACK_OK) {
        tell_extent(&extent, &writer);
    } else {
        bp_writer_refuse(&writer, BP_ARTEFACT_FAILED, "%s", detail.message);
    }
    stamp(frozen->traffic_loss_reason, &writer, began);
    return add(bundle, "traffic.pcap", &writer, error);
}

/* An empty part says nothing, but one that could not be read has to say so. */
static bool is_worth_telling(const bp_frozen_part *part) {
    return part->is_on && (part->view.record_count > 0 || part->error.status != BUGPACK_OK);
}

bugpack_status bp_recorded_add(bp_frozen *frozen, int dir_fd, bp_bundle *bundle,
                               bugpack_error *error) {
    bugpack_status status = BUGPACK_OK;
    if (frozen->log.is_on) {
        status = add_part(frozen, &frozen->log, "logs.jsonl", print_log, dir_fd, bundle, error);
    }
    if (status == BUGPACK_OK && is_worth_telling(&frozen->notifications)) {
        status = add_part(frozen, &frozen->notifications, "notifications.json", print_notifications,
                          dir_fd, bundle, error);
    }
    if (status == BUGPACK_OK && is_worth_telling(&frozen->history)) {
        status = add_part(frozen, &frozen->history, "metrics-history.jsonl", print_history, dir_fd,
                          bundle, error);
    }
    if (status == BUGPACK_OK && frozen->has_traffic) {
        status = add_traffic(frozen, dir_fd, bundle, error);
    }
    return status;
}
