/*
 * Records of samples as the kernel writes them, and what becomes of stacks: lines.
 */
#include "base/clock.h"
#include "model/profile.h"
#include "platform/linux/perf_records.h"
#include "profile/profile.h"
#include "unit/unit.h"

enum {
    ring_bytes = 4096,
    type_mmap = 1,
    type_lost = 2,
    type_sample = 9,
    in_kernel = 1,
    in_user = 2
};

/* A ring that is written as the kernel does. */
static unsigned char ring[ring_bytes];
static unsigned char record[BP_PERF_RECORD_BYTES];

static void put(uint64_t at, const void *bytes, size_t byte_count) {
    for (size_t i = 0; i < byte_count; i++) {
        ring[(at + i) % ring_bytes] = ((const unsigned char *)bytes)[i];
    }
}

static uint64_t put_header(uint64_t at, uint32_t type, uint16_t misc, uint16_t size) {
    put(at, &type, sizeof type);
    put(at + 4, &misc, sizeof misc);
    put(at + 6, &size, sizeof size);
    return at + 8;
}

static uint64_t put_word(uint64_t at, uint64_t word) {
    put(at, &word, sizeof word);
    return at + sizeof word;
}

/* Of process 7, thread `tid`: 17 registers from 100 on, 16 bytes of stack of 24 that were asked
 * for. Its length. */
enum { sample_bytes = 8 + 8 + 8 + 8 + 17 * 8 + 8 + 24 + 8 };
static uint64_t put_sample(uint64_t at, uint16_t misc, uint64_t tid) {
    uint64_t begin = at;
    at = put_header(at, type_sample, misc, sample_bytes);
    at = put_word(at, 7 | tid << 32);
    at = put_word(at, 5000); /* when */
    at = put_word(at, 2);    /* 64 bits */
    for (uint64_t i = 0; i < 17; i++) {
        at = put_word(at, 100 + i);
    }
    at = put_word(at, 24);
    at = put_word(at, UINT64_C(0x1111111111111111));
    at = put_word(at, UINT64_C(0x2222222222222222));
    at = put_word(at, UINT64_C(0x3333333333333333));
    at = put_word(at, 16);
    return at - begin;
}

static bool parse(size_t byte_count, bp_perf_record *ret_record) {
    return bp_perf_parse(record, byte_count, &bp_perf_registers_x86_64, ret_record);
}

Test(profile, a_long_window_has_fewer_samples_a_second) {
    bp_profile_plan plan = {
        .pid = getpid(), .window_ns = 40 * BP_NS_PER_SEC, .timeout_ns = 60 * BP_NS_PER_SEC};
    bp_profiler *profiler = NULL;
    bp_profile profile;
    cr_assert(bp_profiler_begin(&plan, &profiler, &failure) == BUGPACK_OK);
    if (bp_profiler_end(profiler, &profile, &failure) != BUGPACK_OK) {
        cr_skip_test("%s", failure.message);
    }
    cr_expect(eq(ulong, profile.facts.rate_hz, 25));
    bp_profile_release(&profile);
}

Test(profile, a_sample_has_its_registers_by_their_dwarf_numbers_and_the_copied_stack) {
    bp_perf_record sample;
    cr_assert(eq(u64, put_sample(0, in_kernel, 9), sample_bytes));
    bp_perf_cursor cursor = bp_perf_forward(ring, ring_bytes, 0, sample_bytes);
    cr_assert(eq(sz, bp_perf_next(&cursor, record), sample_bytes));
    cr_assert(parse(sample_bytes, &sample));
    cr_expect(eq(int, sample.kind, BP_PERF_SAMPLE));
    cr_expect(eq(i32, sample.pid, 7));
    cr_expect(eq(i32, sample.tid, 9));
    cr_expect(eq(u64, sample.time_ns, 5000));
    cr_expect(sample.is_kernel);
    cr_expect(sample.has_registers);
    cr_expect(eq(u64, sample.registers[0], 100));  /* rax */
    cr_expect(eq(u64, sample.registers[1], 103));  /* rdx comes fourth */
    cr_expect(eq(u64, sample.registers[7], 107));  /* rsp */
    cr_expect(eq(u64, sample.registers[16], 108)); /* rip */
    cr_expect(eq(u64, sample.registers[15], 116)); /* r15 */
    cr_expect(eq(sz, sample.stack_bytes, 16));
    cr_expect(eq(int, sample.stack[15], 0x22));
    cr_expect(eq(sz, bp_perf_next(&cursor, record), 0));
    cr_expect(not(cursor.is_damaged));
}

Test(profile, records_are_read_across_the_end_of_the_ring_and_of_the_counter) {
    static const uint64_t starts[] = {ring_bytes - 4, 3 * ring_bytes - 100, UINT64_MAX - 55};
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
        bp_perf_record sample;
        uint64_t at = starts[i] & ~UINT64_C(7);
        uint64_t end = at + put_sample(at, in_user, 9);
        end += put_sample(end, in_user, 10);
        bp_perf_cursor cursor = bp_perf_forward(ring, ring_bytes, at, end);
        for (int tid = 9; tid <= 10; tid++) {
            cr_assert(eq(sz, bp_perf_next(&cursor, record), sample_bytes));
            cr_assert(parse(sample_bytes, &sample));
            cr_expect(eq(i32, sample.tid, tid));
            cr_expect(not(sample.is_kernel));
        }
        cr_expect(eq(sz, bp_perf_next(&cursor, record), 0));
        cr_expect(eq(u64, cursor.at, end));
    }
}

Test(profile, a_ring_that_is_written_backward_gives_the_newest_and_ends_at_what_was_overwritten) {
    bp_perf_record sample;
    uint64_t head = 0;
    memset(ring, 0, sizeof ring);
    for (int tid = 1; tid <= 40; tid++) { /* more than there is room for */
        head -= sample_bytes;
        (void)put_sample(head, in_user, (uint64_t)tid);
    }
    bp_perf_cursor cursor = bp_perf_backward(ring, ring_bytes, head);
    int count = 0;
    while (bp_perf_next(&cursor, record) > 0) {
        cr_assert(parse(sample_bytes, &sample));
        cr_expect(eq(i32, sample.tid, 40 - count));
        count++;
    }
    cr_expect(eq(int, count, ring_bytes / sample_bytes));
}

Test(profile, a_ring_that_is_not_full_ends_where_nothing_was_written) {
    memset(ring, 0, sizeof ring);
    (void)put_sample(0 - (uint64_t)sample_bytes, in_user, 1);
    bp_perf_cursor cursor = bp_perf_backward(ring, ring_bytes, 0 - (uint64_t)sample_bytes);
    cr_expect(eq(sz, bp_perf_next(&cursor, record), sample_bytes));
    cr_expect(eq(sz, bp_perf_next(&cursor, record), 0));
}

Test(profile, a_hostile_size_is_damage_and_ends_the_reading) {
    static const uint16_t sizes[] = {0, 4, 7, 12, 4104, UINT16_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        (void)put_header(0, type_sample, in_user, sizes[i]);
        bp_perf_cursor cursor = bp_perf_forward(ring, ring_bytes, 0, 64);
        cr_expect(eq(sz, bp_perf_next(&cursor, record), 0));
        cr_expect(cursor.is_damaged);
    }
    bp_perf_cursor cursor = bp_perf_forward(ring, ring_bytes, 0, 2 * ring_bytes);
    cr_expect(cursor.is_damaged, "more is unread than the ring holds");
    cr_expect(eq(sz, bp_perf_next(&cursor, record), 0));
}

Test(profile, each_shortened_sample_is_refused_and_leaves_the_output_alone) {
    (void)put_sample(0, in_user, 9);
    for (uint16_t size = 8; size < sample_bytes; size += 8) {
        bp_perf_record sample = {.kind = BP_PERF_LOST};
        (void)put_header(0, type_sample, in_user, size);
        memcpy(record, ring, size);
        cr_expect(not(parse(size, &sample)), "%d bytes", size);
        cr_expect(eq(int, sample.kind, BP_PERF_LOST));
    }
}

Test(profile, sizes_of_the_stack_that_cannot_be_are_refused) {
    enum { asked_at = sample_bytes - 8 - 24 - 8, copied_at = sample_bytes - 8 };
    bp_perf_record sample;
    (void)put_sample(0, in_user, 9);
    (void)put_word(copied_at, 25);
    memcpy(record, ring, sample_bytes);
    cr_expect(not(parse(sample_bytes, &sample)), "more was copied than asked for");
    (void)put_word(copied_at, 16);
    (void)put_word(asked_at, UINT64_MAX - 7);
    memcpy(record, ring, sample_bytes);
    cr_expect(not(parse(sample_bytes, &sample)), "more was asked for than the record has");
}

Test(profile, a_kernel_thread_has_no_registers_and_other_records_are_told_apart) {
    bp_perf_record found;
    uint64_t at = put_header(0, type_sample, in_kernel, 40);
    at = put_word(at, 7 | UINT64_C(9) << 32);
    at = put_word(at, 5000);
    at = put_word(at, 0); /* no registers */
    (void)put_word(at, 0);
    memcpy(record, ring, 40);
    cr_assert(parse(40, &found));
    cr_expect(not(found.has_registers));
    cr_expect(eq(sz, found.stack_bytes, 0));
    at = put_header(0, type_lost, 0, 24);
    at = put_word(at, 77);
    (void)put_word(at, 12);
    memcpy(record, ring, 24);
    cr_assert(parse(24, &found));
    cr_expect(eq(int, found.kind, BP_PERF_LOST));
    cr_expect(eq(u64, found.lost, 12));
    (void)put_header(0, type_mmap, in_user, 24);
    memcpy(record, ring, 24);
    cr_assert(parse(24, &found));
    cr_expect(eq(int, found.kind, BP_PERF_MAPPED));
}

static void add_frame(bp_buffer *line, const char *symbol, const char *demangled) {
    const bp_frame_text frame = {.symbol = symbol, .demangled = demangled};
    bp_folded_append_frame(line, &frame);
}

Test(profile, a_name_cannot_end_a_frame_or_a_line) {
    BUFFER(line, 65536);
    bp_folded_append_thread(&line, "a;b\nc 12", 20);
    add_frame(&line, "main@@V_1;2", NULL);
    add_frame(&line, "_R", "<[u8; 4] as app::Price>::all");
    add_frame(&line, "_Z", "void app::run<int>(int, char const*)");
    add_frame(&line, "hot\r\n;9.constprop.0", NULL);
    cr_expect(eq(str, bp_buffer_text(&line),
                 "a:b?c 12;main;<[u8: 4] as app::Price>::all;app::run<int>;hot??:9"));
    bp_buffer_clear(&line);
    bp_folded_append_thread(&line, "", 20);
    cr_expect(eq(str, bp_buffer_text(&line), "?"));
}

Test(profile, a_frame_without_a_name_has_its_file_and_one_without_a_file_is_made_code) {
    BUFFER(line, 65536);
    const bp_frame_text unnamed = {.module = "/opt/a;b/libfoo.so", .file_address = 0x1234};
    const bp_frame_text made = {.address = 0x7f00};
    const bp_frame_text handler = {.is_signal = true, .symbol = "__restore_rt"};
    bp_folded_append_frame(&line, &unnamed);
    bp_folded_append_frame(&line, &made);
    bp_folded_append_frame(&line, &handler);
    cr_expect(eq(str, bp_buffer_text(&line), ";[libfoo.so+0x1234];[jit];<signal handler called>"));
}

Test(profile, equal_stacks_are_one_line_and_the_most_frequent_is_first) {
    CLEANUP(bp_folded_release) bp_folded folded = {.lines = NULL};
    char text[16];
    BUFFER(out, 1 << 20);
    for (int i = 0; i < 2000; i++) {
        (void)snprintf(text, sizeof text, "t;f%d", i % 1000);
        cr_assert(eq(int, bp_folded_add(&folded, text, strlen(text), 1), BUGPACK_OK));
    }
    cr_assert(eq(int, bp_folded_add(&folded, "t;hot", 5, 182), BUGPACK_OK));
    cr_assert(eq(int, bp_folded_print(&folded, &out, NULL), BUGPACK_OK));
    cr_expect(eq(sz, folded.count, 1001));
    cr_expect(eq(int, strncmp(out.data, "t;hot 182\nt;f0 2\nt;f1 2\nt;f10 2\n", 31), 0));
}

Test(profile, lines_have_a_bound_and_known_ones_are_counted_beyond_it) {
    CLEANUP(bp_folded_release) bp_folded folded = {.lines = NULL};
    char text[16];
    for (int i = 0; i < BP_PROFILE_LINE_MAX; i++) {
        (void)snprintf(text, sizeof text, "t;f%d", i);
        cr_assert(eq(int, bp_folded_add(&folded, text, strlen(text), 1), BUGPACK_OK));
    }
    cr_expect(eq(int, bp_folded_add(&folded, "t;more", 6, 1), BUGPACK_ERR_LIMIT));
    cr_expect(eq(int, bp_folded_add(&folded, "t;f7", 4, 1), BUGPACK_OK));
}

Test(profile, a_name_has_no_control_character_and_no_separator) {
    BUFFER(line, 100);
    bp_folded_append_thread(&line, "a\x7f~\t;", 5);
    cr_expect(eq(str, bp_buffer_text(&line), "a?~?:"));
}
