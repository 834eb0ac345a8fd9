#include "recorder/snapshot.h"

/* Three parts, and two files per channel. */
enum { file_max_count = 3 + 2 * BUGPACK_CHANNEL_MAX };

/* The files of a snapshot. Returns how many. */
static size_t list_files(bp_snapshot *snapshot, bp_temp_file *files[file_max_count]) {
    bp_snapshot_part *const parts[] = {&snapshot->log, &snapshot->notifications,
                                       &snapshot->history};
    size_t count = 0;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (parts[i]->is_on) {
            files[count++] = &parts[i]->records;
        }
    }
    for (size_t i = 0; i < snapshot->channel_count; i++) {
        files[count++] = &snapshot->channels[i].messages;
        files[count++] = &snapshot->channels[i].pins;
    }
    return count;
}

void bp_snapshot_release(bp_snapshot *snapshot) {
    bp_temp_file *files[file_max_count];
    size_t count = list_files(snapshot, files);
    for (size_t i = 0; i < count; i++) {
        bp_temp_file_release(files[i]);
    }
    snapshot->channel_count = 0;
}

uint64_t bp_snapshot_bytes(bp_snapshot *snapshot) {
    bp_temp_file *files[file_max_count];
    size_t count = list_files(snapshot, files);
    uint64_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        bytes += files[i]->size;
    }
    return bytes;
}

unsigned bp_snapshot_fds(bp_snapshot *snapshot) {
    bp_temp_file *files[file_max_count];
    size_t count = list_files(snapshot, files);
    unsigned fd_count = 0;
    for (size_t i = 0; i < count; i++) {
        fd_count += bp_temp_file_is_open(files[i]);
    }
    return fd_count;
}

bool bp_snapshot_is_whole(const bp_snapshot *snapshot) {
    /* The status of a part that is off is OK. */
    return snapshot->log.error.status == BUGPACK_OK &&
           snapshot->notifications.error.status == BUGPACK_OK &&
           snapshot->history.error.status == BUGPACK_OK &&
           snapshot->traffic_error.status == BUGPACK_OK;
}
