#include "support/fake_mallctl.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))

/* FAKE_MALLCTL is the name of the function, set where this is compiled. */
EXPORTED int FAKE_MALLCTL(const char *name, void *old, size_t *old_bytes, void *fresh,
                          size_t fresh_bytes);

EXPORTED extern fake_mallctl_control fake_mallctl;
fake_mallctl_control fake_mallctl = {.allocated = 5000,
                                     .active = 8192,
                                     .resident = 16384,
                                     .mapped = 12288,
                                     .internal = 1000,
                                     .narenas = 7};

static int answer(const void *value, size_t value_bytes, const char *name, void *old,
                  size_t *old_bytes) {
    if (old == NULL || old_bytes == NULL || *old_bytes != value_bytes) {
        fake_mallctl.unknown_calls++;
        return EINVAL;
    }
    memcpy(old, value, value_bytes);
    if (fake_mallctl.misshapen != NULL && strcmp(name, fake_mallctl.misshapen) == 0) {
        *old_bytes = value_bytes / 2;
    }
    return 0;
}

static int advance(const void *fresh, size_t fresh_bytes) {
    if (fresh == NULL || fresh_bytes != sizeof(uint64_t)) {
        fake_mallctl.unknown_calls++;
        return EINVAL;
    }
    fake_mallctl.epoch_calls++;
    return 0;
}

int FAKE_MALLCTL(const char *name, void *old, size_t *old_bytes, void *fresh, size_t fresh_bytes) {
    const struct {
        const char *name;
        const size_t *value;
    } sizes[] = {{"stats.allocated", &fake_mallctl.allocated},
                 {"stats.active", &fake_mallctl.active},
                 {"stats.resident", &fake_mallctl.resident},
                 {"stats.mapped", &fake_mallctl.mapped},
                 {"stats.arenas.4096.internal", &fake_mallctl.internal}};
    if (fake_mallctl.failing != NULL && strcmp(name, fake_mallctl.failing) == 0) {
        return ENOENT;
    }
    if (strcmp(name, "epoch") == 0) {
        return advance(fresh, fresh_bytes);
    }
    if (fake_mallctl.epoch_calls == 0) {
        fake_mallctl.stale_reads++;
    }
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        if (strcmp(name, sizes[i].name) == 0) {
            if (*sizes[i].value == FAKE_NO_INTERNAL) {
                return ENOENT;
            }
            return answer(sizes[i].value, sizeof(size_t), name, old, old_bytes);
        }
    }
    if (strcmp(name, "arenas.narenas") == 0) {
        return answer(&fake_mallctl.narenas, sizeof fake_mallctl.narenas, name, old, old_bytes);
    }
    fake_mallctl.unknown_calls++;
    return ENOENT;
}
