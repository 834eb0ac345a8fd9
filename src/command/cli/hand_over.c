#include "cli/hand_over.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/output.h"
#include "send/queue.h"
#include "send/report.h"

enum { standard_count = 3 };

bool bp_cli_hand_over_prepare(const char *name, bp_cli_exit *ret_exit) {
    bp_send_settings settings;
    const bp_send_destination *found;
    bugpack_error error = BUGPACK_ERROR_INIT;
    if (name == NULL) {
        return true;
    }
    bugpack_status status = bp_send_settings_read(NULL, &settings, &error);
    if (status == BUGPACK_OK) {
        status = bp_send_settings_choose(&settings, name, true, &found, &error);
    }
    if (status != BUGPACK_OK) {
        bp_cli_say("%s", error.message);
        *ret_exit = BP_CLI_FAILED;
    } else if (found->consent != BP_SEND_ALWAYS) {
        bp_cli_say("reports for \"%s\" wait in the queue for consent: bugpack send --queue --yes",
                   name);
    }
    bp_send_settings_release(&settings);
    return status == BUGPACK_OK;
}

/* In a new process, which nobody waits for and no terminal ends. */
_Noreturn static void become_sender(char *const *arguments) {
    sigset_t none;
    int null_fd = open("/dev/null", O_RDWR);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    for (int fd = 0; fd < standard_count && null_fd >= 0; fd++) {
        (void)dup2(null_fd, fd);
    }
#ifdef SYS_close_range
    /* Whoever reads what we were given waits for its end. Linux 5.9. */
    (void)syscall(SYS_close_range, standard_count, ~0U, 0);
#endif
    (void)execv(BP_CLI_OWN_PATH, arguments);
    _exit(1); /* the report waits for the next `send --queue` */
}

static void start_sender(const char *name) {
    char *const arguments[] = {(char *)(uintptr_t) "bugpack", (char *)(uintptr_t) "send",
                               (char *)(uintptr_t) "--queue", (char *)(uintptr_t) "--to",
                               (char *)(uintptr_t)name,       NULL};
    pid_t pid = fork();
    if (pid == 0) {
        (void)setsid();
        if (fork() == 0) {
            become_sender(arguments);
        }
        _exit(0);
    }
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR) {}
}

bugpack_status bp_cli_hand_over(const char *name, const char *path, bugpack_error *error) {
    bp_send_settings settings;
    bp_send_queue queue = {.fd = -1, .lock_fd = -1};
    bp_send_report report = {.fd = -1};
    if (name == NULL) {
        return BUGPACK_OK;
    }
    bugpack_status status = bp_send_settings_read(NULL, &settings, error);
    if (status == BUGPACK_OK) {
        status = bp_send_queue_open(settings.queue_dir, &queue, error);
    }
    if (status == BUGPACK_OK) {
        status = bp_send_report_open(path, NULL, &report, error);
    }
    if (status == BUGPACK_OK) {
        status = bp_send_queue_add(&queue, &settings, name, path, &report, false, error);
    }
    bp_send_report_close(&report);
    bp_send_queue_close(&queue);
    bp_send_settings_release(&settings);
    if (status == BUGPACK_OK) {
        start_sender(name);
    }
    return status;
}
