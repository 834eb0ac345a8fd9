#include "model/fit.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/status.h"
#include "model/entry.h"

enum { pcap_header_bytes = 24, frame_header_bytes = 16, try_count = 6, round_count = 4 };

/* Less of an entry says nothing. */
static const uint64_t share_min_bytes = 1024;

static const size_t line_max_bytes = (size_t)1 << 20;

/* The growth, deflated, of a manifest line whose entry has lost something: its reason, which is
 * much the same in all lines, and a few numbers. And what all of them have. Where it is more, the
 * next round knows. */
static const uint64_t loss_line_bytes = 64, loss_bytes = 1024;

/* An entry on its way through bp_archive_change. Everything before `drop_bytes` is dropped, and
 * the rest of the record there. */
typedef struct cutting {
    bp_entry_cut cut;
    uint64_t drop_bytes;
    uint64_t at; /* of the next byte */
    bool is_kept;
    uint64_t frame_count; /* dropped; of an index: those that its pcap has lost */
    unsigned char header[frame_header_bytes];
    size_t header_bytes; /* of it that were read */
    uint64_t left_bytes; /* of a dropped frame */
    bp_buffer line;      /* of an index */
} cutting;

/* An entry, and when its turn comes. */
typedef struct candidate {
    size_t index; /* in the archive */
    unsigned worth, rank;
    bp_entry_cut cut;
} candidate;

typedef struct fitting {
    bp_archive *archive;
    uint64_t max_bytes, left_bytes;
    uint64_t lost_frame_count; /* of traffic.pcap */
    const bp_fit_manifest *manifest;
    candidate *candidates; /* by worth */
    size_t count;
} fitting;

static bugpack_status cut_lines(cutting *it, const char *bytes, size_t byte_count, bp_sink *pass_on,
                                void *archive) {
    uint64_t first = it->drop_bytes == 0 ? 0 : it->drop_bytes - 1;
    size_t skipped = byte_count;
    if (it->is_kept || it->drop_bytes == 0) {
        skipped = 0;
    } else if (it->at + byte_count > first) {
        size_t from = it->at > first ? 0 : (size_t)(first - it->at);
        const char *newline = memchr(bytes + from, '\n', byte_count - from);
        skipped = newline == NULL ? byte_count : (size_t)(newline + 1 - bytes);
        it->is_kept = newline != NULL;
    }
    it->at += byte_count;
    return skipped < byte_count ? pass_on(archive, bytes + skipped, byte_count - skipped)
                                : BUGPACK_OK;
}

/* The header of a frame is whole: keeps it and all behind it, or drops the frame. */
static bugpack_status judge_frame(cutting *it, bp_sink *pass_on, void *archive) {
    const unsigned char *kept =
        it->header + 8; /* its length in the file, as recorder/pcap.c has it */
    it->header_bytes = 0;
    if (it->at - frame_header_bytes >= it->drop_bytes) {
        it->is_kept = true;
        return pass_on(archive, it->header, frame_header_bytes);
    }
    it->frame_count++;
    it->left_bytes =
        kept[0] | (uint32_t)kept[1] << 8 | (uint32_t)kept[2] << 16 | (uint32_t)kept[3] << 24;
    return BUGPACK_OK;
}

static bugpack_status cut_frames(cutting *it, const char *bytes, size_t byte_count,
                                 bp_sink *pass_on, void *archive) {
    bugpack_status status = BUGPACK_OK;
    while (status == BUGPACK_OK && byte_count > 0) {
        uint64_t wanted = byte_count;
        bool is_in_header = it->at < pcap_header_bytes;
        if (is_in_header) {
            wanted = pcap_header_bytes - it->at;
        } else if (!it->is_kept) {
            wanted = it->left_bytes > 0 ? it->left_bytes : frame_header_bytes - it->header_bytes;
        }
        size_t count = wanted < byte_count ? (size_t)wanted : byte_count;
        it->at += count;
        if (is_in_header || it->is_kept) {
            status = pass_on(archive, bytes, count);
        } else if (it->left_bytes > 0) {
            it->left_bytes -= count;
        } else {
            memcpy(it->header + it->header_bytes, bytes, count);
            it->header_bytes += count;
            status = it->header_bytes == frame_header_bytes ? judge_frame(it, pass_on, archive)
                                                            : BUGPACK_OK;
        }
        bytes += count;
        byte_count -= count;
    }
    return status;
}

/* A whole line: its frame is counted from the first one that the pcap still has. */
static bugpack_status pass_index_line(cutting *it, bp_sink *pass_on, void *archive) {
    static const char key[] = "\"frame\":";
    const char *line = bp_buffer_text(&it->line);
    uint64_t line_at = it->at - it->line.size;
    const char *frame = strstr(line, key);
    char *end = NULL;
    if (line_at < it->drop_bytes) {
        return BUGPACK_OK;
    }
    if (frame == NULL) {
        return pass_on(archive, line, it->line.size);
    }
    frame += strlen(key);
    uint64_t number = strtoull(frame, &end, 10);
    if (number <= it->frame_count) {
        return BUGPACK_OK;
    }
    char text[24];
    (void)snprintf(text, sizeof text, " %" PRIu64, number - it->frame_count);
    const char *from = *frame == ' ' ? text : text + 1;
    bugpack_status status = pass_on(archive, line, (size_t)(frame - line));
    status = status == BUGPACK_OK ? pass_on(archive, from, strlen(from)) : status;
    return status == BUGPACK_OK ? pass_on(archive, end, it->line.size - (size_t)(end - line))
                                : status;
}

static bugpack_status cut_index(cutting *it, const char *bytes, size_t byte_count, bp_sink *pass_on,
                                void *archive) {
    bugpack_status status = BUGPACK_OK;
    while (status == BUGPACK_OK && byte_count > 0) {
        const char *newline = memchr(bytes, '\n', byte_count);
        size_t count = newline == NULL ? byte_count : (size_t)(newline + 1 - bytes);
        status = bp_buffer_append(&it->line, bytes, count);
        it->at += count;
        if (status == BUGPACK_OK && newline != NULL) {
            status = pass_index_line(it, pass_on, archive);
            bp_buffer_clear(&it->line);
        }
        bytes += count;
        byte_count -= count;
    }
    return status;
}

/* A bp_archive_filter. */
static bugpack_status cut(void *context, const char *entry, const void *bytes, size_t byte_count,
                          bp_sink *pass_on, void *archive) {
    cutting *it = context;
    (void)entry;
    if (bytes == NULL) {
        return BUGPACK_OK; /* a record without an end goes */
    }
    switch (it->cut) {
    case BP_ENTRY_FRAMES:
        return cut_frames(it, bytes, byte_count, pass_on, archive);
    case BP_ENTRY_INDEX:
        return cut_index(it, bytes, byte_count, pass_on, archive);
    default:
        return cut_lines(it, bytes, byte_count, pass_on, archive);
    }
}

/* Leaves an entry out; those behind it move up. */
static void leave_out(fitting *it, const candidate *one) {
    size_t index = one->index;
    bp_archive_written entry = bp_archive_get(it->archive, index);
    bp_fit_loss loss = {.name = entry.name, .lost_bytes = entry.bytes};
    (void)snprintf(loss.reason, sizeof loss.reason,
                   "left out, as the report may have at most %" PRIu64 " bytes", it->max_bytes);
    it->manifest->take(it->manifest->context, &loss);
    if (one->cut == BP_ENTRY_FRAMES) {
        it->lost_frame_count = 0;
    }
    bp_archive_remove(it->archive, index);
    for (size_t i = 0; i < it->count; i++) {
        it->candidates[i].index -= it->candidates[i].index > index;
    }
}

/* Drops the oldest records, at least `drop_bytes` of them. */
static bugpack_status drop_oldest(fitting *it, const candidate *one, uint64_t drop_bytes,
                                  bugpack_error *error) {
    cutting entry = {.cut = one->cut, .drop_bytes = drop_bytes};
    bp_buffer_init(&entry.line, line_max_bytes);
    if (one->cut == BP_ENTRY_INDEX) {
        entry.frame_count = it->lost_frame_count;
    }
    bugpack_status status = bp_archive_change(it->archive, one->index, cut, &entry, error);
    bp_buffer_release(&entry.line);
    if (status == BUGPACK_OK && one->cut == BP_ENTRY_FRAMES) {
        it->lost_frame_count += entry.frame_count;
    } else if (status == BUGPACK_OK && one->cut == BP_ENTRY_INDEX) {
        it->lost_frame_count = 0; /* its frames are counted from the first one again */
    }
    return status;
}

/* Cuts an entry until it has at most `share_bytes` of the zip, or leaves it out. */
static bugpack_status cut_to(fitting *it, const candidate *one, uint64_t share_bytes,
                             bugpack_error *error) {
    bp_archive *archive = it->archive;
    bp_archive_written entry = bp_archive_get(archive, one->index);
    uint64_t original_bytes = entry.bytes;
    bugpack_status status = BUGPACK_OK;
    bp_fit_loss loss = {.lost_bytes = 0};
    if (share_bytes < share_min_bytes) {
        leave_out(it, one);
        return BUGPACK_OK;
    }
    for (int i = 0; status == BUGPACK_OK && i < try_count; i++) {
        bool is_over = entry.zip_bytes > share_bytes;
        bool is_shifted = one->cut == BP_ENTRY_INDEX && it->lost_frame_count > 0;
        if (!is_over && !is_shifted) {
            break;
        }
        uint64_t drop_bytes = 0;
        if (is_over) { /* entries compress alike, more or less */
            uint64_t keep_bytes = entry.bytes * share_bytes / entry.zip_bytes;
            drop_bytes = entry.bytes - keep_bytes + keep_bytes / 32;
        }
        status = drop_oldest(it, one, drop_bytes, error);
        entry = bp_archive_get(archive, one->index);
        bp_archive_take_sha256(archive, loss.sha256);
    }
    if (status != BUGPACK_OK && status != BUGPACK_ERR_LIMIT) {
        return status;
    }
    bool is_empty = entry.bytes <= (one->cut == BP_ENTRY_FRAMES ? pcap_header_bytes : 0) &&
                    entry.bytes < original_bytes;
    if (status == BUGPACK_ERR_LIMIT || entry.zip_bytes > share_bytes || is_empty) {
        leave_out(it, one);
        return BUGPACK_OK;
    }
    loss.name = entry.name;
    loss.bytes = entry.bytes;
    loss.lost_bytes = original_bytes - entry.bytes;
    (void)snprintf(loss.reason, sizeof loss.reason,
                   "without its oldest %" PRIu64 " of %" PRIu64
                   " bytes, as the report may have at most %" PRIu64,
                   loss.lost_bytes, original_bytes, it->max_bytes);
    if (loss.lost_bytes > 0) {
        it->manifest->take(it->manifest->context, &loss);
    }
    return BUGPACK_OK;
}

static int compare(const void *left, const void *right) {
    const candidate *one = left, *other = right;
    if (one->worth != other->worth) {
        return one->worth < other->worth ? -1 : 1;
    }
    if (one->rank != other->rank) {
        return one->rank < other->rank ? -1 : 1;
    }
    return one->index < other->index ? -1 : 1;
}

/* Lists what may be left out, and takes the rest from what is left; `ret_bytes` is all of it. */
static void list_candidates(fitting *it, uint64_t *ret_bytes) {
    for (size_t i = 0; i < bp_archive_count(it->archive); i++) {
        bp_archive_written entry = bp_archive_get(it->archive, i);
        bp_entry_id id = bp_entry_find(entry.name);
        candidate one = {i, UINT_MAX, bp_entry_rank(entry.name), BP_ENTRY_WHOLE};
        if (id < BP_ENTRY_COUNT) {
            one.worth = bp_entries[id].worth;
            one.cut = bp_entries[id].cut;
        }
        if (one.worth > 0) {
            it->candidates[it->count++] = one;
            *ret_bytes += entry.zip_bytes;
        } else {
            uint64_t left = it->left_bytes;
            it->left_bytes -= entry.zip_bytes < left ? entry.zip_bytes : left;
        }
    }
    qsort(it->candidates, it->count, sizeof it->candidates[0], compare);
}

/* The bytes that entries of less worth than `index` would take: those that can be cut, and those
 * small enough to stay whole beside it. */
static uint64_t claimed_bytes(const fitting *it, size_t index) {
    uint64_t bytes = 0;
    for (size_t i = index + 1; i < it->count; i++) {
        const candidate *one = &it->candidates[i];
        uint64_t zip_bytes = bp_archive_get(it->archive, one->index).zip_bytes;
        bool may_fit = one->cut != BP_ENTRY_WHOLE || zip_bytes <= it->left_bytes / 2;
        bytes += may_fit ? zip_bytes : 0;
    }
    return bytes;
}

/* Makes all but the manifest fit into what `fixed_bytes` leave. */
static bugpack_status lose(fitting *it, uint64_t fixed_bytes, bugpack_error *error) {
    bugpack_status status = BUGPACK_OK;
    uint64_t bytes = 0;
    it->left_bytes = it->max_bytes > fixed_bytes ? it->max_bytes - fixed_bytes : 0;
    it->count = 0;
    list_candidates(it, &bytes);
    bool fits = bytes <= it->left_bytes;
    for (size_t i = 0; !fits && status == BUGPACK_OK && i < it->count; i++) {
        const candidate *one = &it->candidates[i];
        size_t count = bp_archive_count(it->archive);
        uint64_t zip_bytes = bp_archive_get(it->archive, one->index).zip_bytes;
        uint64_t left = it->left_bytes, half = left / 2;
        if (one->cut != BP_ENTRY_WHOLE) {
            uint64_t claimed = claimed_bytes(it, i);
            uint64_t unclaimed = left > claimed ? left - claimed : 0;
            status = cut_to(it, one, unclaimed > half ? unclaimed : half, error);
        } else if (zip_bytes > left) {
            leave_out(it, one);
        }
        if (status == BUGPACK_OK && bp_archive_count(it->archive) == count) {
            it->left_bytes -= bp_archive_get(it->archive, one->index).zip_bytes;
        }
    }
    return status;
}

static uint64_t zip_bytes_of(const bp_archive *archive) {
    uint64_t bytes = BP_ARCHIVE_END_BYTES;
    for (size_t i = 0; i < bp_archive_count(archive); i++) {
        bytes += bp_archive_get(archive, i).zip_bytes;
    }
    return bytes;
}

bugpack_status bp_fit(bp_archive *archive, uint64_t max_bytes, const bp_fit_manifest *manifest,
                      bugpack_error *error) {
    fitting it = {.archive = archive, .max_bytes = max_bytes, .manifest = manifest};
    bugpack_status status = manifest->add(manifest->context, error);
    for (int i = 0; status == BUGPACK_OK && max_bytes > 0 && zip_bytes_of(archive) > max_bytes;
         i++) {
        size_t count = bp_archive_count(archive) - 1;
        uint64_t bytes = bp_archive_get(archive, count).zip_bytes;
        uint64_t fixed_bytes = bytes + bytes / 16 + count * loss_line_bytes + loss_bytes;
        bool is_last = i == round_count - 1; /* then all goes */
        if (i == round_count) {
            status = bp_fail(error, BUGPACK_ERR_LIMIT,
                             "the report cannot have at most %" PRIu64
                             " bytes: what is never left out has %" PRIu64,
                             max_bytes, zip_bytes_of(archive));
            break;
        }
        if (i == 0) {
            it.candidates = calloc(count + 1, sizeof it.candidates[0]);
        }
        bp_archive_remove(archive, count);
        status = it.candidates == NULL
                     ? bp_fail_memory(error, "make a report fit")
                     : lose(&it, is_last ? max_bytes : fixed_bytes + BP_ARCHIVE_END_BYTES, error);
        if (status == BUGPACK_OK) {
            status = manifest->add(manifest->context, error);
        }
    }
    free(it.candidates);
    return status;
}
