#include "inspect/manifest_reader.h"

#include <string.h>

#include "base/utf8.h"
#include "json/pick.h"

static const size_t text_max_bytes = (size_t)1 << 20;

/* The line being read, and the one that was looked for. */
typedef struct search {
    const char *name;
    bp_buffer text;
    bool is_it;
    bp_report_line line, found;
} search;

static void keep(search *state, const bp_json_token *token, char *out, size_t out_bytes) {
    bp_buffer_clear(&state->text);
    (void)bp_json_token_text(token, &state->text);
    size_t kept = state->text.size;
    if (kept >= out_bytes) {
        kept = bp_utf8_cut(bp_buffer_text(&state->text), kept, out_bytes - 1);
    }
    memcpy(out, bp_buffer_text(&state->text), kept);
    out[kept] = '\0';
}

static bugpack_status visit(void *context, const char *path, const bp_json_token *token,
                            bugpack_error *error) {
    search *state = context;
    (void)error;
    if (strcmp(path, "artefacts[]") == 0) {
        if (token->kind == BP_JSON_END && state->is_it) {
            state->found = state->line;
            state->found.is_there = true;
        }
        state->line = (bp_report_line){.is_there = false};
        state->is_it = false;
    } else if (strcmp(path, "artefacts[].name") == 0) {
        bp_buffer_clear(&state->text);
        state->is_it = bp_json_token_text(token, &state->text) &&
                       strcmp(bp_buffer_text(&state->text), state->name) == 0;
    } else if (strcmp(path, "artefacts[].status") == 0) {
        keep(state, token, state->line.status, sizeof state->line.status);
    } else if (strcmp(path, "artefacts[].reason") == 0) {
        keep(state, token, state->line.reason, sizeof state->line.reason);
    }
    return BUGPACK_OK;
}

bugpack_status bp_manifest_find(const bp_buffer *manifest, const char *name,
                                bp_report_line *ret_line, bugpack_error *error) {
    search state = {.name = name};
    bp_buffer_init(&state.text, text_max_bytes);
    bugpack_status status =
        bp_json_walk(bp_buffer_text(manifest), manifest->size, visit, &state, error);
    bp_buffer_release(&state.text);
    if (status == BUGPACK_OK) {
        *ret_line = state.found;
    }
    return status;
}
