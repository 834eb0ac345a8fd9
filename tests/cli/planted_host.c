/*
 * Plants secrets in every input of a report (tests/support/planted.h). Usage: planted_host MODE
 *
 * - secrets, texts, windows, json: prints them alone; as lines of a log; ended as on Windows; as a
 *   session file.
 * - target: a process to capture, with secrets as arguments and as names of threads. It prints a
 *   line when it is ready.
 * - host DIR, dies DIR: such a process with a session that writes reports to DIR, about
 *   $PLANTED_REPORTS (100) of them. The second one is killed with what it has recorded.
 * - watch PATH: prints the name of every file that gets one on PATH's file system, and "ready"
 *   before that. For root.
 */
#include <bugpack/bugpack.h>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "support/planted.h"

enum { short_bytes = 9, thread_count = 2 * PLANTED_EACH, text_bytes = 2 * PLANTED_BYTES };

/* A secret in few bytes, as a thread's name has: of the shapes "PASSWORD=…" and "token=…". */
static void short_text(unsigned i, char ret_text[16]) {
    unsigned shape = i % 2 == 0 ? 2 : 14;
    (void)snprintf(ret_text, 16, "%s=%.*s", i % 2 == 0 ? "pwd" : "token", short_bytes,
                   planted_secrets[shape + PLANTED_SHAPES * (i / 2)]);
}

static void print_secrets(void) {
    for (unsigned i = 0; i < PLANTED_COUNT; i++) {
        (void)puts(planted_secrets[i]);
    }
    for (unsigned i = 0; i < thread_count; i++) {
        char text[16];
        short_text(i, text);
        (void)puts(strchr(text, '=') + 1);
    }
}

static void print_texts(const char *end) {
    for (unsigned i = 0; i < PLANTED_COUNT; i++) {
        (void)printf("%s%s", planted_texts[i], end);
    }
}

static void print_json(void) {
    (void)printf("{\"texts\": [null");
    for (unsigned i = 0; i < PLANTED_COUNT; i++) {
        (void)printf(", \"");
        for (const char *at = planted_texts[i]; *at != '\0'; at++) {
            (void)printf("%s%c", *at == '"' || *at == '\\' ? "\\" : "", *at);
        }
        (void)printf("\"");
    }
    (void)printf("]");
    for (unsigned i = 0; i < PLANTED_COUNT; i++) {
        (void)printf(", \"n%u\": {\"password\": \"%s\"}", i, planted_secrets[i]);
    }
    (void)printf("}\n");
}

/* This program again, with all texts as arguments and some secrets as values of options. */
static void get_arguments(int argument_count, char **arguments) {
    static char password[] = "--password";
    static char *longer[PLANTED_COUNT + 2 * PLANTED_EACH + 8];
    size_t count = 0;
    if (argument_count > PLANTED_COUNT) {
        return;
    }
    for (int i = 0; i < argument_count; i++) {
        longer[count++] = arguments[i];
    }
    for (unsigned i = 0; i < PLANTED_EACH; i++) {
        longer[count++] = password;
        longer[count++] = planted_secrets[1 + PLANTED_SHAPES * i];
    }
    for (unsigned i = 0; i < PLANTED_COUNT; i++) {
        longer[count++] = planted_texts[i];
    }
    (void)execv("/proc/self/exe", longer);
    perror("execv");
    exit(1);
}

static void *stay(void *argument) {
    (void)prctl(PR_SET_NAME, argument);
    for (;;) {
        (void)pause();
    }
    return NULL;
}

static void name_threads(void) {
    static char names[thread_count][16];
    for (unsigned i = 0; i < thread_count; i++) {
        pthread_t thread;
        short_text(i, names[i]);
        if (pthread_create(&thread, NULL, stay, names[i]) != 0) {
            exit(1);
        }
    }
}

static int provide(bugpack_writer *writer, void *context) {
    bool is_json = context != NULL;
    (void)bugpack_printf(writer, is_json ? "[null" : "");
    for (unsigned i = 0; i < PLANTED_COUNT; i++) {
        if (is_json) {
            (void)bugpack_printf(writer, ",");
            (void)bugpack_write_json_string(writer, planted_texts[i], strlen(planted_texts[i]));
        } else {
            (void)bugpack_printf(writer, "%s\n", planted_texts[i]);
        }
    }
    (void)bugpack_printf(writer, is_json ? "]" : "");
    return 0;
}

static int provide_failing(bugpack_writer *writer, void *context) {
    return bugpack_fail(writer, "cannot ask: %s", (const char *)context);
}

static void record(bugpack_session *session) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    for (unsigned i = 0; i < PLANTED_COUNT; i++) {
        bugpack_log(session, BUGPACK_LEVEL_INFO, "ui", "%s", planted_texts[i]);
        bugpack_notify(session, BUGPACK_LEVEL_WARN, "net", NULL, "%s", planted_texts[i]);
    }
    for (unsigned i = 0; i < thread_count; i++) {
        char text[16];
        bugpack_channel *channel = NULL;
        short_text(i, text);
        bugpack_log(session, BUGPACK_LEVEL_INFO, text, "a channel's name");
        bugpack_notify(session, BUGPACK_LEVEL_INFO, text, NULL, "a source's name");
        if (bugpack_channel_open(session, text, NULL, &channel, &error) != BUGPACK_OK) {
            (void)fprintf(stderr, "%s\n", error.message);
            exit(1);
        }
        bugpack_traffic(channel, BUGPACK_SENT, i, text, "payload", 7);
    }
}

static unsigned wanted_reports(void) {
    const char *text = getenv("PLANTED_REPORTS");
    return text == NULL ? 100 : (unsigned)strtoul(text, NULL, 10);
}

static void write_reports(bugpack_session *session) {
    unsigned step = 2 * PLANTED_COUNT / wanted_reports() - 1; /* odd: of every shape */
    for (unsigned i = 0; i < PLANTED_COUNT; i++) {
        char key[text_bytes + 16], tag[16];
        (void)snprintf(key, sizeof key, "main:unimpl:%s", planted_texts[i]);
        bugpack_gap(session, key);
        (void)snprintf(tag, sizeof tag, "tag%u", i % 64);
        (void)bugpack_set_tag(session, tag, planted_texts[i], NULL);
        if (i % step == 0) {
            bugpack_report_request request = BUGPACK_REPORT_REQUEST_INIT;
            bugpack_report_result result = BUGPACK_REPORT_RESULT_INIT;
            char short_name[16];
            short_text(i % thread_count, short_name);
            request.description = planted_texts[i];
            request.channel = short_name;
            if (bugpack_report(session, &request, &result, NULL) != BUGPACK_OK) {
                (void)fprintf(stderr, "%s\n", result.error.message);
                exit(1);
            }
        }
    }
    bugpack_disconnect_details details = BUGPACK_DISCONNECT_DETAILS_INIT;
    details.error_kind = planted_texts[2];
    (void)bugpack_disconnect(session, planted_texts[14], planted_texts[0], &details, NULL);
}

static void be_host(const char *report_dir, bool is_to_die) {
    bugpack_session *session = NULL;
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    options.app_name = planted_texts[2];
    options.app_version = planted_texts[14];
    options.app_build_id = planted_texts[3];
    options.report_dir = report_dir;
    options.recorder.log_ring_bytes = 4 << 20;
    options.pedantic.is_enabled = true;
    options.pedantic.cap = wanted_reports() / 2;
    options.pedantic.channel_cap = BUGPACK_OFF;
    options.limits.provider_timeout_ms = 60000;
    options.stacks = BUGPACK_STACKS_NONE; /* the captured target has them, with names of threads */
    if (bugpack_open(&options, &session, &error) != BUGPACK_OK) {
        (void)fprintf(stderr, "%s\n", error.message);
        exit(1);
    }
    record(session);
    if (is_to_die) {
        (void)kill(getpid(), SIGKILL);
    }
    char json[] = "json";
    (void)bugpack_provide(session, "session.json", BUGPACK_PROVIDE_JSON, provide, json, &error);
    (void)bugpack_provide(session, "channel-state.json", BUGPACK_PROVIDE_JSON, provide, json,
                          &error);
    (void)bugpack_provide(session, "logs/app.log", BUGPACK_PROVIDE_TEXT, provide, NULL, &error);
    (void)bugpack_provide(session, "output of a command", BUGPACK_PROVIDE_BYTES, provide, NULL,
                          &error);
    (void)bugpack_provide(session, "fails.json", BUGPACK_PROVIDE_JSON, provide_failing,
                          planted_texts[0], &error);
    (void)bugpack_provide(session, planted_texts[2], BUGPACK_PROVIDE_TEXT, provide, NULL, &error);
    write_reports(session);
    (void)bugpack_flush(session, BUGPACK_OFF, NULL);
    bugpack_close(session);
}

static void watch(const char *path) {
    static char events[65536];
    int fd = fanotify_init(FAN_CLASS_NOTIF | FAN_REPORT_DFID_NAME, O_RDONLY);
    if (fd < 0 || fanotify_mark(fd, FAN_MARK_ADD | FAN_MARK_FILESYSTEM,
                                FAN_CREATE | FAN_MOVED_TO | FAN_ONDIR, AT_FDCWD, path) != 0) {
        perror("fanotify");
        exit(77);
    }
    (void)printf("ready\n");
    for (;;) {
        (void)fflush(stdout);
        ssize_t length = read(fd, events, sizeof events);
        for (struct fanotify_event_metadata *event = (void *)events; FAN_EVENT_OK(event, length);
             event = FAN_EVENT_NEXT(event, length)) {
            struct fanotify_event_info_fid *info = (void *)(event + 1);
            struct file_handle *handle = (void *)info->handle;
            (void)printf("%s\n", (const char *)handle->f_handle + handle->handle_bytes);
        }
    }
}

int main(int argument_count, char **arguments) {
    const char *mode = argument_count > 1 ? arguments[1] : "";
    const char *path = argument_count > 2 ? arguments[2] : ".";
    planted_make();
    if (strcmp(mode, "secrets") == 0) {
        print_secrets();
    } else if (strcmp(mode, "texts") == 0 || strcmp(mode, "windows") == 0) {
        print_texts(mode[0] == 't' ? "\n" : "\r\n");
    } else if (strcmp(mode, "json") == 0) {
        print_json();
    } else if (strcmp(mode, "watch") == 0) {
        watch(path);
    } else if (strcmp(mode, "target") == 0) {
        get_arguments(argument_count, arguments);
        name_threads();
        (void)puts("ready");
        (void)fflush(stdout);
        (void)pause();
    } else if (strcmp(mode, "host") == 0 || strcmp(mode, "dies") == 0) {
        get_arguments(argument_count, arguments);
        name_threads();
        be_host(path, mode[0] == 'd');
    } else {
        return 2;
    }
    return 0;
}
