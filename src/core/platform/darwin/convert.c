#include "platform/darwin/convert.h"

#include <string.h>

#include "base/clock.h"

uint64_t bp_darwin_add(uint64_t a, uint64_t b) {
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t multiply(uint64_t a, uint64_t b) {
    return a != 0 && b > UINT64_MAX / a ? UINT64_MAX : a * b;
}

static uint64_t subtract(uint64_t a, uint64_t b) {
    return a > b ? a - b : 0;
}

bool bp_darwin_tick_of(uint64_t hertz, bp_darwin_tick *ret_tick) {
    if (hertz == 0 || hertz > UINT32_MAX) {
        return false;
    }
    *ret_tick = (bp_darwin_tick){.numer = (uint32_t)BP_NS_PER_SEC, .denom = (uint32_t)hertz};
    return true;
}

uint64_t bp_darwin_ticks_to_ns(uint64_t ticks, bp_darwin_tick tick) {
    uint64_t denom = tick.denom > 0 ? tick.denom : 1;
    /* The rest is under 32 bits, so its product fits; the whole part may not, and is the larger. */
    uint64_t whole_ns = multiply(ticks / denom, tick.numer);
    return bp_darwin_add(whole_ns, ticks % denom * tick.numer / denom);
}

uint64_t bp_darwin_time_value_ns(int32_t seconds, int32_t microseconds) {
    uint64_t whole = seconds > 0 ? (uint64_t)seconds : 0;
    uint64_t rest = microseconds > 0 ? (uint64_t)microseconds : 0;
    return whole * BP_NS_PER_SEC + rest * 1000;
}

uint64_t bp_darwin_age_ns(const bp_darwin_age *age) {
    uint64_t by_wall_ns = subtract(age->now_wall_ns, age->started_wall_ns);
    if (!age->has_awake) {
        return by_wall_ns;
    }
    uint64_t most_ns = bp_darwin_add(age->awake_ns, age->asleep_since_boot_ns);
    if (by_wall_ns < age->awake_ns) {
        return age->awake_ns;
    }
    return by_wall_ns < most_ns ? by_wall_ns : most_ns;
}

void bp_darwin_copy_name(char out[64], const char *text, size_t capacity) {
    size_t length = strnlen(text, capacity < 63 ? capacity : 63);
    memcpy(out, text, length);
    out[length] = '\0';
}

/*
 * The arguments follow the path, which is padded to the size of a pointer. NULs after the padding
 * are empty arguments and must be counted: otherwise the count would run on into the environment.
 */
static const char *find_arguments(const char *path, const char *path_end, const char *end) {
    size_t padded_bytes = ((size_t)(path_end - path) + 1 + 7) & ~(size_t)7;
    const char *last = (size_t)(end - path) > padded_bytes ? path + padded_bytes : end;
    const char *at = path_end;
    while (at < last && *at == '\0') {
        at++;
    }
    return at;
}

bool bp_darwin_parse_procargs(const char *memory, size_t memory_bytes, const char **ret_arguments,
                              size_t *ret_bytes) {
    int32_t count;
    if (memory_bytes < sizeof count) {
        return false;
    }
    memcpy(&count, memory, sizeof count);
    if (count < 0) {
        return false;
    }
    const char *path = memory + sizeof count;
    const char *end = memory + memory_bytes;
    const char *path_end = memchr(path, '\0', (size_t)(end - path));
    if (path_end == NULL) {
        return false; /* the arguments begin after the path */
    }
    const char *arguments = find_arguments(path, path_end, end);
    const char *at = arguments;
    for (int32_t i = 0; i < count && at < end; i++) {
        const char *argument_end = memchr(at, '\0', (size_t)(end - at));
        at = argument_end != NULL ? argument_end + 1 : end;
    }
    *ret_arguments = arguments;
    *ret_bytes = (size_t)(at - arguments);
    return true;
}
