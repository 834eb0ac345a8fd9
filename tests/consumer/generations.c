/*
 * Hosts of other versions against today's library: each versioned struct is passed without its last
 * 8 bytes, as it is, and with 8 more. Its one argument is an empty directory.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <bugpack/bugpack.h>
#include <bugpack/heap_state.h>

enum { filler = 0xa5, later_bytes = 8, canary_bytes = 64, struct_max_bytes = 16384 };

static _Alignas(max_align_t) unsigned char room[struct_max_bytes + later_bytes + canary_bytes];
static const char *directory;
static bugpack_session *session;
static bugpack_error error;
static int generation, failure_count;

static void expect(const char *type, const char *fact, bool is_so) {
    if (!is_so) {
        (void)printf("FAIL %s, generation %d: %s (%s)\n", type, generation, fact, error.message);
        failure_count++;
    }
}

typedef bugpack_status call(void *given);

static bugpack_status pass_size(call *pass, size_t bytes) {
    (void)memcpy(room, &bytes, sizeof bytes);
    return pass(room);
}

/* The host's struct goes in. */
static void check_input(const char *type, const void *given, size_t bytes, call *pass) {
    for (generation = -1; generation <= 1; generation++) {
        (void)memset(room, 0, sizeof room);
        (void)memcpy(room, given, bytes);
        expect(type, "without a size is refused", pass_size(pass, 0) == BUGPACK_ERR_INVALID);
        if (generation > 0) {
            room[bytes] = 1;
            expect(type, "with a later field that is set is refused",
                   pass_size(pass, bytes + later_bytes) == BUGPACK_ERR_INVALID);
            room[bytes] = 0;
        }
        expect(type, "is taken",
               pass_size(pass, bytes + (size_t)(generation * later_bytes)) == BUGPACK_OK);
    }
}

static bool is_filler(size_t from, size_t to) {
    while (from < to && room[from] == filler) {
        from++;
    }
    return from == to;
}

/* The library fills the host's struct. What today's host has of it is in `ret_given`. */
static void check_output(const char *type, void *ret_given, size_t bytes, call *pass) {
    for (generation = -1; generation <= 1; generation++) {
        size_t given_bytes = bytes + (size_t)(generation * later_bytes), size_after;
        size_t known_bytes = given_bytes < bytes ? given_bytes : bytes;
        (void)memset(room, filler, sizeof room);
        bugpack_status status = pass_size(pass, given_bytes);
        (void)memcpy(&size_after, room, sizeof size_after);
        expect(type, "keeps its size", size_after == given_bytes);
        expect(type, "is not written beyond what both know", is_filler(known_bytes, sizeof room));
        expect(type, "is filled", status == BUGPACK_OK && !is_filler(sizeof bytes, known_bytes));
        if (generation == 0) {
            (void)memcpy(ret_given, room, bytes);
        }
    }
}

static bugpack_status open_session(void *options) {
    bugpack_close(session);
    session = NULL;
    return bugpack_open(options, &session, &error);
}

/* The names of channels differ. */
static const char *channel_name(void) {
    static const char *const names[] = {"main", "display", "inputs"};
    return names[generation + 1];
}

static bugpack_status open_channel(void *options) {
    bugpack_channel *channel = NULL;
    return bugpack_channel_open(session, channel_name(), options, &channel, &error);
}

static bugpack_status take_report(void *request) {
    return bugpack_report(session, request, NULL, NULL);
}

static bugpack_status fill_result(void *result) {
    return bugpack_report(session, NULL, result, NULL);
}

static bugpack_status fill_event(void *event) {
    return bugpack_next_event(session, event) ? BUGPACK_OK : BUGPACK_ERR_INVALID;
}

static bugpack_status disconnect(void *cause) {
    bugpack_status status =
        bugpack_disconnect(session, channel_name(), "ECONNRESET", cause, &error);
    return status == BUGPACK_OK ? bugpack_flush(session, BUGPACK_OFF, NULL) : status;
}

static bugpack_status fill_pedantic_state(void *state) {
    return bugpack_pedantic_get(session, state, NULL);
}

static bugpack_status fill_location(void *location) {
    return bugpack_recorder_locate(session, location, NULL);
}

static bugpack_status fill_heap_state(void *state) {
    return bugpack_heap_state_read(state, &error);
}

static bugpack_status print_heap_state(void *state) {
    char *text = NULL;
    bugpack_status status = bugpack_heap_state_text(state, &text, &error);
    bugpack_free(text);
    return status;
}

static bugpack_status recover(void *options) {
    return bugpack_recover(options, &error);
}

#define INPUT(type, given, pass) check_input(#type, &(given), sizeof(type), pass)
#define OUTPUT(type, given, pass) check_output(#type, &(given), sizeof(type), pass)

static void check_reports(void) {
    bugpack_report_request request = BUGPACK_REPORT_REQUEST_INIT;
    bugpack_report_result result;
    bugpack_event event;
    bugpack_disconnect_details details = BUGPACK_DISCONNECT_DETAILS_INIT;
    expect("bugpack_events_fd", "has a descriptor", bugpack_events_fd(session, NULL) >= 0);
    request.description = "of another version";
    INPUT(bugpack_report_request, request, take_report);
    OUTPUT(bugpack_report_result, result, fill_result);
    expect("bugpack_report_result", "names a zip", access(result.path, R_OK) == 0);
    OUTPUT(bugpack_event, event, fill_event);
    expect("bugpack_event", "has a ticket and a type",
           event.ticket != 0 && strcmp(event.report_type, "bugreport") == 0);
    details.keepalive_fired = true;
    INPUT(bugpack_disconnect_details, details, disconnect);
}

static void check_state(void) {
    bugpack_recorder_location location;
    bugpack_pedantic_state pedantic;
    bugpack_heap_state heap;
    bugpack_recover_options options = BUGPACK_RECOVER_OPTIONS_INIT;
    OUTPUT(bugpack_recorder_location, location, fill_location);
    OUTPUT(bugpack_pedantic_state, pedantic, fill_pedantic_state);
    expect("bugpack_pedantic_state", "has the cap", pedantic.cap == 7);
    OUTPUT(bugpack_heap_state, heap, fill_heap_state);
    INPUT(bugpack_heap_state, heap, print_heap_state);
    options.recorder_dir = directory;
    INPUT(bugpack_recover_options, options, recover);
}

int main(int argument_count, char **arguments) {
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    bugpack_channel_options channel = BUGPACK_CHANNEL_OPTIONS_INIT;
    if (argument_count != 2) {
        return 2;
    }
    directory = arguments[1];
    options.app_name = "generations";
    options.report_dir = options.recorder.dir = directory;
    options.sample_window_ms = 10;
    options.pedantic.cap = 7;
    options.limits.disconnect_cooldown_ms = BUGPACK_OFF;
    INPUT(bugpack_options, options, open_session);
    channel.weight = 2;
    INPUT(bugpack_channel_options, channel, open_channel);
    check_reports();
    check_state();
    bugpack_close(session);
    return failure_count == 0 ? 0 : 1;
}
