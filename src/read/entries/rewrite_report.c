#include "entries/rewrite_report.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "archive/archive.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "entries/report_file.h"
#include "model/fit.h"
#include "platform/staged_file.h"
#include "redact/redactor.h"

static const char manifest_name[] = "manifest.json";
static const size_t manifest_max_bytes = (size_t)32 << 20;
static const size_t changed_max_bytes = (size_t)256 << 20;

/* A report being rewritten. */
struct rewriting {
    const bp_rewrite_request *request;
    bp_report_file *report;
    bp_json_tree *manifest; /* the report's, which becomes that of the new one */
    bp_archive *archive;
    bp_redactor *redactor;
    uint64_t count;
    bool lacks_memory; /* to say what was left out */
};

/* A bp_archive_filter. */
static bugpack_status redact(void *context, const char *entry, const void *bytes, size_t byte_count,
                             bp_sink *pass_on, void *archive) {
    (void)entry;
    return bp_redactor_write(context, bytes, byte_count, pass_on, archive);
}

static bp_json_tree *find_named(const bp_json_tree *object, const char *array, const char *key,
                                const char *name) {
    const bp_json_tree *all = bp_json_tree_array(object, array);
    BP_JSON_EACH (one, bp_json_tree_first(all)) {
        const char *text = bp_json_tree_text(one, key);
        if (text != NULL && strcmp(text, name) == 0) {
            return (bp_json_tree *)(uintptr_t)one; /* of a tree that is ours */
        }
    }
    return NULL;
}

/* Notes in a line if its entry was searched, and how much each rule replaced. */
static bool add_redactions(struct rewriting *rewriting, bp_json_tree *line, uint64_t byte_count,
                           bool is_new) {
    const uint64_t *counts = bp_redactor_counts(rewriting->redactor);
    bool was_redacted = bp_json_tree_is_true(rewriting->manifest, "redacted") && !is_new;
    bool is_set = true;
    if (bp_redactor_is_searched(rewriting->redactor)) { /* exact channels too, this time */
        bp_json_tree_remove(line, "not_searched");
        bp_json_tree_remove(line, "exact_channels");
    } else if (byte_count > 0 && !was_redacted) {
        is_set = bp_json_tree_set_bool(line, "not_searched", true);
    }
    for (size_t i = 0; is_set && i < rewriting->request->rules->list.count; i++) {
        const char *rule = rewriting->request->rules->list.rules[i].id;
        if (counts[i] == 0) {
            continue;
        }
        rewriting->count += counts[i];
        bp_json_tree *found = find_named(line, "redactions", "rule", rule);
        if (found == NULL) {
            found = bp_json_tree_append(line, "redactions");
        }
        uint64_t before = bp_json_tree_uint_or(found, "count", 0);
        is_set = found != NULL && bp_json_tree_set_text(found, "rule", rule) &&
                 bp_json_tree_set_uint(found, "count", before + counts[i]);
    }
    return is_set;
}

/* The artefact of an entry that was written: its size, its name, and what was replaced. */
static bool update_line(struct rewriting *rewriting, const char *name, const char *safe_name,
                        uint64_t byte_count, uint64_t changed_count) {
    bp_json_tree *line = find_named(rewriting->manifest, "artefacts", "name", name);
    char sha256[BP_SHA256_TEXT_BYTES];
    bool is_new = line == NULL; /* somebody added the entry to the report */
    bool is_set = true;
    if (is_new) {
        line = bp_json_tree_append(rewriting->manifest, "artefacts");
        is_set = line != NULL && bp_json_tree_set_text(line, "name", safe_name) &&
                 bp_json_tree_set_text(line, "status", "ok") &&
                 bp_json_tree_set_uint(line, "duration_ms", 0) &&
                 bp_json_tree_set_text(line, "note", "the manifest did not list it");
    }
    bp_archive_take_sha256(rewriting->archive, sha256);
    is_set = is_set && bp_json_tree_set_uint(line, "bytes", byte_count) &&
             bp_json_tree_set_text(line, "sha256", sha256) &&
             bp_json_tree_set_text(line, "name", safe_name);
    const char *key = rewriting->request->changed_key;
    if (is_set && changed_count > 0) {
        rewriting->count += changed_count;
        is_set =
            bp_json_tree_set_uint(line, key, bp_json_tree_uint_or(line, key, 0) + changed_count);
    }
    return is_set &&
           (rewriting->redactor == NULL || add_redactions(rewriting, line, byte_count, is_new));
}

/* Begins, fills and ends the entry `name`: with `text`, or else with that of the report at
 * `index`. */
static bugpack_status write_entry(struct rewriting *rewriting, const char *name, size_t index,
                                  const bp_buffer *text, uint64_t *ret_bytes,
                                  bugpack_error *error) {
    if (rewriting->redactor != NULL) {
        bp_redactor_begin(rewriting->redactor, bp_redact_form_of(name));
    }
    bugpack_status status = bp_archive_begin(rewriting->archive, name, (unsigned)index, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    if (text != NULL) {
        (void)bp_archive_write(rewriting->archive, bp_buffer_text(text), text->size);
    } else {
        status =
            bp_report_file_stream(rewriting->report, bp_report_file_name(rewriting->report, index),
                                  UINT64_MAX, bp_archive_write, rewriting->archive, error);
        if (status != BUGPACK_OK) {
            bp_archive_roll_back(rewriting->archive);
            return status;
        }
    }
    return bp_archive_end(rewriting->archive, ret_bytes, error);
}

/* The name of an entry may be secret, too. */
static bool name_entry(struct rewriting *rewriting, const char *name, bp_buffer *out) {
    return rewriting->redactor != NULL
               ? bp_redactor_text(rewriting->redactor, name, strlen(name), out) == BUGPACK_OK
               : bp_buffer_append_text(out, name) == BUGPACK_OK;
}

static bugpack_status copy_entry(struct rewriting *rewriting, size_t index, bugpack_error *error) {
    const bp_rewrite_request *request = rewriting->request;
    const char *name = bp_report_file_name(rewriting->report, index);
    uint64_t byte_count = 0, changed_count = 0;
    bp_buffer safe_name, changed;
    if (strcmp(name, manifest_name) == 0) {
        return BUGPACK_OK;
    }
    bp_buffer_init(&safe_name, (size_t)1 << 20);
    bp_buffer_init(&changed, changed_max_bytes);
    bugpack_status status = name_entry(rewriting, name, &safe_name)
                                ? BUGPACK_OK
                                : bp_fail_memory(error, "write a report again");
    if (status == BUGPACK_OK && request->change != NULL) {
        status = request->change(request->context, rewriting->report, name, &changed,
                                 &changed_count, error);
    }
    if (status == BUGPACK_OK) {
        status = write_entry(rewriting, bp_buffer_text(&safe_name), index,
                             changed.size > 0 ? &changed : NULL, &byte_count, error);
    }
    if (status == BUGPACK_OK &&
        !update_line(rewriting, name, bp_buffer_text(&safe_name), byte_count, changed_count)) {
        status = bp_fail_memory(error, "write a report again");
    }
    bp_buffer_release(&changed);
    bp_buffer_release(&safe_name);
    return status;
}

/* Removes from a line all that described the content of an entry that was left out. */
static void clear_line(bp_json_tree *line) {
    static const char *const keys[] = {"sha256", "covers", "not_searched", "exact_channels",
                                       "redactions"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        bp_json_tree_remove(line, keys[i]);
    }
}

/* "REASON; LOSS". */
static bool add_reason(bp_json_tree *line, const char *loss) {
    bp_buffer text;
    bp_buffer_init(&text, (size_t)1 << 20);
    const char *reason = bp_json_tree_text_or(line, "reason", "");
    bool is_set = bp_buffer_printf(&text, "%s%s%s", reason, reason[0] != '\0' ? "; " : "", loss) ==
                      BUGPACK_OK &&
                  bp_json_tree_set_text(line, "reason", bp_buffer_text(&text));
    bp_buffer_release(&text);
    return is_set;
}

/* Of bp_fit_manifest. */
static void take_loss(void *context, const bp_fit_loss *loss) {
    struct rewriting *rewriting = context;
    bp_json_tree *line = find_named(rewriting->manifest, "artefacts", "name", loss->name);
    bool is_there = loss->sha256[0] != '\0';
    uint64_t before = bp_json_tree_uint_or(line, "left_out_bytes", 0);
    uint64_t original_bytes =
        bp_json_tree_uint_or(line, "original_bytes", loss->bytes + loss->lost_bytes);
    bool is_set = line != NULL && bp_json_tree_set_uint(line, "bytes", loss->bytes) &&
                  bp_json_tree_set_uint(line, "original_bytes", original_bytes) &&
                  bp_json_tree_set_uint(line, "left_out_bytes", before + loss->lost_bytes) &&
                  bp_json_tree_set_text(line, "status", is_there ? "truncated" : "omitted") &&
                  add_reason(line, loss->reason);
    if (is_set && is_there) {
        bp_json_tree *covers =
            (bp_json_tree *)(uintptr_t)bp_json_tree_object(line, "covers"); /* of a tree of ours */
        if (covers != NULL) {
            bp_json_tree_remove(covers, "from");
        }
        is_set = bp_json_tree_set_text(line, "sha256", loss->sha256);
    } else if (is_set) {
        clear_line(line);
        is_set = bp_json_tree_set_bool(line, "missing", true);
    }
    rewriting->lacks_memory = rewriting->lacks_memory || !is_set;
}

/* What the manifest says of the whole report. */
static bool mark(const struct rewriting *rewriting) {
    bp_json_tree *manifest = rewriting->manifest;
    uint64_t max_bytes = rewriting->request->max_zip_bytes, missing_count = 0;
    bool is_set =
        rewriting->redactor == NULL || (bp_json_tree_set_bool(manifest, "redacted", true) &&
                                        bp_json_tree_set_bool(manifest, "redacted_again", true));
    if (max_bytes == 0) {
        return is_set;
    }
    BP_JSON_EACH (line, bp_json_tree_rows(manifest, "artefacts")) {
        missing_count += bp_json_tree_is_true(line, "missing");
    }
    return is_set && !rewriting->lacks_memory &&
           bp_json_tree_set_uint(manifest, "max_zip_bytes", max_bytes) &&
           bp_json_tree_set_uint(manifest, "missing", missing_count) &&
           bp_json_tree_set_bool(manifest, "complete", missing_count == 0);
}

/* Of bp_fit_manifest. */
static bugpack_status add_manifest(void *context, bugpack_error *error) {
    struct rewriting *rewriting = context;
    uint64_t byte_count = 0;
    bp_buffer text;
    bp_buffer_init(&text, manifest_max_bytes);
    bugpack_status status = mark(rewriting) ? bp_json_tree_print(rewriting->manifest, &text, error)
                                            : bp_fail_memory(error, "write a report again");
    if (status == BUGPACK_OK) {
        status = write_entry(rewriting, manifest_name, UINT_MAX, &text, &byte_count, error);
    }
    bp_buffer_release(&text);
    return status;
}

static bugpack_status rewrite(struct rewriting *rewriting, int dir_fd, int fd, uint64_t *ret_bytes,
                              bugpack_error *error) {
    const bp_archive_target target = {.fd = fd,
                                      .dir_fd = dir_fd,
                                      .name = rewriting->request->output_path,
                                      .wall_ns = bp_clock_wall_ns()};
    bugpack_status status = bp_archive_new(&target, &rewriting->archive, error);
    bool is_redacted = rewriting->request->rules != NULL;
    rewriting->redactor = is_redacted ? bp_redactor_new(rewriting->request->rules) : NULL;
    if (status == BUGPACK_OK && is_redacted && rewriting->redactor == NULL) {
        status = bp_fail_memory(error, "write a report again");
    }
    if (status == BUGPACK_OK && is_redacted) {
        bp_archive_set_filter(rewriting->archive, redact, rewriting->redactor);
    }
    for (size_t i = 0; status == BUGPACK_OK && i < bp_report_file_count(rewriting->report); i++) {
        status = copy_entry(rewriting, i, error);
    }
    if (status == BUGPACK_OK) { /* the entries were redacted */
        const bp_fit_manifest manifest = {take_loss, add_manifest, rewriting};
        status = bp_fit(rewriting->archive, rewriting->request->max_zip_bytes, &manifest, error);
    }
    return status == BUGPACK_OK ? bp_archive_finish(rewriting->archive, ret_bytes, error) : status;
}

/* Writes `name`, up to its ending, in an open directory. */
static bugpack_status publish(struct rewriting *rewriting, int dir_fd, const char *name,
                              char *ret_name, size_t name_bytes, bugpack_error *error) {
    bp_staged_file *file = NULL;
    uint64_t zip_bytes = 0;
    const char *dot = strrchr(name, '.');
    const char *ending = dot == NULL || dot == name ? name + strlen(name) : dot;
    char *stem = strndup(name, (size_t)(ending - name));
    bugpack_status status =
        stem == NULL ? bp_fail_memory(error, "write a report again")
                     : bp_staged_file_new(dir_fd, rewriting->request->output_path, &file, error);
    if (status != BUGPACK_OK) {
        goto out;
    }
    status = rewrite(rewriting, dir_fd, bp_staged_file_fd(file), &zip_bytes, error);
    if (status == BUGPACK_OK && rewriting->request->change != NULL && rewriting->count == 0) {
        status = bp_fail(error, BUGPACK_ERR_UNSUPPORTED, "nothing of the report would change");
    }
    if (status != BUGPACK_OK) {
        goto out;
    }
    status = bp_staged_file_ask(file, &rewriting->request->hook, zip_bytes, error);
    if (status != BUGPACK_OK) {
        goto out;
    }
    status = bp_staged_file_sync(file, error);
    if (status != BUGPACK_OK) {
        goto out;
    }
    status = bp_staged_file_publish(file, stem, ending, ret_name, name_bytes, error);
out:
    bp_staged_file_free(file);
    free(stem);
    return status;
}

bugpack_status bp_rewrite_report(const bp_rewrite_request *request, char *ret_name,
                                 size_t name_bytes, uint64_t *ret_count, bugpack_error *error) {
    struct rewriting rewriting = {.request = request};
    const char *slash = strrchr(request->output_path, '/');
    size_t dir_bytes = (size_t)(slash - request->output_path);
    char *dir = strndup(request->output_path, dir_bytes == 0 ? 1 : dir_bytes);
    int dir_fd = -1;
    bugpack_status status = dir == NULL
                                ? bp_fail_memory(error, "write a report again")
                                : bp_report_file_open(request->path, &rewriting.report, error);
    if (status == BUGPACK_OK) {
        rewriting.manifest = (bp_json_tree *)(uintptr_t)bp_report_file_manifest(rewriting.report);
        status = bp_file_open_directory(dir, false, &dir_fd, error);
    }
    if (status == BUGPACK_OK) {
        status = publish(&rewriting, dir_fd, slash + 1, ret_name, name_bytes, error);
    }
    if (status == BUGPACK_OK) {
        *ret_count = rewriting.count;
    }
    bp_archive_free(rewriting.archive);
    bp_redactor_free(rewriting.redactor);
    bp_report_file_close(rewriting.report);
    bp_file_close(dir_fd);
    free(dir);
    return status;
}
