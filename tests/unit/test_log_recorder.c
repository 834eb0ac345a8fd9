#include "recorder/log_recorder.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <pthread.h>
#include <string.h>

static bp_log_recorder *new_recorder(bugpack_level level) {
    bp_log_recorder *recorder = NULL;
    cr_assert(zero(int, (int)bp_log_recorder_new(64 * 1024, level, &recorder, NULL)));
    return recorder;
}

static bp_buffer print(bp_log_recorder *recorder, bp_log_extent *extent) {
    bp_buffer out;
    bp_buffer_init(&out, 1 << 20);
    cr_assert(zero(int, (int)bp_log_recorder_print(recorder, UINT64_MAX, &out, extent, NULL)));
    return out;
}

static void *log_once(void *recorder) {
    pthread_setname_np(pthread_self(), "render");
    bp_log_recorder_append(recorder, BUGPACK_WARN, "display", "cache miss", 10, false);
    return NULL;
}

Test(log_recorder, writes_one_object_a_line_with_channel_thread_and_both_clocks) {
    bp_log_recorder *recorder = new_recorder(BUGPACK_TRACE);
    pthread_t thread;
    cr_assert(zero(int, pthread_create(&thread, NULL, log_once, recorder)));
    pthread_join(thread, NULL);
    bp_log_extent extent;
    bp_buffer out = print(recorder, &extent);
    const char *line = bp_buffer_text(&out);
    cr_assert(eq(ptr, (void *)(uintptr_t)strstr(line, "{\"seq\":1,\"time\":\"20"),
                 (void *)(uintptr_t)line));
    cr_assert(ne(ptr, (void *)strstr(line, "Z\",\"monotonic_ns\":"), NULL));
    cr_assert(
        ne(ptr, (void *)strstr(line, "\"level\":\"warn\",\"channel\":\"display\",\"tid\":"), NULL));
    cr_assert(ne(ptr, (void *)strstr(line, ",\"thread\":\"render\",\"message\":\"cache miss\"}\n"),
                 NULL));
    cr_assert(eq(u64, extent.view.record_count, 1));
    cr_assert(gt(u64, extent.from_wall_ns, 0));
    cr_assert(eq(u64, extent.from_wall_ns, extent.to_wall_ns));
    bp_buffer_release(&out);
    bp_log_recorder_free(recorder);
}

Test(log_recorder, makes_hostile_bytes_valid_and_keeps_records_apart) {
    bp_log_recorder *recorder = new_recorder(BUGPACK_TRACE);
    const char hostile[] = "a\nb\"}\xff\0c";
    bp_log_recorder_append(recorder, BUGPACK_ERROR, "x\xfe", hostile, sizeof hostile - 1, false);
    bp_log_recorder_append(recorder, BUGPACK_INFO, NULL, "next", 4, false);
    bp_log_extent extent;
    bp_buffer out = print(recorder, &extent);
    const char *second = strchr(bp_buffer_text(&out), '\n');
    cr_assert(ne(ptr, (void *)(uintptr_t)second, NULL));
    cr_assert(eq(ptr, (void *)(uintptr_t)strstr(second + 1, "{\"seq\":2,"),
                 (void *)(uintptr_t)(second + 1)));
    /* U+EFFF is the byte 0xff, U+EF00 the NUL (base/utf8.h) */
    cr_assert(
        ne(ptr,
           (void *)strstr(bp_buffer_text(&out), "\"message\":\"a\\nb\\\"}\xEE\xBF\xBF\xEE\xBC\x80"
                                                "c\"}"),
           NULL));
    cr_assert(eq(ptr, (void *)strstr(second + 1, "channel"), NULL), "no channel was given");
    bp_buffer_release(&out);
    bp_log_recorder_free(recorder);
}

Test(log_recorder, cuts_a_long_message_at_a_character_and_says_so) {
    bp_log_recorder *recorder = new_recorder(BUGPACK_TRACE);
    char message[BUGPACK_LOG_MESSAGE_MAX_BYTES + 2];
    memset(message, 'm', sizeof message);
    memcpy(message + BUGPACK_LOG_MESSAGE_MAX_BYTES - 1, "\xC3\xA4", 2); /* over the cut */
    bp_log_recorder_append(recorder, BUGPACK_INFO, "c", message, sizeof message, false);
    bp_log_extent extent;
    bp_buffer out = print(recorder, &extent);
    cr_assert(ne(ptr, (void *)strstr(bp_buffer_text(&out), "mmm\",\"truncated\":true}"), NULL));
    cr_assert(eq(ptr, (void *)strchr(bp_buffer_text(&out), '\xC3'), NULL));
    bp_buffer_release(&out);
    bp_log_recorder_free(recorder);
}

Test(log_recorder, cuts_a_long_channel_at_a_character_and_says_so) {
    bp_log_recorder *recorder = new_recorder(BUGPACK_TRACE);
    char channel[BUGPACK_CHANNEL_MAX_BYTES + 2] = "";
    memset(channel, 'c', BUGPACK_CHANNEL_MAX_BYTES - 1);
    memcpy(channel + BUGPACK_CHANNEL_MAX_BYTES - 1, "\xC3\xA4", 2); /* over the cut */
    bp_log_recorder_append(recorder, BUGPACK_INFO, channel, "m", 1, false);
    channel[BUGPACK_CHANNEL_MAX_BYTES - 1] = 'd';
    channel[BUGPACK_CHANNEL_MAX_BYTES] = '\0'; /* just fits */
    bp_log_recorder_append(recorder, BUGPACK_INFO, channel, "m", 1, false);
    bp_log_extent extent;
    bp_buffer out = print(recorder, &extent);
    char *second = strchr(out.data, '\n');
    cr_assert(ne(ptr, second, NULL));
    *second++ = '\0';
    cr_assert(ne(ptr, strstr(out.data, "ccc\",\"tid\":"), NULL));
    cr_assert(ne(ptr, strstr(out.data, "\"m\",\"truncated\":true}"), NULL), "%s", out.data);
    cr_assert(ne(ptr, strstr(second, "cccd\",\"tid\":"), NULL));
    cr_assert(eq(ptr, strstr(second, "truncated"), NULL));
    bp_buffer_release(&out);
    bp_log_recorder_free(recorder);
}

Test(log_recorder, cuts_a_message_to_what_a_small_ring_takes) {
    bp_log_recorder *recorder = NULL;
    cr_assert(zero(int, (int)bp_log_recorder_new(4096, BUGPACK_TRACE, &recorder, NULL)));
    char message[BUGPACK_LOG_MESSAGE_MAX_BYTES];
    memset(message, 'm', sizeof message);
    bp_log_recorder_append(recorder, BUGPACK_INFO, NULL, message, sizeof message, false);
    bp_log_extent extent;
    bp_buffer out = print(recorder, &extent);
    cr_assert(eq(u64, extent.view.record_count, 1));
    cr_assert(zero(u64, extent.view.refused_count));
    cr_assert(ne(ptr, (void *)strstr(bp_buffer_text(&out), "mmm\",\"truncated\":true}"), NULL));
    bp_buffer_release(&out);
    bp_log_recorder_free(recorder);
}

Test(log_recorder, wants_only_what_is_severe_enough) {
    bp_log_recorder *recorder = new_recorder(BUGPACK_INFO);
    cr_assert(not(bp_log_recorder_wants(recorder, BUGPACK_DEBUG)));
    cr_assert(bp_log_recorder_wants(recorder, BUGPACK_INFO));
    cr_assert(bp_log_recorder_wants(recorder, BUGPACK_FATAL));
    cr_assert(not(bp_log_recorder_wants(recorder, (bugpack_level)99)));
    bp_log_recorder_free(recorder);
}
