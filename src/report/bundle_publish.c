/*
 * From the artefacts to the published zip: their order, the ledger, the archive, the name.
 */
#include "report/bundle_private.h"

#include <stdlib.h>
#include <unistd.h>

#include "archive/archive.h"
#include "base/status.h"
#include "model/manifest.h"
#include "platform/staged_file.h"
#include "platform/thread.h"
#include "report/name.h"

static int compare_artefacts(const void *one, const void *other) {
    const struct bp_artefact *a = one;
    const struct bp_artefact *b = other;
    unsigned a_rank = bp_name_entry_rank(a->line.name);
    unsigned b_rank = bp_name_entry_rank(b->line.name);
    if (a_rank != b_rank) {
        return a_rank < b_rank ? -1 : 1;
    }
    return a->order < b->order ? -1 : a->order > b->order;
}

static bugpack_status print_manifest(bp_bundle *bundle, const char *report_id,
                                     bugpack_error *error) {
    bp_manifest_line *entries = calloc(bundle->count + 1, sizeof *entries);
    if (entries == NULL) {
        return bp_fail_memory(error, "write the manifest");
    }
    for (size_t i = 0; i < bundle->count; i++) {
        entries[i] = bundle->artefacts[i].line;
    }
    bp_buffer_clear(&bundle->manifest);
    const bp_manifest manifest = {.report_id = report_id,
                                  .entries = entries,
                                  .entry_count = bundle->count,
                                  .triggers = bundle->triggers,
                                  .trigger_count = bundle->trigger_count};
    bugpack_status status = bp_manifest_print(&manifest, &bundle->manifest, error);
    free(entries);
    return status;
}

static const bp_cancel_token *token_of(const bp_publication *publication) {
    return publication->watch == NULL ? NULL : publication->watch->token;
}

/* A zip on its way, as the archive's poll sees it. */
struct writing {
    const bp_publication *publication;
    const bp_archive *archive;
    uint64_t total_bytes;
};

static int watch_writing(void *context) {
    const struct writing *writing = context;
    const bp_watch *watch = writing->publication->watch;
    if (watch != NULL && watch->on_bytes != NULL) {
        watch->on_bytes(watch->context, bp_archive_done_bytes(writing->archive),
                        writing->total_bytes);
    }
    return bp_cancel_is_due(token_of(writing->publication));
}

static bool is_there(const struct bp_artefact *artefact) {
    return artefact->line.status == BP_ARTEFACT_OK ||
           artefact->line.status == BP_ARTEFACT_TRUNCATED || bp_artefact_bytes(artefact) > 0;
}

static bugpack_status add_entry(bp_archive *archive, const struct bp_artefact *artefact,
                                uint64_t wall_ns, bugpack_error *error) {
    if (bp_temp_file_is_open(&artefact->temp_file)) {
        return bp_archive_add_file(archive, artefact->line.name, artefact->temp_file.fd,
                                   artefact->temp_file.size, wall_ns, error);
    }
    return bp_archive_add(archive, artefact->line.name, bp_buffer_text(&artefact->content),
                          artefact->content.size, wall_ns, error);
}

static void begin_to_help(void) {
    bp_thread_set_name("bugpack-zip");
    bp_thread_stand_back();
}

/* One for each processor that the worker leaves: a helper that has to wait for one would not. */
static bp_archive_helpers choose_helpers(void) {
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    return (bp_archive_helpers){.count = processors > 1 ? (unsigned)processors - 1 : 0,
                                .start = bp_thread_start,
                                .begin = begin_to_help};
}

static bugpack_status write_zip(bp_bundle *bundle, const bp_publication *publication, int fd,
                                uint64_t *ret_zip_bytes, bugpack_error *error) {
    bp_archive *archive = NULL;
    struct writing writing = {.publication = publication, .total_bytes = bundle->manifest.size};
    bugpack_status status =
        bp_archive_new(fd, publication->dir_name, watch_writing, &writing, &archive, error);
    writing.archive = archive;
    if (status == BUGPACK_OK) {
        bp_archive_use_temp_dir(archive, publication->dir_fd);
        bp_archive_use_helpers(archive, choose_helpers());
    }
    for (size_t i = 0; status == BUGPACK_OK && i < bundle->count; i++) {
        const struct bp_artefact *artefact = &bundle->artefacts[i];
        if (is_there(artefact)) {
            writing.total_bytes += bp_artefact_bytes(artefact);
            status = add_entry(archive, artefact, publication->wall_ns, error);
        }
    }
    if (status == BUGPACK_OK) {
        status = bp_archive_add(archive, "manifest.json", bp_buffer_text(&bundle->manifest),
                                bundle->manifest.size, publication->wall_ns, error);
    }
    if (status == BUGPACK_OK) {
        status = bp_archive_finish(archive, ret_zip_bytes, error);
    }
    bp_archive_free(archive);
    /* The archive only knows that it was stopped. */
    return status == BUGPACK_ERR_TIMEOUT ? bp_cancel_check(token_of(publication), error) : status;
}

bugpack_status bp_bundle_publish(bp_bundle *bundle, const bp_publication *publication,
                                 char *ret_name, size_t name_bytes, uint64_t *ret_zip_bytes,
                                 bugpack_error *error) {
    bp_staged_file *file = NULL;
    uint64_t zip_bytes = 0;
    if (bundle->count > 0) {
        qsort(bundle->artefacts, bundle->count, sizeof *bundle->artefacts, compare_artefacts);
    }
    bugpack_status status = print_manifest(bundle, publication->report_id, error);
    if (status != BUGPACK_OK) {
        goto out;
    }
    status = bp_staged_file_new(publication->dir_fd, publication->dir_name, &file, error);
    if (status != BUGPACK_OK) {
        goto out;
    }
    status = write_zip(bundle, publication, bp_staged_file_fd(file), &zip_bytes, error);
    if (status != BUGPACK_OK) {
        goto out;
    }
    status = bp_staged_file_sync(file, error);
    if (status != BUGPACK_OK) {
        goto out;
    }
    /* The last moment to give up: a name, once given, stays. */
    status = bp_cancel_check(token_of(publication), error);
    if (status != BUGPACK_OK) {
        goto out;
    }
    status = bp_staged_file_publish(file, publication->stem, publication->extension, ret_name,
                                    name_bytes, error);
    if (status == BUGPACK_OK) {
        *ret_zip_bytes = zip_bytes;
    }
out:
    bp_staged_file_free(file);
    return status;
}
