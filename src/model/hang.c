#include "model/hang.h"

#include "model/fields.h"
#include "json/json.h"

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
