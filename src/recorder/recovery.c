#include "recorder/recovery.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/status.h"

static bugpack_status recover_file(int session_dir_fd, const char *name, int dir_fd,
                                   bp_temp_file *records, bp_ring_view *ret_view,
                                   bugpack_error *error) {
    int fd = -1;
    bugpack_status status = bp_file_open_regular(session_dir_fd, name, &fd, error);
    if (status == BUGPACK_OK) {
        status = bp_temp_file_open(records, dir_fd, UINT64_MAX, error);
    }
    if (status == BUGPACK_OK) {
        status = bp_ring_recover(fd, bp_temp_file_sink, records, ret_view, error);
    }
    if (status == BUGPACK_OK) {
        status = bp_temp_file_flush(records, error);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return status;
}

static bool has_file(int session_dir_fd, const char *name) {
    return faccessat(session_dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void recover_part(int session_dir_fd, const char *name, int dir_fd, bp_snapshot_part *part) {
    part->is_on = has_file(session_dir_fd, name);
    part->records = (bp_temp_file)BP_TEMP_FILE_INIT;
    if (part->is_on) {
        (void)recover_file(session_dir_fd, name, dir_fd, &part->records, &part->view, &part->error);
    }
}

static bool read_channel(int session_dir_fd, unsigned number, bp_traffic_identity *ret_identity) {
    char name[32];
    int fd = -1;
    (void)snprintf(name, sizeof name, BP_RING_FILE_CHANNEL, number);
    if (bp_file_open_regular(session_dir_fd, name, &fd, NULL) != BUGPACK_OK) {
        return false;
    }
    ssize_t count = pread(fd, ret_identity, sizeof *ret_identity, 0);
    (void)close(fd);
    return count == (ssize_t)sizeof *ret_identity &&
           memchr(ret_identity->name, '\0', sizeof ret_identity->name) != NULL;
}

static void recover_channel(int session_dir_fd, unsigned number, int dir_fd,
                            bp_snapshot *snapshot) {
    bp_traffic_snapshot *channel = &snapshot->channels[snapshot->channel_count];
    char name[32];
    *channel = (bp_traffic_snapshot){.messages = BP_TEMP_FILE_INIT,
                                     .pins = BP_TEMP_FILE_INIT,
                                     .wall_offset_ns = snapshot->wall_offset_ns};
    if (!read_channel(session_dir_fd, number, &channel->identity)) {
        return;
    }
    snapshot->has_traffic = true;
    snapshot->channel_count++;
    (void)snprintf(name, sizeof name, BP_RING_FILE_TRAFFIC, number);
    if (recover_file(session_dir_fd, name, dir_fd, &channel->messages, &channel->messages_view,
                     &snapshot->traffic_error) != BUGPACK_OK) {
        return;
    }
    (void)snprintf(name, sizeof name, BP_RING_FILE_PINS, number);
    if (has_file(session_dir_fd, name)) {
        (void)recover_file(session_dir_fd, name, dir_fd, &channel->pins, &channel->pins_view,
                           &snapshot->traffic_error);
    }
}

void bp_recover_rings(int session_dir_fd, const bp_session_identity *identity, int dir_fd,
                      bp_snapshot *ret_snapshot) {
    memset(ret_snapshot, 0, sizeof *ret_snapshot);
    ret_snapshot->wall_offset_ns = identity->wall_offset_ns;
    recover_part(session_dir_fd, BP_RING_FILE_LOG, dir_fd, &ret_snapshot->log);
    recover_part(session_dir_fd, BP_RING_FILE_NOTIFICATIONS, dir_fd, &ret_snapshot->notifications);
    recover_part(session_dir_fd, BP_RING_FILE_HISTORY, dir_fd, &ret_snapshot->history);
    for (unsigned number = 0; number < BUGPACK_CHANNEL_MAX; number++) {
        recover_channel(session_dir_fd, number, dir_fd, ret_snapshot);
    }
}
