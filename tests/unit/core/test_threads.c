/*
 * Who waits for whom, in a circle and in none; and threads.json as it is printed.
 */
#include "model/threads.h"
#include "support/thread_samples.h"
#include "unit/unit.h"

enum { thread_max = 16, nobody = -1 };

static bp_thread_state threads[thread_max];

/* Thread i has the id i + 1, the name "t<i>", and waits for a mutex of `waits_for[i]`. */
static bp_process_threads made(const int *waits_for, size_t count) {
    for (size_t i = 0; i < count; i++) {
        threads[i] =
            (bp_thread_state){.read = {.tid = i + 1},
                              .is_waiting = waits_for[i] != nobody,
                              .waits_for = waits_for[i] == nobody ? 0 : (size_t)waits_for[i]};
        (void)snprintf(threads[i].read.stat.name, sizeof threads[i].read.stat.name, "t%zu", i);
    }
    return (bp_process_threads){.pid = 1, .threads = threads, .thread_count = count};
}

/* The sentences of all deadlocks, each with a newline. */
static const char *describe(const bp_process_threads *process) {
    static char text[4096];
    unsigned char is_seen[thread_max] = {0};
    text[0] = '\0';
    for (size_t first = bp_deadlock_next(process, is_seen); first != SIZE_MAX;
         first = bp_deadlock_next(process, is_seen)) {
        BUFFER(sentence, 1024);
        cr_assert(eq(int, bp_deadlock_describe(process, first, &sentence), BUGPACK_OK));
        size_t length = strlen(text);
        (void)snprintf(text + length, sizeof text - length, "%s\n", bp_buffer_text(&sentence));
    }
    return text;
}

Test(deadlock, is_none_without_a_circle) {
    const int chain[] = {1, 2, 3, nobody};
    bp_process_threads process = made(chain, 4);
    cr_expect(eq(str, describe(&process), ""));
    process.thread_count = 0;
    cr_expect(eq(str, describe(&process), ""));
}

Test(deadlock, names_one_two_and_three) {
    const int all[] = {0, 2, 1, 4, 5, 3};
    bp_process_threads process = made(all, 6);
    cr_expect(eq(str, describe(&process),
                 "t0 (1) waits for a mutex that it holds itself\n"
                 "t1 (2) and t2 (3) wait for each other's mutexes\n"
                 "t3 (4) waits for a mutex of t4 (5), which waits for a mutex of t5 (6), which "
                 "waits for a mutex of t3 (4)\n"));
}

Test(deadlock, leaves_out_who_waits_behind_it) {
    const int behind[] = {3, 3, 4, 4, 3};
    bp_process_threads process = made(behind, 5);
    cr_expect(eq(str, describe(&process), "t3 (4) and t4 (5) wait for each other's mutexes\n"));
    unsigned char is_seen[thread_max] = {0};
    cr_expect(eq(sz, bp_deadlock_length(&process, bp_deadlock_next(&process, is_seen)), 2));
}

Test(deadlock, is_none_while_one_of_them_gives_up_after_some_time) {
    const int circle[] = {1, 2, 0};
    bp_process_threads process = made(circle, 3);
    threads[1].wait.is_timed = true;
    cr_expect(eq(str, describe(&process), ""));
}

Test(deadlock, names_what_is_waited_for) {
    const int circle[] = {1, 0};
    bp_process_threads process = made(circle, 2);
    threads[0].wait.kind = BP_FUTEX_KIND_THREAD;
    threads[1].wait.kind = BP_FUTEX_KIND_RWLOCK;
    threads[1].read.stat.name[0] = '\0';
    cr_expect(eq(str, (char *)describe(&process),
                 "t0 (1) waits for the end of (2), which waits for an rwlock of t0 (1)\n"));
    threads[0].wait.kind = BP_FUTEX_KIND_RWLOCK;
    cr_expect(eq(str, describe(&process), "t0 (1) and (2) wait for each other's rwlocks\n"));
}

Test(deadlock, names_eight_of_many) {
    int circle[12];
    for (int i = 0; i < 12; i++) {
        circle[i] = (i + 1) % 12;
    }
    bp_process_threads process = made(circle, 12);
    const char *text = describe(&process);
    cr_expect(strstr(text, "t8 (9), and so on: 12 threads wait in a circle") != NULL);
    cr_expect(strstr(text, "t9") == NULL);
}

Test(threads, prints_what_is_known_and_leaves_out_the_rest) {
    BUFFER(text, (size_t)1 << 20);
    cr_assert(eq(int, sample_threads_print(true, &text, &failure), BUGPACK_OK));
    const char *printed = bp_buffer_text(&text);
    static const char *const parts[] = {
        "\"description\": \"locker-1 (4712) and locker-2 (4713) wait for each other's mutexes\"",
        "\"state\": \"sleeping\"",
        "\"state\": \"?\"",
        "\"policy\": \"fifo\"",
        "\"user_ms\": 1234.567",
        "\"wait_channel\": \"futex_wait_queue\"",
        "\"name\": \"futex\"",
        "\"0x7f0000000080\"",
        "\"futex_wait_queue+0x62/0x90\",",
        "\"do_futex+0x1/0x2\"",
        "\"kind\": \"mutex\"",
        "\"number\": 9999",
        "\"kind\": \"pipe\"",
        "\"fd\": 4",
        "\"number\": 1",
        "\"other_end_has_more\": true",
        "\"remote\": \"127.0.0.1:5900\"",
        "\"timed\": true",
        "\"searched_processes\": 119",
        "\"polled\": [",
        "\"inode\": 14402191",
        "\"listener_inode\": 14402193",
        "\"kind\": \"file_lock\"",
        "\"path\": \"/var/lib/mail/",
        "\"lock\": \"flock\"",
        "\"holder\": {",
        "\"kind\": \"child\",\n            \"waits_for\": \"the end of its child\"",
        "\"process\": {",
        "\"child\": {",
        "\"owner_ended\": true",
        "\"traced_by\": {",
        "\"signal_handlers\": [\n    \"SIGINT\",\n    \"34\"\n  ]",
        "\"own_futex\": true",
        "\"descendants\""};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        cr_expect(strstr(printed, parts[i]) != NULL, "%s", parts[i]);
    }
    cr_expect(strstr(printed, "\"name\": null") == NULL);
}
