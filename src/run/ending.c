#include "run/ending.h"

#include <signal.h>

#include "base/clock.h"

static const uint64_t ending_max_ns = 10 * BP_NS_PER_SEC;

bool bp_run_is_expected(bp_run_passed_on passed_on, const bp_run_end *end, uint64_t now_ns) {
    bool is_for_the_end = passed_on.number != SIGUSR2 && passed_on.number != SIGALRM;
    if (passed_on.number == 0 || end->is_signal) {
        return passed_on.number != 0 && end->value == passed_on.number;
    }
    return end->value == BP_RUN_STATUS_OF_SIGNAL + passed_on.number ||
           (is_for_the_end && now_ns - passed_on.when_ns < ending_max_ns);
}
