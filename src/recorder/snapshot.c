#include "recorder/snapshot.h"

static void release_part(bp_snapshot_part *part) {
    if (part->is_on) {
        bp_temp_file_release(&part->records);
    }
}

void bp_snapshot_release(bp_snapshot *snapshot) {
    release_part(&snapshot->log);
    release_part(&snapshot->notifications);
    release_part(&snapshot->history);
    for (size_t i = 0; i < snapshot->channel_count; i++) {
        bp_traffic_snapshot_release(&snapshot->channels[i]);
    }
    snapshot->channel_count = 0;
}

static uint64_t part_bytes(const bp_snapshot_part *part) {
    return part->is_on ? part->records.size : 0;
}

uint64_t bp_snapshot_bytes(const bp_snapshot *snapshot) {
    uint64_t bytes = part_bytes(&snapshot->log) + part_bytes(&snapshot->notifications) +
                     part_bytes(&snapshot->history);
    for (size_t i = 0; i < snapshot->channel_count; i++) {
        bytes += snapshot->channels[i].messages.size + snapshot->channels[i].pins.size;
    }
    return bytes;
}

bool bp_snapshot_is_whole(const bp_snapshot *snapshot) {
    return (!snapshot->log.is_on || snapshot->log.error.status == BUGPACK_OK) &&
           (!snapshot->notifications.is_on || snapshot->notifications.error.status == BUGPACK_OK) &&
           (!snapshot->history.is_on || snapshot->history.error.status == BUGPACK_OK) &&
           snapshot->traffic_error.status == BUGPACK_OK;
}

unsigned bp_snapshot_fds(const bp_snapshot *snapshot) {
    const bp_temp_file *const temp_files[] = {
        &snapshot->log.records, &snapshot->notifications.records, &snapshot->history.records};
    const bool are_on[] = {snapshot->log.is_on, snapshot->notifications.is_on,
                           snapshot->history.is_on};
    unsigned count = 0;
    for (size_t i = 0; i < sizeof temp_files / sizeof temp_files[0]; i++) {
        count += are_on[i] && bp_temp_file_is_open(temp_files[i]);
    }
    for (size_t i = 0; i < snapshot->channel_count; i++) {
        count += bp_temp_file_is_open(&snapshot->channels[i].messages);
        count += bp_temp_file_is_open(&snapshot->channels[i].pins);
    }
    return count;
}
