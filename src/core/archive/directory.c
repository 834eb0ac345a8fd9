#include "archive/directory.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/status.h"
#include "base/utf8.h"

enum { end_bytes = 22, flag_utf8 = 1 << 11 };

static uint16_t u16(const unsigned char *bytes) {
    return (uint16_t)(bytes[0] | bytes[1] << 8);
}

static uint32_t u32(const unsigned char *bytes) {
    return u16(bytes) | (uint32_t)u16(bytes + 2) << 16;
}

/* The flags (4.4.4). Known are the compressor's effort and that the name is UTF-8. */
enum { flag_encrypted = 1u << 0, flag_descriptor = 1u << 3 };
static const uint16_t flags_known = 1u << 1 | 1u << 2 | flag_utf8;

/* Extra fields that give other sizes or another name (4.5.3, 4.6.8, 4.6.9). */
enum { extra_zip64 = 0x0001, extra_unicode_comment = 0x6375, extra_unicode_name = 0x7075 };

/* The host systems (4.4.2) whose external attributes hold a mode; and DOS's own directory bit. */
enum { system_unix = 3, system_darwin = 19, dos_directory = 0x10 };

/* unzip opens no entry of a later version, Python's zipfile none above 6.3. They read the low byte
 * alone; bugpack needs 2.0. */
enum { version_max = 46 };

static const char later_version[] = "it needs a later version of zip than readers know";

/* The end of a sentence for where it is true. */
typedef struct check {
    bool is_wrong;
    const char *why;
} check;

#define FIRST_WRONG(checks) first_wrong(checks, sizeof(checks) / sizeof(checks)[0])

/* The sentence of the first check that is wrong; NULL when none is. */
static const char *first_wrong(const check *checks, size_t count) {
    while (count > 0 && !checks->is_wrong) {
        checks++;
        count--;
    }
    return count > 0 ? checks->why : NULL;
}

static const char *refuse_extra(const unsigned char *extra, size_t extra_bytes) {
    while (extra_bytes > 0) {
        size_t field_bytes = extra_bytes >= 4 ? u16(extra + 2) : SIZE_MAX;
        if (extra_bytes < 4 || field_bytes > extra_bytes - 4) {
            return "its extra fields are damaged";
        }
        uint16_t id = u16(extra);
        if (id == extra_zip64) {
            return "it has other sizes in a zip64 field";
        }
        if (id == extra_unicode_name || id == extra_unicode_comment) {
            return "it has a second name";
        }
        extra += 4 + field_bytes;
        extra_bytes -= 4 + field_bytes;
    }
    return NULL;
}

static bool is_ascii(const char *text, size_t byte_count) {
    while (byte_count > 0 && (unsigned char)text[byte_count - 1] < 0x80) {
        byte_count--;
    }
    return byte_count == 0;
}

static const char *refuse_fields(const unsigned char *header, const bp_directory_entry *entry) {
    uint32_t attributes = u32(header + 38);
    bool has_mode = header[5] == system_unix || header[5] == system_darwin;
    mode_t type = has_mode ? (mode_t)(attributes >> 16) & S_IFMT : 0;
    bool is_stored = entry->method == BP_ZIP_STORED;
    uint16_t flags = u16(header + 8);
    const check checks[] = {
        {entry->name_bytes > BP_DIRECTORY_NAME_MAX, "its name is longer than 255 bytes"},
        {(flags & flag_utf8) == 0 && !is_ascii(entry->name, entry->name_bytes),
         "its name is not marked as UTF-8"},
        {u16(header + 32) != 0 || u16(header + 34) != 0, "it has a comment, or is in another file"},
        {header[6] > version_max, later_version},
        {(flags & flag_encrypted) != 0, "it is encrypted"},
        {(flags & flag_descriptor) != 0, "its sizes stand behind its bytes"},
        {(flags & ~flags_known) != 0, "it is flagged in a way that is not known"},
        {!is_stored && entry->method != BP_ZIP_DEFLATED, "it is neither stored nor deflated"},
        {is_stored && entry->bytes != entry->packed_bytes, "it is stored with two sizes"},
        {S_ISLNK(type), "it is a symbolic link"},
        {S_ISDIR(type) || (attributes & dos_directory) != 0, "it is a directory"},
        {type != 0 && type != S_IFREG, "it is no regular file"}};
    return FIRST_WRONG(checks);
}

/*
 * Parses the header in the directory that begins at `bytes`, of which `available` are there. The
 * name points into them. Returns NULL with its length, or what is wrong as the end of a sentence;
 * then `ret_entry->name` is NULL, or the name with its length where that much is known.
 */
static const char *parse_central(const unsigned char *bytes, size_t available,
                                 bp_directory_entry *ret_entry, size_t *ret_length) {
    *ret_entry = (bp_directory_entry){.name = NULL};
    if (available < BP_ZIP_CENTRAL_BYTES || memcmp(bytes, "PK\1\2", 4) != 0) {
        return "its header is damaged";
    }
    size_t name_bytes = u16(bytes + 28), extra_bytes = u16(bytes + 30);
    size_t length = BP_ZIP_CENTRAL_BYTES + name_bytes + extra_bytes;
    if (length > available) {
        return "its header is damaged";
    }
    *ret_entry = (bp_directory_entry){.name = (const char *)bytes + BP_ZIP_CENTRAL_BYTES,
                                      .name_bytes = (uint16_t)name_bytes,
                                      .method = u16(bytes + 10),
                                      .crc = u32(bytes + 16),
                                      .packed_bytes = u32(bytes + 20),
                                      .bytes = u32(bytes + 24),
                                      .header_offset = u32(bytes + 42)};
    *ret_length = length;
    bool is_directory = name_bytes > 0 && ret_entry->name[name_bytes - 1] == '/';
    const char *wrong =
        is_directory ? "it is a directory" : bp_utf8_refuse_name(ret_entry->name, name_bytes);
    if (wrong == NULL) {
        wrong = refuse_extra(bytes + BP_ZIP_CENTRAL_BYTES + name_bytes, extra_bytes);
    }
    return wrong != NULL ? wrong : refuse_fields(bytes, ret_entry);
}

/* The first difference between a header before the bytes and that of the directory. */
static const char *check_local(const unsigned char *bytes, const bp_directory_entry *entry) {
    const unsigned char *header = (const unsigned char *)entry->name - BP_ZIP_CENTRAL_BYTES;
    size_t name_bytes = u16(bytes + 26), extra_bytes = u16(bytes + 28);
    const char *extra = refuse_extra(bytes + BP_ZIP_LOCAL_BYTES + name_bytes, extra_bytes);
    const check checks[] = {{name_bytes != entry->name_bytes ||
                                 memcmp(bytes + BP_ZIP_LOCAL_BYTES, entry->name, name_bytes) != 0,
                             "it has two names"},
                            {extra != NULL, extra},
                            {bytes[4] > version_max, later_version},
                            /* from the flags to the sizes */
                            {memcmp(bytes + 6, header + 8, 20) != 0, "its two headers differ"}};
    return FIRST_WRONG(checks);
}

static const char not_a_zip[] = "it is no zip, or its end is missing";

/* The end record; the directory ends where it begins. */
typedef struct end_record {
    uint16_t entry_count;
    uint32_t directory_offset, directory_bytes;
} end_record;

/* Reads the last bytes of a file of `file_bytes`. NULL, or what is wrong as the end of a sentence.
 */
static const char *parse_end(const unsigned char *end, uint64_t file_bytes,
                             end_record *ret_record) {
    const end_record record = {u16(end + 10), u32(end + 16), u32(end + 12)};
    const check checks[] = {
        /* or with a comment that is not there */
        {memcmp(end, "PK\5\6", 4) != 0 || u16(end + 20) != 0, not_a_zip},
        {u16(end + 4) != 0 || u16(end + 6) != 0 || u16(end + 8) != record.entry_count,
         "it is a part of a zip in several files"},
        {record.directory_bytes + (uint64_t)record.directory_offset != file_bytes - end_bytes,
         "its directory is not where its end says"},
        {record.entry_count > BP_DIRECTORY_ENTRY_MAX ||
             record.directory_bytes > BP_DIRECTORY_BYTES_MAX,
         "it has more entries than a report may have"},
        {record.entry_count == 0, "it is empty"}};
    *ret_record = record;
    return FIRST_WRONG(checks);
}

/* A zip being checked. */
typedef struct look {
    int fd;
    const char *path;
    bugpack_error *error;
    end_record end;
    bp_directory directory;
    const bp_directory_entry **order; /* of its entries */
    unsigned char local[];            /* the header of an entry */
} look;

void bp_directory_release(bp_directory *directory) {
    free(directory->entries);
    free(directory->bytes);
    *directory = (bp_directory){.entries = NULL};
}

const char *bp_archive_name(const char *path) {
    return path != NULL ? path : "the report";
}

bugpack_status bp_archive_refuse(const char *path, const char *verdict, bugpack_error *error,
                                 const char *format, ...) {
    char why[BUGPACK_ERROR_MESSAGE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    return path == NULL
               ? bp_fail(error, BUGPACK_ERR_CORRUPT, "%s", why)
               : bp_fail(error, BUGPACK_ERR_CORRUPT, "\"%s\" is %s: %s", path, verdict, why);
}

static const char no_report[] = "no report";

static bugpack_status refuse(const look *state, const char *why) {
    return bp_archive_refuse(state->path, no_report, state->error, "%s", why);
}

static bugpack_status refuse_entry(const look *state, const bp_directory_entry *entry,
                                   const char *why) {
    int name_bytes =
        entry->name_bytes < BP_DIRECTORY_NAME_MAX ? entry->name_bytes : (int)BP_DIRECTORY_NAME_MAX;
    return entry->name == NULL
               ? refuse(state, "its directory is damaged")
               : bp_archive_refuse(state->path, no_report, state->error, "entry \"%.*s\": %s",
                                   name_bytes, entry->name, why);
}

/* Exactly `byte_count` bytes at `offset`. */
static bugpack_status read_at(const look *state, uint64_t offset, void *bytes, size_t byte_count) {
    int64_t count = bp_file_read_range(state->fd, bytes, byte_count, offset);
    if (count < 0) {
        return bp_fail_errno(state->error, errno, "cannot read \"%s\"",
                             bp_archive_name(state->path));
    }
    return (size_t)count == byte_count
               ? BUGPACK_OK
               : bp_fail(state->error, BUGPACK_ERR_CORRUPT,
                         "\"%s\" became shorter while it was read", bp_archive_name(state->path));
}

/* Takes the directory into memory. */
static bugpack_status read_directory(look *state) {
    unsigned char end[end_bytes];
    struct stat info;
    if (fstat(state->fd, &info) != 0) {
        return bp_fail_errno(state->error, errno, "cannot read \"%s\"",
                             bp_archive_name(state->path));
    }
    if (!S_ISREG(info.st_mode)) {
        return refuse(state, "it is no regular file");
    }
    uint64_t file_bytes = (uint64_t)info.st_size;
    if (file_bytes < end_bytes) {
        return refuse(state, not_a_zip);
    }
    bugpack_status status = read_at(state, file_bytes - end_bytes, end, end_bytes);
    if (status != BUGPACK_OK) {
        return status;
    }
    const char *wrong = parse_end(end, file_bytes, &state->end);
    if (wrong != NULL) {
        return refuse(state, wrong);
    }
    state->directory.bytes = malloc(state->end.directory_bytes + (size_t)1); /* and a NUL */
    return state->directory.bytes == NULL
               ? bp_fail_memory(state->error, "read a zip")
               : read_at(state, state->end.directory_offset, state->directory.bytes,
                         state->end.directory_bytes);
}

static bugpack_status read_entries(look *state) {
    bp_directory *directory = &state->directory;
    size_t at = 0, directory_bytes = state->end.directory_bytes;
    size_t entry_count = state->end.entry_count;
    if (directory_bytes / BP_ZIP_CENTRAL_BYTES < entry_count) {
        return refuse(state, "its directory is damaged");
    }
    directory->entries = calloc(entry_count, sizeof *directory->entries);
    state->order = malloc(entry_count * sizeof *state->order);
    if (directory->entries == NULL || state->order == NULL) {
        return bp_fail_memory(state->error, "read a zip");
    }
    for (; directory->entry_count < entry_count; directory->entry_count++) {
        bp_directory_entry *entry = &directory->entries[directory->entry_count];
        size_t length = 0;
        const char *wrong =
            parse_central(state->directory.bytes + at, directory_bytes - at, entry, &length);
        if (wrong != NULL) {
            return refuse_entry(state, entry, wrong);
        }
        state->order[directory->entry_count] = entry;
        at += length;
    }
    if (at != directory_bytes) {
        return refuse(state, "its directory is damaged");
    }
    for (size_t i = 0; i < entry_count; i++) { /* what follows a name has been read */
        const bp_directory_entry *entry = &directory->entries[i];
        directory->bytes[(size_t)(entry->name - (char *)directory->bytes) + entry->name_bytes] =
            '\0';
    }
    return BUGPACK_OK;
}

/* Checks the header of an entry, which must be at `offset`, and returns where its bytes end: before
 * the directory. */
static bugpack_status check_place(look *state, const bp_directory_entry *entry, uint64_t offset,
                                  uint64_t *ret_end) {
    static const char misplaced[] = "its bytes are not where they should be";
    uint64_t limit = state->end.directory_offset;
    if (entry->header_offset != offset || limit - offset < BP_ZIP_LOCAL_BYTES) {
        return refuse_entry(state, entry, misplaced);
    }
    bugpack_status status = read_at(state, offset, state->local, BP_ZIP_LOCAL_BYTES);
    if (status != BUGPACK_OK) {
        return status;
    }
    size_t length = (size_t)BP_ZIP_LOCAL_BYTES + u16(state->local + 26) + u16(state->local + 28);
    if (memcmp(state->local, "PK\3\4", 4) != 0 || limit - offset < length ||
        limit - offset - length < entry->packed_bytes) {
        return refuse_entry(state, entry, misplaced);
    }
    status = read_at(state, offset + BP_ZIP_LOCAL_BYTES, state->local + BP_ZIP_LOCAL_BYTES,
                     length - BP_ZIP_LOCAL_BYTES);
    if (status != BUGPACK_OK) {
        return status;
    }
    const char *wrong = check_local(state->local, entry);
    if (wrong != NULL) {
        return refuse_entry(state, entry, wrong);
    }
    *ret_end = offset + length + entry->packed_bytes;
    return BUGPACK_OK;
}

static int compare_offsets(const void *one, const void *other) {
    const bp_directory_entry *a = *(const bp_directory_entry *const *)one;
    const bp_directory_entry *b = *(const bp_directory_entry *const *)other;
    return a->header_offset < b->header_offset ? -1 : a->header_offset > b->header_offset;
}

/*
 * By their offsets, each entry begins where the one before ends, from the first byte to the
 * directory: so nothing overlaps or hides. The directory may list them in another order.
 */
static bugpack_status check_places(look *state) {
    size_t entry_count = state->directory.entry_count;
    uint64_t offset = 0;
    bugpack_status status = BUGPACK_OK;
    qsort(state->order, entry_count, sizeof(const bp_directory_entry *), compare_offsets);
    for (size_t i = 0; status == BUGPACK_OK && i < entry_count; i++) {
        status = check_place(state, state->order[i], offset, &offset);
    }
    if (status == BUGPACK_OK && offset != state->end.directory_offset) {
        status = refuse(state, "there is something between its entries and its directory");
    }
    return status;
}

static int compare_names(const void *one, const void *other) {
    return strcasecmp((*(const bp_directory_entry *const *)one)->name,
                      (*(const bp_directory_entry *const *)other)->name);
}

/* No two names may differ at most in case. */
static bugpack_status check_names(look *state) {
    size_t entry_count = state->directory.entry_count;
    qsort(state->order, entry_count, sizeof(const bp_directory_entry *), compare_names);
    for (size_t i = 1; i < entry_count; i++) {
        if (compare_names(&state->order[i - 1], &state->order[i]) == 0) {
            return bp_archive_refuse(state->path, no_report, state->error,
                                     "two entries are called \"%s\", except for case",
                                     state->order[i]->name);
        }
    }
    return BUGPACK_OK;
}

bugpack_status bp_directory_read(int fd, const char *path, bp_directory *ret_directory,
                                 bugpack_error *error) {
    look *state = malloc(sizeof *state + BP_ZIP_LOCAL_BYTES + 2 * UINT16_MAX);
    if (state == NULL) {
        return bp_fail_memory(error, "read a zip");
    }
    *state = (look){.fd = fd, .path = path, .error = error};
    bugpack_status (*const steps[])(look *) = {read_directory, read_entries, check_places,
                                               check_names};
    bugpack_status status = BUGPACK_OK;
    for (size_t i = 0; status == BUGPACK_OK && i < sizeof steps / sizeof steps[0]; i++) {
        status = steps[i](state);
    }
    if (status == BUGPACK_OK) {
        *ret_directory = state->directory;
    } else {
        bp_directory_release(&state->directory);
    }
    free(state->order);
    free(state);
    return status;
}
