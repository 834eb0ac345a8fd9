#include "recorder/salvage.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/status.h"

static bugpack_status salvage_file(int home_fd, const char *name, int dir_fd, bp_spool *records,
                                   bp_ring_view *ret_view, bugpack_error *error) {
    int fd = -1;
    bugpack_status status = bp_file_open_regular(home_fd, name, &fd, error);
    if (status == BUGPACK_OK) {
        status = bp_spool_open(records, dir_fd, UINT64_MAX, error);
    }
    if (status == BUGPACK_OK) {
        status = bp_ring_salvage(fd, bp_spool_sink, records, ret_view, error);
    }
    if (status == BUGPACK_OK) {
        status = bp_spool_flush(records, error);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return status;
}

static bool has_file(int home_fd, const char *name) {
    return faccessat(home_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void salvage_part(int home_fd, const char *name, int dir_fd, bp_frozen_part *part) {
    part->is_on = has_file(home_fd, name);
    part->records = (bp_spool)BP_SPOOL_INIT;
    if (part->is_on) {
        (void)salvage_file(home_fd, name, dir_fd, &part->records, &part->view, &part->error);
    }
}

static bool read_channel(int home_fd, unsigned number, bp_traffic_identity *ret_identity) {
    char name[32];
    int fd = -1;
    (void)snprintf(name, sizeof name, BP_RING_FILE_CHANNEL, number);
    if (bp_file_open_regular(home_fd, name, &fd, NULL) != BUGPACK_OK) {
        return false;
    }
    ssize_t count = pread(fd, ret_identity, sizeof *ret_identity, 0);
    (void)close(fd);
    return count == (ssize_t)sizeof *ret_identity &&
           memchr(ret_identity->name, '\0', sizeof ret_identity->name) != NULL;
}

static void salvage_channel(int home_fd, unsigned number, int dir_fd, bp_frozen *frozen) {
    bp_traffic_frozen *channel = &frozen->channels[frozen->channel_count];
    char name[32];
    *channel = (bp_traffic_frozen){
        .messages = BP_SPOOL_INIT, .pins = BP_SPOOL_INIT, .wall_offset_ns = frozen->wall_offset_ns};
    if (!read_channel(home_fd, number, &channel->identity)) {
        return;
    }
    frozen->has_traffic = true;
    frozen->channel_count++;
    (void)snprintf(name, sizeof name, BP_RING_FILE_TRAFFIC, number);
    if (salvage_file(home_fd, name, dir_fd, &channel->messages, &channel->messages_view,
                     &frozen->traffic_error) != BUGPACK_OK) {
        return;
    }
    (void)snprintf(name, sizeof name, BP_RING_FILE_PINS, number);
    if (has_file(home_fd, name)) {
        (void)salvage_file(home_fd, name, dir_fd, &channel->pins, &channel->pins_view,
                           &frozen->traffic_error);
    }
}

void bp_salvage(int home_fd, const bp_home_identity *identity, int dir_fd, bp_frozen *ret_frozen) {
    memset(ret_frozen, 0, sizeof *ret_frozen);
    ret_frozen->wall_offset_ns = identity->wall_offset_ns;
    salvage_part(home_fd, BP_RING_FILE_LOG, dir_fd, &ret_frozen->log);
    salvage_part(home_fd, BP_RING_FILE_NOTIFICATIONS, dir_fd, &ret_frozen->notifications);
    salvage_part(home_fd, BP_RING_FILE_HISTORY, dir_fd, &ret_frozen->history);
    for (unsigned number = 0; number < BUGPACK_CHANNEL_MAX; number++) {
        salvage_channel(home_fd, number, dir_fd, ret_frozen);
    }
}
