#include "session/pedantic.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/status.h"
#include "session/session.h"

/* What a host says at one sight. */
struct occurrence {
    bugpack_provider *state; /* NULL: nothing */
    void *context;
    const void *bytes; /* of a message without a handler; NULL: none */
    size_t byte_count;
};

static bugpack_status check_dir(const bugpack_options *options, bugpack_error *error) {
    int dir_fd = -1;
    bugpack_status status =
        bp_file_open_directory(options->pedantic_dir, options->create_report_dir, &dir_fd, error);
    if (status == BUGPACK_OK) {
        (void)close(dir_fd);
    }
    return status;
}

bugpack_status bp_pedantic_open(bugpack *session, bugpack_error *error) {
    const bugpack_options *options = &session->options;
    bugpack_status status = options->pedantic ? check_dir(options, error) : BUGPACK_OK;
    if (status != BUGPACK_OK) {
        return status;
    }
    bp_pedantic *pedantic = calloc(1, sizeof *pedantic);
    if (pedantic == NULL || pthread_mutex_init(&pedantic->mutex, NULL) != 0) {
        free(pedantic);
        return bp_fail_memory(error, "open a session");
    }
    const bp_gaps_options gaps_options = {.cap = options->pedantic_cap,
                                          .channel_cap = options->pedantic_channel_cap,
                                          .ignore = options->pedantic_ignore,
                                          .ignore_count = options->pedantic_ignore_count};
    atomic_init(&pedantic->is_enabled, options->pedantic);
    atomic_init(&pedantic->is_draining, false);
    status = bp_condition_init(&pedantic->settled, error);
    if (status == BUGPACK_OK) {
        status = bp_gaps_new(&gaps_options, &pedantic->gaps, error);
        if (status != BUGPACK_OK) {
            (void)pthread_cond_destroy(&pedantic->settled);
        }
    }
    if (status != BUGPACK_OK) {
        (void)pthread_mutex_destroy(&pedantic->mutex);
        free(pedantic);
        return status;
    }
    session->pedantic = pedantic;
    return BUGPACK_OK;
}

void bp_pedantic_close(bugpack *session) {
    if (session->pedantic != NULL) {
        (void)bp_pedantic_write_summary(session, NULL); /* nobody is left to be told */
    }
}

void bp_pedantic_free(bugpack *session) {
    bp_pedantic *pedantic = session->pedantic;
    if (pedantic == NULL) {
        return;
    }
    bp_gaps_free(pedantic->gaps);
    (void)pthread_cond_destroy(&pedantic->settled);
    (void)pthread_mutex_destroy(&pedantic->mutex);
    free(pedantic);
    session->pedantic = NULL;
}

/* "a message of 123 bytes without a handler; the first 64: 0a 0b …" */
static bool describe(const struct occurrence *occurrence, char **ret_description) {
    bp_buffer text;
    size_t shown = occurrence->byte_count < BUGPACK_GAP_DUMP_MAX_BYTES ? occurrence->byte_count
                                                                       : BUGPACK_GAP_DUMP_MAX_BYTES;
    const unsigned char *bytes = occurrence->bytes;
    bp_buffer_init(&text, 1024);
    (void)bp_buffer_printf(&text, "a message of %zu bytes without a handler",
                           occurrence->byte_count);
    if (shown < occurrence->byte_count) {
        (void)bp_buffer_printf(&text, "; the first %zu", shown);
    }
    if (shown > 0) {
        (void)bp_buffer_append_text(&text, ":");
    }
    for (size_t i = 0; i < shown; i++) {
        (void)bp_buffer_printf(&text, " %02x", bytes[i]);
    }
    bool is_copied =
        text.status == BUGPACK_OK && bp_order_copy_text(bp_buffer_text(&text), ret_description);
    bp_buffer_release(&text);
    return is_copied;
}

/* NULL without memory. */
static bp_order *make_order(bugpack *session, bp_gap *gap, const struct occurrence *occurrence) {
    bp_order *order = bp_order_new(session, BP_REPORT_PEDANTIC);
    if (order == NULL) {
        return NULL;
    }
    size_t channel_bytes = bp_gap_channel_bytes(gap);
    bool is_made = bp_order_copy_text(bp_gap_text(gap), &order->gap_key) &&
                   bp_order_copy_text(bp_gap_text(gap), &order->name_detail);
    if (is_made && channel_bytes > 0) {
        order->channel = strndup(bp_gap_text(gap), channel_bytes);
        order->only_channel = order->channel;
        is_made = order->channel != NULL;
    }
    if (is_made && occurrence->bytes != NULL) {
        is_made = describe(occurrence, &order->description);
    }
    order->report_dir = session->options.pedantic_dir;
    order->settled_context = gap;
    if (is_made && occurrence->state != NULL) {
        is_made = bp_pedantic_ask_state(session, order, occurrence->state, occurrence->context) ==
                  BUGPACK_OK;
    }
    if (!is_made) {
        bp_order_free(order);
        return NULL;
    }
    return order;
}

static void report(bugpack *session, bp_gap *gap, const struct occurrence *occurrence) {
    bugpack_log(session, BUGPACK_LEVEL_INFO, "bugpack", "gap %s: a report is taken",
                bp_gap_text(gap));
    bp_order *order = make_order(session, gap, occurrence);
    if (order == NULL) {
        bp_gaps_settle(session->pedantic->gaps, gap, false);
        return;
    }
    bp_pedantic_queue(session, order);
}

/* At a cap nothing is silent: the log and the user are told, once. */
static void tell(bugpack *session, const char *what, const char *channel, size_t channel_bytes,
                 uint32_t cap) {
    bugpack_log(session, BUGPACK_LEVEL_WARN, "bugpack",
                "%s%.*s has its %u reports of gaps: further ones are only counted", what,
                (int)channel_bytes, channel, (unsigned)cap);
    bugpack_notify(session, BUGPACK_LEVEL_WARN, "bugpack",
                   "%s%.*s has its %u reports of gaps: further ones are only counted", what,
                   (int)channel_bytes, channel, (unsigned)cap);
}

/* What a sight leads to beyond its count. Through the gate: a close may be on its way. */
static void act(bugpack *session, bp_gap_occurrence seen, bp_gap *gap,
                const struct occurrence *occurrence) {
    bp_guard_entry entry;
    bool is_inside = bp_session_enter(session, &entry) == BUGPACK_OK;
    if (!is_inside) {
        if (seen == BP_GAP_REPORT) {
            bp_gaps_settle(session->pedantic->gaps, gap, false);
        }
        return;
    }
    if (seen == BP_GAP_REPORT) {
        report(session, gap, occurrence);
    } else if (seen == BP_GAP_CAP) {
        tell(session, "the session", "", 0, session->options.pedantic_cap);
    } else {
        tell(session, "channel ", bp_gap_text(gap), bp_gap_channel_bytes(gap),
             session->options.pedantic_channel_cap);
    }
    bp_session_leave(&entry);
}

/* A sight that is only counted takes nothing that others take: the table stays as long as the
 * handle does, also behind a close. */
static void see(bugpack *session, const bp_gap_key *key, const struct occurrence *occurrence) {
    bp_pedantic *pedantic = session->pedantic;
    bp_gap *gap = NULL;
    bool is_on = atomic_load_explicit(&pedantic->is_enabled, memory_order_relaxed) &&
                 !atomic_load_explicit(&pedantic->is_draining, memory_order_relaxed);
    bp_gap_occurrence seen = bp_gaps_see(pedantic->gaps, key, is_on, &gap);
    if (seen != BP_GAP_COUNTED) {
        act(session, seen, gap, occurrence);
    }
}

void bugpack_gap(bugpack *session, const char *key) {
    bugpack_gap_with_state(session, key, NULL, NULL);
}

void bugpack_gap_with_state(bugpack *session, const char *key, bugpack_provider *state,
                            void *context) {
    if (key == NULL || bp_session_check(session) != BUGPACK_OK) {
        return;
    }
    bp_gap_key read;
    const struct occurrence occurrence = {.state = state, .context = context};
    bp_gap_key_read(&read, key);
    see(session, &read, &occurrence);
}

void bugpack_gap_unknown(bugpack *session, const char *channel, uint64_t opcode, const void *bytes,
                         size_t byte_count) {
    if (channel == NULL || bp_session_check(session) != BUGPACK_OK) {
        return;
    }
    bp_gap_key made;
    const struct occurrence occurrence = {.bytes = bytes, .byte_count = byte_count};
    bp_gap_key_make_unknown(&made, channel, opcode);
    see(session, &made, &occurrence);
}

bool bugpack_pedantic_enable(bugpack *session, bool is_enabled) {
    return bp_session_check(session) == BUGPACK_OK &&
           atomic_exchange(&session->pedantic->is_enabled, is_enabled);
}

bugpack_status bugpack_pedantic_get(bugpack *session, bugpack_pedantic_state *ret_state) {
    bugpack_pedantic_state state = BUGPACK_PEDANTIC_STATE_INIT;
    if (ret_state == NULL || ret_state->struct_size < sizeof state) {
        return BUGPACK_ERR_INVALID;
    }
    bp_guard_entry entry;
    bugpack_status status = bp_session_enter(session, &entry);
    if (status != BUGPACK_OK) {
        return status;
    }
    bp_gaps_totals totals;
    bp_gaps_count(session->pedantic->gaps, &totals);
    state.struct_size = ret_state->struct_size;
    state.is_enabled = atomic_load(&session->pedantic->is_enabled);
    state.cap = session->options.pedantic_cap;
    state.written_count = totals.written_count;
    state.pending_count = totals.pending_count;
    state.distinct_count = totals.distinct_count;
    state.occurrence_count = totals.occurrence_count;
    memcpy(ret_state, &state, sizeof state);
    bp_session_leave(&entry);
    return BUGPACK_OK;
}
