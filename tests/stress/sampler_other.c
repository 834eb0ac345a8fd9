/*
 * The sampler on other processes: alive, killed, replaced by exec, a zombie, of another user, and
 * with files that are not what they were.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "platform/process_facts.h"
#include "stress/sampler_check.h"

/* In a child: where its threads say that they bear their names. */
static int ready_fd;

static void *idle(void *name) {
    (void)prctl(PR_SET_NAME, name, 0, 0, 0);
    (void)!write(ready_fd, "", 1);
    for (;;) {
        (void)pause();
    }
    return NULL;
}

/* A child with four threads; returns when all of them are there. */
static pid_t start_child(void) {
    static char names[3][16] = {"b) S 1", "c\n", "\xff"};
    int ready[2];
    CHECK(pipe2(ready, O_CLOEXEC) == 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        ready_fd = ready[1];
        for (size_t i = 0; i < 3; i++) {
            pthread_t thread;
            if (pthread_create(&thread, NULL, idle, names[i]) != 0) {
                _exit(1);
            }
        }
        for (;;) {
            (void)pause();
        }
    }
    (void)close(ready[1]);
    for (size_t i = 0; i < 3; i++) {
        char byte;
        CHECK(read(ready[0], &byte, 1) == 1);
    }
    (void)close(ready[0]);
    return pid;
}

/* A child that runs a program, past its exec. */
static pid_t start_program(const char *path) {
    int ready[2];
    char byte;
    CHECK(pipe2(ready, O_CLOEXEC) == 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        (void)execl(path, path, "1000", (char *)NULL);
        _exit(127);
    }
    (void)close(ready[1]);
    /* The pipe closes when exec succeeds, or when the child is gone. */
    CHECK(read(ready[0], &byte, 1) == 0);
    (void)close(ready[0]);
    return pid;
}

static void kill_child(pid_t pid, bool reap) {
    siginfo_t info;
    CHECK(kill(pid, SIGKILL) == 0);
    CHECK(waitid(P_PID, (id_t)pid, &info, WEXITED | (reap ? 0 : WNOWAIT)) == 0);
}

static const bp_thread_metrics *find_thread(const bp_metrics *metrics, const char *name) {
    for (size_t i = 0; i < metrics->thread_count; i++) {
        if (strcmp(metrics->threads[i].name, name) == 0) {
            return &metrics->threads[i];
        }
    }
    CHECK(false && "a thread is missing");
    return NULL;
}

static void a_child_is_sampled_with_all_its_threads(void) {
    pid_t pid = start_child();
    bp_sampler *sampler = NULL;
    bp_metrics metrics;
    bugpack_error error = BUGPACK_ERROR_INIT;
    CHECK_STATUS(bp_sampler_open(pid, &sampler, &error), BUGPACK_OK, error);
    CHECK(bp_task_pid(bp_sampler_task(sampler)) == pid);
    CHECK_STATUS(bp_sampler_begin(sampler, &error), BUGPACK_OK, error);
    CHECK_STATUS(bp_sampler_end(sampler, &metrics, &error), BUGPACK_OK, error);
    check_sane(&metrics);
    /* ThreadSanitizer adds a thread of its own. */
    CHECK(metrics.thread_count >= 4);
    (void)find_thread(&metrics, "b) S 1");
    (void)find_thread(&metrics, "c\n");
    pid_t thread = (pid_t)find_thread(&metrics, "\xff")->tid;
    bp_metrics_release(&metrics);
    bp_sampler_close(sampler);
    CHECK(bp_sampler_open(thread, &sampler, &error) == BUGPACK_ERR_NO_PROCESS);
    CHECK(strstr(error.message, "is not a process but a thread of process") != NULL);
    kill_child(pid, true);
    CHECK(bp_sampler_open(pid, &sampler, &error) == BUGPACK_ERR_NO_PROCESS);
    CHECK(strstr(error.message, "no process with id") != NULL);
}

static void a_child_killed_inside_the_window_has_ended(bool reap) {
    pid_t pid = start_child();
    bp_sampler *sampler = NULL;
    bp_metrics metrics = {.sample_window_ms = 42};
    bugpack_error error = BUGPACK_ERROR_INIT;
    CHECK(bp_sampler_open(pid, &sampler, NULL) == BUGPACK_OK);
    CHECK(bp_sampler_begin(sampler, NULL) == BUGPACK_OK);
    kill_child(pid, reap);
    CHECK_STATUS(bp_sampler_end(sampler, &metrics, &error), BUGPACK_ERR_NO_PROCESS, error);
    CHECK(strstr(error.message, "has ended") != NULL);
    CHECK(metrics.sample_window_ms == 42);
    bp_process_facts facts = {.pid = 42};
    CHECK(bp_process_facts_read(bp_sampler_task(sampler), &facts, &error) ==
          BUGPACK_ERR_NO_PROCESS);
    CHECK(facts.pid == 42);
    bp_sampler_close(sampler);
    if (!reap) {
        CHECK(waitpid(pid, NULL, 0) == pid);
    }
}

static void a_zombie_is_there_without_memory(void) {
    pid_t pid = start_child();
    bp_sampler *sampler = NULL;
    bp_metrics metrics;
    bugpack_error error = BUGPACK_ERROR_INIT;
    kill_child(pid, false);
    CHECK_STATUS(bp_sampler_open(pid, &sampler, &error), BUGPACK_OK, error);
    CHECK_STATUS(bp_sampler_begin(sampler, &error), BUGPACK_OK, error);
    CHECK_STATUS(bp_sampler_end(sampler, &metrics, &error), BUGPACK_OK, error);
    CHECK(!metrics.has_memory && metrics.has_uptime && metrics.thread_count == 1);
    bp_metrics_release(&metrics);
    CHECK(bp_sampler_begin(sampler, NULL) == BUGPACK_OK);
    CHECK(waitpid(pid, NULL, 0) == pid);
    CHECK(bp_sampler_end(sampler, &metrics, NULL) == BUGPACK_ERR_NO_PROCESS);
    bp_sampler_close(sampler);
}

/* The same process goes on under another program: its id and its start stay. */
static void exec_inside_the_window_is_no_end(void) {
    int go[2];
    char byte = 0;
    bp_sampler *sampler = NULL;
    bp_metrics metrics;
    bugpack_error error = BUGPACK_ERROR_INIT;
    CHECK(pipe2(go, O_CLOEXEC) == 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        (void)!read(go[0], &byte, 1);
        (void)execl("/bin/sleep", "sleep", "1000", (char *)NULL);
        _exit(127);
    }
    CHECK(bp_sampler_open(pid, &sampler, NULL) == BUGPACK_OK);
    CHECK(bp_sampler_begin(sampler, NULL) == BUGPACK_OK);
    CHECK(write(go[1], &byte, 1) == 1);
    do {
        CHECK(bp_sampler_begin(sampler, NULL) == BUGPACK_OK);
        CHECK_STATUS(bp_sampler_end(sampler, &metrics, &error), BUGPACK_OK, error);
        CHECK(metrics.thread_count >= 1);
        byte = strcmp(metrics.threads[0].name, "sleep") == 0;
        bp_metrics_release(&metrics);
    } while (byte == 0);
    bp_sampler_close(sampler);
    kill_child(pid, true);
}

static bp_process_facts read_facts(pid_t pid) {
    bp_task *task = NULL;
    bp_process_facts facts = {0};
    bugpack_error error = BUGPACK_ERROR_INIT;
    CHECK_STATUS(bp_task_open(pid, &task, &error), BUGPACK_OK, error);
    CHECK_STATUS(bp_process_facts_read(task, &facts, &error), BUGPACK_OK, error);
    bp_task_close(task);
    return facts;
}

static void copy_program(const char *from, const char *to) {
    bp_buffer bytes;
    bp_buffer_init(&bytes, (size_t)16 << 20);
    CHECK(bp_file_read_at(AT_FDCWD, from, &bytes, NULL) == BUGPACK_OK);
    int fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
    CHECK(fd >= 0 && write(fd, bytes.data, bytes.size) == (ssize_t)bytes.size);
    (void)close(fd);
    bp_buffer_release(&bytes);
}

static const bp_loaded_object *find_object(const bp_process_facts *facts, const char *path) {
    for (size_t i = 0; i < facts->object_count; i++) {
        if (strcmp(facts->objects[i].path, path) == 0) {
            return &facts->objects[i];
        }
    }
    CHECK(false && "an object is missing");
    return NULL;
}

/* What stands in the place of a mapped file may hang, or be an impostor. */
static void a_replaced_program_is_deleted_and_not_mistaken(void) {
    char directory[] = "/tmp/bugpack-sampler-XXXXXX";
    char path[64];
    CHECK(mkdtemp(directory) != NULL);
    (void)snprintf(path, sizeof path, "%s/a\nb (deleted)", directory);
    copy_program("/bin/sleep", path);
    pid_t pid = start_program(path);
    bp_process_facts facts = read_facts(pid);
    const bp_loaded_object *object = find_object(&facts, path);
    CHECK(!object->deleted && strlen(object->build_id) == 40);
    char build_id[65];
    (void)snprintf(build_id, sizeof build_id, "%s", object->build_id);
    bp_process_facts_release(&facts);

    CHECK(unlink(path) == 0 && mkfifo(path, 0600) == 0);
    facts = read_facts(pid);
    object = find_object(&facts, path);
    CHECK(object->deleted);
    /* Only who may checkpoint processes can still read it. */
    CHECK(object->build_id[0] == '\0' || strcmp(object->build_id, build_id) == 0);
    bp_process_facts_release(&facts);

    CHECK(unlink(path) == 0);
    copy_program("/proc/self/exe", path);
    facts = read_facts(pid);
    object = find_object(&facts, path);
    CHECK(object->deleted);
    CHECK(object->build_id[0] == '\0' || strcmp(object->build_id, build_id) == 0);
    bp_process_facts_release(&facts);
    kill_child(pid, true);
    CHECK(unlink(path) == 0 && rmdir(directory) == 0);
}

/* Reads the facts of a process of root as somebody else, and tells by its exit status. */
static void what_is_denied_is_named(void) {
    if (geteuid() != 0) {
        (void)puts("not root: what another user's process denies is not tested");
        return;
    }
    pid_t target = start_child();
    pid_t reader = fork();
    CHECK(reader >= 0);
    if (reader == 0) {
        CHECK(setgid(65534) == 0 && setuid(65534) == 0);
        bp_process_facts facts = read_facts(target);
        CHECK(facts.thread_count.value >= 4 && facts.uid.value == 0);
        CHECK(facts.command_line.size > 0);
        CHECK(!facts.objects_known && facts.executable == NULL && !facts.read_bytes.known);
        CHECK(strstr(facts.denied, "input and output, ") == facts.denied);
        CHECK(strstr(facts.denied, "loaded objects: Permission denied") != NULL);
        bp_process_facts_release(&facts);
        exit(0);
    }
    int status = 0;
    CHECK(waitpid(reader, &status, 0) == reader && status == 0);
    kill_child(target, true);
}

int main(void) {
    a_child_is_sampled_with_all_its_threads();
    a_child_killed_inside_the_window_has_ended(true);
    a_child_killed_inside_the_window_has_ended(false);
    a_zombie_is_there_without_memory();
    exec_inside_the_window_is_no_end();
    a_replaced_program_is_deleted_and_not_mistaken();
    what_is_denied_is_named();
    return 0;
}
