#include "unit/pedantic_session.h"

#include <dirent.h>
#include <time.h>

#include "unit/unit.h"

bugpack_options pedantic_options(pedantic *made) {
    cr_assert(temp_dir_make(&made->dir));
    bugpack_options options = quick_options(&made->dir);
    options.sample_window_ms = BUGPACK_OFF;
    options.recorder_in_memory = true;
    options.pedantic = true;
    return options;
}

pedantic pedantic_start(void) {
    pedantic made = {.session = NULL};
    const bugpack_options options = pedantic_options(&made);
    made.session = open_session(&options);
    return made;
}

bugpack_pedantic_state pedantic_settle(const pedantic *made) {
    bugpack_pedantic_state state = BUGPACK_PEDANTIC_STATE_INIT;
    do {
        const struct timespec pause = {.tv_nsec = 1000000};
        (void)nanosleep(&pause, NULL);
        cr_assert(zero(int, bugpack_pedantic_get(made->session, &state)));
    } while (state.pending_count > 0);
    return state;
}

static size_t look(const pedantic *made, const char *part, const char *ending, char *path,
                   size_t path_bytes) {
    size_t count = 0;
    DIR *listing = opendir(made->dir.path);
    struct dirent *entry;
    cr_assert(ne(ptr, listing, NULL));
    while ((entry = readdir(listing)) != NULL) {
        size_t length = strlen(entry->d_name);
        if (strstr(entry->d_name, part) != NULL && length > strlen(ending) &&
            strcmp(entry->d_name + length - strlen(ending), ending) == 0) {
            (void)snprintf(path, path_bytes, "%s/%s", made->dir.path, entry->d_name);
            count++;
        }
    }
    (void)closedir(listing);
    return count;
}

size_t pedantic_count(const pedantic *made, const char *part, const char *ending) {
    char path[600];
    return look(made, part, ending, path, sizeof path);
}

const char *pedantic_path(const pedantic *made, const char *part, const char *ending) {
    static char path[600];
    cr_assert(eq(sz, look(made, part, ending, path, sizeof path), 1), "%s*%s", part, ending);
    return path;
}

char *pedantic_close(pedantic *made) {
    bugpack_close(made->session);
    made->session = NULL;
    const char *path = pedantic_path(made, "viewer-pedantic-summary-", ".json");
    size_t capacity = (size_t)4 << 20;
    char *text = malloc(capacity);
    size_t bytes = temp_dir_read(&made->dir, strrchr(path, '/') + 1, text, capacity - 1);
    cr_assert(lt(sz, bytes, capacity));
    text[bytes] = '\0';
    return text;
}

void pedantic_remove(pedantic *made) {
    bugpack_close(made->session);
    temp_dir_remove(&made->dir);
}
