/*
 * Where the rings of a session cannot lie: the session opens all the same and keeps them in memory,
 * its report is whole, the ledger says of each ring what a crash would have lost and why, and the
 * host never gets a signal. A disk without room is one of faults/limits.
 */
#include <bugpack/bugpack.h>

#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/check.h"
#include "support/report_reader.h"
#include "support/temp_dir.h"

static temp_dir dir;
static char homes_dir[320];
static const char *const ring_entries[] = {"logs.jsonl", "notifications.json", "traffic.pcap"};

static void die_of_signal(int number) {
    char words[] = "the host got signal 00\n";
    words[sizeof words - 4] = (char)('0' + number / 10);
    words[sizeof words - 3] = (char)('0' + number % 10);
    (void)!write(STDERR_FILENO, words, sizeof words - 1);
    _exit(1);
}

typedef struct host {
    bugpack_session *session;
    bugpack_channel *channel;
} host;

static host open_host(const char *recorder_dir) {
    host made = {NULL, NULL};
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    options.app_name = "places";
    options.report_dir = dir.path;
    options.recorder.dir = recorder_dir;
    options.sample_window_ms = BUGPACK_OFF;
    options.recorder.history_interval_ms = BUGPACK_OFF;
    CHECK(bugpack_open(&options, &made.session, &error) == BUGPACK_OK);
    CHECK(bugpack_channel_open(made.session, "net", NULL, &made.channel, &error) == BUGPACK_OK);
    return made;
}

static void say(const host *to, const char *text) {
    bugpack_log(to->session, BUGPACK_LEVEL_INFO, "test", "%s", text);
    bugpack_notify(to->session, BUGPACK_LEVEL_INFO, "test", NULL, "%s", text);
    bugpack_traffic(to->channel, BUGPACK_SENT, 1, "test", text, strlen(text));
}

/* Takes a report, which has to be whole; its path is in `result`. */
static void take_report(const host *from, bugpack_report_result *result) {
    *result = (bugpack_report_result)BUGPACK_REPORT_RESULT_INIT;
    CHECK(bugpack_report(from->session, NULL, result, NULL) == BUGPACK_OK);
    if (result->missing_count > 0) {
        (void)fprintf(stderr, "missing: %s\n", result->missing);
    }
    CHECK(result->missing_count == 0);
}

static void check_holds(const char *zip, const char *entry, const char *needle) {
    size_t byte_count = 0;
    char *bytes = report_read(zip, entry, &byte_count);
    CHECK(bytes != NULL && memmem(bytes, byte_count, needle, strlen(needle)) != NULL);
    free(bytes);
}

/* Whether the ledger's entry for an artefact holds a text. */
static bool ledger_says(const char *zip, const char *entry, const char *needle) {
    char name[64];
    char *manifest = report_read(zip, "manifest.json", NULL);
    CHECK(manifest != NULL);
    (void)snprintf(name, sizeof name, "\"name\": \"%s\"", entry);
    char *begin = strstr(manifest, name);
    CHECK(begin != NULL);
    char *end = strstr(begin + strlen(name), "\"name\": ");
    if (end != NULL) {
        *end = '\0';
    }
    bool is_there = strstr(begin, needle) != NULL;
    free(manifest);
    return is_there;
}

/* A session that cannot have its rings in `recorder_dir`: all of them say `reason`. */
static void check_memory(const char *recorder_dir, const char *reason) {
    bugpack_report_result result;
    host made = open_host(recorder_dir);
    say(&made, "kept all the same");
    take_report(&made, &result);
    for (size_t i = 0; i < sizeof ring_entries / sizeof ring_entries[0]; i++) {
        check_holds(result.path, ring_entries[i], "kept all the same");
        CHECK(ledger_says(result.path, ring_entries[i], "a crash would have lost it: "));
        CHECK(ledger_says(result.path, ring_entries[i], reason));
    }
    bugpack_close(made.session);
    CHECK(unlink(result.path) == 0);
}

static void check_missing_and_open_directories(void) {
    char path[400];
    (void)snprintf(path, sizeof path, "%s/missing/homes", dir.path);
    check_memory(path, "No such file or directory");
    (void)snprintf(path, sizeof path, "%s/shared", dir.path);
    CHECK(mkdir(path, 0700) == 0 && chmod(path, 0750) == 0);
    check_memory(path, "not this user's alone");
    CHECK(rmdir(path) == 0);
}

/* Nobody writes there, not even after root has given up being it. */
static void check_unwritable_directory(void) {
    char path[400];
    (void)snprintf(path, sizeof path, "%s/unwritable", dir.path);
    CHECK(mkdir(path, 0500) == 0);
    if (geteuid() == 0) {
        const uid_t nobody = 65534;
        CHECK(chown(path, nobody, nobody) == 0 && chown(dir.path, nobody, nobody) == 0);
        if (setresgid(nobody, nobody, nobody) != 0 || setresuid(nobody, nobody, nobody) != 0) {
            (void)printf("not tried: an unwritable directory, since root cannot be given up\n");
            return;
        }
        CHECK(prctl(PR_SET_DUMPABLE, 1) == 0); /* else its own /proc is root's */
    }
    check_memory(path, "Permission denied");
    CHECK(rmdir(path) == 0);
}

/* The first limit is too small for a ring, the second one for anything. */
static void check_file_size_limit(void) {
    struct rlimit before, limit;
    CHECK(getrlimit(RLIMIT_FSIZE, &before) == 0);
    limit = before;
    limit.rlim_cur = 3 << 20;
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    bugpack_report_result result;
    host made = open_host(homes_dir);
    say(&made, "limited");
    take_report(&made, &result);
    CHECK(ledger_says(result.path, "logs.jsonl", "File too large"));
    CHECK(ledger_says(result.path, "traffic.pcap", "File too large"));
    CHECK(!ledger_says(result.path, "notifications.json", "a crash would")); /* a small ring */
    bugpack_close(made.session);
    CHECK(unlink(result.path) == 0);
    limit.rlim_cur = 32 << 10;
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    check_memory(homes_dir, "File too large");
    CHECK(setrlimit(RLIMIT_FSIZE, &before) == 0);
}

int main(void) {
    static const int fatal[] = {SIGBUS, SIGXFSZ};
    for (size_t i = 0; i < sizeof fatal / sizeof fatal[0]; i++) {
        CHECK(sigaction(fatal[i], &(struct sigaction){.sa_handler = die_of_signal}, NULL) == 0);
    }
    CHECK(temp_dir_make(&dir));
    (void)snprintf(homes_dir, sizeof homes_dir, "%s/homes", dir.path);
    check_missing_and_open_directories();
    check_file_size_limit();
    (void)rmdir(homes_dir);
    check_unwritable_directory(); /* last: root is given up */
    temp_dir_remove(&dir);
    return 0;
}
