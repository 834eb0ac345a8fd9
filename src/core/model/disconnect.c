#include "model/disconnect.h"

#include "json/json.h"
#include "model/fields.h"

static void add_direction(bp_json *json, const char *key, const bp_channel_activity *channel,
                          unsigned direction, bp_instant triggered) {
    uint64_t last_ns = channel->last_ns[direction];
    bp_json_object_begin(json, key);
    bp_json_add_uint(json, "messages", channel->message_count[direction]);
    bp_json_add_uint(json, "bytes", channel->byte_count[direction]);
    if (last_ns != 0) {
        /* A message may have come after the trigger, before its channel was read. */
        uint64_t before_ns =
            last_ns < triggered.monotonic_ns ? triggered.monotonic_ns - last_ns : 0;
        bp_model_add_time(json, "last", triggered.wall_ns - before_ns);
        bp_model_add_ms(json, "idle_ms", before_ns);
    }
    bp_json_object_end(json);
}

static void add_loss(bp_json *json, const bp_loss *loss) {
    bp_json_add_text(json, "channel", loss->channel);
    bp_model_add_known_text(json, "error", loss->error_text);
    bp_model_add_known_text(json, "error_kind", loss->error_kind);
    bp_json_add_bool(json, "keepalive_fired", loss->keepalive_fired);
    bp_model_add_time(json, "time", loss->at.wall_ns);
}

bugpack_status bp_disconnect_print(const bp_disconnect *disconnect, bp_buffer *out,
                                   bugpack_error *error) {
    bp_json json;
    bp_json_begin(&json, out);
    add_loss(&json, &disconnect->first);
    bp_json_add_uint(&json, "cooldown_ms", disconnect->cooldown_ms);
    bp_json_add_uint(&json, "suppressed_before", disconnect->suppressed_count);
    if (disconnect->other_count > 0) {
        bp_json_array_begin(&json, "others");
        for (size_t i = 0; i < disconnect->other_count; i++) {
            bp_json_object_begin(&json, NULL);
            add_loss(&json, &disconnect->others[i]);
            bp_json_object_end(&json);
        }
        bp_json_array_end(&json);
    }
    bp_json_array_begin(&json, "channels");
    for (size_t i = 0; i < disconnect->channel_count; i++) {
        const bp_channel_activity *channel = &disconnect->channels[i];
        bp_json_object_begin(&json, NULL);
        bp_model_add_name(&json, "name", channel->name, sizeof channel->name);
        bp_model_add_flag(&json, "closed", channel->is_closed);
        add_direction(&json, "sent", channel, 0, disconnect->first.at);
        add_direction(&json, "received", channel, 1, disconnect->first.at);
        bp_json_object_end(&json);
    }
    bp_json_array_end(&json);
    return bp_json_finish(&json, error);
}

bugpack_status bp_hang_print(const bp_hang *hang, bp_buffer *out, bugpack_error *error) {
    uint64_t since_beat_ns = hang->seen.monotonic_ns > hang->last_beat_ns
                                 ? hang->seen.monotonic_ns - hang->last_beat_ns
                                 : 0;
    bp_json json;
    bp_json_begin(&json, out);
    bp_model_add_name(&json, "name", hang->watchdog, sizeof hang->watchdog);
    bp_json_object_begin(&json, "thread");
    bp_json_add_uint(&json, "tid", hang->tid);
    bp_model_add_known_text(&json, "name", hang->thread);
    bp_json_object_end(&json);
    bp_model_add_ms(&json, "limit_ms", hang->limit_ns);
    bp_model_add_time(&json, "last_beat", hang->seen.wall_ns - since_beat_ns);
    bp_model_add_ms(&json, "since_last_beat_ms", since_beat_ns);
    bp_model_add_ms(&json, "counted_ms", hang->silent_ns);
    bp_model_add_time(&json, "time", hang->seen.wall_ns);
    bp_json_add_uint(&json, "hang", hang->number);
    bp_json_add_uint(&json, "suppressed_before", hang->suppressed_count);
    return bp_json_finish(&json, error);
}
