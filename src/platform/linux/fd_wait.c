#include "platform/linux/fd_wait.h"

#include <string.h>

/* Calls with more descriptors than these are not looked at. */
enum { polled_max = 64, selected_max = 1024 };

typedef enum call_form { NONE, FIRST_ARGUMENT, POLL, SELECT } call_form;

static call_form form_of(bp_syscall_arch arch, const bp_thread_syscall *syscall,
                         const char **ret_name) {
    static const struct {
        const char *name;
        call_form form;
    } rows[] = {{"read", FIRST_ARGUMENT},
                {"readv", FIRST_ARGUMENT},
                {"preadv2", FIRST_ARGUMENT},
                {"write", FIRST_ARGUMENT},
                {"writev", FIRST_ARGUMENT},
                {"pwritev2", FIRST_ARGUMENT},
                {"recvfrom", FIRST_ARGUMENT},
                {"recvmsg", FIRST_ARGUMENT},
                {"recvmmsg", FIRST_ARGUMENT},
                {"sendto", FIRST_ARGUMENT},
                {"sendmsg", FIRST_ARGUMENT},
                {"sendmmsg", FIRST_ARGUMENT},
                {"accept", FIRST_ARGUMENT},
                {"accept4", FIRST_ARGUMENT},
                {"connect", FIRST_ARGUMENT},
                {"poll", POLL},
                {"ppoll", POLL},
                {"select", SELECT},
                {"pselect6", SELECT}};
    const char *name =
        syscall->place == BP_THREAD_IN_CALL ? bp_syscall_name(arch, syscall->number) : NULL;
    for (size_t i = 0; name != NULL && i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(name, rows[i].name) == 0) {
            *ret_name = name;
            return rows[i].form;
        }
    }
    return NONE;
}

bool bp_fd_wait_is_possible(bp_syscall_arch arch, const bp_thread_syscall *syscall) {
    const char *name;
    return form_of(arch, syscall, &name) != NONE;
}

/* Takes a descriptor; false where there is another one already. */
static bool take(int64_t fd, int64_t *only) {
    bool is_only = *only < 0 || *only == fd;
    *only = fd;
    return is_only;
}

/* struct pollfd of poll(2); one below 0 is passed over. */
static bool find_polled(const bp_thread_syscall *syscall, bp_fd_wait_reader *read, void *context,
                        int64_t *only) {
    struct {
        int32_t fd;
        int16_t events, returned;
    } items[polled_max];
    uint64_t count = (uint32_t)syscall->arguments[1];
    bool is_only = count > 0 && count <= polled_max &&
                   read(context, syscall->arguments[0], items, (size_t)count * sizeof items[0]);
    for (size_t i = 0; is_only && i < count; i++) {
        is_only = items[i].fd < 0 || take(items[i].fd, only);
    }
    return is_only;
}

/* Three sets of bits, in words of 64 bits. */
static bool find_selected(const bp_thread_syscall *syscall, bp_fd_wait_reader *read, void *context,
                          int64_t *only) {
    uint64_t words[selected_max / 64];
    uint64_t count = (uint32_t)syscall->arguments[0];
    bool is_only = count <= selected_max;
    for (size_t set = 1; is_only && set <= 3; set++) {
        uint64_t address = syscall->arguments[set];
        is_only = address == 0 ||
                  read(context, address, words, (size_t)(count + 63) / 64 * sizeof *words);
        for (size_t i = 0; is_only && address != 0 && i < count; i++) {
            is_only = (words[i / 64] >> (i % 64) & 1) == 0 || take((int64_t)i, only);
        }
    }
    return is_only;
}

bool bp_fd_wait_find(bp_syscall_arch arch, const bp_thread_syscall *syscall,
                     bp_fd_wait_reader *read, void *context, bp_fd_wait *ret_wait) {
    const char *name = "";
    call_form form = form_of(arch, syscall, &name);
    int64_t only = form == FIRST_ARGUMENT ? (int32_t)(uint32_t)syscall->arguments[0] : -1;
    bp_fd_wait wait = {.has_limit = form == POLL || form == SELECT};
    if (form == POLL) {
        wait.is_timed = strcmp(name, "ppoll") == 0 ? syscall->arguments[2] != 0
                                                   : (int32_t)(uint32_t)syscall->arguments[2] >= 0;
    } else {
        wait.is_timed = wait.has_limit && syscall->arguments[4] != 0;
    }
    if ((form == POLL && !find_polled(syscall, read, context, &only)) ||
        (form == SELECT && !find_selected(syscall, read, context, &only)) || only < 0) {
        return false;
    }
    wait.fd = (uint32_t)only;
    *ret_wait = wait;
    return true;
}
