/*
 * A host of another version: compiled against generated headers (generate), run against today's
 * library. GENERATION is -1 where each versioned struct lacks its last field, 0 for today's, and 1
 * where each has a later_field. Its one argument is an empty directory. Prints what it was given.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <bugpack/bugpack.h>
#include <bugpack/heap_state.h>

enum { filler = 0xa5, canary_bytes = 64, struct_max_bytes = 16384 };

static const char *directory;
static bugpack_session *session;
static bugpack_error error;
static int failure_count;

static void expect(const char *type, const char *fact, bool is_so) {
    (void)printf("%s %s: %s\n", is_so ? "ok  " : "FAIL", type, fact);
    failure_count += !is_so;
}

typedef bugpack_status call(void *given);

/* The host's struct goes in; `given` has its size and its fields. */
static void check_input(const char *type, void *given, size_t bytes, call *pass) {
    const size_t no_bytes = 0;
    const uint64_t later_value = 1, later_default = 0;
    unsigned char *later_field = (unsigned char *)given + bytes - sizeof later_value;
    (void)memcpy(given, &no_bytes, sizeof no_bytes);
    expect(type, "without a size is refused", pass(given) == BUGPACK_ERR_INVALID);
    (void)memcpy(given, &bytes, sizeof bytes);
    if (GENERATION > 0) {
        (void)memcpy(later_field, &later_value, sizeof later_value);
        expect(type, "with a later field that is set is refused",
               pass(given) == BUGPACK_ERR_INVALID);
        (void)memcpy(later_field, &later_default, sizeof later_default);
    }
    expect(type, "is taken", pass(given) == BUGPACK_OK);
}

static bool is_filler(const unsigned char *bytes, size_t byte_count) {
    size_t i = 0;
    while (i < byte_count && bytes[i] == filler) {
        i++;
    }
    return i == byte_count;
}

/* The library fills the host's struct. True when it did, into `given`. */
static bool check_output(const char *type, void *given, size_t bytes, call *pass) {
    static _Alignas(max_align_t) unsigned char room[struct_max_bytes + canary_bytes];
    const size_t later_bytes = GENERATION > 0 ? sizeof(uint64_t) : 0;
    size_t size_after;
    if (bytes > struct_max_bytes) {
        expect(type, "is small enough for this test", false);
        return false;
    }
    (void)memset(room, filler, sizeof room);
    (void)memcpy(room, &bytes, sizeof bytes);
    bugpack_status status = pass(room);
    (void)memcpy(&size_after, room, sizeof size_after);
    expect(type, "keeps its size", size_after == bytes);
    expect(type, "is not written beyond what both know",
           is_filler(room + bytes - later_bytes, later_bytes + canary_bytes));
    expect(type, "is filled",
           status == BUGPACK_OK && !is_filler(room + sizeof bytes, bytes - sizeof bytes));
    (void)memcpy(given, room, bytes);
    return status == BUGPACK_OK;
}

static int provide(bugpack_writer *writer, void *context) {
    (void)context;
    return bugpack_printf(writer, "generation %d\n", GENERATION) == BUGPACK_OK ? 0 : -1;
}

static bugpack_status open_session(void *options) {
    return bugpack_open(options, &session, &error);
}

static bugpack_status open_channel(void *options) {
    bugpack_channel *channel = NULL;
    bugpack_status status = bugpack_channel_open(session, "display", options, &channel, &error);
    if (status == BUGPACK_OK) {
        bugpack_traffic(channel, BUGPACK_SENT, 7, "hello", "hello", 5);
    }
    return status;
}

static bugpack_status request_report(void *request) {
    return bugpack_report(session, request, NULL);
}

static bugpack_status fill_result(void *result) {
    return bugpack_report(session, NULL, result);
}

static bugpack_status fill_event(void *event) {
    return bugpack_next_event(session, event) ? BUGPACK_OK : BUGPACK_ERR_INVALID;
}

static bugpack_status disconnect(void *cause) {
    return bugpack_disconnect(session, "display", "ECONNRESET", cause, &error);
}

static bugpack_status fill_pedantic_state(void *state) {
    return bugpack_pedantic_get(session, state);
}

static bugpack_status fill_location(void *location) {
    return bugpack_recorder_locate(session, location);
}

static bugpack_status fill_heap_state(void *state) {
    return bugpack_heap_state_read(state, &error);
}

static bugpack_status print_heap_state(void *state) {
    char *text = NULL;
    bugpack_status status = bugpack_heap_state_text(state, &text, &error);
    if (status == BUGPACK_OK) {
        bugpack_free(text);
    }
    return status;
}

static bugpack_status recover(void *options) {
    return bugpack_recover(options, &error);
}

static void check_session(void) {
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    options.app_name = "generations";
    options.report_dir = directory;
    options.sample_window_ms = 10;
    options.pedantic.cap = 7;
    check_input("bugpack_options", &options, sizeof options, open_session);
}

static void check_registering(void) {
    expect("bugpack_provide", "takes a provider",
           bugpack_provide(session, "generation.txt", BUGPACK_PROVIDE_TEXT, provide, NULL,
                           &error) == BUGPACK_OK);
    bugpack_channel_options channel = BUGPACK_CHANNEL_OPTIONS_INIT;
    channel.weight = 2;
    check_input("bugpack_channel_options", &channel, sizeof channel, open_channel);
}

static void check_reports(void) {
    bugpack_report_result result;
    bugpack_event event;
    expect("bugpack_events_fd", "has a descriptor", bugpack_events_fd(session) >= 0);
    bugpack_report_request request = BUGPACK_REPORT_REQUEST_INIT;
    request.description = "of another version";
    check_input("bugpack_report_request", &request, sizeof request, request_report);
    if (check_output("bugpack_report_result", &result, sizeof result, fill_result)) {
        (void)printf("wrote %s\n", result.path);
        expect("bugpack_report_result", "names a zip that is there",
               access(result.path, R_OK) == 0);
        expect("bugpack_report_result", "has the time", result.elapsed_ns > 0);
    }
    if (check_output("bugpack_event", &event, sizeof event, fill_event)) {
        (void)printf("event %d of report %llu, a %s\n", (int)event.kind,
                     (unsigned long long)event.ticket, event.report_type);
        expect("bugpack_event", "has a ticket", event.ticket != 0);
        expect("bugpack_event", "has a type", strcmp(event.report_type, "bugreport") == 0);
    }
    bugpack_disconnect_details details = BUGPACK_DISCONNECT_DETAILS_INIT;
    details.keepalive_fired = true;
    check_input("bugpack_disconnect_details", &details, sizeof details, disconnect);
}

static void check_state(void) {
    bugpack_recorder_location location;
    bugpack_pedantic_state pedantic;
    bugpack_heap_state heap;
    if (check_output("bugpack_recorder_location", &location, sizeof location, fill_location)) {
        (void)printf("rings are in \"%s\"\n", location.path);
    }
    if (check_output("bugpack_pedantic_state", &pedantic, sizeof pedantic, fill_pedantic_state)) {
        (void)printf("pedantic: cap %u, %u written\n", (unsigned)pedantic.cap,
                     (unsigned)pedantic.written_count);
        expect("bugpack_pedantic_state", "has the cap", pedantic.cap == 7);
    }
    if (check_output("bugpack_heap_state", &heap, sizeof heap, fill_heap_state)) {
        (void)printf("heap of %s\n", heap.allocator);
        expect("bugpack_heap_state", "has an allocator", heap.allocator[0] != '\0');
    }
    check_input("bugpack_heap_state", &heap, sizeof heap, print_heap_state);
    bugpack_recover_options options = BUGPACK_RECOVER_OPTIONS_INIT;
    options.recorder_dir = directory;
    check_input("bugpack_recover_options", &options, sizeof options, recover);
}

int main(int argc, char **argv) {
    if (argc != 2) {
        (void)fprintf(stderr, "usage: host DIRECTORY\n");
        return 2;
    }
    directory = argv[1];
    check_session();
    if (session != NULL) {
        check_registering();
        check_reports();
        check_state();
        bugpack_close(session);
    } else {
        (void)printf("no session: %s\n", error.message);
    }
    (void)printf("%d facts are wrong\n", failure_count);
    return failure_count == 0 && session != NULL ? 0 : 1;
}
