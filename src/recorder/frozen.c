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
