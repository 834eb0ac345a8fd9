#include "recorder/traffic.h"

#include <pthread.h>

#include "base/clock.h"
#include "support/traffic_pcap.h"
#include "unit/dir.h"

static bugpack_channel_options options;
static bp_traffic *traffic;
static bp_traffic_extent extent;
static traffic_pcap pcap;

static void set_up(void) {
    make_dir();
    options = (bugpack_channel_options)BUGPACK_CHANNEL_OPTIONS_INIT;
    options.pin_bytes = 4096;
}

static void tear_down(void) {
    traffic_pcap_release(&pcap);
    bp_traffic_free(traffic);
    remove_dir();
}

TestSuite(traffic, .init = set_up, .fini = tear_down);

static bp_traffic *new_traffic(size_t ring_bytes, uint32_t number) {
    bp_traffic_identity identity;
    bp_ring *ring = NULL;
    bp_ring *pins = NULL;
    bp_traffic *made = NULL;
    bp_traffic_identity_init(&identity, "main", number, &options);
    cr_assert(zero(int, bp_ring_new(ring_bytes, &ring, NULL)));
    if (options.pin_bytes > 0) {
        size_t pins_bytes = bp_traffic_pins_ring_bytes(options.pin_bytes);
        cr_assert(zero(int, bp_ring_new(pins_bytes, &pins, NULL)));
    }
    cr_assert(zero(int, bp_traffic_new(&identity, &options, NULL, ring, pins, &made, NULL)));
    return made;
}

static void open_traffic(size_t ring_bytes) {
    traffic = new_traffic(ring_bytes, 0);
}

/* What a report would have of these channels: the pcap, read back, and what the manifest says. */
static void print_until(bp_traffic *const *channels, size_t channel_count, uint64_t until_ns) {
    bp_traffic_snapshot snapshots[4];
    bp_temp_file records, out;
    cr_assert(zero(int, bp_temp_file_open(&records, dir.fd, 256u << 20, NULL)));
    for (size_t i = 0; i < channel_count; i++) {
        cr_assert(zero(int, bp_traffic_take_snapshot(channels[i], until_ns, 1000, &records,
                                                     &snapshots[i], NULL)));
    }
    cr_assert(zero(int, bp_temp_file_open(&out, dir.fd, 256u << 20, NULL)));
    cr_assert(zero(int, bp_traffic_print_pcap(&records, snapshots, channel_count, NULL,
                                              bp_temp_file_sink, &out, &extent, NULL)));
    traffic_pcap_release(&pcap);
    cr_assert(bp_temp_file_flush(&out, NULL) == BUGPACK_OK && traffic_pcap_read(&out, &pcap));
    bp_temp_file_release(&out);
    bp_temp_file_release(&records);
    cr_assert(eq(sz, temp_dir_count(&dir), 0));
}

static void print(void) {
    print_until(&traffic, 1, UINT64_MAX);
}

static void send_to(bp_traffic *channel, const char *text) {
    bp_traffic_append(channel, BUGPACK_SENT, 1, "text", text, strlen(text));
}

static void send_text(const char *text) {
    send_to(traffic, text);
}

static bool stream_is(unsigned direction, const char *expected) {
    bp_buffer bytes;
    traffic_pcap_stream(&pcap, 0, direction, &bytes);
    bool is_equal = bytes.size == strlen(expected) && memcmp(bytes.data, expected, bytes.size) == 0;
    cr_expect(is_equal, "stream: %.100s", bp_buffer_text(&bytes));
    bp_buffer_release(&bytes);
    return is_equal;
}

Test(traffic, shows_both_directions_of_a_channel_as_they_were_recorded) {
    open_traffic(64 * 1024);
    send_text("hello");
    bp_traffic_append(traffic, BUGPACK_RECEIVED, 2, NULL, "world", 5);
    bp_traffic_append(traffic, BUGPACK_SENT, 2, "", NULL, 0);
    send_text(" again");
    print();
    cr_expect(stream_is(BUGPACK_SENT, "hello again"));
    cr_expect(stream_is(BUGPACK_RECEIVED, "world"));
    cr_expect(eq(sz, pcap.frame_count, 3 + 4));
    cr_expect(eq(u64, extent.message_count, 4));
    cr_expect(zero(u64, extent.pinned_count));
    cr_expect(zero(u64, extent.missing_count));
    cr_expect(zero(u64, extent.cut_count));
    cr_expect(eq(u64, extent.from_wall_ns, pcap.first_wall_ns));
    cr_expect(eq(u64, extent.to_wall_ns, pcap.last_wall_ns));
}

Test(traffic, counts_messages_and_bytes_by_direction) {
    options.snap_bytes = 3;
    open_traffic(64 * 1024);
    bp_traffic_totals totals;
    bp_traffic_count(traffic, &totals);
    cr_expect(zero(u64, totals.last_ns[0]));
    send_text("four");
    send_text("two");
    bp_traffic_count(traffic, &totals);
    cr_expect(eq(u64, totals.message_count[BUGPACK_SENT], 2));
    cr_expect(eq(u64, totals.byte_count[BUGPACK_SENT], 7));
    cr_expect(zero(u64, totals.message_count[BUGPACK_RECEIVED]));
    cr_expect(ne(u64, totals.last_ns[BUGPACK_SENT], 0));
    cr_expect(zero(u64, totals.last_ns[BUGPACK_RECEIVED]));
    bp_traffic_close(traffic);
    send_text("late");
    bp_traffic_count(traffic, &totals);
    cr_expect(eq(u64, totals.message_count[BUGPACK_SENT], 2));
}

Test(traffic, keeps_the_beginning_of_a_message_that_the_ring_cannot_take) {
    options.pin_bytes = 0;
    open_traffic(64 * 1024);
    unsigned char *bytes = calloc(1, 200000);
    bp_traffic_append(traffic, BUGPACK_RECEIVED, 1, NULL, bytes, 200000);
    send_text("next");
    print();
    cr_expect(eq(u64, extent.message_count, 2));
    cr_expect(eq(u64, extent.cut_count, 1));
    /* The numbers go on behind all of it. */
    cr_expect(eq(u32, pcap.frames[pcap.frame_count - 1].acknowledgement, 200001));
    CLEANUP(bp_buffer_release) bp_buffer kept;
    traffic_pcap_stream(&pcap, 0, BUGPACK_RECEIVED, &kept);
    cr_expect(gt(sz, kept.size, 16 * 1024 - 128));
    free(bytes);
}

/* Hides digits and drops what follows a '#'. */
static size_t redact(bugpack_direction direction, uint32_t type, void *bytes, size_t byte_count,
                     void *context) {
    char *text = bytes;
    *(int *)context += direction == BUGPACK_RECEIVED && type == 9;
    for (size_t i = 0; i < byte_count; i++) {
        if (text[i] == '#') {
            return i;
        }
        text[i] = text[i] >= '0' && text[i] <= '9' ? '*' : text[i];
    }
    return byte_count + 1; /* more than there is: to be ignored */
}

Test(traffic, keeps_what_the_filter_leaves_and_not_a_byte_more) {
    int call_count = 0;
    options.filter = redact;
    options.filter_context = &call_count;
    options.pin_bytes = 1024;
    open_traffic(256 * 1024);
    const char *message = "pin 1234 # secret";
    bp_traffic_append(traffic, BUGPACK_RECEIVED, 9, NULL, message, strlen(message));
    cr_expect(zero(int, strcmp(message, "pin 1234 # secret")));
    CLEANUP(free_memory) char *large = malloc(20001);
    memset(large, '7', 20000);
    large[20000] = '\0';
    bp_traffic_append(traffic, BUGPACK_RECEIVED, 9, NULL, large, 20000);
    print();
    CLEANUP(free_memory) char *expected = malloc(20010);
    memcpy(expected, "pin **** ", 9);
    memset(expected + 9, '*', 20000);
    expected[20009] = '\0';
    cr_expect(stream_is(BUGPACK_RECEIVED, expected));
    cr_expect(eq(int, call_count, 2));
    cr_expect(eq(u64, extent.cut_count, 1));
}

static size_t wait_for_the_other(bugpack_direction direction, uint32_t type, void *bytes,
                                 size_t byte_count, void *barrier) {
    (void)pthread_barrier_wait(barrier);
    memset(bytes, 'a' + (int)type, byte_count);
    return byte_count;
}

enum { large_bytes = 2 * BUGPACK_TRAFFIC_FILTER_STACK_BYTES };

static void *send_large(void *context) {
    static const unsigned char zeros[large_bytes];
    bp_traffic_append(traffic, BUGPACK_SENT, 0, NULL, zeros, sizeof zeros);
    return NULL;
}

Test(traffic, filters_large_messages_of_two_threads_at_once, .timeout = 60) {
    static const unsigned char zeros[large_bytes];
    pthread_barrier_t barrier;
    pthread_t thread;
    cr_assert(zero(int, pthread_barrier_init(&barrier, NULL, 2)));
    options.filter = wait_for_the_other;
    options.filter_context = &barrier;
    options.pin_bytes = 0;
    open_traffic(256 * 1024);
    for (int turn = 0; turn < 2; turn++) { /* the second with the buffer that came back */
        cr_assert(zero(int, pthread_create(&thread, NULL, send_large, traffic)));
        bp_traffic_append(traffic, BUGPACK_RECEIVED, 1, NULL, zeros, sizeof zeros);
        cr_assert(zero(int, pthread_join(thread, NULL)));
    }
    print();
    static char expected[2][2 * large_bytes + 1];
    memset(expected[0], 'a', 2 * large_bytes);
    memset(expected[1], 'b', 2 * large_bytes);
    cr_expect(stream_is(BUGPACK_SENT, expected[0]));
    cr_expect(stream_is(BUGPACK_RECEIVED, expected[1]));
    cr_expect(zero(u64, extent.cut_count));
    (void)pthread_barrier_destroy(&barrier);
}

/* Numbers of six digits, so that the ring turns over. */
static void fill_with_numbers(unsigned count) {
    char text[16];
    for (unsigned i = 0; i < count; i++) {
        (void)snprintf(text, sizeof text, "%06u", i);
        bp_traffic_append(traffic, BUGPACK_RECEIVED, i, NULL, text, 6);
    }
}

Test(traffic, shows_pinned_messages_after_the_ring_has_turned_over) {
    options.pin_bytes = 10;
    open_traffic(4096);
    send_text("hello");
    send_text("_greetings");
    fill_with_numbers(1000);
    print();
    cr_expect(stream_is(BUGPACK_SENT, "hello_gree"));
    cr_expect(eq(u64, extent.pinned_count, 2));
    cr_expect(eq(u64, extent.cut_count, 1));
    uint64_t in_ring = extent.message_count - 2;
    cr_expect(gt(u64, in_ring, 20));
    cr_expect(eq(u64, extent.missing_count, 1000 - in_ring));
    /* No hole in the numbers of either direction. */
    cr_expect(traffic_pcap_is_gapless(&pcap));
}

Test(traffic, shows_a_message_once_that_is_pinned_and_in_the_ring) {
    options.pin_bytes = 8;
    open_traffic(64 * 1024);
    send_text("hello");
    send_text(" greetings");
    send_text("!");
    print();
    cr_expect(stream_is(BUGPACK_SENT, "hello greetings!"));
    cr_expect(eq(u64, extent.message_count, 3));
    cr_expect(zero(u64, extent.pinned_count));
    cr_expect(zero(u64, extent.cut_count));
}

Test(traffic, stops_pinning_before_a_pin_is_evicted) {
    options.pin_bytes = 1u << 20; /* never reached by messages of no bytes */
    bp_ring *ring = NULL;
    bp_ring *pins = NULL;
    bp_traffic_identity identity;
    bp_traffic_identity_init(&identity, "main", 0, &options);
    cr_assert(zero(int, bp_ring_new(4096, &ring, NULL)));
    cr_assert(zero(int, bp_ring_new(4096, &pins, NULL)));
    cr_assert(zero(int, bp_traffic_new(&identity, &options, NULL, ring, pins, &traffic, NULL)));
    send_text("first");
    for (int i = 0; i < 10000; i++) {
        bp_traffic_append(traffic, BUGPACK_SENT, 0, NULL, "", 0);
    }
    bp_traffic_snapshot snapshots;
    CLEANUP(bp_temp_file_release) bp_temp_file records;
    cr_assert(zero(int, bp_temp_file_open(&records, dir.fd, 1 << 20, NULL)));
    cr_assert(zero(
        int, (int)bp_traffic_take_snapshot(traffic, UINT64_MAX, 0, &records, &snapshots, NULL)));
    cr_expect(eq(u64, snapshots.pins_view.first_sequence, 1));
    cr_expect(zero(u64, snapshots.pins_view.evicted_count));
    cr_expect(zero(u64, snapshots.pins_view.refused_count));
    cr_expect(gt(u64, snapshots.pins_view.record_count, 4096 / 64 / 2));
}

Test(traffic, pins_as_much_as_was_asked_for_in_one_message) {
    options.pin_bytes = 50000;
    open_traffic(1 << 20);
    CLEANUP(free_memory) char *bytes = calloc(1, 60000);
    bp_traffic_append(traffic, BUGPACK_SENT, 0, "a name of thirty-two bytes......", bytes, 60000);
    for (int i = 0; i < 30; i++) {
        bp_traffic_append(traffic, BUGPACK_RECEIVED, 0, NULL, bytes, 60000);
    }
    print();
    CLEANUP(bp_buffer_release) bp_buffer sent;
    traffic_pcap_stream(&pcap, 0, BUGPACK_SENT, &sent);
    cr_expect(eq(sz, sent.size, 50000));
}

Test(traffic, merges_channels_by_time) {
    bp_traffic *channels[3];
    for (uint32_t i = 0; i < 3; i++) {
        channels[i] = new_traffic(256 * 1024, i);
    }
    for (int i = 0; i < 300; i++) {
        send_to(channels[i * 7 % 3], "x");
    }
    print_until(channels, 3, UINT64_MAX);
    cr_expect(eq(u64, extent.message_count, 300));
    cr_expect(eq(sz, pcap.frame_count, 300 + 9));
    cr_expect(traffic_pcap_is_in_order(&pcap));
    cr_expect(traffic_pcap_is_gapless(&pcap));
    for (size_t i = 0, message = 0; i < pcap.frame_count; i++) {
        if (pcap.frames[i].payload_real > 0) {
            cr_assert(eq(u32, pcap.frames[i].number, message * 7 % 3));
            message++;
        }
    }
    for (size_t i = 0; i < 3; i++) {
        bp_traffic_free(channels[i]);
    }
}

Test(traffic, leaves_out_what_came_after_the_instant) {
    open_traffic(64 * 1024);
    send_text("before");
    uint64_t instant_ns = bp_clock_monotonic_ns();
    while (bp_clock_monotonic_ns() == instant_ns) {}
    send_text("after");
    print_until(&traffic, 1, instant_ns);
    cr_expect(stream_is(BUGPACK_SENT, "before"));
    cr_expect(eq(u64, extent.message_count, 1));
    print_until(&traffic, 1, 1);
    cr_expect(zero(u64, extent.message_count));
    cr_expect(zero(u64, extent.from_wall_ns));
    cr_expect(eq(sz, pcap.bytes.size, BP_PCAP_HEADER_BYTES));
}

Test(traffic, fails_when_the_pcap_has_no_room_and_leaves_the_extent_alone) {
    open_traffic(64 * 1024);
    fill_with_numbers(100);
    bp_traffic_snapshot snapshots;
    CLEANUP(bp_temp_file_release) bp_temp_file records;
    cr_assert(zero(int, bp_temp_file_open(&records, dir.fd, 1 << 20, NULL)));
    cr_assert(zero(
        int, (int)bp_traffic_take_snapshot(traffic, UINT64_MAX, 0, &records, &snapshots, NULL)));
    CLEANUP(bp_temp_file_release) bp_temp_file out;
    extent.message_count = 77;
    bugpack_error error;
    cr_assert(zero(int, bp_temp_file_open(&out, dir.fd, 1000, NULL)));
    bugpack_status status = bp_traffic_print_pcap(&records, &snapshots, 1, NULL, bp_temp_file_sink,
                                                  &out, &extent, &error);
    cr_expect(eq(int, status, BUGPACK_ERR_LIMIT));
    cr_expect(eq(u64, extent.message_count, 77));
}
