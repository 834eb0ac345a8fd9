#include "report/bundle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive/archive.h"
#include "base/status.h"
#include "model/manifest.h"
#include "platform/staged_file.h"
#include "platform/thread.h"
#include "report/name.h"

/* More artefacts than this are refused: a host that registers without end must not fill memory. */
static const size_t artefact_max_count = 1024;

struct artefact {
    bp_buffer content;
    bp_spool spool;         /* where it is open, it is the content */
    bp_ledger_entry ledger; /* its name is ours to free */
    size_t order;           /* of adding, to keep the sort stable */
};

struct bp_bundle {
    struct artefact *artefacts;
    size_t count;
    size_t capacity;
    const bp_trigger_entry *triggers;
    size_t trigger_count;
    bp_buffer manifest;
};

bp_bundle *bp_bundle_new(void) {
    bp_bundle *bundle = calloc(1, sizeof *bundle);
    if (bundle != NULL) {
        bp_buffer_init(&bundle->manifest, (size_t)64 << 20);
    }
    return bundle;
}

void bp_bundle_free(bp_bundle *bundle) {
    if (bundle == NULL) {
        return;
    }
    for (size_t i = 0; i < bundle->count; i++) {
        bp_buffer_release(&bundle->artefacts[i].content);
        bp_spool_release(&bundle->artefacts[i].spool);
        free((char *)(uintptr_t)bundle->artefacts[i].ledger.name);
    }
    bp_buffer_release(&bundle->manifest);
    free(bundle->artefacts);
    free(bundle);
}

static bugpack_status make_room(bp_bundle *bundle, bugpack_error *error) {
    if (bundle->count < bundle->capacity) {
        return BUGPACK_OK;
    }
    if (bundle->count >= artefact_max_count) {
        return bp_fail(error, BUGPACK_ERR_NO_MEMORY, "a report holds at most %zu artefacts",
                       artefact_max_count);
    }
    size_t capacity = bundle->capacity == 0 ? 16 : bundle->capacity * 2;
    struct artefact *artefacts = realloc(bundle->artefacts, capacity * sizeof *artefacts);
    if (artefacts == NULL) {
        return bp_fail_memory(error, "collect an artefact");
    }
    bundle->artefacts = artefacts;
    bundle->capacity = capacity;
    return BUGPACK_OK;
}

/* After it the spool's file is whole, or the artefact is refused: then it has no content. */
static void settle_spool(bugpack_writer *writer) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    if (bp_spool_is_open(&writer->spool) && bp_spool_flush(&writer->spool, &error) != BUGPACK_OK) {
        bp_writer_refuse(writer, BP_ARTEFACT_FAILED, "%s", error.message);
    }
}

static uint64_t content_bytes(const struct artefact *artefact) {
    return bp_spool_is_open(&artefact->spool) ? artefact->spool.size : artefact->content.size;
}

bugpack_status bp_bundle_add(bp_bundle *bundle, const char *name, bugpack_writer *writer,
                             bugpack_error *error) {
    bugpack_status status = make_room(bundle, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    char *own_name = strdup(name);
    if (own_name == NULL) {
        return bp_fail_memory(error, "collect an artefact");
    }
    settle_spool(writer);
    struct artefact *added = &bundle->artefacts[bundle->count];
    *added =
        (struct artefact){.ledger = writer->ledger, .order = bundle->count, .spool = BP_SPOOL_INIT};
    bp_buffer_move(&added->content, &writer->content);
    bp_spool_move(&added->spool, &writer->spool);
    added->ledger.name = own_name;
    added->ledger.bytes = content_bytes(added);
    bundle->count++;
    return BUGPACK_OK;
}

bugpack_status bp_bundle_put(bp_bundle *bundle, const char *name, bugpack_status made,
                             bugpack_writer *writer, bugpack_error *error) {
    bugpack_status status = made == BUGPACK_OK ? bp_bundle_add(bundle, name, writer, error) : made;
    bp_writer_release(writer);
    return status;
}

void bp_bundle_set_triggers(bp_bundle *bundle, const bp_trigger_entry *triggers, size_t count) {
    bundle->triggers = triggers;
    bundle->trigger_count = count;
}

/* A host may put anything into its reason; here it must not look like another artefact's line. */
static void keep_one_line(char *text) {
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7F) {
            *text = '?';
        }
    }
}

uint32_t bp_bundle_missing(const bp_bundle *bundle, char *text, size_t text_bytes) {
    uint32_t missing_count = 0;
    size_t length = 0;
    text[0] = '\0';
    for (size_t i = 0; i < bundle->count; i++) {
        const bp_ledger_entry *ledger = &bundle->artefacts[i].ledger;
        if (!ledger->is_missing) {
            continue;
        }
        missing_count++;
        int added = snprintf(text + length, text_bytes - length, "%s%s: %s", length > 0 ? "\n" : "",
                             ledger->name, ledger->reason);
        if (added < 0 || (size_t)added >= text_bytes - length) {
            text[length] = '\0'; /* a line that does not fit whole is left out */
        } else {
            keep_one_line(text + length + (length > 0));
            length += (size_t)added;
        }
    }
    return missing_count;
}

static int compare_artefacts(const void *one, const void *other) {
    const struct artefact *a = one;
    const struct artefact *b = other;
    unsigned a_rank = bp_name_entry_rank(a->ledger.name);
    unsigned b_rank = bp_name_entry_rank(b->ledger.name);
    if (a_rank != b_rank) {
        return a_rank < b_rank ? -1 : 1;
    }
    return a->order < b->order ? -1 : a->order > b->order;
}

static bugpack_status print_manifest(bp_bundle *bundle, const char *report_id,
                                     bugpack_error *error) {
    bp_ledger_entry *entries = calloc(bundle->count + 1, sizeof *entries);
    if (entries == NULL) {
        return bp_fail_memory(error, "write the manifest");
    }
    for (size_t i = 0; i < bundle->count; i++) {
        entries[i] = bundle->artefacts[i].ledger;
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

static const bp_halt *halt_of(const bp_publication *publication) {
    return publication->watch == NULL ? NULL : publication->watch->halt;
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
    return bp_halt_is_due(halt_of(writing->publication));
}

static bool is_there(const struct artefact *artefact) {
    return artefact->ledger.status == BP_ARTEFACT_OK ||
           artefact->ledger.status == BP_ARTEFACT_TRUNCATED || content_bytes(artefact) > 0;
}

static bugpack_status add_entry(bp_archive *archive, const struct artefact *artefact,
                                uint64_t wall_ns, bugpack_error *error) {
    if (bp_spool_is_open(&artefact->spool)) {
        return bp_archive_add_file(archive, artefact->ledger.name, artefact->spool.fd,
                                   artefact->spool.size, wall_ns, error);
    }
    return bp_archive_add(archive, artefact->ledger.name, bp_buffer_text(&artefact->content),
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
        bp_archive_spool_in(archive, publication->dir_fd);
        bp_archive_use_helpers(archive, choose_helpers());
    }
    for (size_t i = 0; status == BUGPACK_OK && i < bundle->count; i++) {
        const struct artefact *artefact = &bundle->artefacts[i];
        if (is_there(artefact)) {
            writing.total_bytes += content_bytes(artefact);
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
    return status == BUGPACK_ERR_TIMEOUT ? bp_halt_check(halt_of(publication), error) : status;
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
    status = bp_halt_check(halt_of(publication), error);
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
