/*
 * Notifications whose rings are kept: a report that is filed later holds the moment that they
 * fired.
 */
#include <unistd.h>

#include "base/clock.h"
#include "session/session.h"
#include "support/descriptors.h"
#include "support/report_reader.h"
#include "unit/auto_session.h"
#include "unit/unit.h"

/* Keeps, also where the freezer has just enough to do. */
static uint64_t keep(bugpack *session, const char *text) {
    uint64_t kept = 0;
    for (unsigned i = 0; i < 30000 && kept == 0; i++) {
        kept = bugpack_notify_retain_text(session, BUGPACK_LEVEL_WARN, "server", text);
        if (kept == 0) {
            (void)usleep(1000);
        }
    }
    cr_assert(ne(u64, kept, 0));
    return kept;
}

static bugpack_status report_kept(bugpack *session, uint64_t kept, const char *output_path,
                                  bugpack_report_result *ret_result) {
    bugpack_report_request request = BUGPACK_REPORT_REQUEST_INIT;
    request.retained = kept;
    request.output_path = output_path;
    request.description = "filed later";
    *ret_result = (bugpack_report_result)BUGPACK_REPORT_RESULT_INIT;
    return bugpack_report(session, &request, ret_result);
}

Test(kept, rings_give_a_report_of_the_moment_of_the_notification_once) {
    temp_dir dir;
    cr_assert(temp_dir_make(&dir));
    bugpack_options options = auto_options(&dir);
    bugpack *session = open_session(&options);
    bugpack_channel *display = NULL;
    cr_assert(zero(int, bugpack_channel_open(session, "display", NULL, &display, NULL)));
    bugpack_log(session, BUGPACK_LEVEL_INFO, NULL, "before it");
    bugpack_traffic(display, BUGPACK_SENT, 1, NULL, "wire before", 11);
    uint64_t kept = keep(session, "stream rejected");
    bugpack_log(session, BUGPACK_LEVEL_INFO, NULL, "after it");
    bugpack_traffic(display, BUGPACK_SENT, 1, NULL, "wire after", 10);
    bugpack_report_result result;
    cr_assert(zero(int, report_kept(session, kept, NULL, &result)), "%s", result.error.message);
    cr_assert(ne(ptr, strstr(result.path, "/viewer-notification-20"), NULL), "%s", result.path);
    cr_assert(
        report_entry_contains(result.path, "metadata.json", "\"report_type\": \"notification\""));
    cr_assert(report_entry_contains(result.path, "metadata.json", "filed later"));
    cr_assert(report_entry_contains(result.path, "logs.jsonl", "before it"));
    cr_assert(not(report_entry_contains(result.path, "logs.jsonl", "after it")));
    cr_assert(report_entry_contains(result.path, "notifications.json", "stream rejected"));
    size_t pcap_bytes = 0;
    char *pcap = report_read(result.path, "traffic.pcap", &pcap_bytes);
    cr_assert(ne(ptr, pcap, NULL));
    cr_assert(ne(ptr, memmem(pcap, pcap_bytes, "wire before", 11), NULL));
    cr_assert(eq(ptr, memmem(pcap, pcap_bytes, "wire after", 10), NULL));
    free(pcap);
    cr_assert(eq(int, report_kept(session, kept, NULL, &result), BUGPACK_ERR_NO_TICKET));
    cr_assert(eq(int, report_kept(session, kept + 1, NULL, &result), BUGPACK_ERR_NO_TICKET));
    bugpack_close(session);
    cr_assert(eq(sz, temp_dir_count(&dir), 1));
    temp_dir_remove(&dir);
}

Test(kept, rings_are_given_back_by_a_report_that_fails) {
    temp_dir dir;
    cr_assert(temp_dir_make(&dir));
    bugpack_options options = auto_options(&dir);
    bugpack *session = open_session(&options);
    bugpack_channel *display = NULL;
    cr_assert(zero(int, bugpack_channel_open(session, "display", NULL, &display, NULL)));
    bugpack_traffic(display, BUGPACK_SENT, 1, NULL, "wire before", 11);
    bugpack_log(session, BUGPACK_LEVEL_INFO, NULL, "before it");
    uint64_t kept = keep(session, "stream rejected");
    bugpack_report_result result;
    char path[300];
    (void)snprintf(path, sizeof path, "%s/nowhere/x.zip", dir.path);
    for (unsigned i = 0; i < 2; i++) {
        cr_assert(eq(int, report_kept(session, kept, path, &result), BUGPACK_ERR_IO));
    }
    /* One that fails at its end, after all was printed. */
    bugpack_report_request request = BUGPACK_REPORT_REQUEST_INIT;
    request.retained = kept;
    request.timeout_ms = 1;
    auto_gate gate = {.is_inside = false};
    cr_assert(zero(int, bugpack_provide_text(session, "gate.txt", auto_wait_at_gate, &gate, NULL)));
    cr_assert(eq(int, bugpack_report(session, &request, NULL), BUGPACK_ERR_TIMEOUT));
    atomic_store(&gate.may_go, true);
    cr_assert(zero(int, report_kept(session, kept, NULL, &result)), "%s", result.error.message);
    cr_assert(report_entry_contains(result.path, "logs.jsonl", "before it"));
    size_t pcap_bytes = 0;
    char *pcap = report_read(result.path, "traffic.pcap", &pcap_bytes);
    cr_assert(ne(ptr, memmem(pcap, pcap_bytes, "wire before", 11), NULL));
    free(pcap);
    bugpack_close(session);
    temp_dir_remove(&dir);
}

Test(kept, rings_go_after_their_time_with_their_files) {
    temp_dir dir;
    cr_assert(temp_dir_make(&dir));
    bugpack_options options = auto_options(&dir);
    bugpack *session = open_session(&options);
    bugpack_report_result result;
    unsigned before = count_descriptors();
    uint64_t kept[BUGPACK_RETAINED_MAX];
    for (unsigned i = 0; i < BUGPACK_RETAINED_MAX; i++) {
        kept[i] = keep(session, "stream rejected");
    }
    cr_assert(zero(int, auto_report(session, &result))); /* the freezer is done with them */
    cr_assert(gt(uint, count_descriptors(), before));
    uint64_t now_ns = bp_clock_monotonic_ns();
    cr_assert(lt(
        u64,
        bp_trigger_retained.tick(bp_triggers_get(session->triggers, &bp_trigger_retained), now_ns),
        UINT64_MAX));
    cr_assert(le(
        u64,
        bp_trigger_retained.tick(bp_triggers_get(session->triggers, &bp_trigger_retained), now_ns),
        now_ns + BUGPACK_RETAINED_SECONDS * BP_NS_PER_SEC));
    cr_assert(eq(u64,
                 bp_trigger_retained.tick(bp_triggers_get(session->triggers, &bp_trigger_retained),
                                          now_ns + BUGPACK_RETAINED_SECONDS * BP_NS_PER_SEC),
                 UINT64_MAX));
    /* The worker closes those of its report after it has told of its end. */
    for (unsigned i = 0; i < 30000 && count_descriptors() != before; i++) {
        (void)usleep(1000);
    }
    cr_assert(eq(uint, count_descriptors(), before));
    cr_assert(eq(int, report_kept(session, kept[4], NULL, &result), BUGPACK_ERR_NO_TICKET));
    bugpack_close(session);
    temp_dir_remove(&dir);
}

Test(kept, rings_of_the_oldest_make_room_for_newer_ones) {
    temp_dir dir;
    cr_assert(temp_dir_make(&dir));
    bugpack_options options = auto_options(&dir);
    bugpack *session = open_session(&options);
    uint64_t kept[BUGPACK_RETAINED_MAX + 1];
    for (unsigned i = 0; i <= BUGPACK_RETAINED_MAX; i++) {
        kept[i] = keep(session, "stream rejected");
    }
    bugpack_report_result result;
    cr_assert(eq(int, report_kept(session, kept[0], NULL, &result), BUGPACK_ERR_NO_TICKET));
    for (unsigned i = 1; i <= BUGPACK_RETAINED_MAX; i++) {
        cr_assert(zero(int, report_kept(session, kept[i], NULL, &result)), "%s",
                  result.error.message);
    }
    bugpack_close(session);
    cr_assert(eq(sz, temp_dir_count(&dir), BUGPACK_RETAINED_MAX));
    temp_dir_remove(&dir);
}

Test(kept, rings_are_lent_to_one_report_and_come_back_from_one_that_is_refused) {
    temp_dir dir;
    auto_gate gate = {.is_inside = false};
    cr_assert(temp_dir_make(&dir));
    bugpack_options options = auto_options(&dir);
    bugpack *session = open_session(&options);
    uint64_t lent = keep(session, "stream rejected");
    uint64_t refused = keep(session, "stream rejected again");
    cr_assert(zero(int, bugpack_provide_text(session, "gate.txt", auto_wait_at_gate, &gate, NULL)));
    bugpack_report_request request = BUGPACK_REPORT_REQUEST_INIT;
    request.retained = lent;
    cr_assert(zero(int, bugpack_report_async(session, &request, NULL, NULL)));
    auto_wait_for_worker(&gate);
    cr_assert(eq(int, bugpack_report_async(session, &request, NULL, NULL), BUGPACK_ERR_NO_TICKET));
    for (unsigned i = 0; i < BUGPACK_REPORT_QUEUE_MAX; i++) {
        cr_assert(zero(int, bugpack_report_async(session, NULL, NULL, NULL)));
    }
    request.retained = refused;
    cr_assert(eq(int, bugpack_report_async(session, &request, NULL, NULL), BUGPACK_ERR_BUSY));
    atomic_store(&gate.may_go, true);
    bugpack_report_result result;
    do {
        (void)usleep(1000);
    } while (report_kept(session, refused, NULL, &result) == BUGPACK_ERR_BUSY);
    cr_assert(zero(int, result.status), "%s", result.error.message);
    bugpack_close(session);
    cr_assert(eq(sz, temp_dir_count(&dir), BUGPACK_REPORT_QUEUE_MAX + 2));
    temp_dir_remove(&dir);
}

Test(kept, rings_that_cannot_be_copied_are_told_in_the_log) {
    temp_dir dir;
    char parked[300];
    cr_assert(temp_dir_make(&dir));
    bugpack_options options = auto_options(&dir);
    bugpack *session = open_session(&options);
    (void)snprintf(parked, sizeof parked, "%s.parked", dir.path);
    cr_assert(zero(int, rename(dir.path, parked)));
    uint64_t kept = keep(session, "stream rejected");
    bugpack_report_result result;
    cr_assert(eq(int, auto_report(session, &result), BUGPACK_ERR_IO));
    cr_assert(zero(int, rename(parked, dir.path)));
    cr_assert(eq(int, report_kept(session, kept, NULL, &result), BUGPACK_ERR_NO_TICKET));
    cr_assert(zero(int, auto_report(session, &result)), "%s", result.error.message);
    cr_assert(report_entry_contains(result.path, "logs.jsonl",
                                    "the rings of a notification are not kept: "));
    cr_assert(report_entry_contains(result.path, "notifications.json", "stream rejected"));
    cr_assert(zero(u64, bugpack_notify_retain(NULL, BUGPACK_LEVEL_WARN, NULL, "nobody")));
    bugpack_close(session);
    temp_dir_remove(&dir);
}
