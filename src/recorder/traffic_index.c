#include "recorder/traffic_index.h"

#include <string.h>

#include "base/clock.h"
#include "json/json.h"

static void print_cuts(unsigned cuts, bp_buffer *out) {
    static const char *const names[BP_TRAFFIC_CUT_COUNT] = {
        [BP_TRAFFIC_CUT_SNAP] = "snap_length", [BP_TRAFFIC_CUT_FILTER] = "filter",
        [BP_TRAFFIC_CUT_LIMIT] = "size_limit", [BP_TRAFFIC_CUT_ABSENT] = "no_bytes",
        [BP_TRAFFIC_CUT_PIN] = "pin",
    };
    const char *before = ",\"cut_by\":[";
    bool has_any = false;
    for (unsigned cut = 0; cut < BP_TRAFFIC_CUT_COUNT; cut++) {
        if ((cuts >> cut & 1) != 0) {
            (void)bp_buffer_printf(out, "%s\"%s\"", before, names[cut]);
            before = ",";
            has_any = true;
        }
    }
    if (has_any) {
        (void)bp_buffer_append_char(out, ']');
    }
}

void bp_traffic_index_print(const bp_traffic_lane *at, uint64_t frame, bp_buffer *out) {
    const bp_traffic_record *message = &at->current;
    const char *channel = at->snapshot->identity.name;
    char time[BP_CLOCK_ISO_BYTES];
    bp_clock_format_iso(at->current_wall_ns, time);
    (void)bp_buffer_printf(
        out, "{\"frame\":%llu,\"time\":\"%s\",\"monotonic_ns\":%llu,\"channel\":",
        (unsigned long long)frame, time, (unsigned long long)message->monotonic_ns);
    (void)bp_json_append_string(out, channel, strnlen(channel, sizeof at->snapshot->identity.name));
    (void)bp_buffer_printf(out, ",\"seq\":%llu,\"direction\":\"%s\",\"type\":%llu",
                           (unsigned long long)message->sequence,
                           message->direction == BUGPACK_SENT ? "sent" : "received",
                           (unsigned long long)message->type);
    if (message->name_bytes > 0) {
        (void)bp_buffer_append_text(out, ",\"type_name\":");
        (void)bp_json_append_string(out, message->name, message->name_bytes);
    }
    (void)bp_buffer_printf(out, ",\"bytes\":%llu,\"kept_bytes\":%llu",
                           (unsigned long long)message->original_bytes,
                           (unsigned long long)message->byte_count);
    print_cuts(message->cuts, out);
    (void)bp_buffer_append_text(out, at->is_pinned ? ",\"pinned\":true}\n" : "}\n");
}
