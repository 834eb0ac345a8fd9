#include "unit/pedantic_session.h"

#include <dirent.h>
#include <time.h>

void pedantic_setup(void) {
    setup();
    options.sample_window_ms = BUGPACK_OFF;
    options.recorder.is_in_memory = true;
    options.pedantic.is_enabled = true;
}

bugpack_pedantic_state pedantic_settle(void) {
    bugpack_pedantic_state state = BUGPACK_PEDANTIC_STATE_INIT;
    do {
        const struct timespec pause = {.tv_nsec = 1000000};
        (void)nanosleep(&pause, NULL);
        cr_assert(zero(int, bugpack_pedantic_get(session, &state, NULL)));
    } while (state.pending_count > 0);
    return state;
}

static size_t look(const char *part, const char *ending, char *path, size_t path_bytes) {
    size_t count = 0;
    DIR *listing = opendir(dir.path);
    struct dirent *entry;
    cr_assert(ne(ptr, listing, NULL));
    while ((entry = readdir(listing)) != NULL) {
        size_t length = strlen(entry->d_name);
        if (strstr(entry->d_name, part) != NULL && length > strlen(ending) &&
            strcmp(entry->d_name + length - strlen(ending), ending) == 0) {
            (void)snprintf(path, path_bytes, "%s/%s", dir.path, entry->d_name);
            count++;
        }
    }
    (void)closedir(listing);
    return count;
}

size_t pedantic_count(const char *part, const char *ending) {
    char path[600];
    return look(part, ending, path, sizeof path);
}

const char *pedantic_path(const char *part, const char *ending) {
    static char path[600];
    cr_assert(eq(sz, look(part, ending, path, sizeof path), 1), "%s*%s", part, ending);
    return path;
}

char *pedantic_close(void) {
    bugpack_close(session);
    const char *path = pedantic_path("viewer-pedantic-summary-", ".json");
    size_t capacity = (size_t)4 << 20;
    char *text = malloc(capacity);
    size_t bytes = temp_dir_read(&dir, strrchr(path, '/') + 1, text, capacity - 1);
    cr_assert(lt(sz, bytes, capacity));
    text[bytes] = '\0';
    return text;
}
