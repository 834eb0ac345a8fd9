#include "report/bundle.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "archive/archive.h"
#include "base/array.h"
#include "base/status.h"
#include "model/entry.h"
#include "model/fit.h"
#include "redact/redactor.h"
#include "report/name.h"

static const char manifest_name[] = "manifest.json";

/* More artefacts than this are refused: a host that registers without end must not fill memory. */
static const size_t artefact_max_count = BP_ARCHIVE_ENTRY_MAX - 1;

static const size_t manifest_max_bytes = (size_t)64 << 20;

struct bp_bundle {
    bp_bundle_target target;
    bp_staged_file *file;
    bp_archive *archive;
    bp_redactor *redactor;   /* NULL: redaction is off */
    bp_manifest_line *lines; /* their names are ours */
    size_t count;
    size_t capacity;
    bp_buffer exact; /* names of channels in the open entry that no rule sees, each with its NUL */
    bp_profile_facts profile;
};

/* A bp_archive_filter: the rules, where there are any. */
static bugpack_status filter(void *context, const char *entry, const void *bytes, size_t byte_count,
                             bp_sink *pass_on, void *archive) {
    const bp_bundle *bundle = context;
    (void)entry;
    return bp_redactor_write(bundle->redactor, bytes, byte_count, pass_on, archive);
}

bugpack_status bp_bundle_redact(bp_bundle *bundle, const char *text, bp_buffer *out) {
    return bundle->redactor == NULL ? bp_buffer_append_text(out, text)
                                    : bp_redactor_text(bundle->redactor, text, strlen(text), out);
}

bp_redactor *bp_bundle_begin_messages(bp_bundle *bundle) {
    if (bundle->redactor != NULL) {
        bp_redactor_begin(bundle->redactor, BP_REDACT_MESSAGES);
    }
    return bundle->redactor;
}

bugpack_status bp_bundle_add_exact(bp_bundle *bundle, const char *channel) {
    const bp_buffer *exact = &bundle->exact;
    /* Connections that follow each other may have the same name. */
    size_t at = 0;
    while (at < exact->size && strcmp(exact->data + at, channel) != 0) {
        at += strlen(exact->data + at) + 1;
    }
    return at < exact->size ? BUGPACK_OK
                            : bp_buffer_append(&bundle->exact, channel, strlen(channel) + 1);
}

bugpack_status bp_bundle_overwrite(const bp_bundle *bundle, unsigned char *bytes,
                                   size_t byte_count) {
    return bundle->redactor == NULL
               ? BUGPACK_OK
               : bp_redactor_overwrite(bundle->redactor, bytes, byte_count, 0, byte_count);
}

/* Appends the folder of a further process: its name has no secret, and then only characters of a
 * file name. Before that, the rules would not see the '=' of a secret. */
static bugpack_status append_folder(bp_bundle *bundle, const char *folder, size_t byte_count,
                                    bp_buffer *out) {
    char word[BP_NAME_APP_BYTES];
    bp_buffer name;
    bp_buffer_init(&name, 64 * 1024);
    const char *dash = memchr(folder, '-', byte_count);
    size_t prefix = dash != NULL ? (size_t)(dash + 1 - folder) : 0;
    char *copy = strndup(folder + prefix, byte_count - prefix);
    bugpack_status status =
        copy == NULL ? BUGPACK_ERR_NO_MEMORY : bp_bundle_redact(bundle, copy, &name);
    if (status == BUGPACK_OK) {
        bp_name_app_word(bp_buffer_text(&name), word);
        status = bp_buffer_printf(out, "%.*s%s/", (int)prefix, folder, word);
    }
    bp_buffer_release(&name);
    free(copy);
    return status;
}

/* The name of an entry, which may come from a file of the host; the caller's to free. */
static bugpack_status redact_name(bp_bundle *bundle, const char *name, char **ret_name,
                                  bugpack_error *error) {
    const char *own = bp_entry_in_process(name);
    bugpack_status status = BUGPACK_OK;
    bp_buffer safe;
    bp_buffer_init(&safe, (size_t)1 << 20);
    if (own > name) {
        status = append_folder(bundle, name, (size_t)(own - 1 - name), &safe);
    }
    status = status == BUGPACK_OK ? bp_bundle_redact(bundle, own, &safe) : status;
    char *copy = status == BUGPACK_OK ? strdup(bp_buffer_text(&safe)) : NULL;
    bp_buffer_release(&safe);
    if (copy == NULL) {
        return bp_fail_memory(error, "collect an artefact");
    }
    *ret_name = copy;
    return BUGPACK_OK;
}

bugpack_status bp_bundle_new(const bp_bundle_target *target, bp_bundle **ret_bundle,
                             bugpack_error *error) {
    bp_bundle *bundle = calloc(1, sizeof *bundle);
    if (bundle == NULL) {
        return bp_fail_memory(error, "start a report");
    }
    bp_archive_target zip = {.dir_fd = target->dir_fd,
                             .name = target->dir_name,
                             .wall_ns = target->wall_ns,
                             .token = target->token};
    bundle->target = *target;
    bp_buffer_init(&bundle->exact, manifest_max_bytes);
    bugpack_status status =
        bp_staged_file_new(target->dir_fd, target->dir_name, &bundle->file, error);
    if (status != BUGPACK_OK) {
        goto out;
    }
    zip.fd = bp_staged_file_fd(bundle->file);
    status = bp_archive_new(&zip, &bundle->archive, error);
    if (status != BUGPACK_OK) {
        goto out;
    }
    if (target->rules != NULL) {
        bundle->redactor = bp_redactor_new(target->rules);
        if (bundle->redactor == NULL) {
            status = bp_fail_memory(error, "start a report");
            goto out;
        }
        bp_redactor_set_key(bundle->redactor, target->key);
        bp_archive_set_filter(bundle->archive, filter, bundle);
    }
    *ret_bundle = bundle;
    bundle = NULL;
out:
    bp_bundle_free(bundle);
    return status;
}

void bp_bundle_free(bp_bundle *bundle) {
    if (bundle == NULL) {
        return;
    }
    for (size_t i = 0; i < bundle->count; i++) {
        free((char *)(uintptr_t)bundle->lines[i].name);
        free((bp_redaction_count *)(uintptr_t)bundle->lines[i].redactions);
        free((char *)(uintptr_t)bundle->lines[i].exact_channels);
    }
    free(bundle->lines);
    bp_buffer_release(&bundle->exact);
    bp_archive_free(bundle->archive);
    bp_redactor_free(bundle->redactor);
    bp_staged_file_free(bundle->file);
    free(bundle);
}

bugpack_status bp_bundle_begin(bp_bundle *bundle, const char *name, bugpack_writer *writer,
                               bugpack_error *error) {
    char *safe_name = NULL;
    bugpack_status status = redact_name(bundle, name, &safe_name, error);
    if (status == BUGPACK_OK) {
        status = bp_archive_begin(bundle->archive, safe_name, bp_entry_rank(name), error);
    }
    free(safe_name);
    if (status != BUGPACK_OK) {
        return status;
    }
    bp_buffer_clear(&bundle->exact);
    if (bundle->redactor != NULL) {
        bp_redactor_begin(bundle->redactor, bp_redact_form_of(name));
    }
    writer->archive = bundle->archive;
    writer->sink = bp_archive_write;
    writer->sink_context = bundle->archive;
    return BUGPACK_OK;
}

/* Ends the writer's entry. Afterwards it is in the zip, or it is refused and has left no trace. */
static bugpack_status end_entry(bp_bundle *bundle, bugpack_writer *writer, bugpack_error *error) {
    bugpack_error failure = BUGPACK_ERROR_INIT;
    bugpack_status status = bp_writer_flush(writer, &failure);
    if (status == BUGPACK_OK) {
        status = bp_archive_end(bundle->archive, &writer->line.bytes, &failure);
        writer->archive = NULL; /* on failure it was rolled back */
        if (status == BUGPACK_OK) {
            bp_archive_take_sha256(bundle->archive, writer->line.sha256);
        }
    }
    if (status != BUGPACK_OK && bundle->target.is_strict) {
        if (error != NULL) {
            *error = failure;
        }
        return status;
    }
    if (status != BUGPACK_OK) {
        bp_writer_refuse(writer, BP_ARTEFACT_FAILED, "%s", failure.message);
    }
    return BUGPACK_OK;
}

/* Gets the replacements in the entry that has ended, and the names of its exact channels, NULL for
 * none; both are the caller's to free. */
static bugpack_status take_marks(const bp_bundle *bundle, bp_redaction_count **ret_counts,
                                 size_t *ret_count, char **ret_exact, bugpack_error *error) {
    const bp_rule_set *rules = bundle->target.rules;
    const size_t exact_bytes = bundle->exact.size;
    if (bundle->redactor == NULL) {
        return BUGPACK_OK; /* and no channel was kept from the rules */
    }
    const uint64_t *counts = bp_redactor_counts(bundle->redactor);
    size_t count = 0, rule_count = rules->list.count;
    bp_redaction_count *found = calloc(rule_count + 1, sizeof *found);
    char *exact = exact_bytes > 0 ? calloc(exact_bytes + 1, 1) : NULL;
    if (found == NULL || (exact_bytes > 0 && exact == NULL)) {
        free(exact);
        free(found);
        return bp_fail_memory(error, "collect an artefact");
    }
    for (size_t i = 0; i < rule_count; i++) {
        if (counts[i] > 0) {
            found[count++] =
                (bp_redaction_count){.rule = rules->list.rules[i].id, .count = counts[i]};
        }
    }
    if (exact_bytes > 0) {
        memcpy(exact, bundle->exact.data, exact_bytes);
    }
    *ret_counts = found;
    *ret_count = count;
    *ret_exact = exact;
    return BUGPACK_OK;
}

bugpack_status bp_bundle_add(bp_bundle *bundle, const char *name, bugpack_writer *writer,
                             bugpack_error *error) {
    if (bundle->count >= artefact_max_count) {
        return bp_fail(error, BUGPACK_ERR_LIMIT, "a report holds at most %zu artefacts",
                       artefact_max_count);
    }
    if (!bp_array_reserve(&bundle->lines, bundle->count, &bundle->capacity)) {
        return bp_fail_memory(error, "collect an artefact");
    }
    char *own_name = NULL, *exact = NULL;
    bp_redaction_count *counts = NULL;
    size_t count = 0;
    bugpack_status status = redact_name(bundle, name, &own_name, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    bool is_there = writer->line.status == BP_ARTEFACT_OK ||
                    writer->line.status == BP_ARTEFACT_TRUNCATED || writer->content.size > 0;
    writer->line.bytes = 0;
    if (is_there && writer->archive == NULL) {
        status = bp_bundle_begin(bundle, name, writer, error);
    }
    if (status == BUGPACK_OK && is_there) {
        status = end_entry(bundle, writer, error);
    }
    if (status != BUGPACK_OK) {
        goto out;
    }
    if (writer->line.bytes > 0) {
        status = take_marks(bundle, &counts, &count, &exact, error);
        if (status != BUGPACK_OK) {
            goto out;
        }
    }
    bp_manifest_line *line = &bundle->lines[bundle->count++];
    *line = writer->line;
    line->name = own_name;
    line->is_unsearched = line->bytes > 0 && bundle->redactor != NULL &&
                          (exact != NULL || !bp_redactor_is_searched(bundle->redactor));
    line->exact_channels = exact;
    line->redactions = counts;
    line->redaction_count = count;
    own_name = NULL;
    bp_writer_release(writer);
out:
    free(own_name);
    return status;
}

bugpack_status bp_bundle_put(bp_bundle *bundle, const char *name, bugpack_status made,
                             bugpack_writer *writer, bugpack_error *error) {
    bugpack_status status = made == BUGPACK_OK ? bp_bundle_add(bundle, name, writer, error) : made;
    bp_writer_release(writer);
    return status;
}

bugpack_status bp_bundle_leave_out(bp_bundle *bundle, const char *name, bugpack_error *error) {
    bugpack_writer writer;
    bp_writer_init(&writer, 0);
    bp_writer_refuse(&writer, BP_ARTEFACT_DISABLED, "left out on request");
    writer.line.is_missing = false;
    bp_writer_stamp(&writer, bp_clock_now());
    return bp_bundle_put(bundle, name, BUGPACK_OK, &writer, error);
}

void bp_bundle_set_profile(bp_bundle *bundle, const bp_profile_facts *facts) {
    bundle->profile = *facts;
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
        const bp_manifest_line *line = &bundle->lines[i];
        if (!line->is_missing) {
            continue;
        }
        missing_count++;
        int added = snprintf(text + length, text_bytes - length, "%s%s: %s", length > 0 ? "\n" : "",
                             line->name, line->reason);
        if (added < 0 || (size_t)added >= text_bytes - length) {
            text[length] = '\0'; /* a line that does not fit whole is left out */
        } else {
            keep_one_line(text + length + (length > 0));
            length += (size_t)added;
        }
    }
    return missing_count;
}

/* Appends "BEFORE TEXT AFTER" to a line that has room for it, and for a mark that more follows. */
static bool append_part(char *line, size_t line_bytes, const char *before, const char *text,
                        const char *after) {
    static const char more[] = "...";
    size_t length = strlen(line);
    int added = snprintf(line + length, line_bytes - length, "%s%s%s", before, text, after);
    if (added < 0 || (size_t)added + sizeof more > line_bytes - length) {
        (void)snprintf(line + length, line_bytes - length, "%s", more);
        return false;
    }
    keep_one_line(line + length);
    return true;
}

void bp_bundle_unsearched(const bp_bundle *bundle, char *text, size_t text_bytes) {
    bool has_room = true;
    text[0] = '\0';
    for (size_t i = 0; has_room && i < bundle->count; i++) {
        const bp_manifest_line *line = &bundle->lines[i];
        if (!line->is_unsearched) {
            continue;
        }
        has_room = append_part(text, text_bytes, text[0] != '\0' ? ", " : "", line->name, "");
        const char *channel = line->exact_channels != NULL ? line->exact_channels : "";
        for (const char *before = " ("; has_room && *channel != '\0'; before = ", ") {
            const char *next = channel + strlen(channel) + 1;
            has_room = append_part(text, text_bytes, before, channel, *next == '\0' ? ")" : "");
            channel = next;
        }
    }
}

static bugpack_status print_manifest(const bp_bundle *bundle, const bp_trigger_list *triggers,
                                     bp_buffer *out, bugpack_error *error) {
    const bp_manifest manifest = {.report_id = bundle->target.report_id,
                                  .is_redacted = bundle->redactor != NULL,
                                  .max_zip_bytes = bundle->target.max_zip_bytes,
                                  .entries = bundle->lines,
                                  .entry_count = bundle->count,
                                  .profile = bundle->profile,
                                  .triggers = triggers->entries,
                                  .trigger_count = triggers->count};
    bp_buffer_init(out, manifest_max_bytes);
    return bp_manifest_print(&manifest, out, error);
}

struct fitting {
    bp_bundle *bundle;
    const bp_trigger_list *triggers;
};

/* Of bp_fit_manifest: an entry lost bytes, and its line says so. */
static void take_loss(void *context, const bp_fit_loss *loss) {
    bp_bundle *bundle = ((struct fitting *)context)->bundle;
    bp_manifest_line *line = bundle->lines;
    while (line < bundle->lines + bundle->count && !bp_entry_is_same(line->name, loss->name)) {
        line++;
    }
    if (line == bundle->lines + bundle->count) {
        return; /* each entry has a line */
    }
    size_t used = strlen(line->reason);
    if (!line->has_original_bytes) {
        line->has_original_bytes = true;
        line->original_bytes = line->bytes;
    }
    line->bytes = loss->bytes;
    line->left_out_bytes += loss->lost_bytes;
    memcpy(line->sha256, loss->sha256, sizeof line->sha256);
    line->covers_from_wall_ns = 0;
    (void)snprintf(line->reason + used, sizeof line->reason - used, "%s%s", used > 0 ? "; " : "",
                   loss->reason);
    line->status = loss->sha256[0] != '\0' ? BP_ARTEFACT_TRUNCATED : BP_ARTEFACT_OMITTED;
    if (line->status == BP_ARTEFACT_OMITTED) {
        line->is_missing = true;
        line->covers_to_wall_ns = 0;
        line->is_unsearched = false;
        free((char *)(uintptr_t)line->exact_channels);
        line->exact_channels = NULL;
        line->redaction_count = 0;
    }
}

/* Of bp_fit_manifest. */
static bugpack_status add_manifest(void *context, bugpack_error *error) {
    bp_bundle *bundle = ((struct fitting *)context)->bundle;
    bp_buffer text;
    uint64_t byte_count = 0;
    /* As in the directory of the zip: by rank, and those of one rank as they were added. */
    for (size_t i = 1; i < bundle->count; i++) {
        bp_manifest_line line = bundle->lines[i];
        size_t at = i;
        for (; at > 0 && bp_entry_rank(bundle->lines[at - 1].name) > bp_entry_rank(line.name);
             at--) {
            bundle->lines[at] = bundle->lines[at - 1];
        }
        bundle->lines[at] = line;
    }
    bugpack_status status =
        print_manifest(bundle, ((struct fitting *)context)->triggers, &text, error);
    if (status == BUGPACK_OK) {
        status = bp_archive_begin(bundle->archive, manifest_name, UINT_MAX, error);
    }
    if (status == BUGPACK_OK && bundle->redactor != NULL) {
        bp_redactor_begin(bundle->redactor, bp_redact_form_of(manifest_name));
    }
    if (status == BUGPACK_OK) {
        (void)bp_archive_write(bundle->archive, bp_buffer_text(&text), text.size);
        status = bp_archive_end(bundle->archive, &byte_count, error);
    }
    bp_buffer_release(&text);
    return status;
}

bugpack_status bp_bundle_publish(bp_bundle *bundle, const bp_trigger_list *triggers,
                                 const char *stem, const char *extension, char *ret_name,
                                 size_t name_bytes, uint64_t *ret_zip_bytes, bugpack_error *error) {
    const bp_cancel_token *token = bundle->target.token;
    uint64_t zip_bytes = 0;
    struct fitting fitting = {bundle, triggers};
    const bp_fit_manifest manifest = {take_loss, add_manifest, &fitting};
    bugpack_status status = bp_fit(bundle->archive, bundle->target.max_zip_bytes, &manifest, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    status = bp_archive_finish(bundle->archive, &zip_bytes, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    status = bp_cancel_check(token, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    status = bp_staged_file_ask(bundle->file, &bundle->target.hook, zip_bytes, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    status = bp_staged_file_sync(bundle->file, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    /* The last moment to give up: a name, once given, stays. */
    status = bundle->target.hook.call == NULL ? bp_cancel_check(token, error)
                                              : bp_cancel_check_flag(token, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    status = bp_staged_file_publish(bundle->file, stem, extension, ret_name, name_bytes, error);
    if (status == BUGPACK_OK) {
        *ret_zip_bytes = zip_bytes;
    }
    return status;
}
