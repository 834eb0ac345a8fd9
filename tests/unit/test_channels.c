#include "recorder/channels.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <string.h>

static bp_rings *rings;
static bp_channels channels;

static void set_up_budget(uint64_t budget_bytes) {
    static const bp_session_identity identity = {.session_id = "0123456789abcdef0123456789abcdef"};
    const bp_rings_options options = {.is_in_memory = true, .identity = &identity};
    cr_assert(zero(int, (int)bp_rings_new(&options, &rings, NULL)));
    cr_assert(zero(int, (int)bp_channels_init(&channels, budget_bytes, rings, NULL)));
}

static void tear_down(void) {
    bp_channels_release(&channels);
    bp_rings_free(rings);
}

TestSuite(channels, .fini = tear_down);

static bugpack_status open_channel(uint32_t weight, bugpack_error *error) {
    bugpack_channel_options options = BUGPACK_CHANNEL_OPTIONS_INIT;
    bp_traffic *channel = NULL;
    char name[32];
    options.weight = weight;
    options.pin_bytes = 0;
    (void)snprintf(name, sizeof name, "channel %zu", (size_t)channels.count);
    return bp_channels_open(&channels, name, &options, &channels, &channel, error);
}

/* bp_ring_payload_max is a quarter of the ring without a frame. */
static uint64_t ring_bytes(size_t at) {
    return 4 * ((uint64_t)bp_ring_payload_max(bp_traffic_ring(channels.list[at])) +
                BP_RING_FRAME_BYTES);
}

static uint64_t sum_of_rings(void) {
    uint64_t sum = 0;
    for (size_t i = 0; i < channels.count; i++) {
        sum += ring_bytes(i);
    }
    return sum;
}

Test(channels, sixteen_channels_of_a_real_client_share_the_budget) {
    static const uint32_t weights[] = {32, 4, 4, 4, 4, 2};
    const uint64_t budget_bytes = (uint64_t)50 << 20;
    uint64_t before[6];
    set_up_budget(budget_bytes);
    for (size_t i = 0; i < 6; i++) {
        cr_assert(zero(int, (int)open_channel(weights[i], NULL)));
        before[i] = ring_bytes(i);
        uint64_t share_bytes = budget_bytes / 4 * 3 * weights[i] / BUGPACK_TRAFFIC_WEIGHT_TOTAL;
        cr_expect(le(u64, before[i], share_bytes));
        cr_expect(gt(u64, before[i] + 8192, share_bytes));
    }
    for (size_t i = 6; i < 16; i++) {
        cr_assert(zero(int, (int)open_channel(4, NULL)));
        cr_expect(lt(u64, ring_bytes(i), i == 6 ? before[1] : ring_bytes(i - 1)));
        cr_expect(ge(u64, ring_bytes(i), 256 * 1024), "still of use");
    }
    for (size_t i = 0; i < 6; i++) {
        cr_expect(eq(u64, ring_bytes(i), before[i]), "no ring was resized");
    }
    cr_expect(le(u64, sum_of_rings(), budget_bytes));
    cr_expect(gt(u64, sum_of_rings(), budget_bytes / 20 * 17));
}

Test(channels, the_most_channels_share_the_default_budget) {
    const uint64_t budget_bytes = (uint64_t)50 << 20;
    set_up_budget(budget_bytes);
    for (uint32_t i = 0; i < BUGPACK_CHANNEL_MAX; i++) {
        cr_assert(zero(int, (int)open_channel(4, NULL)), "channel %u", i);
    }
    cr_expect(le(u64, sum_of_rings(), budget_bytes));
    cr_expect(eq(int, (int)open_channel(4, NULL), (int)BUGPACK_ERR_LIMIT), "too many");
}

Test(channels, no_weights_exceed_a_small_budget) {
    const uint64_t budget_bytes = (uint64_t)1 << 20;
    set_up_budget(budget_bytes);
    for (uint32_t i = 0; i < BUGPACK_CHANNEL_MAX; i++) {
        bugpack_status status = open_channel(1 + i * i % 7 * 300, NULL);
        cr_assert(status == BUGPACK_OK || status == BUGPACK_ERR_LIMIT);
        cr_assert(le(u64, sum_of_rings(), budget_bytes));
    }
    cr_expect(ge(sz, channels.count, 4));
}

Test(channels, a_small_budget_is_used_up_to_the_last_page) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    set_up_budget(64 * 1024);
    cr_expect(eq(int, (int)open_channel(0, &error), (int)BUGPACK_ERR_INVALID));
    cr_assert(zero(int, (int)open_channel(4, NULL)), "a share of less than a page");
    cr_expect(eq(u64, ring_bytes(0), 4096));
    cr_assert(zero(int, (int)open_channel(UINT32_MAX, NULL)));
    cr_expect(eq(int, (int)open_channel(1, &error), (int)BUGPACK_ERR_LIMIT));
    cr_expect(eq(u64, sum_of_rings(), 64 * 1024));
    cr_expect(ne(ptr, strstr(error.message, "too little is left"), NULL), "%s", error.message);
}

Test(channels, the_list_has_the_channels_in_the_order_of_opening_with_their_users) {
    bp_traffic *const *list = NULL;
    set_up_budget((uint64_t)1 << 20);
    cr_expect(zero(sz, bp_channels_list(&channels, &list)));
    cr_assert(zero(int, (int)open_channel(4, NULL)));
    cr_assert(zero(int, (int)open_channel(4, NULL)));
    cr_assert(eq(sz, bp_channels_list(&channels, &list), 2));
    cr_expect(eq(str, (char *)bp_traffic_identity_of(list[0])->name, "channel 0"));
    cr_expect(eq(str, (char *)bp_traffic_identity_of(list[1])->name, "channel 1"));
    cr_expect(eq(ptr, bp_channels_user(&channels, 1), &channels));
}

Test(channels, a_session_without_a_budget_has_none) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    set_up_budget(0);
    cr_expect(eq(int, (int)open_channel(4, &error), (int)BUGPACK_ERR_LIMIT));
    cr_expect(eq(str, error.message, "this session records no traffic"));
}
