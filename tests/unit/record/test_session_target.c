/*
 * What a session knows of a target that has ended.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include "report/subject.h"
#include "session/command.h"
#include "unit/quick_session.h"

SESSION_SUITE(session_target);

Test(session_target, keeps_what_a_refresh_read_of_a_target_that_then_ends) {
    pid_t child = fork();
    if (child == 0) {
        for (;;) {
            pause();
        }
    }
    options.target_pid = child;
    open_session();
    cr_assert(zero(int, bp_session_refresh_target(session, &failure)), "%s", failure.message);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    cr_assert(eq(int, bp_session_refresh_target(session, &failure), BUGPACK_ERR_NO_PROCESS));
    take(NULL);
    char expected[32];
    (void)snprintf(expected, sizeof expected, "\"pid\": %ld", (long)child);
    cr_assert(holds("process.json", expected));
    cr_assert(holds("manifest.json", "this is how it was at"));
}

enum { window_ms = 20 };

static int outlast_window(bugpack_writer *writer, void *context) {
    bp_clock_sleep_until(bp_clock_monotonic_ns() + 3 * window_ms * BP_NS_PER_MS);
    return bugpack_printf(writer, "late") == BUGPACK_OK ? 0 : -1;
}

/* The window ends when all were asked: memory has a sample before its last one. */
Test(session_target, is_sampled_between_providers_that_outlast_its_window) {
    options.target_pid = getppid();
    options.sample_window_ms = window_ms;
    open_session();
    provide("one.txt", BUGPACK_PROVIDE_TEXT, outlast_window, NULL);
    provide("two.txt", BUGPACK_PROVIDE_TEXT, outlast_window, NULL);
    take(NULL);
    CLEANUP(free_memory) char *text = report_read(taken.path, "runtime-metrics.json", NULL);
    unsigned late_count = 0;
    for (const char *at = text; (at = strstr(at, "\"at_ms\": ")) != NULL; at++) {
        late_count += strtod(at + strlen("\"at_ms\": "), NULL) >= 3 * window_ms;
    }
    cr_assert(ge(uint, late_count, 2), "%s", text);
}

static bool executes(pid_t pid, const char *name) {
    char path[64], target[256];
    (void)snprintf(path, sizeof path, "/proc/%ld/exe", (long)pid);
    ssize_t length = readlink(path, target, sizeof target - 1);
    target[length > 0 ? length : 0] = '\0';
    return strcmp(strrchr(target, '/') != NULL ? strrchr(target, '/') + 1 : "", name) == 0;
}

static uint64_t image_of(const bp_subject *subject) {
    CLEANUP(bp_task_snapshot_release) bp_task_snapshot snapshot = {0};
    bp_task *task = bp_sampler_task(bp_subject_sampler(subject, NULL));
    cr_assert(zero(int, (int)bp_task_snapshot_take(task, false, &snapshot, NULL)));
    return snapshot.image;
}

/* As env(1) does: it becomes another program, and ends before the report. */
static void check_facts_of_a_chain(bool has_been_followed, const char *expected_name,
                                   const char *expected_reason) {
    int go[2];
    cr_assert(zero(int, pipe(go)));
    pid_t child = fork();
    if (child == 0) {
        char word;
        (void)!read(go[0], &word, 1);
        (void)execlp("sleep", "sleep", "1000", (char *)NULL);
        _exit(1);
    }
    const bp_config config = {.target_pid = child};
    bp_subject *subject = NULL;
    cr_assert(zero(int, (int)bp_subject_open(&config, &subject, NULL)));
    cr_assert(zero(int, (int)bp_subject_refresh(subject, NULL)));
    cr_expect(eq(u64, image_of(subject), 0), "it runs what we run");
    cr_assert(eq(sz, (size_t)write(go[1], "g", 1), 1));
    while (!executes(child, "sleep") || image_of(subject) == 0) {
        (void)usleep(1000);
    }
    if (has_been_followed) {
        cr_expect(ne(u64, bp_subject_follow(subject, UINT64_MAX / 2), 0));
        while (!bp_subject_end_refresh(subject)) {}
    }
    siginfo_t info;
    kill(child, SIGKILL);
    cr_assert(zero(int, waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT)));
    bugpack_writer writer;
    bp_writer_init(&writer, 1 << 20);
    cr_assert(zero(int, bp_subject_write_facts(subject, &writer, &failure)), "%s", failure.message);
    const char *found = strstr(bp_buffer_text(&writer.content), "\"name\": ");
    cr_expect(eq(int, strncmp(found + 8, expected_name, strlen(expected_name)) == 0, 1), "%.40s",
              found);
    cr_expect(ne(ptr, strstr(writer.line.reason, expected_reason), NULL), "%s", writer.line.reason);
    bp_writer_release(&writer);
    bp_subject_drop(subject);
    waitpid(child, NULL, 0);
    close(go[0]);
    close(go[1]);
}

Test(session_target, has_the_facts_of_what_it_executed_last) {
    check_facts_of_a_chain(true, "\"sleep\"", "has ended; this is how it was at");
}

Test(session_target, says_that_its_facts_are_of_before_another_program) {
    check_facts_of_a_chain(false, "\"unit_session", "Z, before it became \"sleep\"");
}

/* Starts the file system of stalled_files.py, whose words come from `*ret_said`. */
static pid_t start_stalled(const char *directory, FILE **ret_said) {
    int ends[2];
    cr_assert(zero(int, pipe(ends)));
    pid_t server = fork();
    if (server == 0) {
        sigset_t none;
        (void)sigemptyset(&none);
        (void)sigprocmask(SIG_SETMASK, &none, NULL); /* for the alarm */
        (void)alarm(100);
        (void)dup2(ends[1], STDOUT_FILENO);
        (void)close(ends[0]);
        (void)execlp("python3", "python3", BUGPACK_STALLED_FILES, directory, "read", (char *)NULL);
        _exit(1);
    }
    (void)close(ends[1]);
    *ret_said = fdopen(ends[0], "r");
    return server;
}

/* One that has mapped a file there as code. */
static pid_t start_mapping(const char *directory) {
    char path[512];
    (void)snprintf(path, sizeof path, "%s/log", directory);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    void *code = fd < 0 ? MAP_FAILED : mmap(NULL, 4096, PROT_EXEC, MAP_PRIVATE, fd, 0);
    cr_assert(ne(ptr, code, MAP_FAILED));
    pid_t child = fork();
    if (child == 0) {
        (void)alarm(200);
        (void)pause();
        _exit(0);
    }
    (void)munmap(code, 4096);
    (void)close(fd);
    return child;
}

/* Until the server ends, nobody who opens the file gets on. */
Test(session_target, keeps_no_caller_waiting_for_the_files_of_a_process) {
    FILE *said = NULL;
    char word[16] = "";
    pid_t server = start_stalled(dir.path, &said);
    if (fgets(word, sizeof word, said) == NULL || strcmp(word, "ready\n") != 0) {
        (void)waitpid(server, NULL, 0);
        cr_skip_test("needs python3 and a file system of its own");
    }
    pid_t child = start_mapping(dir.path);
    const bp_config config = {.target_pid = child};
    bp_subject *subject = NULL;
    cr_assert(zero(int, (int)bp_subject_open(&config, &subject, NULL)));
    struct pollfd reading = {.fd = fileno(said), .events = POLLIN};
    while (poll(&reading, 1, 10) == 0) {
        (void)bp_subject_follow(subject, bp_clock_monotonic_ns());
    }
    cr_expect(eq(str, fgets(word, sizeof word, said), "read\n"));
    cr_expect(not(bp_subject_end_refresh(subject)), "it waits for the server");
    bp_subject_process *processes = NULL;
    size_t count = 0;
    cr_expect(zero(int, bp_subject_list(subject, &processes, &count, NULL)));
    free(processes);
    cr_expect(zero(int, waitpid(server, NULL, WNOHANG)), "the server has not ended");
    (void)kill(server, SIGKILL);
    (void)waitpid(server, NULL, 0);
    while (!bp_subject_end_refresh(subject)) {}
    bp_subject_drop(subject);
    (void)kill(child, SIGKILL);
    (void)waitpid(child, NULL, 0);
    (void)fclose(said);
    (void)umount2(dir.path, MNT_DETACH);
}

static int provide_crash(bugpack_writer *writer, void *context) {
    return bugpack_printf(writer, "{}") == BUGPACK_OK ? 0 : -1;
}

/* What a target died of is for its host to say; of our own process the crash handler does. */
Test(session_target, takes_the_crash_of_another_process_alone) {
    for (int i = 0; i < 2; i++) {
        options.target_pid = i == 0 ? 0 : getppid();
        open_session();
        bugpack_status status =
            bugpack_provide(session, "crash.json", BUGPACK_PROVIDE_JSON, provide_crash, NULL, NULL);
        cr_assert(eq(int, status, (int)(i == 0 ? BUGPACK_ERR_INVALID : BUGPACK_OK)));
        cr_assert(eq(
            int,
            bugpack_provide(session, "Crash.json", BUGPACK_PROVIDE_JSON, provide_crash, NULL, NULL),
            BUGPACK_ERR_INVALID));
        cr_assert(eq(
            int,
            bugpack_provide(session, "files.json", BUGPACK_PROVIDE_JSON, provide_crash, NULL, NULL),
            BUGPACK_ERR_INVALID));
        cr_expect(eq(int, bugpack_unprovide(session, "crash.json"), i == 1));
        bugpack_close(session);
    }
}

Test(session_target, has_nothing_to_refresh_of_its_own_process) {
    open_session();
    cr_assert(eq(int, bp_session_refresh_target(session, &failure), BUGPACK_ERR_INVALID));
    cr_assert(eq(int, bp_session_refresh_target(NULL, NULL), BUGPACK_ERR_INVALID));
}

struct family {
    pid_t child, grandchild;
};

/* A child writes the ids of itself and of a child of its own into the pipe; the target writes a
 * byte when its child has ended. */
static _Noreturn void be_target(int ready_fd) {
    pid_t child = fork();
    if (child == 0) {
        const struct family family = {getpid(), fork()};
        if (family.grandchild > 0) {
            (void)!write(ready_fd, &family, sizeof family);
        }
    } else {
        (void)waitpid(child, NULL, 0);
        (void)!write(ready_fd, "e", 1);
    }
    for (;;) {
        pause();
    }
}

static bool lists(bp_subject *subject, pid_t pid) {
    bp_subject_process *processes = NULL;
    size_t count = 0;
    cr_assert(eq(int, bp_subject_list(subject, &processes, &count, NULL), BUGPACK_OK));
    cr_expect(eq(int, processes[0].pid, subject->target.pid));
    bool is_listed = false;
    for (size_t i = 1; i < count; i++) {
        is_listed = is_listed || processes[i].pid == pid;
    }
    free(processes);
    return is_listed;
}

Test(session_target, knows_a_descendant_whose_parent_has_ended_if_it_was_noted) {
    int ready[2];
    struct family family;
    char ended;
    cr_assert(zero(int, pipe(ready)));
    pid_t target = fork();
    if (target == 0) {
        be_target(ready[1]);
    }
    cr_assert(eq(sz, (size_t)read(ready[0], &family, sizeof family), sizeof family));
    const bp_config config = {.target_pid = target, .with_descendants = true};
    bp_subject *subject = NULL;
    cr_assert(eq(int, bp_subject_open(&config, &subject, NULL), BUGPACK_OK));
    cr_expect(lists(subject, family.child) && lists(subject, family.grandchild));
    bp_task_snapshot snapshot;
    bp_task *task = bp_sampler_task(bp_subject_sampler(subject, NULL));
    cr_assert(eq(int, bp_task_snapshot_take(task, false, &snapshot, NULL), BUGPACK_OK));
    bp_subject_note(subject, &snapshot);
    bp_task_snapshot_release(&snapshot);
    kill(family.child, SIGKILL);
    cr_assert(eq(sz, (size_t)read(ready[0], &ended, 1), 1));
    cr_expect(lists(subject, family.grandchild));
    bp_subject_drop(subject);
    kill(family.grandchild, SIGKILL);
    kill(target, SIGKILL);
    waitpid(target, NULL, 0);
    close(ready[0]);
    close(ready[1]);
}
