#include "recorder/level_name.h"

const char *bp_level_name(uint8_t level) {
    static const char *const names[] = {"trace", "debug", "info", "warn", "error", "fatal"};
    return level < sizeof names / sizeof names[0] ? names[level] : "unknown";
}
