#include "recorder/traffic.h"
#include "ring/ring.h"
#include "unit/dir.h"

static void write_record(bp_temp_file *temp_file, uint32_t tag, uint64_t sequence,
                         const bp_traffic_header *head, const char *rest, size_t rest_bytes) {
    static const char padding[8];
    size_t header_bytes = head == NULL ? 0 : sizeof *head;
    bp_ring_record record = {.sequence = sequence,
                             .monotonic_ns = 5000 - sequence, /* backwards */
                             .payload_bytes = (uint32_t)(header_bytes + rest_bytes),
                             .tag = tag};
    cr_assert(zero(int, bp_temp_file_write(temp_file, &record, sizeof record)));
    if (head != NULL) {
        cr_assert(zero(int, bp_temp_file_write(temp_file, head, sizeof *head)));
    }
    cr_assert(zero(int, bp_temp_file_write(temp_file, rest, rest_bytes)));
    cr_assert(zero(int, bp_temp_file_write(temp_file, padding, -record.payload_bytes % 8)));
}

static bp_traffic_extent print(bp_temp_file *records, uint64_t *ret_size) {
    const bp_traffic_snapshot frozen = {.messages = {0, records->size}};
    bp_temp_file out;
    bp_traffic_extent extent;
    cr_assert(zero(int, bp_temp_file_open(&out, dir.fd, 1 << 20, NULL)));
    cr_assert(zero(int, bp_traffic_print_pcap(records, &frozen, 1, NULL, bp_temp_file_sink, &out,
                                              &extent, NULL)));
    *ret_size = out.size;
    bp_temp_file_release(&out);
    return extent;
}

DIR_SUITE(traffic_record);

Test(traffic_record, passes_over_records_that_make_no_sense) {
    CLEANUP(bp_temp_file_release) bp_temp_file records;
    bp_temp_file *temp_file = &records;
    cr_assert(zero(int, bp_temp_file_open(temp_file, dir.fd, 1 << 20, NULL)));
    const bp_traffic_header good = {.original_bytes = 3, .name_bytes = 4};
    const bp_traffic_header no_direction = {.direction = 2};
    const bp_traffic_header long_name = {.name_bytes = 33};
    const bp_traffic_header name_over_the_end = {.name_bytes = 30};
    const bp_traffic_header shorter_than_kept = {.original_bytes = 1, .name_bytes = 4};
    write_record(temp_file, BP_TRAFFIC_TAG_MESSAGE, 1, &good, "typeabc", 7);
    write_record(temp_file, 9, 2, &good, "typeabc", 7);
    write_record(temp_file, BP_TRAFFIC_TAG_MESSAGE, 3, &no_direction, "", 0);
    write_record(temp_file, BP_TRAFFIC_TAG_MESSAGE, 4, &long_name,
                 "0123456789012345678901234567890123456789", 40);
    write_record(temp_file, BP_TRAFFIC_TAG_MESSAGE, 5, &name_over_the_end, "short", 5);
    write_record(temp_file, BP_TRAFFIC_TAG_MESSAGE, 6, NULL, "tiny", 4);
    write_record(temp_file, BP_TRAFFIC_TAG_PIN, 7, NULL, "tiny", 4);
    write_record(temp_file, BP_TRAFFIC_TAG_MESSAGE, 8, &shorter_than_kept, "typedefg", 8);
    uint64_t size;
    bp_traffic_extent extent = print(&records, &size);
    cr_expect(eq(u64, extent.message_count, 2));
    cr_expect(eq(u64, extent.missing_count, 6));
    cr_expect(zero(u64, extent.cut_count));
    cr_expect(eq(u64, extent.from_wall_ns, extent.to_wall_ns)); /* not backwards */
    cr_expect(eq(u64, size, BP_PCAP_HEADER_BYTES + 78 + 78 + 70 + 73 + 74));
}

Test(traffic_record, ends_where_the_spool_does) {
    const bp_traffic_header head = {.original_bytes = 3};
    for (size_t cut = 1; cut < 48; cut++) {
        CLEANUP(bp_temp_file_release) bp_temp_file records;
        bp_temp_file *temp_file = &records;
        cr_assert(zero(int, bp_temp_file_open(temp_file, dir.fd, 1 << 20, NULL)));
        write_record(temp_file, BP_TRAFFIC_TAG_MESSAGE, 1, &head, "abc", 3);
        bp_ring_record record = {
            .sequence = 2, .payload_bytes = 1u << 30, .tag = BP_TRAFFIC_TAG_MESSAGE};
        unsigned char bytes[48] = {0};
        memcpy(bytes, &record, sizeof record);
        cr_assert(zero(int, bp_temp_file_write(temp_file, bytes, cut)));
        uint64_t size;
        cr_expect(eq(u64, print(&records, &size).message_count, 1));
    }
}

Test(traffic_record, chooses_ports_where_the_host_says_none) {
    bugpack_channel_options options = BUGPACK_CHANNEL_OPTIONS_INIT;
    options.pin_bytes = 4096;
    bp_traffic_identity identity;
    bp_traffic_identity_init(&identity, "main", 3, &options);
    cr_expect(eq(u16, identity.host_port, 49155));
    cr_expect(eq(u16, identity.peer_port, 61443));
    options.host_is_server = true;
    options.peer_port = 5;
    bp_traffic_identity_init(&identity, "main", 3, &options);
    cr_expect(eq(u16, identity.host_port, 61443));
    cr_expect(eq(u16, identity.peer_port, 5));
}
