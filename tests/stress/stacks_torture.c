/*
 * Lets allocations fail while stacks are read, one and six in a row, from each on: what is lost
 * then is said. libdw itself may end the process where it finds no memory, which is why room is
 * tried before it is called (bp_unwinder_has_room); so each try is a process.
 *
 *   stress_stacks_torture [STEP]
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stacks/stacks.h"
#include "support/check.h"
#include "support/failing_malloc.h"

enum { is_same = 40, is_told, is_silent, is_over, document_max_bytes = 1 << 20 };

static const bp_stacks_plan plan = {.deadline_ns = UINT64_MAX, .symbols_until_ns = UINT64_MAX};

/* Two functions and the lines of both are lost with the debug data. */
static inline __attribute__((always_inline)) long wait_inlined(int fd) {
    char byte;
    return read(fd, &byte, 1) + byte;
}

__attribute__((noinline)) static long wait_for_end(int fd) {
    return wait_inlined(fd) * 2;
}

/* False where they cannot be read, or not without saying that something is missing. */
static bool print(pid_t pid, bp_buffer *out, bool *ret_is_whole) {
    bp_stacks stacks;
    char loss[BP_STACKS_LOSS_BYTES];
    bugpack_status status = bp_stacks_read(pid, &plan, &stacks, NULL);
    (void)failing_malloc_disarm();
    if (status != BUGPACK_OK) {
        return false;
    }
    *ret_is_whole = !bp_stacks_describe_loss(&stacks, loss);
    CHECK(bp_stacks_print_json(&stacks, out, NULL) == BUGPACK_OK);
    bp_stacks_release(&stacks);
    return true;
}

static int try_once(pid_t pid, unsigned long nth, unsigned long count, const bp_buffer *whole) {
    bp_buffer out;
    bool is_whole = false;
    bp_buffer_init(&out, document_max_bytes);
    failing_malloc_arm_burst(nth, count);
    if (!print(pid, &out, &is_whole)) {
        return is_told;
    }
    if (out.size == whole->size && memcmp(out.data, whole->data, out.size) == 0) {
        return is_same;
    }
    if (is_whole) {
        (void)fprintf(stderr, "allocation %lu and the next %lu: something is missing\n%s\n", nth,
                      count - 1, bp_buffer_text(&out));
    }
    return is_whole ? is_silent : is_told;
}

static int fork_try(pid_t pid, unsigned long nth, unsigned long count, const bp_buffer *whole) {
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        (void)freopen("/dev/null", "w", stdout);
        _exit(try_once(pid, nth, count, whole));
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    return WIFEXITED(status) && WEXITSTATUS(status) >= is_same ? WEXITSTATUS(status) : is_over;
}

static pid_t start_target(void) {
    int input[2], output[2];
    char byte;
    CHECK(pipe(input) == 0 && pipe(output) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        (void)close(input[1]);
        (void)!write(output[1], "", 1);
        _exit((int)wait_for_end(input[0]));
    }
    CHECK(pid > 0 && read(output[0], &byte, 1) == 1);
    return pid;
}

int main(int argument_count, char **arguments) {
    unsigned long counts[is_over + 1] = {0};
    unsigned long step = argument_count > 1 ? strtoul(arguments[1], NULL, 10) : 0;
    bp_buffer whole;
    bool is_whole = false, is_read = true;
    if (!failing_malloc_is_available()) {
        SKIP("a sanitizer has an allocator of its own");
    }
    pid_t pid = start_target();
    bp_buffer_init(&whole, document_max_bytes);
    do { /* until it is blocked */
        bp_buffer_clear(&whole);
        is_read = print(pid, &whole, &is_whole);
    } while (is_read && strstr(bp_buffer_text(&whole), "wait_for_end") == NULL &&
             strstr(bp_buffer_text(&whole), "\"running\"") != NULL);
    if (!is_read) {
        SKIP("stacks cannot be read here");
    }
    CHECK(is_whole);
    failing_malloc_arm(0, false);
    bp_stacks stacks;
    CHECK(bp_stacks_read(pid, &plan, &stacks, NULL) == BUGPACK_OK);
    unsigned long tried = failing_malloc_disarm();
    bp_stacks_release(&stacks);
    step = step > 0 ? step : tried / 40 + 1;
    for (unsigned long nth = 1; nth <= tried; nth += step) {
        counts[fork_try(pid, nth, 1, &whole)]++;
        counts[fork_try(pid, nth, 6, &whole)]++;
    }
    printf("%lu allocations: %lu times all was there, %lu told, %lu ended in libdw, %lu silent\n",
           tried, counts[is_same], counts[is_told], counts[is_over], counts[is_silent]);
    CHECK(kill(pid, SIGKILL) == 0);
    CHECK(counts[is_silent] == 0 && counts[is_told] > 0);
    bp_buffer_release(&whole);
    return 0;
}
