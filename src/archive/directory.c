#include "archive/directory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/header.h"
#include "base/status.h"

/* A zip being checked. */
typedef struct look {
    int fd;
    const char *path;
    bugpack_error *error;
    bp_end_record end;
    bp_directory directory;
    unsigned char local[BP_ZIP_LOCAL_BYTES + 2 * UINT16_MAX];
} look;

void bp_directory_release(bp_directory *directory) {
    free(directory->entries);
    free(directory->names);
    free(directory->tail);
    *directory = (bp_directory){.entries = NULL};
}

static bugpack_status refuse(const look *state, const char *why) {
    return bp_fail(state->error, BUGPACK_ERR_CORRUPT, "\"%s\" is no report: %s", state->path, why);
}

static bugpack_status refuse_entry(const look *state, const bp_directory_entry *entry,
                                   const char *why) {
    int name_bytes =
        entry->name_bytes < BP_DIRECTORY_NAME_MAX ? entry->name_bytes : (int)BP_DIRECTORY_NAME_MAX;
    return entry->name == NULL ? refuse(state, "its directory is damaged")
                               : bp_fail(state->error, BUGPACK_ERR_CORRUPT,
                                         "\"%s\" is no report: entry \"%.*s\": %s", state->path,
                                         name_bytes, entry->name, why);
}

/* Exactly `byte_count` bytes at `offset`. */
static bugpack_status read_at(const look *state, uint64_t offset, void *bytes, size_t byte_count) {
    for (size_t done = 0; done < byte_count;) {
        ssize_t count =
            pread(state->fd, (char *)bytes + done, byte_count - done, (off_t)(offset + done));
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0) {
            return bp_fail_errno(state->error, errno, "cannot read \"%s\"", state->path);
        }
        if (count == 0) {
            return bp_fail(state->error, BUGPACK_ERR_CORRUPT,
                           "\"%s\" became shorter while it was read", state->path);
        }
        done += (size_t)count;
    }
    return BUGPACK_OK;
}

/* Finds the directory, and takes it with all that follows into memory. */
static bugpack_status read_tail(look *state) {
    unsigned char end[BP_END_RECORD_BYTES_MAX];
    struct stat info;
    bp_directory *directory = &state->directory;
    if (fstat(state->fd, &info) != 0) {
        return bp_fail_errno(state->error, errno, "cannot read \"%s\"", state->path);
    }
    if (!S_ISREG(info.st_mode)) {
        return refuse(state, "it is no regular file");
    }
    directory->file_bytes = (uint64_t)info.st_size;
    size_t end_bytes =
        directory->file_bytes < sizeof end ? (size_t)directory->file_bytes : sizeof end;
    bugpack_status status = read_at(state, directory->file_bytes - end_bytes, end, end_bytes);
    if (status != BUGPACK_OK) {
        return status;
    }
    const char *wrong = bp_end_record_parse(end, end_bytes, directory->file_bytes, &state->end);
    if (wrong != NULL) {
        return refuse(state, wrong);
    }
    if (state->end.entry_count > BP_DIRECTORY_ENTRY_MAX ||
        state->end.directory_bytes > BP_DIRECTORY_BYTES_MAX) {
        return refuse(state, "it has more entries than a report may have");
    }
    directory->tail_offset = state->end.directory_offset;
    size_t tail_bytes = (size_t)(directory->file_bytes - directory->tail_offset);
    directory->tail = malloc(tail_bytes);
    if (directory->tail == NULL) {
        return bp_fail_memory(state->error, "read a zip");
    }
    status = read_at(state, directory->tail_offset, directory->tail, tail_bytes);
    size_t both_bytes = tail_bytes < end_bytes ? tail_bytes : end_bytes;
    if (status == BUGPACK_OK && memcmp(directory->tail + tail_bytes - both_bytes,
                                       end + end_bytes - both_bytes, both_bytes) != 0) {
        return refuse(state, "it changed while it was read");
    }
    return status;
}

/* Copies the names, which have no NUL in the directory. */
static bugpack_status keep_names(look *state) {
    bp_directory *directory = &state->directory;
    directory->names = malloc((size_t)state->end.directory_bytes + directory->entry_count);
    if (directory->names == NULL) {
        return bp_fail_memory(state->error, "read a zip");
    }
    char *at = directory->names;
    for (size_t i = 0; i < directory->entry_count; i++) {
        bp_directory_entry *entry = &directory->entries[i];
        memcpy(at, entry->name, entry->name_bytes);
        at[entry->name_bytes] = '\0';
        entry->name = at;
        at += entry->name_bytes + 1;
    }
    return BUGPACK_OK;
}

static bugpack_status read_entries(look *state) {
    bp_directory *directory = &state->directory;
    size_t at = 0, directory_bytes = (size_t)state->end.directory_bytes;
    size_t entry_count = (size_t)state->end.entry_count;
    if (directory_bytes / BP_ZIP_CENTRAL_BYTES < entry_count) {
        return refuse(state, "its directory is damaged");
    }
    directory->entries = calloc(entry_count, sizeof *directory->entries);
    if (directory->entries == NULL) {
        return bp_fail_memory(state->error, "read a zip");
    }
    for (; directory->entry_count < entry_count; directory->entry_count++) {
        bp_directory_entry *entry = &directory->entries[directory->entry_count];
        size_t length = 0;
        const char *wrong =
            bp_header_parse_central(directory->tail + at, directory_bytes - at, entry, &length);
        if (wrong != NULL) {
            return refuse_entry(state, entry, wrong);
        }
        at += length;
    }
    return at != directory_bytes ? refuse(state, "its directory is damaged") : keep_names(state);
}

/* Checks the header of an entry, which must be at `offset`, and returns where its bytes end: before
 * the directory. */
static bugpack_status check_place(look *state, const bp_directory_entry *entry, uint64_t offset,
                                  uint64_t *ret_end) {
    static const char misplaced[] = "its bytes are not where they should be";
    uint64_t limit = state->directory.tail_offset;
    if (entry->header_offset != offset || limit - offset < BP_ZIP_LOCAL_BYTES) {
        return refuse_entry(state, entry, misplaced);
    }
    bugpack_status status = read_at(state, offset, state->local, BP_ZIP_LOCAL_BYTES);
    if (status != BUGPACK_OK) {
        return status;
    }
    size_t length = bp_header_local_length(state->local);
    if (length == 0 || limit - offset < length || limit - offset - length < entry->packed_bytes) {
        return refuse_entry(state, entry, misplaced);
    }
    status = read_at(state, offset + BP_ZIP_LOCAL_BYTES, state->local + BP_ZIP_LOCAL_BYTES,
                     length - BP_ZIP_LOCAL_BYTES);
    if (status != BUGPACK_OK) {
        return status;
    }
    const char *wrong = bp_header_check_local(state->local, entry);
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
    const bp_directory *directory = &state->directory;
    uint64_t offset = 0;
    bugpack_status status = BUGPACK_OK;
    const bp_directory_entry **entries = malloc(directory->entry_count * sizeof *entries);
    if (entries == NULL) {
        return bp_fail_memory(state->error, "read a zip");
    }
    for (size_t i = 0; i < directory->entry_count; i++) {
        entries[i] = &directory->entries[i];
    }
    qsort(entries, directory->entry_count, sizeof(const bp_directory_entry *), compare_offsets);
    for (size_t i = 0; status == BUGPACK_OK && i < directory->entry_count; i++) {
        status = check_place(state, entries[i], offset, &offset);
    }
    free(entries);
    if (status == BUGPACK_OK && offset != directory->tail_offset) {
        status = refuse(state, "there is something between its entries and its directory");
    }
    return status;
}

/* ASCII alone, whatever locale the program is in. */
static int lower(char byte) {
    return byte >= 'A' && byte <= 'Z' ? byte - 'A' + 'a' : (unsigned char)byte;
}

static int compare_names(const void *one, const void *other) {
    const char *left = *(const char *const *)one;
    const char *right = *(const char *const *)other;
    while (*left != '\0' && lower(*left) == lower(*right)) {
        left++;
        right++;
    }
    return lower(*left) - lower(*right);
}

/* No two names may differ at most in case. */
static bugpack_status check_names(const look *state) {
    const bp_directory *directory = &state->directory;
    const char **names = calloc(directory->entry_count, sizeof *names);
    if (names == NULL) {
        return bp_fail_memory(state->error, "read a zip");
    }
    for (size_t i = 0; i < directory->entry_count; i++) {
        names[i] = directory->entries[i].name;
    }
    qsort(names, directory->entry_count, sizeof *names, compare_names);
    bugpack_status status = BUGPACK_OK;
    for (size_t i = 1; status == BUGPACK_OK && i < directory->entry_count; i++) {
        if (compare_names(&names[i - 1], &names[i]) == 0) {
            status = bp_fail(state->error, BUGPACK_ERR_CORRUPT,
                             "\"%s\" is no report: two entries are called \"%s\", but for case",
                             state->path, names[i]);
        }
    }
    free(names);
    return status;
}

bugpack_status bp_directory_read(int fd, const char *path, bp_directory *ret_directory,
                                 bugpack_error *error) {
    look *state = calloc(1, sizeof *state);
    if (state == NULL) {
        return bp_fail_memory(error, "read a zip");
    }
    state->fd = fd;
    state->path = path;
    state->error = error;
    bugpack_status status = read_tail(state);
    status = status == BUGPACK_OK ? read_entries(state) : status;
    status = status == BUGPACK_OK ? check_places(state) : status;
    status = status == BUGPACK_OK ? check_names(state) : status;
    if (status == BUGPACK_OK) {
        *ret_directory = state->directory;
    } else {
        bp_directory_release(&state->directory);
    }
    free(state);
    return status;
}
