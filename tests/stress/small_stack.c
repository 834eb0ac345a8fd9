/*
 * How much of the host's stack each public call needs: no more than docs/EMBEDDING.md says.
 */
#include <bugpack/bugpack.h>
#include <bugpack/heap_state.h>
#include <bugpack/sample.h>

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/check.h"
#include "support/temp_dir.h"

/* What the page says. "Recording" is what a running session calls; the others open and read files.
 */
enum { recording_bytes = 10 * 1024, other_bytes = 64 * 1024, stack_bytes = 256 * 1024 };

static temp_dir dir;
static char homes_dir[300];
static bugpack_session *session;
static bugpack_channel *channel;

static void do_nothing(void) {
}

static void open_session(void) {
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    options.app_name = "small";
    options.report_dir = dir.path;
    options.recorder.dir = homes_dir;
    options.pedantic.is_enabled = true;
    options.sample_window_ms = 10;
    CHECK(bugpack_open(&options, &session, NULL) == BUGPACK_OK);
}

static void open_channel(void) {
    CHECK(bugpack_channel_open(session, "net", NULL, &channel, NULL) == BUGPACK_OK);
}

static void log_text(void) {
    bugpack_log(session, BUGPACK_LEVEL_INFO, "net", "%s %d %f", "text", 1, 2.5);
}

static void notify(void) {
    bugpack_notify(session, BUGPACK_LEVEL_INFO, "net", NULL, "%s %d", "text", 1);
}

static void record_traffic(void) {
    bugpack_traffic(channel, BUGPACK_SENT, 1, "word", "word", 4);
}

static int provide_state(bugpack_writer *writer, void *context) {
    (void)context;
    return bugpack_printf(writer, "{}");
}

static void meet_gap(void) {
    bugpack_gap_with_state(session, "net:7", provide_state, NULL);
    bugpack_gap_unknown(session, "net", 9, "bytes", 5);
}

static void trigger(void) {
    (void)bugpack_report_async(session, NULL, NULL, NULL, NULL);
    (void)bugpack_disconnect(session, "net", "reset", NULL, NULL);
    uint64_t retained = 0;
    bugpack_notify(session, BUGPACK_LEVEL_WARN, "net", &retained, "retained");
}

static void take_report(void) {
    CHECK(bugpack_report(session, NULL, NULL, NULL) == BUGPACK_OK);
}

static void take_event(void) {
    static bugpack_event event = BUGPACK_EVENT_INIT;
    (void)bugpack_events_fd(session, NULL);
    (void)bugpack_next_event(session, &event);
}

static void flush_and_tag(void) {
    (void)bugpack_set_tag(session, "key", "value", NULL);
    (void)bugpack_flush(session, BUGPACK_OFF, NULL);
}

static void sample(void) {
    char *json = NULL;
    CHECK(bugpack_sample(getpid(), 10, &json, NULL, NULL) == BUGPACK_OK);
    bugpack_free(json);
}

static void read_heaps(void) {
    static bugpack_heap_state state = BUGPACK_HEAP_STATE_INIT;
    (void)!bugpack_heap_state_read(&state, NULL);
}

static void count_report(const bugpack_report_result *result, void *count) {
    CHECK(result->status == BUGPACK_OK);
    (*(unsigned *)count)++;
}

static void recover(void) {
    unsigned count = 0;
    CHECK(bugpack_recover(&(bugpack_recover_options){.struct_size = sizeof(bugpack_recover_options),
                                                     .recorder_dir = homes_dir,
                                                     .on_report = count_report,
                                                     .context = &count},
                          NULL) == BUGPACK_OK);
    CHECK(count == 1);
}

static void close_session(void) {
    bugpack_close(session);
}

static void *run(void *call) {
    (*(void (*const *)(void))call)();
    return NULL;
}

/* How much of a stack full of marks the call has touched; what starting a thread takes included. */
static size_t measure(void (*call)(void)) {
    enum { mark = 0xa5 };
    pthread_attr_t attributes;
    pthread_t thread;
    size_t untouched = 0;
    unsigned char *stack =
        mmap(NULL, stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(stack != MAP_FAILED && pthread_attr_init(&attributes) == 0);
    memset(stack, mark, stack_bytes);
    CHECK(pthread_attr_setstack(&attributes, stack, stack_bytes) == 0);
    CHECK(pthread_create(&thread, &attributes, run, &call) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(pthread_attr_destroy(&attributes) == 0);
    while (stack[untouched] == mark) {
        untouched++;
    }
    CHECK(munmap(stack, stack_bytes) == 0);
    return stack_bytes - untouched;
}

static void die_with_a_session(void) {
    pid_t dying = fork();
    if (dying == 0) {
        open_session();
        log_text();
        _exit(0);
    }
    CHECK(waitpid(dying, NULL, 0) == dying);
}

int main(void) {
    static const struct {
        const char *name;
        void (*call)(void);
        size_t limit_bytes;
    } calls[] = {{"open", open_session, other_bytes},
                 {"channel", open_channel, other_bytes},
                 {"log", log_text, recording_bytes},
                 {"notify", notify, recording_bytes},
                 {"traffic", record_traffic, recording_bytes},
                 {"gap", meet_gap, recording_bytes},
                 {"triggers", trigger, recording_bytes},
                 {"report", take_report, recording_bytes},
                 {"events", take_event, recording_bytes},
                 {"flush, tag", flush_and_tag, recording_bytes},
                 {"sample", sample, other_bytes},
                 {"heaps", read_heaps, other_bytes},
                 {"close", close_session, other_bytes},
                 {"recover", recover, other_bytes}};
    CHECK(temp_dir_make(&dir));
    (void)snprintf(homes_dir, sizeof homes_dir, "%s/homes", dir.path);
    size_t start_bytes = measure(do_nothing);
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        if (calls[i].call == recover) {
            die_with_a_session();
        }
        size_t bytes = measure(calls[i].call) - start_bytes;
        (void)printf("%-12s %6zu of %zu bytes\n", calls[i].name, bytes, calls[i].limit_bytes);
        CHECK(bytes <= calls[i].limit_bytes);
    }
    temp_dir_remove(&dir);
    return 0;
}
