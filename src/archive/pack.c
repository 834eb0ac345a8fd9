#include "archive/pack.h"

#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "archive/crew.h"
#include "archive/deflate.h"
#include "base/temp_file.h"

/* Below this a helper would be started for less than it costs. */
static const uint64_t helped_bytes = (uint64_t)1 << 20;

struct bp_packer {
    int dir_fd;
    const bp_archive_helpers *helpers;
    bp_stop *stop;
    bp_crew *crew;          /* NULL until something is to be deflated */
    bp_temp_file temp_file; /* closed until something goes there */
};

bp_packer *bp_packer_new(int dir_fd, const bp_archive_helpers *helpers, bp_stop *stop) {
    bp_packer *packer = calloc(1, sizeof *packer);
    if (packer != NULL) {
        *packer = (bp_packer){
            .dir_fd = dir_fd, .helpers = helpers, .stop = stop, .temp_file = BP_TEMP_FILE_INIT};
    }
    return packer;
}

void bp_packer_rest(bp_packer *packer) {
    bp_crew_free(packer->crew, !packer->stop->is_cancelled);
    packer->crew = NULL;
}

void bp_packer_free(bp_packer *packer) {
    if (packer != NULL) {
        bp_packer_rest(packer);
        bp_temp_file_release(&packer->temp_file);
        free(packer);
    }
}

static bool fail(bp_stop *stop, bugpack_status status, int system_errno) {
    if (status == BUGPACK_ERR_NO_MEMORY) {
        stop->is_no_memory = true;
    } else if (stop->system_errno == 0) {
        stop->system_errno = system_errno;
    }
    return false;
}

static bool make_ready(bp_packer *packer, uint64_t byte_count) {
    if (packer->crew == NULL) {
        packer->crew = bp_crew_new();
    }
    if (packer->crew == NULL) {
        return fail(packer->stop, BUGPACK_ERR_NO_MEMORY, 0);
    }
    if (byte_count > helped_bytes) {
        bp_crew_hire(packer->crew, packer->helpers);
    }
    return true;
}

/* Where deflated bytes go: the spool, or memory. They are dropped once they are too many. */
struct target {
    uint64_t began_at; /* in the temp_file */
    uint64_t size;
    uint64_t max_size;
    bool is_in_temp_file;
    bool is_given_up;
    bp_buffer memory;
};

static bool begin(bp_packer *packer, uint64_t plain_bytes, struct target *target) {
    bp_buffer_init(&target->memory, (size_t)plain_bytes);
    target->max_size = plain_bytes > 0 ? plain_bytes - 1 : 0;
    target->is_in_temp_file = packer->dir_fd >= 0 && plain_bytes > BP_DEFLATE_CHUNK_BYTES;
    if (target->is_in_temp_file && !bp_temp_file_is_open(&packer->temp_file)) {
        bugpack_error error = BUGPACK_ERROR_INIT;
        bugpack_status status =
            bp_temp_file_open(&packer->temp_file, packer->dir_fd, UINT64_MAX, &error);
        if (status != BUGPACK_OK) {
            return fail(packer->stop, status, error.system_errno);
        }
    }
    target->began_at = packer->temp_file.size;
    return true;
}

static bool give_up(bp_packer *packer, struct target *target) {
    target->is_given_up = true;
    bp_buffer_release(&target->memory);
    if (target->is_in_temp_file &&
        bp_temp_file_truncate(&packer->temp_file, target->began_at) != BUGPACK_OK) {
        return fail(packer->stop, packer->temp_file.status, packer->temp_file.system_errno);
    }
    return true;
}

/* Takes the oldest chunk's bytes, in the order of the chunks; true when there was none. */
static bool put_oldest(bp_packer *packer, struct target *target) {
    const bp_slot *slot = bp_crew_settle(packer->crew, packer->stop);
    if (packer->stop->is_cancelled) {
        return false;
    }
    if (slot == NULL || target->is_given_up) {
        return true;
    }
    target->size += slot->out_bytes;
    if (target->size > target->max_size) {
        return give_up(packer, target);
    }
    bugpack_status status = target->is_in_temp_file
                                ? bp_temp_file_write(&packer->temp_file, slot->out, slot->out_bytes)
                                : bp_buffer_append(&target->memory, slot->out, slot->out_bytes);
    return status == BUGPACK_OK || fail(packer->stop, status, packer->temp_file.system_errno);
}

static bool load(bp_packer *packer, const bp_bytes *plain, uint64_t at, bp_slot *slot) {
    uint64_t left = plain->byte_count - at;
    slot->is_last = left <= BP_DEFLATE_CHUNK_BYTES;
    slot->byte_count = slot->is_last ? (size_t)left : BP_DEFLATE_CHUNK_BYTES;
    if (plain->memory != NULL && !bp_crew_has_helpers(packer->crew)) {
        slot->bytes = (const unsigned char *)plain->memory + at;
        return true;
    }
    slot->bytes = slot->read;
    if (plain->memory != NULL) {
        memcpy(slot->read, (const unsigned char *)plain->memory + at, slot->byte_count);
        return true;
    }
    return bp_bytes_read(plain, at, slot->read, slot->byte_count, packer->stop);
}

static bool pack_chunks(bp_packer *packer, const bp_bytes *plain, struct target *target,
                        uLong *crc) {
    uint64_t at = 0;
    while (at < plain->byte_count) {
        if (bp_stop_poll(packer->stop) ||
            (bp_crew_is_full(packer->crew) && !put_oldest(packer, target))) {
            return false;
        }
        bp_slot *slot =
            bp_crew_next(packer->crew, plain->memory == NULL || bp_crew_has_helpers(packer->crew));
        if (slot == NULL) {
            return fail(packer->stop, BUGPACK_ERR_NO_MEMORY, 0);
        }
        if (!load(packer, plain, at, slot)) {
            return false;
        }
        *crc = crc32(*crc, slot->bytes, (uInt)slot->byte_count);
        at += slot->byte_count;
        packer->stop->done_bytes += slot->byte_count;
        if (!target->is_given_up) {
            bp_crew_submit(packer->crew);
        }
    }
    while (!target->is_given_up && !bp_crew_is_empty(packer->crew)) {
        if (!put_oldest(packer, target)) {
            return false;
        }
    }
    return true;
}

/* The spool's bytes have to be in its file before anybody reads them there. */
static bool finish(bp_packer *packer, const struct target *target) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_status status =
        target->is_in_temp_file ? bp_temp_file_flush(&packer->temp_file, &error) : BUGPACK_OK;
    return status == BUGPACK_OK || fail(packer->stop, status, error.system_errno);
}

/*
 * Whether the bytes are deflated already: a PNG, which deflating anew makes smaller by nothing
 * worth the time. Any other content is tried: a zip or a JPEG of a host may hold stored parts.
 */
static bool is_png(const bp_packer *packer, const bp_bytes *plain) {
    static const unsigned char signature[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
    unsigned char start[sizeof signature];
    if (plain->byte_count < sizeof start) {
        return false;
    }
    if (plain->memory != NULL) {
        return memcmp(plain->memory, signature, sizeof signature) == 0;
    }
    return bp_bytes_read(plain, 0, start, sizeof start, packer->stop) &&
           memcmp(start, signature, sizeof signature) == 0;
}

bool bp_pack(bp_packer *packer, const bp_bytes *plain, bp_packed *ret_packed) {
    struct target target = {0};
    uLong crc = crc32(0, Z_NULL, 0);
    if (plain->byte_count == 0) {
        target.is_given_up = true;
    } else if (!make_ready(packer, plain->byte_count) ||
               !begin(packer, plain->byte_count, &target)) {
        return false;
    } else {
        target.is_given_up = is_png(packer, plain);
        bool is_packed = pack_chunks(packer, plain, &target, &crc) && finish(packer, &target);
        if (packer->stop->is_cancelled) {
            bp_packer_rest(packer); /* a helper may be at work: nobody waits for it */
        } else {
            bp_crew_drop_all(packer->crew); /* what was given up, and what failed half-way */
        }
        if (!is_packed) {
            bp_buffer_release(&target.memory);
            return false;
        }
    }
    bp_packed packed = {.crc = (uint32_t)crc, .stored = *plain, .deflated = target.memory};
    if (!target.is_given_up) {
        packed.is_deflated = true;
        packed.stored = (bp_bytes){.memory = target.memory.data,
                                   .fd = packer->temp_file.fd,
                                   .offset = target.began_at,
                                   .byte_count = target.size};
    }
    *ret_packed = packed;
    return true;
}
