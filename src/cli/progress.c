#include "cli/progress.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { bar_cells = 30, redraw_ms = 100 };

/* Carriage return, then "erase in line" (ECMA-48, 8.3.41). */
#define ERASE_LINE "\r\033[K"

static const int ending_signals[] = {SIGINT, SIGTERM, SIGHUP};
enum { ending_signal_count = sizeof ending_signals / sizeof ending_signals[0] };

bool bp_cli_progress_is_possible(void) {
    const char *terminal = getenv("TERM");
    return isatty(STDERR_FILENO) == 1 && terminal != NULL && terminal[0] != '\0' &&
           strcmp(terminal, "dumb") != 0;
}

/* Runs with the default action restored, so that raising the signal again ends the program. */
static void erase_and_end(int signal_number) {
    int saved_errno = errno;
    ssize_t ignored = write(STDERR_FILENO, ERASE_LINE, sizeof ERASE_LINE - 1);
    (void)ignored;
    errno = saved_errno;
    (void)raise(signal_number);
}

static void catch_signals(struct sigaction *ret_before) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = erase_and_end;
    action.sa_flags = (int)SA_RESETHAND;
    (void)sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < ending_signal_count; i++) {
        (void)sigaction(ending_signals[i], NULL, &ret_before[i]);
        /* nohup and background jobs ignore some of these on purpose. */
        if (ret_before[i].sa_handler != SIG_IGN) {
            (void)sigaction(ending_signals[i], &action, NULL);
        }
    }
}

static void release_signals(const struct sigaction *before) {
    for (size_t i = 0; i < ending_signal_count; i++) {
        (void)sigaction(ending_signals[i], &before[i], NULL);
    }
}

static uint64_t monotonic_ms(void) {
    struct timespec now;
    if (clock_gettime(CLOCK_MONOTONIC, &now) != 0) {
        return 0;
    }
    return (uint64_t)now.tv_sec * 1000u + (uint64_t)now.tv_nsec / 1000000u;
}

static void draw(uint64_t elapsed_ms, uint32_t window_ms, bool colour) {
    if (elapsed_ms >= window_ms) {
        (void)fputs(ERASE_LINE "writing the report", stderr);
        return;
    }
    int filled = (int)(elapsed_ms * bar_cells / window_ms);
    char done[bar_cells + 1];
    char left[bar_cells + 1];
    memset(done, '#', bar_cells);
    memset(left, '.', bar_cells);
    (void)fprintf(stderr, ERASE_LINE "[%s%.*s%s%.*s] %.1f of %.1f s", colour ? "\033[32m" : "",
                  filled, done, colour ? "\033[0m" : "", bar_cells - filled, left,
                  (double)elapsed_ms / 1000.0, window_ms / 1000.0);
}

void bp_cli_progress_wait(int fd, uint32_t window_ms, bool show) {
    struct sigaction before[ending_signal_count];
    struct pollfd waited = {fd, POLLIN, 0};
    const char *no_color = getenv("NO_COLOR");
    bool colour = no_color == NULL || no_color[0] == '\0';
    uint64_t started_ms = monotonic_ms();
    if (show) {
        catch_signals(before);
    }
    for (;;) {
        if (show) {
            draw(monotonic_ms() - started_ms, window_ms, colour);
        }
        int ready = poll(&waited, 1, show ? redraw_ms : -1);
        if (ready > 0 || (ready < 0 && errno != EINTR)) {
            break;
        }
    }
    if (show) {
        (void)fputs(ERASE_LINE, stderr);
        release_signals(before);
    }
}
