#include "recorder/frozen.h"

static void release_part(bp_frozen_part *part) {
    if (part->is_on) {
        bp_spool_release(&part->records);
    }
}

void bp_frozen_release(bp_frozen *frozen) {
    release_part(&frozen->log);
    release_part(&frozen->notifications);
    release_part(&frozen->history);
    for (size_t i = 0; i < frozen->channel_count; i++) {
        bp_traffic_frozen_release(&frozen->channels[i]);
    }
    frozen->channel_count = 0;
}

static uint64_t part_bytes(const bp_frozen_part *part) {
    return part->is_on ? part->records.size : 0;
}

uint64_t bp_frozen_bytes(const bp_frozen *frozen) {
    uint64_t bytes = part_bytes(&frozen->log) + part_bytes(&frozen->notifications) +
                     part_bytes(&frozen->history);
    for (size_t i = 0; i < frozen->channel_count; i++) {
        bytes += frozen->channels[i].messages.size + frozen->channels[i].pins.size;
    }
    return bytes;
}

bool bp_frozen_is_whole(const bp_frozen *frozen) {
    return (!frozen->log.is_on || frozen->log.error.status == BUGPACK_OK) &&
           (!frozen->notifications.is_on || frozen->notifications.error.status == BUGPACK_OK) &&
           (!frozen->history.is_on || frozen->history.error.status == BUGPACK_OK) &&
           frozen->traffic_error.status == BUGPACK_OK;
}

unsigned bp_frozen_fds(const bp_frozen *frozen) {
    const bp_spool *const spools[] = {&frozen->log.records, &frozen->notifications.records,
                                      &frozen->history.records};
    const bool are_on[] = {frozen->log.is_on, frozen->notifications.is_on, frozen->history.is_on};
    unsigned count = 0;
    for (size_t i = 0; i < sizeof spools / sizeof spools[0]; i++) {
        count += are_on[i] && bp_spool_is_open(spools[i]);
    }
    for (size_t i = 0; i < frozen->channel_count; i++) {
        count += bp_spool_is_open(&frozen->channels[i].messages);
        count += bp_spool_is_open(&frozen->channels[i].pins);
    }
    return count;
}
