#include "cli/progress.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/output.h"
#include "run/descriptor.h"

enum { bar_cells = 30, smallest_bar_cells = 5, usual_columns = 80, redraw_ms = 100 };

/* Carriage return, then "erase in line" (ECMA-48, 8.3.41). */
#define ERASE_LINE "\r\033[K"

/* A command that prints until it is interrupted ends by a hang-up as any other does. */
static const int ending_signals[] = {SIGINT, SIGTERM, SIGHUP};
enum { ending_signal_count = 3, interrupt_count = 2 };

static volatile sig_atomic_t ended_by, wake_fd;

/* No bar is drawn while it is set; read and written under the lock of stderr. */
static bool is_paused;

void bp_cli_progress_pause(bool is_to_pause) {
    flockfile(stderr);
    is_paused = is_to_pause;
    funlockfile(stderr);
}

bool bp_cli_progress_is_ended(void) {
    return ended_by != 0;
}

/* Runs with the default action restored (SA_RESETHAND): a second signal ends the program. */
static void end_wait(int signal_number) {
    static const char byte = BP_CLI_SIGNAL_BYTE;
    int saved_errno = errno;
    ended_by = signal_number;
    ssize_t ignored = write(wake_fd, &byte, 1);
    (void)ignored;
    errno = saved_errno;
}

static void catch_signals(size_t count, struct sigaction *ret_before) {
    const struct sigaction action = {.sa_handler = end_wait, .sa_flags = (int)SA_RESETHAND};
    for (size_t i = 0; i < count; i++) {
        (void)sigaction(ending_signals[i], NULL, &ret_before[i]);
        /* nohup and background jobs ignore some of these. */
        if (ret_before[i].sa_handler != SIG_IGN) {
            (void)sigaction(ending_signals[i], &action, NULL);
        }
    }
}

/*
 * How many cells a line may fill: it must not wrap, or it could not be erased. Some terminals wrap
 * as soon as the last cell is filled. Queried each time, because a window can be resized.
 */
static int line_cells(void) {
    struct winsize size;
    bool is_known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    return (is_known ? size.ws_col : usual_columns) - 1;
}

/* A bar, then a few words. */
static void draw(uint64_t position, uint64_t total, const char *words, bool colour) {
    int room = line_cells();
    if (position >= total) {
        (void)fprintf(stderr, ERASE_LINE "%.*s", room, "writing the report");
        return;
    }
    int words_cells = (int)strlen(words);
    int cells = room - words_cells - (int)strlen("[] ");
    cells = cells < bar_cells ? cells : bar_cells;
    if (cells < smallest_bar_cells) {
        (void)fprintf(stderr, ERASE_LINE "%.*s", room, words);
        return;
    }
    int filled = (int)(position * (uint64_t)cells / total);
    char done[bar_cells + 1];
    char left[bar_cells + 1];
    memset(done, '#', bar_cells);
    memset(left, '.', bar_cells);
    (void)fprintf(stderr, ERASE_LINE "[%s%.*s%s%.*s] %s", colour ? "\033[32m" : "", filled, done,
                  colour ? "\033[0m" : "", cells - filled, left, words);
}

static void draw_progress(uint64_t elapsed_ms, uint32_t window_ms, const bp_cli_steps *steps,
                          bool colour) {
    char words[48];
    if (steps == NULL) {
        (void)snprintf(words, sizeof words, "%.1f of %.1f s", (double)elapsed_ms / 1000.0,
                       window_ms / 1000.0);
        draw(elapsed_ms, window_ms, words, colour);
        return;
    }
    uint64_t total = atomic_load(&steps->total);
    uint64_t done = atomic_load(&steps->done);
    total = total > 0 ? total : 1; /* it has not begun yet */
    (void)snprintf(words, sizeof words, "%u %% of all threads", (unsigned)(done * 100 / total));
    draw(done, total, words, colour);
}

int bp_cli_progress_wait(const int done_pipe[2], uint32_t window_ms, const bp_cli_steps *steps,
                         bool show) {
    struct sigaction before[ending_signal_count];
    struct pollfd waited = {done_pipe[0], POLLIN, 0};
    bool colour = bp_cli_wants_colour();
    uint64_t started_ns = bp_clock_monotonic_ns();
    char byte = 0;
    ended_by = 0;
    wake_fd = done_pipe[1];
    catch_signals(ending_signal_count, before);
    int ready;
    do {
        flockfile(stderr);
        if (show && !is_paused) {
            draw_progress((bp_clock_monotonic_ns() - started_ns) / BP_NS_PER_MS, window_ms, steps,
                          colour);
        }
        funlockfile(stderr);
        ready = poll(&waited, 1, show ? redraw_ms : -1);
    } while (ready == 0 || (ready < 0 && errno == EINTR));
    if (show) {
        (void)fputs(ERASE_LINE, stderr);
    }
    while (read(done_pipe[0], &byte, 1) < 0 && errno == EINTR) {}
    for (size_t i = 0; i < ending_signal_count; i++) {
        (void)sigaction(ending_signals[i], &before[i], NULL);
    }
    return byte == BP_CLI_SIGNAL_BYTE ? ended_by : 0;
}

bugpack_status bp_cli_catch_end(int *ret_fd, bugpack_error *error) {
    int ends[2];
    struct sigaction before[ending_signal_count];
    bugpack_status status = bp_descriptor_pipe(ends, error);
    if (status == BUGPACK_OK) {
        wake_fd = ends[1];
        catch_signals(interrupt_count, before);
        *ret_fd = ends[0];
    }
    return status;
}
