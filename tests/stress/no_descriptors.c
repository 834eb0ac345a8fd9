/*
 * A host that has run out of descriptors takes whole reports all the same, one after the other, and
 * the library takes back what it held in reserve.
 */
#include <bugpack/bugpack.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "platform/wake.h"
#include "support/check.h"
#include "support/temp_dir.h"

enum { fd_count = 100 };

static temp_dir dir;

static unsigned use_up_descriptors(void) {
    unsigned count = 0;
    while (open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0) {
        count++;
    }
    CHECK(errno == EMFILE);
    return count;
}

static unsigned count_free(void) {
    unsigned count = 0;
    for (int fd = 0; fd < fd_count; fd++) {
        count += fcntl(fd, F_GETFD) < 0;
    }
    return count;
}

/* From now on the process may have so many. */
static void limit_descriptors(rlim_t count) {
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    limit.rlim_cur = count < limit.rlim_max ? count : limit.rlim_max;
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
}

/* Nothing is held in reserve that would be the host's last, but for what was held before. */
static void the_last_ones_are_the_hosts(void) {
    bp_fd_reserve reserve = {.is_held = false};
    unsigned free_count = count_free();
    int first = dup(STDIN_FILENO);
    CHECK(first >= 0 && close(first) == 0);
    limit_descriptors((rlim_t)first + BP_FD_RESERVE_COUNT + 4);
    bp_fd_reserve_take(&reserve);
    CHECK(free_count - count_free() <= 4);
    bp_fd_reserve_release(&reserve);
    limit_descriptors(fd_count);
    bp_fd_reserve_take(&reserve);
    CHECK(free_count - count_free() == BP_FD_RESERVE_COUNT);
    bp_fd_reserve_release(&reserve);
    limit_descriptors((rlim_t)first + BP_FD_RESERVE_COUNT);
    bp_fd_reserve_take(&reserve);
    CHECK(free_count - count_free() > 4);
    bp_fd_reserve_release(&reserve);
    CHECK(free_count == count_free());
}

int main(void) {
    CHECK(temp_dir_make(&dir));
    the_last_ones_are_the_hosts();
    limit_descriptors(fd_count);
    bugpack_session *session = NULL;
    bugpack_channel *channel = NULL;
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    options.app_name = "poor";
    options.report_dir = dir.path;
    options.recorder.is_in_memory = true;
    CHECK(bugpack_open(&options, &session, NULL) == BUGPACK_OK);
    CHECK(bugpack_channel_open(session, "net", NULL, &channel, NULL) == BUGPACK_OK);
    bugpack_log(session, BUGPACK_LEVEL_INFO, "net", "out of descriptors");
    bugpack_traffic(channel, BUGPACK_SENT, 1, "word", "word", 4);
    CHECK(use_up_descriptors() > 0);
    for (int i = 0; i < 3; i++) {
        bugpack_report_result result = BUGPACK_REPORT_RESULT_INIT;
        bugpack_status status = bugpack_report(session, NULL, &result, NULL);
        if (status != BUGPACK_OK || result.missing_count > 0) {
            (void)fprintf(stderr, "%s%s\n", result.error.message, result.missing);
        }
        CHECK(status == BUGPACK_OK && result.missing_count == 0);
        while (count_free() > 3) { /* the reserve is filled again, but for what a sample uses */
            (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        }
        (void)use_up_descriptors();
    }
    bugpack_close(session);
    limit_descriptors(RLIM_INFINITY);
    temp_dir_remove(&dir);
    return 0;
}
