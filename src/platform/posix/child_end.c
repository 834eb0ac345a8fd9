#include "platform/child_end.h"

int bp_child_end_status(const siginfo_t *info) {
    return info->si_status;
}
