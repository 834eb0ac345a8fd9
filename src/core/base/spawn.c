#include "base/spawn.h"

#include <fcntl.h>
#include <signal.h>

int bp_spawn_init(bp_spawn *spawn, short more_flags) {
    sigset_t none, all;
    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    int result = posix_spawn_file_actions_init(&spawn->actions);
    if (result != 0) {
        return result;
    }
    result = posix_spawnattr_init(&spawn->attributes);
    if (result != 0) {
        (void)posix_spawn_file_actions_destroy(&spawn->actions);
        return result;
    }
    (void)posix_spawnattr_setflags(
        &spawn->attributes, (short)(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | more_flags));
    (void)posix_spawnattr_setsigmask(&spawn->attributes, &none);
    (void)posix_spawnattr_setsigdefault(&spawn->attributes, &all);
    return 0;
}

int bp_spawn_streams(bp_spawn *spawn, const int fds[3]) {
    int result = 0;
    for (int i = 0; result == 0 && i < 3; i++) {
        result = fds[i] < 0
                     ? posix_spawn_file_actions_addopen(&spawn->actions, i, "/dev/null", O_RDWR, 0)
                     : posix_spawn_file_actions_adddup2(&spawn->actions, fds[i], i);
    }
    return result;
}

void bp_spawn_release(bp_spawn *spawn) {
    (void)posix_spawnattr_destroy(&spawn->attributes);
    (void)posix_spawn_file_actions_destroy(&spawn->actions);
}
