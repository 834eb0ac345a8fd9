#include "archive/archive.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <zip.h>

#include "archive/entry.h"
#include "archive/sink.h"
#include "archive/times.h"
#include "base/status.h"

struct bp_archive {
    char *name; /* for sentences */
    zip_t *zip; /* NULL once zip_close has succeeded and freed it */
    bp_sink sink;
    bp_stop stop;
    int temp_dir_fd; /* borrowed; -1: deflated bytes wait in memory */
    bp_archive_helpers helpers;
    bp_packer *packer; /* from finish on; the entries' bytes may lie in its temp_file */
    bp_entry *first;
    bp_entry *last;
    bool is_over; /* finished, or spoilt by an entry that was added in part */
};

static const zip_uint32_t private_file = (zip_uint32_t)(S_IFREG | 0600) << 16;
static const size_t max_name_bytes = UINT16_MAX;

/* The first cause, as far as it is known; libzip's own word comes last. */
static bugpack_status fail(const bp_archive *archive, bugpack_error *error) {
    if (archive->stop.is_cancelled) {
        return bp_fail(error, BUGPACK_ERR_TIMEOUT, "cannot write \"%s\": it was stopped",
                       archive->name);
    }
    if (archive->stop.system_errno != 0) {
        return bp_fail_errno(error, archive->stop.system_errno, "cannot write \"%s\"",
                             archive->name);
    }
    zip_error_t *reason = zip_get_error(archive->zip);
    int code = zip_error_code_zip(reason);
    /* An allocation that fails early in zip_close leaves no code at all (1.7.3). */
    if (archive->stop.is_no_memory || code == ZIP_ER_MEMORY || code == ZIP_ER_OK) {
        return bp_fail(error, BUGPACK_ERR_NO_MEMORY, "cannot write \"%s\": out of memory",
                       archive->name);
    }
    return bp_fail(error, BUGPACK_ERR_IO, "cannot write \"%s\": %s", archive->name,
                   zip_error_strerror(reason));
}

bugpack_status bp_archive_new(int fd, const char *name, bp_archive_poll *poll, void *poll_context,
                              bp_archive **ret_archive, bugpack_error *error) {
    bugpack_status status = BUGPACK_OK;
    zip_source_t *source = NULL;
    bp_archive *archive = calloc(1, sizeof *archive);
    if (archive == NULL) {
        return bp_fail_memory(error, "start a zip");
    }
    archive->temp_dir_fd = -1;
    archive->stop = (bp_stop){.poll = poll, .poll_context = poll_context};
    archive->name = strdup(name);
    source = bp_sink_source(&archive->sink, fd, &archive->stop);
    if (archive->name != NULL && source != NULL) {
        archive->zip = zip_open_from_source(source, ZIP_CREATE | ZIP_TRUNCATE, NULL);
    }
    if (archive->zip == NULL) {
        /* Nothing was read or written yet: there is nothing else that can fail. */
        status = bp_fail_memory(error, "start a zip");
        goto out;
    }
    source = NULL;
    *ret_archive = archive;
    archive = NULL;
out:
    zip_source_free(source);
    bp_archive_free(archive);
    return status;
}

void bp_archive_use_temp_dir(bp_archive *archive, int dir_fd) {
    archive->temp_dir_fd = dir_fd;
}

void bp_archive_use_helpers(bp_archive *archive, bp_archive_helpers helpers) {
    archive->helpers = helpers;
}

/* Everything about an entry but its bytes. */
static bool describe(bp_archive *archive, const bp_entry *entry) {
    unsigned char extra[BP_TIMES_EXTRA_BYTES];
    return zip_file_set_external_attributes(archive->zip, entry->index, 0, ZIP_OPSYS_UNIX,
                                            private_file) == 0 &&
           (!bp_times_extra(entry->wall_ns, extra) ||
            zip_file_extra_field_set(archive->zip, entry->index, BP_TIMES_EXTRA_ID,
                                     ZIP_EXTRA_FIELD_NEW, extra, sizeof extra,
                                     ZIP_FL_LOCAL | ZIP_FL_CENTRAL) == 0);
}

/* Hands an entry to libzip, which then owns the source. */
static bugpack_status add_entry(bp_archive *archive, bp_entry *entry, const char *name,
                                bugpack_error *error) {
    zip_source_t *source = bp_entry_source(entry);
    if (source == NULL) {
        return bp_fail_memory(error, "add to a zip");
    }
    zip_error_clear(archive->zip);
    zip_int64_t index = zip_file_add(archive->zip, name, source, ZIP_FL_ENC_UTF_8);
    if (index < 0) {
        zip_source_free(source);
        int code = zip_error_code_zip(zip_get_error(archive->zip));
        if (code == ZIP_ER_EXISTS || code == ZIP_ER_INVAL) {
            return bp_fail(error, BUGPACK_ERR_INVALID, "cannot add \"%s\" to \"%s\": %s", name,
                           archive->name,
                           code == ZIP_ER_EXISTS ? "it is there already" : "not a valid name");
        }
        return fail(archive, error);
    }
    entry->index = (zip_uint64_t)index;
    return BUGPACK_OK;
}

static bugpack_status add_bytes(bp_archive *archive, const char *name, bp_bytes plain,
                                uint64_t wall_ns, bugpack_error *error) {
    size_t name_length = strlen(name);
    if (archive->is_over || name_length == 0 || name_length > max_name_bytes) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "cannot add \"%s\" to \"%s\"", name,
                       archive->name);
    }
    bp_entry *entry = malloc(sizeof *entry);
    if (entry == NULL) {
        return bp_fail_memory(error, "add to a zip");
    }
    *entry = (bp_entry){.plain = plain, .wall_ns = wall_ns, .sink = &archive->sink};
    bugpack_status status = add_entry(archive, entry, name, error);
    if (status != BUGPACK_OK) {
        bp_entry_free(entry);
        return status;
    }
    *(archive->last != NULL ? &archive->last->next : &archive->first) = entry;
    archive->last = entry;
    if (!describe(archive, entry)) {
        archive->is_over = true;
        return fail(archive, error);
    }
    return BUGPACK_OK;
}

bugpack_status bp_archive_add(bp_archive *archive, const char *name, const void *bytes,
                              size_t byte_count, uint64_t wall_ns, bugpack_error *error) {
    if (bytes == NULL && byte_count > 0) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "cannot add \"%s\" to \"%s\": no bytes", name,
                       archive->name);
    }
    bp_bytes plain = {.memory = bytes, .fd = -1, .byte_count = byte_count};
    return add_bytes(archive, name, plain, wall_ns, error);
}

bugpack_status bp_archive_add_file(bp_archive *archive, const char *name, int fd,
                                   uint64_t byte_count, uint64_t wall_ns, bugpack_error *error) {
    if (fd < 0 || byte_count > INT64_MAX) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "cannot add \"%s\" to \"%s\": no file", name,
                       archive->name);
    }
    bp_bytes plain = {.fd = fd, .byte_count = byte_count};
    return add_bytes(archive, name, plain, wall_ns, error);
}

/* Packs every entry and tells libzip of those that stay as they are; it would deflate them. */
static bool pack_all(bp_archive *archive) {
    archive->packer = bp_packer_new(archive->temp_dir_fd, &archive->helpers, &archive->stop);
    if (archive->packer == NULL) {
        archive->stop.is_no_memory = true;
        return false;
    }
    for (bp_entry *entry = archive->first; entry != NULL; entry = entry->next) {
        if (!bp_pack(archive->packer, &entry->plain, &entry->packed)) {
            return false;
        }
        if (!entry->packed.is_deflated &&
            zip_set_file_compression(archive->zip, entry->index, ZIP_CM_STORE, 0) != 0) {
            return false;
        }
    }
    bp_packer_rest(archive->packer);
    return true;
}

bugpack_status bp_archive_finish(bp_archive *archive, uint64_t *ret_bytes, bugpack_error *error) {
    if (archive->is_over || archive->first == NULL) {
        /* libzip removes the file instead, and calls that a success. */
        return bp_fail(error, BUGPACK_ERR_INVALID, "cannot write \"%s\": %s", archive->name,
                       archive->is_over ? "it is over already" : "it has no entries");
    }
    archive->is_over = true;
    zip_error_clear(archive->zip);
    if (!pack_all(archive) || zip_close(archive->zip) != 0) {
        return fail(archive, error);
    }
    archive->zip = NULL;
    bool is_strange = false;
    if (!bp_times_write_utc(&archive->sink, archive->first, &is_strange)) {
        return is_strange ? bp_fail(error, BUGPACK_ERR_UNSUPPORTED,
                                    "cannot write \"%s\": libzip %s is not known", archive->name,
                                    zip_libzip_version())
                          : bp_fail_errno(error, archive->stop.system_errno, "cannot write \"%s\"",
                                          archive->name);
    }
    *ret_bytes = archive->sink.size;
    return BUGPACK_OK;
}

uint64_t bp_archive_done_bytes(const bp_archive *archive) {
    return archive->stop.done_bytes;
}

void bp_archive_free(bp_archive *archive) {
    if (archive == NULL) {
        return;
    }
    zip_discard(archive->zip); /* before the entries and the sink, which it still asks */
    while (archive->first != NULL) {
        bp_entry *next = archive->first->next;
        bp_entry_free(archive->first);
        archive->first = next;
    }
    bp_packer_free(archive->packer);
    free(archive->name);
    free(archive);
}
