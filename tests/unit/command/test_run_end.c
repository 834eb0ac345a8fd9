/*
 * How a command ended, from what waitid reports.
 */
#include <signal.h>

#include "base/clock.h"
#include "platform/child_end.h"
#include "run/child.h"
#include "run/passed_on.h"
#include "unit/unit.h"

static siginfo_t told(int code, int status) {
    siginfo_t info = {.si_code = code};
    info.si_status = status;
    return info;
}

Test(run_end, a_stop_is_no_end) {
    const int ends[] = {CLD_EXITED, CLD_KILLED, CLD_DUMPED};
    const int others[] = {CLD_STOPPED, CLD_TRAPPED, CLD_CONTINUED};
    for (size_t i = 0; i < 3; i++) {
        siginfo_t end = told(ends[i], 1);
        siginfo_t other = told(others[i], SIGTSTP);
        cr_expect(bp_child_has_ended(&end));
        cr_expect(not(bp_child_has_ended(&other)));
    }
}

Test(run_end, a_status_is_told_from_a_signal) {
    siginfo_t info = told(CLD_EXITED, 9);
    cr_expect(not(bp_run_end_of(&info).is_signal));
    cr_expect(eq(int, bp_run_end_of(&info).value, 9));
    info = told(CLD_DUMPED, SIGSEGV);
    cr_expect(bp_run_end_of(&info).is_signal && bp_run_end_of(&info).has_core);
    cr_expect(eq(int, bp_run_end_of(&info).value, SIGSEGV));
}

Test(run_end, a_signal_that_was_passed_on_explains_some_ends) {
    const uint64_t sec = BP_NS_PER_SEC;
    const struct {
        int passed_on[2]; /* at 1 s; 0: none */
        bp_run_end end;
        uint64_t now_ns;
        bool is_expected;
    } cases[] = {
        {{0}, {.value = 1}, sec, false},
        {{0}, {.is_signal = true, .value = SIGINT}, sec, false},
        {{SIGINT}, {.is_signal = true, .value = SIGINT}, 1000 * sec, true},
        {{SIGINT}, {.is_signal = true, .value = SIGSEGV}, sec, false},
        {{SIGINT}, {.value = 130}, 1000 * sec, true},
        {{SIGINT}, {.value = 143}, 1000 * sec, false},
        {{SIGTERM}, {.value = 1}, 10 * sec, true},
        {{SIGTERM}, {.value = 1}, 11 * sec, false},
        {{SIGALRM}, {.value = 1}, sec, false},
        {{SIGALRM}, {.is_signal = true, .value = SIGALRM}, sec, true},
        {{SIGPIPE}, {.value = 141}, 20 * sec, true},
        /* A shell that ends, to a stopped job. */
        {{SIGHUP, SIGTERM}, {.is_signal = true, .value = SIGHUP}, sec, true},
        {{SIGTERM, SIGALRM}, {.value = 1}, 10 * sec, true},
        {{SIGHUP, SIGTERM}, {.is_signal = true, .value = SIGABRT}, sec, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bp_run_passed_on passed_on = {0};
        for (size_t j = 0; j < 2 && cases[i].passed_on[j] != 0; j++) {
            bp_run_passed_on_add(&passed_on, cases[i].passed_on[j], sec);
        }
        cr_expect(eq(int, bp_run_passed_on_explains(passed_on, &cases[i].end, cases[i].now_ns),
                     cases[i].is_expected),
                  "case %zu", i);
    }
}
