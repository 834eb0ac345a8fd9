#include "archive/end_record.h"

#include <stdbool.h>
#include <string.h>

static const char not_a_zip[] = "it is no zip, or its end is missing";
static const char several_parts[] = "it is a part of a zip in several files";
static const char bad_zip64[] = "its zip64 end is damaged";

/* What the plain end says; its numbers may stand elsewhere. */
typedef struct plain_end {
    uint16_t entry_count;
    uint32_t directory_bytes, directory_offset;
} plain_end;

static const char *parse_plain(const unsigned char *end, plain_end *ret_end) {
    if (memcmp(end, "PK\5\6", 4) != 0) {
        return not_a_zip;
    }
    uint16_t count_here = bp_zip_u16(end + 8);
    ret_end->entry_count = bp_zip_u16(end + 10);
    ret_end->directory_bytes = bp_zip_u32(end + 12);
    ret_end->directory_offset = bp_zip_u32(end + 16);
    if (bp_zip_u16(end + 4) != 0 || bp_zip_u16(end + 6) != 0 ||
        count_here != ret_end->entry_count) {
        return several_parts;
    }
    return bp_zip_u16(end + 20) != 0 ? not_a_zip : NULL; /* bytes of a comment that are not there */
}

static bool is_elsewhere(const plain_end *end) {
    return end->entry_count == BP_ZIP_ELSEWHERE_16 || end->directory_bytes == BP_ZIP_ELSEWHERE_32 ||
           end->directory_offset == BP_ZIP_ELSEWHERE_32;
}

/* A number that stands in both must be the same in both. */
static bool agrees(uint64_t plain, uint64_t elsewhere, uint64_t large) {
    return plain == elsewhere || plain == large;
}

/* `bytes` are all three parts; `offset` is where the first of them is in the file. */
static const char *parse_zip64(const unsigned char *bytes, uint64_t offset, const plain_end *plain,
                               bp_end_record *ret_record) {
    const unsigned char *locator = bytes + BP_ZIP64_END_BYTES;
    if (memcmp(bytes, "PK\6\6", 4) != 0 || memcmp(locator, "PK\6\7", 4) != 0) {
        return bad_zip64;
    }
    if (bp_zip_u32(locator + 4) != 0 || bp_zip_u32(locator + 16) > 1 ||
        bp_zip_u32(bytes + 16) != 0 || bp_zip_u32(bytes + 20) != 0 ||
        bp_zip_u64(bytes + 24) != bp_zip_u64(bytes + 32)) {
        return several_parts;
    }
    bp_end_record record = {bp_zip_u64(bytes + 32), bp_zip_u64(bytes + 48), bp_zip_u64(bytes + 40)};
    bool is_good =
        bp_zip_u64(locator + 8) == offset &&
        bp_zip_u64(bytes + 4) == BP_ZIP64_END_BYTES - 12 /* counts from behind itself */ &&
        agrees(plain->entry_count, BP_ZIP_ELSEWHERE_16, record.entry_count) &&
        agrees(plain->directory_bytes, BP_ZIP_ELSEWHERE_32, record.directory_bytes) &&
        agrees(plain->directory_offset, BP_ZIP_ELSEWHERE_32, record.directory_offset);
    if (!is_good) {
        return bad_zip64;
    }
    *ret_record = record;
    return NULL;
}

const char *bp_end_record_parse(const unsigned char *bytes, size_t byte_count, uint64_t file_bytes,
                                bp_end_record *ret_record) {
    plain_end plain;
    if (byte_count < BP_ZIP_END_BYTES) {
        return not_a_zip;
    }
    const char *wrong = parse_plain(bytes + byte_count - BP_ZIP_END_BYTES, &plain);
    if (wrong != NULL) {
        return wrong;
    }
    bp_end_record record = {plain.entry_count, plain.directory_offset, plain.directory_bytes};
    uint64_t end_offset = file_bytes - BP_ZIP_END_BYTES;
    if (is_elsewhere(&plain)) {
        if (byte_count < BP_END_RECORD_BYTES_MAX) {
            return bad_zip64;
        }
        end_offset = file_bytes - BP_END_RECORD_BYTES_MAX;
        wrong =
            parse_zip64(bytes + byte_count - BP_END_RECORD_BYTES_MAX, end_offset, &plain, &record);
        if (wrong != NULL) {
            return wrong;
        }
    }
    if (record.directory_offset > end_offset ||
        record.directory_bytes != end_offset - record.directory_offset) {
        return "its directory is not where its end says";
    }
    if (record.entry_count == 0) {
        return "it is empty";
    }
    *ret_record = record;
    return NULL;
}
