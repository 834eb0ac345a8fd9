/*
 * The members of the public structs that hosts pass, in the order of the headers, and their
 * initialisers. tests/lint/rules/structs.py compares the lists with the headers.
 */
#include "base/struct_size.h"

#include <bugpack/disconnect.h>
#include <bugpack/events.h>
#include <bugpack/gap.h>
#include <bugpack/heap_state.h>
#include <bugpack/recover.h>
#include <bugpack/report.h>
#include <bugpack/session.h>
#include <bugpack/traffic.h>

#define M(field)                                                                                   \
    { offsetof(TYPE, field), sizeof(((TYPE *)NULL)->field) }

#define TYPE bugpack_disconnect_cause
static const bp_member bugpack_disconnect_cause_members[] = {M(keepalive_fired), M(channel),
                                                             M(error_text), M(error_kind)};
#undef TYPE

#define TYPE bugpack_event
static const bp_member bugpack_event_members[] = {M(kind),    M(ticket),        M(report_type),
                                                  M(percent), M(missing_count), M(error),
                                                  M(path),    M(watchdog),      M(duration_ms)};
#undef TYPE

#define TYPE bugpack_pedantic_state
static const bp_member bugpack_pedantic_state_members[] = {M(is_enabled),     M(cap),
                                                           M(written_count),  M(pending_count),
                                                           M(distinct_count), M(occurrence_count)};
#undef TYPE

#define TYPE bugpack_heap_state
static const bp_member bugpack_heap_state_members[] = {M(allocator),    M(allocated_bytes),
                                                       M(active_bytes), M(resident_bytes),
                                                       M(mapped_bytes), M(narenas)};
#undef TYPE

#define TYPE bugpack_recover_options
static const bp_member bugpack_recover_options_members[] = {
    M(recorder_dir), M(report_dir),     M(app_name), M(on_report),      M(on_running),
    M(context),      M(min_free_bytes), M(on_note),  M(before_publish), M(before_publish_context),
    M(system_flags)};
#undef TYPE

#define TYPE bugpack_report_request
static const bp_member bugpack_report_request_members[] = {
    M(description), M(channel),       M(output_path),        M(timeout_ms),        M(is_crash),
    M(screenshot),  M(region),        M(retained),           M(ret_ticket),        M(flags),
    M(target_exit), M(target_cpu_ns), M(screenshot_context), M(screenshot_release)};
#undef TYPE

#define TYPE bugpack_report_result
static const bp_member bugpack_report_result_members[] = {
    M(status),     M(error), M(missing_count), M(zip_bytes),
    M(elapsed_ns), M(path),  M(missing),       M(not_searched)};
#undef TYPE

#define TYPE bugpack_options
static const bp_member bugpack_options_members[] = {M(app_name),
                                                    M(app_version),
                                                    M(app_build_id),
                                                    M(report_dir),
                                                    M(create_report_dir),
                                                    M(target_pid),
                                                    M(sample_window_ms),
                                                    M(provider_timeout_ms),
                                                    M(log_ring_bytes),
                                                    M(log_level),
                                                    M(artefact_limit_bytes),
                                                    M(traffic_budget_bytes),
                                                    M(history_interval_ms),
                                                    M(recorder_dir),
                                                    M(recorder_in_memory),
                                                    M(target_with_descendants),
                                                    M(pedantic),
                                                    M(pedantic_dir),
                                                    M(pedantic_cap),
                                                    M(pedantic_channel_cap),
                                                    M(pedantic_ignore),
                                                    M(pedantic_ignore_count),
                                                    M(auto_snapshot_interval_ms),
                                                    M(auto_snapshot_dir),
                                                    M(auto_snapshot_max_count),
                                                    M(auto_snapshot_max_bytes),
                                                    M(disconnect_cooldown_ms),
                                                    M(crash_refresh_interval_ms),
                                                    M(report_dir_max_count),
                                                    M(disconnect_cap),
                                                    M(report_dir_max_bytes),
                                                    M(min_free_bytes),
                                                    M(when_busy),
                                                    M(stacks),
                                                    M(on_event),
                                                    M(on_event_context),
                                                    M(calibrator_path),
                                                    M(without_process),
                                                    M(on_diagnostic),
                                                    M(on_diagnostic_context),
                                                    M(without_redaction),
                                                    M(redaction_rules),
                                                    M(before_publish),
                                                    M(before_publish_context),
                                                    M(redaction_flags),
                                                    M(without_entries),
                                                    M(system_flags),
                                                    M(answer_flags),
                                                    M(hang_cooldown_ms),
                                                    M(hang_cap),
                                                    M(condition_cooldown_ms),
                                                    M(condition_cap),
                                                    M(profile_hz)};
#undef TYPE

#define TYPE bugpack_recorder_location
static const bp_member bugpack_recorder_location_members[] = {M(survives), M(path), M(reason)};
#undef TYPE

#define TYPE bugpack_channel_options
static const bp_member bugpack_channel_options_members[] = {
    M(weight),    M(host_is_server), M(is_ipv6), M(host_port),      M(peer_port),
    M(pin_bytes), M(snap_bytes),     M(filter),  M(filter_context), M(flags)};
#undef TYPE

#define DESCRIBE(type) const bp_struct bp_of_##type = BP_STRUCT(type, type##_members);
#define DEFINE_INIT(type)                                                                          \
    void type##_init(type *fresh, size_t struct_size) {                                            \
        bp_struct_init(fresh, struct_size);                                                        \
    }
BP_PUBLIC_STRUCTS(DESCRIBE)
DEFINE_INIT(bugpack_disconnect_cause)
DEFINE_INIT(bugpack_event)
DEFINE_INIT(bugpack_pedantic_state)
DEFINE_INIT(bugpack_recover_options)
DEFINE_INIT(bugpack_report_request)
DEFINE_INIT(bugpack_report_result)
DEFINE_INIT(bugpack_options)
DEFINE_INIT(bugpack_recorder_location)
DEFINE_INIT(bugpack_channel_options)

void bugpack_heap_state_init(bugpack_heap_state *fresh, size_t struct_size) {
    const bugpack_heap_state unknown = BUGPACK_HEAP_STATE_INIT;
    if (bp_struct_init(fresh, struct_size)) {
        bp_struct_write(&bp_of_bugpack_heap_state, fresh, &unknown);
    }
}
