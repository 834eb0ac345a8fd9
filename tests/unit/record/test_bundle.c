/*
 * What is streamed, and what is added from memory, become entries and lines of the manifest.
 */
#include <semaphore.h>
#include <signal.h>
#include <sys/resource.h>

#include "base/utf8.h"
#include "report/bundle.h"
#include "report/runner.h"
#include "support/report_reader.h"
#include "support/temp_dir.h"
#include "unit/redacted.h"
#include "unit/unit.h"

static temp_dir dir;
static char text[700000];

static void set_up(void) {
    cr_assert(temp_dir_make(&dir));
    for (size_t i = 0; i < sizeof text; i++) {
        text[i] = (char)('a' + (i * i) % 23 + i % 3);
    }
}

static void tear_down(void) {
    temp_dir_remove(&dir);
}

TestSuite(bundle, .init = set_up, .fini = tear_down);

static const uint64_t wall_ns = 1774751400000000000u;

static bp_bundle *new_bundle(void) {
    const bp_bundle_target target = {.dir_fd = dir.fd,
                                     .dir_name = dir.path,
                                     .report_id = "00000000000000000000000000000000",
                                     .wall_ns = wall_ns};
    bp_bundle *bundle = NULL;
    cr_assert(eq(int, bp_bundle_new(&target, &bundle, NULL), 0));
    return bundle;
}

static void stream_into(bp_bundle *bundle, const char *name, bugpack_writer *writer,
                        size_t byte_count, size_t limit_bytes) {
    bp_writer_init(writer, limit_bytes);
    cr_assert(eq(int, bp_bundle_begin(bundle, name, writer, NULL), 0));
    (void)bugpack_write(writer, text, byte_count);
}

static void add(bp_bundle *bundle, const char *name, bugpack_writer *writer) {
    cr_assert(eq(int, bp_bundle_add(bundle, name, writer, NULL), 0));
    cr_expect(eq(sz, writer->content.size, 0));
    bp_writer_release(writer);
}

/* Publishes and frees the bundle; the path of the zip. */
static const char *publish(bp_bundle *bundle) {
    static char path[600];
    char name[256];
    uint64_t zip_bytes = 0;
    cr_assert(bp_bundle_publish(bundle, &(bp_trigger_list){0}, "report", ".zip", name, sizeof name,
                                &zip_bytes, &failure) == BUGPACK_OK,
              "%s", failure.message);
    bp_bundle_free(bundle);
    cr_expect(eq(sz, temp_dir_count(&dir), 1));
    (void)snprintf(path, sizeof path, "%s/%s", dir.path, name);
    return path;
}

static void expect_entry(const char *path, const char *name, size_t byte_count) {
    size_t bytes = SIZE_MAX;
    CLEANUP(free_memory) char *entry = report_read(path, name, &bytes);
    cr_expect(ne(ptr, entry, NULL), "%s", name);
    cr_expect(eq(sz, bytes, byte_count), "%s", name);
    cr_expect(entry != NULL && memcmp(entry, text, byte_count) == 0, "%s", name);
}

static void expect_list(const char *path, const char *expected) {
    CLEANUP(free_memory) char *list = report_list(path);
    cr_assert(ne(ptr, list, NULL));
    cr_expect(eq(str, list, expected));
}

Test(bundle, streams_are_entries_with_their_bytes_in_the_manifest) {
    bp_bundle *bundle = new_bundle();
    bugpack_writer writer;
    static const size_t sizes[] = {0, 1, 70000, sizeof text};
    for (size_t i = 0; i < 4; i++) {
        char name[8];
        (void)snprintf(name, sizeof name, "s%zu", i);
        stream_into(bundle, name, &writer, sizes[i], SIZE_MAX / 4);
        cr_expect(le(sz, writer.content.capacity, 128 * 1024));
        add(bundle, name, &writer);
    }
    bp_writer_init(&writer, sizeof text);
    cr_assert(eq(int, bugpack_write(&writer, text, 1234), 0));
    add(bundle, "buffer", &writer);
    const char *path = publish(bundle);
    expect_entry(path, "s0", 0);
    expect_entry(path, "s1", 1);
    expect_entry(path, "s2", 70000);
    expect_entry(path, "s3", sizeof text);
    expect_entry(path, "buffer", 1234);
    cr_expect(report_entry_contains(path, "manifest.json", "\"bytes\": 70000"));
    cr_expect(report_entry_contains(path, "manifest.json", "\"bytes\": 700000"));
    cr_expect(report_entry_contains(path, "manifest.json", "\"complete\": true"));
}

Test(bundle, entries_are_in_the_order_of_the_format_whatever_was_first) {
    static const char *const names[] = {"mine", "logs.jsonl", "yours", "metadata.json"};
    bp_bundle *bundle = new_bundle();
    for (size_t i = 0; i < 4; i++) {
        bugpack_writer writer;
        stream_into(bundle, names[i], &writer, 100, SIZE_MAX / 4);
        add(bundle, names[i], &writer);
    }
    expect_list(publish(bundle), "metadata.json\nlogs.jsonl\nmine\nyours\nmanifest.json\n");
}

Test(bundle, an_entry_that_fails_costs_itself_alone) {
    bp_bundle *bundle = new_bundle();
    bugpack_writer writer;
    stream_into(bundle, "limit", &writer, 100, 99);
    add(bundle, "limit", &writer);
    (void)signal(SIGXFSZ, SIG_IGN);
    struct rlimit before;
    cr_assert(eq(int, getrlimit(RLIMIT_FSIZE, &before), 0));
    struct rlimit limit = {.rlim_cur = 2000, .rlim_max = before.rlim_max};
    cr_assert(eq(int, setrlimit(RLIMIT_FSIZE, &limit), 0));
    stream_into(bundle, "full", &writer, sizeof text, SIZE_MAX / 4);
    add(bundle, "full", &writer);
    stream_into(bundle, "good", &writer, 100, 100);
    add(bundle, "good", &writer);
    cr_assert(eq(int, setrlimit(RLIMIT_FSIZE, &before), 0));
    char missing[900];
    cr_expect(eq(uint, bp_bundle_missing(bundle, missing, sizeof missing), 2));
    cr_expect(strstr(missing, "limit: ") != NULL, "%s", missing);
    cr_expect(strstr(missing, "full: cannot write") != NULL, "%s", missing);
    cr_expect(strstr(missing, "File too large") != NULL, "%s", missing);
    const char *path = publish(bundle);
    expect_list(path, "good\nmanifest.json\n");
    expect_entry(path, "good", 100);
}

Test(bundle, a_refused_stream_is_out_and_a_truncated_one_is_in) {
    bp_bundle *bundle = new_bundle();
    bugpack_writer writer;
    stream_into(bundle, "refused", &writer, sizeof text, SIZE_MAX / 4);
    bp_writer_refuse(&writer, BP_ARTEFACT_FAILED, "no");
    add(bundle, "refused", &writer);
    stream_into(bundle, "cut", &writer, 0, 100);
    bp_writer_truncate(&writer, false, "some");
    add(bundle, "cut", &writer);
    stream_into(bundle, "released", &writer, 100, 100);
    bp_writer_release(&writer);
    expect_list(publish(bundle), "cut\nmanifest.json\n");
}

Test(bundle, what_is_not_published_leaves_nothing) {
    bp_bundle *bundle = new_bundle();
    bugpack_writer writer;
    stream_into(bundle, "one", &writer, sizeof text, SIZE_MAX / 4);
    bp_bundle_free(bundle);
    bp_buffer_release(&writer.content);
    cr_expect(eq(sz, temp_dir_count(&dir), 0));
    bp_bundle_free(NULL);
}

/* How a provider behaves: it writes `byte_count` bytes, waits for `gate`, and writes on. */
struct behaviour {
    size_t byte_count;
    int result;
    sem_t gate, late_is_done;
    bool hangs;
    bugpack_status late; /* of a write after nobody waits any more */
};

static int provide_state(bugpack_writer *writer, void *context) {
    struct behaviour *behaviour = context;
    (void)bugpack_write(writer, text, behaviour->byte_count);
    if (behaviour->hangs) {
        while (sem_wait(&behaviour->gate) != 0) {}
        behaviour->late = bugpack_write(writer, text, sizeof text);
        (void)sem_post(&behaviour->late_is_done);
    }
    return behaviour->result;
}

static void call(bp_bundle *bundle, const char *name, bugpack_provider_kind form,
                 struct behaviour *behaviour, size_t limit_bytes) {
    bp_provider_spec spec = {.name = name,
                             .form = form,
                             .provide = provide_state,
                             .context = behaviour,
                             .limit_bytes = limit_bytes,
                             .timeout_ms = behaviour->hangs ? 50 : 60000};
    bp_provider *provider = NULL;
    bp_runner runner;
    bugpack_writer writer;
    cr_assert(eq(int, bp_provider_new(&spec, &provider, NULL), 0));
    bp_runner_init(&runner, NULL, NULL);
    bp_writer_init(&writer, SIZE_MAX / 4);
    cr_assert(eq(int, bp_bundle_begin(bundle, name, &writer, NULL), 0));
    cr_assert(bp_runner_call(&runner, provider, NULL, &writer));
    add(bundle, name, &writer);
    bp_runner_release(&runner);
    bp_provider_drop(provider);
}

Test(bundle, a_provider_streams) {
    bp_bundle *bundle = new_bundle();
    struct behaviour whole = {.byte_count = sizeof text};
    struct behaviour failed = {.byte_count = sizeof text, .result = -1};
    struct behaviour large = {.byte_count = sizeof text};
    call(bundle, "bytes", BUGPACK_PROVIDE_BYTES, &whole, sizeof text);
    call(bundle, "text", BUGPACK_PROVIDE_TEXT, &whole, sizeof text);
    call(bundle, "failed", BUGPACK_PROVIDE_BYTES, &failed, sizeof text);
    call(bundle, "large", BUGPACK_PROVIDE_BYTES, &large, sizeof text - 1);
    char missing[900];
    cr_expect(eq(uint, bp_bundle_missing(bundle, missing, sizeof missing), 2));
    cr_expect(eq(str, missing,
                 "failed: the provider failed\nlarge: it is over the limit of 699999 bytes"));
    const char *path = publish(bundle);
    expect_list(path, "bytes\ntext\nmanifest.json\n");
    expect_entry(path, "bytes", sizeof text);
    expect_entry(path, "text", sizeof text);
}

/* In pieces of every size, sequences fall on every boundary of what is passed on at once. */
Test(bundle, text_is_made_valid_over_the_boundaries_of_pieces) {
    static const char pattern[] = "a\xe2\x82\xac\xf0\x9f\x98\x80\xff\xe2\x82";
    CLEANUP(bp_buffer_release) bp_buffer expected;
    for (size_t i = 0; i < sizeof text; i++) {
        text[i] = pattern[i % (sizeof pattern - 1)];
    }
    bp_buffer_init(&expected, SIZE_MAX / 4);
    cr_assert(eq(int, bp_utf8_encode(&expected, text, sizeof text), 0));
    bp_bundle *bundle = new_bundle();
    struct behaviour whole = {.byte_count = sizeof text};
    call(bundle, "text", BUGPACK_PROVIDE_TEXT, &whole, sizeof text);
    const char *path = publish(bundle);
    size_t bytes = 0;
    CLEANUP(free_memory) char *entry = report_read(path, "text", &bytes);
    cr_assert(ne(ptr, entry, NULL));
    cr_expect(eq(sz, bytes, expected.size));
    cr_expect(memcmp(entry, expected.data, bytes) == 0);
}

Test(bundle, a_provider_that_hangs_is_rolled_back_and_refused_later) {
    bp_bundle *bundle = new_bundle();
    struct behaviour hanging = {.byte_count = sizeof text, .hangs = true};
    struct behaviour whole = {.byte_count = sizeof text};
    cr_assert(eq(int, sem_init(&hanging.gate, 0, 0), 0));
    cr_assert(eq(int, sem_init(&hanging.late_is_done, 0, 0), 0));
    call(bundle, "hangs", BUGPACK_PROVIDE_BYTES, &hanging, SIZE_MAX / 4);
    call(bundle, "good", BUGPACK_PROVIDE_BYTES, &whole, SIZE_MAX / 4);
    const char *path = publish(bundle); /* the bundle is gone, the provider is not */
    (void)sem_post(&hanging.gate);
    while (sem_wait(&hanging.late_is_done) != 0) {}
    cr_expect(eq(int, hanging.late, BUGPACK_ERR_TIMEOUT));
    expect_list(path, "good\nmanifest.json\n");
    expect_entry(path, "good", sizeof text);
    cr_expect(report_entry_contains(path, "manifest.json", "\"status\": \"timed_out\""));
}

Test(bundle, the_space_it_needs_is_the_rings_and_the_zip_twice) {
    cr_expect(eq(u64, bp_bundle_needed_bytes(0), 2 << 20));
    cr_expect(gt(u64, bp_bundle_needed_bytes(50u << 20), 150u << 20));
    cr_expect(lt(u64, bp_bundle_needed_bytes(50u << 20), 160u << 20));
}

/* --- within a number of bytes ------------------------------------------------------------------
 */

enum { frame_count = 400, payload_bytes = 500 };

static void put_le32(unsigned char *at, size_t value) {
    for (unsigned i = 0; i < 4; i++) {
        at[i] = (unsigned char)(value >> 8 * i);
    }
}

/* A frame of bytes that do not compress; it begins with its number. */
static void make_frame(uint32_t number, unsigned char out[16 + payload_bytes]) {
    uint32_t state = number * 2654435761u + 1;
    memset(out, 0, 16);
    put_le32(out + 8, payload_bytes);
    put_le32(out + 12, payload_bytes);
    for (size_t i = 0; i < payload_bytes; i++) {
        state = state * 1664525u + 1013904223u;
        out[16 + i] = (unsigned char)(state >> 24);
    }
    put_le32(out + 16, number);
}

/* A message every second frame. */
static void add_traffic(bp_bundle *bundle) {
    bugpack_writer writer;
    unsigned char header[24] = "header of the capture", frame[16 + payload_bytes];
    stream_into(bundle, "traffic.pcap", &writer, 0, SIZE_MAX / 4);
    (void)bugpack_write(&writer, header, sizeof header);
    for (uint32_t i = 1; i <= frame_count; i++) {
        make_frame(i, frame);
        (void)bugpack_write(&writer, frame, sizeof frame);
    }
    writer.line.covers_from_wall_ns = wall_ns;
    writer.line.covers_to_wall_ns = wall_ns + 1000000000u;
    add(bundle, "traffic.pcap", &writer);
    stream_into(bundle, "traffic-index.jsonl", &writer, 0, SIZE_MAX / 4);
    for (unsigned i = 1; i <= frame_count; i += 2) {
        (void)bugpack_printf(&writer, "{\"frame\": %u, \"seq\": %u}\n", i, i);
    }
    add(bundle, "traffic-index.jsonl", &writer);
}

static bp_bundle *new_limited(uint64_t max_zip_bytes, const bp_rule_set *rules) {
    const bp_bundle_target target = {.dir_fd = dir.fd,
                                     .dir_name = dir.path,
                                     .report_id = "00000000000000000000000000000000",
                                     .max_zip_bytes = max_zip_bytes,
                                     .rules = rules,
                                     .wall_ns = wall_ns};
    bp_bundle *bundle = NULL;
    cr_assert(eq(int, bp_bundle_new(&target, &bundle, NULL), 0));
    return bundle;
}

Test(bundle, traffic_loses_its_oldest_frames_and_the_index_counts_those_left) {
    unsigned char expected[16 + payload_bytes];
    bp_bundle *bundle = new_limited(100000, NULL);
    add_traffic(bundle);
    const char *path = publish(bundle);
    size_t pcap_bytes = 0, index_bytes = 0;
    CLEANUP(free_memory) char *pcap = report_read(path, "traffic.pcap", &pcap_bytes);
    CLEANUP(free_memory) char *index = report_read(path, "traffic-index.jsonl", &index_bytes);
    cr_assert(pcap != NULL && index != NULL);
    size_t kept_count = (pcap_bytes - 24) / sizeof expected;
    cr_expect(eq(sz, pcap_bytes, 24 + kept_count * sizeof expected));
    cr_assert(gt(sz, kept_count, 50));
    cr_expect(lt(sz, kept_count, 200));
    cr_expect(zero(int, memcmp(pcap, "header of the capture", 21)));
    for (size_t i = 0; i < kept_count; i++) {
        make_frame((uint32_t)(frame_count - kept_count + 1 + i), expected);
        cr_assert(zero(int, memcmp(pcap + 24 + i * sizeof expected, expected, sizeof expected)));
    }
    char *line = index;
    unsigned frame = 0, message = 0, line_count = 0;
    for (; sscanf(line, "{\"frame\": %u, \"seq\": %u}", &frame, &message) == 2; line_count++) {
        cr_expect(eq(u32, frame + (frame_count - (unsigned)kept_count), message));
        line = strchr(line, '\n') + 1;
    }
    cr_expect(eq(u32, message, frame_count - 1));
    cr_expect(ge(u32, line_count, (unsigned)kept_count / 2));
    cr_expect(report_entry_contains(path, "manifest.json", "\"max_zip_bytes\": 100000"));
    cr_expect(report_entry_contains(path, "manifest.json", "\"to\": \""));
    cr_expect(not(report_entry_contains(path, "manifest.json", "\"from\": \"")));
    cr_expect(report_entry_contains(path, "manifest.json", "\"complete\": true"));
}

Test(bundle, an_attachment_goes_before_all_that_bugpack_knows) {
    bp_bundle *bundle = new_limited(300000, NULL);
    bugpack_writer writer;
    unsigned char frame[16 + payload_bytes];
    add_traffic(bundle);
    stream_into(bundle, "mine", &writer, 0, SIZE_MAX / 4);
    for (uint32_t i = 0; i < frame_count; i++) {
        make_frame(i, frame);
        (void)bugpack_write(&writer, frame, sizeof frame);
    }
    add(bundle, "mine", &writer);
    const char *path = publish(bundle);
    expect_list(path, "traffic.pcap\ntraffic-index.jsonl\nmanifest.json\n");
    cr_expect(report_entry_contains(path, "manifest.json", "\"status\": \"omitted\""));
    cr_expect(report_entry_contains(path, "manifest.json", "\"missing\": 1"));
}

Test(bundle, nothing_is_said_of_the_content_of_an_entry_that_is_left_out) {
    bp_rule_set *rules = redacted_set(NULL);
    bp_bundle *bundle = new_limited(65536, rules);
    bugpack_writer writer;
    unsigned char frame[16 + payload_bytes];
    stream_into(bundle, "mine", &writer, 0, SIZE_MAX / 4);
    for (uint32_t i = 0; i < frame_count; i++) {
        make_frame(i, frame);
        (void)bugpack_write(&writer, frame, sizeof frame);
    }
    cr_assert(eq(int, bp_bundle_add_exact(bundle, "display"), 0));
    add(bundle, "mine", &writer);
    stream_into(bundle, "notes", &writer, 100, SIZE_MAX / 4);
    add(bundle, "notes", &writer);
    const char *path = publish(bundle);
    expect_list(path, "notes\nmanifest.json\n");
    cr_expect(report_entry_contains(path, "manifest.json", "\"status\": \"omitted\""));
    cr_expect(not(report_entry_contains(path, "manifest.json", "\"exact_channels\"")));
    cr_expect(not(report_entry_contains(path, "manifest.json", "\"not_searched\"")));
    bp_rule_set_drop(rules);
}
