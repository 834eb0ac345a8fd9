#include "recorder/channels.h"
#include "unit/unit.h"

static bp_rings *rings;
static bp_channels channels;

static void set_up_budget(uint64_t budget_bytes) {
    static const bp_session_identity identity = {.session_id = "0123456789abcdef0123456789abcdef"};
    const bp_rings_options options = {.is_in_memory = true, .identity = &identity};
    cr_assert(zero(int, bp_rings_new(&options, &rings, NULL)));
    bp_channels_init(&channels, budget_bytes, rings, NULL);
}

static void tear_down(void) {
    bp_channels_release(&channels);
    bp_rings_free(rings);
}

TestSuite(channels, .fini = tear_down);

static bugpack_channel *opened; /* by the last open_channel */

static bugpack_status open_named(const char *name, uint32_t weight, bugpack_error *error) {
    bugpack_channel_options options = BUGPACK_CHANNEL_OPTIONS_INIT;
    options.weight = weight;
    options.pin_bytes = 0;
    return bp_channels_open(&channels, name, &options, &opened, error);
}

static bugpack_status open_channel(uint32_t weight, bugpack_error *error) {
    char name[32];
    (void)snprintf(name, sizeof name, "channel %u", (unsigned)channels.next_number);
    return open_named(name, weight, error);
}

/* bp_ring_payload_max is a quarter of the ring without a frame. */
static uint64_t ring_bytes(size_t at) {
    return 4 * ((uint64_t)bp_ring_payload_max(bp_traffic_ring(channels.items[at]->traffic)) +
                BP_RING_FRAME_BYTES);
}

static uint64_t sum_of_rings(void) {
    uint64_t sum = 0;
    for (size_t i = 0; i < channels.count; i++) {
        sum += ring_bytes(i);
    }
    return sum;
}

static void record(bugpack_channel *channel, size_t byte_count) {
    static const char bytes[1 << 20];
    if (bp_channel_enter(channel)) {
        bp_traffic_append(channel->traffic, BUGPACK_SENT, 1, "m", bytes, byte_count);
        bp_channel_leave(channel);
    }
}

Test(channels, sixteen_channels_of_a_real_client_share_the_budget) {
    static const uint32_t weights[] = {32, 4, 4, 4, 4, 2};
    const uint64_t budget_bytes = (uint64_t)50 << 20;
    uint64_t before[6];
    set_up_budget(budget_bytes);
    for (size_t i = 0; i < 6; i++) {
        cr_assert(zero(int, open_channel(weights[i], NULL)));
        before[i] = ring_bytes(i);
        uint64_t share_bytes = budget_bytes / 4 * 3 * weights[i] / BUGPACK_TRAFFIC_WEIGHT_TOTAL;
        cr_expect(le(u64, before[i], share_bytes));
        cr_expect(gt(u64, before[i] + 8192, share_bytes));
    }
    for (size_t i = 6; i < 16; i++) {
        cr_assert(zero(int, open_channel(4, NULL)));
        cr_expect(lt(u64, ring_bytes(i), i == 6 ? before[1] : ring_bytes(i - 1)));
        cr_expect(ge(u64, ring_bytes(i), 256 * 1024), "still of use");
    }
    for (size_t i = 0; i < 6; i++) {
        cr_expect(eq(u64, ring_bytes(i), before[i]), "no ring was resized");
    }
    cr_expect(le(u64, sum_of_rings(), budget_bytes));
    cr_expect(gt(u64, sum_of_rings(), budget_bytes / 20 * 17));
}

Test(channels, sixty_four_channels_share_the_default_budget_and_five_hundred_take_little_more) {
    const uint64_t budget_bytes = (uint64_t)50 << 20;
    const uint64_t least_bytes = budget_bytes / 4 * 3 * 4 / BUGPACK_TRAFFIC_WEIGHT_TOTAL / 64;
    set_up_budget(budget_bytes);
    for (uint32_t i = 0; i < 64; i++) {
        cr_assert(zero(int, open_channel(4, NULL)), "channel %u", i);
    }
    cr_expect(le(u64, sum_of_rings(), budget_bytes));
    for (uint32_t i = 64; i < 500; i++) {
        cr_assert(zero(int, open_channel(4, NULL)), "channel %u", i);
        cr_expect(gt(u64, ring_bytes(i) + 4096, least_bytes));
    }
    cr_expect(le(u64, sum_of_rings(), budget_bytes + 500 * least_bytes));
}

Test(channels, a_small_budget_is_exceeded_by_16_KiB_a_channel_at_most) {
    const uint64_t budget_bytes = (uint64_t)1 << 20;
    set_up_budget(budget_bytes);
    for (uint32_t i = 0; i < 200; i++) {
        cr_assert(zero(int, open_channel(1 + i * i % 7 * 300, NULL)));
        cr_assert(le(u64, sum_of_rings(), budget_bytes + (i + 1) * 16 * 1024));
    }
}

Test(channels, a_tiny_budget_gives_each_a_page) {
    set_up_budget(16 * 1024);
    cr_expect(eq(int, open_channel(0, &failure), BUGPACK_ERR_INVALID));
    for (size_t i = 0; i < 10; i++) {
        cr_assert(zero(int, open_channel(4, NULL)));
        cr_expect(eq(u64, ring_bytes(i), 4096));
    }
}

Test(channels, the_list_has_the_channels_in_the_order_of_opening) {
    bp_channel_list list;
    set_up_budget((uint64_t)1 << 20);
    cr_assert(zero(int, bp_channels_hold(&channels, &list, NULL)));
    cr_expect(zero(sz, list.count));
    bp_channels_unhold(&channels, &list);
    cr_assert(zero(int, open_channel(4, NULL)));
    cr_assert(zero(int, open_channel(4, NULL)));
    cr_assert(zero(int, bp_channels_hold(&channels, &list, NULL)));
    cr_assert(eq(sz, list.count, 2));
    cr_expect(eq(str, bp_traffic_identity_of(list.items[0]->traffic)->name, "channel 0"));
    cr_expect(eq(str, bp_traffic_identity_of(list.items[1]->traffic)->name, "channel 1"));
    bp_channels_unhold(&channels, &list);
}

Test(channels, a_name_is_free_again_once_its_channel_is_closed) {
    set_up_budget((uint64_t)1 << 20);
    cr_assert(zero(int, open_named("main", 4, NULL)));
    cr_expect(eq(int, open_named("main", 4, NULL), BUGPACK_ERR_INVALID));
    bp_channels_close(&channels, opened);
    bp_channels_close(&channels, opened);
    cr_assert(zero(int, open_named("main", 4, NULL)));
    cr_expect(eq(sz, channels.count, 2), "the first is still in reports");
}

Test(channels, a_closed_channel_gives_its_share_back) {
    set_up_budget((uint64_t)10 << 20);
    cr_assert(zero(int, open_channel(BUGPACK_TRAFFIC_WEIGHT_TOTAL, NULL)));
    uint64_t first_bytes = ring_bytes(0);
    bp_channels_close(&channels, opened);
    cr_assert(zero(int, open_channel(BUGPACK_TRAFFIC_WEIGHT_TOTAL, NULL)));
    cr_expect(eq(u64, ring_bytes(channels.count - 1), first_bytes));
}

Test(channels, a_closed_channel_refuses_messages_and_keeps_those_it_has) {
    bp_traffic_totals totals;
    set_up_budget((uint64_t)1 << 20);
    cr_assert(zero(int, open_channel(4, NULL)));
    record(opened, 100);
    bp_channels_close(&channels, opened);
    record(opened, 100);
    bp_traffic_count(channels.items[0]->traffic, &totals);
    cr_expect(eq(u64, totals.message_count[0], 1));
    cr_expect(eq(u64, channels.closed_bytes, 2 * 4096), "the header and a page of records");
}

/* A client that reconnects for ever. */
Test(channels, ten_thousand_closed_channels_take_what_the_budget_allows) {
    const uint64_t budget_bytes = (uint64_t)8 << 20;
    set_up_budget(budget_bytes);
    for (uint32_t i = 0; i < 10000; i++) {
        cr_assert(zero(int, open_named("main", 50, NULL)), "connection %u", i);
        for (uint32_t j = 0; j < i % 5; j++) {
            record(opened, 40000);
        }
        bp_channels_close(&channels, opened);
        cr_assert(le(sz, channels.count, BP_CHANNEL_CLOSED_MAX));
        cr_assert(le(u64, channels.closed_bytes, budget_bytes));
    }
    /* An eighth of the budget, with 80 KB on average and the rest of the chunk that was begun last.
     */
    cr_expect(ge(sz, channels.count, 16), "the last ones are still there");
    cr_expect(
        eq(u32, bp_traffic_identity_of(channels.items[channels.count - 1]->traffic)->number, 9999));
    cr_expect(le(sz, channels.handle_count, BUGPACK_CHANNEL_LATE_CALLS + 1));
}

Test(channels, a_closed_channel_stays_while_somebody_holds_it) {
    bp_channel_list list;
    set_up_budget(1 << 20);
    cr_assert(zero(int, open_named("held", 50, NULL)));
    record(opened, 1000);
    bp_channels_close(&channels, opened);
    cr_assert(zero(int, bp_channels_hold(&channels, &list, NULL)));
    for (uint32_t i = 0; i < BP_CHANNEL_CLOSED_MAX + 10; i++) {
        cr_assert(zero(int, open_channel(50, NULL)));
        bp_channels_close(&channels, opened);
    }
    cr_expect(eq(str, bp_traffic_identity_of(list.items[0]->traffic)->name, "held"));
    cr_expect(gt(u64, bp_ring_used_bytes(bp_traffic_ring(list.items[0]->traffic)), 1000));
    bp_channels_unhold(&channels, &list);
    cr_assert(zero(int, open_channel(50, NULL)));
    cr_expect(ne(str, bp_traffic_identity_of(channels.items[0]->traffic)->name, "held"));
}

Test(channels, a_closed_channel_stays_while_a_thread_is_inside) {
    set_up_budget(1 << 20);
    cr_assert(zero(int, open_named("busy", 50, NULL)));
    bugpack_channel *busy = opened;
    cr_assert(bp_channel_enter(busy));
    bp_channels_close(&channels, busy);
    for (uint32_t i = 0; i < BP_CHANNEL_CLOSED_MAX + 10; i++) {
        cr_assert(zero(int, open_channel(50, NULL)));
        bp_channels_close(&channels, opened);
    }
    bp_traffic_append(busy->traffic, BUGPACK_SENT, 1, "", "late", 4); /* refused, and harmless */
    bp_channel_leave(busy);
    cr_assert(zero(int, open_channel(50, NULL)));
    cr_expect(ne(str, bp_traffic_identity_of(channels.items[0]->traffic)->name, "busy"));
}

Test(channels, what_is_shown_of_a_forgotten_channel_is_what_the_strictest_allows) {
    bool is_exact;
    bugpack_channel_options options = BUGPACK_CHANNEL_OPTIONS_INIT;
    set_up_budget(1 << 20);
    options.weight = 50;
    options.snap_bytes = 7;
    cr_expect(eq(sz, bp_channels_plain_max(&channels, "secret", &is_exact), SIZE_MAX));
    cr_assert(zero(int, bp_channels_open(&channels, "secret", &options, &opened, NULL)));
    bp_channels_close(&channels, opened);
    for (uint32_t i = 0; i < BP_CHANNEL_CLOSED_MAX + 1; i++) {
        cr_expect(eq(sz, bp_channels_plain_max(&channels, "secret", &is_exact), 7));
        cr_assert(zero(int, open_channel(50, NULL)));
        bp_channels_close(&channels, opened);
    }
    cr_expect(ne(str, bp_traffic_identity_of(channels.items[0]->traffic)->name, "secret"));
    cr_expect(eq(sz, bp_channels_plain_max(&channels, "secret", &is_exact), 7));
}

Test(channels, a_session_without_a_budget_has_none) {
    set_up_budget(0);
    cr_expect(eq(int, open_channel(4, &failure), BUGPACK_ERR_LIMIT));
    cr_expect(eq(str, failure.message, "this session records no traffic"));
}
