/*
 * Thousands of random lives of a process, sampled through the darwin sources: threads come, go and
 * are renamed between any two calls, clocks run backwards, calls fail. After each, all rights and
 * all memory are back.
 */
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "support/mach/fake_kernel.h"

#include "model/metrics.h"
#include "platform/allocator.h"
#include "platform/process_facts.h"
#include "platform/task.h"

enum { OPERATION_MAX = 8 };

static uint64_t state;

static uint64_t draw(uint64_t below) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % below;
}

static mach_fake_thread *any_thread(void) {
    return mach_fake.thread_count > 0 ? &mach_fake.threads[draw(mach_fake.thread_count)] : NULL;
}

static uint64_t next_id;

static void change_threads(void) {
    mach_fake_thread *thread = any_thread();
    switch (draw(4)) {
    case 0:
        (void)mach_fake_add(next_id++, "born", draw(1000), draw(1000));
        break;
    case 1:
        if (thread != NULL) {
            mach_fake_end((size_t)(thread - mach_fake.threads));
        }
        break;
    case 2:
        if (thread != NULL) {
            memset(thread->name, (int)draw(256), draw(sizeof thread->name + 1));
            thread->is_pthread = draw(4) > 0;
        }
        break;
    default:
        if (thread != NULL) {
            thread->user_us = draw(2) > 0 ? thread->user_us + draw(1000) : draw(1000);
            thread->system_us += draw(1000);
        }
    }
}

static void change_clocks(void) {
    switch (draw(3)) {
    case 0:
        mach_fake.absolute += draw(24000000);
        break;
    case 1:
        mach_fake.absolute -= draw(24000000);
        break;
    default:
        mach_fake.asleep_ns = draw(1000000000000u);
    }
}

/* What happens while a call is on its way into the kernel. */
static void live(const char *call) {
    (void)call;
    if (draw(6) == 0) {
        change_threads();
    }
    if (draw(20) == 0) {
        change_clocks();
    }
    if (draw(400) == 0) {
        mach_fake.is_alive = !mach_fake.is_alive;
    }
}

static void make_world(uint64_t seed) {
    state = seed * 2654435761u + 88172645463325252u;
    mach_fake_reset();
    next_id = 100000;
    for (uint64_t count = draw(30); count > 0; count--) {
        (void)mach_fake_add(next_id++, "worker", draw(100000), draw(100000));
    }
    mach_fake.has_frequency = draw(4) > 0;
    mach_fake.on_call = live;
    static const int mach_codes[] = {3, 4, 5, 6, 37, 0x10000003};
    static const int errno_codes[] = {EPERM, ESRCH, EINVAL, ENOMEM, 0};
    mach_fake_fail(draw(2) > 0 ? 1 + draw(80) : 0, mach_codes[draw(6)], errno_codes[draw(5)]);
}

/* What a window over two snapshots must always be. */
static void check_window(bp_task_snapshot *before, bp_task_snapshot *after) {
    bp_metrics metrics;
    CHECK(bp_metrics_compute(before, after, &metrics, NULL) == BUGPACK_OK);
    CHECK(isfinite(metrics.cpu_percent) && metrics.cpu_percent >= 0);
    for (size_t i = 0; i < metrics.thread_count; i++) {
        CHECK(isfinite(metrics.threads[i].cpu_percent) && metrics.threads[i].cpu_percent >= 0);
        CHECK(i == 0 || metrics.threads[i - 1].tid <= metrics.threads[i].tid);
        CHECK(memchr(metrics.threads[i].name, '\0', sizeof metrics.threads[i].name) != NULL);
    }
    bp_metrics_release(&metrics);
}

static unsigned long taken_count, failed_count, vanished_count;

static void sample(bp_task *task, bp_task_snapshot *last) {
    bp_task_snapshot snapshot = {.taken_ns = 42};
    uint64_t given = mach_fake_outstanding().rights_given;
    if (bp_task_snapshot_take(task, draw(2) > 0, &snapshot, NULL) != BUGPACK_OK) {
        CHECK(snapshot.taken_ns == 42 && snapshot.threads == NULL);
        failed_count++;
        return;
    }
    given = mach_fake_outstanding().rights_given - given;
    CHECK(given == snapshot.thread_count + snapshot.vanished_count);
    CHECK(snapshot.thread_count > 0);
    if (last->threads != NULL) {
        CHECK(!last->has_uptime || snapshot.uptime_ns >= last->uptime_ns);
        check_window(last, &snapshot);
    }
    taken_count++;
    vanished_count += snapshot.vanished_count;
    bp_task_snapshot_release(last);
    *last = snapshot;
}

static void read_facts(bp_task *task) {
    bp_process_facts facts;
    if (bp_process_facts_read(task, &facts, NULL) == BUGPACK_OK) {
        CHECK(memchr(facts.denied, '\0', sizeof facts.denied) != NULL);
        bp_process_facts_release(&facts);
    }
}

/* Goes on with a clone, if one can be had. */
static void move_to_clone(bp_task **task) {
    bp_task *clone = NULL;
    if (bp_task_clone(*task, &clone, NULL) == BUGPACK_OK) {
        bp_task_close(*task);
        *task = clone;
    }
}

static void live_through(uint64_t seed) {
    bp_task *task = NULL;
    bp_task_snapshot last = {0};
    bp_heap_reading heap;
    make_world(seed);
    if (bp_task_open(0, false, &task, NULL) != BUGPACK_OK) {
        failed_count++;
        return;
    }
    for (uint64_t count = 1 + draw(OPERATION_MAX); count > 0; count--) {
        switch (draw(6)) {
        case 0:
            read_facts(task);
            break;
        case 1:
            bp_task_snapshot_release(&last); /* a clone's uptime begins anew */
            move_to_clone(&task);
            break;
        case 2:
            (void)bp_allocator_read(&heap, NULL);
            break;
        default:
            sample(task, &last);
        }
    }
    bp_task_snapshot_release(&last);
    bp_task_close(task);
}

static bool is_balanced(void) {
    mach_fake_account account = mach_fake_outstanding();
    return account.rights == 0 && account.lists == 0 && account.list_bytes == 0 &&
           account.wrong_releases == 0;
}

int main(int argument_count, char **arguments) {
    unsigned long scenario_count = run_length(argument_count, arguments, 4000);
    for (uint64_t seed = 1; seed <= scenario_count; seed++) {
        live_through(seed);
        if (!is_balanced()) {
            mach_fake_account account = mach_fake_outstanding();
            (void)printf("scenario %llu: %zu rights and %zu bytes are out, %zu wrong releases\n",
                         (unsigned long long)seed, account.rights, account.list_bytes,
                         account.wrong_releases);
            return 1;
        }
    }
    (void)printf("%lu scenarios: %lu snapshots, %lu failures, %lu threads vanished; 0 rights out\n",
                 scenario_count, taken_count, failed_count, vanished_count);
    CHECK(taken_count > 1000 && failed_count > 100 && vanished_count > 1000);
    return 0;
}
