/*
 * Random families of processes, followed through the darwin sources: children are born, work, end,
 * wait to be reaped, are orphaned and leave their ids to others, between any two calls. The sum of
 * a tree never runs backwards, and never says more than what all of them have used.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "support/check.h"
#include "support/mach/fake_kernel.h"

#include "platform/task.h"

enum { SNAPSHOT_COUNT = 12, LAUNCHD = 1, PID_COUNT = 40 };

static uint64_t state;

static uint64_t draw(uint64_t below) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % below;
}

static uint64_t used_us; /* by all that ever belonged to the family */
static uint64_t next_start;
static bool has_orphans;

/* A random one that lives, or NULL: then it is the first process. */
static mach_fake_child *any_living(void) {
    mach_fake_child *child = &mach_fake.children[draw(PID_COUNT)];
    return child->pid != 0 && !child->is_zombie ? child : NULL;
}

static void be_born(void) {
    const mach_fake_child *parent = any_living();
    size_t at = draw(PID_COUNT);
    if (mach_fake.children[at].pid == 0) {
        next_start++; /* the id may have been another's */
        mach_fake.children[at] =
            (mach_fake_child){.pid = 5000 + (int)at,
                              .parent_pid = parent != NULL ? parent->pid : MACH_FAKE_PID,
                              .started = next_start,
                              .start_secs = next_start};
    }
}

static void work(void) {
    mach_fake_child *child = any_living();
    uint64_t spent_us = draw(1000);
    used_us += spent_us;
    if (child != NULL) {
        child->used_us += spent_us;
    } else {
        mach_fake.threads[0].user_us += spent_us;
    }
}

/* Launchd waits at once, and its time is nobody's. */
static void orphan(mach_fake_child *child) {
    child->parent_pid = LAUNCHD;
    child->pid = child->is_zombie ? 0 : child->pid;
}

static void end(void) {
    mach_fake_child *ended = any_living();
    if (ended == NULL) {
        return;
    }
    for (size_t i = 0; i < PID_COUNT; i++) {
        mach_fake_child *child = &mach_fake.children[i];
        bool is_child = child->pid != 0 && child->parent_pid == ended->pid;
        if (is_child && !has_orphans) {
            return;
        }
        if (is_child) {
            orphan(child);
        }
    }
    ended->is_zombie = true;
    if (ended->parent_pid == LAUNCHD) {
        ended->pid = 0;
    }
}

static unsigned long reaped_count;

static void reap(void) {
    mach_fake_child *zombie = &mach_fake.children[draw(PID_COUNT)];
    if (zombie->pid == 0 || !zombie->is_zombie) {
        return;
    }
    mach_fake_child *parent = mach_fake_find_child(zombie->parent_pid);
    uint64_t *waited_us = parent != NULL ? &parent->waited_us : &mach_fake.waited_us;
    *waited_us += zombie->used_us + zombie->waited_us;
    zombie->pid = 0;
    reaped_count++;
}

static void live(const char *call) {
    static void (*const events[])(void) = {be_born, be_born, work, work, end, reap, reap};
    (void)call;
    if (draw(3) == 0) {
        events[draw(sizeof events / sizeof events[0])]();
    }
}

static uint64_t take(bp_task *task, uint64_t last_ns) {
    bp_task_snapshot snapshot;
    CHECK(bp_task_snapshot_take(task, false, &snapshot, NULL) == BUGPACK_OK);
    CHECK(snapshot.process_cpu >= last_ns);
    CHECK(snapshot.process_cpu <= used_us * 1000);
    last_ns = snapshot.process_cpu;
    bp_task_snapshot_release(&snapshot);
    return last_ns;
}

static void follow(uint64_t seed) {
    bp_task *task = NULL;
    uint64_t last_ns = 0;
    has_orphans = seed % 2 == 0;
    state = seed * 2654435761u + 88172645463325252u;
    mach_fake_reset();
    mach_fake.has_thread_ids = draw(2) > 0;
    CHECK(bp_task_open_tree(MACH_FAKE_PID, &task, NULL) == BUGPACK_OK);
    used_us = 5250010; /* what the first process begins with */
    mach_fake.on_call = live;
    for (int i = 0; i < SNAPSHOT_COUNT; i++) {
        last_ns = take(task, last_ns);
        for (uint64_t events = draw(60); events > 0; events--) {
            live("");
        }
    }
    mach_fake.on_call = NULL;
    last_ns = take(task, take(task, last_ns));
    CHECK(has_orphans || last_ns == used_us * 1000);
    bp_task_close(task);
}

int main(int argument_count, char **arguments) {
    unsigned long family_count = run_length(argument_count, arguments, 400);
    for (uint64_t seed = 1; seed <= family_count; seed++) {
        follow(seed);
    }
    CHECK(reaped_count > family_count);
    (void)printf("%lu families, %lu processes reaped\n", family_count, reaped_count);
    return 0;
}
