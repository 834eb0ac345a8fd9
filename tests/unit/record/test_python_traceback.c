/* Reads what faulthandler writes, and any other text. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/python_traceback.h"
#include "support/crash_samples.h"

enum { crashed = 4712, first = 4711, busy = 4713 };

/* As the sample's page has them. */
static bp_stacks make_stacks(void) {
    bp_stacks stacks = {.threads = calloc(3, sizeof *stacks.threads), .thread_count = 3};
    for (size_t i = 0; i < 3; i++) {
        stacks.threads[i].tid = first + i;
    }
    return stacks;
}

static bp_stacks read_text(const bp_crash_page *page, const char *text, size_t text_bytes) {
    bp_stacks stacks = make_stacks();
    char *copied = malloc(text_bytes + 1);
    memcpy(copied, text, text_bytes);
    bp_python_traceback_add(copied, text_bytes, page, &stacks);
    free(copied);
    return stacks;
}

static const char whole[] =
    "Fatal Python error: Segmentation fault\n\n"
    "Thread 0x00007ffd5a101000 (most recent call first):\n"
    "  File \"/usr/lib/python3.11/threading.py\", line 327 in wait\n"
    "  File \"/src/a \"b\", c.py\", line ??? in <module>\n"
    "\n"
    "Current thread 0x00007f0000000010 [decoder] (most recent call first):\n"
    "  File \"viewer.py\", line 12 in fall\n"
    "  ...\n"
    "\n"
    "Extension modules: _cffi_backend (total: 1)\n"
    "  File \"viewer.py\", line 1 in nobody\n";

Test(python_traceback, joins_threads_by_the_mapping_of_their_stacks) {
    bp_stacks stacks = read_text(sample_crash_page(), whole, sizeof whole - 1);
    const bp_stack_thread *waits = &stacks.threads[0], *falls = &stacks.threads[1];
    cr_assert(eq(sz, waits->python_count, 2));
    cr_assert(eq(sz, falls->python_count, 1));
    cr_expect(eq(sz, stacks.threads[2].python_count, 0));
    const bp_python_frame *frames = stacks.python_frames;
    cr_expect(eq(str, frames[waits->first_python].function, "wait"));
    cr_expect(eq(str, frames[waits->first_python].source, "/usr/lib/python3.11/threading.py"));
    cr_expect(eq(int, frames[waits->first_python].line, 327));
    cr_expect(eq(str, frames[waits->first_python + 1].source, "/src/a \"b\", c.py"));
    cr_expect(eq(int, frames[waits->first_python + 1].line, 0));
    cr_expect(eq(str, frames[falls->first_python].function, "fall"));
    cr_expect(zero(ptr, (void *)(uintptr_t)waits->python_reason));
    cr_expect(
        eq(str, (char *)(uintptr_t)falls->python_reason, "faulthandler lists no more functions"));
    bp_stacks_release(&stacks);
}

/* One whose stack is not known may be the thread; where all are, what is left is the first. */
Test(python_traceback, does_not_guess_between_threads) {
    static const char text[] = "Thread 0x00007f0000000010 (most recent call first):\n"
                               "  File \"viewer.py\", line 12 in wait\n";
    bp_crash_page *page = sample_crash_page();
    bp_stacks stacks = read_text(page, text, sizeof text - 1);
    cr_expect(eq(sz, stacks.python_frame_count, 0));
    bp_stacks_release(&stacks);
    page->thread_count = 1;
    stacks = read_text(page, text, sizeof text - 1);
    cr_expect(eq(sz, stacks.threads[0].python_count, 1));
    bp_stacks_release(&stacks);
    page->pid = crashed;
    stacks = read_text(page, text, sizeof text - 1);
    cr_expect(eq(sz, stacks.python_frame_count, 0), "the first thread crashed");
    bp_stacks_release(&stacks);
}

Test(python_traceback, takes_the_first_of_two_and_any_cut) {
    char twice[2 * sizeof whole];
    (void)snprintf(twice, sizeof twice, "%s%s", whole, whole);
    bp_stacks stacks = read_text(sample_crash_page(), twice, strlen(twice));
    cr_expect(eq(sz, stacks.python_frame_count, 3));
    bp_stacks_release(&stacks);
    for (size_t i = 0; i < sizeof whole; i++) {
        stacks = read_text(sample_crash_page(), whole, i);
        cr_expect(le(sz, stacks.python_frame_count, 3));
        bp_stacks_release(&stacks);
    }
}
