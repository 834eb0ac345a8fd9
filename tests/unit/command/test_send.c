/*
 * Parts of sending: when it is tried again, what a URL is, the configuration's syntax, whose
 * fault it is that a report does not arrive, and what of a queue is on the disk.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/buffer.h"
#include "send/backoff.h"
#include "send/configuration.h"
#include "send/deliver.h"
#include "send/queue.h"
#include "send/url.h"
#include "unit/dir.h"

TestSuite(send_backoff);
TestSuite(send_url);
TestSuite(send_configuration);
DIR_SUITE(send_deliver);
DIR_SUITE(send_queue);

Test(send_backoff, grows_from_a_quarter_of_an_hour_to_eight_hours) {
    static const uint64_t shortest[] = {900, 1800, 3600, 7200, 14400, 14400, 14400};
    for (uint32_t i = 0; i < sizeof shortest / sizeof shortest[0]; i++) {
        cr_assert(eq(u64, bp_backoff_secs(i + 1, 0), shortest[i]), "attempt %u", i + 1);
        cr_assert(eq(u64, bp_backoff_secs(i + 1, UINT32_MAX), 2 * shortest[i] - 1), "attempt %u",
                  i + 1);
    }
    cr_assert(eq(u64, bp_backoff_secs(UINT32_MAX, UINT32_MAX), BP_BACKOFF_LAST_SECS - 1));
    cr_assert(eq(u64, bp_backoff_secs(0, 0), BP_BACKOFF_FIRST_SECS));
}

Test(send_backoff, obeys_retry_after_within_bounds) {
    static const uint64_t rows[][2] = {
        {0, 0}, {1, 60}, {60, 60}, {120, 120}, {86400, 86400}, {86401, 86400}, {UINT64_MAX, 86400}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cr_assert(eq(u64, bp_backoff_bound(rows[i][0]), rows[i][1]));
    }
}

Test(send_url, shows_no_password_and_no_query) {
    static const struct {
        const char *text, *shown;
        bool is_loopback;
    } rows[] = {
        {"https://h/", "https://h/", false},
        {"HTTPS://user:secret@Host.example:8443/a/b?sig=x&y", "https://Host.example:8443/a/b",
         false},
        {"https://h?sig=x", "https://h", false},
        {"http://127.0.0.1:80/", "http://127.0.0.1:80/", true},
        {"http://localhost", "http://localhost", true},
        {"http://[::1]:80/x", "http://[::1]:80/x", true},
        {"http://[::2]/x", "http://[::2]/x", false},
        {"http://127.0.0.1.example.com/", "http://127.0.0.1.example.com/", false},
        {"http://127.0.0.1@example.com/", "http://example.com/", false},
        {"http://localhost.example.com/", "http://localhost.example.com/", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bp_url url;
        char shown[200];
        cr_assert(bp_url_parse(rows[i].text, &url), "%s", rows[i].text);
        bp_url_show(&url, shown, sizeof shown);
        cr_assert(eq(str, shown, (char *)(uintptr_t)rows[i].shown));
        cr_assert(eq(int, bp_url_is_loopback(&url), rows[i].is_loopback), "%s", rows[i].text);
    }
}

Test(send_url, refuses_what_two_parsers_may_read_in_two_ways) {
    static const char *const texts[] = {"ftp://h/",        "h",
                                        "https://",        "https:///x",
                                        "https://u@/x",    "https://h x/",
                                        "https://h\\",     "https://a@b@h/",
                                        "https://h:x/",    "https://[::1/x",
                                        "https://[::1]x/", "https://h/#f",
                                        "https://h/\x7f",  "https://h/\xc3\xa4",
                                        "https://h/\x80",  "https://h\xff/",
                                        "https://h/{a}"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        bp_url url;
        cr_assert(not(bp_url_parse(texts[i], &url)), "%s", texts[i]);
    }
}

Test(send_url, knows_the_same_server) {
    static const struct {
        const char *one, *other;
        bool is_same;
    } rows[] = {{"https://h/a", "https://H:443/b?c", true},  {"http://h/", "http://h:80", true},
                {"https://h/", "https://h:444/", false},     {"https://h/", "http://h/", false},
                {"https://h/", "https://h.example/", false}, {"https://u@h/", "https://h/", true},
                {"http://h:443/", "https://h:443/", false}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bp_url one, other;
        cr_assert(bp_url_parse(rows[i].one, &one) && bp_url_parse(rows[i].other, &other));
        cr_assert(eq(int, bp_url_is_same_origin(&one, &other), rows[i].is_same), "%s", rows[i].one);
    }
}

/* A bp_configuration_taker: writes down what it gets. */
static bugpack_status note(void *context, const bp_configuration_row *row, bugpack_error *error) {
    (void)error;
    return bp_buffer_printf(context, "%u %s/%s/%s=%s|", row->line, row->section, row->subsection,
                            row->key, row->value != NULL ? row->value : "(true)");
}

static bugpack_status read_rows(const char *text, bp_buffer *out) {
    char *copy = strdup(text);
    bp_buffer_clear(out);
    bugpack_status status = bp_configuration_read(copy, "f", note, out, &failure);
    free(copy);
    return status;
}

Test(send_configuration, reads_the_syntax_of_git) {
    static const struct {
        const char *text, *rows;
    } rows[] = {
        {"", ""},
        {"# c\n; c\n\n  \t\n", ""},
        {"[A]\nb=c", "2 a//b=c|"},
        {"[a] b = c\r\n d", "1 a//b=c|2 a//d=(true)|"},
        {"[a \"S \\\"x\\\\\"]\nKey-2 = v ; c\n", "2 a/S \"x\\/key-2=v|"},
        {"[a]\nb = \" x # y \" z # c\nb", "2 a//b= x # y  z|3 a//b=(true)|"},
        {"[a]\nb = one \\\n  two\nc=\n", "2 a//b=one   two|4 a//c=|"},
        {"[a]\nb = \\t\\n\\\\\\\"\n", "2 a//b=\t\n\\\"|"},
        {"[a]\nb # c\nd ; e\n", "2 a//b=(true)|3 a//d=(true)|"},
    };
    bp_buffer out;
    bp_buffer_init(&out, 4096);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cr_assert(eq(int, read_rows(rows[i].text, &out), BUGPACK_OK), "%s", rows[i].text);
        cr_assert(
            eq(str, (char *)(uintptr_t)bp_buffer_text(&out), (char *)(uintptr_t)rows[i].rows));
    }
    bp_buffer_release(&out);
}

Test(send_configuration, names_the_line_of_a_mistake) {
    static const struct {
        const char *text, *line;
    } rows[] = {{"b = c", "f:1:"},       {"\n[a", "f:2:"},           {"[a \"x\nb=c", "f:1:"},
                {"[a]\nb c\n", "f:2:"},  {"[a]\nb = \"c\n", "f:2:"}, {"[a]\n\nb = \\x\n", "f:3:"},
                {"[]\n", "f:1:"},        {"[a]\n= c\n", "f:2:"},     {"[a \"x\\", "f:1:"},
                {"[a]\nb = c\\", "f:2:"}};
    bp_buffer out;
    bp_buffer_init(&out, 4096);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cr_assert(eq(int, read_rows(rows[i].text, &out), BUGPACK_ERR_INVALID), "%s", rows[i].text);
        cr_assert(ne(ptr, strstr(failure.message, rows[i].line), NULL), "%s: %s", rows[i].text,
                  failure.message);
    }
    bp_buffer_release(&out);
}

/* A socket of this machine that takes a connection, and its URL. */
static int listen_at(const char *scheme, const char *path, char url[64]) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t bytes = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    cr_assert(bind(fd, (struct sockaddr *)&address, bytes) == 0 && listen(fd, 8) == 0 &&
              getsockname(fd, (struct sockaddr *)&address, &bytes) == 0);
    (void)snprintf(url, 64, "%s127.0.0.1:%u%s", scheme, ntohs(address.sin_port), path);
    return fd;
}

Test(send_deliver, blames_a_report_that_is_short_or_none_and_not_its_destination) {
    char http[64], sentry[64];
    CLEANUP(close_fd) int http_fd = listen_at("http://", "/", http);
    CLEANUP(close_fd) int sentry_fd = listen_at("http://key@", "/1", sentry);
    const bp_send_destination rows[] = {{.url = dir.path, .type = BP_SEND_DIRECTORY},
                                        {.url = http, .type = BP_SEND_HTTP},
                                        {.url = sentry, .type = BP_SEND_SENTRY}};
    cr_assert(temp_dir_write(&dir, "x", "short", 5));
    bp_send_report report = {.bytes = 100, .id = "0", .name = "x.zip"};
    CLEANUP(close_fd) int fd = openat(dir.fd, "x", O_RDONLY | O_CLOEXEC);
    report.fd = fd;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bp_send_result result;
        bp_send_deliver(&rows[i], &report, NULL, NULL, &result);
        bool is_possible = rows[i].type != BP_SEND_HTTP || strstr(result.text, "libcurl") == NULL;
        cr_assert(not(is_possible && (result.outcome != BP_SEND_REFUSED || result.is_down)),
                  "%s: %s", rows[i].url, result.text);
    }
    cr_assert(eq(sz, temp_dir_count(&dir), 1));
}

static ino_t synced[16];
static size_t synced_count;

/* What another does at the first sync of a change, in a thread: locks of files are between openings
 * of them, as those of processes. */
static void (*other)(void);
static pthread_t other_thread;

static void *act(void *context) {
    void (*call)(void);
    memcpy(&call, &context, sizeof call);
    call();
    return NULL;
}

/* Replaces the system's, and notes what is synced. */
int fsync(int fd) {
    struct stat info;
    if (other != NULL) {
        void *call;
        memcpy(&call, &other, sizeof call);
        other = NULL;
        cr_assert(eq(int, pthread_create(&other_thread, NULL, act, call), 0));
        (void)usleep(300000); /* enough, unless it waits for us */
    }
    if (fstat(fd, &info) == 0 && synced_count < sizeof synced / sizeof synced[0]) {
        synced[synced_count++] = info.st_ino;
    }
    return 0;
}

Test(send_queue, syncs_the_directories_above_one_that_is_new) {
    static const char *const above[] = {"a/b", "a", "."};
    char path[300];
    (void)snprintf(path, sizeof path, "%s/a/b/queue", dir.path);
    for (size_t pass = 0; pass < 2; pass++) {
        bp_send_queue queue;
        synced_count = 0;
        cr_assert(eq(int, bp_send_queue_open(path, &queue, &failure), BUGPACK_OK));
        bp_send_queue_close(&queue);
        for (size_t i = 0; i < sizeof above / sizeof above[0] && pass == 0; i++) {
            struct stat info;
            cr_assert(fstatat(dir.fd, above[i], &info, 0) == 0 && synced_count > i);
            cr_assert(eq(u64, synced[i], info.st_ino), "%s", above[i]);
        }
    }
    cr_assert(eq(sz, synced_count, 0));
}

static const bp_send_settings settings = {.max_count = 100, .max_bytes = UINT64_MAX};

/* Adds the report of one id under a name. */
static void add(const char *name, bool has_consent) {
    char file[300];
    bp_send_queue queue;
    bugpack_error error = BUGPACK_ERROR_INIT;
    bp_send_report report = {.bytes = 4, .id = "0123456789abcdef0123456789abcdef"};
    (void)snprintf(report.name, sizeof report.name, "%s", name);
    (void)snprintf(file, sizeof file, "%s/file", dir.path);
    report.fd = open(file, O_RDONLY | O_CLOEXEC);
    cr_assert(eq(int, bp_send_queue_open(dir.path, &queue, &error), BUGPACK_OK));
    cr_assert(eq(int, bp_send_queue_add(&queue, &settings, "d", file, &report, has_consent, &error),
                 BUGPACK_OK),
              "%s", error.message);
    bp_send_queue_close(&queue);
    (void)close(report.fd);
}

/* The one report of the queue. */
static bp_send_item only_item(void) {
    bp_send_queue queue;
    bp_send_item *items = NULL;
    size_t count = 0;
    cr_assert(eq(int, bp_send_queue_open(dir.path, &queue, &failure), BUGPACK_OK));
    cr_assert(eq(int, bp_send_queue_list(&queue, "d", &items, &count, &failure), BUGPACK_OK));
    cr_assert(eq(sz, count, 1));
    bp_send_item item = items[0];
    free(items);
    bp_send_queue_close(&queue);
    return item;
}

/* As a sender notes that the report has not arrived. */
static void save_attempt(bp_send_item item) {
    bp_send_queue queue;
    item.attempt_count++;
    cr_assert(eq(int, bp_send_queue_open(dir.path, &queue, &failure), BUGPACK_OK));
    cr_assert(eq(int, bp_send_queue_save_item(&queue, "d", &item, &failure), BUGPACK_OK));
    bp_send_queue_close(&queue);
}

static void add_again(void) {
    add("again.zip", false);
}

static void note_attempt(void) {
    save_attempt(only_item());
}

static void make_file(void) {
    cr_assert(temp_dir_write(&dir, "file", "text", 4));
}

Test(send_queue, has_a_report_once_that_two_processes_add) {
    make_file();
    other = add_again;
    add("once.zip", true);
    cr_assert(eq(int, pthread_join(other_thread, NULL), 0));
    cr_assert(only_item().has_consent);
}

Test(send_queue, keeps_the_consent_that_comes_while_a_sender_tries) {
    make_file();
    add("one.zip", false);
    bp_send_item listed = only_item();
    add("one.zip", true);
    save_attempt(listed);
    bp_send_item item = only_item();
    cr_assert(item.has_consent);
    cr_assert(eq(u64, item.attempt_count, 1));
}

Test(send_queue, keeps_the_attempt_that_is_noted_while_consent_comes) {
    make_file();
    add("one.zip", false);
    other = note_attempt;
    add("one.zip", true);
    cr_assert(eq(int, pthread_join(other_thread, NULL), 0));
    bp_send_item item = only_item();
    cr_assert(item.has_consent);
    cr_assert(eq(u64, item.attempt_count, 1));
}
