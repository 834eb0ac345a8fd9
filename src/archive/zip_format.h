/*
 * The bytes of a zip: where its fields are (APPNOTE.TXT 4.3 and 4.5.3) and how to read them.
 */
#ifndef BP_ARCHIVE_ZIP_FORMAT_H
#define BP_ARCHIVE_ZIP_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BP_ZIP_LOCAL_BYTES = 30,
    BP_ZIP_CENTRAL_BYTES = 46,
    BP_ZIP_END_BYTES = 22,
    BP_ZIP64_LOCATOR_BYTES = 20,
    BP_ZIP64_END_BYTES = 56,
    BP_ZIP_STORED = 0,
    BP_ZIP_DEFLATED = 8,
    BP_ZIP_FLAG_UTF8 = 1 << 11,
    BP_ZIP_EXTRA_ZIP64 = 0x0001 /* the extra field with the real sizes and offset */
};

/* What a field of 16 or 32 bits holds when the real value is in a zip64 one. */
#define BP_ZIP_ELSEWHERE_16 UINT16_MAX
#define BP_ZIP_ELSEWHERE_32 UINT32_MAX

static inline uint16_t bp_zip_u16(const unsigned char *bytes) {
    return (uint16_t)(bytes[0] | bytes[1] << 8);
}

static inline uint32_t bp_zip_u32(const unsigned char *bytes) {
    return bp_zip_u16(bytes) | (uint32_t)bp_zip_u16(bytes + 2) << 16;
}

static inline uint64_t bp_zip_u64(const unsigned char *bytes) {
    return bp_zip_u32(bytes) | (uint64_t)bp_zip_u32(bytes + 4) << 32;
}

/* Any other name needs BP_ZIP_FLAG_UTF8. */
static inline bool bp_zip_is_ascii(const char *text, size_t byte_count) {
    for (size_t i = 0; i < byte_count; i++) {
        if ((unsigned char)text[i] >= 0x80) {
            return false;
        }
    }
    return true;
}

#endif
