#include "base/status.h"
#include "base/struct_size.h"
#include "recorder/recorder.h"
#include "session/session.h"

static bugpack_status read_channel_options(const bugpack_channel_options *given,
                                           bugpack_channel_options *options, bugpack_error *error) {
    static const bp_field fields[] = {
        BP_FIELD(bugpack_channel_options, weight, 4, BP_FIELD_NEVER_OFF, BP_FIELD_MAX32),
        BP_FIELD(bugpack_channel_options, pin_bytes, 4096, 0, 1 << 20),
        BP_FIELD(bugpack_channel_options, snap_bytes, 0, 0, BP_FIELD_MAX32)};
    bugpack_status status =
        given == NULL ? BUGPACK_OK
                      : bp_struct_read(&bp_of_bugpack_channel_options, options, given, error);
    if (status == BUGPACK_OK && (unsigned)options->payload > BUGPACK_PAYLOAD_EXACT) {
        status = bp_fail(error, BUGPACK_ERR_INVALID, "payload: %u is no bugpack_payload",
                         (unsigned)options->payload);
    }
    return status != BUGPACK_OK
               ? status
               : bp_struct_fill(options, fields, sizeof fields / sizeof fields[0], error);
}

static bugpack_status open_channel(bugpack_session *session, const char *name,
                                   const bugpack_channel_options *options,
                                   bugpack_channel **ret_channel, bugpack_error *error) {
    bugpack_channel_options checked = BUGPACK_CHANNEL_OPTIONS_INIT;
    bugpack_status status = bp_check_text("name", name, 1, BUGPACK_CHANNEL_MAX_BYTES, error);
    if (status == BUGPACK_OK) {
        status = read_channel_options(options, &checked, error);
    }
    if (status != BUGPACK_OK) {
        return status;
    }
    bp_recorder *recorder = session->context.recorder;
    char loss[256] = "";
    status = bp_channels_open(&recorder->channels, name, &checked, ret_channel, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    bp_channels_note_loss(&recorder->channels, (*ret_channel)->traffic, loss, sizeof loss);
    if (loss[0] != '\0') {
        bp_note_diagnose(recorder, BUGPACK_LEVEL_WARN,
                         "the rings of channel \"%s\" are in memory and do not survive a crash: %s",
                         name, loss);
    }
    return BUGPACK_OK;
}

bugpack_status bugpack_channel_open(bugpack_session *session, const char *name,
                                    const bugpack_channel_options *options,
                                    bugpack_channel **ret_channel, bugpack_error *error) {
    bp_call call;
    if (bp_session_enter(&call, session, "open a channel", error)) {
        bp_thread_hold hold;
        bp_thread_hold_begin(&hold); /* it writes a ring's file */
        call.status = open_channel(session, name, options, ret_channel, error);
        bp_thread_hold_end(&hold);
    }
    return bp_session_leave(&call);
}

void bugpack_channel_close(bugpack_channel *channel) {
    bp_call call;
    if (bp_session_enter(&call, channel == NULL ? NULL : channel->session, NULL, NULL)) {
        bugpack_session *session = channel->session;
        bp_thread_hold hold;
        bp_thread_hold_begin(&hold); /* it removes files */
        bp_channels_close(&session->context.recorder->channels, channel);
        bp_thread_hold_end(&hold);
    }
    (void)bp_session_leave(&call);
}

void bugpack_traffic(bugpack_channel *channel, bugpack_direction direction, uint32_t type,
                     const char *type_name, const void *bytes, size_t byte_count) {
    if (channel != NULL && bp_session_check(channel->session) == BUGPACK_OK &&
        bp_channel_enter(channel)) {
        bp_traffic_append(channel->traffic, direction, type, type_name, bytes, byte_count);
        bp_channel_leave(channel);
    }
}
