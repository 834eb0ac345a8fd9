#include "recorder/log_recorder.h"

#include <pthread.h>

#include "base/clock.h"
#include "platform/thread.h"
#include "support/temp_dir.h"
#include "unit/unit.h"

static bp_ring *ring; /* the recorder's */

static bp_log_recorder *new_small_recorder(size_t ring_bytes, bugpack_level level) {
    bp_log_recorder *recorder = NULL;
    cr_assert(zero(int, bp_ring_new(ring_bytes, &ring, NULL)));
    cr_assert(zero(int, bp_log_recorder_new(ring, level, &recorder, NULL)));
    return recorder;
}

static bp_log_recorder *new_recorder(bugpack_level level) {
    return new_small_recorder(64 * 1024, level);
}

/* logs.jsonl, through spools as a report makes it. */
static bp_buffer print(bp_ring_view *view) {
    temp_dir dir;
    bp_temp_file records = BP_TEMP_FILE_INIT;
    bp_temp_file lines = BP_TEMP_FILE_INIT;
    bp_buffer out;
    bp_buffer_init(&out, 1 << 20);
    cr_assert(temp_dir_make(&dir));
    cr_assert(zero(int, bp_temp_file_open(&records, dir.fd, 1 << 20, NULL)));
    cr_assert(zero(int, bp_temp_file_open(&lines, dir.fd, 1 << 20, NULL)));
    cr_assert(zero(int, bp_ring_copy(ring, UINT64_MAX, bp_temp_file_sink, &records, view, NULL)));
    cr_assert(zero(int, bp_temp_file_flush(&records, NULL)));
    uint64_t wall_offset_ns = bp_clock_wall_ns() - bp_clock_monotonic_ns();
    cr_assert(zero(int, bp_log_print(&records, wall_offset_ns, bp_temp_file_sink, &lines, NULL)));
    cr_assert(zero(int, bp_temp_file_flush(&lines, NULL)));
    char *text = bp_buffer_reserve(&out, lines.size);
    cr_assert(eq(i64, bp_temp_file_read(&lines, 0, text, lines.size), (int64_t)lines.size));
    bp_buffer_commit(&out, lines.size);
    bp_temp_file_release(&records);
    bp_temp_file_release(&lines);
    temp_dir_remove(&dir);
    return out;
}

static void *log_once(void *recorder) {
    pthread_setname_np(pthread_self(), "render");
    bp_log_recorder_append(recorder, BUGPACK_LEVEL_WARN, "display", "cache miss", 10, false);
    return NULL;
}

Test(log_recorder, writes_one_object_a_line_with_channel_thread_and_both_clocks) {
    bp_log_recorder *recorder = new_recorder(BUGPACK_LEVEL_TRACE);
    pthread_t thread;
    cr_assert(zero(int, pthread_create(&thread, NULL, log_once, recorder)));
    pthread_join(thread, NULL);
    bp_ring_view view;
    CLEANUP(bp_buffer_release) bp_buffer out = print(&view);
    const char *line = bp_buffer_text(&out);
    cr_assert(eq(ptr, strstr(line, "{\"seq\":1,\"time\":\"20"), line));
    cr_assert(ne(ptr, strstr(line, "Z\",\"monotonic_ns\":"), NULL));
    cr_assert(ne(ptr, strstr(line, "\"level\":\"warn\",\"channel\":\"display\",\"tid\":"), NULL));
    cr_assert(ne(ptr, strstr(line, ",\"thread\":\"render\",\"message\":\"cache miss\"}\n"), NULL));
    cr_assert(eq(u64, view.record_count, 1));
    cr_assert(eq(u64, view.first_ns, view.last_ns));
    bp_log_recorder_free(recorder);
}

static void *rename_between_records(void *context) {
    bp_log_recorder *recorder = context;
    pthread_setname_np(pthread_self(), "before");
    bp_log_recorder_append(recorder, BUGPACK_LEVEL_INFO, NULL, "first", 5, false);
    pthread_setname_np(pthread_self(), "after");
    bp_log_recorder_append(recorder, BUGPACK_LEVEL_INFO, NULL, "between", 7, false);
    bp_clock_sleep_until(bp_clock_monotonic_ns() + BP_THREAD_NAME_STALE_NS);
    bp_log_recorder_append(recorder, BUGPACK_LEVEL_INFO, NULL, "last", 4, false);
    return NULL;
}

Test(log_recorder, shows_the_new_name_of_a_thread_when_the_old_one_is_stale) {
    bp_log_recorder *recorder = new_recorder(BUGPACK_LEVEL_TRACE);
    pthread_t thread;
    cr_assert(zero(int, pthread_create(&thread, NULL, rename_between_records, recorder)));
    pthread_join(thread, NULL);
    bp_ring_view view;
    CLEANUP(bp_buffer_release) bp_buffer out = print(&view);
    const char *text = bp_buffer_text(&out);
    cr_assert(ne(ptr, strstr(text, "\"thread\":\"before\",\"message\":\"first\""), NULL));
    cr_assert(ne(ptr, strstr(text, "\"thread\":\"after\",\"message\":\"last\""), NULL));
    bp_log_recorder_free(recorder);
}

Test(log_recorder, makes_hostile_bytes_valid_and_keeps_records_apart) {
    bp_log_recorder *recorder = new_recorder(BUGPACK_LEVEL_TRACE);
    const char hostile[] = "a\nb\"}\xff\0c";
    bp_log_recorder_append(recorder, BUGPACK_LEVEL_ERROR, "x\xfe", hostile, sizeof hostile - 1,
                           false);
    bp_log_recorder_append(recorder, BUGPACK_LEVEL_INFO, NULL, "next", 4, false);
    bp_ring_view view;
    CLEANUP(bp_buffer_release) bp_buffer out = print(&view);
    const char *second = strchr(bp_buffer_text(&out), '\n');
    cr_assert(ne(ptr, second, NULL));
    cr_assert(eq(ptr, strstr(second + 1, "{\"seq\":2,"), (second + 1)));
    /* U+EFFF is the byte 0xff, U+EF00 the NUL (base/utf8.h) */
    cr_assert(ne(ptr,
                 strstr(bp_buffer_text(&out), "\"message\":\"a\\nb\\\"}\xEE\xBF\xBF\xEE\xBC\x80"
                                              "c\"}"),
                 NULL));
    cr_assert(eq(ptr, strstr(second + 1, "channel"), NULL), "no channel was given");
    bp_log_recorder_free(recorder);
}

Test(log_recorder, cuts_a_long_message_at_a_character_and_says_so) {
    bp_log_recorder *recorder = new_recorder(BUGPACK_LEVEL_TRACE);
    char message[BUGPACK_LOG_MESSAGE_MAX_BYTES + 2];
    memset(message, 'm', sizeof message);
    memcpy(message + BUGPACK_LOG_MESSAGE_MAX_BYTES - 1, "\xC3\xA4", 2); /* over the cut */
    bp_log_recorder_append(recorder, BUGPACK_LEVEL_INFO, "c", message, sizeof message, false);
    bp_ring_view view;
    CLEANUP(bp_buffer_release) bp_buffer out = print(&view);
    cr_assert(ne(ptr, strstr(bp_buffer_text(&out), "mmm\",\"truncated\":true}"), NULL));
    cr_assert(eq(ptr, strchr(bp_buffer_text(&out), '\xC3'), NULL));
    bp_log_recorder_free(recorder);
}

Test(log_recorder, cuts_a_long_channel_at_a_character_and_says_so) {
    bp_log_recorder *recorder = new_recorder(BUGPACK_LEVEL_TRACE);
    char channel[BUGPACK_CHANNEL_MAX_BYTES + 2] = "";
    memset(channel, 'c', BUGPACK_CHANNEL_MAX_BYTES - 1);
    memcpy(channel + BUGPACK_CHANNEL_MAX_BYTES - 1, "\xC3\xA4", 2); /* over the cut */
    bp_log_recorder_append(recorder, BUGPACK_LEVEL_INFO, channel, "m", 1, false);
    channel[BUGPACK_CHANNEL_MAX_BYTES - 1] = 'd';
    channel[BUGPACK_CHANNEL_MAX_BYTES] = '\0'; /* just fits */
    bp_log_recorder_append(recorder, BUGPACK_LEVEL_INFO, channel, "m", 1, false);
    bp_ring_view view;
    CLEANUP(bp_buffer_release) bp_buffer out = print(&view);
    char *second = strchr(out.data, '\n');
    cr_assert(ne(ptr, second, NULL));
    *second++ = '\0';
    cr_assert(ne(ptr, strstr(out.data, "ccc\",\"tid\":"), NULL));
    cr_assert(ne(ptr, strstr(out.data, "\"m\",\"truncated\":true}"), NULL), "%s", out.data);
    cr_assert(ne(ptr, strstr(second, "cccd\",\"tid\":"), NULL));
    cr_assert(eq(ptr, strstr(second, "truncated"), NULL));
    bp_log_recorder_free(recorder);
}

Test(log_recorder, cuts_a_message_to_what_a_small_ring_takes) {
    bp_log_recorder *recorder = new_small_recorder(4096, BUGPACK_LEVEL_TRACE);
    char message[BUGPACK_LOG_MESSAGE_MAX_BYTES];
    memset(message, 'm', sizeof message);
    bp_log_recorder_append(recorder, BUGPACK_LEVEL_INFO, NULL, message, sizeof message, false);
    bp_ring_view view;
    CLEANUP(bp_buffer_release) bp_buffer out = print(&view);
    cr_assert(eq(u64, view.record_count, 1));
    cr_assert(zero(u64, view.refused_count));
    cr_assert(ne(ptr, strstr(bp_buffer_text(&out), "mmm\",\"truncated\":true}"), NULL));
    bp_log_recorder_free(recorder);
}

Test(log_recorder, wants_only_what_is_severe_enough) {
    bp_log_recorder *recorder = new_recorder(BUGPACK_LEVEL_INFO);
    cr_assert(not(bp_log_recorder_wants(recorder, BUGPACK_LEVEL_DEBUG)));
    cr_assert(bp_log_recorder_wants(recorder, BUGPACK_LEVEL_INFO));
    cr_assert(bp_log_recorder_wants(recorder, BUGPACK_LEVEL_FATAL));
    cr_assert(not(bp_log_recorder_wants(recorder, (bugpack_level)99)));
    bp_log_recorder_free(recorder);
}
