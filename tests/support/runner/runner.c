/*
 * Runs the tests of a program, each in a fork: NAME [--jobs N] [--filter PATTERN] [--list].
 * Of Criterion's patterns it knows the one for suites, @(SUITE|SUITE) and what follows.
 * BUGPACK_LEFT_OUT names tests that are skipped, SUITE/NAME each, between spaces.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <unistd.h>

#include "criterion/criterion.h"

#define SKIPPED 77
#define MAX_JOBS 64

static struct cr_test *tests;

/* Of the test that runs in this process. */
static const struct cr_test *running;
static jmp_buf leave;
static pthread_t main_thread;
static int result;
static _Thread_local char compared[512];

void cr_add(struct cr_test *test) {
    struct cr_test **end = &tests;
    while (*end) {
        end = &(*end)->next;
    }
    *end = test;
}

bool cr_begin(void) {
    compared[0] = '\0';
    return true;
}

void cr_say(enum cr_verdict verdict, const char *file, int line, const char *condition,
            const char *format, ...) {
    char message[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    fprintf(stderr, "%s: %s/%s: %s:%d: %s%s%s\n", verdict == CR_SKIP ? "skipped" : "FAIL",
            running->suite, running->name, file, line, condition, compared, message);
    if (verdict != CR_SKIP) {
        result = EXIT_FAILURE;
    } else if (result == EXIT_SUCCESS) {
        result = SKIPPED;
    }
    if (verdict == CR_FAIL) {
        return;
    }
    if (!pthread_equal(pthread_self(), main_thread)) {
        _exit(result);
    }
    longjmp(leave, 1);
}

static bool in_order(enum cr_order order, int difference) {
    const bool holds[] = {[CR_EQ] = difference == 0,
                          [CR_NE] = difference != 0,
                          [CR_LT] =
                              difference<0, [CR_LE] = difference <= 0, [CR_GT] = difference> 0,
                          [CR_GE] = difference >= 0};
    return holds[order];
}

/* For values that may have no order; those that have none are in none. */
#define COMPARE(order, a, b, format)                                                               \
    do {                                                                                           \
        snprintf(compared, sizeof(compared), ": " format " and " format, (a), (b));                \
        return in_order(order, ((a) > (b)) - ((a) < (b)));                                         \
    } while (0)

bool cr_compare_signed(enum cr_order order, intmax_t a, intmax_t b) {
    COMPARE(order, a, b, "%" PRIdMAX);
}

bool cr_compare_unsigned(enum cr_order order, uintmax_t a, uintmax_t b) {
    COMPARE(order, a, b, "%" PRIuMAX);
}

bool cr_ptr(enum cr_order order, const void *a, const void *b) {
    COMPARE(order, a, b, "%p");
}

bool cr_dbl(enum cr_order order, double a, double b) {
    if (isnan(a) || isnan(b)) {
        snprintf(compared, sizeof(compared), ": %g and %g", a, b);
        return order == CR_NE;
    }
    COMPARE(order, a, b, "%.17g");
}

bool cr_str(enum cr_order order, const char *a, const char *b) {
    snprintf(compared, sizeof(compared), ": \"%.230s\" and \"%.230s\"", a ? a : "(null)",
             b ? b : "(null)");
    if (!a || !b) {
        return order == CR_NE ? a != b : order == CR_EQ && a == b;
    }
    return in_order(order, strcmp(a, b));
}

/* `test` with what its suite has and it has not. */
static struct cr_test with_suite(struct cr_test test) {
    for (const struct cr_test *suite = tests; suite; suite = suite->next) {
        if (!suite->name && strcmp(suite->suite, test.suite) == 0) {
            test.init = test.init ? test.init : suite->init;
            test.fini = test.fini ? test.fini : suite->fini;
            test.timeout = test.timeout ? test.timeout : suite->timeout;
        }
    }
    return test;
}

static bool is_left_out(const struct cr_test *test) {
    const char *list = getenv("BUGPACK_LEFT_OUT");
    char name[256];
    snprintf(name, sizeof(name), " %s/%s ", test->suite, test->name);
    return list && strstr(list, name);
}

static bool is_asked_for(const char *suite, const char *filter) {
    const size_t length = strlen(suite);
    for (const char *at = filter; (at = strstr(at, suite)); at++) {
        const bool begins = at > filter && (at[-1] == '(' || at[-1] == '|');
        if (begins && (at[length] == '|' || at[length] == ')')) {
            return true;
        }
    }
    return !*filter;
}

static int run(const struct cr_test *test) {
    const struct cr_test whole = with_suite(*test);
    running = test;
    main_thread = pthread_self();
    alarm(whole.timeout);
    if (setjmp(leave) == 0) {
        if (whole.init) {
            whole.init();
        }
        whole.run();
    }
    if (whole.fini && setjmp(leave) == 0) {
        whole.fini();
    }
    return result;
}

struct counts {
    unsigned passed, failed, skipped;
};

/* Waits for one of the tests that run, and counts it. */
static void count_one(pid_t *pids, const struct cr_test **of, size_t *count,
                      struct counts *counts) {
    int status;
    pid_t pid;
    do {
        pid = wait(&status);
    } while (pid < 0 && errno == EINTR);
    for (size_t i = 0; i < *count; i++) {
        if (pids[i] != pid) {
            continue;
        }
        if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS) {
            counts->passed++;
        } else if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED) {
            counts->skipped++;
        } else {
            counts->failed++;
            fprintf(stderr, "FAIL: %s/%s %s %d\n", of[i]->suite, of[i]->name,
                    WIFSIGNALED(status) ? "was ended by signal" : "ended with status",
                    WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        }
        (*count)--;
        pids[i] = pids[*count];
        of[i] = of[*count];
        return;
    }
}

int main(int argc, char **argv) {
    size_t jobs = 1;
    const char *filter = "";
    bool list = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--list") == 0) {
            list = true;
        } else if (strcmp(argv[i], "--jobs") == 0 && i + 1 < argc) {
            jobs = strtoul(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--filter") == 0 && i + 1 < argc) {
            filter = argv[++i];
        } else {
            fprintf(stderr, "usage: %s [--jobs N] [--filter PATTERN] [--list]\n", argv[0]);
            return 2;
        }
    }
    jobs = jobs < 1 ? 1 : jobs > MAX_JOBS ? MAX_JOBS : jobs;

    pid_t pids[MAX_JOBS];
    const struct cr_test *of[MAX_JOBS];
    size_t count = 0;
    struct counts counts = {0};
    for (const struct cr_test *test = tests; test; test = test->next) {
        if (!test->name || !is_asked_for(test->suite, filter)) {
            continue;
        }
        if (list) {
            printf("%s/%s\n", test->suite, test->name);
            continue;
        }
        if (is_left_out(test)) {
            counts.skipped++;
            continue;
        }
        if (count == jobs) {
            count_one(pids, of, &count, &counts);
        }
        fflush(NULL);
        const pid_t pid = fork();
        if (pid == 0) {
            exit(run(test));
        }
        if (pid < 0) {
            perror("fork");
            return EXIT_FAILURE;
        }
        pids[count] = pid;
        of[count++] = test;
    }
    while (count > 0) {
        count_one(pids, of, &count, &counts);
    }
    if (!list) {
        printf("%u passed, %u failed, %u skipped\n", counts.passed, counts.failed, counts.skipped);
    }
    return counts.failed > 0 || (!list && counts.passed + counts.skipped == 0) ? EXIT_FAILURE
                                                                               : EXIT_SUCCESS;
}
