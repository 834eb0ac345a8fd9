/*
 * The terminal and the signals of the client: who asks for a report, or for its end.
 */
#ifndef HOSTS_SPICE_CONSOLE_H
#define HOSTS_SPICE_CONSOLE_H

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

#include <bugpack/events.h>

typedef enum console_wish { CONSOLE_NOTHING, CONSOLE_REPORT, CONSOLE_QUIT } console_wish;

static struct termios console_saved;
static volatile sig_atomic_t console_caught; /* bugpack must not be called in a signal handler */

static inline void console_restore(void) {
    (void)tcsetattr(STDIN_FILENO, TCSANOW, &console_saved);
}

static inline void console_catch(int number) {
    console_caught = number;
}

/* Keys come one by one and unechoed, where standard input is a terminal. Once. */
static inline void console_prepare_terminal(void) {
    if (!isatty(STDIN_FILENO) || tcgetattr(STDIN_FILENO, &console_saved) != 0) {
        return;
    }
    struct termios raw = console_saved;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    (void)tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    (void)atexit(console_restore);
}

/* SIGUSR1, SIGINT and SIGTERM are wishes from now on, and so are keys. Lines of standard output are
 * written as they end. Once, on the main thread, before anything is printed. */
static inline void console_open(void) {
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    (void)signal(SIGUSR1, console_catch);
    (void)signal(SIGINT, console_catch);
    (void)signal(SIGTERM, console_catch);
    console_prepare_terminal();
}

/* F12 comes as five bytes, also in two reads. */
static inline console_wish console_read_key(char key) {
    static const char f12[] = "\033[24~";
    static size_t matched;
    if (key == 'q') {
        return CONSOLE_QUIT;
    }
    matched = key == f12[matched] ? matched + 1 : key == f12[0];
    if (matched < sizeof f12 - 1) {
        return CONSOLE_NOTHING;
    }
    matched = 0;
    return CONSOLE_REPORT;
}

/* Waits for a wish: F12 or SIGUSR1 for a report, q, SIGINT or SIGTERM for the end. A signal that
 * another thread gets is seen at the next call. */
static inline console_wish console_wait(int timeout_ms) {
    static struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    char keys[64];
    console_wish wish = CONSOLE_NOTHING;
    ssize_t count = poll(&input, 1, timeout_ms) == 1 ? read(input.fd, keys, sizeof keys) : -1;
    for (ssize_t i = 0; i < count && wish == CONSOLE_NOTHING; i++) {
        wish = console_read_key(keys[i]);
    }
    if (count == 0) {
        input.fd = -1; /* it has ended: poll sleeps from now on */
    }
    int number = console_caught;
    console_caught = 0;
    if (number != 0) {
        wish = number == SIGUSR1 ? CONSOLE_REPORT : CONSOLE_QUIT;
    }
    return wish;
}

/* For the option on_event: prints each report, whoever asked for it. */
static inline void console_print_event(const bugpack_event *event, void *unused) {
    (void)unused;
    if (event->kind == BUGPACK_EVENT_WRITTEN) {
        (void)printf("%s report: %s\n", event->report_type, event->path);
    } else if (event->kind == BUGPACK_EVENT_FAILED) {
        (void)printf("no %s report: %s\n", event->report_type, event->error.message);
    }
}

#endif
