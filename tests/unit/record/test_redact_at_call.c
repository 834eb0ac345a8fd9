/*
 * Redaction where a text is recorded: no file of the recorder ever holds a secret.
 */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>

#include "unit/quick_session.h"

static void setup_at_call(void) {
    setup();
    options.recorder.dir = dir.path;
    options.recorder.is_in_memory = false;
    options.recorder.log_ring_bytes = 4 << 20;
    options.redaction.mode = BUGPACK_REDACT_AT_CALL;
}

TestSuite(redact_at_call, .init = setup_at_call, .fini = teardown);

static char files[32 << 20];
static size_t files_bytes;

/* Reads all files of the session's directory, once: the rings go elsewhere when they are opened. */
static void read_files(void) {
    bugpack_recorder_location location = BUGPACK_RECORDER_LOCATION_INIT;
    cr_assert(zero(int, bugpack_recorder_locate(session, &location, NULL)));
    DIR *listing = opendir(location.path);
    struct dirent *entry;
    cr_assert(ne(ptr, listing, NULL), "%s: %s", location.path, location.reason);
    files_bytes = 0;
    while ((entry = readdir(listing)) != NULL) {
        CLEANUP(close_fd) int fd = openat(dirfd(listing), entry->d_name, O_RDONLY);
        ssize_t size = entry->d_name[0] != '.'
                           ? read(fd, files + files_bytes, sizeof files - files_bytes)
                           : -1;
        files_bytes += size > 0 ? (size_t)size : 0;
    }
    (void)closedir(listing);
    cr_assert(gt(sz, files_bytes, 4 << 20));
}

static bool files_contain(const char *text) {
    return memmem(files, files_bytes, text, strlen(text)) != NULL;
}

static void record(void) {
    bugpack_log(session, BUGPACK_LEVEL_INFO, "ui", "login password=%s", "hunter2hunter2");
    bugpack_log_bytes(session, BUGPACK_LEVEL_INFO, NULL, "{\"\\u0070assword\":\"hunter2\"}", 27);
    bugpack_notify(session, BUGPACK_LEVEL_WARN, "net", NULL, "token=hunter28c1f0a77b2d94e5f");
    bugpack_log(session, BUGPACK_LEVEL_INFO, "ui", "nothing to hide");
    bugpack_log(session, BUGPACK_LEVEL_INFO, "ui", "-----BEGIN RSA PRIVATE KEY-----");
    bugpack_log(session, BUGPACK_LEVEL_INFO, "net", "MIIEowIBAAKCAQEAstays");
    bugpack_log(session, BUGPACK_LEVEL_INFO, "ui", "MIIEowIBAAKCAQEAhunter2hunter2hunter2");
    bugpack_log(session, BUGPACK_LEVEL_INFO, "ui", "-----END RSA PRIVATE KEY-----");
}

Test(redact_at_call, leaves_no_secret_in_a_ring) {
    open_session();
    record();
    read_files();
    cr_expect(not(files_contain("hunter2")));
    cr_expect(files_contain("nothing to hide"));
    cr_expect(files_contain("MIIEowIBAAKCAQEAstays")); /* no line of that key */
    cr_expect(files_contain("password=REDACTED-password-"));
    cr_expect(files_contain("token=REDACTED-"));
    bugpack_close(session);
    options.redaction.mode = 0; /* and this test would see it */
    open_session();
    record();
    read_files();
    cr_expect(files_contain("hunter2"));
}

Test(redact_at_call, gives_the_tags_that_reports_have) {
    open_session();
    char tag[64] = "";
    record();
    take_described("password=hunter2hunter2");
    char *logs = report_read(taken.path, "logs.jsonl", NULL);
    cr_assert(ne(ptr, logs, NULL));
    const char *at = strstr(logs, "REDACTED-password-");
    cr_assert(ne(ptr, at, NULL));
    (void)snprintf(tag, sizeof tag, "%.30s", at);
    cr_expect(holds("metadata.json", tag));
    free(logs);
    take_described("password=hunter2hunter2");
    cr_expect(holds("metadata.json", tag));
}

Test(redact_at_call, applies_rules_that_are_added_later) {
    open_session();
    record(); /* the redactor of this thread has the old rules */
    cr_assert(zero(int, bugpack_redact_add(session, "[ticket]\npattern = TKT-[0-9]+", &failure)));
    bugpack_log(session, BUGPACK_LEVEL_INFO, "ui", "TKT-12345");
    read_files();
    cr_expect(not(files_contain("TKT-12345")));
    bugpack_close(session);
    options.redaction.mode = 4;
    cr_expect(eq(int, bugpack_open(&options, &session, &failure), BUGPACK_ERR_INVALID));
}

static void expect_diagnostic(bugpack_level level, const char *text, void *context) {
    unsigned *count = context;
    *count += strstr(text, "will not have all of its redaction rules") != NULL;
}

Test(redact_at_call, says_when_a_recovery_will_lack_the_rules) {
    bugpack_recorder_location location = BUGPACK_RECORDER_LOCATION_INIT;
    unsigned count = 0;
    options.on_diagnostic = expect_diagnostic;
    options.on_diagnostic_context = &count;
    open_session();
    cr_assert(zero(int, bugpack_recorder_locate(session, &location, NULL)));
    int dir_fd = open(location.path, O_RDONLY | O_DIRECTORY);
    int fd = openat(dir_fd, "redaction-1", O_WRONLY | O_CREAT, 0600);
    static const char rule[] = "[ticket]\npattern = TKT-[0-9]+";
    cr_assert(zero(int, bugpack_redact_add(session, rule, NULL)));
    cr_expect(zero(uint, count));
    cr_assert(zero(int, bugpack_redact_add(session, rule, NULL)));
    cr_expect(eq(uint, count, 1));
    (void)close(fd);
    (void)close(dir_fd);
    bugpack_close(session);
}

static void *log_much(void *its_session) {
    for (unsigned i = 0; i < 2000; i++) {
        bugpack_log(its_session, BUGPACK_LEVEL_INFO, "ui", "record %u password=hunter2hunter2 end",
                    i);
        bugpack_notify(its_session, BUGPACK_LEVEL_WARN, "net", NULL,
                       "password=hunter2hunter2 of %u", i);
    }
    return NULL;
}

Test(redact_at_call, serves_many_threads_and_those_that_come_too_late) {
    open_session();
    pthread_t threads[12];
    for (unsigned i = 0; i < 12; i++) {
        cr_assert(zero(int, pthread_create(&threads[i], NULL, log_much, session)));
    }
    take_described("meanwhile");
    cr_expect(not(holds("logs.jsonl", "hunter2")));
    for (unsigned i = 0; i < 6; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    read_files();
    cr_expect(not(files_contain("hunter2")));
    bugpack_close(session); /* beside the others */
    for (unsigned i = 6; i < 12; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    (void)log_much(session);
}

Test(redact_at_call, of_a_host_that_is_killed_has_its_tags) {
    leave_dead_session(record);
    recover_and_find();
    cr_expect(holds("logs.jsonl", "login password=REDACTED-password-"));
    cr_expect(not(holds("logs.jsonl", "hunter2")));
}
