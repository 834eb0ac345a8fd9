#include "inspect/diff_source.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/status.h"
#include "base/utf8.h"
#include "inspect/json_diff.h"
#include "model/heap_state.h"
#include "json/pick.h"

const char *bp_diff_artefact_name(bp_diff_artefact artefact) {
    static const char *const names[] = {[BP_DIFF_HOST] = "host-threads.json",
                                        [BP_DIFF_METRICS] = "runtime-metrics.json",
                                        [BP_DIFF_HEAP] = "heap-state.json"};
    return names[artefact];
}

/* Whether an object has a key of a heap state, or none at all: such a state is all unknown. */
static bool is_heap_state(const bp_json_pick *root, const bp_json_pick *keys, size_t key_count) {
    if (!bp_json_token_is(&root->token, "{")) {
        return false;
    }
    bool is_it = root->token.text[1 + strspn(root->token.text + 1, " \t\r\n")] == '}';
    for (size_t i = 0; i < key_count; i++) {
        is_it = is_it || keys[i].token.byte_count > 0;
    }
    return is_it;
}

/* Finds what a document is by keys that only it has. */
static bugpack_status find_kind(bp_diff_side *side, bugpack_error *error) {
    enum { THREADS, SUMMARY, PROCESS, ROOT, ALLOCATOR, NUMBERS };
    bp_json_pick picks[NUMBERS + BP_HEAP_NUMBER_COUNT] = {{.path = "threads"},
                                                          {.path = "summary"},
                                                          {.path = "process"},
                                                          {.path = ""},
                                                          {.path = "allocator"}};
    bugpack_error detail = BUGPACK_ERROR_INIT;
    for (size_t i = 0; i < BP_HEAP_NUMBER_COUNT; i++) {
        picks[NUMBERS + i].path = bp_heap_number_keys[i];
    }
    bugpack_status status = bp_json_pick_all(bp_buffer_text(&side->document), side->document.size,
                                             picks, NUMBERS + BP_HEAP_NUMBER_COUNT, &detail);
    if (status == BUGPACK_ERR_CORRUPT) {
        return bp_fail(error, status, "\"%s\" is neither a report nor JSON: %s", side->path,
                       detail.message);
    }
    if (status != BUGPACK_OK) {
        return bp_fail(error, status, "%s", detail.message);
    }
    bool has_threads = bp_json_token_is(&picks[THREADS].token, "[");
    if (has_threads && bp_json_token_is(&picks[SUMMARY].token, "{")) {
        side->kind = BP_DIFF_HOST;
    } else if (has_threads && bp_json_token_is(&picks[PROCESS].token, "{")) {
        side->kind = BP_DIFF_METRICS;
    } else if (!has_threads &&
               is_heap_state(&picks[ROOT], picks + ALLOCATOR, 1 + BP_HEAP_NUMBER_COUNT)) {
        side->kind = BP_DIFF_HEAP;
    } else {
        return bp_fail(error, BUGPACK_ERR_CORRUPT,
                       "\"%s\" is neither a report nor a host-threads.json, runtime-metrics.json "
                       "or heap-state.json",
                       side->path);
    }
    return BUGPACK_OK;
}

/* A damaged report still begins like one, and is then refused as a zip. */
static bool begins_as_zip(int fd) {
    char begin[4];
    return bp_file_read_range(fd, begin, sizeof begin, 0) == sizeof begin &&
           memcmp(begin, "PK", 2) == 0;
}

static void explain_absence(const bp_diff_side *side, const char *name,
                            bp_diff_presence *presence) {
    char text[2 * sizeof presence->reason];
    bp_report_line line;
    if (bp_report_file_line(side->report, name, &line)) {
        (void)snprintf(text, sizeof text, "%s%s%s", line.status, line.reason[0] != '\0' ? ": " : "",
                       line.reason);
        bp_utf8_copy(presence->reason, sizeof presence->reason, text);
    }
}

/* Which artefacts are there, and why the others are not. */
static void look(bp_diff_side *side) {
    for (bp_diff_artefact artefact = 0; artefact < BP_DIFF_ARTEFACT_COUNT; artefact++) {
        const char *name = bp_diff_artefact_name(artefact);
        bp_diff_presence *presence = &side->presence[artefact];
        presence->is_there = side->report != NULL ? bp_report_file_has(side->report, name, NULL)
                                                  : side->kind == artefact;
        if (side->report != NULL && !presence->is_there) {
            explain_absence(side, name, presence);
        }
    }
}

bugpack_status bp_diff_side_open(bp_diff_side *side, const char *path, bugpack_error *error) {
    int fd;
    *side = (bp_diff_side){.path = path, .facts = {"", "", ""}};
    bp_buffer_init(&side->document, BP_DIFF_DOCUMENT_MAX_BYTES);
    bugpack_status status = bp_report_input_open(path, &fd, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    if (begins_as_zip(fd)) {
        status = bp_report_file_take(fd, path, &side->report, error);
        if (status == BUGPACK_OK) {
            side->facts = bp_report_file_facts(side->report);
            look(side);
            bp_report_file_drop_manifest(side->report); /* it has told the reasons */
            return BUGPACK_OK;
        }
    } else {
        status = bp_file_read_fd(fd, path, &side->document, error);
        status = status == BUGPACK_OK ? find_kind(side, error) : status;
        look(side);
    }
    (void)close(fd);
    return status;
}

void bp_diff_side_release(bp_diff_side *side) {
    bp_report_file_close(side->report);
    bp_buffer_release(&side->document);
}

bugpack_status bp_diff_side_take(bp_diff_side *side, bp_diff_artefact artefact, bp_buffer *ret_text,
                                 bugpack_error *error) {
    bp_buffer_init(ret_text, BP_JSON_DIFF_SIDE_BYTES);
    if (!side->presence[artefact].is_there) {
        return BUGPACK_OK;
    }
    if (side->report != NULL) {
        return bp_report_file_read(side->report, bp_diff_artefact_name(artefact), ret_text, error);
    }
    bp_buffer_move(ret_text, &side->document);
    return BUGPACK_OK;
}

/* Pieces, since what reads them keeps what is behind the last whole token. */
static bugpack_status give_document(const bp_buffer *document, bp_sink *sink, void *sink_context) {
    static const size_t piece_bytes = (size_t)256 << 10;
    bugpack_status status = BUGPACK_OK;
    size_t byte_count;
    for (size_t at = 0; status == BUGPACK_OK && at < document->size; at += byte_count) {
        byte_count = document->size - at < piece_bytes ? document->size - at : piece_bytes;
        status = sink(sink_context, bp_buffer_text(document) + at, byte_count);
    }
    return status;
}

static bugpack_status give_host(const void *context, bp_sink *sink, void *sink_context,
                                bugpack_error *error) {
    const bp_diff_side *side = context;
    return side->report == NULL
               ? give_document(&side->document, sink, sink_context)
               : bp_report_file_stream(side->report, bp_diff_artefact_name(BP_DIFF_HOST),
                                       BP_DIFF_DOCUMENT_MAX_BYTES, sink, sink_context, error);
}

bp_giver bp_diff_side_host(const bp_diff_side *side) {
    return (bp_giver){.give = give_host, .context = side};
}

bugpack_status bp_diff_explain(const char *path, bp_diff_artefact artefact,
                               const bugpack_error *detail, bugpack_error *error) {
    return detail->status == BUGPACK_ERR_CORRUPT
               ? bp_fail(error, detail->status, "%s of \"%s\": %s", bp_diff_artefact_name(artefact),
                         path, detail->message)
               : bp_fail(error, detail->status, "%s", detail->message);
}

bugpack_status bp_diff_read_heap(const bp_buffer *text, const char *path,
                                 bugpack_heap_state *ret_state, bugpack_error *error) {
    bugpack_error detail = BUGPACK_ERROR_INIT;
    bugpack_status status =
        bp_heap_state_parse(bp_buffer_text(text), text->size, ret_state, &detail);
    return status == BUGPACK_OK ? status : bp_diff_explain(path, BP_DIFF_HEAP, &detail, error);
}
