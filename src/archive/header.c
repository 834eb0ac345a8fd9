#include "archive/header.h"

#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "base/utf8.h"

/* Which compressor's effort was used, and that the name is UTF-8 (4.4.4): nothing else. */
enum { flag_encrypted = 1u << 0, flag_descriptor = 1u << 3 };
static const uint16_t flags_known = 1u << 1 | 1u << 2 | BP_ZIP_FLAG_UTF8;

/* Extra fields that give another name (4.6.8, 4.6.9). */
enum { extra_unicode_comment = 0x6375, extra_unicode_name = 0x7075 };

/* The host systems (4.4.2) whose external attributes hold a mode; and DOS's own directory bit. */
enum { system_unix = 3, system_darwin = 19, dos_directory = 0x10 };

/* unzip opens no entry of a later version, Python's zipfile none above 6.3. They read the low byte
 * alone; bugpack needs 2.0, or 4.5 with zip64. */
enum { version_max = 46 };

static const char bad_zip64_field[] = "its zip64 field is damaged";
static const char later_version[] = "it needs a later version of zip than readers know";

static bool is_bad_component(const char *component, size_t length) {
    return length == 0 || (length == 1 && component[0] == '.') ||
           (length == 2 && component[0] == '.' && component[1] == '.');
}

/* Why an entry cannot have this name, as the end of a sentence; NULL when it can. */
static const char *refuse_name(const char *name, size_t byte_count) {
    if (byte_count == 0 || byte_count > BP_DIRECTORY_NAME_MAX) {
        return "its name must have 1 to 255 bytes";
    }
    if (!bp_utf8_is_valid(name, byte_count)) {
        return "its name is not valid UTF-8";
    }
    for (size_t i = 0; i < byte_count; i++) {
        unsigned char byte = (unsigned char)name[i];
        if (byte < 0x20 || byte == 0x7F || byte == '\\' || byte == ':') {
            return "its name holds a control character, a backslash or a colon";
        }
    }
    if (name[byte_count - 1] == '/') {
        return "it is a directory";
    }
    for (size_t begin = 0, i = 0; i <= byte_count; i++) {
        if (i == byte_count || name[i] == '/') {
            if (is_bad_component(name + begin, i - begin)) {
                return "its name has a component that is empty, \".\" or \"..\"";
            }
            begin = i + 1;
        }
    }
    return NULL;
}

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
        if (id == BP_ZIP_EXTRA_ZIP64) {
            if (zip64 != NULL) {
                return bad_zip64_field;
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

/* Takes the next 8 bytes of the zip64 field where the plain value says so. */
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
    return is_good ? NULL : bad_zip64_field;
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
    bool is_utf8 = (entry->flags & BP_ZIP_FLAG_UTF8) != 0;
    return is_utf8 || bp_zip_is_ascii(entry->name, entry->name_bytes)
               ? NULL
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
    const char *wrong = refuse_name(ret_entry->name, name_bytes);
    if (wrong == NULL) {
        wrong = take_sizes(bytes + BP_ZIP_CENTRAL_BYTES + name_bytes, extra_bytes,
                           &ret_entry->bytes, &ret_entry->packed_bytes, &ret_entry->header_offset);
    }
    if (wrong == NULL && (bp_zip_u16(bytes + 32) != 0 || bp_zip_u16(bytes + 34) != 0)) {
        wrong = "it has a comment, or is in another file";
    }
    if (wrong == NULL && bytes[6] > version_max) {
        wrong = later_version;
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
    if (bytes[4] > version_max) {
        return later_version;
    }
    if (bp_zip_u16(bytes + 6) != entry->flags || bp_zip_u16(bytes + 8) != entry->method ||
        bp_zip_u32(bytes + 10) != entry->time || bp_zip_u32(bytes + 14) != entry->crc ||
        plain_bytes != entry->bytes || packed_bytes != entry->packed_bytes) {
        return "its two headers differ";
    }
    return NULL;
}

static const char not_a_zip[] = "it is no zip, or its end is missing";
static const char several_parts[] = "it is a part of a zip in several files";
static const char bad_zip64_end[] = "its zip64 end is damaged";

/* What the plain end says; its numbers may be in the zip64 one. */
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

/* A number that both have must be the same in both. */
static bool agrees(uint64_t plain, uint64_t elsewhere, uint64_t large) {
    return plain == elsewhere || plain == large;
}

/* `bytes` are all three parts; `offset` is where the first of them is in the file. */
static const char *parse_zip64(const unsigned char *bytes, uint64_t offset, const plain_end *plain,
                               bp_end_record *ret_record) {
    const unsigned char *locator = bytes + BP_ZIP64_END_BYTES;
    if (memcmp(bytes, "PK\6\6", 4) != 0 || memcmp(locator, "PK\6\7", 4) != 0) {
        return bad_zip64_end;
    }
    if (bp_zip_u32(locator + 4) != 0 || bp_zip_u32(locator + 16) != 1 ||
        bp_zip_u32(bytes + 16) != 0 || bp_zip_u32(bytes + 20) != 0 ||
        bp_zip_u64(bytes + 24) != bp_zip_u64(bytes + 32)) {
        return several_parts;
    }
    bp_end_record record = {bp_zip_u64(bytes + 32), bp_zip_u64(bytes + 48), bp_zip_u64(bytes + 40)};
    bool is_good = bp_zip_u64(locator + 8) == offset &&
                   bp_zip_u64(bytes + 4) == BP_ZIP64_END_BYTES - 12 /* counts from its own end */ &&
                   agrees(plain->entry_count, BP_ZIP_ELSEWHERE_16, record.entry_count) &&
                   agrees(plain->directory_bytes, BP_ZIP_ELSEWHERE_32, record.directory_bytes) &&
                   agrees(plain->directory_offset, BP_ZIP_ELSEWHERE_32, record.directory_offset);
    if (!is_good) {
        return bad_zip64_end;
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
            return bad_zip64_end;
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
