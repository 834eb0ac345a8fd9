/*
 * A host whose profile of the seconds before a trigger is kept by the kernel: threads that begin
 * later are in it, ours are not, and neither a fork nor a host that closes our descriptors, nor a
 * limit, harms it.
 */
#include <bugpack/bugpack.h>

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/check.h"
#include "support/descriptors.h"
#include "support/report_reader.h"
#include "support/temp_dir.h"

/* Not cloned under another name. clang does not clone. */
#if defined(__clang__)
#define OWN_NAME __attribute__((noinline))
#else
#define OWN_NAME __attribute__((noinline, noipa))
#endif

static temp_dir dir;
static _Thread_local volatile unsigned sink;

static uint64_t cpu_ms(void) {
    struct timespec now;
    CHECK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) == 0);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Their names are in the report: they are no clones. */
OWN_NAME static void price_all(unsigned rounds) {
    for (unsigned i = 0; i < rounds; i++) {
        sink = (sink ^ i) * 2654435761u;
    }
}

OWN_NAME static void serve_for(uint64_t ms) {
    uint64_t until = cpu_ms() + ms;
    while (cpu_ms() < until) {
        price_all(10000);
    }
}

static void *run_late(void *argument) {
    (void)prctl(PR_SET_NAME, "late");
    serve_for(400);
    return argument;
}

static bugpack_session *open_session(void) {
    bugpack_session *session = NULL;
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    options.app_name = "profiled";
    options.report_dir = dir.path;
    options.recorder.is_in_memory = true;
    options.sample_window_ms = 100;
    options.recorder.profile_hz = 97;
    if (bugpack_open(&options, &session, &error) != BUGPACK_OK) {
        (void)fprintf(stderr, "%s\n", error.message);
        exit(1);
    }
    return session;
}

/* A text of the only report, which is removed; the caller's. */
static char *take(bugpack_session *session, const char *entry, char **ret_manifest) {
    static bugpack_report_result result;
    result = (bugpack_report_result)BUGPACK_REPORT_RESULT_INIT;
    CHECK(bugpack_report(session, NULL, &result, NULL) == BUGPACK_OK);
    *ret_manifest = report_read(result.path, "manifest.json", NULL);
    CHECK(*ret_manifest != NULL);
    char *text = report_read(result.path, entry, NULL);
    CHECK(unlink(result.path) == 0);
    return text;
}

static bool can_profile(void) {
    char *manifest = NULL;
    bugpack_session *session = open_session();
    serve_for(100);
    char *folded = take(session, "profile.folded", &manifest);
    if (folded == NULL) {
        (void)printf("%s\n", strstr(manifest, "profile.folded"));
    }
    bool can = folded != NULL;
    free(folded);
    free(manifest);
    bugpack_close(session);
    return can;
}

static unsigned count_lines(const char *text, const char *begin, const char *inside) {
    unsigned count = 0;
    for (const char *line = text; line != NULL && *line != '\0';) {
        const char *end = strchr(line, '\n');
        const char *found = strstr(line, inside);
        count += strncmp(line, begin, strlen(begin)) == 0 && found != NULL && found < end;
        line = end == NULL ? NULL : end + 1;
    }
    return count;
}

static void expect_later_threads_and_none_of_ours(void) {
    char *manifest = NULL;
    pthread_t thread;
    bugpack_session *session = open_session();
    CHECK(pthread_create(&thread, NULL, run_late, NULL) == 0);
    serve_for(200);
    CHECK(pthread_join(thread, NULL) == 0);
    for (int i = 0; i < 3; i++) { /* ours have used time as well */
        char *folded = take(session, "profile.folded", &manifest);
        CHECK(folded != NULL);
        CHECK(count_lines(folded, "", "serve_for;price_all ") > 0);
        CHECK(count_lines(folded, "bugpack-", "") == 0);
        CHECK(strstr(manifest, "\"rate_hz\": ") != NULL);
        CHECK(strstr(manifest, "\"complete\": true") != NULL);
        free(folded);
        free(manifest);
        serve_for(50);
    }
    bugpack_close(session);
}

/* While the thread that began later still runs, it has its name. */
static atomic_bool must_stop;
static void *run_on(void *argument) {
    (void)prctl(PR_SET_NAME, "late");
    while (!atomic_load(&must_stop)) {
        serve_for(10);
    }
    return argument;
}

static void expect_a_running_thread_by_its_name(void) {
    char *manifest = NULL;
    pthread_t thread;
    bugpack_session *session = open_session();
    CHECK(pthread_create(&thread, NULL, run_on, NULL) == 0);
    serve_for(300);
    char *folded = take(session, "profile.folded", &manifest);
    CHECK(folded != NULL);
    CHECK(count_lines(folded, "late;", "run_on;serve_for;price_all ") > 0);
    atomic_store(&must_stop, true);
    CHECK(pthread_join(thread, NULL) == 0);
    free(folded);
    free(manifest);
    bugpack_close(session);
}

static void expect_the_child_to_be_left_alone(void) {
    char *manifest = NULL;
    bugpack_session *session = open_session();
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        serve_for(100);
        bugpack_close(session);
        _exit(0);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    serve_for(200);
    char *folded = take(session, "profile.folded", &manifest);
    CHECK(folded != NULL);
    free(folded);
    free(manifest);
    bugpack_close(session);
}

/* A host that closes what it does not own, and has files of its own at the numbers. */
static void expect_a_host_that_closes_descriptors_to_keep_its_own(void) {
    char *manifest = NULL;
    char link[64], target[64];
    int taken[4096];
    size_t count = 0;
    bugpack_session *session = open_session();
    for (int fd = 3; fd < 1024; fd++) {
        (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t length = readlink(link, target, sizeof target - 1);
        target[length > 0 ? length : 0] = '\0';
        if (strstr(target, "perf_event") != NULL) {
            CHECK(close(fd) == 0);
            CHECK(dup2(STDERR_FILENO, fd) == fd);
            taken[count++] = fd;
        }
    }
    CHECK(count > 0);
    char *folded = take(session, "profile.folded", &manifest);
    CHECK(folded == NULL);
    CHECK(strstr(manifest, "were closed by the program") != NULL);
    CHECK(strstr(manifest, "\"complete\": false") != NULL); /* it was asked for, and had begun */
    bugpack_close(session);
    for (size_t i = 0; i < count; i++) {
        CHECK(close(taken[i]) == 0); /* it was not closed by us */
    }
    free(manifest);
}

/* In a child, as neither can be undone. */
static void expect_refusal(const char *reason, void (*restrict_ourselves)(void)) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        char *manifest = NULL;
        restrict_ourselves();
        bugpack_session *session = open_session();
        serve_for(50);
        char *folded = take(session, "profile.folded", &manifest);
        bugpack_close(session);
        bool is_refused = folded == NULL && strstr(manifest, reason) != NULL;
        _exit(is_refused && strstr(manifest, "\"complete\": true") != NULL ? 0 : 1);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void refuse_events(void) {
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog filter = {sizeof rules / sizeof rules[0], rules};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0);
}

static void allow_few_descriptors(void) {
    const struct rlimit few = {100, 100};
    CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
}

int main(void) {
    CHECK(temp_dir_make(&dir));
    if (!can_profile()) {
        SKIP("the kernel takes no samples for this user");
    }
    unsigned before = count_descriptors();
    expect_later_threads_and_none_of_ours();
    expect_a_running_thread_by_its_name();
    expect_the_child_to_be_left_alone();
    expect_a_host_that_closes_descriptors_to_keep_its_own();
    CHECK(count_descriptors() == before);
    expect_refusal("perf_event_open is refused", refuse_events);
    expect_refusal("RLIMIT_NOFILE", allow_few_descriptors);
    temp_dir_remove(&dir);
    return 0;
}
