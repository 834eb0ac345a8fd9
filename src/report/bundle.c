#include "report/bundle_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

/* More artefacts than this are refused: a host that registers without end must not fill memory. */
static const size_t artefact_max_count = 1024;

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
        bp_temp_file_release(&bundle->artefacts[i].temp_file);
        free((char *)(uintptr_t)bundle->artefacts[i].line.name);
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
    struct bp_artefact *artefacts = realloc(bundle->artefacts, capacity * sizeof *artefacts);
    if (artefacts == NULL) {
        return bp_fail_memory(error, "collect an artefact");
    }
    bundle->artefacts = artefacts;
    bundle->capacity = capacity;
    return BUGPACK_OK;
}

/* After it the spool's file is whole, or the artefact is refused: then it has no content. */
static void settle_temp_file(bugpack_writer *writer) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    if (bp_temp_file_is_open(&writer->temp_file) &&
        bp_temp_file_flush(&writer->temp_file, &error) != BUGPACK_OK) {
        bp_writer_refuse(writer, BP_ARTEFACT_FAILED, "%s", error.message);
    }
}

uint64_t bp_artefact_bytes(const struct bp_artefact *artefact) {
    return bp_temp_file_is_open(&artefact->temp_file) ? artefact->temp_file.size
                                                      : artefact->content.size;
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
    settle_temp_file(writer);
    struct bp_artefact *added = &bundle->artefacts[bundle->count];
    *added = (struct bp_artefact){
        .line = writer->line, .order = bundle->count, .temp_file = BP_TEMP_FILE_INIT};
    bp_buffer_move(&added->content, &writer->content);
    bp_temp_file_move(&added->temp_file, &writer->temp_file);
    added->line.name = own_name;
    added->line.bytes = bp_artefact_bytes(added);
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
        const bp_manifest_line *line = &bundle->artefacts[i].line;
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
