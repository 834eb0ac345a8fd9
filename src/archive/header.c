#include "archive/header.h"

#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "archive/zip_format.h"

/* Which compressor's effort was used, and that the name is UTF-8 (4.4.4): nothing else. */
enum { flag_encrypted = 1u << 0, flag_descriptor = 1u << 3, flag_utf8 = 1u << 11 };
static const uint16_t flags_known = 1u << 1 | 1u << 2 | flag_utf8;

/* Extra fields (4.5.2, 4.6.9): one with the real sizes, and those that give another name. */
enum { extra_zip64 = 0x0001, extra_unicode_comment = 0x6375, extra_unicode_name = 0x7075 };

/* The host systems (4.4.2) whose external attributes hold a mode; and DOS's own directory bit. */
enum { system_unix = 3, system_darwin = 19, dos_directory = 0x10 };

static const char bad_zip64[] = "its zip64 field is damaged";

/* Finds the zip64 field; refuses fields that are cut, repeated, or would give another name. */
static const char *walk_extra(const unsigned char *extra, size_t extra_bytes,
                              const unsigned char **ret_zip64, size_t *ret_zip64_bytes) {
    const unsigned char *zip64 = NULL;
    while (extra_bytes > 0) {
        size_t field_bytes = extra_bytes >= 4 ? bp_zip_u16(extra + 2) : SIZE_MAX;
        if (extra_bytes < 4 || field_bytes > extra_bytes - 4) {
            return "its extra fields are damaged";
        }
        uint16_t id = bp_zip_u16(extra);
        if (id == extra_unicode_name || id == extra_unicode_comment) {
            return "it has a second name";
        }
        if (id == extra_zip64) {
            if (zip64 != NULL) {
                return bad_zip64;
            }
            zip64 = extra + 4;
            *ret_zip64_bytes = field_bytes;
        }
        extra += 4 + field_bytes;
        extra_bytes -= 4 + field_bytes;
    }
    *ret_zip64 = zip64;
    return NULL;
}

/* Takes the next 8 bytes of the zip64 field where the plain value stands there. */
static bool take_large(uint64_t *value, const unsigned char **zip64, size_t *zip64_bytes) {
    if (*value != BP_ZIP_ELSEWHERE_32) {
        return true;
    }
    if (*zip64 == NULL || *zip64_bytes < 8) {
        return false;
    }
    *value = bp_zip_u64(*zip64);
    *zip64 += 8;
    *zip64_bytes -= 8;
    return true;
}

/* The sizes and, in the directory, the offset (`ret_offset` is NULL in the other header). */
static const char *take_sizes(const unsigned char *extra, size_t extra_bytes, uint64_t *bytes,
                              uint64_t *packed_bytes, uint64_t *ret_offset) {
    const unsigned char *zip64;
    size_t zip64_bytes = 0;
    const char *wrong = walk_extra(extra, extra_bytes, &zip64, &zip64_bytes);
    if (wrong != NULL) {
        return wrong;
    }
    bool is_good = take_large(bytes, &zip64, &zip64_bytes) &&
                   take_large(packed_bytes, &zip64, &zip64_bytes) &&
                   (ret_offset == NULL || take_large(ret_offset, &zip64, &zip64_bytes));
    return is_good ? NULL : bad_zip64;
}

static bool is_ascii(const char *text, size_t byte_count) {
    for (size_t i = 0; i < byte_count; i++) {
        if ((unsigned char)text[i] >= 0x80) {
            return false;
        }
    }
    return true;
}

static const char *refuse_kind(const bp_directory_entry *entry) {
    if ((entry->flags & flag_encrypted) != 0) {
        return "it is encrypted";
    }
    if ((entry->flags & flag_descriptor) != 0) {
        return "its sizes stand behind its bytes";
    }
    if ((entry->flags & ~flags_known) != 0) {
        return "it is flagged in a way that is not known";
    }
    if (entry->method != BP_ZIP_STORED && entry->method != BP_ZIP_DEFLATED) {
        return "it is neither stored nor deflated";
    }
    if (entry->method == BP_ZIP_STORED && entry->bytes != entry->packed_bytes) {
        return "it is stored with two sizes";
    }
    bool is_utf8 = (entry->flags & flag_utf8) != 0;
    return is_utf8 || is_ascii(entry->name, entry->name_bytes) ? NULL
                                                               : "its name is not marked as UTF-8";
}

static const char *refuse_type(const unsigned char *header) {
    uint32_t attributes = bp_zip_u32(header + 38);
    mode_t type = (mode_t)(attributes >> 16) & S_IFMT;
    bool has_mode = header[5] == system_unix || header[5] == system_darwin;
    if (has_mode && type != 0 && type != S_IFREG) {
        return S_ISLNK(type)   ? "it is a symbolic link"
               : S_ISDIR(type) ? "it is a directory"
                               : "it is no regular file";
    }
    return (attributes & dos_directory) != 0 ? "it is a directory" : NULL;
}

const char *bp_header_parse_central(const unsigned char *bytes, size_t available,
                                    bp_directory_entry *ret_entry, size_t *ret_length) {
    *ret_entry = (bp_directory_entry){.name = NULL};
    if (available < BP_ZIP_CENTRAL_BYTES || memcmp(bytes, "PK\1\2", 4) != 0) {
        return "its header is damaged";
    }
    size_t name_bytes = bp_zip_u16(bytes + 28), extra_bytes = bp_zip_u16(bytes + 30);
    size_t length = BP_ZIP_CENTRAL_BYTES + name_bytes + extra_bytes;
    if (length > available) {
        return "its header is damaged";
    }
    *ret_entry = (bp_directory_entry){.name = (const char *)bytes + BP_ZIP_CENTRAL_BYTES,
                                      .name_bytes = (uint16_t)name_bytes,
                                      .flags = bp_zip_u16(bytes + 8),
                                      .method = bp_zip_u16(bytes + 10),
                                      .time = bp_zip_u32(bytes + 12),
                                      .crc = bp_zip_u32(bytes + 16),
                                      .packed_bytes = bp_zip_u32(bytes + 20),
                                      .bytes = bp_zip_u32(bytes + 24),
                                      .header_offset = bp_zip_u32(bytes + 42)};
    const char *wrong = bp_directory_refuse_name(ret_entry->name, name_bytes);
    if (wrong == NULL) {
        wrong = take_sizes(bytes + BP_ZIP_CENTRAL_BYTES + name_bytes, extra_bytes,
                           &ret_entry->bytes, &ret_entry->packed_bytes, &ret_entry->header_offset);
    }
    if (wrong == NULL && (bp_zip_u16(bytes + 32) != 0 || bp_zip_u16(bytes + 34) != 0)) {
        wrong = "it has a comment, or is in another file";
    }
    wrong = wrong == NULL ? refuse_kind(ret_entry) : wrong;
    wrong = wrong == NULL ? refuse_type(bytes) : wrong;
    *ret_length = length;
    return wrong;
}

size_t bp_header_local_length(const unsigned char *bytes) {
    return memcmp(bytes, "PK\3\4", 4) != 0
               ? 0
               : (size_t)BP_ZIP_LOCAL_BYTES + bp_zip_u16(bytes + 26) + bp_zip_u16(bytes + 28);
}

const char *bp_header_check_local(const unsigned char *bytes, const bp_directory_entry *entry) {
    size_t name_bytes = bp_zip_u16(bytes + 26), extra_bytes = bp_zip_u16(bytes + 28);
    uint64_t packed_bytes = bp_zip_u32(bytes + 18), plain_bytes = bp_zip_u32(bytes + 22);
    if (name_bytes != entry->name_bytes ||
        memcmp(bytes + BP_ZIP_LOCAL_BYTES, entry->name, name_bytes) != 0) {
        return "it has two names";
    }
    const char *wrong = take_sizes(bytes + BP_ZIP_LOCAL_BYTES + name_bytes, extra_bytes,
                                   &plain_bytes, &packed_bytes, NULL);
    if (wrong != NULL) {
        return wrong;
    }
    if (bp_zip_u16(bytes + 6) != entry->flags || bp_zip_u16(bytes + 8) != entry->method ||
        bp_zip_u32(bytes + 10) != entry->time || bp_zip_u32(bytes + 14) != entry->crc ||
        plain_bytes != entry->bytes || packed_bytes != entry->packed_bytes) {
        return "its two headers differ";
    }
    return NULL;
}
