#include "inspect/diff_values.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "base/utf8.h"
#include "json/pick.h"

static const size_t text_max_bytes = (size_t)1 << 20;

const bp_diff_figure bp_diff_figures[BP_DIFF_FIGURE_COUNT] = {
    {.key = "cpu_percent", .decimals = 2}, {.key = "rss_kb"}, {.key = "vm_size_kb"}};

/* Picks values of a document that should be this artefact. */
static bugpack_status pick(const bp_buffer *text, const char *path, bp_diff_artefact artefact,
                           bp_json_pick *picks, size_t pick_count, bugpack_error *error) {
    bugpack_error detail = BUGPACK_ERROR_INIT;
    bugpack_status status =
        bp_json_pick_all(bp_buffer_text(text), text->size, picks, pick_count, &detail);
    if (status == BUGPACK_ERR_CORRUPT) {
        return bp_fail(error, status, "%s of \"%s\": %s", bp_diff_artefact_name(artefact), path,
                       detail.message);
    }
    return status == BUGPACK_OK ? status : bp_fail(error, status, "%s", detail.message);
}

static bugpack_status refuse(const char *path, bp_diff_artefact artefact, const char *key,
                             bugpack_error *error) {
    return bp_fail(error, BUGPACK_ERR_CORRUPT, "%s of \"%s\": \"%s\" is not what it should be",
                   bp_diff_artefact_name(artefact), path, key);
}

/* Why a report has no metrics, in its own words. */
static void take_reason(const bp_json_token *token, bp_diff_presence *presence) {
    bp_buffer reason;
    bp_buffer_init(&reason, text_max_bytes);
    (void)bp_json_token_text(token, &reason);
    size_t kept = reason.size;
    if (kept >= sizeof presence->reason) {
        kept = bp_utf8_cut(reason.data, kept, sizeof presence->reason - 1);
    }
    memcpy(presence->reason, bp_buffer_text(&reason), kept);
    presence->reason[kept] = '\0';
    presence->is_there = false;
    bp_buffer_release(&reason);
}

bugpack_status bp_diff_read_metrics(const bp_buffer *text, const char *path,
                                    bp_diff_value ret_values[BP_DIFF_FIGURE_COUNT],
                                    bp_diff_presence *presence, bugpack_error *error) {
    bp_json_pick picks[BP_DIFF_FIGURE_COUNT + 3] = {
        {.path = "process.cpu_percent"}, {.path = "process.rss_kb"},
        {.path = "process.vm_size_kb"},  {.path = "process"},
        {.path = "available"},           {.path = "reason"}};
    bp_diff_value values[BP_DIFF_FIGURE_COUNT];
    bugpack_status status =
        pick(text, path, BP_DIFF_METRICS, picks, BP_DIFF_FIGURE_COUNT + 3, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    if (bp_json_token_is(&picks[BP_DIFF_FIGURE_COUNT + 1].token, "false")) {
        take_reason(&picks[BP_DIFF_FIGURE_COUNT + 2].token, presence);
        return BUGPACK_OK;
    }
    if (!bp_json_token_is(&picks[BP_DIFF_FIGURE_COUNT].token, "{")) {
        return refuse(path, BP_DIFF_METRICS, "process", error);
    }
    for (size_t i = 0; i < BP_DIFF_FIGURE_COUNT; i++) {
        const bp_json_token *token = &picks[i].token;
        values[i] = (bp_diff_value){.is_known = token->byte_count > 0};
        if (values[i].is_known &&
            !bp_json_token_fixed(token, bp_diff_figures[i].decimals, &values[i].value)) {
            return refuse(path, BP_DIFF_METRICS, bp_diff_figures[i].key, error);
        }
    }
    memcpy(ret_values, values, sizeof values);
    return BUGPACK_OK;
}

static void take_allocator(const bp_json_token *token, bugpack_heap_state *state) {
    bp_buffer name;
    bp_buffer_init(&name, text_max_bytes);
    (void)bp_json_token_text(token, &name);
    size_t kept = name.size < sizeof state->allocator ? name.size : sizeof state->allocator - 1;
    for (size_t i = 0; i < kept; i++) {
        state->allocator[i] = name.data[i] >= ' ' && name.data[i] <= '~' ? name.data[i] : '?';
    }
    state->allocator[kept] = '\0';
    bp_buffer_release(&name);
}

bugpack_status bp_diff_read_heap(const bp_buffer *text, const char *path,
                                 bugpack_heap_state *ret_state, bugpack_error *error) {
    bugpack_heap_state state = BUGPACK_HEAP_STATE_INIT;
    uint64_t *const numbers[] = {&state.allocated_bytes, &state.active_bytes, &state.resident_bytes,
                                 &state.mapped_bytes, &state.narenas};
    bp_json_pick picks[] = {{.path = "allocated_bytes"}, {.path = "active_bytes"},
                            {.path = "resident_bytes"},  {.path = "mapped_bytes"},
                            {.path = "narenas"},         {.path = "allocator"}};
    const size_t number_count = sizeof numbers / sizeof numbers[0];
    bugpack_status status = pick(text, path, BP_DIFF_HEAP, picks, number_count + 1, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    for (size_t i = 0; i < number_count; i++) {
        if (picks[i].token.byte_count > 0 && !bp_json_token_uint(&picks[i].token, numbers[i])) {
            return refuse(path, BP_DIFF_HEAP, picks[i].path, error);
        }
    }
    take_allocator(&picks[number_count].token, &state);
    *ret_state = state;
    return BUGPACK_OK;
}
