/*
 * How a command ended, from what waitid reports.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <signal.h>

#include "run/child.h"

static siginfo_t told(int code, int status) {
    siginfo_t info = {.si_code = code};
    info.si_status = status;
    return info;
}

Test(run_end, a_stop_is_no_end_though_macos_tells_of_it_when_ends_are_asked_for) {
    const int ends[] = {CLD_EXITED, CLD_KILLED, CLD_DUMPED};
    const int others[] = {CLD_STOPPED, CLD_TRAPPED, CLD_CONTINUED};
    for (size_t i = 0; i < 3; i++) {
        siginfo_t end = told(ends[i], 1);
        siginfo_t other = told(others[i], SIGTSTP);
        cr_expect(bp_run_is_end(&end));
        cr_expect(not(bp_run_is_end(&other)));
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
