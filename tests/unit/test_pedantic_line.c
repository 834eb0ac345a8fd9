/*
 * Gaps that wait in a line of their own, while the worker has others to take.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "session/session.h"
#include "support/report_reader.h"
#include "unit/auto_session.h"
#include "unit/pedantic_session.h"

enum { gap_count = 10, storm_count = 50, fds_of_one_max = 8 };

/* A session whose worker stands at a gate. */
static void open_at_gate(pedantic *p, auto_gate *gate) {
    bugpack_options options = pedantic_options(p);
    options.traffic_budget_bytes = 64 * 1024;
    options.pedantic_channel_cap = 0;
    pedantic_open(p, &options);
    cr_assert(zero(
        int, (int)bugpack_provide_text(p->session, "gate.txt", auto_wait_at_gate, gate, NULL)));
    cr_assert(zero(int, (int)bugpack_report_async(p->session, NULL, NULL, NULL)));
    auto_wait_for_worker(gate);
}

static void see(const pedantic *p, unsigned number) {
    char key[64];
    (void)snprintf(key, sizeof key, "display:unimpl:%02u", number);
    bugpack_gap(p->session, key);
}

/* Waits until the freezer has nothing to do for the line; how many of the line are frozen. */
static unsigned wait_for_freezer(const pedantic *p) {
    bp_pedantic *line = p->session->pedantic;
    unsigned frozen_count = 0;
    bool is_idle = false;
    while (!is_idle) {
        (void)usleep(1000);
        frozen_count = 0;
        (void)pthread_mutex_lock(&line->mutex);
        is_idle = line->sent_count == 0;
        for (const bp_order *order = line->first; order != NULL; order = order->next) {
            is_idle = is_idle && (!order->is_with_snapshotter || order->ahead_fds > 0);
            frozen_count += order->ahead_fds > 0;
        }
        (void)pthread_mutex_unlock(&line->mutex);
    }
    return frozen_count;
}

static bool has_message(const char *path, const char *message) {
    size_t bytes = 0;
    char *pcap = report_read(path, "traffic.pcap", &bytes);
    bool is_there = pcap != NULL && memmem(pcap, bytes, message, strlen(message)) != NULL;
    free(pcap);
    return is_there;
}

Test(pedantic_line, keeps_the_rings_of_each_gap_though_they_turn_over_before_its_turn) {
    static const char filling[1024];
    pedantic p;
    auto_gate gate = {.is_inside = false};
    bugpack_channel *display = NULL;
    char text[64];
    open_at_gate(&p, &gate);
    cr_assert(zero(int, (int)bugpack_channel_open(p.session, "display", NULL, &display, NULL)));
    for (unsigned i = 0; i < gap_count; i++) {
        (void)snprintf(text, sizeof text, "message of gap %02u", i);
        bugpack_traffic(display, BUGPACK_RECEIVED, 1, "draw", text, strlen(text));
        see(&p, i);
    }
    cr_expect(eq(uint, wait_for_freezer(&p), gap_count - BUGPACK_REPORT_QUEUE_MAX / 2));
    for (unsigned i = 0; i < 256; i++) {
        bugpack_traffic(display, BUGPACK_RECEIVED, 2, "fill", filling, sizeof filling);
    }
    atomic_store(&gate.may_go, true);
    cr_expect(eq(uint, pedantic_settle(&p).written_count, gap_count));
    for (unsigned i = 0; i < gap_count; i++) {
        char part[64];
        (void)snprintf(part, sizeof part, "display-unimpl-%02u", i);
        (void)snprintf(text, sizeof text, "message of gap %02u", i);
        cr_expect(has_message(pedantic_path(&p, part, ".zip"), text), "gap %u", i);
    }
    pedantic_remove(&p);
}

Test(pedantic_line, holds_only_so_many_descriptors_and_loses_no_gap) {
    pedantic p;
    auto_gate gate = {.is_inside = false};
    open_at_gate(&p, &gate);
    for (unsigned i = 0; i < storm_count; i++) {
        see(&p, i);
    }
    unsigned frozen_count = wait_for_freezer(&p);
    cr_expect(gt(uint, frozen_count, 4));
    cr_expect(lt(uint, frozen_count, storm_count - BUGPACK_REPORT_QUEUE_MAX / 2));
    cr_expect(lt(uint, p.session->pedantic->ahead_fds, 64 + fds_of_one_max));
    atomic_store(&gate.may_go, true);
    cr_expect(eq(uint, pedantic_settle(&p).written_count, storm_count));
    cr_expect(zero(uint, p.session->pedantic->ahead_fds));
    cr_expect(zero(u64, p.session->pedantic->ahead_bytes));
    pedantic_remove(&p);
}

Test(pedantic_line, is_taken_back_with_all_others_and_tried_at_the_next_sight) {
    pedantic p;
    auto_gate gate = {.is_inside = false};
    open_at_gate(&p, &gate);
    for (unsigned i = 0; i < storm_count; i++) {
        see(&p, i);
    }
    cr_assert(zero(int, (int)bugpack_cancel(p.session, 0)));
    bugpack_pedantic_state state = pedantic_settle(&p);
    cr_expect(zero(uint, state.written_count));
    cr_expect(zero(sz, temp_dir_count(&p.dir)));
    atomic_store(&gate.may_go, true);
    for (unsigned i = 0; i < storm_count; i++) {
        see(&p, i);
    }
    cr_expect(eq(uint, pedantic_settle(&p).written_count, storm_count));
    pedantic_remove(&p);
}
