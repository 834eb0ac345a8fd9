/*
 * Notifications whose rings are kept: a report that is filed later holds the moment that they
 * fired.
 */
#include <bugpack/bindings.h>

#include "base/clock.h"
#include "session/session.h"
#include "support/descriptors.h"
#include "unit/auto_session.h"

/* Keeps, also where the freezer has just enough to do. */
static uint64_t keep(const char *text) {
    uint64_t kept = 0;
    for (unsigned i = 0; i < 30000 && kept == 0; i++) {
        bugpack_notify_text(session, BUGPACK_LEVEL_WARN, "server", &kept, text);
        if (kept == 0) {
            (void)usleep(1000);
        }
    }
    cr_assert(ne(u64, kept, 0));
    return kept;
}

static bugpack_status report_kept(uint64_t kept, const char *output_path) {
    bugpack_report_request request = BUGPACK_REPORT_REQUEST_INIT;
    request.retained = kept;
    request.output_path = output_path;
    request.description = "filed later";
    return try_report(&request);
}

TestSuite(kept, .init = auto_setup, .fini = teardown);

Test(kept, rings_give_a_report_of_the_moment_of_the_notification_once) {
    open_session();
    bugpack_channel *display = open_channel("display");
    bugpack_log(session, BUGPACK_LEVEL_INFO, NULL, "before it");
    bugpack_traffic(display, BUGPACK_SENT, 1, NULL, "wire before", 11);
    uint64_t kept = keep("stream rejected");
    bugpack_log(session, BUGPACK_LEVEL_INFO, NULL, "after it");
    bugpack_traffic(display, BUGPACK_SENT, 1, NULL, "wire after", 10);
    cr_assert(zero(int, report_kept(kept, NULL)), "%s", taken.error.message);
    cr_assert(ne(ptr, strstr(taken.path, "/viewer-notification-20"), NULL), "%s", taken.path);
    cr_assert(holds("metadata.json", "\"report_type\": \"notification\""));
    cr_assert(holds("metadata.json", "filed later"));
    cr_assert(holds("logs.jsonl", "before it"));
    cr_assert(not(holds("logs.jsonl", "after it")));
    cr_assert(holds("notifications.json", "stream rejected"));
    cr_assert(pcap_holds(taken.path, "wire before"));
    cr_assert(not(pcap_holds(taken.path, "wire after")));
    cr_assert(eq(int, report_kept(kept, NULL), BUGPACK_ERR_NO_TICKET));
    cr_assert(eq(int, report_kept(kept + 1, NULL), BUGPACK_ERR_NO_TICKET));
    bugpack_close(session);
    cr_assert(eq(sz, temp_dir_count(&dir), 1));
}

Test(kept, rings_are_given_back_by_a_report_that_fails) {
    open_session();
    bugpack_channel *display = open_channel("display");
    bugpack_traffic(display, BUGPACK_SENT, 1, NULL, "wire before", 11);
    bugpack_log(session, BUGPACK_LEVEL_INFO, NULL, "before it");
    uint64_t kept = keep("stream rejected");
    char path[300];
    (void)snprintf(path, sizeof path, "%s/nowhere/x.zip", dir.path);
    for (unsigned i = 0; i < 2; i++) {
        cr_assert(eq(int, report_kept(kept, path), BUGPACK_ERR_IO));
    }
    /* One that fails at its end, after all was printed. */
    bugpack_report_request request = BUGPACK_REPORT_REQUEST_INIT;
    request.retained = kept;
    request.timeout_ms = 1;
    static auto_gate gate;
    auto_add_gate(&gate);
    cr_assert(eq(int, bugpack_report(session, &request, NULL, NULL), BUGPACK_ERR_TIMEOUT));
    atomic_store(&gate.may_go, true);
    cr_assert(zero(int, report_kept(kept, NULL)), "%s", taken.error.message);
    cr_assert(holds("logs.jsonl", "before it"));
    cr_assert(pcap_holds(taken.path, "wire before"));
}

Test(kept, rings_go_after_their_time_with_their_files) {
    open_session();
    unsigned before = count_descriptors();
    uint64_t kept[BUGPACK_RETAINED_MAX];
    for (unsigned i = 0; i < BUGPACK_RETAINED_MAX; i++) {
        kept[i] = keep("stream rejected");
    }
    take(NULL); /* the freezer is done with them */
    cr_assert(gt(uint, count_descriptors(), before));
    uint64_t now_ns = bp_clock_monotonic_ns();
    cr_assert(lt(u64, bp_trigger_retained.tick(session->triggers.retained, now_ns), UINT64_MAX));
    cr_assert(le(u64, bp_trigger_retained.tick(session->triggers.retained, now_ns),
                 now_ns + BUGPACK_RETAINED_SECONDS * BP_NS_PER_SEC));
    cr_assert(eq(u64,
                 bp_trigger_retained.tick(session->triggers.retained,
                                          now_ns + BUGPACK_RETAINED_SECONDS * BP_NS_PER_SEC),
                 UINT64_MAX));
    /* The worker closes those of its report after it has told of its end. */
    for (unsigned i = 0; i < 30000 && count_descriptors() != before; i++) {
        (void)usleep(1000);
    }
    cr_assert(eq(uint, count_descriptors(), before));
    cr_assert(eq(int, report_kept(kept[4], NULL), BUGPACK_ERR_NO_TICKET));
}

Test(kept, rings_of_the_oldest_make_room_for_newer_ones) {
    open_session();
    uint64_t kept[BUGPACK_RETAINED_MAX + 1];
    for (unsigned i = 0; i <= BUGPACK_RETAINED_MAX; i++) {
        kept[i] = keep("stream rejected");
    }
    cr_assert(eq(int, report_kept(kept[0], NULL), BUGPACK_ERR_NO_TICKET));
    for (unsigned i = 1; i <= BUGPACK_RETAINED_MAX; i++) {
        cr_assert(zero(int, report_kept(kept[i], NULL)), "%s", taken.error.message);
    }
    bugpack_close(session);
    cr_assert(eq(sz, temp_dir_count(&dir), BUGPACK_RETAINED_MAX));
}

Test(kept, rings_are_lent_to_one_report_and_come_back_from_one_that_is_refused) {
    static auto_gate gate;
    open_session();
    uint64_t lent = keep("stream rejected");
    uint64_t refused = keep("stream rejected again");
    auto_add_gate(&gate);
    bugpack_report_request request = BUGPACK_REPORT_REQUEST_INIT;
    request.retained = lent;
    cr_assert(zero(int, bugpack_report_async(session, &request, NULL, NULL, NULL)));
    auto_wait_for_worker(&gate);
    cr_assert(
        eq(int, bugpack_report_async(session, &request, NULL, NULL, NULL), BUGPACK_ERR_NO_TICKET));
    for (unsigned i = 0; i < BUGPACK_REPORT_QUEUE_MAX; i++) {
        cr_assert(zero(int, bugpack_report_async(session, NULL, NULL, NULL, NULL)));
    }
    request.retained = refused;
    cr_assert(eq(int, bugpack_report_async(session, &request, NULL, NULL, NULL), BUGPACK_ERR_BUSY));
    atomic_store(&gate.may_go, true);
    do {
        (void)usleep(1000);
    } while (report_kept(refused, NULL) == BUGPACK_ERR_BUSY);
    cr_assert(zero(int, taken.status), "%s", taken.error.message);
    bugpack_close(session);
    cr_assert(eq(sz, temp_dir_count(&dir), BUGPACK_REPORT_QUEUE_MAX + 2));
}

Test(kept, rings_that_cannot_be_copied_are_told_in_the_log) {
    char parked[300];
    open_session();
    (void)snprintf(parked, sizeof parked, "%s.parked", dir.path);
    cr_assert(zero(int, rename(dir.path, parked)));
    uint64_t kept = keep("stream rejected");
    cr_assert(eq(int, try_report(NULL), BUGPACK_ERR_IO));
    cr_assert(zero(int, rename(parked, dir.path)));
    cr_assert(eq(int, report_kept(kept, NULL), BUGPACK_ERR_NO_TICKET));
    take(NULL);
    cr_assert(holds("logs.jsonl", "the rings of a notification are not kept: "));
    cr_assert(holds("notifications.json", "stream rejected"));
    uint64_t nobody = 7;
    bugpack_notify(NULL, BUGPACK_LEVEL_WARN, NULL, &nobody, "nobody");
    cr_assert(zero(u64, nobody));
}
