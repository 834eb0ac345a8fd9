/*
 * Threads that share one stream and log beside it: every line is one whole record. Run under
 * ThreadSanitizer too.
 */
#include <bugpack/bugpack.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/report_reader.h"
#include "support/temp_dir.h"

enum { writer_count = 8, line_count = 400 };

static bugpack *session;
static FILE *stream;

static void *write_lines(void *argument) {
    unsigned number = (unsigned)(uintptr_t)argument;
    for (unsigned i = 0; i < line_count; i++) {
        CHECK(fprintf(stream, "<writer %u, line %u>\n", number, i) > 0);
        bugpack_syslog(session, 6, "(beside %u)", number);
    }
    return NULL;
}

/* Whether every record is one whole line, and each thread's lines are all there, in order. */
static void check_log(const char *text) {
    unsigned next[writer_count] = {0};
    unsigned beside_count = 0;
    for (const char *line = text; *line != '\0'; line = strchr(line, '\n') + 1) {
        unsigned number = 0, i = 0;
        char end = 0;
        const char *message = strstr(line, "\"message\":");
        CHECK(message != NULL);
        if (strncmp(message, "\"message\":\"(beside ", 19) == 0) {
            beside_count++;
            continue;
        }
        CHECK(sscanf(message, "\"message\":\"<writer %u, line %u>\"%c", &number, &i, &end) == 3);
        CHECK(end == '}' && number < writer_count && i == next[number]);
        next[number]++;
    }
    for (unsigned i = 0; i < writer_count; i++) {
        CHECK(next[i] == line_count);
    }
    CHECK(beside_count == writer_count * line_count);
}

int main(void) {
    temp_dir dir;
    CHECK(temp_dir_make(&dir));
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    options.app_name = "streams";
    options.report_dir = dir.path;
    options.sample_window_ms = BUGPACK_OFF;
    options.history_interval_ms = BUGPACK_OFF;
    CHECK(bugpack_open(&options, &session, NULL) == BUGPACK_OK);
    stream = bugpack_log_stream(session, BUGPACK_LEVEL_INFO, "stdio", NULL);
    CHECK(stream != NULL);
    pthread_t writers[writer_count];
    for (uintptr_t i = 0; i < writer_count; i++) {
        CHECK(pthread_create(&writers[i], NULL, write_lines, (void *)i) == 0);
    }
    for (unsigned i = 0; i < writer_count; i++) {
        CHECK(pthread_join(writers[i], NULL) == 0);
    }
    CHECK(fclose(stream) == 0);
    bugpack_report_result result = BUGPACK_REPORT_RESULT_INIT;
    CHECK(bugpack_report(session, NULL, &result) == BUGPACK_OK);
    bugpack_close(session);
    char *text = report_read(result.path, "logs.jsonl", NULL);
    CHECK(text != NULL);
    check_log(text);
    free(text);
    printf("%d threads, %d lines each, all whole\n", writer_count, line_count);
    temp_dir_remove(&dir);
    return 0;
}
