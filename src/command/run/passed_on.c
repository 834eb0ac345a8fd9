#include "run/passed_on.h"

#include <signal.h>

#include "base/clock.h"

static const uint64_t ending_max_ns = 10 * BP_NS_PER_SEC;

void bp_run_passed_on_add(bp_run_passed_on *passed_on, int number, uint64_t now_ns) {
    passed_on->numbers |= UINT64_C(1) << number % 64;
    if (number != SIGUSR2 && number != SIGALRM) {
        passed_on->when_ns = now_ns;
    }
}

bool bp_run_passed_on_explains(bp_run_passed_on passed_on, const bp_run_end *end, uint64_t now_ns) {
    int number = end->is_signal ? end->value : end->value - BP_RUN_STATUS_OF_SIGNAL;
    bool is_its_end = number > 0 && number < 64 && (passed_on.numbers >> number & 1) != 0;
    bool is_near = passed_on.when_ns != 0 && now_ns - passed_on.when_ns < ending_max_ns;
    return is_its_end || (!end->is_signal && is_near);
}
