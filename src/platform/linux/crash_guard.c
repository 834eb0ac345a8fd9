#include "platform/linux/crash_guard.h"

#include <setjmp.h>
#include <signal.h>
#include <stddef.h>

/* The second one also gets what the kernel stores of the registers. */
enum { work_stack_bytes = 32 << 10, fault_stack_bytes = 64 << 10 };
_Static_assert(work_stack_bytes + fault_stack_bytes == BP_GUARD_STACKS_BYTES, "both stacks");

/* Of the one thread that writes a crash page. */
static sigjmp_buf *volatile innermost;
static bp_guard_place *volatile current;

bool bp_guard_run(void (*run)(void *context), void *context) {
    sigjmp_buf place;
    sigjmp_buf *const volatile outer = innermost;
    /* bp_guard_escape sets the mask: a system call here would be one for each page of a stack. */
    if (sigsetjmp(place, 0) != 0) {
        innermost = outer;
        return false;
    }
    innermost = &place;
    run(context);
    innermost = outer;
    return true;
}

/* What reading memory that is gone raises, and a system call that a filter traps. */
static void let_faults_through(sigset_t *ret_before) {
    sigset_t faults;
    (void)sigemptyset(&faults);
    (void)sigaddset(&faults, SIGSEGV);
    (void)sigaddset(&faults, SIGBUS);
    (void)sigaddset(&faults, SIGSYS);
    (void)sigprocmask(SIG_UNBLOCK, &faults, ret_before);
}

/* With an alternate stack of its own, because a fault begins at the top of that, where the handler
 * still is. Where it cannot have one a fault ends the process. */
static void work(void) {
    bp_guard_place *place = current;
    const stack_t ours = {.ss_sp = (char *)place - work_stack_bytes - fault_stack_bytes,
                          .ss_size = fault_stack_bytes};
    stack_t theirs;
    sigset_t before;
    bool is_apart = sigaltstack(&ours, &theirs) == 0;
    atomic_store(&place->is_running, true);
    if (is_apart) {
        let_faults_through(&before);
    }
    (void)bp_guard_run(place->run, place->context);
    if (is_apart) {
        (void)sigprocmask(SIG_SETMASK, &before, NULL);
        (void)sigaltstack(&theirs, NULL);
    }
    atomic_store(&place->is_running, false);
}

void bp_guard_run_apart(bp_guard_place *place, void (*run)(void *context), void *context) {
    place->run = run;
    place->context = context;
    current = place;
#ifdef __GLIBC__
    if (getcontext(&place->inner) == 0) {
        place->inner.uc_stack =
            (stack_t){.ss_sp = (char *)place - work_stack_bytes, .ss_size = work_stack_bytes};
        place->inner.uc_link = &place->outer;
        makecontext(&place->inner, work, 0);
        if (swapcontext(&place->outer, &place->inner) == 0) {
            return;
        }
    }
#endif
    work();
}

bool bp_guard_is_running(const bp_guard_place *place) {
    return atomic_load(&place->is_running);
}

void bp_guard_escape(void) {
    if (innermost != NULL) {
        let_faults_through(NULL);
        siglongjmp(*innermost, 1);
    }
}
