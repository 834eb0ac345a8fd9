/*
 * Gaps that wait while the worker writes another report.
 */
#include "report/queue.h"
#include "session/session.h"
#include "unit/auto_session.h"
#include "unit/pedantic_session.h"

enum { gap_count = 10, storm_count = 50, early_fds_max = 64, fds_of_one_max = 8 };

/* A session whose worker waits in a provider. */
static void open_at_gate(auto_gate *gate) {
    options.recorder.traffic_budget_bytes = 64 * 1024;
    options.pedantic.channel_cap = BUGPACK_OFF;
    open_session();
    provide("gate.txt", BUGPACK_PROVIDE_TEXT, auto_wait_at_gate, gate);
    cr_assert(zero(int, bugpack_report_async(session, NULL, NULL, NULL, NULL)));
    auto_wait_for_worker(gate);
}

static void see(unsigned number) {
    char key[64];
    (void)snprintf(key, sizeof key, "display:unimpl:%02u", number);
    bugpack_gap(session, key);
}

/* What the snapshots of the gaps that wait hold. */
typedef struct early_snapshots {
    unsigned count, fds;
    uint64_t bytes;
} early_snapshots;

static bool look_at_snapshots(bp_job_queue *queue, early_snapshots *ret_early) {
    bool is_busy = false;
    *ret_early = (early_snapshots){.count = 0};
    bp_lock_acquire(&queue->lock);
    for (const bp_job *job = queue->first; job != NULL; job = job->next) {
        is_busy = is_busy || job->snapshot_state == BP_JOB_SNAPSHOT_RUNNING;
        if (job->type->yields && job->snapshot_state == BP_JOB_SNAPSHOT_DONE) {
            ret_early->count++;
            ret_early->fds += bp_snapshot_fds(job->snapshot) + 1;
            ret_early->bytes += bp_snapshot_bytes(job->snapshot);
        }
    }
    bp_lock_release(&queue->lock);
    return is_busy;
}

/* Waits until `count` gaps have their snapshots, or the bounds allow no more. */
static early_snapshots wait_for_snapshots(unsigned count) {
    early_snapshots early;
    while (look_at_snapshots(session->context.jobs, &early) ||
           (early.count < count && early.fds < early_fds_max)) {
        (void)usleep(1000);
    }
    return early;
}

TestSuite(pedantic_line, .init = pedantic_setup, .fini = teardown);

Test(pedantic_line, keeps_the_rings_of_each_gap_though_they_turn_over_before_its_turn) {
    static const char filling[1024];
    static auto_gate gate;
    char text[64];
    open_at_gate(&gate);
    bugpack_channel *display = open_channel("display");
    for (unsigned i = 0; i < gap_count; i++) {
        (void)snprintf(text, sizeof text, "message of gap %02u", i);
        bugpack_traffic(display, BUGPACK_RECEIVED, 1, "draw", text, strlen(text));
        see(i);
    }
    cr_expect(eq(uint, wait_for_snapshots(gap_count).count, gap_count));
    for (unsigned i = 0; i < 256; i++) {
        bugpack_traffic(display, BUGPACK_RECEIVED, 2, "fill", filling, sizeof filling);
    }
    atomic_store(&gate.may_go, true);
    cr_expect(eq(uint, pedantic_settle().written_count, gap_count));
    for (unsigned i = 0; i < gap_count; i++) {
        char part[64];
        (void)snprintf(part, sizeof part, "display-unimpl-%02u", i);
        (void)snprintf(text, sizeof text, "message of gap %02u", i);
        cr_expect(pcap_holds(pedantic_path(part, ".zip"), text), "gap %u", i);
    }
}

Test(pedantic_line, holds_only_so_many_descriptors_and_loses_no_gap) {
    static auto_gate gate;
    open_at_gate(&gate);
    for (unsigned i = 0; i < storm_count; i++) {
        see(i);
    }
    early_snapshots early = wait_for_snapshots(storm_count);
    cr_expect(gt(uint, early.count, 4));
    cr_expect(lt(uint, early.count, storm_count));
    cr_expect(lt(uint, early.fds, early_fds_max + fds_of_one_max));
    atomic_store(&gate.may_go, true);
    cr_expect(eq(uint, pedantic_settle().written_count, storm_count));
    (void)look_at_snapshots(session->context.jobs, &early);
    cr_expect(zero(uint, early.fds));
    cr_expect(zero(u64, early.bytes));
}

Test(pedantic_line, is_taken_back_with_all_others_and_tried_at_the_next_sight) {
    static auto_gate gate;
    open_at_gate(&gate);
    for (unsigned i = 0; i < storm_count; i++) {
        see(i);
    }
    cr_assert(zero(int, bugpack_cancel(session, 0, NULL)));
    bugpack_pedantic_state state = pedantic_settle();
    cr_expect(zero(uint, state.written_count));
    cr_expect(zero(sz, temp_dir_count(&dir)));
    atomic_store(&gate.may_go, true);
    for (unsigned i = 0; i < storm_count; i++) {
        see(i);
    }
    cr_expect(eq(uint, pedantic_settle().written_count, storm_count));
}
